//! Arguments of `profkit show`.
use crate::choice::{choice, choices};
use crate::correlate::args::BinaryArgs;
use crate::exit::Result;
use crate::memprof::show::HeapArgs;
use crate::print::{Format, ROW_FORMATS};
use crate::spelling::patterns;
use clap::Args;
use profkit_analysis::heap::ContextOrder;
use profkit_analysis::names::Spelling;
use profkit_analysis::ranking::{FunctionOrder, GroupBy};
use profkit_analysis::selection::Selection;
use profkit_report::show::Details;
use profkit_report::typed::between;
use std::path::PathBuf;

const MOST_ROWS: usize = 1_000_000_000;

const MOST_FUNCTIONS: usize = 10;

const EXAMPLES: &str = "\
Without options, this shows what the file is and which LLVM releases read it, how much of the
program ran, and the functions (or heap contexts) with the largest numbers. Of a damaged file it shows the
sound parts, and then the errors.

Examples:
  profkit show default.profraw
  profkit show --top 20 merged.profdata
  profkit show --function 'ns::parse(int)' --counts --targets merged.profdata
  profkit show --sort entry --top 20 merged.profdata
  profkit show --by namespace merged.profdata
  profkit show --by file --binaries program merged.profdata
  profkit show --format csv merged.profdata > functions.csv
  profkit show --functions --format json merged.profdata | jq '.functions[] | select(.max > 1000)'
  profkit show --header --sections broken.profraw
  profkit show counters-only.profraw --binaries build/
  profkit show --function main samples.prof
  profkit show perf.data --binaries build/
  profkit show --flamegraph flame.svg perf.data
  profkit show heap.memprofraw --binaries program
  profkit show --folded bytes heap.memprofraw --binaries program | inferno-flamegraph > heap.svg
  profkit show --flamegraph heap.svg heap.memprofraw --binaries program";

/// An order of functions or contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Functions(FunctionOrder),
    Contexts(ContextOrder),
}

choices! {
    /// The words of `--sort`.
    pub SORT: Sort =
        "sum" => Sort::Functions(FunctionOrder::Sum), "Functions: the largest sum of counters or samples first";
        "max" => Sort::Functions(FunctionOrder::Max), "Functions: the largest counter, or the hottest line, first";
        "entry" => Sort::Functions(FunctionOrder::Entry),
            "Functions: the largest first counter (calls, if the profile counts them), or samples of the entry, first";
        "name" => Sort::Functions(FunctionOrder::Name), "Functions: by name";
        "bytes" => Sort::Contexts(ContextOrder::Bytes), "Contexts: most bytes first";
        "allocations" => Sort::Contexts(ContextOrder::Allocations), "Contexts: most allocations first";
        "short-life" => Sort::Contexts(ContextOrder::ShortLife), "Contexts: shortest average lifetime first";
        "cold" => Sort::Contexts(ContextOrder::Cold), "Contexts: fewest accesses per byte and second first";
}

choices! {
    /// The words of `--by`.
    pub BY: GroupBy =
        "file" => GroupBy::File, "Source file";
        "crate" => GroupBy::Crate, "Rust crate";
        "namespace" => GroupBy::Namespace, "C++ namespace or Rust module, with the types in it";
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// A profile: raw, indexed, text, sample, heap (.memprofraw, YAML) or MIP profile, or a recording of perf, recognised by
    /// content; - is standard input. Several files, folders and archives are added up
    #[arg(value_name = "FILE", required_unless_present = "input_files")]
    pub files: Vec<PathBuf>,

    /// Add up the profiles in this list too: a path per line, as for profkit merge; may be repeated
    #[arg(short = 'f', long, value_name = "LIST")]
    pub input_files: Vec<PathBuf>,

    /// Show all functions
    #[arg(long)]
    pub functions: bool,

    /// Show the function with this name, mangled or demangled, with or without its file name; may be repeated
    ///
    /// In an indexed profile a mangled name is looked up without reading the rest of the file.
    #[arg(long, value_name = "NAME")]
    pub function: Vec<String>,

    /// Show functions whose name, mangled or demangled, contains this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub function_contains: Vec<String>,

    /// Show functions whose name, mangled or demangled, matches this regular expression; may be repeated
    #[arg(long, value_name = "REGEX")]
    pub function_regex: Vec<String>,

    /// Show the counters of functions
    #[arg(long)]
    pub counts: bool,

    /// Show the targets of indirect calls
    #[arg(long)]
    pub targets: bool,

    /// Show the sizes that memory intrinsics such as memcpy were called with
    #[arg(long)]
    pub memop_sizes: bool,

    /// Show the virtual tables that virtual calls used
    #[arg(long)]
    pub vtables: bool,

    /// Show MC/DC bitmaps
    #[arg(long)]
    pub bitmaps: bool,

    /// Show temporal traces: functions in the order of their first call
    #[arg(long)]
    pub traces: bool,

    /// Show the build ids of the programs that wrote the profile
    #[arg(long)]
    pub binary_ids: bool,

    /// Show every field of the header with its offset (raw, indexed and raw heap profiles)
    #[arg(long)]
    pub header: bool,

    /// Show every section with its offset and size (raw, indexed and raw heap profiles)
    #[arg(long)]
    pub sections: bool,

    /// Show the N functions with the largest sums of counters or samples, or the first N contexts of a heap profile
    #[arg(long, alias = "hot", value_name = "N", value_parser = between(1, MOST_ROWS))]
    pub top: Option<usize>,

    /// Sort the functions, or the contexts of a heap profile
    #[arg(long, value_parser = choice(SORT), value_name = "ORDER")]
    pub sort: Option<Sort>,

    /// Show sums for each source file, Rust crate, or namespace (C++ namespaces and Rust modules, with the types in them)
    ///
    /// The group of a function comes from its name. Profiles name the source files of local functions only, but raw
    /// heap profiles name those of all functions that allocate. With --by file, --binaries names programs whose debug
    /// info gives the source files of all other functions.
    #[arg(long, value_parser = choice(BY), value_name = "WHAT")]
    pub by: Option<GroupBy>,

    /// Show the instances of a Rust function separately, with the hashes of their names
    ///
    /// Without this option, instances of a generic function whose names differ only in the hash share one row in the
    /// list of the largest functions. JSON, CSV and --functions always have each instance.
    #[arg(long, conflicts_with = "mangled")]
    pub keep_hashes: bool,

    /// Show how many of the hottest counters together have certain shares of all counts, such as 50% and 99%
    #[arg(long)]
    pub detailed_summary: bool,

    /// Show the list of the program's symbols (sample profiles)
    #[arg(long)]
    pub symbols: bool,

    /// Print mangled names, as they are in the profile
    #[arg(long)]
    pub mangled: bool,

    /// Output format; docs/formats/show-json.md describes the JSON. csv and jsonl have a row per function, context, or
    /// group of --by
    #[arg(long, value_parser = choice(ROW_FORMATS), default_value = "text", value_name = "FORMAT")]
    pub format: Format,

    #[command(flatten)]
    pub heap: HeapArgs,

    #[command(flatten)]
    pub correlation: BinaryArgs,
}

