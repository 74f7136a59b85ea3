//! `profkit pgo`: from a build to a faster build.
use crate::call;
use crate::choice::choice;
use crate::exit::{self, Failure, Status};
use crate::print::{self, FORMATS, Format};
use clap::Args;
use profkit_data::Weight;
use profkit_pgo::{Error, Event, Plan, Settings, Training, run};
use profkit_report::quoted;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

const EXAMPLES: &str = "\
The build is made with instrumentation, each training command is run, the profile is merged for the
compiler that will read it, and the build is made again with it. Each command is printed before it
runs; --dry-run prints all of them as a script, which needs profkit only for --sampling, --partial and --mip.

The build must take its compiler from CC and CXX or call it by name (cc, gcc, clang, c++, …): folders
with programs of these names come first in PATH, and they are clang. Cargo gets CARGO_ENCODED_RUSTFLAGS,
to which the flags of its configuration are added. make, ninja, cmake --build and meson compile are
cleaned between the builds; for other programs --clean says how. A wheel that the build makes is unpacked, and comes first in
PYTHONPATH for the training and the benchmark. Nothing else in the folder is changed: the last build is what
BUILD left there. Configure a folder of CMake as a part of BUILD.

Examples:
  profkit pgo --train './lua bench.lua' -- make -j8 linux
  profkit pgo --train 'target/release/rg -n fn src' --bench 'target/release/rg -c e src' -- cargo build --release
  profkit pgo --train 'out/app small' --train '3,out/app large' --clean 'rm -rf out' -- ./build.sh
  profkit pgo --train 'python3 bench.py' -- maturin build --release
  profkit pgo --train 'build/tests' -- sh -c 'cmake --fresh -B build -G Ninja && ninja -C build'
  profkit pgo --sampling --train './lua bench.lua' -- make linux
  profkit pgo --dry-run --train ./app -- make";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PgoArgs {
    /// Train with this command of the shell; CMD or WEIGHT,CMD, where the weight multiplies the counts; may be repeated
    #[arg(long, value_name = "CMD", required = true)]
    train: Vec<OsString>,

    /// Compile everything again after this command of the shell
    #[arg(long, value_name = "CMD")]
    clean: Option<OsString>,

    /// The clang that compiles C and C++; by default that of CC, clang, or the newest clang-N
    #[arg(long, value_name = "CLANG")]
    compiler: Option<OsString>,

    /// 2 collects a second profile from a program that was optimised with the first one (clang only)
    #[arg(long, value_name = "N", default_value = "1", value_parser = ["1", "2"])]
    stages: String,

    /// Train without counters: perf records the training, and its samples are the profile (clang only)
    ///
    /// With branch stacks where the processor has them, else by the addresses of samples. A recording slows the program
    /// little, but it has to take long enough for thousands of samples.
    #[arg(long, conflicts_with = "stages")]
    sampling: bool,

    /// Compile functions that no training ran as without a profile, instead of for size
    ///
    /// For a training that does not run all that matters.
    #[arg(long, conflicts_with = "sampling")]
    partial: bool,

    /// Also train the order of functions (MIP), and let lld place them so: the start touches fewer pages
    ///
    /// This builds and trains once more.
    #[arg(long)]
    mip: bool,

    /// Measure this command of the shell with the build without a profile and with it, in turn
    #[arg(long, value_name = "CMD")]
    bench: Option<OsString>,

    /// How often the benchmark is run with each build
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,

    /// Keep the profiles in this folder: merged.profdata, and those of the runs
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    /// Print the commands as a script, and run none
    #[arg(long)]
    dry_run: bool,

    /// Output format; docs/guide/json.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,

    /// The build: a program and its arguments
    #[arg(value_name = "BUILD", last = true, required = true)]
    build: Vec<OsString>,
}

fn training(text: &OsString) -> Training {
    let weighted = text.to_str().and_then(|text| {
        let (weight, command) = text.split_once(',')?;
        Some(Training {
            weight: weight.parse::<Weight>().ok()?,
            command: command.into(),
        })
    });
    weighted.unwrap_or_else(|| Training {
        weight: Weight::ONE,
        command: text.clone(),
    })
}

/// Held by the thread that ends the job after a signal. The programs that the job waits for get Ctrl-C too, and the job must not
/// go on with what they have left.
static ENDING: Mutex<()> = Mutex::new(());

