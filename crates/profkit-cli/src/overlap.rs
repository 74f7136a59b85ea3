//! `profkit overlap`: how alike profiles are.
use crate::choice::choice;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::memprof::heap::Heap;
use crate::print::{self, AnnotateArgs, FORMATS, Format};
use clap::Args;
use profkit_analysis::heap::FrameRule;
use profkit_analysis::overlap::ComparedProfile;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::ReleaseBytes;
use profkit_data::path_text;
use profkit_merge::Threads;
use profkit_merge::files::Input;
use profkit_report::overlap::OverlapReport;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The overlap is 100% if everything has the same share in both profiles; how long the programs ran
does not matter. Instrumentation profiles are compared counter by counter, sample profiles line
by line, heap profiles by the bytes of each context, MIP profiles by the functions that ran.
--top lists the functions that differ most: what each takes from the overlap (lost), its share
in the first and in the second profile, and how alike its own counts are (inside).

Examples:
  profkit overlap monday.profdata tuesday.profdata
  profkit overlap --top 20 old.profdata new.profdata
  profkit overlap --fail-under 90 --format json trained.profdata shard-*.profdata";

/// The number of functions in a list, as in the other commands.
const MOST: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct OverlapArgs {
    /// Two or more profiles of one kind: instrumentation, sample, heap or MIP. A folder, an archive or a list of profiles
    /// stands for their sum
    #[arg(value_name = "PROFILE", required = true)]
    profiles: Vec<PathBuf>,

    /// For each pair of profiles, list this many of the functions that differ most [default: 10 of two profiles, none of
    /// more]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Exit with code 3 if the overlap of any two profiles is below this, in percent
    #[arg(long, value_name = "PERCENT", value_parser = profkit_report::typed::percent)]
    fail_under: Option<f64>,

    /// Output format; docs/formats/overlap-json.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,

    /// Write function names as in the profiles, without demangling them; the JSON has both
    #[arg(long)]
    mangled: bool,

    #[command(flatten)]
    annotate: AnnotateArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

/// How many functions are listed for each pair.
fn most(args: &OverlapArgs) -> usize {
    let all = if args.profiles.len() == 2 { MOST } else { 0 };
    args.top.unwrap_or(all)
}

pub fn run(args: &OverlapArgs) -> exit::Result {
    args.annotate.failure("profkit overlap", compare(args))
}

fn compare(args: &OverlapArgs) -> exit::Result {
    if let [alone] = &*args.profiles {
        let text = format_args!(
            "{}: an overlap needs at least two profiles",
            path_text(alone)
        );
        return Err(Failure::usage(text)
            .with_hint("name the second profile too: `profkit overlap ONE TWO`"));
    }
    let open = |path: &PathBuf| crate::io::open_profile(path, &args.binaries);
    let opened = args.profiles.iter().map(open);
    let opened = opened.collect::<exit::Result<Vec<_>>>()?;
    let inputs: Vec<_> = opened.iter().map(|opened| &opened.input).collect();
    let symbolised =
        |input: &Input| args.binaries.is_used() && detect(input.bytes()) == FileKind::MemProfRaw;
    // Profiles of other forms hold only the contexts that compilers can use.
    let rule = match inputs.iter().all(|input| symbolised(input)) {
        true => FrameRule::All,
        false => FrameRule::Compiler,
    };
    let rest = inputs.iter().filter(|input| !symbolised(input));
    let release: Vec<_> = rest
        .map(|&input| (input, |bytes| input.release_range(bytes)))
        .collect();
    let open =
        |(input, release)| ComparedProfile::open_in_place(Input::bytes(input), Some(release));
    let rest: Vec<_> = release
        .iter()
        .map(|(input, release)| (*input, release as &ReleaseBytes<'_>))
        .collect();
    let mut read = Threads::default().map(rest, open).into_iter();
    let mut profiles = Vec::new();
    for input in inputs {
        let profile = if symbolised(input) {
            let heap = Heap::open(&args.binaries, input, rule)?;
            print::notes(&heap.notes);
            Ok(ComparedProfile::of_heap(heap.heap))
        } else {
            let Some(profile) = read.next() else { break };
            profile
        };
        let profile = profile.map_err(|error| Failure::file(input.name(), &error))?;
        for error in &profile.damage.first {
            print::say(format_args!("warning: {}: {error}", input.name()));
        }
        profiles.push((input.name().to_owned(), profile));
    }
    let named = profiles.iter().map(|(name, profile)| (&**name, profile));
    let report = OverlapReport::new(&named.collect::<Vec<_>>(), most(args));
    let mut report = report.map_err(|(one, two, why)| {
        Failure::input(format_args!("{one} and {two}: {why}"))
            .with_hint("`profkit doctor FILE` shows the kind of a profile")
    })?;
    report.mangled = args.mangled;
    print::answer(&report, args.format)?;
    let reason = args.fail_under.and_then(|least| report.gate(least));
    args.annotate
        .gate("profkit overlap: --fail-under", reason.as_deref());
    let is_damaged = report.is_damaged() || opened.iter().any(|it| it.status != Status::Done);
    Ok(
        exit::gate(args.format, ("--fail-under", args.fail_under), reason)?.unwrap_or(
            match is_damaged {
                true => Status::InputBad,
                false => Status::Done,
            },
        ),
    )
}
