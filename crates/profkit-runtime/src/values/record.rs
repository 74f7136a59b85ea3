//! Adds values to the lists. One object file of the runtime does this, for all others.
use super::{all_sites, Node};
use crate::layout::{representative_size, LAYOUT, VALUES_PER_SITE};
use core::mem::size_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// The number of values of one site that are recorded, if the compiler has left room for lists in the image and
/// LLVM_VP_MAX_NUM_VALS_PER_SITE does not say another one.
const LIMIT: usize = 24;

/// The number of nodes of the image's pool that are in use. It may be larger than the pool.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The chunk of memory from which nodes are taken when the pool is used up.
static CHUNK: AtomicPtr<Chunk> = AtomicPtr::new(null_mut());
/// The largest number of values that are recorded for one site.
static PER_SITE: AtomicUsize = AtomicUsize::new(LIMIT);
/// Whether the program or its environment has chosen this number.
static CHOSEN: AtomicBool = AtomicBool::new(false);
/// The number of values that were not recorded, because there was no memory.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// The size of a chunk of memory in bytes. More would waste memory in small programs.
const CHUNK_SIZE: usize = 64 << 10;

/// The start of a chunk of memory for nodes.
#[repr(C)]
struct Chunk {
    used: AtomicUsize,
}

/// Sets the largest number of values that are recorded for one site.
pub fn set_limit(limit: usize) {
    let limit = if limit > VALUES_PER_SITE {
        VALUES_PER_SITE
    } else {
        limit
    };
    PER_SITE.store(limit, Ordering::Relaxed);
    CHOSEN.store(true, Ordering::Relaxed);
}

/// Returns the number of values that were not recorded, and forgets it.
pub fn take_lost() -> usize {
    LOST.swap(0, Ordering::Relaxed)
}

/// Returns memory for some nodes, whose bytes are zero. Returns null if there is none.
#[inline(never)]
fn allocate(count: usize) -> *mut Node {
    let pool = crate::image::nodes();
    let size = size_of::<Node>();
    if count == 1 && USED.load(Ordering::Relaxed) < pool.length / size {
        let index = USED.fetch_add(1, Ordering::Relaxed);
        if index < pool.length / size {
            return (pool.start + index * size) as *mut Node;
        }
    }
    // The first node's place in a chunk is the chunk's own header.
    let in_chunk = CHUNK_SIZE / size - 1;
    if count > in_chunk {
        return crate::image::more_memory((count + 1) * size) as *mut Node;
    }
    loop {
        let chunk = CHUNK.load(Ordering::Acquire);
        if !chunk.is_null() {
            // SAFETY: a chunk is never freed while it is in CHUNK or was there, and its first word is the counter.
            let index = unsafe { (*chunk).used.fetch_add(count, Ordering::Relaxed) };
            if index <= in_chunk - count {
                // SAFETY: the nodes lie inside the chunk.
                return unsafe { chunk.cast::<Node>().add(1 + index) };
            }
        }
        let new = crate::image::more_memory(CHUNK_SIZE) as *mut Chunk;
        if new.is_null() {
            return null_mut();
        }
        if CHUNK
            .compare_exchange(chunk, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            // Another thread was faster, and its chunk is used. This one was never used.
            crate::image::give_back(new as usize, CHUNK_SIZE);
        }
    }
}

/// Adds `count` to the count of a value.
///
/// # Safety
/// The caller must pass the address of a function record that is in memory as long as the image, and the index of a site
/// in it.
#[inline(never)]
pub unsafe fn instrument(value: u64, record: usize, site: usize, count: u64) {
    if record == 0 {
        return;
    }
    // SAFETY: lists only contain nodes that stay in memory, and the next one or null.
    unsafe {
        // Instrumented code runs this all the time, so that nothing here calls a function but at the end.
        let lists = (*((record + LAYOUT.values) as *const AtomicPtr<AtomicPtr<Node>>))
            .load(Ordering::Acquire);
        if lists.is_null() {
            return first(value, record, site, count);
        }
        let mut place = &*lists.add(site);
        let mut length = 0;
        let mut least: *const Node = core::ptr::null();
        let mut least_count = u64::MAX;
        loop {
            let node = place.load(Ordering::Acquire);
            if node.is_null() {
                if length < PER_SITE.load(Ordering::Relaxed) {
                    return grow(value, record, site, count, place);
                }
                break;
            }
            let found = (*node).count.load(Ordering::Relaxed);
            if (*node).value.load(Ordering::Relaxed) == value {
                // Two threads may lose counts of each other here, as they do in all counters.
                (*node)
                    .count
                    .store(found.wrapping_add(count), Ordering::Relaxed);
                return;
            }
            if found < least_count {
                least = node;
                least_count = found;
            }
            length += 1;
            place = &(*node).next;
        }
        // The list is full: a rare value makes room for one that comes more often.
        if least.is_null() || count == 0 {
            return;
        }
        if least_count <= count {
            (*least).value.store(value, Ordering::Relaxed);
            (*least).count.store(count, Ordering::Relaxed);
        } else {
            (*least).count.store(least_count - count, Ordering::Relaxed);
        }
    }
}

/// Makes the lists of a record that has none, and adds the value.
///
/// # Safety
/// The caller must ensure what [`instrument`] requires.
#[cold]
#[inline(never)]
unsafe fn first(value: u64, record: usize, site: usize, count: u64) {
    // SAFETY: the caller promises that the record is in memory.
    unsafe {
        let sites = all_sites(record);
        if site >= sites || count == 0 {
            return;
        }
        if !CHOSEN.load(Ordering::Relaxed) {
            // The compiler has left no room for lists, so the size of that room is no reason for a limit.
            PER_SITE.store(VALUES_PER_SITE, Ordering::Relaxed);
        }
        let size = size_of::<Node>() / size_of::<usize>();
        let new = allocate((sites + size - 1) / size).cast::<AtomicPtr<Node>>();
        if new.is_null() {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lists = &*((record + LAYOUT.values) as *const AtomicPtr<AtomicPtr<Node>>);
        // If another thread was faster, its lists are used.
        let _ = lists.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        instrument(value, record, site, count);
    }
}

/// Adds a value at the end of a list.
///
/// # Safety
/// The caller must ensure what [`instrument`] requires. `place` is the last one in the list of this site.
#[cold]
#[inline(never)]
unsafe fn grow(value: u64, record: usize, site: usize, count: u64, place: &AtomicPtr<Node>) {
    if count == 0 {
        return;
    }
    let new = allocate(1);
    if new.is_null() {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the node is new, and the caller promises the rest.
    unsafe {
        (*new).value.store(value, Ordering::Relaxed);
        (*new).count.store(count, Ordering::Relaxed);
        if place
            .compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            // Another thread has added a node here, which may have the same value.
            instrument(value, record, site, count);
        }
    }
}

/// Adds one to the count of the group of sizes that a size belongs to.
///
/// # Safety
/// The caller must ensure what [`instrument`] requires.
pub unsafe fn instrument_size(size: u64, record: usize, site: usize) {
    // SAFETY: the caller promises the same.
    unsafe { instrument(representative_size(size), record, site, 1) };
}
