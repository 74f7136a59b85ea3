//! The page of an instrumentation profile.
use super::encode::{index, number};
use super::functions::{CONTEXT_SENSITIVE, PSEUDO, PSEUDO_HOT, PageFunction};
use super::{Detail, Page, Trace};
use profkit_abi::value_kind;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heat::{Heat, HeatLimits};
use profkit_analysis::instr::{InstrTable, Totals, numbers};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionOrder, Ranking};
use profkit_data::ids::NameRef;
use profkit_data::instr::{InstrKind, Record};
use profkit_data::summary::Summary;
use profkit_report::show::text::{describe, read_by};
use profkit_report::{grouped, percent, plural};
use rustc_hash::FxHashMap;

/// The largest number of build ids on the page.
const MOST_IDS: usize = 3;

impl Page {
    /// Makes the page of an instrumentation profile. Records that cannot be read are left out. The errors are returned,
    /// and the first of them are notes on the page.
    pub fn of_instr(file: &str, size: u64, table: &InstrTable<'_>) -> (Self, Faults) {
        let facts = &table.facts;
        let mut page = Page::new(file, describe(facts));
        page.kind = "instrumentation";
        page.unit = "counts";
        page.titles = ["First counter", "Sum", "Largest"];
        page.detail = Detail::Counts("Counters");
        let kind = facts.instrumentation;
        if kind.is_unknown() {
            page.fact("Instrumentation", "not stated (assumed to be front-end)");
        } else {
            page.fact("Instrumentation", kind);
        }
        page.fact("Size", plural(size, "byte"));
        if kind.contains(InstrKind::SINGLE_BYTE_COVERAGE) {
            page.unit = "parts that ran";
            page.titles = ["", "Parts that ran", ""];
        }
        let two_stages = kind.contains(InstrKind::CONTEXT_SENSITIVE);
        let mut totals = Totals::new(Ranking::new(FunctionOrder::Sum, 0, false), two_stages);
        let mut targets = FxHashMap::default();
        table.each(|record| {
            totals.add(record);
            page.add_record(record, two_stages, table, &mut targets);
        });
        let mut faults = table.damage.clone();
        for error in [&table.traces_error, &table.ids_error]
            .into_iter()
            .flatten()
        {
            faults.push(error.clone());
        }
        for trace in &table.profile.traces.traces {
            let functions = trace.functions.iter();
            let functions = functions.map(|&id| {
                let number = page.target(id.0, table, &mut targets);
                page.first_calls.insert(id, number);
                number
            });
            let functions = functions.collect();
            page.traces.push(Trace {
                weight: trace.weight,
                functions,
            });
        }
        let ids = &table.profile.binary_ids;
        for id in ids.iter().take(MOST_IDS) {
            page.fact("Build id", id);
        }
        if ids.len() > MOST_IDS {
            page.fact(
                "",
                format_args!("and {} more", grouped(ids.len() - MOST_IDS)),
            );
        }
        let readers = Readers::of(facts, totals.oldest_text_reader);
        page.fact("Read by", read_by(&readers));
        page.sums(&mut totals, kind.counts_executions());
        page.damage(&faults);
        (page, faults)
    }

