//! A binary: its functions, its code, and the addresses at which its file is mapped.
use crate::code::{Code, Machine};
use crate::places::{BinaryPlaces, PAGE, Places, image_base};
use crate::probes::Sections;
use object::{
    Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind,
    SymbolSection,
};
use profkit_data::ids::NameRef;
use profkit_data::memprof::canonical_name;
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::binary::Image;
use profkit_object::bounds::named;
use profkit_object::symbolize::{DebugInfo, Options, ProgramFiles, Symbolizer};
use profkit_perf::collect::Numbering;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The symbol that a compiler adds to a program whose discriminators were set by FS-AFDO.
const FS_DISCRIMINATORS: &[u8] = b"__llvm_fs_discriminator__";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionId(usize);

#[derive(Debug)]
pub(crate) struct Function {
    pub name: Vec<u8>,
    pub ranges: Vec<(u64, u64)>,
    pub of_symbols: bool,
}

#[derive(Debug)]
pub(crate) struct FunctionRange {
    pub end: u64,
    pub function: FunctionId,
    pub is_entry: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionName {
    pub address: u64,
    pub guid: u64,
    /// The MD5 of the symbol without suffixes of parts and copies of functions, as `.cold` and `.part.0`.
    pub function: u64,
}

/// A binary with its code, its functions and its debug info.
#[derive(Debug)]
pub struct Program<'files> {
    at: BinaryPlaces,
    first_segment: u64,
    is_pe: bool,
    pub(crate) code: Code<'files>,
    pub(crate) functions: Vec<Function>,
    pub(crate) ranges: BTreeMap<u64, FunctionRange>,
    pub(crate) symbolizer: Symbolizer<'files>,
    pub(crate) fs_discriminators: bool,
    pub(crate) probes: Option<Sections<'files>>,
    symbols: Vec<FunctionName>,
    facts: Facts,
}

/// How a binary is opened.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProgramOptions {
    /// Whether the pseudo probes of the binary are ignored, so that its profile is by source line.
    pub ignore_probes: bool,
    /// Whether a binary with pseudo probes has only the functions of its debug info, and not of its symbol table.
    pub only_debug_info: bool,
}

/// How many functions were found in a binary, and how many things are missing in it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Facts {
    /// The number of functions whose entry is not known, because the symbol table has other names than the debug info.
    pub without_entry: u64,
    /// The number of functions: those in the debug info, and those from the symbol table that are used.
    pub functions: u64,
    /// The number of functions that only the symbol table has.
    pub of_symbols: u64,
    /// The number of addresses at which more than one function begins.
    pub shared_starts: u64,
    /// The number of compile units whose split debug info was not found.
    pub missing_split: u64,
    /// The errors in debug info that could not be read.
    pub warnings: Vec<Error>,
}

impl<'files> Program<'files> {
    /// Opens a binary, so that a profile can be made from its samples. The debug info and the symbols may be in a
    /// separate debug file.
    ///
    /// # Errors
    /// [`ErrorKind::MissingCorrelation`] if there is no debug info with functions, [`ErrorKind::Malformed`] if there is no
    /// code, and the errors of [`load`](Self::load).
    pub fn open(files: &'files ProgramFiles) -> Result<Self> {
        Self::open_with(files, ProgramOptions::default())
    }

