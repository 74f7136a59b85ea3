//! Reads the function records and names of a program from DWARF. LLVM describes a function's counters as a variable
//! `__profc_…` inside the function, with the annotations `Function Name`, `CFG Hash` and `Num Counters`.
use super::{Correlated, CorrelationWarning, CorrelationWarnings, CounterSection, machine};
use crate::binary::BinaryFile;
use crate::debug_files::dwp_file;
use crate::symbolize::SplitFiles;
use crate::symbolize::files::BesideProgram;
use crate::symbolize::names::FileNumber;
use crate::symbolize::sections::{Package, Sections};
use crate::symbolize::visits::{DebugData, UnitView, UnitVisitor};
use gimli::{AttributeValue, DwTag, EndianSlice, Operation, RunTimeEndian, UnitOffset, UnitRef};
use object::{Object, ObjectSection, ReadRef};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::{MetadataRecord, PointerWidth, ProgramMetadata};
use profkit_data::names::NAME_SEPARATOR;
use profkit_data::numbers::plural;
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::FxHashSet;
use std::path::Path;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The DWARF tag of LLVM's annotations (`llvm/include/llvm/BinaryFormat/Dwarf.def`).
const DW_TAG_LLVM_ANNOTATION: DwTag = DwTag(0x6000);
/// The prefix of the names of counter variables (`getInstrProfCountersVarPrefix`).
const COUNTERS_PREFIX: &[u8] = b"__profc_";
const FUNCTION_NAME: &[u8] = b"Function Name";
const CFG_HASH: &[u8] = b"CFG Hash";
const NUM_COUNTERS: &[u8] = b"Num Counters";

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
            ..MetadataRecord::default()
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
    if !has_debug_info(image) {
        return Err(no_debug_info());
    }
    let package = options.split.and_then(dwp_file);
    let package = package.and_then(|path| BinaryFile::open(&path).ok());
    let package = package.as_ref().and_then(|file| file.image(|_| true).ok());
    let (package, damage) = match package.as_ref().map(Package::load).transpose() {
        Ok(package) => (package, None),
        Err(error) => (None, Some(error)),
    };
    let beside = options.split.map(|program| BesideProgram {
        program: program.to_owned(),
    });
    let debug = DebugData {
        sections: Sections::load(image)?,
        package,
        split_files: beside.as_ref().map(|it| it as &dyn SplitFiles),
    };
    let empty = CorrelationWarnings::new(warnings.limit());
    let (_, width) = machine(image);
    let visited = debug.visit_units(|| OfUnit {
        counters,
        width,
        details: options.details,
        warnings: empty.clone(),
        probes: Vec::new(),
    });
    let (mut probes, mut all_warnings) = (Vec::new(), warnings);
    for unit in visited.units {
        probes.extend(unit.probes);
        all_warnings.append(unit.warnings);
    }
    let damage = damage.into_iter().chain(visited.warnings).next();
    match (damage, probes.len()) {
        (Some(error), 0) => {
            Err(error.with_hint("build the program again, or give another copy of its debug info"))
        }
        (None, 0) => {
            let missing = if options.split.is_some() {
                visited.missing_split
            } else {
                Vec::new()
            };
            Err(nothing_found(&missing, &all_warnings))
        }
        (damage, functions) => {
            if let Some(error) = damage {
                all_warnings.push(CorrelationWarning::Damaged {
                    functions,
                    reason: error.to_string(),
                });
            }
            Ok((probes, all_warnings))
        }
    }
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

/// The instrumented functions in one compile unit.
struct OfUnit {
    counters: CounterSection,
    width: PointerWidth,
    details: bool,
    warnings: CorrelationWarnings,
    probes: Vec<Probe>,
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

impl UnitVisitor for OfUnit {
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()> {
        let unit = &view.unit.unit_ref(view.dwarf);
        let mut entries = unit.entries_raw(None)?;
        // The functions that enclose the current entry: for each depth in the tree of entries, the function at this
        // depth, or `None` if the entry there is no function.
        let mut functions: Vec<Option<Function>> = Vec::new();
        let mut variable: Option<(Function, Variable)> = None;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset();
            if let Some((function, open)) = variable.take_if(|(_, open)| depth <= open.depth) {
                self.finish(&view, function, open);
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
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        if let Some((function, open)) = variable {
            self.finish(&view, function, open);
        }
        Ok(())
    }
}

impl OfUnit {
    /// Adds a counter variable. The caller has read all annotations of the variable.
    fn finish(&mut self, view: &UnitView<'_, '_, '_>, function: Function, open: Variable) {
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
        if self.details {
            describe(view, function.offset, &mut probe);
        }
        self.probes.push(probe);
    }
}

#[cold]
fn nothing_found(missing: &[String], warnings: &CorrelationWarnings) -> Error {
    let fault = (missing, warnings.list.first());
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
            plural(warnings.count(), "error")
        )),
        ([], None) => error.with_hint(
            "build with -g (-gmlt is not enough) and -mllvm -profile-correlate=debug-info, and give the program before strip or its debug file",
        ),
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

/// Reads the linkage name, file and line of a function from its entry, and from the entries that its entry refers to.
fn describe(view: &UnitView<'_, '_, '_>, offset: UnitOffset, probe: &mut Probe) {
    let mut name = Vec::new();
    let named = view.names.resolve_at(offset, |text| {
        name = text.to_vec();
        0
    });
    let Some(named) = named else { return };
    probe.linkage_name = named.function.map(|_| name);
    probe.line = (named.line > 0).then_some(named.line.into());
    probe.file = named.file.and_then(|FileNumber { other, number }| {
        let (dwarf, unit) = match other {
            Some(other) => (view.dwarf, view.names.other_unit(other)?),
            None => view.files,
        };
        file_name(&unit.unit_ref(dwarf), number)
    });
}

/// Returns the path of a file in the line table; `None` if the table does not have the file. The folder is included
/// unless it is the compilation folder.
fn file_name(unit: &UnitRef<'_, Slice<'_>>, index: u64) -> Option<Vec<u8>> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
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
