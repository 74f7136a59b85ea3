//! Reads the function records and names of a program from DWARF. LLVM describes a function's counters as a variable
//! `__profc_…` inside the function, with the annotations `Function Name`, `CFG Hash` and `Num Counters`.
use super::{Correlated, CorrelationWarning, CorrelationWarnings, CounterSection, machine};
use crate::binary::{BinaryFile, damaged};
use crate::debug_files::{dwo_file, dwp_file};
use gimli::{
    Abbreviation, AttributeValue, DebugInfoOffset, DwTag, Dwarf, DwarfPackageSections,
    DwarfSections, EndianSlice, Operation, RunTimeEndian, SectionId, Unit, UnitOffset, UnitRef,
};
use object::{Object, ObjectSection, ReadRef};
use profkit_data::bytes::Endian;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::{MetadataRecord, PointerWidth, ProgramMetadata};
use profkit_data::names::NAME_SEPARATOR;
use profkit_data::numbers::plural;
use profkit_data::{Error, ErrorKind, Result, Structure};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::path::Path;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The DWARF tag of LLVM's annotations (`llvm/include/llvm/BinaryFormat/Dwarf.def`).
const DW_TAG_LLVM_ANNOTATION: DwTag = DwTag(0x6000);
/// The prefix of the names of counter variables (`getInstrProfCountersVarPrefix`).
const COUNTERS_PREFIX: &[u8] = b"__profc_";
const FUNCTION_NAME: &[u8] = b"Function Name";
const CFG_HASH: &[u8] = b"CFG Hash";
const NUM_COUNTERS: &[u8] = b"Num Counters";

/// The largest accepted ratio between the decompressed and the compressed size of a debug section. The ratio of real
/// debug info is far smaller with zlib and with Zstandard.
const INFLATE_RATIO: u64 = 256;
/// The decompressed size in bytes that is always accepted, whatever the ratio.
const INFLATE_FLOOR: u64 = 1 << 20;
/// The largest number of references (`DW_AT_specification`, `DW_AT_abstract_origin`) that are followed from one entry
/// to the next.
const MOST_ORIGINS: usize = 16;

/// An instrumented function, as debug info describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The PGO name of the function.
    pub function_name: Vec<u8>,
    /// The linkage name of the function, or its plain name if it has no linkage name. `None` if neither is known, or if
    /// [`details`](DwarfOptions::details) is off.
    pub linkage_name: Option<Vec<u8>>,
    /// The control-flow hash of the function.
    pub cfg_hash: u64,
    /// The offset of the function's counters in the counter section, in bytes.
    pub counter_offset: u64,
    /// The number of counters of the function.
    pub num_counters: u32,
    /// The address of the function; `None` if it is not known.
    pub address: Option<u64>,
    /// The source file that declares the function. The path is as it was given to the compiler. `None` if it is not
    /// known, or if [`details`](DwarfOptions::details) is off.
    pub file: Option<Vec<u8>>,
    /// The line of the function's declaration. `None` if it is not known, or if [`details`](DwarfOptions::details) is
    /// off.
    pub line: Option<u64>,
}

/// Options for searching instrumented functions in debug info.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DwarfOptions<'a> {
    /// Whether linkage names, files and lines are read too.
    pub details: bool,
    /// The path of the program, beside which the program's `.dwp` and `.dwo` files are searched. `None` means that
    /// split debug info is not read, as in LLVM.
    pub split: Option<&'a Path>,
}

impl<'a> DwarfOptions<'a> {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether linkage names, files and lines are read; see [`details`](Self::details).
    #[must_use]
    pub fn details(mut self, details: bool) -> Self {
        self.details = details;
        self
    }

    /// Sets the path of the program for searching split debug info; see [`split`](Self::split).
    #[must_use]
    pub fn split(mut self, program: Option<&'a Path>) -> Self {
        self.split = program;
        self
    }
}

