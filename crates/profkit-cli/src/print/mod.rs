//! Printing for all commands: numbers for people, and outputs that escape the control characters of file contents.
mod numbers;
mod outputs;
pub mod svg;

pub use numbers::{grouped, percent, plural};
pub use outputs::{json_stdout, stderr, stdout, stdout_for};
pub use profkit_merge::files::Screen;

use clap::ValueEnum;

/// The form of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}
