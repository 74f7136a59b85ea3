//! Which options fit which kind of profile.
use super::ShowArgs;
use crate::exit::{Failure, Result};
use crate::memprof::is_memprof_input;
use clap::ArgMatches;
use clap::parser::ValueSource;
use profkit_analysis::heap::is_heap_alone;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_merge::files::Input;

/// A kind of profile. Each kind accepts its own set of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raw,
    Indexed,
    Text,
    Sample,
    Heap,
}

impl Kind {
    /// The kind of a file. Returns `None` if this command cannot show the file.
    pub fn of(args: &ShowArgs, input: &Input) -> Option<Self> {
        match detect(input.bytes()) {
            FileKind::InstrIndexed if args.heap.asks_for_heap() => Some(Kind::Heap),
            FileKind::InstrIndexed if args.is_overview() && is_heap_alone(input.bytes()) => {
                Some(Kind::Heap)
            }
            FileKind::InstrIndexed => Some(Kind::Indexed),
            FileKind::InstrRaw => Some(Kind::Raw),
            FileKind::InstrText => Some(Kind::Text),
            kind if kind.family() == Some(Family::Sample) => Some(Kind::Sample),
            _ if is_memprof_input(input.bytes()) => Some(Kind::Heap),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Raw => "raw profile",
            Kind::Indexed => "indexed profile",
            Kind::Text => "text profile",
            Kind::Sample => "sample profile",
            Kind::Heap => "heap profile",
        }
    }
}

const INSTR: &[Kind] = &[Kind::Raw, Kind::Indexed, Kind::Text];
const WITH_FUNCTIONS: &[Kind] = &[Kind::Raw, Kind::Indexed, Kind::Text, Kind::Sample];
const WITH_BINARIES: &[Kind] = &[Kind::Raw, Kind::Heap];
const HEAP: &[Kind] = &[Kind::Heap];

/// The options that do not fit all kinds, with the kinds that they fit.
const FITS: [(&str, &[Kind]); 27] = [
    ("functions", WITH_FUNCTIONS),
    ("function", WITH_FUNCTIONS),
    ("function-contains", WITH_FUNCTIONS),
    ("counts", INSTR),
    ("targets", INSTR),
    ("memop-sizes", INSTR),
    ("vtables", INSTR),
    ("bitmaps", INSTR),
    ("traces", INSTR),
    ("binary-ids", INSTR),
    ("header", &[Kind::Raw, Kind::Indexed]),
    ("sections", &[Kind::Raw, Kind::Indexed, Kind::Sample]),
    ("detailed-summary", WITH_FUNCTIONS),
    ("symbols", &[Kind::Sample]),
    ("memory", HEAP),
    ("by", HEAP),
    ("folded", HEAP),
    ("flamegraph", HEAP),
    ("flamegraph-weight", HEAP),
    ("cold-density", HEAP),
    ("cold-lifetime", HEAP),
    ("hot-density", HEAP),
    ("binaries", WITH_BINARIES),
    ("debug-file-directory", WITH_BINARIES),
    ("debuginfod", WITH_BINARIES),
    ("debuginfod-budget", WITH_BINARIES),
    ("no-index-cache", WITH_BINARIES),
];

/// Whether an option stands on the command line.
fn is_given(matches: &ArgMatches, option: &str) -> bool {
    let id = option.replace('-', "_");
    matches.value_source(&id) == Some(ValueSource::CommandLine)
}

/// Refuses options that do not fit the kind of the profile.
///
/// # Errors
/// The first such option.
pub fn check(matches: &ArgMatches, kind: Kind, input: &Input) -> Result<()> {
    let wrong = FITS
        .iter()
        .find(|(option, kinds)| !kinds.contains(&kind) && is_given(matches, option));
    let Some((option, kinds)) = wrong else {
        return Ok(());
    };
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| format!("{}s", kind.name()))
        .collect();
    let fitting: Vec<_> = FITS
        .iter()
        .filter(|(_, kinds)| kinds.contains(&kind))
        .map(|(option, _)| format!("--{option}"))
        .take(7)
        .collect();
    let (a, name) = match kind {
        Kind::Indexed => ("an", kind.name()),
        _ => ("a", kind.name()),
    };
    let failure = Failure::usage(format_args!(
        "{}: --{option} does not fit {a} {name}: it is for {}",
        input.name(),
        in_words(&names, "and")
    ));
    let has_heap = kind == Kind::Indexed && kinds.contains(&Kind::Heap);
    Err(if has_heap {
        failure.with_hint(format_args!(
            "with --memory, --{option} works for the heap profile in this file, if it has one"
        ))
    } else {
        failure.with_hint(format_args!(
            "leave it out; {} fit {a} {name}",
            in_words(&fitting, "and")
        ))
    })
}

/// Joins words: "a, b and c".
fn in_words(words: &[String], and: &str) -> String {
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {and} {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Every option of `profkit show` either fits all kinds of profiles or is in [`FITS`], and `FITS` names no option
    /// that does not exist.
    #[test]
    fn the_table_has_all_options() {
        let everywhere = ["top", "mangled", "format", "help"];
        let command = crate::cli::Cli::command();
        let show = command.find_subcommand("show").unwrap();
        let options: BTreeSet<_> = show
            .get_arguments()
            .filter_map(|option| option.get_long())
            .collect();
        let known: BTreeSet<_> = FITS
            .iter()
            .map(|(option, _)| *option)
            .chain(everywhere)
            .collect();
        assert!(options.is_subset(&known), "{options:?} {known:?}");
        for (option, _) in FITS {
            assert!(options.contains(option), "{option}");
        }
    }
}