/// Reads the function records and names of a program from debug info, as LLVM's `DwarfInstrProfCorrelator` does. If the
/// same counters are described several times, the first description is kept. `counters` is the counter section of the
/// program; a separate debug file describes this section too.
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if no counters are described; [`ErrorKind::Malformed`] if the debug info is damaged
/// before the first description.
pub fn correlate<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    counters: CounterSection,
    options: DwarfOptions<'_>,
    warnings: CorrelationWarnings,
) -> Result<Correlated> {
    let (endian, width) = machine(image);
    let (probes, warnings) = probes(image, counters, options, warnings)?;
    let mut program = ProgramMetadata {
        endian: Some(endian),
        width: Some(width),
        ..ProgramMetadata::default()
    };
    let mut seen = FxHashSet::default();
    let mut names = Vec::new();
    for probe in probes {
        if !seen.insert(probe.counter_offset) {
            continue;
        }
        program.records.push(MetadataRecord {
            name_ref: NameRef::of(&probe.function_name),
            func_hash: FuncHash(probe.cfg_hash),
            counter_offset: probe.counter_offset,
            function_pointer: probe.address.unwrap_or(0),
            num_counters: probe.num_counters,
        });
        if !names.is_empty() {
            names.push(NAME_SEPARATOR);
        }
        names.extend_from_slice(&probe.function_name);
    }
    // The names are written as one chunk that is not compressed.
    leb128(names.len() as u64, &mut program.names);
    leb128(0, &mut program.names);
    program.names.extend_from_slice(&names);
    Ok(Correlated { program, warnings })
}

/// Returns all functions whose counters are described, in the order of the debug info.
///
/// # Errors
/// The same as [`correlate`].
pub fn probes<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    counters: CounterSection,
    options: DwarfOptions<'_>,
    warnings: CorrelationWarnings,
) -> Result<(Vec<Probe>, CorrelationWarnings)> {
    let (endian, width) = machine(image);
    if !has_debug_info(image) {
        return Err(no_debug_info());
    }
    let endian = match endian {
        Endian::Little => RunTimeEndian::Little,
        Endian::Big => RunTimeEndian::Big,
    };
    let sections = DwarfSections::load(|id| load(image, id))?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let package = match options.split.and_then(dwp_file) {
        Some(path) => BinaryFile::open(&path).ok(),
        None => None,
    };
    let mut walk = Walk {
        counters,
        width,
        endian,
        options,
        warnings,
        probes: Vec::new(),
        missing: Vec::new(),
    };
    let walked = walk.units(&dwarf, &sections, package.as_ref());
    if walk.probes.is_empty() {
        walked.map_err(|error| bad_dwarf(&error))?;
        return Err(walk.nothing_found());
    }
    if let Err(error) = walked {
        walk.warnings.push(CorrelationWarning::Damaged {
            functions: walk.probes.len(),
            reason: error.to_string(),
        });
    }
    Ok((walk.probes, walk.warnings))
}

/// Whether an object file has debug info of any kind.
pub fn has_debug_info<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> bool {
    // After a file was split by `--only-keep-debug`, each of the two files still lists the sections of the other file,
    // but these sections are empty.
    let section = image.section_by_name(".debug_info");
    section.is_some_and(|section| section.size() > 0)
}

#[cold]
fn no_debug_info() -> Error {
    Error::new(ErrorKind::CannotCorrelate, "the binary has no debug info")
        .llvm_detail("could not find any profile data metadata in correlated file")
        .with_hint("the binary was stripped, or built without -g: give its debug file with --binaries, or the folder of debug files with --debug-file-directory")
}

/// Returns the decompressed contents of a section; empty if there is no such section.
fn load<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    id: SectionId,
) -> Result<Cow<'data, [u8]>> {
    load_named(image, id.name())
}

fn load_named<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    name: &str,
) -> Result<Cow<'data, [u8]>> {
    let Some(section) = image.section_by_name(name) else {
        return Ok(Cow::Borrowed(&[]));
    };
    let compressed = section.compressed_data().map_err(|error| damaged(&error))?;
    let len = compressed.data.len() as u64;
    let most = len.saturating_mul(INFLATE_RATIO).max(INFLATE_FLOOR);
    if compressed.uncompressed_size > most.max(len) {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            "a compressed section claims to be too large",
        )
        .within(Structure::NamedSection(name.to_owned().into()))
        .found(format_args!("{} bytes", compressed.uncompressed_size))
        .expected(format_args!("at most {most}"))
        .with_hint("the file is damaged: build it again"));
    }
    compressed.decompress().map_err(|error| damaged(&error))
}

#[cold]
fn bad_dwarf(error: &gimli::Error) -> Error {
    Error::new(
        ErrorKind::Malformed,
        format!("the debug info cannot be read: {error}"),
    )
    .within(Structure::Dwarf)
    .with_hint("build the program again, or give another copy of its debug info")
}

