//! Arguments of `profkit show`.
use crate::correlate::args::BinaryArgs;
use crate::memprof::show::HeapArgs;
use crate::print::Format;
use clap::Args;
use profkit_analysis::selection::Selection;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Without options: what the file is, and a summary. What a damaged file still holds is shown, then what is wrong
with it.

Examples:
  profkit show default.profraw
  profkit show --hot 20 merged.profdata
  profkit show --function 'ns::parse(int)' --counts --targets merged.profdata
  profkit show --functions --format json merged.profdata | jq '.functions[] | select(.max > 1000)'
  profkit show --header --sections broken.profraw
  profkit show counters-only.profraw --binaries build/
  profkit show --function main samples.prof
  profkit show heap.memprofraw --binaries program
  profkit show --folded bytes heap.memprofraw --binaries program | inferno-flamegraph > heap.svg
  profkit show --flamegraph heap.svg heap.memprofraw --binaries program";

/// Arguments of `profkit show`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// Raw, indexed, text, sample or heap profile (.memprofraw, YAML), recognised by content; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Where the binaries of raw profiles without metadata, and of raw heap profiles, are
    #[command(flatten)]
    pub correlation: BinaryArgs,

    /// Show all functions
    #[arg(long)]
    pub functions: bool,

    /// Show the function of this name, mangled or demangled, with or without its file; may be repeated
    ///
    /// In an indexed profile a mangled name is looked up without reading the rest of the file.
    #[arg(long, value_name = "NAME")]
    pub function: Vec<String>,

    /// Show functions whose name, mangled or demangled, contains a text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub function_contains: Vec<String>,

    /// Show the counters of functions
    #[arg(long)]
    pub counts: bool,

    /// Show the targets of indirect calls
    #[arg(long)]
    pub targets: bool,

    /// Show the sizes given to memory intrinsics such as memcpy
    #[arg(long)]
    pub memop_sizes: bool,

    /// Show the virtual tables seen at virtual calls
    #[arg(long)]
    pub vtables: bool,

    /// Show MC/DC bitmaps
    #[arg(long)]
    pub bitmaps: bool,

    /// Show temporal traces: functions in the order of their first call
    #[arg(long)]
    pub traces: bool,

    /// Show the build ids of the programs that were run
    #[arg(long)]
    pub binary_ids: bool,

    /// Show every field of the header with its offset (raw and indexed)
    #[arg(long)]
    pub header: bool,

    /// Show every section with its offset and size (raw and indexed)
    #[arg(long)]
    pub sections: bool,

    /// Show the N functions with the largest sums of counters, and their shares
    #[arg(long, value_name = "N")]
    pub hot: Option<usize>,

    /// Show how few counters make up which share of all counts
    #[arg(long)]
    pub detailed_summary: bool,

    /// Show the list of the program's symbols (sample profiles)
    #[arg(long)]
    pub symbols: bool,

    /// Print names as the profile has them
    #[arg(long)]
    pub mangled: bool,

    /// Options of heap profiles.
    #[command(flatten)]
    pub heap: HeapArgs,

    /// Output format; docs/formats/show-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Which details of a function are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    pub counts: bool,
    /// By value kind.
    pub values: [bool; 3],
    pub bitmaps: bool,
}

impl ShowArgs {
    /// The functions that are printed.
    pub fn selection(&self) -> Selection {
        Selection {
            all: self.functions || self.shows_functions() && !self.filters(),
            names: self.function.clone(),
            parts: self.function_contains.clone(),
        }
    }

    /// Whether only some functions are asked for.
    pub fn filters(&self) -> bool {
        !self.function.is_empty() || !self.function_contains.is_empty()
    }

    fn asks_for_details(&self) -> bool {
        self.counts || self.targets || self.memop_sizes || self.vtables || self.bitmaps
    }

    /// Whether functions are printed at all: asking for a detail asks for the functions.
    pub fn shows_functions(&self) -> bool {
        self.functions || self.filters() || self.asks_for_details()
    }

    /// The details that were asked for; of functions that were asked for by name, all if none was.
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

    /// Whether the answer needs all records to be read, whatever else it has.
    pub fn needs_all_records(&self) -> bool {
        !self.filters()
            || self.functions
            || !self.function_contains.is_empty()
            || self.hot.is_some()
            || self.detailed_summary
    }

    /// Whether the summary is printed: not under a selection of functions, unless it was asked for.
    pub fn shows_summary(&self) -> bool {
        !self.filters() || self.detailed_summary
    }
}
