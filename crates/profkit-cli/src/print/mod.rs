//! What all commands print with: numbers for people, and outputs that let no control character of a file through.
mod numbers;
mod screen;

pub use numbers::{grouped, percent, plural};
pub use screen::{Screen, json_stdout, stderr, stdout, stdout_for};

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
