//! MemProf profiles as YAML: what `llvm-profdata show --memory` of LLVM 20 and later prints for indexed profiles, and its
//! `merge` reads.
//!
//! A function is a hash with `0x`, or a name that is hashed. Everything else is as the file has it.
mod reader;
mod writer;

pub use reader::{is_yaml, parse};
pub use writer::{YamlOptions, write};
