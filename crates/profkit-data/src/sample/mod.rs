//! Sample profiles (AutoFDO, CSSPGO): the owned model, and one folder for each encoding. docs/formats/sample.md has the
//! grammar and the byte tables.
//!
//! Readers add a file's samples to a [`SampleProfile`], so reading several files into one profile merges them. Memory
//! grows with the merged profile, not with the number of files. A reader adds the sound parts of a damaged file and
//! lists the faults in the [`ReadReport`].
mod add;
pub mod binary;
mod cold;
mod combine;
mod context;
pub mod ext_binary;
mod flat;
pub mod gcov;
mod late;
mod layout;
mod limit;
mod losses;
mod model;
mod names;
mod options;
mod read;
mod rename;
mod report;
mod summary;
#[cfg(test)]
mod tests;
pub mod text;

pub use add::{AddOutcome, Adding};
pub use cold::{COLD_CUTOFF, ColdContexts, trim_cold};
pub use combine::{Extremes, absorb, checksums_differ, context_name, scale};
pub use flat::{Additions, Facts, FlatFunction, Step};
pub use layout::{SampleLayout, flatten, head_estimate, nest};
pub use limit::{Limited, add_symbols, encode_within};
pub use losses::Losses;
pub use model::{
    BodyLine, Frame, Function, Inlined, Location, ProfileKind, SampleProfile, Samples, Target,
    compare_contexts,
};
pub use names::{NameId, SampleName, SampleNames};
pub use options::{FsPass, SampleReadOptions};
pub use read::{SampleEncoding, SampleFile, encoding, read, read_with};
pub use rename::{remap, unify_hashes};
pub use report::ReadReport;
pub use summary::{summarize, summarize_with};
