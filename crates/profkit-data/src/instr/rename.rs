//! New names for functions of a profile.
use super::{FunctionRef, FunctionTable, InstrProfile};
use crate::ids::NameRef;
use profkit_abi::value_kind;
use rustc_hash::FxHashMap;

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
    /// Gives functions new names, also where they are the targets of calls and in traces. `new_name` returns the new
    /// name of a function, or `None` if it keeps its name. A function also keeps its name if another one has the new
    /// name already.
    pub fn rename(&mut self, new_name: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Renamed {
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
        let symbols = self.symbols.iter().map(|(id, name)| (id, name.to_vec()));
        let known = functions
            .iter()
            .map(|function| (function.name_ref(), function.name().to_vec()))
            .chain(symbols);
        for (id, name) in known {
            if let Some(new) = new_name(&name)
                && !names.contains_key(&id)
                && *taken.entry(NameRef::of(&new)).or_insert(id) == id
            {
                names.insert(id, new);
            }
        }
        if names.is_empty() {
            return Renamed::default();
        }
        let mut renamed = Renamed::default();
        for table in &mut self.tables {
            *table = rename_table(table, &names, &mut renamed);
        }
        for new in names.values() {
            self.symbols.insert(new);
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
}

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
            let targets =
                values.and_then(|values| values.kind_mut(value_kind::INDIRECT_CALL_TARGET));
            for site in targets.into_iter().flat_map(|targets| targets.sites_mut()) {
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
        let colon = |name: &[u8]| {
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
        assert_eq!(profile.clone().rename(|_| None), Renamed::default());
    }
}
