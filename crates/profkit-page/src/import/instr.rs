//! An instrumentation profile made of its tables.
use super::found::{self, Found};
use super::rows::{
    hex, hex_bytes, left_out, name_ref, optional_number, optional_text, required_number,
    required_text,
};
use super::{ImportError, TableFile};
use crate::export::tables::TableKind;
use profkit_abi::{indexed, value_kind};
use profkit_data::from_printable;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::{
    FunctionId, FunctionTable, InstrKind, InstrProfile, NewRecord, TemporalTrace, ValueData,
    ValueEntry,
};
use profkit_data::llvm_order::string_set_order;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The largest number of value sites of a kind in a record: raw profiles state it in 16 bits.
const MOST: u64 = 0xffff;
/// The largest number of value sites in a profile. Each takes 24 bytes of memory, and a row can claim many.
const MOST_SITES: u64 = 1 << 24;

/// The first indexed version that holds uniformity bits.
const UNIFORMITY_FROM: u32 = 14;

/// A function record: its name and hash.
type Key = (Vec<u8>, u64);

#[derive(Debug, Default)]
struct Building {
    counts: Vec<(u64, u64, usize)>,
    values: BTreeMap<u32, Vec<Vec<ValueEntry>>>,
    bitmap: Vec<u8>,
    uniformity: Vec<u8>,
    marker: Option<u64>,
}

/// Makes an instrumentation profile of its tables. Also returns the indexed version that fits its function hashes.
pub(super) fn profile_of(
    found: &Found<'_>,
    notes: &mut Vec<String>,
) -> Result<(InstrProfile, u32), ImportError> {
    let counters = found.required(
        TableKind::Counters,
        "`function`, `hash`, `index` and `count`",
    )?;
    let facts = Facts::of(&found.facts)?;
    let mut records = Records::default();
    if let Some(table) = found.get(TableKind::Functions) {
        records.functions(table)?;
        records.is_fixed = true;
    }
    records.counters(counters, notes)?;
    let mut profile = InstrProfile {
        kind: facts.kind,
        binary_ids: facts.build_ids,
        ..InstrProfile::default()
    };
    let mut vtables = Vec::new();
    if let Some(table) = found.get(TableKind::Values) {
        records.values(table, &mut profile, &mut vtables, notes)?;
    }
    profile.tables = vec![records.finish(counters)?];
    let trace_table = found.get(TableKind::Traces);
    if let Some(table) = trace_table {
        profile.traces.traces = traces(table)?;
        let least = profile.traces.traces.len() as u64;
        profile.traces.stream_size = facts.stream_size.unwrap_or(least).max(least);
    }
    if trace_table.is_none() {
        profile.kind = profile.kind.without(InstrKind::TEMPORAL);
    }
    vtables.sort_unstable();
    vtables.dedup();
    let order = string_set_order(vtables.iter().map(Vec::as_slice));
    let ordered = order
        .into_iter()
        .filter_map(|at| vtables.get(at as usize).cloned());
    profile.vtable_names = ordered.collect();
    let indexed_version = match profile.uniformity_count() {
        0 => facts.indexed_version,
        _ => UNIFORMITY_FROM,
    };
    Ok((profile, indexed_version))
}

struct Facts {
    kind: InstrKind,
    indexed_version: u32,
    build_ids: Vec<BuildId>,
    stream_size: Option<u64>,
}

