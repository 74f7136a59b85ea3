use super::{InstrKind, Record, TemporalTraces};
use crate::Result;
use crate::ids::BuildId;
use crate::names::SymbolTable;

/// The interface that all readers of instrumentation profiles share.
///
/// A reader is made by its own `parse` function, which checks only the header and the bounds of the sections. The
/// reader then decodes one function record at a time.
pub trait InstrSource {
    /// Returns the kind of the profile: whether the front end or an IR pass placed the counters, what they count, and
    /// which optional data the file has. The kind is known as soon as the file is opened, also for a text file, because
    /// opening reads the header lines.
    fn kind(&self) -> InstrKind;

    /// Returns the version word of the file: the version number and the variant flags. Text profiles have no version
    /// word; for them the result is 0.
    fn version_word(&self) -> u64;

    /// Decodes the next function record into `record` and reuses its buffers. Returns `Ok(false)` at the end of the
    /// file.
    ///
    /// # Errors
    /// An error concerns one record only. If the reader can find the next record ([`can_resume`](Self::can_resume)),
    /// the next call continues with that record. Otherwise the next call returns `Ok(false)`.
    fn read_record(&mut self, record: &mut Record) -> Result<bool>;

    /// Whether, after an error, the next call of [`read_record`](Self::read_record) continues with a further record.
    fn can_resume(&self) -> bool;

    /// Returns the names that the reader has found as text so far. In raw files these are the names of functions and
    /// vtables; in text profiles they are the names of value targets.
    fn symbols(&self) -> &SymbolTable;

    /// Returns the build ids in the order of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the section of build ids is damaged.
    fn binary_ids(&self) -> Result<Vec<BuildId>>;

    /// Returns the temporal traces. For raw files, call this after all function records were read.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated) if an indexed file ends inside the traces.
    fn temporal_traces(&mut self) -> Result<TemporalTraces>;
}
