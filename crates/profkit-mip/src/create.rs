//! Makes an empty MIP profile of a program from the program's MIP map. The map is a section of the program or a
//! separate file.
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::BuildId;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{FunctionId, Identity, ImageFacts, MapReadOptions, MipMap, MipProfile};
use profkit_data::tables::{Frame, StackFlags, StackId, Tables};
use profkit_data::{Error as DataError, ErrorKind, Structure};
use profkit_merge::files::{Input, system_text};
use profkit_object::binary::{BinaryFile, Image, architecture_name};
use profkit_object::debug_files::DebugFolders;
use profkit_object::mip_sections::MipSections;
use profkit_object::symbolize::{DebugInfo, Options, ProgramFiles};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Options for making an empty MIP profile.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// The program or debug file from which source locations are read. `None` means the binary itself.
    pub debug: Option<PathBuf>,
    /// The architecture to read from a universal Mach-O file. `None` is an error if the file contains several.
    pub arch: Option<String>,
    /// The build id of the new profile, for map files, which contain none.
    pub build_id: Option<BuildId>,
}

impl CreateOptions {
    /// Sets the file for source locations; see [`debug`](Self::debug).
    #[must_use]
    pub fn debug(mut self, file: Option<PathBuf>) -> Self {
        self.debug = file;
        self
    }

    /// Sets the architecture to read; see [`arch`](Self::arch).
    #[must_use]
    pub fn arch(mut self, name: Option<String>) -> Self {
        self.arch = name;
        self
    }

    /// Sets the build id of the new profile; see [`build_id`](Self::build_id).
    #[must_use]
    pub fn build_id(mut self, id: Option<BuildId>) -> Self {
        self.build_id = id;
        self
    }
}

/// Why an empty profile cannot be made, or locations not found: a file, and the problem with it.
#[derive(Debug)]
pub struct Error {
    name: String,
    problem: Problem,
}

/// The problem with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    Io(io::Error),
    /// The file is damaged, or is not the kind of file that is needed.
    Data(DataError),
}

impl Error {
    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The problem with the file.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns a suggestion to the user; `None` if there is nothing that helps.
    pub fn hint(&self) -> Option<&str> {
        match &self.problem {
            Problem::Io(_) => None,
            Problem::Data(error) => error.hint(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Io(error) => {
                write!(f, "{}: cannot be read: {}", self.name, system_text(error))
            }
            Problem::Data(error) => write!(f, "{}: {error}", self.name),
        }
    }
}

impl std::error::Error for Error {}

/// A remark about a new profile. The profile could be made, but something is missing or unusual.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The name of the file to which the remark applies.
    pub name: String,
    /// What the remark says.
    pub kind: NoteKind,
}

/// The content of a [`Note`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoteKind {
    /// Some functions share their record with another function. The variant holds the number of such functions.
    SharedRecords(u64),
    /// The input is a map file, and the caller gave no build id.
    MapWithoutBuildId,
    /// The binary has no build id.
    BinaryWithoutBuildId,
    /// The debug info of the binary cannot be read.
    UnreadableDebugInfo,
    /// The file has no debug info.
    NoDebugInfo,
    /// The symbolizer found a problem in the debug info.
    Debug(DataError),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.kind {
            NoteKind::SharedRecords(count) => write!(
                f,
                "{count} functions share their record with another function: a call of one counts for both"
            ),
            NoteKind::MapWithoutBuildId => f.write_str(
                "the profile has no build id, because a map has none: the first merge will copy the build id of the first raw file; --build-id ID sets it now",
            ),
            NoteKind::BinaryWithoutBuildId => f.write_str(
                "the binary has no build id, so raw files of other builds cannot be recognized (link with -Wl,--build-id)",
            ),
            NoteKind::UnreadableDebugInfo => {
                f.write_str("no source locations: the debug info cannot be read")
            }
            NoteKind::NoDebugInfo => f.write_str("there is no debug info (compile with -g)"),
            NoteKind::Debug(warning) => warning.fmt(f),
        }
    }
}

/// A new MIP profile without counts, and notes for the user about how it was made.
#[derive(Debug)]
pub struct Created {
    /// The profile. It contains all functions of the map, and all their counts are 0.
    pub profile: MipProfile,
    /// Remarks about the new profile.
    pub notes: Vec<Note>,
    /// The errors for the parts of the map that were left out.
    pub dropped: Vec<DataError>,
}

