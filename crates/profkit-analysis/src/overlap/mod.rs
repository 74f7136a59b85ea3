//! Measures how similar two profiles are.
mod samples;

pub use samples::{
    FunctionOverlap, HotOverlap, Incomparable, OverlapSide, SampleOverlap, hot_threshold, share,
};
