//! Computes how much of a profile the functions of a binary, or of a newer profile, can use. This shows whether the
//! profile is stale for this build.
//!
//! A profile is stale as far as functions changed after it was collected: [`CountShares::changed`] and
//! [`CountShares::gone`] are the counts that the build cannot use. The caller decides how large these counts may be.
//!
//! ```
//! use profkit_analysis::matching::{BinaryFunctions, MatchShares, Outcome, ProfileFunctions};
//!
//! // `f` has changed since the old profile: its hash is another one.
//! let old = ProfileFunctions::parse(b":ir\nf\n1\n1\n90\n\ng\n7\n1\n10\n")?;
//! let new = ProfileFunctions::parse(b":ir\nf\n2\n1\n0\n\ng\n7\n1\n0\n")?;
//! // A newer profile takes the place of a binary. `BinaryFunctions::open` reads a program.
//! let mut build = BinaryFunctions::for_profile(&old);
//! build.add_profile("new".to_owned(), new);
//! let shares = MatchShares::new(&old, &build);
//! assert_eq!((shares.counts.changed, shares.counts.gone), (90, 0));
//! assert_eq!(shares.counts.matched_percent(), Some(10.0));
//! assert_eq!(shares.hot_lost[0].outcome, Outcome::Changed);
//! # Ok::<(), profkit_data::Error>(())
//! ```
mod binary;
mod profile;
mod profiles;
mod shares;
mod successors;

pub use binary::{Binary, BinaryFunctions, DebugInfo, NamedFunctions, Outcome};
pub use profile::{FunctionCounts, FunctionOrder, ProfileFunctions, profile_among};
pub use profiles::{Profiles, ProfilesError};
pub use shares::{CountShares, FunctionShares, LostFunction, MatchShares};
pub use successors::{Successor, SuccessorReason};
