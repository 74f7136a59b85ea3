//! The functions that instrumented code calls, with the names and types of LLVM's runtime.
#[cfg(not(target_os = "linux"))]
use crate::image;
use crate::values;
use core::sync::atomic::{AtomicU64, Ordering};

static TIME: AtomicU64 = AtomicU64::new(0);

hidden! {
    fn __llvm_profile_set_timestamp(place: *mut u64) {
        // SAFETY: instrumented code passes the first counter of a function.
        unsafe {
            let now = place.read_volatile();
            if now == 0 || now == u64::MAX {
                place.write_volatile(TIME.fetch_add(1, Ordering::Relaxed) + 1);
            }
        }
    }

    fn __llvm_profile_instrument_target(value: u64, record: usize, site: u32) {
        // SAFETY: instrumented code passes a record and one of its sites.
        unsafe { values::instrument_one(value, record, site) }
    }
    fn __llvm_profile_instrument_target_value(value: u64, record: usize, site: u32, count: u64) {
        // SAFETY: the caller passes a record and one of its sites.
        unsafe { values::instrument(value, record, site as usize, count) }
    }
    fn __llvm_profile_instrument_memop(size: u64, record: usize, site: u32) {
        // SAFETY: instrumented code passes a record and one of its sites.
        unsafe { values::instrument_size(size, record, site) }
    }

    fn lprofSetMaxValsPerSite(limit: u32) { values::set_limit(limit as usize) }
    fn __profkit_profile_take_lost() -> usize { values::take_lost() }
    /// The table with the written part of the count of each node in the compiler's pool, or 0. Made if `make` is not 0.
    fn __profkit_profile_written(make: i32) -> usize { values::written(make != 0) }
    fn __profkit_profile_reset_time() { TIME.store(0, Ordering::Relaxed) }
}

#[cfg(not(target_os = "linux"))]
hidden! {
    fn __llvm_profile_reset_counters() {
        let sections = image::sections();
        // SAFETY: the sections are those of this image.
        unsafe {
            if sections.check().is_ok() {
                sections.reset();
            }
        }
        TIME.store(0, Ordering::Relaxed);
    }
}
