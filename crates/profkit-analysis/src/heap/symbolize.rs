//! Symbolises the contexts of raw dumps: replaces addresses by functions, one module after the other.
use super::figures::ContextSum;
use super::unknown::{Shown, UnknownAddress};
use crate::correlate::{Artifact, Binaries, BinaryServers};
use crate::names;
use profkit_data::ids::BuildId;
use profkit_data::index_vec::IndexVec;
use profkit_data::memprof::{
    AddressId, Context, Frame, FrameId, FrameList, MemInfoBlock, MemProfile, SourceLocation,
    add_histogram, build, canonical_name, guid,
};
use profkit_data::{Error, ErrorKind, Result};
use profkit_merge::memprof::{Module, ModuleId, RawContexts};
use profkit_object::binary::BinaryFile;
use profkit_object::debug_files::DebugFolders;
use profkit_object::index::BinaryIndex;
use profkit_object::memprof::{
    Answer, CodeMapping, ModuleFrames, code_mappings, linked_address, whole_pages,
};
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A hint that names the clang flags for the debug info that is needed to symbolise frames.
pub(super) const FLAGS_HINT: &str = "compile and link with -gmlt -fdebug-info-for-profiling (or -g), or give the folder of the debug file with --debug-file-directory";

/// The largest number of functions without debug info that are listed per module.
const MOST_FUNCTIONS: usize = 8;

/// Finds the binaries of the modules in a raw dump.
pub trait BinarySource: Sync {
    /// Returns the binary of a module. Returns `None` if the source has no binary for this module and does not treat
    /// that as an error.
    ///
    /// # Errors
    /// The reason why the binary cannot be found.
    fn find(&self, module: &Module) -> Result<Option<PathBuf>>;
    /// The folders with debug files.
    fn debug_folders(&self) -> &DebugFolders;
}

/// Finds binaries by build id, in the same folders and on the same servers as the correlation of raw instrumentation
/// profiles.
///
/// This source borrows the [`Binaries`], so the `Binaries` must live as long as this source.
///
/// ```
/// use profkit_analysis::correlate::Binaries;
/// use profkit_analysis::heap::{FrameRule, IndexedBinaries, load_heap};
/// use profkit_merge::{MergeError, RunOptions};
///
/// let binaries = Binaries::open(&[std::env::current_exe()?])?;
/// let source = IndexedBinaries::of(&binaries);
/// // A file that is no heap profile is an error, not an empty profile.
/// let inputs = [b"\x7fELF".as_slice()];
/// let error = load_heap(&inputs, &RunOptions::new(), &source, FrameRule::All).unwrap_err();
/// assert!(matches!(error, MergeError::NothingLeft(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct IndexedBinaries<'a> {
    /// The binaries.
    pub index: &'a BinaryIndex,
    /// The folders with debug files.
    pub folders: &'a DebugFolders,
    /// The servers that are asked for a binary if no folder contains it.
    pub servers: Option<&'a dyn BinaryServers>,
    /// The mappings of each binary's code. They are computed at the first search for a mapping that has no build id.
    code_mappings: OnceLock<Vec<Vec<CodeMapping>>>,
}

impl<'a> IndexedBinaries<'a> {
    /// Makes a source that searches the binaries that were given for correlation.
    pub fn of(binaries: &'a Binaries) -> Self {
        IndexedBinaries {
            index: &binaries.index,
            folders: &binaries.debug_folders,
            servers: binaries.servers.as_deref(),
            code_mappings: OnceLock::new(),
        }
    }

    /// The mappings of each binary's code. A binary that cannot be read has no mappings.
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
                    several => Err(Error::new(ErrorKind::CannotCorrelate, "the mapping has no build id, and several of the given binaries have the size of the mapping")
                    .found(format_args!(
                        "{} and {} more",
                        several.first().map_or_else(String::new, |path| profkit_data::path_text(path)),
                        several.len() - 1
                    ))
                    .with_hint("raw heap profiles of LLVM 14 to 17 have no build ids: merge the profiles of each program separately, with only its binary")),
                }
            }
            Module::None => Ok(None),
        }
    }

    fn debug_folders(&self) -> &DebugFolders {
        self.folders
    }
}

