//! Compares two heap profiles, one allocation context at a time.
use super::profile::{FrameId, MemProfile, StackId};
use super::sites::Allocations;
use crate::index_vec::IndexVec;
use rustc_hash::FxHashMap;

/// The result of comparing two heap profiles ([`diff`]). Before the comparison, contexts of the same profile are added
/// up if they have the same call stack.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// The contexts that both profiles have, in the order of the new profile.
    pub both: Vec<Pair>,
    /// The contexts that only the new profile has, in the order of the new profile.
    pub appeared: Vec<Single>,
    /// The contexts that only the old profile has, in the order of the old profile.
    pub gone: Vec<Single>,
}

/// An allocation context that both profiles have.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The allocation context as the old profile has it.
    pub old: Allocations,
    /// The allocation context as the new profile has it.
    pub new: Allocations,
    /// Whether the call stacks differ in lines, columns or inlining, as they do between two builds. Such contexts are
    /// paired if their call stacks have the same functions and no other unpaired context has these functions.
    pub moved: bool,
}

/// An allocation context that only one of the profiles has.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// The allocation context, from the profile that has it.
    pub context: Allocations,
    /// Whether the other profile has unpaired contexts with the same functions. In this case several pairs are
    /// possible, so no pair was made.
    pub ambiguous: bool,
}

/// Compares two heap profiles. Two contexts are the same if their call stacks have the same functions, line offsets,
/// columns and inlining. The other contexts are paired if their call stacks have the same functions and only one pair
/// is possible.
///
/// Time and memory are proportional to the size of the two profiles.
///
/// ```
/// use profkit_data::memprof::{AllocSite, Field, Frame, MemInfoBlock, MemProfile, diff::diff};
///
/// let profile_of = |bytes| {
///     let mut profile = MemProfile::default();
///     let frame = profile.add_frame(Frame { function: 1, line_offset: 3, ..Frame::default() });
///     let stack = profile.add_stack(&[frame]);
///     let mut block = MemInfoBlock::default();
///     block.set(Field::TotalSize, bytes);
///     let site = AllocSite { stack, block, histogram: Vec::new() };
///     profile.record_mut(1).alloc_sites.push(site);
///     profile
/// };
/// let difference = diff(&profile_of(10), &profile_of(30));
/// let sizes = difference.both.iter().map(|pair| {
///     let size = |block: &MemInfoBlock| block.get(Field::TotalSize);
///     (size(&pair.old.block), size(&pair.new.block))
/// });
/// assert!(sizes.eq([(10, 30)]));
/// ```
pub fn diff(old: &MemProfile, new: &MemProfile) -> Difference {
    let old_sums = old.allocations_by_stack();
    let mut unpaired: FxHashMap<StackId, Allocations> =
        old_sums.iter().map(|sum| (sum.stack, *sum)).collect();
    let frames: IndexVec<FrameId, Option<FrameId>> = new
        .frames()
        .iter()
        .map(|frame| old.frame_id(frame))
        .collect();
    let mut scratch = Vec::new();
    let mut same_stack = |stack: StackId| {
        scratch.clear();
        for &frame in new.frame_ids(stack) {
            scratch.push(frames[frame]?);
        }
        old.stack_id(&scratch)
    };
    // Find the partner of each new context, in two passes.
    let mut found: Vec<(Allocations, Option<Pair>)> = Vec::new();
    for sum in new.allocations_by_stack() {
        let partner = same_stack(sum.stack).and_then(|stack| unpaired.remove(&stack));
        let pair = partner.map(|old| Pair {
            old,
            new: sum,
            moved: false,
        });
        found.push((sum, pair));
    }
    let functions = |profile: &MemProfile, stack| -> Vec<u64> {
        profile.stack(stack).map(|frame| frame.function).collect()
    };
    let mut by_functions: FxHashMap<Vec<u64>, Candidates> = FxHashMap::default();
    for sum in old_sums
        .iter()
        .filter(|sum| unpaired.contains_key(&sum.stack))
    {
        let list = by_functions.entry(functions(old, sum.stack)).or_default();
        list.old += 1;
        list.first = Some(*sum);
    }
    for (sum, _) in found.iter().filter(|(_, pair)| pair.is_none()) {
        if let Some(list) = by_functions.get_mut(&functions(new, sum.stack)) {
            list.new += 1;
        }
    }
    let mut difference = Difference::default();
    for (sum, pair) in found {
        let candidates = match pair {
            Some(_) => None,
            None => by_functions.get(&functions(new, sum.stack)),
        };
        let moved = candidates.and_then(Candidates::only).map(|old| Pair {
            old,
            new: sum,
            moved: true,
        });
        match pair.or(moved) {
            Some(pair) => difference.both.push(pair),
            None => difference.appeared.push(Single {
                context: sum,
                ambiguous: candidates.is_some(),
            }),
        }
    }
    for sum in old_sums {
        if !unpaired.contains_key(&sum.stack) {
            continue;
        }
        let candidates = by_functions.get(&functions(old, sum.stack));
        if candidates.is_some_and(|list| list.only().is_some()) {
            continue;
        }
        difference.gone.push(Single {
            context: sum,
            ambiguous: candidates.is_some_and(|list| list.new > 0),
        });
    }
    difference
}

