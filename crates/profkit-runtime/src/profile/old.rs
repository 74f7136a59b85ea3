//! An earlier profile of the image: checks that it is one, and finds its counts and values.
use super::{counters_padding, Counts, Sections};
use crate::layout::{COUNTER_PTR, FUNC_HASH, LAYOUT, NAME_REF, RAW};
use crate::memory::{numbered, read, Area};
use crate::values::{self, OldValues};

#[derive(Debug, Clone, Copy)]
pub struct Old {
    pub counts: Counts,
    pub values: OldValues,
}

#[derive(Debug, Clone, Copy)]
pub struct OldHeader {
    pub ids_size: usize,
    delta: usize,
    expected_delta: usize,
    with_values: bool,
    shift: values::Shift,
}

impl Sections {
    /// Checks that the bytes are a complete profile of this image. Returns the parts of the profile, or `None` if the
    /// bytes are not such a profile. If `whole` is false, other bytes may follow the profile. If `with_values` is
    /// false, value data are not checked.
    ///
    /// # Safety
    /// The caller must ensure that the sections and the bytes are readable.
    pub unsafe fn old(&self, bytes: Area, whole: bool, with_values: bool) -> Option<Old> {
        if bytes.length < LAYOUT.header_words * 8 {
            return None;
        }
        // SAFETY: the header lies in the bytes; everything else is read after its size was checked.
        unsafe {
            let mut old = self.old_header(bytes.start, with_values)?;
            if old.ids_size > bytes.length || self.size(old.ids_size) > bytes.length {
                return None;
            }
            let counters = bytes.start + self.counters_offset(old.ids_size);
            let data = counters - self.data.length;
            if !self.same_records(0, self.records(), data, &mut old) {
                return None;
            }
            let end = bytes.start + bytes.length;
            self.old_counts(Area::between(counters, end), whole, &old)
        }
    }

    /// Checks that a header is that of a profile of this image. Returns what is needed to check the rest of the
    /// profile; `None` if the header is another one.
    ///
    /// # Safety
    /// The caller must ensure that the sections and the words of a header are readable.
    pub unsafe fn old_header(&self, header: usize, with_values: bool) -> Option<OldHeader> {
        let expected = self.header(0);
        // SAFETY: the caller promises that the header is readable.
        unsafe {
            for (index, &expected) in numbered(&expected).take(LAYOUT.header_words) {
                let found: u64 = read(header + index * 8);
                if found != expected && !may_differ(index) {
                    return None;
                }
            }
            let ids_size = read::<u64>(header + 16);
            // More bytes than this would not fit into memory.
            if ids_size % 8 != 0 || ids_size > (isize::MAX / 4) as u64 {
                return None;
            }
            // Both are addresses, distances or sizes in memory, so the casts lose no bits.
            #[allow(clippy::cast_possible_truncation)]
            Some(OldHeader {
                ids_size: ids_size as usize,
                delta: read::<u64>(header + COUNTERS_DELTA * 8) as usize,
                expected_delta: match expected.get(COUNTERS_DELTA) {
                    Some(&delta) => delta as usize,
                    None => 0,
                },
                with_values,
                shift: values::Shift::NONE,
            })
        }
    }

    /// Checks that records of another profile are those of this image. The other profile's `count` records begin at the
    /// address `at`; they are compared with the records of this image from the index `first` on.
    ///
    /// # Safety
    /// The caller must ensure that the sections and the other records are readable.
    pub unsafe fn same_records(
        &self,
        first: usize,
        count: usize,
        at: usize,
        header: &mut OldHeader,
    ) -> bool {
        let (delta, expected_delta) = (header.delta, header.expected_delta);
        for index in 0..count {
            let (new, old) = (self.record(first + index), at + index * LAYOUT.stride);
            // SAFETY: `new` and `old` are addresses of records.
            unsafe {
                if read::<u64>(new + NAME_REF) != read::<u64>(old + NAME_REF)
                    || read::<u64>(new + FUNC_HASH) != read::<u64>(old + FUNC_HASH)
                    || read::<u32>(new + LAYOUT.num_counters)
                        != read::<u32>(old + LAYOUT.num_counters)
                    || counter_offset(old, delta) != counter_offset(new, expected_delta)
                    || (header.with_values && !values::same_sites(new, old))
                {
                    return false;
                }
                header
                    .shift
                    .note(read(old + LAYOUT.function), read(new + LAYOUT.function));
            }
        }
        true
    }

    /// Completes the distance between the functions of two runs with those from `first` on, whose records were not
    /// checked. Returns false if no checked record has a function.
    ///
    /// # Safety
    /// The records of the image must be readable.
    pub unsafe fn finish_shift(&self, first: usize, header: &mut OldHeader) -> bool {
        if !header.shift.is_known() {
            return false;
        }
        for index in first..self.records() {
            // SAFETY: the record lies in the section.
            let function = unsafe { read(self.record(index) + LAYOUT.function) };
            header.shift.note_new(function);
        }
        true
    }

    /// Returns the counts and values of another profile of this image, or `None` if they are not complete. `bytes` are
    /// the bytes of the profile from its counters on. If `whole` is false, other bytes may follow the profile.
    ///
    /// # Safety
    /// The caller must ensure that the sections and the bytes are readable, that the bytes include all sections after
    /// the counters, and that the header and the records of the profile were checked.
    pub unsafe fn old_counts(&self, bytes: Area, whole: bool, header: &OldHeader) -> Option<Old> {
        let rest = self.size(0) - self.counters_offset(0);
        let values = OldValues {
            at: bytes.start + rest,
            end: bytes.start + bytes.length,
            shift: header.shift,
        };
        let mut check = values;
        if header.with_values {
            let mut complete = true;
            // SAFETY: everything up to the end is readable.
            unsafe { self.each_with_sites(|record| complete = complete && check.skip(record)) };
            if !complete {
                return None;
            }
        }
        if whole && check.at != check.end {
            return None;
        }
        Some(Old {
            counts: Counts {
                counters: bytes.start,
                bitmap: bytes.start + self.counters.length + counters_padding(self.counters.length),
            },
            values,
        })
    }

    /// # Safety
    /// The caller must ensure what [`Self::write`] requires, and that the sections are writable.
    pub unsafe fn add_counts(&self, old: &Old) {
        // SAFETY: the two profiles have the same number of counters and of bitmap bytes.
        unsafe {
            self.add(self.counts(), old.counts, self.counts());
            let mut values = old.values;
            self.each_with_sites(|record| values.add_to(record));
        }
    }
}

/// The index of `CountersDelta` among the 8-byte words of the header.
const COUNTERS_DELTA: usize = LAYOUT.header_words
    - if RAW >= 10 {
        6
    } else if RAW == 9 {
        4
    } else {
        3
    };

/// Returns a number for the position of a function's counters. All profiles of an image have the same number for the
/// same record. `delta` is the profile's `CountersDelta`.
///
/// # Safety
/// The caller must pass the address of a record.
unsafe fn counter_offset(record: usize, delta: usize) -> usize {
    // SAFETY: the caller promises that there is a record.
    unsafe { read::<usize>(record + COUNTER_PTR) }.wrapping_sub(delta)
}

/// Words of the header that are addresses, and the size of the build ids, which is checked elsewhere. Without bitmaps
/// their distance is an address too.
fn may_differ(index: usize) -> bool {
    const IDS: usize = 2;
    let names = LAYOUT.header_words - if RAW >= 10 { 4 } else { 2 };
    index == IDS || index == names || (RAW != 8 && index == names - 1)
}
