use super::Lengths;
use crate::bytes::assert_planned;
use crate::index_vec::Id;
use crate::{ErrorKind, Result};

crate::id_type! {
    /// The index of an item in the order of insertion into the hash table.
    pub struct ItemId of "items of a hash table";
}

/// The plan of a hash table: the order of its items in the file, and their offsets. [`new`](Self::new) computes the
/// plan before any byte is written. The buckets and items have the order that LLVM's `OnDiskChainedHashTableGenerator`
/// produces if the items are inserted in the same order.
///
/// A *position* is the index of an item in the order of writing. [`len`](Self::len) is the position after the last
/// item.
#[derive(Clone, Debug)]
pub struct TablePlan {
    order: Vec<ItemId>,
    /// The position of the first item of each bucket. One more element at the end is the number of all items.
    bucket_starts: Vec<u32>,
    /// For each position, the offset of its item in bytes, counted from the offset at which the items begin. For the
    /// first item of a bucket, it is the offset of the bucket's item count, which precedes the item. One more element
    /// at the end is the total length of all items.
    offsets: Vec<u64>,
    lengths: Lengths,
}

/// Returns the offset in the file at which the table of buckets begins. `start` is the offset in the file at which the
/// items begin, and `payload_len` their length in bytes.
pub fn index_offset(start: u64, payload_len: u64) -> u64 {
    (start + payload_len).next_multiple_of(8)
}

/// The number of buckets that a hash table of LLVM's generator has at first.
const FIRST_BUCKETS: usize = 64;
/// The length in bytes of the item count that is stored before the items of each bucket.
const BUCKET_HEADER_LEN: u64 = 2;

impl TablePlan {
    /// Plans a hash table for items whose hashes are given in the order of insertion. `sizes` returns the lengths of
    /// the key and of the data of an item.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] if the table has 2^32 items or more, or a bucket has 65,536 items or more.
    pub fn new(
        hashes: impl ExactSizeIterator<Item = u64> + Clone,
        mut sizes: impl FnMut(ItemId) -> (u64, u64),
        lengths: Lengths,
    ) -> Result<Self> {
        let count = hashes.len();
        let Some(count_u32) = u32::try_from(count).ok().filter(|&count| count < u32::MAX) else {
            return Err(ErrorKind::CannotRepresent
                .error("a hash table has too many items")
                .found(count));
        };
        let grown = grown_buckets(count);
        let (mut order, mut bucket_starts) = grow(hashes, count_u32, grown);
        let buckets = final_buckets(count);
        if buckets != grown {
            (order, bucket_starts) = shrink(&order, &bucket_starts, buckets);
        }
        let items = order.into_iter();
        let order: Vec<ItemId> = items
            .map(|item| ItemId::from_index(item as usize))
            .collect();
        let mut offsets = Vec::with_capacity(count + 1);
        let mut offset = 0u64;
        let stated = lengths.stated();
        let mut positions = order.iter();
        for bucket in bucket_starts.windows(2) {
            let &[start, end] = bucket else { continue };
            if end - start > u32::from(u16::MAX) {
                return Err(ErrorKind::CannotRepresent
                    .error("a bucket of the hash table has too many items")
                    .found(end - start)
                    .expected(format_args!("at most {}", u16::MAX)));
            }
            for position in start..end {
                offsets.push(offset);
                if position == start {
                    offset += BUCKET_HEADER_LEN;
                }
                let (key, data) = positions.next().map_or((0, 0), |&item| sizes(item));
                offset += stated + key + data;
            }
        }
        offsets.push(offset);
        Ok(TablePlan {
            order,
            bucket_starts,
            offsets,
            lengths,
        })
    }

    /// The number of items in the hash table.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the table has no items.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of buckets in the hash table.
    pub fn bucket_count(&self) -> usize {
        self.bucket_starts.len() - 1
    }

