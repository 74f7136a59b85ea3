//! The order of the functions of a bucket, and the few names that decide it.
//!
//! Those names have known places in the order of all names, but all names are never in memory. The names of some first
//! buckets are a random sample, because buckets have names by their hashes. The sample tells between which two of its names
//! each of the wanted ones lies, with near certainty. The walk through all names counts those of each interval between such
//! bounds, and keeps the names of the intervals in which one may be.
use profkit_data::hash_table::TableShape;
use std::ops::Range;

/// A name and its hash. Names that are equal sort by their hash.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    prefix: u64,
    name: Vec<u8>,
    hash: u64,
}

/// The first bytes of a name as a number, in the order of names.
#[inline]
fn prefix(name: &[u8]) -> u64 {
    match name.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            for (to, from) in first.iter_mut().zip(name) {
                *to = *from;
            }
            u64::from_be_bytes(first)
        }
    }
}

impl Bound {
    fn new((name, hash): (&[u8], u64)) -> Self {
        Bound {
            prefix: prefix(name),
            name: name.to_vec(),
            hash,
        }
    }
}

/// The number of bounds up to a name.
#[inline]
fn bounds_up_to(bounds: &[Bound], name: (&[u8], u64)) -> usize {
    let own = prefix(name.0);
    bounds.partition_point(|bound| match bound.prefix.cmp(&own) {
        std::cmp::Ordering::Equal => (bound.name.as_slice(), bound.hash) <= name,
        order => order.is_lt(),
    })
}

/// The names of a result whose insertion into LLVM's hash table doubles it, in ascending order.
#[derive(Debug)]
pub(super) struct Turns {
    shape: TableShape,
    names: Vec<Bound>,
    /// The number of items of the table.
    pub(super) items: usize,
}

impl Turns {
    /// Whether an item of this name comes before those items of its bucket whose names sort before its own.
    #[inline]
    fn goes_in_front(&self, name: (&[u8], u64)) -> bool {
        let doublings = bounds_up_to(&self.names, name);
        self.shape
            .goes_in_front(u32::try_from(doublings).unwrap_or(u32::MAX))
    }

    /// Sorts the functions of a bucket into the order of LLVM's table.
    #[inline]
    pub(super) fn sort<'n, T: Copy>(
        &self,
        bucket: &mut Vec<(bool, T)>,
        name: impl Fn(T) -> (&'n [u8], u64),
    ) {
        if bucket.len() < 2 {
            return;
        }
        for (in_front, item) in &mut *bucket {
            *in_front = self.goes_in_front(name(*item));
        }
        bucket.sort_unstable_by(|&(front, one), &(other_front, two)| {
            let (one, two) = (name(one), name(two));
            match (front, other_front) {
                (true, true) => two.cmp(&one),
                (false, false) => one.cmp(&two),
                _ => other_front.cmp(&front),
            }
        });
    }
}

/// The intervals between bounds.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    bounds: Vec<Bound>,
    /// Whether the names of the first interval are kept. From one interval to the next, this changes.
    keeps_first: bool,
}

impl Intervals {
    /// A single interval, all of whose names are kept.
    pub(super) fn whole() -> Self {
        Intervals {
            bounds: Vec::new(),
            keeps_first: true,
        }
    }

    /// Makes the intervals of about `1 / times` as many names as there are in all.
    pub(super) fn of_sample(sample: &Tally, times: f64) -> Self {
        let mut names: Vec<_> = sample.kept.iter().map(|kept| sample.name(kept)).collect();
        names.sort_unstable();
        let count = names.len();
        let mut intervals = Intervals::default();
        let mut last: Option<Range<usize>> = None;
        let mut doubling = 0;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        loop {
            let expected = TableShape::turning_point(doubling) as f64 / times;
            // Four times the standard deviation of the number of names of the sample up to the one that is wanted.
            let spread = 4.0 * expected.sqrt() + 4.0;
            let from = whole_number(expected - spread);
            let to = whole_number(expected + spread);
            if from >= count {
                break;
            }
            match &mut last {
                Some(last) if from <= last.end => last.end = to,
                _ => {
                    ranges.extend(last.take());
                    last = Some(from..to);
                }
            }
            doubling += 1;
        }
        ranges.extend(last);
        for range in ranges {
            if range.start == 0 {
                intervals.keeps_first = true;
            } else {
                intervals
                    .bounds
                    .extend(names.get(range.start).copied().map(Bound::new));
            }
            intervals
                .bounds
                .extend(names.get(range.end).copied().map(Bound::new));
        }
        intervals
    }

    pub(super) fn is_whole(&self) -> bool {
        self.bounds.is_empty() && self.keeps_first
    }

    #[inline]
    fn keeps(&self, interval: usize) -> bool {
        self.keeps_first == interval.is_multiple_of(2)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of a number outside the range gives its end"
)]
fn whole_number(number: f64) -> usize {
    number as usize
}

/// The names of a range of units by intervals.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Vec<u64>,
    kept: Vec<Kept>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    interval: u32,
    len: u32,
    start: usize,
    hash: u64,
}

impl Tally {
    pub(super) fn new(intervals: &Intervals) -> Self {
        Tally {
            counts: vec![0; intervals.bounds.len() + 1],
            ..Tally::default()
        }
    }

