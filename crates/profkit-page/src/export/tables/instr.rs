//! Tables of instrumentation profiles.
use super::{ColumnData, NoTable, Property, SharedTexts, Table, TableKind, clamped, texts};
use profkit_abi::{indexed, value_kind};
use profkit_analysis::faults::Faults;
use profkit_analysis::heat::HeatLimits;
use profkit_analysis::instr::{Form, InstrTable, Totals, numbers};
use profkit_analysis::names::printable;
use profkit_analysis::ranking::{FunctionOrder, Ranking};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::{InstrKind, KindValues, Record};
use profkit_data::releases::HashOrigin;
use profkit_data::summary::Summary;

const HAS: &[TableKind] = &[
    TableKind::Functions,
    TableKind::Counters,
    TableKind::Values,
    TableKind::Traces,
    TableKind::Profile,
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
        profile: &InstrTable<'_>,
    ) -> Result<(Self, Faults), NoTable> {
        let mut table = Table::new(file, kind, "instrumentation");
        let names = profile.facts.instrumentation.names();
        let names = names.map(str::to_owned).collect();
        table
            .properties
            .push(("instrumentation", Property::List(names)));
        table.push_facts(profile);
        let mut faults = profile.damage.clone();
        match kind {
            TableKind::Profile => table.facts(),
            TableKind::Functions => table.functions(profile),
            TableKind::Counters => table.counters(profile),
            TableKind::Values => table.values(profile),
            TableKind::Traces => {
                table.traces(profile);
                profile
                    .traces_error
                    .iter()
                    .for_each(|error| faults.push(error.clone()));
            }
            _ => {
                return Err(NoTable {
                    table: kind,
                    profile: "an instrumentation profile",
                    has: HAS,
                });
            }
        }
        if let [id] = profile.profile.binary_ids.as_slice()
            && kind != TableKind::Profile
        {
            table.push_build_id(&id.to_string());
        }
        let ids_error = profile.ids_error.iter();
        ids_error.for_each(|error| faults.push(error.clone()));
        Ok((table, faults))
    }

    /// Adds what a profile needs beside its tables to become one again.
    fn push_facts(&mut self, profile: &InstrTable<'_>) {
        self.push_ids(&profile.profile.binary_ids);
        let facts = &profile.facts;
        if let Some(version) = facts.version {
            let origin = HashOrigin {
                front_end: facts.instrumentation.contains(InstrKind::FRONT_END),
                is_raw: facts.form == Form::Raw,
                version,
            };
            if origin.front_end {
                let (fitting, _) = origin.front_end_version();
                let fitting = Property::Text(fitting.to_string());
                self.properties.push(("indexed_version", fitting));
            }
        }
        let seen = profile.profile.traces.stream_size;
        if seen > 0 {
            self.properties
                .push(("traces_seen", Property::Text(seen.to_string())));
        }
    }

    fn functions(&mut self, profile: &InstrTable<'_>) {
        let kind = profile.facts.instrumentation;
        let two_stages = kind.contains(InstrKind::CONTEXT_SENSITIVE);
        let mut totals = Totals::new(Ranking::new(FunctionOrder::Sum, 0, false), two_stages);
        let (mut guids, mut hashes) = (Vec::new(), Vec::new());
        let mut marks = SharedTexts::default();
        let mut sites = [(); 3].map(|()| Vec::new());
        let [mut bitmaps, mut uniformity] = [(); 2].map(|()| SharedTexts::default());
        let (mut counters, mut entries, mut sums, mut most) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let [name, demangled] = texts::spelled(|symbol| {
            profile.each(|record| {
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
                marks.push(match record.counts.first() {
                    Some(&indexed::PSEUDO_HOT) => "hot",
                    Some(&indexed::PSEUDO_WARM) => "warm",
                    _ => "",
                });
                for (kind, column) in (0..).zip(&mut sites) {
                    let values = record.values.kind(kind).map_or(0, KindValues::site_count);
                    column.push(Some(values as u64).filter(|&count| count > 0));
                }
                bitmaps.push(&hex(&record.bitmap));
                uniformity.push(&hex(&record.uniformity));
                let numbers = numbers(record);
                entries.push(has_counts.then_some(numbers.entry));
                sums.push(has_counts.then_some(clamped(numbers.sum)));
                most.push(has_counts.then_some(numbers.max));
            })
        });
        let (summary, second) = totals.finish();
        let limits = [&summary, second.as_ref().unwrap_or(&summary)].map(HeatLimits::of);
        let mut heat = SharedTexts::default();
        for (largest, &hash) in most.iter().zip(&hashes) {
            let [first, second] = &limits;
            let in_second = two_stages && FuncHash(hash).is_context_sensitive();
            let limits = if in_second { second } else { first };
            heat.push(&largest.map_or_else(String::new, |one| limits.heat(one).to_string()));
        }
        let shares = most
            .iter()
            .map(|most| share(&summary, most.unwrap_or(0)))
            .collect();
        self.push("function", name);
        self.push("demangled", demangled);
        self.push_hashes("guid", guids);
        self.push_hashes("hash", hashes);
        self.push("counters", ColumnData::Numbers(counters));
        self.push("entry", ColumnData::SomeNumbers(entries));
        self.push("max", ColumnData::SomeNumbers(most));
        self.push("sum", ColumnData::SomeNumbers(sums));
        self.push("cutoff", ColumnData::Fractions(shares));
        if profile.facts.instrumentation.counts_executions() {
            self.push("heat", ColumnData::Shared(heat));
        }
        // Most profiles have no data for some of these columns.
        for (name, texts) in [
            ("mark", marks),
            ("bitmap", bitmaps),
            ("uniformity", uniformity),
        ] {
            if !texts.texts().is_empty() {
                self.push(name, ColumnData::Shared(texts));
            }
        }
        for (name, column) in ["call_sites", "memop_sites", "vtable_sites"]
            .into_iter()
            .zip(sites)
        {
            if column.iter().any(Option::is_some) {
                self.push(name, ColumnData::SomeNumbers(column));
            }
        }
    }

    fn counters(&mut self, profile: &InstrTable<'_>) {
        let mut functions = SharedTexts::default();
        let (mut hashes, mut indexes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        profile.each(|record| {
            // A mark in place of the first counter is no count.
            let first = usize::from(record.is_pseudo());
            let function = functions.texts.number(&symbol(record));
            for (index, &count) in (0..).zip(&record.counts).skip(first) {
                functions.push_number(function);
                hashes.push(record.func_hash.0);
                indexes.push(index);
                counts.push(count);
            }
        });
        self.push("function", ColumnData::Shared(functions));
        self.push_hashes("hash", hashes);
        self.push("index", ColumnData::Numbers(indexes));
        self.push("count", ColumnData::Numbers(counts));
    }

    fn values(&mut self, profile: &InstrTable<'_>) {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let (mut hashes, mut sites, mut values, mut counts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        profile.each(|record| {
            let [functions, kinds, targets] = &mut texts;
            for (kind, of_kind) in record.values.kinds() {
                for (site, entries) in (0..).zip(of_kind.sites()) {
                    for entry in entries {
                        functions.push(&symbol(record));
                        kinds.push(kind_text(kind));
                        let target = (kind != value_kind::MEM_OP_SIZE)
                            .then(|| profile.name_of(NameRef(entry.value)))
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
        self.push_hashes("hash", hashes);
        self.push("kind", ColumnData::Shared(kinds));
        self.push("site", ColumnData::Numbers(sites));
        self.push("value", ColumnData::Numbers(values));
        self.push("target", ColumnData::Shared(targets));
        self.push("count", ColumnData::Numbers(counts));
    }

    fn traces(&mut self, profile: &InstrTable<'_>) {
        let mut functions = SharedTexts::default();
        let (mut numbers, mut weights, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, trace) in (0..).zip(&profile.profile.traces.traces) {
            for (position, &function) in (0..).zip(&trace.functions) {
                numbers.push(number);
                weights.push(trace.weight);
                positions.push(position);
                match profile.name_of(function) {
                    Some(name) => functions.push(&printable(name)),
                    None => functions.push(&function.to_string()),
                }
            }
        }
        self.push("trace", ColumnData::Numbers(numbers));
        self.push("weight", ColumnData::Numbers(weights));
        self.push("position", ColumnData::Numbers(positions));
        self.push("function", ColumnData::Shared(functions));
    }
}

/// The symbol of a record; its hash if the name is not known.
fn symbol(record: &Record) -> String {
    match record.name.as_slice() {
        [] => record.name_ref.to_string(),
        name => printable(name).into_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind_text(kind: u32) -> &'static str {
    match kind {
        value_kind::INDIRECT_CALL_TARGET => "indirect_call",
        value_kind::MEM_OP_SIZE => "memop_size",
        _ => "vtable",
    }
}

/// Returns the smallest share in the summary whose minimum count is not above `count`, from 0 to 1. So `count` belongs to
/// the hottest counters that make up this share of all counts. `None` if `count` is 0, or if the summary has no such
/// share.
pub(super) fn share(summary: &Summary, count: u64) -> Option<f64> {
    let mut rows = summary.cutoffs.iter();
    let row = rows.find(|row| count > 0 && row.min_count <= count)?;
    Some(row.cutoff as f64 / MILLION)
}
