//! `profkit sample`: makes a sample profile of recordings and binaries.
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status, must_exist};
use crate::merge::run::refuse_losses;
use crate::print::{self, AnnotateArgs};
use crate::show::recording::{files_of, head_of_folder, parts};
use crate::table_file::{failure, open_table};
use clap::Args;
use profkit_data::path_text;
use profkit_data::sample::SampleForm;
use profkit_merge::files::{Content, Input, Output, Outputs, check_outputs};
use profkit_page::import::{addresses_of, is_branches, is_table};
use profkit_perf::collect::{
    CONTEXT_MEMORY, CollectOptions, Counts, Selection, parse_times, read_releasing,
};
use profkit_perf::text::write_addresses;
use profkit_profgen::{
    BoltForm, BoltProfile, CountingTool, MakeOptions, NamedProfile, Outcome, Programs,
    UnusableBinary,
};
use profkit_report::merge::output_name;
use profkit_report::sampling::{
    bolt_line, document, encoding_losses, gate, lines, lost, made, refusal,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
The recording is read as it is: neither perf nor llvm-profgen need be installed. Samples
belong to the binary whose build id the recording has; without build ids, to the binary
with the same file name. Counts are those of llvm-profgen 22: ranges of code between taken
branches, source lines by debug info or the pseudo probes of the binary, calls to functions.

Also read are: the output of `perf script --show-mmap-events -F ip,brstack`, unsymbolized
profiles of llvm-profgen, texts of autofdo and simpleperf, pre-aggregated samples as perf2bolt -pa
reads them, tables of branches (build_id, from, to, count), and files that --addresses wrote.
These are small and add up exactly, so that each machine of a fleet can send one.

Examples:
  perf record -b -o perf.data ./app
  profkit sample perf.data --binary app -o app.prof
  clang -O2 -fprofile-sample-use=app.prof …
  profkit sample perf.data --binaries build/ --to text -o app.txt
  profkit sample perf.data --binaries build/ -o profiles/
  perf record -b --call-graph fp ./app && profkit sample perf.data --contexts --binary app -o app.prof
  profkit sample perf.data --addresses monday.addresses
  profkit sample perf.data --binary app --bolt app.preagg
  perf2bolt -pa -p app.preagg app -o app.fdata
  profkit sample perf.data --binary app --bolt app.fdata
  llvm-bolt app -data app.fdata -o app.bolt
  profkit sample *.addresses --binary app -o app.prof --report report.json --fail-under 50";

/// Arguments of `profkit sample`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SampleArgs {
    /// Recordings of perf (files, folders of `perf record --threads`, - for a pipe), or texts with samples or counts
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    /// A binary that ran, with debug info in it or in its separate debug file; may be repeated
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,

    /// Write the profile to this file; - is standard output. A file gets the samples of all binaries in one profile. A
    /// folder (an existing one, or a path that ends in /) gets a profile for each binary, named after the binary:
    /// app.prof. If binaries have the same name, the names of their profiles have the build ids too
    #[arg(
        short,
        long,
        value_name = "FILE|FOLDER/",
        required_unless_present_any = ["addresses", "bolt"]
    )]
    output: Option<PathBuf>,

    /// The encoding of the profile: text, binary, compact-binary (LLVM 7 to 16), ext-binary, gcov (GCC 12 to 15),
    /// gcov:N for another GCC, or gcov:llvm for LLVM
    #[arg(long = "to", alias = "format", value_parser = str::parse::<SampleForm>, default_value = "ext-binary", value_name = "FORMAT")]
    to: SampleForm,

    /// Write the counts by address, before they are symbolised, to this file, and stop if there is no --output
    #[arg(long, value_name = "FILE")]
    addresses: Option<PathBuf>,

    /// Write the counts of the one --binary for LLVM's BOLT to this file, and stop if there is no --output
    ///
    /// `perf2bolt -pa -p FILE BINARY -o app.fdata` makes BOLT's profile of it, without perf and the recording, and
    /// `llvm-bolt BINARY -pa -p FILE` reads it too; --bolt-format fdata is that profile itself.
    #[arg(long, value_name = "FILE", conflicts_with = "contexts")]
    bolt: Option<PathBuf>,

    /// The form for BOLT: traces (perf2bolt 21 and later; the default), branches (every perf2bolt, but not how often code
    /// went on after a call), or fdata (for llvm-bolt -data and merge-fdata; the default if FILE ends in .fdata; x86-64)
    ///
    /// BOLT's YAML profile is not written: it has hashes of blocks that only BOLT computes. `llvm-bolt BINARY -data app.fdata
    /// -w app.yaml -o BINARY.bolt` writes it.
    #[arg(long, value_name = "FORM", requires = "bolt", value_parser = str::parse::<BoltForm>)]
    bolt_format: Option<BoltForm>,

    /// Write the report as JSON to this file; docs/formats/sample-json.md describes it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Count the addresses of samples instead of branch stacks, for recordings without branch stacks; the profile then
    /// has no calls and no function entries
    #[arg(long)]
    ips: bool,

    /// Write no profile if more than 5 % of the samples were lost or do not fit the binary, or if the encoding cannot
    /// hold a part of the profile
    #[arg(long)]
    strict: bool,

    /// Exit with code 3 if hot functions have fewer samples per line than this; 50 is a good number
    #[arg(long, alias = "fail-under", value_name = "DENSITY")]
    fail_under_density: Option<f64>,

    /// Make the profile by source line even if the binary has pseudo probes (-fpseudo-probe-for-profiling)
    #[arg(long)]
    lines: bool,

    /// Make a profile with calling contexts (CSSPGO), of samples with call chains and branch stacks
    #[arg(long, conflicts_with_all = ["ips", "addresses"])]
    contexts: bool,

    /// The memory for all distinct samples, in bytes. If --contexts needs more, the oldest half of every call chain and
    /// branch stack is dropped, again and again until the samples fit, and a warning says so
    #[arg(long, value_name = "BYTES", default_value_t = CONTEXT_MEMORY, requires = "contexts")]
    context_memory: u64,

    /// Count like another tool: profgen (llvm-profgen of LLVM 22), or autofdo (create_llvm_prof 0.19, and create_gcov with
    /// --to gcov)
    #[arg(long, value_parser = str::parse::<CountingTool>, default_value = "profgen", value_name = "TOOL", conflicts_with = "contexts")]
    like: CountingTool,

    #[command(flatten)]
    annotate: AnnotateArgs,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

