//! Adds values to the lists of value sites. One object file of the runtime contains this code for all others.
use super::{all_sites, Node, CHUNK_SIZE};
use crate::layout::{representative_size, LAYOUT, VALUES_PER_SITE};
use core::mem::size_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The default for the largest number of values that are recorded for one site. It applies only if the compiler has
/// reserved the value lists in the image. LLVM_VP_MAX_NUM_VALS_PER_SITE can set a different number.
const LIMIT: usize = 24;

static USED: AtomicUsize = AtomicUsize::new(0);
static CHUNK: AtomicPtr<Chunk> = AtomicPtr::new(null_mut());
static PER_SITE: AtomicUsize = AtomicUsize::new(LIMIT);
static CHOSEN: AtomicBool = AtomicBool::new(false);
/// The number of values that were not recorded because there was no memory.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// The address of the memory with the [`super::Written`] of each node in the pool; 0 if there is none.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

#[repr(C)]
struct Chunk {
    used: AtomicUsize,
}

pub fn set_limit(limit: usize) {
    let limit = if limit > VALUES_PER_SITE {
        VALUES_PER_SITE
    } else {
        limit
    };
    PER_SITE.store(limit, Ordering::Relaxed);
    CHOSEN.store(true, Ordering::Relaxed);
}

pub fn take_lost() -> usize {
    LOST.swap(0, Ordering::Relaxed)
}

/// Returns the address of the memory with the [`super::Written`] of each node in the pool; 0 if there is none. If `make`
/// is true, provides the memory. Only one thread may do that at a time.
pub fn written(make: bool) -> usize {
    let mut place = WRITTEN.load(Ordering::Relaxed);
    if place == 0 && make {
        // A pool without nodes has no such memory, but the address must not be 0.
        place = crate::image::more_memory(crate::image::nodes().length + 1);
        WRITTEN.store(place, Ordering::Relaxed);
    }
    place
}

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
    // The header of a chunk takes the space of one node.
    let in_chunk = CHUNK_SIZE / size - 1;
    if count > in_chunk {
        return crate::image::more_memory((count + 1) * size) as *mut Node;
    }
    loop {
        let chunk = CHUNK.load(Ordering::Acquire);
        if !chunk.is_null() {
            // SAFETY: a chunk that is or was in CHUNK is never freed, and its first word is the counter.
            let index = unsafe { (*chunk).used.fetch_add(count, Ordering::Relaxed) };
            if index <= in_chunk - count {
                // SAFETY: the nodes lie inside the chunk.
                return unsafe { chunk.cast::<Node>().add(1 + index) };
            }
        }
        let new = crate::image::more_memory(2 * CHUNK_SIZE) as *mut Chunk;
        if new.is_null() {
            return null_mut();
        }
        if CHUNK
            .compare_exchange(chunk, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            // Another thread has stored its chunk earlier, and that chunk is used. The chunk of this thread is freed.
            crate::image::give_back(new as usize, 2 * CHUNK_SIZE);
        }
    }
}

/// The number of nodes at the start of a list that [`instrument_one`] compares before it calls [`instrument`]. If the
/// value is in none of these nodes, [`instrument`] compares them again, so a larger number makes rare values slower.
const FIRST_NODES: usize = 5;

/// Adds one to the count of a value in the list of a site. Instrumented code calls this function very often. So the
/// search in the first nodes does nothing but find the value, and the function needs no stack.
///
/// # Safety
/// The caller must ensure what [`instrument`] requires.
#[inline(never)]
pub unsafe fn instrument_one(value: u64, record: usize, site: u32) {
    let site = site as usize;
    // SAFETY: each pointer in a list is null, or points to a node that stays in memory.
    unsafe {
        if record != 0 {
            let lists = lists_of(record).load(Ordering::Acquire);
            if !lists.is_null() {
                let mut place = &*lists.add(site);
                for _ in 0..FIRST_NODES {
                    let node = place.load(Ordering::Acquire);
                    if node.is_null() {
                        break;
                    }
                    if (*node).value.load(Ordering::Relaxed) == value {
                        add(&(*node).count, 1);
                        return;
                    }
                    place = &(*node).next;
                }
            }
        }
        instrument(value, record, site, 1);
    }
}

#[inline(always)]
fn add(to: &AtomicU64, count: u64) {
    to.store(
        to.load(Ordering::Relaxed).wrapping_add(count),
        Ordering::Relaxed,
    );
}

/// # Safety
/// The caller must pass the address of a function record that is in memory as long as the image.
#[inline(always)]
unsafe fn lists_of<'a>(record: usize) -> &'a AtomicPtr<AtomicPtr<Node>> {
    // SAFETY: the caller promises that there is a record. The word is aligned, and only changed by atomic operations.
    unsafe { &*((record + LAYOUT.values) as *const AtomicPtr<AtomicPtr<Node>>) }
}

/// Adds `count` to the count of a value in the list of a site.
///
/// # Safety
/// The caller must pass the address of a function record that is in memory as long as the image, and the index of a site
/// in it.
#[inline(never)]
pub unsafe fn instrument(value: u64, record: usize, site: usize, count: u64) {
    if record == 0 {
        return;
    }
    // SAFETY: each pointer in a list is null, or points to a node that stays in memory.
    unsafe {
        // Other functions are called only as the last step, so that no registers need to be saved.
        let lists = lists_of(record).load(Ordering::Acquire);
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
            if (*node).value.load(Ordering::Relaxed) == value {
                add(&(*node).count, count);
                return;
            }
            let found = (*node).count.load(Ordering::Relaxed);
            if found < least_count {
                least = node;
                least_count = found;
            }
            length += 1;
            place = &(*node).next;
        }
        // The list is full, so a rare value must make room for values that are more frequent.
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
            // The compiler has reserved no lists, so the limit for reserved lists does not apply.
            PER_SITE.store(VALUES_PER_SITE, Ordering::Relaxed);
        }
        let size = size_of::<Node>() / size_of::<usize>();
        let new = allocate((sites + size - 1) / size).cast::<AtomicPtr<Node>>();
        if new.is_null() {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // If another thread has stored its lists earlier, those are used.
        let _ =
            lists_of(record).compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        instrument(value, record, site, count);
    }
}

/// # Safety
/// The caller must ensure what [`instrument`] requires. `place` is the last pointer in the list of this site.
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
            // Another thread has added a node here. It may contain the same value, so the list is searched again.
            instrument(value, record, site, count);
        }
    }
}

/// Adds one to the count of the size of a memory operation, after [`representative_size`] has reduced the size.
///
/// # Safety
/// The caller must ensure what [`instrument`] requires.
pub unsafe fn instrument_size(size: u64, record: usize, site: u32) {
    // SAFETY: the caller promises the same.
    unsafe { instrument_one(representative_size(size), record, site) };
}
