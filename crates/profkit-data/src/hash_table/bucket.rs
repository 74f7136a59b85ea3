//! Reads the buckets of a table that is believed to be sound. [`HashTable::entries`] reads the same items in the same order
//! and tells what is wrong with a damaged table, but takes several times as long.
use super::{Entry, HashTable, Lengths};

/// The items of one bucket ([`HashTable::bucket`]).
#[derive(Clone, Debug)]
pub struct Bucket<'data> {
    rest: &'data [u8],
    left: u16,
    start: u64,
    offset: u64,
    number: u64,
    mask: u64,
}

/// A bucket that is damaged. [`HashTable::entries`] reports what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedBucket;

impl<'data> HashTable<'data> {
    /// Opens a bucket. `None` if it is empty.
    ///
    /// # Errors
    /// [`DamagedBucket`] if the bucket lies outside the table or has no items, and for a table whose items do not state the
    /// lengths of their keys.
    #[inline]
    pub fn bucket(&self, number: usize) -> Result<Option<Bucket<'data>>, DamagedBucket> {
        let start = self.bucket_offset(number);
        if start == 0 {
            return Ok(None);
        }
        let bucket = self.bucket_at(start, number);
        let bucket = bucket.filter(|bucket| bucket.left > 0);
        bucket.map(Some).ok_or(DamagedBucket)
    }

    /// Finds the first item whose key has this hash. `None` if the table has no such item, or the bucket is damaged.
    #[inline]
    pub fn find_hash(&self, hash: u64) -> Option<Entry<'data>> {
        let mut bucket = self.bucket(self.bucket_of(hash)).ok()??;
        while let Some(entry) = bucket.next_item().ok()? {
            if entry.hash == hash {
                return Some(entry);
            }
        }
        None
    }

    /// Calls `each` with all items, in the order of [`entries`](Self::entries), as long as it returns `true` and the table
    /// is sound and without gaps. Returns whether all items were visited and nothing is wrong with the table. `false` for a
    /// table whose items do not state the lengths of their keys.
    pub fn scan(&self, mut each: impl FnMut(&Entry<'data>) -> bool) -> bool {
        self.try_scan(&mut each).is_some()
    }

    fn try_scan(&self, each: &mut impl FnMut(&Entry<'data>) -> bool) -> Option<()> {
        let (mut read_to, mut seen) = (self.payload, 0u64);
        for number in 0..self.bucket_count() {
            let start = self.bucket_offset(number);
            if start == 0 {
                continue;
            }
            // Writers leave no gaps, and LLVM reads the items without the offsets of the buckets.
            if start != read_to {
                return None;
            }
            let mut bucket = self.bucket_at(start, number)?;
            while let Some(entry) = bucket.next_item().ok()? {
                if !each(&entry) {
                    return None;
                }
                seen += 1;
            }
            read_to = bucket.offset;
        }
        (seen == self.entry_count).then_some(())
    }

    #[inline]
    fn bucket_at(&self, start: u64, number: usize) -> Option<Bucket<'data>> {
        if self.lengths != Lengths::KeyAndData || start < self.payload {
            return None;
        }
        let range = usize::try_from(start).ok()?..usize::try_from(self.index).ok()?;
        let (count, rest) = self.file.get(range)?.split_first_chunk::<2>()?;
        Some(Bucket {
            rest,
            left: u16::from_le_bytes(*count),
            start,
            offset: start + 2,
            number: number as u64,
            mask: self.mask(),
        })
    }
}

impl<'data> Bucket<'data> {
    /// The number of items that are left to read.
    #[inline]
    pub fn left(&self) -> usize {
        usize::from(self.left)
    }

    /// The offset in the file at which the bucket begins.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The offset in the file at which the last item that was read ends.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    fn item(&mut self) -> Option<Entry<'data>> {
        let (head, after) = self.rest.split_first_chunk::<24>()?;
        let ([hash, key_len, data_len], _) = head.as_chunks::<8>() else {
            return None;
        };
        let hash = u64::from_le_bytes(*hash);
        if hash & self.mask != self.number {
            return None;
        }
        let key_len = usize::try_from(u64::from_le_bytes(*key_len)).ok()?;
        let data_len = usize::try_from(u64::from_le_bytes(*data_len)).ok()?;
        let (key, after) = after.split_at_checked(key_len)?;
        let (data, after) = after.split_at_checked(data_len)?;
        let offset = self.offset;
        let data_offset = offset + 24 + key_len as u64;
        self.rest = after;
        self.offset = data_offset + data_len as u64;
        Some(Entry {
            hash,
            key,
            data,
            offset,
            data_offset,
        })
    }

    /// The next item; `None` after the last.
    ///
    /// # Errors
    /// [`DamagedBucket`] if the item does not end inside the table, or its hash belongs to another bucket.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Entry<'data>>, DamagedBucket> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.item().map(Some).ok_or(DamagedBucket)
    }
}