impl ShowArgs {
    pub fn selection(&self) -> Result<Selection> {
        Ok(Selection {
            all: self.functions || (self.shows_functions() || self.by.is_some()) && !self.filters(),
            names: self.function.clone(),
            parts: self.function_contains.clone(),
            patterns: patterns("--function-regex", &self.function_regex)?,
        })
    }

    pub fn filters(&self) -> bool {
        !self.function.is_empty()
            || !self.function_contains.is_empty()
            || !self.function_regex.is_empty()
    }

    fn asks_for_details(&self) -> bool {
        self.counts || self.targets || self.memop_sizes || self.vtables || self.bitmaps
    }

    /// Whether functions are printed. They are also printed if an option asks for a detail such as --counts, or if the
    /// output has rows, because each row is a function.
    pub fn shows_functions(&self) -> bool {
        self.by.is_none() && (self.asks_for_functions() || self.format.rows().is_some())
    }

    fn asks_for_functions(&self) -> bool {
        self.functions || self.filters() || self.asks_for_details()
    }

    pub fn order(&self) -> Option<FunctionOrder> {
        match self.sort? {
            Sort::Functions(order) => Some(order),
            Sort::Contexts(_) => None,
        }
    }

    pub fn spelling(&self) -> Spelling {
        if self.keep_hashes {
            Spelling::WithHashes
        } else {
            Spelling::from(self.mangled)
        }
    }

    /// The details to print. If functions are selected by name and no option for a detail is given, all details are
    /// printed.
    pub fn details(&self) -> Details {
        let all = !self.function.is_empty() && !self.asks_for_details();
        Details {
            counts: all || self.counts,
            values: [
                all || self.targets,
                all || self.memop_sizes,
                all || self.vtables,
            ],
            bitmaps: all || self.bitmaps,
        }
    }

    pub fn needs_all_records(&self) -> bool {
        !self.filters()
            || self.functions
            || !self.function_contains.is_empty()
            || !self.function_regex.is_empty()
            || self.top.is_some()
            || self.detailed_summary
    }

    /// Whether the overview is shown, because no option asks for a particular part of the profile.
    pub fn is_overview(&self) -> bool {
        self.fits_all_kinds() && self.by.is_none() && self.format.rows().is_none()
    }

    /// Whether the options ask only for parts of the output that all kinds of profiles have.
    pub fn fits_all_kinds(&self) -> bool {
        !self.asks_for_functions()
            && !self.traces
            && !self.binary_ids
            && !self.header
            && !self.sections
            && !self.symbols
    }

    /// The number of functions in the list of the hottest functions; `None` if the list is not shown.
    pub fn most_functions(&self) -> Option<usize> {
        let overview = self.is_overview() || self.sort.is_some() && !self.shows_functions();
        self.top.or(overview.then_some(MOST_FUNCTIONS))
    }

    /// Whether the summary is printed. If functions are selected, it is printed only with --detailed-summary.
    pub fn shows_summary(&self) -> bool {
        (!self.filters() && self.by.is_none()) || self.detailed_summary
    }
}
