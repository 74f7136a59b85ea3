use super::encoder::{FunctionEncoder, Summaries};
use super::frame::IndexedFrame;
use super::header;
use super::record::RecordLayout;
use crate::bytes::{Sink, assert_planned};
use crate::hash_table::{ItemId, Lengths, TablePlan};
use crate::index_vec::{Id, IndexVec};
use crate::instr::{FunctionId, FunctionRef, InstrProfile, Losses};
use crate::llvm_order::{self, NumberMap};
use crate::releases::{self, Release};
use crate::{ErrorKind, Result};
use std::ops::{Range, RangeInclusive};

/// Options for writing an indexed profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedWriteOptions {
    /// The version of the indexed format to write, 3 to 14.
    pub version: u32,
    /// The variant flags that the intended LLVM release knows. Other flags are left out of the version word.
    pub known_flags: u64,
    /// The versions of the MemProf section that the intended LLVM release can read.
    pub known_memprof: RangeInclusive<u64>,
    /// Whether to leave out functions that never ran (`llvm-profdata merge --sparse`). These are functions whose counts
    /// and bitmap bits are all 0.
    pub sparse: bool,
    /// Whether to write versions before 12 as LLVM 19 and later do with `--write-prev-version`: vtable value sites are
    /// kept, although the LLVM releases before 19 reject records with vtable value sites. The records of a function are
    /// then in the order in which LLVM 19 and later write them.
    pub unknown_vtable_sites: bool,
    /// The LLVM release that will read the file, if [`for_llvm`](Self::for_llvm) made these options. Heap profiles that
    /// are added to the file are written for this release too.
    pub release: Option<Release>,
}

pub(super) const FIRST_WRITTEN: u32 = 3;

impl IndexedWriteOptions {
    /// Returns the options for a version of the format. A variant flag or MemProf section is kept if at least one LLVM
    /// release that writes this version can read it.
    pub fn for_version(version: u32) -> Self {
        let writers = releases::indexed_writers(version);
        let of = |release: Option<Release>| release.map_or(NO_MEMPROF, known_memprof);
        let first = of(writers.as_ref().map(|range| *range.start()));
        let last = of(writers.as_ref().map(|range| *range.end()));
        let known_memprof = if first.is_empty() {
            last
        } else {
            *first.start()..=*last.end()
        };
        IndexedWriteOptions {
            version,
            known_flags: writers.map_or(0, |range| known_flags(*range.end())),
            known_memprof,
            sparse: false,
            unknown_vtable_sites: false,
            release: None,
        }
    }

    /// Returns the options for an LLVM release: the version that it writes, and the variant flags and MemProf sections
    /// that it can read.
    pub fn for_llvm(release: Release) -> Self {
        IndexedWriteOptions {
            version: release.facts().map_or(0, |facts| facts.indexed),
            known_flags: known_flags(release),
            known_memprof: known_memprof(release),
            sparse: false,
            unknown_vtable_sites: false,
            release: Some(release),
        }
    }

    /// Sets whether to keep vtable value sites in versions before 12
    /// ([`unknown_vtable_sites`](Self::unknown_vtable_sites)).
    #[must_use]
    pub fn unknown_vtable_sites(mut self, keep: bool) -> Self {
        self.unknown_vtable_sites = keep;
        self
    }

    /// How the release that writes such files orders the records of a function.
    fn map(&self) -> NumberMap {
        let writes_as_23 = self
            .release
            .is_some_and(|release| release >= Release::new(23));
        if self.version >= header::UNIFORMITY_SINCE || writes_as_23 {
            NumberMap::Llvm23
        } else if self.version >= header::VTABLES_SINCE || self.unknown_vtable_sites {
            NumberMap::Llvm19
        } else {
            NumberMap::Llvm13
        }
    }

    pub(super) fn layout(&self) -> RecordLayout {
        RecordLayout {
            version: self.version,
            vtable_sites: self.version >= header::VTABLES_SINCE || self.unknown_vtable_sites,
            map: self.map(),
        }
    }