/// Which samples of a recording are counted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Count only samples of this event; may be repeated
    #[arg(long, value_name = "NAME")]
    event: Vec<String>,

    /// Count only samples of this process; may be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Count only samples of processes with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,

    /// Count only samples from the time FROM until before the time UNTIL, in seconds as `perf script` prints them;
    /// either may be left out
    #[arg(long, value_name = "FROM,UNTIL", value_parser = parse_times)]
    time: Option<(Option<u64>, Option<u64>)>,

    /// Weigh samples by their periods, for `perf record -F`, which changes the period: a sample with the smallest period
    /// of its event counts once, one with twice that period counts twice
    #[arg(long)]
    by_period: bool,
}

pub fn run(args: &SampleArgs) -> exit::Result {
    args.annotate.failure("profkit sample", sample(args))
}

fn sample(args: &SampleArgs) -> exit::Result {
    let read = args.binary.iter().chain(&args.binaries.binaries).cloned();
    check_outputs(&outputs(args), read.chain(files_of(&args.inputs)))?;
    let content = match args.to {
        SampleForm::Text => Content::Text,
        _ => Content::Binary,
    };
    let output = args.output.as_ref();
    let output = output.map(|path| Outputs::new(path, content)).transpose()?;
    if output.is_some() && args.binary.is_empty() && !args.binaries.is_used() {
        return Err(Failure::usage(
            "the binaries that ran are needed: --binary FILE or --binaries FOLDER",
        )
        .with_hint("without binaries, --addresses FILE writes counts by address"));
    }
    let memory = args.contexts.then_some(args.context_memory);
    let inputs = args.inputs.iter();
    let how = Kept {
        context_memory: memory,
        traces: args.bolt.is_some(),
    };
    let read = inputs.map(|path| read_counts(&args.select, how, path));
    let counts = Counts::try_sum(read, memory)?;
    if let Some(path) = &args.bolt {
        write_bolt(args, &counts, path)?;
    }
    match output {
        Some(output) => make_profiles(args, &counts, &output),
        None => write_addresses_only(args, &counts),
    }
}