    /// Opens a binary as [`open`](Self::open) does, with options.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_with(files: &'files ProgramFiles, how: ProgramOptions) -> Result<Self> {
        let program = Self::load(files, how)?;
        if program.functions.is_empty() {
            return Err(no_functions(&program.symbolizer, &program.facts));
        }
        if program.code.is_empty() {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the file has symbols or debug info, but not the code that they describe",
            )
            .with_hint("give the program itself, not its debug file"));
        }
        Ok(program)
    }

    /// Opens a binary. If it has no debug info or no code, its profiles are empty.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the instruction set is unknown, and the errors of files that are damaged.
    pub fn load(files: &'files ProgramFiles, how: ProgramOptions) -> Result<Self> {
        let image = files.program()?;
        let debug = files.debug_image()?;
        let machine = machine(&image)?;
        let mut at = BinaryPlaces::of(&image);
        let base = at.base;
        let is_pe = image_base(&image).is_some();
        let options = Options::new()
            .symbol_names(false)
            .symbols(false)
            .places(false);
        let symbolizer = files.symbolizer(&options)?;
        let mut facts = Facts::default();
        let packed_problem = files.packed_problem().cloned();
        let (mut functions, mut ranges) = functions(&symbolizer, base, &mut facts);
        facts.warnings.extend(packed_problem);
        let mut symbols = Symbols::default();
        symbols.read(&image, image.symbols())?;
        if symbols.code.is_empty()
            && let Some(debug) = &debug
        {
            symbols.read(debug, debug.symbols())?;
            at.find_kernel(debug);
            if files.has_packed_symbols() {
                symbols.read(&image, image.dynamic_symbols())?;
            }
        }
        let probes = if how.ignore_probes {
            None
        } else {
            Sections::of(&image)?
        };
        if probes.is_some() && !how.only_debug_info {
            // Probes work without debug info, so functions without debug info can have samples too.
            let known = functions.len();
            add_symbols(&mut functions, &mut ranges, &symbols);
            facts.of_symbols = (functions.len() - known) as u64;
        }
        set_entries(&functions, &mut ranges, &symbols);
        facts.functions = functions.len() as u64;
        facts.without_entry = functions
            .iter()
            .filter(|function| {
                // Functions that the linker removed or folded have no range.
                let mut starts = function.ranges.iter();
                !function.ranges.is_empty()
                    && !starts
                        .any(|(start, _)| ranges.get(start).is_some_and(|range| range.is_entry))
            })
            .count() as u64;
        let code = code(&image, machine, &symbols, &ranges)?;
        let first_segment = image
            .segments()
            .filter(|_| !is_pe)
            .map(|segment| segment.address() & !(PAGE - 1))
            .find(|&address| address != 0)
            .unwrap_or(base);
        let mut named: Vec<FunctionName> = Vec::new();
        if probes.is_some() {
            let code = symbols.code.iter();
            named.extend(code.map(|(address, name)| FunctionName {
                address: *address,
                guid: NameRef::of(name).0,
                function: NameRef::of(without_suffixes(name)).0,
            }));
            named.sort_by_key(|symbol| symbol.address);
        }
        Ok(Program {
            first_segment,
            is_pe,
            code,
            functions,
            ranges,
            symbolizer,
            fs_discriminators: symbols.fs_discriminators,
            at,
            probes,
            symbols: named,
            facts,
        })
    }

    /// Whether the program has pseudo probes.
    pub fn has_probes(&self) -> bool {
        self.probes.is_some()
    }

    pub(crate) fn symbols_at(&self, address: u64) -> impl Iterator<Item = &FunctionName> {
        let from = self.symbols.partition_point(|it| it.address < address);
        let found = self.symbols.get(from..).unwrap_or_default();
        found.iter().take_while(move |it| it.address == address)
    }

    /// The numbers of functions that were found in the binary, and of things that are missing in it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The address of the first segment with code, rounded down to a page of 4 KiB. For a PE file, the image base.
    pub fn base(&self) -> u64 {
        self.at.base
    }

    /// The segments with code in file order: offset and address, rounded down to 4 KiB. Of a PE file, the sections with
    /// code: the distance from the image base, and the address of that.
    pub fn text_segments(&self) -> impl Iterator<Item = (u64, u64)> {
        let down = |number: u64| number & !(PAGE - 1);
        self.at.places.segments.iter().map(move |segment| {
            if self.is_pe {
                return (segment.address.wrapping_sub(self.at.base), self.at.base);
            }
            (down(segment.offset), down(segment.address))
        })
    }

    /// Whether the binary is a PE file, the format of programs for Windows.
    pub fn is_pe(&self) -> bool {
        self.is_pe
    }

    /// The address of the first segment, rounded down to 4 KiB. As in llvm-profgen, the address 0 does not count.
    pub fn first_segment(&self) -> u64 {
        self.first_segment
    }

    /// The map from offsets in the file to addresses.
    pub fn places(&self) -> &Places {
        &self.at.places
    }

    /// The names of all functions that have code.
    pub fn function_names(&self) -> impl Iterator<Item = &[u8]> {
        let functions = self.functions.iter();
        let with_code = functions.filter(|function| !function.ranges.is_empty());
        with_code.map(|function| function.name.as_slice())
    }

    /// The instructions of the binary.
    pub fn code(&self) -> &Code<'files> {
        &self.code
    }

    /// Returns the address of a place in the binary.
    pub fn address(&self, numbering: Numbering, place: u64) -> Option<u64> {
        self.at.address(numbering, place)
    }

    /// Returns the range of a function's code in which an address lies; `None` if it lies in no function.
    pub(crate) fn range_at(&self, address: u64) -> Option<&FunctionRange> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some(range)
    }

    /// Returns the function whose entry is at an address; `None` if there is no such function.
    pub(crate) fn entered_at(&self, address: u64) -> Option<&Function> {
        let range = self.ranges.get(&address).filter(|range| range.is_entry)?;
        self.function(range.function)
    }

    pub(crate) fn functions_with(&self, guids: &FxHashSet<u64>) -> FxHashSet<FunctionId> {
        let functions = self.functions.iter().enumerate();
        functions
            .filter(|(_, function)| guids.contains(&NameRef::of(&function.name).0))
            .map(|(index, _)| FunctionId(index))
            .collect()
    }

    pub(crate) fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id.0)
    }
}