    /// The length in bytes of all items, including the item count before the items of each bucket.
    pub fn payload_len(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The length in bytes of the table of buckets, including the padding before it. `start` is the offset in the file
    /// at which the items begin.
    pub fn index_len(&self, start: u64) -> u64 {
        self.index_offset(start) - (start + self.payload_len())
            + 16
            + 8 * self.bucket_count() as u64
    }

    /// Returns the offset in the file at which the table of buckets begins. `start` is the offset in the file at which
    /// the items begin.
    pub fn index_offset(&self, start: u64) -> u64 {
        index_offset(start, self.payload_len())
    }

    /// The length in bytes of the items from position `from` up to position `to`, without the item at `to`.
    pub fn range_len(&self, from: usize, to: usize) -> u64 {
        let at = |position: usize| self.offsets.get(position).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// Returns the first position after `from` whose item begins at least `bytes` bytes after the item at `from`.
    /// Returns [`len`](Self::len) if there is no such position.
    pub fn position_after(&self, from: usize, bytes: u64) -> usize {
        let target = self.offsets.get(from).copied().unwrap_or(0) + bytes;
        let past = self.offsets.partition_point(|&offset| offset < target);
        past.clamp((from + 1).min(self.len()), self.len())
    }

    /// Appends the items at a range of positions. The item count of a bucket is written before the bucket's first item.
    /// `item` returns the hash, the key length and the data length of an item; `body` appends the key and the data of
    /// an item.
    ///
    /// # Errors
    /// The errors of `body`.
    ///
    /// # Panics
    /// If an item is longer or shorter than planned.
    pub fn encode_payload(
        &self,
        positions: std::ops::Range<usize>,
        mut item: impl FnMut(ItemId) -> (u64, u64, u64),
        mut body: impl FnMut(ItemId, &mut Vec<u8>) -> Result<()>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let before = out.len();
        let planned = self.range_len(positions.start, positions.end);
        let mut bucket = self
            .bucket_starts
            .partition_point(|&start| (start as usize) < positions.start);
        for position in positions {
            let Some(&index) = self.order.get(position) else {
                break;
            };
            // Skip the buckets that end at or before this position. Empty buckets are skipped too.
            while self.next_start(bucket) <= position {
                bucket += 1;
            }
            if self.start(bucket) == position {
                let items = self.next_start(bucket) - position;
                // The conversion cannot fail, because `new` has checked that the number is at most 65,535.
                out.extend_from_slice(&u16::try_from(items).unwrap_or(u16::MAX).to_le_bytes());
            }
            let (hash, key, data) = item(index);
            out.extend_from_slice(&hash.to_le_bytes());
            if self.lengths == Lengths::KeyAndData {
                out.extend_from_slice(&key.to_le_bytes());
            }
            out.extend_from_slice(&data.to_le_bytes());
            body(index, out)?;
        }
        let written = (out.len() - before) as u64;
        assert_planned("items of the hash table", planned, written);
        Ok(())
    }

    /// Appends the padding and the table of buckets. The items must begin at offset `start` of the file.
    pub fn encode_index(&self, start: u64, out: &mut Vec<u8>) {
        let before = out.len();
        let padding = self.index_offset(start) - (start + self.payload_len());
        out.extend((0..padding).map(|_| 0));
        out.extend_from_slice(&(self.bucket_count() as u64).to_le_bytes());
        out.extend_from_slice(&(self.len() as u64).to_le_bytes());
        for bucket in self.bucket_starts.windows(2) {
            let &[first, end] = bucket else { continue };
            let offset = match self.offsets.get(first as usize) {
                Some(offset) if first < end => start + offset,
                _ => 0,
            };
            out.extend_from_slice(&offset.to_le_bytes());
        }
        let written = (out.len() - before) as u64;
        assert_planned("index of the hash table", self.index_len(start), written);
    }

    fn start(&self, bucket: usize) -> usize {
        self.bucket_starts
            .get(bucket)
            .map_or(usize::MAX, |&start| start as usize)
    }

    fn next_start(&self, bucket: usize) -> usize {
        self.start(bucket + 1)
    }
}

/// The shape of the hash table that LLVM's generator makes of a number of items. With it the order of the items of each
/// bucket can be found without a list of all items.
///
/// The generator puts each new item at the front of its bucket, and each doubling of the table reverses the order in
/// every bucket. So the place of an item depends on the number of doublings before its insertion, which is the number of
/// turning points ([`turning_point`](Self::turning_point)) up to the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    buckets: usize,
    doublings: u32,
}

impl TableShape {
    /// The shape of a table of `items` items. `None` for tables of fewer than 48 items: the generator moves their items
    /// to fewer buckets before it writes them.
    pub fn of(items: usize) -> Option<Self> {
        let buckets = grown_buckets(items);
        (buckets > FIRST_BUCKETS && buckets == final_buckets(items)).then(|| TableShape {
            buckets,
            doublings: (buckets / FIRST_BUCKETS).trailing_zeros(),
        })
    }

    /// The number of buckets of the table.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// How often the table is doubled.
    pub fn doublings(&self) -> u32 {
        self.doublings
    }

    /// The number of the item, counted from 0 in the order of insertion, before whose insertion the table is doubled for the
    /// first time (`doubling` is 0), the second time, and so on.
    pub fn turning_point(doubling: u32) -> usize {
        (3 * FIRST_BUCKETS / 4)
            .checked_shl(doubling)
            .filter(|&items| items >> doubling == 3 * FIRST_BUCKETS / 4)
            .map_or(usize::MAX, |items| items - 1)
    }

