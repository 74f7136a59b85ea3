//! Finds out which binary belongs to which raw profile.
use super::joined::{JoinedMetadata, Key, profiles_in};
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::BuildId;
use profkit_data::instr::raw::{
    ProgramMetadata, RawDialect, RawMetadata, RawProfile, RecordLayout,
};
use profkit_data::{Error, ErrorKind, Result};
use profkit_merge::Inputs;
use profkit_object::binaries::Binaries;
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::correlate::binary::{self, Outside, SectionSet};
use profkit_object::correlate::dwarf::{self, DwarfOptions};
use profkit_object::correlate::{Correlated, CorrelationWarnings, CounterSection, machine};
use profkit_object::debug_files::{DebugFolders, DebugLink, dsym_files};
use profkit_object::index::{Contents, IndexedBinary};
use profkit_object::servers::Artifact;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest number of binaries or build ids that a message lists.
const MOST_NAMED: usize = 8;
/// The number of bytes of a file that are read first. The header and build ids of a raw profile fit into them. The rest
/// of a longer file is read only if other profiles may follow.
const FRONT_LEN: u64 = 64 << 10;

/// The binary for all profiles with the same [`Key`]. These profiles come from one program.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The build ids of the profiles.
    pub ids: Vec<BuildId>,
    /// Whether the function records are in the debug info of the program: they were found there, or the profiles say so.
    pub debug_info: bool,
    /// The inputs that hold profiles of this program.
    pub inputs: Vec<usize>,
    /// The binary, with the facts that were read from it; or the reason why no binary can be used.
    pub outcome: std::result::Result<Match, Error>,
}

/// A binary that belongs to a profile, with facts about its function records.
#[derive(Clone, Debug)]
pub struct Match {
    /// The file from which the function records were read: the binary or its debug file.
    pub path: PathBuf,
    /// The number of functions.
    pub functions: usize,
    /// Whether the function records were read from debug info, and not from sections of their own.
    pub debug_info: bool,
    /// Warnings about damaged or unusual function records.
    pub warnings: CorrelationWarnings,
}

/// The binaries for all raw profiles among some inputs.
///
/// ```
/// use profkit_analysis::correlate::{Binaries, Plan};
/// use profkit_merge::{MergeOptions, merge_instr};
/// use std::sync::Arc;
///
/// // Profiles that have their functions need no binary, and are merged as they are.
/// let inputs = [b"main\n1234\n1\n7\n\n".as_slice()];
/// let plan = Plan::new(&inputs[..], &Binaries::open(&[std::env::current_exe()?])?);
/// assert_eq!((plan.complete_inputs, plan.bare_inputs, plan.is_complete()), (1, 0, true));
/// let options = MergeOptions::new().correlation(Arc::new(plan.joined));
/// assert_eq!(merge_instr(&inputs, &options)?.report.totals.files_kept, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Plan {
    /// One entry for each different [`Key`] of the profiles. They are in the order in which the inputs first have these
    /// keys.
    pub assignments: Vec<Assignment>,
    /// The function records that the merge needs.
    pub joined: JoinedMetadata,
    /// The number of inputs with a profile that does not need a binary.
    pub complete_inputs: u64,
    /// The number of inputs with a profile that needs a binary.
    pub bare_inputs: u64,
}

impl Plan {
    /// Examines all inputs, and finds a binary for each input whose raw profiles need one. Each binary is read once.
    ///
    /// An input that cannot be read is ignored here; the merge reports it.
    pub fn new(inputs: &(impl Inputs + ?Sized), binaries: &Binaries) -> Self {
        Self::with_paths(inputs, &[], binaries)
    }

