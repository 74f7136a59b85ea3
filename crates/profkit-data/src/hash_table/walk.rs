//! The items of a damaged table, found without its bucket index.
use super::{Entry, HashTable, Lengths, STRUCTURE, cursor_at};
use crate::ids::NameRef;
use crate::{Error, ErrorKind, Result, limits};

/// Reads the payload of a table from its beginning to its end, item by item, and keeps what proves itself: each hash
/// must be that of its key, as in tables of functions. Numbers of items in a bucket count as hints only.
///
/// Where an item is damaged there is one error, and reading goes on with the item after it or, if that is not found
/// either, with the next bucket that the index leads to. Each byte belongs to one item at most; what is hashed in
/// vain is limited by [`limits::WALK_HASHED`].
#[derive(Clone, Debug)]
pub struct Walk<'data> {
    table: HashTable<'data>,
    /// Where buckets begin according to the index, ascending: beyond `position` they are of use.
    starts: std::vec::IntoIter<u64>,
    position: u64,
    /// How many more items the bucket should have.
    left: u16,
    /// How many bytes of keys may still be hashed.
    budget: u64,
    done: bool,
}

/// An item that proved itself, and how many more its bucket should have.
type Step<'data> = (Entry<'data>, u16);

/// Why there is no item at a place.
struct Fault {
    error: Error,
    /// Whether it would reach beyond the payload.
    past_end: bool,
    /// Where the next item would be by the lengths of this one, and how many its bucket should still have.
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

    /// Where reading stands: after the end, where the first byte is that belongs to no item.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether nothing but padding is left.
    fn is_end(&self, position: u64) -> bool {
        let left = self.table.index.saturating_sub(position);
        left < 8
            && cursor_at(self.table.file, position)
                .and_then(|mut cursor| cursor.take_u64(left))
                .is_ok_and(|padding| padding.iter().all(|&byte| byte == 0))
    }

    /// The item at a place, or after the number of items of a bucket there.
    fn step(&mut self, position: u64, left: u16) -> std::result::Result<Step<'data>, Fault> {
        let (first, second) = match left.checked_sub(1) {
            Some(left) => (self.item(position, left), None),
            None => (self.bucket(position), Some(0)),
        };
        let fault = match first {
            Ok(step) => return Ok(step),
            Err(fault) => fault,
        };
        // The number of items may be what is wrong.
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
        // No bucket in a file has no items: then that is wrong too.
        self.item(position + 2, count.saturating_sub(1))
    }

    fn item(&mut self, position: u64, left: u16) -> std::result::Result<Step<'data>, Fault> {
        let entry = self.unverified(position).map_err(|error| Fault {
            error,
            past_end: true,
            next: None,
        })?;
        let error = match self.budget.checked_sub(entry.key.len() as u64) {
            None => Error::new(
                ErrorKind::LimitExceeded,
                "too much is damaged to look for more items",
            ),
            Some(budget) => {
                self.budget = budget;
                let hash = NameRef::of(entry.key);
                if hash.0 == entry.hash {
                    return Ok((entry, left));
                }
                Error::new(
                    ErrorKind::Malformed,
                    "the hash of a key is not that of its bytes",
                )
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

    /// The item at a place, if its lengths are within bounds.
    fn unverified(&self, position: u64) -> Result<Entry<'data>> {
        let left = self.table.index.saturating_sub(position);
        let mut items = cursor_at(self.table.file, position)?.window(left)?;
        let past = |wanted: u64| {
            move |_| {
                Error::new(
                    ErrorKind::Malformed,
                    "an item runs past the end of the items",
                )
                .at(position)
                .found(format_args!("{left} bytes left"))
                .expected(format_args!("{wanted} bytes"))
            }
        };
        let fixed = self.table.lengths.stated();
        let hash = items.u64().map_err(past(fixed))?;
        let key_len = match self.table.lengths {
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
            offset: position,
            data_offset,
        })
    }

    /// Finds where to go on after a fault; at the end if there is nowhere.
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
                // The caller reports what the end of the file cuts off: it knows that the file is cut.
                let cut = self.done && fault.past_end && self.table.cut;
                (!cut).then(|| Err(fault.error.within(STRUCTURE)))
            }
        }
    }
}
