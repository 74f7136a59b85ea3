//! Lists the functions of a binary by their PGO names: the functions that were instrumented, or else the symbols.
use crate::binary::Image;
use crate::bounds::named;
use crate::correlate::binary::{self, SectionSet};
use crate::correlate::dwarf::{self, DwarfOptions};
use crate::correlate::{CorrelationWarnings, CounterSection, machine, section, section_data};
use crate::mip_sections::MipSections;
use crate::names::without_suffix;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::InstrKind;
use profkit_data::instr::raw::{RawDialect, RawName, RecordLayout};
use profkit_data::mip::{MapEntry, MapReadOptions, MipMap};
use profkit_data::names::SymbolTable;
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::FxHashSet;
use std::path::Path;

/// The part of a binary from which its functions were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The section `__llvm_covdata`, or the section `__llvm_prf_data` of an instrumented program. Either section gives
    /// the names and hashes of functions.
    Sections,
    /// Annotations in the debug info, which contain names and hashes.
    DebugInfo,
    /// The symbol table, which contains only names.
    Symbols,
    /// The section `.pseudo_probe_desc`, which contains the names and checksums of functions for sample profiles.
    Probes,
    /// The MIP map, which contains names and control-flow signatures.
    MipMap,
}

/// A function of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The PGO name of the function, or the name of its symbol.
    pub name: Vec<u8>,
    /// The control-flow hash of the function, or its signature in a MIP map; `None` if the function was read from the symbol
    /// table.
    pub hash: Option<FuncHash>,
}

/// The functions of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionList {
    /// The part of the binary from which the functions were read.
    pub origin: Origin,
    /// What the counters of an instrumented binary count; `None` if the binary is not instrumented, or if its symbols
    /// were stripped.
    pub instrumentation: Option<InstrKind>,
    /// The functions.
    pub functions: Vec<Function>,
}

/// The raw versions whose record layouts are tried, in this order. Several must be tried, because a section does not
/// show the version of its records. The first is the version of the newest release. Versions 4 to 7 are not in the
/// list, because their records are the same as those of version 8.
const VERSIONS: [u32; 4] = [10, 9, 8, 11];

/// The variable of instrumented programs that holds the version of their raw profiles.
const RAW_VERSION: &[u8] = b"__llvm_profile_raw_version";

/// Lists the functions of a binary. Split debug info is searched beside `path`, the path of the binary.
///
/// ```
/// use profkit_object::binary::BinaryFile;
/// use profkit_object::functions::functions;
///
/// let file = BinaryFile::open(&std::env::current_exe()?)?;
/// let image = file.image(|_| true)?;
/// let list = functions(&image, file.path())?;
/// println!("{} functions from {:?}", list.functions.len(), list.origin);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if the binary has neither profile sections, nor debug info for profiles, nor symbols.
pub fn functions(image: &Image<'_>, path: &Path) -> Result<FunctionList> {
    let instrumented = |origin, functions| FunctionList {
        origin,
        instrumentation: instrumentation(image),
        functions,
    };
    for set in [SectionSet::Correlation, SectionSet::Runtime] {
        if let Some(found) = of_sections(image, set) {
            return Ok(instrumented(Origin::Sections, found));
        }
    }
    if let Ok(counters) = CounterSection::of(image) {
        let options = DwarfOptions::new().split(Some(path));
        let warnings = CorrelationWarnings::default();
        if let Ok((probes, _)) = dwarf::probes(image, counters, options, warnings) {
            let function = |probe: dwarf::Probe| Function {
                name: probe.function_name,
                hash: Some(FuncHash(probe.cfg_hash)),
            };
            let probes = probes.into_iter().map(function).collect();
            return Ok(instrumented(Origin::DebugInfo, probes));
        }
    }
    let functions = of_symbols(image)?;
    if functions.is_empty() && !has_debug_info(image) {
        return Err(nothing_found());
    }
    Ok(FunctionList {
        origin: Origin::Symbols,
        instrumentation: None,
        functions,
    })
}

/// Lists the functions of a binary that MIP profiles can have, with their signatures. The list has all functions of a
/// binary without a MIP map, without signatures.
///
/// # Errors
/// Those of [`functions`]; and if the map is damaged, or was stripped.
pub fn mip_functions(image: &Image<'_>, path: &Path) -> Result<FunctionList> {
    let Some(sections) = MipSections::of(image)? else {
        let mut list = functions(image, path)?;
        for function in &mut list.functions {
            function.hash = None;
        }
        return Ok(list);
    };
    let options = MapReadOptions::new().section_address(sections.section_address);
    let map = MipMap::parse_with(&sections.map, &options)?;
    let function = |entry: MapEntry<'_>| Function {
        name: entry.name.to_vec(),
        hash: Some(FuncHash(entry.signature.into())),
    };
    let entries = map.entries().map(|entry| entry.map(function));
    Ok(FunctionList {
        origin: Origin::MipMap,
        instrumentation: None,
        functions: entries.collect::<Result<_>>()?,
    })
}

/// Whether a binary has debug info. Debug info contains the names of the functions that were inlined
/// ([`inlined_functions`](crate::symbolize::inlined_functions)).
pub fn has_debug_info(image: &Image<'_>) -> bool {
    image.section_by_name(".debug_info").is_some()
}

/// Whether a binary has no symbol table, as after `strip`. The names that it exports are then the only ones that it has.
pub fn is_stripped(image: &Image<'_>) -> bool {
    image.symbols().next().is_none() && !has_debug_info(image)
}

