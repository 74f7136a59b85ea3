//! MemProf profiles as YAML: the form that `llvm-profdata show --memory` of LLVM 20 and later prints for indexed
//! profiles, and that its `merge` reads.
//!
//! A function is written as `0x` and its hash. When reading, it may also be a name, which is then hashed. All other
//! values are as in the profile.
mod reader;
mod writer;

pub use reader::{is_yaml, parse};
pub use writer::{YamlOptions, write};
