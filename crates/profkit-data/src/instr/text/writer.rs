//! Writes text profiles (LLVM's `InstrProfWriter::writeText` and `writeRecordInText`).
use super::EXTERNAL_SYMBOL;
use crate::Result;
use crate::bytes::Sink;
use crate::ids::{FuncHash, NameRef};
use crate::instr::indexed::{has_vtable_sites, known_flags, known_values};
use crate::instr::{
    FunctionRef, FunctionTable, InstrKind, InstrProfile, Losses, RecordRef, TemporalTraces,
    ValueData,
};
use crate::releases::{Release, TextPart};
use profkit_abi::{value_kind, variant};
use rustc_hash::FxHashMap;

/// Options for writing a profile as text.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TextOptions {
    /// Whether to write the known names of call targets that have no record in the profile. See
    /// [`foreign_names`](Self::foreign_names).
    pub foreign_names: bool,
    /// Whether to leave out functions that never ran. See [`sparse`](Self::sparse).
    pub sparse: bool,
    /// Whether to leave out functions whose names would make the text unreadable. See [`readable`](Self::readable).
    pub readable: bool,
    /// The LLVM release that will read the text; `None` for the newest. See [`for_llvm`](Self::for_llvm).
    pub release: Option<Release>,
}

setters!(TextOptions {
    foreign_names: bool,
    sparse: bool,
    readable: bool
});

impl TextOptions {
    /// Sets the LLVM release that will read the text. The parts of the profile that this release would reject are left
    /// out:
    /// temporal traces, bitmaps, value profiles of vtables, and header lines, as [`TextPart`] has their first releases.
    #[must_use]
    pub fn for_llvm(mut self, release: Release) -> Self {
        self.release = Some(release);
        self
    }

    /// Whether the LLVM release in the options can read a part; `true` if no release is set.
    fn has(&self, part: TextPart) -> bool {
        self.release.is_none_or(|release| part.since() <= release)
    }

    /// The flags of the profile's kind for which the text can have a header line.
    fn flags(&self) -> u64 {
        let Some(release) = self.release else {
            return u64::MAX;
        };
        match self.has(TextPart::SingleByteCoverage) {
            true => known_flags(release),
            false => known_flags(release) & !variant::BYTE_COVERAGE,
        }
    }
}

/// Writes a whole profile. Functions are sorted by name and function hash. The bytes are those of `llvm-profdata merge
/// --text` of LLVM 22. Like LLVM, the function leaves out the parts that the text format cannot hold. It returns how
/// many parts were left out, as [`losses`] counts them.
///
/// ```
/// use profkit_data::instr::text::{TextOptions, write};
/// use profkit_data::instr::{InstrKind, InstrProfile};
///
/// let profile = InstrProfile { kind: InstrKind::IR, ..InstrProfile::default() };
/// let mut text = Vec::new();
/// let losses = write(&profile, &TextOptions::new(), &mut text)?;
/// assert!(text.ends_with(b":ir\n") && losses.is_empty());
/// # Ok::<(), profkit_data::Error>(())
/// ```
pub fn write(profile: &InstrProfile, options: &TextOptions, sink: &mut dyn Sink) -> Result<Losses> {
    let tables = profile.tables.iter();
    let mut functions = Vec::with_capacity(tables.clone().map(FunctionTable::function_count).sum());
    for table in tables {
        let kept = |function: &FunctionRef<'_>| {
            (!options.sparse || function.has_run())
                && (!options.readable || is_readable(function.name()))
        };
        functions.extend(table.functions().filter(kept).map(|function| (0, function)));
    }
    sort_by_name(&mut functions, |function| function.name());
    let functions = functions.into_iter().map(|(_, function)| function);
    let mut known = FxHashMap::default();
    if spells_names(profile) {
        known.reserve(functions.len() + profile.vtable_names.len());
        known.extend(functions.clone().map(|one| (one.name_ref(), one.name())));
        for name in &profile.vtable_names {
            known.entry(NameRef::of(name)).or_insert(name.as_slice());
        }
    }
    let names = |name_ref: NameRef| {
        known.get(&name_ref).copied().or_else(|| {
            options
                .foreign_names
                .then(|| profile.symbols.get(name_ref))
                .flatten()
        })
    };

    let mut writer = TextWriter::new(sink);
    writer.head(profile, options, &names)?;
    for function in functions {
        writer.function(function.name(), function.records(), options, &names)?;
    }
    writer.finish()?;
    Ok(losses(profile, options))
}