fn leb128(mut value: u64, out: &mut Vec<u8>) {
    loop {
        #[allow(clippy::cast_possible_truncation, reason = "the value has seven bits")]
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

struct Walk<'a> {
    counters: CounterSection,
    width: PointerWidth,
    endian: RunTimeEndian,
    options: DwarfOptions<'a>,
    warnings: CorrelationWarnings,
    probes: Vec<Probe>,
    /// The names of the `.dwo` files that were not found.
    missing: Vec<String>,
}

/// The function whose child entries are being read.
#[derive(Clone, Copy)]
struct Function {
    offset: UnitOffset,
    low_pc: Option<u64>,
}

/// The counter variable whose annotations are being read.
#[derive(Default)]
struct Variable {
    depth: isize,
    name: Option<Vec<u8>>,
    hash: Option<u64>,
    counters: Option<u64>,
    count: Option<u64>,
}

impl Walk<'_> {
    fn units(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        sections: &DwarfSections<Cow<'_, [u8]>>,
        package: Option<&BinaryFile>,
    ) -> gimli::Result<()> {
        let mut headers = dwarf.units();
        let mut first_error = None;
        let mut skeletons = Vec::new();
        while let Some(header) = headers.next()? {
            let offset = header.debug_info_offset();
            let walked = dwarf.unit(header).and_then(|unit| {
                if unit.dwo_id.is_some() && self.options.split.is_some() {
                    skeletons.extend(offset);
                }
                self.unit(&unit.unit_ref(dwarf))
            });
            // If one compile unit is damaged, the other units are still read.
            if let Err(error) = walked {
                first_error.get_or_insert(error);
            }
        }
        for offset in skeletons {
            if let Err(error) = self.split_unit(sections, offset, package) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Reads the split unit that a skeleton unit refers to.
    #[allow(
        clippy::needless_late_init,
        reason = "the reader borrows these data, so they are declared before it and dropped after it"
    )]
    fn split_unit(
        &mut self,
        sections: &DwarfSections<Cow<'_, [u8]>>,
        offset: DebugInfoOffset,
        package: Option<&BinaryFile>,
    ) -> gimli::Result<()> {
        let endian = self.endian;
        // The sections are borrowed again for each unit. The reason is a lifetime: the reader of a unit may also borrow
        // the data of a `.dwo` or `.dwp` file, which are dropped at the end of this function.
        let split;
        let packed;
        let split_file;
        let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
        let skeleton = dwarf.unit(dwarf.debug_info.header_from_offset(offset)?)?;
        let skeleton = skeleton.unit_ref(&dwarf);
        let (Some(program), Some(id)) = (self.options.split, skeleton.dwo_id) else {
            return Ok(());
        };
        if let Some(package) = package
            && let Ok(image) = package.image(|_| true)
        {
            packed = DwarfPackageSections::load(|id| {
                load_dwo(&image, id).map_err(|_| gimli::Error::Io)
            })?;
            let empty = EndianSlice::new(&[], endian);
            let package = packed.borrow(|section| EndianSlice::new(section, endian), empty)?;
            if let Some(dwo) = package.find_cu(id, &dwarf)? {
                return self.split_units(&dwo, &skeleton);
            }
        }
        let Some(name) = skeleton.dwo_name()? else {
            return Ok(());
        };
        let name = skeleton.attr_string(name)?;
        let folder = skeleton.comp_dir.map_or(&[][..], |folder| folder.slice());
        let file = dwo_file(program, folder, name.slice());
        let Some(file) = file.and_then(|path| BinaryFile::open(&path).ok()) else {
            let name = String::from_utf8_lossy(name.slice()).into_owned();
            self.missing.push(name);
            return Ok(());
        };
        split_file = file;
        let Ok(image) = split_file.image(|_| true) else {
            return Ok(());
        };
        split = DwarfSections::load(|id| load_dwo(&image, id).map_err(|_| gimli::Error::Io))?;
        let mut dwo = split.borrow(|section| EndianSlice::new(section, endian));
        dwo.make_dwo(&dwarf);
        self.split_units(&dwo, &skeleton)
    }

    fn split_units<'d>(
        &mut self,
        dwo: &Dwarf<Slice<'d>>,
        skeleton: &UnitRef<'_, Slice<'d>>,
    ) -> gimli::Result<()> {
        let mut headers = dwo.units();
        while let Some(header) = headers.next()? {
            let mut unit: Unit<_> = dwo.unit(header)?;
            // The `.dwo` file has the right name, but belongs to another build.
            if unit.dwo_id != skeleton.dwo_id {
                continue;
            }
            unit.copy_relocated_attributes(skeleton.unit);
            self.unit(&unit.unit_ref(dwo))?;
        }
        Ok(())
    }

    fn unit(&mut self, unit: &UnitRef<'_, Slice<'_>>) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        // The functions that enclose the current entry: for each depth in the tree of entries, the function at this
        // depth, or `None` if the entry there is no function.
        let mut functions: Vec<Option<Function>> = Vec::new();
        let mut variable: Option<(Function, Variable)> = None;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset();
            if let Some((function, open)) = variable.take_if(|(_, open)| depth <= open.depth) {
                self.finish(unit, function, open);
            }
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            let level = usize::try_from(depth).unwrap_or(0);
            functions.truncate(level);
            functions.resize(level, None);
            let parent = level
                .checked_sub(1)
                .and_then(|above| *functions.get(above)?);
            match abbreviation.tag() {
                gimli::DW_TAG_subprogram => {
                    let mut function = Function {
                        offset,
                        low_pc: None,
                    };
                    for &spec in abbreviation.attributes() {
                        let attribute = entries.read_attribute(spec)?;
                        if attribute.name() == gimli::DW_AT_low_pc {
                            function.low_pc = unit.attr_address(attribute.value()).ok().flatten();
                        }
                    }
                    functions.push(Some(function));
                }
                gimli::DW_TAG_variable if parent.is_some() && abbreviation.has_children() => {
                    let mut open = Variable {
                        depth,
                        ..Variable::default()
                    };
                    let mut is_counters = false;
                    for &spec in abbreviation.attributes() {
                        let attribute = entries.read_attribute(spec)?;
                        match attribute.name() {
                            gimli::DW_AT_name => {
                                let name = unit.attr_string(attribute.value());
                                is_counters =
                                    name.is_ok_and(|name| name.starts_with(COUNTERS_PREFIX));
                            }
                            gimli::DW_AT_location => {
                                open.counters = location(unit, attribute.value())
                            }
                            _ => {}
                        }
                    }
                    if let (true, Some(parent)) = (is_counters, parent) {
                        variable = Some((parent, open));
                    }
                }
                DW_TAG_LLVM_ANNOTATION => {
                    let mut name = None;
                    let mut value = None;
                    for &spec in abbreviation.attributes() {
                        let attribute = entries.read_attribute(spec)?;
                        match attribute.name() {
                            gimli::DW_AT_name => name = unit.attr_string(attribute.value()).ok(),
                            gimli::DW_AT_const_value => value = Some(attribute.value()),
                            _ => {}
                        }
                    }
                    if let (Some((_, open)), Some(name), Some(value)) = (&mut variable, name, value)
                        && depth == open.depth + 1
                    {
                        open.annotate(unit, name.slice(), value);
                    }
                }
                _ => skip(&mut entries, abbreviation)?,
            }
        }
        if let Some((function, open)) = variable {
            self.finish(unit, function, open);
        }
        Ok(())
    }

    /// Adds a counter variable. The caller has read all annotations of the variable.
    fn finish(&mut self, unit: &UnitRef<'_, Slice<'_>>, function: Function, open: Variable) {
        // If neither the function nor its counters have an address, the linker removed the function.
        if function.low_pc.is_none() && open.counters.is_none() {
            return;
        }
        let Variable {
            name,
            hash,
            counters,
            count,
            ..
        } = open;
        let (Some(name), Some(hash), Some(address), Some(count)) = (&name, hash, counters, count)
        else {
            return self.warnings.push(CorrelationWarning::Incomplete {
                function: name,
                hash,
                counters,
                count,
            });
        };
        let Some(offset) = self.counters.offset(address) else {
            return self.warnings.push(CorrelationWarning::OutOfRange {
                function: Some(name.clone()),
                counters: address,
                section: (self.counters.start, self.counters.end),
                record: 0,
            });
        };
        if function.low_pc.is_none() {
            self.warnings.push(CorrelationWarning::NoAddress {
                function: name.clone(),
            });
        }
        let mask = match self.width {
            PointerWidth::Bits32 => u64::from(u32::MAX),
            PointerWidth::Bits64 => u64::MAX,
        };
        let mut probe = Probe {
            function_name: name.clone(),
            cfg_hash: hash,
            counter_offset: offset & mask,
            // LLVM uses only the low 32 bits of the number of counters.
            num_counters: u32::try_from(count & u64::from(u32::MAX)).unwrap_or(0),
            address: function.low_pc,
            ..Probe::default()
        };
        if self.options.details {
            describe(unit, function.offset, &mut probe);
        }
        self.probes.push(probe);
    }

    #[cold]
    fn nothing_found(&self) -> Error {
        let fault = (self.missing.as_slice(), self.warnings.list.first());
        let message = match fault {
            ([], Some(_)) => "all descriptions of counters in the debug info have errors",
            _ => "the debug info describes no usable counters",
        };
        let error = Error::new(ErrorKind::CannotCorrelate, message)
            .llvm_detail("could not find any profile data metadata in correlated file");
        match fault {
            ([first, rest @ ..], _) => error
                .found(format_args!(
                    "{} missing split debug files, the first {first}",
                    rest.len() + 1
                ))
                .with_hint("keep the .dwo files where the build put them, or pack them with llvm-dwp into PROGRAM.dwp"),
            ([], Some(warning)) => error.found(format_args!(
                "{}, the first: {warning}",
                plural(self.warnings.count(), "error")
            )),
            ([], None) => error.with_hint(
                "build with -g (-gmlt is not enough) and -mllvm -profile-correlate=debug-info, and give the program before strip or its debug file",
            ),
        }
    }
}

