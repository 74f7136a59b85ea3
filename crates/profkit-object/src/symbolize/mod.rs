//! Symbolising: finds the inline stack of addresses in a binary, with function, file, line, column and discriminator,
//! as LLVM's DWARF symboliser does.
//!
//! [`ProgramFiles::open`] finds the files with the debug info of a program. [`Symbolizer::new`] works with bytes in
//! memory. [`Symbolizer::symbolize`] takes any number of addresses. It finds the compile unit of each address, parses
//! each of these units once, using all processor cores, and returns a [`Locations`] table in which equal frames and
//! strings are stored once. So a few addresses take the time to parse their units, and a million addresses take the
//! time of one pass over the debug info.
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
//! Source of these facts: DWARF 5, sections 3.3, 6.2 and 7.5. Where ranges overlap, the unit, subroutine and row of an
//! address are chosen as in LLVM (`DWARFDebugAranges.cpp`, `DWARFUnit.cpp`, `DWARFDebugLine.cpp`,
//! `SymbolizableObjectFile.cpp`). Tests compare the results with `llvm-symbolizer`.
//!
//! Relocatable objects (`.o`) are not symbolised, because their addresses are not final; kernel modules are linked in
//! memory first ([`kernel_module`](crate::kernel_module)). Supplementary files made by dwz are not read; as in LLVM,
//! names that are only in such a file are missing.
//!
//! Hostile input never causes a panic. Memory is a small multiple of the input and of the number of addresses; the
//! limits are constants in this module. Debug info that cannot be read causes a warning ([`Locations::warnings`]), and
//! its addresses have fewer frames or none.

mod declarations;
pub(crate) mod files;
mod functions;
mod inlined;
mod lines;
pub(crate) mod names;
mod places;
pub(crate) mod sections;
mod subprograms;
mod symbols;
mod table;
mod unit;
mod units;
pub(crate) mod visits;
mod work;

use profkit_data::{Error, ErrorKind, Result, Structure};
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;

pub use declarations::{Declaration, Declarations, DeclaringBinary, clean_path};
pub use files::ProgramFiles;
pub use inlined::{InlinedFunctions, inlined_functions};
pub use places::CodePlaces;
pub use subprograms::{Subprogram, Subprograms};
pub use table::{Frame, FrameId, Locations};

use sections::{Package, Sections};
use symbols::Symbols;
use units::UnitIndex;
use visits::DebugData;

/// The bytes from which DWARF is read, and their byte order.
type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// The largest length in bytes of a path that is made from directories and a file name. With a larger limit, a
/// malicious line table can use more memory and time.
const MAX_PATH: usize = 1 << 16;

/// The limit in bytes for all paths of one compile unit together.
const MAX_PATHS_OF_UNIT: usize = 64 << 20;

/// The largest number of references (`DW_AT_abstract_origin`, `DW_AT_specification`) that are followed from one entry
/// to the next to find a name. Compilers make two or three.
const MAX_REFERENCES: usize = 64;

/// The number of warnings whose text is kept. Further warnings are only counted.
const MAX_WARNINGS: usize = 64;

/// The number of units in a batch. The units of a batch are symbolised in parallel; then their results are added to the
/// table. A larger number needs more memory; with a smaller one, processor cores are idle.
const UNITS_AT_ONCE: usize = 512;

/// The bytes of a file, together with the object that owns them.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Finds the `.dwo` files that skeleton units refer to. Its method is called from several threads.
pub trait SplitFiles: Sync {
    /// Returns the bytes of the `.dwo` file for these values of `DW_AT_comp_dir` and `DW_AT_dwo_name`, if there is such
    /// a file. The caller checks the id in the file.
    fn split_file(&self, compilation_directory: &[u8], name: &[u8]) -> Option<Bytes>;
}

/// The files that a symboliser reads: the binary and its debug files.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Inputs<'data> {
    /// The binary whose addresses are symbolised. Its symbols are used, and its debug info if it has any.
    pub binary: &'data [u8],
    /// The separate debug file of the binary. It is used if the binary itself has no debug info.
    pub debug_file: Option<&'data [u8]>,
    /// The package of split debug info (the `.dwp` file). `None` if there is no package.
    pub package: Option<&'data [u8]>,
    /// The object that finds `.dwo` files. `None` if no `.dwo` files are searched.
    pub split_files: Option<&'data dyn SplitFiles>,
}

impl<'data> Inputs<'data> {
    /// Makes inputs that consist only of a binary.
    pub fn new(binary: &'data [u8]) -> Self {
        Inputs {
            binary,
            debug_file: None,
            package: None,
            split_files: None,
        }
    }

    /// Sets the separate debug file.
    #[must_use]
    pub fn debug_file(mut self, bytes: Option<&'data [u8]>) -> Self {
        self.debug_file = bytes;
        self
    }

    /// Sets the package of split debug info (the `.dwp` file).
    #[must_use]
    pub fn package(mut self, bytes: Option<&'data [u8]>) -> Self {
        self.package = bytes;
        self
    }

