//! From run-time addresses in value data to the functions and vtables that lay there.
use super::profile::RawProfile;
use super::record::RawName;
use crate::ids::NameRef;
use crate::instr::ValueData;
use profkit_abi::value_kind;
use rustc_hash::FxHashMap;

/// Addresses of the functions and vtables of one profile (`InstrProfSymtab::mapAddress`, `mapVTableAddress`).
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    functions: FxHashMap<u64, NameRef>,
    /// First address, address after the last, and name hash; sorted.
    vtables: Vec<(u64, u64, NameRef)>,
}

impl AddressMap {
    /// Collects the addresses of a profile. Where several functions share an address the smallest name hash stands
    /// for it, as in LLVM.
    pub fn of(profile: &RawProfile<'_>) -> Self {
        let mut functions = FxHashMap::default();
        for record in profile
            .records()
            .filter(|record| record.function_pointer != 0)
        {
            let name_ref = match record.name {
                RawName::Ref(name_ref) => name_ref,
                RawName::Pointer { .. } => match profile.pointed_name(&record) {
                    Ok(name) => NameRef::of(name),
                    // Reading this record reports the fault; its address then stays unknown.
                    Err(_) => continue,
                },
            };
            let known = functions.entry(record.function_pointer).or_insert(name_ref);
            *known = (*known).min(name_ref);
        }
        let mut vtables: Vec<_> = profile
            .vtables()
            .filter(|vtable| vtable.pointer != 0 && vtable.size != 0)
            .map(|vtable| {
                let end = vtable.pointer.saturating_add(u64::from(vtable.size));
                (vtable.pointer, end, vtable.name_hash)
            })
            .collect();
        vtables.sort_unstable();
        AddressMap { functions, vtables }
    }

    /// The function that starts at an address; hash 0 if there is none, for instance one of another library.
    pub fn function(&self, address: u64) -> NameRef {
        self.functions.get(&address).copied().unwrap_or_default()
    }

    /// The vtable that an address lies in; hash 0 if there is none.
    pub fn vtable(&self, address: u64) -> NameRef {
        let after = self
            .vtables
            .partition_point(|&(start, ..)| start <= address);
        let candidate = after
            .checked_sub(1)
            .and_then(|index| self.vtables.get(index));
        candidate
            .filter(|&&(_, end, _)| address < end)
            .map_or(NameRef(0), |&(.., name_hash)| name_hash)
    }

    /// Puts name hashes in place of the addresses of call targets and vtables.
    pub fn resolve(&self, values: &mut ValueData) {
        for (kind, sites) in values.kinds_mut() {
            let entries = sites.entries_mut().iter_mut();
            match kind {
                value_kind::INDIRECT_CALL_TARGET => {
                    entries.for_each(|entry| entry.value = self.function(entry.value).0);
                }
                value_kind::VTABLE_TARGET => {
                    entries.for_each(|entry| entry.value = self.vtable(entry.value).0);
                }
                _ => {}
            }
        }
    }
}