/// Waits for the end of the process if a signal is ending it.
fn unless_ending() {
    drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Removes what is temporary if a signal ends the job, and says what is left. The build and the training get Ctrl-C from
/// the terminal themselves.
fn watch(scratch: Option<PathBuf>) {
    if call::is_active() {
        return;
    }
    // A job in the background, or one that is to outlive its terminal, is started with signals ignored.
    let wanted = [SIGHUP, SIGINT, SIGTERM];
    let wanted = wanted
        .into_iter()
        .filter(|&signal| !exit::is_ignored(signal));
    let Ok(mut signals) = Signals::new(wanted) else {
        return;
    };
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else {
            return;
        };
        let _held = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = scratch {
            // Processes of the build may still be writing there.
            let _ = std::fs::remove_dir_all(folder);
        }
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        let failure = Failure::input(format_args!(
            "ended by {name}: the programs that the build has left may be without the profile, or instrumented"
        ));
        let hint = "run it again, or build without profkit after what cleans the build";
        exit::by_signal(&failure.with_hints(Some(hint)), signal);
    });
}

/// Prints what happens, and counts the trainings that are not wholly in the profile.
fn tell(event: &Event, left_out: &mut usize) {
    unless_ending();
    match event {
        Event::Command(line) => print::say(format_args!("$ {line}")),
        Event::TrainingFailed(command, status) => {
            *left_out += 1;
            print::say(format_args!(
                "warning: the training {} ended with {status}: what it did not write is not in the profile",
                quoted(command)
            ));
        }
        Event::NothingWritten(command) => {
            *left_out += 1;
            print::say(format_args!(
                "warning: the training {} wrote no profile: it ran no program of the build, or one that was killed or ended by _exit",
                quoted(command)
            ));
        }
        Event::StillRunning(command, running) => {
            *left_out += 1;
            let shown: Vec<String> = running
                .iter()
                .map(|process| format!("{} (process {})", process.program, process.pid))
                .collect();
            print::say(format_args!(
                "warning: the training {} has ended, and still runs {}: what it counts is not in the profile; let the training end and wait for it",
                quoted(command),
                shown.join(", ")
            ));
        }
        Event::Merged(profile) if profile.sampled => print::say(format_args!(
            "made a sample profile of {} of {} recordings",
            profile.merged, profile.inputs
        )),
        Event::Merged(profile) => print::say(format_args!(
            "merged {} of {} raw profiles for LLVM {}",
            profile.merged, profile.inputs, profile.release
        )),
        Event::Dropped(text) => print::say(format_args!("warning: {text}")),
        _ => {}
    }
}

pub fn pgo(args: &PgoArgs) -> exit::Result {
    let scratch = match (&args.keep, args.dry_run) {
        (None, false) => Some(
            tempfile::Builder::new()
                .prefix("profkit-pgo-")
                .tempdir()
                .map_err(|error| {
                    Failure::io("cannot be made", "a folder for temporary files", &error)
                })?,
        ),
        _ => None,
    };
    let work = match (&args.keep, &scratch) {
        (Some(folder), _) => std::path::absolute(folder)
            .map_err(|error| Failure::io("cannot be found", folder.display(), &error))?,
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => std::env::temp_dir().join("profkit-pgo"),
    };
    let settings = Settings {
        build: args.build.clone(),
        training: args.train.iter().map(training).collect(),
        clean: args.clean.clone(),
        compiler: args.compiler.clone(),
        two_stages: args.stages == "2",
        sampling: args.sampling,
        partial: args.partial,
        order: args.mip,
        profkit: std::env::current_exe()
            .map_err(|error| Failure::io("cannot be found", "the command profkit", &error))?,
        benchmark: args.bench.clone(),
        runs: args.runs.max(1),
        work,
    };
    let plan = Plan::new(settings).map_err(|error| failure(&error))?;
    if let Some(text) = plan.left_out() {
        print::say(format_args!("warning: {text}"));
    }
    if args.dry_run {
        let mut out = print::stdout();
        let printed = out
            .write_all(plan.script().as_bytes())
            .and_then(|()| out.flush());
        return printed
            .map(|()| Status::Done)
            .map_err(|error| Failure::print(&error));
    }
    print::say(format_args!("note: compiled by {}", plan.compilers()));
    watch(scratch.as_ref().map(|folder| folder.path().to_owned()));
    let mut left_out = 0;
    let outcome = run(&plan, &mut |event| tell(&event, &mut left_out));
    unless_ending();
    let outcome = outcome.map_err(|error| failure(&error))?;
    print::answer(&outcome, args.format)?;
    match &args.keep {
        Some(_) => print::say(format_args!(
            "the profile is {}",
            outcome.profile.path.display()
        )),
        None => print::say(
            "the programs are in place; the next build without profkit pgo is one without the profile, unless --keep keeps it",
        ),
    }
    Ok(if left_out == 0 {
        Status::Done
    } else {
        Status::InputBad
    })
}

fn failure(error: &Error) -> Failure {
    let failure = match error {
        Error::NoCompiler(Some(_)) | Error::RustLacks(_) => Failure::usage(error),
        _ => Failure::input(error),
    };
    failure.with_hints(error.hint())
}
