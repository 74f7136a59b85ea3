//! Which options fit which kind of profile.
use super::args::{SORT, ShowArgs, Sort};
use crate::exit::{Failure, Result};
use crate::memprof::flame::Weight;
use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};
use profkit_analysis::heap::is_heap_alone;
use profkit_analysis::ranking::GroupBy;
use profkit_data::detect::{Family, FileKind};
use profkit_merge::files::Input;

/// A kind of profile. Each kind accepts its own set of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raw,
    Indexed,
    Text,
    Sample,
    Heap,
    Mip,
    Recording,
}

impl Kind {
    /// The kind of a file. Returns `None` if this command cannot show the file.
    pub fn of(args: &ShowArgs, found: FileKind, input: &Input) -> Option<Self> {
        match found {
            FileKind::InstrIndexed if args.heap.asks_for_heap() => Some(Kind::Heap),
            FileKind::InstrIndexed if args.fits_all_kinds() && is_heap_alone(input.bytes()) => {
                Some(Kind::Heap)
            }
            FileKind::InstrIndexed => Some(Kind::Indexed),
            FileKind::InstrRaw => Some(Kind::Raw),
            FileKind::InstrText => Some(Kind::Text),
            kind if kind.family() == Some(Family::Sample) => Some(Kind::Sample),
            FileKind::MipProfile | FileKind::MipYaml => Some(Kind::Mip),
            FileKind::PerfData => Some(Kind::Recording),
            kind if kind.is_memprof() => Some(Kind::Heap),
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
            Kind::Mip => "MIP profile",
            Kind::Recording => "recording of perf",
        }
    }
}

const INSTR: &[Kind] = &[Kind::Raw, Kind::Indexed, Kind::Text];
const WITH_FUNCTIONS: &[Kind] = &[Kind::Raw, Kind::Indexed, Kind::Text, Kind::Sample];
const WITH_STACKS: &[Kind] = &[Kind::Heap, Kind::Sample, Kind::Recording];
const NAMED: &[Kind] = &[
    Kind::Raw,
    Kind::Indexed,
    Kind::Text,
    Kind::Sample,
    Kind::Recording,
];
const SPELLED: &[Kind] = &[
    Kind::Raw,
    Kind::Indexed,
    Kind::Text,
    Kind::Sample,
    Kind::Heap,
    Kind::Mip,
    Kind::Recording,
];
const WITH_BINARIES: &[Kind] = &[Kind::Raw, Kind::Heap, Kind::Recording];
const WITH_IDS: &[Kind] = &[Kind::Raw, Kind::Indexed, Kind::Text, Kind::Heap];
const HEAP: &[Kind] = &[Kind::Heap];
const PROFILES: &[Kind] = &[
    Kind::Raw,
    Kind::Indexed,
    Kind::Text,
    Kind::Sample,
    Kind::Heap,
    Kind::Mip,
];

/// The options that do not fit all kinds of profiles, each with the kinds that it fits.
const FITS: [(&str, &[Kind]); 32] = [
    ("functions", NAMED),
    ("function", NAMED),
    ("function-contains", NAMED),
    ("function-regex", NAMED),
    ("counts", INSTR),
    ("targets", INSTR),
    ("memop-sizes", INSTR),
    ("vtables", INSTR),
    ("bitmaps", INSTR),
    ("traces", INSTR),
    ("binary-ids", WITH_IDS),
    ("header", &[Kind::Raw, Kind::Indexed, Kind::Heap]),
    (
        "sections",
        &[Kind::Raw, Kind::Indexed, Kind::Sample, Kind::Heap],
    ),
    ("detailed-summary", WITH_FUNCTIONS),
    ("symbols", &[Kind::Sample]),
    ("by", PROFILES),
    ("memory", HEAP),
    ("folded", WITH_STACKS),
    ("flamegraph", WITH_STACKS),
    ("flamegraph-weight", HEAP),
    ("whole-stacks", HEAP),
    ("cold-density", HEAP),
    ("cold-lifetime", HEAP),
    ("hot-density", HEAP),
    ("binaries", WITH_BINARIES),
    ("debug-file-directory", WITH_BINARIES),
    ("debuginfod", WITH_BINARIES),
    ("debuginfod-budget", WITH_BINARIES),
    ("no-index-cache", WITH_BINARIES),
    ("sort", PROFILES),
    ("keep-hashes", SPELLED),
    ("mangled", SPELLED),
];

/// The options that fit all kinds of profiles if `--by file` is given.
const FOR_FILES: [&str; 2] = ["binaries", "debug-file-directory"];

pub fn is_given(matches: &ArgMatches, option: &str) -> bool {
    let id = option.replace('-', "_");
    matches.value_source(&id) == Some(ValueSource::CommandLine)
}

