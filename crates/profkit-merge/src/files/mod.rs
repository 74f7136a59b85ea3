//! Input and output files of merges: all of the crate `profkit_files`, and indexed profiles written with several threads.
mod indexed;

pub use indexed::write_indexed;
pub use profkit_files::*;
