//! From contexts of addresses to a profile, module by module.
use crate::correlate::{Artifact, Binaries, BinaryServers};
use crate::names;
use profkit_data::ids::BuildId;
use profkit_data::memprof::{Context, Frame, MemProfile, build, canonical_name, guid};
use profkit_data::{Error, ErrorKind, Result};
use profkit_merge::memprof::{Module, RawContexts};
use profkit_object::binary::BinaryFile;
use profkit_object::debug_files::DebugFolders;
use profkit_object::index::BinaryIndex;
use profkit_object::memprof::{
    Answer, CodeMapping, ModuleFrames, code_mappings, linked_address, whole_pages,
};
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The flags without which clang's debug info says nothing of frames.
const FLAGS_HINT: &str = "compile and link with -gmlt -fdebug-info-for-profiling (or -g), or give the folder of the debug file with --debug-file-directory";

/// How many functions without debug info are named for each module.
const MOST_FUNCTIONS: usize = 8;

/// Finds the binaries of the modules that a raw dump names.
pub trait BinarySource: Sync {
    /// The binary of a module; `None` if there is none and that was to be expected.
    ///
    /// # Errors
    /// Why there is none.
    fn find(&self, module: &Module) -> Result<Option<PathBuf>>;
    /// Where debug files are.
    fn debug_folders(&self) -> &DebugFolders;
}

/// Binaries by build id, as correlation has them.
#[derive(Debug)]
pub struct IndexedBinaries<'a> {
    /// The binaries.
    pub index: &'a BinaryIndex,
    /// Where debug files are.
    pub folders: &'a DebugFolders,
    /// Servers to ask for what is in no folder.
    pub servers: Option<&'a dyn BinaryServers>,
    /// The mappings of each binary's code, once a mapping without build id has asked for them.
    code_mappings: OnceLock<Vec<Vec<CodeMapping>>>,
}

impl<'a> IndexedBinaries<'a> {
    /// Binaries, as correlation has them.
    pub fn of(binaries: &'a Binaries) -> Self {
        IndexedBinaries {
            index: &binaries.index,
            folders: &binaries.debug_folders,
            servers: binaries.servers.as_deref(),
            code_mappings: OnceLock::new(),
        }
    }

    /// The mappings of each binary's code: none of one that cannot be read.
    fn code_mappings(&self) -> &[Vec<CodeMapping>] {
        self.code_mappings.get_or_init(|| {
            let of = |path| code_mappings(&BinaryFile::open(path).ok()?).ok();
            let binaries = self.index.binaries.iter();
            binaries
                .map(|binary| of(&binary.path).unwrap_or_default())
                .collect()
        })
    }
}

