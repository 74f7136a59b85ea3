//! Sample profiles (AutoFDO, CSSPGO): the profile in memory, and one folder for each encoding. [docs/formats/sample.md]
//! has the grammar and the byte tables.
//!
//! Readers add the samples of a file to a [`SampleProfile`]. Reading several files into one profile merges them. The
//! memory depends on the size of the merged profile, not on the number of files. If a file is damaged, a reader adds
//! the intact functions, and the [`ReadReport`] lists the errors.
//!
//! [docs/formats/sample.md]: https://github.com/profkit/profkit/blob/main/docs/formats/sample.md
mod add;
pub mod binary;
mod cold;
mod combine;
mod context;
mod discriminator;
pub mod ext_binary;
mod flat;
mod form;
pub mod gcov;
mod late;
mod layout;
mod limit;
mod losses;
mod model;
mod names;
mod options;
pub mod overlap;
mod read;
mod rename;
mod report;
mod summary;
#[cfg(test)]
mod tests;
pub mod text;
mod variants;

pub use add::{AddOutcome, Adding};
pub use cold::{ColdContexts, trim_cold};
pub use combine::{Extremes, absorb, checksums_differ, context_name, scale};
pub use discriminator::{base_discriminator, duplication_factor};
pub use flat::{Additions, Facts, FlatFunction, Step};
pub use form::{FormLosses, FormOptions, SampleForm};
pub use layout::{
    SampleLayout, call_site_hash, flatten, flatten_as_llvm, head_estimate, nest, nest_keeping_bases,
};
pub use limit::{Limited, add_symbols, encode_within};
pub use losses::Losses;
pub use model::{
    BodyLine, Frame, Function, Inlined, Location, ProfileKind, SampleProfile, Samples, Target,
    compare_contexts,
};
pub use names::{NameId, SampleName, SampleNames};
pub use options::{FsPass, SampleReadOptions};
pub use read::{SampleEncoding, SampleFile, encoding, llvm_encoding, read, read_with};
pub use rename::{remap, rename_all, unify_hashes};
pub use report::ReadReport;
pub use summary::{summarize, summarize_with};
pub use variants::{LeftOut, unite_variants};