/// Reads a section of a `.dwo` or `.dwp` file.
fn load_dwo<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    id: SectionId,
) -> Result<Cow<'data, [u8]>> {
    match id.dwo_name() {
        Some(name) => load_named(image, name),
        None => Ok(Cow::Borrowed(&[])),
    }
}

impl Variable {
    fn annotate<'d>(
        &mut self,
        unit: &UnitRef<'_, Slice<'d>>,
        name: &[u8],
        value: AttributeValue<Slice<'d>>,
    ) {
        match name {
            FUNCTION_NAME => {
                self.name = unit.attr_string(value).ok().map(|name| name.to_vec());
            }
            CFG_HASH => self.hash = unsigned(&value),
            NUM_COUNTERS => self.count = unsigned(&value),
            _ => {}
        }
    }
}

/// Reads a constant attribute, in the forms that LLVM's `getAsUnsignedConstant` accepts. `None` for other forms.
fn unsigned(value: &AttributeValue<Slice<'_>>) -> Option<u64> {
    match *value {
        AttributeValue::Sdata(value) => u64::try_from(value).ok(),
        ref value => value.udata_value(),
    }
}

/// Returns the first address in a location expression; `None` if the expression contains none.
fn location<'d>(unit: &UnitRef<'_, Slice<'d>>, value: AttributeValue<Slice<'d>>) -> Option<u64> {
    let expression = value.exprloc_value()?;
    let mut operations = expression.operations(unit.encoding());
    while let Ok(Some(operation)) = operations.next() {
        match operation {
            Operation::Address { address } => return Some(address),
            Operation::AddressIndex { index } => {
                if let Ok(address) = unit.address(index) {
                    return Some(address);
                }
            }
            _ => {}
        }
    }
    None
}

