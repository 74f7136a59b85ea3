//! Input and output files of merges: inputs named on a command line, in list files and in folders; outputs that are
//! written completely or not at all; indexed profiles written with several threads.
//!
//! `-` always means standard input or output. Errors are values whose `Display` is plain English; the front end chooses
//! the exit code.
mod archive;
mod indexed;
mod input;
mod list;
mod output;
mod temporary;
mod walk;

pub use indexed::write_indexed;
pub use input::{
    Input, ReadError, STDIN_NAME, SingleInput, is_stdio, open_file, open_stored, read_into,
    read_stored,
};
pub use list::{InputFile, InputList, InputNote, ListError, MissingInput, Subset};
pub use output::{Content, Output, OutputError, OutputProblem, write_to};
pub use profkit_data::{Screen, system_text};
pub use temporary::abandon_outputs;
