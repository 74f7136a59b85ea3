//! An instrumentation profile made of its tables.
use super::{ImportError, TableFile};
use profkit_abi::{indexed, value_kind};
use profkit_data::from_printable;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_data::instr::{
    FunctionId, FunctionTable, InstrKind, InstrProfile, Losses, NewRecord, TemporalTrace,
    ValueData, ValueEntry,
};
use profkit_data::llvm_order::string_set_order;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A profile that was made of tables.
#[derive(Debug)]
pub struct Imported {
    /// The profile. It has no heap profile.
    pub profile: InstrProfile,
    /// The indexed version that fits its function hashes.
    pub indexed_version: u32,
    /// What was left out, because the table of functions does not have the function: a message for each table.
    pub notes: Vec<String>,
}

impl Imported {
    /// Encodes the profile in the indexed version that fits its function hashes. Also returns what this version cannot hold.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn encode(&self) -> profkit_data::Result<(Vec<u8>, Losses)> {
        let mut bytes = Vec::new();
        let options = IndexedWriteOptions::for_version(self.indexed_version);
        let losses = write(&self.profile, &options, &mut bytes)?;
        Ok((bytes, losses))
    }
}

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

/// Makes a profile of the tables of an instrumentation profile: of counters, and of functions, values, traces and facts if
/// they are there. The columns of a table tell which one it is. The order of the rows does not matter, but that of the
/// functions in the result is that of their first rows.
///
/// With a table of functions, the result has its functions and no others.
///
/// # Errors
/// If a column is missing or holds something else than its values, if counters are missing or given twice, if nothing
/// states what the counters count, or if there are no counters.
pub fn profile_of(tables: &[TableFile]) -> Result<Imported, ImportError> {
    let mut found = Found::default();
    for table in tables {
        found.sort(table)?;
    }
    let first = tables.first().map_or("", |table| &table.name);
    let none = |message: &str, hint| ImportError {
        file: first.to_owned(),
        row: None,
        column: String::new(),
        message: message.to_owned(),
        hint: Some(hint),
    };
    let Some(counters) = found.counters else {
        return Err(none(
            "there is no table of counters among the tables, with the columns `function`, `hash`, `index` and `count`",
            "`profkit export --table counters` writes one",
        ));
    };
    let facts = Facts::of(tables, found.facts)?.ok_or_else(|| {
        none(
            "nothing says what the counters count: engines drop the facts that a file states about its profile",
            "add the table that `profkit export --table profile` writes",
        )
    })?;
    let mut records = Records::default();
    let mut notes = Vec::new();
    if let Some(table) = found.functions {
        records.functions(table)?;
        records.is_fixed = true;
    }
    records.counters(counters, &mut notes)?;
    let mut profile = InstrProfile {
        kind: facts.kind,
        binary_ids: facts.build_ids,
        ..InstrProfile::default()
    };
    let mut vtables = Vec::new();
    if let Some(table) = found.values {
        records.values(table, &mut profile, &mut vtables, &mut notes)?;
    }
    profile.tables = vec![records.finish(counters)?];
    if let Some(table) = found.traces {
        profile.traces.traces = traces(table)?;
        let least = profile.traces.traces.len() as u64;
        profile.traces.stream_size = facts.stream_size.unwrap_or(least).max(least);
    }
    if found.traces.is_none() {
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
    Ok(Imported {
        profile,
        indexed_version,
        notes,
    })
}

/// The tables by what their rows are.
#[derive(Default)]
struct Found<'t> {
    counters: Option<&'t TableFile>,
    functions: Option<&'t TableFile>,
    values: Option<&'t TableFile>,
    traces: Option<&'t TableFile>,
    facts: Option<&'t TableFile>,
}

impl<'t> Found<'t> {
    fn sort(&mut self, table: &'t TableFile) -> Result<(), ImportError> {
        // A JSON document without rows has no columns.
        let stated = table
            .facts
            .get("table")
            .filter(|_| table.columns.is_empty());
        let is = |what: &str, columns: &[&str]| {
            stated.is_some_and(|stated| stated == what) || table.has(columns)
        };
        let (place, what) = if is("profile", &["property", "value"]) {
            (&mut self.facts, "facts")
        } else if is("counters", &["function", "index", "count"]) {
            (&mut self.counters, "counters")
        } else if is("values", &["function", "site", "value"]) {
            (&mut self.values, "values")
        } else if is("traces", &["function", "trace", "position"]) {
            (&mut self.traces, "traces")
        } else if is("functions", &["function", "hash", "counters"]) {
            (&mut self.functions, "functions")
        } else {
            let names: Vec<&str> = table
                .columns
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            let message = format!(
                "the columns {} are not those of a table of an instrumentation profile",
                names.join(", ")
            );
            return Err(ImportError {
                hint: Some(
                    "counters have `function`, `hash`, `index`, `count`; values `function`, `hash`, `kind`, `site`, `value`, `count`; functions `function`, `hash`, `counters`; tables of sample, heap and MIP profiles do not become profiles again",
                ),
                ..table.error(None, "", message)
            });
        };
        if let Some(first) = place {
            let message = format!("this is a second table of {what}, after {}", first.name);
            return Err(ImportError {
                hint: Some("add rows of one kind up in the engine, and write them into one file"),
                ..table.error(None, "", message)
            });
        }
        *place = Some(table);
        Ok(())
    }
}

