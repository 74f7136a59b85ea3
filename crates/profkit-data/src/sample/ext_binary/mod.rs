//! The extensible binary encoding, which consists of sections with flags and a section table. LLVM reads it since
//! release 10 and writes it by default since release 18. [docs/formats/sample.md] has the byte tables.
//!
//! Opening a profile reads only its section table. [`ExtBinaryProfile::read_functions`] finds single functions through
//! the table of offsets; [`ExtBinaryProfile::read`] reads all functions.
//!
//! ```
//! use profkit_data::sample::ext_binary::{ExtBinaryOptions, ExtBinaryProfile, write};
//! use profkit_data::sample::{SampleProfile, text};
//!
//! let mut profile = SampleProfile::new();
//! text::read(b"main:30:2\n 1: 10 puts:10\nhelper:20:1\n 1: 20\n", &mut profile, 1);
//! let mut file = Vec::new();
//! write(&profile, &ExtBinaryOptions::default(), &mut file)?;
//!
//! let opened = ExtBinaryProfile::parse(&file)?;
//! let mut one = SampleProfile::new();
//! opened.read_functions(&[b"helper"], &mut one);
//! assert_eq!(one.functions()[0].samples.total, 20);
//! # Ok::<(), profkit_data::Error>(())
//! ```
//!
//! [docs/formats/sample.md]: https://github.com/profkit/profkit/blob/main/docs/formats/sample.md
mod blocks;
mod composite;
mod contexts;
mod eytzinger;
mod in_order;
mod metadata;
mod reader;
mod sections;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub use blocks::{Block, FunctionBlocks};
pub use reader::ExtBinaryProfile;
pub use sections::Section;
pub use writer::{ExtBinaryOptions, write};
