//! Reads all profiles of a raw file.
use super::addresses::AddressMap;
use super::metadata::RawMetadataSource;
use super::profile::RawProfile;
use super::record::{RawName, RawRecord};
use crate::bytes::{Bytes, Cursor, Endian};
use crate::ids::{BuildId, NameRef};
use crate::instr::{InstrKind, InstrSource, Record, TemporalTrace, TemporalTraces, value_data};
use crate::names::SymbolTable;
use crate::{Error, ErrorKind, Result, Structure, limits};
use profkit_abi::{raw, variant};
use std::collections::VecDeque;

/// Options for reading a raw file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawReadOptions {
    /// Whether to decode value data. Without this option, the records have no value sites, but the file is still read
    /// and checked to its end.
    pub values: bool,
    /// Whether to read the intact parts of a damaged file. [`read_record`](InstrSource::read_record) then reports the
    /// damage as errors, and reading continues after each error. Each incomplete section, damaged name, damaged build
    /// id and loss of value data is reported once. A function whose name the file lacks has the text of its hash as its
    /// name ([`NameRef::from_stand_in`]); without this option it has an empty name, as in LLVM.
    pub salvage: bool,
    /// Whether value data whose TotalSize is 0 are read as empty, as LLVM's reader does. Without this option they are
    /// an error.
    pub llvm_checks: bool,
}

impl Default for RawReadOptions {
    fn default() -> Self {
        RawReadOptions {
            values: true,
            salvage: false,
            llvm_checks: false,
        }
    }
}

setters!(RawReadOptions {
    values: bool,
    salvage: bool,
    llvm_checks: bool
});

/// A count above 2^56, which no program can reach. Such a count suggests that the file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImplausibleCount {
    /// The count, which is the largest in its function record.
    pub count: u64,
    /// The index of the counter in its function record.
    pub index: usize,
    /// The offset of the counter in the file.
    pub offset: u64,
}

/// Reads all function records of a raw file, one profile after the other.
///
/// A profile that has counters but no data records gives one error of kind [`ErrorKind::MissingCorrelation`] instead of
/// records. (LLVM 14 rejects such a file; LLVM 22 reads it as empty.)
#[derive(Debug)]
pub struct RawReader<'data> {
    file: &'data [u8],
    options: RawReadOptions,
    source: Option<&'data dyn RawMetadataSource>,
    version_word: u64,
    /// Errors that do not concern a single record and were not reported yet. They are reported before the next record.
    pending: VecDeque<Error>,
    current: Option<Current<'data>>,
    profiles_seen: usize,
    symbols: SymbolTable,
    binary_ids: Vec<BuildId>,
    time_stamps: Vec<(u64, NameRef)>,
    /// For each profile that was opened: the number of time stamps that were read from the profiles before it.
    stamps_before: Vec<usize>,
    implausible: Option<ImplausibleCount>,
    records_without_values: usize,
    /// The number of times that the reader has searched for the next profile by its magic number.
    searches: usize,
}

#[derive(Debug)]
struct Current<'data> {
    profile: RawProfile<'data>,
    next_record: usize,
    /// A cursor at the value data of the next record; `None` if their position is unknown because of damage.
    values: Option<Cursor<'data>>,
    /// The index of the record whose damaged value data were already reported; `None` if no such damage was reported.
    damaged_values_of: Option<usize>,
    addresses: Option<AddressMap>,
}

impl<'data> RawReader<'data> {
    /// Opens a raw file. Any damage is an error, as in LLVM.
    ///
    /// # Errors
    /// [`ErrorKind::Empty`] for an empty file, the errors of [`RawProfile::parse_at`], and the errors of reading the
    /// names of the first profile.
    pub fn parse(file: &'data [u8]) -> Result<Self> {
        Self::parse_with(file, &RawReadOptions::default())
    }

    /// Opens a raw file with the given options.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse). With the option to salvage, damage is an error only in the header.
    pub fn parse_with(file: &'data [u8], options: &RawReadOptions) -> Result<Self> {
        Self::open(file, *options, None)
    }

    /// Opens a raw file. `source` supplies the function records and names of profiles that contain only counters.
    ///
    /// # Errors
    /// The errors of [`parse_with`](Self::parse_with). An error that `source` returns is handled like damage of the
    /// profile.
    pub fn parse_correlated(
        file: &'data [u8],
        options: &RawReadOptions,
        source: &'data dyn RawMetadataSource,
    ) -> Result<Self> {
        Self::open(file, *options, Some(source))
    }

