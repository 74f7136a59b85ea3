//! Profiles as YAML, to be read, compared and edited by people.
//!
//! Two dialects: of version 8, with the keys that the original's tool has, and of version 9, which has more keys.
//! docs/formats/mip.md lists them. A document without `Version` is of version 8.
mod reader;
mod writer;

pub use reader::parse;
pub use writer::write;
