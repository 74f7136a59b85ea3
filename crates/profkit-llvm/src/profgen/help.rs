//! The texts of `--help` and `--version`.
use super::options::TOOL;
use crate::command_line::{Commands, HelpKind, OptionKind, options_help};
use crate::{LLVM_VERSION, version_text};
use profkit_data::releases::Release;
use std::fmt::Write;

/// Returns the text of `--version`. Scripts look for `LLVM version` and a number in this text.
pub fn version(release: Release) -> String {
    format!(
        "profkit {}, in place of llvm-profgen of\n  LLVM version {}\n",
        env!("CARGO_PKG_VERSION"),
        version_text(release)
    )
}

/// Returns the text of `--help`. It has the titles of LLVM's tool, for which scripts look.
pub fn help(program: &str, kind: HelpKind) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, so the result is ignored.
    let _ = write_help(&mut text, program, kind);
    text
}

fn write_help(text: &mut String, program: &str, kind: HelpKind) -> std::fmt::Result {
    writeln!(
        text,
        "OVERVIEW: llvm SPGO profile generator (profkit, in place of release {LLVM_VERSION})\n"
    )?;
    writeln!(text, "USAGE: {program} [options]\n")?;
    let generic = ["print-options", "print-all-options"];
    options_help(text, &TOOL, Commands::TOP, kind, |spec| match spec.kind {
        OptionKind::Help | OptionKind::Version => "Generic Options:",
        _ if generic.contains(&spec.name) => "Generic Options:",
        _ if spec.name == "color" => "Color Options:",
        _ => "ProfGen Options:",
    })
}