/// A single binary for all modules, as in LLVM's tool.
#[derive(Debug)]
pub struct OneBinary {
    /// The path of the binary.
    pub path: PathBuf,
    /// The build id of the binary.
    pub id: BuildId,
    /// An empty list of folders with debug files: as in LLVM, only the binary itself is read.
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

/// A source without binaries, for profiles that do not need any. With this source and [`FrameRule::Compiler`], raw dumps
/// lose all contexts; [`LoadedHeap::unknown`](super::LoadedHeap::unknown) has their sum.
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

/// A report about one module: how many of its addresses were symbolised, and why the others could not be symbolised.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// The module.
    pub module: Module,
    /// The binary that supplied the functions. `None` if no binary was found.
    pub binary: Option<PathBuf>,
    /// The number of addresses in this module.
    pub addresses: usize,
    /// The number of addresses that could not be symbolised.
    pub unknown: usize,
    /// The first functions with addresses that could not be symbolised: demangled names from the symbol table.
    pub functions: Vec<String>,
    /// The number of further functions with addresses that could not be symbolised, beyond those in `functions`.
    pub more_functions: usize,
    /// The number of addresses that could not be symbolised and are in no function of the symbol table.
    pub unnamed: usize,
    /// The number of contexts with an address that could not be symbolised.
    pub contexts: usize,
    /// Why the addresses could not be symbolised, if that is known.
    pub error: Option<Error>,
    /// The parts of the debug info that could not be read.
    pub warnings: Vec<Error>,
}

/// Which frames and contexts of raw dumps a profile gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameRule {
    /// The frames that compilers can use, by LLVM's rules: those that debug info covers. A context without such a frame
    /// is left out.
    #[default]
    Compiler,
    /// All contexts, for people. An address without debug info has one frame: the symbol that contains it, or else its
    /// module and the address in it. Callers of `main` and what starts a thread are left out.
    All,
}

/// A symbolised profile, with a report about the modules.
#[derive(Debug)]
pub struct Symbolized {
    /// The profile, with the names and source locations of its frames.
    pub profile: MemProfile,
    /// For each frame that comes from no debug info: the binary that contains it. Only [`FrameRule::All`] has such
    /// frames.
    pub binaries: FxHashMap<Frame, String>,
    /// The modules, in the order in which they were first seen.
    pub modules: Vec<ModuleReport>,
    /// The contexts without any frame that debug info covers. [`FrameRule::Compiler`] leaves them out.
    pub unknown: ContextSum,
    /// All contexts of the dumps.
    pub total: ContextSum,
    /// The number of call stacks with a known frame, including call stacks without allocations.
    pub known_stacks: usize,
}

