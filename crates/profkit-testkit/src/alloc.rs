//! An allocator that measures the largest number of heap bytes during a piece of code.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// An allocator that counts the heap bytes of each thread: the current number and the largest one. A test that measures
/// memory must install the allocator:
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

/// Runs a closure. Returns its result and the largest number of heap bytes that this thread held during the run, minus
/// the number before it. The number is 0 if the allocator is not installed, and wrong if one thread frees memory that
/// another has allocated.
pub fn peak_allocation<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = run();
    (result, PEAK.get().saturating_sub(before))
}

fn grow(bytes: usize) {
    // A thread that is ending has no counters any more, so its allocations are not measured.
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
// SAFETY: every call is passed on unchanged to the system allocator. The counters do not access the memory that is
// allocated or freed, and they allocate nothing themselves (they are const-initialised).
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller obeys the contract of `GlobalAlloc::alloc`, which is also that of System.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller obeys the contract of `GlobalAlloc::alloc_zeroed`, which is also that of System.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller passes a pointer and a layout that this allocator was used with. All memory of this
        // allocator comes from System, with the same layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // While the contents are moved, the old and the new memory may be allocated at the same time.
        grow(new_size);
        shrink(layout.size());
        // SAFETY: the caller passes a pointer and a layout that this allocator was used with, and a valid size. All
        // memory of this allocator comes from System, with the same layout.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