/// Makes an empty MIP profile from a binary or a map file.
///
/// # Errors
/// If the input is neither a binary nor a map file, or is damaged.
pub fn create(path: &Path, options: &CreateOptions) -> Result<Created, Error> {
    let input = Input::open(path).map_err(|error| Error {
        name: error.name,
        problem: Problem::Io(error.error),
    })?;
    let name = input.name().to_owned();
    let front = input.problem().map(|problem| {
        let read = input.len();
        format!("copy the file again: only its first {read} bytes can be read, because {problem}")
    });
    let fail = |error: DataError| match &front {
        Some(front) => data_error(&name, error.with_hint(front.clone())),
        None => data_error(&name, error),
    };
    let note = |kind| Note {
        name: name.clone(),
        kind,
    };
    let from_map = |data: &[u8], facts: &ImageFacts, section: Option<u64>| {
        let created = MipMap::parse_with(data, &MapReadOptions::new().section_address(section))
            .and_then(|map| MipProfile::create(&map, facts))
            .map_err(fail)?;
        let mut notes = Vec::new();
        if created.shared_records > 0 {
            notes.push(note(NoteKind::SharedRecords(created.shared_records)));
        }
        Ok(Created {
            profile: created.profile,
            notes,
            dropped: created.dropped,
        })
    };
    let mut created;
    let kind = detect(&input);
    if kind.is_mip() && kind != FileKind::MipYaml {
        if !matches!(kind, FileKind::MipMap | FileKind::MipUnknown) {
            let error = DataError::new(
                ErrorKind::Unsupported,
                "the file is neither a binary nor a map",
            )
            .found(kind.description())
            .with_hint("give the program that was built with profkit mip cc, not a stripped copy");
            return Err(fail(error));
        }
        let facts = ImageFacts::new().build_id(options.build_id.clone());
        created = from_map(&input, &facts, None)?;
        if let Some(problem) = input.problem() {
            let rest = format!(
                "everything after the first {} bytes of the file: {problem}",
                input.len()
            );
            created
                .dropped
                .push(DataError::new(ErrorKind::Truncated, rest));
        }
        if created.profile.identity.is_unknown() {
            created.notes.push(note(NoteKind::MapWithoutBuildId));
        }
    } else {
        drop(input);
        let file = open_binary(path)?;
        let image = one_image(&file, options.arch.as_deref()).map_err(fail)?;
        let sections = MipSections::of(&image).map_err(fail)?.ok_or_else(|| {
            fail(
                DataError::new(ErrorKind::Unsupported, "the section __llvm_mipmap is missing")
                    .within(Structure::Sections)
                    .with_hint("the file was stripped, or was not built with profkit mip cc: give the program as the linker wrote it, not stripped"),
            )
        })?;
        let facts = ImageFacts::new()
            .build_id(options.build_id.clone().or(sections.build_id))
            .width(Some(sections.width))
            .section_size(sections.section_size);
        created = from_map(&sections.map, &facts, sections.section_address)?;
        if created.profile.identity.is_unknown() {
            created.notes.push(note(NoteKind::BinaryWithoutBuildId));
        }
    }
    let symbols = options.debug.as_deref().or_else(|| {
        // A map file has no debug info, so its source locations are unknown.
        (created.profile.width.is_some() && created.profile.section_size.is_some()).then_some(path)
    });
    if let Some(symbols) = symbols {
        match locate(&created.profile, symbols, options.arch.as_deref()) {
            Ok(located) => {
                if options.debug.is_some() || located.stacks.iter().any(Option::is_some) {
                    created.notes.extend(located.notes);
                }
                created.profile.tables = located.tables;
                for (function, stack) in created.profile.functions.iter_mut().zip(located.stacks) {
                    function.location = stack;
                }
            }
            Err(error) if options.debug.is_some() => return Err(error),
            // A binary without debug info is not an error.
            Err(_) => created.notes.push(note(NoteKind::UnreadableDebugInfo)),
        }
    }
    Ok(created)
}

fn data_error(name: &str, error: DataError) -> Error {
    Error {
        name: name.to_owned(),
        problem: Problem::Data(error),
    }
}

fn open_binary(path: &Path) -> Result<BinaryFile, Error> {
    BinaryFile::open(path).map_err(|error| Error {
        name: profkit_data::path_text(path),
        problem: Problem::Io(error),
    })
}

