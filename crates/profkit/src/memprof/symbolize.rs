//! From contexts of addresses to a profile, module by module.
use crate::correlate::debuginfod::{Artifact, Client};
use profkit_data::ids::BuildId;
use profkit_data::memprof::{Context, Frame, MemProfile, build, canonical_name, guid};
use profkit_data::{Error, ErrorKind, Result};
use profkit_merge::memprof::{Module, RawContexts};
use profkit_object::binary::BinaryFile;
use profkit_object::debug_files::DebugFolders;
use profkit_object::index::BinaryIndex;
use profkit_object::memprof::{Answer, ModuleFrames, fits_mapping, linked_address};
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// The flags without which clang's debug info says nothing of frames.
const FLAGS_HINT: &str = "compile and link with -gmlt -fdebug-info-for-profiling (or -g), or give the folder of the debug file with --debug-file-directory";

/// Where a module's addresses are symbolised.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program or library.
    pub path: PathBuf,
}

/// Where binaries come from.
pub trait BySymbols: Sync {
    /// The binary of a module; `None` if there is none and that was to be expected.
    ///
    /// # Errors
    /// Why there is none.
    fn find(&self, module: &Module) -> Result<Option<Found>>;
    /// Where debug files are.
    fn debug_folders(&self) -> &DebugFolders;
}

/// Binaries by build id, as correlation has them.
#[derive(Debug)]
pub struct IndexSource<'a> {
    /// The binaries.
    pub index: &'a BinaryIndex,
    /// Where debug files are.
    pub folders: &'a DebugFolders,
    /// Servers to ask for what is in no folder.
    pub servers: Option<&'a Client>,
}

impl BySymbols for IndexSource<'_> {
    fn find(&self, module: &Module) -> Result<Option<Found>> {
        match module {
            Module::Linked { build_id } => {
                let found = self.index.find(build_id);
                let with_info = |path: &Path| {
                    let files = ProgramFiles::open(path, self.folders).ok();
                    let symbolizer = files.as_ref().and_then(|files| {
                        files
                            .symbolizer(&profkit_object::symbolize::Options::default())
                            .ok()
                    });
                    symbolizer.is_some_and(|symbolizer| {
                        matches!(
                            symbolizer.debug_info(),
                            DebugInfo::Binary | DebugInfo::DebugFile
                        )
                    })
                };
                let best = match found.as_slice() {
                    [_] | [] => found.first(),
                    several => several
                        .iter()
                        .find(|binary| with_info(&binary.path))
                        .or(several.first()),
                };
                let path = match (best, self.servers) {
                    (Some(binary), Some(servers)) if !with_info(&binary.path) => {
                        servers.find(build_id, Artifact::DebugInfo)?
                    }
                    (Some(binary), _) => binary.path.clone(),
                    (None, Some(servers)) => servers.find(build_id, Artifact::DebugInfo)?,
                    (None, None) => return Ok(None),
                };
                Ok(Some(Found { path }))
            }
            &Module::Mapping {
                file_offset, len, ..
            } => {
                let mut fitting = Vec::new();
                for binary in &self.index.binaries {
                    let file = BinaryFile::open(&binary.path);
                    let fits = file
                        .is_ok_and(|file| fits_mapping(&file, file_offset, len).unwrap_or(false));
                    if fits {
                        fitting.push(&binary.path);
                    }
                }
                match fitting.as_slice() {
                    [] => Ok(None),
                    [one] => Ok(Some(Found {
                        path: (*one).clone(),
                    })),
                    several => Err(Error::new(
                        ErrorKind::CannotCorrelate,
                        "the mapping has no build id, and several binaries fit its size",
                    )
                    .found(format_args!(
                        "{} and {} more",
                        several.first().map_or_else(String::new, |path| path.display().to_string()),
                        several.len() - 1
                    ))
                    .with_hint("raw profiles of LLVM 14 to 17 have no build ids: merge those of one program at a time, with its binary alone")),
                }
            }
            Module::None => Ok(None),
        }
    }

    fn debug_folders(&self) -> &DebugFolders {
        self.folders
    }
}

/// One binary, as LLVM's tool takes it.
#[derive(Debug)]
pub struct OneBinary {
    /// Where it is.
    pub path: PathBuf,
    /// Its build id.
    pub id: BuildId,
    /// No folders: LLVM looks at the binary alone.
    pub folders: DebugFolders,
}

