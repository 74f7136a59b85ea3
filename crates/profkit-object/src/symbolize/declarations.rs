//! Finds the source file and the line in which each function of a program is declared.
use super::functions::has_code;
use super::lines::Paths;
use super::names::FileNumber;
use super::table::{NONE, Strings};
use super::visits::{UnitView, UnitVisitor, for_each_function};
use super::{DebugInfo, Options, ProgramFiles, Symbolizer};
use crate::binary::programs_in;
use crate::build_id::build_id;
use crate::debug_files::DebugFolders;
use crate::names::{symbol_of, without_suffix, without_unique};
use gimli::{Abbreviation, constants as dw};
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::{Error, ErrorKind, Result, system_text};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// If a name has more declarations than this, only the first ones are searched for the one in a given source file.
const MOST_OF_A_NAME: usize = 1024;

/// The place where a function is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declaration<'table> {
    /// The path of the source file. A relative path was joined to the unit's directory. The parts `.` and `..` were
    /// resolved without reading the file system.
    pub file: &'table [u8],
    /// The line of the function's declaration, counted from 1. If the debug info has only line tables, the line of the
    /// function's first instruction. 0 if the line is not known.
    pub line: u32,
}

/// A binary whose declarations were read.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaringBinary {
    /// The path of the binary.
    pub path: PathBuf,
    /// The build id of the binary; `None` if it has none.
    pub build_id: Option<BuildId>,
    /// The kind of debug info that was read. [`DebugInfo::SymbolsOnly`] and [`DebugInfo::Nothing`] contain no source
    /// files.
    pub debug_info: DebugInfo,
    /// The number of functions whose source file is known.
    pub functions: usize,
    /// The number of compile units whose split debug info (`.dwo`, `.dwp`) was not found.
    pub missing_split: usize,
    /// The errors of debug info that could not be read.
    pub warnings: Vec<Error>,
}

/// The declarations of all functions of programs, by the names that profiles have.
///
/// The declarations come from the entries of functions with code and of inlined functions in the debug info (DWARF 5,
/// sections 2.14 and 3.3). In programs built with `-gline-tables-only`, functions have no such entries. A function with
/// code then gets the file and line of its first instruction, and a function that is only inlined is not known.
///
/// ```
/// use profkit_object::debug_files::DebugFolders;
/// use profkit_object::symbolize::Declarations;
///
/// let program = std::env::current_exe()?;
/// let declarations = Declarations::read(&[program], &DebugFolders::default())?;
/// for binary in &declarations.binaries {
///     println!("{}: {} functions", binary.path.display(), binary.functions);
/// }
/// if let Some(main) = declarations.find(b"main") {
///     println!("{}:{}", String::from_utf8_lossy(main.file), main.line);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Declarations {
    /// The binaries that were read.
    pub binaries: Vec<DeclaringBinary>,
    /// Programs in folders that could not be read, each with the error.
    pub unreadable: Vec<(PathBuf, Error)>,
    strings: Strings,
    /// The functions, sorted by the bytes of the name, then by file. Each pair of name and file occurs once.
    list: Vec<Entry>,
    /// For each function: the hash of its name, and its index in `list`. Sorted by hash. Computed at the first search
    /// by hash.
    hashes: OnceLock<Vec<(NameRef, u32)>>,
}

/// A function with its file and line. Name and file are indexes in the table of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    name: u32,
    file: u32,
    line: u32,
}

impl Declarations {
    /// Reads programs, libraries and debug files. If a path is a folder, all programs and libraries below it are read.
    /// Separate debug files are also searched in `folders`. Split debug info is searched at the paths in the program.
    ///
    /// # Errors
    /// If a path does not exist, or if a named file is not a binary or is damaged. A program in a folder that cannot be
    /// read is no error; it is listed in [`Declarations::unreadable`].
    pub fn read(paths: &[PathBuf], folders: &DebugFolders) -> Result<Self> {
        let mut declarations = Declarations::default();
        for path in paths {
            if !path.is_dir() {
                declarations.add_file(path, folders)?;
                continue;
            }
            let programs = programs_in(path).map_err(|error| {
                let what = format!("the folder cannot be read: {}", system_text(&error));
                Error::new(ErrorKind::UnrecognizedFormat, what).within(path.display().to_string())
            })?;
            for program in programs {
                if let Err(error) = declarations.add_file(&program, folders) {
                    declarations.unreadable.push((program, error));
                }
            }
        }
        declarations.sort();
        Ok(declarations)
    }

