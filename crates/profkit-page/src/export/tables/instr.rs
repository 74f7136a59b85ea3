//! Tables of instrumentation profiles.
use super::{ColumnData, NoTable, SharedTexts, Table, TableKind, clamped, texts};
use profkit_abi::value_kind;
use profkit_analysis::faults::Faults;
use profkit_analysis::instr::{InstrFacts, InstrReader, Totals, numbers};
use profkit_analysis::names::printable;
use profkit_analysis::ranking::{FunctionOrder, Ranking};
use profkit_data::ids::NameRef;
use profkit_data::instr::{InstrSource, Record};
use profkit_data::summary::Summary;

const HAS: &[TableKind] = &[
    TableKind::Functions,
    TableKind::Counters,
    TableKind::Values,
    TableKind::Traces,
];

/// The denominator of cutoffs, which the summary stores in millionths.
const MILLION: f64 = 1_000_000.0;

impl Table {
    /// Makes a table of an instrumentation profile. Records that cannot be read are left out; the errors are returned.
    ///
    /// # Errors
    /// If instrumentation profiles have no such table.
    pub fn of_instr(
        file: &str,
        kind: TableKind,
        reader: &mut InstrReader<'_>,
    ) -> Result<(Self, Faults), NoTable> {
        let facts = InstrFacts::of(reader);
        let mut table = Table::new(file, kind, "instrumentation");
        table
            .properties
            .push(("instrumentation", facts.instrumentation.to_string()));
        let mut faults = match kind {
            TableKind::Functions => table.functions(reader),
            TableKind::Counters => table.counters(reader),
            TableKind::Values => table.values(reader),
            TableKind::Traces => table.traces(reader),
            _ => {
                return Err(NoTable {
                    table: kind,
                    profile: "an instrumentation profile",
                    has: HAS,
                });
            }
        };
        let ids = faults.or_default(reader.binary_ids());
        table.push_ids(&ids);
        Ok((table, faults))
    }

    fn functions(&mut self, reader: &mut InstrReader<'_>) -> Faults {
        let mut totals = Totals::new(Ranking::new(FunctionOrder::Sum, 0, false), false);
        let (mut guids, mut hashes) = (Vec::new(), Vec::new());
        let (mut counters, mut entries, mut sums, mut most) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (faults, [name, demangled]) = texts::spelled(|symbol| {
            records(reader, |_, record| {
                totals.add(record);
                symbol(&record.name);
                guids.push(record.name_ref.0);
                hashes.push(record.func_hash.0);
                // A record with a marker for hot or warm instead of counters has no counts.
                let has_counts = !record.is_pseudo();
                counters.push(if has_counts {
                    record.counts.len() as u64
                } else {
                    0
                });
                let numbers = numbers(record);
                entries.push(has_counts.then_some(numbers.entry));
                sums.push(has_counts.then_some(clamped(numbers.sum)));
                most.push(has_counts.then_some(numbers.max));
            })
        });
        let (summary, _) = totals.finish();
        let shares = most
            .iter()
            .map(|most| share(&summary, most.unwrap_or(0)))
            .collect();
        self.push("name", name);
        self.push("demangled", demangled);
        self.push("guid", ColumnData::Numbers(guids));
        self.push("hash", ColumnData::Numbers(hashes));
        self.push("counters", ColumnData::Numbers(counters));
        self.push("entry", ColumnData::SomeNumbers(entries));
        self.push("max", ColumnData::SomeNumbers(most));
        self.push("sum", ColumnData::SomeNumbers(sums));
        self.push("hot_percentile", ColumnData::Fractions(shares));
        faults
    }