/// The files that the command writes, each with the words for it in messages.
fn outputs(args: &SampleArgs) -> [(&'static str, Option<&Path>); 4] {
    [
        ("the profile", args.output.as_deref()),
        ("the counts by address", args.addresses.as_deref()),
        ("the report", args.report.as_deref()),
        ("the counts for BOLT", args.bolt.as_deref()),
    ]
}

fn make_options(args: &SampleArgs) -> MakeOptions {
    let mut options = MakeOptions::new(args.ips, args.lines, args.contexts);
    options.tool = args.like;
    options.form = args.to;
    options
}

fn names_of_inputs(args: &SampleArgs) -> String {
    let inputs: Vec<String> = args.inputs.iter().map(|path| path_text(path)).collect();
    inputs.join(", ")
}

fn write_addresses_only(args: &SampleArgs, counts: &Counts) -> exit::Result {
    if args.fail_under_density.is_some() {
        return Err(Failure::usage(
            "--fail-under-density needs a profile: add -o FILE",
        ));
    }
    let outcome = Outcome::of(counts, &make_options(args));
    warn(&lines(&outcome));
    write_report(args, &outcome)?;
    if let Some(refusal) = lost(&outcome).filter(|_| args.strict) {
        let message = format!("{}: {}", names_of_inputs(args), refusal.message);
        return Err(Failure::input(message)
            .with_hint("leave out --strict to write the counts that are left"));
    }
    write_counts(args, counts)?;
    Ok(Status::Done)
}

fn write_bolt(args: &SampleArgs, counts: &Counts, output: &Path) -> exit::Result<()> {
    let [binary] = args.binary.as_slice() else {
        return Err(Failure::usage(
            "--bolt writes the counts of one program, because perf2bolt reads one at a time",
        )
        .with_hint("give the program: --binary FILE, once"));
    };
    must_exist(binary)?;
    let name = path_text(binary);
    let form = args
        .bolt_format
        .unwrap_or_else(|| BoltForm::for_file(output));
    let bolt =
        BoltProfile::of(counts, binary, form).map_err(|error| Failure::file(&name, &error))?;
    let file = Output::new(output, Content::Text)?;
    let line = bolt_line(&bolt, output_name(file.name()), &name);
    file.write(|sink| sink.put(bolt.text.as_bytes()))?;
    print::say(line);
    Ok(())
}

fn make_profiles(args: &SampleArgs, counts: &Counts, output: &Outputs) -> exit::Result {
    let mut notes = Vec::new();
    let index = args.binaries.index(&mut notes, true)?;
    args.binary.iter().try_for_each(|path| must_exist(path))?;
    let programs = Programs::find(&args.binary, &index, counts);
    check_outputs(&outputs(args), &programs.paths)?;
    write_counts(args, counts)?;
    let mut options = make_options(args);
    options.separate = matches!(output, Outputs::Folder(..));
    let unusable = |it: UnusableBinary| Failure::file(path_text(&it.path), &it.error);
    let (mut outcome, profiles, left_out) = programs.make(counts, &options).map_err(unusable)?;
    notes.extend(lines(&outcome));
    warn(&notes);
    let lost = || lost(&outcome).filter(|_| args.strict);
    let refusal = refusal(&outcome).or_else(lost);
    let (mut written, mut done) = (Vec::new(), Ok(()));
    if refusal.is_none() && left_out.is_none() {
        let files = open_files(args, &programs.paths, output, profiles)?;
        done = write_files(args, &mut outcome, files, &mut written);
    }
    write_report(args, &outcome)?;
    if let Some(left_out) = left_out {
        return Err(unusable(left_out));
    }
    if let Some(refusal) = refusal {
        let message = format!("{}: {}", names_of_inputs(args), refusal.message);
        return Err(Failure::input(message).with_hint(refusal.hint));
    }
    for file in written {
        let (binaries, name) = (&file.profile.binaries, file.output.name());
        let line = made(&outcome, binaries, name, file.replaces);
        print::say(line);
        // The command ends soon, and freeing large profiles takes time.
        std::mem::forget(file.profile);
    }
    done?;
    let reason = args
        .fail_under_density
        .and_then(|least| gate(&outcome, least));
    args.annotate
        .gate("profkit sample: --fail-under-density", reason.as_deref());
    Ok(exit::gate(
        print::Format::Text,
        ("--fail-under-density", args.fail_under_density),
        reason,
    )?
    .unwrap_or(Status::Done))
}

/// A profile and its file.
struct ProfileFile {
    profile: NamedProfile,
    output: Output,
    /// Whether the file existed before; the command then says that it replaced the file.
    replaces: bool,
}

fn open_files(
    args: &SampleArgs,
    programs: &[PathBuf],
    output: &Outputs,
    profiles: Vec<NamedProfile>,
) -> exit::Result<Vec<ProfileFile>> {
    let open = |profile: NamedProfile| {
        let path = output.path(&profile.name);
        let [_, counts, report, bolt] = outputs(args);
        let this = ("the profile of a binary", path.as_deref());
        let read = programs.iter().cloned().chain(files_of(&args.inputs));
        check_outputs(&[this, counts, report, bolt], read)?;
        Ok(ProfileFile {
            output: output.file(&profile.name)?,
            replaces: path.is_some_and(|path| path.exists()),
            profile,
        })
    };
    profiles.into_iter().map(open).collect()
}

/// Encodes all profiles, then writes their files. All profiles are complete before the first file is replaced. `written`
/// gets the files that are written, and the report names exactly these.
fn write_files(
    args: &SampleArgs,
    outcome: &mut Outcome,
    files: Vec<ProfileFile>,
    written: &mut Vec<ProfileFile>,
) -> exit::Result<()> {
    let mut encoded = Vec::new();
    let mut failed = Ok(());
    for file in files {
        let name = file.output.name();
        match file.profile.encode(args.to, name) {
            Ok((bytes, of_file)) => {
                outcome.encoded.push(of_file);
                encoded.push((file, bytes));
            }
            Err(error) => {
                failed = failed.and(Err(Failure::file(output_name(name), &error)));
            }
        }
    }
    for profile in &outcome.encoded {
        let (losses, file) = (encoding_losses(profile), output_name(&profile.file));
        failed = failed.and_then(|()| refuse_losses(file, &losses, args.strict));
        let warnings = losses.iter().map(|loss| format!("{file}: {loss}"));
        warn(&warnings.filter(|_| !args.strict).collect::<Vec<_>>());
    }
    failed?;
    let staged = encoded.into_iter().map(|(file, bytes)| {
        let staged = file.output.clone().stage(|sink| sink.put(&bytes))?;
        Ok((file, staged))
    });
    for (file, staged) in staged.collect::<exit::Result<Vec<_>>>()? {
        staged.finish()?;
        outcome.wrote(&file.profile, file.output.name());
        written.push(file);
    }
    Ok(())
}

fn write_report(args: &SampleArgs, outcome: &Outcome) -> exit::Result<()> {
    let Some(path) = &args.report else {
        return Ok(());
    };
    let report = format!("{:#}\n", document(outcome));
    Output::new(path, Content::Text)?.write(|sink| sink.put(report.as_bytes()))?;
    Ok(())
}

pub fn warn(lines: &[String]) {
    for line in lines {
        print::say(format_args!("warning: {line}"));
    }
}

/// What is kept of an input beside its counts.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// If given, each distinct sample is kept with its whole stack; all of these samples take at most so many bytes.
    pub context_memory: Option<u64>,
    /// Whether branches are also counted together with the code that ran after each.
    pub traces: bool,
}

