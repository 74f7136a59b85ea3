//! `profkit report`: one HTML page about a profile.
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::io::Opened;
use crate::io::add_binaries as add_binaries_to;
use crate::memprof::heap::{Heap, ThresholdArgs};
use crate::print;
use crate::show::recording::{RecordingFiles, folder_among, functions};
use clap::Args;
use profkit_analysis::any::AnyProfile;
use profkit_analysis::diff::{DiffOptions, HeapChanges, Measure, ProfileDiff};
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{FrameRule, is_heap_alone};
use profkit_analysis::matching::{BinaryFunctions, ProfileFunctions};
use profkit_analysis::mip_lines::LineCoverage;
use profkit_analysis::names::Spelling;
use profkit_analysis::order::{OrderFile, Startup};
use profkit_analysis::overlap::ComparedProfile;
use profkit_analysis::selection::Selection;
use profkit_data::detect::FileKind;
use profkit_data::detect::detect;
use profkit_data::instr::InstrKind;
use profkit_data::mip::Modes;
use profkit_data::path_text;
use profkit_merge::files::{Content, Input, Output, check_outputs, is_stdio, system_text};
use profkit_object::code_symbols::read_code_symbols;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::Declarations;
use profkit_page::source::SourceFolder;
use profkit_page::{DEFAULT_SIZE_LIMIT, Page};
use profkit_report::diff::{DiffReport, HeapDiff};
use profkit_report::recording::recording_damage;
use std::path::{Path, PathBuf};

/// The size in bytes of a page of memory, for the numbers of pages that the start of the program touches.
const PAGE_SIZE: u64 = 4096;

const EXAMPLES: &str = "\
The page is one file that opens in any browser, from disk, without a network. It has the functions
of the profile (sorted, searched, in a map by namespace or file), their counters and call targets,
the flame graph of a heap profile or of samples, the order of first calls, and with OLD what changed.
With --binaries it says how much of the profile they can use, and for one program how many pages of
memory its start touches, now and in the order that profkit order proposes. If the binaries have debug
info, functions can be grouped by source file; with --source DIR the 500 hottest functions show their
source, sample profiles with samples beside the lines, MIP profiles of blocks with the lines that ran.
Without JavaScript it shows the summary and the 200 hottest functions.

Examples:
  profkit report app.profdata -o app.html
  profkit report new.profdata old.profdata -o changes.html
  profkit report app.profdata --binaries app -o app.html
  profkit report app.prof --binaries app --source src/ -o app.html
  profkit report heap.memprofraw --binaries builds/ -o heap.html
  profkit report perf.data --binaries build/ -o perf.html
  profkit report --size-limit 2000000 app.profdata -o small.html";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// The profile: instrumentation, sample, heap or MIP, or a recording of perf, recognised by content; - is standard
    /// input. A folder, an archive or a list of profiles stands for their sum
    #[arg(value_name = "PROFILE")]
    file: PathBuf,

    /// An older profile of the same kind; the page then says what changed since
    #[arg(value_name = "OLD")]
    old: Option<PathBuf>,

    /// The page; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The largest size of the page in bytes. A page that would be larger leaves out details and cold functions, and
    /// says so
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_SIZE_LIMIT)]
    size_limit: usize,

    /// Show the source of the hottest functions, from files below this folder
    ///
    /// The debug info of --binaries gives the path of each source file. Of the files in DIR, the one whose path shares
    /// the most folder names with this path, counted from its end, is used. Files outside DIR are never read.
    #[arg(long, value_name = "DIR", requires = "binaries")]
    source: Option<PathBuf>,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

pub fn run(args: &ReportArgs) -> exit::Result {
    let old = args.old.as_deref();
    if is_stdio(&args.file) && old.is_some_and(is_stdio) {
        return Err(Failure::usage(
            "only one of the profiles can come from standard input",
        ));
    }
    let read = args.old.iter().chain([&args.file]);
    let read = read.chain(&args.binaries.binaries);
    check_outputs(&[("the page", Some(&args.output))], read)?;
    let output = Output::new(&args.output, Content::Text)?;
    let folder = folder_among(std::slice::from_ref(&args.file));
    let opened = match &folder {
        Some((_, head)) => Opened {
            input: crate::io::open(head)?,
            status: Status::Done,
        },
        None => open(args, &args.file)?,
    };
    let input = &opened.input;
    if args.source.is_some() && is_heap(input) {
        return Err(Failure::usage(
            "--source does not fit a heap profile: it shows the source of functions, and a heap profile has call stacks",
        ));
    }
    let old = old.map(|old| open(args, old)).transpose()?;
    let older = old.as_ref().map(|old| &old.input);
    let (mut page, status) = if detect(input.bytes()) == FileKind::PerfData {
        let folder = folder.as_ref().map(|(folder, _)| *folder);
        recording(args, input, folder, older.is_some())?
    } else if is_heap(input) {
        heaps(args, input, older)?
    } else {
        page_of(args, input, older)?
    };
    let html = page.html(args.size_limit);
    crate::io::write_view(output, &args.output, html.text.as_bytes())?;
    let left_out = html.left_out.iter();
    print::notes(left_out.map(|text| format!("not on the page: {text}")));
    if html.text.len() > args.size_limit {
        print::notes([format_args!(
            "the page has {} bytes, more than {}: no more can be left out",
            print::grouped(html.text.len()),
            print::grouped(args.size_limit)
        )]);
    }
    let status = opened.then(status);
    Ok(old.map_or(status, |old| old.then(status)))
}