    /// Does the same as [`new`](Self::new), but reads less of each file. `paths` has the paths of the inputs that are
    /// files. If the first bytes of such a file show that it holds a single profile, the rest of the file is not read.
    pub fn with_paths(
        inputs: &(impl Inputs + ?Sized),
        paths: &[Option<PathBuf>],
        binaries: &Binaries,
    ) -> Self {
        let inputs: &dyn Inputs = &inputs;
        let keys: Vec<Vec<(Key, RawDialect, RecordLayout)>> = (0..inputs.len())
            .into_par_iter()
            .map(|input| keys_of(inputs, input, paths.get(input).and_then(Option::as_deref)))
            .collect();
        let mut plan = Plan::default();
        let mut wanted: FxHashMap<Key, (RawDialect, RecordLayout, Vec<usize>)> =
            FxHashMap::default();
        for (input, keys) in keys.into_iter().enumerate() {
            if keys.is_empty() {
                plan.complete_inputs += 1;
            } else {
                plan.bare_inputs += 1;
            }
            for (key, dialect, layout) in keys {
                let (.., inputs) = wanted.entry(key).or_insert((dialect, layout, Vec::new()));
                if inputs.last() != Some(&input) {
                    inputs.push(input);
                }
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_unstable_by(|(a, (.., first)), (b, (.., second))| {
            (first.first(), a).cmp(&(second.first(), b))
        });
        let found: Vec<_> = wanted
            .into_par_iter()
            .map(|(key, (dialect, layout, inputs))| {
                let found = Search(binaries).find(&key, dialect, &layout);
                (key, inputs, found)
            })
            .collect();
        for (key, inputs, found) in found {
            let (outcome, metadata) = match found {
                Ok((matched, metadata)) => (Ok(matched), Ok(metadata)),
                Err(error) => (Err(error.clone()), Err(error)),
            };
            plan.assignments.push(Assignment {
                ids: key.ids.clone(),
                debug_info: outcome
                    .as_ref()
                    .map_or(key.debug_info, |found| found.debug_info),
                inputs,
                outcome,
            });
            plan.joined.found.insert(key, metadata);
        }
        plan
    }

    /// Whether every profile that needs a binary has one.
    pub fn is_complete(&self) -> bool {
        self.assignments
            .iter()
            .all(|assignment| assignment.outcome.is_ok())
    }
}

type KeyOf = (Key, RawDialect, RecordLayout);

fn keys_of(inputs: &dyn Inputs, input: usize, path: Option<&Path>) -> Vec<KeyOf> {
    if let Some(keys) = path.and_then(keys_of_front) {
        return keys;
    }
    let mut keys: Vec<KeyOf> = Vec::new();
    // An input that cannot be read is ignored here; the merge reports it.
    let _ = inputs.look_at(input, &mut |data| {
        keys.extend(profiles_in(data).iter().filter_map(key_of));
    });
    keys.dedup_by(|a, b| a.0 == b.0);
    keys
}

fn key_of(profile: &RawProfile<'_>) -> Option<KeyOf> {
    profile
        .needs_correlation()
        .then(|| (Key::of(profile), profile.dialect(), *profile.layout()))
}

/// Reads the first bytes of a file, and returns the [`Key`] by which the binary of its profile is found; an empty list
/// if the profile needs no binary, or if the file is not a raw profile. `None` if these bytes of a raw file do not show
/// that it holds only one profile.
fn keys_of_front(path: &Path) -> Option<Vec<KeyOf>> {
    // A pipe must not be opened here: its contents can be read only once, and the merge needs them.
    let metadata = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let mut file = std::fs::File::open(path).ok()?;
    let mut front = Vec::new();
    file.by_ref().take(FRONT_LEN).read_to_end(&mut front).ok()?;
    if !matches!(detect(&front), FileKind::InstrRaw) {
        return Some(Vec::new());
    }
    let (profile, _) = RawProfile::parse_salvage_at(&front, 0).ok()?;
    let ids = profile.sections().binary_ids;
    if !ids.is_whole() {
        return None;
    }
    // If the file does not end where this profile ends, another profile may follow, so `None` is returned.
    let end = profile.sections().value_data.offset;
    (end >= metadata.len()).then(|| key_of(&profile).into_iter().collect())
}

/// The search for the binaries of profiles.
struct Search<'b>(&'b Binaries);

impl Search<'_> {
    /// Finds the binary of the profiles with these build ids, and reads its function records.
    fn find(
        &self,
        key: &Key,
        dialect: RawDialect,
        layout: &RecordLayout,
    ) -> Result<(Match, RawMetadata)> {
        let wanted = Wanted {
            debug_info: key.debug_info,
            counter_bytes: key.counter_bytes,
            dialect,
            layout,
            folders: &self.0.debug_folders,
        };
        let mut candidates = Vec::new();
        for id in &key.ids {
            for binary in self.0.index.find(id) {
                if !candidates.contains(&binary) {
                    candidates.push(binary);
                }
            }
        }
        if key.ids.is_empty() {
            candidates = self.only_binary()?;
        }
        let fetched = self.fetch(key, &candidates, &wanted);
        if let Ok(Some(path)) = &fetched {
            candidates.push(IndexedBinary {
                path: path.clone(),
                ids: key.ids.clone(),
                contents: Contents::default(),
                named: true,
            });
        }
        if candidates.is_empty() {
            return Err(match fetched {
                Err(error) => error,
                Ok(_) => self.not_found(key),
            });
        }
        let mut found: Option<(Match, ProgramMetadata)> = None;
        let mut refused: Option<Error> = None;
        for candidate in &candidates {
            match wanted.read(&candidate.path, &key.ids) {
                Ok((path, (correlated, debug_info))) => {
                    let Correlated { program, warnings } = correlated;
                    match &found {
                        None => {
                            let functions = program.records.len();
                            let matched = Match {
                                path,
                                functions,
                                debug_info,
                                warnings,
                            };
                            found = Some((matched, program));
                        }
                        Some((first, other)) if *other != program => {
                            return Err(two_binaries(key, &first.path, &path));
                        }
                        Some(_) => {}
                    }
                }
                Err(error) => {
                    refused.get_or_insert(error);
                }
            }
        }
        match (found, refused, fetched) {
            (Some((matched, program)), ..) => {
                Ok((matched, RawMetadata::new(&program, dialect, *layout)?))
            }
            (None, _, Err(error)) => Err(error),
            (None, Some(error), _) => Err(error),
            (None, None, _) => Err(self.not_found(key)),
        }
    }

