//! `profkit filter`: writes a profile with less in it, or with names that tell nothing.
use super::args::{Format, ReportArgs, SelectionArgs, VersionArgs};
use super::job::{Destination, Form, Job};
use super::run::{Remarks, Run};
use super::sample_args::{SampleArgs, refuse_version};
use super::sample_job::{SampleJob, form, is_sample};
use super::write::{Encoding, size_of};
use super::{convert, filter_mip, symbolize_nothing};
use crate::correlate::args::BinaryArgs;
use crate::exit::{Failure, Result, Status};
use crate::io::Opened;
use crate::print::grouped;
use clap::Args;
use profkit_analysis::filter::{ColdRule, Filter, Filtered, Hottest, Redaction};
use profkit_analysis::heap::is_heap_alone;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::InstrProfile;
use profkit_data::remap::Remapping;
use profkit_data::sample::gcov::GcovProfile;
use profkit_data::sample::{SampleEncoding, SampleForm, encoding};
use profkit_merge::files::{Input, SingleInput, check_outputs};
use profkit_merge::memprof::SectionChoice;
use profkit_merge::{MergeOptions, RunOptions};
use std::path::PathBuf;

const EXAMPLES: &str = "\
The cuts are made in the order of this page: names, cold functions, the hottest ones, values, symbols,
redaction, size. Each works on what the one before it left. The summary of the result is computed anew.

Examples:
  profkit filter app.profdata --hottest 99.9% -o small.profdata
  profkit filter app.profdata --drop-cold --drop-values -o small.profdata
  profkit filter samples.prof --size-limit 25M -o small.prof
  profkit filter app.profdata --redact \"$SALT\" -o public.profdata --report cut.json";

/// Arguments of `profkit filter`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FilterArgs {
    /// An instrumentation, sample, heap or MIP profile of any form, recognised by content; - is standard input
    #[arg(value_name = "PROFILE")]
    pub(super) input: PathBuf,

    /// Write the filtered profile here; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,

    /// The form of the output
    ///
    /// Without it, the extension of the output decides, as for profkit convert; with another extension the form stays
    /// that of the input. A raw profile becomes indexed. A MIP profile keeps its form.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) to: Option<Format>,

    #[command(flatten)]
    pub(super) version: VersionArgs,

    /// Rename functions first: a file with one pair of mangled names, OLD NEW, per line
    ///
    /// Functions that get the same name are added up. In instrumentation profiles the targets of calls keep their names.
    #[arg(long, value_name = "FILE", help_heading = "Cuts")]
    rename: Option<PathBuf>,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Leave out cold functions: by the limit of the profile's summary, or those whose largest count is at most N
    ///
    /// --drop-cold=0 leaves out functions that never ran.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        help_heading = "Cuts"
    )]
    drop_cold: Option<Option<u64>>,

    /// Keep the N hottest functions, or the fewest that together have P percent of all counts
    ///
    /// The sum of the counters or samples of a function decides. In a sample profile with calling contexts, each context
    /// counts on its own; of a heap profile, the contexts with the most bytes are kept. In a MIP profile the number of
    /// calls decides, or of runs that called the function if calls were not counted.
    #[arg(long, value_name = "N|P%", help_heading = "Cuts")]
    hottest: Option<Hottest>,

    /// Remove what was called, loaded and copied where: targets of calls, virtual tables, sizes of memory operations; of a
    /// MIP profile the call edges
    #[arg(long, help_heading = "Cuts")]
    drop_values: bool,

    /// Remove the list of the program's symbols from a sample profile
    #[arg(long, help_heading = "Cuts")]
    pub(super) drop_symbol_list: bool,

    /// Replace the names of functions and the paths of files by hashes with this salt
    ///
    /// A compiler cannot use a redacted profile, because it does not find its functions there. Profiles that were
    /// redacted with the same salt can still be compared and merged with each other. Who knows the salt, or can guess it,
    /// finds out names by trying: take a long random one.
    #[arg(long, value_name = "SALT", help_heading = "Cuts")]
    redact: Option<String>,

    /// Cut the coldest functions until the file has at most this size, such as 25M; of a heap profile the contexts with
    /// the fewest bytes
    ///
    /// K, M and G stand for 1000, 1000000 and 1000000000 bytes.
    #[arg(long, value_name = "SIZE", value_parser = profkit_report::typed::bytes, help_heading = "Cuts")]
    size_limit: Option<u64>,

    #[command(flatten)]
    pub(super) report: ReportArgs,

    #[command(flatten)]
    binaries: BinaryArgs,
}

