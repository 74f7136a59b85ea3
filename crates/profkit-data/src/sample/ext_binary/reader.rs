//! Reads extensible binary profiles (LLVM's `SampleProfileReaderExtBinaryBase`).
use super::composite::{self, Evidence, Findings};
use super::contexts::Contexts;
use super::eytzinger;
use super::in_order;
use super::metadata::{Metadata, Shape};
use super::sections::{self, Section};
use super::tables::Tables;
use crate::bytes::{Cursor, Endian};
use crate::limits::SAMPLE_REREADS;
use crate::sample::binary::names::{Mapping, NameTable};
use crate::sample::binary::{header, numbers};
use crate::sample::flat::{Additions, FlatFunction};
use crate::sample::model::{ProfileKind, SampleProfile};
use crate::sample::options::SampleReadOptions;
use crate::sample::report::ReadReport;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::sample::{EXT_BINARY, VERSION, VERSION_COMPOSITE, VERSION_NEWEST, flag, section};
use std::borrow::Cow;

/// An opened extensible binary profile. Only its section table was read.
///
/// ```
/// use profkit_data::sample::SampleProfile;
/// use profkit_data::sample::ext_binary::ExtBinaryProfile;
///
/// let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/sample/llvm-22-nested-ext.sampleprof"));
/// let file = ExtBinaryProfile::parse(bytes)?;
/// let mut profile = SampleProfile::new();
/// file.read_functions(&[b"main"], &mut profile).strict()?;
/// assert!(profile.functions().len() <= 1);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExtBinaryProfile<'data> {
    data: &'data [u8],
    version: u64,
    sections: Vec<Section>,
    options: SampleReadOptions,
}

