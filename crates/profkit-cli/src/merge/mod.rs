//! `profkit merge`, `profkit correlate` and `profkit convert`: turn the arguments into options, call the library, and
//! print the report.
pub mod args;
pub mod cancel;
mod convert;
mod filter;
mod filter_mip;
mod job;
pub mod manifest;
pub mod progress;
pub mod report;
pub mod run;
mod sample_args;
pub mod sample_job;
mod stable;
mod supplement;
pub mod write;

pub use args::{CorrelateArgs, MergeArgs};
pub use convert::{ConvertArgs, convert};
pub use filter::{FilterArgs, filter};

use crate::call;
use crate::exit::{Failure, Result, Status};
use crate::print::{self, plural};
use args::{FormArgs, Format};
use clap::ArgMatches;
use job::{Destination, FindFrames, Form, Job};
use manifest::ManifestFile;
use profkit_analysis::correlate::{Binaries, Plan};
use profkit_analysis::heap::{FrameRule, IndexedBinaries, LoadedHeap, NoBinaries, ProgramFrames};
use profkit_data::instr::Target;
use profkit_data::memprof::MemProfile;
use profkit_data::remap::Remapping;
use profkit_merge::families::{
    are_samples, keep_target, not_heap_profiles, program_among, targets, weighted_heap_profile,
};
use profkit_merge::files::{
    GivenInput, InputList, InputNote, InputSource, Subset, check_outputs, may_become_report,
};
use profkit_merge::files::{is_stdio, read_into};
use profkit_merge::memprof::{HeapParts, SectionChoice};
use profkit_merge::part::Merger;
use profkit_merge::{
    InputStore, MergeOptions, Report, RunOptions, Threads, TraceOptions, ValueWeights, Weight,
};
use profkit_report::heap::{self, module_name};
use profkit_report::merge::{CorrelationReport, MergeReport};
use profkit_report::quoted;
use progress::Progress;
use run::{NoResult, Remarks, Run};
use sample_args::refuse_others;
use sample_job::{SampleJob, form};
use stable::StableJob;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn merge(args: MergeArgs, matches: &ArgMatches) -> Result {
    let annotate = args.report.annotate;
    annotate.failure("profkit merge", run(args, matches, Reporting::Last))
}

pub fn correlate(args: CorrelateArgs, matches: &ArgMatches) -> Result {
    if !args.merge.correlation.is_used() {
        return Err(Failure::usage("profkit correlate needs the binaries that wrote the raw profiles").with_hint(
            "name programs, libraries, debug files or folders of them with --binaries, or ask servers with --debuginfod",
        ));
    }
    let reporting = if args.merge.dry_run {
        Reporting::Only
    } else {
        Reporting::First
    };
    let annotate = args.merge.report.annotate;
    annotate.failure("profkit correlate", run(args.merge, matches, reporting))
}

