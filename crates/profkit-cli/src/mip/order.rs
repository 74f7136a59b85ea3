//! `profkit mip order`: the order in which a linker should lay out functions.
use super::profile;
use crate::choice::choice;
use crate::exit::{Failure, Result};
use crate::order::{LINKERS, write};
use crate::print::{self, FORMATS, Format};
use crate::spelling::pattern;
use clap::{Args, ValueEnum};
use profkit_analysis::order::{
    OrderFile, Partitioning, RunError, Trace, balanced, by_mean, trace, traces_of_run,
};
use profkit_data::mip::{FunctionId, MipProfile};
use profkit_merge::files::{Content, Output, check_outputs, is_stdio};
use profkit_profgen::layout::by_calls;
use profkit_report::order::{MipOrderReport, Order};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip order app.mip -o order.txt
      then: clang -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt …
  profkit mip order app.mip --for gold -o sections.txt
      then: clang -fuse-ld=gold -ffunction-sections -Wl,--section-ordering-file=sections.txt …
  profkit mip order app.mip --algorithm calls -o order.txt
  profkit mip order app.mip --algorithm balanced run1.mipraw run2.mipraw -o order.txt";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct OrderArgs {
    /// A MIP profile
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    /// Separate runs for --algorithm balanced: raw files or profiles, of the same build as the profile
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Write the order to this file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// The rule that orders the functions
    #[arg(long, value_enum, default_value_t)]
    algorithm: Algorithm,

    /// The linker that is to read the file
    #[arg(long = "for", value_parser = choice(LINKERS), default_value = "lld", value_name = "LINKER")]
    linker: OrderFile,

    /// List only functions whose name has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,

    /// The size of a memory page, for the numbers of pages in the report
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = profkit_report::typed::between(1, u64::MAX))]
    page_size: u64,

    /// The form of the report on standard error; json without --output prints the report and the order on standard
    /// output
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    /// By the mean position of the function's first call in the runs
    #[default]
    Mean,
    /// By balanced partitioning over the runs: functions that are needed at the same time are placed next to each other
    Balanced,
    /// By call counts and call edges: functions that call each other often are placed next to each other, those with the
    /// most calls per byte first
    Calls,
}

pub fn run(args: &OrderArgs) -> Result {
    let read = args.runs.iter().chain([&args.profile]);
    check_outputs(&[("the order", Some(&args.output))], read)?;
    let name = match args.algorithm {
        Algorithm::Mean => "mean",
        Algorithm::Balanced => "balanced",
        Algorithm::Calls => "calls",
    };
    if args.algorithm != Algorithm::Balanced && !args.runs.is_empty() {
        return Err(Failure::usage(format_args!(
            "the inputs include raw files of single runs, which `--algorithm {name}` cannot use",
        ))
        .with_hint("merge the raw files into the profile first, with `profkit mip merge`, or use --algorithm balanced"));
    }
    let regex = pattern("--regex", args.regex.as_deref())?;
    let output = Output::new(&args.output, Content::Text)?;
    let profile = profile::open(&args.profile)?.profile;
    let mut order = match args.algorithm {
        Algorithm::Mean => by_mean(&profile),
        Algorithm::Balanced => {
            let traces = traces(args, &profile)?;
            balanced(&traces, &Partitioning::default())
        }
        Algorithm::Calls => by_calls(&profile).ok_or_else(|| {
            Failure::input("the profile has no call counts, which `--algorithm calls` needs")
                .with_hint("instrument the program with --mode calls, best with --return-addresses 4096 too")
        })?,
    };
    if let Some(regex) = &regex {
        order.retain(|&id| regex.is_match(&profile.functions[id].name));
    }
    let report = MipOrderReport::new(&profile, &order, args.linker, args.page_size);
    if order.is_empty() {
        print::tell(report.document());
        let failure = Failure::input("no function is left to order, so nothing is written");
        return Err(failure.with_hint(match regex {
            Some(_) => "--regex is matched against mangled names, as `profkit mip show --mangled` prints them",
            None => "no function was called: merge raw files of runs into the profile with `profkit mip merge`",
        }));
    }
    write(output, is_stdio(&args.output), args.format, &report)
}

/// Returns the runs as traces. If no runs are given, the profile itself is the only trace.
fn traces(args: &OrderArgs, profile: &MipProfile) -> Result<Vec<Trace<FunctionId>>> {
    if args.runs.is_empty() {
        return Ok(vec![trace(profile)]);
    }
    let mut traces = Vec::new();
    for path in &args.runs {
        let input = crate::io::open(path)?;
        let name = input.name();
        let run = traces_of_run(profile, &input).map_err(|error| match error {
            RunError::Data(error) => Failure::file(name, &error),
            RunError::OtherImage(found) => Failure::input(format_args!(
                "{name}: this run is of another build: found {found}, expected {}",
                profile.identity
            ))
            .with_hint("give runs of the build that the profile was created from"),
            error => Failure::input(format_args!("{name}: {error}")),
        })?;
        traces.extend(run);
    }
    Ok(traces)
}