/// Counts the parts of a profile that a text with these options cannot hold.
pub fn losses(profile: &InstrProfile, options: &TextOptions) -> Losses {
    let (bitmaps, vtables) = (
        options.has(TextPart::Bitmap),
        options.has(TextPart::VTables),
    );
    let sections = InstrKind::MEMPROF | InstrKind::TEMPORAL | InstrKind::FRONT_END;
    let flags = profile.kind.without(sections).version_flags();
    let flags = flags & (variant::FUNCTION_ENTRY_ONLY | !options.flags());
    let mut losses = Losses {
        flags: InstrKind::from_version_word(flags).without(InstrKind::FRONT_END),
        uniformity: profile.uniformity_count() as u64,
        binary_ids: profile.binary_ids.len() as u64,
        memprof: profile.memprof.is_some(),
        ..Losses::default()
    };
    if !options.has(TextPart::Traces) {
        losses.traces = profile.traces.traces.len() as u64;
    }
    if bitmaps && vtables && !options.readable {
        return losses;
    }
    let tables = profile.tables.iter();
    for function in tables.flat_map(|table| table.functions()) {
        if options.sparse && !function.has_run() {
            continue;
        }
        if options.readable && !is_readable(function.name()) {
            losses.unreadable_names += 1;
            continue;
        }
        if bitmaps && vtables {
            continue;
        }
        for record in function.records() {
            losses.bitmaps += u64::from(!bitmaps && !record.bitmap.is_empty());
            let sites = record.values.is_some_and(has_vtable_sites);
            losses.vtable_sites += u64::from(!vtables && sites);
        }
    }
    losses
}

/// Whether a reader of the text finds this name again. A line that begins with `#` is a comment, one that begins with `:`
/// may belong to the header, and an empty line is skipped.
pub fn is_readable(name: &[u8]) -> bool {
    let first = name.first();
    first.is_some_and(|first| !b"#:".contains(first))
        && memchr::memchr3(b'\n', b'\r', 0, name).is_none()
}

/// Sorts by name. The numbers are room for the part of a name that is compared at once.
pub fn sort_by_name<'n, T>(items: &mut [(u128, T)], name: impl Fn(&T) -> &'n [u8] + Copy) {
    sort_from(items, 0, name);
}

/// Sorts names that begin with the same `depth` bytes.
fn sort_from<'n, T>(items: &mut [(u128, T)], depth: usize, name: impl Fn(&T) -> &'n [u8] + Copy) {
    /// Comparing whole names is faster for fewer of them.
    const FEW: usize = 16;
    /// Recursion ends at this length.
    const DEEPEST: usize = 1 << 10;
    const PART: usize = size_of::<u128>();
    if items.len() <= FEW || depth >= DEEPEST {
        items.sort_unstable_by(|(_, one), (_, other)| name(one).cmp(name(other)));
        return;
    }
    let mut longer = false;
    for (part, item) in &mut *items {
        let rest = name(item).get(depth..).unwrap_or_default();
        *part = match rest.first_chunk::<PART>() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; PART];
                bytes
                    .iter_mut()
                    .zip(rest)
                    .for_each(|(to, from)| *to = *from);
                u128::from_be_bytes(bytes)
            }
        };
        longer |= rest.len() > PART;
    }
    items.sort_unstable_by_key(|(part, _)| *part);
    // Names that differ only in zero bytes at their ends have equal parts.
    let depth = if longer { depth + PART } else { DEEPEST };
    for same in items.chunk_by_mut(|(one, _), (other, _)| one == other) {
        if same.len() > 1 {
            sort_from(same, depth, name);
        }
    }
}

/// Writes a text profile in parts: the header, the temporal traces, then the function records in the order in which the
/// caller passes them.
pub struct TextWriter<'sink> {
    sink: &'sink mut dyn Sink,
    buffer: Vec<u8>,
    /// The number of bytes that the sink has.
    written: u64,
}

impl std::fmt::Debug for TextWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextWriter").finish_non_exhaustive()
    }
}

/// A function that returns the name with a given hash; `None` if the name is not known.
pub type Names<'a> = dyn Fn(NameRef) -> Option<&'a [u8]> + 'a;

/// The number of bytes that are collected before they are passed to the sink. A larger number would not be faster.
const FLUSH_AT: usize = 1 << 16;

