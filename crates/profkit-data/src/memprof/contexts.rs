//! Makes records from contexts whose call stacks are addresses (LLVM's `RawMemProfReader::mapRawProfileToRecords`).
use super::block::MemInfoBlock;
use super::profile::{AllocSite, CallSite, FrameId, MemProfile};
use crate::index_vec::IndexVec;
use rustc_hash::{FxHashMap, FxHashSet};

crate::id_type! {
    /// The index of an address among all addresses in call stacks of contexts.
    pub struct AddressId of "addresses of heap dumps";
}

/// The frames at one address, innermost first. All but the last are inlined.
pub type FrameList = Vec<FrameId>;

/// The allocations with one stack of addresses.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The call stack, from the allocation outwards.
    pub addresses: &'a [AddressId],
    /// The counts and figures of the allocations.
    pub block: MemInfoBlock,
    /// The number of accesses to each part of the allocations; empty if the dump has no histograms.
    pub histogram: &'a [u64],
}

/// Adds the records of `contexts` to a profile, in their order. `frames` has a list of frames of this profile for each
/// address. Addresses without frames are skipped, and so are contexts without addresses.
///
/// An allocation is recorded in each function at the innermost address. A call is recorded in each function at its
/// address, except in the allocating function. As in LLVM, two addresses with equal frame lists are two call sites.
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
/// If an address has no list, or a list has a frame of another profile.
pub fn build<'a>(
    profile: &mut MemProfile,
    frames: &IndexVec<AddressId, FrameList>,
    contexts: impl IntoIterator<Item = Context<'a>>,
) {
    // The functions in order of first occurrence, each with its addresses in that order.
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
        // Functions that allocate nothing themselves get a record, too.
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
