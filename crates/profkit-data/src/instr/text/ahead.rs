//! Reads several records of a text at once, as long as they have nothing but a name, a function hash and counters in
//! their usual spelling. Their names are then hashed together, which takes a third of the time.
use super::lexer::Lexer;
use crate::decimal::leading;
use crate::ids::NameRef;
use crate::md5_lanes::hash_names;

/// The number of records that are read at once. More would be no faster, and take memory.
const MOST_RECORDS: usize = 64;
/// No further record is begun after this many counters.
const MOST_COUNTERS: usize = 1 << 14;

/// Records that were read, but not yet asked for.
#[derive(Clone, Debug)]
pub(super) struct Ahead<'data> {
    /// The number of records that are read at once; 0 to read each by itself.
    pub(super) most: usize,
    records: Vec<PlainRecord<'data>>,
    counts: Vec<u64>,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlainRecord<'data> {
    /// The offset of the record's first line.
    pub(super) start: usize,
    pub(super) name: &'data [u8],
    pub(super) name_ref: NameRef,
    pub(super) func_hash: u64,
    /// The counters of the record, as a range of the counters of all records that were read at once.
    first_count: usize,
    end_count: usize,
    /// Whether the record may go on after its counters. Only the last one of the records can.
    pub(super) goes_on: bool,
}

impl Default for Ahead<'_> {
    fn default() -> Self {
        Ahead {
            most: MOST_RECORDS,
            records: Vec::new(),
            counts: Vec::new(),
            next: 0,
        }
    }
}

impl<'data> Ahead<'data> {
    /// Returns the next record and its counters.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(PlainRecord<'data>, &[u64])> {
        let record = *self.records.get(self.next)?;
        self.next += 1;
        let counts = self.counts.get(record.first_count..record.end_count)?;
        Some((record, counts))
    }

    /// Reads records from the position of the lexer on, and moves the lexer past them. Stops before a record that is
    /// spelled in an unusual way or damaged, and after the counters of one that goes on after them.
    pub(super) fn fill(&mut self, lexer: &mut Lexer<'data>) {
        self.records.clear();
        self.counts.clear();
        self.next = 0;
        let data = lexer.text();
        let mut lines = Lines {
            data,
            at: lexer.position(),
        };
        while self.records.len() < self.most && self.counts.len() < MOST_COUNTERS {
            let first_count = self.counts.len();
            lines.first_byte();
            let start = lines.at;
            let Some((name, func_hash)) = lines.counters(&mut self.counts) else {
                self.counts.truncate(first_count);
                break;
            };
            let goes_on = lines.may_go_on();
            lexer.seek(lines.at);
            self.records.push(PlainRecord {
                start,
                name,
                name_ref: NameRef::default(),
                func_hash,
                first_count,
                end_count: self.counts.len(),
                goes_on,
            });
            if goes_on {
                break;
            }
        }
        let names: [&[u8]; MOST_RECORDS] = std::array::from_fn(|index| {
            let record = self.records.get(index);
            record.map_or(&[][..], |record| record.name)
        });
        let names = names.into_iter().take(self.records.len());
        hash_names(names, |index, name_ref| {
            if let Some(record) = self.records.get_mut(index) {
                record.name_ref = name_ref;
            }
        });
    }
}

/// Reads the record at an offset of a text. Appends its counters to `counts`, and returns its function hash. `None` for a
/// record that is no plain one.
#[inline]
pub(super) fn plain_record(data: &[u8], at: usize, counts: &mut Vec<u64>) -> Option<u64> {
    let mut lines = Lines { data, at };
    let (_, func_hash) = lines.counters(counts)?;
    (!lines.may_go_on()).then_some(func_hash)
}

/// The lines of a text, read by rules that are stricter than those of the format. `None` means that the lexer has to
/// look at the place.
struct Lines<'data> {
    data: &'data [u8],
    at: usize,
}

impl<'data> Lines<'data> {
    /// Skips blank lines and comments, and returns the first byte after them.
    #[inline]
    fn first_byte(&mut self) -> Option<u8> {
        loop {
            match self.data.get(self.at)? {
                b'\n' => self.at += 1,
                b'#' => {
                    let rest = self.data.get(self.at..)?;
                    self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                }
                &byte => return Some(byte),
            }
        }
    }

    /// Whether the record whose counters were read may go on. A number begins its values, and a `$` its bitmap, unless it is
    /// the name of the next record. A carriage return may end a blank line before them.
    #[inline]
    fn may_go_on(&mut self) -> bool {
        matches!(self.first_byte(), Some(b'$' | b'\r' | b'0'..=b'9'))
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        self.first_byte()?;
        let rest = self.data.get(self.at..)?;
        let (value, digits) = leading(rest);
        match rest.get(digits) {
            Some(b'\n') => self.at += digits + 1,
            None => self.at += digits,
            Some(_) => return None,
        }
        value
    }

    /// Reads a record up to its last counter. Returns its name and its function hash.
    #[inline]
    fn counters(&mut self, counts: &mut Vec<u64>) -> Option<(&'data [u8], u64)> {
        self.first_byte()?;
        let rest = self.data.get(self.at..)?;
        let end = memchr::memchr3(b'\n', b'\r', 0, rest)?;
        if rest.get(end) != Some(&b'\n') {
            return None;
        }
        let name = rest.get(..end)?;
        self.at += end + 1;
        // A hash that begins with 0 may be of another base.
        if self.first_byte()? == b'0' && self.data.get(self.at + 1) != Some(&b'\n') {
            return None;
        }
        let func_hash = self.number()?;
        let count = self.number().filter(|&count| count > 0)?;
        for _ in 0..count {
            counts.push(self.number()?);
        }
        Some((name, func_hash))
    }
}
