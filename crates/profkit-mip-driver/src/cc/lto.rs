//! Links with Clang's link-time optimisation: the inputs are bitcode, and the linker makes machine code of them. The
//! driver links twice. In the first link, the linker writes assembly, which is instrumented and assembled. In the
//! second link, these objects take the place of the bitcode.
use super::bounds;
use super::error::{Doing, Error, Result, Unsupported};
use super::parse::{Class, Item, Kind, Parsed, Stop};
use super::plan::assemble_words;
use super::run::{Job, exit_code};
use crate::objects;
use profkit_object::library::{Bitcode, bitcode_in, is_bitcode};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::BufRead as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Whether the linker must make machine code of bitcode.
pub fn is_needed(parsed: &Parsed) -> Result<bool> {
    let has_bitcode = parsed.items.iter().any(|item| match item {
        Item::Input { path, kind, .. } => match kind {
            Kind::Other => bitcode_in(Path::new(path)) != Bitcode::No,
            _ => parsed.lto && *kind == Kind::Source,
        },
        Item::Option { .. } => false,
    });
    if has_bitcode && parsed.stop == Stop::PartialLink {
        return Err(Error::Unsupported(Unsupported::new(
            "-r with link-time optimisation: only the assembly of a whole link can be instrumented",
            "give the objects to the last link, without -r; or compile them with -fno-lto",
        )));
    }
    Ok(has_bitcode || parsed.lto && parsed.stop == Stop::Link)
}

/// The words of the link that makes the linker write assembly, and of the one of the instrumented objects.
struct Words {
    folder: PathBuf,
    /// The folders in which the linker looks for libraries (`-L`).
    search: Vec<PathBuf>,
    replaced: usize,
    first: Vec<OsString>,
    second: Vec<OsString>,
}

impl Words {
    fn add(&mut self, word: &OsString) -> Result<()> {
        let Some(parts) = word.as_bytes().strip_prefix(b"-Wl,") else {
            if let Some((first, second)) = self.replacement(word)? {
                self.first.push(first);
                self.second.extend(second);
            } else {
                self.first.push(word.clone());
                self.second.push(word.clone());
            }
            return Ok(());
        };
        let [mut first, mut second] = [OsString::from("-Wl"), OsString::from("-Wl")];
        for part in parts.split(|byte| *byte == b',').map(OsStr::from_bytes) {
            let (one, two) = match self.replacement(part)? {
                Some(replacement) => replacement,
                None => (part.to_owned(), Some(part.to_owned())),
            };
            first.push(",");
            first.push(one);
            if let Some(two) = two {
                second.push(",");
                second.push(two);
            }
        }
        self.first.push(first);
        self.second
            .extend(Some(second).filter(|word| word != "-Wl"));
        Ok(())
    }

