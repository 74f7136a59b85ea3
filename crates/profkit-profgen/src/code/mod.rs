//! The instructions of a binary: where each begins, and what it does to the flow of control. Code is decoded when it is
//! first asked for.
mod a64;
mod x86;

pub(crate) use x86::details;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The instruction set of a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86. The number is the size of an address in bits.
    X86(u32),
    /// AArch64.
    A64,
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Control continues with the next instruction.
    #[default]
    Next,
    /// A call.
    Call,
    /// A return.
    Return,
    /// A direct jump that is always taken.
    Jump,
    /// A conditional branch.
    Branch,
    /// A jump to an address in a register or in memory.
    IndirectJump,
}

impl Flow {
    /// LLVM does not count indirect jumps among these instructions, so ranges may contain them.
    fn always_leaves(self) -> bool {
        matches!(self, Flow::Call | Flow::Return | Flow::Jump)
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The address of the instruction.
    pub address: u64,
    /// The size of the instruction in bytes.
    pub size: u8,
    /// What the instruction does to the flow of control.
    pub flow: Flow,
}

/// An instruction with what it says about other places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    pub instruction: Instruction,
    /// The target of a direct jump or branch.
    pub target: Option<u64>,
    /// The address of data: of a slot or table with addresses from which an indirect jump gets its target, or the address
    /// that the instruction computes.
    pub data: Option<u64>,
    /// Whether there are addresses at `data`, and not distances from it.
    pub is_absolute: bool,
}

#[derive(Debug)]
struct Piece {
    start: u64,
    end: u64,
    decoded: OnceLock<Decoded>,
    /// A later piece that is reached without a taken branch; the pieces before it have an empty `leaving`. 0: not
    /// known.
    next: AtomicUsize,
}

#[derive(Debug)]
struct Decoded {
    instructions: Box<[Instruction]>,
    /// The addresses of the instructions after which control never continues with the next instruction.
    leaving: Box<[u64]>,
}

#[derive(Debug)]
struct Section<'data> {
    address: u64,
    bytes: &'data [u8],
    pieces: Vec<Piece>,
    pieces_before: usize,
}

/// The code of a binary.
#[derive(Debug)]
pub struct Code<'data> {
    machine: Machine,
    sections: Vec<Section<'data>>,
}

