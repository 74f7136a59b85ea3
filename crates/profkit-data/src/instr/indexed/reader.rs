use super::header::{self, IndexedHeader};
use super::record::NameRecords;
use super::salvage::Damage;
use super::sections;
use crate::bytes::{Cursor, Endian};
use crate::hash_table::{Entries, Entry, FileOrder, HashTable, Lengths, Walk};
use crate::ids::{BuildId, NameRef};
use crate::instr::{
    HeapSection, InstrKind, InstrProfile, InstrSource, MemProfSection, Record, TemporalTraces,
};
use crate::names::SymbolTable;
use crate::summary::Summary;
use crate::{Error, Result, Structure};
use profkit_abi::{indexed, variant};
use std::sync::OnceLock;

/// Options for reading an indexed profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedReadOptions {
    /// Whether to read the intact parts of a damaged file. Only complete sections are used. The function table contains
    /// a table of buckets, which states where the functions are. If the table of buckets is cut off or wrong, the
    /// functions are read one after the other without this table (`HashTable::walk`). After the last record, the
    /// reader reports what is lost.
    ///
    /// With this option, the start of each function is read once more before the first function is returned. For a
    /// malicious file, opening may take up to 16 passes over the function table.
    pub salvage: bool,
    /// The newest version of the indexed format to accept. A tool that imitates an LLVM release sets this option,
    /// because the release rejects files of newer versions.
    pub newest: u32,
    /// Whether functions are read as LLVM 22 reads them. The option has no effect if [`salvage`](Self::salvage) is set.
    /// With the option:
    /// - The functions are read one after the other, without the table of buckets (`HashTable::file_order`).
    ///   Exception: a reader of only a part of the functions ([`IndexedProfile::records_of_share`]) still uses the
    ///   table of buckets.
    /// - If one record of a name is damaged, no record of the name is returned.
    /// - Value data whose TotalSize is 0 are read as empty.
    pub llvm_checks: bool,
    /// Whether the caller checks the function table itself. With the option, [`salvage`](Self::salvage) looks for damage in
    /// all parts of the file but the items of the function table.
    pub table_is_checked: bool,
}

impl Default for IndexedReadOptions {
    fn default() -> Self {
        IndexedReadOptions {
            salvage: false,
            newest: indexed::VERSION_LAST,
            llvm_checks: false,
            table_is_checked: false,
        }
    }
}

setters!(IndexedReadOptions {
    table_is_checked: bool,
    salvage: bool,
    llvm_checks: bool,
    newest: u32
});

/// A view of an indexed profile. The view borrows the bytes of the file.
///
/// Damaged files cannot exhaust memory: parsing reads only the header, the summaries and the bounds of the sections. It
/// allocates memory only for the summaries, and this memory is not larger than the summaries in the file. A number that
/// the file states never decides alone how much memory is allocated. One pass over the function table reads no byte
/// twice.
///
/// ```
/// use profkit_data::instr::indexed::IndexedProfile;
/// use profkit_data::instr::{InstrSource, Record};
///
/// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/indexed/clang-16-ir-plain.profdata"));
/// let profile = IndexedProfile::parse(file)?;
/// assert!(profile.kind().is_ir());
/// let mut record = Record::default();
/// let mut records = profile.records();
/// while records.read_record(&mut record)? {
///     assert!(profile.lookup(&record.name)?.is_some());
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexedProfile<'data> {
    pub(super) data: &'data [u8],
    pub(super) header: IndexedHeader,
    pub(super) summary: Option<Summary>,
    pub(super) cs_summary: Option<Summary>,
    pub(super) table: HashTable<'data>,
    pub(super) binary_ids: Option<Cursor<'data>>,
    pub(super) vtable_names: Option<Cursor<'data>>,
    pub(super) traces: Option<Cursor<'data>>,
    /// The damage that was found when the file was opened. Only the option to salvage makes the reader look for it.
    pub(super) damage: Box<Damage>,
    /// Whether damage in the function table is looked for: with the option to salvage, unless the caller does it.
    pub(super) looks_for_damage: bool,
    /// What [`table_error`](Self::table_error) found.
    pub(super) table_error: OnceLock<Option<Box<Error>>>,
    /// Whether functions are read in the order of the file ([`IndexedReadOptions::llvm_checks`]).
    pub(super) as_llvm: bool,
}

