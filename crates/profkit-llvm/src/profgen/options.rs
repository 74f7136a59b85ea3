//! The options of llvm-profgen 22 and 23, all in one table.
use crate::command_line::{Commands, OptionKind, OptionSpec, Tool, alias, hidden, later, option};
use OptionKind::{Choice, Flag, Float, Help, I32, Text, TextList, U32, U64, Version};

const TOP: Commands = Commands::TOP;

/// The command line of llvm-profgen.
pub const TOOL: Tool = Tool {
    name: super::NAME,
    options: OPTIONS,
    commands: &[],
    operands: |_| 0..=0,
    nearest: |_| NEAREST,
};

const fn required(
    name: &'static str,
    kind: OptionKind,
    value: &'static str,
    about: &'static str,
) -> OptionSpec {
    OptionSpec {
        required: true,
        ..option(name, kind, TOP, value, about)
    }
}

/// The words of `--format`.
pub const FORMATS: &[&str] = &["binary", "extbinary", "text", "gcc"];

/// All options of llvm-profgen 22 and 23 themselves, and those options of LLVM's libraries that change its profiles.
#[rustfmt::skip]
pub const OPTIONS: &[OptionSpec] = &[
    // The options that every LLVM tool has.
    option("color", Flag, TOP, "", "Colours in messages (default: if standard error is a terminal)"),
    option("help", Help, TOP, "", "Show the options"),
    alias("h", "help", Help, TOP),
    option("help-list", Help, TOP, "", "Show the options in one list"),
    hidden("help-hidden", Help, TOP, "", "Show all options"),
    hidden("help-list-hidden", Help, TOP, "", "Show all options in one list"),
    hidden("print-options", Flag, TOP, "", "Accepted, but has no effect"),
    hidden("print-all-options", Flag, TOP, "", "Accepted, but has no effect"),
    option("version", Version, TOP, "", "Show the version"),
    // Options for input and output. If several required options are missing, they are reported in the order of this
    // list.
    required("output", Text, "file", "Write the profile to this file (- is standard output)"),
    alias("o", "output", Text, TOP),
    required("binary", Text, "file", "The program or library that ran"),
    option("perfdata", Text, TOP, "file", "A recording of `perf record -b`"),
    alias("pd", "perfdata", Text, TOP),
    option("perfscript", Text, TOP, "file", "The output of `perf script --show-mmap-events -F ip,brstack`"),
    alias("ps", "perfscript", Text, TOP),
    option("unsymbolized-profile", Text, TOP, "file", "Counts by address, as --skip-symbolization writes them"),
    alias("up", "unsymbolized-profile", Text, TOP),
    option("llvm-sample-profile", Text, TOP, "file", "A finished sample profile, whose last steps are done again"),
    option("data-access-perftrace", Text, TOP, "file", "Memory accesses, for virtual tables (not supported)"),
    option("format", Choice(FORMATS), TOP, "value", "The encoding: extbinary (the default), text, binary, gcc"),
    later("etm", Text, TOP, "etm", "A trace of Arm ETM (LLVM 23; not supported)"),
    later("etm-trace-id", U32, TOP, "uint", "--etm: the id of the trace (LLVM 23)"),
    option("debug-binary", Text, TOP, "file", "Take the debug info from this file"),
    option("dwp", Text, TOP, "file", "The package of split debug info (default: BINARY.dwp)"),
    option("pid", U32, TOP, "uint", "Use only the samples of this process"),
    option("kernel", Flag, TOP, "", "The binary is a Linux kernel"),
    option("skip-symbolization", Flag, TOP, "", "Write counts by address instead of a profile"),
    option("use-offset", Flag, TOP, "", "Counts by address are distances from the first segment with code (the default), and not addresses"),
    option("use-first-loadable-segment-as-base", Flag, TOP, "", "Counts by address are distances from the first segment, with code or not"),
    // What is counted.
    option("ignore-stack-samples", Flag, TOP, "", "Ignore call chains: make a profile without calling contexts"),
    option("use-dwarf-correlation", Flag, TOP, "", "Use source lines even if the binary has pseudo probes"),
    option("load-function-from-symbol", Flag, TOP, "", "With pseudo probes: also take functions from the symbol table"),
    option("update-total-samples", Flag, TOP, "", "The total of a function is the sum of its lines"),
    hidden("fill-zero-for-all-funcs", Flag, TOP, "", "Give functions without samples lines with count 0"),
    option("infer-missing-frames", Flag, TOP, "", "Find the callers that tail calls removed (the default)"),
    option("max-search-depth", U32, TOP, "uint", "The largest number of tail calls in a row that is looked for (default: all)"),
    // Calling contexts.
    option("csprof-max-context-depth", I32, TOP, "int", "Keep this many innermost frames of a context (-1, the default: all)"),
    option("csprof-max-unsymbolized-context-depth", I32, TOP, "int", "Keep this many innermost frames of a context by address (-1, the default: all)"),
    option("csprof-max-cold-context-depth", U32, TOP, "uint", "Keep this many innermost frames of a cold context (default: 1)"),
    option("csprof-merge-cold-context", Flag, TOP, "", "Merge cold contexts (the default)"),
    option("trim-cold-profile", Flag, TOP, "", "Leave out functions and contexts below the threshold of cold counts"),
    hidden("compress-recursion", I32, TOP, "int", "Fold repeated frames of recursion up to this length (-1, the default: any)"),
    hidden("csspgo-preinliner", Flag, TOP, "", "Decide about inlining while the profile is made (the default)"),
    hidden("csspgo-preinliner-multiplier-for-previous-inlining", I32, TOP, "int", "The factor for calls that were inlined before, in percent (default: 100)"),
    hidden("csspgo-replay-preinline", Flag, TOP, "", "Repeat the inlining of the compiler"),
    hidden("use-context-cost-for-preinliner", Flag, TOP, "", "Take sizes of functions from the contexts in the binary (the default)"),
    hidden("gen-cs-nested-profile", Flag, TOP, "", "Write contexts as functions nested in each other (the default)"),
    hidden("generate-merged-base-profiles", Flag, TOP, "", "Also keep functions that are nested into their callers as functions of their own"),
    hidden("mark-all-context-preinlined", Flag, TOP, "", "Mark all contexts as to be inlined"),
    hidden("sample-profile-hot-inline-threshold", I32, TOP, "int", "The size up to which hot calls are inlined"),
    hidden("sample-profile-cold-inline-threshold", I32, TOP, "int", "The size up to which cold calls are inlined"),
    hidden("sample-profile-inline-limit-min", I32, TOP, "int", "The smallest limit of the size of a function with what is inlined into it"),
    hidden("sample-profile-inline-limit-max", I32, TOP, "int", "The largest limit of the size of a function with what is inlined into it"),
    hidden("sample-profile-inline-growth-limit", I32, TOP, "int", "The factor by which inlining may enlarge a function"),
    // Options for the summary and the encoding.
    hidden("profile-summary-cutoff-hot", I32, TOP, "int", "The share of all counts, in millionths, that hot functions account for (default: 990000)"),
    hidden("profile-summary-cutoff-cold", I32, TOP, "int", "The share of all counts, in millionths, that the counts that are not cold account for (default: 999999)"),
    hidden("profile-summary-hot-count", U64, TOP, "uint64_t", "The smallest hot count, instead of the one that --profile-summary-cutoff-hot gives"),
    hidden("profile-summary-cold-count", U64, TOP, "uint64_t", "The largest cold count, instead of the one that --profile-summary-cutoff-cold gives"),
    hidden("profile-summary-contextless", Flag, TOP, "", "Add up the contexts of a function in the summary (the default)"),
    hidden("profile-symbol-list-cutoff", U64, TOP, "ulong", "--llvm-sample-profile: read at most this many names of the symbol list"),
    hidden("profile-isfs", Flag, TOP, "", "--llvm-sample-profile: a text or binary profile is a profile of FS-AFDO"),
    hidden("populate-profile-symbol-list", Flag, TOP, "", "extbinary: write the symbol list, with all functions of the debug info"),
    hidden("use-md5", Flag, TOP, "", "extbinary: write MD5 hashes instead of names"),
    hidden("extbinary-write-vtable-type-prof", Flag, TOP, "", "extbinary: write virtual tables"),
    // What is printed.
    option("profile-density-cutoff-hot", I32, TOP, "int", "The share of all samples, in millionths, of the functions whose density counts (default: 990000)"),
    option("profile-density-threshold", Float, TOP, "number", "Warn if there are fewer samples per line (default: 50)"),
    option("show-density", Flag, TOP, "", "Print the samples per line of the hot functions"),
    option("show-detailed-warning", Flag, TOP, "", "Print each range of code that does not fit the binary"),
    option("show-mmap-events", Flag, TOP, "", "Print where files were mapped"),
    option("show-disassembly-only", Flag, TOP, "", "Print instructions (not supported)"),
    option("disassemble-functions", TextList, TOP, "string", "--show-disassembly-only: only these functions"),
    option("show-canonical-fname", Flag, TOP, "", "--show-disassembly-only: names without suffixes"),
    option("show-pseudo-probe", Flag, TOP, "", "--show-disassembly-only: print pseudo probes"),
    option("show-source-locations", Flag, TOP, "", "--show-disassembly-only: print source lines"),
    later("time-profgen", Flag, TOP, "", "Print the times of the steps (LLVM 23)"),
    later("target-triple", Text, TOP, "triple", "The target of the code, in place of that of the binary (LLVM 23; only the binary's own)"),
    hidden("x86-asm-syntax", Choice(&["att", "intel"]), TOP, "value", "--show-disassembly-only: the syntax of instructions"),
];

