//! Reproduces llvm-profgen of LLVM 22, and of LLVM 23 under the name `llvm-profgen-23`: its options, messages, exit codes
//! and profiles. [docs/formats/llvm-profgen.md] lists every difference and its reason.
//!
//! [docs/formats/llvm-profgen.md]: https://github.com/profkit/profkit/blob/main/docs/formats/llvm-profgen.md
mod binary;
mod contexts;
mod counts;
mod finish;
mod help;
mod lines;
mod options;
mod timing;
mod trace;
mod unsymbolized;

use crate::command_line::{Outcome, Parsed, file_name, parse};
use crate::messages::{Fault, Session};
use crate::{Io, LLVM_23, release_of};
use counts::Counts;
use profkit_data::path_from_bytes;
use profkit_data::releases::Release;
use profkit_data::sample::ProfileKind;
use std::ffi::OsString;
use timing::Timing;

pub use crate::command_line::{OptionKind, OptionSpec};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;

/// The name of the tool.
pub const NAME: &str = "llvm-profgen";

/// The example command line at the end of the text of `profkit llvm-profgen --help`, with its title.
pub const EXAMPLE: &str = "\
Example:
  profkit llvm-profgen --perfdata=perf.data --binary=app --output=app.prof";

/// Returns the options, including hidden ones, in the order of the help text. Completion scripts and manual pages need
/// them.
pub fn options() -> impl Iterator<Item = &'static OptionSpec> {
    options::OPTIONS.iter()
}

