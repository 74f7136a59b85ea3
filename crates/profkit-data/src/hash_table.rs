//! LLVM's on-disk chained hash table (`OnDiskHashTable.h`), little-endian, with 64-bit hashes and offsets. In an
//! indexed instrumentation profile, the function table and the tables of the MemProf section are such hash tables.
//!
//! The items come first (the payload), then the table of buckets:
//!
//! | bytes | payload of a non-empty bucket |
//! |---|---|
//! | 2 | number of items; the following fields are repeated for each item |
//! | 8 | hash of the key |
//! | 8 | length of the key, unless [`Lengths::DataOnly`] |
//! | 8 | length of the data |
//! | … | key, data |
//!
//! | bytes | table of buckets |
//! |---|---|
//! | 8 | number of buckets, a power of two |
//! | 8 | number of items |
//! | 8 per bucket | absolute offset of its payload; 0 = empty |
//!
//! The low bits of a key's hash select its bucket. LLVM writes the buckets in ascending order. Before the table of
//! buckets, it writes zero bytes up to a multiple of 8.
use crate::bytes::{Bytes, Cursor, Endian};
use crate::{Error, ErrorKind, Result, Structure};

mod bucket;
mod file_order;
mod plan;
#[cfg(test)]
mod tests;
mod walk;

pub use bucket::{Bucket, DamagedBucket};
pub use file_order::FileOrder;
pub use plan::{ItemId, TablePlan, TableShape, index_offset};
pub use walk::Walk;

/// The lengths that are stored with each item of a hash table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// The lengths of the key and of the data are stored. Tables of functions, of MemProf records and of MemProf frames
    /// store both lengths.
    KeyAndData,
    /// Only the length of the data is stored, because all keys have the same length. In the table of MemProf call
    /// stacks, the length of a key is 8 bytes.
    DataOnly {
        /// The length of every key in bytes. The items do not store it.
        key: u64,
    },
}

impl Lengths {
    /// The number of bytes of an item before its key: the bytes of the hash and of the stored lengths.
    fn stated(self) -> u64 {
        match self {
            Lengths::KeyAndData => 24,
            Lengths::DataOnly { .. } => 16,
        }
    }

    /// Reads an item: hash, stored lengths, key and data. `check` is called with the hash before anything else is read;
    /// if `check` returns an error, the item is not read. If the data end inside the item, `past` makes the error that
    /// is returned: `past` is called with the cursor's error and the number of bytes that the item needs.
    fn item<'data>(
        self,
        items: &mut Cursor<'data>,
        check: impl FnOnce(u64) -> Result<()>,
        past: impl Fn(Error, u64) -> Error,
    ) -> Result<Entry<'data>> {
        let (offset, stated) = (items.offset(), self.stated());
        let hash = items.u64().map_err(|error| past(error, stated))?;
        check(hash)?;
        let key_len = match self {
            Lengths::KeyAndData => items.u64().map_err(|error| past(error, stated))?,
            Lengths::DataOnly { key } => key,
        };
        let data_len = items.u64().map_err(|error| past(error, stated))?;
        let whole = stated.saturating_add(key_len).saturating_add(data_len);
        let key = items
            .take_u64(key_len)
            .map_err(|error| past(error, whole))?;
        let data_offset = items.offset();
        let data = items
            .take_u64(data_len)
            .map_err(|error| past(error, whole))?;
        Ok(Entry {
            hash,
            key,
            data,
            offset,
            data_offset,
        })
    }
}

/// A hash table in a file. [`parse`](Self::parse) has checked that the table of buckets is inside the file. Everything
/// else is checked when it is read.
#[derive(Clone, Copy, Debug)]
pub struct HashTable<'data> {
    file: &'data [u8],
    /// The smallest offset in the file at which the first item can begin.
    payload: u64,
    /// The offset of the table of buckets. The items end before this offset.
    index: u64,
    /// The offsets of the buckets, as the file stores them.
    buckets: &'data [[u8; 8]],
    entry_count: u64,
    lengths: Lengths,
    /// Whether the file ends before the last item is complete.
    cut: bool,
}

