//! Value data in files. This module reads those of an older profile and writes those of this process.
use super::{each_node, has_sites, instrument, sites, written};
use crate::layout::{padding, KINDS_MAX, KIND_CALL, KIND_VTABLE, LAYOUT, VALUES_PER_SITE};
use crate::memory::{numbered, read};
use crate::output::Output;
use core::ptr::addr_of_mut;

#[derive(Debug, Clone, Copy)]
pub struct Shift {
    distance: u64,
    first: u64,
    last: u64,
}

impl Shift {
    /// The state before any addresses were recorded.
    pub const NONE: Self = Self {
        distance: 0,
        first: u64::MAX,
        last: 0,
    };

    pub fn note(&mut self, old: usize, new: usize) {
        if old == 0 || new == 0 {
            return;
        }
        let old = old as u64;
        self.distance = (new as u64).wrapping_sub(old);
        if old < self.first {
            self.first = old;
        }
        if old > self.last {
            self.last = old;
        }
    }

    pub fn is_known(self) -> bool {
        self.first <= self.last
    }

    /// Records the address of one function in this process. The distance to the older process must be known.
    pub fn note_new(&mut self, new: usize) {
        // The distance is that of two addresses of this machine, so the cast to `usize` loses no bits.
        #[allow(clippy::cast_possible_truncation)]
        let distance = self.distance as usize;
        if new != 0 {
            self.note(new.wrapping_sub(distance), new);
        }
    }