fn skip(
    entries: &mut gimli::EntriesRaw<'_, Slice<'_>>,
    abbreviation: &Abbreviation,
) -> gimli::Result<()> {
    entries.skip_attributes(abbreviation.attributes())
}

/// Reads the linkage name, file and line of a function from its entry, and from the entries that its entry refers to.
fn describe(unit: &UnitRef<'_, Slice<'_>>, offset: UnitOffset, probe: &mut Probe) {
    let mut name = None;
    let mut next = Some(offset);
    for _ in 0..MOST_ORIGINS {
        let Some(offset) = next.take() else { break };
        let Ok(entry) = unit.entry(offset) else { break };
        for attribute in entry.attrs() {
            let text = || {
                let text = unit.attr_string(attribute.value()).ok()?;
                Some(text.to_vec())
            };
            match attribute.name() {
                gimli::DW_AT_linkage_name if probe.linkage_name.is_none() => {
                    probe.linkage_name = text()
                }
                gimli::DW_AT_name if name.is_none() => name = text(),
                gimli::DW_AT_decl_line if probe.line.is_none() => {
                    probe.line = attribute.udata_value()
                }
                gimli::DW_AT_decl_file if probe.file.is_none() => {
                    probe.file = file_name(unit, attribute.udata_value());
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    if let AttributeValue::UnitRef(origin) = attribute.value() {
                        next = Some(origin);
                    }
                }
                _ => {}
            }
        }
    }
    if probe.linkage_name.is_none() {
        probe.linkage_name = name;
    }
}

/// Returns the path of a file in the line table; `None` if the table does not have the file. The folder is included
/// unless it is the compilation folder.
fn file_name(unit: &UnitRef<'_, Slice<'_>>, index: Option<u64>) -> Option<Vec<u8>> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index?)?;
    let mut name = unit.attr_string(file.path_name()).ok()?.to_vec();
    let folder = file
        .directory(header)
        .filter(|_| file.directory_index() != 0)
        .and_then(|folder| unit.attr_string(folder).ok());
    if let Some(folder) = folder
        && !name.starts_with(b"/")
        && !folder.is_empty()
    {
        let mut path = folder.to_vec();
        path.push(b'/');
        path.append(&mut name);
        name = path;
    }
    Some(name)
}