fn open(args: &ReportArgs, path: &Path) -> Result<Opened, Failure> {
    crate::io::open_profile(path, &args.binaries)
}

fn is_heap(input: &Input) -> bool {
    detect(input).is_memprof() || is_heap_alone(input)
}

/// Makes the page of a profile. If the file has only a heap profile, the function `heaps` makes the page. If an
/// instrumentation profile also contains a heap profile, the page shows both. The errors of a damaged file go to
/// standard error.
fn page_of(
    args: &ReportArgs,
    input: &Input,
    old: Option<&Input>,
) -> Result<(Page, Status), Failure> {
    let name = input.name();
    let failed = |error| Failure::file(name, &error);
    let profile = AnyProfile::open(input, None).map_err(failed)?;
    let (mut page, faults) = Page::of_file(name, input, &profile);
    add_binaries(args, &profile, &mut page)?;
    add_source(args, &profile, &mut page)?;
    if let AnyProfile::Instr(table) = &profile
        && table.facts.instrumentation.contains(InstrKind::MEMPROF)
    {
        let heap = Heap::open(&args.binaries, input, FrameRule::All)?;
        page.add_heap(
            &heap.view(input, Spelling::Demangled),
            &args.thresholds.thresholds(),
        );
    }
    let status = damage(name, &faults);
    match old {
        Some(old) => {
            let compared = compare(&mut page, old, name, profile)?;
            Ok((page, worse(status, compared)))
        }
        None => Ok((page, status)),
    }
}

/// Adds to the page how much of the profile the binaries can use. If the profile has traces, also adds an order of
/// functions for the linker.
fn add_binaries(args: &ReportArgs, profile: &AnyProfile<'_>, page: &mut Page) -> exit::Result<()> {
    let paths = &args.binaries.binaries;
    if !paths.is_empty() {
        match ProfileFunctions::of(profile) {
            Ok(profile) => {
                let mut binaries = BinaryFunctions::for_profile(&profile);
                add_binaries_to(&mut binaries, paths)?;
                binaries.find_inlined(&profile);
                page.add_match(&profile, &binaries);
            }
            Err(error) => page.fact("Used by binaries", format_args!("not known: {error}")),
        }
    }
    let mut startup = Startup::default();
    // The errors of a damaged profile are on the page already.
    if !page.has_traces() || startup.add_profile(profile).is_err() {
        return Ok(());
    }
    let mut order = startup.order(OrderFile::Lld);
    let [program] = paths.as_slice() else {
        page.add_order(&startup, &order, None, PAGE_SIZE);
        return Ok(());
    };
    let symbols = (!program.is_dir()).then(|| read_code_symbols(program));
    let symbols = symbols.transpose();
    let symbols = symbols.map_err(|error| Failure::file(path_text(program), &error))?;
    if let Some(symbols) = &symbols {
        order.keep_known(symbols);
    }
    page.add_order(&startup, &order, symbols.as_deref(), PAGE_SIZE);
    Ok(())
}