/// Writes the profile of a part that is the sum of a store. Its report is that of the folds, which was printed then; here
/// only what the form cannot hold is said. Returns the bytes of the profile if it is for standard output.
pub fn profile_of_part(
    name: &str,
    part: Vec<u8>,
    output: &Path,
    form: FormArgs,
    binaries: Vec<PathBuf>,
) -> Result<Vec<u8>> {
    let words = ["--quiet", "--max-dropped", "100%"];
    let (mut args, matches) = call::matches_of::<MergeArgs>("merge", &words)?;
    args.destination.output = Some(output.to_owned());
    args.form = form;
    args.correlation.binaries = binaries;
    let source = InputSource::Memory {
        name: name.to_owned(),
        bytes: Box::new(part),
    };
    let given = GivenInput {
        source,
        weight: Weight::ONE,
        id: None,
        missing_ok: false,
    };
    let answer = call::within(vec![given], || run(args, &matches, Reporting::Last));
    match answer.failure {
        Some(failure) => Err(failure),
        None => {
            answer.losses().iter().for_each(print::say);
            Ok(answer.output)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reporting {
    Only,
    First,
    Last,
}

fn run(args: MergeArgs, matches: &ArgMatches, reporting: Reporting) -> Result {
    let manifest = ManifestFile::new(&args, matches)?;
    let options = options(&args)?;
    let destination = destination(&args)?;
    check_named_files(&args)?;
    let report = args.report.report.as_deref();
    // Until all inputs are known, a file that is perhaps an input is not replaced by a report about a failure.
    let early = report.filter(|path| may_become_report(path));
    cancel::watch(early);
    let refused = |failure| report::failed(failure, &Report::new(), early);
    let (inputs, mut notes) = inputs(&args, &refused)?;
    let format = if args.form.text {
        Some(Format::Text)
    } else {
        args.form.to
    };
    notes.extend(note_about_name(&args, format));
    let progress = Progress::new(inputs.files.len(), !args.report.quiet).verbose(args.verbose);
    progress.say(format_args!(
        "found {} among the named files, folders and lists",
        plural(inputs.files.len() as u64, "input")
    ));
    let progress = Arc::new(progress);
    cancel::count(&progress);
    let threads = Threads::new(args.threads);
    let mut run = RunOptions::new()
        .threads(threads.clone())
        .progress(Arc::clone(&progress) as _);
    run.cancel = call::cancel();
    let options = options.run(run);
    let opened = InputStore::new(&inputs);
    let run = Run {
        tolerance: args.tolerance.into(),
        dry_run: args.dry_run,
        threads: threads.count().min(inputs.files.len()),
        progress: Some(progress),
        targets: targets(&inputs),
        ..Run::new(&args.report, notes)
    };
    if are_samples(&opened) {
        args.supplement.refuse()?;
        let status = merge_samples(&args, format, options, &opened, run)?;
        manifest.map_or(Ok(()), |manifest| manifest.write(&args, &inputs))?;
        return Ok(status);
    }
    args.sample.refuse()?;
    let merge = InstrMerge {
        args: &args,
        reporting,
        refused: &refused,
        inputs: &inputs,
        opened: &opened,
    };
    let status = merge.run(options, destination, format.unwrap_or(Format::Indexed), run)?;
    manifest.map_or(Ok(()), |manifest| manifest.write(&args, &inputs))?;
    Ok(status)
}

/// A sum of nothing, to which profiles of each kind can be added as these arguments say.
pub fn merger(args: &MergeArgs, run: RunOptions) -> Result<Merger> {
    let merger = Merger::new(options(args)?.run(run));
    let merger = merger.map_err(|error| NoResult::from(error).failure)?;
    Ok(merger.sample_options(args.sample.read_options(), args.sample.drop_symbol_list))
}

fn options(args: &MergeArgs) -> Result<MergeOptions> {
    let [kept, left_out] = args.selection.selections()?;
    let traces = TraceOptions {
        reservoir_size: args.temporal_profile_trace_reservoir_size,
        max_length: args.temporal_profile_max_trace_length,
    };
    let mut options = MergeOptions::new()
        .threads(args.threads)
        .normalize(args.normalize)
        .value_weights(match args.form.version.llvm {
            Some(_) if !args.parts.order_free && args.stable.stable.is_none() => {
                ValueWeights::AsLlvm
            }
            _ => ValueWeights::Exact,
        })
        .order_free(args.parts.order_free || args.parts.part || args.stable.stable.is_some())
        .traces(traces)
        .heap_copies(args.form.version.llvm.is_some())
        .mixed_hashes(args.mixed_hashes)
        .separate_by_build_id(args.destination.by_build_id.is_some());
    if !kept.all || !left_out.patterns.is_empty() {
        options = options.filter(move |name| kept.selects(name) && !left_out.selects(name));
    }
    Ok(match &args.remapping_file {
        Some(path) => options.remapping(read_remapping(path)?),
        None => options,
    })
}

fn destination(args: &MergeArgs) -> Result<Destination> {
    match (&args.destination.output, &args.destination.by_build_id) {
        (Some(file), _) => Ok(Destination::File(file.clone())),
        (None, Some(folder)) => Ok(Destination::Folder(folder.clone())),
        (None, None) if args.dry_run => Ok(Destination::File(PathBuf::from("-"))),
        (None, None) => Err(Failure::usage("an output is needed")
            .with_hint("use -o FILE, or --by-build-id DIR for one profile per program")),
    }
}

/// The files that the command writes, each with the words for it in messages.
fn outputs(args: &MergeArgs) -> [(&'static str, Option<&Path>); 3] {
    let output = args.destination.output.as_deref();
    let manifest = args.stable.manifest.as_ref();
    [
        ("the profile", output.filter(|_| !args.dry_run)),
        ("the report", args.report.report.as_deref()),
        ("the manifest", manifest.and_then(Option::as_deref)),
    ]
}

fn check_named_files(args: &MergeArgs) -> Result<()> {
    let read = args.input_files.iter().chain(&args.remapping_file);
    let read = read.chain(&args.supplement.supplement_with);
    let read = read.chain(&args.sample.symbol_list);
    let read = read.chain(&args.parts.input_ids).chain(&args.stable.like);
    check_outputs(&outputs(args), read.chain(&args.correlation.binaries))?;
    if args.inputs.is_empty() && args.input_files.is_empty() && !call::has_inputs() {
        return Err(Failure::usage("no inputs")
            .with_hint("name profiles, folders of profiles, or a list of them with -f LIST"));
    }
    Ok(())
}

/// Returns the inputs that are named, and notes about them.
fn inputs(
    args: &MergeArgs,
    refused: &dyn Fn(Failure) -> Failure,
) -> Result<(InputList, Vec<String>)> {
    let output = args.destination.output.as_deref();
    let inputs = match call::take_inputs() {
        Some(given) => InputList::of(given, output),
        None => InputList::collect(&args.inputs, &args.input_files, output),
    };
    let mut inputs = inputs.map_err(|error| refused(error.into()))?;
    if let Some(list) = &args.parts.input_ids {
        inputs.read_ids(list)?;
    }
    if let Some(path) = &args.report.report {
        inputs.leave_out_report(path);
        let files = inputs.files.iter().map(|file| &file.path);
        check_outputs(&[("the report", Some(path.as_path()))], files)?;
    }
    let mut notes: Vec<_> = inputs.notes.iter().map(ToString::to_string).collect();
    if let Some(only) = args.only {
        let others = only.keep(&mut inputs);
        notes.extend((others > 0).then(|| only.note(others)));
    }
    if let Some(target) = &args.target {
        let found = targets(&inputs);
        if !found.is_empty() && !found.contains_key(target) {
            return Err(refused(no_target(target, &found)));
        }
        let others = keep_target(&mut inputs, target);
        let others = (others > 0).then(|| plural(others, "profile"));
        notes.extend(others.map(|others| {
            format!("{others} of other targets left out, because --target selects {target}")
        }));
    }
    if !inputs.files.is_empty() {
        return Ok((inputs, notes));
    }
    let failure = Failure::input("the named folders and lists hold no files to merge");
    let failure = if notes.is_empty() {
        failure.with_hint("add the paths of profiles to the list, one per line")
    } else {
        failure
    };
    Err(refused(notes.iter().fold(failure, Failure::with_hint)))
}

fn no_target(wanted: &Target, found: &BTreeMap<Target, u64>) -> Failure {
    let found = found.keys().map(Target::to_string);
    let found = found.collect::<Vec<_>>().join(", ");
    Failure::input(format_args!("no input is of the target {wanted}")).with_hint(format_args!(
        "the inputs are of: {found}; the name of a file tells its target, if it is not that of the host"
    ))
}

fn note_about_name(args: &MergeArgs, format: Option<Format>) -> Option<String> {
    let path = args.destination.output.as_deref()?;
    let is_text = format.is_none() && Format::of_name(path) == Some(Format::Text);
    let name = profkit_data::path_text(path);
    is_text.then(|| format!("{name} is the name of a text profile, but merge writes a binary one: for text, add --text"))
}

/// A merge of inputs that are not sample profiles.
struct InstrMerge<'a, 's> {
    args: &'a MergeArgs,
    reporting: Reporting,
    refused: &'a dyn Fn(Failure) -> Failure,
    inputs: &'a InputList,
    opened: &'a InputStore<'s>,
}

impl InstrMerge<'_, '_> {
    fn run(
        &self,
        mut options: MergeOptions,
        destination: Destination,
        format: Format,
        mut run: Run<'_>,
    ) -> Result {
        let args = self.args;
        self.refuse_weights()?;
        let form = match args.parts.part {
            true => Form::Part,
            false => Form::new(format, &args.form.version)?,
        };
        let supplement = args
            .supplement
            .load(args.report.strict, &mut run.remarks.notes)?;
        if supplement.is_some() && form == Form::Part {
            return Err(Failure::usage(
                "--part writes a sum that is not finished, which no sample profile can correct",
            )
            .with_hint("give --supplement-with to the merge that finishes the parts"));
        }
        self.refuse_programs()?;
        let binaries = self.binaries(&mut run.remarks.notes)?;
        if let Some((plan, report)) = self.correlate(&binaries, &options.run.threads) {
            match self.reporting {
                Reporting::Only => {
                    return print_only(&plan, &report, &run.remarks.notes, &args.report);
                }
                Reporting::First if !args.report.quiet => {
                    print::tell(report.document());
                }
                _ => {}
            }
            options = options.correlation(Arc::new(plan.joined));
            run.correlation = Some(report);
        }
        run.correlation_printed = self.reporting == Reporting::First;
        let replaced = self.inputs.notes.iter().filter_map(InputNote::replaced);
        run.sums = replaced.collect();
        let threads = options.run.threads.clone();
        let find = |profile: &MemProfile| {
            let mut programs = ProgramFrames::wanted_by(profile);
            let paths = binaries.index.binaries.iter();
            let paths = paths.map(|binary| binary.path.as_path());
            programs.open_all(paths, &binaries.debug_folders);
            programs
        };
        let job = Job {
            options,
            section: SectionChoice::new()
                .version(args.memprof_version)
                .full_schema(args.memprof_full_schema)
                .portable(args.portable),
            symbolize: &|parts, report, remarks| {
                symbolize((args, &binaries), &threads, (parts, report), remarks)
            },
            programs: args
                .correlation
                .is_used()
                .then_some(&find as &FindFrames<'_>),
            supplement,
            sparse: args.sparse,
            form,
            destination,
            report: args.report.report.clone(),
            strict: args.report.strict,
            names: self
                .inputs
                .files
                .iter()
                .map(|file| file.name.clone())
                .collect(),
            cut: None,
            stable: StableJob::new(&args.stable)?,
        };
        run.merge(job, self.opened)
    }

    fn refuse_weights(&self) -> Result<()> {
        let Some(name) = weighted_heap_profile(self.inputs, self.opened) else {
            return Ok(());
        };
        let failure = format_args!("{name}: a heap profile cannot have a weight");
        Err(Failure::usage(failure).with_hint(
            "leave the weight out, or name the file several times to add it several times",
        ))
    }

    fn refuse_programs(&self) -> Result<()> {
        let program = program_among(self.inputs, self.opened, &self.args.inputs);
        let Some(program) = program.filter(|_| self.args.correlation.is_used()) else {
            return Ok(());
        };
        Err(Failure::usage(format_args!(
            "{program}: this is a program, not a profile; --binaries takes only the one file after it"
        ))
        .with_hint(format_args!(
            "repeat the option for this program: --binaries {}",
            quoted(&program)
        )))
    }

    fn binaries(&self, notes: &mut Vec<String>) -> Result<Binaries> {
        let args = self.args;
        if !args.correlation.is_used() {
            return Ok(Binaries::default());
        }
        let found = args.correlation.index(notes, !args.report.quiet);
        let binaries = found.map_err(self.refused)?;
        let paths = binaries.index.binaries.iter().map(|found| &found.path);
        check_outputs(&outputs(args), paths)?;
        Ok(binaries)
    }

    /// Finds the binary of each raw profile. `None` if no input can need one.
    fn correlate(
        &self,
        binaries: &Binaries,
        threads: &Threads,
    ) -> Option<(Plan, CorrelationReport)> {
        if !self.args.correlation.is_used() {
            return None;
        }
        let rest = not_heap_profiles(self.inputs, self.opened);
        if rest.is_empty() {
            return None;
        }
        let file = |index: usize| self.inputs.files.get(index);
        let paths = rest.iter().filter_map(|&index| file(index));
        let paths: Vec<_> = paths
            .map(|file| (!is_stdio(&file.path)).then(|| file.path.clone()))
            .collect();
        let correlated = Subset::new(self.opened, rest.clone());
        let plan = threads.install(|| Plan::with_paths(&correlated, &paths, binaries));
        let report = CorrelationReport::new(&plan, |input| {
            let file = rest.get(input).and_then(|&index| file(index));
            file.map_or("", |file| &file.name)
        });
        Some((plan, report))
    }
}

fn symbolize(
    (args, found): (&MergeArgs, &Binaries),
    threads: &Threads,
    (parts, report): (&HeapParts, &Report),
    remarks: &mut Remarks,
) -> Result<MemProfile> {
    let (binaries, quiet) = (&args.correlation, args.report.quiet);
    let source = IndexedBinaries::of(found);
    let loaded = LoadedHeap::new(parts, report.clone(), threads, &source, FrameRule::Compiler);
    if loaded.dumps() > 0 && !binaries.is_used() {
        let ids: Vec<_> = loaded.modules.iter().filter_map(module_name).collect();
        return Err(Failure::usage(
            "raw heap profiles hold addresses only: use --binaries to name the programs and libraries that ran",
        )
        .with_hint(if ids.is_empty() {
            "the profiles do not state which binaries they need, because the programs have no build ids".to_owned()
        } else {
            format!("these profiles need the binaries of {}", ids.join(", "))
        }));
    }
    remarks.heap_modules = heap::modules(&loaded);
    remarks.notes.extend(heap::notes(&loaded));
    if loaded.dumps() > 0 && loaded.profile.is_empty() {
        let failure = Failure::input("no context of the heap profiles could be symbolised");
        // With --quiet, the report does not print the notes, so they are added to the failure as hints.
        let hints = remarks.notes.iter().filter(|_| quiet);
        return Err(hints.fold(failure, Failure::with_hint));
    }
    Ok(loaded.profile)
}

/// The heap profiles among the inputs of a command that has no binaries: YAML has names.
fn symbolize_nothing(parts: &HeapParts, report: &Report, threads: &Threads) -> Result<MemProfile> {
    let none = NoBinaries::default();
    let loaded = LoadedHeap::new(parts, report.clone(), threads, &none, FrameRule::Compiler);
    Ok(loaded.profile)
}

fn merge_samples(
    args: &MergeArgs,
    format: Option<Format>,
    options: MergeOptions,
    inputs: &InputStore<'_>,
    run: Run<'_>,
) -> Result {
    let nowhere = args.dry_run.then(|| PathBuf::from("-"));
    let Some(output) = args.destination.output.clone().or(nowhere) else {
        return Err(Failure::usage(
            "--by-build-id does not fit sample profiles, which have no build ids",
        )
        .with_hint("write one output file: -o FILE"));
    };
    refuse_others(args)?;
    let form = form(format, args.form.version.llvm, args.sample.gcc)?;
    args.sample.refuse_for(form)?;
    let job = SampleJob {
        args: &args.sample,
        form,
        llvm: args.form.version.llvm,
        output,
        strict: args.report.strict,
        run: options.run,
        order_free: options.order_free,
        part: args.parts.part,
        remapping: options.remapping,
        filter: options.filter,
        only_gcov: None,
        cut: None,
        stable: StableJob::for_samples(&args.stable)?,
    };
    run.merge(job, inputs)
}

fn print_only(
    plan: &Plan,
    correlation: &CorrelationReport,
    notes: &[String],
    args: &args::ReportArgs,
) -> Result {
    print::notes(notes);
    if let Some(path) = &args.report {
        let mut none = Report::new();
        none.totals.files = correlation.complete_inputs + correlation.bare_inputs;
        let full = MergeReport {
            correlation: Some(correlation),
            correlation_printed: true,
            notes,
            quiet: args.quiet,
            dry_run: true,
            ..MergeReport::new(&none)
        };
        report::write(path, &full)?;
    }
    if !args.quiet && !args.report.as_deref().is_some_and(is_stdio) {
        let mut out = print::stdout();
        correlation
            .document()
            .print(&mut out)
            .and_then(|()| out.flush())
            .map_err(|error| Failure::print(&error))?;
    }
    Ok(if plan.is_complete() {
        Status::Done
    } else {
        Status::InputBad
    })
}

fn read_remapping(path: &Path) -> Result<Remapping> {
    let name = profkit_data::path_text(path);
    let mut buffer = Vec::new();
    let map = read_into(path, &mut buffer)
        .map_err(|error| Failure::io("cannot be read", &name, &error))?;
    Remapping::parse(map.as_deref().unwrap_or(&buffer)).map_err(|error| {
        Failure::input(format_args!("{name}: {error}")).with_hint(
            "write each line of the file as OLD NEW: two mangled names separated by one space",
        )
    })
}