/// Symbolises contexts. Where debug info covers an address, its frames are those of LLVM's rules.
pub fn symbolize(contexts: &RawContexts, source: &dyn BinarySource, rule: FrameRule) -> Symbolized {
    let mut of_module = AddressesOf::parallel_to(contexts.modules(), Vec::new());
    for (id, &(module, _)) in contexts.addresses().entries() {
        of_module[module].push(id);
    }
    let (mut reports, groups) = answer(contexts, &of_module, source);
    // For each address: the index of the module group (the modules of one binary) that contains it, and the index of
    // the address in that group.
    let mut places: IndexVec<AddressId, Option<(usize, usize)>> =
        IndexVec::parallel_to(contexts.addresses(), None);
    for (number, (group, _)) in groups.iter().enumerate() {
        let members = group.modules.iter();
        let addresses = members.flat_map(|&module| &of_module[module]);
        for (place, &address) in addresses.enumerate() {
            places[address] = Some((number, place));
        }
    }
    // Returns the frames of the module group that contains an address, and the index of the address in this group.
    let answered = |address: AddressId| {
        let (group, place) = places[address]?;
        let (_, frames) = groups.get(group)?;
        Some((frames.as_ref()?, place))
    };
    let mut innermost = IndexVec::parallel_to(contexts.addresses(), false);
    for stack in contexts.stacks() {
        if let Some(&first) = stack.first() {
            innermost[first] = true;
        }
    }
    let mut profile = MemProfile::default();
    let mut frames = IndexVec::parallel_to(contexts.addresses(), FrameList::new());
    let mut unknown = IndexVec::parallel_to(contexts.addresses(), false);
    for &address in contexts.symbolize_order() {
        let found = answered(address);
        let answer = match found {
            Some((answered, place)) => answered.answer(place, innermost[address]),
            None => Answer::Unknown,
        };
        match (answer, found) {
            (Answer::Frames, Some((answered, place))) => {
                frames[address] = add_frames(&mut profile, answered, place);
            }
            (Answer::Unknown, _) => unknown[address] = true,
            _ => {}
        }
    }
    for (report, addresses) in reports.iter_mut().zip(&of_module) {
        let mut functions = FxHashSet::default();
        for &address in addresses {
            if !unknown[address] {
                continue;
            }
            report.unknown += 1;
            match answered(address).and_then(|(answered, place)| answered.symbol(place)) {
                Some(name) if functions.insert(name) => {
                    if report.functions.len() < MOST_FUNCTIONS {
                        report.functions.push(names::display(name).into_owned());
                    }
                }
                Some(_) => {}
                None => report.unnamed += 1,
            }
        }
        report.more_functions = functions.len() - report.functions.len();
    }
    let mut without_frames = ContextSum::default();
    let mut total = ContextSum::default();
    // For each module, the index of the last context that was counted in its report. Thus a context with several
    // unknown addresses in a module is counted once.
    let mut counted = IndexVec::parallel_to(&reports, usize::MAX);
    for (number, context) in contexts.contexts().enumerate() {
        let mut any = false;
        for &address in context.addresses {
            any |= !frames[address].is_empty();
            let (module, _) = contexts.addresses()[address];
            if unknown[address] && counted[module] != number {
                counted[module] = number;
                reports[module].contexts += 1;
            }
        }
        let one = ContextSum::of_block(context.block);
        total.add(one);
        if !any {
            without_frames.add(one);
        }
    }
    let known_stacks = contexts
        .stacks()
        .filter(|stack| stack.iter().any(|&address| !frames[address].is_empty()))
        .count();
    let mut shown = Shown::default();
    if rule == FrameRule::All {
        shown = Shown::add(contexts, &mut profile, &mut frames, |address| {
            let symbol = answered(address).and_then(|(answered, place)| answered.symbol(place));
            let (module, _) = contexts.addresses()[address];
            UnknownAddress {
                is_runtime: !unknown[address],
                symbol,
                binary: reports[module].binary.as_deref(),
            }
        });
    }
    let joined = join_builds(contexts, &frames, &shown);
    build(
        &mut profile,
        &frames,
        joined.iter().map(|context| Context {
            addresses: context.addresses,
            block: context.block,
            histogram: &context.histogram,
        }),
    );
    Symbolized {
        profile,
        binaries: shown.binaries,
        modules: reports.into_iter().collect(),
        unknown: without_frames,
        total,
        known_stacks,
    }
}

/// A context that may be the sum of the contexts of several builds.
struct Joined<'a> {
    addresses: &'a [AddressId],
    block: MemInfoBlock,
    histogram: Cow<'a, [u64]>,
}

