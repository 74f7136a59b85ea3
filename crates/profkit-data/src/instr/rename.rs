//! New names for functions of a profile.
use super::{FunctionRef, FunctionTable, InstrProfile, KindValues};
use crate::ids::NameRef;
use crate::names::SymbolTable;
use profkit_abi::value_kind;
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions that got new names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renamed {
    /// The number of records with a new name.
    pub records: u64,
    /// The sum of the counters of these records.
    pub counts: u128,
    /// The sum of the counters of all records.
    pub all_counts: u128,
}

impl InstrProfile {
    /// Gives functions new names, also where they are the targets of calls and in traces, and so the virtual tables of
    /// the profile. `new_name` gets the hash of a name, and the name if it is known; it returns the new name, or `None`
    /// to keep the old one. A function also keeps its name if another one has the new name already.
    pub fn rename(
        &mut self,
        new_name: impl Fn(NameRef, Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Renamed {
        let functions: Vec<FunctionRef<'_>> = self
            .tables
            .iter()
            .flat_map(|table| table.functions())
            .collect();
        let mut taken: FxHashMap<NameRef, NameRef> = FxHashMap::default();
        let mut names: FxHashMap<NameRef, Vec<u8>> = FxHashMap::default();
        for function in &functions {
            taken.insert(function.name_ref(), function.name_ref());
        }
        let mut ask = |id: NameRef, name: Option<&[u8]>| {
            if let Some(new) = new_name(id, name.filter(|name| !name.is_empty()))
                && !names.contains_key(&id)
                && *taken.entry(NameRef::of(&new)).or_insert(id) == id
            {
                names.insert(id, new);
            }
        };
        for function in &functions {
            ask(function.name_ref(), Some(function.name()));
        }
        for (id, name) in self.symbols.iter() {
            ask(id, Some(name));
        }
        for name in &self.vtable_names {
            ask(NameRef::of(name), Some(name));
        }
        let values = functions.iter().flat_map(|function| function.records());
        for values in values.filter_map(|record| record.values) {
            let named = NAMED_KINDS.iter().filter_map(|&kind| values.kind(kind));
            for entry in named.flat_map(KindValues::entries) {
                // 0 stands for a target outside the program.
                if entry.value != 0 {
                    ask(NameRef(entry.value), None);
                }
            }
        }
        for trace in &self.traces.traces {
            trace.functions.iter().for_each(|&id| ask(id, None));
        }
        if names.is_empty() {
            return Renamed::default();
        }
        let mut renamed = Renamed::default();
        for table in &mut self.tables {
            *table = rename_table(table, &names, &mut renamed);
        }
        let mut symbols = SymbolTable::new();
        for (id, name) in self.symbols.in_order() {
            if !names.contains_key(&id) {
                symbols.insert_hashed(id, name);
            }
        }
        for new in names.values() {
            symbols.insert(new);
        }
        self.symbols = symbols;
        for name in &mut self.vtable_names {
            if let Some(new) = names.get(&NameRef::of(name)) {
                name.clone_from(new);
            }
        }
        for trace in &mut self.traces.traces {
            for id in &mut trace.functions {
                if let Some(new) = names.get(id) {
                    *id = NameRef::of(new);
                }
            }
        }
        renamed
    }

    /// Keeps only the functions for which `keep` returns true. Other functions also leave the traces, and a trace that
    /// is then empty is removed.
    pub fn retain(&mut self, mut keep: impl FnMut(FunctionRef<'_>) -> bool) {
        let mut dropped: FxHashSet<NameRef> = FxHashSet::default();
        for table in &mut self.tables {
            table.retain(|function| {
                let kept = keep(function);
                if !kept {
                    dropped.insert(function.name_ref());
                }
                kept
            });
        }
        if dropped.is_empty() {
            return;
        }
        for trace in &mut self.traces.traces {
            trace.functions.retain(|id| !dropped.contains(id));
        }
        let traces = &mut self.traces.traces;
        traces.retain(|trace| !trace.functions.is_empty());
    }

    /// Removes the values of all value sites, and returns how many there were. The sites stay: compilers compare their
    /// number with that of the code, and use no value profile of a function whose number differs.
    pub fn clear_values(&mut self) -> u64 {
        let mut cleared = 0;
        for table in &mut self.tables {
            cleared += table.clear_values();
        }
        self.vtable_names.clear();
        cleared
    }
}

/// The kinds of values that are hashes of names.
const NAMED_KINDS: [u32; 2] = [value_kind::INDIRECT_CALL_TARGET, value_kind::VTABLE_TARGET];

fn rename_table(
    table: &FunctionTable,
    names: &FxHashMap<NameRef, Vec<u8>>,
    renamed: &mut Renamed,
) -> FunctionTable {
    let mut new = FunctionTable::new();
    for function in table.functions() {
        let name = names.get(&function.name_ref());
        let id = match name {
            Some(name) => new.push_function(name, NameRef::of(name), function.order()),
            None => new.push_function(function.name(), function.name_ref(), function.order()),
        };
        // The table has room for as many functions and records as the old one.
        let Some(id) = id else { continue };
        for record in function.records() {
            let is_pseudo = record.is_pseudo();
            let sum = record.counts.iter().filter(|_| !is_pseudo);
            let sum: u128 = sum.map(|&count| u128::from(count)).sum();
            renamed.all_counts += sum;
            if name.is_some() {
                renamed.records += 1;
                renamed.counts += sum;
            }
            let Some(record) = new.push_record(id, record.to_new()) else {
                continue;
            };
            let values = new.values_mut(record);
            let targets = values.into_iter().flat_map(|values| values.kinds_mut());
            let targets = targets.filter(|(kind, _)| NAMED_KINDS.contains(kind));
            for site in targets.flat_map(|(_, targets)| targets.sites_mut()) {
                let was_sorted = site.is_sorted_by_key(|entry| entry.value);
                for entry in site.iter_mut() {
                    if let Some(new) = names.get(&NameRef(entry.value)) {
                        entry.value = NameRef::of(new).0;
                    }
                }
                if was_sorted {
                    site.sort_by_key(|entry| entry.value);
                }
            }
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instr::InstrReader;

    #[test]
    fn names_change_in_records_targets_and_traces() {
        let text = b":ir\n:temporal_prof_traces\n1\n1\n2\na.c;f,main\nmain\n1\n1\n5\n1\n0\n1\n1\na.c;f:4\n\na.c;f\n2\n1\n7\n\na.c:g\n3\n1\n9\n\na.c;g\n4\n1\n11\n";
        let mut reader = InstrReader::open(text).unwrap();
        let mut profile = InstrProfile::read(&mut reader).unwrap();
        let colon = |_, name: Option<&[u8]>| {
            let name = name?;
            let at = name.iter().position(|&byte| byte == b';')?;
            let mut name = name.to_vec();
            name[at] = b':';
            Some(name)
        };
        let renamed = profile.rename(colon);
        // `a.c;g` keeps its name, because there is an `a.c:g`.
        assert_eq!(
            (renamed.records, renamed.counts, renamed.all_counts),
            (1, 7, 32)
        );
        let names = || {
            let functions = profile.tables.iter().flat_map(|table| table.functions());
            functions.map(|function| String::from_utf8_lossy(function.name()).into_owned())
        };
        let mut all: Vec<_> = names().collect();
        all.sort();
        assert_eq!(all, ["a.c:f", "a.c:g", "a.c;g", "main"]);
        let f = NameRef::of(b"a.c:f");
        assert_eq!(profile.traces.traces[0].functions[0], f);
        let mut functions = profile.tables.iter().flat_map(|table| table.functions());
        let main = functions
            .find(|function| function.name() == b"main")
            .unwrap();
        let values = main.records().next().unwrap().values.unwrap();
        let targets = values.kind(value_kind::INDIRECT_CALL_TARGET).unwrap();
        assert_eq!(targets.entries()[0].value, f.0);
        assert_eq!(profile.symbols.get(f), Some(b"a.c:f".as_slice()));
        assert_eq!(profile.clone().rename(|_, _| None), Renamed::default());
    }
}
