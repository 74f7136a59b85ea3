//! The functions of `record.rs` for the object files that do not contain them. They call the object file that does.
use crate::layout::VALUES_PER_SITE;

extern "C" {
    fn __llvm_profile_instrument_target_value(value: u64, record: usize, site: u32, count: u64);
    fn lprofSetMaxValsPerSite(limit: u32);
    fn __profkit_profile_take_lost() -> usize;
    fn __profkit_profile_written(make: i32) -> usize;
}

/// Adds `count` to the count of a value in the list of a site.
///
/// # Safety
/// The caller must pass the address of a function record that is in memory as long as the image, and the index of a site
/// in it.
pub unsafe fn instrument(value: u64, record: usize, site: usize, count: u64) {
    // SAFETY: the caller promises what the called function requires. The index of a site always fits into 32 bits.
    unsafe { __llvm_profile_instrument_target_value(value, record, site as u32, count) };
}

pub fn set_limit(limit: usize) {
    // SAFETY: the function accepts every number; a number that is too large becomes the largest allowed one.
    unsafe {
        lprofSetMaxValsPerSite(if limit > VALUES_PER_SITE {
            VALUES_PER_SITE as u32
        } else {
            limit as u32
        })
    };
}

pub fn take_lost() -> usize {
    // SAFETY: the function has no arguments.
    unsafe { __profkit_profile_take_lost() }
}

/// Returns the address of the memory with the [`super::Written`] of each node in the pool; 0 if there is none. If `make`
/// is true, provides the memory. Only one thread may do that at a time.
pub fn written(make: bool) -> usize {
    // SAFETY: the function accepts every number.
    unsafe { __profkit_profile_written(i32::from(make)) }
}
