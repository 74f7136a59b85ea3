use super::{InstrKind, Record, TemporalTraces};
use crate::Result;
use crate::ids::BuildId;
use crate::names::SymbolTable;

/// The interface that all readers of instrumentation profiles share.
///
/// Parsing, which each reader has as its own `parse`, checks only the header and the bounds of the sections. Records
/// are decoded one by one.
pub trait InstrSource {
    /// The kind of the profile: what its counters count. It is known as soon as the file is parsed, for text too:
    /// `parse` reads the header lines.
    fn kind(&self) -> InstrKind;

    /// The whole version word of the file, with number and flags. Text has none; for it the result is 0.
    fn version_word(&self) -> u64;

    /// Decodes the next record into `record`, whose buffers are reused. Returns `Ok(false)` at the end.
    ///
    /// # Errors
    /// An error belongs to one record. After it, the next call continues with the next record if the reader can find it
    /// ([`can_resume`](Self::can_resume)); otherwise the reader is at its end.
    fn read_record(&mut self, record: &mut Record) -> Result<bool>;

    /// Whether there may be more records after an error.
    fn can_resume(&self) -> bool;

    /// The names that the file has given in full so far: names of functions and vtables in raw files, names of value
    /// targets in text.
    fn symbols(&self) -> &SymbolTable;

    /// The build ids in file order.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the section contradicts itself.
    fn binary_ids(&self) -> Result<Vec<BuildId>>;

    /// The temporal traces. For raw files, call this after all records were read.
    ///
    /// # Errors
    /// As [`binary_ids`](Self::binary_ids).
    fn temporal_traces(&mut self) -> Result<TemporalTraces>;
}
