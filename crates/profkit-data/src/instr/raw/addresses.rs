//! Finds the functions and vtables to which the run-time addresses in value data belong.
use super::profile::RawProfile;
use super::record::RawName;
use crate::ids::NameRef;
use crate::instr::ValueData;
use profkit_abi::value_kind;

/// The addresses of the functions and vtables of one profile (`InstrProfSymtab::mapAddress`, `mapVTableAddress`).
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    functions: SortedAddresses,
    /// One element for each vtable: its first address, the address after its end, and the hash of its name. The list is
    /// sorted.
    vtables: Vec<(u64, u64, NameRef)>,
}

impl AddressMap {
    /// Collects the addresses of the functions and vtables of a profile. If several functions have the same address,
    /// the smallest name hash is used, as in LLVM.
    pub fn of(profile: &RawProfile<'_>) -> Self {
        let mut functions = Vec::with_capacity(profile.record_count());
        for record in profile
            .records()
            .filter(|record| record.function_pointer != 0)
        {
            let name_ref = match record.name {
                RawName::Ref(name_ref) => name_ref,
                RawName::Pointer { .. } => match profile.pointed_name(&record) {
                    Ok(name) => NameRef::of(name),
                    // The name is outside its section. The error is reported when the record is read. A function
                    // without a name is left out of the address map.
                    Err(_) => continue,
                },
            };
            functions.push((record.function_pointer, name_ref));
        }
        let functions = SortedAddresses::new(functions);
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

    /// Returns the name hash of the function that starts at an address. The hash is 0 if no function of the program
    /// starts there; the address may be in another library.
    pub fn function(&self, address: u64) -> NameRef {
        self.functions.get(address).unwrap_or_default()
    }

    /// Returns the name hash of the vtable that contains an address. The hash is 0 if no vtable contains it.
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

    /// Replaces the addresses of call targets and vtables by the hashes of their names.
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

/// A sorted list of addresses, with a table (`stretches`) that is indexed by the high bits of an address. Addresses
/// that are close together are looked up in nearby parts of memory. This is fast, because the targets of one call site
/// are often close together.
#[derive(Clone, Debug, Default)]
struct SortedAddresses {
    entries: Vec<(u64, NameRef)>,
    /// The address space is divided into stretches of `1 << shift` addresses; the first stretch begins at the lowest
    /// address in `entries`. For each stretch, this list has the index in `entries` of the first address that is in the
    /// stretch or after it. The last element of the list is the number of addresses.
    stretches: Vec<u32>,
    shift: u32,
}

impl SortedAddresses {
    /// Sorts the addresses and builds the list of stretches. If several names have the same address, the smallest name
    /// hash is used.
    fn new(mut entries: Vec<(u64, NameRef)>) -> Self {
        entries.sort_unstable();
        entries.dedup_by_key(|entry| entry.0);
        let (Some(&(low, _)), Some(&(high, _))) = (entries.first(), entries.last()) else {
            return Self::default();
        };
        // Limit the number of stretches to about two per address, even if the addresses are far apart.
        let wanted = entries.len() as u64 * 2;
        let mut shift = 0;
        while (high - low) >> shift > wanted {
            shift += 1;
        }
        let mut stretches = Vec::new();
        for (index, &(address, _)) in (0u32..).zip(&entries) {
            let stretch = usize::try_from((address - low) >> shift).unwrap_or(usize::MAX);
            while stretches.len() <= stretch {
                stretches.push(index);
            }
        }
        stretches.push(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        SortedAddresses {
            entries,
            stretches,
            shift,
        }
    }

    fn get(&self, address: u64) -> Option<NameRef> {
        let &(low, _) = self.entries.first()?;
        let stretch = usize::try_from(address.checked_sub(low)? >> self.shift).ok()?;
        let (&start, &end) = (
            self.stretches.get(stretch)?,
            self.stretches.get(stretch + 1)?,
        );
        let mut entries = self.entries.get(start as usize..end as usize)?.iter();
        entries
            .find(|entry| entry.0 == address)
            .map(|entry| entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_wherever_they_lie_and_the_smallest_name_wins() {
        let far = [
            0u64,
            1,
            16,
            17,
            0x40_0000,
            0x40_0010,
            u64::MAX - 1,
            u64::MAX,
        ];
        let near: Vec<u64> = (0..1000)
            .map(|number| 0x5555_0000_0000 + number * 24)
            .collect();
        for addresses in [&far[..], &near, &[7], &[]] {
            let named = addresses
                .iter()
                .flat_map(|&a| [(a, NameRef(a ^ 5)), (a, NameRef(a | 1 << 63))]);
            let map = SortedAddresses::new(named.collect());
            for &address in addresses {
                let smallest = (address ^ 5).min(address | 1 << 63);
                assert_eq!(map.get(address), Some(NameRef(smallest)), "{address:#x}");
                for other in [address.wrapping_add(1), address.wrapping_sub(1)] {
                    assert_eq!(
                        map.get(other).is_some(),
                        addresses.contains(&other),
                        "{other:#x}"
                    );
                }
            }
        }
    }
}
