//! The texts of `--help` and `--version`.
use super::options::{MERGE, ORDER, OVERLAP, SHOW, TOOL};
use crate::command_line::{Commands, HelpKind, OptionKind, options_help};
use crate::{LLVM_VERSION, version_text};
use profkit_data::releases::Release;
use std::fmt::Write;

/// Returns the text of `--version`. Scripts look for `LLVM version` and a number in this text.
pub fn version(release: Release) -> String {
    format!(
        "profkit {}, in place of llvm-profdata of\n  LLVM version {}\n",
        env!("CARGO_PKG_VERSION"),
        version_text(release)
    )
}

/// The subcommands. Each entry has the subcommand's [`Commands`] value, the names of its arguments as the help text
/// shows them, and its description.
pub const SUBCOMMANDS: [(Commands, &str, &str); 4] = [
    (
        MERGE,
        "<filename...>",
        "Merge instrumentation, sample or MemProf profiles into one",
    ),
    (
        ORDER,
        "<profdata-file>",
        "Order functions by temporal traces",
    ),
    (
        OVERLAP,
        "<base profile file> <test profile file>",
        "Compare two instrumentation or sample profiles",
    ),
    (
        SHOW,
        "<profdata-file>",
        "Show an instrumentation, sample or MemProf profile",
    ),
];

/// Returns the text of `--help` for a subcommand or for the program.
pub fn help(program: &str, command: Commands, kind: HelpKind) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, so the result is ignored.
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
            writeln!(
                text,
                "SUBCOMMAND '{}': {about}\n",
                TOOL.command_name(command)
            )?;
            writeln!(
                text,
                "USAGE: {program} {} [options] {operands}\n",
                TOOL.command_name(command)
            )?;
        }
        None => {
            writeln!(
                text,
                "USAGE: {program} [subcommand] [options]\n\nSUBCOMMANDS:\n"
            )?;
            for (command, _, about) in SUBCOMMANDS {
                writeln!(text, "  {:<7} - {about}", TOOL.command_name(command))?;
            }
            writeln!(
                text,
                "\n  {program} <subcommand> --help lists the options of a subcommand\n"
            )?;
        }
    }
    options_help(text, &TOOL, command, kind, |spec| match spec.kind {
        OptionKind::Member(group) => group,
        _ if spec.commands.intersects(Commands::TOP) => "Generic options:",
        _ => "General options:",
    })
}
