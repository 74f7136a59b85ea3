//! Raw instrumentation profiles (`.profraw`). The run-time library of a program writes them at exit, in the byte order and
//! with the pointer width of the program. [docs/formats/raw.md] has the byte tables.
//!
//! ```text
//! header | binary ids | data records | pad | counters | pad | bitmap | pad | uniform counters | pad
//!        | names | pad8 | vtable records | pad8 | vtable names | pad8 | value data
//! ```
//!
//! Each function has a data record, which states where the function's counters, bitmap and name are. A file may have
//! several profiles, one after the other, with zero bytes between them. In the list above, `pad8` is padding to a
//! multiple of 8 bytes; the header states the length of each `pad`.
//!
//! | version | LLVM | what changed |
//! |---|---|---|
//! | 1 | 3.5 to 3.7 | the first version |
//! | 2 | 3.8 | value data; each data record has a pointer to its function |
//! | 3 | 3.9 development | names are compressed; each data record has the hash of the name in place of a pointer to it |
//! | 4 | 3.9 to 8 | the header no longer has the size and the address of the value data |
//! | 5 | 9 to 12 | bit 60 of FuncHash marks context-sensitive records; since LLVM 10 the header has two more words for the padding around the counters, without a new version number |
//! | 6 | 13 development | binary ids |
//! | 7 | 13 | BinaryIdsSize moves to the front of the header |
//! | 8 | 14 to 17 | counter pointers are relative to the data record |
//! | 9 | 18 | MC/DC bitmaps |
//! | 10 | 19 to 22 | vtables |
//! | 11 | 23 | uniform counters of GPU code |
//!
//! [docs/formats/raw.md]: https://github.com/profkit/profkit/blob/main/docs/formats/raw.md
mod addresses;
mod header;
mod image;
mod layout;
mod metadata;
mod profile;
mod reader;
mod record;
mod sections;
mod writer;

#[cfg(test)]
mod tests;

pub use addresses::AddressMap;
pub use header::{PointerWidth, RawDialect, RawHeader, version_mismatch};
pub use image::{RawForm, RawImage, RawImageRecord, RawImageVTable};
pub use layout::{MAX_VALUE_KINDS, RecordLayout, VTableLayout};
pub use metadata::{MetadataRecord, ProgramMetadata, RawMetadata, RawMetadataSource};
pub use profile::RawProfile;
pub use reader::{ImplausibleCount, RawReadOptions, RawReader};
pub use record::{RawName, RawRecord, RawVTable};
pub use sections::{RawSection, RawSections};
pub use writer::write;