    fn open(
        file: &'data [u8],
        options: RawReadOptions,
        source: Option<&'data dyn RawMetadataSource>,
    ) -> Result<Self> {
        if file.is_empty() {
            return Err(ErrorKind::Empty.error("the file is empty").with_hint(
                "the program ended before it wrote its profile, or has not written it yet; if a merge made the file, merge its inputs again",
            ));
        }
        let mut reader = RawReader {
            file,
            options,
            source,
            version_word: 0,
            pending: VecDeque::new(),
            current: None,
            profiles_seen: 0,
            symbols: SymbolTable::new(),
            binary_ids: Vec::new(),
            time_stamps: Vec::new(),
            stamps_before: Vec::new(),
            implausible: None,
            records_without_values: 0,
            searches: 0,
        };
        reader.enter(0)?;
        if let Some(current) = &reader.current {
            reader.version_word = current.profile.dialect().version_word();
        }
        Ok(reader)
    }

    /// The profile that is being read; `None` after the last profile of the file.
    pub fn profile(&self) -> Option<&RawProfile<'data>> {
        self.current.as_ref().map(|current| &current.profile)
    }

    /// The number of the file's profiles that were opened so far.
    pub fn profiles_seen(&self) -> usize {
        self.profiles_seen
    }

    /// The largest count of the last record if it is implausible (above 2^56), otherwise `None`. LLVM warns about such
    /// a count and still merges it.
    pub fn implausible_count(&self) -> Option<ImplausibleCount> {
        self.implausible
    }

    /// The number of records whose value sites were returned empty because their value data are damaged
    /// ([`RawReadOptions::salvage`]).
    pub fn records_without_values(&self) -> usize {
        self.records_without_values
    }

    /// Returns a separate temporal trace for each profile that was opened so far. In contrast,
    /// [`temporal_traces`](InstrSource::temporal_traces) returns one trace for the whole file, as LLVM does.
    pub fn traces_of_profiles(&self) -> Vec<TemporalTraces> {
        let ends = self.stamps_before.iter().skip(1).copied();
        let ends = ends.chain([self.time_stamps.len()]);
        let ranges = self.stamps_before.iter().zip(ends);
        ranges
            .map(|(&start, end)| {
                let stamps = self.time_stamps.get(start..end).unwrap_or_default();
                trace(&mut stamps.to_vec())
            })
            .collect()
    }

    /// Opens the profile at an offset of the file.
    fn enter(&mut self, offset: usize) -> Result<()> {
        let mut profile = if self.options.salvage {
            let (profile, fault) = RawProfile::parse_salvage_at(self.file, offset)?;
            self.pending.extend(fault);
            profile
        } else {
            RawProfile::parse_at(self.file, offset)?
        };
        self.profiles_seen += 1;
        self.stamps_before.push(self.time_stamps.len());
        match profile.binary_ids() {
            Ok(ids) => self.binary_ids.extend(ids),
            Err(error) => self.tolerate(error)?,
        }
        let mut reported = false;
        if let Some(source) = self.source {
            let metadata = source.metadata(&profile);
            let joined = metadata.and_then(|metadata| match metadata {
                Some(metadata) => profile.clone().with_metadata(metadata),
                None => Ok(profile.clone()),
            });
            match joined {
                Ok(joined) => profile = joined,
                Err(error) => {
                    self.tolerate(error)?;
                    reported = true;
                }
            }
        }
        self.read_names(&profile)?;
        if profile.needs_correlation() && !reported {
            self.pending.push_back(missing_correlation(&profile));
        }
        let sections = profile.sections();
        let values = &sections.value_data;
        let cursor = Cursor::new(values.bytes, values.offset, profile.dialect().endian);
        let reached = values.offset <= self.file.len() as u64;
        self.current = Some(Current {
            next_record: 0,
            values: reached.then_some(cursor),
            damaged_values_of: None,
            addresses: None,
            profile,
        });
        Ok(())
    }

    /// Handles an error after which reading can continue. With the option to salvage, the error is stored, and the next
    /// call of [`read_record`](InstrSource::read_record) reports it. Otherwise the error is returned, and the profile
    /// is not read further.
    fn tolerate(&mut self, error: Error) -> Result<()> {
        if !self.options.salvage {
            return Err(error);
        }
        self.pending.push_back(error);
        Ok(())
    }

    fn read_names(&mut self, profile: &RawProfile<'data>) -> Result<()> {
        let sections = profile.sections();
        if profile.dialect().version <= 2 {
            for record in profile.records() {
                // A name outside its section is an error of its record. Reading the record will report it.
                if let Ok(name) = profile.pointed_name(&record) {
                    self.symbols.insert(name);
                }
            }
            return Ok(());
        }
        for blob in [&sections.names, &sections.vtable_names] {
            // Read the names that an incomplete section still has. The missing part was already reported.
            let whole = blob.is_whole();
            if let Err(error) = self.symbols.read_blob(blob.bytes, blob.offset)
                && whole
            {
                self.tolerate(error)?;
            }
        }
        Ok(())
    }

    /// Moves to the next profile of the file, if there is one.
    fn advance(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let profile = &current.profile;
        let next = match current.values {
            Some(values) => next_profile(self.file, values, profile)?,
            None if self.options.salvage && self.searches < limits::RAW_PROFILE_SEARCHES => {
                self.searches += 1;
                find_magic(self.file, profile)
            }
            None => None,
        };
        next.map_or(Ok(()), |offset| self.enter(offset))
    }

    fn decode(&mut self, raw: &RawRecord, record: &mut Record) -> Result<()> {
        let fields = self.decode_fields(raw, record);
        let values = self.decode_values(raw, record, fields.is_ok());
        let Some(current) = &mut self.current else {
            return fields;
        };
        if let (Ok(()), Err(_), true) = (&fields, &values, self.options.salvage) {
            // The value data are damaged but the counters are intact. Report the error first; the next call returns the
            // record with empty value sites.
            current.damaged_values_of = Some(raw.index);
            current.next_record = raw.index;
        }
        fields.and(values)
    }

    fn decode_fields(&mut self, raw: &RawRecord, record: &mut Record) -> Result<()> {
        let Some(Current { profile, .. }) = &self.current else {
            return Ok(());
        };
        record.func_hash = raw.func_hash;
        match raw.name {
            RawName::Ref(name_ref) => {
                record.name_ref = name_ref;
                match self.symbols.get(name_ref) {
                    Some(name) => record.name.extend_from_slice(name),
                    None if self.options.salvage => {
                        record
                            .name
                            .extend_from_slice(name_ref.to_string().as_bytes());
                    }
                    None => {}
                }
            }
            RawName::Pointer { .. } => {
                let name = profile.pointed_name(raw)?;
                record.name_ref = NameRef::of(name);
                record.name.extend_from_slice(name);
            }
        }
        let bytes = profile.counter_bytes(raw)?;
        let dialect = profile.dialect();
        let at = profile
            .sections()
            .counters
            .offset
            .saturating_add_signed(profile.counter_offset(raw));
        let temporal = dialect.has(variant::TEMPORAL);
        if temporal {
            // LLVM reads a time stamp of 8 bytes even if the function has fewer than 8 bytes of counters.
            let stamp = usize::try_from(at)
                .ok()
                .and_then(|at| self.file.get(at..)?.first_chunk());
            let stamp = stamp.map_or(0, |&bytes| dialect.endian.u64(bytes));
            if stamp != 0 && stamp != u64::MAX {
                self.time_stamps.push((stamp, record.name_ref));
            }
        }
        let skipped = if temporal {
            bytes.len().min(TIME_STAMP_LEN)
        } else {
            0
        };
        let counters = bytes.get(skipped..).unwrap_or_default();
        if dialect.has(variant::BYTE_COVERAGE) {
            record
                .counts
                .extend(counters.iter().map(|&byte| u64::from(byte == 0)));
        } else {
            decode_counters(counters, dialect.endian, &mut record.counts);
            self.implausible = implausible(&record.counts, at.saturating_add(skipped as u64));
        }
        record.bitmap.extend_from_slice(profile.bitmap_bytes(raw)?);
        let uniform = profile.uniform_counter_bytes(raw)?;
        if !dialect.has(variant::BYTE_COVERAGE) {
            let (uniform, _) = uniform.get(skipped..).unwrap_or_default().as_chunks::<8>();
            let uniform = uniform.iter().map(|&bytes| dialect.endian.u64(bytes));
            collect_uniformity(&record.counts, uniform, &mut record.uniformity);
        }
        Ok(())
    }

    /// Moves past the value data of a record. Decodes them only if `wanted` is true and the options request value data.
    fn decode_values(&mut self, raw: &RawRecord, record: &mut Record, wanted: bool) -> Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        if !raw.has_value_data() {
            return Ok(());
        }
        if current.damaged_values_of == Some(raw.index) || current.values.is_none() {
            if self.options.values && wanted {
                for (kind, &sites) in (0..).zip(&raw.num_value_sites) {
                    if let Some(kind) = record.values.kind_mut(kind) {
                        (0..sites).for_each(|_| kind.end_site());
                    }
                }
                self.records_without_values += 1;
            }
            return Ok(());
        }
        let Some(cursor) = &mut current.values else {
            return Ok(());
        };
        if self.options.llvm_checks && value_data::is_empty_for_llvm(cursor) {
            return Ok(());
        }
        let start = cursor.offset();
        let result = if self.options.values && wanted {
            value_data::decode(cursor, &mut record.values)
        } else {
            value_data::skip(cursor)
        };
        if result.is_err() && cursor.offset() == start {
            current.values = None;
        }
        if let Err(error) = result {
            let error = error.within(Structure::Function(record.name_ref.to_string()));
            let section = &current.profile.sections().value_data;
            let none = section.offset == start && section.bytes.is_empty();
            return Err(if none {
                error.with_hint(
                    "programs in continuous mode (%c) write no value data: the counters are correct",
                )
            } else {
                error
            });
        }
        let has_addresses = record.values.kinds().any(|(kind, sites)| {
            kind != profkit_abi::value_kind::MEM_OP_SIZE && !sites.entries().is_empty()
        });
        if has_addresses {
            current
                .addresses
                .get_or_insert_with(|| AddressMap::of(&current.profile))
                .resolve(&mut record.values);
        }
        Ok(())
    }
}

