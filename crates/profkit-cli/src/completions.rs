//! `profkit completions` and `profkit man`: texts that are generated from the argument definitions, and from the table of
//! llvm-profdata's options.
use crate::cli::Cli;
use crate::exit::{Failure, Result, Status};
use clap::{Arg, ArgAction, Args, Command, CommandFactory, ValueHint};
use profkit_llvm::profdata::{self, OptionKind, OptionSpec};
use profkit_llvm::profgen;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  profkit completions bash > ~/.local/share/bash-completion/completions/profkit
  profkit completions bash llvm-profdata > ~/.local/share/bash-completion/completions/llvm-profdata")]
pub struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
    /// The command that is completed; llvm-profdata is profkit under that name
    #[arg(value_name = "COMMAND", value_parser = ["profkit", "llvm-profdata"], default_value = "profkit")]
    command: String,
}

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

pub fn print_script(args: &CompletionsArgs) -> Result {
    let mut command = match args.command.as_str() {
        "profkit" => native(),
        _ => llvm_profdata(),
    };
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, &args.command, &mut script);
    // If the name of the program contains a dash, clap_complete 4.6 writes two different forms of the name into the
    // script, so that bash finds no options.
    let script = String::from_utf8_lossy(&script);
    let script = script.replace(
        "llvm__subcmd__profdata__subcmd__",
        "llvm__profdata__subcmd__",
    );
    print(script.as_bytes())
}

/// The native command line. Its subcommands `llvm-profdata` and `llvm-profgen` have the options of LLVM's tools.
fn native() -> Command {
    Cli::command()
        .mut_subcommand(profdata::NAME, |_| {
            llvm_profdata().after_help(profdata::EXAMPLE)
        })
        .mut_subcommand(profgen::NAME, |command| {
            let command = command.args(profgen::options().map(argument));
            command.mut_arg("args", |args| args.hide(true))
        })
}

/// The command line of LLVM's tool, as far as scripts and manual pages show it. The tool parses its arguments itself.
fn llvm_profdata() -> Command {
    let plain = |name| {
        Command::new(name)
            .disable_help_flag(true)
            .disable_help_subcommand(true)
    };
    let commands = profdata::commands().map(|command| {
        plain(command.name)
            .about(command.about)
            .args(command.options().map(argument))
            .arg(
                Arg::new("FILE")
                    .num_args(0..)
                    .value_hint(ValueHint::AnyPath),
            )
    });
    plain(profdata::NAME)
        .about("Merge and show profiles with the options of LLVM's llvm-profdata")
        .subcommands(commands)
}

fn argument(option: &OptionSpec) -> Arg {
    let mut letters = option.name.chars();
    let argument = Arg::new(option.name).help(match option.alias_of {
        Some(name) => format!("The same as --{name}"),
        None => option.about.to_owned(),
    });
    let argument = match (letters.next(), letters.next()) {
        (Some(letter), None) => argument.short(letter),
        _ => argument.long(option.name),
    };
    let argument = match option.value {
        "" => argument.value_name("value"),
        value => argument.value_name(value),
    };
    match option.kind {
        OptionKind::Flag | OptionKind::Member(_) | OptionKind::Help | OptionKind::Version => {
            argument.action(ArgAction::SetTrue)
        }
        OptionKind::Choice(words) => argument.value_parser(words.to_vec()),
        OptionKind::Text | OptionKind::TextList => argument.value_hint(ValueHint::AnyPath),
        _ => argument,
    }
}

pub fn man(args: &ManArgs) -> Result {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(native())
            .render(&mut page)
            .map_err(|error| Failure::print(&error))?;
        return print(&page);
    };
    let name = profkit_data::path_text(folder);
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io("the folder cannot be made", &name, &error))?;
    clap_mangen::generate_to(native(), folder)
        .map_err(|error| Failure::io("cannot be written into", &name, &error))?;
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