struct Facts {
    kind: InstrKind,
    indexed_version: u32,
    build_ids: Vec<BuildId>,
    stream_size: Option<u64>,
}

impl Facts {
    /// The facts of a table of facts, or of the files of other tables.
    fn of(tables: &[TableFile], facts: Option<&TableFile>) -> Result<Option<Self>, ImportError> {
        let mut stated: BTreeMap<String, String> = BTreeMap::new();
        for table in tables {
            for (name, value) in &table.facts {
                stated.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        if let Some(table) = facts {
            stated.clear();
            for row in 0..table.len() {
                let property = required_text(table, "property", row)?.to_owned();
                let value = text(table, "value", row)?.unwrap_or_default().to_owned();
                stated.insert(property, value);
            }
        }
        let source = facts.or_else(|| tables.iter().find(|table| !table.facts.is_empty()));
        let Some(source) = source else {
            return Ok(None);
        };
        let wrong = |what: &str, value: &str| {
            source.error(
                None,
                "",
                format!("the fact `{what}` is `{value}`, which no profile has"),
            )
        };
        let Some(names) = stated.get("instrumentation") else {
            return Ok(None);
        };
        let Some(kind) = InstrKind::from_names(names.split(", ")) else {
            return Err(wrong("instrumentation", names));
        };
        let number = |what: &str| match stated.get(what) {
            None => Ok(None),
            Some(value) => value
                .parse::<u64>()
                .map(Some)
                .map_err(|_| wrong(what, value)),
        };
        let version = number("indexed_version")?;
        let version = match version.map(u32::try_from) {
            None => indexed::VERSION_DEFAULT,
            Some(Ok(version @ 1..=14)) => version,
            Some(_) => return Err(wrong("indexed_version", "greater than 14")),
        };
        let mut build_ids = Vec::new();
        let ids = stated.get("build_ids").map_or("", String::as_str);
        for id in ids.split(", ").filter(|id| !id.is_empty()) {
            build_ids.push(BuildId(
                hex_bytes(id).ok_or_else(|| wrong("build_ids", id))?,
            ));
        }
        Ok(Some(Facts {
            kind: kind.without(InstrKind::MEMPROF),
            indexed_version: version,
            build_ids,
            stream_size: number("traces_seen")?,
        }))
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

    fn note(&self, table: &TableFile, left_out: u64, notes: &mut Vec<String>) {
        if left_out > 0
            && let Some(functions) = &self.functions_file
        {
            notes.push(format!(
                "{}: left out {} of functions that {functions} does not have",
                table.name,
                profkit_report::plural(left_out, "row")
            ));
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

/// A function without a name stands under its hash.
fn name_ref(text: &str) -> NameRef {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16);
    let hash = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    hash.map_or_else(|| NameRef::of(&from_printable(text)), NameRef)
}

fn hex(table: &TableFile, column: &str, row: usize) -> Result<Vec<u8>, ImportError> {
    let text = optional_text(table, column, row)?.unwrap_or_default();
    let expected = "expected pairs of hexadecimal digits";
    hex_bytes(text).ok_or_else(|| table.error(Some(row), column, expected))
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, 16)
            .ok()
            .filter(|_| digits.len() == 2)
    });
    pairs.collect()
}

fn text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<Option<&'t str>, ImportError> {
    let Some(cells) = table.column(column) else {
        return Err(table.error(None, column, "the table does not have this column"));
    };
    cells
        .text(row)
        .map_err(|message| table.error(Some(row), column, message))
}

pub(super) fn optional_text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<Option<&'t str>, ImportError> {
    match table.column(column) {
        None => Ok(None),
        // A column of a JSON table without any value has no type.
        Some(super::Cells::Numbers(rows)) if rows.iter().all(Option::is_none) => Ok(None),
        Some(_) => text(table, column, row),
    }
}

fn required_text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<&'t str, ImportError> {
    let found = text(table, column, row)?;
    found.ok_or_else(|| table.error(Some(row), column, "the cell is empty"))
}

pub(super) fn optional_number(
    table: &TableFile,
    column: &str,
    row: usize,
) -> Result<Option<u64>, ImportError> {
    let cells = table.column(column);
    let number = cells.map_or(Ok(None), |cells| cells.number(row));
    number.map_err(|message| table.error(Some(row), column, message))
}

pub(super) fn required_number(
    table: &TableFile,
    column: &str,
    row: usize,
) -> Result<u64, ImportError> {
    if table.column(column).is_none() {
        return Err(table.error(None, column, "the table does not have this column"));
    }
    let found = optional_number(table, column, row)?;
    found.ok_or_else(|| table.error(Some(row), column, "the cell is empty"))
}