impl Facts {
    fn of(stated: &found::Facts<'_>) -> Result<Self, ImportError> {
        let names = stated.required("instrumentation")?;
        let Some(kind) = InstrKind::from_names(names.split(", ")) else {
            return Err(stated.wrong("instrumentation", names));
        };
        let number = |what: &str| match stated.get(what) {
            None => Ok(None),
            Some(value) => {
                let number = value.parse::<u64>();
                number.map(Some).map_err(|_| stated.wrong(what, value))
            }
        };
        let version = number("indexed_version")?;
        let version = match version.map(u32::try_from) {
            None => indexed::VERSION_DEFAULT,
            Some(Ok(version @ 1..=14)) => version,
            Some(_) => return Err(stated.wrong("indexed_version", "greater than 14")),
        };
        let mut build_ids = Vec::new();
        let ids = stated.get("build_ids").unwrap_or_default();
        for id in ids.split(", ").filter(|id| !id.is_empty()) {
            let bytes = hex_bytes(id).ok_or_else(|| stated.wrong("build_ids", id))?;
            build_ids.push(BuildId(bytes));
        }
        Ok(Facts {
            kind: kind.without(InstrKind::MEMPROF),
            indexed_version: version,
            build_ids,
            stream_size: number("traces_seen")?,
        })
    }
}

/// The records in the order of their first rows.
#[derive(Debug, Default)]
struct Records {
    numbers: FxHashMap<Key, usize>,
    keys: Vec<Key>,
    records: Vec<Building>,
    /// How many counters the table of functions states.
    stated: Vec<Option<(u64, usize)>>,
    /// Whether the functions are those of the table of functions.
    is_fixed: bool,
    functions_file: Option<String>,
    /// The number of value sites so far.
    sites: u64,
    names: NameCache,
}

/// Consecutive rows are mostly of one function.
#[derive(Debug, Default)]
struct NameCache {
    last: Option<(String, u64, Option<usize>)>,
}

impl Records {
    /// The record of a row; `None` if the table of functions does not have it.
    fn of_row(&mut self, table: &TableFile, row: usize) -> Result<Option<usize>, ImportError> {
        let name = required_text(table, "function", row)?;
        let hash = required_number(table, "hash", row)?;
        if let Some((last, last_hash, found)) = &self.names.last
            && last == name
            && *last_hash == hash
        {
            return Ok(*found);
        }
        let key = (from_printable(name), hash);
        let found = match self.numbers.get(&key) {
            Some(&number) => Some(number),
            None if self.is_fixed => None,
            None => {
                let number = self.records.len();
                self.numbers.insert(key.clone(), number);
                self.keys.push(key);
                self.records.push(Building::default());
                self.stated.push(None);
                Some(number)
            }
        };
        self.names.last = Some((name.to_owned(), hash, found));
        Ok(found)
    }

    /// Counts value sites.
    fn claim(&mut self, sites: u64) -> Result<(), String> {
        self.sites += sites;
        if self.sites <= MOST_SITES {
            return Ok(());
        }
        let most = profkit_report::grouped(MOST_SITES);
        Err(format!("the profile has more than {most} value sites"))
    }

    fn record(&mut self, number: usize) -> Option<&mut Building> {
        self.records.get_mut(number)
    }

    fn functions(&mut self, table: &TableFile) -> Result<(), ImportError> {
        self.functions_file = Some(table.name.clone());
        for row in 0..table.len() {
            let before = self.records.len();
            let counters = required_number(table, "counters", row)?;
            let Some(number) = self.of_row(table, row)?.filter(|&number| number == before) else {
                return Err(table.error(
                    Some(row),
                    "function",
                    "an earlier row has this function and hash",
                ));
            };
            if let Some(stated) = self.stated.get_mut(number) {
                *stated = Some((counters, row));
            }
            let mut sites = Vec::new();
            for (kind, column) in SITE_COLUMNS {
                let count = optional_number(table, column, row)?.unwrap_or(0);
                if count > MOST {
                    let message = format!("found {count} value sites, more than a function has");
                    return Err(table.error(Some(row), column, message));
                }
                self.claim(count)
                    .map_err(|message| table.error(Some(row), column, message))?;
                sites.push((kind, count));
            }
            let bitmap = hex(table, "bitmap", row)?;
            let uniformity = hex(table, "uniformity", row)?;
            let marker = match optional_text(table, "mark", row)? {
                None => None,
                Some("hot") => Some(indexed::PSEUDO_HOT),
                Some("warm") => Some(indexed::PSEUDO_WARM),
                Some(_) => {
                    return Err(table.error(
                        Some(row),
                        "mark",
                        "expected `hot`, `warm` or nothing",
                    ));
                }
            };
            let Some(record) = self.record(number) else {
                continue;
            };
            for (kind, count) in sites.into_iter().filter(|&(_, count)| count > 0) {
                let count = usize::try_from(count).unwrap_or(0);
                record.values.insert(kind, vec![Vec::new(); count]);
            }
            (record.bitmap, record.uniformity, record.marker) = (bitmap, uniformity, marker);
        }
        Ok(())
    }

