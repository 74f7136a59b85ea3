//! How alike two profiles are.
//!
//! | profiles | module |
//! |---|---|
//! | instrumentation profiles | [`InstrOverlap`], by LLVM's rules |
//! | sample profiles | [`SampleOverlap`], by LLVM's rules |
//! | any two of one family, heap and MIP profiles too | [`PairOverlap`] |
mod compare;
mod instr;
mod side;

pub(crate) use compare::Content;
pub use compare::{CannotCompare, ComparedProfile, FunctionDifference, PairOverlap, ProfileSize};
pub use profkit_data::instr::overlap::{
    CountSums, InstrIndex, InstrOverlap, Shares, Stage, TestRecord, Verdict,
};
pub use profkit_data::sample::overlap::{
    FunctionOverlap, HotOverlap, Incomparable, OverlapSide, SampleOverlap, hot_threshold,
};
pub(crate) use side::{Finder, Function, Side};
