//! Reading inputs that are heap profiles.
use crate::merge::report::{grouped, plural};
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{BinarySource, ModuleReport, SourceLocation, Symbolized, symbolize};
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::raw::RawMemProf;
use profkit_data::memprof::{MemProfile, yaml};
use profkit_data::{Error, ErrorKind, Result, Structure};
use profkit_merge::Inputs;
use profkit_merge::memprof::{ContextRule, MemProfSum, Module, RawContexts};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

/// Whether a file is a heap profile of its own: raw, or YAML with one of LLVM's keys.
pub fn is_memprof_input(bytes: &[u8]) -> bool {
    if detect(bytes) == FileKind::MemProfRaw {
        return true;
    }
    let keys: [&[u8]; 2] = [b"\nHeapProfileRecords:", b"\nDataAccessProfiles:"];
    yaml::is_yaml(bytes)
        && keys
            .iter()
            .any(|key| memchr::memmem::find(bytes, key).is_some())
}

/// The sum of heap profiles, and what there is to tell.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The sum.
    pub profile: MemProfile,
    /// Where the frames of raw dumps are, if all inputs are raw: in the order of the profile's frames.
    pub locations: Vec<SourceLocation>,
    /// What was wrong with inputs, by index: of each the first faults, and how many more there are.
    pub damage: Vec<(usize, Error)>,
    /// The modules of raw dumps.
    pub modules: Vec<ModuleReport>,
    /// Dumps that were added.
    pub dumps: usize,
    /// Contexts of raw dumps.
    pub contexts: usize,
    /// Those of which no frame is known.
    pub contexts_dropped: usize,
    /// The newest raw version.
    pub newest_raw: u32,
    /// Inputs of which something is in the sum.
    pub kept: usize,
    /// Indexes of those of which nothing is.
    pub dropped: FxHashSet<usize>,
}

/// How many modules messages name.
const MOST_NAMED: usize = 8;

impl Loaded {
    /// What could not be symbolised, by module, and contexts that are left out for it.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.dumps > 0 {
            notes.push(format!(
                "{} in {} of heap profiles",
                plural(self.contexts as u64, "context"),
                plural(self.dumps as u64, "dump"),
            ));
        }
        let odd = || self.modules.iter().filter(|module| module.unknown > 0);
        for module in odd().take(MOST_NAMED) {
            let counts = format!(
                "{} of {} addresses in {} of {}",
                grouped(module.unknown as u64),
                grouped(module.addresses as u64),
                grouped(module.contexts as u64),
                plural(self.contexts as u64, "context"),
            );
            let place = module_name(module).unwrap_or_else(|| "no module".to_owned());
            let why = match (&module.error, &module.binary) {
                (Some(error), Some(binary)) => format!("{}: {error}", binary.display()),
                (Some(error), None) => error.to_string(),
                (None, Some(binary)) => {
                    format!(
                        "{} has no debug info of {}",
                        binary.display(),
                        functions_without_debug_info(module)
                    )
                }
                (None, None) => match module.module {
                    Module::Linked { .. } => "no binary with this build id was given".to_owned(),
                    Module::Mapping { .. } => {
                        "no binary that was given fits the mapping".to_owned()
                    }
                    Module::None => "they are outside of all mappings".to_owned(),
                },
            };
            notes.push(format!("not symbolised: {counts}, {place}: {why}"));
            if let Some(hint) = module.error.as_ref().and_then(Error::hint) {
                notes.push(hint.to_owned());
            }
        }
        let more = odd().skip(MOST_NAMED).count() as u64;
        if more > 0 {
            notes.push(format!(
                "not symbolised: … and {} more modules",
                grouped(more)
            ));
        }
        if self.contexts_dropped > 0 {
            notes.push(format!(
                "left out {} of {}, of which no frame is known or all are the run-time library's",
                grouped(self.contexts_dropped as u64),
                plural(self.contexts as u64, "context"),
            ));
        }
        notes
    }
}

/// The functions without debug info: "main, start and 3 more functions".
fn functions_without_debug_info(module: &ModuleReport) -> String {
    let mut text = module.functions.join(", ");
    let mut and = |more: String| {
        let and = if text.is_empty() { "" } else { " and " };
        text.push_str(and);
        text.push_str(&more);
    };
    match module.more_functions as u64 {
        0 => {}
        1 => and("1 more function".to_owned()),
        more => and(format!("{} more functions", grouped(more))),
    }
    match module.unnamed as u64 {
        0 => {}
        1 => and("1 address of no symbol".to_owned()),
        unnamed => and(format!("{} addresses of no symbol", grouped(unnamed))),
    }
    text
}

