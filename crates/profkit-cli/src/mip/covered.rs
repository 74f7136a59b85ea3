//! `profkit mip covered`: the functions that a run entered.
use super::profile::{ImageArgs, locate, open};
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::plural;
use crate::spelling::pattern;
use clap::Args;
use profkit_report::mip::{CoveredForm, MipCovered};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
With --debug, --paths or --lines, a function has one line for each function that is inlined at
its start, and a last line for itself.

Examples:
  profkit mip covered -p program.mip
  profkit mip covered -p program.mip --paths | sort -u
  profkit mip covered -p program.mip --debug program --lines -r '^ns::'";

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
    #[arg(long, conflicts_with = "lines")]
    paths: bool,

    /// Print source files and lines instead of the functions
    #[arg(long)]
    lines: bool,

    /// Print mangled names, as the linker knows them
    #[arg(long)]
    mangled: bool,
}

pub fn run(args: &CoveredArgs) -> Result {
    let regex = pattern("--regex", args.regex.as_deref())?;
    let mut opened = open(&args.profile)?;
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
            _ if args.lines => CoveredForm::Lines,
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