    /// Sets whether to leave out functions that never ran ([`sparse`](Self::sparse)).
    #[must_use]
    pub fn sparse(mut self, sparse: bool) -> Self {
        self.sparse = sparse;
        self
    }
}

#[expect(clippy::reversed_empty_ranges, reason = "no version")]
const NO_MEMPROF: RangeInclusive<u64> = 1..=0;

/// Returns the versions of the MemProf section that an LLVM release can read (`memprof::MinimumSupportedVersion` and
/// `MaximumSupportedVersion` in `MemProf.h`). LLVM 14 does not know the section. In LLVM 15 to 18 the section has no
/// version word; its version counts as 0.
fn known_memprof(release: Release) -> RangeInclusive<u64> {
    match release.major {
        ..=14 => NO_MEMPROF,
        15..=18 => 0..=0,
        19 => 0..=3,
        20 => 2..=3,
        _ => 2..=4,
    }
}

/// Returns the variant flags that an LLVM release knows.
pub(in crate::instr) fn known_flags(release: Release) -> u64 {
    (0..u64::BITS)
        .map(|bit| 1 << bit)
        .filter(|&flag| {
            releases::first_release_of_flags(flag).is_some_and(|first| first <= release)
        })
        .sum()
}

/// Writes a profile with exactly the bytes that LLVM writes for the version.
///
/// Every [`FunctionRef::name_ref`](crate::instr::FunctionRef::name_ref) must be the hash of its name, and no name may
/// occur twice. Value sites are written without changes.
///
/// ```
/// use profkit_data::instr::InstrProfile;
/// use profkit_data::instr::indexed::{IndexedProfile, IndexedWriteOptions, write};
/// use profkit_data::releases::Release;
///
/// let llvm_16 = Release { major: 16, minor: 0 };
/// let mut file = Vec::new();
/// let losses = write(&InstrProfile::default(), &IndexedWriteOptions::for_llvm(llvm_16), &mut file)?;
/// assert!(losses.is_empty());
/// assert_eq!(IndexedProfile::parse(&file)?.name_count(), 0);
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] for a version below 3 or above 14, and for a site of more than 255 values, which no
/// version can hold; [`ErrorKind::Malformed`] for a MemProf section that contradicts itself; and the errors of the
/// sink.
pub fn write(
    profile: &InstrProfile,
    options: &IndexedWriteOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    let plan = IndexedPlan::new(profile, options)?;
    let summaries = plan.summarize(0..plan.function_count());
    plan.write(summaries, sink)?;
    Ok(plan.losses().clone())
}

/// Decides where each byte of an indexed file goes. Encoding needs only the plan and the profile, so several threads can
/// encode ranges of functions at the same time. The steps are:
///
/// 1. [`new`](Self::new) orders the functions and computes all sizes;
/// 2. [`summarize`](Self::summarize) ranges of `0..function_count()` and merge the results;
/// 3. [`encode_head`](Self::encode_head);
/// 4. [`encode_range`](Self::encode_range) consecutive ranges of `0..function_count()`, cut by
///    [`next_cut`](Self::next_cut); their bytes follow each other in the file;
/// 5. [`encode_tail`](Self::encode_tail).
///
/// [`write`](Self::write) does the last three steps.
#[derive(Debug)]
pub struct IndexedPlan<'p> {
    profile: &'p InstrProfile,
    encoder: FunctionEncoder,
    functions: IndexVec<PlannedId, Planned>,
    /// The functions in the order in which LLVM inserts them into its hash table.
    insertion: IndexVec<ItemId, PlannedId>,
    table: TablePlan,
    frame: IndexedFrame<'p>,
}

crate::id_type! {
    struct PlannedId of "functions of an indexed profile";
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    data_len: u64,
    table: u32,
    function: u32,
}

/// The number of bytes that [`IndexedPlan::write`] collects before it passes them to the sink.
const WRITE_CHUNK: u64 = 1 << 20;

impl<'p> IndexedPlan<'p> {
    /// The number of records that are written. Functions that share a name have several.
    pub fn record_count(&self) -> u64 {
        let functions = self.functions.as_slice().iter();
        let records = functions.flat_map(|planned| function(self.profile, planned).records());
        records.count() as u64
    }

