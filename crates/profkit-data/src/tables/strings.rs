//! The string table, which stores each string once.
use super::next_index;
use crate::bytes::{Bytes, Cursor, Sink};
use crate::{ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;

const TABLE: Structure = Structure::StringTable;

/// The index of a string in its string table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

/// A string table that is read from a file's bytes.
#[derive(Clone, Copy, Debug)]
pub struct StringTable<'data> {
    ends: &'data [[u8; 4]],
    bytes: &'data [u8],
}

impl<'data> StringTable<'data> {
    /// Reads a string table at the cursor. Checks that each string begins where the previous one ends.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the table is longer than the data, [`ErrorKind::Malformed`] if a string ends before
    /// it begins or after the last byte.
    pub fn read(cursor: &mut Cursor<'data>) -> Result<Self> {
        Self::read_inner(cursor).map_err(|error| error.within(TABLE))
    }

    fn read_inner(cursor: &mut Cursor<'data>) -> Result<Self> {
        let count = cursor.u32()?;
        let size = cursor.u32()?;
        let at = cursor.offset();
        let (ends, _) = cursor.take_u64(u64::from(count) * 4)?.as_chunks::<4>();
        let mut start = 0;
        for (place, end) in (at..).step_by(4).zip(ends) {
            let end = u32::from_le_bytes(*end);
            if end < start || end > size {
                return Err(ErrorKind::Malformed
                    .error("the end offset of a string is before its start or beyond the table")
                    .at(place)
                    .found(end)
                    .expected(format_args!("{start} to {size}")));
            }
            start = end;
        }
        let at = cursor.offset();
        let bytes = cursor.take_u64(u64::from(size))?;
        if start != size {
            return Err(ErrorKind::Malformed
                .error("some bytes belong to no string")
                .at(at + u64::from(start))
                .found(Bytes(size - start))
                .expected("none"));
        }
        Ok(StringTable { ends, bytes })
    }

    /// The number of strings in the table.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table has no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of a string; `None` if the table does not have the string.
    pub fn get(&self, id: StringId) -> Option<&'data [u8]> {
        let index = id.0 as usize;
        let end = u32::from_le_bytes(*self.ends.get(index)?) as usize;
        let start = match index.checked_sub(1) {
            Some(before) => u32::from_le_bytes(*self.ends.get(before)?) as usize,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// Makes a copy of the table, to which strings can be added.
    pub fn to_owned(&self) -> Strings {
        Strings {
            ends: self
                .ends
                .iter()
                .map(|end| u32::from_le_bytes(*end))
                .collect(),
            bytes: self.bytes.to_vec(),
            index: FxHashMap::default(),
            indexed: 0,
        }
    }
}

/// A string table to which strings can be added.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// For each hash, the indexes of the strings with this hash. This map is built when the first string is added,
    /// because a table that is only read does not need it.
    index: FxHashMap<u64, Vec<u32>>,
    indexed: usize,
}

impl Strings {
    /// Returns the id of a string. If the table does not have the string, it is added.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if the table is full.
    pub fn intern(&mut self, string: &[u8]) -> Result<StringId> {
        while self.indexed < self.ends.len() {
            let id = next_index(self.indexed, TABLE)?;
            let hash = hash_of(self.get(StringId(id)).unwrap_or_default());
            self.index.entry(hash).or_default().push(id);
            self.indexed += 1;
        }
        let hash = hash_of(string);
        let known = self.index.get(&hash).into_iter().flatten();
        for &id in known {
            if self.get(StringId(id)) == Some(string) {
                return Ok(StringId(id));
            }
        }
        let id = next_index(self.ends.len(), TABLE)?;
        let end = self.bytes.len() + string.len();
        let Ok(end) = u32::try_from(end) else {
            return Err(ErrorKind::LimitExceeded
                .error("the strings are too long in total")
                .within(TABLE)
                .found(Bytes(end))
                .expected("fewer than 2^32"));
        };
        self.bytes.extend_from_slice(string);
        self.ends.push(end);
        self.index.entry(hash).or_default().push(id);
        self.indexed += 1;
        Ok(StringId(id))
    }

    /// Returns the bytes of a string; `None` if the table does not have the string.
    pub fn get(&self, id: StringId) -> Option<&[u8]> {
        let index = id.0 as usize;
        let end = *self.ends.get(index)? as usize;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// The number of strings in the table.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table has no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of bytes that the table takes in a file.
    pub fn encoded_len(&self) -> usize {
        8 + 4 * self.ends.len() + self.bytes.len()
    }

    /// Writes the string table.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<()> {
        let count = next_index(self.ends.len(), TABLE)?;
        let size = self.ends.last().copied().unwrap_or(0);
        super::put_words(sink, &[count, size])?;
        super::put_words(sink, &self.ends)?;
        sink.put(&self.bytes)
    }
}

/// Two tables are equal if they have the same strings in the same order.
impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.bytes == other.bytes
    }
}

impl Eq for Strings {}

fn hash_of(string: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(string);
    hasher.finish()
}
