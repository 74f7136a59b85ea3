//! Arguments of `profkit merge`.
use super::sample_args::SampleArgs;
use super::supplement::SupplementArgs;
use crate::correlate::args::BinaryArgs;
use crate::exit::Result;
use crate::print::{AnnotateArgs, plural};
use crate::spelling::patterns;
use clap::{Args, ValueEnum};
use profkit_analysis::selection::Selection;
use profkit_data::detect::Family;
use profkit_data::instr::Target;
use profkit_data::releases::Release;
use profkit_merge::families::{keep_family, keep_level};
use profkit_merge::files::InputList;
use profkit_merge::report::{DropLimit, Tolerance};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Examples:
  profkit merge *.profraw -o out.profdata
  profkit merge runs/ 3,train.profraw 0.5,idle.profraw -o out.profdata
  find /ci -name '*.profraw' | profkit merge -f - --llvm 19 -o out.profdata
  profkit merge heap.memprofraw default.profraw --binaries build/ -o out.profdata

{all-args}{after-help}";

const INPUTS: &str = "\
Inputs are raw (.profraw), indexed (.profdata) and text (.proftext)
profiles, heap profiles (.memprofraw with --binaries, MemProf YAML), or
sample profiles of any encoding (text, binary, extensible binary, GCC's
.afdo). Files are recognised by their content, not by their name. The sound
parts of damaged inputs are kept; the report on stderr lists what was
repaired or dropped, and why.

More examples:
  profkit merge runs/ --binaries build/bin -o out.profdata
  profkit merge 3,prod.prof canary.prof --to text -o samples.txt
  profkit merge --strict --report report.json old.profdata -o out.profdata
  profkit merge runs/ --max-dropped 5% --annotate github -o out.profdata";

/// Arguments of `profkit merge`.
#[derive(Debug, Args)]
#[command(help_template = HELP, after_help = INPUTS)]
pub struct MergeArgs {
    /// Profiles, folders of profiles (all files below them), or - for a profile on standard input
    ///
    /// WEIGHT,FILE counts a file WEIGHT times; the weight is a number above 0 such as 3 or 0.25. If a file exists whose
    /// name is the whole word, comma included, that file is the input.
    #[arg(value_name = "[WEIGHT,]INPUT")]
    pub(super) inputs: Vec<OsString>,

    /// Read more inputs from a list: one [WEIGHT,]PATH per line; - reads the list from standard input
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

    /// Threads to use; by default one per core, but not more than there are inputs
    ///
    /// The number of threads changes the result only if value profiles are merged with weights and --llvm is given: the
    /// help of --llvm says why.
    #[arg(short = 'j', long, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,

    /// Give every input the same influence, however long its run was
    ///
    /// The counts of each input are scaled until their sum equals the largest sum of any input. Then the counts are
    /// multiplied by the weight of the input.
    #[arg(long, help_heading = "Selection and weights")]
    pub(super) normalize: bool,

    #[command(flatten)]
    pub(super) selection: SelectionArgs,

    /// Rename functions: a file with one pair of mangled names, OLD NEW, per line
    #[arg(long, value_name = "FILE", help_heading = "Selection and weights")]
    pub(super) remapping_file: Option<PathBuf>,

