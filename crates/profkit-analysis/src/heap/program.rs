//! Looks for the frames of a heap profile in programs.
use super::profile::HeapProfile;
use profkit_data::ids::BuildId;
use profkit_data::instr::HeapSection;
use profkit_data::memprof::indexed::options_of;
use profkit_data::memprof::{Frame, MemProfile, SourceLocation, canonical_name, guid};
use profkit_data::{Error, ErrorKind, Result, path_text};
use profkit_object::binary::programs_in;
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, Options, ProgramFiles};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// How a compiler recognises a frame: function, line offset and column. Whether the function is inlined does not count,
/// because compilers of two builds may decide differently.
type Place = (u64, u32, u32);

fn place(frame: &Frame) -> Place {
    (frame.function, frame.line_offset, frame.column)
}

/// A program or library whose debug info was read.
#[derive(Clone, Debug)]
pub struct ProgramOfFrames {
    /// The path of the program.
    pub path: String,
    /// The build id of the program; `None` if it has none.
    pub build_id: Option<BuildId>,
    /// The number of functions with code, inlined ones included.
    pub functions: u64,
    /// The number of compile units whose split debug info was not found.
    pub missing_split: usize,
    /// The errors of debug info that could not be read.
    pub warnings: Vec<Error>,
}

/// The frames of a heap profile that programs have, by their debug info: in functions of their own and where they are
/// inlined.
///
/// ```no_run
/// use profkit_analysis::heap::{HeapProfile, ProgramFrames};
/// use profkit_object::debug_files::DebugFolders;
///
/// let heap = HeapProfile::from_indexed(&std::fs::read("heap.profdata")?)?;
/// let mut frames = ProgramFrames::wanted_by(&heap.profile);
/// frames.open("program".as_ref(), &DebugFolders::default())?;
/// println!("{} of {} frames", frames.found(), heap.profile.frames().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProgramFrames {
    /// For each place that the profile has: its location in a program, as soon as one has it.
    places: FxHashMap<Place, Option<SourceLocation>>,
    /// For each function of the profile: its name, as soon as a program has it.
    names: FxHashMap<u64, Option<Vec<u8>>>,
    /// The programs whose debug info was read.
    pub programs: Vec<ProgramOfFrames>,
    /// The programs in folders that could not be read, each with the reason.
    pub skipped: Vec<(String, Error)>,
}

impl ProgramFrames {
    /// Makes an empty set of frames; [`open`](Self::open) looks for those of this profile.
    pub fn wanted_by(profile: &MemProfile) -> Self {
        let frames = || profile.frames().iter();
        ProgramFrames {
            places: frames().map(|frame| (place(frame), None)).collect(),
            names: frames().map(|frame| (frame.function, None)).collect(),
            ..ProgramFrames::default()
        }
    }

    /// Looks for frames in a program or library, or in all of a folder.
    ///
    /// # Errors
    /// If the file cannot be read, is not a program or has no debug info; if the folder holds no program.
    pub fn open(&mut self, path: &Path, folders: &DebugFolders) -> Result<()> {
        if !path.is_dir() {
            return self.open_file(path, folders);
        }
        let files = programs_in(path).map_err(|error| {
            ErrorKind::CannotCorrelate.error(format!("the folder cannot be read: {error}"))
        })?;
        if files.is_empty() {
            return Err(ErrorKind::CannotCorrelate
                .error("the folder holds no program or library")
                .with_hint(
                    "give the folder into which the build writes its programs and libraries",
                ));
        }
        for file in files {
            if let Err(error) = self.open_file(&file, folders) {
                self.skipped.push((path_text(&file), error));
            }
        }
        Ok(())
    }

