//! From contexts of addresses to records (`RawMemProfReader::mapRawProfileToRecords`).
use super::block::MemInfoBlock;
use super::profile::{AllocSite, CallSite, MemProfile};
use rustc_hash::{FxHashMap, FxHashSet};

/// The inlined frames of one address as numbers of the profile's frames, innermost first. Only the last one is not
/// inlined.
pub type FrameList = Vec<u32>;

/// Allocations of one stack of addresses.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The stack: indexes of frame lists, from the allocation outwards.
    pub addresses: &'a [u32],
    /// The figures.
    pub block: MemInfoBlock,
    /// Accesses by place, where they were recorded.
    pub histogram: &'a [u64],
}

/// Adds the records of contexts, in their order, to a profile whose frames the lists name. Contexts without addresses
/// are passed over, and so are addresses without frames.
///
/// An allocation belongs to each function of the innermost address, a call to each function of its address but the one
/// that allocates. Equal frame lists of two addresses are two call sites, as LLVM has it.
pub fn build<'a>(
    profile: &mut MemProfile,
    frames: &[FrameList],
    contexts: impl IntoIterator<Item = Context<'a>>,
) {
    // Functions in the order in which they are met, each with its addresses in that order.
    let mut callers: Vec<(u64, Vec<u32>)> = Vec::new();
    let mut caller_numbers: FxHashMap<u64, usize> = FxHashMap::default();
    let mut called: FxHashSet<(u64, u32)> = FxHashSet::default();
    let mut stack = Vec::new();
    for context in contexts {
        stack.clear();
        for &address in context.addresses {
            let Some(list) = frames.get(address as usize) else {
                continue;
            };
            for &frame in list {
                let first = stack.is_empty();
                stack.push(frame);
                let Some(frame) = profile.frames().get(frame as usize).copied() else {
                    continue;
                };
                if first || !called.insert((frame.function, address)) {
                    continue;
                }
                let next = callers.len();
                let number = *caller_numbers.entry(frame.function).or_insert(next);
                match callers.get_mut(number) {
                    Some((_, addresses)) => addresses.push(address),
                    None => callers.push((frame.function, vec![address])),
                }
            }
        }
        if stack.is_empty() {
            continue;
        }
        let id = profile.add_stack(&stack);
        for &frame in &stack {
            let Some(frame) = profile.frames().get(frame as usize).copied() else {
                break;
            };
            profile
                .record_mut(frame.function)
                .alloc_sites
                .push(AllocSite {
                    stack: id,
                    block: context.block,
                    histogram: context.histogram.to_vec(),
                });
            if !frame.is_inline {
                break;
            }
        }
    }
    for (function, addresses) in callers {
        // A record even for functions that allocate nothing themselves.
        profile.record_mut(function);
        for address in addresses {
            let list = frames.get(address as usize).map(Vec::as_slice);
            let stack = profile.add_stack(list.unwrap_or_default());
            profile.record_mut(function).call_sites.push(CallSite {
                stack,
                callees: Vec::new(),
            });
        }
    }
}