    fn counters(&mut self, table: &TableFile, notes: &mut Vec<String>) -> Result<(), ImportError> {
        let mut left_out = 0;
        for row in 0..table.len() {
            let index = required_number(table, "index", row)?;
            let count = required_number(table, "count", row)?;
            match self.of_row(table, row)? {
                None => left_out += 1,
                Some(number) => {
                    if let Some(record) = self.record(number) {
                        record.counts.push((index, count, row));
                    }
                }
            }
        }
        self.note(table, left_out, notes);
        Ok(())
    }

    fn values(
        &mut self,
        table: &TableFile,
        profile: &mut InstrProfile,
        vtables: &mut Vec<Vec<u8>>,
        notes: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let mut left_out = 0;
        for row in 0..table.len() {
            let site = required_number(table, "site", row)?;
            let value = required_number(table, "value", row)?;
            let count = required_number(table, "count", row)?;
            let kind = match required_text(table, "kind", row)? {
                "indirect_call" => value_kind::INDIRECT_CALL_TARGET,
                "memop_size" => value_kind::MEM_OP_SIZE,
                "vtable" => value_kind::VTABLE_TARGET,
                _ => {
                    let expected = "expected `indirect_call`, `memop_size` or `vtable`";
                    return Err(table.error(Some(row), "kind", expected));
                }
            };
            if site >= MOST {
                let message = format!("found {site}, a larger number than a value site has");
                return Err(table.error(Some(row), "site", message));
            }
            let number = self.of_row(table, row)?;
            let Some(record) = number.and_then(|number| self.record(number)) else {
                left_out += 1;
                continue;
            };
            if let Some(target) = optional_text(table, "target", row)? {
                let target = from_printable(target);
                // A target whose name has another hash was renamed: the hash is what compilers look for.
                if NameRef::of(&target) == NameRef(value) {
                    if kind == value_kind::VTABLE_TARGET {
                        vtables.push(target.clone());
                    }
                    profile.symbols.insert(&target);
                }
            }
            let sites = record.values.entry(kind).or_default();
            let site = usize::try_from(site).unwrap_or(0);
            if sites.len() <= site {
                let more = (site + 1 - sites.len()) as u64;
                sites.resize_with(site + 1, Vec::new);
                self.claim(more)
                    .map_err(|message| table.error(Some(row), "site", message))?;
            }
            let record = number.and_then(|number| self.record(number));
            let sites = record.and_then(|record| record.values.get_mut(&kind));
            let sites = sites.map_or(&mut [][..], Vec::as_mut_slice);
            if let Some(entries) = sites.get_mut(site) {
                // Files of LLVM have a value of a site twice, too.
                entries.push(ValueEntry { value, count });
            }
        }
        self.note(table, left_out, notes);
        Ok(())
    }

    fn note(&self, table: &TableFile, rows: u64, notes: &mut Vec<String>) {
        if let Some(functions) = &self.functions_file {
            notes.extend(left_out(table, rows, functions));
        }
    }