/// One item of a hash table: a key and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'data> {
    /// The hash of the key, as the file stores it. A reader that uses the table of buckets has checked only the low
    /// bits of the hash, which select the bucket.
    pub hash: u64,
    /// The key of the item.
    pub key: &'data [u8],
    /// The bytes that belong to the key.
    pub data: &'data [u8],
    /// The offset of the item in the file. In [`HashTable::entries`] these offsets increase.
    pub offset: u64,
    /// The offset of the item's data in the file.
    pub data_offset: u64,
}

impl<'data> Entry<'data> {
    /// Returns a cursor over the item's data. The offsets of the cursor count from the start of the file.
    pub fn cursor(&self) -> Cursor<'data> {
        Cursor::new(self.data, self.data_offset, Endian::Little)
    }
}

const STRUCTURE: Structure = Structure::HashTable;
/// The length in bytes of the two numbers before the bucket offsets: the number of buckets and the number of items.
const INDEX_HEADER_LEN: u64 = 16;

impl<'data> HashTable<'data> {
    /// Opens a hash table in `file`. The table of buckets is at offset `index`, and the items begin at offset `payload`
    /// or later. Both offsets count from the start of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the table of buckets is not completely inside the file, [`ErrorKind::Malformed`] if
    /// `index` is less than `payload` or if the number of buckets is not a power of two.
    pub fn parse(file: &'data [u8], payload: u64, index: u64, lengths: Lengths) -> Result<Self> {
        let mut cursor = cursor_at(file, index).within_table()?;
        if index < payload {
            return Err(ErrorKind::Malformed
                .error("the table of buckets lies before the items")
                .at(index)
                .within(STRUCTURE)
                .found(format_args!("{index:#x}"))
                .expected(format_args!("at least {payload:#x}")));
        }
        let count_at = cursor.offset();
        let bucket_count = cursor.u64().within_table()?;
        let entry_count = cursor.u64().within_table()?;
        if !bucket_count.is_power_of_two() {
            return Err(ErrorKind::Malformed
                .error("the number of buckets is not a power of two")
                .at(count_at)
                .within(STRUCTURE)
                .found(bucket_count));
        }
        let buckets = cursor
            .take_u64(bucket_count.saturating_mul(8))
            .within_table()?;
        let (buckets, _) = buckets.as_chunks::<8>();
        Ok(HashTable {
            file,
            payload,
            index,
            buckets,
            entry_count,
            lengths,
            cut: false,
        })
    }