impl InstrSource for RawReader<'_> {
    fn kind(&self) -> InstrKind {
        InstrKind::from_version_word(self.version_word)
    }

    fn version_word(&self) -> u64 {
        self.version_word
    }

    fn read_record(&mut self, record: &mut Record) -> Result<bool> {
        loop {
            record.clear();
            self.implausible = None;
            if let Some(error) = self.pending.pop_front() {
                return Err(error);
            }
            let Some(current) = &mut self.current else {
                return Ok(false);
            };
            if let Some(raw) = current.profile.record(current.next_record) {
                current.next_record += 1;
                return self.decode(&raw, record).map(|()| true);
            }
            self.advance()?;
        }
    }

    fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The build ids of the profiles that were opened so far. They are complete only after all records were read,
    /// because a file may have several profiles.
    fn binary_ids(&self) -> Result<Vec<BuildId>> {
        Ok(self.binary_ids.clone())
    }

    /// Returns one trace with all functions that were read so far, in the order of their time stamps. If no function
    /// has a time stamp, there is no trace.
    fn temporal_traces(&mut self) -> Result<TemporalTraces> {
        Ok(trace(&mut self.time_stamps))
    }
}

/// Makes one trace of functions in the order of their time stamps. If no function has a time stamp, there is no trace.
fn trace(time_stamps: &mut [(u64, NameRef)]) -> TemporalTraces {
    if time_stamps.is_empty() {
        return TemporalTraces::default();
    }
    time_stamps.sort_unstable();
    let functions = time_stamps.iter().map(|&(_, name_ref)| name_ref).collect();
    TemporalTraces {
        traces: vec![TemporalTrace {
            weight: 1,
            functions,
        }],
        stream_size: 1,
    }
}

