//! `profkit layout`: the order of blocks and functions for clang and lld, from branch stacks.
use crate::choice::{choice, choices};
use crate::exit::{self, Failure, Status, must_exist};
use crate::print;
use crate::sampling::{Kept, SelectArgs, read_counts, warn};
use crate::show::recording::files_of;
use clap::Args;
use profkit_data::path_text;
use profkit_merge::files::{Content, Output, check_outputs};
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_perf::collect::Counts;
use profkit_profgen::layout::{CodeMap, Flow, FunctionOrder, Layout, LayoutOptions, counts_of};
use profkit_report::layout::{document, lines};
use profkit_report::recording::recording_damage;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Blocks that run one after the other are placed one after the other, blocks that did not run are
moved away, and functions are placed near those that call them. Compilers and linkers read the
files; source and options must be those of the program that was recorded.

Examples:
  clang -O2 -fbasic-block-address-map -ffunction-sections -fuse-ld=lld … -o app
  perf record -b -o perf.data ./app
  profkit layout perf.data --binary app --cc-profile app.cc --ld-profile app.ld
  clang -O2 -fbasic-block-sections=list=app.cc -fuse-ld=lld \\
      -Wl,--symbol-ordering-file=app.ld,--no-warn-symbol-ordering … -o app
clang 13 to 18 have -fbasic-block-sections=labels in place of -fbasic-block-address-map.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LayoutArgs {
    /// Recordings of perf with branch stacks, or text files with branches (output of `perf script`) or with their
    /// counts (unsymbolized profiles)
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    /// The program that was recorded, with the map of its basic blocks
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,

    /// Write the order of blocks for clang's -fbasic-block-sections=list= to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    cc_profile: Option<PathBuf>,

    /// Write the order of functions for lld's --symbol-ordering-file to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    ld_profile: Option<PathBuf>,

    /// The order of functions
    #[arg(long, value_parser = choice(FUNCTIONS), default_value = "calls", value_name = "ORDER")]
    functions: FunctionOrder,

    /// Add the scores of functions as comments to the file for clang
    #[arg(long = "comments", alias = "verbose")]
    comments: bool,

    /// Write the report as JSON to this file; docs/formats/layout.md describes it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    select: SelectArgs,
}

choices! {
    FUNCTIONS: FunctionOrder =
        "calls" => FunctionOrder::Calls, "Place each function near the functions that call it";
        "original" => FunctionOrder::Original, "Keep the order that the functions have in the program now";
}

pub fn run(args: &LayoutArgs) -> exit::Result {
    if args.cc_profile.is_none() && args.ld_profile.is_none() {
        return Err(Failure::usage("an output is needed")
            .with_hint("name a file for clang with --cc-profile FILE, a file for lld with --ld-profile FILE, or both"));
    }
    let outputs = [
        ("the order of blocks", args.cc_profile.as_deref()),
        ("the order of functions", args.ld_profile.as_deref()),
        ("the report", args.report.as_deref()),
    ];
    check_outputs(
        &outputs,
        files_of(&args.inputs).chain([args.binary.clone()]),
    )?;
    let output = |path: &Option<PathBuf>| -> exit::Result<Option<Output>> {
        let output = path.as_ref().map(|path| Output::new(path, Content::Text));
        Ok(output.transpose()?)
    };
    let (cc, ld) = (output(&args.cc_profile)?, output(&args.ld_profile)?);
    let report = output(&args.report)?;
    must_exist(&args.binary)?;
    let inputs = args.inputs.iter();
    let read = inputs.map(|path| read_counts(&args.select, Kept::default(), path));
    let counts = Counts::try_sum(read, None)?;
    warn(&recording_damage(&counts.losses.recording));
    let name = path_text(&args.binary);
    let failure = |error| Failure::file(&name, &error);
    let file = BinaryFile::open(&args.binary)
        .map_err(|error| Failure::io("cannot be read", &name, &error))?;
    let image = file.image(|_| true).map_err(failure)?;
    let code = CodeMap::read(&image).map_err(failure)?;
    let id = build_id(&image).map_err(failure)?;
    let found = counts_of(&counts, &args.binary, id.as_ref()).map_err(failure)?;
    let mut options = LayoutOptions::default();
    options.functions = args.functions;
    let flow = Flow::new(&code, &found);
    let layout = Layout::new(&code, &flow, options).map_err(failure)?;
    let mut staged = Vec::new();
    for (output, bytes) in [
        (cc, layout.cc_profile(args.comments)),
        (ld, layout.ld_profile()),
        (report, format!("{:#}\n", document(&layout)).into_bytes()),
    ] {
        if let Some(output) = output {
            staged.push(output.stage(|sink| sink.put(&bytes))?);
        }
    }
    for output in staged {
        output.finish()?;
    }
    lines(&layout).into_iter().for_each(print::say);
    Ok(Status::Done)
}