/// Adds up contexts of several builds of a program: those whose frames are equal, but whose modules differ. Within one
/// build, compilers may copy a call, so contexts with equal frames stay apart. The first copy in one build is added to the
/// first copy in the other, as if the dumps of each build were merged separately.
fn join_builds<'a>(
    contexts: &'a RawContexts,
    frames: &IndexVec<AddressId, FrameList>,
    shown: &'a Shown,
) -> Vec<Joined<'a>> {
    let mut joined: Vec<Joined<'a>> = Vec::with_capacity(contexts.contexts().len());
    // How many contexts a build, which its modules stand for, has with a call stack.
    let mut copies: FxHashMap<(Vec<FrameId>, Vec<ModuleId>), usize> = FxHashMap::default();
    // Where the sum of the first, the second, … contexts with a call stack is.
    let mut places: FxHashMap<(Vec<FrameId>, usize), usize> = FxHashMap::default();
    let builds = contexts.modules().iter();
    let several = builds.filter(|module| **module != Module::None).count() > 1;
    for (number, context) in contexts.contexts().enumerate() {
        let mut place = joined.len();
        let shown_addresses = shown.addresses(number, context.addresses);
        if several {
            let addresses = shown_addresses.iter();
            let stack: Vec<FrameId> = addresses
                .flat_map(|&address| frames[address].iter().copied())
                .collect();
            let addresses = context.addresses.iter();
            let modules = addresses
                .filter(|&&address| !frames[address].is_empty())
                .map(|&address| contexts.addresses()[address].0)
                .collect();
            let copy = copies.entry((stack.clone(), modules)).or_insert(0);
            place = *places.entry((stack, *copy)).or_insert(place);
            *copy += 1;
        }
        match joined.get_mut(place) {
            Some(own) => {
                own.block.add_later(context.block);
                add_histogram(own.histogram.to_mut(), context.histogram);
            }
            None => joined.push(Joined {
                addresses: shown_addresses,
                block: *context.block,
                histogram: Cow::Borrowed(context.histogram),
            }),
        }
    }
    joined
}

/// Adds the frames of an address. The innermost frame comes first; all frames but the last are inlined.
fn add_frames(profile: &mut MemProfile, answered: &ModuleFrames, address: usize) -> FrameList {
    let mut list = Vec::new();
    let mut found = answered.frames(address).peekable();
    while let Some(frame) = found.next() {
        let name = frame.function.unwrap_or_default();
        let function = guid(name);
        profile
            .names
            .entry(function)
            .or_insert_with(|| canonical_name(name).to_vec());
        let own = Frame {
            function,
            line_offset: frame.line.wrapping_sub(frame.function_line),
            column: frame.column,
            is_inline: found.peek().is_some(),
        };
        let place = profile.locations.entry(own);
        place.or_insert_with(|| SourceLocation {
            file: frame.file.unwrap_or_default().to_vec(),
            line: frame.line,
            column: frame.column,
            discriminator: frame.discriminator,
        });
        let id = profile.add_frame(own);
        list.push(id);
    }
    list
}

/// The modules of one binary. A binary with a build id is one module. A binary without a build id has a module for each
/// of its mappings.
struct Group {
    path: PathBuf,
    modules: Vec<ModuleId>,
}

/// A module group (the modules of one binary), with the frames of its addresses if the binary could be read.
type GroupFrames = (Group, Option<ModuleFrames>);

/// The addresses of each module.
type AddressesOf = IndexVec<ModuleId, Vec<AddressId>>;

/// Returns a key for a module. Mappings with the same file offset and size have equal keys, because the same binary is
/// found for them.
fn question(id: ModuleId, module: &Module) -> (Option<ModuleId>, u64, u64) {
    match module {
        &Module::Mapping {
            file_offset, len, ..
        } => (None, file_offset, len),
        _ => (Some(id), 0, 0),
    }
}