    /// Keep at most this many temporal traces
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        help_heading = "Temporal traces"
    )]
    pub(super) temporal_profile_trace_reservoir_size: u64,

    /// Keep at most this many functions of a temporal trace
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        help_heading = "Temporal traces"
    )]
    pub(super) temporal_profile_max_trace_length: u64,

    /// Write this version of the MemProf section, 0 to 4
    ///
    /// The default depends on the LLVM release that the result is for: it is the version that llvm-profdata of this
    /// release writes by default. LLVM 22 writes version 3.
    #[arg(long, value_name = "V", value_parser = profkit_report::typed::between(0_u32, 4), help_heading = "Heap profiles")]
    pub(super) memprof_version: Option<u32>,

    /// Write all fields of heap profiles, not only the fields that compilers use, as YAML always has them
    #[arg(long, help_heading = "Heap profiles")]
    pub(super) memprof_full_schema: bool,

    /// Write also the names, source files and lines of heap profiles, so that nobody needs the binaries again
    ///
    /// They stand in a section of their own after LLVM's, where compilers and llvm-profdata do not look; all fields and
    /// access histograms are kept, too. A merge of files that have this section writes it without being asked.
    #[arg(long, help_heading = "Heap profiles")]
    pub(super) portable: bool,

    /// Merge only the inputs of this kind; profiles of other kinds are left out, and a note says how many
    ///
    /// Without this option, a merge of instrumentation or heap profiles with sample profiles is an error, because
    /// sample profiles count samples and not executions or allocations.
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        help_heading = "Selection and weights"
    )]
    pub(super) only: Option<Only>,

    /// Merge only the inputs of this target: host, or a device as the names of the files begin, such as
    /// amdgcn-amd-amdhsa or gfx90a
    ///
    /// A program with code for GPUs writes a profile for the host, and one for each device, with the device and a dot
    /// before the name. A compiler needs them apart, because host and device can have functions of one name and hash.
    /// Without this option, a merge of several targets adds them up, with a warning, or an error with --strict.
    #[arg(long, value_name = "TARGET", help_heading = "Selection and weights")]
    pub(super) target: Option<Target>,

    /// Merge profiles although the compilers that made them name or hash functions differently
    ///
    /// The result then holds a function once per name or hash, and each compiler finds only the entry with the name and
    /// hash that it computes itself. Without this option, such a merge is an error.
    #[arg(long, help_heading = "Selection and weights")]
    pub(super) mixed_hashes: bool,

    #[command(flatten)]
    pub(super) parts: PartArgs,

    #[command(flatten)]
    pub(super) stable: StableArgs,

    #[command(flatten)]
    pub(super) correlation: BinaryArgs,

    #[command(flatten)]
    pub(super) report: ReportArgs,

    #[command(flatten)]
    pub(super) tolerance: ToleranceArgs,

    /// Print each step: the kinds and sizes of the inputs, the number of threads, and how long it took
    #[arg(short, long, help_heading = "Report", conflicts_with = "quiet")]
    pub(super) verbose: bool,

    /// Read the inputs and print the report, but write no profile
    ///
    /// With this option, profkit correlate reports only which profile belongs to which binary, and exits with code 1 if
    /// a profile has no binary.
    #[arg(long, help_heading = "Report")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) sample: SampleArgs,

    #[command(flatten)]
    pub(super) supplement: SupplementArgs,
}

/// The options that select functions by name.
#[derive(Debug, Args)]
pub struct SelectionArgs {
    /// Keep only the function with this name, mangled or demangled; may be repeated
    ///
    /// --function, --function-contains and --function-regex may be combined: what one of them selects is kept.
    #[arg(long, value_name = "NAME", help_heading = "Selection and weights")]
    function: Vec<String>,

    /// Keep only functions whose name, mangled or demangled, contains this text; may be repeated
    #[arg(long, value_name = "TEXT", help_heading = "Selection and weights")]
    function_contains: Vec<String>,

    /// Keep only functions whose name, mangled or demangled, matches this regular expression; may be repeated
    #[arg(long, value_name = "REGEX", help_heading = "Selection and weights")]
    function_regex: Vec<String>,

    /// Leave out functions whose name, mangled or demangled, matches this regular expression; may be repeated
    #[arg(
        long,
        alias = "no-function",
        value_name = "REGEX",
        help_heading = "Selection and weights"
    )]
    no_function_regex: Vec<String>,
}

impl SelectionArgs {
    /// The functions that are kept, and those of them that are left out.
    pub fn selections(&self) -> Result<[Selection; 2]> {
        let kept = Selection {
            names: self.function.clone(),
            parts: self.function_contains.clone(),
            patterns: patterns("--function-regex", &self.function_regex)?,
            all: self.function.is_empty()
                && self.function_contains.is_empty()
                && self.function_regex.is_empty(),
        };
        let left_out = Selection {
            patterns: patterns("--no-function-regex", &self.no_function_regex)?,
            ..Selection::default()
        };
        Ok([kept, left_out])
    }
}

/// The options for merges in several steps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Merging in parts")]
pub struct PartArgs {
    /// Write a part: a sum that can be added to others later, in any order
    ///
    /// A part (.pkpart) holds all that a merge knows: also the records that contradict each other, the report, and the
    /// ids of its inputs. Parts are inputs of merge, show, doctor, diff and match. An input that is in two parts counts
    /// once. The result is that of one merge of all inputs with --order-free.
    #[arg(long, conflicts_with_all = [
        "to", "text", "llvm", "indexed_version", "by_build_id", "sparse", "normalize", "function",
        "function_contains", "function_regex", "no_function_regex", "memprof_version",
        "memprof_full_schema", "portable", "mixed_hashes", "layout", "merge_cold_contexts", "trim_cold_contexts",
        "md5_names", "compress", "split_layout", "partial", "symbol_list", "size_limit", "gcc",
    ])]
    pub(super) part: bool,

    /// Make the result a function of the set of inputs: their order and distribution to parts change no byte
    ///
    /// Where LLVM's rules depend on the order, others hold: docs/formats/part.md lists them. Every count is multiplied
    /// by the weight, also with --llvm. If a part is among the inputs, this holds without the option.
    #[arg(long)]
    pub(super) order_free: bool,

    /// Read ids of inputs from a list: the id, a tab, and the path in each line
    ///
    /// Inputs with the same id are one input that was delivered twice. Without an id, a file is known by its machine, its
    /// path, its size and its times, so that a copy of it is another input.
    #[arg(long, value_name = "LIST")]
    pub(super) input_ids: Option<PathBuf>,
}