impl<'data> IndexedProfile<'data> {
    /// Opens an indexed profile: reads the header, the summaries and the bounds of all sections.
    ///
    /// # Errors
    /// The errors of [`IndexedHeader::parse`]; [`ErrorKind::Truncated`](crate::ErrorKind::Truncated),
    /// [`ErrorKind::BadHeader`](crate::ErrorKind::BadHeader) or
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a section is outside the file or damaged.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        Self::parse_with(data, &IndexedReadOptions::new())
    }

    /// Opens an indexed profile with the given options.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse), and [`ErrorKind::UnsupportedVersion`](crate::ErrorKind::UnsupportedVersion) for a version above
    /// [`newest`](IndexedReadOptions::newest). With the option to salvage, damage is an error only in the header and the
    /// summaries.
    pub fn parse_with(data: &'data [u8], options: &IndexedReadOptions) -> Result<Self> {
        let version = IndexedHeader::parse(data)?.version();
        if version > options.newest {
            return Err(header::unsupported(version, options.newest)
                .within(Structure::Header)
                .within(Structure::IndexedProfile));
        }
        if options.salvage {
            let profile = super::salvage::salvage(data, options.table_is_checked);
            profile.map_err(|error| Self::parse_strictly(data).err().unwrap_or(error))
        } else {
            Ok(IndexedProfile {
                as_llvm: options.llvm_checks,
                ..Self::parse_strictly(data)?
            })
        }
    }

    fn parse_strictly(data: &'data [u8]) -> Result<Self> {
        let header = IndexedHeader::parse(data)?;
        let version = header.version();
        // Check the sections before the summaries: if a file is cut off, LLVM reports the errors of the sections first.
        let section = |section: &header::Section, offset| section.open(data, version, offset);
        let binary_ids = section(&header::BINARY_IDS, header.binary_ids_offset)
            .map_err(sections::corrupted_binary_ids)?
            .map(|mut cursor| {
                sections::binary_ids_window(&mut cursor).map_err(|error| {
                    error
                        .within(Structure::BuildIds)
                        .within(Structure::IndexedProfile)
                })
            })
            .transpose()?;
        let vtable_names = section(&header::VTABLE_NAMES, header.vtable_names_offset)?;
        if let Some(mut names) = vtable_names {
            // Check only that the file contains the field with the length of the vtable names. The names themselves are
            // checked when they are read.
            names.u64().map_err(|error| {
                error
                    .within(Structure::VTableNames)
                    .within(Structure::IndexedProfile)
            })?;
        }
        let traces = if header.has_flag(variant::TEMPORAL) {
            section(&header::TRACES, header.traces_offset)?
        } else {
            None
        };
        if header.has_flag(variant::MEMPROF) {
            section(&header::MEMPROF, header.memprof_offset)?;
        }
        let (summary, cs_summary, payload) = Self::read_summaries(data, &header)?;
        let table = HashTable::parse(data, payload, header.hash_offset, Lengths::KeyAndData)
            .map_err(|error| {
                error
                    .at(header::HASH_OFFSET_AT)
                    .within(Structure::IndexedProfile)
            })?;
        Ok(IndexedProfile {
            data,
            header,
            summary,
            cs_summary,
            table,
            binary_ids,
            vtable_names,
            traces,
            damage: Box::default(),
            looks_for_damage: false,
            table_error: OnceLock::new(),
            as_llvm: false,
        })
    }

    /// Reads the summary and the context-sensitive summary; each is `None` if the file does not have it. Also returns
    /// the offset of the first byte after the summaries.
    pub(super) fn read_summaries(
        data: &[u8],
        header: &IndexedHeader,
    ) -> Result<(Option<Summary>, Option<Summary>, u64)> {
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        cursor.take_u64(header.encoded_len())?;
        let (mut summary, mut cs_summary) = (None, None);
        if header.version() >= header::SUMMARY_SINCE {
            let read = |cursor: &mut Cursor<'_>, name| {
                sections::read_summary(cursor)
                    .map_err(|error| error.within(name).within(Structure::IndexedProfile))
            };
            summary = Some(read(&mut cursor, Structure::Summary)?);
            if header.has_flag(variant::CSIR) {
                cs_summary = Some(read(&mut cursor, Structure::ContextSensitiveSummary)?);
            }
        }
        Ok((summary, cs_summary, cursor.offset()))
    }

    /// The header of the indexed profile.
    pub fn header(&self) -> &IndexedHeader {
        &self.header
    }

    /// The kind of the profile: whether the front end or an IR pass placed the counters, what they count, and which
    /// optional data the file has.
    pub fn kind(&self) -> InstrKind {
        self.header.kind()
    }

    /// The summary, as stored in the file; `None` before version 4, which is the first version with a summary.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The summary of the context-sensitive records, as stored in the file; `None` if the file has no such summary.
    pub fn cs_summary(&self) -> Option<&Summary> {
        self.cs_summary.as_ref()
    }

    /// The number of functions that the function table states. A damaged file may state any number, so the caller must
    /// not reserve memory for this number of functions.
    pub fn name_count(&self) -> u64 {
        self.table.entry_count()
    }

    /// Returns the function table, which finds function records by name.
    pub fn table(&self) -> &HashTable<'data> {
        &self.table
    }

    /// Returns a reader of all function records. The records come in LLVM's order: one bucket of the function table
    /// after the other, and inside a bucket in the order of the file.
    pub fn records(&self) -> IndexedReader<'data> {
        self.records_of_share(0, 1)
    }

    /// Returns a reader of the function records whose name hash modulo `shares` is `share`. `shares` must be a power of
    /// two.
    ///
    /// The records of a name are in the same share in every file. So several threads can merge files without locks:
    /// each thread merges one share of all files.
    pub fn records_of_share(&self, share: usize, shares: usize) -> IndexedReader<'data> {
        if shares > 1 {
            // Found once, and not again by the reader of each share.
            self.table_error();
        }
        IndexedReader {
            share: (share, shares),
            names: None,
            current: None,
            at_end: false,
            names_read: 0,
            records_read: 0,
            errors: 0,
            at_last: None,
            symbols: OnceLock::new(),
            profile: self.clone(),
        }
    }

    /// Calls `each` with the records of all names, in the order of [`records`](Self::records), as long as it returns
    /// `true` and nothing in the function table is damaged. Returns whether all names were visited and the file has no
    /// damage. If not, [`records`](Self::records) reads what is sound and tells what is not.
    ///
    /// This makes one pass over the file, and nothing is copied.
    pub fn scan(&self, mut each: impl FnMut(NameRecords<'data>) -> bool) -> bool {
        if !self.damage.is_none() || self.table_error.get().is_some_and(Option::is_some) {
            return false;
        }
        let sound = self.table.scan(|entry| each(self.records_of(entry)));
        if sound {
            self.table_error.get_or_init(|| None);
        }
        sound
    }

    fn names(&self, (share, shares): (usize, usize)) -> Names<'data> {
        if self.walks() {
            Names::Walk {
                walk: self.table.walk(),
                share: share as u64,
                share_mask: shares as u64 - 1,
            }
        } else if self.as_llvm && shares == 1 {
            Names::FileOrder(self.table.file_order())
        } else {
            Names::Table(self.table.entries_of_share(share, shares))
        }
    }

    /// Returns the function records of an item of the function table.
    #[inline]
    pub fn records_of(&self, item: &Entry<'data>) -> NameRecords<'data> {
        NameRecords::new(item, self.header.version()).with_llvm_rules(self.as_llvm)
    }

    /// Finds the function records of one name; `None` if the profile does not have the name. Only one bucket of the
    /// function table is read.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the bucket is damaged.
    pub fn lookup(&self, name: &[u8]) -> Result<Option<NameRecords<'data>>> {
        let entry = self
            .table
            .find(NameRef::of(name).0, name)
            .map_err(|error| {
                error
                    .at(header::HASH_OFFSET_AT)
                    .within(Structure::IndexedProfile)
            })?;
        let version = self.header.version();
        Ok(entry.map(|entry| NameRecords::new(&entry, version)))
    }

    /// Finds the name of a function by the hash of the name. Only one bucket of the function table is read. Returns
    /// `None` if the profile does not have the hash or the bucket is damaged.
    pub fn name_of(&self, name_ref: NameRef) -> Option<&'data [u8]> {
        Some(self.table.find_hash(name_ref.0)?.key)
    }

    /// Returns all sections in file order, each with its offset and its length in bytes. A section ends where the next
    /// section begins or the file ends, so its length includes padding.
    pub fn named_sections(&self) -> Vec<(Structure, u64, u64)> {
        let header = &self.header;
        let file_len = self.data.len() as u64;
        let mut starts = vec![
            (Structure::Header, 0),
            (Structure::HashTableItems, self.table.payload_offset()),
            (Structure::HashTableIndex, header.hash_offset),
        ];
        if self.summary.is_some() {
            starts.push((Structure::Summaries, header.encoded_len()));
        }
        let version = header.version();
        if header.has_flag(variant::MEMPROF) && version >= header::MEMPROF.since {
            starts.push((Structure::MemProfSection, header.memprof_offset));
        }
        if version >= header::BINARY_IDS.since {
            starts.push((Structure::BuildIds, header.binary_ids_offset));
        }
        if version >= header::VTABLES_SINCE {
            starts.push((Structure::VTableNames, header.vtable_names_offset));
        }
        if header.has_flag(variant::TEMPORAL) && version >= header::TRACES.since {
            starts.push((Structure::TemporalTraces, header.traces_offset));
        }
        starts.sort_by_key(|(_, start)| *start);
        let ends = starts.iter().skip(1).map(|&(_, start)| start);
        let ends: Vec<u64> = ends.chain([file_len]).collect();
        starts
            .into_iter()
            .zip(ends)
            .map(|((section, start), end)| (section, start, end.saturating_sub(start)))
            .collect()
    }

    /// Returns the build ids in the order of the file (from version 9).
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the section of build ids is damaged.
    pub fn binary_ids(&self) -> Result<Vec<BuildId>> {
        self.binary_ids
            .map_or(Ok(Vec::new()), sections::read_binary_ids)
            .map_err(|error| error.within(Structure::IndexedProfile))
    }

    /// Returns the names of vtables (from version 12). The file has these names only if the merge that wrote it was
    /// asked to keep them.
    pub fn vtable_names(&self) -> Result<SymbolTable> {
        let mut names = SymbolTable::new();
        self.read_vtable_names(&mut names)?;
        Ok(names)
    }

    fn read_vtable_names(&self, names: &mut SymbolTable) -> Result<()> {
        self.vtable_names
            .map_or(Ok(()), |section| {
                sections::read_vtable_names(section, names)
            })
            .map_err(|error| {
                error
                    .within(Structure::VTableNames)
                    .within(Structure::IndexedProfile)
            })
    }

    /// Returns the temporal traces (from version 10).
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated) if the file ends inside the traces.
    pub fn temporal_traces(&self) -> Result<TemporalTraces> {
        let mut traces = TemporalTraces::default();
        if let Some(cursor) = self.traces {
            sections::read_traces(cursor, &mut traces).map_err(|error| {
                error
                    .within(Structure::TemporalTraces)
                    .within(Structure::IndexedProfile)
            })?;
        }
        Ok(traces)
    }

    /// Returns the bytes of the MemProf section; `None` if the file has no such section. The section ends where the
    /// next section begins or the file ends.
    pub fn memprof(&self) -> Option<MemProfSection> {
        let header = &self.header;
        if self.damage.memprof
            || !header.has_flag(variant::MEMPROF)
            || header.version() < header::MEMPROF.since
        {
            return None;
        }
        let start = header.memprof_offset;
        let others = [
            header.binary_ids_offset,
            header.vtable_names_offset,
            header.traces_offset,
        ];
        let end = others
            .into_iter()
            .filter(|&offset| offset > start)
            .min()
            .unwrap_or(u64::MAX)
            .min(self.data.len() as u64);
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        Some(MemProfSection {
            bytes: self.data.get(range)?.to_vec(),
            offset: start,
        })
    }

    /// Reads the whole profile into memory. Functions and function records are in the order in which a reader returns
    /// them.
    ///
    /// # Errors
    /// The first error that any section or record gives.
    pub fn to_profile(&self) -> Result<InstrProfile> {
        let profile = InstrProfile::read(&mut self.records())?;
        let vtable_names = self.vtable_names()?;
        Ok(InstrProfile {
            vtable_names: vtable_names
                .in_order()
                .map(|(_, name)| name.to_vec())
                .collect(),
            symbols: vtable_names,
            memprof: self.memprof().map(HeapSection::Stored),
            ..profile
        })
    }
}

