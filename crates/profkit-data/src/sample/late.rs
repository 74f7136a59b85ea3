//! Sorted vectors that accept new entries in any order. If a new entry belongs far from the end of its vector, it is
//! kept outside the vector until the additions end. So adding n entries moves at most about n log n entries, and not
//! n², whatever the order of the new entries is.
use super::model::{BodyLine, Inlined, Location, Samples, Target};
use super::names::NameId;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// An entry of a sorted vector of samples, such as a line or a call target.
pub(super) trait Entry: Sized + Debug {
    /// The key by which the vector is sorted. No two entries of a vector have the same key.
    type Key: Ord + Hash + Copy + Debug;

    fn key(&self) -> Self::Key;

    fn empty(key: Self::Key) -> Self;

    /// Reserves memory for one more entry. This is called before an entry is inserted.
    #[inline]
    fn make_room(_list: &mut Vec<Self>) {}
}

impl Entry for BodyLine {
    type Key = Location;

    #[inline]
    fn key(&self) -> Location {
        self.location
    }

    #[inline]
    fn empty(location: Location) -> Self {
        BodyLine {
            location,
            samples: 0,
        }
    }
}

impl Entry for Target {
    type Key = (Location, NameId);

    #[inline]
    fn key(&self) -> Self::Key {
        (self.location, self.name)
    }

    #[inline]
    fn empty((location, name): Self::Key) -> Self {
        Target {
            location,
            name,
            count: 0,
        }
    }
}

impl Entry for Inlined {
    type Key = (Location, NameId);

    #[inline]
    fn key(&self) -> Self::Key {
        (self.location, self.samples.name)
    }

    #[inline]
    fn empty((location, name): Self::Key) -> Self {
        let mut inlined = Inlined {
            location,
            ..Inlined::default()
        };
        inlined.samples.name = name;
        inlined
    }

    /// Lets the capacity of a list of inlined functions grow by half instead of doubling, because the entries are large
    /// and most functions contain only one or two inlined functions.
    #[inline]
    fn make_room(list: &mut Vec<Self>) {
        if list.len() == list.capacity() {
            list.reserve_exact(list.len() / 2 + 1);
        }
    }
}

/// The maximum number of bytes that an insertion may move. If more bytes would have to move, the entry is kept outside
/// the vector.
const MOVED_AT_ONCE: usize = 4096;

/// The state of additions to one sorted vector. It has the index at which the next search begins, and the late entries:
/// entries that are not in the vector yet. All late entries belong before the last entry of the vector.
#[derive(Debug)]
pub(super) struct Spot<T: Entry> {
    hint: usize,
    late: Option<Box<Late<T>>>,
}

#[derive(Debug)]
struct Late<T: Entry> {
    entries: Vec<T>,
    places: HashMap<T::Key, usize>,
}

impl<T: Entry> Default for Spot<T> {
    #[inline]
    fn default() -> Self {
        Spot {
            hint: 0,
            late: None,
        }
    }
}

impl<T: Entry> Spot<T> {
    /// Finds the entry of a key, or adds it. Returns whether it was added. Keys in ascending order need no search.
    #[inline]
    pub(super) fn find_or_add<'a>(
        &'a mut self,
        list: &'a mut Vec<T>,
        key: T::Key,
    ) -> (&'a mut T, bool) {
        let found = place(list, self.hint, key);
        let (Ok(at) | Err(at)) = found;
        if found.is_err() {
            let behind = list.len().saturating_sub(at);
            let is_near = behind * size_of::<T>() <= MOVED_AT_ONCE && self.late.is_none();
            if behind != 0 && !is_near {
                return self.find_or_add_late(key);
            }
            T::make_room(list);
            list.insert(at, T::empty(key));
        }
        self.hint = at + 1;
        // The entry at this index was just found or inserted.
        (&mut list[at], found.is_err())
    }

    #[cold]
    fn find_or_add_late(&mut self, key: T::Key) -> (&mut T, bool) {
        let Late { entries, places } = &mut **self.late.get_or_insert_with(|| {
            Box::new(Late {
                entries: Vec::new(),
                places: HashMap::new(),
            })
        });
        let next = entries.len();
        let at = *places.entry(key).or_insert(next);
        if at == next {
            entries.push(T::empty(key));
        }
        // The entry at this index was just found or pushed.
        (&mut entries[at], at == next)
    }

    #[inline]
    fn is_complete(&self) -> bool {
        self.late.is_none()
    }

    fn sort_in(&mut self, list: &mut Vec<T>) {
        if let Some(late) = self.late.take() {
            let mut entries = late.entries;
            entries.sort_unstable_by_key(Entry::key);
            list.append(&mut entries);
            // The list now consists of two sorted parts. The standard library's stable sort merges such parts quickly.
            list.sort_by_key(Entry::key);
        }
    }

    /// Moves the late entries into their vector if their number is at least a quarter of the vector's length.
    fn sort_in_many(&mut self, list: &mut Vec<T>) {
        let late = self.late.as_ref().map_or(0, |late| late.entries.len());
        if late >= list.len() / 4 {
            self.sort_in(list);
        }
    }
}

