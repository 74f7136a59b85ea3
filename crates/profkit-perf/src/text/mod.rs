//! Reads counts from texts: the output of `perf script`, the unsymbolized profiles of llvm-profgen, the texts of
//! google/autofdo and simpleperf, pre-aggregated samples for BOLT, and profkit's own files of addresses.
//!
//! docs/formats/samples-text.md describes them.
mod addresses;
mod preaggregated;
mod script;
mod sections;
mod words;

pub use addresses::write_addresses;

use crate::collect::Counts;
use profkit_data::{Error, ErrorKind, Result, Structure};

/// The kind of a text with samples or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// The output of `perf script`: mappings and branch stacks.
    Script,
    /// Counts of ranges and branches in the form of `llvm-profgen --skip-symbolization`.
    Unsymbolized,
    /// Counts of ranges, addresses and branches in the form that google/autofdo reads and simpleperf writes.
    Autofdo,
    /// Branches, ranges and samples in the form that `perf2bolt -pa` reads.
    PreAggregated,
    /// A file of addresses in the form of [`write_addresses`].
    Addresses,
}

impl TextKind {
    /// Recognises the kind of a text from its first lines. `None` if it is of no known kind.
    pub fn detect(text: &[u8]) -> Option<TextKind> {
        if text.starts_with(addresses::MAGIC) {
            return Some(TextKind::Addresses);
        }
        if let Some(kind) = sections::detect(text) {
            return Some(kind);
        }
        if preaggregated::detect(text) {
            return Some(TextKind::PreAggregated);
        }
        script::detect(text).then_some(TextKind::Script)
    }

    /// Returns the name that messages use for this kind.
    pub fn name(self) -> &'static str {
        match self {
            TextKind::Script => "output of perf script",
            TextKind::Unsymbolized => "unsymbolized profile of llvm-profgen",
            TextKind::Autofdo => "text of autofdo",
            TextKind::PreAggregated => "pre-aggregated samples",
            TextKind::Addresses => "addresses of profkit",
        }
    }
}

/// The options for reading texts.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TextOptions {
    /// Whether the places in unsymbolized profiles are addresses (`llvm-profgen --use-offset=0`). If false, they are
    /// distances from the first segment with code.
    pub absolute: bool,
    /// Whether samples with a call chain and a branch stack are also kept whole, and not only added to the sums
    /// ([`CollectOptions::stacks`](crate::collect::CollectOptions::stacks)).
    pub stacks: bool,
    /// Whether branches are also counted together with the code that ran after each, and how often they were mispredicted
    /// ([`CollectOptions::traces`](crate::collect::CollectOptions::traces)). Only the output of `perf script` and
    /// pre-aggregated samples tell these.
    pub traces: bool,
    /// The maximum memory in bytes for the samples that are kept whole
    /// ([`CollectOptions::context_memory`](crate::collect::CollectOptions::context_memory)).
    pub context_memory: Option<u64>,
}

/// Reads the counts of a text of any kind. The output of `perf script` is read by the threads of rayon's current pool.
///
/// # Errors
/// [`ErrorKind::UnrecognizedFormat`] if the text is of no known kind, [`ErrorKind::Malformed`] if a line cannot be read.
/// Single lines of `perf script` that cannot be read are counted instead
/// ([`damaged_lines`](crate::collect::CountLosses::damaged_lines)).
pub fn read_text(text: &[u8], options: TextOptions) -> Result<Counts> {
    let read = match TextKind::detect(text) {
        Some(TextKind::Addresses) => addresses::read(text),
        Some(kind @ (TextKind::Unsymbolized | TextKind::Autofdo)) => {
            sections::read(text, kind, options)
        }
        Some(TextKind::PreAggregated) => preaggregated::read(text, options),
        Some(TextKind::Script) => Ok(script::read(text, options)),
        None => Err(Error::new(
            ErrorKind::UnrecognizedFormat,
            "the text has neither samples nor counts that profkit can read",
        )
        .at(0)
        .expected(
            "the output of `perf script --show-mmap-events -F ip,brstack`, or an unsymbolized profile",
        )),
    };
    read.map_err(|error| error.within(Structure::SampleText))
}
