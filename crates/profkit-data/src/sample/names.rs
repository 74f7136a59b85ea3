//! The names of one sample profile. Each name is stored once and has an id.
use super::flat::Facts;
use crate::ids::NameRef;
use crate::index_vec::IndexVec;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fmt;
use twox_hash::XxHash3_64;

crate::id_type! {
    /// The id of a name: its index in the [`SampleNames`] of the profile. The default is the id of the first name.
    #[derive(Default)]
    pub struct NameId of "names of a sample profile";
}

/// A name in a sample profile: the name itself, or only its hash if the file has MD5 hashes in place of names. LLVM
/// calls this `FunctionId`.
///
/// Names are ordered as in LLVM: first the hashes in ascending order, then the names, compared byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleName<'a> {
    /// The MD5 hash of a name that is not known as text.
    Guid(NameRef),
    /// The text of a name that is known.
    Text(&'a [u8]),
}

impl SampleName<'_> {
    /// Returns the hash of the name.
    pub fn guid(self) -> NameRef {
        match self {
            SampleName::Guid(guid) => guid,
            SampleName::Text(text) => NameRef::of(text),
        }
    }
}

impl Ord for SampleName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (SampleName::Text(one), SampleName::Text(two)) => one.cmp(two),
            (SampleName::Guid(one), SampleName::Guid(two)) => one.cmp(two),
            (SampleName::Guid(_), SampleName::Text(_)) => Ordering::Less,
            (SampleName::Text(_), SampleName::Guid(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for SampleName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Prints the name as LLVM does. If only the hash of the name is known, it is printed as a decimal number.
impl fmt::Display for SampleName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleName::Guid(guid) => write!(f, "{}", guid.0),
            SampleName::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
        }
    }
}

/// All names of a profile: of functions, inlined functions, call targets and vtables.
///
/// The table needs memory for the bytes of each name once, and about 60 further bytes per name.
///
/// ```
/// use profkit_data::sample::{SampleName, SampleNames};
///
/// let mut names = SampleNames::new();
/// let main = names.insert(SampleName::Text(b"main"));
/// assert_eq!(names.find(SampleName::Text(b"main")), main);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SampleNames {
    bytes: Vec<u8>,
    entries: IndexVec<NameId, Entry>,
    /// The places of the names, by a hash of their bytes, or by the MD5 where only that is known.
    places: HashTable<Place>,
    /// Names that came in sorted order, in that order. Name tables of binary profiles are sorted, so most names of a
    /// second table are found by walking through this list and not by their hash.
    sorted: Vec<NameId>,
    /// The ids of variants, each with the name and its facts.
    variants: Vec<(NameId, NameId, Facts)>,
    variant_ids: FxHashMap<(NameId, Facts), NameId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Guid(u64),
    Text { start: u64, len: u32 },
    Variant(u32),
}

/// A name in the table of places. It has a copy of the name's entry, because a look-up of the entry would be one more
/// access to memory that is seldom in a cache.
#[derive(Clone, Copy, Debug)]
struct Place {
    key: u64,
    entry: Entry,
    id: NameId,
}

impl SampleNames {
    /// Makes a table without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of names in the table. The index of each [`NameId`] of this table is smaller than this number.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table has no names.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a name if it is new, and returns its id. Returns `None` if the table already has 2^32 − 1 names, or if the
    /// name is longer than 2^32 − 1 bytes.
    pub fn insert(&mut self, name: SampleName<'_>) -> Option<NameId> {
        let key = key(name);
        if let Some(place) = self.place(key, name) {
            return Some(place.id);
        }
        u32::try_from(self.entries.len()).ok()?;
        let entry = match name {
            SampleName::Guid(guid) => Entry::Guid(guid.0),
            SampleName::Text(text) => {
                let start = self.bytes.len() as u64;
                let len = u32::try_from(text.len()).ok()?;
                self.bytes.extend_from_slice(text);
                Entry::Text { start, len }
            }
        };
        let id = self.entries.push(entry);
        let place = Place { key, entry, id };
        self.places.insert_unique(key, place, |place| place.key);
        Some(id)
    }

