//! `profkit match`: how much of a profile the functions of a binary, or of a newer profile, can use.

use crate::exit::{self, Failure, Status};
use crate::print::{self, AnnotateArgs, Format};
use clap::Args;
use profkit_analysis::matching::{BinaryFunctions, ProfileFunctions, profile_among};
use profkit_data::path_text;
use profkit_report::matching::MatchReport;
use profkit_report::quoted;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
A function of the binary is matched if the profile has its name and the hash of its control
flow. It is changed if the profile has the name only with other hashes: the code has changed
since, and a compiler drops the counts. Otherwise it is unknown. Counts are those of the
profile. Binaries that were built with instrumentation (or with -profile-correlate) hold the
hashes. Other binaries are compared by their symbols, by name alone; so are MIP profiles.
If such a binary contains a function only as copies inlined into others, the function is found
in the debug info and counted separately, because its hash is not known. Sample profiles are
compared by name, and by checksum where both the profile and the binary (.pseudo_probe_desc)
have one. If a folder is given, all programs and libraries in it are read.

Instead of a binary, a profile of the new build can be given: it lists the names and hashes of
the functions that the new build has. It must be of the same kind, and complete: a sparse
profile lists only functions that ran, and so do sample profiles without a list of symbols.

Of a hot function that is lost, the likely successor is printed, and why it is taken for it:
the same name with another hash; a new function with the same hash, which is the only one with
this hash, stands between the same functions or has a similar name; or a new function with a
similar name, such as one in another namespace or with other parameters.

Examples:
  profkit match old.profdata build/app
  profkit match train.profdata build/app build/libcore.so --fail-under 90 --format json
  profkit match old.profdata new.profraw --fail-under 95
  profkit match train.profdata build/app --fail-under 90 --annotate github";

/// Arguments of `profkit match`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MatchArgs {
    /// An instrumentation, sample or MIP profile
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    /// Programs and libraries that are to be compiled with the profile, folders of them, or profiles of their builds
    #[arg(value_name = "BINARY", required = true)]
    binaries: Vec<PathBuf>,

    /// List at most this many of the hot functions that are lost
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Exit with code 3 if the matched functions have less than this share of all counts, in percent
    #[arg(long, value_name = "PERCENT", value_parser = crate::spelling::percent)]
    fail_under: Option<f64>,

    /// Output format; docs/formats/match-json.md describes the JSON
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    annotate: AnnotateArgs,

    /// Write function names as in the profile, without demangling them; the JSON has the mangled and the demangled
    /// names
    #[arg(long)]
    mangled: bool,
}

/// Runs `profkit match`.
///
/// # Errors
/// If the profile or a binary cannot be read.
pub fn run(args: &MatchArgs) -> exit::Result {
    args.annotate.failure("profkit match", compare(args))
}

fn compare(args: &MatchArgs) -> exit::Result {
    let input = crate::io::open(&args.profile)?;
    let profile = ProfileFunctions::parse(&input).map_err(|error| {
        match profile_among(&input, &args.binaries).map(path_text) {
            Some(profile) => {
                let name = input.name();
                let order = format_args!(
                    "{name}: this is a program or library, but the profile comes first"
                );
                let (profile, program) = (quoted(&profile), quoted(name));
                Failure::input(order).with_hint(format_args!("profkit match {profile} {program}"))
            }
            None => Failure::file(input.name(), &error),
        }
    })?;
    let mut binaries = BinaryFunctions::for_profile(&profile);
    for path in &args.binaries {
        exit::must_exist(path)?;
        let opened = binaries.open(path);
        opened.map_err(|error| Failure::file(path_text(path), &error))?;
    }
    binaries.find_inlined(&profile);
    let others = binaries.binaries.iter().map(|it| (&it.path, &it.damage));
    let mut is_damaged = false;
    for (name, damage) in others.chain([(&input.name().to_owned(), &profile.damage)]) {
        is_damaged |= damage.count > 0;
        for error in &damage.first {
            // A failed write is ignored: stderr is closed.
            let _ = writeln!(print::stderr(), "warning: {name}: {error}");
        }
    }
    let mut report = MatchReport::new(input.name(), &profile, &binaries, args.top);
    report.mangled = args.mangled;
    let printed = match args.format {
        Format::Text => write!(print::stdout(), "{report}"),
        Format::Json => {
            let json = serde_json::to_string_pretty(&report);
            writeln!(print::json_stdout(), "{}", json.unwrap_or_default())
        }
    };
    printed.map_err(|error| Failure::print(&error))?;
    let reason = args.fail_under.and_then(|least| report.gate(least));
    args.annotate.write(|list| {
        *list = report.annotations();
        if let Some(reason) = &reason {
            list.error("profkit match: --fail-under", reason);
        }
    });
    let Some(reason) = reason else {
        return Ok(if is_damaged {
            Status::InputBad
        } else {
            Status::Done
        });
    };
    // A failed write is ignored: stderr is closed.
    let _ = writeln!(print::stderr(), "gate: {reason}");
    Ok(Status::GateFailed)
}
