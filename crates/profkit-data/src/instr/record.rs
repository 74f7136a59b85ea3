use crate::ids::{FuncHash, NameRef};
use profkit_abi::value_kind;

/// The data of one function with one hash, owned. Readers fill the same record again and again
/// ([`InstrSource::read_record`](super::InstrSource::read_record)), so reading allocates no memory per function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The PGO name, exactly as in the file. Empty if a raw file has lost its names.
    pub name: Vec<u8>,
    /// The low 64 bits of the MD5 of the name.
    pub name_ref: NameRef,
    /// The hash of the control flow.
    pub func_hash: FuncHash,
    /// The counters in file order. For single-byte coverage, 1 means covered and 0 not covered.
    pub counts: Vec<u64>,
    /// The bytes of the MC/DC bitmap.
    pub bitmap: Vec<u8>,
    /// The value profile.
    pub values: ValueData,
}

impl Record {
    /// Empties the record but keeps its buffers.
    pub fn clear(&mut self) {
        self.name.clear();
        self.name_ref = NameRef(0);
        self.func_hash = FuncHash(0);
        self.counts.clear();
        self.bitmap.clear();
        self.values.clear();
    }

    /// Whether the first counter is a marker for a pseudo-hot or pseudo-warm function, and not a count.
    pub fn is_pseudo(&self) -> bool {
        crate::summary::is_pseudo(&self.counts)
    }
}

/// A value, and how often it was seen at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueEntry {
    /// For call targets and vtables, the low 64 bits of the MD5 of the name (0 if it is unknown or outside the
    /// program). For memory intrinsics, the size, or the first size of its bucket.
    pub value: u64,
    /// How often the value was seen.
    pub count: u64,
}

/// The value profile of a record: the values that were seen, by value kind and site. All sites of a kind share two flat
/// lists, so a site needs no allocation of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueData {
    kinds: [KindValues; value_kind::COUNT],
}

impl ValueData {
    /// The sites of a value kind; `None` if LLVM has no kind with this number.
    pub fn kind(&self, kind: u32) -> Option<&KindValues> {
        self.kinds.get(kind as usize)
    }

    /// Mutable access to the sites of a value kind.
    pub fn kind_mut(&mut self, kind: u32) -> Option<&mut KindValues> {
        self.kinds.get_mut(kind as usize)
    }

    /// All value kinds with their numbers, in order. Kinds without sites are included.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, &KindValues)> {
        (0u32..).zip(&self.kinds)
    }

    /// All value kinds with their numbers, in order, mutable.
    pub fn kinds_mut(&mut self) -> impl Iterator<Item = (u32, &mut KindValues)> {
        (0u32..).zip(&mut self.kinds)
    }

    /// Whether no value kind has a site.
    pub fn is_empty(&self) -> bool {
        self.kinds.iter().all(|kind| kind.site_count() == 0)
    }

    /// Empties all value kinds but keeps their buffers.
    pub fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindValues::clear);
    }
}

/// The sites of one value kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindValues {
    /// The end of each site's values in `entries`.
    ends: Vec<u32>,
    entries: Vec<ValueEntry>,
}

/// The values of one site.
pub type SiteValues<'a> = &'a [ValueEntry];

impl KindValues {
    /// The number of sites. Sites without values count too.
    pub fn site_count(&self) -> usize {
        self.ends.len()
    }

    /// The values of all sites, one site after the other.
    pub fn entries(&self) -> &[ValueEntry] {
        &self.entries
    }

    /// The values of all sites, mutable. The number of values per site cannot change.
    pub fn entries_mut(&mut self) -> &mut [ValueEntry] {
        &mut self.entries
    }

    /// The values of each site, in the order of the sites.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = SiteValues<'_>> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let site = self.entries.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            site
        })
    }

    /// The values of one site; empty if there is no such site.
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

    /// The values of each site, mutable. The number of values per site cannot change.
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

    /// Drops all values of a site after the first `max`, at every site.
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

    /// Appends a site with its values.
    pub fn push_site(&mut self, values: impl IntoIterator<Item = ValueEntry>) {
        self.entries.extend(values);
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Appends a value to the last site, which [`end_site`](Self::end_site) will complete.
    pub fn push_value(&mut self, entry: ValueEntry) {
        self.entries.push(entry);
    }

    /// Completes a site whose values were added one by one with [`push_value`](Self::push_value).
    pub fn end_site(&mut self) {
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Empties the kind but keeps its buffers.
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
