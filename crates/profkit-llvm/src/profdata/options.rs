//! The options of llvm-profdata 22, all in one table.
use crate::command_line::{Commands, OptionKind, OptionSpec, Tool, alias, hidden, later, option};

/// `merge`.
pub const MERGE: Commands = Commands::number(1);
/// `show`.
pub const SHOW: Commands = Commands::number(2);
/// `order`.
pub const ORDER: Commands = Commands::number(3);
/// `overlap`.
pub const OVERLAP: Commands = Commands::number(4);
const TOP: Commands = Commands::TOP;
const MERGE_SHOW: Commands = MERGE.or(SHOW);
const MERGE_OVERLAP: Commands = MERGE.or(OVERLAP);
const MERGE_SHOW_OVERLAP: Commands = MERGE_SHOW.or(OVERLAP);
const SUBCOMMANDS: Commands = MERGE_SHOW_OVERLAP.or(ORDER);
const ALL: Commands = SUBCOMMANDS.or(TOP);

/// The command line of llvm-profdata.
pub const TOOL: Tool = Tool {
    name: super::NAME,
    options: OPTIONS,
    commands: &[
        (MERGE, "merge"),
        (ORDER, "order"),
        (OVERLAP, "overlap"),
        (SHOW, "show"),
    ],
    operands: |command| match command {
        MERGE => 0..=usize::MAX,
        OVERLAP => 2..=2,
        TOP => 0..=0,
        _ => 0..=1,
    },
    nearest: |command| match command {
        MERGE => MERGE_ORDER,
        SHOW => SHOW_ORDER,
        ORDER => ORDER_ORDER,
        OVERLAP => OVERLAP_ORDER,
        _ => &[],
    },
};

use OptionKind::{
    Choice, Flag, Float, Help, I32, LongU64, Member, Text, TextList, U32, U32List, U64, Version,
};

/// The title of the group of options that choose the form in which `merge` writes its output.
pub const FORMAT: &str = "Format of output profile";
/// The title of the group of options that choose the kind of profile that `merge` and `overlap` read.
pub const KIND: &str = "Profile kind:";
/// The title of the group of options that choose the kind of profile that `show` reads.
pub const SHOW_KIND: &str = "Profile kind supported by show:";