/// The length in bytes of the time stamp before a function's counters in a temporal profile.
const TIME_STAMP_LEN: usize = 8;

fn decode_counters(bytes: &[u8], endian: Endian, counts: &mut Vec<u64>) {
    let (counters, _) = bytes.as_chunks::<8>();
    // Each byte order has its own loop. The compiler can then turn the loop for the machine's own byte order into a
    // plain copy, and the other loop into a vectorised byte swap.
    match endian {
        Endian::Little => counts.extend(counters.iter().map(|&bytes| u64::from_le_bytes(bytes))),
        Endian::Big => counts.extend(counters.iter().map(|&bytes| u64::from_be_bytes(bytes))),
    }
}

/// Appends one bit for each uniform counter: whether the block of the counter is uniform. A counter of GPU code counts
/// the threads that entered the block; the uniform counter beside it counts only the threads that entered the block
/// together with all other threads of their wave. LLVM 23 treats a block as uniform if the uniform counter is at least
/// 90 % of the counter (LLVM's pull request 206547). A block that never ran is uniform, so that merging a run without
/// the block does not change the result. The bits of the last byte after the last counter are 1, as llvm-profdata 23
/// writes them.
fn collect_uniformity(counts: &[u64], uniform: impl Iterator<Item = u64>, bits: &mut Vec<u8>) {
    for (index, (&count, uniform)) in counts.iter().zip(uniform).enumerate() {
        if index % 8 == 0 {
            bits.push(u8::MAX);
        }
        let is_uniform = u128::from(uniform) * 100 >= u128::from(count) * UNIFORM_PERCENT;
        if let Some(last) = bits.last_mut() {
            *last &= !(u8::from(!is_uniform) << (index % 8));
        }
    }
}

