//! Files in and out, with the manners that every command shares: `-` is standard input or output, large files are
//! mapped, an output appears whole or not at all, and no binary goes to a terminal.
mod input;
mod output;

pub use input::{Input, OpenInput, STDIN_NAME, is_stdio, read_into};
pub use output::{Content, Output, OutputError, printer};
