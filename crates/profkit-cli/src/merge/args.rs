//! Arguments of `profkit merge`.
use super::sample_args::SampleArgs;
use super::supplement::SupplementArgs;
use crate::correlate::args::BinaryArgs;
use clap::{Args, ValueEnum};
use profkit_data::instr::releases::Release;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Inputs are raw (.profraw), indexed (.profdata) and text (.proftext) profiles, heap
profiles (.memprofraw with --binaries, MemProf YAML), or sample profiles of any encoding
(text, binary, extensible binary, GCC's .afdo). What a file is shows in its content, not in
its name. Damaged inputs are kept as far as they are sound; the report on stderr says what
was repaired or dropped and why.

Examples:
  profkit merge *.profraw -o out.profdata
  profkit merge runs/ 3,train.profraw 0.5,idle.profraw -o out.profdata
  find /ci -name '*.profraw' | profkit merge -f - --llvm 19 -o out.profdata
  profkit merge runs/ --binaries build/bin -o out.profdata
  profkit merge heap.memprofraw default.profraw --binaries build/ -o out.profdata
  profkit merge 3,prod.prof canary.prof --output-format text -o samples.txt
  profkit merge --strict --report report.json old.profdata new.profraw -o out.profdata";

/// Arguments of `profkit merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Profiles, folders of profiles (all files below them), or - for a profile on standard input
    ///
    /// WEIGHT,FILE counts a file WEIGHT times; the weight is a number above 0 such as 3 or 0.25. A file that exists
    /// under the whole name, comma and all, is taken as that file.
    #[arg(value_name = "[WEIGHT,]INPUT")]
    pub(super) inputs: Vec<OsString>,

    /// Take inputs from a list too: one [WEIGHT,]PATH per line; - reads the list from standard input
    ///
    /// Empty lines and lines that begin with # are skipped. Paths are relative to the working folder.
    #[arg(short = 'f', long, value_name = "LIST")]
    pub(super) input_files: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) destination: Destination,

    #[command(flatten)]
    pub(super) form: FormArgs,

    /// Leave out functions that never ran
    #[arg(long)]
    pub(super) sparse: bool,

    /// Let every input count the same, however long its run was
    ///
    /// Counts are scaled so that each input has the sum of the largest one; then its weight applies.
    #[arg(long)]
    pub(super) normalize: bool,

    /// Keep only functions whose name this regular expression matches somewhere
    #[arg(long, value_name = "REGEX")]
    pub(super) function: Option<String>,

    /// Leave out functions whose name this regular expression matches somewhere
    #[arg(long, value_name = "REGEX")]
    pub(super) no_function: Option<String>,

    /// Rename functions: a file of mangled names, OLD NEW on each line
    #[arg(long, value_name = "FILE")]
    pub(super) remapping_file: Option<PathBuf>,

    /// How many temporal traces are kept
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) temporal_profile_trace_reservoir_size: u64,

    /// How many functions of a temporal trace are kept
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(super) temporal_profile_max_trace_length: u64,

    /// Write this version of the MemProf section, 0 to 4
    ///
    /// By default the version that llvm-profdata writes in the release that the result is for; in LLVM 22 that is 3.
    #[arg(long, value_name = "V", value_parser = clap::value_parser!(u32).range(0..=4))]
    pub(super) memprof_version: Option<u32>,

    /// Write all fields of heap profiles, not only those that compilers use
    #[arg(long)]
    pub(super) memprof_full_schema: bool,

    /// Threads to use; by default one per core, but no more than there are inputs for
    ///
    /// The number does not change the result, except for value profiles with weights under --llvm: see there.
    #[arg(short = 'j', long, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) correlation: BinaryArgs,

    #[command(flatten)]
    pub(super) report: ReportArgs,

    #[command(flatten)]
    pub(super) sample: SampleArgs,

    #[command(flatten)]
    pub(super) supplement: SupplementArgs,
}

/// Where the result goes.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Destination {
    /// Write the merged profile here; - is standard output
    ///
    /// The file appears whole or not at all. One that is there stays as it was if merging or writing fails.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Write one profile per program instead, named by build id, into this folder
    #[arg(long, value_name = "DIR")]
    pub(super) by_build_id: Option<PathBuf>,
}

/// The form of the result.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// The form of the output
    ///
    /// Without it instrumentation profiles become indexed, sample profiles extensible binary.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) output_format: Option<Format>,

    /// The same as --output-format text
    #[arg(long, conflicts_with = "output_format")]
    pub(super) text: bool,

    #[command(flatten)]
    pub(super) version: VersionArgs,
}

/// The version of an indexed result.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct VersionArgs {
    /// Write what this LLVM release reads, such as 19
    ///
    /// The result is what llvm-profdata of that release writes for these inputs, weights of value profiles included:
    /// LLVM counts a value that is new to its site once, whatever the weight, so that the order of inputs then matters,
    /// and --threads as its -j does (one without it). Without --llvm every count is multiplied, and the version is the
    /// newest that fits where the inputs came from.
    #[arg(long, value_name = "N")]
    pub(super) llvm: Option<Release>,

    /// Write this version of the indexed format, 3 to 13
    #[arg(long, value_name = "V", value_parser = clap::value_parser!(u32).range(3..=13))]
    pub(super) indexed_version: Option<u32>,
}

/// A form of profile that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Binary, for compilers and llvm-cov (.profdata)
    Indexed,
    /// Text, for people (.proftext)
    Text,
    /// YAML of the heap profile, as LLVM's tool shows it
    MemprofYaml,
    /// Sample profiles: extensible binary, of LLVM 10 and later
    Extbinary,
    /// Sample profiles: binary, of LLVM 3.9 and later
    Binary,
    /// Sample profiles: compact binary, of LLVM 7 to 16
    CompactBinary,
    /// Sample profiles: GCC's encoding (.afdo)
    Gcov,
}

/// What to do with damaged input, and how to report it.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Write nothing and end with exit code 1 if anything has to be repaired or dropped
    #[arg(long)]
    pub strict: bool,

    /// Write the report as JSON to a file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Do not print the report on stderr; errors are still printed
    #[arg(short, long)]
    pub quiet: bool,
}

const CORRELATE_EXAMPLES: &str = "\
Programs built with -mllvm -profile-correlate=binary or debug-info write raw profiles that
hold counters only; the functions are in their binaries or debug info. This is profkit merge
--binaries, with the report of which profile went to which binary first.

Examples:
  profkit correlate runs/ --binaries build/bin --dry-run
  profkit correlate runs/ --binaries build/bin /usr/lib/debug -o out.profdata";

/// Arguments of `profkit correlate`.
#[derive(Debug, Args)]
#[command(after_help = CORRELATE_EXAMPLES)]
pub struct CorrelateArgs {
    /// Only say which profile goes to which binary; exit code 1 if one goes to none
    #[arg(long)]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) merge: MergeArgs,
}
