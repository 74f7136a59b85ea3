//! Tables of MIP profiles.
use super::{ColumnData, NoTable, Property, SharedTexts, Table, TableKind, texts};
use profkit_analysis::mip_numbers::MipNumbers;
use profkit_analysis::names::printable;
use profkit_analysis::order::by_mean;
use profkit_data::mip::MipProfile;

const HAS: &[TableKind] = &[TableKind::Functions, TableKind::Counters, TableKind::Traces];

impl Table {
    /// Makes a table of a MIP profile. A split function counts as one function with all its parts.
    ///
    /// # Errors
    /// If MIP profiles have no such table.
    pub fn of_mip(file: &str, kind: TableKind, profile: &MipProfile) -> Result<Self, NoTable> {
        let mut table = Table::new(file, kind, "mip");
        let runs = Property::Text(profile.runs.to_string());
        table.properties.push(("runs", runs));
        match kind {
            TableKind::Functions => table.called(profile),
            TableKind::Counters => table.blocks(profile),
            TableKind::Traces => table.first_calls(profile),
            _ => {
                return Err(NoTable {
                    table: kind,
                    profile: "a MIP profile",
                    has: HAS,
                });
            }
        }
        Ok(table)
    }

    fn called(&mut self, profile: &MipProfile) {
        let mut files = SharedTexts::default();
        let (mut numbers, mut lines) = ([(); 4].map(|()| Vec::new()), Vec::new());
        let (mut hashes, mut calls, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        let (all, mut heat) = (MipNumbers::of(profile), SharedTexts::default());
        let [name, demangled] = texts::spelled(|symbol| {
            for function in profile.functions.iter().filter(|one| !one.is_part()) {
                symbol(&function.name);
                let covered = function.blocks.iter().filter(|block| block.runs > 0);
                hashes.push(function.signature.into());
                let (count, at_least) = all.calls(function).unzip();
                calls.push(count);
                bounds.push(at_least.map(u64::from));
                heat.push(&all.heat(function).unwrap_or_default().to_string());
                let row = [
                    function.blocks.len() as u64,
                    covered.count() as u64,
                    function.called_runs,
                    function.raw_runs,
                ];
                for (column, number) in numbers.iter_mut().zip(row) {
                    column.push(number);
                }
                let frame = profile.tables.frames(function.location).next();
                let path = frame.as_ref().and_then(|frame| frame.path.as_deref());
                files.push(&printable(path.unwrap_or_default()));
                lines.push(
                    frame
                        .map(|frame| u64::from(frame.line))
                        .filter(|&line| line > 0),
                );
            }
        });
        self.push("function", name);
        self.push("demangled", demangled);
        self.push_hashes("hash", hashes);
        let names = ["blocks", "covered_blocks", "called_runs", "raw_runs"];
        for (name, column) in names.into_iter().zip(numbers) {
            self.push(name, ColumnData::Numbers(column));
        }
        self.push("calls", ColumnData::SomeNumbers(calls));
        self.push("calls_at_least", ColumnData::SomeNumbers(bounds));
        if all.has_calls {
            self.push("heat", ColumnData::Shared(heat));
        }
        self.push("file", ColumnData::Shared(files));
        self.push("line", ColumnData::SomeNumbers(lines));
    }

    fn blocks(&mut self, profile: &MipProfile) {
        let mut functions = SharedTexts::default();
        let (mut hashes, mut indexes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for function in &profile.functions {
            let number = functions.texts.number(&printable(&function.name));
            for (index, block) in (0..).zip(&function.blocks) {
                functions.push_number(number);
                hashes.push(function.signature.into());
                indexes.push(index);
                counts.push(block.runs);
            }
        }
        self.push("function", ColumnData::Shared(functions));
        self.push_hashes("hash", hashes);
        self.push("index", ColumnData::Numbers(indexes));
        self.push("count", ColumnData::Numbers(counts));
    }

    fn first_calls(&mut self, profile: &MipProfile) {
        let mut functions = SharedTexts::default();
        let mut positions = Vec::new();
        let ordered = by_mean(profile).into_iter();
        let ordered = ordered.map(|id| &profile.functions[id]);
        for (position, function) in (0..).zip(ordered.filter(|one| one.order_runs > 0)) {
            positions.push(position);
            functions.push(&printable(&function.name));
        }
        let rows = positions.len();
        self.push("trace", ColumnData::Numbers(vec![0; rows]));
        self.push("weight", ColumnData::Numbers(vec![profile.runs; rows]));
        self.push("position", ColumnData::Numbers(positions));
        self.push("function", ColumnData::Shared(functions));
    }
}