#[cold]
fn no_functions(symbolizer: &Symbolizer<'_>, facts: &Facts) -> Error {
    let text = match symbolizer.debug_info() {
        _ if facts.missing_split > 0 => "its split debug info was not found",
        DebugInfo::SymbolsOnly | DebugInfo::Nothing => "the binary has no debug info",
        _ => "the debug info has no function with code",
    };
    let error = Error::new(ErrorKind::MissingCorrelation, text);
    if facts.missing_split > 0 {
        error.with_hint("keep the .dwo files of the build, or PROGRAM.dwp beside the program")
    } else {
        error.with_hint(
            "compile with -gline-tables-only -fdebug-info-for-profiling, or give the binary as it was before strip",
        )
    }
}

fn machine(image: &Image<'_>) -> Result<Machine> {
    match image.architecture() {
        Architecture::X86_64 => Ok(Machine::X86(64)),
        Architecture::X86_64_X32 => Ok(Machine::X86(64)),
        Architecture::I386 => Ok(Machine::X86(32)),
        Architecture::Aarch64 => Ok(Machine::A64),
        _ => Err(Error::new(
            ErrorKind::Unsupported,
            "the instructions of this binary cannot be decoded",
        )
        .found(profkit_object::binary::architecture_name(image))
        .expected("x86 or AArch64")),
    }
}

/// The functions of the debug info, and their ranges by start address, each of the first function there.
fn functions(
    symbolizer: &Symbolizer<'_>,
    base: u64,
    facts: &mut Facts,
) -> (Vec<Function>, BTreeMap<u64, FunctionRange>) {
    let found = symbolizer.subprograms();
    facts.missing_split = found.missing_split as u64;
    facts.warnings = found.warnings;
    let mut functions: Vec<Function> = Vec::new();
    let mut by_name: FxHashMap<Vec<u8>, FunctionId> = FxHashMap::default();
    let mut ranges = BTreeMap::new();
    let mut shared = std::collections::BTreeSet::new();
    for subprogram in found.list {
        let id = match by_name.get(&subprogram.name) {
            Some(&id) => id,
            None => {
                let id = FunctionId(functions.len());
                by_name.insert(subprogram.name.clone(), id);
                functions.push(Function {
                    name: subprogram.name,
                    ranges: Vec::new(),
                    of_symbols: false,
                });
                id
            }
        };
        for (start, end) in subprogram.ranges {
            // Linkers leave removed functions at the address 0.
            if start < base {
                continue;
            }
            if let Some(function) = functions.get_mut(id.0) {
                function.ranges.push((start, end));
            }
            match ranges.entry(start) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(FunctionRange {
                        end,
                        function: id,
                        is_entry: false,
                    });
                }
                std::collections::btree_map::Entry::Occupied(_) => {
                    shared.insert(start);
                }
            }
        }
    }
    facts.shared_starts = shared.len() as u64;
    functions.retain(|function| !function.ranges.is_empty() || !ranges.is_empty());
    if ranges.is_empty() {
        functions.clear();
    }
    (functions, ranges)
}

/// The suffixes that compilers and linkers append to the names of parts and copies of functions.
const SUFFIXES: [&[u8]; 10] = [
    b".cleanup",
    b".destroy",
    b".resume",
    b".cold",
    b".warm",
    b".llvm.",
    b".part.",
    b".isra.",
    b".constprop.",
    b".lto_priv.",
];

/// Returns a name without its suffixes. Each suffix is removed at most once, and only from the end of the name.
fn without_suffixes(name: &[u8]) -> &[u8] {
    let mut name = name;
    for suffix in SUFFIXES {
        let mut places = name.windows(suffix.len());
        let Some(at) = places.rposition(|part| part == suffix) else {
            continue;
        };
        let last_dot = name.iter().rposition(|&byte| byte == b'.');
        if last_dot == Some(at) || last_dot == Some(at + suffix.len() - 1) {
            name = name.get(..at).unwrap_or_default();
        }
    }
    name
}