    /// Makes a hash table for a file whose table of buckets cannot be read. Look-ups find nothing, but
    /// [`walk`](Self::walk) reads the items up to the offset `end`. If `end` is `None`, the file is assumed to end
    /// inside the items, so an incomplete last item is no error.
    pub fn without_index(
        file: &'data [u8],
        payload: u64,
        end: Option<u64>,
        lengths: Lengths,
    ) -> HashTable<'data> {
        let file_end = file.len() as u64;
        HashTable {
            file,
            payload,
            index: end.map_or(file_end, |end| end.min(file_end)),
            buckets: &[],
            entry_count: 0,
            lengths,
            cut: end.is_none(),
        }
    }

    /// Checks the structure of the whole table by reading the start of each item.
    pub fn check(&self) -> Result<()> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    /// Reads the items one after the other without the table of buckets. This is possible only if the keys are names
    /// and the hashes are the MD5 of the names.
    pub fn walk(&self) -> Walk<'data> {
        Walk::new(*self)
    }

    /// Reads the items in the order of the file, as LLVM does.
    pub fn file_order(&self) -> FileOrder<'data> {
        FileOrder::new(self)
    }

    /// The number of buckets of the table, which is a power of two.
    #[inline]
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// The number of items, as the file states it at the start of the table of buckets. A damaged file may state any
    /// number, so do not reserve memory for this number of items.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// The offset in the file at which the table of buckets ends.
    pub fn end(&self) -> u64 {
        self.index + INDEX_HEADER_LEN + 8 * self.buckets.len() as u64
    }

    /// Finds the item with this key; `None` if the table has no such item. `hash` must be the hash of `key`. Only one
    /// bucket is read.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the bucket has a damaged item before the item with this key.
    pub fn find(&self, hash: u64, key: &[u8]) -> Result<Option<Entry<'data>>> {
        let bucket = self.bucket_of(hash);
        let mut chain = match self.open(bucket, self.payload)? {
            Some(chain) => chain,
            None => return Ok(None),
        };
        while let Some(entry) = chain.next(self.lengths, self.mask())? {
            if entry.hash == hash && entry.key == key {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The smallest offset in the file at which the first item can begin.
    pub fn payload_offset(&self) -> u64 {
        self.payload
    }

    /// The offset of the table of buckets in the file.
    pub fn index_offset(&self) -> u64 {
        self.index
    }

    /// Returns all items, one bucket after the other. The items of a bucket are in the order of the file, as in LLVM's
    /// readers.
    pub fn entries(&self) -> Entries<'data> {
        self.entries_of_share(0, 1)
    }

    /// Returns only the items whose hash modulo `shares` is `share`, in the order of [`entries`](Self::entries).
    /// `shares` must be a power of two. The hash alone decides, so the same key is in the same share of every file,
    /// even if the files have different numbers of buckets.
    pub fn entries_of_share(&self, share: usize, shares: usize) -> Entries<'data> {
        debug_assert!(shares.is_power_of_two() && share < shares);
        let step = shares.min(self.bucket_count()).max(1);
        Entries {
            table: *self,
            bucket: share & (step - 1),
            step,
            share: share as u64,
            share_mask: shares as u64 - 1,
            chain: None,
            read_to: self.payload,
            seen: 0,
            counted: shares != 1,
        }
    }

    #[inline]
    fn mask(&self) -> u64 {
        (self.buckets.len() as u64).saturating_sub(1)
    }

    fn bucket_of(&self, hash: u64) -> usize {
        // The conversion cannot fail, because the mask is less than the number of buckets, which fits `usize`.
        usize::try_from(hash & self.mask()).unwrap_or(0)
    }

    /// The offset of a bucket's first item in the file; 0 if the bucket is empty.
    #[inline]
    fn bucket_offset(&self, bucket: usize) -> u64 {
        self.buckets
            .get(bucket)
            .map_or(0, |&bytes| u64::from_le_bytes(bytes))
    }

    /// Opens a bucket, which is a chain of items; `None` if the bucket is empty. `not_before` is the smallest offset
    /// that the bucket may have. The bytes of the bucket end where the next bucket begins, so that a wrong length
    /// damages only one bucket.
    fn open(&self, bucket: usize, not_before: u64) -> Result<Option<Chain<'data>>> {
        let start = self.bucket_offset(bucket);
        if start == 0 {
            return Ok(None);
        }
        if start < not_before || start >= self.index {
            return Err(ErrorKind::Malformed
                .error("the offset of a bucket is out of bounds")
                .at(self.index + INDEX_HEADER_LEN + 8 * bucket as u64)
                .within(Structure::Bucket(bucket))
                .within(STRUCTURE)
                .found(format_args!("{start:#x}"))
                .expected(format_args!(
                    "at least {not_before:#x} and less than {:#x}",
                    self.index
                )));
        }
        let rest = self.buckets.get(bucket + 1..).unwrap_or_default();
        let next = rest
            .iter()
            .map(|&bytes| u64::from_le_bytes(bytes))
            .find(|&offset| offset != 0);
        let end = next
            .filter(|&next| next > start && next < self.index)
            .unwrap_or(self.index);
        let mut items = cursor_at(self.file, start)
            .and_then(|mut cursor| cursor.window(end - start))
            .within_table()?;
        let left = items.u16().map_err(|error| in_bucket(error, bucket))?;
        Ok(Some(Chain {
            items,
            left,
            bucket,
        }))
    }
}

#[derive(Clone, Debug)]
struct Chain<'data> {
    items: Cursor<'data>,
    left: u16,
    bucket: usize,
}

