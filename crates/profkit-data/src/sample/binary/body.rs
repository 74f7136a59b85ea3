//! Reads and writes the samples of one function in LLVM's binary encodings. All numbers are ULEB128.
//!
//! A function at the top level has its entry count, the index of its name or calling context in the table of the file,
//! and its body. A body has the total number of samples, the lines, the inlined functions, and the vtables if the file
//! has any.
use super::super::flat::{FlatFunction, Step};
use super::super::losses::Losses;
use super::super::model::{Location, Samples};
use super::super::names::{NameId, SampleNames};
use super::names::{Mapping, NamePlan};
use super::numbers::{self, put};
use crate::bytes::Cursor;
use crate::index_vec::IndexVec;
use crate::limits::SAMPLE_INLINE_DEPTH;
use crate::{ErrorKind, Result};
use rustc_hash::FxHashSet;

/// The largest line number that LLVM accepts (`isOffsetLegal`).
const MAX_LINE: u64 = 0xffff;

pub(in crate::sample) struct Decoder<'m, 'a> {
    pub(in crate::sample) mapping: &'m mut Mapping<'a>,
    pub(in crate::sample) names: &'m mut SampleNames,
    pub(in crate::sample) vtables: bool,
}

impl Decoder<'_, '_> {
    #[inline]
    pub(in crate::sample) fn name(&mut self, cursor: &mut Cursor<'_>) -> Result<NameId> {
        self.mapping.read(cursor, self.names)
    }

    /// Reads the body of a function up to its end. Does not add the [`Step::Leave`] that ends an inlined function; the
    /// caller adds it.
    pub(in crate::sample) fn body(
        &mut self,
        cursor: &mut Cursor<'_>,
        function: &mut FlatFunction,
    ) -> Result<()> {
        function.total = cursor.uleb128()?;
        self.rest(cursor, &mut function.steps, 0)
    }

    pub(in crate::sample) fn lines(
        &mut self,
        cursor: &mut Cursor<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let lines = numbers::count(
            cursor,
            4,
            "a function claims more lines than the bytes left can hold",
        )?;
        for _ in 0..lines {
            let location = location(cursor, true)?;
            let samples = cursor.uleb128()?;
            steps.push(Step::Line { location, samples });
            let calls = numbers::count(
                cursor,
                2,
                "a line claims more call targets than the bytes left can hold",
            )?;
            for _ in 0..calls {
                let name = self.name(cursor)?;
                let count = cursor.uleb128()?;
                steps.push(Step::Target { name, count });
            }
        }
        Ok(())
    }

    fn rest(&mut self, cursor: &mut Cursor<'_>, steps: &mut Vec<Step>, depth: usize) -> Result<()> {
        self.lines(cursor, steps)?;
        let inlined = numbers::count(
            cursor,
            6,
            "a function claims more inlined functions than the bytes left can hold",
        )?;
        if inlined != 0 && depth == SAMPLE_INLINE_DEPTH {
            return Err(ErrorKind::LimitExceeded
                .error("inlined functions nest too deeply")
                .at(cursor.offset())
                .expected(format_args!("at most {SAMPLE_INLINE_DEPTH} levels")));
        }
        for _ in 0..inlined {
            let location = location(cursor, false)?;
            let name = self.name(cursor)?;
            let total = cursor.uleb128()?;
            steps.push(Step::Enter {
                location,
                name,
                total,
            });
            self.rest(cursor, steps, depth + 1)?;
            steps.push(Step::Leave);
        }
        if self.vtables {
            self.vtables(cursor, steps)?;
        }
        Ok(())
    }

