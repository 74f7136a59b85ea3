//! `profkit mip order`: the order in which a linker should lay out functions.
use super::profile;
use crate::exit::{Failure, Result, Status};
use crate::print;
use clap::{Args, ValueEnum};
use profkit_analysis::order::{
    OrderFile, Partitioning, RunError, Trace, balanced, by_mean, footprint, names, trace,
    traces_of_run,
};
use profkit_data::mip::{FunctionId, MipProfile, Modes};
use profkit_merge::files::{Content, Output};
use regex::bytes::Regex;
use std::io::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip order app.mip -o order.txt
      then: clang -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt …
  profkit mip order app.mip --for gold -o sections.txt
      then: clang -fuse-ld=gold -ffunction-sections -Wl,--section-ordering-file=sections.txt …
  profkit mip order app.mip --algorithm balanced run1.mipraw run2.mipraw -o order.txt";

/// Arguments of `profkit mip order`.
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
    #[arg(long = "for", value_enum, default_value_t, value_name = "LINKER")]
    linker: Linker,

    /// List only functions whose name has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<Regex>,

    /// The size of a memory page, for the numbers of pages in the report
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = crate::spelling::between(1, u64::MAX))]
    page_size: u64,

    /// The form of the report on standard error; json without --output prints the report and the order on standard
    /// output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    /// By the mean position of the function's first call in the runs
    #[default]
    Mean,
    /// By balanced partitioning over the runs: functions that are needed at the same time are placed next to each other
    Balanced,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Linker {
    /// lld for ELF: --symbol-ordering-file
    #[default]
    Lld,
    /// gold: --section-ordering-file
    Gold,
    /// Mach-O linkers: -order_file
    Macho,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Runs `profkit mip order`.
///
/// # Errors
/// If a file cannot be read, if a run is of another build, or if the order cannot be written.
pub fn run(args: &OrderArgs) -> Result {
    if args.algorithm == Algorithm::Mean && !args.runs.is_empty() {
        return Err(
            Failure::usage("runs can be given only with --algorithm balanced")
                .with_hint("merge them into the profile first: profkit mip merge"),
        );
    }
    let output = Output::new(&args.output, Content::Text)?;
    let profile = profile::open(&args.profile)?.profile;
    let mut order = match args.algorithm {
        Algorithm::Mean => by_mean(&profile),
        Algorithm::Balanced => {
            let traces = traces(args, &profile)?;
            balanced(&traces, &Partitioning::default())
        }
    };
    if let Some(regex) = &args.regex {
        order.retain(|&id| regex.is_match(&profile.functions[id].name));
    }
    let listed = names(&profile, &order);
    let touched = footprint(&profile, &order, args.page_size);
    let file = match args.linker {
        Linker::Lld => OrderFile::Lld,
        Linker::Gold => OrderFile::Gold,
        Linker::Macho => OrderFile::MachO,
    };
    let json_alone = args.format == Format::Json && profkit_merge::files::is_stdio(&args.output);
    let mut report = serde_json::json!({
        "schema_version": 1,
        "functions": profile.function_counts().0,
        "ordered": touched.functions,
        "names": listed.names.len(),
        "repeated_names": listed.repeated,
        "bytes": touched.bytes,
        "page_size": args.page_size,
        "pages_before": touched.pages_before,
        "pages_after": touched.pages_after,
    });
    if json_alone {
        let names: Vec<_> = listed
            .names
            .iter()
            .map(|name| String::from_utf8_lossy(name))
            .collect();
        report["order"] = serde_json::json!(names);
        let text = format!("{report:#}\n");
        output.write(|sink| sink.put(text.as_bytes()))?;
        return Ok(Status::Done);
    }
    let bytes = file.write(&listed.names);
    output.write(|sink| sink.put(&bytes))?;
    // A failed write is ignored: stderr is closed.
    let mut stderr = print::stderr();
    if args.format == Format::Json {
        let _ = writeln!(stderr, "{report:#}");
        return Ok(Status::Done);
    }
    let _ = writeln!(
        stderr,
        "{} of {} functions ordered for {file}: {} bytes of code, on {} pages before and {} pages after",
        touched.functions,
        profile.function_counts().0,
        touched.bytes,
        touched.pages_before,
        touched.pages_after
    );
    if listed.repeated > 0 {
        let _ = writeln!(
            stderr,
            "{} functions have the same name as an earlier function, and a linker cannot tell functions of one name apart",
            listed.repeated
        );
    }
    if !order.is_empty() && !profile.modes().contains(Modes::FIRST_CALL) {
        let _ = writeln!(
            stderr,
            "the profile does not record the order of calls (--mode calls records it): the functions are in link order"
        );
    }
    Ok(Status::Done)
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