    fn finish(self, counters: &TableFile) -> Result<FunctionTable, ImportError> {
        let mut table = FunctionTable::new();
        let mut functions: FxHashMap<Vec<u8>, FunctionId> = FxHashMap::default();
        let records = self.records.into_iter().zip(self.stated);
        for ((order, (name, hash)), (mut record, stated)) in (0..).zip(self.keys).zip(records) {
            let counts = record.counts(counters, &name, stated.map(|(count, _)| count))?;
            let values = record.values();
            let full = || counters.error(None, "", "the profile has too many functions");
            let function = match functions.get(&name) {
                Some(&function) => function,
                None => {
                    let hash = NameRef::of(&name);
                    let function = table.push_function(&name, hash, order).ok_or_else(full)?;
                    functions.insert(name, function);
                    function
                }
            };
            let new = NewRecord {
                func_hash: FuncHash(hash),
                counts: &counts,
                bitmap: &record.bitmap,
                uniformity: &record.uniformity,
                values: Some(&values),
                order,
            };
            table.push_record(function, new).ok_or_else(full)?;
        }
        Ok(table)
    }
}

/// The columns of the table of functions with the numbers of value sites.
const SITE_COLUMNS: [(u32, &str); 3] = [
    (value_kind::INDIRECT_CALL_TARGET, "call_sites"),
    (value_kind::MEM_OP_SIZE, "memop_sites"),
    (value_kind::VTABLE_TARGET, "vtable_sites"),
];

impl Building {
    /// The counters in the order of their indexes, which must be 0, 1, 2 and so on.
    fn counts(
        &mut self,
        table: &TableFile,
        name: &[u8],
        stated: Option<u64>,
    ) -> Result<Vec<u64>, ImportError> {
        self.counts.sort_by_key(|&(index, ..)| index);
        let function = profkit_data::printable(name);
        // A mark stands in place of counter 0.
        let first = u64::from(self.marker.is_some());
        for (expected, &(index, _, row)) in (first..).zip(&self.counts) {
            let message = match index {
                index if index < expected => {
                    format!("an earlier row has counter {index} of `{function}`: add them up first")
                }
                index if index > expected => {
                    format!("`{function}` has counter {index}, but not counter {expected}")
                }
                _ => continue,
            };
            return Err(ImportError {
                hint: Some(
                    "a profile needs each counter of a function once: filter functions, not counters",
                ),
                ..table.error(Some(row), "index", message)
            });
        }
        let found = self.counts.len() as u64;
        let stated = stated.filter(|_| self.marker.is_none());
        if let Some(stated) = stated.filter(|&stated| stated != found) {
            let message = format!(
                "`{function}` has {found} counters here, and {stated} in the table of functions"
            );
            return Err(ImportError {
                hint: Some(
                    "filter both tables by the same condition, or leave out the table of functions",
                ),
                ..table.error(None, "index", message)
            });
        }
        let counts = self.counts.iter().map(|&(_, count, _)| count);
        Ok(self.marker.into_iter().chain(counts).collect())
    }

    fn values(&mut self) -> ValueData {
        let mut values = ValueData::default();
        for (kind, sites) in std::mem::take(&mut self.values) {
            if let Some(of_kind) = values.kind_mut(kind) {
                sites.into_iter().for_each(|site| of_kind.push_site(site));
            }
        }
        values
    }
}

fn traces(table: &TableFile) -> Result<Vec<TemporalTrace>, ImportError> {
    let mut traces: BTreeMap<u64, (u64, BTreeMap<u64, NameRef>)> = BTreeMap::new();
    for row in 0..table.len() {
        let number = required_number(table, "trace", row)?;
        let weight = optional_number(table, "weight", row)?.unwrap_or(1);
        let position = required_number(table, "position", row)?;
        let name = required_text(table, "function", row)?;
        let (_, trace) = traces.entry(number).or_insert((weight, BTreeMap::new()));
        if trace.insert(position, name_ref(name)).is_some() {
            let message = "an earlier row has this position of this trace";
            return Err(table.error(Some(row), "position", message));
        }
    }
    let traces = traces.into_values().map(|(weight, trace)| TemporalTrace {
        weight,
        functions: trace.into_values().collect(),
    });
    Ok(traces.collect())
}