fn add_symbols(
    functions: &mut Vec<Function>,
    ranges: &mut BTreeMap<u64, FunctionRange>,
    symbols: &Symbols,
) {
    let mut by_name: FxHashMap<Vec<u8>, FunctionId> = functions
        .iter()
        .enumerate()
        .map(|(index, function)| (function.name.clone(), FunctionId(index)))
        .collect();
    for (start, size, name) in &symbols.functions {
        let known = ranges.range(..=*start).next_back();
        if known.is_some_and(|(_, range)| *start < range.end) {
            continue;
        }
        let end = start.saturating_add(*size);
        let name = without_suffixes(name);
        let id = *by_name.entry(name.to_vec()).or_insert_with(|| {
            functions.push(Function {
                name: name.to_vec(),
                ranges: Vec::new(),
                of_symbols: true,
            });
            FunctionId(functions.len() - 1)
        });
        if let Some(function) = functions.get_mut(id.0) {
            function.ranges.push((*start, end));
        }
        let range = FunctionRange {
            end,
            function: id,
            is_entry: false,
        };
        ranges.entry(*start).or_insert(range);
    }
}

#[derive(Default)]
struct Symbols {
    functions: Vec<(u64, u64, Vec<u8>)>,
    code: Vec<(u64, Vec<u8>)>,
    data: Vec<u64>,
    fs_discriminators: bool,
}

impl Symbols {
    fn read<'data>(
        &mut self,
        image: &Image<'data>,
        symbols: impl Iterator<Item = impl ObjectSymbol<'data>>,
    ) -> Result<()> {
        for symbol in named(image, symbols) {
            let (symbol, name) = symbol?;
            let SymbolSection::Section(section) = symbol.section() else {
                continue;
            };
            let Ok(section) = image.section_by_index(section) else {
                continue;
            };
            match section.kind() {
                SectionKind::Text => {
                    // The mapping symbols `$d` and `$d.1` of Arm mark the beginning of data.
                    if name == b"$d" || name.starts_with(b"$d.") {
                        self.data.push(symbol.address());
                    } else {
                        if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                            let place = (symbol.address(), symbol.size(), name.to_vec());
                            self.functions.push(place);
                        }
                        self.code.push((symbol.address(), name.to_vec()));
                    }
                }
                _ => self.fs_discriminators |= name == FS_DISCRIMINATORS,
            }
        }
        self.data.sort_unstable();
        self.data.dedup();
        Ok(())
    }
}

fn set_entries(
    functions: &[Function],
    ranges: &mut BTreeMap<u64, FunctionRange>,
    symbols: &Symbols,
) {
    if symbols.code.is_empty() {
        // Without symbols, only the order of the ranges shows the entry: the compiler lists its range first.
        for function in functions {
            if let Some((start, _)) = function.ranges.first()
                && let Some(range) = ranges.get_mut(start)
            {
                range.is_entry = true;
            }
        }
        return;
    }
    for (address, name) in &symbols.code {
        let Some((_, range)) = ranges.range_mut(..=*address).next_back() else {
            continue;
        };
        let Some(function) = functions.get(range.function.0) else {
            continue;
        };
        if *address < range.end
            && (function.ranges.len() == 1 || canonical_name(name) == function.name)
        {
            range.is_entry = true;
        }
    }
}

/// Instructions are decoded from symbols on or, without symbols, from functions of the debug info.
fn code<'files>(
    image: &Image<'files>,
    machine: Machine,
    symbols: &Symbols,
    ranges: &BTreeMap<u64, FunctionRange>,
) -> Result<Code<'files>> {
    let mut sections = Vec::new();
    for section in image.sections() {
        let is_stubs = section.name_bytes().is_ok_and(|name| name == b".plt");
        if section.kind() != SectionKind::Text || is_stubs {
            continue;
        }
        let bytes = section.data().map_err(|error| {
            Error::new(
                ErrorKind::Malformed,
                format!("a section with code cannot be read: {error}"),
            )
            .with_hint("the file is damaged or cut: build or fetch it again")
        })?;
        if !bytes.is_empty() {
            sections.push((section.address(), bytes));
        }
    }
    let mut starts: Vec<u64> = symbols.code.iter().map(|(address, _)| *address).collect();
    if starts.is_empty() {
        starts.extend(ranges.keys());
    }
    Ok(Code::new(machine, sections, starts, &symbols.data))
}