/// What the module is called in messages.
pub fn module_name(module: &ModuleReport) -> Option<String> {
    match &module.module {
        Module::Linked { build_id } => Some(format!("build id {build_id}")),
        Module::Mapping { number: 0, .. } => Some("the program's mapping".to_owned()),
        Module::Mapping {
            number,
            file_offset,
            len,
            ..
        } => Some(format!(
            "mapping {number} (offset {file_offset:#x} of its file, {len:#x} bytes)"
        )),
        Module::None => None,
    }
}

/// What a share of the inputs came to.
#[derive(Default)]
struct Share {
    contexts: RawContexts,
    yaml: Vec<(usize, MemProfile)>,
    damage: Vec<(usize, Error)>,
    kept: usize,
    dropped: FxHashSet<usize>,
}

/// Adds up inputs (by index) in their order: raw ones by address, symbolised once, then YAML.
pub fn load(inputs: &dyn Inputs, indexes: &[usize], source: &dyn BinarySource) -> Loaded {
    let lanes = rayon::current_num_threads().clamp(1, indexes.len().max(1));
    let lane_len = indexes.len().div_ceil(lanes).max(1);
    let shares: Vec<Share> = indexes
        .par_chunks(lane_len)
        .map(|indexes| {
            let mut share = Share::default();
            let mut scratch = Vec::new();
            for &index in indexes {
                share.add(inputs, index, &mut scratch);
            }
            share
        })
        .collect();
    let mut all = Share::default();
    for share in shares {
        match all.kept {
            0 => all.contexts = share.contexts,
            _ => all.contexts.absorb(share.contexts),
        }
        all.yaml.extend(share.yaml);
        all.damage.extend(share.damage);
        all.kept += share.kept;
        all.dropped.extend(share.dropped);
    }
    let mut loaded = Loaded {
        dumps: all.contexts.dumps(),
        newest_raw: all.contexts.newest_version(),
        damage: all.damage,
        kept: all.kept,
        dropped: all.dropped,
        ..Loaded::default()
    };
    if loaded.dumps > 0 {
        let Symbolized {
            profile,
            locations,
            modules,
            contexts_dropped,
            contexts,
            ..
        } = symbolize(&all.contexts, source);
        drop(all.contexts);
        loaded.profile = profile;
        loaded.locations = locations;
        loaded.modules = modules;
        loaded.contexts = contexts;
        loaded.contexts_dropped = contexts_dropped;
    }
    if !all.yaml.is_empty() {
        let mut sum = MemProfSum::new(ContextRule::Add);
        sum.add(&loaded.profile);
        for (_, profile) in &all.yaml {
            sum.add(profile);
        }
        loaded.profile = sum.finish();
    }
    loaded
}

impl Share {
    fn add(&mut self, inputs: &dyn Inputs, index: usize, scratch: &mut Vec<u8>) {
        scratch.clear();
        let result = (|| -> Result<bool> {
            let data = inputs.load(index, scratch).map_err(|error| {
                Error::new(
                    ErrorKind::Truncated,
                    format!(
                        "cannot be read: {}",
                        profkit_merge::files::system_text(&error)
                    ),
                )
            })?;
            let data = data.as_ref();
            if detect(data) != FileKind::MemProfRaw {
                let profile = yaml::parse(data)?;
                if profile.is_empty() {
                    return Err(Error::new(ErrorKind::Malformed, "the profile is empty")
                        .within(Structure::MemProfYaml)
                        .expected("records under HeapProfileRecords or DataAccessProfiles")
                        .with_hint("leave the file out, or write it again: `profkit convert --to memprof-yaml` of a profile with a MemProf section does"));
                }
                self.yaml.push((index, profile));
                return Ok(true);
            }
            let profile = RawMemProf::parse(data)?;
            let mut kept = false;
            let before = self.contexts.dumps();
            let mut faults = Faults::default();
            self.contexts.add(&profile, |skipped| {
                kept |= skipped.kept > 0;
                faults.push(skipped.error);
            });
            let more = faults.more();
            let told = faults.first.into_iter();
            self.damage.extend(told.map(|error| (index, error)));
            if more > 0 {
                let error = Error::new(
                    ErrorKind::Malformed,
                    format!(
                        "there are {} more faults of dumps like these",
                        grouped(more)
                    ),
                )
                .within(Structure::RawMemProf)
                .with_hint("the file is damaged in many places: profile the program again");
                self.damage.push((index, error));
            }
            Ok(kept || self.contexts.dumps() > before)
        })();
        match result {
            Ok(true) => self.kept += 1,
            Ok(false) => drop(self.dropped.insert(index)),
            Err(error) => {
                self.damage.push((index, error));
                self.dropped.insert(index);
            }
        }
    }
}