    fn counters(&mut self, reader: &mut InstrReader<'_>) -> Faults {
        let mut functions = SharedTexts::default();
        let (mut hashes, mut indexes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let faults = records(reader, |_, record| {
            if record.is_pseudo() {
                return;
            }
            let function = functions.texts.number(&symbol(record));
            for (index, &count) in (0..).zip(&record.counts) {
                functions.push_number(function);
                hashes.push(record.func_hash.0);
                indexes.push(index);
                counts.push(count);
            }
        });
        self.push("function", ColumnData::Shared(functions));
        self.push("hash", ColumnData::Numbers(hashes));
        self.push("index", ColumnData::Numbers(indexes));
        self.push("count", ColumnData::Numbers(counts));
        faults
    }

    fn values(&mut self, reader: &mut InstrReader<'_>) -> Faults {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let (mut hashes, mut sites, mut values, mut counts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let faults = records(reader, |reader, record| {
            let [functions, kinds, targets] = &mut texts;
            for (kind, of_kind) in record.values.kinds() {
                for (site, entries) in (0..).zip(of_kind.sites()) {
                    for entry in entries {
                        functions.push(&symbol(record));
                        kinds.push(kind_text(kind));
                        let target = (kind != value_kind::MEM_OP_SIZE)
                            .then(|| reader.name_of(NameRef(entry.value)))
                            .flatten();
                        targets.push(&printable(target.unwrap_or_default()));
                        hashes.push(record.func_hash.0);
                        sites.push(site);
                        values.push(entry.value);
                        counts.push(entry.count);
                    }
                }
            }
        });
        let [functions, kinds, targets] = texts;
        self.push("function", ColumnData::Shared(functions));
        self.push("hash", ColumnData::Numbers(hashes));
        self.push("kind", ColumnData::Shared(kinds));
        self.push("site", ColumnData::Numbers(sites));
        self.push("value", ColumnData::Numbers(values));
        self.push("target", ColumnData::Shared(targets));
        self.push("count", ColumnData::Numbers(counts));
        faults
    }

    fn traces(&mut self, reader: &mut InstrReader<'_>) -> Faults {
        let mut faults = records(reader, |_, _| {});
        let traces = faults.or_default(reader.temporal_traces());
        let mut functions = SharedTexts::default();
        let (mut numbers, mut weights, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, trace) in (0..).zip(&traces.traces) {
            for (position, &function) in (0..).zip(&trace.functions) {
                numbers.push(number);
                weights.push(trace.weight);
                positions.push(position);
                match reader.name_of(function) {
                    Some(name) => functions.push(&printable(name)),
                    None => functions.push(&function.to_string()),
                }
            }
        }
        self.push("trace", ColumnData::Numbers(numbers));
        self.push("weight", ColumnData::Numbers(weights));
        self.push("position", ColumnData::Numbers(positions));
        self.push("function", ColumnData::Shared(functions));
        faults
    }
}

/// Calls `each` for every record that can be read, and returns the errors of the records that cannot.
fn records(
    reader: &mut InstrReader<'_>,
    mut each: impl FnMut(&InstrReader<'_>, &Record),
) -> Faults {
    let mut faults = Faults::default();
    let mut record = Record::default();
    while let Some(read) = reader.next_record(&mut record) {
        match read {
            Ok(()) => each(reader, &record),
            Err(error) => faults.push(error),
        }
    }
    faults
}

/// The symbol of a record; its hash if the name is not known.
fn symbol(record: &Record) -> String {
    match record.name.as_slice() {
        [] => record.name_ref.to_string(),
        name => printable(name).into_owned(),
    }
}

fn kind_text(kind: u32) -> &'static str {
    match kind {
        value_kind::INDIRECT_CALL_TARGET => "indirect_call",
        value_kind::MEM_OP_SIZE => "memop_size",
        _ => "vtable",
    }
}

/// Returns the smallest percentage in the summary whose minimum count is not above `count`. So `count` belongs to the
/// hottest counters that make up this percentage of all counts. `None` if `count` is 0, or if the summary has no such
/// percentage.
pub(super) fn share(summary: &Summary, count: u64) -> Option<f64> {
    let mut rows = summary.cutoffs.iter();
    let row = rows.find(|row| count > 0 && row.min_count <= count)?;
    Some(row.cutoff as f64 / MILLION * 100.0)
}