/// Reads the function records of an [`IndexedProfile`] one by one.
#[derive(Debug)]
pub struct IndexedReader<'data> {
    profile: IndexedProfile<'data>,
    /// The share of the functions that is read, and the number of shares.
    share: (usize, usize),
    /// How the functions are found; `None` until the first one is asked for, because a damaged table of buckets is
    /// found only by reading it.
    names: Option<Names<'data>>,
    current: Option<NameRecords<'data>>,
    at_end: bool,
    names_read: u64,
    /// The number of records of the current name that were read.
    records_read: u64,
    errors: u64,
    /// The errors that report what a damaged file has lost. They are made after the last function was read; `None`
    /// before that. Each error is removed when it is returned.
    at_last: Option<std::vec::IntoIter<Error>>,
    symbols: OnceLock<SymbolTable>,
}

/// The way in which the functions of the function table are found: bucket by bucket; one after the other in the order
/// of the file, as LLVM reads them; or by a walk over the functions if the table of buckets is damaged.
#[derive(Debug)]
enum Names<'data> {
    Table(Entries<'data>),
    FileOrder(FileOrder<'data>),
    Walk {
        walk: Walk<'data>,
        share: u64,
        share_mask: u64,
    },
}

impl<'data> Names<'data> {
    fn next(&mut self) -> Option<Result<Entry<'data>>> {
        match self {
            Names::Table(entries) => entries.next(),
            Names::FileOrder(items) => items.next(),
            Names::Walk {
                walk,
                share,
                share_mask,
            } => walk.find(|entry| match entry {
                Ok(entry) => entry.hash & *share_mask == *share,
                Err(_) => true,
            }),
        }
    }
}