    fn add_file(&mut self, path: &Path, folders: &DebugFolders) -> Result<()> {
        let files = ProgramFiles::open(path, folders)?;
        let build_id = build_id(&files.program()?)?;
        let symbolizer = files.symbolizer(&Options::default())?;
        let binary = self.add(&symbolizer);
        self.binaries.push(DeclaringBinary {
            path: path.to_owned(),
            build_id,
            ..binary
        });
        Ok(())
    }

    /// Adds the functions of a program. The list has to be sorted afterwards.
    fn add(&mut self, symbolizer: &Symbolizer<'_>) -> DeclaringBinary {
        let visited = symbolizer.debug.visit_units(OfUnit::default);
        let mut warnings = visited.warnings;
        let mut found = FxHashSet::default();
        for unit in visited.units {
            if unit.too_much {
                warnings.push(Error::new(
                    ErrorKind::LimitExceeded,
                    "debug info is left out: the names of functions or files in a unit are too long",
                ));
            }
            for entry in unit.list {
                let text = |id| unit.strings.get(id).unwrap_or_default();
                let name = self.strings.intern(text(entry.name));
                let file = self.strings.intern(&clean_path(text(entry.file)));
                found.insert(name);
                self.list.push(Entry {
                    name,
                    file,
                    ..entry
                });
            }
        }
        self.add_by_lines(symbolizer, &mut found);
        DeclaringBinary {
            path: PathBuf::new(),
            build_id: None,
            debug_info: symbolizer.debug_info(),
            functions: found.len(),
            missing_split: visited.missing_split.len(),
            warnings,
        }
    }

    /// Adds the functions of which the debug info has no entry with this name, but which have a symbol and rows in a
    /// line table.
    fn add_by_lines(&mut self, symbolizer: &Symbolizer<'_>, found: &mut FxHashSet<u32>) {
        if symbolizer.debug_info() == DebugInfo::SymbolsOnly {
            return;
        }
        let unknown: Vec<(u64, &[u8])> = symbolizer
            .symbols
            .functions()
            .filter(|(_, name)| {
                let known = |name| {
                    self.strings
                        .find(name)
                        .is_some_and(|id| found.contains(&id))
                };
                !known(name) && !known(without_suffix(name))
            })
            .collect();
        if unknown.is_empty() {
            return;
        }
        let addresses: Vec<u64> = unknown.iter().map(|(address, _)| *address).collect();
        let locations = symbolizer.symbolize(&addresses);
        for (index, (_, name)) in unknown.into_iter().enumerate() {
            let Some(frame) = locations.stack(index).last() else {
                continue;
            };
            // A frame without a line has its file from the symbol table. This is only a file name without a folder, so
            // the function is left out.
            let Some(file) = frame.file.filter(|_| frame.line > 0) else {
                continue;
            };
            let name = self.strings.intern(without_suffix(name));
            found.insert(name);
            // Debug info may have an entry for this function under a different name. If so, the line of the declaration
            // comes from that entry.
            let line = match frame.function_line {
                0 => frame.line,
                line => line,
            };
            let file = self.strings.intern(&clean_path(file));
            self.list.push(Entry { name, file, line });
        }
    }

    fn sort(&mut self) {
        let strings = &self.strings;
        let key = |entry: &Entry| (strings.get(entry.name), strings.get(entry.file), entry.line);
        self.list.sort_by(|one, two| key(one).cmp(&key(two)));
        self.list
            .dedup_by(|one, two| (one.name, one.file) == (two.name, two.file));
        self.hashes = OnceLock::new();
    }

