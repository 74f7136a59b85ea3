//! The parts of the output of `profkit show`, in the order in which they are printed.
use super::args::Details;
use profkit_abi::indexed;
use profkit_analysis::faults::Faults;
use profkit_analysis::instr::{InstrFacts, InstrReader, SectionPlace, Totals};
use profkit_data::ids::BuildId;
use profkit_data::instr::{Record, TemporalTraces};
use profkit_data::summary::Summary;
use std::io;

/// The data that are needed to print a record, apart from the record itself: the source of names.
pub struct Context<'a> {
    pub source: &'a InstrReader<'a>,
}

/// A record that is to be printed.
pub struct RecordView<'a> {
    pub record: &'a Record,
}

impl RecordView<'_> {
    /// `hot` or `warm`, if the first counter of the record is such a marker instead of a count.
    pub fn pseudo(&self) -> Option<&'static str> {
        match self.record.counts.first() {
            Some(&indexed::PSEUDO_HOT) => Some("hot"),
            Some(&indexed::PSEUDO_WARM) => Some("warm"),
            _ => None,
        }
    }
}

/// The header and the sections of one profile.
pub struct Layout {
    /// The number of the profile, from 1, if a file holds several.
    pub index: Option<usize>,
    /// The offset of the profile in the file.
    pub offset: u64,
    /// LLVM's name, the absolute offset and the value of each word.
    pub header: Option<Vec<(&'static str, u64, u64)>>,
    pub sections: Option<Vec<SectionPlace>>,
}

/// Prints the parts of the output. Each part is printed when its function is called; nothing is stored.
pub trait Printer {
    /// Called first: describes the file.
    fn file(&mut self, name: &str, size: u64, facts: &InstrFacts) -> io::Result<()>;
    /// Called for each profile in the file.
    fn layout(&mut self, layout: &Layout) -> io::Result<()>;
    /// Called for each record.
    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()>;
    /// Called after the last record.
    fn records_end(&mut self) -> io::Result<()>;
    fn traces(&mut self, traces: &TemporalTraces, context: &Context<'_>) -> io::Result<()>;
    fn binary_ids(&mut self, ids: &[BuildId]) -> io::Result<()>;
    /// Prints the hottest functions. `total` is the sum of all counts.
    fn hot(&mut self, hot: &[(u128, Vec<u8>)], total: u128) -> io::Result<()>;
    fn summaries(
        &mut self,
        first: &Summary,
        second: Option<&Summary>,
        totals: &Totals,
        detailed: bool,
    ) -> io::Result<()>;
    /// Called last.
    fn end(&mut self, faults: &Faults) -> io::Result<()>;
}
