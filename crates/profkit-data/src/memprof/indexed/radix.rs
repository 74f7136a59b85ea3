//! The radix tree of call stacks.
//!
//! An array of 32-bit numbers. A call stack begins with its length; then come frames by number, from the allocation
//! outwards. A negative number (as two's complement) is a step to where the rest of the stack is: as many elements ahead
//! as its magnitude.
use crate::memprof::profile::{IdScheme, MemProfile};
use crate::{Error, ErrorKind, Result, Structure};

/// Frames and call stacks laid out as LLVM does.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Frames of the profile, in the order of the array.
    pub frame_order: Vec<u32>,
    /// The tree.
    pub array: Vec<u32>,
    /// Where each stack of the profile begins in the tree.
    pub positions: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Stat {
    count: u64,
    position_sum: u64,
}

impl Layout {
    /// Lays out a profile (`writeMemProfFrameArray`, `CallStackRadixTreeBuilder`).
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] for a tree of 2^31 elements.
    pub(super) fn new(profile: &MemProfile, ids: IdScheme) -> Result<Self> {
        let frames = profile.frames();
        let mut stats = vec![Stat::default(); frames.len()];
        for (_, stack) in profile.stacks() {
            for (position, &frame) in stack.iter().enumerate() {
                if let Some(stat) = stats.get_mut(frame as usize) {
                    stat.count += 1;
                    stat.position_sum += position as u64;
                }
            }
        }
        let ids: Vec<u64> = frames.iter().map(|frame| ids.frame_id(frame)).collect();
        let stat = |frame: u32| stats.get(frame as usize).copied().unwrap_or_default();
        let id = |frame: u32| ids.get(frame as usize).copied().unwrap_or(0);
        let mut frame_order: Vec<u32> =
            (0..u32::try_from(frames.len()).unwrap_or(u32::MAX)).collect();
        frame_order.sort_unstable_by_key(|&frame| {
            let Stat {
                count,
                position_sum,
            } = stat(frame);
            (std::cmp::Reverse(count), position_sum, id(frame))
        });
        let mut numbers = vec![0u32; frames.len()];
        for (number, &frame) in (0u32..).zip(&frame_order) {
            if let Some(slot) = numbers.get_mut(frame as usize) {
                *slot = number;
            }
        }
        // Frames by how often they are used, then by id: the order that stacks are sorted by.
        let mut ranked = frame_order.clone();
        ranked.sort_unstable_by_key(|&frame| (stat(frame).count, id(frame)));
        let mut ranks = vec![0u32; frames.len()];
        for (rank, &frame) in (0u32..).zip(&ranked) {
            if let Some(slot) = ranks.get_mut(frame as usize) {
                *slot = rank;
            }
        }
        let rank = |&frame: &u32| ranks.get(frame as usize).copied().unwrap_or(0);
        let mut stacks: Vec<(usize, &[u32])> = profile
            .stacks()
            .map(|(stack, frames)| (stack.index(), frames))
            .collect();
        stacks.sort_unstable_by(|(_, one), (_, two)| {
            one.iter().rev().map(rank).cmp(two.iter().rev().map(rank))
        });
        let mut layout = Layout {
            frame_order,
            array: Vec::new(),
            positions: vec![0; stacks.len()],
        };
        let mut builder = Builder {
            numbers: &numbers,
            indexes: Vec::new(),
        };
        let mut before: &[u32] = &[];
        for &(stack, frames) in stacks.iter().rev() {
            let position = builder.add(frames, before, &mut layout.array)?;
            if let Some(slot) = layout.positions.get_mut(stack) {
                *slot = position;
            }
            before = frames;
        }
        layout.array.reverse();
        let last = u32::try_from(layout.array.len())
            .unwrap_or(u32::MAX)
            .wrapping_sub(1);
        for position in &mut layout.positions {
            *position = last.wrapping_sub(*position);
        }
        Ok(layout)
    }
}

struct Builder<'a> {
    numbers: &'a [u32],
    /// Where each frame of the stack before is in the array, from the root.
    indexes: Vec<u32>,
}

impl Builder<'_> {
    /// Appends a stack, last element first, and returns where its length is.
    fn add(&mut self, stack: &[u32], before: &[u32], array: &mut Vec<u32>) -> Result<u32> {
        let pairs = stack.iter().rev().zip(before.iter().rev());
        let common = pairs.take_while(|(one, two)| one == two).count();
        self.indexes.truncate(common);
        if let Some(&parent) = self.indexes.last() {
            let here = place(array.len())?;
            array.push(parent.wrapping_sub(here));
        }
        for &frame in stack.iter().rev().skip(common) {
            self.indexes.push(place(array.len())?);
            array.push(self.numbers.get(frame as usize).copied().unwrap_or(0));
        }
        let position = place(array.len())?;
        array.push(place(stack.len())?);
        Ok(position)
    }
}

fn place(index: usize) -> Result<u32> {
    i32::try_from(index)
        .ok()
        .and_then(|index| u32::try_from(index).ok())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::CannotRepresent,
                "the call stacks are too many for the radix tree",
            )
            .within(Structure::MemProfSection)
        })
}

/// Reads the stack that begins at an element of the tree into `frames`, as numbers of the frame array.
///
/// # Errors
/// [`ErrorKind::Malformed`] if the stack leads out of the tree or is longer than it.
pub(super) fn read_stack(
    array: &[[u8; 4]],
    start: u32,
    frame_count: u32,
    base: u64,
    frames: &mut Vec<u32>,
) -> Result<()> {
    frames.clear();
    let mut position = start as usize;
    let at = |position: usize| base + 4 * position as u64;
    let element = |position: usize| {
        array
            .get(position)
            .map(|&bytes| u32::from_le_bytes(bytes))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Malformed,
                    "a call stack leads out of the radix tree",
                )
                .at(at(start as usize))
                .found(format_args!("element {position}"))
                .expected(format_args!("below {}", array.len()))
            })
    };
    let length = element(position)?;
    if length as usize > array.len() {
        return Err(Error::new(
            ErrorKind::Malformed,
            "a call stack is longer than the radix tree",
        )
        .at(at(position))
        .found(length)
        .expected(format_args!("at most {}", array.len())));
    }
    position += 1;
    for _ in 0..length {
        let mut frame = element(position)?;
        if frame.cast_signed() < 0 {
            position += frame.wrapping_neg() as usize;
            frame = element(position)?;
        }
        if frame >= frame_count {
            return Err(Error::new(
                ErrorKind::Malformed,
                "the number of a frame is out of bounds",
            )
            .at(at(position))
            .found(frame)
            .expected(format_args!("below {frame_count}")));
        }
        frames.push(frame);
        position += 1;
    }
    Ok(())
}
