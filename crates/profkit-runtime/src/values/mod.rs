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
pub use record::{instrument, instrument_one, instrument_size, set_limit, take_lost};
#[cfg(any(profkit_part = "file", profkit_part = "buffer"))]
pub use recorded::{instrument, set_limit, take_lost};

use crate::layout::LAYOUT;
use crate::memory::{read, write as store};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// An entry in the list of a value site. The compiler determines its layout.
#[repr(C)]
struct Node {
    value: AtomicU64,
    count: AtomicU64,
    next: AtomicPtr<Node>,
}

/// Returns the number of value sites of one kind in a function.
///
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

/// Whether two records have the same number of value sites of each kind.
///
/// # Safety
/// The caller must pass the addresses of function records.
#[inline(always)]
pub unsafe fn same_sites(record: usize, other: usize) -> bool {
    // SAFETY: the caller promises that there are records.
    unsafe { numbers_of_sites(record) == numbers_of_sites(other) }
}

/// Returns the number of value sites of all kinds in a function.
///
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

/// Sets the counts of all values of a function to 0.
///
/// # Safety
/// The caller must pass the address of a function record.
pub unsafe fn reset(record: usize) {
    // SAFETY: the caller promises that there is a record.
    unsafe {
        for site in 0..all_sites(record) {
            let mut next = list(record, site);
            while let Some(place) = next {
                let node = place.load(Ordering::Acquire);
                if node.is_null() {
                    break;
                }
                (*node).count.store(0, Ordering::Relaxed);
                next = Some(&(*node).next);
            }
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