    /// The number of functions whose source file is known. A function name that occurs in several files is counted once
    /// for each file.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Finds a function by its name in a profile: the symbol, `file.c;symbol` for a local function (before LLVM 17
    /// `file.c:symbol`), or the symbol with a suffix such as `.llvm.123`. `None` if no such function is known. Also
    /// `None` if functions in several files have this name, and the name does not show which file is meant.
    pub fn find(&self, name: &[u8]) -> Option<Declaration<'_>> {
        let symbol = symbol_of(name);
        let plain = without_suffix(symbol);
        let candidates = [name, symbol, plain, without_unique(plain)];
        let found = candidates
            .into_iter()
            .map(|name| self.of_name(name))
            .find(|found| !found.is_empty())?;
        let file = name.get(..(name.len() - symbol.len()).saturating_sub(1));
        self.only(found, file.unwrap_or_default())
    }

    /// Finds a function by the MD5 hash of its name, for sample profiles without names. Everything else is the same as
    /// in [`find`](Self::find).
    pub fn find_hash(&self, hash: NameRef) -> Option<Declaration<'_>> {
        let hashes = self.hashes.get_or_init(|| {
            let of_entry = |(index, entry): (usize, &Entry)| {
                let hash = NameRef::of(self.strings.get(entry.name)?);
                Some((hash, u32::try_from(index).ok()?))
            };
            let mut hashes: Vec<_> = self.list.iter().enumerate().filter_map(of_entry).collect();
            hashes.sort_unstable();
            hashes
        });
        let at = hashes.partition_point(|(other, _)| *other < hash);
        let (_, index) = hashes.get(at).filter(|(found, _)| *found == hash)?;
        let name = self.list.get(*index as usize)?.name;
        self.only(self.of_name(self.strings.get(name)?), b"")
    }

    /// Returns the declarations of functions with this name.
    fn of_name(&self, name: &[u8]) -> &[Entry] {
        let text = |entry: &Entry| self.strings.get(entry.name).unwrap_or_default();
        let start = self.list.partition_point(|entry| text(entry) < name);
        let rest = self.list.get(start..).unwrap_or_default();
        let len = rest.partition_point(|entry| text(entry) <= name);
        rest.get(..len).unwrap_or_default()
    }

    /// Returns the declaration if there is only one. If there are several, returns the only one whose path ends with
    /// `file`, otherwise a declaration of a function in Rust's standard library ([`of_std`](Self::of_std)). `None` if
    /// there is neither.
    fn only(&self, found: &[Entry], file: &[u8]) -> Option<Declaration<'_>> {
        let declaration = |entry: &Entry| {
            Some(Declaration {
                file: self.strings.get(entry.file)?,
                line: entry.line,
            })
        };
        if let [one] = found {
            return declaration(one);
        }
        let file = clean_path(file);
        let is_meant = |entry: &&Entry| {
            let path = self.strings.get(entry.file).unwrap_or_default();
            !file.is_empty() && ends_with_path(path, &file)
        };
        let mut meant = found.iter().take(MOST_OF_A_NAME).filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(one), None) => declaration(one),
            _ => self.of_std(found).and_then(declaration),
        }
    }

    /// Rust's standard library has two sets of source paths. It is compiled before rustc is installed, with paths that
    /// begin with `/rustc/COMMIT/library/`. In code that rustc compiles later, such as inlined functions, the paths are
    /// those of the component rust-src, if it is installed. So one function may have several declarations. If all given
    /// declarations are those of one such function, returns one of them, preferably one with a path in rust-src.
    fn of_std<'e>(&self, found: &'e [Entry]) -> Option<&'e Entry> {
        let path = |entry: &Entry| self.strings.get(entry.file).unwrap_or_default();
        let first = found.first().filter(|_| found.len() <= MOST_OF_A_NAME)?;
        let inside = found.iter().find_map(|entry| in_rustc(path(entry)))?;
        let same = |entry: &Entry| entry.line == first.line && ends_with_path(path(entry), inside);
        if !found.iter().all(same) {
            return None;
        }
        found
            .iter()
            .find(|entry| in_rustc(path(entry)).is_none())
            .or(Some(first))
    }
}

/// Returns the part of a path after `/rustc/COMMIT/`, which is a path in Rust's repository. `None` for other paths.
fn in_rustc(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/rustc/")?;
    let end = rest.iter().position(|&byte| byte == b'/')?;
    rest.get(end + 1..)
}

/// The declarations in one compile unit.
#[derive(Default)]
struct OfUnit {
    strings: Strings,
    list: Vec<Entry>,
    too_much: bool,
}

