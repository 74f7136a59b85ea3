//! From contexts of addresses to records (`RawMemProfReader::mapRawProfileToRecords`).
use super::block::MemInfoBlock;
use super::profile::{AllocSite, CallSite, FrameId, MemProfile};
use crate::index_vec::IndexVec;
use rustc_hash::{FxHashMap, FxHashSet};

crate::id_type! {
    /// An address of the contexts' call stacks, by its place among all of them.
    pub struct AddressId of "addresses of heap dumps";
}

/// The inlined frames of one address, innermost first. Only the last one is not inlined.
pub type FrameList = Vec<FrameId>;

/// Allocations of one stack of addresses.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The call stack, from the allocation outwards.
    pub addresses: &'a [AddressId],
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
///
/// ```
/// use profkit_data::index_vec::IndexVec;
/// use profkit_data::memprof::{AddressId, Context, Frame, MemInfoBlock, MemProfile, build};
///
/// let mut profile = MemProfile::default();
/// let main = profile.add_frame(Frame { function: 1, ..Frame::default() });
/// let mut frames = IndexVec::<AddressId, _>::new();
/// let address = frames.push(vec![main]);
/// let context = Context { addresses: &[address], block: MemInfoBlock::default(), histogram: &[] };
/// build(&mut profile, &frames, [context]);
/// assert_eq!(profile.records().len(), 1);
/// ```
///
/// # Panics
/// If an address has no list, or a list names a frame of another profile.
pub fn build<'a>(
    profile: &mut MemProfile,
    frames: &IndexVec<AddressId, FrameList>,
    contexts: impl IntoIterator<Item = Context<'a>>,
) {
    // Functions in the order in which they are met, each with its addresses in that order.
    let mut callers: Vec<(u64, Vec<AddressId>)> = Vec::new();
    let mut caller_numbers: FxHashMap<u64, usize> = FxHashMap::default();
    let mut called: FxHashSet<(u64, AddressId)> = FxHashSet::default();
    let mut stack = Vec::new();
    for context in contexts {
        stack.clear();
        for &address in context.addresses {
            for &frame in &frames[address] {
                let first = stack.is_empty();
                stack.push(frame);
                let frame = profile.frames()[frame];
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
            let frame = profile.frames()[frame];
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
            let stack = profile.add_stack(&frames[address]);
            profile.record_mut(function).call_sites.push(CallSite {
                stack,
                callees: Vec::new(),
            });
        }
    }
}