pub fn check(args: &ShowArgs, matches: &ArgMatches, kind: Kind, input: &Input) -> Result<()> {
    if kind != Kind::Recording {
        check_sort(args, kind, input)?;
    }
    check_weight(args, kind, input)?;
    check_rows(args, matches)?;
    let wrong = FITS.iter().find(|(option, kinds)| {
        let names_files = args.by == Some(GroupBy::File) && FOR_FILES.contains(option);
        !kinds.contains(&kind) && !names_files && is_given(matches, option)
    });
    let Some((option, kinds)) = wrong else {
        return Ok(());
    };
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| match kind {
            Kind::Recording => "recordings of perf".to_owned(),
            kind => format!("{}s", kind.name()),
        })
        .collect();
    let fitting: Vec<_> = FITS
        .iter()
        .filter(|(_, kinds)| kinds.contains(&kind) && kinds.len() < PROFILES.len())
        .map(|(option, _)| format!("--{option}"))
        .take(7)
        .collect();
    let fitting = if fitting.is_empty() {
        let every = ["--top", "--sort", "--mangled", "--format"];
        every.iter().map(|option| (*option).to_owned()).collect()
    } else {
        fitting
    };
    let (a, name) = match kind {
        Kind::Indexed => ("an", kind.name()),
        _ => ("a", kind.name()),
    };
    let failure = Failure::usage(format_args!(
        "{}: --{option} does not fit {a} {name}: the option is for {}",
        input.name(),
        in_words(&names, "and")
    ));
    let has_heap = kind == Kind::Indexed && kinds.contains(&Kind::Heap);
    let failure = match *option {
        "binaries" if PROFILES.contains(&kind) => failure.with_hint(
            "to group functions by the source files in the debug info of the binaries, add --by file",
        ),
        _ => failure,
    };
    Err(if has_heap {
        failure.with_hint(format_args!(
            "leave --{option} out; or, if this file has a heap profile, add --memory"
        ))
    } else {
        failure.with_hint(format_args!(
            "leave --{option} out; the options for {a} {name} are {}",
            in_words(&fitting, "and")
        ))
    })
}

/// Refuses `--sort` with an order of contexts if functions are shown, or with an order of functions if contexts are
/// shown.
fn check_sort(args: &ShowArgs, kind: Kind, input: &Input) -> Result<()> {
    let Some(sort) = args.sort else {
        return Ok(());
    };
    let (fits, orders) = match kind {
        Kind::Heap => (
            matches!(sort, Sort::Contexts(_)),
            "bytes, short-life or cold",
        ),
        _ => (
            matches!(sort, Sort::Functions(_)),
            "sum, max, entry or name",
        ),
    };
    if fits {
        return Ok(());
    }
    let word = SORT.iter().find(|(_, order, _)| *order == sort);
    let word = word.map_or("", |(word, ..)| word);
    Err(Failure::usage(format_args!(
        "{}: --sort {word} does not fit a {}",
        input.name(),
        kind.name()
    ))
    .with_hint(format_args!("--sort can be {orders} for a {}", kind.name())))
}

fn check_weight(args: &ShowArgs, kind: Kind, input: &Input) -> Result<()> {
    let heap = &args.heap;
    let drawn = heap.flamegraph.as_ref().map(|_| heap.flamegraph_weight);
    let (weight, is_of_samples, weights) = match kind {
        Kind::Sample | Kind::Recording => (heap.folded, true, "only be `samples`"),
        Kind::Heap => (
            heap.folded.or(drawn),
            false,
            "be `bytes`, `allocations`, `accesses` or `byte-lifetime`",
        ),
        _ => return Ok(()),
    };
    let is_wrong = |weight: &Weight| (*weight == Weight::Samples) != is_of_samples;
    let Some(wrong) = weight.filter(is_wrong) else {
        return Ok(());
    };
    let value = wrong.to_possible_value();
    let value = value.as_ref().map_or("", |value| value.get_name());
    let (name, kind) = (input.name(), kind.name());
    let option = if heap.folded.is_some() {
        "--folded"
    } else {
        "--flamegraph-weight"
    };
    let what = format_args!("{name}: {option} {value} does not fit a {kind}");
    let hint = format_args!("for a {kind}, {option} can {weights}");
    Err(Failure::usage(what).with_hint(hint))
}

fn check_rows(args: &ShowArgs, matches: &ArgMatches) -> Result<()> {
    const WITHOUT_ROWS: [&str; 8] = [
        "traces",
        "binary-ids",
        "header",
        "sections",
        "detailed-summary",
        "symbols",
        "folded",
        "flamegraph",
    ];
    let mut wrong = WITHOUT_ROWS
        .iter()
        .filter(|option| is_given(matches, option));
    if args.format == crate::print::Format::Json
        && (args.heap.folded.is_some() || args.heap.flamegraph.is_some())
    {
        return Err(Failure::usage(
            "--folded and --flamegraph write formats of their own: they cannot be combined with --format json",
        ));
    }
    match (args.format.rows(), wrong.next()) {
        (Some(_), Some(option)) => Err(Failure::usage(format_args!(
            "--{option} cannot be combined with --format csv or jsonl: --{option} prints no rows"
        ))
        .with_hint("leave out --format, or use --format json")),
        _ => Ok(()),
    }
}

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
        let everywhere = ["top", "format", "help", "input-files"];
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
