//! Which blocks ran, by a record whose blocks are partly inferred. This reads the bytes by itself.
use profkit_abi::mip::{mode, record};

/// For each block of a function, the entry first, the blocks from which it is inferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists(Vec<Vec<usize>>);

impl Lists {
    /// Reads the lists of a map entry, which follow the offsets of its blocks. Returns how many bytes they take, too.
    pub fn read(bytes: &[u8], blocks: usize, flags: u16) -> (Lists, usize) {
        if flags & mode::INFERRED == 0 {
            return (Lists(vec![Vec::new(); blocks + 1]), 0);
        }
        let number =
            |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap()) as usize;
        let mut at = blocks + 1;
        let mut lists = Vec::new();
        for block in 0..=blocks {
            lists.push((at..at + number(block)).map(number).collect());
            at += number(block);
        }
        (Lists(lists), 4 * at)
    }

    /// How many blocks other than the entry have a byte.
    pub fn recorded(&self) -> usize {
        self.0.iter().skip(1).filter(|list| list.is_empty()).count()
    }

    pub fn has_entry(&self) -> bool {
        self.0[0].is_empty()
    }

    /// Whether each block ran, the entry first. `entry` is the size of the entry's record.
    pub fn ran(&self, records: &[u8], entry: usize) -> Vec<bool> {
        let mut bytes = records[entry..].iter();
        let mut ran: Vec<bool> = vec![records[..entry].iter().any(|&byte| byte != 0xff)];
        for list in &self.0[1..] {
            ran.push(list.is_empty() && *bytes.next().unwrap() == record::COVERED_BYTE);
        }
        for (block, list) in self.0.iter().enumerate() {
            if list.iter().any(|&from| ran[from]) {
                ran[block] = true;
            }
        }
        ran
    }
}