/// The options for profiles that are made again.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reproducible profiles")]
pub struct StableArgs {
    /// Leave out what differs from run to run: the result depends on the set of inputs alone, and counts keep BITS
    /// significant bits (4, if no number is given)
    ///
    /// Implies --order-free. A count below 2^BITS stays; a larger one changes by at most one part in 2^BITS. Kept are all
    /// functions, hashes, build ids and values; lost are the low bits of counts, and temporal traces, whose order is that
    /// of one run. Local functions that a compiler named by an absolute path keep that name, because it finds them by it:
    /// a note counts them, and with --strict they are an error. Two batches of runs can still differ where a count is near
    /// the border of two steps: --like settles that.
    #[arg(
        long,
        value_name = "BITS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "4",
        value_parser = profkit_report::typed::between(1_u32, 63),
        conflicts_with_all = ["part", "portable"],
    )]
    pub(super) stable: Option<u32>,

    /// Keep the counts of this older profile where the new ones are within one step of --stable
    ///
    /// If that is so for every count, and the functions are the same, the result has the bytes of the older profile. It
    /// should be of as many runs of the same work. For instrumentation profiles.
    #[arg(long, value_name = "PROFILE", requires = "stable")]
    pub(super) like: Option<PathBuf>,

    /// Write what the profile was made of: hashes and build ids of the inputs, options, the version of profkit, and the
    /// tool chain that the files of --binaries state [default: the name of the profile and .manifest.json]
    ///
    /// profkit verify makes the profile again and compares it, and profkit doctor compares a profile with the manifest
    /// beside it. The manifest has no times, folders or names of machines.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["by_build_id", "dry_run"])]
    pub(super) manifest: Option<Option<PathBuf>>,
}

/// The inputs that `--only` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// Instrumentation profiles: raw, indexed, text
    Instr,
    /// Sample profiles of any encoding
    Sample,
    /// Heap profiles: raw dumps, MemProf YAML
    Heap,
    /// Instrumentation profiles of IR: -fprofile-generate of clang, -Cprofile-generate of rustc
    Ir,
    /// Instrumentation profiles of the front end: -fprofile-instr-generate of clang, -Cinstrument-coverage of rustc
    FrontEnd,
}

impl Only {
    /// Leaves out the inputs of other kinds, and returns their number.
    pub(super) fn keep(self, inputs: &mut InputList) -> u64 {
        match self {
            Only::Instr => keep_family(inputs, Family::Instr),
            Only::Sample => keep_family(inputs, Family::Sample),
            Only::Heap => keep_family(inputs, Family::MemProf),
            Only::Ir => keep_level(inputs, true),
            Only::FrontEnd => keep_level(inputs, false),
        }
    }

    pub(super) fn note(self, others: u64) -> String {
        let others = plural(others, "profile");
        let selected = match self {
            Only::Instr => "instrumentation profiles",
            Only::Sample => "sample profiles",
            Only::Heap => "heap profiles",
            Only::Ir => "IR profiles",
            Only::FrontEnd => "front-end profiles",
        };
        format!("{others} left out, because --only selects {selected}")
    }
}

/// The options that name the output.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Destination {
    /// Write the merged profile to this file; - is standard output
    ///
    /// The file is written whole or not at all: if merging or writing fails, an existing file stays as it was.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Write one profile per program into this folder instead; build ids become the file names
    #[arg(long, value_name = "DIR", help_heading = "Form of the output")]
    pub(super) by_build_id: Option<PathBuf>,
}

/// The options that choose the form of the result.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// The form of the output
    ///
    /// The default is indexed for instrumentation profiles, and extensible binary for sample profiles.
    #[arg(
        long = "to",
        alias = "output-format",
        value_enum,
        value_name = "FORMAT",
        help_heading = "Form of the output"
    )]
    pub(super) to: Option<Format>,

    /// The same as --to text
    #[arg(long, conflicts_with = "to", help_heading = "Form of the output")]
    pub(super) text: bool,

    #[command(flatten)]
    pub(super) version: VersionArgs,
}

