//! `profkit diff`: what changed between two profiles of one kind.
use crate::call;
use crate::choice::{choice, choices};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::memprof::heap::{Heap, ThresholdArgs};
use crate::print::{self, AnnotateArgs, Format, ROW_FORMATS};
use crate::show::is_given;
use crate::spelling::patterns;
use clap::{ArgMatches, Args};
use profkit_analysis::diff::{DiffOptions, HeapChanges, Measure, ProfileDiff};
use profkit_analysis::heap::is_heap_alone;
use profkit_analysis::overlap::ComparedProfile;
use profkit_analysis::selection::Selection;
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::{Input, is_stdio};
use profkit_report::diff::{DiffReport, HeapDiff, gate};
use profkit_report::typed::{between, percent};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Counts are compared as shares of the total, so a longer run of the same work is no change. The
share that moved is the part of all counts that is found elsewhere in the new profile: in other
functions, in other blocks of a function, or at other targets of its calls; 0% if all shares are
equal, 100% if the profiles have nothing in common. What moves from one function to another counts
half at each. The functions with which most of it moved come first, with their share of the total
and their rank by counts in OLD and NEW, and what moved inside.
--fail-over PERCENT exits with code 3 if more than this share of the total moved.

instrumentation  A function is known by its name and hash. If only the hash differs, the function
                 has other code: the sums of its counts are compared. A local function is the same
                 one as a.c:f (compilers before LLVM 17) and as a.c;f.
sample           Each function, and each function inlined at a place of another, is compared by the
                 samples of its own lines; in a profile with calling contexts, each context.
heap             Contexts are compared by call stack. In a new build the line numbers of a stack may
                 have moved: such contexts are paired by their functions alone if only one pair is
                 possible, and marked. What moved is a share of the bytes, or of --by.
MIP              Functions that are newly called, no longer called, called earlier or later, or whose
                 blocks ran in one profile only. What moved is a share of the functions called.

Examples:
  profkit diff release-1.profdata release-2.profdata
  profkit diff --top 30 --function-contains ns:: old.profdata new.profdata
  profkit diff --function-regex '^ns::read[A-Z]' old.profdata new.profdata
  profkit diff --fail-over 10 trained.profdata today.profdata
  profkit diff --format csv old.prof new.prof > changes.csv
  profkit diff --by lifetime old.yaml new.yaml
  profkit diff old.memprofraw new.memprofraw --binaries builds/
  profkit diff yesterday.mip today.mip
  profkit mip diff yesterday.mip today.mip";

const MOST: usize = 10;

const OF_HEAPS: [&str; 3] = ["cold-density", "cold-lifetime", "hot-density"];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The old profile: instrumentation, sample, heap or MIP, recognised by content; - is standard input. A folder, an
    /// archive or a list of profiles stands for their sum
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new profile, of the same kind; it may come from another build than the old one
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Show at most this many functions, or contexts in each list [default: 10; all with --format csv or jsonl]
    #[arg(long, value_name = "N", value_parser = between(0, usize::MAX))]
    top: Option<usize>,

    /// Compare the function with this name, mangled or demangled; may be repeated
    ///
    /// Shares still refer to the total of all functions. A context of a sample or heap profile is compared if one of
    /// its functions has the name.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// Compare functions whose name, mangled or demangled, contains this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    function_contains: Vec<String>,

    /// Compare functions whose name, mangled or demangled, matches this regular expression; may be repeated
    ///
    /// The expression may match anywhere in a name; ^ and $ stand for its beginning and end.
    #[arg(long, value_name = "REGEX")]
    function_regex: Vec<String>,

    /// Exit with code 3 if more than this share of the total moved, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,

    /// Print mangled names, as they are in the profiles
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/diff-json.md describes the JSON. csv and jsonl have a row per function or context
    #[arg(long, value_parser = choice(ROW_FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,

    /// Compare the heap profiles in indexed profiles instead of their counters
    #[arg(long, help_heading = "Heap profiles")]
    memory: bool,

    /// The quantity that is compared, and that the lists are sorted by: bytes, if the option is not given
    #[arg(
        long,
        value_parser = choice(MEASURES),
        value_name = "MEASURE",
        help_heading = "Heap profiles"
    )]
    by: Option<Measure>,

    #[command(flatten)]
    annotate: AnnotateArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

choices! {
    MEASURES: Measure =
        "bytes" => Measure::Bytes, "Bytes allocated";
        "allocations" => Measure::Allocations, "Number of allocations";
        "lifetime" => Measure::Lifetime, "Average lifetime";
}

impl DiffArgs {
    fn selection(&self) -> exit::Result<Selection> {
        let patterns = patterns("--function-regex", &self.function_regex)?;
        Ok(Selection {
            all: [
                &self.function,
                &self.function_contains,
                &self.function_regex,
            ]
            .iter()
            .all(|given| given.is_empty()),
            names: self.function.clone(),
            parts: self.function_contains.clone(),
            patterns,
        })
    }

    fn most(&self) -> usize {
        let all = self.format.rows().map_or(MOST, |_| usize::MAX);
        self.top.unwrap_or(all)
    }

    /// Whether the heap profiles of the files are compared.
    fn compares_heaps(&self, inputs: &[&Input; 2]) -> bool {
        let is_heap = |input: &Input| detect(input).is_memprof() || is_heap_alone(input);
        let may_be = |input: &Input| is_heap(input) || detect(input) == FileKind::InstrIndexed;
        let asks = self.memory || self.by.is_some();
        inputs.iter().all(|&it| may_be(it)) && (asks || inputs.iter().any(|&it| is_heap(it)))
    }

