//! `profkit convert`: writes one profile in another format.
use super::args::{Format, ReportArgs, VersionArgs};
use super::job::{Destination, Form, Job};
use super::run::Run;
use super::sample_args::{SampleArgs, refuse_version};
use super::sample_job::{SampleJob, form, is_sample};
use super::symbolize_nothing;
use crate::correlate::args::BinaryArgs;
use crate::exit::{Failure, Result, Status};
use crate::io::Opened;
use crate::table_file::{failure, open_table};
use clap::Args;
use profkit_data::detect::{FileKind, detect};
use profkit_data::path_text;
use profkit_merge::files::{Input, InputNote, SingleInput, check_outputs, same_file};
use profkit_merge::memprof::SectionChoice;
use profkit_merge::{MergeOptions, RunOptions};
use profkit_page::import::{is_table, profile_of};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  profkit convert out.profdata -o out.proftext
  profkit convert default.profraw --to text -o -
  profkit convert new.profdata --llvm 16 -o old.profdata
  profkit convert samples.afdo --to text -o -
  profkit convert samples.prof --gcc 12 -o samples.afdo
  profkit convert counters.parquet functions.parquet profile.csv -o app.profdata";

/// Arguments of `profkit convert`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    /// A raw, indexed or text profile, or a sample profile of any encoding, recognised by content; - is standard input
    ///
    /// Or the tables of one instrumentation, sample or heap profile, as CSV, JSON, Parquet or Arrow.
    /// docs/formats/tables.md says which are needed and what must be in them.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    /// Write the converted profile here; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The form to convert to
    ///
    /// Without it, the extension of the output decides. Instrumentation profiles: .profdata is indexed, .proftext and .txt
    /// are text. Sample profiles: .proftext and .txt are text, .afdo and .gcov are GCC's encoding. With any other
    /// extension, the input decides: an indexed profile becomes text, a raw or text profile becomes indexed; a sample
    /// profile in text becomes extensible binary, a sample profile in another encoding becomes text.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<Format>,

    #[command(flatten)]
    version: VersionArgs,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    sample: SampleArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

pub fn convert(args: ConvertArgs) -> Result {
    check_name("convert", &args.output, args.to)?;
    let report = ("the report", args.report.report.as_deref());
    let lists = [("the profile", Some(&*args.output)), report];
    check_outputs(&lists, &args.sample.symbol_list)?;
    check_outputs(&[report], &args.inputs)?;
    let (input, notes) = args.open()?;
    if is_sample(input.bytes()) {
        return convert_sample(&args, &input, notes);
    }
    args.sample.refuse()?;
    let format = match (args.to, detect(input.bytes())) {
        (Some(format), _) => format,
        (None, kind) => format_of_name(&args.output)?.unwrap_or(match kind {
            FileKind::InstrIndexed => Format::Text,
            _ => Format::Indexed,
        }),
    };
    let form = Form::new(format, &args.version)?;
    let one = SingleInput(&input);
    if detect(input.bytes()) == FileKind::MemProfRaw {
        return Err(Failure::usage(
            "a raw heap profile holds addresses only: profkit merge --binaries symbolises it",
        ));
    }
    let options = MergeOptions::new();
    let threads = options.run.threads.clone();
    let job = Job {
        options,
        section: SectionChoice::new(),
        symbolize: &|parts, report, _| symbolize_nothing(parts, report, &threads),
        programs: None,
        supplement: None,
        sparse: false,
        form,
        destination: Destination::File(args.output.clone()),
        report: None,
        strict: args.report.strict,
        names: Vec::new(),
        cut: None,
        stable: None,
    };
    Run::new(&args.report, args.notes(notes)).merge(job, &one)
}

