//! How it is known whether a block ran that has no byte in its function's record.
use super::model::{EntryKind, Modes};
use crate::{Error, ErrorKind, Structure};

/// For each block of a function, from which other blocks it is inferred whether the block ran.
///
/// Blocks have numbers here: 0 is the entry of the function, and 1 is the first of [`Function::blocks`]. A block with an
/// empty list has a byte in the record. A block with a list has none; it ran if and only if one of the blocks in the list
/// ran.
///
/// ```
/// use profkit_data::mip::Inference;
///
/// // `if (x) a(); else b(); c();`: c ran if the function was entered.
/// let inference = Inference::new([&[][..], &[], &[], &[0]]);
/// assert_eq!(inference.list(3), [0]);
/// assert_eq!(inference.recorded(), 2);
/// ```
///
/// [`Function::blocks`]: super::Function::blocks
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inference {
    /// Where the list of each block ends in `from`.
    ends: Vec<u32>,
    from: Vec<u32>,
}

impl Inference {
    /// Makes the inference of a function from the lists of its blocks, that of the entry first.
    pub fn new<'a>(lists: impl IntoIterator<Item = &'a [u32]>) -> Self {
        let mut inference = Inference {
            ends: Vec::new(),
            from: Vec::new(),
        };
        for list in lists {
            inference.from.extend_from_slice(list);
            let end = u32::try_from(inference.from.len()).unwrap_or(u32::MAX);
            inference.ends.push(end);
        }
        inference
    }

    /// Makes the inference from the form that files have: for each of `blocks` + 1 blocks the length of its list, then
    /// the lists. `None` if there are not exactly as many numbers.
    pub fn from_numbers(blocks: usize, numbers: &[[u8; 4]]) -> Option<Self> {
        let (lengths, from) = numbers.split_at_checked(blocks.checked_add(1)?)?;
        let mut end = 0u32;
        let ends = lengths.iter().map(|length| {
            end = end.checked_add(u32::from_le_bytes(*length))?;
            Some(end)
        });
        let ends = ends.collect::<Option<Vec<u32>>>()?;
        (end as usize == from.len()).then(|| Inference {
            ends,
            from: from
                .iter()
                .map(|number| u32::from_le_bytes(*number))
                .collect(),
        })
    }

    /// Returns the numbers that files have, in the order of [`from_numbers`](Self::from_numbers).
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        let lengths = self
            .lists()
            .map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX));
        lengths.chain(self.from.iter().copied())
    }

    /// Returns how many numbers [`numbers`](Self::numbers) returns.
    pub fn number_count(&self) -> usize {
        self.ends.len() + self.from.len()
    }

    /// Returns the blocks from which a block is inferred. The list is empty if the block has a byte in the record.
    pub fn list(&self, block: usize) -> &[u32] {
        let end = |block: usize| self.ends.get(block).map_or(0, |&end| end as usize);
        let start = block.checked_sub(1).map_or(0, end);
        self.from.get(start..end(block)).unwrap_or_default()
    }

    /// Returns the list of each block, that of the entry first.
    pub fn lists(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.ends.len()).map(|block| self.list(block))
    }

    /// Returns how many blocks other than the entry have a byte in the record.
    pub fn recorded(&self) -> usize {
        self.lists().skip(1).filter(|list| list.is_empty()).count()
    }

    /// Checks that a function with this number of blocks and these modes can have this inference.
    ///
    /// # Errors
    /// If a list names a block that does not exist or has no byte itself, or the entry of a function that must have a
    /// record of its entry. The error has no place.
    pub fn check(&self, blocks: usize, modes: Modes) -> Result<(), Error> {
        let wrong = |message: &'static str| {
            ErrorKind::Malformed
                .error(message)
                .within(Structure::Blocks)
        };
        if self.ends.len() != blocks + 1 {
            return Err(
                wrong("the lists of inferred blocks are not as many as the blocks")
                    .found(self.ends.len())
                    .expected(blocks + 1),
            );
        }
        let is_part = modes.contains(Modes::PART);
        if !self.list(0).is_empty() && (is_part || modes.entry() != Some(EntryKind::Coverage)) {
            return Err(wrong(
                "the entry of a function is inferred although its calls are counted",
            )
            .expected("an entry with its own record, except in plain coverage"));
        }
        for (block, list) in self.lists().enumerate() {
            for &from in list {
                let known = (from as usize) < self.ends.len();
                if !known || from == 0 && is_part {
                    return Err(
                        wrong("a block is inferred from a block that does not exist")
                            .found(format_args!("block {block} from block {from}"))
                            .expected(format_args!("a block up to {blocks}")),
                    );
                }
                if !self.list(from as usize).is_empty() {
                    return Err(
                        wrong("a block is inferred from a block that is inferred itself")
                            .found(format_args!("block {block} from block {from}"))
                            .expected("a block that has a byte in the record"),
                    );
                }
            }
        }
        Ok(())
    }
}