/// What is cut from a profile before it is written.
#[derive(Debug)]
pub struct Cut {
    filter: Filter,
    size_limit: Option<u64>,
}

pub fn filter(args: FilterArgs) -> Result {
    let report = ("the report", args.report.report.as_deref());
    let lists = [("the profile", Some(&*args.output)), report];
    check_outputs(&lists, &args.rename)?;
    check_outputs(&[report], [&args.input])?;
    let opened = Opened {
        input: Input::open(&args.input)?,
        status: Status::Done,
    };
    let input = crate::io::complete(opened, &args.binaries)?.input;
    let cut = Cut::new(&args)?;
    let kind = detect(input.bytes());
    if kind.is_mip() {
        return filter_mip::filter(&args, cut, kind, &input);
    }
    convert::check_name("filter", &args.output, args.to)?;
    if is_sample(input.bytes()) {
        return filter_sample(&args, cut, &input);
    }
    args.refuse(kind, is_heap_alone(input.bytes()))?;
    let format = match args.to {
        Some(format) => format,
        None => convert::format_of_name(&args.output)?.unwrap_or(match kind {
            FileKind::InstrIndexed | FileKind::InstrRaw => Format::Indexed,
            FileKind::MemProfYaml => Format::MemprofYaml,
            _ => Format::Text,
        }),
    };
    let mut options = MergeOptions::new();
    if args.rename.is_some() {
        options = options.remapping(cut.filter.rename.clone());
    }
    let threads = options.run.threads.clone();
    let job = Job {
        options,
        section: SectionChoice::new(),
        symbolize: &|parts, report, _| symbolize_nothing(parts, report, &threads),
        programs: None,
        supplement: None,
        sparse: false,
        form: Form::new(format, &args.version)?,
        destination: Destination::File(args.output.clone()),
        report: None,
        strict: args.report.strict,
        names: Vec::new(),
        cut: Some(cut),
        stable: None,
    };
    let replaced = convert::replaced(&args.input, &args.output);
    Run::new(&args.report, replaced).merge(job, &SingleInput(&input))
}

fn filter_sample(args: &FilterArgs, cut: Cut, input: &Input) -> Result {
    refuse_version(&args.version)?;
    let named = Format::of_name(&args.output).filter(|named| *named != Format::Indexed);
    let form = match args.to.or(named) {
        Some(Format::Gcov)
            if args.to.is_none() && detect(input.bytes()) == FileKind::SampleGcov =>
        {
            form_of(input.bytes())
        }
        Some(format) => form(Some(format), args.version.llvm, None)?,
        None if args.version.llvm.is_some() => form(None, args.version.llvm, None)?,
        None => form_of(input.bytes()),
    };
    let sample = SampleArgs {
        size_limit: cut.size_limit,
        ..SampleArgs::default()
    };
    let remapping = args.rename.is_some().then(|| cut.filter.rename.clone());
    let job = SampleJob {
        args: &sample,
        form,
        llvm: args.version.llvm,
        output: args.output.clone(),
        strict: args.report.strict,
        run: RunOptions::new(),
        remapping,
        filter: None,
        only_gcov: None,
        order_free: false,
        part: false,
        cut: Some(cut),
        stable: None,
    };
    let replaced = convert::replaced(&args.input, &args.output);
    Run::new(&args.report, replaced).merge(job, &SingleInput(input))
}

/// The encoding of a sample profile, with its version.
fn form_of(data: &[u8]) -> SampleForm {
    match encoding(data) {
        Some(SampleEncoding::Text) => SampleForm::Text,
        Some(SampleEncoding::Binary) => SampleForm::Binary,
        Some(SampleEncoding::CompactBinary) => SampleForm::CompactBinary,
        Some(SampleEncoding::Gcov) => {
            let version = GcovProfile::parse(data).map(|profile| profile.version);
            version.map_or(SampleForm::ExtBinary, SampleForm::Gcov)
        }
        Some(SampleEncoding::ExtBinary) | None => SampleForm::ExtBinary,
    }
}

