//! What compilers and linkers need, made of counts of ranges and branches ([`profkit_perf::collect`]): sample profiles, and
//! the layout of code ([`layout`]).
//!
//! [`Program::open`] opens a binary with its debug info. [`make_profile`] turns the counts of that binary into a
//! [`SampleProfile`](profkit_data::sample::SampleProfile), with the numbers that say what was left out. The counting is that
//! of `llvm-profgen` 22, which tests compare with.
//!
//! Instructions are decoded only where samples are: x86 by the crate `iced-x86`, AArch64 by bit masks.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod autofdo;
mod checked;
mod code;
pub mod contexts;
mod encoding;
mod finish;
pub mod layout;
mod lines;
pub mod probes;
mod program;
mod ranges;
mod sampling;

pub use autofdo::autofdo_profile;
pub use checked::{CheckedCounts, Figures, RangeFault};
pub use code::{Code, Flow, Instruction, Machine};
pub use encoding::Encoding;
pub use finish::{Density, density, drop_ambiguous, mark_preinlined};
pub use lines::{LineOptions, Made, make_profile, profile_of};
pub use program::{Facts, Places, Program, ProgramOptions};
pub use sampling::{
    BinaryOutcome, Found, FoundBy, Like, MakeOptions, Outcome, Problem, Seen, find, seen,
};
