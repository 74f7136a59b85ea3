//! Reads all items of a table that is believed to be sound.
use super::{Entry, HashTable};

impl<'data> HashTable<'data> {
    /// Calls `each` with all items in the order of [`entries`](Self::entries), as long as it returns `true` and the
    /// table is sound and without gaps. Returns whether all items were visited and nothing is wrong with the table.
    /// [`entries`](Self::entries) reports what is wrong: it makes the same checks, but takes several times as long.
    pub fn scan(&self, mut each: impl FnMut(&Entry<'data>) -> bool) -> bool {
        self.try_scan(&mut each).is_some()
    }

    fn try_scan(&self, each: &mut impl FnMut(&Entry<'data>) -> bool) -> Option<()> {
        let end = usize::try_from(self.index).ok()?;
        let items = self.file.get(..end)?;
        let (mask, stated) = (self.mask(), self.lengths.stated());
        let (mut read_to, mut seen) = (usize::try_from(self.payload).ok()?, 0u64);
        for (bucket, offset) in (0u64..).zip(self.buckets) {
            let start = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
            if start == 0 {
                continue;
            }
            // Writers leave no gaps, and LLVM reads the items without the offsets of the buckets.
            if start != read_to {
                return None;
            }
            let (count, mut rest) = items.get(start..)?.split_first_chunk::<2>()?;
            for _ in 0..u16::from_le_bytes(*count) {
                let offset = end - rest.len();
                let (words, _) = rest.as_chunks::<8>();
                let word = |index: usize| words.get(index).map(|bytes| u64::from_le_bytes(*bytes));
                let hash = word(0)?;
                let (key_len, data_len) = match self.lengths {
                    super::Lengths::KeyAndData => (word(1)?, word(2)?),
                    super::Lengths::DataOnly { key } => (key, word(1)?),
                };
                if hash & mask != bucket {
                    return None;
                }
                let (_, item) = rest.split_at_checked(usize::try_from(stated).ok()?)?;
                let (key, item) = item.split_at_checked(usize::try_from(key_len).ok()?)?;
                let (data, item) = item.split_at_checked(usize::try_from(data_len).ok()?)?;
                rest = item;
                let entry = Entry {
                    hash,
                    key,
                    data,
                    offset: offset as u64,
                    data_offset: (end - rest.len() - data.len()) as u64,
                };
                if !each(&entry) {
                    return None;
                }
            }
            read_to = end - rest.len();
            seen += u64::from(u16::from_le_bytes(*count));
        }
        (seen == self.entry_count).then_some(())
    }
}
