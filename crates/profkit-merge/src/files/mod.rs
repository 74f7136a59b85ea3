//! Files in and out: inputs named on a command line, in lists and in folders; outputs that appear whole or not at all;
//! indexed profiles written with several threads.
//!
//! `-` is standard input or output everywhere. Errors are values with a `Display` in plain English; which exit code they
//! are worth is the front end's matter.
mod indexed;
mod input;
mod list;
mod output;

pub use indexed::write_indexed;
pub use input::{Input, ReadError, STDIN_NAME, SingleInput, is_stdio, open_file, read_into};
pub use list::{
    InputFile, InputList, InputNote, ListEntry, ListError, MissingInput, Subset, parse_list,
};
pub use output::{Content, Output, OutputError, OutputProblem, write_to};

/// The text of an I/O error without Rust's "(os error N)".
pub fn system_text(error: &std::io::Error) -> String {
    let mut text = error.to_string();
    // Errors of `tempfile` have the path of its own file after it, which means nothing to the user.
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    text
}
