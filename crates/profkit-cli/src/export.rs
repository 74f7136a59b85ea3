//! `profkit export`: a profile for the viewers of other tools.
use crate::choice::{choice, choices};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::io::Opened;
use crate::memprof::heap::Heap;
use crate::report::damage;
use crate::show::recording::{RecordingFiles, folder_among, functions};
use clap::{Args, ValueEnum};
use profkit_analysis::any::AnyProfile;
use profkit_analysis::heap::{FrameRule, HeapProfile, is_heap_alone};
use profkit_analysis::mip_lines::programs;
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::Thresholds;
use profkit_data::path_text;
use profkit_merge::files::{Content, Input, check_outputs, is_stdio};
use profkit_mip::create;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::Declarations;
use profkit_page::export::Stacks;
use profkit_page::export::tables::{NoTable, Table, TableKind};
use profkit_perf::collect::{CollectOptions, read};
use profkit_report::recording::unnamed_notes;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
pprof       go tool pprof, Pyroscope, Parca, Grafana: gzip, build id, symbols, lines of heap profiles
speedscope  https://www.speedscope.app, opened there from disk; nothing is sent
firefox     https://profiler.firefox.com, opened there from disk; nothing is sent
folded      a line per stack, as flame graph tools read them
csv, json, and parquet and arrow if built with the feature `arrow`
            a table for databases and data frames: of functions (default), counters, lines, values, traces and
            others (--table), or the contexts of a heap profile

Stacks are those of heap contexts, of sample profiles with calling contexts, and of inlined functions;
other functions are stacks of one frame.

Examples:
  profkit export app.profdata --to pprof -o app.pb.gz
  profkit export heap.memprofraw --binaries builds/ --to pprof -o heap.pb.gz
  profkit export samples.prof --to speedscope -o samples.speedscope.json
  profkit export perf.data --binaries build/ --to firefox -o perf.json
  profkit export app.profdata --table counters -o counters.csv";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// The profile: instrumentation, sample, heap or MIP, or a recording of perf, recognised by content; - is standard
    /// input. Several files, folders, archives and lists are added up
    #[arg(value_name = "PROFILE", required_unless_present = "input_files")]
    files: Vec<PathBuf>,

    /// Add up the profiles in this list too: a path per line, as for profkit merge; may be repeated
    #[arg(short = 'f', long, value_name = "LIST")]
    input_files: Vec<PathBuf>,

    /// The form of the output; by default the one that the ending of FILE says: .pb.gz or .pprof, .speedscope.json,
    /// .folded, .csv, .parquet, .arrow or .feather, and with --table also .json
    #[arg(long, value_enum, value_name = "FORM")]
    to: Option<Form>,

    /// The output; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The table to export, if the output is a table
    #[arg(long, value_parser = choice(TABLES), value_name = "TABLE")]
    table: Option<TableKind>,

    /// Export the heap profile in an indexed profile instead of its counters
    #[arg(long)]
    memory: bool,

    #[command(flatten)]
    binaries: BinaryArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A profile of google/pprof
    Pprof,
    /// A file of speedscope
    Speedscope,
    /// A file of the Firefox Profiler
    Firefox,
    /// Folded stacks
    Folded,
    /// A table as a Parquet file
    #[cfg_attr(not(feature = "arrow"), value(hide = true))]
    Parquet,
    /// A table as an Arrow IPC file
    #[cfg_attr(not(feature = "arrow"), value(hide = true))]
    Arrow,
    /// A table as comma-separated values
    Csv,
    /// A table as a JSON document
    Json,
}

choices! {
    TABLES: TableKind =
        "functions" => TableKind::Functions, "Functions and their sums";
        "counters" => TableKind::Counters, "Counters, or blocks of a MIP profile";
        "lines" => TableKind::Lines, "Lines of a sample profile";
        "values" => TableKind::Values, "Values of value sites, or call targets and virtual tables";
        "inlined" => TableKind::Inlined, "Functions inlined into those of a sample profile";
        "symbols" => TableKind::Symbols, "The symbol list of a sample profile";
        "traces" => TableKind::Traces, "Orders of first calls";
        "profile" => TableKind::Profile, "Facts about a profile, by which its tables become a profile again";
        "contexts" => TableKind::Contexts, "Contexts of a heap profile";
        "frames" => TableKind::Frames, "Frames of the call stacks of a heap profile";
        "branches" => TableKind::Branches, "Branches, ranges of code and addresses of a recording, or of counts by address";
        "records" => TableKind::Records, "Allocations and calls of each function of a heap profile";
}

impl Form {
    fn is_table(self) -> bool {
        matches!(self, Form::Parquet | Form::Arrow | Form::Csv | Form::Json)
    }

    fn content(self) -> Content {
        match self {
            Form::Pprof | Form::Parquet | Form::Arrow => Content::Binary,
            _ => Content::Text,
        }
    }
}

