//! `profkit mip covered`: the functions that a run entered, and the source lines that ran.
use super::profile::{ImageArgs, MipFile, locate, open};
use crate::correlate::args::BinaryArgs;
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::plural;
use crate::spelling::pattern;
use clap::Args;
use profkit_analysis::mip_lines::LineCoverage;
use profkit_data::mip::{Function, Modes};
use profkit_report::mip::{CoveredForm, MipCovered, lcov, lines_summary, lines_text};
use regex::bytes::Regex;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
With --debug, --paths or --places, a function has one line for each function that is inlined at
its start, and a last line for itself.
With --lines or --lcov, every source line with code is listed, with whether it ran. The program must
have debug info (-g), and be instrumented with --mode block. Lines of which the optimiser left no
instruction are not listed; a line whose instructions it merged with those of another line may be
counted with that line.

Examples:
  profkit mip covered -p program.mip
  profkit mip covered -p program.mip --paths | sort -u
  profkit mip covered -p program.mip --debug program --places -r '^ns::'
  profkit mip covered -p program.mip --lines --binaries program | grep ' not$'
  profkit mip covered -p program.mip --lcov --binaries program > program.info
  genhtml program.info -o coverage";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CoveredArgs {
    /// The profile
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    /// List only functions whose symbol has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,

    #[command(flatten)]
    image: ImageArgs,

    /// Print the source files instead of the functions
    #[arg(long, conflicts_with = "places")]
    paths: bool,

    /// Print source files and lines of the functions instead of their names
    #[arg(long)]
    places: bool,

    /// Print every source line with code and whether it ran
    #[arg(long, conflicts_with_all = ["paths", "places"])]
    lines: bool,

    /// Write the lines that ran and did not as an lcov tracefile, which genhtml, grcov and editors read
    #[arg(long, conflicts_with_all = ["paths", "places", "lines"])]
    lcov: bool,

    /// Print mangled names, as the linker knows them
    #[arg(long, conflicts_with_all = ["lines", "lcov"])]
    mangled: bool,

    #[command(flatten)]
    binaries: BinaryArgs,
}

pub fn run(args: &CoveredArgs) -> Result {
    let regex = pattern("--regex", args.regex.as_deref())?;
    let mut opened = open(&args.profile)?;
    if args.lines || args.lcov {
        return lines(args, &opened, regex.as_ref());
    }
    if args.binaries.is_used() {
        return Err(Failure::usage("--binaries needs --lines or --lcov"));
    }
    if let Some(file) = &args.image.debug {
        locate(&mut opened.profile, file, args.image.arch.as_deref())?;
    }
    let list = MipCovered {
        profile: &opened.profile,
        wanted: &|function| {
            let regex = regex.as_ref();
            regex.is_none_or(|regex| regex.is_match(&function.name))
        },
        form: match args.image.debug {
            _ if args.places => CoveredForm::Lines,
            _ if args.paths => CoveredForm::Paths,
            Some(_) => CoveredForm::Frames,
            None => CoveredForm::Names,
        },
        mangled: args.mangled,
    };
    if args.image.debug.is_none() && list.lacks_locations() {
        return Err(Failure::input(format_args!(
            "{}: the profile holds no source locations",
            opened.name
        ))
        .with_hint("give the program with debug info: --debug PROGRAM"));
    }
    let mut out = print::stdout();
    let counts = list.text(&mut out);
    let counts = counts.and_then(|counts| out.flush().map(|()| counts));
    let counts = counts.map_err(|error| Failure::print(&error))?;
    if counts.without_location > 0 {
        let functions = plural(counts.without_location, "covered function");
        print::say(format_args!(
            "warning: {functions} without a source location"
        ));
    }
    print::say(format_args!(
        "{} covered",
        plural(counts.covered, "function")
    ));
    Ok(Status::Done)
}

fn lines(args: &CoveredArgs, opened: &MipFile, regex: Option<&Regex>) -> Result {
    if args.image.arch.is_some() {
        return Err(
            Failure::usage("--arch does not work with --lines and --lcov")
                .with_hint("extract the architecture first: lipo -thin ARCHITECTURE"),
        );
    }
    let mut options = args.binaries.clone();
    // The program itself, or its debug file, says which lines its addresses have.
    options.binaries.extend(args.image.debug.clone());
    if !options.is_used() {
        return Err(Failure::usage("--lines and --lcov need the program")
            .with_hint("--binaries PROGRAM names the instrumented program or its debug file"));
    }
    let profile = &opened.profile;
    let wanted = |function: &Function| regex.is_none_or(|regex| regex.is_match(&function.name));
    if !profile.modes().contains(Modes::BLOCK_COVERAGE) {
        return Err(Failure::input(format_args!(
            "{}: the profile has no coverage of blocks, so it is not known which lines ran",
            opened.name
        ))
        .with_hint("build the program with profkit mip cc --mode block"));
    }
    let mut notes = Vec::new();
    let binaries = options.index(&mut notes, true)?;
    print::notes(&notes);
    let coverage = LineCoverage::find(profile, &binaries, &wanted)
        .map_err(|(name, error)| Failure::file(name, &error))?;
    let mut out = print::stdout();
    let written = match args.lcov {
        true => lcov(&coverage, &mut out),
        false => lines_text(&coverage, profile.runs, &mut out),
    };
    written
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    for (count, what) in [
        (
            coverage.without_blocks,
            "without block coverage: only the line of its first instruction is known",
        ),
        (coverage.without_lines, "without a line in the debug info"),
    ] {
        if count > 0 {
            print::say(format_args!("{} {what}", plural(count, "function")));
        }
    }
    print::say(lines_summary(&coverage));
    Ok(Status::Done)
}
