//! A cache that finds the binary and the offset for an address of a process. It is fast because nearly all addresses of
//! a thread's samples lie in a few mappings.
use crate::process::{BinaryId, Processes, Window};

/// The number of [`Window`]s that the cache keeps. A larger cache would be faster only for recordings of many
/// processes.
const SLOTS: usize = 256;

/// A cache of [`Window`]s: ranges of addresses and times in which the mapping is the same. An address is looked up in
/// the mappings only if no cached window covers it.
#[derive(Debug)]
pub(super) struct PlaceCache {
    last: Window,
    slots: Box<[Window]>,
}

impl Default for PlaceCache {
    fn default() -> Self {
        PlaceCache {
            last: Window::EMPTY,
            slots: vec![Window::EMPTY; SLOTS].into(),
        }
    }
}

impl PlaceCache {
    /// Returns the binary that an address belongs to, and the offset in the binary. `None` if no file was mapped there.
    #[inline]
    pub fn locate(
        &mut self,
        processes: &Processes,
        in_kernel: bool,
        pid: u32,
        time: u64,
        address: u64,
    ) -> Option<(BinaryId, u64)> {
        let pid = Processes::space_of(in_kernel, pid, address);
        if !self.last.has(pid, time, address) {
            self.find(processes, pid, time, address);
        }
        self.last.place(address)
    }

    /// Finds the window that covers an address, and stores it in `last`.
    fn find(&mut self, processes: &Processes, pid: u32, time: u64, address: u64) {
        // Addresses that are close to each other share a slot. Different processes usually use different slots.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the number of slots cuts it"
        )]
        let hash = (address >> 21).wrapping_add(u64::from(pid).wrapping_mul(0x9e37_79b9)) as usize;
        let Some(slot) = self.slots.get_mut(hash % SLOTS) else {
            return;
        };
        if !slot.has(pid, time, address) {
            *slot = processes.window(pid, time, address);
        }
        self.last = *slot;
    }
}
