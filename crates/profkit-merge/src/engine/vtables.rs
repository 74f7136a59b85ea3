//! The names of virtual tables in the merged profile. LLVM's writer keeps these names in a set of strings. Under
//! [`Policy::Tolerant`](crate::Policy::Tolerant), the result has the names of the virtual tables that its value data
//! refer to.
use profkit_abi::value_kind;
use profkit_data::ids::NameRef;
use profkit_data::instr::{FunctionTable, InstrReader, InstrSource};
use profkit_data::llvm_order::string_set_order;
use profkit_data::names::SymbolTable;
use rustc_hash::FxHashSet;

/// Returns the names of virtual tables in an input, as far as it was read, in the order of the input. If the input is a
/// raw file, these are the names in the profile that is being read.
pub(super) fn of_input(source: &InstrReader<'_>) -> Vec<Vec<u8>> {
    let list = |names: &SymbolTable| names.in_order().map(|(_, name)| name.to_vec()).collect();
    match source {
        InstrReader::Indexed(reader) => list(reader.symbols()),
        InstrReader::Raw(reader) => match reader.profile() {
            Some(profile) => {
                let mut names = SymbolTable::new();
                let section = profile.sections().vtable_names;
                // Errors in these names were reported when the profile was read.
                let _ = names.read_blob(section.bytes, section.offset);
                list(&names)
            }
            None => Vec::new(),
        },
        InstrReader::Text(reader) => list(reader.vtable_names()),
    }
}

/// Returns the names of the virtual tables that the value data of `tables` refer to, as far as `symbols` knows them.
/// The names are in the order that LLVM's set of strings has if they are added to it in sorted order.
pub(super) fn used(tables: &[FunctionTable], symbols: &SymbolTable) -> Vec<Vec<u8>> {
    if symbols.is_empty() {
        return Vec::new();
    }
    let functions = tables.iter().flat_map(FunctionTable::functions);
    let values = functions
        .flat_map(|function| function.records())
        .filter_map(|record| record.values?.kind(value_kind::VTABLE_TARGET));
    let used: FxHashSet<NameRef> = values
        .flat_map(|values| values.entries())
        .map(|entry| NameRef(entry.value))
        .collect();
    names_of(&used, symbols)
}

/// Returns the names of these virtual tables, as [`used`] does.
pub(super) fn names_of(used: &FxHashSet<NameRef>, symbols: &SymbolTable) -> Vec<Vec<u8>> {
    let names = used.iter().filter_map(|&name| symbols.get(name));
    let mut sorted: Vec<_> = names.collect();
    sorted.sort_unstable();
    let mut names = VtableNames::default();
    sorted.into_iter().for_each(|name| names.insert(name));
    names.finish()
}

#[derive(Default)]
pub(crate) struct VtableNames {
    names: Vec<Vec<u8>>,
    known: FxHashSet<Vec<u8>>,
}

impl VtableNames {
    /// Adds the names of an input in the order in which LLVM's reader returns them. The reader keeps them in a
    /// set of strings, so this is the order of that set.
    pub(crate) fn extend(&mut self, names: &[Vec<u8>]) {
        let mut input = VtableNames::default();
        names.iter().for_each(|name| input.insert(name));
        for at in input.order() {
            if let Some(name) = input.names.get(at as usize) {
                self.insert(name);
            }
        }
    }

    /// Returns the names in the order of LLVM's set of strings.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        let order = self.order();
        let take = |at: u32| self.names.get_mut(at as usize).map(std::mem::take);
        order.into_iter().filter_map(take).collect()
    }

    fn order(&self) -> Vec<u32> {
        string_set_order(self.names.iter().map(Vec::as_slice))
    }

    fn insert(&mut self, name: &[u8]) {
        if self.known.insert(name.to_vec()) {
            self.names.push(name.to_vec());
        }
    }
}
