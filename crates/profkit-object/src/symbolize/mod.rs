//! Symbolising: from addresses of a binary to the inline stack of each, with function, file, line, column and
//! discriminator, as LLVM's DWARF symboliser gives them.
//!
//! [`ProgramFiles::open`] finds a program's debug info, in whichever files it is; [`Symbolizer::new`] does with bytes.
//! [`Symbolizer::symbolize`] takes any number of addresses, indexes the compile units by address, parses each unit
//! that holds one of them once, on all cores, and returns a [`Locations`] table in which equal frames and strings
//! stand once. A few addresses cost the units they are in; a million cost one sweep over the debug info.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit_object::debug_files::DebugFolders;
//! use profkit_object::symbolize::{Options, ProgramFiles};
//! let files = ProgramFiles::open("program".as_ref(), &DebugFolders::default())?;
//! let symbolizer = files.symbolizer(&Options::default())?;
//! let locations = symbolizer.symbolize(&[0x1139]);
//! for frame in locations.stack(0) {
//!     println!("{:?} {:?}:{}", frame.function_text(), frame.file_text(), frame.line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Facts: DWARF 5 sections 3.3, 6.2 and 7.5; which unit, subroutine and row an address belongs to where ranges overlap
//! follows LLVM (`DWARFDebugAranges.cpp`, `DWARFUnit.cpp`, `DWARFDebugLine.cpp`, `SymbolizableObjectFile.cpp`),
//! checked by comparing with `llvm-symbolizer`.
//!
//! Relocatable objects (`.o`) are not symbolised: their addresses are not final. Supplementary files that dwz makes
//! are not followed; names that live only there are missing, as they are in LLVM.
//!
//! Hostile input: no panic; memory is a small multiple of the input and of the number of addresses; limits are named
//! in this module. What cannot be read becomes a warning ([`Locations::warnings`]), and the addresses concerned have
//! fewer frames or none.

mod files;
mod functions;
mod lines;
mod names;
mod sections;
mod symbols;
mod table;
mod unit;
mod units;

use profkit_data::{Error, ErrorKind, Result, Structure};
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;

pub use files::ProgramFiles;
pub use table::{Frame, FrameId, Locations};

use sections::{Package, Sections};
use symbols::Symbols;
use units::UnitIndex;

/// What DWARF is read from: a slice that knows its byte order.
type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// The longest path that is put together from directory and file name. Raising it lets a hostile line table cost more.
const MAX_PATH: usize = 1 << 16;

/// The bytes of all paths together that one unit may have made.
const MAX_PATHS_OF_UNIT: usize = 64 << 20;

/// References from one entry to the next (`DW_AT_abstract_origin`, `DW_AT_specification`) that are followed for a name.
/// Compilers make two or three.
const MAX_REFERENCES: usize = 64;

/// Warnings that are kept word for word; more are only counted.
const MAX_WARNINGS: usize = 64;

/// Units that are symbolised before their results are put into the table. More costs memory, fewer leaves cores idle.
const UNITS_AT_ONCE: usize = 512;

/// The bytes of a file that somebody else keeps.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Finds the `.dwo` files that skeleton units name. Called from several threads.
pub trait SplitFiles: Sync {
    /// The bytes of the file that `DW_AT_dwo_name` and `DW_AT_comp_dir` name, if there is one. The id in it is checked
    /// by the caller.
    fn split_file(&self, compilation_directory: &[u8], name: &[u8]) -> Option<Bytes>;
}

/// What to symbolise with.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Inputs<'data> {
    /// The binary whose addresses are asked for: its debug info, unless `debug_file` is given, and its symbols.
    pub binary: &'data [u8],
    /// The separate debug file of the binary. Used if the binary has no debug info itself.
    pub debug_file: Option<&'data [u8]>,
    /// The package (`.dwp`) of split debug info.
    pub package: Option<&'data [u8]>,
    /// Where `.dwo` files come from.
    pub split_files: Option<&'data dyn SplitFiles>,
}

impl<'data> Inputs<'data> {
    /// The binary alone.
    pub fn new(binary: &'data [u8]) -> Self {
        Inputs {
            binary,
            debug_file: None,
            package: None,
            split_files: None,
        }
    }

    /// Adds the separate debug file.
    #[must_use]
    pub fn debug_file(mut self, bytes: Option<&'data [u8]>) -> Self {
        self.debug_file = bytes;
        self
    }

    /// Adds the package of split debug info.
    #[must_use]
    pub fn package(mut self, bytes: Option<&'data [u8]>) -> Self {
        self.package = bytes;
        self
    }

    /// Adds the finder of `.dwo` files.
    #[must_use]
    pub fn split_files(mut self, finder: &'data dyn SplitFiles) -> Self {
        self.split_files = Some(finder);
        self
    }
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs")
            .field("binary", &self.binary.len())
            .field("debug_file", &self.debug_file.map(<[u8]>::len))
            .field("package", &self.package.map(<[u8]>::len))
            .field("split_files", &self.split_files.is_some())
            .finish()
    }
}

/// How to symbolise.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The outermost frame's function is named by the symbol table where it has the address, as `llvm-symbolizer` does
    /// (cold parts are then called `f.cold`). Off, all names come from the debug info, as in LLVM's MemProf reader.
    /// Addresses without debug info are named by the symbol table in both cases.
    pub symbol_names: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { symbol_names: true }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`Options::symbol_names`].
    #[must_use]
    pub fn symbol_names(mut self, on: bool) -> Self {
        self.symbol_names = on;
        self
    }
}

