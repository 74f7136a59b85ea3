//! What is reported about heap profiles after they were read and symbolised.
use crate::merge::HeapModule;
use crate::{grouped, plural};
use profkit_analysis::heap::{LoadedHeap, ModuleReport};
use profkit_data::Error;
use profkit_merge::memprof::Module;

/// The largest number of modules that messages name.
const MOST_NAMED: usize = 8;

/// Returns notes about what was read, about the addresses of each module that could not be symbolised, and about contexts
/// that were left out because none of their frames is known. Each note is a line of text.
pub fn heap_notes(loaded: &LoadedHeap) -> Vec<String> {
    let mut notes = Vec::new();
    if loaded.dumps() > 0 {
        notes.push(format!(
            "{} read from {} of raw heap profiles",
            plural(loaded.contexts as u64, "context"),
            plural(loaded.dumps(), "dump"),
        ));
    }
    let odd = || loaded.modules.iter().filter(|module| module.unknown > 0);
    for module in odd().take(MOST_NAMED) {
        let counts = format!(
            "{} of {} addresses in {} of {}",
            grouped(module.unknown as u64),
            grouped(module.addresses as u64),
            grouped(module.contexts as u64),
            plural(loaded.contexts as u64, "context"),
        );
        let place = module_name(module).unwrap_or_else(|| "no module".to_owned());
        let why = match (&module.error, &module.binary) {
            (Some(error), Some(binary)) => format!("{}: {error}", profkit_data::path_text(binary)),
            (Some(error), None) => error.to_string(),
            (None, Some(binary)) => {
                format!(
                    "{} has no debug info for {}",
                    profkit_data::path_text(binary),
                    functions_without_debug_info(module)
                )
            }
            (None, None) => match module.module {
                Module::Linked { .. } => "no binary with this build id was given".to_owned(),
                Module::Mapping { .. } => {
                    "none of the given binaries matches the mapping".to_owned()
                }
                Module::None => "the addresses are outside of all mappings".to_owned(),
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
    if loaded.contexts_dropped > 0 {
        notes.push(format!(
            "left out {} of {}: no frame is known, or all frames are in the run-time library",
            grouped(loaded.contexts_dropped as u64),
            plural(loaded.contexts as u64, "context"),
        ));
    }
    notes
}

/// Returns the modules of raw heap profiles in the form for the JSON report of a merge.
pub fn heap_modules(loaded: &LoadedHeap) -> Vec<HeapModule> {
    let of_module = |module: &ModuleReport| HeapModule {
        module: module_name(module),
        binary: module
            .binary
            .as_ref()
            .map(|path| profkit_data::path_text(path)),
        addresses: module.addresses as u64,
        unknown: module.unknown as u64,
        contexts: module.contexts as u64,
        error: module.error.as_ref().map(ToString::to_string),
    };
    loaded.modules.iter().map(of_module).collect()
}

/// Lists the functions that have no debug info: "main, start and 3 more functions".
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
        1 => and("1 address outside all symbols".to_owned()),
        unnamed => and(format!(
            "{} addresses outside all symbols",
            grouped(unnamed)
        )),
    }
    text
}

/// Returns the name of a module for messages; `None` for addresses outside of all modules.
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