/// Runs llvm-profgen with these arguments, and returns its exit code. The first argument is the program's name.
///
/// ```
/// use profkit_llvm::{Io, profgen};
///
/// let (mut input, mut text, mut errors) = (std::io::empty(), Vec::new(), Vec::new());
/// let mut io = Io::new(&mut input, &mut text, &mut errors);
/// let args = ["llvm-profgen", "--binary=app"];
/// assert_eq!(profgen::run(args.map(Into::into).to_vec(), &mut io), 1);
/// let missing = "llvm-profgen: for the --output option: must be specified at least once!\n";
/// assert_eq!(String::from_utf8_lossy(&errors), missing);
/// ```
pub fn run(args: Vec<OsString>, io: &mut Io<'_>) -> u8 {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_encoded_bytes).collect();
    let mut wrong = Vec::new();
    let outcome = parse(&options::TOOL, &args, &mut wrong);
    crate::say(io.stderr, &wrong);
    let typed = args.first().map_or(NAME.as_bytes(), Vec::as_slice);
    let program = String::from_utf8_lossy(&file_name(typed)).into_owned();
    let text = match outcome {
        Outcome::Wrong => return FAILURE,
        Outcome::Help(_, kind) => help::help(&program, kind),
        Outcome::Version => help::version(release_of(NAME, &program)),
        Outcome::Run(parsed) => {
            let session = Session::new(io, parsed.given_flag("color"))
                .errors_begin_with("llvm-profgen: ")
                .imitating(release_of(NAME, &program));
            let mut timing = Timing::new(parsed.flag("time-profgen"));
            return match make(&parsed, &session, &mut timing) {
                Ok(()) => {
                    timing.print(&session);
                    SUCCESS
                }
                Err(fault) => {
                    session.error(&fault);
                    FAILURE
                }
            };
        }
    };
    match io.stdout.write_all(text.as_bytes()) {
        Ok(()) => SUCCESS,
        Err(_) => FAILURE,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Recording,
    Script,
    Unsymbolized,
    Profile,
    Etm,
}

/// The options that name an input, each with the kind of input. They have the order in which LLVM's tool checks whether
/// the files exist.
const INPUTS: [(&str, Input); 5] = [
    ("perfdata", Input::Recording),
    ("perfscript", Input::Script),
    ("unsymbolized-profile", Input::Unsymbolized),
    ("llvm-sample-profile", Input::Profile),
    ("etm", Input::Etm),
];

/// Checks the options that the parser cannot check, in LLVM's order. Returns the kind and the path of the only input.
fn input<'p>(parsed: &'p Parsed, release: Release) -> Result<(Input, &'p [u8]), Fault> {
    let exists = |path: &[u8]| path_from_bytes(path).exists();
    if parsed.flag("show-disassembly-only") {
        return Err(Fault::new(
            "--show-disassembly-only is not supported by profkit; use objdump, or llvm-profgen of LLVM",
        ));
    }
    let given: Vec<(Input, &'p [u8])> = INPUTS
        .iter()
        .filter(|(name, _)| parsed.has(name))
        .map(|&(name, input)| (input, parsed.text(name)))
        .collect();
    let [(input, path)] = given.as_slice() else {
        return Err(Fault::new(match (given.is_empty(), release >= LLVM_23) {
            (true, false) => {
                "Perf input file is missing, please use one of `--perfscript`, `--perfdata` and `--unsymbolized-profile` for the input."
            }
            (false, false) => {
                "`--perfscript`, `--perfdata` and `--unsymbolized-profile` cannot be used together."
            }
            (true, true) => {
                "Perf input file is missing. Please provide one of `--perfscript`, `--perfdata`, `--unsymbolized-profile`, `--sample-profile`, `--etm`."
            }
            (false, true) => {
                "Only one of `--perfscript`, `--perfdata`, `--unsymbolized-profile`, `--sample-profile` or `--etm` can be used."
            }
        }));
    };
    if !exists(path) {
        return Err(Fault::new(
            [b"Input perf file(", *path, b") doesn't exist."].concat(),
        ));
    }
    let binary = parsed.text("binary");
    if !exists(binary) {
        return Err(Fault::new(
            [b"Input binary(", binary, b") doesn't exist."].concat(),
        ));
    }
    if parsed.signed("compress-recursion").is_some_and(|n| n < -1) {
        return Err(Fault::new("Value of --compress-recursion should >= -1"));
    }
    if parsed.flag("show-source-locations") {
        return Err(Fault::new(
            "--show-source-locations should work together with --show-disassembly-only!",
        ));
    }
    Ok((*input, path))
}

fn make(parsed: &Parsed, session: &Session<'_>, timing: &mut Timing) -> Result<(), Fault> {
    let (input, path) = input(parsed, session.release())?;
    if input == Input::Etm {
        return Err(Fault::new(
            "--etm is not supported by profkit: `perf inject --itrace=i1000il --strip` makes a recording with branch stacks of a trace of Arm ETM",
        ));
    }
    let files = binary::Files::open(parsed)?;
    let binary = timing.of("Load the binary", || files.load(parsed, session))?;
    if input == Input::Profile {
        let mut profile = finish::read(parsed, path, session)?;
        if profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
            profile = contexts::again(parsed, &binary, profile)?;
            return finish::conclude(parsed, &binary, &mut profile, session);
        }
        return finish::run(parsed, &binary, &mut profile, session);
    }
    let counts = timing.of("Parse and aggregate trace", || match input {
        Input::Unsymbolized => unsymbolized::read(parsed, &binary, path),
        _ => trace::read(parsed, &binary, path, input == Input::Recording, session),
    })?;
    if parsed.has("data-access-perftrace") {
        return Err(Fault::later("--data-access-perftrace"));
    }
    if parsed.flag("skip-symbolization") {
        return Ok(());
    }
    if let Counts::Contexts(contexts) = &counts {
        let mut profile = timing.of("Generate CS profile", || {
            contexts::profile(parsed, &binary, contexts)
        })?;
        return timing.of("Write the profile", || {
            finish::conclude(parsed, &binary, &mut profile, session)
        });
    }
    let mut profile = timing.of("Generate profile", || counts.profile(parsed, &binary))?;
    timing.of("Write the profile", || {
        finish::run(parsed, &binary, &mut profile, session)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Commands;

    #[test]
    fn the_options_near_to_an_unknown_one_exist() {
        for name in (options::TOOL.nearest)(Commands::TOP) {
            assert!(options::TOOL.find(Commands::TOP, name.as_bytes()).is_some());
        }
    }
}
