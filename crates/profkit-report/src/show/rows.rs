//! The functions of an instrumentation profile as rows.
use super::json::JsonNames;
use super::{Context, Details, Layout, Printer, RecordView};
use crate::Grouping;
use crate::rows::{GROUP_COLUMNS, RowForm, RowWriter, group_json};
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::ContextSum;
use profkit_analysis::instr::{InstrFacts, Totals};
use profkit_analysis::names::Spelling;
use profkit_analysis::ranking::{FunctionOrder, Group, RankedFunction};
use profkit_data::ids::BuildId;
use profkit_data::instr::TemporalTraces;
use profkit_data::summary::Summary;
use std::io::{self, Write};

const COLUMNS: [&str; 8] = [
    "name",
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
    fn file(&mut self, _: &str, _: u64, _: &InstrFacts) -> io::Result<()> {
        Ok(())
    }

    fn origin(&mut self, _: &[BuildId], _: &Readers) -> io::Result<()> {
        Ok(())
    }

    fn layout(&mut self, _: &Layout) -> io::Result<()> {
        Ok(())
    }

    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()> {
        let function = self.names.record(view, details, context);
        self.rows.row(&function)
    }

    fn records_end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn traces(&mut self, _: &TemporalTraces, _: &Context<'_>) -> io::Result<()> {
        Ok(())
    }

    fn binary_ids(&mut self, _: &[BuildId]) -> io::Result<()> {
        Ok(())
    }

    fn shares(&mut self, _: &Totals) -> io::Result<()> {
        Ok(())
    }

    fn hot(&mut self, _: &[RankedFunction], _: FunctionOrder, _: u128) -> io::Result<()> {
        Ok(())
    }

    fn groups(&mut self, groups: &[Group], _: Grouping<'_>, total: u128) -> io::Result<()> {
        let mut groups = groups.iter();
        groups.try_for_each(|group| self.rows.row(&group_json(group, total)))
    }

    fn summaries(
        &mut self,
        _: &Summary,
        _: Option<&Summary>,
        _: &Totals,
        _: bool,
    ) -> io::Result<()> {
        Ok(())
    }

    fn heap(&mut self, _: ContextSum) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Faults) -> io::Result<()> {
        self.rows.end()
    }
}