/// All options of llvm-profdata 22 itself. LLVM's tool also accepts the options of all compiler libraries that it is
/// linked with. Those options have no effect on profiles, and profkit does not know them
/// ([docs/formats/llvm-profdata.md]).
///
/// [docs/formats/llvm-profdata.md]: https://github.com/profkit/profkit/blob/main/docs/formats/llvm-profdata.md
#[rustfmt::skip]
pub const OPTIONS: &[OptionSpec] = &[
    // Input and output.
    option("output", Text, SUBCOMMANDS, "output", "Write to this file instead of standard output"),
    alias("o", "output", Text, SUBCOMMANDS),
    option("input-files", Text, MERGE, "string", "Also merge the files listed in this file, one [WEIGHT,]FILE per line (- is standard input)"),
    alias("f", "input-files", Text, MERGE),
    option("weighted-input", TextList, MERGE, "string", "Merge a file with a weight: WEIGHT,FILE"),
    option("remapping-file", Text, MERGE, "file", "Rename functions by this file, one 'old_symbol new_symbol' per line"),
    alias("r", "remapping-file", Text, MERGE),
    hidden("dump-input-file-list", Flag, MERGE, "", "Print the inputs with their weights, and merge nothing"),
    // Options for the kinds and the encodings of profiles.
    option("instr", Member(KIND), MERGE_OVERLAP, "", "Instrumentation profiles (the default)"),
    option("sample", Member(KIND), MERGE_OVERLAP, "", "Sample profiles"),
    option("instr", Member(SHOW_KIND), SHOW, "", "An instrumentation profile (the default)"),
    option("sample", Member(SHOW_KIND), SHOW, "", "A sample profile"),
    option("memory", Member(SHOW_KIND), SHOW, "", "A MemProf profile"),
    option("binary", Member(FORMAT), MERGE, "", "Binary; indexed for instrumentation profiles"),
    option("extbinary", Member(FORMAT), MERGE, "", "Extensible binary (the default); indexed for instrumentation profiles"),
    option("text", Member(FORMAT), MERGE, "", "Text"),
    option("gcc", Member(FORMAT), MERGE, "", "GCC's encoding of sample profiles"),
    // Merging.
    option("failure-mode", Choice(&["warn", "any", "all"]), MERGE, "value", "When bad inputs make the command fail: warn (never), any (if one is bad; the default), all (if all are bad)"),
    option("sparse", Flag, MERGE, "", "Leave out functions that never ran"),
    option("num-threads", U32, MERGE, "uint", "The number of threads that read inputs (0, the default: depends on cores and inputs)"),
    alias("j", "num-threads", U32, MERGE),
    option("function", Text, MERGE_SHOW_OVERLAP, "string", "merge: keep only functions whose name matches this regular expression; show: show functions whose name contains this text"),
    option("no-function", Text, MERGE, "string", "Leave out functions whose name matches this regular expression"),
    option("temporal-profile-trace-reservoir-size", U64, MERGE, "ulong", "Keep at most this many traces (default: 100)"),
    option("temporal-profile-max-trace-length", U64, MERGE, "ulong", "Keep at most this many functions of a trace (default: 10000)"),
    hidden("keep-vtable-symbols", Flag, MERGE, "", "Keep the names of virtual tables in the output"),
    hidden("write-prev-version", Flag, TOP, "", "Write indexed version 11, which LLVM 18 and 19 read"),
    // Correlation.
    option("debug-info", Text, MERGE_SHOW, "string", "Take functions and counters from this file's debug info"),
    option("binary-file", Text, MERGE, "string", "Take functions and counters from this unstripped program"),
    option("profiled-binary", Text, MERGE_SHOW, "string", "The program that wrote a raw MemProf profile"),
    option("max-debug-info-correlation-warnings", U32, MERGE_SHOW, "uint", "Print at most this many warnings while correlating (default: 5; 0 = all)"),
    option("debug-file-directory", TextList, TOP, "string", "Search this folder for programs and debug info by build id"),
    hidden("debuginfod", Flag, MERGE, "", "Ask debuginfod servers for programs by build id"),
    option("correlate", Choice(&["", "debug-info", "binary"]), TOP, "value", "What to read from programs that are found by build id: debug-info or binary"),
    // Sample profiles.
    option("prof-sym-list", Text, MERGE, "string", "Sample profiles: a file with symbols for the profile symbol list"),
    option("convert-sample-profile-layout", Choice(&["nest", "flat"]), MERGE, "value", "Sample profiles: change the layout to nest or flat"),
    option("sample-frame-depth-for-cold-context", U32, MERGE, "uint", "Sample profiles: the number of frames that cold contexts keep when they are merged"),
    hidden("sample-merge-cold-context", Flag, MERGE, "", "Sample profiles: merge cold contexts"),
    hidden("sample-trim-cold-context", Flag, MERGE, "", "Sample profiles: drop cold contexts"),
    hidden("compress-all-sections", Flag, MERGE, "", "Sample profiles: compress all sections of the extensible binary encoding"),
    hidden("drop-profile-symbol-list", Flag, MERGE, "", "Sample profiles: drop the profile symbol list"),
    hidden("gen-partial-profile", Flag, MERGE, "", "Sample profiles: mark the output as partial"),
    hidden("output-size-limit", U64, MERGE, "ulong", "Sample profiles: drop cold functions until the output is below this size"),
    hidden("split-layout", Flag, MERGE, "", "Sample profiles: separate sections for functions with and without inlined functions"),
    hidden("use-md5", Flag, MERGE, "", "Sample profiles: write MD5 hashes instead of names"),
    hidden("fs-discriminator-pass", Choice(&["Base", "Pass1", "Pass2", "Pass3", "PassLast"]), TOP, "value", "Sample profiles of FS-AFDO: keep the discriminator bits of the passes up to this one: Base, Pass1, Pass2, Pass3 or PassLast (the default: all bits)"),
    hidden("profile-isfs", Flag, TOP, "", "Sample profiles: read text and binary profiles as profiles of FS-AFDO"),
    hidden("extbinary-write-vtable-type-prof", Flag, TOP, "", "Sample profiles: write virtual tables (extensible binary)"),
    hidden("generate-merged-base-profiles", Flag, TOP, "", "Sample profiles: with --convert-sample-profile-layout=nest, also keep functions that are nested into their callers as functions of their own"),
    // Options for supplementing an instrumentation profile: a sample profile corrects its counts.
    hidden("supplement-instr-with-sample", Text, MERGE, "string", "Correct an instrumentation profile by this sample profile"),
    hidden("instr-prof-cold-threshold", U32, MERGE, "uint", "Supplementing: counts below this are cold"),
    hidden("suppl-min-size-threshold", U32, MERGE, "uint", "Supplementing: leave smaller functions unchanged"),
    hidden("zero-counter-threshold", Float, MERGE, "number", "Supplementing: functions with a larger share of zero counters are dropped"),
    // Heap profiles (MemProf).
    hidden("memprof-version", Choice(&["2", "3", "4"]), MERGE, "value", "Version of the MemProf section: 2, 3 or 4"),
    hidden("memprof-full-schema", Flag, MERGE, "", "MemProf: write all fields"),
    hidden("memprof-random-hotness", Flag, MERGE, "", "MemProf: write random hotness (not supported yet)"),
    hidden("memprof-random-hotness-seed", U32, MERGE, "uint", "MemProf: the seed of random hotness"),
    // Showing.
    option("all-functions", Flag, SHOW, "", "Show every function"),
    option("counts", Flag, SHOW, "", "Show the counters of shown functions"),
    option("ic-targets", Flag, SHOW, "", "Show the targets of indirect calls of shown functions"),
    option("memop-sizes", Flag, SHOW, "", "Show the sizes that memory intrinsics of shown functions were called with"),
    option("show-vtables", Flag, SHOW, "", "Show the virtual tables that shown functions used"),
    option("showcs", Flag, SHOW, "", "Show context-sensitive records instead of plain ones"),
    option("covered", Flag, SHOW, "", "Show only the names of functions that ran"),
    option("text", Flag, SHOW, "", "Show functions in the text format of profiles"),
    option("detailed-summary", Flag, SHOW, "", "Show how many blocks account for which share of all counts"),
    option("detailed-summary-cutoffs", U32List, SHOW, "800000,901000,999999", "Shares of the detailed summary, in millionths"),
    option("hot-func-list", Flag, SHOW, "", "Show the names of hot functions"),
    option("topn", U32, SHOW, "uint", "Show this many functions with the largest counts"),
    option("value-cutoff", U32, SHOW, "uint", "Leave out functions whose largest counter is below this"),
    option("list-below-cutoff", Flag, SHOW, "", "List only the functions that --value-cutoff leaves out"),
    option("binary-ids", Flag, SHOW, "", "Show the build ids of the programs"),
    option("profile-version", Flag, SHOW, "", "Show the version of the format"),
    option("temporal-profile-traces", Flag, SHOW, "", "Show the temporal traces"),
    option("show-format", Choice(&["text", "json", "yaml"]), SHOW, "value", "text (the default), json or yaml"),
    option("json", Flag, SHOW, "", "Sample profiles: the same as --show-format=json"),
    option("show-prof-sym-list", Flag, SHOW, "", "Sample profiles: show the profile symbol list"),
    option("show-sec-info-only", Flag, SHOW, "", "Sample profiles: show only the sections of the extensible binary encoding"),
    later("show-composite-info-only", Flag, SHOW, "", "Sample profiles: show only the blocks of composite sections (LLVM after release 23)"),
    // Comparing and ordering.
    option("value-cutoff", LongU64, OVERLAP, "ulong", "Show functions of the second profile whose largest count is above this"),
    option("similarity-cutoff", LongU64, OVERLAP, "ulong", "Sample profiles: show functions whose similarity is below this, in millionths"),
    option("cs", Flag, OVERLAP, "", "Compare context-sensitive counts"),
    option("num-test-traces", U32, ORDER, "uint", "Do not order by this many last traces, but rate the order by them"),
    // For all subcommands.
    option("color", Flag, TOP, "", "Colours in messages (default: if standard error is a terminal)"),
    hidden("profile-summary-cutoff-hot", I32, TOP, "int", "The share of all counts, in millionths, that hot functions account for (default: 990000)"),
    hidden("profile-summary-cutoff-cold", I32, TOP, "int", "Merging or trimming cold contexts: the share of all samples, in millionths, that the counts that are not cold account for (default: 999999)"),
    hidden("profile-summary-hot-count", U64, TOP, "uint64_t", "The smallest count of hot functions, instead of the one that --profile-summary-cutoff-hot gives"),
    hidden("profile-summary-cold-count", U64, TOP, "uint64_t", "The largest count of cold contexts, instead of the one that --profile-summary-cutoff-cold gives"),
    hidden("profile-summary-contextless", Flag, TOP, "", "Sample profiles with contexts: add up the contexts of a function in the summary (the default; =0 counts each context)"),
    hidden("profile-symbol-list-cutoff", U64, TOP, "ulong", "Sample profiles: read at most this many names of a file's symbol list"),
    option("help", Help, ALL, "", "Show the options"),
    alias("h", "help", Help, ALL),
    option("help-list", Help, ALL, "", "Show the options in one list"),
    hidden("help-hidden", Help, ALL, "", "Show all options"),
    hidden("help-list-hidden", Help, ALL, "", "Show all options in one list"),
    hidden("print-options", Flag, ALL, "", "Accepted, but has no effect"),
    hidden("print-all-options", Flag, ALL, "", "Accepted, but has no effect"),
    option("version", Version, TOP, "", "Show the version"),
];

