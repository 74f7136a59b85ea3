//! The mappings of an address space over time.
use super::Mapped;
use std::collections::BTreeMap;

/// An address space, divided into pieces that do not overlap. A piece is a range of addresses, with a list of all
/// mappings that covered the whole range at some time, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The pieces. The key of a piece is its start address.
    pieces: BTreeMap<u64, Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    end: u64,
    first: Mapped,
    later: Vec<Mapped>,
}

/// The result of [`Space::around`]: the first and the last address of a range. If the range has a mapping, also this
/// mapping, and the first and the last time at which it applies.
pub type Around<'s> = ((u64, u64), Option<(&'s Mapped, (u64, u64))>);

impl Piece {
    fn add(&mut self, mapped: Mapped) -> usize {
        let last = *self.later.last().unwrap_or(&self.first);
        let same = |a: Mapped| a.start.wrapping_sub(a.page_offset);
        let moved_to_memory = mapped.binary.is_none() && last.binary.is_some();
        if moved_to_memory || (last.binary == mapped.binary && same(last) == same(mapped)) {
            return 0;
        }
        self.later.push(mapped);
        1
    }

    fn at(&self, time: u64) -> &Mapped {
        // Mappings are added in the order of time, so `later` is sorted.
        let end = self.later.partition_point(|mapped| mapped.from <= time);
        let later = end.checked_sub(1).and_then(|last| self.later.get(last));
        later.unwrap_or(&self.first)
    }

    /// Returns the first and the last time for which [`at`](Self::at) returns the same mapping as for `time`.
    fn times(&self, time: u64) -> (u64, u64) {
        let end = self.later.partition_point(|mapped| mapped.from <= time);
        let first = end.checked_sub(1).and_then(|last| self.later.get(last));
        let next = self.later.get(end);
        (
            first.map_or(0, |mapped| mapped.from),
            next.map_or(u64::MAX, |mapped| mapped.from.saturating_sub(1)),
        )
    }
}

impl Space {
    /// Adds a mapping of the addresses from `start` up to but not including `end`. The mapping is stored in each piece
    /// that it covers. Returns two numbers: the increase in the number of mappings that all pieces together store, and
    /// the number of earlier pieces that the mapping covers.
    pub fn insert(&mut self, start: u64, end: u64, mapped: Mapped) -> (usize, usize) {
        let mut cost = self.split(start) + self.split(end);
        let mut position = start;
        let mut gaps = Vec::new();
        let mut covered = 0;
        for (&from, piece) in self.pieces.range_mut(start..end) {
            if position < from {
                gaps.push((position, from));
            }
            cost += piece.add(mapped);
            covered += 1;
            position = piece.end;
        }
        if position < end {
            gaps.push((position, end));
        }
        cost += gaps.len();
        for (from, end) in gaps {
            let piece = Piece {
                end,
                first: mapped,
                later: Vec::new(),
            };
            self.pieces.insert(from, piece);
        }
        (cost, covered)
    }

    /// Splits the piece that contains an address, so that a piece begins at this address. Both pieces contain all
    /// mappings of the old piece. Returns the number of mappings that were copied for this.
    fn split(&mut self, address: u64) -> usize {
        let Some((&from, piece)) = self.pieces.range_mut(..address).next_back() else {
            return 0;
        };
        if piece.end <= address || from == address {
            return 0;
        }
        let mut upper = piece.clone();
        piece.end = address;
        upper.later.shrink_to_fit();
        let cost = 1 + upper.later.len();
        self.pieces.insert(address, upper);
        cost
    }

    /// Returns the largest range of addresses around `address` in which all addresses have the same mappings: a piece,
    /// or the gap between two pieces. For a piece, also returns the mapping that [`at`](Self::at) finds for `time`, and
    /// the first and the last time for which it finds this mapping.
    pub fn around(&self, address: u64, time: u64) -> Around<'_> {
        let before = self.pieces.range(..=address).next_back();
        if let Some((&start, piece)) = before
            && address < piece.end
        {
            let mapped = piece.at(time);
            let times = piece.times(time);
            return ((start, piece.end - 1), Some((mapped, times)));
        }
        let after = self.pieces.range(address..).next();
        let first = before.map_or(0, |(_, piece)| piece.end);
        let last = after.map_or(u64::MAX, |(&start, _)| start.saturating_sub(1));
        ((first, last), None)
    }

    /// Returns the mapping that covers an address at the given time. If all mappings of the address are later, returns
    /// the first one.
    pub fn at(&self, address: u64, time: u64) -> Option<&Mapped> {
        let (_, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then(|| piece.at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::BinaryId;

    fn mapped(start: u64, binary: u32, from: u64) -> Mapped {
        Mapped {
            start,
            page_offset: 0,
            binary: Some(BinaryId(binary)),
            from,
        }
    }

    fn at(space: &Space, address: u64, time: u64) -> Option<u32> {
        space.at(address, time)?.binary.map(|binary| binary.0)
    }

    #[test]
    fn a_later_mapping_hides_a_part_of_an_earlier_one() {
        let mut space = Space::default();
        assert_eq!(space.insert(100, 200, mapped(100, 1, 0)), (1, 0));
        space.insert(150, 160, mapped(150, 2, 50));
        space.insert(190, 300, mapped(190, 3, 60));
        assert_eq!(at(&space, 149, 70), Some(1));
        assert_eq!(at(&space, 150, 49), Some(1));
        assert_eq!(at(&space, 150, 50), Some(2));
        assert_eq!(at(&space, 160, 70), Some(1));
        assert_eq!(at(&space, 195, 59), Some(1));
        assert_eq!(at(&space, 195, 60), Some(3));
        // At this time, nothing was mapped at this address yet. The only mapping, which is later, is returned.
        assert_eq!(at(&space, 299, 0), Some(3));
        assert_eq!(at(&space, 300, 99), None);
        assert_eq!(at(&space, 99, 99), None);
    }

    #[test]
    fn memory_does_not_replace_a_file() {
        let mut space = Space::default();
        space.insert(100, 200, mapped(100, 1, 0));
        let memory = Mapped {
            binary: None,
            ..mapped(100, 0, 10)
        };
        assert_eq!(space.insert(100, 200, memory), (0, 1));
        assert_eq!(at(&space, 150, 20), Some(1));
    }
}
