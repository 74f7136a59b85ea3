//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Inputs and outputs of tools that work on many profiles.
//!
//! The trait [`Inputs`] gives access to the bytes of several inputs. Slices in memory implement the trait. An
//! [`InputList`] also implements it, for the files that a user named on a command line, in list files, in folders and
//! in archives. An [`Output`] is a file that is written completely or not at all, [`Outputs`] one file or a folder of them;
//! [`check_outputs`] finds outputs that would destroy each other, or an input. [`FolderLocks`] keep processes apart that
//! change the same file. A [`Store`] is a folder, or one in an object store, whose objects several processes change.
//!
//! The path `-` always means standard input or output. Errors are values whose `Display` is plain English; the front
//! end chooses the exit code.

mod archive;
mod candidate;
mod clash;
mod identity;
mod input;
mod inputs;
mod list;
mod lock;
mod note;
mod output;
mod outputs;
mod remote;
#[cfg(unix)]
pub mod response;
mod store;
mod temporary;
mod walk;

pub use candidate::is_named_as_profile;
pub use clash::{check_outputs, may_become_report, path_without_links, same_file};
pub use identity::portable_name;
pub use input::{
    Input, MappedFile, ReadError, STDIN_NAME, SingleInput, hold_file, hold_stored, is_stdio,
    open_file, open_stored, read_into, read_stored,
};
pub use inputs::{InputData, Inputs, Shard};
pub use list::{GivenInput, InputFile, InputList, InputSource, ListError, MissingInput, Subset};
pub use lock::{FolderLocks, LockFailure};
pub use note::InputNote;
pub use output::{Content, Output, OutputError, OutputProblem, Staged, write_to};
pub use outputs::Outputs;
pub use profkit_data::{Screen, Weight, system_text};
pub use remote::is_remote;
pub use store::{ObjectVersion, Store, StoredObject, open_store};
pub use temporary::abandon_outputs;