// The orders in which LLVM 22 goes through its tables of options. If several names are equally near to a typed word,
// LLVM suggests the first one. The orders were found by running the tool with thousands of misspelt options. Names that
// are never equally near to any typed word may stand in any order.
const MERGE_ORDER: &[&str] = &[
    "h",
    "print-options",
    "help-list-hidden",
    "debuginfod",
    "split-layout",
    "keep-vtable-symbols",
    "memprof-full-schema",
    "instr",
    "sample",
    "profiled-binary",
    "binary",
    "extbinary",
    "text",
    "gcc",
    "num-threads",
    "r",
    "zero-counter-threshold",
    "dump-input-file-list",
    "drop-profile-symbol-list",
    "help-hidden",
    "help-list",
    "supplement-instr-with-sample",
    "print-all-options",
    "remapping-file",
    "no-function",
    "failure-mode",
    "sparse",
    "f",
    "j",
    "o",
    "temporal-profile-trace-reservoir-size",
    "compress-all-sections",
    "instr-prof-cold-threshold",
    "debug-info",
    "weighted-input",
    "sample-trim-cold-context",
    "memprof-random-hotness",
    "function",
    "temporal-profile-max-trace-length",
    "output-size-limit",
    "suppl-min-size-threshold",
    "memprof-random-hotness-seed",
    "sample-merge-cold-context",
    "max-debug-info-correlation-warnings",
    "gen-partial-profile",
    "convert-sample-profile-layout",
    "sample-frame-depth-for-cold-context",
    "use-md5",
    "help",
    "input-files",
    "memprof-version",
    "prof-sym-list",
    "output",
    "binary-file",
];
const SHOW_ORDER: &[&str] = &[
    "binary-ids",
    "instr",
    "sample",
    "memory",
    "h",
    "show-sec-info-only",
    "help-list-hidden",
    "value-cutoff",
    "print-options",
    "show-vtables",
    "all-functions",
    "debug-info",
    "counts",
    "showcs",
    "ic-targets",
    "profiled-binary",
    "max-debug-info-correlation-warnings",
    "function",
    "o",
    "covered",
    "json",
    "topn",
    "list-below-cutoff",
    "detailed-summary-cutoffs",
    "profile-version",
    "help-hidden",
    "memop-sizes",
    "detailed-summary",
    "text",
    "hot-func-list",
    "help",
    "help-list",
    "print-all-options",
    "temporal-profile-traces",
    "show-format",
    "show-prof-sym-list",
    "output",
];
const ORDER_ORDER: &[&str] = &[
    "print-options",
    "help-list-hidden",
    "h",
    "o",
    "help-hidden",
    "help",
    "help-list",
    "num-test-traces",
    "print-all-options",
    "output",
];
const OVERLAP_ORDER: &[&str] = &[
    "instr",
    "sample",
    "print-options",
    "value-cutoff",
    "help-list-hidden",
    "similarity-cutoff",
    "h",
    "o",
    "function",
    "help-hidden",
    "cs",
    "help-list",
    "print-all-options",
    "help",
    "output",
];
