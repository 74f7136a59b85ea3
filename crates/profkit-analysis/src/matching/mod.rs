//! Computes how much of a profile the functions of a binary can use. This shows whether the profile is stale for this
//! build.
mod binary;
mod profile;
mod shares;

pub use binary::{Binary, BinaryFunctions, DebugInfo, Outcome, symbol_of};
pub use profile::{Known, ProfileFunctions, profile_among};
pub use shares::{CountShares, FunctionShares, LostFunction, MatchShares};