/// Symbolises the addresses of all modules. Each binary is read once, however many mappings it has. The modules of one
/// binary are a module group. Its frames have the same order as the addresses: one module after the other.
fn answer(
    contexts: &RawContexts,
    of_module: &AddressesOf,
    source: &dyn BinarySource,
) -> (IndexVec<ModuleId, ModuleReport>, Vec<GroupFrames>) {
    let asked: Vec<_> = contexts
        .modules()
        .entries()
        .zip(of_module)
        .map(|((id, module), addresses)| (question(id, module), module, addresses))
        .collect();
    let mut questions: Vec<_> = asked
        .iter()
        .filter(|(_, _, addresses)| !addresses.is_empty())
        .map(|&(question, module, _)| (question, module))
        .collect();
    questions.sort_by_key(|&(question, _)| question);
    questions.dedup_by_key(|&mut (question, _)| question);
    let answers: FxHashMap<_, _> = questions
        .par_iter()
        .map(|&(question, module)| (question, source.find(module)))
        .collect();
    let mut reports: IndexVec<ModuleId, ModuleReport> = IndexVec::with_capacity(asked.len());
    let mut groups: Vec<Group> = Vec::new();
    let mut of_path: FxHashMap<PathBuf, usize> = FxHashMap::default();
    for (question, module, addresses) in &asked {
        let id = reports.next_id();
        let mut report = ModuleReport {
            module: (*module).clone(),
            binary: None,
            addresses: addresses.len(),
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
                    group.modules.push(id);
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
            Ok((frames, error)) => {
                for &module in &group.modules {
                    reports[module].error.clone_from(&error);
                }
                // Warnings are reported once for the binary, not for each of its mappings.
                if let Some(&first) = group.modules.first() {
                    reports[first].warnings = frames.locations().warnings().to_vec();
                }
                Some(frames)
            }
            Err(error) => {
                for &module in &group.modules {
                    reports[module].error = Some(error.clone());
                }
                None
            }
        };
        all.push((group, frames));
    }
    (reports, all)
}

/// The frames of the addresses of a binary, and why debug info covers none of them, if the binary has none.
fn frames_of(
    contexts: &RawContexts,
    of_module: &AddressesOf,
    group: &Group,
    source: &dyn BinarySource,
) -> Result<(ModuleFrames, Option<Error>)> {
    let mut addresses = Vec::new();
    let mut offsets = Vec::new();
    for &module in &group.modules {
        let start = addresses.len();
        let own = of_module[module].iter();
        addresses.extend(own.map(|&id| contexts.addresses()[id].1));
        if matches!(contexts.modules()[module], Module::Mapping { .. }) {
            offsets.push(start..addresses.len());
        }
    }
    if !offsets.is_empty() {
        let file = BinaryFile::open(&group.path).map_err(|error| {
            ErrorKind::CannotCorrelate.error(format!("cannot be opened: {error}"))
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
        let error = ErrorKind::CannotCorrelate
            .error("the binary has no debug info and no debug file")
            .with_hint(FLAGS_HINT);
        let error = match files.rejected().first() {
            Some(rejected) => error.found(format_args!(
                "{}, which belongs to another build: {}",
                profkit_data::path_text(&rejected.path),
                rejected.reason
            )),
            None => error,
        };
        return Ok((frames, Some(error)));
    }
    Ok((frames, None))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use profkit_data::memprof::raw::{
        DumpToWrite, RawMemProf, RawMemProfOptions, Segment, Version, write,
    };
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns the same binary for every module, and counts how often it is asked.
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
            // The mappings have only two different file offsets, so the source is asked for the binary only twice.
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
        let options = RawMemProfOptions::for_version(Version::new(1).unwrap());
        write(&dump, &options, &mut bytes).unwrap();
        let mut contexts = RawContexts::default();
        contexts.add(&RawMemProf::parse(&bytes).unwrap(), |skipped| {
            panic!("{skipped:?}")
        });
        let mut of_module = AddressesOf::parallel_to(contexts.modules(), Vec::new());
        for (id, &(module, _)) in contexts.addresses().entries() {
            of_module[module].push(id);
        }
        let source = Counting::default();
        let (reports, groups) = answer(&contexts, &of_module, &source);
        assert_eq!(source.asked.into_inner(), 2);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].0.modules.len(), 1000);
        // The report of each mapping of a binary has the error of this binary.
        let failed = reports.iter().filter(|report| report.error.is_some());
        assert_eq!(failed.count(), 1000);
    }
}