impl<'data> ExtBinaryProfile<'data> {
    /// Reads the header and the section table.
    ///
    /// # Errors
    /// [`ErrorKind::BadMagic`] or [`ErrorKind::UnsupportedVersion`] if the header is wrong, and
    /// [`ErrorKind::Truncated`] if the section table is incomplete.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        Self::parse_with(data, &SampleReadOptions::default())
    }

    /// Opens a profile as [`parse`](Self::parse) does, with options for the functions that are read later.
    pub fn parse_with(data: &'data [u8], options: &SampleReadOptions) -> Result<Self> {
        let cursor = &mut Cursor::new(data, 0, Endian::Little);
        let newest = if options.llvm_checks {
            VERSION
        } else {
            VERSION_NEWEST
        };
        let versions: Vec<u64> = (VERSION..=newest).collect();
        let version = header::expect(cursor, EXT_BINARY, &versions)?;
        let mut sections = sections::read_table(cursor)?;
        if options.llvm_checks {
            for section in &mut sections {
                section.kind &= u64::from(u32::MAX);
            }
        }
        Ok(ExtBinaryProfile {
            data,
            version,
            sections,
            options: *options,
        })
    }

    /// The version of the file: 103, 104 or 105. LLVM writes the versions 104 and 105 after release 23, and only on
    /// request.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the entries of the file's section table.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the bytes of a section. The bytes of a compressed section are decompressed.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the section is outside the file, [`ErrorKind::UncompressFailed`] if it cannot be
    /// decompressed, [`ErrorKind::LimitExceeded`] if the decompressed section would be too large.
    pub fn contents(&self, section: &Section) -> Result<Cow<'data, [u8]>> {
        self.bytes(section).map(|(bytes, _)| bytes)
    }

    /// Returns the bytes of a section, and the offset of the first byte in the file. The offset is 0 if the section is
    /// compressed.
    pub(super) fn bytes(&self, section: &Section) -> Result<(Cow<'data, [u8]>, u64)> {
        sections::contents(self.data, section, self.options.llvm_checks)
    }

    /// Returns the kind of the profile, which follows from the flags of the sections.
    pub fn kind(&self) -> ProfileKind {
        let facts = [
            (section::SUMMARY, flag::PARTIAL, ProfileKind::PARTIAL),
            (
                section::SUMMARY,
                flag::CONTEXT_SENSITIVE,
                ProfileKind::CONTEXT_SENSITIVE,
            ),
            (
                section::SUMMARY,
                flag::FS_DISCRIMINATORS,
                ProfileKind::FS_DISCRIMINATORS,
            ),
            (
                section::SUMMARY,
                flag::PRE_INLINED,
                ProfileKind::PRE_INLINED,
            ),
            (section::SUMMARY, flag::VTABLES, ProfileKind::HAS_VTABLES),
            (section::NAMES, flag::MD5_NAMES, ProfileKind::MD5_NAMES),
            (
                section::NAMES,
                flag::FIXED_MD5_NAMES,
                ProfileKind::MD5_NAMES,
            ),
            (
                section::METADATA,
                flag::PROBE_BASED,
                ProfileKind::PROBE_BASED,
            ),
            (
                section::METADATA,
                flag::ATTRIBUTES,
                ProfileKind::HAS_ATTRIBUTES,
            ),
        ];
        let mut kind = ProfileKind::NONE;
        for section in self.sections.iter().filter(|section| section.size != 0) {
            for &(of, flags, means) in &facts {
                if section.kind == of && section.has(flags) {
                    kind |= means;
                }
            }
        }
        kind
    }

    /// Adds all functions of the file to `profile`, each count times `weight`. Also adds the symbol list of the file.
    pub fn read(&self, profile: &mut SampleProfile, weight: u64) -> ReadReport {
        let mut report = ReadReport {
            kind: self.kind(),
            ..ReadReport::default()
        };
        profile.kind |= report.kind;
        if self.options.llvm_checks {
            self.check_passed_over(&mut report);
        }
        self.read_summary(&mut report);
        self.read_symbols(profile, &mut report);
        self.check_samples(&mut report);
        self.with_tables(&mut report, |tables, report| {
            let mut additions = profile.additions();
            let mut mapping = if tables.are_names_contexts {
                Mapping::new(tables.names, tables.names_section)
            } else {
                Mapping::of_all(tables.names, tables.names_section, additions.names())
            };
            for (section, offsets) in self.sample_sections() {
                self.read_section(
                    section,
                    offsets,
                    tables,
                    &mut mapping,
                    &mut additions,
                    weight,
                    report,
                );
            }
            tables.composite.report(report);
        });
        report
    }

    /// Reports sections with samples in a form that this reader does not support, so that the user learns of the loss.
    fn check_samples(&self, report: &mut ReadReport) {
        for section in self.sections.iter().filter(|section| section.size != 0) {
            let early = section.kind == section::COMPOSITE && self.version < VERSION_COMPOSITE;
            let unknown = section.kind > section::COMPOSITE;
            if self.options.llvm_checks || !early && !unknown {
                continue;
            }
            let error = if early {
                Error::new(ErrorKind::UnsupportedVersion, "the samples of the composite section were left out, because the version of the file does not allow this section")
                .found(format_args!("version {}", self.version))
                .expected(format_args!("version {VERSION_COMPOSITE}"))
            } else {
                Error::new(ErrorKind::Unsupported, "a section has samples of an unknown form; they were left out")
                .found(format_args!("section kind {}", section.kind))
                .expected(format_args!("{} or {}", section::SAMPLES, section::COMPOSITE))
                .with_hint("convert the file to text with the LLVM release that wrote it: llvm-profdata merge --sample --text")
            };
            report.fault(error.at(section.offset).within(Structure::SectionTable));
        }
    }

    /// Finds out whether the total samples or the head samples come first in the blocks of composite sections. If the
    /// samples do not show the order, reports an error. `vtables` states whether the file has vtables.
    fn composite_findings(&self, vtables: bool, report: &mut ReadReport) -> Findings {
        let mut evidence = Evidence::default();
        let mut first = None;
        for (section, _) in self.sample_sections() {
            if section.kind != section::COMPOSITE {
                continue;
            }
            // An error in the section is reported when its functions are read.
            if let Ok((bytes, base)) = self.bytes(section) {
                evidence.gather(Cursor::new(&bytes, base, Endian::Little), vtables);
                first.get_or_insert(section.offset);
            }
        }
        let (order, is_certain) = evidence.decide();
        if let Some(at) = first.filter(|_| !is_certain) {
            report.fault(composite::uncertain_order(at, order));
        }
        Findings::new(order)
    }

    /// Adds only the functions with these names to `profile`. In a context-sensitive profile, all calling contexts of
    /// these functions are added. If the file has a table of offsets, other functions are not decoded.
    pub fn read_functions(&self, wanted: &[&[u8]], profile: &mut SampleProfile) -> ReadReport {
        let mut report = ReadReport {
            kind: self.kind(),
            ..ReadReport::default()
        };
        profile.kind |= report.kind;
        self.check_samples(&mut report);
        self.with_tables(&mut report, |tables, report| {
            let found = wanted
                .iter()
                .filter_map(|name| tables.names.find(name, tables.names_section));
            let mut numbers: Vec<u64> = found.map(|number| number as u64).collect();
            if let Some(contexts) = &tables.contexts {
                numbers = contexts.of_leaves(&numbers);
            } else if tables.are_names_contexts {
                numbers.extend(tables.spelled_contexts_of(wanted));
            }
            numbers.sort_unstable();
            let mut mapping = Mapping::new(tables.names, tables.names_section);
            let mut additions = profile.additions();
            for (section, offsets) in self.sample_sections() {
                let (bytes, base) = match self.bytes(section) {
                    Ok(contents) => contents,
                    Err(error) => {
                        report.fault(error);
                        continue;
                    }
                };
                let whole = Cursor::new(&bytes, base, Endian::Little);
                let is_wanted = |number: u64| numbers.binary_search(&number).is_ok();
                // If the table of offsets is missing or damaged, every function is read.
                let starts = self.offsets(offsets, tables, bytes.len(), report);
                let starts = starts.map(|offsets| {
                    let wanted = offsets.into_iter().filter(|&(number, _)| is_wanted(number));
                    let mut starts: Vec<u64> = wanted.map(|(_, offset)| offset).collect();
                    starts.sort_unstable();
                    starts
                });
                let mut starts = starts.map(Vec::into_iter);
                let mut function = FlatFunction::default();
                let mut cursor = whole;
                loop {
                    if let Some(starts) = &mut starts {
                        let Some(start) = starts.next() else { break };
                        // Functions must not overlap. If they could, a malicious file could make the reader decode the
                        // same bytes very often.
                        if base + start < cursor.offset() {
                            let error = ErrorKind::Malformed
                                .error("a function's offset lies within the function before it");
                            report.fault(error.at(base + start).within(section.structure()));
                            continue;
                        }
                        cursor = whole;
                        if let Err(error) = cursor.window(start) {
                            report.fault(error.within(section.structure()));
                            break;
                        }
                    } else if cursor.is_empty() {
                        break;
                    }
                    let is_composite = section.kind == section::COMPOSITE;
                    let mut head = cursor;
                    let number = head.uleb128();
                    let number = number.and_then(|first| {
                        if is_composite {
                            Ok(first)
                        } else {
                            head.uleb128()
                        }
                    });
                    let names = additions.names();
                    let map = &mut mapping;
                    let read = tables.function(
                        is_composite,
                        &mut cursor,
                        &mut function,
                        map,
                        names,
                        report,
                    );
                    match (read, number) {
                        (Ok(()), Ok(number)) if starts.is_some() || is_wanted(number) => {
                            additions.add(&function, 1, &mut report.outcome);
                            report.functions += 1;
                        }
                        (Ok(()), _) => {}
                        (Err(error), _) => {
                            report.fault(error.within(section.structure()));
                            if starts.is_none() {
                                break;
                            }
                        }
                    }
                }
            }
        });
        report
    }

    /// Reports an error for each compressed section that is not needed and cannot be decompressed, because LLVM
    /// decompresses all sections.
    fn check_passed_over(&self, report: &mut ReadReport) {
        for section in &self.sections {
            let skipped = !section.is_known()
                || matches!(
                    section.kind,
                    section::FUNCTION_OFFSETS | section::COMPOSITE_OFFSETS | section::COMPOSITE
                );
            if skipped
                && section.has(flag::COMPRESSED)
                && let Err(error) = self.contents(section)
            {
                report.fault(error);
            }
        }
    }

    /// Fails if a section has bytes after its last item. Never fails without the option `llvm_checks`.
    fn check_end(&self, cursor: &Cursor<'_>) -> Result<()> {
        if cursor.is_empty() || !self.options.llvm_checks {
            return Ok(());
        }
        let error = ErrorKind::Malformed.error("a section has bytes after its last item");
        Err(error.at(cursor.offset()).found(cursor.remaining()))
    }

    /// Whether the file has the form of LLVM 10 to 13: calling contexts are text in the name table, and the metadata of
    /// inlined functions are missing. Files of LLVM 14 or later differ: each has a section of contexts, or sections
    /// with the flag for functions without inlined functions (`FLAT`).
    fn is_llvm_13(&self) -> bool {
        !self
            .sections
            .iter()
            .any(|section| section.kind == section::CONTEXTS || section.has(flag::FLAT))
    }

    fn first(&self, kind: u64) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.kind == kind && section.size != 0)
    }

    /// Returns the name table; `None` if there is none. LLVM reads the sections in the order of the section table. If
    /// several name tables precede the samples, each replaces the one before it, so the last one is used. A name table
    /// after the samples is used only if no name table precedes the samples.
    fn name_table(&self) -> Option<&Section> {
        let is_samples = |section: &Section| self.is_samples(section);
        let samples = self.sections.iter().position(is_samples);
        let before = self
            .sections
            .get(..samples.unwrap_or(self.sections.len()))?;
        let is_table = |section: &&Section| section.kind == section::NAMES && section.size != 0;
        before
            .iter()
            .rfind(is_table)
            .or_else(|| self.sections.iter().find(is_table))
    }

    /// Whether a section contains samples in a form that this reader supports. Composite sections are valid only from
    /// version 105 on.
    fn is_samples(&self, section: &Section) -> bool {
        section.kind == section::SAMPLES
            || section.kind == section::COMPOSITE && self.version >= VERSION_COMPOSITE
    }

    /// Returns the sections with samples. Each comes with its table of offsets, or with `None` if it has no such table.
    /// A table of offsets belongs to the next section of samples after it. Composite sections have a different kind of
    /// table.
    fn sample_sections(&self) -> impl Iterator<Item = (&Section, Option<&Section>)> {
        let (mut offsets, mut composite) = (None, None);
        self.sections.iter().filter_map(move |section| {
            match section.kind {
                section::FUNCTION_OFFSETS => offsets = Some(section),
                section::COMPOSITE_OFFSETS => composite = Some(section),
                _ => {}
            }
            let table = match section.kind {
                section::COMPOSITE => &mut composite,
                _ => &mut offsets,
            };
            (self.is_samples(section) && section.size != 0).then(|| (section, table.take()))
        })
    }

    fn read_summary(&self, report: &mut ReadReport) {
        let Some(section) = self.first(section::SUMMARY) else {
            return;
        };
        let summary = self.bytes(section).and_then(|(bytes, base)| {
            let cursor = &mut Cursor::new(&bytes, base, Endian::Little);
            numbers::summary(cursor)
                .and_then(|summary| self.check_end(cursor).map(|()| summary))
                .map_err(|error| error.within(section.structure()))
        });
        match summary {
            Ok(summary) => report.summary = Some(summary),
            Err(error) => report.fault(error),
        }
    }

    fn read_symbols(&self, profile: &mut SampleProfile, report: &mut ReadReport) {
        let Some(section) = self.first(section::SYMBOLS) else {
            return;
        };
        let most = self.options.symbols.unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self.bytes(section) {
            // LLVM 22 does not know symbol lists of hashes. With `llvm_checks`, the hashes are therefore read as names
            // by the code that follows.
            Ok((bytes, base)) if section.has(flag::MD5_SYMBOLS) && !self.options.llvm_checks => {
                let cursor = Cursor::new(&bytes, base, Endian::Little);
                let mut left = most;
                let read = eytzinger::read_symbols(cursor, |hash| {
                    if left > 0 && profile.symbol_hashes.insert(hash) {
                        left -= 1;
                    }
                });
                if let Err(error) = read {
                    report.fault(error.within(section.structure()));
                }
            }
            Ok((bytes, base)) => {
                let end = memchr::memrchr(0, &bytes).map_or(0, |last| last + 1);
                let whole = bytes.get(..end).unwrap_or_default();
                for name in whole
                    .split(|&byte| byte == 0)
                    .filter(|name| !name.is_empty())
                    .take(most)
                {
                    if !profile.symbols.contains(name) {
                        profile.symbols.insert(name.into());
                    }
                }
                if end != bytes.len() {
                    report.fault(
                        ErrorKind::Truncated
                            .error("the last name is not terminated")
                            .at(base + end as u64)
                            .within(section.structure())
                            .expected("a zero byte"),
                    );
                }
            }
            Err(error) => report.fault(error),
        }
    }

    /// Reads the tables that are needed to decode functions, and calls `then` with them. Errors are reported, and the
    /// intact part of each table is used.
    pub(super) fn with_tables(
        &self,
        report: &mut ReadReport,
        then: impl FnOnce(&Tables<'_>, &mut ReadReport),
    ) {
        let mut names = NameTable::default();
        let mut names_section = Cow::Borrowed(&[][..]);
        let mut spans = None;
        if let Some(section) = self.name_table() {
            match self.bytes(section) {
                Ok((bytes, base)) => {
                    names_section = bytes;
                    let cursor = &mut Cursor::new(&names_section, base, Endian::Little);
                    let fixed = section.has(flag::FIXED_MD5_NAMES);
                    // LLVM 22 does not know the flag for Eytzinger order, and reads a table with this flag as a plain
                    // table of hashes.
                    let sorted = section.has(flag::EYTZINGER_NAMES) && !self.options.llvm_checks;
                    let read = if sorted {
                        eytzinger::read_names(cursor, &mut names).map(|found| spans = Some(found))
                    } else if fixed || section.has(flag::MD5_NAMES) {
                        names.read_md5(cursor, fixed)
                    } else {
                        names.read_plain(cursor, base)
                    };
                    if let Err(error) = read.and_then(|()| self.check_end(cursor)) {
                        report.fault(error.within(section.structure()));
                    }
                }
                Err(error) => report.fault(error),
            }
        } else if !self.options.llvm_checks
            && self.sections.iter().any(|section| !section.is_known())
        {
            report.fault(
                Error::new(ErrorKind::Unsupported, "the file has no name table, but has sections of an unknown kind")
                .at(10)
                .within(Structure::SectionTable)
                .found(format_args!("version {}", self.version))
                .with_hint(
                    "convert the file to text with the LLVM release that wrote it: llvm-profdata merge --sample --text",
                ),
            );
        }
        let kind = report.kind;
        let mut contexts = None;
        let is_cs = kind.contains(ProfileKind::CONTEXT_SENSITIVE);
        // LLVM 22 does not recognise files of LLVM 13. Files of LLVM 13 with calling contexts are nevertheless read
        // correctly here, even with `llvm_checks`.
        let is_llvm_13 = self.is_llvm_13() && (is_cs || !self.options.llvm_checks);
        // LLVM also reads the section of contexts of a profile whose flags state that it has no contexts.
        if (is_cs || self.options.llvm_checks) && !is_llvm_13 {
            let mut table = Contexts::default();
            if let Some(section) = self.first(section::CONTEXTS) {
                let read = self.bytes(section).and_then(|(bytes, base)| {
                    let cursor = &mut Cursor::new(&bytes, base, Endian::Little);
                    table
                        .read(cursor, names.len())
                        .and_then(|()| self.check_end(cursor))
                        .map_err(|error| error.within(section.structure()))
                });
                if let Err(error) = read {
                    report.fault(error);
                }
            }
            contexts = is_cs.then_some(table);
        }
        let metadata_section = self.first(section::METADATA).map(|section| {
            let contents = self.bytes(section);
            (section, contents)
        });
        let mut metadata = Metadata::default();
        match &metadata_section {
            Some((section, Ok((bytes, base)))) => {
                let shape = Shape {
                    has_checksums: section.has(flag::PROBE_BASED),
                    has_attributes: section.has(flag::ATTRIBUTES),
                    is_nested: !is_cs && !is_llvm_13,
                    needs_samples: !self.options.llvm_checks,
                    may_end_after_name: self.options.llvm_checks,
                    functions: self.options.llvm_checks.then(|| {
                        let contexts = contexts.as_ref().map(Contexts::len);
                        contexts.unwrap_or(names.len())
                    }),
                };
                let cursor = Cursor::new(bytes, *base, Endian::Little);
                if let Err(error) = metadata.read(cursor, shape) {
                    report.fault(error.within(section.structure()));
                }
            }
            Some((_, Err(error))) => report.fault(error.clone()),
            None => {}
        }
        let vtables = kind.contains(ProfileKind::HAS_VTABLES);
        let tables = Tables {
            names: &names,
            names_section: &names_section,
            spans,
            contexts,
            are_names_contexts: is_cs && is_llvm_13,
            metadata,
            vtables,
            mask: self.options.mask(kind),
            composite: self.composite_findings(vtables, report),
        };
        then(&tables, report);
    }

    /// Reads the table of offsets. For each function, the table has the index of the function's name or calling
    /// context, and the offset of the function from the start of the samples. This offset must be below `samples`, the
    /// length of the samples. Returns `None` if the table is missing or damaged.
    fn offsets(
        &self,
        section: Option<&Section>,
        tables: &Tables<'_>,
        samples: usize,
        report: &mut ReadReport,
    ) -> Option<Vec<(u64, u64)>> {
        let section = section?;
        let read = || -> Result<Vec<(u64, u64)>> {
            let (bytes, base) = self.bytes(section)?;
            let cursor = &mut Cursor::new(&bytes, base, Endian::Little);
            if section.has(flag::EYTZINGER_OFFSETS) {
                return eytzinger::read_offsets(section, *cursor, tables.spans, samples)
                    .map_err(|error| error.within(section.structure()));
            }
            let mut read = || -> Result<Vec<(u64, u64)>> {
                let count = numbers::count(
                    cursor,
                    2,
                    "the function table claims more functions than the bytes left can hold",
                )?;
                let mut offsets = Vec::with_capacity(count);
                for _ in 0..count {
                    let number = cursor.uleb128()?;
                    let at = cursor.offset();
                    let offset = cursor.uleb128()?;
                    if offset >= samples as u64 {
                        return Err(eytzinger::beyond_samples(at, offset, samples));
                    }
                    offsets.push((number, offset));
                }
                Ok(offsets)
            };
            read().map_err(|error| error.within(section.structure()))
        };
        match read() {
            Ok(offsets) => Some(offsets),
            Err(error) => {
                report.fault(error);
                None
            }
        }
    }

    /// Reads one section of samples. After a damaged function, reading continues at the next function in the table of
    /// offsets.
    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments are the state of one loop"
    )]
    fn read_section(
        &self,
        section: &Section,
        offsets: Option<&Section>,
        tables: &Tables<'_>,
        mapping: &mut Mapping<'_>,
        additions: &mut Additions<'_>,
        weight: u64,
        report: &mut ReadReport,
    ) {
        let (bytes, base) = match self.bytes(section) {
            Ok(contents) => contents,
            Err(error) => return report.fault(error),
        };
        let whole = Cursor::new(&bytes, base, Endian::Little);
        let is_plain = section.kind == section::SAMPLES
            && tables.contexts.is_none()
            && !tables.are_names_contexts;
        // A damaged table of offsets is reported where it is needed.
        if is_plain
            && additions.has_functions()
            && let Some(table) =
                self.offsets(offsets, tables, bytes.len(), &mut ReadReport::default())
            && in_order::add(
                whole,
                section.structure(),
                table,
                tables,
                mapping,
                additions,
                weight,
                report,
            )
        {
            return;
        }
        let mut cursor = whole;
        let mut function = FlatFunction::default();
        let mut starts: Option<Vec<u64>> = None;
        // Limits the number of bytes of damaged functions that are decoded. Each damaged function may extend to the end
        // of the section. Without the limit, the same bytes could be decoded once per function.
        let mut fuel = bytes.len().saturating_mul(SAMPLE_REREADS) as u64;
        while !cursor.is_empty() {
            let start = cursor.offset() - base;
            let names = additions.names();
            let is_composite = section.kind == section::COMPOSITE;
            let function = &mut function;
            match tables.function(is_composite, &mut cursor, function, mapping, names, report) {
                Ok(()) => {
                    additions.add(function, weight, &mut report.outcome);
                    report.functions += 1;
                }
                Err(error) => {
                    report.fault(
                        error
                            .within(Structure::FunctionAt(start))
                            .within(section.structure()),
                    );
                    let spent = cursor.offset().saturating_sub(base + start);
                    fuel = fuel.saturating_sub(spent);
                    if fuel == 0 {
                        return report.fault(
                            ErrorKind::LimitExceeded
                                .error("damaged functions overlap")
                                .at(base + start)
                                .within(section.structure()),
                        );
                    }
                    let starts = starts.get_or_insert_with(|| {
                        let offsets = self.offsets(offsets, tables, bytes.len(), report);
                        let mut starts: Vec<u64> = offsets
                            .unwrap_or_default()
                            .into_iter()
                            .map(|(_, offset)| offset)
                            .collect();
                        starts.sort_unstable();
                        starts
                    });
                    let next = starts.partition_point(|&offset| offset <= start);
                    let Some(&next) = starts.get(next) else {
                        return;
                    };
                    cursor = whole;
                    if cursor.window(next).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
