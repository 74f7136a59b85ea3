//! Encodes the functions of an indexed profile: the data of the items of its function table, and what the summaries say.
use super::header;
use super::record::{self, RecordLayout};
use super::writer::{FIRST_WRITTEN, IndexedWriteOptions};
use crate::ids::FuncHash;
use crate::instr::{FunctionRef, Losses, RecordRef};
use crate::llvm_order;
use crate::summary::{Markers, SummaryBuilder};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::indexed;

/// The summaries of a range of functions. Summaries of several ranges can be [merged](Self::merge) in any order.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    /// The summary of the records that are not context-sensitive.
    pub plain: SummaryBuilder,
    /// The summary of the context-sensitive records. A record is context-sensitive if bit 60 of its function hash is
    /// set; the kind of the profile does not matter.
    pub context_sensitive: SummaryBuilder,
}

impl Summaries {
    /// Adds the summaries of another range of functions.
    pub fn merge(&mut self, other: Summaries) {
        self.plain.merge(other.plain);
        self.context_sensitive.merge(other.context_sensitive);
    }

    /// Adds the counters of a record.
    #[inline]
    pub fn add(&mut self, func_hash: FuncHash, counts: &[u64]) {
        if func_hash.is_context_sensitive() {
            self.context_sensitive.add_counts(counts);
        } else {
            self.plain.add_counts(counts);
        }
    }
}

/// Encodes the functions of an indexed profile, each by itself.
#[derive(Clone, Copy, Debug)]
pub struct FunctionEncoder {
    layout: RecordLayout,
    sparse: bool,
}

/// The first version whose writer (LLVM 16) leaves pseudo-hot and pseudo-warm records out of the summary.
const PSEUDO_RECORDS_SINCE: u32 = 9;

impl FunctionEncoder {
    /// Makes the encoder for a version of the format.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] for a version that cannot be written.
    pub fn new(options: &IndexedWriteOptions) -> Result<Self> {
        let version = options.version;
        if !(FIRST_WRITTEN..=indexed::VERSION_LAST).contains(&version) {
            return Err(ErrorKind::CannotRepresent
                .error("this version of the indexed profile cannot be written")
                .found(version)
                .expected(format_args!("{FIRST_WRITTEN} to {}", indexed::VERSION_LAST)));
        }
        Ok(FunctionEncoder {
            layout: options.layout(),
            sparse: options.sparse,
        })
    }

    /// Makes empty summaries.
    pub fn summaries(&self) -> Summaries {
        let builder = SummaryBuilder::with_markers(match self.layout.version {
            PSEUDO_RECORDS_SINCE.. => Markers::PseudoRecords,
            _ => Markers::InvalidCounts,
        });
        Summaries {
            plain: builder.clone(),
            context_sensitive: builder,
        }
    }

    /// The length in bytes of the data of a function. `None` if the function is not written: it has no records, or did
    /// not run and the profile is sparse. Adds to `losses` what the version cannot hold of a function that is written.
    pub fn data_len(&self, function: &FunctionRef<'_>, losses: &mut Losses) -> Option<u64> {
        let version = self.layout.version;
        let (mut data_len, mut empty) = (0, self.sparse);
        let mut lost = (0, 0, 0);
        for record in function.records() {
            data_len += record::encoded_len(&record, self.layout);
            empty = empty
                && record.counts.iter().all(|&count| count == 0)
                && record.bitmap.iter().all(|&byte| byte == 0);
            let no_bitmaps = version < header::BITMAPS_SINCE;
            lost.0 += u64::from(no_bitmaps && !record.bitmap.is_empty());
            let sites = record.values.is_some_and(record::has_vtable_sites);
            lost.1 += u64::from(!self.layout.vtable_sites && sites);
            let no_uniformity = version < header::UNIFORMITY_SINCE;
            lost.2 += u64::from(no_uniformity && !record.uniformity.is_empty());
        }
        if data_len == 0 || empty {
            return None;
        }
        losses.bitmaps += lost.0;
        losses.vtable_sites += lost.1;
        losses.uniformity += lost.2;
        Some(data_len)
    }

    /// As [`data_len`](Self::data_len), for a function with one record that has nothing but counters.
    #[inline]
    pub fn plain_len(&self, counts: &[u64]) -> Option<u64> {
        if self.sparse && counts.iter().all(|&count| count == 0) {
            return None;
        }
        Some(record::plain_len(counts.len(), self.layout))
    }

    /// Appends the data of a function: its records, in the order in which LLVM's hash table of records lists
    /// them.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] if a value site has more than 255 values.
    pub fn encode_data(&self, function: &FunctionRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.encode_records(function, out)
            .map_err(|error| in_function(error, function))
    }

    fn encode_records(&self, function: &FunctionRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut records = function.records();
        let (Some(first), second) = (records.next(), records.next()) else {
            return Ok(());
        };
        let Some(second) = second else {
            return record::encode_record(&first, self.layout, out);
        };
        let mut records: Vec<RecordRef<'_>> = [first, second].into_iter().chain(records).collect();
        records.sort_by_key(|record| record.order);
        let hashes: Vec<u64> = records.iter().map(|record| record.func_hash.0).collect();
        for position in llvm_order::record_order(&hashes, self.layout.map) {
            if let Some(record) = records.get(position as usize) {
                record::encode_record(record, self.layout, out)?;
            }
        }
        Ok(())
    }

    /// Appends the data of a function with one record that has nothing but counters.
    #[inline]
    pub fn encode_plain(&self, func_hash: FuncHash, counts: &[u64], out: &mut Vec<u8>) {
        record::encode_plain(func_hash, counts, self.layout, out);
    }
}

#[cold]
fn in_function(error: Error, function: &FunctionRef<'_>) -> Error {
    error.within(Structure::Record).within(Structure::Function(
        String::from_utf8_lossy(function.name()).into_owned(),
    ))
}
