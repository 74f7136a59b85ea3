//! Lists each allocation context of a profile once.
use super::block::MemInfoBlock;
use super::profile::{MemProfile, StackId, add_histogram};
use rustc_hash::{FxHashMap, FxHashSet};

/// The allocations that were made with one call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// The call stack, innermost frame first. The first frame makes the allocation.
    pub stack: StackId,
    /// The statistics of the context's allocations.
    pub block: MemInfoBlock,
}

impl MemProfile {
    /// Returns each allocation context once, in the order of the function records. Files repeat a context in the record
    /// of every function that is inlined at its innermost address; these repetitions are skipped. A record may have
    /// several allocations with the same call stack, as after a merge of several runs. Each of them is returned as a
    /// separate context.
    ///
    /// Time and memory are proportional to the size of the profile, even if one call stack is used many times.
    pub fn contexts(&self) -> Vec<Allocations> {
        let mut seen: FxHashSet<(StackId, u32)> = FxHashSet::default();
        let mut inlined = InlinedAt::default();
        let mut list = Vec::new();
        for record in self.records() {
            let mut times: FxHashMap<StackId, u32> = FxHashMap::default();
            for site in &record.alloc_sites {
                let own = inlined.times(self, site.stack, record.function);
                let times = times.entry(site.stack).or_insert(0);
                if seen.insert((site.stack, *times / own.max(1))) {
                    list.push(Allocations {
                        stack: site.stack,
                        block: site.block,
                    });
                }
                *times += 1;
            }
        }
        list
    }

    /// Returns the access histogram of each call stack whose allocations have one: for each eight bytes of the allocations,
    /// the number of accesses. It is the sum over the contexts of the call stack.
    pub fn histograms(&self) -> FxHashMap<StackId, Vec<u64>> {
        let mut inlined = InlinedAt::default();
        let mut seen: FxHashSet<(StackId, u32)> = FxHashSet::default();
        let mut list: FxHashMap<StackId, Vec<u64>> = FxHashMap::default();
        for record in self.records() {
            let mut times: FxHashMap<StackId, u32> = FxHashMap::default();
            for site in &record.alloc_sites {
                let own = inlined.times(self, site.stack, record.function);
                let times = times.entry(site.stack).or_insert(0);
                if seen.insert((site.stack, *times / own.max(1))) && !site.histogram.is_empty() {
                    add_histogram(list.entry(site.stack).or_default(), &site.histogram);
                }
                *times += 1;
            }
        }
        list
    }

    /// Returns one entry for each call stack that makes allocations, in the order of the function records. Several
    /// records can have allocations with the same call stack. The statistics of an entry are the sum over all of them.
    pub fn allocations_by_stack(&self) -> Vec<Allocations> {
        let mut places: FxHashMap<StackId, usize> = FxHashMap::default();
        let mut list: Vec<Allocations> = Vec::new();
        for context in self.contexts() {
            let next = list.len();
            let place = *places.entry(context.stack).or_insert(next);
            match list.get_mut(place) {
                Some(sum) => sum.block.add_later(&context.block),
                None => list.push(context),
            }
        }
        list
    }
}

/// Counts how often each function occurs among the frames at a call stack's innermost address. There are several such
/// frames if functions are inlined there. Each call stack is searched only once, because in a damaged file many records
/// can refer to one very long stack.
///
/// A counter must be used with one profile only, whose call stacks it remembers by their ids.
#[derive(Clone, Debug, Default)]
pub struct InlinedAt {
    stacks: FxHashSet<StackId>,
    times: FxHashMap<(StackId, u64), u32>,
}

impl InlinedAt {
    /// Returns how often the function occurs among the frames at the innermost address of the call stack. The record of
    /// the function has each context with this call stack that many times.
    ///
    /// # Panics
    /// If `stack` is not a call stack of this profile.
    pub fn times(&mut self, profile: &MemProfile, stack: StackId, function: u64) -> u32 {
        if self.stacks.insert(stack) {
            for frame in profile.stack(stack) {
                *self.times.entry((stack, frame.function)).or_insert(0) += 1;
                if !frame.is_inline {
                    break;
                }
            }
        }
        self.times.get(&(stack, function)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::memprof::{AllocSite, Field, Frame, FrameId, MemInfoBlock, MemProfile};

    fn block(bytes: u64) -> MemInfoBlock {
        let mut block = MemInfoBlock::default();
        block.set(Field::AllocCount, 1);
        block.set(Field::TotalSize, bytes);
        block
    }

    /// Makes a profile with one call stack, whose first `inlined` frames are inlined into the last frame.
    fn stack(inlined: u64) -> (MemProfile, crate::memprof::StackId) {
        let mut profile = MemProfile::default();
        let frames: Vec<FrameId> = (0..=inlined)
            .map(|function| {
                profile.add_frame(Frame {
                    function,
                    line_offset: 1,
                    column: 1,
                    is_inline: function < inlined,
                })
            })
            .collect();
        let stack = profile.add_stack(&frames);
        (profile, stack)
    }

    #[test]
    fn a_context_of_an_inlined_allocation_counts_once() {
        let (mut profile, stack) = stack(2);
        for function in 0..3 {
            for bytes in [10, 20] {
                profile.record_mut(function).alloc_sites.push(AllocSite {
                    stack,
                    block: block(bytes),
                    histogram: Vec::new(),
                });
            }
        }
        let bytes: Vec<u64> = profile
            .contexts()
            .iter()
            .map(|context| context.block.get(Field::TotalSize))
            .collect();
        assert_eq!(bytes, [10, 20]);
        let sums = profile.allocations_by_stack();
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[0].block.get(Field::TotalSize), 30);
        assert_eq!(sums[0].block.get(Field::AllocCount), 2);
    }

    /// If the whole call stack were searched for each allocation, this test would take 10^10 steps.
    #[test]
    fn a_long_stack_named_from_many_sites_is_looked_through_once() {
        let (mut profile, stack) = stack(100_000);
        for _ in 0..100_000 {
            profile.record_mut(0).alloc_sites.push(AllocSite {
                stack,
                block: block(1),
                histogram: Vec::new(),
            });
        }
        assert_eq!(profile.contexts().len(), 100_000);
    }
}