    /// Sets the object that finds `.dwo` files.
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

/// The options for symbolising.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether the outermost frame of an address gets its name from the symbol table, if a symbol covers the address.
    /// This is what `llvm-symbolizer` does; the cold part of a function is then named `f.cold`. If this option is off,
    /// names come only from the debug info, as in LLVM's MemProf reader. Addresses without debug info always get their
    /// name from the symbol table.
    pub symbol_names: bool,
    /// Whether the symbol table is used at all. If not, addresses without debug info have no frame.
    pub symbols: bool,
    /// Whether frames have their file and column. If not, frames that differ only in file or column become one frame.
    /// The tables are then smaller and are made in less time.
    pub places: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            symbol_names: true,
            symbols: true,
            places: true,
        }
    }
}

impl Options {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the outermost frame gets its name from the symbol table; see [`Options::symbol_names`].
    #[must_use]
    pub fn symbol_names(mut self, on: bool) -> Self {
        self.symbol_names = on;
        self
    }

    /// Sets whether the symbol table is used; see [`Options::symbols`].
    #[must_use]
    pub fn symbols(mut self, on: bool) -> Self {
        self.symbols = on;
        self
    }

    /// Sets whether frames have their file and column; see [`Options::places`].
    #[must_use]
    pub fn places(mut self, on: bool) -> Self {
        self.places = on;
        self
    }
}

/// The kind of data from which a [`Symbolizer`] gets its source locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DebugInfo {
    /// The source locations come from DWARF in the binary itself.
    Binary,
    /// The source locations come from DWARF in the separate debug file.
    DebugFile,
    /// There is no debug info. The symbol table shows functions, but no lines.
    SymbolsOnly,
    /// There is neither debug info nor a symbol table.
    Nothing,
}

/// A binary with its debug info and symbols, ready to symbolise addresses.
///
/// ```no_run
/// use profkit_object::symbolize::{Inputs, Options, Symbolizer};
///
/// let binary = std::fs::read("a.out")?;
/// let symbolizer = Symbolizer::new(&Inputs::new(&binary), &Options::new())?;
/// for frame in symbolizer.symbolize(&[0x1139]).stack(0) {
///     println!("{}:{}", frame.function_text(), frame.line);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Symbolizer<'data> {
    debug: DebugData<'data>,
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
    /// If the binary, its debug file or its `.dwp` file is not an object file, or if debug sections cannot be
    /// decompressed.
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
            (debug_file.as_ref(), false),
            package.as_ref(),
            inputs.split_files,
            options,
        )
    }

    fn from_objects<R: object::ReadRef<'data>>(
        binary: &object::File<'data, R>,
        (debug_file, is_packed): (Option<&object::File<'data, R>>, bool),
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
        let symbols = Symbols::read(binary, debug_file, is_packed)?;
        if !sections.has_debug_info() {
            debug_info = if symbols.is_empty() {
                DebugInfo::Nothing
            } else {
                DebugInfo::SymbolsOnly
            };
        }
        let package = package.map(Package::load).transpose()?;
        Ok(Symbolizer {
            debug: DebugData {
                sections,
                package,
                split_files,
            },
            symbols: if options.symbols {
                symbols
            } else {
                Symbols::default()
            },
            debug_info,
            options: *options,
        })
    }

    /// Returns the kind of data from which the source locations come.
    pub fn debug_info(&self) -> DebugInfo {
        self.debug_info
    }

    /// Symbolises addresses. They are virtual addresses as the linker assigned them, in any order. The result contains
    /// a location for each index in `addresses`.
    ///
    /// For an address that no debug info describes, the function is the symbol that contains the address. A symbol
    /// without a size, as assembly code often has, reaches up to the next symbol; the last symbol without a size has no
    /// end, so that any address after it gets its name.
    pub fn symbolize(&self, addresses: &[u64]) -> Locations {
        let mut table = Locations::new(addresses.len());
        let order = sorted(addresses);
        let dwarf = self.debug.sections.dwarf();
        let package = self
            .debug
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
            split_files: self.debug.split_files,
            index: &index,
            symbols: &self.symbols,
            symbol_names: self.options.symbol_names,
            places: self.options.places,
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
        if let Some(problem) = index.work.problem() {
            table = Locations::new(addresses.len());
            let named = context.symbols_only(&order, addresses);
            table.append(&order, named);
            table.warn(problem);
        }
        table
    }
}

/// Returns the indices of the addresses, sorted by address.
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

/// Converts an error of gimli. The result contains the name of the damaged structure.
#[cold]
fn malformed(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    error: gimli::Error,
    structure: impl Into<Structure>,
) -> Error {
    unreadable(dwarf, error).within(structure)
}

/// Converts an error of gimli. The result does not contain a location.
#[cold]
fn unreadable(dwarf: &gimli::Dwarf<Slice<'_>>, error: gimli::Error) -> Error {
    Error::new(
        ErrorKind::Malformed,
        format!("debug info cannot be read: {}", dwarf.format_error(error)),
    )
}
