//! The codegen units of a crate. rustc compiles each unit to an object and, with `--emit=asm`, also to an assembly
//! file.
//!
//! | file | content |
//! |---|---|
//! | `CRATE.s` | the assembly of the crate, if it has only one unit |
//! | `CRATE.UNIT.rcgu.s` | the assembly of one unit, if the crate has several |
//! | `CRATE.UNIT.rcgu.o` | the object of a unit, as a file until the link or as a member of a library; UNIT ends in `-cgu.N` |
//! | `CRATE.OTHER.UNIT.rcgu.o.rcgu.o` | with `lto = "thin"`: the object of a unit of the library OTHER |
//! | `CRATE.NUMBER.rcgu.o` | rustc's object that selects the allocator; it has no code of the user |
use super::link::Tools;
use super::rustc::is_tracked;
use crate::cc::{Doing, Error, Result, is_clang};
use crate::objects;
use profkit_merge::files::{Content, Output};
use profkit_mip::instrument::Options;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The output files of a crate: the rest of each name, after the outputs' name and a dot, and its path.
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

/// `rest` is the name without the crate's name and the dot after it.
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

/// Whether an object has code and belongs to an instrumented crate. `rest` is its name without that of the crate.
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

/// The assembly files of a crate. Each file is a pair of its name, without the crate's name and the dot, and its path.
struct Assembly(Vec<(String, PathBuf)>);

impl Assembly {
    fn of(outputs: &Path) -> Result<Self> {
        let mut files = files(outputs)?;
        files.retain(|(rest, _)| is_assembly(rest));
        Ok(Assembly(files))
    }

    /// The assembly file of the object that replaces a given one. `only` says that the crate has no other object.
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

/// Instruments and assembles files. Returns the paths of the new objects, which are in `folder`.
fn make(files: &[&Path], folder: &Path, tools: &Tools, options: &Options) -> Result<Vec<PathBuf>> {
    let clang = is_clang(&tools.linker)?;
    let assemble = |text: &Path, object: &Path| tools.assemble(clang, text, object);
    objects::make(
        files,
        folder,
        options,
        || Ok(tools.target.clone()),
        assemble,
    )
}

fn folder_beside(outputs: &Path) -> Result<tempfile::TempDir> {
    let folder = outputs.parent().unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix("profkit-mip-")
        .tempdir_in(folder)
        .map_err(Error::file(Doing::MakeFolder, folder))
}

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

pub fn replace_members(
    library: &Path,
    outputs: &Path,
    tools: &Tools,
    options: &Options,
) -> Result<()> {
    let bytes = fs::read(library).map_err(Error::file(Doing::Read, library))?;
    // The new objects define the same symbols, so the symbol lists of the old members are used again.
    let mut members = objects::members(library, &bytes)?;
    let prefix = format!("{}.", crate_name(outputs));
    let own = |name: &str| {
        let rest = name.strip_prefix(&prefix)?;
        is_wanted(rest, outputs).then(|| rest.to_owned())
    };
    let wanted: Vec<String> = members
        .iter()
        .filter_map(|member| own(member.name))
        .collect();
    let assembly = Assembly::of(outputs)?;
    let sources = wanted
        .iter()
        .map(|rest| assembly.file(rest, wanted.len() == 1, outputs))
        .collect::<Result<Vec<_>>>()?;
    let folder = folder_beside(outputs)?;
    let made = make(&sources, folder.path(), tools, options)?;
    let replaced = members
        .iter_mut()
        .filter(|member| own(member.name).is_some());
    for (member, path) in replaced.zip(&made) {
        member.data = fs::read(path)
            .map_err(Error::file(Doing::Read, path))?
            .into();
    }
    let bytes = objects::library_of(&members);
    Output::new(library, Content::Binary)
        .and_then(|output| output.write(|sink| sink.put(&bytes)))
        .map_err(Error::WriteLibrary)?;
    Ok(())
}
