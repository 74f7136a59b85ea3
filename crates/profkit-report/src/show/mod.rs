//! The output of `profkit show`. Of an instrumentation profile, this is what stands before the records ([`Head`]), the
//! records, which are printed as they are read and not stored, and what stands after them ([`Rest`]).
pub mod json;
pub mod sample;
pub mod text;

use crate::Grouping;
use crate::rows::{GROUP_COLUMNS, RowForm, RowWriter, group_json};
use json::JsonNames;
use profkit_abi::indexed;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::ContextSum;
use profkit_analysis::instr::{InstrFacts, InstrReader, SectionPlace, Totals};
use profkit_analysis::names::Spelling;
use profkit_analysis::ranking::{FunctionOrder, Group, RankedFunction};
use profkit_data::ids::BuildId;
use profkit_data::instr::{Record, TemporalTraces};
use profkit_data::summary::Summary;
use std::io::{self, Write};

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

/// Returns `hot` or `warm` if the first counter of a record marks a hot or warm function instead of counting.
fn pseudo(record: &Record) -> Option<&'static str> {
    match record.counts.first() {
        Some(&indexed::PSEUDO_HOT) => Some("hot"),
        Some(&indexed::PSEUDO_WARM) => Some("warm"),
        _ => None,
    }
}

/// The header and the sections of one profile in a file.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The position of the profile among the profiles of the file, from 1. `None` if the file holds only one profile.
    pub index: Option<usize>,
    /// The offset of the profile in the file.
    pub offset: u64,
    /// The words of the header, if they are printed: LLVM's name, the absolute offset, the value.
    pub header: Option<Vec<(&'static str, u64, u64)>>,
    /// The sections; `None` if they are not printed.
    pub sections: Option<Vec<SectionPlace>>,
}

/// What stands before the records.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// What the file is.
    pub facts: &'a InstrFacts,
    /// The profiles of the file, if their headers or sections are asked for.
    pub layouts: Vec<Layout>,
}

/// What stands after the records: the parts that are asked for.
#[derive(Debug, Default)]
pub struct Rest<'a> {
    /// Whether records are asked for, even if none was printed.
    pub functions: bool,
    /// Groups of functions, what they are grouped by, and the sum of all counts.
    pub groups: Option<(&'a [Group], Grouping<'a>, u128)>,
    /// The build ids of the programs that wrote the profile, and the LLVM releases that read it.
    pub origin: Option<(Vec<BuildId>, Readers)>,
    /// How many temporal traces the profile has, and how many were seen when it was made; `None` if it has none, or if they
    /// are printed.
    pub trace_counts: Option<(u64, u64)>,
    /// The temporal traces.
    pub traces: Option<TemporalTraces>,
    /// The build ids of the programs that wrote the profile, as a part of its own.
    pub binary_ids: Option<Vec<BuildId>>,
    /// The summary of the records without context sensitivity, and of those with it.
    pub summaries: Option<(Summary, Option<Summary>)>,
    /// Whether the summaries have the table of shares.
    pub detailed: bool,
    /// Whether it is shown how many of the hottest functions together reach certain shares of all counts.
    pub shares: bool,
    /// The totals of all records.
    pub totals: Totals,
    /// The first functions of a sorted list, for example the hottest functions.
    pub hot: Option<(Vec<RankedFunction>, FunctionOrder)>,
    /// The sums of the heap profile that is in the same file.
    pub heap: Option<ContextSum>,
    /// The faults, which the JSON contains. The caller prints them beside the text.
    pub faults: Faults,
}

/// A printer of instrumentation profiles.
pub trait Printer {
    /// Prints what stands before the records. Called first.
    fn head(&mut self, head: &Head<'_>) -> io::Result<()>;
    /// Prints a record; `source` has the names of functions.
    fn record(
        &mut self,
        record: &Record,
        details: Details,
        source: &InstrReader<'_>,
    ) -> io::Result<()>;
    /// Prints what stands after the records. Called last.
    fn rest(&mut self, rest: &Rest<'_>, source: &InstrReader<'_>) -> io::Result<()>;
}

const COLUMNS: [&str; 8] = [
    "function",
    "demangled",
    "guid",
    "hash",
    "counters",
    "entry",
    "max",
    "sum",
];

/// Prints functions, or groups of functions, as rows. Other parts of the output cannot be rows, and are not printed.
#[derive(Debug)]
pub struct RowPrinter<W> {
    rows: RowWriter<'static, W>,
    names: JsonNames,
}

impl<W: Write> RowPrinter<W> {
    /// Makes a printer that writes to `out`: groups if `groups` is true, otherwise functions.
    pub fn new(out: W, form: RowForm, groups: bool, spelling: Spelling) -> Self {
        let columns: &[&str] = if groups { &GROUP_COLUMNS } else { &COLUMNS };
        RowPrinter {
            rows: RowWriter::new(out, form, columns),
            names: JsonNames(spelling),
        }
    }
}

impl<W: Write> Printer for RowPrinter<W> {
    fn head(&mut self, _: &Head<'_>) -> io::Result<()> {
        Ok(())
    }

    fn record(
        &mut self,
        record: &Record,
        details: Details,
        source: &InstrReader<'_>,
    ) -> io::Result<()> {
        let function = self.names.record(record, details, source);
        self.rows.row(&function)
    }

    fn rest(&mut self, rest: &Rest<'_>, _: &InstrReader<'_>) -> io::Result<()> {
        if let Some((groups, _, total)) = rest.groups {
            let mut groups = groups.iter();
            groups.try_for_each(|group| self.rows.row(&group_json(group, total)))?;
        }
        self.rows.end()
    }
}
