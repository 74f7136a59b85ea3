//! `profkit mip covered`: the functions that a run entered.
use super::profile::{ImageArgs, locate, open};
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::plural;
use crate::spelling::pattern;
use clap::Args;
use profkit_analysis::names::display;
use profkit_data::tables::Frame;
use profkit_report::mip::place;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
With --debug, --paths or --lines, a function has one line for each function that is inlined at
its start, and a last line for itself.

Examples:
  profkit mip covered -p program.mip
  profkit mip covered -p program.mip --paths | sort -u
  profkit mip covered -p program.mip --debug program --lines -r '^ns::'";

/// Arguments of `profkit mip covered`.
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

/// Runs `profkit mip covered`.
///
/// # Errors
/// If the profile or the debug info cannot be read, or if source locations are asked for and there are none.
pub fn run(args: &CoveredArgs) -> Result {
    let regex = pattern("--regex", args.regex.as_deref())?;
    let mut opened = open(&args.profile)?;
    if let Some(file) = &args.image.debug {
        let located = locate(&opened.profile, file, args.image.arch.as_deref())?;
        warn(&located.notes);
        opened.profile.tables = located.tables;
        for (function, stack) in opened.profile.functions.iter_mut().zip(located.stacks) {
            function.location = stack;
        }
    } else if (args.paths || args.lines)
        && opened
            .profile
            .functions
            .iter()
            .all(|function| function.location.is_none())
    {
        return Err(Failure::input(format_args!(
            "{}: the profile holds no source locations",
            opened.name
        ))
        .with_hint("give the program with debug info: --debug PROGRAM"));
    }
    let places = args.paths || args.lines || args.image.debug.is_some();
    let profile = &opened.profile;
    let mut out = print::stdout();
    let (mut covered, mut unknown) = (0u64, 0u64);
    let mut print = || -> io::Result<()> {
        for function in &profile.functions {
            let wanted = regex
                .as_ref()
                .is_none_or(|regex| regex.is_match(&function.name));
            if !function.is_covered() || !wanted {
                continue;
            }
            covered += 1;
            let frames: Vec<_> = profile.tables.frames(function.location).collect();
            if !places {
                writeln!(out, "{}", display(&function.name, args.mangled))?;
            } else if frames.is_empty() {
                unknown += 1;
                if !args.paths && !args.lines {
                    writeln!(out, "{}", display(&function.name, args.mangled))?;
                }
            } else {
                for frame in &frames {
                    writeln!(out, "{}", line(frame, args))?;
                }
            }
        }
        out.flush()
    };
    print().map_err(|error| Failure::print(&error))?;
    let mut notes = Vec::new();
    if unknown > 0 {
        notes.push(format!(
            "{} without a source location",
            plural(unknown, "covered function")
        ));
    }
    warn(&notes);
    // A failed write is ignored. It means that stderr is closed.
    let _ = writeln!(print::stderr(), "{} covered", plural(covered, "function"));
    Ok(Status::Done)
}

fn line(frame: &Frame<'_>, args: &CoveredArgs) -> String {
    if args.lines {
        place(frame)
    } else if args.paths {
        let path = frame.path.as_deref().unwrap_or(b"??");
        display(path, true).into_owned()
    } else {
        display(frame.function, args.mangled).into_owned()
    }
}

fn warn(notes: &[String]) {
    for note in notes {
        let _ = writeln!(print::stderr(), "warning: {note}");
    }
}
