//! The output of `profkit show`. This module has the parts of the output for instrumentation profiles, in the order in
//! which they are printed. The printer writes each part as soon as it is complete.
pub mod json;
mod rows;
pub mod sample;
pub mod text;

use crate::Grouping;
use profkit_abi::indexed;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::ContextSum;
use profkit_analysis::instr::{InstrFacts, InstrReader, SectionPlace, Totals};
use profkit_analysis::ranking::{FunctionOrder, Group, RankedFunction};
use profkit_data::ids::BuildId;
use profkit_data::instr::{Record, TemporalTraces};
use profkit_data::summary::Summary;
use std::io;

pub use rows::RowPrinter;

/// The details of a function that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Whether the function's counters are printed.
    pub counts: bool,
    /// For each value kind: whether the function's value profiles of this kind are printed.
    pub values: [bool; 3],
    /// Whether the function's MC/DC bitmap is printed.
    pub bitmaps: bool,
}

/// The data that the printing of a record needs besides the record: the source of the names.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The reader that has the names of functions.
    pub source: &'a InstrReader<'a>,
}

/// A record that is to be printed.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// The record.
    pub record: &'a Record,
}

impl RecordView<'_> {
    /// Returns `hot` or `warm` if the first counter of the record is a marker for a hot or warm function instead of a
    /// count.
    pub fn pseudo(&self) -> Option<&'static str> {
        match self.record.counts.first() {
            Some(&indexed::PSEUDO_HOT) => Some("hot"),
            Some(&indexed::PSEUDO_WARM) => Some("warm"),
            _ => None,
        }
    }
}

/// The header and the sections of one profile in a file.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The position of the profile among the profiles of the file, from 1. `None` if the file holds only one profile.
    pub index: Option<usize>,
    /// The offset of the profile in the file.
    pub offset: u64,
    /// For each word of the header: LLVM's name, the absolute offset, and the value. `None` if the header is not
    /// printed.
    pub header: Option<Vec<(&'static str, u64, u64)>>,
    /// The sections; `None` if they are not printed.
    pub sections: Option<Vec<SectionPlace>>,
}

/// A printer of the parts of the output. Each part is printed when its function is called; nothing is stored.
pub trait Printer {
    /// Describes the file. Called first.
    fn file(&mut self, name: &str, size: u64, facts: &InstrFacts) -> io::Result<()>;
    /// Prints the build ids of the programs that wrote the profile, and the LLVM releases that read it.
    fn origin(&mut self, ids: &[BuildId], readers: &Readers) -> io::Result<()>;
    /// Prints the header and the sections of a profile. Called once per profile in the file if the user asks for them.
    fn layout(&mut self, layout: &Layout) -> io::Result<()>;
    /// Prints a record. Called once per selected record.
    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()>;
    /// Ends the list of records.
    fn records_end(&mut self) -> io::Result<()>;
    /// Prints the temporal traces.
    fn traces(&mut self, traces: &TemporalTraces, context: &Context<'_>) -> io::Result<()>;
    /// Prints the build ids of the programs that wrote the profile.
    fn binary_ids(&mut self, ids: &[BuildId]) -> io::Result<()>;
    /// Prints how many of the hottest functions together reach certain shares of all counts.
    fn shares(&mut self, totals: &Totals) -> io::Result<()>;
    /// Prints the first functions of a sorted list, for example the hottest functions. `total` is the sum of all
    /// counts.
    fn hot(&mut self, hot: &[RankedFunction], order: FunctionOrder, total: u128) -> io::Result<()>;
    /// Prints groups of functions. `total` is the sum of all counts.
    fn groups(&mut self, groups: &[Group], by: Grouping<'_>, total: u128) -> io::Result<()>;
    /// Prints two summaries, one of the records without context sensitivity and one of the records with it, and then
    /// the totals of all records.
    fn summaries(
        &mut self,
        first: &Summary,
        second: Option<&Summary>,
        totals: &Totals,
        detailed: bool,
    ) -> io::Result<()>;
    /// Prints the sums of the heap profile that is in the same file.
    fn heap(&mut self, sum: ContextSum) -> io::Result<()>;
    /// Ends the output. Called last. The JSON output contains the faults; the text output does not, because the caller
    /// prints them.
    fn end(&mut self, faults: &Faults) -> io::Result<()>;
}
