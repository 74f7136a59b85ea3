//! `profkit fold`: new inputs into a store, each once.
use crate::choice::{choice, choices};
use crate::exit::{Failure, Result, Status};
use crate::merge::args::FormArgs;
use crate::merge::progress::Progress;
use crate::merge::run::NoResult;
use crate::merge::{cancel, profile_of_part};
use crate::mip::merge::profile_of_sum;
use crate::{diff, print};
use clap::{ArgAction, Args};
use profkit_data::detect::Family;
use profkit_merge::files::{
    Content, Input, InputList, Output, check_outputs, is_stdio, open_store,
};
use profkit_merge::fold::{Every, FoldError, FoldOptions, compact, fold, sum};
use profkit_merge::{MergeOptions, RunOptions, Threads};
use profkit_report::fold::FoldReport;
use profkit_report::{Answer, Console, Look};
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
A store is a folder or a folder in an object store: parts of merges (.pkpart), and ledger.txt, which
says which of them count. A fold leaves out the inputs that the store has, makes one part of the new
ones of each day, and then changes the ledger. It may be killed at any time, and several may run at a
time: each input counts once. docs/guide/fold.md says more.

Examples:
  profkit fold runs/ --store store -o app.profdata
  profkit fold s3://runs/ --store s3://profiles/app --every hour --report today.json
  profkit fold runs/ --store store -o app.profdata --diff-markdown changes.md
  profkit fold --store store --compact
  profkit merge store -o app.profdata";

/// Arguments of `profkit fold`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FoldArgs {
    /// Profiles, parts of merges, folders, patterns and archives of them
    #[arg(value_name = "[WEIGHT,]SRC")]
    inputs: Vec<OsString>,

    /// The store: a folder, which is made if it is not there, or an address such as s3://BUCKET/FOLDER
    #[arg(long, value_name = "FOLDER|URI")]
    store: PathBuf,

    /// Read more inputs from a list: one [WEIGHT,]PATH per line; - reads the list from standard input
    #[arg(short = 'f', long, value_name = "LIST")]
    input_files: Vec<PathBuf>,

    /// Read ids of inputs from a list: the id, a tab, and the path in each line
    ///
    /// Without an id, a file is known by its machine, its path, its size and its times, and an object by its address.
    #[arg(long, value_name = "LIST")]
    input_ids: Option<PathBuf>,

    /// What has parts of its own
    #[arg(long, action = ArgAction::Set, value_parser = choice(KEYS), default_value = "none", value_name = "KEY")]
    by: bool,

    /// The time, in UTC, whose inputs become one part
    #[arg(long, value_parser = choice(TIMES), default_value = "day", value_name = "TIME")]
    every: Every,

    /// Write the merged profile of the whole store to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    form: FormArgs,

    /// Programs, libraries and debug files, or folders of them, that raw heap profiles in the store need for -o; may be repeated
    #[arg(long, value_name = "FILE|FOLDER", requires = "output")]
    binaries: Vec<PathBuf>,

    /// Write what was folded to a file: Markdown if its name ends in .md, otherwise JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write as Markdown what was folded, and what changed since the last profile at the path of -o
    #[arg(long, value_name = "FILE", requires = "output")]
    diff_markdown: Option<PathBuf>,

    /// Join the parts of each day that is over
    #[arg(long)]
    compact: bool,

    /// Make a damaged ledger again from the parts, and take missing and damaged parts off it
    #[arg(long)]
    repair: bool,

    /// Say what would be folded, and change nothing
    #[arg(long, conflicts_with_all = ["output", "repair"])]
    dry_run: bool,

    /// Print warnings and errors only
    #[arg(short, long)]
    quiet: bool,

    /// Threads to use; by default one per core
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

choices! {
    KEYS: bool =
        "none" => false, "Nothing: one part for all";
        "build-id" => true, "Each program, known by its build ids";
}

choices! {
    TIMES: Every =
        "day" => Every::Day, "A day";
        "hour" => Every::Hour, "An hour";
}

