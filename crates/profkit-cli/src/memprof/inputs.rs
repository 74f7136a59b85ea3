//! Reading inputs that are heap profiles.
use crate::print::{grouped, plural};
use profkit_analysis::heap::{BinarySource, ModuleReport, SourceLocation, symbolize};
use profkit_data::Error;
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::{MemProfile, yaml};
use profkit_merge::memprof::{HeapOutcome, Module, merge_heap};
use profkit_merge::report::HeapDetails;
use profkit_merge::{Cancelled, Inputs, Report, RunOptions};

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

/// The sum of heap profiles, and what there is to report.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The sum.
    pub profile: MemProfile,
    /// Where the frames of raw dumps are, if all inputs are raw: in the order of the profile's frames.
    pub locations: Vec<SourceLocation>,
    /// What was done with the inputs.
    pub report: Report,
    /// The modules of raw dumps.
    pub modules: Vec<ModuleReport>,
    /// Contexts of raw dumps.
    pub contexts: usize,
    /// Those of which no frame is known.
    pub contexts_dropped: usize,
}

/// How many modules messages name.
const MOST_NAMED: usize = 8;

impl Loaded {
    /// What only heap profiles have to report.
    pub fn details(&self) -> HeapDetails {
        self.report.heap.unwrap_or_default()
    }

    /// How many raw dumps were added.
    pub fn dumps(&self) -> u64 {
        self.details().dumps
    }

    /// What was wrong with inputs.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        let events = self.report.events.iter();
        events.filter_map(|event| event.error.as_ref())
    }

    /// How many inputs have something in the sum.
    pub fn kept(&self) -> u64 {
        self.report.totals.files_kept + self.report.totals.files_repaired
    }

    /// What could not be symbolised, by module, and contexts that are left out for it.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.dumps() > 0 {
            notes.push(format!(
                "{} in {} of heap profiles",
                plural(self.contexts as u64, "context"),
                plural(self.dumps(), "dump"),
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

/// Adds up heap profiles in their order: raw ones by address, symbolised once, then YAML.
///
/// # Errors
/// If the merge was cancelled.
pub fn load(
    inputs: &dyn Inputs,
    run: &RunOptions,
    source: &dyn BinarySource,
) -> Result<Loaded, Cancelled> {
    let HeapOutcome { parts, report } = merge_heap(inputs, run)?;
    let mut loaded = Loaded {
        report,
        ..Loaded::default()
    };
    if parts.contexts.dumps() > 0 {
        let symbolized = run.threads.install(|| symbolize(&parts.contexts, source));
        loaded.profile = symbolized.profile;
        loaded.locations = symbolized.locations;
        loaded.modules = symbolized.modules;
        loaded.contexts = symbolized.contexts;
        loaded.contexts_dropped = symbolized.contexts_dropped;
    }
    loaded.profile = parts.sum(loaded.profile);
    Ok(loaded)
}
