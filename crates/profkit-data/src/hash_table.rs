//! LLVM's on-disk chained hash table (`OnDiskHashTable.h`), little-endian, with 64-bit hashes and offsets: the heart of
//! indexed instrumentation profiles, and of their MemProf section.
//!
//! The payload comes first, the bucket index after it:
//!
//! | bytes | payload of a non-empty bucket |
//! |---|---|
//! | 2 | number of items |
//! | an item: 8 | hash of the key |
//! | 8 | length of the key, unless [`Lengths::DataOnly`] |
//! | 8 | length of the data |
//! | … | key, data |
//!
//! | bytes | index |
//! |---|---|
//! | 8 | number of buckets, a power of two |
//! | 8 | number of items |
//! | 8 a bucket | absolute offset of its payload; 0 = empty |
//!
//! A key is in the bucket that the low bits of its hash name. LLVM writes buckets in order and zero bytes up to a
//! multiple of 8 before the index.
use crate::bytes::{Cursor, Endian};
use crate::{Error, ErrorKind, Result, Structure};

mod plan;
#[cfg(test)]
mod tests;
mod walk;

pub use plan::{ItemId, TablePlan};
pub use walk::Walk;

/// Which lengths an item states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Of the key and of the data (functions, MemProf records and frames).
    KeyAndData,
    /// Of the data only: all keys have this length (MemProf call stacks: 8).
    DataOnly {
        /// The length of each key.
        key: u64,
    },
}

impl Lengths {
    /// Bytes of an item before its key: hash and lengths.
    fn stated(self) -> u64 {
        match self {
            Lengths::KeyAndData => 24,
            Lengths::DataOnly { .. } => 16,
        }
    }
}

/// A table in a file: its index is known to lie inside, nothing else is checked yet.
#[derive(Clone, Copy, Debug)]
pub struct HashTable<'data> {
    file: &'data [u8],
    /// Where payload may begin.
    payload: u64,
    /// Where the index begins, which is where the payload ends.
    index: u64,
    /// The bucket offsets.
    buckets: &'data [[u8; 8]],
    entry_count: u64,
    lengths: Lengths,
    /// Whether the file ends before the payload does.
    cut: bool,
}

/// One item of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'data> {
    /// The stored hash of the key. Its low bits are known to name the bucket; the others are as the file says.
    pub hash: u64,
    /// The key.
    pub key: &'data [u8],
    /// The data.
    pub data: &'data [u8],
    /// Absolute offset of the item. Iteration in order meets these in ascending order.
    pub offset: u64,
    /// Absolute offset of the data.
    pub data_offset: u64,
}

impl<'data> Entry<'data> {
    /// A cursor over the data that knows its absolute offset.
    pub fn cursor(&self) -> Cursor<'data> {
        Cursor::new(self.data, self.data_offset, Endian::Little)
    }
}

const STRUCTURE: Structure = Structure::HashTable;
/// Number of buckets and number of items.
const INDEX_HEADER_LEN: u64 = 16;

