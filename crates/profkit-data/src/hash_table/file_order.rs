//! Reads the items of a hash table in the order of the file, as LLVM does.
use super::{Entry, HashTable, Lengths, STRUCTURE, cursor_at};
use crate::bytes::Cursor;
use crate::{Error, ErrorKind, Result};

/// Reads the items of a hash table one after the other, as LLVM does (`OnDiskIterableChainedHashTable`). The iteration
/// reads as many items as the table states, and ignores the offsets of the buckets. In an undamaged file the items are
/// those of [`HashTable::entries`], in the same order. An item may lie beyond the table of buckets, but not beyond the
/// file. The iteration ends at the first error.
#[derive(Clone, Debug)]
pub struct FileOrder<'data> {
    items: Result<Cursor<'data>>,
    lengths: Lengths,
    /// The number of items that remain in the current bucket. If the file states 0 items for a bucket, the number wraps
    /// around, so that all further items are read as items of this bucket.
    in_bucket: u64,
    left: u64,
}

impl<'data> FileOrder<'data> {
    pub(super) fn new(table: &HashTable<'data>) -> Self {
        FileOrder {
            items: cursor_at(table.file, table.payload),
            lengths: table.lengths,
            in_bucket: 0,
            left: table.entry_count,
        }
    }

    fn read(&mut self) -> Result<Entry<'data>> {
        let items = self.items.as_mut().map_err(|error| error.clone())?;
        if self.in_bucket == 0 {
            self.in_bucket = u64::from(items.u16()?);
        }
        self.in_bucket = self.in_bucket.wrapping_sub(1);
        self.lengths.item(items, |_| Ok(()), |error, _| error)
    }
}

impl<'data> Iterator for FileOrder<'data> {
    type Item = Result<Entry<'data>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = self.read();
        if read.is_err() {
            self.left = 0;
        }
        // LLVM does not check whether an item is inside the file, and reads the bytes after the end of the file as a
        // record. These bytes are seldom a valid record, so LLVM then reports an error and prints the detail text
        // below. Our error has the same text.
        let past_file = |error: Error| {
            let error = error.with_kind(ErrorKind::Malformed).within(STRUCTURE);
            error.llvm_detail("profile data is empty")
        };
        Some(read.map_err(past_file))
    }
}