/// Contexts of both profiles that are not paired yet. The call stacks of all of them have the same functions.
#[derive(Default)]
struct Candidates {
    old: usize,
    new: usize,
    first: Option<Allocations>,
}

impl Candidates {
    /// Returns the old context if there is exactly one old context and one new context, because these two are then a
    /// pair. Otherwise returns `None`.
    fn only(&self) -> Option<Allocations> {
        match (self.old, self.new) {
            (1, 1) => self.first,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memprof::{AllocSite, Field, Frame, MemInfoBlock};

    /// Makes a profile with these contexts. Each context has functions with line offsets, and a size in bytes.
    fn profile(contexts: &[(&[(u64, u32)], u64)]) -> MemProfile {
        let mut profile = MemProfile::default();
        // An unused first frame, so that the frames have different indexes in the two profiles.
        profile.add_frame(Frame {
            function: contexts.len() as u64 + 1000,
            ..Frame::default()
        });
        for (frames, bytes) in contexts {
            let numbers: Vec<FrameId> = frames
                .iter()
                .map(|&(function, line_offset)| {
                    profile.add_frame(Frame {
                        function,
                        line_offset,
                        column: 3,
                        is_inline: false,
                    })
                })
                .collect();
            let stack = profile.add_stack(&numbers);
            let mut block = MemInfoBlock::default();
            block.set(Field::AllocCount, 1);
            block.set(Field::TotalSize, *bytes);
            profile.record_mut(frames[0].0).alloc_sites.push(AllocSite {
                stack,
                block,
                histogram: Vec::new(),
            });
        }
        profile
    }

    fn bytes(context: &Allocations) -> u64 {
        context.block.get(Field::TotalSize)
    }

    fn shown(old: &MemProfile, new: &MemProfile) -> String {
        let found = diff(old, new);
        let both = found.both.iter().map(|pair| {
            let moved = if pair.moved { " moved" } else { "" };
            format!("{}->{}{moved}", bytes(&pair.old), bytes(&pair.new))
        });
        let single = |sign: &'static str| {
            move |single: &Single| {
                let ambiguous = if single.ambiguous { "?" } else { "" };
                format!("{sign}{}{ambiguous}", bytes(&single.context))
            }
        };
        let appeared = found.appeared.iter().map(single("+"));
        let gone = found.gone.iter().map(single("-"));
        both.chain(appeared)
            .chain(gone)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn contexts_are_paired_by_call_stack_and_then_by_functions() {
        let old = profile(&[
            (&[(1, 10), (9, 1)], 100),
            (&[(2, 20), (9, 2)], 200),
            (&[(3, 30), (9, 3)], 300),
        ]);
        let new = profile(&[
            (&[(4, 40), (9, 4)], 400),
            (&[(2, 25), (9, 2)], 201),
            (&[(1, 10), (9, 1)], 101),
        ]);
        assert_eq!(shown(&old, &new), "200->201 moved 100->101 +400 -300");
        assert_eq!(shown(&new, &old), "101->100 201->200 moved +300 -400");
    }

    #[test]
    fn several_contexts_of_the_same_functions_are_not_guessed_at() {
        let old = profile(&[(&[(1, 10), (9, 1)], 100), (&[(1, 11), (9, 1)], 110)]);
        let new = profile(&[(&[(1, 12), (9, 1)], 120), (&[(1, 13), (9, 1)], 130)]);
        assert_eq!(shown(&old, &new), "+120? +130? -100? -110?");
        // One old and one new context have equal call stacks, so they are paired first. After that, only one old and
        // one new context with these functions remain, so these two are a pair too.
        let new = profile(&[(&[(1, 10), (9, 1)], 100), (&[(1, 13), (9, 1)], 130)]);
        assert_eq!(shown(&old, &new), "100->100 110->130 moved");
        let new = profile(&[(&[(1, 13), (9, 1)], 130)]);
        assert_eq!(shown(&old, &new), "+130? -100? -110?");
    }

    #[test]
    fn the_same_profile_has_no_difference() {
        let one = profile(&[(&[(1, 10), (9, 1)], 100), (&[(2, 10)], 7)]);
        assert_eq!(shown(&one, &one), "100->100 7->7");
        let none = MemProfile::default();
        assert_eq!(shown(&none, &one), "+100 +7");
        assert_eq!(shown(&one, &none), "-100 -7");
    }
}