impl BinarySource for IndexedBinaries<'_> {
    fn find(&self, module: &Module) -> Result<Option<PathBuf>> {
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
                Ok(Some(path))
            }
            &Module::Mapping {
                file_offset, len, ..
            } => {
                let wanted = (file_offset, whole_pages(len));
                let all = self.index.binaries.iter().zip(self.code_mappings());
                let fitting = all.filter(|(_, mappings)| mappings.contains(&wanted));
                let fitting: Vec<_> = fitting.map(|(binary, _)| &binary.path).collect();
                match fitting.as_slice() {
                    [] => Ok(None),
                    [one] => Ok(Some((*one).clone())),
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

impl BinarySource for OneBinary {
    fn find(&self, module: &Module) -> Result<Option<PathBuf>> {
        let own = matches!(module, Module::Linked { build_id } if *build_id == self.id);
        Ok(own.then(|| self.path.clone()))
    }

    fn debug_folders(&self) -> &DebugFolders {
        &self.folders
    }
}

/// None at all, for profiles that need none.
#[derive(Debug, Default)]
pub struct NoBinaries(DebugFolders);

impl BinarySource for NoBinaries {
    fn find(&self, _: &Module) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    fn debug_folders(&self) -> &DebugFolders {
        &self.0
    }
}

/// How many addresses of one module were symbolised, and why the others were not.
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
    /// The functions that these are in, as the symbol table has them: the first ones, for people.
    pub functions: Vec<String>,
    /// How many such functions there are beside the first ones.
    pub more_functions: usize,
    /// Those that are in no function of the symbol table either.
    pub unnamed: usize,
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
pub fn symbolize(contexts: &RawContexts, source: &dyn BinarySource) -> Symbolized {
    let modules = contexts.modules();
    let mut of_module: Vec<Vec<u32>> = vec![Vec::new(); modules.len()];
    for (index, &(module, _)) in (0u32..).zip(contexts.addresses()) {
        if let Some(list) = of_module.get_mut(module as usize) {
            list.push(index);
        }
    }
    let (mut reports, groups) = answer(contexts, &of_module, source);
    // Binary and index of the address in it, of each address.
    let mut places = vec![None; contexts.addresses().len()];
    for (number, (group, _)) in groups.iter().enumerate() {
        let members = group.modules.iter();
        let indexes = members
            .filter_map(|&module| of_module.get(module))
            .flatten();
        for (place, &index) in indexes.enumerate() {
            if let Some(slot) = places.get_mut(index as usize) {
                *slot = Some((number, place));
            }
        }
    }
    // The frames of an address, and its index among them.
    let answered = |address: usize| {
        let (group, place) = (*places.get(address)?)?;
        let (_, frames) = groups.get(group)?;
        Some((frames.as_ref()?, place))
    };
    let mut innermost = vec![false; places.len()];
    for stack in contexts.stacks() {
        let first = stack.first().copied().unwrap_or(u32::MAX);
        if let Some(slot) = innermost.get_mut(first as usize) {
            *slot = true;
        }
    }
    let mut profile = MemProfile::default();
    let mut locations = Vec::new();
    let mut frames = vec![Vec::new(); places.len()];
    let mut unknown = vec![false; places.len()];
    for &address in contexts.symbolize_order() {
        let address = address as usize;
        let innermost = innermost.get(address) == Some(&true);
        let found = answered(address);
        let answer = match found {
            Some((answered, place)) => answered.answer(place, innermost),
            None => Answer::Unknown,
        };
        match (answer, found) {
            (Answer::Frames, Some((answered, place))) => {
                let list = add_frames(&mut profile, &mut locations, answered, place);
                if let Some(slot) = frames.get_mut(address) {
                    *slot = list;
                }
            }
            (Answer::Unknown, _) => {
                if let Some(slot) = unknown.get_mut(address) {
                    *slot = true;
                }
            }
            _ => {}
        }
    }
    for (report, indexes) in reports.iter_mut().zip(&of_module) {
        let mut functions = FxHashSet::default();
        for &address in indexes {
            let address = address as usize;
            if unknown.get(address) != Some(&true) {
                continue;
            }
            report.unknown += 1;
            match answered(address).and_then(|(answered, place)| answered.symbol(place)) {
                Some(name) if functions.insert(name) => {
                    if report.functions.len() < MOST_FUNCTIONS {
                        report
                            .functions
                            .push(names::display(name, false).into_owned());
                    }
                }
                Some(_) => {}
                None => report.unnamed += 1,
            }
        }
        report.more_functions = functions.len() - report.functions.len();
    }
    let mut dropped = 0;
    // The last context that was counted for a module.
    let mut counted = vec![usize::MAX; reports.len()];
    for (number, context) in contexts.contexts().enumerate() {
        let mut any = false;
        for &address in context.addresses {
            let address = address as usize;
            any |= frames.get(address).is_some_and(|frames| !frames.is_empty());
            let module = contexts.addresses().get(address);
            let module = module.map_or(0, |&(module, _)| module) as usize;
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

/// The modules that one binary is of: with build ids it is one, without them there may be many mappings.
struct Group {
    path: PathBuf,
    /// Indexes of the modules.
    modules: Vec<usize>,
}

/// What can be asked for once for several modules: mappings of one place and size are of the same binary.
fn question(number: usize, module: &Module) -> (usize, u64, u64) {
    match module {
        &Module::Mapping {
            file_offset, len, ..
        } => (usize::MAX, file_offset, len),
        _ => (number, 0, 0),
    }
}

/// Symbolises the addresses of all modules: each binary is read once, however many mappings are of it. What a group's
/// frames answer are the addresses of its modules, one module after the other.
fn answer(
    contexts: &RawContexts,
    of_module: &[Vec<u32>],
    source: &dyn BinarySource,
) -> (Vec<ModuleReport>, Vec<(Group, Option<ModuleFrames>)>) {
    let asked: Vec<_> = contexts
        .modules()
        .iter()
        .zip(of_module)
        .enumerate()
        .map(|(number, (module, indexes))| (question(number, module), module, indexes))
        .collect();
    let mut questions: Vec<_> = asked
        .iter()
        .filter(|(_, _, indexes)| !indexes.is_empty())
        .map(|&(question, module, _)| (question, module))
        .collect();
    questions.sort_by_key(|&(question, _)| question);
    questions.dedup_by_key(|&mut (question, _)| question);
    let answers: FxHashMap<_, _> = questions
        .par_iter()
        .map(|&(question, module)| (question, source.find(module)))
        .collect();
    let mut reports = Vec::with_capacity(asked.len());
    let mut groups: Vec<Group> = Vec::new();
    let mut of_path: FxHashMap<PathBuf, usize> = FxHashMap::default();
    for (number, (question, module, indexes)) in asked.iter().enumerate() {
        let mut report = ModuleReport {
            module: (*module).clone(),
            binary: None,
            addresses: indexes.len(),
            unknown: 0,
            functions: Vec::new(),
            more_functions: 0,
            unnamed: 0,
            contexts: 0,
            error: None,
            warnings: Vec::new(),
        };
        match answers.get(question) {
            Some(Ok(Some(found))) => {
                report.binary = Some(found.clone());
                let group = *of_path.entry(found.clone()).or_insert_with(|| {
                    groups.push(Group {
                        path: found.clone(),
                        modules: Vec::new(),
                    });
                    groups.len() - 1
                });
                if let Some(group) = groups.get_mut(group) {
                    group.modules.push(number);
                }
            }
            Some(Err(error)) => report.error = Some(error.clone()),
            Some(Ok(None)) | None => {}
        }
        reports.push(report);
    }
    let answered: Vec<_> = groups
        .par_iter()
        .map(|group| frames_of(contexts, of_module, group, source))
        .collect();
    let mut all = Vec::with_capacity(groups.len());
    for (group, answered) in groups.into_iter().zip(answered) {
        let frames = match answered {
            Ok(frames) => {
                // Reported once, not for each of its mappings.
                let first = group
                    .modules
                    .first()
                    .and_then(|&first| reports.get_mut(first));
                if let Some(report) = first {
                    report.warnings = frames.locations().warnings().to_vec();
                }
                Some(frames)
            }
            Err(error) => {
                for &module in &group.modules {
                    if let Some(report) = reports.get_mut(module) {
                        report.error = Some(error.clone());
                    }
                }
                None
            }
        };
        all.push((group, frames));
    }
    (reports, all)
}

/// Symbolises the addresses of modules that one binary is of.
fn frames_of(
    contexts: &RawContexts,
    of_module: &[Vec<u32>],
    group: &Group,
    source: &dyn BinarySource,
) -> Result<ModuleFrames> {
    let mut addresses = Vec::new();
    let mut offsets = Vec::new();
    for &module in &group.modules {
        let start = addresses.len();
        let indexes = of_module.get(module).into_iter().flatten();
        let known = indexes.filter_map(|&index| contexts.addresses().get(index as usize));
        addresses.extend(known.map(|&(_, address)| address));
        if matches!(contexts.modules().get(module), Some(Module::Mapping { .. })) {
            offsets.push(start..addresses.len());
        }
    }
    if !offsets.is_empty() {
        let file = BinaryFile::open(&group.path).map_err(|error| {
            Error::new(
                ErrorKind::CannotCorrelate,
                format!("cannot be opened: {error}"),
            )
        })?;
        let image = file.image(|_| true)?;
        for range in offsets {
            for address in addresses.get_mut(range).into_iter().flatten() {
                *address = linked_address(&image, *address).unwrap_or(u64::MAX);
            }
        }
    }
    let files = ProgramFiles::open(&group.path, source.debug_folders())?;
    let frames = ModuleFrames::new(&files, &addresses)?;
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
    Ok(frames)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use profkit_data::memprof::raw::{DumpToWrite, RawMemProf, Segment, Version, write};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Says of every module that it is of one binary, and counts how often it is asked.
    #[derive(Default)]
    struct Counting {
        asked: AtomicUsize,
        folders: DebugFolders,
    }

    impl BinarySource for Counting {
        fn find(&self, _: &Module) -> Result<Option<PathBuf>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(Some("no/such/binary".into()))
        }

        fn debug_folders(&self) -> &DebugFolders {
            &self.folders
        }
    }

    #[test]
    fn a_binary_is_read_once_however_many_mappings_are_of_it() {
        let mapping = |number: u64| Segment {
            start: 0x10000 * (number + 1),
            end: 0x10000 * (number + 1) + 0x1000,
            // Two places of one file.
            offset: 0x1000 * (number % 2),
            build_id: BuildId(Vec::new()),
        };
        let dump = DumpToWrite {
            segments: (0..1000).map(mapping).collect(),
            blocks: Vec::new(),
            stacks: (0..1000)
                .map(|number| (number, vec![mapping(number).start + 0x10]))
                .collect(),
        };
        let mut bytes = Vec::new();
        write(&dump, Version::new(1).unwrap(), &mut bytes).unwrap();
        let mut contexts = RawContexts::default();
        contexts.add(&RawMemProf::parse(&bytes).unwrap(), |skipped| {
            panic!("{skipped:?}")
        });
        let mut of_module = vec![Vec::new(); contexts.modules().len()];
        for (index, &(module, _)) in (0u32..).zip(contexts.addresses()) {
            of_module[module as usize].push(index);
        }
        let source = Counting::default();
        let (reports, groups) = answer(&contexts, &of_module, &source);
        assert_eq!(source.asked.into_inner(), 2);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].0.modules.len(), 1000);
        // Each mapping reports why the binary cannot be read.
        let failed = reports.iter().filter(|report| report.error.is_some());
        assert_eq!(failed.count(), 1000);
    }
}
