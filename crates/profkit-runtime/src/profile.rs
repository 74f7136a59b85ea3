//! The profile of an image. This module describes its sections, checks them, and writes them as a raw file.
mod old;

use crate::layout::{
    padding, Layout, COUNTER_PTR, FUNC_HASH, HEADER_MAX, LAYOUT, NAME_REF, RAW, VTABLE_SIZE,
};
use crate::memory::{read, write, Area};
use crate::output::Output;
use crate::values::{self, Change, OldValues};
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering};
pub use old::{Old, OldHeader};
use profkit_abi::{raw, variant};

/// The magic number of a raw file, for the word size of this machine.
pub const MAGIC: u64 = if cfg!(target_pointer_width = "64") {
    raw::MAGIC_64
} else {
    raw::MAGIC_32
};

/// The value of a time stamp that was never set, if the counters are bytes.
const NO_TIME: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
pub struct Sections {
    pub data: Area,
    pub with_sites: Area,
    pub counters: Area,
    pub bitmap: Area,
    pub names: Area,
    pub vtables: Area,
    pub vtable_names: Area,
    pub version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The compiler's version word has this other raw version.
    Version(u32),
    /// The function records seem to have the layout of this raw version; 0 of none.
    Records(u32),
}

#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The build id of the image; empty if it has none.
    pub build_id: &'a [u8],
    pub values: bool,
    /// Whether records have 0 sites: without value data, readers reject a file whose records have sites.
    pub no_sites: bool,
    /// The values of an earlier profile, which are added to those of the program; `None` if there are none.
    pub old: Option<OldValues>,
    /// The counts to write; `None` for the counts of the program at this moment.
    pub counts: Option<Counts>,
}

/// The addresses of counters and of bitmaps, of the sizes of the image's sections.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub counters: usize,
    pub bitmap: usize,
}

impl Sections {
    #[must_use]
    #[inline(never)]
    pub fn entry_size(&self) -> usize {
        if self.version & variant::BYTE_COVERAGE != 0 {
            1
        } else {
            8
        }
    }

    #[must_use]
    pub fn records(&self) -> usize {
        self.data.length / LAYOUT.stride
    }

    #[must_use]
    pub fn record(&self, index: usize) -> usize {
        self.data.start + index * LAYOUT.stride
    }

    /// Checks that the function records have the layout of this raw version. Records of other releases have another
    /// size, or seem to have counters outside of the section of counters.
    ///
    /// # Safety
    /// The caller must ensure that the sections are readable.
    pub unsafe fn check(&self) -> Result<(), Wrong> {
        // The mask leaves 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        let version = (self.version & variant::VERSION_MASK) as u32;
        if version != RAW {
            return Err(Wrong::Version(version));
        }
        // SAFETY: the caller promises that the sections are readable.
        unsafe {
            if self.fits(&LAYOUT) {
                return Ok(());
            }
            // Versions 9 and 10 have the same records, and more compilers write version 10, so 10 comes before 9.
            for other in [10, 8, 7, 11, 9] {
                if other != RAW && self.fits(&Layout::of(other)) {
                    return Err(Wrong::Records(other));
                }
            }
        }
        Err(Wrong::Records(0))
    }

    /// # Safety
    /// The caller must ensure that the sections are readable.
    unsafe fn fits(&self, layout: &Layout) -> bool {
        let entry = self.entry_size();
        let mut at = 0;
        let mut bitmaps = false;
        while at < self.data.length {
            if self.data.length - at < layout.stride {
                return false;
            }
            let record = self.data.start + at;
            // SAFETY: the whole record lies in the section.
            unsafe {
                let mut counters: usize = read(record + COUNTER_PTR);
                if layout.version > 7 {
                    counters = counters.wrapping_add(record);
                }
                let count = read::<u32>(record + layout.num_counters) as usize;
                if count == 0
                    || count > self.counters.length
                    || !self.counters.contains(counters, count.wrapping_mul(entry))
                {
                    return false;
                }
                if layout.num_bitmap != 0 {
                    let size: u32 = read(record + layout.num_bitmap);
                    let bitmap = read::<usize>(record + layout.bitmap_ptr).wrapping_add(record);
                    if size != 0 && !self.bitmap.contains(bitmap, size as usize) {
                        return false;
                    }
                    bitmaps |= size != 0;
                }
            }
            at += layout.stride;
        }
        // A layout with fields for bitmaps is wrong if it shows none in any record.
        bitmaps || self.bitmap.length == 0 || self.data.length == 0 || layout.num_bitmap == 0
    }