impl FormArgs {
    /// Whether one of the options is given.
    pub fn is_given(&self) -> bool {
        let VersionArgs {
            llvm,
            indexed_version,
        } = &self.version;
        self.to.is_some() || self.text || llvm.is_some() || indexed_version.is_some()
    }
}

/// The options that choose the version of an indexed result.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct VersionArgs {
    /// Write a profile that this LLVM release reads, such as 19
    ///
    /// The result is the same as that of llvm-profdata of that release for these inputs, except that it has the names of
    /// virtual tables, which llvm-profdata does not take from raw profiles. This includes a peculiarity of value profiles: LLVM counts a value that is new to its site once, whatever the weight is. The result then
    /// depends on the order of the inputs and on --threads, just as it depends on -j in LLVM (the default is one
    /// thread). Without --llvm every count is multiplied by the weight, and the version is the newest one that suits
    /// the LLVM release that wrote the inputs. With --text, what the release cannot read is left out and reported.
    #[arg(long, value_name = "N")]
    pub(super) llvm: Option<Release>,

    /// Write this version of the indexed format, 3 to 14
    #[arg(long, value_name = "V", value_parser = profkit_report::typed::between(3_u32, 14), help_heading = "Form of the output")]
    pub(super) indexed_version: Option<u32>,
}

/// A form of profile that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Binary, for compilers and llvm-cov (.profdata)
    Indexed,
    /// Text, for people (.proftext)
    Text,
    /// YAML of the heap profile, as llvm-profdata show prints it
    MemprofYaml,
    /// Sample profiles: extensible binary, for LLVM 10 and later
    #[value(name = "ext-binary", alias = "extbinary")]
    Extbinary,
    /// Sample profiles: binary, for LLVM 3.9 and later
    Binary,
    /// Sample profiles: compact binary, for LLVM 7 to 16
    #[value(alias = "compbinary")]
    CompactBinary,
    /// Sample profiles: GCC's encoding (.afdo)
    Gcov,
}

impl Format {
    /// Returns the form that the extension of an output suggests; `None` if the extension suggests none.
    pub fn of_name(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "profdata" => Self::Indexed,
            "proftext" | "txt" => Self::Text,
            "afdo" | "gcov" => Self::Gcov,
            _ => return None,
        })
    }
}

/// The options for damaged input and for the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// Write nothing and exit with code 1 if anything has to be repaired or dropped
    #[arg(long)]
    pub strict: bool,

    /// Write the report to a file: Markdown if its name ends in .md, otherwise JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Whether to print annotations, which a build server (such as GitHub Actions) shows beside its job.
    #[command(flatten)]
    pub annotate: AnnotateArgs,

    /// Print warnings and errors only: no notes, no totals
    ///
    /// An input that was dropped or repaired is always reported.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The options that limit how many inputs may be dropped.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub struct ToleranceArgs {
    /// Exit with code 3 and write nothing if more inputs than this are dropped: a number of files, or a share such as
    /// 5%
    ///
    /// Without this option, the exit code is 1 if more than half of the inputs, and more than one, are dropped; the
    /// result is written nevertheless. An empty file counts as dropped.
    #[arg(long, value_name = "N|P%")]
    max_dropped: Option<DropLimit>,

    /// Exit with code 3 and write nothing if fewer inputs than this can be used
    #[arg(long, value_name = "N")]
    min_files: Option<u64>,
}

impl From<ToleranceArgs> for Tolerance {
    fn from(args: ToleranceArgs) -> Self {
        Tolerance {
            max_dropped: args.max_dropped,
            min_files: args.min_files,
        }
    }
}

const CORRELATE_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Examples:
  profkit correlate runs/ --binaries build/bin --dry-run
  profkit correlate runs/ --binaries build/bin --binaries /usr/lib/debug -o out.profdata

{all-args}{after-help}";

const CORRELATE_TEXT: &str = "\
Programs built with -mllvm -profile-correlate=binary or debug-info write raw profiles that
hold only counters; the functions are in their binaries or debug info. This command does the
same as profkit merge --binaries, and reports first which binary each profile belongs to.";

/// Arguments of `profkit correlate`.
#[derive(Debug, Args)]
#[command(help_template = CORRELATE_HELP, after_help = CORRELATE_TEXT)]
pub struct CorrelateArgs {
    #[command(flatten)]
    pub(super) merge: MergeArgs,
}