impl BySymbols for OneBinary {
    fn find(&self, module: &Module) -> Result<Option<Found>> {
        let own = matches!(module, Module::Linked { build_id } if *build_id == self.id);
        Ok(own.then(|| Found {
            path: self.path.clone(),
        }))
    }

    fn debug_folders(&self) -> &DebugFolders {
        &self.folders
    }
}

/// None at all, for profiles that need none.
#[derive(Debug, Default)]
pub struct NoBinaries(DebugFolders);

impl BySymbols for NoBinaries {
    fn find(&self, _: &Module) -> Result<Option<Found>> {
        Ok(None)
    }

    fn debug_folders(&self) -> &DebugFolders {
        &self.0
    }
}

/// What became of the addresses of one module.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// The module.
    pub module: Module,
    /// The binary that it was symbolised with.
    pub binary: Option<PathBuf>,
    /// Addresses of stacks in it.
    pub addresses: usize,
    /// Those that nothing is known of.
    pub unknown: usize,
    /// Contexts that have such an address.
    pub contexts: usize,
    /// Why, if that is known.
    pub error: Option<Error>,
    /// What of the debug info could not be read.
    pub warnings: Vec<Error>,
}

/// Where a frame is in the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The file; empty if unknown.
    pub file: Vec<u8>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The discriminator of blocks of one line.
    pub discriminator: u32,
}

/// A profile, and what could not be symbolised.
#[derive(Debug)]
pub struct Symbolized {
    /// The profile.
    pub profile: MemProfile,
    /// Where its frames are, in their order.
    pub locations: Vec<SourceLocation>,
    /// The modules, in the order in which they were met.
    pub modules: Vec<ModuleReport>,
    /// Contexts of which no frame is known: they are left out.
    pub contexts_dropped: usize,
    /// All contexts.
    pub contexts: usize,
    /// Stacks of which a frame is known, those without allocations too.
    pub known_stacks: usize,
}

/// Symbolises contexts by LLVM's rules.
pub fn symbolize(contexts: &RawContexts, source: &dyn BySymbols) -> Symbolized {
    let modules = contexts.modules();
    let mut of_module: Vec<Vec<u32>> = vec![Vec::new(); modules.len()];
    for (index, &(module, _)) in (0u32..).zip(contexts.addresses()) {
        if let Some(list) = of_module.get_mut(module as usize) {
            list.push(index);
        }
    }
    let answered: Vec<_> = modules
        .par_iter()
        .zip(&of_module)
        .map(|(module, indexes)| answer(contexts, module, indexes, source))
        .collect();
    // Module and index in it, of each address.
    let mut places = vec![(0u32, 0u32); contexts.addresses().len()];
    for (module, indexes) in (0u32..).zip(&of_module) {
        for (place, &index) in (0u32..).zip(indexes) {
            if let Some(slot) = places.get_mut(index as usize) {
                *slot = (module, place);
            }
        }
    }
    let mut profile = MemProfile::default();
    let mut locations = Vec::new();
    let mut frames = vec![Vec::new(); places.len()];
    let mut unknown = vec![false; places.len()];
    for &address in contexts.symbolize_order() {
        let (module, place) = places.get(address as usize).copied().unwrap_or_default();
        let Some((_, answered)) = answered.get(module as usize) else {
            continue;
        };
        let answer = match answered {
            Some(answered) => answered.answer(place as usize),
            None => Answer::Unknown,
        };
        match (answer, answered) {
            (Answer::Frames, Some(answered)) => {
                let list = add_frames(&mut profile, &mut locations, answered, place as usize);
                if let Some(slot) = frames.get_mut(address as usize) {
                    *slot = list;
                }
            }
            (Answer::Unknown, _) => {
                if let Some(slot) = unknown.get_mut(address as usize) {
                    *slot = true;
                }
            }
            _ => {}
        }
    }
    let mut reports: Vec<_> = answered.into_iter().map(|(report, _)| report).collect();
    for (address, &unknown) in unknown.iter().enumerate() {
        let module = places.get(address).map_or(0, |&(module, _)| module);
        if unknown && let Some(report) = reports.get_mut(module as usize) {
            report.unknown += 1;
        }
    }
    let mut dropped = 0;
    // The last context that was counted for a module.
    let mut counted = vec![usize::MAX; reports.len()];
    for (number, context) in contexts.contexts().enumerate() {
        let mut any = false;
        for &address in context.addresses {
            let address = address as usize;
            any |= frames.get(address).is_some_and(|frames| !frames.is_empty());
            let module = places.get(address).map_or(0, |&(module, _)| module) as usize;
            if unknown.get(address) == Some(&true)
                && let (Some(report), Some(counted)) =
                    (reports.get_mut(module), counted.get_mut(module))
                && *counted != number
            {
                *counted = number;
                report.contexts += 1;
            }
        }
        dropped += usize::from(!any);
    }
    build(
        &mut profile,
        &frames,
        contexts.contexts().map(|context| Context {
            addresses: context.addresses,
            block: *context.block,
            histogram: context.histogram,
        }),
    );
    Symbolized {
        profile,
        locations,
        modules: reports,
        contexts_dropped: dropped,
        contexts: contexts.contexts().len(),
        known_stacks: contexts
            .stacks()
            .filter(|stack| {
                let frames = stack
                    .iter()
                    .filter_map(|&address| frames.get(address as usize));
                frames.into_iter().any(|frames| !frames.is_empty())
            })
            .count(),
    }
}

