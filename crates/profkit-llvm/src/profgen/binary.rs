//! The binary: its files, and the errors and warnings that LLVM's tool prints while it reads them.
use crate::command_line::{Parsed, file_name};
use crate::messages::{Fault, Session};
use object::{Architecture, BinaryFormat, Object as _};
use profkit_data::path_from_bytes;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_profgen::{Program, ProgramOptions};
use std::io;
use std::path::Path;

/// The files of the binary.
pub struct Files {
    files: ProgramFiles,
    name: Vec<u8>,
}

/// The binary, with its code and functions.
pub struct Binary<'files> {
    /// The code and functions.
    pub program: Program<'files>,
    /// The name of the binary's file, without folders.
    pub name: Vec<u8>,
    /// The segments with code, in the order of the file. Each has its offset in the file and its address, both rounded
    /// down to pages.
    pub segments: Vec<(u64, u64)>,
    /// The first address of the binary. The addresses in unsymbolized profiles are relative to it by default.
    pub first: u64,
}

fn fault_of_file(path: &[u8]) -> Fault {
    let file = path_from_bytes(path);
    let known = match std::fs::File::open(&file) {
        Err(error) => return Fault::io(path, &error),
        Ok(_) if file.is_dir() => {
            return Fault::of(path, "Is a directory");
        }
        Ok(file) => begins_like_an_archive(file),
    };
    Fault::of(
        path,
        if known {
            "not a valid ELF/COFF image"
        } else {
            "The file was not recognized as a valid object file"
        },
    )
}

fn begins_like_an_archive(mut file: impl io::Read) -> bool {
    let mut head = [0; 8];
    file.read_exact(&mut head).is_ok() && head == *b"!<arch>\n"
}

impl Files {
    /// Opens the files that the command line names.
    ///
    /// # Errors
    /// LLVM's texts for files that cannot be read, or are no programs.
    pub fn open(parsed: &Parsed) -> Result<Self, Fault> {
        let path = parsed.text("binary");
        let opened = ProgramFiles::open(&path_from_bytes(path), &DebugFolders::default());
        let opened = opened.map_err(|_| fault_of_file(path))?;
        let mut files = opened.without_packed_symbols();
        let debug = parsed.text("debug-binary");
        if !debug.is_empty() {
            files = files
                .with_debug_file(&path_from_bytes(debug))
                .map_err(|_| fault_of_file(debug))?;
        }
        let package = parsed.text("dwp");
        if !package.is_empty() && Path::new(&path_from_bytes(package)).exists() {
            files = files
                .with_package(&path_from_bytes(package))
                .map_err(|_| fault_of_file(package))?;
        }
        Ok(Files {
            files,
            name: file_name(path),
        })
    }

    /// Reads the code and the functions.
    ///
    /// # Errors
    /// LLVM's texts for binaries that cannot be used.
    pub fn load(&self, parsed: &Parsed, session: &Session<'_>) -> Result<Binary<'_>, Fault> {
        let path = parsed.text("binary");
        let damaged = |error: profkit_data::Error| Fault::of(path, error.to_string());
        let image = self.files.program().map_err(damaged)?;
        if !matches!(
            image.format(),
            BinaryFormat::Elf | BinaryFormat::Coff | BinaryFormat::Pe
        ) {
            return Err(Fault::of(path, "not a valid ELF/COFF image"));
        }
        let triple = parsed.text("target-triple");
        if !triple.is_empty() && !is_triple_of(triple, image.architecture()) {
            return Err(Fault::of(
                path,
                "--target-triple names another processor than the binary does, which profkit does not support",
            ));
        }
        let is_object = image.format() == BinaryFormat::Elf && image.segments().next().is_none();
        let is_no_program = self.files.debug_image().is_err();
        if is_no_program {
            return Err(fault_of_file(parsed.text("debug-binary")));
        }
        let mut how = ProgramOptions::default();
        how.ignore_probes = parsed.flag("use-dwarf-correlation");
        how.only_debug_info = parsed.given_flag("load-function-from-symbol") == Some(false);
        let program = Program::load(&self.files, how).map_err(damaged)?;
        let segments: Vec<(u64, u64)> = program.text_segments().collect();
        if segments.is_empty() || is_object {
            return Err(Fault::of(path, "no executable segment found"));
        }
        let facts = program.facts();
        if facts.missing_split > 0 {
            let text = format!(
                " DWO debug information was not loaded for {} modules. Please check the .o, .dwo or .dwp path.",
                facts.missing_split
            );
            session.warning(b"", &text);
        }
        if facts.functions == facts.of_symbols {
            session.warning(
                b"",
                "Loading of DWARF info completed, but no binary functions have been retrieved.",
            );
        }
        if facts.shared_starts > 0 {
            let text = format!(
                "Found {} start addresses with multiple symbols",
                facts.shared_starts
            );
            session.warning(b"", &text);
        }
        share(
            session,
            facts.without_entry,
            facts.functions,
            "of functions failed to determine function entry due to inconsistent name from symbol table and dwarf info.",
        );
        let first = if parsed.flag("use-first-loadable-segment-as-base") {
            program.first_segment()
        } else {
            program.base()
        };
        Ok(Binary {
            segments,
            first,
            name: self.name.clone(),
            program,
        })
    }
}

/// Whether a triple names this processor.
fn is_triple_of(triple: &[u8], architecture: Architecture) -> bool {
    let name = triple.split(|&byte| byte == b'-').next();
    let names: &[&[u8]] = match architecture {
        Architecture::X86_64 => &[b"x86_64", b"amd64", b"x86_64h"],
        Architecture::I386 => &[b"i386", b"i486", b"i586", b"i686"],
        Architecture::Aarch64 => &[b"aarch64", b"arm64"],
        _ => &[],
    };
    name.is_some_and(|name| names.contains(&name))
}

/// Prints a warning that states the share that `part` has of `all`. Prints nothing if `part` or `all` is 0.
pub fn share(session: &Session<'_>, part: u64, all: u64, text: &str) {
    if part > 0 && all > 0 {
        let share = part.wrapping_mul(100) as f64 / all as f64;
        session.warning(b"", &format!("{share:.2}%({part}/{all}) {text}"));
    }
}
