//! MIP profiles as YAML, for people to read, compare and edit.
//!
//! There are two dialects. Version 8 has the keys of the original tool, and version 9 has more keys.
//! [docs/formats/mip.md] lists them. A document without the key `Version` has version 8.
//!
//! [docs/formats/mip.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip.md
mod reader;
mod writer;

pub use reader::parse;
pub use writer::write;
