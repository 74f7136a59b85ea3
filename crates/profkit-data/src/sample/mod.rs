//! Sample profiles (AutoFDO, CSSPGO): the owned model, and the encodings one folder each. docs/formats/sample.md has the
//! grammar and the byte tables.
//!
//! Readers add a file's samples to a [`SampleProfile`], so reading several files is merging them, and memory is that of
//! the result. What is wrong with a file is in the [`ReadReport`]; what is sound of it is added.
mod add;
pub mod binary;
mod context;
pub mod ext_binary;
mod flat;
pub mod gcov;
mod late;
mod losses;
mod model;
mod names;
mod options;
mod read;
mod report;
mod summary;
#[cfg(test)]
mod tests;
pub mod text;

pub use add::{AddOutcome, Adding};
pub use flat::{Additions, Facts, FlatFunction, Step};
pub use losses::Losses;
pub use model::{
    BodyLine, Frame, Function, Inlined, Location, ProfileKind, SampleProfile, Samples, Target,
    compare_contexts,
};
pub use names::{NameId, SampleName, SampleNames};
pub use options::{FsPass, SampleReadOptions};
pub use read::{SampleEncoding, SampleFile, encoding, read, read_with};
pub use report::ReadReport;
pub use summary::{summarize, summarize_with};