/// The late entries of one [`Samples`], and of the functions inlined in it. A late entry was added out of order and is
/// not in its sorted vector yet.
#[derive(Debug, Default)]
pub(super) struct PendingEntries {
    pub(super) body: Spot<BodyLine>,
    pub(super) targets: Spot<Target>,
    pub(super) inlined: Spot<Inlined>,
    pub(super) vtables: Spot<Target>,
    /// The state of additions to inlined functions that have late entries, by call site and name; `None` if there are
    /// none.
    inner: Option<HashMap<(Location, NameId), PendingEntries>>,
}

impl PendingEntries {
    /// Returns the state that [`keep`](Self::keep) saved for an inlined function; an empty state if none was saved.
    #[inline]
    pub(super) fn resume(&mut self, key: (Location, NameId)) -> PendingEntries {
        let inner = self.inner.as_mut();
        inner
            .and_then(|inner| inner.remove(&key))
            .unwrap_or_default()
    }

    /// Saves the state of additions to an inlined function until more entries are added to it.
    pub(super) fn keep(&mut self, key: (Location, NameId), pending: PendingEntries) {
        self.inner.get_or_insert_default().insert(key, pending);
    }

    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.body.is_complete()
            && self.targets.is_complete()
            && self.inlined.is_complete()
            && self.vtables.is_complete()
            && self.inner.as_ref().is_none_or(|inner| inner.is_empty())
    }

    /// Moves late entries into a vector if their number is at least a quarter of the vector's length. The vectors of
    /// inlined functions do not change.
    pub(super) fn sort_in_many(&mut self, samples: &mut Samples) {
        self.body.sort_in_many(&mut samples.body);
        self.targets.sort_in_many(&mut samples.targets);
        self.inlined.sort_in_many(&mut samples.inlined);
        self.vtables.sort_in_many(&mut samples.vtables);
    }

    /// Moves all late entries into their vectors, also in inlined functions.
    pub(super) fn sort_in(&mut self, samples: &mut Samples) {
        self.body.sort_in(&mut samples.body);
        self.targets.sort_in(&mut samples.targets);
        self.inlined.sort_in(&mut samples.inlined);
        self.vtables.sort_in(&mut samples.vtables);
        for (key, mut pending) in self.inner.take().into_iter().flatten() {
            if let Ok(at) = samples.inlined.binary_search_by_key(&key, Entry::key)
                && let Some(inlined) = samples.inlined.get_mut(at)
            {
                pending.sort_in(&mut inlined.samples);
            }
        }
    }
}

/// Searches for a key in a sorted vector, starting at index `hint`. Returns the index of the key, or the index at which
/// it must be inserted.
#[inline]
fn place<T: Entry>(list: &[T], hint: usize, key: T::Key) -> Result<usize, usize> {
    let after_hint = hint == 0 || list.get(hint - 1).is_some_and(|item| item.key() < key);
    if after_hint {
        match list.get(hint) {
            None if hint == list.len() => return Err(hint),
            Some(item) if item.key() == key => return Ok(hint),
            Some(item) if item.key() > key => return Err(hint),
            _ => {}
        }
    }
    list.binary_search_by(|item| item.key().cmp(&key))
}
