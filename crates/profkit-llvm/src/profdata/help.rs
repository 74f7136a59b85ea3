//! `--help` and `--version`.
use super::command_line::{Commands, HelpKind, OPTIONS, OptionKind, OptionSpec};
use std::fmt::Write;

/// The LLVM release that the personality reproduces.
pub const LLVM_VERSION: &str = "22.1.8";

/// The text of `--version`. Scripts look for `LLVM version` and a number in it.
pub fn version() -> String {
    format!(
        "profkit {}, in place of llvm-profdata of\n  LLVM version {LLVM_VERSION}\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The subcommands: their arguments, and what they do.
pub const SUBCOMMANDS: [(Commands, &str, &str); 4] = [
    (
        Commands::MERGE,
        "<filename...>",
        "Merge instrumentation, sample or MemProf profiles into one",
    ),
    (
        Commands::ORDER,
        "<profdata-file>",
        "Order functions by temporal traces",
    ),
    (
        Commands::OVERLAP,
        "<base profile file> <test profile file>",
        "Compare two instrumentation or sample profiles",
    ),
    (
        Commands::SHOW,
        "<profdata-file>",
        "Show an instrumentation, sample or MemProf profile",
    ),
];

/// The text of `--help` for a subcommand, or for the program.
pub fn help(program: &str, command: Commands, kind: HelpKind) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_help(&mut text, program, command, kind);
    text
}

fn write_help(
    text: &mut String,
    program: &str,
    command: Commands,
    kind: HelpKind,
) -> std::fmt::Result {
    writeln!(text, "OVERVIEW: profkit as llvm-profdata {LLVM_VERSION}\n")?;
    match SUBCOMMANDS.iter().find(|(known, ..)| *known == command) {
        Some((_, operands, about)) => {
            writeln!(text, "SUBCOMMAND '{}': {about}\n", command.name())?;
            writeln!(
                text,
                "USAGE: {program} {} [options] {operands}\n",
                command.name()
            )?;
        }
        None => {
            writeln!(
                text,
                "USAGE: {program} [subcommand] [options]\n\nSUBCOMMANDS:\n"
            )?;
            for (command, _, about) in SUBCOMMANDS {
                writeln!(text, "  {:<7} - {about}", command.name())?;
            }
            writeln!(
                text,
                "\n  {program} <subcommand> --help lists the options of a subcommand\n"
            )?;
        }
    }
    text.push_str("OPTIONS:\n");
    let mut options: Vec<&OptionSpec> = OPTIONS
        .iter()
        .filter(|spec| spec.commands.intersects(command) && (kind.hidden || !spec.hidden))
        .collect();
    if kind.list {
        options.sort_by_key(|spec| spec.name);
    }
    let left: Vec<String> = options.iter().map(|spec| left_column(spec)).collect();
    let width = left.iter().map(String::len).max().unwrap_or(0);
    let mut group = "";
    let everywhere = |spec: &OptionSpec| spec.commands.intersects(Commands::TOP);
    for (left, spec) in left.iter().zip(&options) {
        let title = match spec.kind {
            _ if kind.list => "",
            OptionKind::Member(group) => group,
            _ if everywhere(spec) => "Generic options:",
            _ => "General options:",
        };
        if title != group {
            writeln!(text, "\n{title}\n")?;
            group = title;
        }
        let about = match spec.alias_of {
            Some(name) => format!("Alias for --{name}"),
            None => spec.about.to_owned(),
        };
        writeln!(text, "  {left:<width$} - {about}")?;
    }
    Ok(())
}

fn left_column(spec: &OptionSpec) -> String {
    let dashes = if spec.name.len() == 1 { "-" } else { "--" };
    match spec.value {
        "" => format!("{dashes}{}", spec.name),
        value => format!("{dashes}{}=<{value}>", spec.name),
    }
}