    /// Plans the file: orders the functions and computes all sizes.
    pub fn new(profile: &'p InstrProfile, options: &IndexedWriteOptions) -> Result<Self> {
        let version = options.version;
        let encoder = FunctionEncoder::new(options)?;
        let mut losses = Losses::default();
        let functions = choose(profile, &encoder, &mut losses);
        let insertion = insertion_order(profile, &functions, version)?;
        let table = plan_table(profile, &functions, &insertion)?;
        let size = (table.payload_len(), table.bucket_count());
        let mut frame = IndexedFrame::new(profile, options, size)?;
        frame.losses.add_records(&losses);
        Ok(IndexedPlan {
            profile,
            encoder,
            functions,
            insertion,
            table,
            frame,
        })
    }

    /// The number of functions that are written.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// The length of the whole output file in bytes.
    pub fn total_len(&self) -> u64 {
        self.frame.total_len()
    }

    /// The parts of the profile that are left out, because the version cannot hold them.
    pub fn losses(&self) -> &Losses {
        self.frame.losses()
    }

    /// Computes the summaries of a range of functions. Here the functions are numbered in the order of the profile's
    /// tables, not in the order of the file.
    pub fn summarize(&self, functions: Range<usize>) -> Summaries {
        let mut summaries = self.encoder.summaries();
        let functions = self.functions.as_slice().get(functions);
        for planned in functions.unwrap_or_default() {
            let function = function(self.profile, planned);
            function
                .records()
                .for_each(|record| summaries.add(record.func_hash, record.counts));
        }
        summaries
    }

    /// Appends the header and the summaries to `out`.
    pub fn encode_head(&self, summaries: Summaries, out: &mut Vec<u8>) {
        self.frame.encode_head(summaries, out);
    }

    /// Returns the end of the shortest range of functions that begins at `from` and takes at least `bytes` bytes in the
    /// file. If all functions from `from` on take fewer bytes, the range ends with the last function.
    pub fn next_cut(&self, from: usize, bytes: u64) -> usize {
        self.table.position_after(from, bytes)
    }

    /// Returns the number of bytes that [`encode_range`](Self::encode_range) appends for a range of functions.
    pub fn range_len(&self, range: Range<usize>) -> u64 {
        self.table.range_len(range.start, range.end)
    }

    /// Appends a range of functions of the function table. Functions are numbered in the order of the file.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] if a value site has more than 255 values.
    pub fn encode_range(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len() as u64;
        let expected = self.range_len(range.clone());
        out.reserve(usize::try_from(expected).unwrap_or(0));
        let lookup = |item| {
            let planned = &self.functions[self.insertion[item]];
            (function(self.profile, planned), planned.data_len)
        };
        self.table.encode_payload(
            range,
            |item| {
                let (function, data_len) = lookup(item);
                let name_len = function.name().len() as u64;
                (function.name_ref().0, name_len, data_len)
            },
            |item, out| {
                let (function, _) = lookup(item);
                out.extend_from_slice(function.name());
                self.encoder.encode_data(&function, out)
            },
            out,
        )?;
        let written = out.len() as u64 - before;
        assert_planned("records of the indexed profile", expected, written);
        Ok(())
    }

    /// Appends everything after the functions of the function table: its table of buckets and the sections that follow.
    pub fn encode_tail(&self, out: &mut Vec<u8>) {
        let before = out.len();
        self.table.encode_index(self.frame.table_offset(), out);
        self.frame.encode_sections(out);
        let start = self.frame.table_offset() + self.table.payload_len();
        assert_planned(
            "sections after the records of the indexed profile",
            self.total_len() - start,
            (out.len() - before) as u64,
        );
    }

    /// Writes the whole file to the sink, in pieces of about a megabyte. `summaries` must cover all functions.
    pub fn write(&self, summaries: Summaries, sink: &mut dyn Sink) -> Result<()> {
        let mut chunk = Vec::new();
        self.encode_head(summaries, &mut chunk);
        let mut written = 0;
        let mut from = 0;
        while from < self.function_count() {
            let to = self.next_cut(from, WRITE_CHUNK);
            self.encode_range(from..to, &mut chunk)?;
            from = to;
            written += chunk.len() as u64;
            sink.put(&chunk)?;
            chunk.clear();
        }
        self.encode_tail(&mut chunk);
        written += chunk.len() as u64;
        assert_planned("indexed profile", self.total_len(), written);
        sink.put(&chunk)
    }
}