impl ExportArgs {
    /// The form that is asked for, or that the output's ending says.
    fn form(&self) -> exit::Result<Form> {
        if let Some(form) = self.to {
            return Ok(form);
        }
        let name = self.output.to_string_lossy().to_ascii_lowercase();
        let named = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        // Other JSON files are of the Firefox Profiler or of speedscope as often.
        let json = || self.table.is_some() && name.ends_with(".json");
        named
            .map(|&(_, form)| form)
            .or_else(|| json().then_some(Form::Json))
            .ok_or_else(|| {
                let text = match is_stdio(&self.output) {
                    true => "standard output has no name that says the form".to_owned(),
                    false => format!(
                        "{}: the name does not say the form",
                        path_text(&self.output)
                    ),
                };
                Failure::usage(text)
                    .with_hint("give it with --to FORM: `profkit export --help` lists the forms")
            })
    }
}

/// The endings of outputs that have one form.
const ENDINGS: [(&str, Form); 8] = [
    (".pb.gz", Form::Pprof),
    (".pprof", Form::Pprof),
    (".speedscope.json", Form::Speedscope),
    (".folded", Form::Folded),
    (".csv", Form::Csv),
    (".parquet", Form::Parquet),
    (".arrow", Form::Arrow),
    (".feather", Form::Arrow),
];

pub fn run(args: &ExportArgs) -> exit::Result {
    let form = args.form()?;
    if args.table.is_some() && !form.is_table() {
        return Err(Failure::usage(
            "--table is for formats that are tables, and the output has another format",
        )
        .with_hint("the formats with tables are --to csv, json, parquet and arrow"));
    }
    if cfg!(not(feature = "arrow")) && matches!(form, Form::Parquet | Form::Arrow) {
        return Err(
            Failure::usage("this profkit was built without the feature `arrow`")
                .with_hint("write --to csv, or build it with `cargo install --path crates/profkit-cli --features arrow`"),
        );
    }
    let read = args.binaries.binaries.iter().chain(&args.files);
    let read = read.chain(&args.input_files);
    check_outputs(&[("the output", Some(&args.output))], read)?;
    let output = crate::call::output(&args.output, form.content())?;
    let folder = folder_among(&args.files);
    let opened = match &folder {
        Some((_, head)) => Opened {
            input: crate::io::open(head)?,
            status: Status::Done,
        },
        None => {
            let opened =
                crate::io::open_profiles(&args.files, &args.input_files, Some(&args.binaries))?;
            crate::io::complete(opened, &args.binaries)?
        }
    };
    let folder = folder.as_ref().map(|(folder, _)| *folder);
    let input = &opened.input;
    let mut bytes = Vec::new();
    let status = if form.is_table() {
        let (table, status) = table(args, input)?;
        write_table(form, &table, &mut bytes)?;
        status
    } else {
        let (stacks, status) = stacks(args, form, input, folder)?;
        if stacks.is_empty() {
            return Err(Failure::input(format_args!(
                "{}: there is nothing to export: all counts are 0",
                input.name()
            )));
        }
        let written = match form {
            Form::Pprof => stacks.pprof(&mut bytes),
            Form::Folded => stacks.folded(&mut bytes),
            Form::Firefox => {
                let document = stacks.firefox().map_err(Into::into);
                document.map(|document| bytes = document.to_string().into_bytes())
            }
            _ => {
                bytes = stacks.speedscope().to_string().into_bytes();
                Ok(())
            }
        };
        written.map_err(|error| Failure::print(&error))?;
        status
    };
    crate::io::write_view(output, &args.output, &bytes)?;
    Ok(opened.then(status))
}

fn write_table(form: Form, table: &Table, bytes: &mut Vec<u8>) -> exit::Result<()> {
    let written = match form {
        #[cfg(feature = "arrow")]
        Form::Parquet => table.parquet(bytes).map_err(std::io::Error::other),
        #[cfg(feature = "arrow")]
        Form::Arrow => table.arrow(bytes).map_err(std::io::Error::other),
        Form::Json => table.json(bytes),
        _ => table.csv(bytes),
    };
    written.map_err(|error| Failure::print(&error))
}

/// Opens the heap profile of an input; `None` if no heap profile is to be exported. The heap profile in an indexed
/// profile is exported only if the options ask for it, or if the indexed profile has no counters.
fn heap(args: &ExportArgs, input: &Input) -> exit::Result<Option<HeapProfile>> {
    let of_heap = [TableKind::Contexts, TableKind::Frames, TableKind::Records];
    let asked = args.memory || args.table.is_some_and(|table| of_heap.contains(&table));
    let indexed = detect(input.bytes()) == FileKind::InstrIndexed;
    if (indexed && (asked || is_heap_alone(input))) || detect(input).is_memprof() {
        let opened = Heap::open(&args.binaries, input, FrameRule::All)?;
        crate::print::notes(&opened.notes);
        return Ok(Some(opened.heap));
    }
    Ok(None)
}

