//! Value profiling. It records which functions were called through pointers, how large memory operations were, and
//! which virtual tables were used. Each site has a list of values with counts. The compiler reserves a pool of list
//! entries in the image. When the pool is used up, the system provides more memory. No thread ever waits: several
//! threads may add values at the same time.
mod data;
#[cfg(not(any(profkit_part = "file", profkit_part = "buffer")))]
mod record;
#[cfg(any(profkit_part = "file", profkit_part = "buffer"))]
mod recorded;

pub use data::{write, OldValues, Shift};
#[cfg(not(any(profkit_part = "file", profkit_part = "buffer")))]
pub use record::{instrument, instrument_one, instrument_size, set_limit, take_lost, written};
#[cfg(any(profkit_part = "file", profkit_part = "buffer"))]
pub use recorded::{instrument, set_limit, take_lost, written};

use crate::layout::{KINDS_MAX, LAYOUT, VALUES_PER_SITE};
use crate::memory::{read, write as store};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// An entry in the list of a value site. The compiler determines its layout.
#[repr(C)]
struct Node {
    value: AtomicU64,
    count: AtomicU64,
    next: AtomicPtr<Node>,
}

/// # Safety
/// The caller must pass the address of a function record.
#[inline(never)]
unsafe fn sites(record: usize, kind: usize) -> usize {
    // SAFETY: the caller promises that there is a record, and the kind is below the number of kinds.
    usize::from(unsafe { read::<u16>(record + LAYOUT.num_sites + kind * 2) })
}

/// Returns the numbers of value sites of all kinds in a function, packed into one number. Callers only compare this
/// number.
///
/// # Safety
/// The caller must pass the address of a function record.
#[inline(always)]
unsafe fn numbers_of_sites(record: usize) -> u64 {
    let at = record + LAYOUT.num_sites;
    // SAFETY: the caller promises that there is a record, and every record has two kinds or three.
    unsafe {
        let mut numbers = u64::from(read::<u32>(at));
        if LAYOUT.kinds == 3 {
            numbers |= u64::from(read::<u16>(at + 4)) << 32;
        }
        numbers
    }
}

/// Whether a function has value sites. Most functions have none, so this is tested before a function of this module is
/// called for each function.
///
/// # Safety
/// The caller must pass the address of a function record.
#[inline(always)]
pub unsafe fn has_sites(record: usize) -> bool {
    // SAFETY: the caller promises that there is a record.
    unsafe { numbers_of_sites(record) != 0 }
}

/// # Safety
/// The caller must pass the address of a function record.
pub unsafe fn largest(record: usize) -> usize {
    // A site takes one byte for the number of its values, and 16 bytes for each value with its count. The rest of the
    // value data are the numbers before the sites, and padding.
    const SITE: usize = 1 + VALUES_PER_SITE * 16;
    // SAFETY: the caller promises that there is a record.
    unsafe { all_sites(record) * SITE + 8 + KINDS_MAX * 16 }
}

/// # Safety
/// The caller must pass the addresses of function records.
#[inline(always)]
pub unsafe fn same_sites(record: usize, other: usize) -> bool {
    // SAFETY: the caller promises that there are records.
    unsafe { numbers_of_sites(record) == numbers_of_sites(other) }
}

/// # Safety
/// The caller must pass the address of a function record.
#[inline(never)]
unsafe fn all_sites(record: usize) -> usize {
    let mut sum = 0;
    for kind in 0..LAYOUT.kinds {
        // SAFETY: the caller promises that there is a record.
        sum += unsafe { sites(record, kind) };
    }
    sum
}

/// Returns the pointer to the first node of a site's list; `None` if the function has no lists yet.
///
/// # Safety
/// The caller must pass the address of a function record, and the index of a site in it.
#[inline(never)]
unsafe fn list<'a>(record: usize, site: usize) -> Option<&'a AtomicPtr<Node>> {
    // SAFETY: the word is null or the address of one list per site. The compiler or `instrument` has stored it.
    unsafe {
        let lists = (*((record + LAYOUT.values) as *const AtomicPtr<AtomicPtr<Node>>))
            .load(Ordering::Acquire);
        if lists.is_null() {
            None
        } else {
            Some(&*lists.add(site))
        }
    }
}