    pub(in crate::sample) fn vtables(
        &mut self,
        cursor: &mut Cursor<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let sites = numbers::count(
            cursor,
            3,
            "a function claims more vtable sites than the bytes left can hold",
        )?;
        let mut seen: FxHashSet<(Location, NameId)> = FxHashSet::default();
        for _ in 0..sites {
            let location = location(cursor, true)?;
            let types = numbers::count(
                cursor,
                2,
                "a call site claims more vtables than the bytes left can hold",
            )?;
            for _ in 0..types {
                let name = self.name(cursor)?;
                let count = cursor.uleb128()?;
                // If a vtable name occurs twice at one location, LLVM keeps the first count.
                if seen.insert((location, name)) {
                    steps.push(Step::Vtable {
                        location,
                        name,
                        count,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Reads a location. If `is_limited` is set, a line number above 65535 is an error. LLVM limits the line numbers of
/// samples, but not those of inlined functions.
#[inline]
pub(in crate::sample) fn location(cursor: &mut Cursor<'_>, is_limited: bool) -> Result<Location> {
    let start = cursor.offset();
    let line = cursor.uleb128()?;
    let limit = if is_limited {
        MAX_LINE
    } else {
        u64::from(u32::MAX)
    };
    match u32::try_from(line) {
        Ok(line) if u64::from(line) <= limit => {
            let discriminator = numbers::u32(cursor, "a discriminator is too large")?;
            Ok(Location::new(line, discriminator))
        }
        _ => Err(ErrorKind::Malformed
            .error("a line number is too large")
            .at(start)
            .found(line)
            .expected(format_args!("at most {limit}"))),
    }
}

pub(in crate::sample) struct Encoder<'a> {
    pub(in crate::sample) plan: &'a NamePlan,
    pub(in crate::sample) ranks: &'a IndexVec<NameId, u32>,
    pub(in crate::sample) vtables: bool,
    pub(in crate::sample) losses: Losses,
}

impl Encoder<'_> {
    pub(in crate::sample) fn body(&mut self, out: &mut Vec<u8>, samples: &Samples) {
        put(out, samples.total);
        put(out, samples.body.len() as u64);
        let mut targets = samples.targets.as_slice();
        for line in &samples.body {
            self.location(out, line.location);
            put(out, line.samples);
            let here = targets
                .iter()
                .take_while(|target| target.location <= line.location)
                .count();
            let (now, later) = targets.split_at(here);
            targets = later;
            put(out, now.len() as u64);
            match now {
                [] => {}
                [target] => self.target(out, target.name, target.count),
                _ => {
                    let mut sorted = now.to_vec();
                    sorted.sort_unstable_by_key(|target| {
                        (std::cmp::Reverse(target.count), self.rank(target.name))
                    });
                    for target in &sorted {
                        self.target(out, target.name, target.count);
                    }
                }
            }
        }
        put(out, samples.inlined.len() as u64);
        for inlined in self.inlined_order(samples) {
            put(out, u64::from(inlined.location.line));
            put(out, u64::from(inlined.location.discriminator));
            put(out, u64::from(self.plan.number(inlined.samples.name)));
            self.body(out, &inlined.samples);
        }
        if !self.vtables {
            self.losses.vtables += samples.vtables.len() as u64;
            return;
        }
        let sites = || {
            samples
                .vtables
                .chunk_by(|one, two| one.location == two.location)
        };
        put(out, sites().count() as u64);
        for site in sites() {
            let Some(first) = site.first() else { continue };
            self.location(out, first.location);
            put(out, site.len() as u64);
            let mut sorted = site.to_vec();
            sorted.sort_unstable_by_key(|target| self.rank(target.name));
            for target in &sorted {
                self.target(out, target.name, target.count);
            }
        }
    }

    pub(in crate::sample) fn inlined_order<'s>(
        &self,
        samples: &'s Samples,
    ) -> Vec<&'s super::super::model::Inlined> {
        let mut order: Vec<_> = samples.inlined.iter().collect();
        // The inlined functions are already sorted by location.
        order.sort_by_key(|inlined| (inlined.location, self.rank(inlined.samples.name)));
        order
    }

    fn target(&self, out: &mut Vec<u8>, name: NameId, count: u64) {
        put(out, u64::from(self.plan.number(name)));
        put(out, count);
    }

    /// Appends a location. LLVM rejects line numbers above 65535; such a line is still written, and counted as a loss.
    pub(in crate::sample) fn location(&mut self, out: &mut Vec<u8>, location: Location) {
        self.losses.large_lines += u64::from(u64::from(location.line) > MAX_LINE);
        put(out, u64::from(location.line));
        put(out, u64::from(location.discriminator));
    }

    fn rank(&self, name: NameId) -> u32 {
        self.ranks.get(name).copied().unwrap_or(u32::MAX)
    }
}

/// Adds the checksums and attributes of a function and of the functions inlined in it to the counts of what is left
/// out.
pub(in crate::sample) fn count_facts(samples: &Samples, losses: &mut Losses) {
    losses.checksums += u64::from(samples.checksum != 0);
    losses.attributes += u64::from(samples.attributes != 0);
    for inlined in &samples.inlined {
        count_facts(&inlined.samples, losses);
    }
}