    /// Ends a command that has printed the differences. Reports names in the selection that no function of either
    /// profile has. If there are no such names, reports a share that is too large for `--fail-over`.
    fn finish(&self, missing: &[String], moved: Option<f64>, unit: &str) -> exit::Result {
        if !missing.is_empty() {
            let none = |name| format!("neither profile has a function `{name}`");
            let hint = "--function-contains TEXT finds functions whose name contains the text";
            return Err(Failure::inputs(missing.iter().map(none)).with_hint(hint));
        }
        let reason = self.fail_over.and_then(|most| gate(moved, most, unit));
        self.annotate
            .gate("profkit diff: --fail-over", reason.as_deref());
        Ok(
            exit::gate(self.format, ("--fail-over", self.fail_over), reason)?
                .unwrap_or(Status::Done),
        )
    }
}

pub fn run(args: &DiffArgs, matches: &ArgMatches) -> exit::Result {
    let done = open_and_compare(args, matches);
    args.annotate.failure("profkit diff", done)
}

fn open_and_compare(args: &DiffArgs, matches: &ArgMatches) -> exit::Result {
    if is_stdio(&args.old) && is_stdio(&args.new) {
        return Err(Failure::usage(
            "only one of the profiles can come from standard input",
        ));
    }
    let old = crate::io::open_profile(&args.old, &args.binaries)?;
    let new = crate::io::open_profile(&args.new, &args.binaries)?;
    let status = compare(args, matches, &[&old.input, &new.input])?;
    Ok(old.then(new.then(status)))
}

/// The differences of two profiles as Markdown.
pub fn markdown(inputs: [&Input; 2]) -> exit::Result<Vec<u8>> {
    let words = ["--format", "markdown", "old", "new"];
    let (args, matches) = call::matches_of::<DiffArgs>("diff", &words)?;
    let answer = call::within(Vec::new(), || compare(&args, &matches, &inputs));
    answer.failure.map_or(Ok(answer.output), Err)
}

fn compare(args: &DiffArgs, matches: &ArgMatches, inputs: &[&Input; 2]) -> exit::Result {
    if args.compares_heaps(inputs) {
        return heaps(args, inputs);
    }
    let names = inputs.map(Input::name);
    let given = |option: &&str| is_given(matches, option);
    let of_heaps = [("memory", args.memory), ("by", args.by.is_some())];
    let of_heaps = of_heaps
        .iter()
        .filter(|(_, given)| *given)
        .map(|(option, _)| *option);
    if let Some(option) = of_heaps.chain(OF_HEAPS.into_iter().filter(given)).next() {
        let text = format_args!(
            "{} and {}: --{option} is for heap profiles",
            names[0], names[1]
        );
        return Err(Failure::usage(text).with_hint(format_args!(
            "leave --{option} out; `profkit doctor FILE` shows the kind of a profile"
        )));
    }
    let mut profiles = Vec::new();
    let [old, new] = inputs;
    let release = (
        |bytes| old.release_range(bytes),
        |bytes| new.release_range(bytes),
    );
    let (old, new) = rayon::join(
        || ComparedProfile::open_in_place(old.bytes(), Some(&release.0)),
        || ComparedProfile::open_in_place(new.bytes(), Some(&release.1)),
    );
    for (name, profile) in names.iter().zip([old, new]) {
        let profile = profile.map_err(|error| Failure::file(name, &error))?;
        // The errors are part of the JSON, so they are not printed as text.
        let shown = args.format != Format::Json;
        for error in profile.damage.first.iter().filter(|_| shown) {
            print::say(format_args!("warning: {name}: {error}"));
        }
        profiles.push(profile);
    }
    let [old, new] = profiles.as_slice() else {
        return Ok(Status::InputBad);
    };
    let options = DiffOptions {
        selection: args.selection()?,
        most: args.most(),
    };
    let diff = ProfileDiff::of(old, new, &options).map_err(|why| {
        Failure::input(format_args!("{} and {}: {why}", names[0], names[1]))
            .with_hint("`profkit doctor FILE` shows the kind of a profile")
    })?;
    let report = DiffReport {
        paths: names,
        profiles: [old, new],
        diff: &diff,
        spelling: args.mangled.into(),
    };
    print::answer(&report, args.format)?;
    match args.finish(&diff.missing, diff.moved, report.unit())? {
        Status::Done if report.is_damaged() => Ok(Status::InputBad),
        status => Ok(status),
    }
}

fn heaps(args: &DiffArgs, inputs: &[&Input; 2]) -> exit::Result {
    let &[old_input, new_input] = inputs;
    let [mut old, mut new] = Heap::open_both(&args.binaries, [old_input, new_input])?;
    let by = args.by.unwrap_or_default();
    let thresholds = args.thresholds.thresholds();
    let selection = args.selection()?;
    let changes = HeapChanges::new(&mut old.heap, &mut new.heap, by, &thresholds, &selection);
    let report = HeapDiff {
        sides: [
            old.view(old_input, args.mangled.into()),
            new.view(new_input, args.mangled.into()),
        ],
        changes: &changes,
        by,
        thresholds,
        top: args.most(),
    };
    print::answer(&report, args.format)?;
    // Text and JSON have the notes in them.
    if args.format.rows().is_some() {
        print::notes(old.notes.iter().chain(&new.notes));
    }
    let status = args.finish(&changes.missing, changes.moved_share, report.unit())?;
    let damaged = [&old, &new].iter().any(|shown| shown.heap.damage.count > 0);
    match (args.format, status) {
        (_, Status::GateFailed) => Ok(status),
        (Format::Json, _) if damaged => Ok(Status::InputBad),
        _ => Heap::finish(&[(old_input, &old), (new_input, &new)]),
    }
}
