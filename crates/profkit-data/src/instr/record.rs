use super::RecordRef;
use crate::ids::{FuncHash, NameRef};
use profkit_abi::value_kind;

/// A function record: the counters, bitmap and value profile of one function with one function hash. It owns its data.
/// A reader fills the same record again for each function
/// ([`InstrSource::read_record`](super::InstrSource::read_record)), so reading allocates no memory per function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The function's PGO name, exactly as in the file. It is empty if a damaged raw file has lost its names.
    pub name: Vec<u8>,
    /// The low 64 bits of the MD5 hash of the function's name.
    pub name_ref: NameRef,
    /// The function hash: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// The counters in the order of the file. In a profile with single-byte coverage, 1 means that the code ran and 0
    /// that it did not.
    pub counts: Vec<u64>,
    /// The bytes of the function's MC/DC bitmap.
    pub bitmap: Vec<u8>,
    /// For functions of GPU programs, one bit for each counter: bit `i % 8` of byte `i / 8` is set if the block of
    /// counter `i` was nearly always entered by all threads of a wave together (LLVM's `UniformityBits`). Empty for all
    /// other functions.
    pub uniformity: Vec<u8>,
    /// The value profile of the function: the values that were seen at its value sites.
    pub values: ValueData,
}

impl Record {
    /// Empties the record. Its buffers keep their memory.
    pub fn clear(&mut self) {
        self.name.clear();
        self.name_ref = NameRef(0);
        self.func_hash = FuncHash(0);
        self.counts.clear();
        self.bitmap.clear();
        self.uniformity.clear();
        self.values.clear();
    }

    /// The record as one of a table. `order` is its position among all records.
    pub fn as_ref(&self, order: u64) -> RecordRef<'_> {
        RecordRef {
            func_hash: self.func_hash,
            counts: &self.counts,
            bitmap: &self.bitmap,
            uniformity: &self.uniformity,
            values: Some(&self.values),
            order,
        }
    }

    /// For each block, whether it is uniform: nearly always entered by all threads of a wave together. Each block has one
    /// counter and one bit ([`uniformity`](Self::uniformity)). Empty if the record has no such bits.
    pub fn block_uniformity(&self) -> impl Iterator<Item = bool> {
        let bits = self
            .uniformity
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        bits.take(self.counts.len())
    }

    /// The number of uniform blocks ([`block_uniformity`](Self::block_uniformity)).
    pub fn uniform_blocks(&self) -> usize {
        self.block_uniformity()
            .filter(|&is_uniform| is_uniform)
            .count()
    }

    /// Whether the function is marked as pseudo-hot or pseudo-warm. The first counter is then a marker and not a count.
    pub fn is_pseudo(&self) -> bool {
        crate::summary::is_pseudo(&self.counts)
    }
}

/// An entry of the value profile: a value that was seen at a value site, and how often it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueEntry {
    /// The value. For call targets and vtables it is the low 64 bits of the MD5 of the target's name, or 0 if the
    /// target is unknown or outside the program. For memory intrinsics it is the size in bytes, or the smallest size of
    /// a range of sizes.
    pub value: u64,
    /// How often the value was seen at the site.
    pub count: u64,
}

/// The value profile of a function record: for each value kind, its value sites and the values seen there. All sites of
/// a kind share two buffers, so a site needs no allocation of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueData {
    kinds: [KindValues; value_kind::COUNT],
}

impl ValueData {
    /// Returns the value sites of a value kind; `None` if LLVM has no kind with this number.
    pub fn kind(&self, kind: u32) -> Option<&KindValues> {
        self.kinds.get(kind as usize)
    }

    /// Returns mutable access to the value sites of a value kind; `None` if LLVM has no kind with this number.
    pub fn kind_mut(&mut self, kind: u32) -> Option<&mut KindValues> {
        self.kinds.get_mut(kind as usize)
    }

    /// Returns all value kinds in ascending order: LLVM's number for the kind, and the value sites of the kind. Kinds
    /// without value sites are included.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, &KindValues)> {
        (0u32..).zip(&self.kinds)
    }

    /// Returns all value kinds in ascending order: LLVM's number for the kind, and mutable access to the value sites of
    /// the kind.
    pub fn kinds_mut(&mut self) -> impl Iterator<Item = (u32, &mut KindValues)> {
        (0u32..).zip(&mut self.kinds)
    }

    /// Whether the record has no value sites of any kind.
    pub fn is_empty(&self) -> bool {
        self.kinds.iter().all(|kind| kind.site_count() == 0)
    }

    /// Removes the value sites of all kinds. The buffers keep their memory.
    pub fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindValues::clear);
    }
}

/// All value sites of one value kind in a function record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindValues {
    /// For each value site, the index in `entries` at which its values end: one more than the index of its last value.
    ends: Vec<u32>,
    entries: Vec<ValueEntry>,
}

/// One value site: the values that were seen there.
pub type SiteValues<'a> = &'a [ValueEntry];

impl KindValues {
    /// The number of value sites. Sites without values are included.
    pub fn site_count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the values of all value sites, one site after the other.
    pub fn entries(&self) -> &[ValueEntry] {
        &self.entries
    }

    /// Returns mutable access to the values of all value sites. The number of values per site cannot change.
    pub fn entries_mut(&mut self) -> &mut [ValueEntry] {
        &mut self.entries
    }

    /// Returns the values of each value site, in the order of the sites.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = SiteValues<'_>> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let site = self.entries.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            site
        })
    }

    /// Returns the values of one value site, or an empty list if there is no such site.
    pub fn site(&self, index: usize) -> SiteValues<'_> {
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let start = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        self.entries
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    /// Returns mutable access to the values of each value site. The number of values per site cannot change.
    pub fn sites_mut(&mut self) -> impl Iterator<Item = &mut [ValueEntry]> {
        let mut rest = self.entries.as_mut_slice();
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let len = (end - start) as usize;
            start = end;
            let all = std::mem::take(&mut rest);
            let (site, after) = all.split_at_mut(len.min(all.len()));
            rest = after;
            site
        })
    }

    /// Shortens every value site to its first `max` values. The other values are removed.
    pub fn truncate_sites(&mut self, max: usize) {
        if self.sites().all(|site| site.len() <= max) {
            return;
        }
        let mut cut = KindValues::default();
        for site in self.sites() {
            cut.push_site(site.iter().take(max).copied());
        }
        *self = cut;
    }

    /// Appends a value site with the given values.
    pub fn push_site(&mut self, values: impl IntoIterator<Item = ValueEntry>) {
        self.entries.extend(values);
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Appends a value to the value site that is being built. [`end_site`](Self::end_site) completes the site.
    pub fn push_value(&mut self, entry: ValueEntry) {
        self.entries.push(entry);
    }

    /// Completes a value site whose values were added one by one with [`push_value`](Self::push_value).
    pub fn end_site(&mut self) {
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Removes all value sites of this kind. The buffers keep their memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_come_back_as_they_were_pushed() {
        let entry = |value| ValueEntry { value, count: 1 };
        let mut kind = KindValues::default();
        kind.push_site([entry(1), entry(2)]);
        kind.push_site([]);
        kind.push_value(entry(3));
        kind.end_site();
        let sites: Vec<_> = kind.sites().map(<[_]>::len).collect();
        assert_eq!(sites, [2, 0, 1]);
        assert_eq!(kind.site(2), [entry(3)]);
        assert_eq!(kind.site(3), []);
    }
}
