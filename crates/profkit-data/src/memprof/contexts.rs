//! Makes function records from allocation contexts, whose call stacks consist of addresses (LLVM's
//! `RawMemProfReader::mapRawProfileToRecords`).
use super::block::MemInfoBlock;
use super::profile::{AllocSite, CallSite, FrameId, MemProfile};
use crate::index_vec::IndexVec;
use rustc_hash::{FxHashMap, FxHashSet};

crate::id_type! {
    /// The index of an address in the list of all addresses that occur in call stacks.
    pub struct AddressId of "addresses of heap dumps";
}

/// The frames at one address, innermost first. The function of every frame except the last is inlined.
pub type FrameList = Vec<FrameId>;

/// The allocations that were made with one call stack. The frames of the call stack are given as addresses.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The addresses of the call stack, innermost first. The first address is that of the allocation.
    pub addresses: &'a [AddressId],
    /// The statistics of the context's allocations.
    pub block: MemInfoBlock,
    /// The access histogram of the allocations; empty if the dump has no histograms.
    pub histogram: &'a [u64],
}

/// Adds allocation contexts to the function records of a profile, in the order of `contexts`. For each address,
/// `frames` has the frames at this address: the functions that are inlined there and the function that contains the
/// code. They must be frames of this profile. Addresses without frames are skipped, and so are contexts without
/// addresses.
///
/// The allocation of a context is added to the record of each function at the innermost address. Each frame of the call
/// stack, except the innermost one, adds a call site to the record of its function. The call site is the call at the
/// frame's address. Two addresses with equal frames are two call sites, as in LLVM.
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
/// If an address has no list of frames, or a list has a frame of another profile.
pub fn build<'a>(
    profile: &mut MemProfile,
    frames: &IndexVec<AddressId, FrameList>,
    contexts: impl IntoIterator<Item = Context<'a>>,
) {
    // The calling functions, each with the addresses of its calls. Functions and addresses are in the order of their
    // first occurrence.
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
        // Functions that make no allocation themselves get a record too.
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
