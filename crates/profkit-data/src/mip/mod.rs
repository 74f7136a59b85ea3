//! MIP: coverage and call order of an image's functions.
//!
//! | file | what it is | module |
//! |---|---|---|
//! | map (`.mipmap`, or the section `__llvm_mipmap`) | which functions there are and where their records are | [`MipMap`] |
//! | raw (`.mipraw`) | the records that runs left | [`RawParts`] |
//! | profile (`.mip`) | both together, of one run or many | [`MipProfile`] |
//! | YAML | the profile as text | [`yaml`] |
//!
//! Version 9 is profkit's own; version 8 is the original's, never released, of which maps (layouts A1 and B), raw files
//! (A and B) and profiles (B) are read and profiles (B) written. docs/formats/mip.md has the bytes.
//!
//! ```
//! use profkit_data::mip::{ImageFacts, MipMap, MipProfile};
//! # fn demo(map: &[u8]) -> profkit_data::Result<()> {
//! let map = MipMap::parse(map)?;
//! let created = MipProfile::create(&map, &ImageFacts::new())?;
//! println!("{} functions", created.profile.functions.len());
//! # Ok(())
//! # }
//! ```
mod create;
mod entry;
mod header;
mod header_v8;
mod losses;
mod map;
mod map_v8;
mod model;
mod profile;
mod profile_v8;
mod raw;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use create::{Created, ImageFacts};
pub use entry::MapEntry;
pub use header::{Layout, MipKind, Preamble, has_magic, preamble};
pub use losses::Losses;
pub use map::{Entries, MapReadOptions, MipMap, is_map};
pub use model::{
    Block, CallEdge, EntryKind, Function, FunctionId, Identity, MODE_NAMES, MipProfile, Modes,
    Width,
};
pub use profile::{MipWriteOptions, ProfileHeader, ProfileVersion, write};
pub use raw::{
    EntryRecord, ImageId, PartToWrite, RawPart, RawParts, RawWriteOptions, Sample, calls_record,
    write_raw,
};
