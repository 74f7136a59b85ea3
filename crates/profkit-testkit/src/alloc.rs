//! An allocator that knows the most memory a piece of code held.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the live and the largest number of heap bytes of each thread. A test binary that measures installs it:
///
/// ```
/// use profkit_testkit::{CountingAllocator, peak_allocation};
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let (vec, peak) = peak_allocation(|| vec![0u8; 1000]);
/// assert!(peak >= vec.len());
/// ```
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Runs a closure and returns the most heap bytes that this thread held during it, beyond what it held before. Without
/// the allocator installed, that is 0. Memory that one thread allocates and another frees is not counted right.
pub fn peak_allocation<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = run();
    (result, PEAK.get().saturating_sub(before))
}

fn grow(bytes: usize) {
    // A thread that is being torn down has no counters any more, and is not measured.
    let _ = LIVE.try_with(|live| {
        let now = live.get().saturating_add(bytes);
        live.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
    });
}

fn shrink(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

#[allow(unsafe_code)]
// SAFETY: every call is passed on to the system allocator as it is; the counters neither allocate (they are
// const-initialised) nor touch the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is System's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the pointer came from System with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Old and new may live at the same time while the contents move.
        grow(new_size);
        shrink(layout.size());
        // SAFETY: the pointer came from System with this layout, and the size is the caller's promise.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