    #[must_use]
    pub fn apply(self, kind: usize, value: u64) -> u64 {
        let address = match kind {
            KIND_CALL => value >= self.first && value <= self.last,
            // Virtual tables are in the image too, but not between its first and last function.
            KIND_VTABLE => true,
            _ => false,
        };
        if address {
            value.wrapping_add(self.distance)
        } else {
            value
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct OldValues {
    pub at: usize,
    pub end: usize,
    pub shift: Shift,
}

impl OldValues {
    /// The state if there are no value data.
    pub const NONE: Self = Self {
        at: 0,
        end: 0,
        shift: Shift::NONE,
    };
}

#[derive(Clone, Copy)]
struct Kind {
    counts: usize,
    sites: usize,
    values: usize,
}

#[derive(Clone, Copy)]
struct Function([Option<Kind>; KINDS_MAX]);

impl Kind {
    /// # Safety
    /// The caller must pass the index of a site.
    unsafe fn count(self, site: usize) -> usize {
        // SAFETY: the caller promises that there is such a site.
        usize::from(unsafe { read::<u8>(self.counts + site) })
    }
}

impl OldValues {
    /// Skips the value data of one function. Returns false if they are damaged. The number of sites of each kind must be
    /// the same in the function's record and in that of the older profile.
    ///
    /// # Safety
    /// The caller must ensure that everything up to `end` is readable, and pass the address of a record with sites.
    pub unsafe fn skip(&mut self, record: usize) -> bool {
        // SAFETY: the caller promises the same.
        unsafe { self.next(record).is_some() }
    }

    /// # Safety
    /// The caller must ensure that everything up to `end` is readable, and pass the address of a function record.
    unsafe fn next(&mut self, record: usize) -> Option<Function> {
        let mut function = Function([None; KINDS_MAX]);
        let start = self.at;
        if self.end - start < 8 {
            return None;
        }
        // SAFETY: each number is read after a check that it lies before the end.
        unsafe {
            let total = read::<u32>(start) as usize;
            if total < 8 || total % 8 != 0 || total > self.end - start {
                return None;
            }
            let end = start + total;
            let mut at = start + 8;
            for _ in 0..read::<u32>(start + 4) {
                if end - at < 8 {
                    return None;
                }
                let kind = read::<u32>(at) as usize;
                let count = read::<u32>(at + 4) as usize;
                if kind >= LAYOUT.kinds || count != sites(record, kind) {
                    return None;
                }
                let counts = at + 8;
                if count + padding(8 + count) > end - counts {
                    return None;
                }
                let mut sum = 0;
                for site in 0..count {
                    sum += usize::from(read::<u8>(counts + site));
                }
                let values = counts + count + padding(8 + count);
                if sum * 16 > end - values {
                    return None;
                }
                if let Some(place) = function.0.get_mut(kind) {
                    *place = Some(Kind {
                        counts,
                        sites: count,
                        values,
                    });
                }
                at = values + sum * 16;
            }
            if at != end {
                return None;
            }
            self.at = end;
        }
        Some(function)
    }

    /// Adds the value data at the address `at`, which belong to one function, to those of the function record `record`.
    /// Nothing is added if they are damaged.
    ///
    /// # Safety
    /// The caller must pass the address of value data whose first word is their size, and of a function record.
    pub unsafe fn add_one(at: usize, record: usize) {
        // SAFETY: the caller promises that the first word is readable, and that it is the size of the value data.
        let end = at + unsafe { read::<u32>(at) } as usize;
        let shift = Shift::NONE;
        // SAFETY: the value data are checked before they are added.
        unsafe { OldValues { at, end, shift }.add_to(record) };
    }

    /// Adds the value data of the next function to those of the function record `record`.
    ///
    /// # Safety
    /// The caller must ensure that everything up to `end` is readable, and pass the address of a function record.
    pub unsafe fn add_to(&mut self, record: usize) {
        // SAFETY: `next` checks the value data; they are read up to their end.
        unsafe {
            if !has_sites(record) {
                return;
            }
            let Function(kinds) = match self.next(record) {
                Some(function) => function,
                None => return,
            };
            let mut first = 0;
            for (index, kind) in numbered(&kinds).take(LAYOUT.kinds) {
                if let Some(kind) = *kind {
                    let mut at = kind.values;
                    for site in 0..kind.sites {
                        for _ in 0..kind.count(site) {
                            let value = self.shift.apply(index, read(at));
                            instrument(value, record, first + site, read(at + 8));
                            at += 16;
                        }
                    }
                }
                first += sites(record, index);
            }
        }
    }
}

struct Site {
    values: [[u64; 2]; VALUES_PER_SITE],
    length: usize,
}

/// The site that is being written. The variable is static, because the stack of a signal handler may be small.
static mut SITE: Site = Site {
    values: [[0; 2]; VALUES_PER_SITE],
    length: 0,
};

impl Site {
    /// A new value without room replaces the one with the least count, if that is smaller than `count`.
    #[inline(never)]
    fn add(&mut self, value: u64, count: u64) {
        let mut least = [0, u64::MAX];
        let mut place = None;
        for entry in self.values.iter_mut().take(self.length) {
            if entry[0] == value {
                entry[1] = entry[1].saturating_add(count);
                return;
            }
            if entry[1] < least[1] {
                least = *entry;
                place = Some(entry);
            }
        }
        if self.length < VALUES_PER_SITE {
            if let Some(entry) = self.values.get_mut(self.length) {
                *entry = [value, count];
                self.length += 1;
            }
        } else if let Some(entry) = place {
            if least[1] < count {
                *entry = [value, count];
            }
        }
    }

    /// Collects the values of a site from this process and from an older profile. `old` contains the address and the
    /// number of the older profile's values.
    ///
    /// # Safety
    /// The caller must pass the index of a site of the record, and readable values.
    #[inline(never)]
    unsafe fn collect(
        &mut self,
        record: usize,
        site: usize,
        kind: usize,
        old: (usize, usize),
        shift: Shift,
    ) {
        self.length = 0;
        // SAFETY: the caller promises that the values are readable; nodes are never freed.
        unsafe {
            for index in 0..old.1 {
                let at = old.0 + index * 16;
                self.add(shift.apply(kind, read(at)), read(at + 8));
            }
            let place = written(false);
            each_node(record, site, |node| {
                match node.unwritten(place) {
                    // This node was added after the write began, and so were all nodes after it.
                    None => return false,
                    Some([value, count]) if old.1 != 0 => self.add(value, count),
                    // Without older values the list is copied as it is, because it contains each value only once.
                    Some(copy) => {
                        if let Some(entry) = self.values.get_mut(self.length) {
                            *entry = copy;
                            self.length += 1;
                        }
                    }
                }
                true
            });
        }
    }
}

/// Writes the value data of one function. If other threads may add values meanwhile, the caller has made
/// [`super::Change::Begin`] before, so that the three passes over the values find the same values. If there was no
/// memory for this, the passes may find different values. The sizes in the file are those of the first pass, so the
/// structure of the file stays valid.
///
/// # Safety
/// The caller must pass the address of a function record with sites, ensure that no other call is running, and that the
/// older value data were checked by [`OldValues::skip`].
pub unsafe fn write(output: &mut Output<'_>, record: usize, old: &mut Option<OldValues>) {
    // SAFETY: the caller promises that there is a record, that the older data are checked, and that nobody else uses
    // SITE.
    unsafe {
        let site = &mut *addr_of_mut!(SITE);
        let mut shift = Shift::NONE;
        let mut function = None;
        if let Some(old) = old {
            shift = old.shift;
            function = old.next(record);
        }
        let older = |kind: usize| match &function {
            Some(Function(kinds)) => match kinds.get(kind) {
                Some(&kind) => kind,
                None => None,
            },
            None => None,
        };
        let mut totals = [0; KINDS_MAX];
        let mut size = 8;
        let mut used_kinds = 0;
        let mut first = 0;
        for kind in 0..LAYOUT.kinds {
            let count = sites(record, kind);
            let mut total = 0;
            let mut cursor = Cursor::new(older(kind));
            for index in 0..count {
                site.collect(record, first + index, kind, cursor.next(), shift);
                total += site.length;
            }
            first += count;
            if count != 0 {
                used_kinds += 1;
                size += 8 + count + padding(8 + count) + total * 16;
            }
            if let Some(place) = totals.get_mut(kind) {
                *place = total;
            }
        }
        // The largest size is that of 3 * 65535 sites, each with 255 values of 16 bytes. It fits into 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        output.half(size as u32);
        output.half(used_kinds);
        first = 0;
        for (kind, &total) in numbered(&totals).take(LAYOUT.kinds) {
            let count = sites(record, kind);
            if count == 0 {
                continue;
            }
            // A number of two bytes.
            #[allow(clippy::cast_possible_truncation)]
            {
                output.half(kind as u32);
                output.half(count as u32);
            }
            let mut room = total;
            let mut cursor = Cursor::new(older(kind));
            for index in 0..count {
                site.collect(record, first + index, kind, cursor.next(), shift);
                let length = if site.length < room {
                    site.length
                } else {
                    room
                };
                room -= length;
                // At most 255.
                #[allow(clippy::cast_possible_truncation)]
                output.byte(length as u8);
            }
            output.zeros(padding(8 + count));
            room = total;
            cursor = Cursor::new(older(kind));
            for index in 0..count {
                site.collect(record, first + index, kind, cursor.next(), shift);
                for &[value, count] in site.values.iter().take(site.length).take(room) {
                    output.word(value);
                    output.word(count);
                    room -= 1;
                }
            }
            first += count;
        }
    }
}

struct Cursor {
    kind: Option<Kind>,
    site: usize,
    at: usize,
}

impl Cursor {
    fn new(kind: Option<Kind>) -> Self {
        Self {
            at: match kind {
                Some(kind) => kind.values,
                None => 0,
            },
            kind,
            site: 0,
        }
    }

    /// # Safety
    /// The caller must call this at most once per site.
    unsafe fn next(&mut self) -> (usize, usize) {
        match self.kind {
            None => (0, 0),
            Some(kind) => {
                // SAFETY: the caller promises that there is a next site.
                let count = unsafe { kind.count(self.site) };
                let at = self.at;
                self.site += 1;
                self.at += count * 16;
                (at, count)
            }
        }
    }
}
