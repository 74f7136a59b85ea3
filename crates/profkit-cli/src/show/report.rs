//! What is printed, in order.
use super::args::Details;
use profkit_abi::indexed;
use profkit_analysis::faults::Faults;
use profkit_analysis::instr::{InstrFacts, InstrReader, SectionPlace, Totals};
use profkit_data::ids::BuildId;
use profkit_data::instr::{Record, TemporalTraces};
use profkit_data::summary::Summary;
use std::io;

/// Where names come from while records are printed.
pub struct Context<'a> {
    pub source: &'a InstrReader<'a>,
}

/// A record and what follows from it.
pub struct RecordView<'a> {
    pub record: &'a Record,
}

impl RecordView<'_> {
    /// `hot` or `warm` for a record whose first counter is such a marker.
    pub fn pseudo(&self) -> Option<&'static str> {
        match self.record.counts.first() {
            Some(&indexed::PSEUDO_HOT) => Some("hot"),
            Some(&indexed::PSEUDO_WARM) => Some("warm"),
            _ => None,
        }
    }
}

/// Header and sections of one profile.
pub struct Layout {
    /// Which profile of several in a file, from 1.
    pub index: Option<usize>,
    /// Where it begins.
    pub offset: u64,
    /// LLVM's name, absolute offset and value of each word.
    pub header: Option<Vec<(&'static str, u64, u64)>>,
    pub sections: Option<Vec<SectionPlace>>,
}

/// Prints each thing when it is called; nothing is gathered.
pub trait Printer {
    /// First: what the file is.
    fn file(&mut self, name: &str, size: u64, facts: &InstrFacts) -> io::Result<()>;
    /// Each profile's header and sections.
    fn layout(&mut self, layout: &Layout) -> io::Result<()>;
    /// Each record.
    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()>;
    /// After the last record.
    fn records_end(&mut self) -> io::Result<()>;
    fn traces(&mut self, traces: &TemporalTraces, context: &Context<'_>) -> io::Result<()>;
    fn binary_ids(&mut self, ids: &[BuildId]) -> io::Result<()>;
    /// Hottest functions with the sum of all.
    fn hot(&mut self, hot: &[(u128, Vec<u8>)], total: u128) -> io::Result<()>;
    fn summaries(
        &mut self,
        first: &Summary,
        second: Option<&Summary>,
        totals: &Totals,
        detailed: bool,
    ) -> io::Result<()>;
    /// Last.
    fn end(&mut self, faults: &Faults) -> io::Result<()>;
}