    /// Asks the servers for a binary if no folder contains a suitable one. `None` if no server has to be asked, or if
    /// there are no servers.
    fn fetch(
        &self,
        key: &Key,
        candidates: &[IndexedBinary],
        wanted: &Wanted<'_>,
    ) -> Result<Option<PathBuf>> {
        let Some(servers) = &self.0.servers else {
            return Ok(None);
        };
        let [id] = key.ids.as_slice() else {
            return Ok(None);
        };
        if candidates
            .iter()
            .any(|candidate| wanted.read(&candidate.path, &key.ids).is_ok())
        {
            return Ok(None);
        }
        // A server is first asked for the debug file, because only the debug file has the sections that exist for
        // correlation alone. If the debug file does not suffice, the server is asked for the program itself, because
        // only the program has the contents of the sections that are loaded at run time.
        let debug_info = servers.find(id, Artifact::DebugInfo);
        if let Ok(path) = &debug_info
            && (key.debug_info || wanted.read(path, &key.ids).is_ok())
        {
            return debug_info.map(Some);
        }
        match (debug_info, servers.find(id, Artifact::Executable)) {
            (_, Ok(path)) if wanted.read(&path, &key.ids).is_ok() => Ok(Some(path)),
            (Ok(path), _) | (Err(_), Ok(path)) => Ok(Some(path)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// Returns the binary for profiles without a build id. Such profiles can be assigned to a binary only if exactly
    /// one binary was given.
    fn only_binary(&self) -> Result<Vec<IndexedBinary>> {
        let instrumented: Vec<_> = self
            .0
            .index
            .binaries
            .iter()
            .filter(|binary| binary.named || binary.contents.contains(Contents::COUNTERS))
            .collect();
        match instrumented.as_slice() {
            [one] => Ok(vec![(*one).clone()]),
            [] => Err(Error::new(ErrorKind::MissingCorrelation, "the profile states no build id, and no binary was given")
            .with_hint("name the binary that wrote it: --binaries PROGRAM")),
            several => Err(Error::new(ErrorKind::MissingCorrelation, "the profile states no build id, so it is not known which binary wrote it")
            .found(format_args!("{} binaries: {}", several.len(), named(several.iter().map(|binary| profkit_data::path_text(&binary.path)))))
            .with_hint("merge it alone, with --binaries and the binary that wrote it; profiles of programs that are linked with --build-id do not need this")),
        }
    }

    #[cold]
    fn not_found(&self, key: &Key) -> Error {
        let ids = named(key.ids.iter());
        let error = ErrorKind::MissingCorrelation
            .error("none of the binaries has the profile's build id")
            .expected(ids);
        let with_ids = self
            .0
            .index
            .binaries
            .iter()
            .filter(|binary| !binary.ids.is_empty());
        let count = with_ids.clone().count();
        let error = match count {
            0 => error.found(format_args!(
                "{} binaries, none with a build id",
                self.0.index.binaries.len()
            )),
            1..=3 => error.found(named(with_ids.map(|binary| {
                format!(
                    "{} in {}",
                    named(binary.ids.iter()),
                    profkit_data::path_text(&binary.path)
                )
            }))),
            count => error.found(format_args!("{count} others")),
        };
        error.with_hint(if self.0.index.from_cache > 0 {
            "give the binary that wrote the profile, or a folder that contains it; a rebuilt binary has another build id; --no-index-cache reads all files again"
        } else {
            "give the binary that wrote the profile, or a folder that contains it; a rebuilt binary has another build id"
        })
    }
}

/// The properties of a profile that its binary must match.
struct Wanted<'a> {
    debug_info: bool,
    counter_bytes: u64,
    dialect: RawDialect,
    layout: &'a RecordLayout,
    folders: &'a DebugFolders,
}

impl Wanted<'_> {
    /// Reads the function records of a binary, or of its debug file. Returns the path of the file that was read, the
    /// records, and whether they are from debug info.
    fn read(&self, path: &Path, ids: &[BuildId]) -> Result<(PathBuf, (Correlated, bool))> {
        let of = |error: Error| error.within(profkit_data::path_text(path));
        let file = BinaryFile::open(path).map_err(|error| of(unreadable(&error)))?;
        let image = file
            .image(|image| self.fits(image, ids))
            .map_err(|_| of(self.wrong_machine()))?;
        self.check_counters(&image).map_err(of)?;
        let counters = CounterSection::of(&image).map_err(of)?;
        let error = match self.records(&image, counters, path) {
            Ok(records) => return Ok((path.to_owned(), records)),
            Err(error) => error,
        };
        let link = DebugLink::of(&image).map_err(of)?;
        let located = self.folders.locate(path, &link);
        let bundles = match link.build_id {
            None => dsym_files(path),
            Some(_) => Vec::new(),
        };
        for other in located.path.into_iter().chain(bundles) {
            let file = BinaryFile::open(&other).map_err(|error| of(unreadable(&error)))?;
            if let Ok(image) = file.image(|image| self.fits(image, ids))
                && let Ok(records) = self.records(&image, counters, path)
            {
                return Ok((other, records));
            }
        }
        let error = of(error);
        Err(match located.rejected.first() {
            Some(rejected) => error.found(format_args!(
                "{}, which does not belong to the binary: {}",
                profkit_data::path_text(&rejected.path),
                rejected.reason
            )),
            None => error,
        })
    }

    fn fits(&self, image: &Image<'_>, ids: &[BuildId]) -> bool {
        let same_machine = machine(image) == (self.dialect.endian, self.dialect.width);
        // In a universal file, the build id selects the architecture that ran.
        let id = profkit_object::build_id::build_id(image).ok().flatten();
        same_machine && (ids.is_empty() || id.is_none_or(|id| ids.contains(&id)))
    }

    /// Checks that a binary has as many counters as the profile. If the numbers differ, the binary is of another build,
    /// even if its build id is right.
    fn check_counters(&self, image: &Image<'_>) -> Result<()> {
        let counters = CounterSection::of(image)?;
        let len = counters.end.saturating_sub(counters.start);
        // The size of the counters in the binary and in the profile may differ by a few bytes: the run-time library
        // rounds the size in a profile up to whole counters, and in COFF it adds a byte that marks the end of the
        // section.
        if len.abs_diff(self.counter_bytes) <= COUNTER_SLACK {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CannotCorrelate, "the counter section of the binary does not have the size of the profile's counters")
        .found(format_args!("{len} bytes of counters"))
        .expected(format_args!("{} bytes", self.counter_bytes))
        .with_hint("the binary is of another build, even if its build id is right: give the binary that ran"))
    }

