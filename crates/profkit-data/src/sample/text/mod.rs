//! The text encoding of sample profiles, for people and tests. [docs/formats/sample.md] has the grammar.
//!
//! ```
//! use profkit_data::sample::{SampleProfile, text};
//!
//! let file = b"main:30:2\n 1: 10 puts:10\n 3: helper:20\n  1: 20\n";
//! let mut profile = SampleProfile::new();
//! let report = text::read(file, &mut profile, 1);
//! assert!(report.faults.is_empty());
//! let mut again = Vec::new();
//! text::write(&profile, &text::TextOptions::default(), &mut again)?;
//! assert_eq!(again, file);
//! # Ok::<(), profkit_data::Error>(())
//! ```
//!
//! [docs/formats/sample.md]: https://github.com/profkit/profkit/blob/main/docs/formats/sample.md
mod line;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use reader::begins_as_llvm_reads;
pub use reader::{read, read_with};
pub use writer::{TextOptions, write};
