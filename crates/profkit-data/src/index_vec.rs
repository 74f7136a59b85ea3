//! Lists with typed indices. Each list has its own index type, so the index of one list cannot be used in another list.
//!
//! The macro [`id_type!`](crate::id_type) makes the type of the indices, and an [`IndexVec`] is the list:
//!
//! ```
//! use profkit_data::index_vec::IndexVec;
//!
//! profkit_data::id_type! {
//!     /// A city, by its place among the cities.
//!     pub struct CityId of "cities";
//! }
//!
//! let mut cities: IndexVec<CityId, &str> = IndexVec::new();
//! let rome = cities.push("Rome");
//! assert_eq!(cities[rome], "Rome");
//! // A number from outside is checked before it becomes an id.
//! assert_eq!(cities.id(0), Some(rome));
//! assert_eq!(cities.id(1), None);
//! ```
//!
//! Indexing with an id panics if the list has no such entry. Ids come only from [`IndexVec::push`], [`IndexVec::id`] or
//! an iteration over the ids. A missing entry is therefore an error in the program and never in a file.
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A type for the indices of one list. The macro [`id_type!`](crate::id_type) defines such types.
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// A plural noun for the entries of the list, such as "frames". Panic messages use it.
    const TABLE: &'static str;

    /// Makes the id of the entry with this index.
    ///
    /// # Panics
    /// If the index does not fit 32 bits.
    fn from_index(index: usize) -> Self;

    /// The index of this id's entry in its list.
    fn index(self) -> usize;
}

/// Defines a type for the indices of one table: a 32-bit number, with a noun for the table's entries.
///
/// Code in other modules can make such ids only with [`Id::from_index`] and the methods of [`IndexVec`].
#[macro_export]
macro_rules! id_type {
    ($(#[$meta:meta])* $vis:vis struct $name:ident of $table:literal;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(u32);

        #[allow(dead_code, reason = "not every table uses this method")]
        impl $name {
            /// The index of the entry as a plain number, for a caller that stores facts about the entry in a different
            /// list.
            #[inline]
            $vis fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::index_vec::Id for $name {
            const TABLE: &'static str = $table;

            #[inline]
            fn from_index(index: usize) -> Self {
                match u32::try_from(index) {
                    Ok(index) => $name(index),
                    Err(_) => $crate::index_vec::full($table),
                }
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

/// A `Vec` that is indexed by ids of one type.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexVec<I, T> {
    entries: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Makes a list without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty list and reserves memory for this number of entries.
    pub fn with_capacity(entries: usize) -> Self {
        Vec::with_capacity(entries).into()
    }

    /// Makes a list with the same ids as `other`, in which each entry is a copy of `entry`.
    pub fn parallel_to<U>(other: &IndexVec<I, U>, entry: T) -> Self
    where
        T: Clone,
    {
        vec![entry; other.len()].into()
    }

    /// The number of entries in the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list has no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry and returns its id.
    ///
    /// # Panics
    /// If the list already has 2^32 entries.
    #[inline]
    pub fn push(&mut self, entry: T) -> I {
        let id = self.next_id();
        self.entries.push(entry);
        id
    }

    /// Returns the id that the next added entry will have.
    ///
    /// # Panics
    /// If the list already has 2^32 entries.
    #[inline]
    pub fn next_id(&self) -> I {
        I::from_index(self.entries.len())
    }

    /// Returns the id of the entry with this index; `None` if the list has no such entry.
    #[inline]
    pub fn id(&self, number: u32) -> Option<I> {
        let index = usize::try_from(number).ok()?;
        (index < self.entries.len()).then(|| I::from_index(index))
    }

    /// Returns the entry of an id; `None` if the list has no such entry because the id belongs to another list.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// Returns mutable access to the entry of an id; `None` if the list has no such entry because the id belongs to
    /// another list.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// Returns the ids of all entries in ascending order.
    pub fn ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.entries.len()).map(I::from_index)
    }

    /// Returns the entries in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// Returns mutable access to the entries in the order of their ids.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// Returns the entries with their ids, in the order of the ids.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        let entries = self.entries.iter().enumerate();
        entries.map(|(index, entry)| (I::from_index(index), entry))
    }

    /// Returns the entries as a slice, for callers that need no ids.
    pub fn as_slice(&self) -> &[T] {
        &self.entries
    }

    /// Returns the entries as a mutable vector. If the caller changes their order, old ids refer to other entries.
    pub fn as_mut_vec(&mut self) -> &mut Vec<T> {
        &mut self.entries
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(entries: Vec<T>) -> Self {
        IndexVec {
            entries,
            ids: PhantomData,
        }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IndexVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        match self.entries.get(id.index()) {
            Some(entry) => entry,
            None => absent::<I>(id, self.len()),
        }
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        let len = self.len();
        match self.entries.get_mut(id.index()) {
            Some(entry) => entry,
            None => absent::<I>(id, len),
        }
    }
}

#[cold]
#[expect(
    clippy::panic,
    reason = "an id that is not in its table is a bug of this library; to go on would write a wrong file"
)]
fn absent<I: Id>(id: I, len: usize) -> ! {
    panic!(
        "there is no entry {} among the {len} {}: the id is of another table",
        id.index(),
        I::TABLE
    )
}

/// Panics because a list has 2^32 entries.
#[doc(hidden)]
#[cold]
#[expect(
    clippy::panic,
    reason = "two entries would get the same id, and the written file would be wrong"
)]
pub fn full(table: &str) -> ! {
    panic!("the table of {table} is full: ids have 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::id_type! {
        struct LetterId of "letters";
    }

    fn letters() -> IndexVec<LetterId, char> {
        "abc".chars().collect()
    }

    #[test]
    fn ids_come_from_the_table_or_are_checked() {
        let mut letters = letters();
        let d = letters.push('d');
        assert_eq!(letters[d], 'd');
        letters[d] = 'D';
        assert_eq!(letters.get(d), Some(&'D'));
        assert_eq!(letters.id(3), Some(d));
        assert_eq!(letters.id(4), None);
        assert_eq!(letters.ids().next_back(), Some(d));
        assert!(letters.entries().all(|(id, &letter)| letters[id] == letter));
    }

    #[test]
    #[should_panic(expected = "there is no entry 3 among the 3 letters")]
    fn an_id_of_another_table_panics_with_the_name_of_the_table() {
        let letters = letters();
        let _ = letters[letters.next_id()];
    }

    #[test]
    #[should_panic(expected = "the table of letters is full")]
    #[cfg(target_pointer_width = "64")]
    fn a_full_table_panics_with_its_name() {
        let _ = LetterId::from_index(1 << 32);
    }
}
