//! Bounds the work on damaged debug info. Its units can share one line table, one list of ranges, one table of abbreviations or
//! one long name, so that a small file has more rows, ranges and names than any memory holds.
use super::Slice;
use gimli::{Dwarf, ReaderOffsetId, Section};
use profkit_data::{Error, ErrorKind};
use rustc_hash::FxHashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The memory in bytes for what is read: this many times the size of the debug sections, and [`FLOOR`] more. Debug info of
/// compilers needs up to a quarter of it.
const RATIO: usize = 32;
const FLOOR: usize = 16 << 20;
/// The tables of abbreviations may be longer together than their section by this factor.
const ABBREVIATIONS_RATIO: usize = 4;

/// The memory for a row of a line table, a range of addresses, or a file in the header of a line table.
pub(super) const ROW: usize = 32;
pub(super) const RANGE: usize = 32;
pub(super) const FILE: usize = 128;

/// What may still be read.
pub(crate) struct Work {
    left: AtomicUsize,
    is_over: AtomicBool,
}

impl Work {
    pub(super) fn of(dwarf: &Dwarf<Slice<'_>>) -> Self {
        let strings = dwarf.debug_str.reader().len() + dwarf.debug_line_str.reader().len();
        let work = Work {
            left: AtomicUsize::new(FLOOR.saturating_add(strings.saturating_mul(RATIO))),
            is_over: AtomicBool::new(false),
        };
        work.allow(dwarf);
        work
    }

    /// Allows what the sections of a program, or of split debug info, have. A package shares its strings, so the offsets of
    /// strings count.
    pub(super) fn allow(&self, dwarf: &Dwarf<Slice<'_>>) {
        let bytes = [
            dwarf.debug_info.reader().len(),
            dwarf.debug_abbrev.reader().len(),
            dwarf.debug_line.reader().len(),
            dwarf.debug_str_offsets.reader().len(),
            dwarf.debug_aranges.reader().len(),
            dwarf.ranges.debug_ranges().reader().len(),
            dwarf.ranges.debug_rnglists().reader().len(),
        ];
        let bytes = bytes.into_iter().fold(0, usize::saturating_add);
        let more = bytes.saturating_mul(RATIO);
        let add = |left: usize| Some(left.saturating_add(more));
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes memory for what is read next.
    ///
    /// # Errors
    /// If so much is not left. Then everything that was read is left out: see [`Work::problem`].
    pub(super) fn take(&self, bytes: usize) -> gimli::Result<()> {
        let take = |left: usize| left.checked_sub(bytes);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|_| self.end())
    }

    fn end(&self) -> gimli::Error {
        self.is_over.store(true, Ordering::Relaxed);
        gimli::Error::UnexpectedEof(ReaderOffsetId(0))
    }

    /// Ends the work if the tables of abbreviations overlap.
    pub(super) fn check_abbreviations(&self, dwarf: &Dwarf<Slice<'_>>) {
        if abbreviations_overlap(dwarf) {
            self.end();
        }
    }

    /// The error that stands for everything that was read, if the units have too much.
    pub(super) fn problem(&self) -> Option<Error> {
        self.is_over.load(Ordering::Relaxed).then(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                "debug info is left out: its units share parts, so that it has more rows, ranges, names or abbreviations than \
                 any of a file of this size",
            )
        })
    }
}

/// Whether the tables of abbreviations of the units are much longer together than their section, so that none may be read.
pub(super) fn abbreviations_overlap(dwarf: &Dwarf<Slice<'_>>) -> bool {
    let mut known = FxHashSet::default();
    let section = *dwarf.debug_abbrev.reader();
    let mut left = section.len().saturating_mul(ABBREVIATIONS_RATIO);
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let offset = header.debug_abbrev_offset().0;
        if !known.insert(offset) {
            continue;
        }
        let table = section.slice().get(offset..).unwrap_or_default();
        match left.checked_sub(table_len(table, left)) {
            Some(rest) => left = rest,
            None => return true,
        }
    }
    false
}

/// The size in bytes of the table of abbreviations at the start of `bytes`; more than `most` if it is larger than that.
fn table_len(bytes: &[u8], most: usize) -> usize {
    /// DW_FORM_implicit_const, which a number follows.
    const IMPLICIT: u64 = 0x21;
    let mut at = 0;
    let mut number = || {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f)
                .checked_shl(shift)
                .unwrap_or_default();
            // A number may have any length.
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some((value, at));
            }
        }
    };
    let mut walk = || -> Option<usize> {
        loop {
            let (code, at) = number()?;
            if code == 0 || at > most {
                return Some(at);
            }
            number()?;
            // Whether it has children.
            number()?;
            loop {
                let ((name, _), (form, at)) = (number()?, number()?);
                if form == IMPLICIT {
                    number()?;
                }
                if name == 0 && form == 0 {
                    break;
                }
                if at > most {
                    return Some(at);
                }
            }
        }
    };
    walk().unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_table_is_that_up_to_its_end() {
        // A unit with a name, then a function with a number in the abbreviation itself, then the end; then other bytes.
        let table = [
            1, 0x11, 1, 0x03, 0x08, 0, 0, 0x81, 1, 0x2e, 0, 0x3a, 0x21, 0x85, 1, 0, 0, 0, 9, 9, 9,
        ];
        assert_eq!(table_len(&table, 100), 18);
        assert!(table_len(&table, 5) > 5);
        // Cut: everything is of the table.
        assert_eq!(table_len(&table[..12], 100), 12);
        assert_eq!(table_len(&[], 100), 0);
    }

    #[test]
    fn what_is_over_stays_over() {
        let dwarf = Dwarf::load(|_| Ok::<_, ()>(Slice::new(&[], gimli::RunTimeEndian::Little)));
        let work = Work::of(&dwarf.unwrap());
        work.take(FLOOR).unwrap();
        assert!(work.problem().is_none());
        work.take(1).unwrap_err();
        work.take(0).unwrap();
        assert!(work.problem().unwrap().to_string().contains("is left out"));
    }
}