    #[must_use]
    #[inline(never)]
    pub fn header(&self, ids_size: usize) -> [u64; HEADER_MAX] {
        let counters = self.counters.length;
        let none = self.data.length == 0 && self.names.length == 0;
        let delta = |to: usize| {
            if none {
                0
            } else {
                to as u64
            }
        };
        // The address of the counters in version 7, later their distance from the records.
        let relative = |to: usize| {
            delta(if RAW == 7 {
                to
            } else {
                to.wrapping_sub(self.data.start)
            })
        };
        let mut words = [0; HEADER_MAX];
        let mut used = 0;
        let mut push = |word: u64| {
            if let Some(place) = words.get_mut(used) {
                *place = word;
                used += 1;
            }
        };
        push(MAGIC);
        push(self.version);
        push(ids_size as u64);
        push(self.records() as u64);
        push(0);
        push((counters / self.entry_size()) as u64);
        push(counters_padding(counters) as u64);
        if RAW >= 9 {
            push(self.bitmap.length as u64);
            push(padding(self.bitmap.length) as u64);
        }
        if RAW >= 11 {
            // Only code for a GPU has uniform counters, so these three are 0.
            push(0);
            push(0);
            push(0);
        }
        push(self.names.length as u64);
        push(relative(self.counters.start));
        if RAW >= 9 {
            push(relative(self.bitmap.start));
        }
        push(delta(self.names.start));
        if RAW >= 10 {
            push((self.vtables.length / VTABLE_SIZE) as u64);
            push(self.vtable_names.length as u64);
        }
        push(LAYOUT.kinds as u64 - 1);
        words
    }

    #[must_use]
    #[inline(never)]
    pub fn size(&self, ids_size: usize) -> usize {
        self.counters_offset(ids_size)
            + self.counters.length
            + counters_padding(self.counters.length)
            + padded(self.bitmap.length)
            + padded(self.names.length)
            + padded(self.vtables.length)
            + padded(self.vtable_names.length)
    }

    #[must_use]
    #[inline(never)]
    pub fn counters_offset(&self, ids_size: usize) -> usize {
        LAYOUT.header_words * 8 + ids_size + self.data.length
    }

    /// # Safety
    /// The caller must ensure that the sections are readable, that their check has succeeded, and that [`Self::old`] has
    /// found the old values for these sections. If value data are written, no other call may write any at the same time.
    pub unsafe fn write(&self, output: &mut Output<'_>, parts: &Parts<'_>) {
        let ids_size = ids_size(parts.build_id);
        let header = self.header(ids_size);
        for &word in header.iter().take(LAYOUT.header_words) {
            output.word(word);
        }
        let counts = match parts.counts {
            Some(counts) => counts,
            None => self.counts(),
        };
        // SAFETY: the caller promises that the sections and the values of the old profile are readable.
        unsafe {
            if ids_size != 0 {
                let id = parts.build_id;
                output.word(id.len() as u64);
                output.bytes(id.as_ptr() as usize, id.len());
                output.zeros(padding(id.len()));
            }
            if parts.no_sites {
                for index in 0..self.records() {
                    let record = self.record(index);
                    let sites = LAYOUT.kinds * 2;
                    output.bytes(record, LAYOUT.num_sites);
                    output.zeros(sites);
                    let rest = LAYOUT.num_sites + sites;
                    output.bytes(record + rest, LAYOUT.stride - rest);
                }
            } else {
                output.bytes(self.data.start, self.data.length);
            }
            output.bytes(counts.counters, self.counters.length);
            output.zeros(counters_padding(self.counters.length));
            output.bytes(counts.bitmap, self.bitmap.length);
            output.zeros(padding(self.bitmap.length));
            for area in [self.names, self.vtables, self.vtable_names] {
                output.bytes(area.start, area.length);
                output.zeros(padding(area.length));
            }
            if parts.values {
                self.change_values(Change::Begin);
                let mut old = parts.old;
                self.each_with_sites(|record| values::write(output, record, &mut old));
            }
        }
    }