    /// Returns a second id for a name, which only functions with this checksum and these attributes have; the name's own id
    /// if there are neither. [`get`](Self::get) returns the same name for both. `None` if the table is full.
    pub fn insert_variant(&mut self, name: NameId, facts: Facts) -> Option<NameId> {
        if facts == Facts::default() {
            return Some(name);
        }
        if let Some(&id) = self.variant_ids.get(&(name, facts)) {
            return Some(id);
        }
        u32::try_from(self.entries.len()).ok()?;
        let number = u32::try_from(self.variants.len()).ok()?;
        let id = self.entries.push(Entry::Variant(number));
        self.variants.push((id, name, facts));
        self.variant_ids.insert((name, facts), id);
        Some(id)
    }

    /// Returns what [`insert_variant`](Self::insert_variant) made an id of; for every other id, the id itself.
    #[inline]
    pub fn variant(&self, id: NameId) -> (NameId, Facts) {
        let variant = match self.entries.get(id) {
            Some(&Entry::Variant(number)) => self.variants.get(number as usize),
            _ => None,
        };
        variant.map_or((id, Facts::default()), |&(_, name, facts)| (name, facts))
    }

    /// The ids that [`insert_variant`](Self::insert_variant) made, in the order in which it made them.
    pub fn variants(&self) -> impl ExactSizeIterator<Item = NameId> {
        self.variants.iter().map(|&(id, ..)| id)
    }

    fn place(&self, key: u64, name: SampleName<'_>) -> Option<&Place> {
        self.places.find(key, |place| {
            place.key == key && self.name(place.entry) == name
        })
    }

    /// Adds the names of a list that are new, and calls `found` with the id of each name, in the order of the list. If the
    /// list is sorted, this takes much less time than [`insert`](Self::insert), above all for names that are not new.
    /// Returns `None` if the table is full; names of the list may then be missing.
    pub(super) fn insert_list<'n>(
        &mut self,
        list: impl ExactSizeIterator<Item = SampleName<'n>>,
        mut found: impl FnMut(NameId),
    ) -> Option<()> {
        let known = std::mem::take(&mut self.sorted);
        self.sorted.reserve(list.len().max(known.len()));
        let mut known = known.into_iter().peekable();
        let mut last = None;
        for name in list {
            // A name out of order is not among the sorted ones.
            if last.is_some_and(|last| name <= last) {
                found(self.insert(name)?);
                continue;
            }
            last = Some(name);
            let mut order = Ordering::Less;
            while let Some(&id) = known.peek() {
                order = self.get(id).cmp(&name);
                if order != Ordering::Less {
                    break;
                }
                self.sorted.push(id);
                known.next();
            }
            let id = match order {
                Ordering::Equal => known.next()?,
                _ => self.insert(name)?,
            };
            self.sorted.push(id);
            found(id);
        }
        self.sorted.extend(known);
        Some(())
    }

    /// Returns the id of a name; `None` if the table does not have the name.
    pub fn find(&self, name: SampleName<'_>) -> Option<NameId> {
        self.place(key(name), name).map(|place| place.id)
    }

    /// Returns the name with this id, or the empty name if the table has no such id.
    #[inline]
    pub fn get(&self, id: NameId) -> SampleName<'_> {
        match self.entries.get(id) {
            Some(&entry) => self.name(entry),
            None => SampleName::Text(b""),
        }
    }

    #[inline]
    fn name(&self, entry: Entry) -> SampleName<'_> {
        match entry {
            Entry::Guid(guid) => SampleName::Guid(NameRef(guid)),
            Entry::Text { start, len } => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let end = start.saturating_add(len as usize);
                SampleName::Text(self.bytes.get(start..end).unwrap_or_default())
            }
            Entry::Variant(number) => match self.variants.get(number as usize) {
                Some(&(_, name, _)) => self.get(name),
                None => SampleName::Text(b""),
            },
        }
    }

    /// Returns all names with their ids, in ascending order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, SampleName<'_>)> {
        self.entries.ids().map(|id| (id, self.get(id)))
    }

    /// Adds all names of the table `other`. Returns, for each id in `other`, the id of the same name in this table.
    /// Returns `None` if this table would have more than 2^32 − 1 names.
    pub fn insert_all(&mut self, other: &SampleNames) -> Option<IndexVec<NameId, NameId>> {
        let mut ids = IndexVec::default();
        for (id, text) in other.iter() {
            let new = match other.variant(id) {
                (name, _) if name == id => self.insert(text),
                // The name of a variant comes before the variant.
                (name, facts) => self.insert_variant(ids.get(name).copied()?, facts),
            };
            ids.push(new?);
        }
        Some(ids)
    }

    /// Returns the rank of each name: the position that it has if all names of the table are sorted.
    pub fn ranks(&self) -> IndexVec<NameId, u32> {
        let mut sorted: Vec<(SampleName<'_>, NameId)> =
            self.iter().map(|(id, name)| (name, id)).collect();
        sorted.sort_unstable();
        let mut ranks = IndexVec::parallel_to(&self.entries, 0);
        for (rank, (_, id)) in (0u32..).zip(sorted) {
            ranks[id] = rank;
        }
        ranks
    }
}

