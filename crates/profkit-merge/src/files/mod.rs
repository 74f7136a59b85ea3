//! Files in and out: inputs named on a command line, in lists and in folders; outputs that are written completely or
//! not at all; indexed profiles written with several threads.
//!
//! `-` is standard input or output everywhere. Errors are values with a `Display` in plain English; which exit code they
//! are worth is the front end's matter.
mod archive;
mod indexed;
mod input;
mod list;
mod output;
mod screen;

pub use indexed::write_indexed;
pub use input::{
    Input, ReadError, STDIN_NAME, SingleInput, is_stdio, open_file, open_stored, read_into,
    read_stored,
};
pub use list::{
    InputFile, InputList, InputNote, ListEntry, ListError, MissingInput, Subset, parse_list,
};
pub use output::{Content, Output, OutputError, OutputProblem, write_to};
pub use profkit_data::system_text;
pub use screen::Screen;
