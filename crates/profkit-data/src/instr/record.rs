use crate::ids::{FuncHash, NameRef};
use profkit_abi::value_kind;

/// One function's data under one hash, owned. Readers fill one and the same record again and again
/// ([`InstrSource::read_record`](super::InstrSource::read_record)), so that reading allocates nothing per function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The PGO name, as the file spells it. Empty where a raw file has lost its names.
    pub name: Vec<u8>,
    /// MD5 low-64 of the name.
    pub name_ref: NameRef,
    /// Control-flow hash.
    pub func_hash: FuncHash,
    /// Counters in file order. For single-byte coverage: 1 covered, 0 not.
    pub counts: Vec<u64>,
    /// MC/DC bitmap bytes.
    pub bitmap: Vec<u8>,
    /// Value profile.
    pub values: ValueData,
}

impl Record {
    /// Empties the record and keeps its buffers.
    pub fn clear(&mut self) {
        self.name.clear();
        self.name_ref = NameRef(0);
        self.func_hash = FuncHash(0);
        self.counts.clear();
        self.bitmap.clear();
        self.values.clear();
    }

    /// Whether the first counter says that the function is pseudo-hot or pseudo-warm, not how often it ran.
    pub fn is_pseudo(&self) -> bool {
        crate::summary::is_pseudo(&self.counts)
    }
}

/// A value and how often it was seen at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueEntry {
    /// For targets and vtables the MD5 low-64 of the name (0 = unknown or outside the program); for memory
    /// intrinsics the size or the first of its bucket.
    pub value: u64,
    /// How often.
    pub count: u64,
}

/// The value profile of a record: per kind, per site, the values seen. Three flat lists, no allocation per site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueData {
    kinds: [KindValues; value_kind::COUNT],
}

impl ValueData {
    /// The sites of a kind; `None` for a kind number that LLVM does not have.
    pub fn kind(&self, kind: u32) -> Option<&KindValues> {
        self.kinds.get(kind as usize)
    }

    /// The sites of a kind, to fill.
    pub fn kind_mut(&mut self, kind: u32) -> Option<&mut KindValues> {
        self.kinds.get_mut(kind as usize)
    }

    /// All kinds with their numbers, in order, empty ones too.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, &KindValues)> {
        (0u32..).zip(&self.kinds)
    }

    /// All kinds with their numbers, in order, to change.
    pub fn kinds_mut(&mut self) -> impl Iterator<Item = (u32, &mut KindValues)> {
        (0u32..).zip(&mut self.kinds)
    }

    /// Whether no kind has a site.
    pub fn is_empty(&self) -> bool {
        self.kinds.iter().all(|kind| kind.site_count() == 0)
    }

    /// Empties all kinds and keeps their buffers.
    pub fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindValues::clear);
    }
}

/// The sites of one value kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindValues {
    /// End of each site's run in `entries`.
    ends: Vec<u32>,
    entries: Vec<ValueEntry>,
}

/// The values of one site.
pub type SiteValues<'a> = &'a [ValueEntry];

impl KindValues {
    /// How many sites there are, with values or without.
    pub fn site_count(&self) -> usize {
        self.ends.len()
    }

    /// The values of all sites, site after site.
    pub fn entries(&self) -> &[ValueEntry] {
        &self.entries
    }

    /// The values of all sites, to change in place (their number per site stays).
    pub fn entries_mut(&mut self) -> &mut [ValueEntry] {
        &mut self.entries
    }

    /// The values of each site in order.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = SiteValues<'_>> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let site = self.entries.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            site
        })
    }

    /// The values of one site; empty past the last.
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

    /// The values of each site in order, to change in place.
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

    /// Cuts every site to its first `max` values.
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

    /// Appends a site.
    pub fn push_site(&mut self, values: impl IntoIterator<Item = ValueEntry>) {
        self.entries.extend(values);
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Appends one value to the site that [`end_site`](Self::end_site) will close.
    pub fn push_value(&mut self, entry: ValueEntry) {
        self.entries.push(entry);
    }

    /// Closes a site whose values were pushed one by one.
    pub fn end_site(&mut self) {
        self.ends
            .push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Empties the kind and keeps its buffers.
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
