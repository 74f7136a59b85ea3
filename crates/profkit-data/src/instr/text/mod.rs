//! The text form of instrumentation profiles (.proftext), for people and tests. [docs/formats/text.md] has the grammar.
//!
//! ```
//! use profkit_data::instr::{InstrSource, Record, text::TextReader};
//!
//! let text = b":ir\nmain\n# Func Hash:\n16\n# Num Counters:\n2\n# Counter Values:\n7\n3\n";
//! let mut reader = TextReader::parse(text)?;
//! let mut record = Record::default();
//! while reader.read_record(&mut record)? {
//!     assert_eq!((record.name.as_slice(), record.counts.as_slice()), (&b"main"[..], &[7, 3][..]));
//! }
//! # Ok::<(), profkit_data::Error>(())
//! ```
//!
//! [docs/formats/text.md]: https://github.com/profkit/profkit/blob/main/docs/formats/text.md
mod ahead;
mod index;
mod lexer;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use index::{IndexedRecord, TextIndex};
pub use reader::TextReader;
pub use writer::{Names, TextOptions, TextWriter, is_readable, losses, sort_by_name, write};

/// The name that is written for a value target whose hash is 0. Hash 0 means that the target (a called function or a
/// vtable) is not in the program.
pub const EXTERNAL_SYMBOL: &[u8] = b"** External Symbol **";
