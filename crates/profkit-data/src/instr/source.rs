use super::{InstrKind, Record, TemporalTraces};
use crate::Result;
use crate::ids::BuildId;
use crate::names::SymbolTable;

/// What all readers of instrumentation profiles have in common.
///
/// Parsing (each reader's own `parse`) checks headers and section bounds only; records are decoded one by one.
pub trait InstrSource {
    /// What is counted. For text this is known after parsing too: `parse` reads the header lines.
    fn kind(&self) -> InstrKind;

    /// The whole version word of the file (flags and number); for text, which has none, 0.
    fn version_word(&self) -> u64;

    /// Decodes the next record into `record`, whose buffers are reused. `Ok(false)` at the end.
    ///
    /// # Errors
    /// An error concerns one record. After it, calling again goes on with the next record if the reader knows where
    /// that begins ([`can_resume`](Self::can_resume)); otherwise the reader is at its end.
    fn read_record(&mut self, record: &mut Record) -> Result<bool>;

    /// Whether, after an error, there may be more records to read.
    fn can_resume(&self) -> bool;

    /// Names that the file has spelled out so far: raw and vtable names, or names of text values.
    fn symbols(&self) -> &SymbolTable;

    /// Build ids in file order.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a section that contradicts itself.
    fn binary_ids(&self) -> Result<Vec<BuildId>>;

    /// Temporal traces. Raw files yield them only after all records were read.
    ///
    /// # Errors
    /// As [`binary_ids`](Self::binary_ids).
    fn temporal_traces(&mut self) -> Result<TemporalTraces>;
}
