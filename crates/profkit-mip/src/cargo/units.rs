//! The codegen units of a crate. rustc compiles each to an object and, with `--emit=asm`, to an assembly file.
//!
//! | file | when |
//! |---|---|
//! | `CRATE.s` | the assembly, if there is one unit |
//! | `CRATE.UNIT.rcgu.s` | the assembly, if there are several units |
//! | `CRATE.UNIT.rcgu.o` | the object, which exists until the link, and in libraries; UNIT ends in `-cgu.N` |
//! | `CRATE.OTHER.UNIT.rcgu.o.rcgu.o` | with `lto = "thin"`: the object of a unit of the library OTHER |
//! | `CRATE.NUMBER.rcgu.o` | the object with the choice of the allocator, which has no code of the user |
use super::link::Tools;
use super::rustc::is_tracked;
use crate::cc::{Doing, Error, Result, instrument_file, is_clang};
use crate::instrument::Options;
use object::read::archive::ArchiveFile;
use profkit_merge::files::{Content, Output};
use profkit_rt::archive::{Member, archive};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files in the folder of a crate's outputs whose names begin with the name of the outputs and a dot: the rest of
/// each name, and the path.
fn files(outputs: &Path) -> Result<Vec<(String, PathBuf)>> {
    let folder = outputs.parent().unwrap_or(Path::new("."));
    let prefix = format!("{}.", crate_name(outputs));
    let entries = fs::read_dir(folder).map_err(Error::file(Doing::Read, folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::file(Doing::Read, folder))?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if let Some(rest) = name.and_then(|name| name.strip_prefix(&prefix)) {
            found.push((rest.to_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

fn crate_name(outputs: &Path) -> String {
    let name = outputs.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether the rest of a file's name is that of an assembly file of a unit.
fn is_assembly(rest: &str) -> bool {
    rest == "s" || rest.ends_with(".rcgu.s")
}

/// Removes the assembly files of a crate.
pub fn remove_assembly(outputs: &Path) -> Result<()> {
    for (rest, path) in files(outputs)? {
        if is_assembly(&rest) {
            fs::remove_file(&path).map_err(Error::file(Doing::Remove, &path))?;
        }
    }
    Ok(())
}

/// Whether an object is to be replaced: it has code, and it belongs to a crate that is to be instrumented. `rest` is its
/// name without the name of the crate that is being compiled.
fn is_wanted(rest: &str, outputs: &Path) -> bool {
    if !rest.ends_with(".rcgu.o") || !rest.contains("-cgu.") {
        return false;
    }
    if !rest.ends_with(".rcgu.o.rcgu.o") {
        return true;
    }
    let library = rest.split('.').next().unwrap_or_default();
    is_tracked(&outputs.with_file_name(library))
}

/// The assembly files of a crate.
struct Assembly(Vec<(String, PathBuf)>);

impl Assembly {
    fn of(outputs: &Path) -> Result<Self> {
        let mut files = files(outputs)?;
        files.retain(|(rest, _)| is_assembly(rest));
        Ok(Assembly(files))
    }

    /// Returns the assembly file of an object. `only` says whether the object is the only one of the crate.
    fn file(&self, rest: &str, only: bool, outputs: &Path) -> Result<&Path> {
        let named = rest.strip_suffix('o').map(|stem| format!("{stem}s"));
        let found = self
            .0
            .iter()
            .find(|(own, _)| Some(own) == named.as_ref() || only && own == "s");
        let (_, path) = found.ok_or_else(|| Error::NoAssembly {
            object: format!("{}.{rest}", crate_name(outputs)),
        })?;
        Ok(path)
    }
}

/// Instruments and assembles files, with several threads. Returns the paths of the objects, which are in `folder`, in
/// the order of the files.
fn make(files: &[&Path], folder: &Path, tools: &Tools, options: &Options) -> Result<Vec<PathBuf>> {
    let objects: Vec<PathBuf> = (0..files.len())
        .map(|number| folder.join(format!("{number}.o")))
        .collect();
    let clang = is_clang(&tools.linker)?;
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(files.len()) {
            scope.spawn(|| {
                while let Some((from, object)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    files.get(number).zip(objects.get(number))
                } {
                    let text = object.with_extension("s");
                    let name = from.file_name().unwrap_or_default();
                    let made = instrument_file(from, &text, name, false, options, || {
                        Ok(tools.target.clone())
                    })
                    .and_then(|()| tools.assemble(clang, &text, object));
                    if let Err(error) = made
                        && let Ok(mut failure) = failure.lock()
                    {
                        next.store(files.len(), Ordering::Relaxed);
                        *failure = Some(error);
                    }
                }
            });
        }
    });
    match failure.into_inner().ok().flatten() {
        Some(error) => Err(error),
        None => Ok(objects),
    }
}

fn folder_beside(outputs: &Path) -> Result<tempfile::TempDir> {
    let folder = outputs.parent().unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix("profkit-mip-")
        .tempdir_in(folder)
        .map_err(Error::file(Doing::MakeFolder, folder))
}

/// Replaces the objects of a crate that is about to be linked.
pub fn replace_objects(outputs: &Path, tools: &Tools, options: &Options) -> Result<()> {
    let mut objects = files(outputs)?;
    objects.retain(|(rest, _)| is_wanted(rest, outputs));
    let assembly = Assembly::of(outputs)?;
    let only = objects.len() == 1;
    let sources = objects
        .iter()
        .map(|(rest, _)| assembly.file(rest, only, outputs))
        .collect::<Result<Vec<_>>>()?;
    let folder = folder_beside(outputs)?;
    let made = make(&sources, folder.path(), tools, options)?;
    for (new, (_, old)) in made.iter().zip(&objects) {
        fs::rename(new, old).map_err(Error::file(Doing::Write, old))?;
    }
    Ok(())
}

/// Replaces the objects of a crate in a library that rustc has made of it.
pub fn replace_members(
    library: &Path,
    outputs: &Path,
    tools: &Tools,
    options: &Options,
) -> Result<()> {
    let damaged = |problem: String| Error::Library {
        name: profkit_data::path_text(library),
        problem,
    };
    let broken = |error: object::Error| damaged(error.to_string());
    let bytes = fs::read(library).map_err(Error::file(Doing::Read, library))?;
    let old = ArchiveFile::parse(&*bytes).map_err(broken)?;
    // The new objects define the same symbols as the old ones, so the old index tells which object has which symbol.
    let mut symbols: FxHashMap<u64, Vec<&str>> = FxHashMap::default();
    for symbol in old.symbols().map_err(broken)?.into_iter().flatten() {
        let symbol = symbol.map_err(broken)?;
        let member = old.member(symbol.offset()).map_err(broken)?;
        let name =
            std::str::from_utf8(symbol.name()).map_err(|error| damaged(error.to_string()))?;
        symbols.entry(member.file_range().0).or_default().push(name);
    }
    let prefix = format!("{}.", crate_name(outputs));
    let mut members = Vec::new();
    for member in old.members() {
        let member = member.map_err(broken)?;
        let name =
            std::str::from_utf8(member.name()).map_err(|error| damaged(error.to_string()))?;
        let data = member.data(&*bytes).map_err(broken)?;
        let symbols = symbols.remove(&member.file_range().0).unwrap_or_default();
        members.push((name, data, symbols));
    }
    let own = |name: &str| {
        let rest = name.strip_prefix(&prefix)?;
        is_wanted(rest, outputs).then(|| rest.to_owned())
    };
    let wanted: Vec<String> = members.iter().filter_map(|(name, ..)| own(name)).collect();
    let assembly = Assembly::of(outputs)?;
    let sources = wanted
        .iter()
        .map(|rest| assembly.file(rest, wanted.len() == 1, outputs))
        .collect::<Result<Vec<_>>>()?;
    let folder = folder_beside(outputs)?;
    let made = make(&sources, folder.path(), tools, options)?;
    let mut objects = Vec::new();
    for path in &made {
        objects.push(fs::read(path).map_err(Error::file(Doing::Read, path))?);
    }
    let mut new = objects.iter();
    let members: Vec<Member<'_>> = members
        .iter()
        .map(|(name, data, symbols)| Member {
            name,
            object: match own(name) {
                Some(_) => new.next().map_or(*data, Vec::as_slice),
                None => data,
            },
            symbols,
        })
        .collect();
    let bytes = archive(&members);
    Output::new(library, Content::Binary)
        .and_then(|output| output.write(|sink| sink.put(&bytes)))
        .map_err(Error::WriteLibrary)?;
    Ok(())
}
