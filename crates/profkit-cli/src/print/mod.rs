//! Printing for all commands: outputs that escape the control characters of file contents.
mod outputs;

pub use outputs::{json_stdout, stderr, stdout, stdout_for};
pub use profkit_merge::files::Screen;
pub use profkit_report::{BarStyle, grouped, percent, plural};

use clap::ValueEnum;
use std::io::IsTerminal;

/// The characters of bars on standard output: blocks if it is a terminal with a UTF-8 locale.
pub fn bar_style() -> BarStyle {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    if std::io::stdout().is_terminal() && (locale.contains("utf-8") || locale.contains("utf8")) {
        BarStyle::Blocks
    } else {
        BarStyle::Ascii
    }
}

/// The form of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}