impl<'data> Chain<'data> {
    fn next(&mut self, lengths: Lengths, mask: u64) -> Result<Option<Entry<'data>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.item(lengths, mask)
            .map(Some)
            .map_err(|error| in_bucket(error, self.bucket))
    }

    fn item(&mut self, lengths: Lengths, mask: u64) -> Result<Entry<'data>> {
        let items = &mut self.items;
        let (offset, available, bucket) = (items.offset(), items.remaining(), self.bucket);
        let of_bucket = |hash: u64| {
            if hash & mask == bucket as u64 {
                return Ok(());
            }
            Err(ErrorKind::Malformed
                .error("the hash of a key belongs to another bucket")
                .at(offset)
                .found(format_args!("{hash:#018x}"))
                .expected(match mask.count_ones() {
                    1 => format!("a hash whose lowest bit is {bucket}"),
                    bits => format!("a hash whose lowest {bits} bits are {bucket:#x}"),
                }))
        };
        let past = |_, wanted| past_bucket(offset, available, wanted);
        lengths.item(items, of_bucket, past)
    }
}

/// Iterates over all items of a hash table, or only over the items with certain hashes
/// ([`HashTable::entries_of_share`]). After an error, the iteration continues with the next bucket.
///
/// At the end, the number of items is compared with the number that the file states. If the numbers differ, the last
/// result of the iteration is an error. This check is skipped if an item was damaged, or if not all items were
/// requested.
#[derive(Clone, Debug)]
pub struct Entries<'data> {
    table: HashTable<'data>,
    bucket: usize,
    step: usize,
    share: u64,
    share_mask: u64,
    chain: Option<Chain<'data>>,
    /// The offset after the last item that was read. A bucket that begins before this offset is damaged, because its
    /// bytes would be read twice.
    read_to: u64,
    seen: u64,
    /// Whether the check at the end of the iteration was already made or is not needed. The check compares the number
    /// of items with the number that the file states. It is not needed if an item was damaged, or if not all items were
    /// requested.
    counted: bool,
}

impl<'data> Iterator for Entries<'data> {
    type Item = Result<Entry<'data>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(chain) = &mut self.chain {
                match chain.next(self.table.lengths, self.table.mask()) {
                    Ok(Some(entry)) => {
                        self.read_to = entry.data_offset + entry.data.len() as u64;
                        self.seen += 1;
                        if entry.hash & self.share_mask == self.share {
                            return Some(Ok(entry));
                        }
                        continue;
                    }
                    Ok(None) => self.chain = None,
                    Err(error) => {
                        self.chain = None;
                        self.counted = true;
                        return Some(Err(error));
                    }
                }
            }
            if self.bucket >= self.table.bucket_count() {
                return self.count_check().map(Err);
            }
            let bucket = self.bucket;
            self.bucket += self.step;
            match self.table.open(bucket, self.read_to) {
                Ok(chain) => self.chain = chain,
                Err(error) => {
                    self.counted = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Entries<'_> {
    #[cold]
    fn count_check(&mut self) -> Option<Error> {
        let wrong = !self.counted && self.seen != self.table.entry_count;
        self.counted = true;
        wrong.then(|| {
            ErrorKind::Malformed
                .error(
                    "the number of items differs from the number that the table of buckets states",
                )
                .at(self.table.index + 8)
                .within(STRUCTURE)
                .found(format_args!("{} items", self.seen))
                .expected(self.table.entry_count)
        })
    }
}

fn cursor_at(file: &[u8], offset: u64) -> Result<Cursor<'_>> {
    let mut cursor = Cursor::new(file, 0, Endian::Little);
    cursor.take_u64(offset).map_err(|_| {
        ErrorKind::Truncated
            .error("an offset lies beyond the file")
            .found(format_args!("{offset:#x}"))
            .expected(format_args!("at most {:#x}", file.len()))
    })?;
    Ok(cursor)
}

#[cold]
fn past_bucket(offset: u64, available: usize, wanted: u64) -> Error {
    ErrorKind::Malformed
        .error("an item runs past the end of its bucket")
        .at(offset)
        .found(format_args!("{} left", Bytes(available)))
        .expected(Bytes(wanted))
}

#[cold]
fn in_bucket(error: Error, bucket: usize) -> Error {
    error.within(Structure::Bucket(bucket)).within(STRUCTURE)
}

trait WithinTable {
    fn within_table(self) -> Self;
}

impl<T> WithinTable for Result<T> {
    fn within_table(self) -> Self {
        self.map_err(|error| error.within(STRUCTURE))
    }
}
