//! Writes text profiles (LLVM's `InstrProfWriter::writeText` and `writeRecordInText`).
use super::EXTERNAL_SYMBOL;
use crate::Result;
use crate::bytes::Sink;
use crate::ids::{FuncHash, NameRef};
use crate::instr::indexed::{has_vtable_sites, known_flags, known_values};
use crate::instr::{InstrKind, InstrProfile, Losses, TemporalTraces, ValueData};
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

    /// Returns the parts of a profile that the text can hold: those that the LLVM release in the options can read, or
    /// all parts if no release is set.
    fn limits(&self) -> Limits {
        let Some(release) = self.release else {
            return Limits {
                flags: u64::MAX,
                traces: true,
                bitmaps: true,
                vtables: true,
            };
        };
        let reads = |part: TextPart| part.since() <= release;
        let mut flags = known_flags(release);
        if !reads(TextPart::SingleByteCoverage) {
            flags &= !variant::BYTE_COVERAGE;
        }
        Limits {
            flags,
            traces: reads(TextPart::Traces),
            bitmaps: reads(TextPart::Bitmap),
            vtables: reads(TextPart::VTables),
        }
    }
}

struct Limits {
    /// The flags of the profile's kind for which the text can have a header line.
    flags: u64,
    traces: bool,
    bitmaps: bool,
    vtables: bool,
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
    let mut functions: Vec<_> = profile
        .tables
        .iter()
        .flat_map(|table| table.functions())
        .filter(|function| !options.sparse || function.has_run())
        .filter(|function| !options.readable || is_readable(function.name()))
        .collect();
    functions.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let mut known = FxHashMap::default();
    if spells_names(profile) {
        known.reserve(functions.len() + profile.vtable_names.len());
        known.extend(functions.iter().map(|one| (one.name_ref(), one.name())));
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

    let limits = options.limits();
    let mut writer = TextWriter::new(sink);
    let lost = profile.kind.version_flags() & !limits.flags;
    writer.header(profile.kind.without(InstrKind::from_version_word(lost)))?;
    let has_traces =
        profile.kind.contains(InstrKind::TEMPORAL) || !profile.traces.traces.is_empty();
    if has_traces && limits.traces {
        writer.traces(&profile.traces, &names)?;
    }
    let mut records = Vec::new();
    for function in functions {
        records.clear();
        records.extend(function.records());
        records.sort_by_key(|record| record.func_hash);
        for record in &records {
            writer.record(
                function.name(),
                record.func_hash,
                record.counts,
                if limits.bitmaps { record.bitmap } else { &[] },
                record
                    .values
                    .map(|values| known_values(values, limits.vtables))
                    .as_deref(),
                &names,
            )?;
        }
    }
    writer.finish()?;
    Ok(losses(profile, options))
}

/// Counts the parts of a profile that a text with these options cannot hold.
pub fn losses(profile: &InstrProfile, options: &TextOptions) -> Losses {
    let limits = options.limits();
    let sections = InstrKind::MEMPROF | InstrKind::TEMPORAL | InstrKind::FRONT_END;
    let flags = profile.kind.without(sections).version_flags();
    let flags = flags & (variant::FUNCTION_ENTRY_ONLY | !limits.flags);
    let mut losses = Losses {
        flags: InstrKind::from_version_word(flags).without(InstrKind::FRONT_END),
        uniformity: profile.uniformity_count() as u64,
        binary_ids: profile.binary_ids.len() as u64,
        memprof: profile.memprof.is_some(),
        ..Losses::default()
    };
    if !limits.traces {
        losses.traces = profile.traces.traces.len() as u64;
    }
    if limits.bitmaps && limits.vtables && !options.readable {
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
        for record in function.records() {
            losses.bitmaps += u64::from(!limits.bitmaps && !record.bitmap.is_empty());
            let sites = record.values.is_some_and(has_vtable_sites);
            losses.vtable_sites += u64::from(!limits.vtables && sites);
        }
    }
    losses
}

/// Whether a reader of the text finds this name again. A line that begins with `#` is a comment, one that begins with `:`
/// may belong to the header, and an empty line is skipped.
fn is_readable(name: &[u8]) -> bool {
    let first = name.first();
    first.is_some_and(|first| !b"#:".contains(first))
        && !name.iter().any(|byte| b"\n\r\0".contains(byte))
}

/// Writes a text profile in parts: the header, the temporal traces, then the function records in the order in which the
/// caller passes them.
pub struct TextWriter<'sink> {
    sink: &'sink mut dyn Sink,
    buffer: Vec<u8>,
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
        }
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
