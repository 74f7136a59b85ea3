//! Computes how much of a profile the functions of a binary, or of a newer profile, can use. This shows whether the
//! profile is stale for this build.
mod binary;
mod profile;
mod profiles;
mod shares;
mod successors;

pub use binary::{Binary, BinaryFunctions, DebugInfo, NamedFunctions, Outcome};
pub use profile::{FunctionOrder, Known, ProfileFunctions, profile_among};
pub use profiles::{Profiles, ProfilesError};
pub use shares::{CountShares, FunctionShares, LostFunction, MatchShares};
pub use successors::{Successor, SuccessorReason};