    /// Adds two sets of counts, and writes the sums to `sums`. The place `sums` may be the place of one of the two
    /// sets.
    ///
    /// # Safety
    /// The caller must ensure that the check of the sections has succeeded, and that the three places have as many counters
    /// and bytes of bitmaps as the sections. Counters of 8 bytes must be aligned at the place of the sums.
    pub unsafe fn add(&self, new: Counts, old: Counts, sums: Counts) {
        let length = self.counters.length;
        // SAFETY: the caller promises that each place has as many counters as the sections, and no more are read and
        // written. The counters of each record are in the section.
        unsafe {
            if self.entry_size() == 1 {
                for at in 0..length {
                    let byte = add_byte(read(new.counters + at), read(old.counters + at));
                    write(sums.counters + at, byte);
                }
            } else if self.version & variant::TEMPORAL == 0 {
                add_words(new.counters, old.counters, sums.counters, length);
            } else {
                for index in 0..self.records() {
                    let record = self.record(index);
                    let count = read::<u32>(record + LAYOUT.num_counters) as usize;
                    let at = self.counters_of(index) - self.counters.start;
                    let (a, b, sum) = (new.counters + at, old.counters + at, sums.counters + at);
                    // The first counter of a function is its time stamp.
                    write(sum, add_time(read(a), read(b)));
                    add_words(a + 8, b + 8, sum + 8, count * 8 - 8);
                }
            }
            for at in 0..self.bitmap.length {
                let byte = read::<u8>(new.bitmap + at) | read::<u8>(old.bitmap + at);
                write(sums.bitmap + at, byte);
            }
        }
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            counters: self.counters.start,
            bitmap: self.bitmap.start,
        }
    }

    #[must_use]
    pub fn counts_at(&self, start: usize) -> Counts {
        Counts {
            counters: start,
            bitmap: start + padded(self.counters.length),
        }
    }

    /// # Safety
    /// The caller must pass the index of a record.
    #[inline(never)]
    pub unsafe fn counters_of(&self, index: usize) -> usize {
        let record = self.record(index);
        // SAFETY: the caller promises that `index` is below the number of records, so `record` is the address of one.
        let counters: usize = unsafe { read(record + COUNTER_PTR) };
        if RAW == 7 {
            counters
        } else {
            counters.wrapping_add(record)
        }
    }

    pub fn counts_size(&self) -> usize {
        padded(self.counters.length) + self.bitmap.length
    }

    /// Copies the counters and bitmaps to the address `to`, and sets the originals to their initial values. If another
    /// thread adds to a counter meanwhile by an atomic instruction, no count is lost.
    ///
    /// # Safety
    /// The caller must ensure that the sections are writable, that [`Self::check`] has succeeded, and that there are
    /// [`Self::counts_size`] bytes of memory at the address, which is a multiple of 8.
    pub unsafe fn take(&self, to: usize) -> Counts {
        let taken = self.counts_at(to);
        let bytes = self.entry_size() == 1;
        let mut at = 0;
        // SAFETY: all addresses are in the sections and in the memory of the copy; counters of 8 bytes are aligned.
        unsafe {
            while at < self.counters.length {
                let place = self.counters.start + at;
                if bytes {
                    let old = (*(place as *const AtomicU8)).swap(0xff, Ordering::Relaxed);
                    write(to + at, old);
                    at += 1;
                } else {
                    let place = &*(place as *const AtomicU64);
                    let mut old = place.load(Ordering::Relaxed);
                    // Most counters are 0, and reading a counter is faster than exchanging it.
                    if old != 0 {
                        old = place.swap(0, Ordering::Relaxed);
                    }
                    write(to + at, old);
                    at += 8;
                }
            }
            for at in 0..self.bitmap.length {
                let place = &*((self.bitmap.start + at) as *const AtomicU8);
                write(taken.bitmap + at, place.swap(0, Ordering::Relaxed));
            }
        }
        taken
    }

    /// Adds the counts that [`Self::take`] has taken to the counters again. The caller needs this if the counts could
    /// not be written.
    ///
    /// # Safety
    /// The caller must ensure what [`Self::take`] requires, and that it has returned `taken`.
    pub unsafe fn put_back(&self, taken: Counts) {
        // SAFETY: the copy has as many counts as the sections.
        unsafe { self.add(self.counts(), taken, self.counts()) };
    }

    /// Leaves out the records before the first and after the last one with value sites, because the records are searched
    /// for value sites several times.
    ///
    /// # Safety
    /// The caller must ensure that the records are readable.
    pub unsafe fn find_sites(&mut self) {
        let mut at = self.with_sites.start;
        let mut found = Area {
            start: at,
            length: 0,
        };
        // SAFETY: the caller promises that the records are readable.
        while let Some(record) = unsafe { self.next_with_sites(&mut at) } {
            if found.length == 0 {
                found.start = record;
            }
            found.length = at - found.start;
        }
        self.with_sites = found;
    }

    /// Returns the address of the next function record with value sites at or after the address `at`, and moves `at`
    /// to the record after it. Most records have no value sites.
    ///
    /// # Safety
    /// The caller must ensure that the records are readable, and that a record begins at `at`, or the records end there.
    #[inline(never)]
    unsafe fn next_with_sites(&self, at: &mut usize) -> Option<usize> {
        let end = self.with_sites.start + self.with_sites.length;
        while end - *at >= LAYOUT.stride {
            let record = *at;
            *at += LAYOUT.stride;
            // SAFETY: the caller promises that the record is readable.
            if unsafe { values::has_sites(record) } {
                return Some(record);
            }
        }
        None
    }

    /// # Safety
    /// The caller must ensure that the records are readable.
    #[inline(always)]
    unsafe fn each_with_sites(&self, mut function: impl FnMut(usize)) {
        let mut at = self.with_sites.start;
        // SAFETY: the caller promises that the records are readable.
        while let Some(record) = unsafe { self.next_with_sites(&mut at) } {
            function(record);
        }
    }

    /// # Safety
    /// The caller must ensure that the records are readable.
    pub unsafe fn largest(&self, ids_size: usize) -> usize {
        let mut sum = self.size(ids_size);
        // SAFETY: the caller promises that the records are readable.
        unsafe {
            self.each_with_sites(|record| sum = sum.saturating_add(values::largest(record)));
        }
        sum
    }

    /// Makes a change to the counts of all values; [`Change`] has the possible changes.
    ///
    /// # Safety
    /// The caller must ensure that the sections are writable, that [`Self::check`] has succeeded, and that no other
    /// call is running.
    #[inline(never)]
    pub unsafe fn change_values(&self, change: Change) {
        // SAFETY: the caller promises that the records are writable.
        unsafe { self.each_with_sites(|record| values::change(record, change)) };
    }

    /// # Safety
    /// The caller must ensure that the sections are writable and that [`Self::check`] has succeeded.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller promises that the sections are writable.
        unsafe {
            self.reset_counters();
            self.change_values(Change::Reset);
        }
    }

    /// # Safety
    /// The caller must ensure that the counters and the bitmaps are writable.
    pub unsafe fn reset_counters(&self) {
        // SAFETY: the caller promises that the sections are writable.
        unsafe {
            self.counters
                .fill(if self.entry_size() == 1 { 0xff } else { 0 });
            self.bitmap.fill(0);
        }
    }

    /// Returns a number that is the same for two images only if they are the same build. It is a hash of the build id
    /// and the sizes of the sections. Without a build id, it is a hash of the functions and these sizes.
    ///
    /// # Safety
    /// The caller must ensure that the sections are readable.
    pub unsafe fn signature(&self, build_id: &[u8]) -> u64 {
        let mut hash = self.version ^ 0x9e37_79b9_7f4a_7c15;
        let mut mix = |word: u64| {
            hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^= hash >> 32;
        };
        for area in [
            self.data,
            self.counters,
            self.bitmap,
            self.names,
            self.vtables,
        ] {
            mix(area.length as u64);
        }
        for &byte in build_id {
            mix(u64::from(byte));
        }
        if build_id.is_empty() {
            for index in 0..self.records() {
                // SAFETY: the record lies in the section.
                unsafe {
                    mix(read(self.record(index) + NAME_REF));
                    mix(read(self.record(index) + FUNC_HASH));
                }
            }
        }
        hash
    }
}