fn choose(
    profile: &InstrProfile,
    encoder: &FunctionEncoder,
    losses: &mut Losses,
) -> IndexVec<PlannedId, Planned> {
    let count = profile.tables.iter().map(|table| table.function_count());
    let mut chosen = IndexVec::with_capacity(count.sum());
    for (table, functions) in (0u32..).zip(&profile.tables) {
        for (index, function) in (0u32..).zip(functions.functions()) {
            if let Some(data_len) = encoder.data_len(&function, losses) {
                chosen.push(Planned {
                    data_len,
                    table,
                    function: index,
                });
            }
        }
    }
    chosen
}

fn insertion_order(
    profile: &InstrProfile,
    functions: &IndexVec<PlannedId, Planned>,
    version: u32,
) -> Result<IndexVec<ItemId, PlannedId>> {
    let count = u32::try_from(functions.len()).map_err(|_| {
        ErrorKind::CannotRepresent
            .error("an indexed profile has too many functions")
            .found(functions.len())
    })?;
    let mut order: Vec<u32> = (0..count).collect();
    let planned = |index: u32| PlannedId::from_index(index as usize);
    let function = |index: u32| function(profile, &functions[planned(index)]);
    let name = |index: u32| function(index).name();
    if version >= SORTED_SINCE {
        let tie = |index: u32| function(index).name_ref().0;
        llvm_order::sort_by_name(&mut order, name, tie);
        return Ok(order.into_iter().map(planned).collect());
    }
    Ok(map_order(profile, functions))
}

/// The order of the hash map in which LLVM 16 and earlier keep functions. The map also has the functions that a sparse profile
/// leaves out: its size, and which functions had to give way to others, depend on them.
fn map_order(
    profile: &InstrProfile,
    functions: &IndexVec<PlannedId, Planned>,
) -> IndexVec<ItemId, PlannedId> {
    let mut next = functions.entries().peekable();
    let mut all = Vec::with_capacity(functions.len());
    for (table, of_table) in (0u32..).zip(&profile.tables) {
        for (index, function) in (0u32..).zip(of_table.functions()) {
            let planned = next
                .next_if(|(_, planned)| (planned.table, planned.function) == (table, index))
                .map(|(id, _)| id);
            if planned.is_some() || function.records().next().is_some() {
                all.push((function.order(), function.name(), planned));
            }
        }
    }
    all.sort_by_key(|&(order, ..)| order);
    let by_map = llvm_order::string_map_order(
        all.iter().map(|&(_, name, _)| name),
        llvm_order::NameHash::Bernstein,
    );
    let found = by_map
        .into_iter()
        .filter_map(|position| all.get(position as usize));
    found.filter_map(|&(.., planned)| planned).collect()
}

/// The first version whose writer (LLVM 17) sorts the function names.
const SORTED_SINCE: u32 = 10;
fn plan_table(
    profile: &InstrProfile,
    functions: &IndexVec<PlannedId, Planned>,
    insertion: &IndexVec<ItemId, PlannedId>,
) -> Result<TablePlan> {
    let hashes: Vec<u64> = insertion
        .iter()
        .map(|&planned| function(profile, &functions[planned]).name_ref().0)
        .collect();
    TablePlan::new(
        hashes.iter().copied(),
        |item| {
            let planned = &functions[insertion[item]];
            let name = function(profile, planned).name();
            (name.len() as u64, planned.data_len)
        },
        Lengths::KeyAndData,
    )
}

fn function<'p>(profile: &'p InstrProfile, planned: &Planned) -> FunctionRef<'p> {
    let table = profile.tables.get(planned.table as usize);
    match table.and_then(|table| table.function(FunctionId(planned.function))) {
        Some(function) => function,
        None => unreachable!("a function of an indexed profile is in no table of the profile"),
    }
}