    fn sums(&mut self, totals: &mut Totals, has_heat: bool) {
        self.total = totals.sum;
        let (entered, above) = (totals.functions_entered, totals.counters_above_zero);
        let (summary, cs) = totals.finish();
        let counted = |part: u64, whole: u64, what: &str| {
            format!(
                "{}; {} {what} ({})",
                grouped(whole),
                grouped(part),
                percent(part.into(), whole.into())
            )
        };
        let second = cs.as_ref().map_or((0, 0), |cs| (cs.functions, cs.blocks));
        let functions = summary.functions + second.0;
        self.fact("Functions", counted(entered, functions, "entered"));
        let counters = summary.blocks + second.1;
        self.fact("Counters", counted(above, counters, "above 0"));
        self.fact("Sum of counters", grouped(self.total));
        if let Some(cs) = &cs {
            self.fact("Context-sensitive functions", grouped(cs.functions));
        }
        let limits = [&summary, cs.as_ref().unwrap_or(&summary)].map(HeatLimits::of);
        self.has_heat = has_heat;
        for function in &mut self.functions.functions {
            let [first, second] = &limits;
            let limits = match function.flags & CONTEXT_SENSITIVE {
                0 => first,
                _ => second,
            };
            function.heat = match function.flags & (PSEUDO | PSEUDO_HOT) {
                0 if has_heat => limits.heat(function.numbers.max),
                0 if function.numbers.sum > 0 => Heat::Warm,
                0 => Heat::NeverRan,
                PSEUDO => Heat::Warm,
                _ => Heat::Hot,
            };
        }
        if has_heat {
            self.cutoffs(&summary);
        }
    }

    /// Adds the table of how few counts make how much.
    pub(super) fn cutoffs(&mut self, summary: &Summary) {
        let cutoffs = summary.cutoffs.iter();
        self.cutoffs = cutoffs
            .map(|row| (row.cutoff, row.blocks, row.min_count))
            .collect();
    }

    fn add_record(
        &mut self,
        record: &Record,
        two_stages: bool,
        table: &InstrTable<'_>,
        targets: &mut FxHashMap<u64, usize>,
    ) {
        let mut flags = 0;
        if two_stages && record.func_hash.is_context_sensitive() {
            flags |= CONTEXT_SENSITIVE;
        }
        if record.is_pseudo() {
            flags |= PSEUDO;
            if record.counts.first() == Some(&profkit_abi::indexed::PSEUDO_HOT) {
                flags |= PSEUDO_HOT;
            }
        } else {
            self.functions.push_counts(record.counts.iter().copied());
        }
        let sites: usize = record
            .values
            .kinds()
            .map(|(_, kind)| kind.site_count())
            .sum();
        if sites > 0 {
            self.values(record, table, targets);
        }
        let numbers = if record.is_pseudo() {
            Default::default()
        } else {
            numbers(record)
        };
        self.functions.push(PageFunction {
            name: record.name.clone(),
            hash: record.func_hash.0,
            guid: record.name_ref.0,
            numbers,
            flags,
            ..PageFunction::default()
        });
    }

    /// Appends those value sites of a record that have at least one value.
    fn values(
        &mut self,
        record: &Record,
        table: &InstrTable<'_>,
        targets: &mut FxHashMap<u64, usize>,
    ) {
        let mut bytes = Vec::new();
        let mut count = 0;
        for (kind, values) in record.values.kinds() {
            for (site, entries) in values
                .sites()
                .enumerate()
                .filter(|(_, entries)| !entries.is_empty())
            {
                count += 1;
                number(kind.into(), &mut bytes);
                index(site, &mut bytes);
                index(entries.len(), &mut bytes);
                for entry in entries {
                    let value = match kind {
                        value_kind::MEM_OP_SIZE => u128::from(entry.value),
                        _ => self.target(entry.value, table, targets) as u128,
                    };
                    number(value, &mut bytes);
                    number(entry.count.into(), &mut bytes);
                }
            }
        }
        index(count, &mut self.functions.values);
        self.functions.values.extend_from_slice(&bytes);
    }

    /// Returns the index of a call target's name, counted from 1; 0 for a target outside the program.
    fn target(
        &mut self,
        hash: u64,
        table: &InstrTable<'_>,
        targets: &mut FxHashMap<u64, usize>,
    ) -> usize {
        if let Some(&number) = targets.get(&hash) {
            return number;
        }
        let number = match table.name_of(NameRef(hash)) {
            Some(name) => {
                let name = names::spelled(name, Spelling::Demangled);
                self.functions.targets.number(&name)
            }
            None if hash == 0 => 0,
            None => self
                .functions
                .targets
                .number(&format!("(unknown name {})", NameRef(hash))),
        };
        targets.insert(hash, number);
        number
    }
}
