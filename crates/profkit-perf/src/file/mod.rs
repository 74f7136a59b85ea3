//! The parts of a recording other than its records: the header, the events and the features.
mod attr;
mod features;
mod header;

pub use attr::{Attr, sample_type};
pub use features::Features;
pub(crate) use features::{BuildIdEntry, until_zero};
pub(crate) use header::{Head, Section, section};

/// The form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A file with tables of events and features (written by `perf record`).
    File,
    /// The stream that perf writes to a pipe (`perf record -o -`). Its events and features are records.
    Pipe,
    /// A folder with one file of records per thread of perf (`perf record --threads`).
    Folder,
}

impl Form {
    /// Returns the name that messages use for this form.
    pub fn name(self) -> &'static str {
        match self {
            Form::File => "file",
            Form::Pipe => "pipe",
            Form::Folder => "folder",
        }
    }
}
