//! What a file is, which LLVM releases can use it, what is wrong with it, and what to do next.
//!
//! ```
//! use profkit_analysis::doctor::{Verdict, examine};
//!
//! let diagnosis = examine(b":ir\nmain\n12\n2\n90\n10\n");
//! assert_eq!(diagnosis.verdict, Verdict::Sound);
//! assert_eq!(diagnosis.functions, 1);
//! ```
mod checks;
mod compatibility;
mod examine;
mod groups;
mod heap;
mod mip;
mod remarks;
mod sample;
pub(crate) mod survey;
mod what;

pub(crate) use compatibility::oldest_for_record;
pub use compatibility::{Readers, Support};
pub use examine::{Diagnosis, Verdict, examine, unreadable};
pub use groups::{Counts, Group, Groups, Member};
pub use remarks::Remarks;
pub(crate) use remarks::is_full_site;
pub use survey::{Hint, Survey};
pub use what::{Advice, MipContents, What};