impl ConvertArgs {
    /// Opens the profile, or makes one of tables; the notes are `None` if it is not made of tables.
    fn open(&self) -> Result<(Input, Option<Vec<String>>)> {
        let mut inputs = self
            .inputs
            .iter()
            .map(|path| Input::open(path))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        if let Some(other) = inputs.iter().find(|input| !is_table(input.bytes())) {
            if inputs.len() > 1 {
                return Err(Failure::usage(format_args!(
                    "{}: several inputs must be tables of one profile, and this is not a table",
                    other.name()
                ))
                .with_hint("`profkit merge` adds profiles up"));
            }
            let input = inputs.remove(0);
            let status = Status::Done;
            let opened = crate::io::complete(Opened { input, status }, &self.binaries)?;
            return Ok((opened.input, None));
        }
        let tables = inputs.iter().map(open_table).collect::<Result<Vec<_>>>()?;
        let mut imported = profile_of(&tables).map_err(|error| failure(&error))?;
        let name = inputs.first().map_or("", Input::name);
        let (bytes, losses) = imported
            .encode()
            .map_err(|error| Failure::file(name, &error))?;
        let losses = losses.into_iter();
        imported
            .notes
            .extend(losses.map(|loss| format!("{name}: {loss}")));
        Ok((Input::from_bytes(name, bytes), Some(imported.notes)))
    }

    fn notes(&self, notes: Option<Vec<String>>) -> Vec<String> {
        let mut notes = notes.unwrap_or_default();
        notes.extend(
            self.inputs
                .iter()
                .flat_map(|input| replaced(input, &self.output)),
        );
        notes
    }
}

fn convert_sample(args: &ConvertArgs, input: &Input, notes: Option<Vec<String>>) -> Result {
    let named = Format::of_name(&args.output).filter(|named| *named != Format::Indexed);
    let chosen = args.version.llvm.is_some() || args.sample.gcc.is_some();
    let default = match detect(input.bytes()) {
        FileKind::SampleText => Format::Extbinary,
        _ if notes.is_some() => Format::Extbinary,
        _ => Format::Text,
    };
    let format = match (args.to.or(named), chosen) {
        (None, false) => Some(default),
        (format, _) => format,
    };
    refuse_version(&args.version)?;
    let form = form(format, args.version.llvm, args.sample.gcc)?;
    args.sample.refuse_for(form)?;
    let job = SampleJob {
        args: &args.sample,
        form,
        llvm: args.version.llvm,
        output: args.output.clone(),
        strict: args.report.strict,
        run: RunOptions::new(),
        order_free: false,
        part: false,
        remapping: None,
        filter: None,
        only_gcov: None,
        cut: None,
        stable: None,
    };
    Run::new(&args.report, args.notes(notes)).merge(job, &SingleInput(input))
}

/// A note if the output replaces the input.
pub fn replaced(input: &Path, output: &Path) -> Vec<String> {
    let note = InputNote::OutputIsInput {
        name: path_text(input),
    };
    let is_replaced = input.is_file() && same_file(input, output);
    is_replaced.then(|| note.to_string()).into_iter().collect()
}

pub fn format_of_name(path: &Path) -> Result<Option<Format>> {
    match Format::of_name(path) {
        Some(Format::Gcov) => Err(Failure::usage(format_args!(
            "{}: only sample profiles are written in GCC's encoding, and the input is not a sample profile",
            profkit_data::path_text(path)
        ))
        .with_hint("name the output .profdata or .proftext")),
        named => Ok(named),
    }
}

/// Fails if the output has the extension of a form that the command does not write. With `--to`, the extension is not
/// checked.
pub fn check_name(command: &str, output: &Path, to: Option<Format>) -> Result<()> {
    let extension = output.extension().and_then(|name| name.to_str());
    let hint = match extension.filter(|_| to.is_none()) {
        Some("json" | "jsonl") => "`profkit show --format json` prints a profile as JSON",
        Some("yaml" | "yml") => "for a heap profile as YAML, add --to memprof-yaml",
        Some("csv" | "html" | "xml") => {
            "--to chooses one of the forms of profiles: indexed, text, …"
        }
        Some("profraw" | "memprofraw") => {
            "only programs write raw profiles: choose another format with --to"
        }
        Some("gz" | "zst" | "xz" | "bz2" | "zip") => {
            "write to standard output with -o -, and pipe that into a program that compresses"
        }
        _ => return Ok(()),
    };
    Err(Failure::usage(format_args!(
        "{}: profkit {command} cannot choose a format by the ending .{}",
        profkit_data::path_text(output),
        extension.unwrap_or_default()
    ))
    .with_hint(hint))
}
