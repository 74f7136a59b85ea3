//! Computes how much of a profile the functions of a binary can use. This shows whether the profile is stale for this
//! build.
mod compare;
mod shares;

pub use compare::{Binary, BinaryFunctions, Known, Outcome, ProfileFunctions, symbol_of};
pub use shares::{CountShares, FunctionShares, LostFunction, MatchShares};
