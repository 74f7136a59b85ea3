//! MemProf profiles as YAML. LLVM 20 and later print indexed profiles in this form with `llvm-profdata show --memory`,
//! and read it with `llvm-profdata merge`.
//!
//! A function is written as the hash of its name with the prefix `0x`. When YAML is read, the name of the function is
//! accepted too. All other values are written as they are in the profile.
mod reader;
mod writer;

pub use reader::{is_yaml, parse};
pub use writer::{scalar, write};
