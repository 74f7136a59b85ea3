//! `profkit completions` and `profkit man`: texts that are generated from the argument definitions, and from the table of
//! llvm-profdata's options.
use crate::cli::Cli;
use crate::exit::{Failure, Result, Status};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Args, Command, CommandFactory, ValueHint};
use profkit_llvm::profdata::{self, OptionKind, OptionSpec};
use profkit_llvm::profgen;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    with_values(Cli::command())
        .mut_subcommand(profdata::NAME, |_| {
            llvm_profdata().after_help(profdata::EXAMPLE)
        })
        .mut_subcommand(profgen::NAME, |command| {
            let command = command.args(profgen::options().map(argument));
            command.mut_arg("args", |args| args.hide(true))
        })
}

/// Gives the options of a command and its subcommands the values that scripts complete. Shells complete the names of files
/// where an option has no values, so options whose values are no files say that too.
fn with_values(command: Command) -> Command {
    let is_sample = command.get_name() == "sample";
    let command = command.mut_args(|argument| {
        let words: &[&str] = match argument.get_long() {
            Some("llvm") => &LLVM_RELEASES,
            Some("for") if argument.get_id() == "compiler" => &COMPILERS,
            Some("to") if is_sample => &SAMPLE_FORMS,
            _ => &[],
        };
        let is_no_file = || {
            let names = argument.get_value_names().unwrap_or_default();
            names.iter().any(|name| NO_FILES.contains(&name.as_str()))
        };
        if !words.is_empty() {
            argument.value_parser(PossibleValuesParser::new(words))
        } else if argument.get_action().takes_values() && is_no_file() {
            argument.value_hint(ValueHint::Other)
        } else {
            argument
        }
    });
    command.mut_subcommands(with_values)
}

/// The names of values that are no files.
const NO_FILES: [&str; 19] = [
    "BYTES",
    "COUNT",
    "COUNTER",
    "DENSITY",
    "FROM,UNTIL",
    "HEX",
    "I",
    "N",
    "NAME",
    "N|P%",
    "PERCENT",
    "PID",
    "REGEX",
    "SECONDS",
    "SHARE",
    "TEXT",
    "TRIPLE",
    "V",
    "VERSION",
];
const SAMPLE_FORMS: [&str; 6] = [
    "text",
    "binary",
    "compact-binary",
    "ext-binary",
    "gcov",
    "gcov:llvm",
];
/// The options accept older releases too.
const LLVM_RELEASES: [&str; 11] = [
    "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23",
];
const COMPILERS: [&str; 12] = [
    "clang-13", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20",
    "clang-21", "clang-22", "clang-23", "rustc",
];

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
        return print(&page(native()).map_err(|error| Failure::print(&error))?);
    };
    let name = profkit_data::path_text(folder);
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io("the folder cannot be made", &name, &error))?;
    let mut command = native().disable_help_subcommand(true);
    command.build();
    write_pages(command, folder)
        .map_err(|error| Failure::io("cannot be written into", &name, &error))?;
    Ok(Status::Done)
}

fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for subcommand in shown.cloned() {
        write_pages(subcommand, folder)?;
    }
    let file = clap_mangen::Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(file), page(command)?)
}

/// The manual page of a command. clap_mangen lists options in the synopsis without their values, so these are added.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let values: Vec<(String, String)> = command
        .get_arguments()
        .filter(|argument| argument.get_action().takes_values())
        .filter_map(|argument| {
            let option = format!("\\fB\\-\\-{}\\fR]", roff(argument.get_long()?));
            let names = argument.get_value_names()?;
            let names: Vec<String> = names.iter().map(|name| roff(name)).collect();
            Some((option, names.join(" ")))
        })
        .collect();
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    let text = String::from_utf8_lossy(&page);
    let lines = text.split_inclusive('\n').scan(false, |is_next, line| {
        let is_synopsis = std::mem::replace(is_next, line == ".SH SYNOPSIS\n");
        Some(if is_synopsis {
            values
                .iter()
                .fold(line.to_owned(), |line, (option, names)| {
                    let bare = option.trim_end_matches(']');
                    line.replace(option, &format!("{bare} \\fI{names}\\fR]"))
                })
        } else {
            line.to_owned()
        })
    });
    Ok(lines.collect::<String>().into_bytes())
}

/// Text as roff has it: a dash that is a minus is escaped.
fn roff(text: &str) -> String {
    text.replace('-', "\\-")
}

fn print(text: &[u8]) -> Result {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text)
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::releases::RELEASES;
    use profkit_data::sample::SampleForm;

    #[test]
    fn completed_values_are_those_that_options_accept() {
        let newest = RELEASES.iter().rev().take(LLVM_RELEASES.len()).rev();
        let newest: Vec<String> = newest.map(|facts| facts.release.to_string()).collect();
        assert_eq!(newest, LLVM_RELEASES);
        for compiler in COMPILERS {
            assert!(compiler.parse::<profkit_runtime::link::Compiler>().is_ok());
        }
        for form in SAMPLE_FORMS {
            assert!(form.parse::<SampleForm>().is_ok(), "{form}");
        }
    }
}