impl<'data> HashTable<'data> {
    /// The table of the file whose index is at `index` and whose payload does not begin before `payload`, both
    /// absolute offsets.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the index runs past the end of the file, [`ErrorKind::Malformed`] if it lies before
    /// its payload or the number of buckets is not a power of two.
    pub fn parse(file: &'data [u8], payload: u64, index: u64, lengths: Lengths) -> Result<Self> {
        let mut cursor = cursor_at(file, index).within_table()?;
        if index < payload {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the bucket index lies before the items",
            )
            .at(index)
            .within(STRUCTURE)
            .found(format_args!("{index:#x}"))
            .expected(format_args!("at least {payload:#x}")));
        }
        let count_at = cursor.offset();
        let bucket_count = cursor.u64().within_table()?;
        let entry_count = cursor.u64().within_table()?;
        if !bucket_count.is_power_of_two() {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the number of buckets is not a power of two",
            )
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

    /// A table whose index cannot be read: it finds nothing, and [`walk`](Self::walk) reads its items up to `end`, an
    /// absolute offset. Without an end the file is cut before it: an item that the cut leaves incomplete is no error.
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

    /// What is wrong with the structure of the table, if anything: the first error of [`entries`](Self::entries).
    /// Looks at the head of each item.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    /// The items, without trust in the index. For tables whose keys are names and whose hashes are their MD5.
    pub fn walk(&self) -> Walk<'data> {
        Walk::new(*self)
    }

    /// How many buckets there are: a power of two.
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// How many items the table says it has. A claim: allocate nothing by it.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// The absolute offset after the index.
    pub fn end(&self) -> u64 {
        self.index + INDEX_HEADER_LEN + 8 * self.buckets.len() as u64
    }

    /// The item of a key. Looks at one bucket only.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the items of that bucket up to the key contradict their bounds.
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

    /// The first item whose key has a hash. Looks at one bucket only.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_hash(&self, hash: u64) -> Result<Option<Entry<'data>>> {
        let Some(mut chain) = self.open(self.bucket_of(hash), self.payload)? else {
            return Ok(None);
        };
        while let Some(entry) = chain.next(self.lengths, self.mask())? {
            if entry.hash == hash {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Where the items begin at the earliest, an absolute offset.
    pub fn payload_offset(&self) -> u64 {
        self.payload
    }

    /// Where the bucket index begins, an absolute offset.
    pub fn index_offset(&self) -> u64 {
        self.index
    }

    /// All items: by bucket, and in a bucket in chain order, which is the order of LLVM's readers.
    pub fn entries(&self) -> Entries<'data> {
        self.entries_of_share(0, 1)
    }

    /// The items whose hash is `share` modulo `shares`, a power of two, in the order of [`entries`](Self::entries).
    /// Tables of any size are cut alike, so the same share of several files holds the same keys.
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

    fn mask(&self) -> u64 {
        (self.buckets.len() as u64).saturating_sub(1)
    }

    fn bucket_of(&self, hash: u64) -> usize {
        // The mask is below the number of buckets, which is a usize.
        usize::try_from(hash & self.mask()).unwrap_or(0)
    }

    /// Where the payload of a bucket begins; 0 for an empty one.
    fn bucket_offset(&self, bucket: usize) -> u64 {
        self.buckets
            .get(bucket)
            .map_or(0, |&bytes| u64::from_le_bytes(bytes))
    }

    /// The chain of a bucket, bounded by the next bucket, so that a wrong length harms one bucket only.
    fn open(&self, bucket: usize, not_before: u64) -> Result<Option<Chain<'data>>> {
        let start = self.bucket_offset(bucket);
        if start == 0 {
            return Ok(None);
        }
        if start < not_before || start >= self.index {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the offset of a bucket is out of bounds",
            )
            .at(self.index + INDEX_HEADER_LEN + 8 * bucket as u64)
            .within(Structure::Bucket(bucket))
            .within(STRUCTURE)
            .found(format_args!("{start:#x}"))
            .expected(format_args!("{not_before:#x} to {:#x}", self.index)));
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

/// The items of one bucket that are still to be read.
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
        let offset = items.offset();
        let available = items.remaining();
        let past = |wanted: u64| move |_| past_bucket(offset, available, wanted);
        let fixed = lengths.stated();
        let hash = items.u64().map_err(past(fixed))?;
        if hash & mask != self.bucket as u64 {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the hash of a key belongs to another bucket",
            )
            .at(offset)
            .found(format_args!("{hash:#018x}"))
            .expected(format_args!("{:#x} in the bits {mask:#x}", self.bucket)));
        }
        let key_len = match lengths {
            Lengths::KeyAndData => items.u64().map_err(past(fixed))?,
            Lengths::DataOnly { key } => key,
        };
        let data_len = items.u64().map_err(past(fixed))?;
        let whole = fixed.saturating_add(key_len).saturating_add(data_len);
        let key = items.take_u64(key_len).map_err(past(whole))?;
        let data_offset = items.offset();
        let data = items.take_u64(data_len).map_err(past(whole))?;
        Ok(Entry {
            hash,
            key,
            data,
            offset,
            data_offset,
        })
    }
}

/// The items of a table in order. An error concerns the rest of one bucket; the items after it are those of the next.
///
/// At the end of a whole table, an error says so if there were more or fewer items than the index states.
#[derive(Clone, Debug)]
pub struct Entries<'data> {
    table: HashTable<'data>,
    /// The next bucket to open.
    bucket: usize,
    step: usize,
    share: u64,
    share_mask: u64,
    chain: Option<Chain<'data>>,
    /// Where the last item ended: no bucket may begin before that, or its bytes would be read twice.
    read_to: u64,
    seen: u64,
    /// Whether the number of items was compared with the index (or cannot be).
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
            Error::new(ErrorKind::Malformed, "the number of items is wrong")
                .at(self.table.index + 8)
                .within(STRUCTURE)
                .found(self.table.entry_count)
                .expected(format_args!("{}, which there are", self.seen))
        })
    }
}

fn cursor_at(file: &[u8], offset: u64) -> Result<Cursor<'_>> {
    let mut cursor = Cursor::new(file, 0, Endian::Little);
    cursor.take_u64(offset).map_err(|_| {
        Error::new(ErrorKind::Truncated, "an offset lies beyond the file")
            .found(format_args!("{offset:#x}"))
            .expected(format_args!("at most {:#x}", file.len()))
    })?;
    Ok(cursor)
}

#[cold]
fn past_bucket(offset: u64, available: usize, wanted: u64) -> Error {
    Error::new(ErrorKind::Malformed, "an item runs past its bucket")
        .at(offset)
        .found(format_args!("{available} bytes left"))
        .expected(format_args!("{wanted} bytes"))
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