/// Adds the source files of functions. With `--source`, also adds the source code of the hottest functions.
fn add_source(args: &ReportArgs, profile: &AnyProfile<'_>, page: &mut Page) -> exit::Result<()> {
    let paths = &args.binaries.binaries;
    if paths.is_empty() {
        return Ok(());
    }
    let folders = DebugFolders {
        folders: args.binaries.debug_file_directory.clone(),
    };
    let declarations = match Declarations::read(paths, &folders) {
        Ok(declarations) => declarations,
        // Binaries whose debug info cannot be read are not an error without `--source`: the user may have given them
        // for other parts of the page. Only the source files of functions are missing.
        Err(error) if args.source.is_none() => {
            page.fact("Source files", format_args!("not known: {error}"));
            return Ok(());
        }
        Err(error) => return Err(Failure::input(format_args!("{error}"))),
    };
    page.add_source_files(&declarations);
    if let AnyProfile::Mip(mip, _) = profile
        && mip.modes().contains(Modes::BLOCK_COVERAGE)
    {
        let mut notes = Vec::new();
        let binaries = args.binaries.index(&mut notes, true)?;
        match LineCoverage::find(mip, &binaries, &|_| true) {
            Ok(lines) => page.add_mip_lines(lines),
            Err((name, error)) => page.fact("Lines", format_args!("not known: {name}: {error}")),
        }
    }
    if let Some(path) = &args.source {
        exit::must_exist(path)?;
        let folder = SourceFolder::open(path);
        let mut folder = folder.map_err(|error| {
            Failure::input(format_args!("{}: {}", path_text(path), system_text(&error)))
                .with_hint("--source names the folder that has the source files")
        })?;
        page.add_source(profile, &declarations, &mut folder);
    }
    Ok(())
}

/// Reports the errors of a damaged file whose sound part was used.
pub fn damage(name: &str, faults: &Faults) -> Status {
    for error in &faults.first {
        print::say(format_args!("error: {name}: {error}"));
    }
    if faults.more() > 0 {
        let more = print::grouped(faults.more());
        print::say(format_args!("error: {name}: and {more} more errors"));
    }
    if faults.count > 0 {
        Status::InputBad
    } else {
        Status::Done
    }
}

/// Combines the statuses of two files into that of the command: the first status, unless it is [`Status::Done`].
fn worse(one: Status, other: Status) -> Status {
    if one == Status::Done { other } else { one }
}

fn compare(page: &mut Page, old: &Input, name: &str, new: AnyProfile<'_>) -> exit::Result {
    let names = [old.name(), name];
    let (first, second) = (ComparedProfile::open(old), ComparedProfile::of(new));
    let first = first.map_err(|error| Failure::file(names[0], &error))?;
    let second = second.map_err(|error| Failure::file(names[1], &error))?;
    let diff = ProfileDiff::of(&first, &second, &DiffOptions::default()).map_err(|why| {
        Failure::input(format_args!("{} and {}: {why}", names[0], names[1]))
            .with_hint("`profkit doctor FILE` shows the kind of a profile")
    })?;
    page.compare(&DiffReport {
        paths: names,
        profiles: [&first, &second],
        diff: &diff,
        spelling: Spelling::Demangled,
    });
    Ok(damage(names[0], &first.damage))
}

/// Makes the page of a recording of perf.
fn recording(
    args: &ReportArgs,
    input: &Input,
    folder: Option<&Path>,
    is_compared: bool,
) -> Result<(Page, Status), Failure> {
    let name = input.name();
    if is_compared {
        return Err(Failure::usage(format_args!(
            "{name}: recordings cannot be compared on a page"
        ))
        .with_hint("make a sample profile of each with `profkit sample`, and compare these"));
    }
    if args.source.is_some() {
        return Err(Failure::usage(format_args!(
            "{name}: --source does not fit a recording: its samples are by function"
        ))
        .with_hint("make a sample profile with `profkit sample`, whose page has samples by line"));
    }
    let opened = RecordingFiles::open(folder, input)?;
    opened.read(|recording| {
        let stacks = functions(recording, &args.binaries, args.binaries.is_used())?;
        let damage = recording_damage(recording.losses());
        let page = Page::of_recording(name, opened.size(), &stacks, &damage);
        Ok((page, opened.finish(recording)?))
    })
}

/// Makes the page of a heap profile. With `old`, the page also has what changed since that profile.
fn heaps(args: &ReportArgs, input: &Input, old: Option<&Input>) -> Result<(Page, Status), Failure> {
    let thresholds = args.thresholds.thresholds();
    let heap = Heap::open(&args.binaries, input, FrameRule::All)?;
    let mut page = Page::of_heap(&heap.view(input, Spelling::Demangled), &thresholds);
    let mut status = damage(input.name(), &heap.heap.damage);
    if let Some(old_input) = old {
        let [mut old, mut heap] = Heap::open_both(&args.binaries, [old_input, input])?;
        let selection = Selection::everything();
        let changes = HeapChanges::new(
            &mut old.heap,
            &mut heap.heap,
            Measure::Bytes,
            &thresholds,
            &selection,
        );
        page.compare_heaps(&HeapDiff {
            sides: [
                old.view(old_input, Spelling::Demangled),
                heap.view(input, Spelling::Demangled),
            ],
            changes: &changes,
            by: Measure::Bytes,
            thresholds,
            top: usize::MAX,
        });
        let of_old = damage(old_input.name(), &old.heap.damage);
        status = worse(status, of_old);
    }
    Ok((page, status))
}