    #[cold]
    fn wrong_machine(&self) -> Error {
        ErrorKind::CannotCorrelate
            .error("the binary is for another kind of machine than the profile, or damaged")
            .with_hint("give the binary that wrote the profile")
    }

    /// Reads the function records of an object file from where the profile says they are. Front-end instrumentation
    /// with `-profile-correlate=debug-info` does not say so in the profile; programs built with it have no sections of
    /// function records, but debug info that describes counters.
    fn records(
        &self,
        image: &Image<'_>,
        counters: CounterSection,
        program: &Path,
    ) -> Result<(Correlated, bool)> {
        let dwarf = || {
            let options = DwarfOptions::new().split(Some(program));
            dwarf::correlate(image, counters, options, CorrelationWarnings::default())
                .map(|correlated| (correlated, true))
        };
        if self.debug_info {
            return dwarf();
        }
        match self.sections(image) {
            Ok(correlated) => Ok((correlated, false)),
            Err(error) => dwarf().map_err(|_| error),
        }
    }

    fn sections(&self, image: &Image<'_>) -> Result<Correlated> {
        let only_runtime = !binary::has_sections(image, SectionSet::Correlation)
            && binary::has_sections(image, SectionSet::Runtime);
        let set = if only_runtime {
            SectionSet::Runtime
        } else {
            SectionSet::Correlation
        };
        let (outside, warnings) = (Outside::Drop, CorrelationWarnings::default());
        binary::correlate(image, set, self.dialect, self.layout, outside, warnings)
    }
}

/// The largest accepted difference, in bytes, between the sizes of the counters in a profile and in its binary.
const COUNTER_SLACK: u64 = 8;

#[cold]
fn unreadable(error: &std::io::Error) -> Error {
    ErrorKind::CannotCorrelate.error(format!(
        "the binary cannot be read: {}",
        profkit_merge::files::system_text(error)
    ))
}

#[cold]
fn two_binaries(key: &Key, first: &Path, second: &Path) -> Error {
    Error::new(ErrorKind::CannotCorrelate, "two binaries state the same build id, but describe different functions")
    .within(named(key.ids.iter()))
    .found(format_args!("{} and {}", profkit_data::path_text(first), profkit_data::path_text(second)))
    .with_hint("leave out the binary that did not write the profile; ids that are set by hand (--build-id=0x…) must differ")
}

fn named(items: impl Iterator<Item = impl std::fmt::Display>) -> String {
    let mut text = String::new();
    let mut more = 0;
    for (index, item) in items.enumerate() {
        if index >= MOST_NAMED {
            more += 1;
        } else {
            if index > 0 {
                text.push_str(", ");
            }
            text.push_str(&item.to_string());
        }
    }
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