impl FilterArgs {
    /// Fails for options that mean nothing for a profile that is no sample profile.
    fn refuse(&self, kind: FileKind, heap_alone: bool) -> Result<()> {
        if kind == FileKind::MemProfRaw {
            return Err(Failure::usage(
                "a raw heap profile holds addresses only: profkit merge --binaries symbolises it, and its result can be filtered",
            ));
        }
        let is_heap = kind.is_memprof() || heap_alone;
        let what = if is_heap {
            "a heap profile"
        } else {
            "an instrumentation profile"
        };
        let given = [
            (self.drop_symbol_list, "--drop-symbol-list"),
            (is_heap && self.drop_cold.is_some(), "--drop-cold"),
            (is_heap && self.drop_values, "--drop-values"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, option)) if *option == "--drop-cold" => Err(Failure::usage(format_args!(
                "{option} means nothing for {what}: its cold contexts are what compilers use"
            ))
            .with_hint("--hottest and --size-limit keep the contexts with the most bytes")),
            Some((_, option)) => Err(Failure::usage(format_args!(
                "{option} means nothing for {what}"
            ))),
            None => Ok(()),
        }
    }
}

impl Cut {
    fn new(args: &FilterArgs) -> Result<Self> {
        let [keep, leave_out] = args.selection.selections()?;
        if args.redact.as_deref() == Some("") {
            return Err(Failure::usage("--redact needs a salt that is not empty"));
        }
        let filter = Filter {
            keep,
            leave_out,
            cold: args
                .drop_cold
                .map(|largest| largest.map_or(ColdRule::Summary, ColdRule::AtMost)),
            hottest: args.hottest,
            drop_values: args.drop_values,
            drop_symbols: args.drop_symbol_list,
            redact: args.redact.as_deref().map(Redaction::new),
            rename: match &args.rename {
                Some(path) => super::read_remapping(path)?,
                None => Remapping::default(),
            },
        };
        Ok(Cut {
            filter,
            size_limit: args.size_limit,
        })
    }

    /// Cuts the functions.
    pub fn functions(&self, profile: &mut InstrProfile) -> Filtered {
        self.filter.instr(profile)
    }

    /// Cuts the heap profile, and then to the size. `functions` says what was cut of the functions.
    pub fn rest(
        &self,
        profile: &mut InstrProfile,
        mut functions: Filtered,
        encoding: &Encoding,
        name: &str,
        remarks: &mut Remarks,
    ) -> Result<()> {
        let heap_alone = functions.all().units == 0;
        let mut heap = match &mut profile.memprof {
            Some(section) => self.filter.section(section, heap_alone).map_err(|error| {
                Failure::file(name, &error).with_hint(
                    "the heap profile in the file is damaged: `profkit merge` writes a file with what is sound of it",
                )
            })?,
            None => None,
        };
        if let Some(limit) = self.size_limit {
            let size = |profile: &InstrProfile| size_of(profile, encoding);
            let fits = match heap.as_mut().filter(|_| heap_alone) {
                Some(heap) => heap.fit_heap(profile, limit, size),
                None => functions.fit_instr(profile, limit, size),
            };
            if !fits.map_err(|error| Failure::file(name, &error))? {
                return Err(too_small(name, limit));
            }
        }
        remarks
            .filtered
            .extend(Some(functions).filter(|_| !heap_alone));
        remarks.filtered.extend(heap);
        self.check_rest(name, remarks)
    }

    /// Cuts a sample profile.
    pub fn samples(&self, profile: &mut profkit_data::sample::SampleProfile) -> Filtered {
        self.filter.samples(profile)
    }

    /// Cuts a MIP profile.
    pub fn mip(
        &self,
        profile: &mut profkit_data::mip::MipProfile,
    ) -> profkit_data::Result<Filtered> {
        self.filter.mip(profile)
    }

    pub fn size_limit(&self) -> Option<u64> {
        self.size_limit
    }

    pub fn is_redacting(&self) -> bool {
        self.filter.redact.is_some()
    }

    /// Fails if nothing is left, because no compiler reads an empty profile.
    pub fn check_rest(&self, name: &str, remarks: &Remarks) -> Result<()> {
        let had = remarks.filtered.iter().any(|one| one.all().units > 0);
        let has = remarks.filtered.iter().any(|one| one.kept.units > 0);
        if had && !has {
            return Err(Failure::input(format_args!(
                "{name}: not written: the cuts leave nothing of the profile"
            ))
            .with_hint("--function takes a whole name; --function-contains a part of one, and --function-regex a regular expression"));
        }
        Ok(())
    }
}

pub fn too_small(name: &str, limit: u64) -> Failure {
    Failure::input(format_args!(
        "{name}: not even one function or context fits into {} bytes",
        grouped(limit)
    ))
    .with_hint("choose a larger --size-limit")
}
