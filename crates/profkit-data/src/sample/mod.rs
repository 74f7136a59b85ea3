//! Sample profiles (AutoFDO, CSSPGO): the owned model, and the encodings one folder each.
mod add;
pub mod gcov;
mod model;
mod names;
#[cfg(test)]
mod tests;

pub use add::{AddOutcome, Hints};
pub use model::{
    BodyLine, Frame, Function, Inlined, Location, ProfileKind, SampleProfile, Samples, Target,
    compare_contexts,
};
pub use names::{NameId, SampleName, SampleNames};