impl<'sink> TextWriter<'sink> {
    /// Makes a writer that passes its text to `sink` in pieces of about 64 KiB.
    pub fn new(sink: &'sink mut dyn Sink) -> Self {
        TextWriter {
            sink,
            buffer: Vec::with_capacity(FLUSH_AT + FLUSH_AT / 4),
            written: 0,
        }
    }

    /// The number of bytes of the text so far.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes what comes before the functions of a profile, as far as a text with these options can have it: the header
    /// lines and the temporal traces.
    pub fn head(
        &mut self,
        profile: &InstrProfile,
        options: &TextOptions,
        names: &Names<'_>,
    ) -> Result<()> {
        let lost = profile.kind.version_flags() & !options.flags();
        self.header(profile.kind.without(InstrKind::from_version_word(lost)))?;
        let has_traces =
            profile.kind.contains(InstrKind::TEMPORAL) || !profile.traces.traces.is_empty();
        match has_traces && options.has(TextPart::Traces) {
            true => self.traces(&profile.traces, names),
            false => Ok(()),
        }
    }

    /// Writes the records of a function, sorted by function hash, without what a text with these options cannot have.
    pub fn function<'r>(
        &mut self,
        name: &[u8],
        mut records: impl Iterator<Item = RecordRef<'r>>,
        options: &TextOptions,
        names: &Names<'_>,
    ) -> Result<()> {
        let Some(first) = records.next() else {
            return Ok(());
        };
        let Some(second) = records.next() else {
            return self.fitting(name, &first, options, names);
        };
        let mut all: Vec<RecordRef<'_>> = [first, second].into_iter().chain(records).collect();
        all.sort_by_key(|record| record.func_hash);
        all.iter()
            .try_for_each(|record| self.fitting(name, record, options, names))
    }

    fn fitting(
        &mut self,
        name: &[u8],
        record: &RecordRef<'_>,
        options: &TextOptions,
        names: &Names<'_>,
    ) -> Result<()> {
        let values = record.values;
        self.record(
            name,
            record.func_hash,
            record.counts,
            if options.has(TextPart::Bitmap) {
                record.bitmap
            } else {
                &[]
            },
            values
                .map(|values| known_values(values, options.has(TextPart::VTables)))
                .as_deref(),
            names,
        )
    }

    /// Appends text that another writer has made.
    pub fn append(&mut self, text: &[u8]) -> Result<()> {
        self.text(text);
        self.flush_if_full()
    }

    /// Writes the header lines for a kind of profile, each after a comment. A front-end profile has no header lines.
    pub fn header(&mut self, kind: InstrKind) -> Result<()> {
        let context_sensitive = kind.contains(InstrKind::CONTEXT_SENSITIVE);
        let lines: [(bool, &[u8]); 5] = [
            (
                context_sensitive,
                b"# CSIR level Instrumentation Flag\n:csir\n",
            ),
            (
                kind.is_ir() && !context_sensitive,
                b"# IR level Instrumentation Flag\n:ir\n",
            ),
            (
                kind.contains(InstrKind::ENTRY_FIRST),
                b"# Always instrument the function entry block\n:entry_first\n",
            ),
            (
                kind.contains(InstrKind::LOOP_ENTRIES),
                b"# Always instrument the loop entry blocks\n:instrument_loop_entries\n",
            ),
            (
                kind.contains(InstrKind::SINGLE_BYTE_COVERAGE),
                b"# Instrument block coverage\n:single_byte_coverage\n",
            ),
        ];
        for (_, text) in lines.iter().filter(|(wanted, _)| *wanted) {
            self.buffer.extend_from_slice(text);
        }
        self.flush_if_full()
    }

    /// Writes the block of temporal traces. If the name of a function is not known, an empty name is written, as in
    /// LLVM.
    pub fn traces(&mut self, traces: &TemporalTraces, names: &Names<'_>) -> Result<()> {
        self.text(b":temporal_prof_traces\n# Num Temporal Profile Traces:\n");
        self.number(traces.traces.len() as u64);
        self.text(b"# Temporal Profile Trace Stream Size:\n");
        self.number(traces.stream_size);
        for trace in &traces.traces {
            self.text(b"# Weight:\n");
            self.number(trace.weight);
            if trace.functions.is_empty() {
                // A trace without functions is written as a comma, because readers skip an empty line. LLVM never
                // writes such a trace.
                self.text(b",");
            }
            for &function in &trace.functions {
                self.text(names(function).unwrap_or_default());
                self.text(b",");
                self.flush_if_full()?;
            }
            self.text(b"\n");
        }
        self.text(b"\n");
        self.flush_if_full()
    }

    /// Writes one function record, with the comments that `llvm-profdata merge --text` and `show --text` write.
    pub fn record(
        &mut self,
        name: &[u8],
        func_hash: FuncHash,
        counts: &[u64],
        bitmap: &[u8],
        values: Option<&ValueData>,
        names: &Names<'_>,
    ) -> Result<()> {
        self.text(name);
        self.text(b"\n# Func Hash:\n");
        self.number(func_hash.0);
        self.text(b"# Num Counters:\n");
        self.number(counts.len() as u64);
        self.text(b"# Counter Values:\n");
        for &count in counts {
            self.number(count);
            self.flush_if_full()?;
        }
        if !bitmap.is_empty() {
            self.text(b"# Num Bitmap Bytes:\n$");
            self.number(bitmap.len() as u64);
            self.text(b"# Bitmap Byte Values:\n");
            for &byte in bitmap {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
                self.text(b"0x");
                if byte > 0xf {
                    self.buffer.push(digit(byte >> 4));
                }
                self.buffer.push(digit(byte & 0xf));
                self.buffer.push(b'\n');
                self.flush_if_full()?;
            }
            self.text(b"\n");
        }
        if let Some(values) = values.filter(|values| !values.is_empty()) {
            self.values(values, names)?;
        }
        self.text(b"\n");
        self.flush_if_full()
    }

    /// Passes the bytes that are still collected to the sink.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn values(&mut self, values: &ValueData, names: &Names<'_>) -> Result<()> {
        let with_sites = || values.kinds().filter(|(_, kind)| kind.site_count() > 0);
        self.text(b"# Num Value Kinds:\n");
        self.number(with_sites().count() as u64);
        for (kind, sites) in with_sites() {
            self.text(match kind {
                value_kind::INDIRECT_CALL_TARGET => b"# ValueKind = IPVK_IndirectCallTarget:\n",
                value_kind::MEM_OP_SIZE => b"# ValueKind = IPVK_MemOPSize:\n",
                _ => b"# ValueKind = IPVK_VTableTarget:\n",
            });
            self.number(u64::from(kind));
            self.text(b"# NumValueSites:\n");
            self.number(sites.site_count() as u64);
            for site in sites.sites() {
                self.number(site.len() as u64);
                for entry in site {
                    if kind == value_kind::MEM_OP_SIZE {
                        self.text(itoa::Buffer::new().format(entry.value).as_bytes());
                    } else {
                        let name = match entry.value {
                            0 => None,
                            value => names(NameRef(value)),
                        };
                        self.text(name.unwrap_or(EXTERNAL_SYMBOL));
                    }
                    self.text(b":");
                    self.number(entry.count);
                    self.flush_if_full()?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    #[inline]
    fn number(&mut self, number: u64) {
        if let Some(&digit) = usize::try_from(number)
            .ok()
            .and_then(|one| b"0123456789".get(one))
        {
            self.buffer.extend_from_slice(&[digit, b'\n']);
            return;
        }
        self.text(itoa::Buffer::new().format(number).as_bytes());
        self.buffer.push(b'\n');
    }

    #[inline]
    fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= FLUSH_AT {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.put(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn spells_names(profile: &InstrProfile) -> bool {
    let has_targets = |values: &ValueData| {
        [value_kind::INDIRECT_CALL_TARGET, value_kind::VTABLE_TARGET]
            .iter()
            .filter_map(|&kind| values.kind(kind))
            .any(|kind| !kind.entries().is_empty())
    };
    !profile.traces.traces.is_empty()
        || profile
            .tables
            .iter()
            .flat_map(|table| table.functions())
            .flat_map(|function| function.records())
            .any(|record| record.values.is_some_and(has_targets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_bytes() {
        let mut names: Vec<Vec<u8>> = vec![b"".to_vec(), vec![0; 40], vec![b'a'; 3000]];
        for number in 0..5000u32 {
            let word = ["Nt", "a", "\0", "zz"][number as usize % 4];
            let times = (number / 7 % 30) as usize;
            let end = if number % 3 == 0 { "\0\0" } else { "" };
            names.push(format!("{}{}{end}", word.repeat(times), number % 11).into_bytes());
        }
        let mut found: Vec<(u128, &[u8])> = names.iter().map(|name| (0, &name[..])).collect();
        sort_by_name(&mut found, |name| name);
        let mut wanted: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
        wanted.sort();
        assert!(found.into_iter().map(|(_, name)| name).eq(wanted));
    }
}