/// Adds the frames of an address, innermost first. Only the last one is not inlined.
fn add_frames(
    profile: &mut MemProfile,
    locations: &mut Vec<SourceLocation>,
    answered: &ModuleFrames,
    address: usize,
) -> Vec<u32> {
    let mut list = Vec::new();
    let mut found = answered.frames(address).peekable();
    while let Some(frame) = found.next() {
        let name = frame.function.unwrap_or_default();
        let function = guid(name);
        profile
            .names
            .entry(function)
            .or_insert_with(|| canonical_name(name).to_vec());
        let number = profile.add_frame(Frame {
            function,
            line_offset: frame.line.wrapping_sub(frame.function_line),
            column: frame.column,
            is_inline: found.peek().is_some(),
        });
        if number as usize == locations.len() {
            locations.push(SourceLocation {
                file: frame.file.unwrap_or_default().to_vec(),
                line: frame.line,
                column: frame.column,
                discriminator: frame.discriminator,
            });
        }
        list.push(number);
    }
    list
}

/// Symbolises the addresses of one module.
fn answer(
    contexts: &RawContexts,
    module: &Module,
    indexes: &[u32],
    source: &dyn BySymbols,
) -> (ModuleReport, Option<ModuleFrames>) {
    let mut report = ModuleReport {
        module: module.clone(),
        binary: None,
        addresses: indexes.len(),
        unknown: 0,
        contexts: 0,
        error: None,
        warnings: Vec::new(),
    };
    if indexes.is_empty() {
        return (report, None);
    }
    let mut read = || {
        let Some(found) = source.find(module)? else {
            return Ok(None);
        };
        let mut addresses: Vec<u64> = indexes
            .iter()
            .filter_map(|&index| contexts.addresses().get(index as usize))
            .map(|&(_, address)| address)
            .collect();
        if matches!(module, Module::Mapping { .. }) {
            let file = BinaryFile::open(&found.path).map_err(|error| {
                Error::new(
                    ErrorKind::CannotCorrelate,
                    format!("cannot be opened: {error}"),
                )
            })?;
            let image = file.image(|_| true)?;
            for address in &mut addresses {
                *address = linked_address(&image, *address).unwrap_or(u64::MAX);
            }
        }
        report.binary = Some(found.path.clone());
        let files = ProgramFiles::open(&found.path, source.debug_folders())?;
        let frames = ModuleFrames::new(&files, &addresses)?;
        report.warnings = frames.locations().warnings().to_vec();
        if matches!(
            frames.debug_info(),
            DebugInfo::SymbolsOnly | DebugInfo::Nothing
        ) {
            let error = Error::new(
                ErrorKind::CannotCorrelate,
                "the binary has no debug info, and there is no debug file of it",
            )
            .with_hint(FLAGS_HINT);
            return Err(match files.rejected().first() {
                Some(rejected) => error.found(format_args!(
                    "{}, which is of another build: {}",
                    rejected.path.display(),
                    rejected.reason
                )),
                None => error,
            });
        }
        Ok(Some(frames))
    };
    match read() {
        Ok(frames) => (report, frames),
        Err(error) => {
            report.error = Some(error);
            (report, None)
        }
    }
}
