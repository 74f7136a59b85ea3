//! The binary encodings without sections: binary, and compact binary (LLVM 7 to 16). [docs/formats/sample.md] has the
//! byte tables.
//!
//! | version | LLVM | change |
//! |---|---|---|
//! | 100 | 3.6, 3.7 | the first version: each name is written out where it is used; no inlined functions |
//! | 102 | 3.8 | name table, inlined functions |
//! | 103 | since 3.9 | summary before the name table |
//!
//! Version 101 existed between releases only and is rejected.
//!
//! [docs/formats/sample.md]: https://github.com/profkit/profkit/blob/main/docs/formats/sample.md
pub(super) mod body;
mod compact;
pub(super) mod header;
pub(super) mod names;
pub(super) mod numbers;
mod plain;
#[cfg(test)]
mod tests;

pub use compact::{read as read_compact, read_with as read_compact_with, write as write_compact};
pub use header::{Header, parse_header};
pub use plain::{read, read_with, write};
