//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Makes inputs of compilers and linkers from counts of ranges and branches ([`profkit_perf::collect`]): sample
//! profiles, and the layout of code ([`layout`]).
//!
//! [`Program::open`] opens a binary with its debug info. [`make_profile`] turns the counts of this binary into a
//! [`SampleProfile`](profkit_data::sample::SampleProfile), and returns numbers of what was left out. The counting is
//! that of `llvm-profgen` 22; tests compare the results.
//!
//! Instructions are decoded only where samples are. The crate `iced-x86` decodes x86; bit masks decode AArch64.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod autofdo;
mod bolt;
mod branches;
mod checked;
mod code;
pub mod contexts;
mod discriminators;
mod finish;
pub mod layout;
mod lines;
mod places;
pub mod probes;
mod profiles;
mod program;
mod programs;
mod ranges;
mod sampling;
pub mod stacks;

pub use autofdo::autofdo_profile;
pub use bolt::{BoltForm, BoltProfile};
pub use branches::{BranchFault, KnownTargets};
pub use checked::{CheckedCounts, Figures, RangeFault};
pub use code::{Code, Flow, Instruction, Machine};
pub use discriminators::Discriminators;
pub use finish::{Density, density, drop_ambiguous, mark_preinlined};
pub use lines::{FinishedProfile, LineOptions, make_profile, profile_of};
pub use places::Places;
pub use profiles::NamedProfile;
pub use program::{Facts, Program, ProgramOptions};
pub use programs::{Programs, UnusableBinary};
pub use sampling::{
    BinaryMatch, BinaryOutcome, CountingTool, Encoded, FoundBy, MakeOptions, Outcome, Problem,
    RecordedBinary, Sampling, find, recorded_binaries,
};
