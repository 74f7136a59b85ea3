//! What all commands print with: numbers for people, and outputs that let no control character of a file through.
mod numbers;
mod outputs;

pub use numbers::{grouped, percent, plural};
pub use outputs::{json_stdout, stderr, stdout, stdout_for};
pub use profkit_merge::files::Screen;

use clap::ValueEnum;

/// For whom a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}