/// The percentage of threads that must enter a block as whole waves for the block to count as uniform.
const UNIFORM_PERCENT: u128 = 90;

/// Returns the largest count if it is implausible (above 2^56), otherwise `None`. `offset` is the offset of the first
/// counter in the file.
fn implausible(counts: &[u64], offset: u64) -> Option<ImplausibleCount> {
    // A fast test first: in an intact record, the bitwise OR of all counts is below the limit.
    if counts.iter().fold(0, |bits, &count| bits | count) < raw::MAX_PLAUSIBLE_COUNT {
        return None;
    }
    let (index, &count) = counts.iter().enumerate().max_by_key(|&(_, &count)| count)?;
    (count > raw::MAX_PLAUSIBLE_COUNT).then_some(ImplausibleCount {
        count,
        index,
        offset: offset.saturating_add(8 * index as u64),
    })
}

#[cold]
fn missing_correlation(profile: &RawProfile<'_>) -> Error {
    ErrorKind::MissingCorrelation.error("the profile has counters but no function records")
        .at(profile.offset() as u64)
        .within(Structure::RawProfile)
        .found(format_args!("{} counters, 0 data records", profile.header().num_counters))
        .with_hint("the program was built with -profile-correlate: the function records are in the program's binary or its debug info")
}

/// Returns the offset of the profile after `profile` in the file; `None` if there is none. `values` is a cursor after
/// the value data of `profile`.
fn next_profile(
    file: &[u8],
    mut values: Cursor<'_>,
    profile: &RawProfile<'_>,
) -> Result<Option<usize>> {
    values.skip_zeros();
    if values.is_empty() {
        return Ok(None);
    }
    let offset = values.offset();
    let fault = |message: &'static str| {
        ErrorKind::Malformed
            .error(message)
            .at(offset)
            .within(Structure::AfterProfile)
    };
    let header_len = profile.header().len;
    if values.remaining() < header_len {
        return Err(fault("there are too few bytes for another header")
            .found(format_args!("{} left", Bytes(values.remaining())))
            .expected(format_args!("nothing or at least {header_len} bytes"))
            .llvm_detail("not enough space for another header"));
    }
    // The alignment of the next profile is not checked in versions 6 and 7, because build ids have no padding there and
    // may shift the next profile. (LLVM 13 checks the alignment, and so rejects some files that it wrote itself.)
    if profile.header().pads_binary_ids() && !offset.is_multiple_of(8) {
        return Err(fault("the next profile does not begin at a multiple of 8")
            .llvm_detail("insufficient padding"));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let magic = |at: usize| file.get(at..).and_then(|rest| rest.first_chunk::<8>());
    if magic(start) != magic(profile.offset()) {
        return Err(ErrorKind::BadMagic
            .error("the bytes after a profile are not another profile")
            .at(offset)
            .within(Structure::AfterProfile)
            .found(format_args!(
                "bytes {:02x?}",
                magic(start).unwrap_or(&[0; 8])
            ))
            .expected(format_args!(
                "bytes {:02x?}",
                magic(profile.offset()).unwrap_or(&[0; 8])
            )));
    }
    Ok(Some(start))
}

/// Searches for the magic number of the next profile after a damaged profile. Returns the offset of the magic number;
/// `None` if there is none.
fn find_magic(file: &[u8], profile: &RawProfile<'_>) -> Option<usize> {
    let magic = file.get(profile.offset()..)?.first_chunk::<8>()?;
    let from = profile.offset() + profile.header().len;
    let found = memchr::memmem::find(file.get(from..)?, magic)?;
    Some(from + found)
}