/// Calls a function with each node of one site, until it returns false.
///
/// # Safety
/// The caller must pass the address of a function record, and the index of a site in it.
#[inline(always)]
unsafe fn each_node(record: usize, site: usize, mut function: impl FnMut(&Node) -> bool) {
    // SAFETY: each pointer in a list is null, or points to a node that stays in memory.
    unsafe {
        let mut next = list(record, site);
        while let Some(place) = next {
            let node = place.load(Ordering::Acquire);
            if node.is_null() || !function(&*node) {
                break;
            }
            next = Some(&(*node).next);
        }
    }
}

/// The part of a node's count that is already in files. Other threads add to the counts of nodes at any time and
/// without atomic operations. If this thread set a count to 0, another thread could overwrite the 0 with the old count
/// plus one. The part that is in a file would then be written again. So the count that was written is stored here
/// instead, and the next write has only the difference. In a process with one thread the counts are simply set to 0.
#[repr(C)]
pub struct Written {
    /// Whose the other two fields are: in a full list, a node can get another value.
    value: AtomicU64,
    count: AtomicU64,
    /// One more than the node's count when the current write began; 0 if the node is newer.
    now: AtomicU64,
}

const _: () = assert!(core::mem::size_of::<Written>() == core::mem::size_of::<Node>());

/// A chunk of nodes, after which comes as much for their [`Written`]. Larger ones waste memory in small programs.
const CHUNK_SIZE: usize = 64 << 10;

impl Node {
    /// What of the node's count is in files. `place`, which is not 0, is what [`written`] returns.
    fn written(&self, place: usize) -> &Written {
        let pool = crate::image::nodes();
        let at = self as *const Node as usize;
        let offset = at.wrapping_sub(pool.start);
        let address = if offset < pool.length {
            place + offset
        } else {
            at + CHUNK_SIZE
        };
        // SAFETY: there is an entry for each node, either in the memory for the compiler's pool or in the memory after
        // a chunk. Neither memory is ever freed.
        unsafe { &*(address as *const Written) }
    }

    /// The value and the count to write; `None` if the node is newer than the write. `place` is what [`written`]
    /// returns.
    fn unwritten(&self, place: usize) -> Option<[u64; 2]> {
        if place == 0 {
            return Some([
                self.value.load(Ordering::Relaxed),
                self.count.load(Ordering::Relaxed),
            ]);
        }
        let written = self.written(place);
        let now = written.now.load(Ordering::Relaxed);
        if now == 0 {
            return None;
        }
        let count = now - 1 - written.count.load(Ordering::Relaxed);
        Some([written.value.load(Ordering::Relaxed), count])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Other threads may add to the counts from here on while they are written.
    Share,
    Begin,
    End,
    Reset,
}

/// # Safety
/// The caller must pass the address of a function record, and ensure that no other call is running.
#[inline(never)]
pub unsafe fn change(record: usize, change: Change) {
    let place = written(change == Change::Share);
    if change == Change::Share || (change == Change::Begin && place == 0) {
        return;
    }
    let node_changes = |node: &Node| {
        let count = node.count.load(Ordering::Relaxed);
        if place == 0 || change == Change::Reset {
            node.count.store(0, Ordering::Relaxed);
        }
        if place == 0 {
            return true;
        }
        let written = node.written(place);
        let old = written.count.load(Ordering::Relaxed);
        let now = written.now.load(Ordering::Relaxed);
        written.count.store(
            match change {
                Change::End if now != 0 => now - 1,
                Change::End => old,
                Change::Begin => {
                    let value = node.value.load(Ordering::Relaxed);
                    written.now.store(count.wrapping_add(1), Ordering::Relaxed);
                    if written.value.swap(value, Ordering::Relaxed) != value {
                        0
                    } else if old > count {
                        // A rare value makes room for others: its count becomes lower.
                        count
                    } else {
                        old
                    }
                }
                _ => 0,
            },
            Ordering::Relaxed,
        );
        true
    };
    // SAFETY: the caller promises that there is a record.
    unsafe {
        for site in 0..all_sites(record) {
            each_node(record, site, node_changes);
        }
    }
}

/// Sets the number of sites of one kind in a function record. Only tests of compilers use this.
///
/// # Safety
/// The caller must pass the address of a writable function record.
pub unsafe fn set_sites(record: usize, kind: usize, count: u16) {
    if kind < LAYOUT.kinds {
        // SAFETY: the caller promises that the record is writable.
        unsafe { store(record + LAYOUT.num_sites + kind * 2, count) };
    }
}