impl<'data> IndexedReader<'data> {
    /// Returns the profile whose records are being read.
    pub fn profile(&self) -> &IndexedProfile<'data> {
        &self.profile
    }

    /// Returns the offset in the file of the item that holds the last record. (An item of the function table holds all
    /// records of one name.)
    pub fn record_offset(&self) -> u64 {
        self.current.as_ref().map_or(0, NameRecords::offset)
    }

    /// Returns a number for the place of the last record in the file, which increases from record to record in reading
    /// order. This is also true for a reader of only a part of the functions ([`IndexedProfile::records_of_share`]), so a
    /// caller that reads all parts can put the records into the order of the whole file.
    pub fn record_place(&self) -> u64 {
        let current = self.current.as_ref();
        current.map_or(0, |records| {
            records.place(self.records_read.saturating_sub(1))
        })
    }

    /// Returns the next name with its function records, which are not decoded yet; `None` at the end.
    ///
    /// # Errors
    /// After an error, the next call continues with the next bucket of the function table.
    pub fn next_name(&mut self) -> Result<Option<NameRecords<'data>>> {
        if self.at_end {
            return Ok(None);
        }
        let names = &mut self.names;
        let names = names.get_or_insert_with(|| self.profile.names(self.share));
        match names.next() {
            Some(Ok(entry)) => {
                self.names_read += 1;
                let records = NameRecords::new(&entry, self.profile.header.version());
                Ok(Some(records.with_llvm_rules(self.profile.as_llvm)))
            }
            Some(Err(error)) => {
                self.errors += 1;
                Err(error.within(Structure::IndexedProfile))
            }
            None => match self.next_loss() {
                Some(error) => Err(error),
                None => {
                    self.at_end = true;
                    Ok(None)
                }
            },
        }
    }

    fn next_loss(&mut self) -> Option<Error> {
        if !self.profile.is_damaged() {
            return None;
        }
        let losses = self.at_last.get_or_insert_with(|| {
            let stopped = match &self.names {
                Some(Names::Walk { walk, .. }) => Some(walk.position()),
                _ => None,
            };
            let (profile, table) = (&self.profile, self.profile.table_error());
            profile
                .damage
                .losses(profile.data, self.names_read, stopped, self.errors, table)
                .into_iter()
        });
        losses.next()
    }
}

impl InstrSource for IndexedReader<'_> {
    fn kind(&self) -> InstrKind {
        self.profile.kind()
    }

    fn version_word(&self) -> u64 {
        self.profile.header.version_word
    }

    fn read_record(&mut self, record: &mut Record) -> Result<bool> {
        loop {
            if let Some(current) = &mut self.current
                && current.read_record(record)?
            {
                self.records_read += 1;
                return Ok(true);
            }
            self.current = None;
            match self.next_name()? {
                Some(name) => {
                    self.current = Some(name);
                    self.records_read = 0;
                }
                None => return Ok(false),
            }
        }
    }

    /// Returns the vtable names that can be read. If some of them are damaged, [`IndexedProfile::vtable_names`] reports
    /// the error. Function names are not included, because they come with the function records.
    fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            let mut names = SymbolTable::new();
            // An error is ignored here, because `vtable_names` reports it. The names before the damage are kept.
            let _ = self.profile.read_vtable_names(&mut names);
            names
        })
    }

    fn binary_ids(&self) -> Result<Vec<BuildId>> {
        self.profile.binary_ids()
    }

    fn temporal_traces(&mut self) -> Result<TemporalTraces> {
        self.profile.temporal_traces()
    }
}