impl UnitVisitor for OfUnit {
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()> {
        let UnitView {
            dwarf,
            unit,
            mut names,
            files,
            work,
        } = view;
        let mut paths: FxHashMap<Option<usize>, Paths> = FxHashMap::default();
        let strings = &mut self.strings;
        for_each_function(unit, is_defined, |_, own| {
            // What is interned once in each unit is interned again in the whole list.
            let mut keep = |text: &[u8]| match work.take(2 * text.len()) {
                Ok(()) => strings.intern(text),
                Err(_) => NONE,
            };
            let named = names.resolve(&own, &mut keep);
            let (Some(name), Some(FileNumber { other, number })) = (named.function, named.file)
            else {
                return Ok(());
            };
            // Only debug info that is not split has references to other units.
            let (dwarf, unit) = match other {
                Some(other) => match names.other_unit(other) {
                    Some(unit) => (dwarf, unit),
                    None => return Ok(()),
                },
                None => files,
            };
            let paths = paths.entry(other).or_insert_with(Paths::new);
            let Some(file) = paths.get(dwarf, unit, number, &mut keep) else {
                self.too_much |= paths.too_long;
                return Ok(());
            };
            if name == NONE || file == NONE {
                self.too_much = true;
                return Ok(());
            }
            let line = named.line;
            self.list.push(Entry { name, file, line });
            Ok(())
        })
    }
}

/// Whether entries with this abbreviation describe a function that has code or was inlined. Entries that only declare a
/// function are not needed.
fn is_defined(abbreviation: &Abbreviation) -> bool {
    let mut attributes = abbreviation.attributes().iter();
    has_code(abbreviation) || attributes.any(|spec| spec.name() == dw::DW_AT_inline)
}

/// Resolves the parts `.` and `..` of a path with slashes, and removes repeated slashes.
pub fn clean_path(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let absolute = path.first() == Some(&b'/');
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| last != b"..") => {
                parts.pop();
            }
            b".." if absolute => {}
            part => parts.push(part),
        }
    }
    let mut cleaned = if absolute { vec![b'/'] } else { Vec::new() };
    cleaned.extend(parts.join(&b'/'));
    cleaned
}

/// Whether the last components of `path` are exactly the components of `end`.
fn ends_with_path(path: &[u8], end: &[u8]) -> bool {
    let rest = path.strip_suffix(end);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/") || end.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_without_the_file_system() {
        let cleaned =
            |path: &str| String::from_utf8(clean_path(path.as_bytes())).unwrap_or_default();
        assert_eq!(cleaned("/b/./src/../src//a.c"), "/b/src/a.c");
        assert_eq!(cleaned("../../a.c"), "../../a.c");
        assert_eq!(cleaned("/../a.c"), "/a.c");
        assert_eq!(cleaned("C:\\src\\a.c"), "C:\\src\\a.c");
    }

    #[test]
    fn the_file_in_a_name_decides_between_functions_of_that_name() {
        let mut declarations = Declarations::default();
        for (name, file, line) in [
            ("run", "/src/one.c", 3),
            ("run", "/src/two.c", 4),
            ("run", "/src/lib/two.c", 5),
            ("main", "/src/one.c", 9),
            ("main", "/src/one.c", 9),
            ("std", "/rustc/5980761/library/alloc/src/boxed.rs", 70),
            (
                "std",
                "/toolchain/lib/rustlib/src/rust/library/alloc/src/boxed.rs",
                70,
            ),
            ("not_std", "/rustc/5980761/library/alloc/src/boxed.rs", 70),
            ("not_std", "/src/boxed.rs", 70),
        ] {
            let name = declarations.strings.intern(name.as_bytes());
            let file = declarations.strings.intern(file.as_bytes());
            declarations.list.push(Entry { name, file, line });
        }
        declarations.sort();
        let line = |name: &[u8]| declarations.find(name).map(|found| found.line);
        assert_eq!(line(b"one.c;run"), Some(3));
        assert_eq!(line(b"./src/two.c:run"), Some(4));
        assert_eq!(line(b"lib/two.c;run"), Some(5));
        assert_eq!((line(b"two.c;run"), line(b"run")), (None, None));
        assert_eq!(line(b"main.llvm.77"), Some(9));
        assert_eq!(line(b"absent"), None);
        assert_eq!(line(b"not_std"), None);
        let of_std = declarations.find(b"std").map(|found| found.file);
        let local: &[u8] = b"/toolchain/lib/rustlib/src/rust/library/alloc/src/boxed.rs";
        assert_eq!(of_std, Some(local));
        let hash = |name: &[u8]| declarations.find_hash(NameRef::of(name));
        assert_eq!(hash(b"main"), declarations.find(b"main"));
        assert_eq!((hash(b"run"), hash(b"absent")), (None, None));
    }
}