pub fn run(args: FoldArgs) -> Result {
    let outputs = [
        ("the profile", args.output.as_deref()),
        ("the report", args.report.as_deref()),
        ("the differences", args.diff_markdown.as_deref()),
    ];
    check_outputs(&outputs, args.input_files.iter().chain(&args.input_ids))?;
    let named = !args.inputs.is_empty() || !args.input_files.is_empty();
    if !named && !args.compact && !args.repair && args.output.is_none() {
        return Err(Failure::usage("no inputs")
            .with_hint("name profiles, folders of profiles, or a list of them with -f LIST"));
    }
    let inputs = inputs(&args, &outputs)?;
    let progress = Arc::new(Progress::new(inputs.files.len(), !args.quiet));
    cancel::watch(None);
    cancel::count(&progress);
    let run = RunOptions::new().threads(Threads::new(args.threads));
    let options = FoldOptions::new()
        .by_build_id(args.by)
        .every(args.every)
        .repair(args.repair)
        .dry_run(args.dry_run)
        .run(run.clone().progress(Arc::clone(&progress) as _));
    let store = open_store(&args.store);
    let times = (0..inputs.files.len()).map(|index| inputs.modified(index));
    let times: Vec<_> = times.collect();
    let folded = fold(&*store, &inputs, &times, &options).map_err(failure)?;
    progress.finish(1);
    let compacted = args.compact.then(|| compact(&*store, &options));
    let compacted = compacted.transpose().map_err(failure)?;
    let notes: Vec<_> = inputs.notes.iter().map(ToString::to_string).collect();
    let report = FoldReport {
        store: &store.name_of(""),
        fold: (named || !args.compact).then_some(&folded),
        compacted: compacted.as_ref(),
        notes: &notes,
        dry_run: args.dry_run,
        quiet: args.quiet,
    };
    print::tell(report.document());
    if let Some(path) = &args.report {
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        write(path, Content::Text, &encoded(&report, is_markdown)?)?;
    }
    if let Some(path) = &args.output {
        let sum = sum(&*store, &MergeOptions::new().run(run)).map_err(failure)?;
        let last = args.diff_markdown.is_some().then(|| last_profile(path));
        let is_mip = sum.family() == Some(Family::Mip);
        let profile = if is_mip {
            if args.form.is_given() {
                return Err(Failure::usage(
                    "--to, --text, --llvm and --indexed-version do not fit MIP profiles, which the store has",
                )
                .with_hint("leave them out"));
            }
            profile_of_sum(report.store, sum)?
        } else {
            let part = sum.encode().map_err(|error| failure(error.into()))?;
            profile_of_part(report.store, part, path, args.form, args.binaries)?
        };
        if is_mip || is_stdio(path) {
            write(path, Content::Binary, &profile)?;
        }
        if !is_stdio(path) && !args.quiet {
            print::wrote(path);
        }
        if let (Some(file), Some(last)) = (&args.diff_markdown, last) {
            let mut text = encoded(&report, true)?;
            text.push(b'\n');
            match last? {
                Some(last) => text.extend(diff::markdown([&last, &Input::open(path)?])?),
                None => text.extend_from_slice(b"There was no profile before.\n"),
            }
            write(file, Content::Text, &text)?;
        }
    }
    let nothing = folded.known == 0 && folded.folded.is_empty() && folded.adopted.is_empty();
    Ok(match nothing && !folded.left_out.is_empty() {
        true => Status::InputBad,
        false => Status::Done,
    })
}

fn inputs(args: &FoldArgs, outputs: &[(&'static str, Option<&Path>)]) -> Result<InputList> {
    let output = args.output.as_deref();
    let mut inputs = InputList::collect(&args.inputs, &args.input_files, output)?;
    if let Some(list) = &args.input_ids {
        inputs.read_ids(list)?;
    }
    if let Some(path) = &args.report {
        inputs.leave_out_report(path);
    }
    check_outputs(outputs, inputs.files.iter().map(|file| &file.path))?;
    Ok(inputs)
}

/// The profile that is at this path before it is replaced.
fn last_profile(path: &Path) -> Result<Option<Input>> {
    match Input::open(path) {
        Ok(last) => {
            let name = format!("{} before", last.name());
            Ok(Some(Input::from_bytes(name, last.bytes().to_vec())))
        }
        Err(error) if error.error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn encoded(report: &FoldReport<'_>, is_markdown: bool) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // --quiet is for the terminal.
    let report = FoldReport {
        quiet: false,
        ..report.clone()
    };
    let look = Look {
        markdown: true,
        ..Look::default()
    };
    let done = match is_markdown {
        true => report.text(&mut Console::text(&mut bytes, look)),
        false => report.json(&mut bytes),
    };
    done.map_err(|error| Failure::print(&error))?;
    Ok(bytes)
}

fn write(path: &Path, content: Content, bytes: &[u8]) -> Result<()> {
    Output::new(path, content)?.write(|sink| sink.put(bytes))?;
    Ok(())
}

fn failure(error: FoldError) -> Failure {
    match error {
        FoldError::Merge(error) => NoResult::from(error).failure,
        error => Failure::input(&error).with_hints(error.hint()),
    }
}