/// Where the locations of a [`Symbolizer`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DebugInfo {
    /// DWARF of the binary itself.
    Binary,
    /// DWARF of the separate debug file.
    DebugFile,
    /// There is no debug info: functions come from the symbol table, and there are no lines.
    SymbolsOnly,
    /// There is neither debug info nor a symbol.
    Nothing,
}

/// The index of a binary's debug info, ready to symbolise.
pub struct Symbolizer<'data> {
    sections: Sections<'data>,
    package: Option<Package<'data>>,
    split_files: Option<&'data dyn SplitFiles>,
    symbols: Symbols<'data>,
    debug_info: DebugInfo,
    options: Options,
}

impl fmt::Debug for Symbolizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer")
            .field("debug_info", &self.debug_info)
            .finish_non_exhaustive()
    }
}

impl<'data> Symbolizer<'data> {
    /// Opens a binary: finds its debug info and reads its symbol table.
    ///
    /// # Errors
    /// If the binary, its debug file or its package is no object file, or their debug sections do not decompress.
    pub fn new(inputs: &Inputs<'data>, options: &Options) -> Result<Self> {
        let binary = parse_object(inputs.binary, Structure::Binary)?;
        let debug_file = inputs
            .debug_file
            .map(|bytes| parse_object(bytes, Structure::DebugFile))
            .transpose()?;
        let package = inputs
            .package
            .map(|bytes| parse_object(bytes, Structure::DebugPackage))
            .transpose()?;
        Self::from_objects(
            &binary,
            debug_file.as_ref(),
            package.as_ref(),
            inputs.split_files,
            options,
        )
    }

    fn from_objects<R: object::ReadRef<'data>>(
        binary: &object::File<'data, R>,
        debug_file: Option<&object::File<'data, R>>,
        package: Option<&object::File<'data, R>>,
        split_files: Option<&'data dyn SplitFiles>,
        options: &Options,
    ) -> Result<Self> {
        let mut debug_info = DebugInfo::Binary;
        let mut sections = Sections::load(binary)?;
        if !sections.has_debug_info() {
            debug_info = DebugInfo::DebugFile;
            if let Some(debug_file) = debug_file {
                sections = Sections::load(debug_file)?;
            }
        }
        let symbols = Symbols::read(binary, debug_file);
        if !sections.has_debug_info() {
            debug_info = if symbols.is_empty() {
                DebugInfo::Nothing
            } else {
                DebugInfo::SymbolsOnly
            };
        }
        let package = package.map(Package::load).transpose()?;
        Ok(Symbolizer {
            sections,
            package,
            split_files,
            symbols,
            debug_info,
            options: *options,
        })
    }

    /// Where locations come from.
    pub fn debug_info(&self) -> DebugInfo {
        self.debug_info
    }

    /// Symbolises addresses, which are virtual addresses as the binary was linked, in any order. The table answers by
    /// the index into `addresses`.
    pub fn symbolize(&self, addresses: &[u64]) -> Locations {
        let mut table = Locations::new(addresses.len());
        let order = sorted(addresses);
        let dwarf = self.sections.dwarf();
        let package = self
            .package
            .as_ref()
            .and_then(|package| match package.dwarf() {
                Ok(package) => Some(package),
                Err(error) => {
                    table.warn(malformed(&dwarf, error, Structure::PackageIndex));
                    None
                }
            });
        let index = UnitIndex::build(&dwarf, &mut |warning| table.warn(warning));
        let (jobs, rest) = index.assign(addresses, &order);
        let context = unit::Context {
            dwarf: &dwarf,
            package: package.as_ref(),
            split_files: self.split_files,
            index: &index,
            symbols: &self.symbols,
            symbol_names: self.options.symbol_names,
        };
        for batch in jobs.chunks(UNITS_AT_ONCE) {
            let results: Vec<_> = batch
                .par_iter()
                .map(|job| context.symbolize(job, addresses))
                .collect();
            for (job, result) in batch.iter().zip(results) {
                table.append(&job.addresses, result);
            }
        }
        let named = context.symbols_only(&rest, addresses);
        table.append(&rest, named);
        table
    }
}

/// The indexes of `addresses` in ascending order of address.
fn sorted(addresses: &[u64]) -> Vec<u32> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    let mut order: Vec<u32> = (0..count).collect();
    if !addresses.is_sorted() {
        order.par_sort_by_key(|&index| addresses.get(index as usize).copied());
    }
    order
}

fn parse_object<'data>(bytes: &'data [u8], what: Structure) -> Result<object::File<'data>> {
    object::File::parse(bytes).map_err(|error| {
        Error::new(
            ErrorKind::UnrecognizedFormat,
            format!("this object file cannot be symbolised: {error}"),
        )
        .within(what)
        .expected("an ELF, Mach-O or COFF file")
    })
}

/// What gimli found wrong, as an error that names the structure.
#[cold]
fn malformed(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    error: gimli::Error,
    structure: impl Into<Structure>,
) -> Error {
    unreadable(dwarf, error).within(structure)
}

/// What gimli found wrong, as an error that has no place yet.
#[cold]
fn unreadable(dwarf: &gimli::Dwarf<Slice<'_>>, error: gimli::Error) -> Error {
    Error::new(
        ErrorKind::Malformed,
        format!("debug info cannot be read: {}", dwarf.format_error(error)),
    )
}