fn one_image<'a>(file: &'a BinaryFile, arch: Option<&str>) -> Result<Image<'a>, DataError> {
    let mut images = file.images()?;
    if arch.is_none() && images.len() > 1 {
        let names: Vec<_> = images
            .iter()
            .map(|image| architecture_name(image))
            .collect();
        return Err(DataError::new(
            ErrorKind::Unsupported,
            "the file holds several architectures",
        )
        .found(names.join(", "))
        .with_hint("choose one with --arch"));
    }
    let found: Vec<_> = images
        .iter()
        .map(|image| architecture_name(image))
        .collect();
    let index = match arch {
        None => 0,
        Some(arch) => found.iter().position(|name| name == arch).ok_or_else(|| {
            DataError::new(
                ErrorKind::Unsupported,
                "the file has no part for the architecture that was asked for",
            )
            .found(found.join(", "))
            .expected(arch)
        })?,
    };
    if index < images.len() {
        Ok(images.swap_remove(index))
    } else {
        Err(DataError::new(
            ErrorKind::UnrecognizedFormat,
            "the universal file holds no architecture",
        ))
    }
}

/// The source locations of the functions in a MIP profile.
#[derive(Debug)]
pub struct Located {
    /// The tables of call stacks, paths and names that the locations refer to.
    pub tables: Tables,
    /// For each function of the profile, the source location of its first instruction; `None` if it is unknown.
    pub stacks: IndexVec<FunctionId, Option<StackId>>,
    /// Remarks about the source locations.
    pub notes: Vec<Note>,
}

impl Located {
    /// Makes these locations those of the profile for which they were found. Returns the remarks about them.
    pub fn apply(self, profile: &mut MipProfile) -> Vec<Note> {
        profile.tables = self.tables;
        for (function, stack) in profile.functions.iter_mut().zip(self.stacks) {
            function.location = stack;
        }
        self.notes
    }
}

/// Finds the source location of the first instruction of each function in the profile.
///
/// # Errors
/// If the file is neither a program nor a debug file, or belongs to another build.
pub fn locate(profile: &MipProfile, path: &Path, arch: Option<&str>) -> Result<Located, Error> {
    let name = profkit_data::path_text(path);
    let fail = |error| data_error(&name, error);
    let note = |kind| Note {
        name: name.clone(),
        kind,
    };
    let file = open_binary(path)?;
    let image = one_image(&file, arch).map_err(fail)?;
    let id = profkit_object::build_id::build_id(&image).map_err(fail)?;
    if let (Identity::BuildId(expected), Some(found)) = (&profile.identity, id)
        && !profile.identity.is_unknown()
        && *expected != found
    {
        return Err(fail(
            DataError::new(ErrorKind::Unsupported, "the debug info is of another build")
                .found(format_args!("build id {found}"))
                .expected(format_args!("build id {expected}"))
                .with_hint("give the program or debug file of the build that was profiled"),
        ));
    }
    let section = MipSections::record_address(&image);
    let mut addresses = Vec::with_capacity(profile.functions.len());
    for function in &profile.functions {
        let address = profile.address_of(function, section).ok_or_else(|| {
            fail(
                DataError::new(ErrorKind::Unsupported, "the section __llvm_mipraw is missing")
                    .within(Structure::Sections)
                    .with_hint("the addresses of this profile are relative to the section __llvm_mipraw: give the program that was profiled"),
            )
        })?;
        addresses.push(address);
    }
    let files = ProgramFiles::open(path, &DebugFolders::default()).map_err(fail)?;
    let symbolizer = files.symbolizer(&Options::default()).map_err(fail)?;
    let mut located = Located {
        tables: Tables::default(),
        stacks: IndexVec::parallel_to(&profile.functions, None),
        notes: Vec::new(),
    };
    if !matches!(
        symbolizer.debug_info(),
        DebugInfo::Binary | DebugInfo::DebugFile
    ) {
        located.notes.push(note(NoteKind::NoDebugInfo));
        return Ok(located);
    }
    let found = symbolizer.symbolize(&addresses);
    for (index, stack) in located.stacks.iter_mut().enumerate() {
        let frames: Vec<_> = found.stack(index).collect();
        let outermost = frames.len().saturating_sub(1);
        let frames: Vec<_> = frames
            .iter()
            .enumerate()
            .map(|(depth, frame)| Frame {
                function: frame.function.unwrap_or_default(),
                path: frame.file.map(Cow::Borrowed),
                line: frame.line,
                column: frame.column,
                flags: if depth < outermost {
                    StackFlags::INLINED
                } else {
                    StackFlags::default()
                },
            })
            .collect();
        // If no frame has a line, the debug info shows only the function's name, and no location is stored.
        if frames.iter().any(|frame| frame.line > 0) {
            *stack = located.tables.intern_stack(&frames).map_err(fail)?;
        }
    }
    let warnings = found.warnings().iter().take(3);
    located
        .notes
        .extend(warnings.map(|warning| note(NoteKind::Debug(warning.clone()))));
    Ok(located)
}