    /// Whether an item that was inserted after this number of doublings comes before all items of its bucket that were
    /// inserted earlier. Otherwise it comes after them.
    pub fn goes_in_front(&self, doublings: u32) -> bool {
        self.doublings.abs_diff(doublings).is_multiple_of(2)
    }
}

/// The number of buckets that LLVM's generator has after `items` insertions, before it resizes the table for the file.
fn grown_buckets(items: usize) -> usize {
    let mut buckets = FIRST_BUCKETS;
    while 4 * items >= 3 * buckets {
        buckets *= 2;
    }
    buckets
}

/// The number of buckets in the file for a table of `items` items. LLVM's generator resizes the table to this number
/// before it writes the table.
fn final_buckets(items: usize) -> usize {
    if items <= 2 {
        return 1;
    }
    (items * 4 / 3 + 1).next_power_of_two()
}

/// Computes the order of the items after all insertions, and the start of each bucket in this order. `hashes` has the
/// hash of each of the `count` items, in the order of insertion. `buckets` is the number of buckets after all
/// insertions.
///
/// LLVM's generator puts each new item at the front of its bucket, and each doubling of the table reverses the order in
/// every bucket. So the place of an item depends on the number of doublings after its insertion. If this number is
/// even, the item is before all items of its bucket that were inserted earlier. If it is odd, the item is after them.
fn grow(
    hashes: impl Iterator<Item = u64> + Clone,
    count: u32,
    buckets: usize,
) -> (Vec<u32>, Vec<u32>) {
    let mask = buckets as u64 - 1;
    let bucket_of = |hash: u64| usize::try_from(hash & mask).unwrap_or(0);
    let doublings = (buckets / FIRST_BUCKETS).trailing_zeros();
    // Returns whether the number of doublings after the insertion of an item is even. The caller must call this for all
    // items in the order of their insertion. `epoch` has the number of doublings so far and the current number of
    // buckets.
    let mut epoch = (0u32, FIRST_BUCKETS);
    let mut goes_in_front = move |index: usize| {
        while 4 * (index + 1) >= 3 * epoch.1 {
            epoch = (epoch.0 + 1, epoch.1 * 2);
        }
        (doublings - epoch.0).is_multiple_of(2)
    };
    let mut totals = vec![0u32; buckets + 1];
    let mut fronts = vec![0u32; buckets];
    // Use a copy of the closure and its state for each of the two passes, because each pass starts at the first item.
    let mut in_front = goes_in_front;
    for (index, hash) in hashes.clone().enumerate() {
        let bucket = bucket_of(hash);
        if let Some(total) = totals.get_mut(bucket + 1) {
            *total += 1;
        }
        if let Some(front) = fronts.get_mut(bucket) {
            *front += u32::from(in_front(index));
        }
    }
    let mut sum = 0;
    for total in &mut totals {
        sum += *total;
        *total = sum;
    }
    let bucket_starts = totals;
    // From this line on, `fronts` and `backs` hold a position for each bucket. For an item at the front of the bucket,
    // the position in `fronts` is reduced by one, and the item goes to the reduced position. An item at the back goes
    // to the position in `backs`, and this position is then increased by one.
    let mut backs = Vec::with_capacity(buckets);
    for (front, &start) in fronts.iter_mut().zip(&bucket_starts) {
        *front += start;
        backs.push(*front);
    }
    let mut order = vec![0u32; count as usize];
    for (index, hash) in (0u32..).zip(hashes) {
        let bucket = bucket_of(hash);
        let position = if goes_in_front(index as usize) {
            fronts.get_mut(bucket).map(|front| {
                *front -= 1;
                *front
            })
        } else {
            backs.get_mut(bucket).map(|back| {
                *back += 1;
                *back - 1
            })
        };
        if let Some(slot) = position.and_then(|position| order.get_mut(position as usize)) {
            *slot = index;
        }
    }
    (order, bucket_starts)
}

/// Moves the items of a table to `buckets` buckets, fewer than before, as LLVM's generator does before it writes a
/// small table: visits the old buckets in order and puts each item at the start of its new bucket.
fn shrink(order: &[u32], bucket_starts: &[u32], buckets: usize) -> (Vec<u32>, Vec<u32>) {
    let mut chains = vec![Vec::new(); buckets];
    for (bucket, bounds) in bucket_starts.windows(2).enumerate() {
        let &[start, end] = bounds else { continue };
        let items = order.get(start as usize..end as usize).unwrap_or_default();
        if let Some(chain) = chains.get_mut(bucket & (buckets - 1)) {
            chain.extend_from_slice(items);
        }
    }
    let mut new_order = Vec::with_capacity(order.len());
    let mut new_starts = vec![0];
    let mut end = 0;
    for chain in chains {
        new_order.extend(chain.iter().rev());
        end += u32::try_from(chain.len()).unwrap_or(0);
        new_starts.push(end);
    }
    (new_order, new_starts)
}