#[must_use]
pub fn ids_size(build_id: &[u8]) -> usize {
    if build_id.is_empty() {
        0
    } else {
        8 + padded(build_id.len())
    }
}

#[must_use]
pub const fn padded(size: usize) -> usize {
    size + padding(size)
}

/// Returns the number of zero bytes after the counters. The runtimes of LLVM 13 to 17 write none.
#[must_use]
pub const fn counters_padding(size: usize) -> usize {
    if RAW < 9 {
        0
    } else {
        padding(size)
    }
}

/// Adds `length` bytes of counters. A sum that is too large becomes the largest count.
///
/// # Safety
/// The caller must ensure that `length` bytes are readable at `new` and `old` and writable at `sums`, which must be
/// aligned.
#[inline(never)]
unsafe fn add_words(new: usize, old: usize, sums: usize, length: usize) {
    let mut at = 0;
    while at < length {
        // SAFETY: the caller promises that the words are there.
        unsafe {
            write(
                sums + at,
                read::<u64>(new + at).saturating_add(read(old + at)),
            )
        };
        at += 8;
    }
}

fn add_byte(a: u8, b: u8) -> u8 {
    a & b
}

/// Returns the earlier of two time stamps. A time stamp of 0 or of the largest number was never set.
fn add_time(a: u64, b: u64) -> u64 {
    if a == 0 || a == NO_TIME || (b != 0 && b < a) {
        b
    } else {
        a
    }
}