fn table(args: &ExportArgs, input: &Input) -> Result<(Table, Status), Failure> {
    let name = input.name();
    let asked = args.table;
    let no_table = |why: NoTable| Failure::usage(format_args!("{name}: {why}"));
    if let Some(heap) = heap(args, input)? {
        let kind = asked.unwrap_or(TableKind::Contexts);
        let table = Table::of_heap(name, kind, &heap, &Thresholds::default());
        return Ok((table.map_err(no_table)?, damage(name, &heap.damage)));
    }
    if asked == Some(TableKind::Branches) {
        let counts = read(input.bytes(), &[], &CollectOptions::default());
        let counts = counts.map_err(|error| {
            Failure::file(name, &error)
                .with_hint("the table `branches` is one of recordings and of counts by address")
        })?;
        return Ok((Table::of_counts(name, &counts), Status::Done));
    }
    if detect(input.bytes()) == FileKind::PerfData {
        let failure = Failure::usage(format_args!(
            "{name}: a recording has only the table `branches`; it is exported to pprof, speedscope, firefox or folded"
        ));
        return Err(failure.with_hint("`profkit show --format csv` prints its functions as rows"));
    }
    let kind = asked.unwrap_or(TableKind::Functions);
    let profile = opened(args, input)?;
    let (table, faults) = Table::of(name, kind, &profile).map_err(no_table)?;
    let status = damage(name, &faults);
    Ok((table, status))
}

/// Opens a profile that is no heap profile. A MIP profile without source locations, as one made from a map file, gets
/// them from the program.
fn opened<'i>(args: &ExportArgs, input: &'i Input) -> Result<AnyProfile<'i>, Failure> {
    let name = input.name();
    let mut profile =
        AnyProfile::open(input.bytes(), None).map_err(|error| Failure::file(name, &error))?;
    if let AnyProfile::Mip(mip, _) = &mut profile
        && args.binaries.is_used()
        && mip.functions.iter().all(|it| it.location.is_none())
    {
        let mut notes = Vec::new();
        let binaries = args.binaries.index(&mut notes, true)?;
        let found =
            programs(mip, &binaries).map_err(|(name, error)| Failure::file(name, &error))?;
        for path in &found {
            if mip.functions.iter().any(|it| it.location.is_some()) {
                break;
            }
            match create::locate(mip, path, None) {
                Ok(located) => {
                    notes.extend(located.apply(mip).iter().map(ToString::to_string));
                }
                Err(error) => notes.push(format!("no source locations: {error}")),
            }
        }
        if found.is_empty() {
            notes.push(format!(
                "{name}: no source locations: none of the binaries has the build id of the profile"
            ));
        }
        crate::print::notes(&notes);
    }
    Ok(profile)
}

fn stacks(
    args: &ExportArgs,
    form: Form,
    input: &Input,
    folder: Option<&Path>,
) -> Result<(Stacks, Status), Failure> {
    let name = input.name();
    if let Some(heap) = heap(args, input)? {
        let status = damage(name, &heap.damage);
        return Ok((Stacks::of_heap(name, &heap), status));
    }
    if detect(input.bytes()) == FileKind::PerfData {
        return recording(args, input, folder);
    }
    let profile = opened(args, input)?;
    let declarations = declarations(args);
    let (stacks, faults) = match (&profile, &declarations) {
        // Viewers of pprof show samples beside source lines; in the other ones a function is one frame.
        (AnyProfile::Sample(view), Some(declarations)) if form == Form::Pprof => (
            Stacks::of_samples_by_line(name, view, declarations),
            view.faults(),
        ),
        (profile, declarations) => {
            let (mut stacks, faults) = Stacks::of(name, profile);
            if let Some(declarations) = declarations {
                stacks.locate(declarations);
            }
            (stacks, faults)
        }
    };
    let status = damage(name, &faults);
    Ok((stacks, status))
}

/// The declarations of functions in the debug info of the named binaries; `None` if none is named, or if they cannot be
/// read.
fn declarations(args: &ExportArgs) -> Option<Declarations> {
    let paths = &args.binaries.binaries;
    if paths.is_empty() {
        return None;
    }
    let folders = DebugFolders {
        folders: args.binaries.debug_file_directory.clone(),
    };
    match Declarations::read(paths, &folders) {
        Ok(declarations) => Some(declarations),
        Err(error) => {
            crate::print::notes([format_args!("no source files and lines: {error}")]);
            None
        }
    }
}

/// The stacks of a recording of perf.
fn recording(
    args: &ExportArgs,
    input: &Input,
    folder: Option<&Path>,
) -> Result<(Stacks, Status), Failure> {
    let opened = RecordingFiles::open(folder, input)?;
    opened.read(|recording| {
        let functions = functions(recording, &args.binaries, true)?;
        crate::print::notes(unnamed_notes(&functions));
        let stacks = Stacks::of_recording(input.name(), &functions);
        Ok((stacks, opened.finish(recording)?))
    })
}
