//! Lists the functions of a binary by their PGO names: the functions that were instrumented, or else the symbols.
use crate::binary::Image;
use crate::correlate::binary::{self, Outside, SectionSet};
use crate::correlate::dwarf::{self, DwarfOptions};
use crate::correlate::{CorrelationWarnings, CounterSection, machine};
use object::{Object, ObjectSymbol, SymbolKind};
use profkit_data::ids::FuncHash;
use profkit_data::instr::raw::{ProgramMetadata, RawDialect, RecordLayout};
use profkit_data::names::SymbolTable;
use profkit_data::{Error, ErrorKind, Result};
use std::path::Path;

/// The part of a binary from which its functions were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The section `__llvm_covdata`, or `__llvm_prf_data` of an instrumented program. They contain names and hashes.
    Sections,
    /// Annotations in the debug info, which contain names and hashes.
    DebugInfo,
    /// The symbol table, which contains only names.
    Symbols,
}

/// A function of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The PGO name of the function, or the name of its symbol.
    pub name: Vec<u8>,
    /// The control-flow hash of the function; `None` if the function was read from the symbol table.
    pub hash: Option<FuncHash>,
}

/// The raw versions whose record layouts are tried, in this order. Several must be tried, because a section does not
/// contain its version. The first is the version of the newest release.
const VERSIONS: [u32; 4] = [10, 9, 8, 11];

/// Lists the functions of a binary. Split debug info is searched beside `path`, the path of the binary.
///
/// ```
/// use profkit_object::binary::BinaryFile;
/// use profkit_object::functions::functions;
///
/// let file = BinaryFile::open(&std::env::current_exe()?)?;
/// let image = file.image(|_| true)?;
/// let (origin, functions) = functions(&image, file.path())?;
/// println!("{} functions from {origin:?}", functions.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if the binary has neither profile sections, nor debug info for profiles, nor symbols.
pub fn functions(image: &Image<'_>, path: &Path) -> Result<(Origin, Vec<Function>)> {
    for set in [SectionSet::Correlation, SectionSet::Runtime] {
        if let Some(found) = of_sections(image, set) {
            return Ok((Origin::Sections, found));
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
            return Ok((
                Origin::DebugInfo,
                probes.into_iter().map(function).collect(),
            ));
        }
    }
    let symbols = of_symbols(image);
    if symbols.is_empty() {
        return Err(Error::new(
            ErrorKind::CannotCorrelate,
            "the binary has neither profile sections nor function symbols",
        )
        .with_hint(
            "the binary was stripped: give the file that the linker wrote, or its debug file",
        ));
    }
    Ok((Origin::Symbols, symbols))
}

fn of_sections(image: &Image<'_>, set: SectionSet) -> Option<Vec<Function>> {
    if !binary::has_sections(image, set) {
        return None;
    }
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
        let warnings = CorrelationWarnings::new(1);
        let correlated =
            binary::correlate(image, set, dialect, &layout, Outside::Drop, warnings).ok();
        let Some(correlated) = correlated else {
            continue;
        };
        let named = with_names(&correlated.program)?;
        let all =
            named.len() == correlated.program.records.len() && correlated.warnings.count() == 0;
        if best.as_ref().is_none_or(|best| best.len() < named.len()) {
            best = Some(named);
        }
        if all {
            break;
        }
    }
    best.filter(|functions| !functions.is_empty())
}

fn with_names(program: &ProgramMetadata) -> Option<Vec<Function>> {
    let mut names = SymbolTable::new();
    names.read_blob(&program.names, 0).ok()?;
    let functions = program.records.iter().filter_map(|record| {
        Some(Function {
            name: names.get(record.name_ref)?.to_vec(),
            hash: Some(record.func_hash),
        })
    });
    Some(functions.collect())
}

fn of_symbols(image: &Image<'_>) -> Vec<Function> {
    let is_mach_o = image.format() == object::BinaryFormat::MachO;
    let mut names: Vec<Vec<u8>> = image
        .symbols()
        .chain(image.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok()?;
            // Mach-O puts an underscore before C names.
            let name = if is_mach_o {
                name.strip_prefix(b"_").unwrap_or(name)
            } else {
                name
            };
            (!name.is_empty()).then(|| name.to_vec())
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let function = |name| Function { name, hash: None };
    names.into_iter().map(function).collect()
}
