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
    /// An error concerns one record only. If the reader can find the next record, the next call continues with that
    /// record. Otherwise the next call returns `Ok(false)`.
    fn read_record(&mut self, record: &mut Record) -> Result<bool>;

    /// The next function record or the next damage, in the form that a loop over the sound records of a damaged file
    /// needs. `record` is reused, so reading allocates no memory per function. Returns `None` after the last record, and
    /// where damage hides all further records.
    ///
    /// ```
    /// use profkit_data::instr::{InstrReader, InstrSource, Record};
    ///
    /// let mut reader = InstrReader::open(b"main\n1\n1\n7\n\nbad\n1\nx\n\nlast\n1\n1\n2\n")?;
    /// let (mut record, mut sum, mut faults) = (Record::default(), 0, 0);
    /// while let Some(read) = reader.next_record(&mut record) {
    ///     match read {
    ///         Ok(()) => sum += record.counts[0],
    ///         Err(_) => faults += 1,
    ///     }
    /// }
    /// assert_eq!((sum, faults), (9, 1));
    /// # Ok::<(), profkit_data::Error>(())
    /// ```
    #[inline]
    fn next_record(&mut self, record: &mut Record) -> Option<Result<()>> {
        let read = self.read_record(record);
        read.map(|more| more.then_some(())).transpose()
    }

    /// The records and the damage of the file, each record with its own memory.
    fn records(&mut self) -> impl Iterator<Item = Result<Record>>
    where
        Self: Sized,
    {
        std::iter::from_fn(|| {
            let mut record = Record::default();
            Some(self.next_record(&mut record)?.map(|()| record))
        })
    }

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