/// Reads the counts of an input.
pub fn read_counts(args: &SelectArgs, kept: Kept, path: &Path) -> exit::Result<Counts> {
    let head = head_of_folder(path);
    let input = crate::io::open(head.as_deref().unwrap_or(path))?;
    let parts = head.map_or(Ok(Vec::new()), |_| parts(path))?;
    let rows = addresses_of_rows(&input)?;
    let input = rows.unwrap_or(input);
    let files: Vec<&Input> = parts.iter().chain([&input]).collect();
    let release = |bytes: &[u8]| files.iter().for_each(|file| file.release(bytes));
    let parts: Vec<&[u8]> = parts.iter().map(Input::bytes).collect();
    let mut options = CollectOptions::default();
    (options.selection, options.stacks) = (select(args), kept.context_memory.is_some());
    options.context_memory = kept.context_memory;
    options.traces = kept.traces;
    options.by_period = args.by_period;
    let counts = read_releasing(input.bytes(), &parts, &options, &release);
    counts.map_err(|error| Failure::file(path_text(path), &error))
}

/// The counts of a table of branches as a file of addresses; `None` for other inputs.
fn addresses_of_rows(input: &Input) -> exit::Result<Option<Input>> {
    if !is_table(input.bytes()) {
        return Ok(None);
    }
    let table = open_table(input)?;
    if !is_branches(&table) {
        return Err(Failure::input(format_args!(
            "{}: this is not a table of branches, with the columns `build_id`, `from`, `to` and `count`",
            input.name()
        )));
    }
    let text = addresses_of(&table).map_err(|error| failure(&error))?;
    Ok(Some(Input::from_bytes(input.name(), text)))
}

fn select(args: &SelectArgs) -> Selection {
    let mut selection = Selection::default();
    selection.events.clone_from(&args.event);
    selection.pids.clone_from(&args.pid);
    selection.names = args
        .comm
        .iter()
        .map(|name| name.clone().into_bytes())
        .collect();
    (selection.from, selection.until) = args.time.unwrap_or_default();
    selection
}

fn write_counts(args: &SampleArgs, counts: &Counts) -> exit::Result<()> {
    let Some(path) = &args.addresses else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    write_addresses(counts, &mut bytes)
        .map_err(|error| Failure::io("cannot be written", path_text(path), &error))?;
    Output::new(path, Content::Text)?.write(|sink| sink.put(&bytes))?;
    Ok(())
}
