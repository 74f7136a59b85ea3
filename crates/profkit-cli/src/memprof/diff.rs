//! `profkit diff`: which contexts of a heap profile grew, shrank, appeared or disappeared, and which became hot or
//! cold.
use super::heap::{Heap, ThresholdArgs, may_be_heap};
use super::is_memprof_input;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::print::{Format, stdout_for};
use clap::{Args, ValueEnum};
use profkit_analysis::heap::{HeapChanges, Measure};
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::{Input, is_stdio};
use profkit_report::heap::HeapDiff;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Contexts are compared by call stack. In a new build the line numbers of a stack may have moved:
such contexts are paired by their functions alone if only one pair is possible, and marked.
Other contexts count as gone and appeared.

Examples:
  profkit diff yesterday.profdata today.profdata
  profkit diff --by lifetime --top 30 old.yaml new.yaml
  profkit diff old.memprofraw new.memprofraw --binaries builds/
  profkit diff --format json old.profdata new.profdata | jq '.appeared.contexts[0]'";

/// Arguments of `profkit diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The old heap profile: raw (.memprofraw), indexed (.profdata) or YAML; - is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new heap profile: raw, indexed or YAML; it may come from another build than the old one
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Show at most this many contexts in each list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// The quantity that is compared, and that the lists are sorted by
    #[arg(long, value_enum, default_value_t, value_name = "MEASURE")]
    by: By,

    /// Print mangled names, as they are in the profiles
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/diff-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    /// The limits that decide which contexts are cold or hot.
    #[command(flatten)]
    thresholds: ThresholdArgs,

    /// The options that name the binaries of raw heap profiles.
    #[command(flatten)]
    binaries: BinaryArgs,
}

/// The quantity by which contexts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Number of allocations
    Allocations,
    /// Average lifetime
    Lifetime,
}

impl From<By> for Measure {
    fn from(by: By) -> Self {
        match by {
            By::Bytes => Measure::Bytes,
            By::Allocations => Measure::Allocations,
            By::Lifetime => Measure::Lifetime,
        }
    }
}

/// Compares two heap profiles.
///
/// # Errors
/// If a file cannot be read or is not a heap profile, or if the result cannot be printed.
pub fn run(args: &DiffArgs) -> exit::Result {
    if is_stdio(&args.old) && is_stdio(&args.new) {
        return Err(Failure::usage(
            "only one of the profiles can come from standard input",
        ));
    }
    let inputs = [crate::io::open(&args.old)?, crate::io::open(&args.new)?];
    check_kinds(&inputs)?;
    let [old_input, new_input] = &inputs;
    let mut old = Heap::open(&args.binaries, old_input)?;
    let mut new = Heap::open(&args.binaries, new_input)?;
    let (by, thresholds) = (args.by.into(), args.thresholds.thresholds());
    let changes = HeapChanges::new(&mut old.heap, &mut new.heap, by, &thresholds);
    let report = HeapDiff {
        sides: [
            old.view(old_input, args.mangled.into()),
            new.view(new_input, args.mangled.into()),
        ],
        changes: &changes,
        by,
        thresholds,
        top: args.top,
    };
    let mut out = stdout_for(args.format);
    match args.format {
        Format::Text => report.text(&mut out),
        Format::Json => report.json(&mut out),
    }
    .map_err(|error| Failure::print(&error))?;
    let damaged = [&old, &new].iter().any(|shown| shown.heap.damage.count > 0);
    match args.format {
        // The errors are part of the JSON, so they are not printed as text.
        Format::Json if damaged => Ok(Status::InputBad),
        _ => Heap::finish(&[(old_input, &old), (new_input, &new)]),
    }
}

/// Fails if one of the two files cannot be compared. This is checked before either file is read.
fn check_kinds(inputs: &[Input; 2]) -> Result<(), Failure> {
    let Some(odd) = inputs.iter().find(|input| !may_be_heap(input)) else {
        return Ok(());
    };
    let kind = detect(odd);
    let what = match kind {
        FileKind::Empty => "empty",
        FileKind::InstrRaw => "a raw instrumentation profile",
        FileKind::InstrText => "text, but no heap profile in YAML",
        kind if kind.is_sample() => "a sample profile",
        kind if kind.is_mip() => "a MIP file",
        FileKind::ObjectFile => "a program or library",
        FileKind::Archive | FileKind::PerfData | FileKind::GccCoverage => kind.description(),
        _ => "not a known kind of profile",
    };
    let failure = Failure::input(format_args!(
        "{}: this is {what}, but profkit diff compares heap profiles",
        odd.name()
    ));
    let other = inputs.iter().find(|input| is_memprof_input(input));
    Err(match (kind, other) {
        (kind, None) if kind.is_mip() && kind != FileKind::MipMap => {
            failure.with_hint("`profkit mip diff` compares MIP profiles")
        }
        (FileKind::ObjectFile, _) => failure
            .with_hint("programs and libraries of raw heap profiles are given with --binaries"),
        (_, Some(other)) => failure.with_hint(format_args!(
            "{} is a heap profile: compare it with another one",
            other.name()
        )),
        _ => failure.with_hint("`profkit doctor` says what a file is"),
    })
}
