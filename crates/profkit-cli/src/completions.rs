//! `profkit completions` and `profkit man`: texts that are generated from the argument definitions.
use crate::cli::Cli;
use crate::exit::{Failure, Result, Status};
use clap::{Args, CommandFactory};
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `profkit completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  profkit completions bash > ~/.local/share/bash-completion/completions/profkit")]
pub struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Arguments of `profkit man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  profkit man | man -l -
  profkit man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Write the pages of all commands into this folder (created if it does not exist)
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints a completion script for a shell.
pub fn print_script(args: &CompletionsArgs) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "profkit", &mut script);
    print(&script)
}

/// Prints the main manual page, or writes all pages.
pub fn man(args: &ManArgs) -> Result {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| Failure::print(&error))?;
        return print(&page);
    };
    let name = profkit_data::path_text(folder);
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io("cannot make the folder", &name, &error))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(|error| Failure::io("cannot write into", &name, &error))?;
    Ok(Status::Done)
}

fn print(text: &[u8]) -> Result {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text)
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}
