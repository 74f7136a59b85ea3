//! MemProf profiles as YAML. LLVM 20 and later print indexed profiles in this form with `llvm-profdata show --memory`,
//! and read it with `llvm-profdata merge`.
//!
//! A function is written as `0x` and its hash. A text may also have the function's name, whose hash is then used. All
//! other values are written as they are in the profile.
mod reader;
mod writer;

pub use reader::{is_yaml, parse};
pub use writer::{YamlOptions, write};
