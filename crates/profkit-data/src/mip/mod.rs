//! MIP profiles: which functions of an image ran, and in which order they were first called. An image is an executable
//! or a shared library.
//!
//! | file | what it is | module |
//! |---|---|---|
//! | map (`.mipmap`, or the section `__llvm_mipmap`) | the functions of an image, and where their records are | [`MipMap`] |
//! | raw (`.mipraw`) | the records that runs wrote | [`RawParts`] |
//! | profile (`.mip`) | the functions together with the records of one run or more | [`MipProfile`] |
//! | YAML | the profile as text | [`yaml`] |
//!
//! Version 9 is profkit's own. Version 8 is the version of the original implementation, which was never released.
//! profkit reads maps (layouts A1 and B), raw files (layouts A and B) and profiles (layout B) of version 8, and writes
//! profiles (layout B) of version 8. [docs/formats/mip.md] has the byte tables.
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
//!
//! [docs/formats/mip.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip.md
mod add;
mod create;
mod edges;
mod edit;
mod entry;
mod header;
mod header_v8;
mod inference;
mod losses;
mod map;
mod map_v8;
mod model;
mod open;
pub mod plan;
mod profile;
mod profile_v8;
mod raw;
mod sums;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use add::{Refusal, add_profile};
pub use create::{Created, ImageFacts};
pub use edges::add_samples;
pub use entry::MapEntry;
pub use header::{Layout, MipKind, Preamble, has_magic, preamble};
pub use inference::Inference;
pub use losses::Losses;
pub use map::{Entries, MapReadOptions, MipMap, is_map};
pub use model::{
    Block, CallEdge, EntryKind, Function, FunctionId, Identity, MODE_NAMES, MipProfile, Modes,
    Width, part_of,
};
pub use open::MipForm;
pub use profile::{MipWriteOptions, ProfileHeader, ProfileVersion, write};
pub use raw::{
    EntryRecord, ImageId, PartToWrite, RawPart, RawParts, Sample, calls_record,
    sampled_calls_record, write_raw,
};
pub use sums::RecordSums;
