//! Branch stacks.
use profkit_data::bytes::Endian;

/// A branch that the processor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The address of the branch instruction.
    pub from: u64,
    /// The address of the branch's target.
    pub to: u64,
    flags: u64,
    big: bool,
}

impl Branch {
    /// Returns the `width` bits of the flags from bit `bit` on. The flags are a C bit field. On machines with
    /// big-endian numbers, compilers assign its bits from the other end.
    fn field(self, bit: u32, width: u32) -> u64 {
        let shift = if self.big { 64 - bit - width } else { bit };
        self.flags >> shift & ((1 << width) - 1)
    }

    /// Whether the processor predicted a different target.
    pub fn is_mispredicted(self) -> bool {
        self.field(0, 1) == 1
    }

    /// Whether the processor predicted the right target.
    pub fn is_predicted(self) -> bool {
        self.field(1, 1) == 1
    }

    /// Whether the branch was in a memory transaction.
    pub fn is_in_transaction(self) -> bool {
        self.field(2, 1) == 1
    }

    /// Whether the branch aborted a memory transaction.
    pub fn is_abort(self) -> bool {
        self.field(3, 1) == 1
    }

    /// The number of processor cycles since the previous branch, up to 65,535; 0 if the processor does not count them.
    pub fn cycles(self) -> u64 {
        self.field(4, 16)
    }

    /// The kind of the branch (`PERF_BR_*`): 0 unknown, 1 conditional, 2 unconditional, 3 indirect, 4 call, 5 indirect
    /// call, 6 return. There are more kinds.
    pub fn kind(self) -> u64 {
        self.field(20, 4)
    }

    /// Whether the processor took the branch only by speculation and later discarded it.
    pub fn is_wrong_path(self) -> bool {
        self.field(24, 2) == 1
    }

    /// Whether the branch was not taken.
    pub fn is_not_taken(self) -> bool {
        self.field(33, 1) == 1
    }
}

/// The size in bytes of a branch in a file.
const BRANCH: usize = 24;

/// A branch stack: the last branches that the processor took, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branches<'data> {
    entries: &'data [[u8; BRANCH]],
    big: bool,
}

impl<'data> Branches<'data> {
    pub(crate) fn new(bytes: &'data [u8], endian: Endian) -> Self {
        Branches {
            entries: bytes.as_chunks().0,
            big: endian == Endian::Big,
        }
    }

    /// The number of entries of the stack, including unused ones.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// Returns all entries of the stack, including unused ones.
    pub fn raw(self) -> impl DoubleEndedIterator<Item = Branch> + ExactSizeIterator + 'data {
        let big = self.big;
        let endian = if big { Endian::Big } else { Endian::Little };
        self.entries.iter().map(move |entry| {
            let (words, _) = entry.as_chunks::<8>();
            let word = |index: usize| words.get(index).map_or(0, |word| endian.u64(*word));
            Branch {
                from: word(0),
                to: word(1),
                flags: word(2),
                big,
            }
        })
    }

    /// Returns the entries before the first unused one. In an unused entry, both addresses are 0.
    pub fn iter(self) -> impl Iterator<Item = Branch> + 'data {
        self.raw()
            .take_while(|branch| branch.from != 0 || branch.to != 0)
    }
}