impl<'data> Code<'data> {
    /// Code begins at the addresses in `starts`, data at those in `data`. Bytes before the first start are not code.
    pub fn new(
        machine: Machine,
        mut sections: Vec<(u64, &'data [u8])>,
        mut starts: Vec<u64>,
        data: &[u64],
    ) -> Self {
        sections.sort_by_key(|(address, _)| *address);
        starts.extend_from_slice(data);
        starts.sort_unstable();
        starts.dedup();
        let mut pieces_before = 0;
        let sections = sections
            .into_iter()
            .map(|(address, bytes)| {
                let end = address.saturating_add(bytes.len() as u64);
                let first = starts.partition_point(|&start| start < address);
                let last = starts.partition_point(|&start| start < end);
                let inside = starts.get(first..last).unwrap_or_default();
                let ends = inside.iter().skip(1).copied().chain([end]);
                let pieces = inside.iter().zip(ends);
                let pieces = pieces.filter(|(start, _)| data.binary_search(start).is_err());
                let pieces: Vec<Piece> = pieces
                    .map(|(&start, end)| Piece {
                        start,
                        end,
                        decoded: OnceLock::new(),
                        next: AtomicUsize::new(0),
                    })
                    .collect();
                let before = pieces_before;
                pieces_before += pieces.len();
                Section {
                    address,
                    bytes,
                    pieces,
                    pieces_before: before,
                }
            })
            .collect();
        Code { machine, sections }
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.sections
            .iter()
            .all(|section| section.pieces.is_empty())
    }

    fn decoded<'c>(&self, section: &Section<'data>, piece: &'c Piece) -> &'c Decoded {
        piece.decoded.get_or_init(|| {
            let skipped = usize::try_from(piece.start - section.address).unwrap_or(usize::MAX);
            let bytes = section.bytes.get(skipped..).unwrap_or_default();
            let instructions = match self.machine {
                Machine::X86(bits) => x86::decode(bits, bytes, piece.start, piece.end),
                Machine::A64 => a64::decode(bytes, piece.start, piece.end),
            };
            let leaving = instructions.iter().filter(|one| one.flow.always_leaves());
            Decoded {
                leaving: leaving.map(|one| one.address).collect(),
                instructions,
            }
        })
    }

    /// Returns the instruction that begins at an address; `None` if none begins there.
    pub fn at(&self, address: u64) -> Option<Instruction> {
        let after = self
            .sections
            .partition_point(|section| section.address <= address);
        let section = self.sections.get(after.checked_sub(1)?)?;
        let after = section
            .pieces
            .partition_point(|piece| piece.start <= address);
        let piece = section.pieces.get(after.checked_sub(1)?)?;
        let instructions = &self.decoded(section, piece).instructions;
        let found = instructions.binary_search_by_key(&address, |one| one.address);
        instructions.get(found.ok()?).copied()
    }

    /// Returns the target of an instruction of this code that is a direct jump, branch or call; `None` for others.
    pub fn target(&self, instruction: Instruction) -> Option<u64> {
        if matches!(instruction.flow, Flow::Next | Flow::Return) {
            return None;
        }
        let Instruction { address, size, .. } = instruction;
        let after = self
            .sections
            .partition_point(|section| section.address <= address);
        let section = self.sections.get(after.checked_sub(1)?)?;
        let skipped = usize::try_from(address - section.address).ok()?;
        let bytes = section.bytes.get(skipped..)?.get(..size.into())?;
        match self.machine {
            Machine::X86(bits) => x86::target(bits, bytes, address),
            Machine::A64 => a64::target(bytes, address),
        }
    }

    /// Returns the last instruction that begins before an address; `None` if there is none.
    pub fn before(&self, address: u64) -> Option<Instruction> {
        let after = self
            .sections
            .partition_point(|section| section.address < address);
        let sections = self.sections.get(..after)?.iter().rev();
        let pieces = sections.flat_map(|section| {
            let after = section
                .pieces
                .partition_point(|piece| piece.start < address);
            let pieces = section.pieces.get(..after).unwrap_or_default();
            pieces.iter().rev().map(move |piece| (section, piece))
        });
        pieces
            .filter_map(|(section, piece)| {
                let instructions = &self.decoded(section, piece).instructions;
                let end = instructions.partition_point(|one| one.address < address);
                instructions.get(end.checked_sub(1)?).copied()
            })
            .next()
    }

    /// Returns the first instruction that begins after an address; `None` if there is none.
    pub fn after(&self, address: u64) -> Option<Instruction> {
        self.between(address.checked_add(1)?, u64::MAX).next()
    }

    /// Whether an instruction begins at an address.
    pub fn is_code(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Returns the instructions that begin from `first` to `last`, both inclusive, in the order of their addresses.
    pub fn between(&self, first: u64, last: u64) -> impl Iterator<Item = Instruction> {
        let from = self.sections.partition_point(|section| {
            section.address.saturating_add(section.bytes.len() as u64) <= first
        });
        let sections = self.sections.get(from..).unwrap_or_default();
        sections
            .iter()
            .take_while(move |section| section.address <= last)
            .flat_map(move |section| {
                let from = section.pieces.partition_point(|piece| piece.end <= first);
                let pieces = section.pieces.get(from..).unwrap_or_default();
                pieces
                    .iter()
                    .take_while(move |piece| piece.start <= last)
                    .flat_map(|piece| &self.decoded(section, piece).instructions)
            })
            .copied()
            .skip_while(move |instruction| instruction.address < first)
            .take_while(move |instruction| instruction.address <= last)
    }

    fn piece(&self, number: usize) -> Option<(&Section<'data>, &Piece)> {
        let after = self
            .sections
            .partition_point(|section| section.pieces_before <= number);
        // A section without pieces has the same `pieces_before` as the next: the last of them has the piece.
        let section = self.sections.get(after.checked_sub(1)?)?;
        let piece = section.pieces.get(number - section.pieces_before)?;
        Some((section, piece))
    }

    /// Whether code can run from `start` to `end` without a taken branch. Results about pieces of code are remembered.
    pub fn falls_through(&self, start: u64, end: u64) -> bool {
        if start > end {
            return false;
        }
        let from = self.sections.partition_point(|section| {
            section.address.saturating_add(section.bytes.len() as u64) <= start
        });
        let Some(section) = self.sections.get(from) else {
            return true;
        };
        let inside = section.pieces.partition_point(|piece| piece.end <= start);
        let mut number = section.pieces_before + inside;
        let mut passed = Vec::new();
        let mut leaves = false;
        while let Some((section, piece)) = self.piece(number)
            && piece.start < end
        {
            let known = piece.next.load(Ordering::Relaxed);
            if known > number {
                passed.push(number);
                number = known;
                continue;
            }
            let leaving = &self.decoded(section, piece).leaving;
            let first = leaving.partition_point(|&address| address < start);
            if let Some(&address) = leaving.get(first) {
                leaves = address < end;
                break;
            }
            if leaving.is_empty() {
                passed.push(number);
            }
            number += 1;
        }
        for passed in passed {
            if let Some((_, piece)) = self.piece(passed) {
                piece.next.store(number, Ordering::Relaxed);
            }
        }
        !leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<'b>(bytes: &'b [u8], symbols: &[u64]) -> Code<'b> {
        Code::new(
            Machine::X86(64),
            vec![(0x1000, bytes)],
            symbols.to_vec(),
            &[],
        )
    }

    #[test]
    fn ranges_end_at_the_first_instruction_that_leaves() {
        const NOP: u8 = 0x90;
        const RET: u8 = 0xc3;
        let mut bytes = [NOP; 16];
        bytes[9] = RET;
        let symbols = [0x1000, 0x1002, 0x1003, 0x1006, 0x100a];
        let whole = code(&bytes, &symbols);
        for _ in 0..2 {
            for start in 0x1000..0x1010 {
                for end in 0x1000..0x1010 {
                    let expected = start <= end && !(start <= 0x1009 && end > 0x1009);
                    assert_eq!(
                        whole.falls_through(start, end),
                        expected,
                        "{start:x}-{end:x}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_over_very_many_pieces_are_checked_in_time() {
        // If results were not remembered, the last loop would look at 20,000,000,000 pieces.
        const PIECES: u64 = 200_000;
        let bytes = vec![0x90; usize::try_from(PIECES).unwrap()];
        let symbols: Vec<u64> = (0x1000..0x1000 + PIECES).collect();
        let code = code(&bytes, &symbols);
        for start in symbols.iter().rev() {
            assert!(code.falls_through(*start, 0x1000 + PIECES - 1));
        }
        for start in &symbols {
            assert!(code.falls_through(*start, 0x1000 + PIECES - 1));
        }
    }
}