/// The options that can be suggested for an unknown option. LLVM's tool also suggests options of the compiler libraries
/// that it contains.
const NEAREST: &[&str] = &[
    "h",
    "o",
    "binary",
    "perfdata",
    "perfscript",
    "unsymbolized-profile",
    "llvm-sample-profile",
    "output",
    "format",
    "debug-binary",
    "dwp",
    "pid",
    "kernel",
    "skip-symbolization",
    "use-offset",
    "use-first-loadable-segment-as-base",
    "ignore-stack-samples",
    "use-dwarf-correlation",
    "load-function-from-symbol",
    "update-total-samples",
    "infer-missing-frames",
    "max-search-depth",
    "csprof-max-context-depth",
    "csprof-max-unsymbolized-context-depth",
    "csprof-max-cold-context-depth",
    "csprof-merge-cold-context",
    "trim-cold-profile",
    "csspgo-preinliner",
    "gen-cs-nested-profile",
    "use-md5",
    "populate-profile-symbol-list",
    "fill-zero-for-all-funcs",
    "profile-summary-cutoff-hot",
    "profile-summary-cutoff-cold",
    "profile-summary-hot-count",
    "profile-summary-cold-count",
    "profile-density-cutoff-hot",
    "profile-density-threshold",
    "show-density",
    "show-detailed-warning",
    "show-mmap-events",
    "show-disassembly-only",
    "disassemble-functions",
    "show-canonical-fname",
    "show-pseudo-probe",
    "show-source-locations",
    "data-access-perftrace",
    "color",
    "help",
    "help-list",
    "version",
];