/// Lists the functions of a binary under the names that sample profiles use. The list has the functions with pseudo
/// probes (with their checksums), and also the functions that only have a symbol.
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if the binary has neither such functions nor debug info.
pub fn sampled_functions(image: &Image<'_>) -> Result<FunctionList> {
    let mut functions = of_probes(image)?;
    let origin = match functions.len() {
        0 => Origin::Symbols,
        _ => Origin::Probes,
    };
    let known: FxHashSet<Vec<u8>> = functions.iter().map(|it| it.name.clone()).collect();
    let symbols = of_symbols(image)?.into_iter().map(|it| it.name);
    let mut names: Vec<Vec<u8>> = symbols.collect();
    for name in &mut names {
        name.truncate(without_suffix(name).len());
    }
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !known.contains(name));
    functions.extend(names.into_iter().map(|name| Function { name, hash: None }));
    if functions.is_empty() && !has_debug_info(image) {
        return Err(nothing_found());
    }
    Ok(FunctionList {
        origin,
        instrumentation: None,
        functions,
    })
}

/// Reads the section `.pseudo_probe_desc`: for each function the MD5 of its name, its checksum, and its name.
fn of_probes(image: &Image<'_>) -> Result<Vec<Function>> {
    let Some(found) = image.section_by_name(".pseudo_probe_desc") else {
        return Ok(Vec::new());
    };
    let mut cursor = Cursor::new(section_data(&found)?, 0, machine(image).0);
    let mut functions = Vec::new();
    while !cursor.is_empty() {
        cursor.u64()?;
        let checksum = cursor.u64()?;
        let len = cursor.uleb128()?;
        functions.push(Function {
            name: cursor.take_u64(len)?.to_vec(),
            hash: Some(FuncHash(checksum)),
        });
    }
    Ok(functions)
}

#[cold]
fn nothing_found() -> Error {
    Error::new(
        ErrorKind::CannotCorrelate,
        "the binary has neither profile sections nor function symbols",
    )
    .with_hint("the binary was stripped: give the file that the linker wrote, or its debug file")
}

/// Reads from an instrumented program what its counters count: the flags in its variable `__llvm_profile_raw_version`.
/// `None` if the variable is not found.
fn instrumentation(image: &Image<'_>) -> Option<InstrKind> {
    // In Mach-O, the symbol has one more underscore than the C name.
    let wanted = |name: &[u8]| name == RAW_VERSION || name.strip_prefix(b"_") == Some(RAW_VERSION);
    let symbols = image.symbols().chain(image.dynamic_symbols());
    let (symbol, _) = named(image, symbols.filter(ObjectSymbol::is_definition))
        .map_while(Result::ok)
        .find(|(_, name)| wanted(name))?;
    let section = image.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), 8).ok()??;
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    let word = match machine(image).0 {
        Endian::Little => u64::from_le_bytes(bytes),
        Endian::Big => u64::from_be_bytes(bytes),
    };
    Some(InstrKind::from_version_word(word))
}

/// Reads the names and hashes of functions from profile sections. `None` if the sections are missing or cannot be read.
/// Counter pointers are not used. So this function also works for programs of LLVM 13 and older, in which the counter
/// pointers are addresses that the loader fills in.
fn of_sections(image: &Image<'_>, set: SectionSet) -> Option<Vec<Function>> {
    if !binary::has_sections(image, set) {
        return None;
    }
    let (data, names) = set.names();
    let data = section_data(&section(image, data).ok()?).ok()?;
    let blob = section_data(&section(image, names).ok()?).ok()?;
    let mut names = SymbolTable::new();
    names.read_blob(blob, 0).ok()?;
    let (endian, width) = machine(image);
    let mut best: Option<Vec<Function>> = None;
    for version in VERSIONS {
        let dialect = RawDialect {
            endian,
            width,
            version,
            flags: 0,
        };
        let layout = RecordLayout::for_dialect(dialect);
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        let mut all = binary::is_whole_records(data, &layout);
        for record in binary::records_of(data, dialect, &layout) {
            let RawName::Ref(name_ref) = record.name else {
                continue;
            };
            match names.get(name_ref) {
                Some(_) if !seen.insert((name_ref, record.func_hash)) => {}
                Some(name) => found.push(Function {
                    name: name.to_vec(),
                    hash: Some(record.func_hash),
                }),
                // On Windows, the section begins and ends with an empty record of the run-time library.
                None => all &= name_ref == NameRef(0) && record.func_hash == FuncHash(0),
            }
        }
        if best.as_ref().is_none_or(|best| best.len() < found.len()) {
            best = Some(found);
        }
        if all {
            break;
        }
    }
    best.filter(|functions| !functions.is_empty())
}

fn of_symbols(image: &Image<'_>) -> Result<Vec<Function>> {
    let is_mach_o = image.format() == object::BinaryFormat::MachO;
    let symbols = image.symbols().chain(image.dynamic_symbols());
    let symbols =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let mut names = Vec::new();
    for symbol in named(image, symbols) {
        let (_, name) = symbol?;
        // In Mach-O, symbols have an underscore before the C name.
        let name = match is_mach_o {
            true => name.strip_prefix(b"_").unwrap_or(name),
            false => name,
        };
        if !name.is_empty() {
            names.push(name);
        }
    }
    names.sort_unstable();
    names.dedup();
    let function = |name: &[u8]| Function {
        name: name.to_vec(),
        hash: None,
    };
    Ok(names.into_iter().map(function).collect())
}