    /// The words in place of `word` in the two links; `None` if it names no file with bitcode. The first link gets a
    /// copy in the temporary folder, because lld writes assembly beside its inputs. The second gets no bitcode: of a
    /// library, only the other members.
    fn replacement(&mut self, word: &OsStr) -> Result<Option<(OsString, Option<OsString>)>> {
        let path = match word.as_bytes().strip_prefix(b"-l") {
            Some(name) => match self.library(&OsStr::from_bytes(name).to_string_lossy()) {
                Some(path) => path,
                None => return Ok(None),
            },
            None => PathBuf::from(word),
        };
        let found = bitcode_in(&path);
        if found == Bitcode::No {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default();
        let first = self.folder.join(self.replaced.to_string()).join(name);
        let second = first.with_file_name("native").join(name);
        self.replaced += 1;
        let folder = second.parent().unwrap_or(&second);
        fs::create_dir_all(folder).map_err(Error::file(Doing::Make, folder))?;
        if found == Bitcode::File {
            std::path::absolute(&path)
                .and_then(|path| std::os::unix::fs::symlink(path, &first))
                .map_err(Error::file(Doing::Make, &first))?;
            return Ok(Some((first.into(), None)));
        }
        let bytes = fs::read(&path).map_err(Error::file(Doing::Read, &path))?;
        let mut members = objects::members(&path, &bytes)?;
        let write = |path: &Path, members: &[_]| {
            fs::write(path, objects::library_of(members)).map_err(Error::file(Doing::Write, path))
        };
        write(&first, &members)?;
        members.retain(|member| !is_bitcode(&member.data));
        if members.is_empty() {
            // The library is left out because gold does not read an empty library.
            return Ok(Some((first.into(), None)));
        }
        write(&second, &members)?;
        Ok(Some((first.into(), Some(second.into()))))
    }

    /// The static library for `-lNAME`; `None` if a shared one, or one in the linker's own folders, is taken.
    fn library(&self, name: &str) -> Option<PathBuf> {
        for folder in &self.search {
            let file = match name.strip_prefix(':') {
                Some(name) => folder.join(name),
                None if folder.join(format!("lib{name}.so")).exists() => return None,
                None => folder.join(format!("lib{name}.a")),
            };
            if file.exists() {
                return Some(file);
            }
        }
        None
    }
}

fn search(parsed: &Parsed) -> Vec<PathBuf> {
    let options = parsed.items.iter().filter_map(|item| match item {
        Item::Option {
            class: Class::Linker,
            words,
        } => Some(words.join(OsStr::new(""))),
        _ => None,
    });
    options
        .filter_map(|word| {
            let folder = word.as_bytes().strip_prefix(b"-L")?;
            Some(PathBuf::from(OsStr::from_bytes(folder)))
        })
        .collect()
}

/// Returns an error if the linker cannot write the assembly of link-time optimisation.
fn check_linker(job: &Job<'_>) -> Result<()> {
    let answer = job.compiler.ask(&bounds::question(job.parsed))?;
    let name = answer.lines().next().unwrap_or_default();
    // If the linker printed no version, it could not be started. The compiler will report the reason when it links.
    if name.is_empty() || name.contains("LLD ") || name.starts_with("GNU ") {
        return Ok(());
    }
    Err(no_assembly(name))
}

fn no_assembly(linker: &str) -> Error {
    Error::Unsupported(Unsupported::new(
        format!("{linker}: this linker does not write the assembly of link-time optimisation"),
        "link with lld (-fuse-ld=lld), or with GNU ld and LLVM's plugin",
    ))
}

/// Returns the exit code of the step that failed, or `None` if all succeeded.
pub fn link(job: &mut Job<'_>, words: &[OsString]) -> Result<Option<u8>> {
    check_linker(job)?;
    let folder = job.folder.join("lto");
    fs::create_dir_all(&folder).map_err(Error::file(Doing::Make, &folder))?;
    let mut links = Words {
        folder: folder.clone(),
        search: search(job.parsed),
        replaced: 0,
        first: Vec::new(),
        second: Vec::new(),
    };
    let mut is_output = false;
    for word in words {
        if is_output {
            links.first.push(word.clone());
            links.second.push(word.clone());
        } else {
            links.add(word)?;
        }
        is_output = word == "-o" || word == "--output";
    }
    // lld derives names of other files from this one, which the temporary folder makes unique.
    let mut output = job.folder.file_name().unwrap_or_default().to_owned();
    output.push(".link");
    let assembly = folder.join("asm");
    let mut option = OsString::from("-plugin-opt=obj-path=");
    option.push(&assembly);
    links.first.extend([
        "-o".into(),
        folder.join(&output).into(),
        "-Wl,-plugin-opt=emit-asm,--trace".into(),
        "-Xlinker".into(),
        option,
    ]);
    let made = job
        .command(&links.first)?
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| job.compiler.cannot_start(error))?;
    check_trace(&made.stdout, &folder, &output)?;
    if let Some(code) = exit_code(made.status) {
        return Ok(Some(code));
    }
    let files = assembly_files(&folder)?;
    if files.is_empty() && links.replaced > 0 {
        return Err(no_assembly("the linker"));
    }
    // With `-g`, the assembler would generate debug information for the assembly itself.
    let mut parsed = job.parsed.clone();
    parsed.items.retain(|item| {
        !matches!(item, Item::Option { words, .. } if words.iter().any(|word| word.as_bytes().starts_with(b"-g")))
    });
    let (compiler, words) = (job.compiler, job.words);
    let assemble = |text: &Path, object: &Path| {
        let status = compiler
            .command(&assemble_words(&parsed, text, object, false))
            .status()
            .map_err(|error| compiler.cannot_start(error))?;
        match exit_code(status) {
            None => Ok(()),
            Some(_) => Err(Error::Assembler {
                program: compiler.name(),
            }),
        }
    };
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let target = || compiler.target(words);
    let objects = objects::make(&files, &folder, job.options, target, assemble)?;
    // First, because they must not come after a library that they need, or inside a group of inputs.
    let mut all: Vec<OsString> = objects.into_iter().map(OsString::from).collect();
    all.extend(links.second);
    job.run(&all)
}

/// Returns the assembly files that the linker wrote, ordered by their numbers: `asm`, `asm1`, `asm2`…
fn assembly_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file(Doing::Read, folder))? {
        let entry = entry.map_err(Error::file(Doing::Read, folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("asm") else {
            continue;
        };
        // If all bitcode is ThinLTO's, the linker also writes an empty file for regular LTO.
        if entry.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            found.push((number.parse().unwrap_or(0), entry.path()));
        }
    }
    found.sort_by_key(|(number, _): &(u32, _)| *number);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Checks that all bitcode that was read comes from files that were replaced: otherwise code would be missing or
/// double. `trace` lists the files that the linker has read.
fn check_trace(trace: &[u8], folder: &Path, output: &OsStr) -> Result<()> {
    let mut seen = rustc_hash::FxHashSet::default();
    for line in trace.lines().map_while(std::result::Result::ok) {
        // A line names a member of a library as LIBRARY(MEMBER).
        let file = match line.rsplit_once('(') {
            Some((library, _)) if !Path::new(&line).exists() => library,
            _ => &line,
        };
        let path = Path::new(file);
        if path.starts_with(folder)
            || !seen.insert(file.to_owned())
            || bitcode_in(path) == Bitcode::No
        {
            continue;
        }
        // lld has written assembly beside this bitcode file. Remove that assembly.
        let beside = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let beside = fs::read_dir(beside.unwrap_or(Path::new(".")));
        for entry in beside.into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(output.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        return Err(Error::Unsupported(Unsupported::new(
            format!(
                "{file}: the linker has found bitcode in this file, which is not on the command line"
            ),
            "name the path of the file on the command line",
        )));
    }
    Ok(())
}
