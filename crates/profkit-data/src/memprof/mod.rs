//! MemProf: heap profiles of programs built with clang's `-fmemory-profile`.
//!
//! The raw dumps of a program contain addresses. Symbolising the addresses gives a [`MemProfile`], which can be stored
//! in binary form in an indexed profile, or as text in YAML. [docs/formats/memprof.md] has the byte tables and the
//! versions.
//!
//! [docs/formats/memprof.md]: https://github.com/profkit/profkit/blob/main/docs/formats/memprof.md
mod block;
mod contexts;
mod cut;
mod data_access;
pub mod diff;
pub mod indexed;
mod losses;
pub mod portable;
#[cfg(test)]
mod portable_tests;
mod profile;
pub mod raw;
mod sites;
mod summary;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use block::{FIELD_COUNT, Field, MemInfoBlock, Schema, Start};
pub use contexts::{AddressId, Context, FrameList, build};
pub use data_access::{DataAccess, DataRecord, Datum};
pub use losses::Losses;
pub use profile::{
    AllocSite, CallSite, Frame, FrameId, IdScheme, MemProfile, Record, SourceLocation, StackId,
    add_histogram, canonical_name, guid,
};
pub use sites::{Allocations, InlinedAt};
pub use summary::{Hotness, MemProfSummary, Thresholds};
