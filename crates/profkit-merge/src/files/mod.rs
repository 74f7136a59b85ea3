//! Input and output files of merges. This module contains everything in the crate `profkit_files`, and a function that
//! writes indexed profiles with several threads.
mod indexed;

pub use crate::join::JoinedText;
pub use indexed::{IndexedFile, write_indexed};
pub use profkit_files::*;
