//! Printing for all commands: outputs that escape the control characters of file contents.
mod outputs;

pub use outputs::{json_stdout, stderr, stdout, stdout_for};
pub use profkit_merge::files::Screen;
pub use profkit_report::{grouped, percent, plural};

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