fn key(name: SampleName<'_>) -> u64 {
    match name {
        SampleName::Guid(guid) => guid.0,
        SampleName::Text(text) => XxHash3_64::oneshot(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_vec::Id;

    #[test]
    fn names_are_held_once_and_hashes_sort_first() {
        let mut names = SampleNames::new();
        let b = names.insert(SampleName::Text(b"b")).unwrap();
        let a = names.insert(SampleName::Text(b"a")).unwrap();
        let guid = names.insert(SampleName::Guid(NameRef(7))).unwrap();
        assert_eq!(names.insert(SampleName::Text(b"b")), Some(b));
        assert_eq!(names.find(SampleName::Guid(NameRef(7))), Some(guid));
        assert_eq!(names.find(SampleName::Guid(NameRef(8))), None);
        assert_eq!(names.len(), 3);
        assert_eq!(names.ranks().as_slice(), [2, 1, 0]);
        let mut other = SampleNames::new();
        other.insert(SampleName::Text(b"c"));
        other.insert(SampleName::Text(b"a"));
        let all = names.insert_all(&other).unwrap();
        assert_eq!(all.as_slice(), [NameId::from_index(3), a]);
    }

    #[test]
    fn a_list_adds_what_its_names_add_one_by_one() {
        let text = |name: &'static str| SampleName::Text(name.as_bytes());
        let guid = |number| SampleName::Guid(NameRef(number));
        let lists = [
            vec![text("b"), text("d")],
            vec![guid(3), guid(9), text("a"), text("b"), text("c"), text("z")],
            vec![],
            vec![
                text("z"),
                text("a"),
                text("a"),
                text("m"),
                guid(3),
                text("n"),
            ],
            vec![guid(9), text("a"), text("d"), text("m"), text("zz")],
        ];
        let (mut by_list, mut one_by_one) = (SampleNames::new(), SampleNames::new());
        for list in lists {
            let mut ids = Vec::new();
            by_list
                .insert_list(list.iter().copied(), |id| ids.push(id))
                .unwrap();
            let expected: Vec<_> = list
                .iter()
                .map(|&name| one_by_one.insert(name).unwrap())
                .collect();
            assert_eq!(ids, expected);
            assert_eq!(by_list.len(), one_by_one.len());
            let sorted = by_list.sorted.iter().map(|&id| by_list.get(id));
            assert!(sorted.is_sorted_by(|one, two| one < two));
        }
    }

    #[test]
    fn names_whose_keys_collide_stay_apart() {
        let mut names = SampleNames::new();
        let text = names.insert(SampleName::Text(b"some name")).unwrap();
        let twin = SampleName::Guid(NameRef(key(SampleName::Text(b"some name"))));
        let guid = names.insert(twin).unwrap();
        assert_ne!(text, guid);
        assert_eq!(names.find(twin), Some(guid));
        assert_eq!(names.find(SampleName::Text(b"some name")), Some(text));
    }
}