    /// Adds a name. Returns `None` for a name of 4 GiB or more.
    #[inline]
    pub(super) fn add(&mut self, intervals: &Intervals, name: (&[u8], u64)) -> Option<()> {
        let interval = bounds_up_to(&intervals.bounds, name);
        if let Some(count) = self.counts.get_mut(interval) {
            *count += 1;
        }
        if intervals.keeps(interval) {
            self.kept.push(Kept {
                interval: u32::try_from(interval).ok()?,
                len: u32::try_from(name.0.len()).ok()?,
                start: self.bytes.len(),
                hash: name.1,
            });
            self.bytes.extend_from_slice(name.0);
        }
        Some(())
    }

    /// Adds the names of other units.
    pub(super) fn absorb(&mut self, later: Tally) {
        for (count, more) in self.counts.iter_mut().zip(&later.counts) {
            *count += more;
        }
        let base = self.bytes.len();
        self.bytes.extend(later.bytes);
        self.kept.extend(later.kept.into_iter().map(|kept| Kept {
            start: kept.start + base,
            ..kept
        }));
    }

    fn name(&self, kept: &Kept) -> (&[u8], u64) {
        let name = self.bytes.get(kept.start..kept.start + kept.len as usize);
        (name.unwrap_or_default(), kept.hash)
    }

    /// Finds the names that decide the order of the table. `None` if one is in an interval whose names were not kept.
    pub(super) fn turns(&mut self, intervals: &Intervals, shape: TableShape) -> Option<Turns> {
        let mut kept = std::mem::take(&mut self.kept);
        let mut names = Vec::new();
        let mut before = 0;
        let mut doublings = 0..shape.doublings();
        let mut wanted = doublings.next();
        for (interval, &count) in self.counts.iter().enumerate() {
            let end = before + usize::try_from(count).ok()?;
            let mut own: Option<Vec<Kept>> = None;
            while let Some(doubling) = wanted
                && TableShape::turning_point(doubling) < end
            {
                if !intervals.keeps(interval) {
                    return None;
                }
                let own = own.get_or_insert_with(|| {
                    let is_here = |kept: &mut Kept| kept.interval as usize == interval;
                    kept.extract_if(.., is_here).collect()
                });
                let place = TableShape::turning_point(doubling) - before;
                if place >= own.len() {
                    return None;
                }
                let by_name = |one: &Kept, two: &Kept| self.name(one).cmp(&self.name(two));
                let (_, name, _) = own.select_nth_unstable_by(place, by_name);
                names.push(Bound::new(self.name(name)));
                wanted = doublings.next();
            }
            before = end;
        }
        if wanted.is_some() {
            return None;
        }
        Some(Turns {
            shape,
            names,
            items: before,
        })
    }

    /// The number of names.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn hash_of(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[test]
    fn the_names_at_the_turning_points_are_found_from_a_sample() {
        let name = |number: u64| match number % 3 {
            0 => format!("f{number}").into_bytes(),
            1 => vec![0; usize::try_from(number % 9).unwrap()],
            _ => format!("_ZN4llvm12SelectionDAG{number}").into_bytes(),
        };
        let names: Vec<_> = (0..60_000).map(|n| (name(n), hash_of(n))).collect();
        let mut sorted: Vec<_> = names.clone();
        sorted.sort();
        let shape = TableShape::of(names.len()).unwrap();
        let mut sample = Tally::new(&Intervals::whole());
        for (name, hash) in names.iter().filter(|(_, hash)| hash % 16 == 0) {
            sample.add(&Intervals::whole(), (name, *hash));
        }
        for intervals in [Intervals::of_sample(&sample, 16.0), Intervals::whole()] {
            let (one, two) = names.split_at(20_000);
            let tally = |names: &[(Vec<u8>, u64)]| {
                let mut tally = Tally::new(&intervals);
                for (name, hash) in names {
                    tally.add(&intervals, (name, *hash)).unwrap();
                }
                tally
            };
            let mut all = tally(one);
            all.absorb(tally(two));
            assert_eq!(all.count(), 60_000);
            let is_sampled = intervals.bounds.len() > 1;
            assert_eq!(all.kept.len() < 40_000, is_sampled);
            let turns = all.turns(&intervals, shape).unwrap();
            let found: Vec<_> = turns
                .names
                .iter()
                .map(|one| (one.name.clone(), one.hash))
                .collect();
            let places = (0..shape.doublings()).map(TableShape::turning_point);
            let expected: Vec<_> = places.map(|place| sorted[place].clone()).collect();
            assert_eq!(found, expected);
        }
    }

    /// Inputs may be made so that their first buckets are no random sample.
    #[test]
    fn a_sample_that_misleads_is_found_out() {
        let mut sample = Tally::new(&Intervals::whole());
        for number in 0..5000u64 {
            let name = format!("m{number:04}");
            sample.add(&Intervals::whole(), (name.as_bytes(), number));
        }
        let intervals = Intervals::of_sample(&sample, 10.0);
        let mut tally = Tally::new(&intervals);
        for number in 0..50_000u64 {
            let name = format!("m1700x{number}");
            tally.add(&intervals, (name.as_bytes(), number)).unwrap();
        }
        assert!(
            tally
                .turns(&intervals, TableShape::of(50_000).unwrap())
                .is_none()
        );
    }
}
