//! Notes about heap profiles that were read: what could not be symbolised, and what is left out.
use crate::merge::HeapModule;
use crate::{grouped, percent, plural};
use profkit_analysis::heap::{Completed, FrameRule, LoadedHeap, ModuleReport};
use profkit_data::Error;
use profkit_merge::memprof::Module;

const MOST_NAMED: usize = 8;

/// Notes about addresses that could not be symbolised, and about contexts that have no other addresses.
pub fn notes(loaded: &LoadedHeap) -> Vec<String> {
    let mut notes = Vec::new();
    if loaded.dumps() > 1 {
        notes.push(format!(
            "{} read from {} of raw heap profiles",
            plural(loaded.total.contexts, "context"),
            plural(loaded.dumps(), "dump"),
        ));
    }
    let unknown = || loaded.modules.iter().filter(|module| module.unknown > 0);
    let odd = || unknown().filter(|module| missing_id(module).is_none());
    for module in odd().take(MOST_NAMED) {
        let occur = match module.unknown {
            1 => "occurs",
            _ => "occur",
        };
        let counts = format!(
            "{} of {}, which {occur} in {} of {}",
            grouped(module.unknown as u64),
            addresses(module.addresses as u64),
            grouped(module.contexts as u64),
            plural(loaded.total.contexts, "context"),
        );
        let place = module_name(module).map_or_else(String::new, |name| format!(" ({name})"));
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
                Module::None => "the addresses are outside of all mappings".to_owned(),
                _ => "none of the given binaries matches the mapping".to_owned(),
            },
        };
        notes.push(format!("not symbolised: {counts}{place}: {why}"));
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
    // Users seldom give the libraries of the system, so all of these that are missing share one note.
    let missing = unknown().filter_map(|module| Some((missing_id(module)?, module.unknown)));
    notes.extend(note_of_missing(missing.collect()));
    notes.extend(note_of_unknown(loaded));
    notes
}

/// The note about contexts without any frame that debug info covers, with their share of the allocations and bytes.
fn note_of_unknown(loaded: &LoadedHeap) -> Option<String> {
    let LoadedHeap { unknown, total, .. } = loaded;
    if unknown.contexts == 0 {
        return None;
    }
    let contexts = format!(
        "{} of {}, with {} ({}) and {} ({})",
        grouped(unknown.contexts),
        plural(total.contexts, "context"),
        plural(unknown.allocations, "allocation"),
        percent(unknown.allocations.into(), total.allocations.into()),
        plural(unknown.bytes, "byte"),
        percent(unknown.bytes.into(), total.bytes.into()),
    );
    Some(match loaded.rule {
        FrameRule::Compiler => format!(
            "left out {contexts}: debug info covers none of their frames, so compilers cannot use them"
        ),
        FrameRule::All => format!(
            "debug info covers no frame of {contexts}: they are shown with symbols or addresses, and a merged profile for compilers does not have them"
        ),
    })
}

/// The build id of a module for which no binary was given.
fn missing_id(module: &ModuleReport) -> Option<String> {
    match &module.module {
        Module::Linked { build_id } if module.binary.is_none() && module.error.is_none() => {
            Some(build_id.to_string())
        }
        _ => None,
    }
}

/// Notes about the names and source lines that binaries gave to a heap profile.
pub fn completed_notes(done: &Completed) -> Vec<String> {
    let mut notes = Vec::new();
    if done.named + done.unnamed > 0 {
        notes.push(format!(
            "the binaries give names to {} of {} for which the profile has only hashes",
            grouped(done.named),
            plural((done.named + done.unnamed) as u64, "function")
        ));
    }
    if done.located > 0 {
        notes.push(format!(
            "the binaries give source lines to {} of {} without them",
            grouped(done.located),
            plural((done.located + done.unlocated) as u64, "frame")
        ));
    }
    notes
}

/// The note about modules for which no binary was given: their build ids, each with the number of its addresses.
fn note_of_missing(mut modules: Vec<(String, usize)>) -> Option<String> {
    modules.sort_by_key(|&(_, addresses)| std::cmp::Reverse(addresses));
    let named = modules.iter().take(MOST_NAMED).map(|(id, addresses)| {
        let start = id.get(..12).unwrap_or(id);
        format!("{start}… ({})", grouped(addresses))
    });
    let mut list = named.collect::<Vec<_>>().join(", ");
    let more = modules.len().saturating_sub(MOST_NAMED) as u64;
    if more > 0 {
        list += &format!(" and {} more", grouped(more));
    }
    let addresses = modules.iter().map(|(_, addresses)| *addresses as u64).sum();
    let ids = match modules.len() {
        0 => return None,
        1 => "this build id",
        _ => "these build ids",
    };
    Some(format!(
        "not symbolised: {}, because no binary was given for {ids}: {list}",
        self::addresses(addresses)
    ))
}

/// A number of addresses, for example `1 address` or `2,000 addresses`.
fn addresses(count: u64) -> String {
    match count {
        1 => "1 address".to_owned(),
        _ => format!("{} addresses", grouped(count)),
    }
}

/// The modules, for the JSON report.
pub fn modules(loaded: &LoadedHeap) -> Vec<HeapModule> {
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
        unnamed => and(format!("{} outside all symbols", addresses(unnamed))),
    }
    text
}

/// The name of a module in messages; `None` for addresses that belong to no module.
pub fn module_name(module: &ModuleReport) -> Option<String> {
    (module.module != Module::None).then(|| module.module.to_string())
}
