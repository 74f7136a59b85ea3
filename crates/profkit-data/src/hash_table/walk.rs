//! Finds the items of a hash table whose table of buckets is damaged.
use super::{Entry, HashTable, STRUCTURE, cursor_at};
use crate::bytes::Bytes;
use crate::ids::NameRef;
use crate::{Error, ErrorKind, Result, limits};

/// Reads the items of a hash table one after the other. The walk needs no table of buckets. It returns the items whose
/// stored hash is the hash of their key. So it works only for tables whose hashes are computed from the keys, such as
/// tables of functions. The item count that the file stores for a bucket is only a hint.
///
/// Each damaged place gives one error. Reading then continues with the next item. If the stored hash of the next item
/// is not the hash of its key, reading continues at the next bucket offset that can still be read from the damaged
/// table of buckets. No byte is part of two returned items. [`limits::WALK_HASHED`] limits the work for keys that do
/// not match their hash.
#[derive(Clone, Debug)]
pub struct Walk<'data> {
    table: HashTable<'data>,
    /// The bucket offsets that can still be read from the table of buckets, in ascending order. After damage, reading
    /// continues at the first of these offsets that is after `position`.
    starts: std::vec::IntoIter<u64>,
    position: u64,
    /// The number of items that remain in the current bucket, according to the file.
    left: u16,
    /// The number of key bytes that may still be hashed.
    budget: u64,
    done: bool,
}

/// An item whose hash matches its key, and the number of items that remain in its bucket according to the file.
type Step<'data> = (Entry<'data>, u16);

struct Fault {
    error: Error,
    /// Whether the item would run beyond the start of the table of buckets, where all items must have ended.
    past_end: bool,
    /// The position after the faulty item, and the number of items that remain in the bucket after it. The position is
    /// computed from the lengths that the faulty item states; `None` if these lengths cannot be used.
    next: Option<(u64, u16)>,
}

impl<'data> Walk<'data> {
    pub(super) fn new(table: HashTable<'data>) -> Self {
        let offsets = table.buckets.iter().map(|&bytes| u64::from_le_bytes(bytes));
        let payload = table.payload..table.index;
        let mut starts: Vec<u64> = offsets.filter(|offset| payload.contains(offset)).collect();
        starts.sort_unstable();
        let len = table.index.saturating_sub(table.payload);
        Walk {
            starts: starts.into_iter(),
            position: table.payload,
            left: 0,
            budget: len.saturating_mul(limits::WALK_HASHED),
            done: false,
            table,
        }
    }

    /// The offset up to which items were read. After the last item, this is the offset of the first byte that belongs
    /// to no item.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether only padding lies between this position and the table of buckets.
    fn is_end(&self, position: u64) -> bool {
        let left = self.table.index.saturating_sub(position);
        left < 8
            && cursor_at(self.table.file, position)
                .and_then(|mut cursor| cursor.take_u64(left))
                .is_ok_and(|padding| padding.iter().all(|&byte| byte == 0))
    }

    /// Reads the item at a position. `left` is the number of items that remain in the current bucket. If it is 0, a new
    /// bucket should begin at the position, and the item count of the new bucket is skipped first.
    fn step(&mut self, position: u64, left: u16) -> std::result::Result<Step<'data>, Fault> {
        let (first, second) = match left.checked_sub(1) {
            Some(left) => (self.item(position, left), None),
            None => (self.bucket(position), Some(0)),
        };
        let fault = match first {
            Ok(step) => return Ok(step),
            Err(fault) => fault,
        };
        // The item count of the previous bucket may be wrong. If a new bucket was assumed to begin here, read the next
        // item of the previous bucket instead; otherwise assume that a new bucket begins here.
        match second {
            Some(left) => self.item(position, left),
            None => self.bucket(position),
        }
        .map_err(|_| fault)
    }

    fn bucket(&mut self, position: u64) -> std::result::Result<Step<'data>, Fault> {
        let count = cursor_at(self.table.file, position)
            .and_then(|mut cursor| cursor.window(self.table.index.saturating_sub(position)))
            .and_then(|mut cursor| cursor.u16())
            .map_err(|error| Fault {
                error,
                past_end: true,
                next: None,
            })?;
        // An item count of 0 is wrong, because empty buckets are not written. It is treated as 1.
        self.item(position + 2, count.saturating_sub(1))
    }

    fn item(&mut self, position: u64, left: u16) -> std::result::Result<Step<'data>, Fault> {
        let entry = self.unverified(position).map_err(|error| Fault {
            error,
            past_end: true,
            next: None,
        })?;
        let error = match self.budget.checked_sub(entry.key.len() as u64) {
            None => ErrorKind::LimitExceeded
                .error("the hash table is too damaged: the search for more items ended"),
            Some(budget) => {
                self.budget = budget;
                let hash = NameRef::of(entry.key);
                if hash.0 == entry.hash {
                    return Ok((entry, left));
                }
                ErrorKind::Malformed
                    .error("the stored hash of a key is not the hash of the key")
                    .found(NameRef(entry.hash))
                    .expected(hash)
            }
        };
        Err(Fault {
            error: error.at(position),
            past_end: false,
            next: Some((entry.data_offset + entry.data.len() as u64, left)),
        })
    }

    /// Reads the item at a position without checking its hash. Fails if the item, by its stored lengths, would run past
    /// the end of all items.
    fn unverified(&self, position: u64) -> Result<Entry<'data>> {
        let left = self.table.index.saturating_sub(position);
        let mut items = cursor_at(self.table.file, position)?.window(left)?;
        let past = |_, wanted| {
            ErrorKind::Malformed
                .error("an item runs past the end of the table")
                .at(position)
                .found(format_args!("{} left", Bytes(left)))
                .expected(Bytes(wanted))
        };
        self.table.lengths.item(&mut items, |_| Ok(()), past)
    }

    fn skip(&mut self, fault: &Fault) {
        if let Some((next, left)) = fault.next
            && (self.is_end(next) || self.step(next, left).is_ok())
        {
            (self.position, self.left) = (next, left);
            return;
        }
        while let Some(start) = self.starts.next() {
            if start > self.position && self.step(start, 0).is_ok() {
                (self.position, self.left) = (start, 0);
                return;
            }
        }
        self.done = true;
    }
}

impl<'data> Iterator for Walk<'data> {
    type Item = Result<Entry<'data>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.done |= self.is_end(self.position);
        if self.done {
            return None;
        }
        match self.step(self.position, self.left) {
            Ok((entry, left)) => {
                self.position = entry.data_offset + entry.data.len() as u64;
                self.left = left;
                Some(Ok(entry))
            }
            Err(fault) => {
                self.skip(&fault);
                // If the file is cut off, the incomplete last item is not reported here, because the caller reports
                // that the file is cut off.
                let cut = self.done && fault.past_end && self.table.cut;
                (!cut).then(|| Err(fault.error.within(STRUCTURE)))
            }
        }
    }
}
