//! The radix tree in which a MemProf section stores call stacks.
//!
//! The tree is an array of 32-bit numbers. A call stack begins with its length, followed by the indexes of its frames
//! in the section's array of frames, innermost first. A negative number −n (in two's complement) is a jump: the rest of
//! the call stack begins n elements after this element.
use crate::index_vec::IndexVec;
use crate::memprof::profile::{FrameId, IdScheme, MemProfile, StackId};
use crate::{ErrorKind, Result, Structure};

/// The order of the frames, and the radix tree of call stacks, exactly as LLVM builds them.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The frames of the profile, in the order of the section's array of frames.
    pub frame_order: Vec<FrameId>,
    /// The elements of the radix tree of call stacks.
    pub array: Vec<u32>,
    pub positions: IndexVec<StackId, u32>,
}

#[derive(Clone, Copy, Default)]
struct Stat {
    count: u64,
    position_sum: u64,
}

impl Layout {
    /// Builds the order of the frames and the radix tree (LLVM's `writeMemProfFrameArray`,
    /// `CallStackRadixTreeBuilder`).
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] if the tree would have 2^31 elements or more.
    pub(super) fn new(profile: &MemProfile, ids: IdScheme) -> Result<Self> {
        let frames = profile.frames();
        let mut stats = IndexVec::parallel_to(frames, Stat::default());
        for stack in profile.stacks() {
            for (position, &frame) in stack.iter().enumerate() {
                let stat = &mut stats[frame];
                stat.count += 1;
                stat.position_sum += position as u64;
            }
        }
        let ids: IndexVec<FrameId, u64> = frames.iter().map(|frame| ids.frame_id(frame)).collect();
        let mut frame_order: Vec<FrameId> = frames.ids().collect();
        frame_order.sort_unstable_by_key(|&frame| {
            let Stat {
                count,
                position_sum,
            } = stats[frame];
            (std::cmp::Reverse(count), position_sum, ids[frame])
        });
        let mut numbers = IndexVec::parallel_to(frames, 0u32);
        for (number, &frame) in (0u32..).zip(&frame_order) {
            numbers[frame] = number;
        }
        // Rank frames by the number of times that call stacks use them, then by id. Call stacks are sorted by these
        // ranks.
        let mut ranked = frame_order.clone();
        ranked.sort_unstable_by_key(|&frame| (stats[frame].count, ids[frame]));
        let mut ranks = IndexVec::parallel_to(frames, 0u32);
        for (rank, &frame) in (0u32..).zip(&ranked) {
            ranks[frame] = rank;
        }
        let rank = |&frame: &FrameId| ranks[frame];
        let mut stacks: Vec<(StackId, &[FrameId])> = profile
            .stacks()
            .entries()
            .map(|(stack, frames)| (stack, &**frames))
            .collect();
        stacks.sort_unstable_by(|(_, one), (_, two)| {
            one.iter().rev().map(rank).cmp(two.iter().rev().map(rank))
        });
        let mut layout = Layout {
            frame_order,
            array: Vec::new(),
            positions: IndexVec::parallel_to(profile.stacks(), 0),
        };
        let mut builder = Builder {
            numbers: &numbers,
            indexes: Vec::new(),
        };
        let mut before: &[FrameId] = &[];
        for &(stack, frames) in stacks.iter().rev() {
            layout.positions[stack] = builder.add(frames, before, &mut layout.array)?;
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
    /// For each frame, its index in the section's array of frames.
    numbers: &'a IndexVec<FrameId, u32>,
    /// For each frame of the previous call stack, its index in `array`, outermost frame first.
    indexes: Vec<u32>,
}

impl Builder<'_> {
    /// Appends a call stack to `array`, outermost frame first, then its length. The array is reversed at the end, so
    /// that the length comes first. Returns the index of the length in `array`. `stack` is the call stack, innermost
    /// frame first. `before` is the call stack that was appended before this one; the outermost frames that the two
    /// call stacks share are stored once.
    fn add(&mut self, stack: &[FrameId], before: &[FrameId], array: &mut Vec<u32>) -> Result<u32> {
        let pairs = stack.iter().rev().zip(before.iter().rev());
        let common = pairs.take_while(|(one, two)| one == two).count();
        self.indexes.truncate(common);
        if let Some(&parent) = self.indexes.last() {
            let here = place(array.len())?;
            array.push(parent.wrapping_sub(here));
        }
        for &frame in stack.iter().rev().skip(common) {
            self.indexes.push(place(array.len())?);
            array.push(self.numbers[frame]);
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
            ErrorKind::CannotRepresent
                .error("there are too many call stacks for the radix tree")
                .within(Structure::MemProfSection)
        })
}

/// Reads the call stack that begins at element `start` of the tree `array`. For each frame, stores in `frames` the
/// frame's index in the section's array of frames, which has `frame_count` frames. `base` is the offset of the tree in
/// the file.
///
/// # Errors
/// [`ErrorKind::Malformed`] if the call stack leads out of the tree or is longer than the tree.
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
                ErrorKind::Malformed
                    .error("a call stack continues outside the radix tree")
                    .at(at(start as usize))
                    .found(format_args!("element {position}"))
                    .expected(format_args!("below {}", array.len()))
            })
    };
    let length = element(position)?;
    if length as usize > array.len() {
        return Err(ErrorKind::Malformed
            .error("a call stack is longer than the radix tree")
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
            return Err(ErrorKind::Malformed
                .error("the index of a frame is out of bounds")
                .at(at(position))
                .found(frame)
                .expected(format_args!("below {frame_count}")));
        }
        frames.push(frame);
        position += 1;
    }
    Ok(())
}