    /// Looks for frames in all of these programs, libraries and folders. Those that cannot be read are listed in
    /// [`skipped`](Self::skipped).
    pub fn open_all<'p>(
        &mut self,
        paths: impl IntoIterator<Item = &'p Path>,
        folders: &DebugFolders,
    ) {
        for path in paths {
            if let Err(error) = self.open(path, folders) {
                self.skipped.push((path_text(path), error));
            }
        }
    }

    fn open_file(&mut self, path: &Path, folders: &DebugFolders) -> Result<()> {
        let files = ProgramFiles::open(path, folders)?;
        let options = Options::default().symbol_names(false);
        let symbolizer = files.symbolizer(&options)?;
        if matches!(
            symbolizer.debug_info(),
            DebugInfo::SymbolsOnly | DebugInfo::Nothing
        ) {
            return Err(ErrorKind::CannotCorrelate
                .error("the binary has no debug info and no debug file")
                .with_hint(super::symbolize::FLAGS_HINT));
        }
        let places = symbolizer.code_places();
        let locations = symbolizer.symbolize(&places.addresses);
        // For each number of a name: the hash of the function, once it was computed.
        let mut hashes: Vec<Option<u64>> = vec![None; locations.name_count()];
        let (mut functions, mut without_line) = (0u64, 0u64);
        for id in locations.ids() {
            let (Some(number), Some(frame)) = (locations.name_number(id), locations.frame(id))
            else {
                continue;
            };
            let (Some(name), Some(hash)) = (frame.function, hashes.get_mut(number)) else {
                continue;
            };
            let function = *hash.get_or_insert_with(|| {
                functions += 1;
                without_line += u64::from(frame.function_line == 0);
                let function = guid(name);
                if let Some(named) = self.names.get_mut(&function) {
                    named.get_or_insert_with(|| canonical_name(name).to_vec());
                }
                function
            });
            let line_offset = frame.line.wrapping_sub(frame.function_line);
            let wanted = self.places.get_mut(&(function, line_offset, frame.column));
            if let Some(wanted @ None) = wanted {
                *wanted = Some(SourceLocation {
                    file: frame.file.unwrap_or_default().to_vec(),
                    line: frame.line,
                    column: frame.column,
                    discriminator: frame.discriminator,
                });
            }
        }
        let mut warnings = places.warnings;
        warnings.extend_from_slice(locations.warnings());
        // Functions that compilers make themselves have no first line.
        if without_line * 2 > functions {
            let error = ErrorKind::CannotCorrelate.error(format!(
                "{without_line} of {functions} functions have no first line in the debug info, so their frames look lost: -gmlt needs -fdebug-info-for-profiling"
            ));
            warnings.push(error);
        }
        let mut seen = FxHashSet::default();
        warnings.retain(|warning| seen.insert(warning.to_string()));
        self.programs.push(ProgramOfFrames {
            path: path_text(path),
            build_id: build_id(&files.program()?)?,
            functions,
            missing_split: places.missing_split,
            warnings,
        });
        Ok(())
    }

    /// Whether a program has the frame.
    pub fn has(&self, frame: &Frame) -> bool {
        self.location(frame).is_some()
    }

    /// The location of a frame in the first program that has the frame; `None` if no program has it.
    pub fn location(&self, frame: &Frame) -> Option<&SourceLocation> {
        self.places.get(&place(frame))?.as_ref()
    }

    /// The name of a function; `None` if no program has code of the function.
    pub fn name(&self, function: u64) -> Option<&[u8]> {
        self.names.get(&function)?.as_deref()
    }

    /// The number of places of the profile, without regard to inlining, that a program has.
    pub fn found(&self) -> usize {
        self.places.values().flatten().count()
    }
}

/// How much names and locations a profile got from programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// The number of functions that got a name.
    pub named: usize,
    /// The number of functions without a name.
    pub unnamed: usize,
    /// The number of frames that got a source location.
    pub located: usize,
    /// The number of frames without a source location.
    pub unlocated: usize,
}

/// Gives names and source locations of programs to the frames of a heap profile in an instrumentation profile, if it is
/// written with a portable section and lacks some. `programs` is asked for the programs only then. A damaged section is
/// left as it is.
pub fn complete_section(
    section: &mut HeapSection,
    programs: impl FnOnce(&MemProfile) -> ProgramFrames,
) -> Option<Completed> {
    if !section.has_portable() {
        return None;
    }
    let mut profile = section.profile().ok()?.into_owned();
    if !is_incomplete(&profile) {
        return None;
    }
    let options = match section {
        HeapSection::Stored(stored) => options_of(stored).ok()?,
        HeapSection::Profile(_, options) => options.clone(),
    };
    let programs = programs(&profile);
    let done = complete(&mut profile, &programs);
    *section = HeapSection::Profile(Box::new(profile), options);
    Some(done)
}

impl HeapProfile {
    /// Whether the profile has functions without names or frames without source locations.
    pub fn is_incomplete(&self) -> bool {
        is_incomplete(&self.profile)
    }

    /// Gives names and source locations of programs to the frames that have none.
    pub fn complete(&mut self, programs: &ProgramFrames) -> Completed {
        complete(&mut self.profile, programs)
    }
}

/// Whether a profile has functions without names or frames without source locations.
pub fn is_incomplete(profile: &MemProfile) -> bool {
    let mut frames = profile.frames().iter();
    frames.any(|frame| is_unnamed(profile, frame.function) || is_unlocated(profile, frame))
}

/// Gives names and source locations of programs to the frames of a profile that have none.
pub fn complete(profile: &mut MemProfile, programs: &ProgramFrames) -> Completed {
    let mut done = Completed::default();
    let frames: Vec<Frame> = profile.frames().iter().copied().collect();
    let mut functions = FxHashSet::default();
    for frame in frames {
        if functions.insert(frame.function) && is_unnamed(profile, frame.function) {
            match programs.name(frame.function) {
                Some(name) => {
                    profile.names.insert(frame.function, name.to_vec());
                    done.named += 1;
                }
                None => done.unnamed += 1,
            }
        }
        if is_unlocated(profile, &frame) {
            match programs.location(&frame) {
                Some(location) if !location.file.is_empty() => {
                    profile.locations.insert(frame, location.clone());
                    done.located += 1;
                }
                _ => done.unlocated += 1,
            }
        }
    }
    done
}

fn is_unnamed(profile: &MemProfile, function: u64) -> bool {
    profile.names.get(&function).is_none_or(Vec::is_empty)
}

fn is_unlocated(profile: &MemProfile, frame: &Frame) -> bool {
    let location = profile.locations.get(frame);
    location.is_none_or(|location| location.file.is_empty())
}
