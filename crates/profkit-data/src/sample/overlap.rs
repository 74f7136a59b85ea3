//! Measures how similar two sample profiles are, as LLVM's `overlap --sample` does (`SampleOverlapAggregator` in
//! `llvm-profdata.cpp`).
use super::{BodyLine, Frame, Function, Inlined, ProfileKind, SampleName, SampleProfile, Samples};
use crate::share;
use crate::summary::Summary;
use std::cmp::Ordering;
use std::fmt;

/// One of the two profiles that are compared, with the sums of its lines.
#[derive(Debug)]
pub struct OverlapSide<'p> {
    profile: &'p SampleProfile,
    /// The smallest number of samples that makes a line hot.
    threshold: u64,
    /// For each function of the profile, the sums over its lines.
    sums: Vec<Sums>,
    samples: u64,
}

impl<'p> OverlapSide<'p> {
    /// Prepares a profile for a comparison. Lines with at least `threshold` samples are hot; [`hot_threshold`] computes
    /// this number.
    pub fn new(profile: &'p SampleProfile, threshold: u64) -> Self {
        let functions = profile.functions().iter();
        let sums: Vec<Sums> = functions
            .map(|function| Sums::of(&function.samples, threshold))
            .collect();
        let samples = sums
            .iter()
            .fold(0u64, |sum, sums| sum.wrapping_add(sums.samples));
        OverlapSide {
            profile,
            threshold,
            sums,
            samples,
        }
    }

    /// The samples of all lines.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The number of samples of one function, including the functions that were inlined into it.
    pub fn function_samples(&self, index: usize) -> u64 {
        self.sums(index).samples
    }

    fn sums(&self, index: usize) -> Sums {
        self.sums.get(index).copied().unwrap_or_default()
    }
}

/// Returns the smallest count among the hottest lines that together have a certain share of all samples. `cutoff` is
/// this share in millionths. The summary has such counts only for some shares, so the function takes the smallest of
/// these shares that is not less than `cutoff`. `None` if all shares in the summary are less than `cutoff`.
pub fn hot_threshold(summary: &Summary, cutoff: u64) -> Option<u64> {
    let mut entries = summary.cutoffs.iter();
    let entry = entries.find(|entry| entry.cutoff >= cutoff);
    entry.map(|entry| entry.min_count)
}

/// Why two profiles cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// Only one of the two profiles counts pseudo probes; the other profile counts lines.
    Probes,
    /// Only one of the two profiles has calling contexts.
    Contexts,
}

impl Incomparable {
    /// Returns the reason why two profiles of these kinds cannot be compared; `None` if they can be compared.
    pub fn between(base: ProfileKind, test: ProfileKind) -> Option<Self> {
        let differ = |kind| base.contains(kind) != test.contains(kind);
        if differ(ProfileKind::PROBE_BASED) {
            return Some(Incomparable::Probes);
        }
        differ(ProfileKind::CONTEXT_SENSITIVE).then_some(Incomparable::Contexts)
    }
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Incomparable::Probes => {
                "a profile that counts pseudo probes cannot be compared with one that counts lines"
            }
            Incomparable::Contexts => {
                "a profile with calling contexts cannot be compared with one without"
            }
        })
    }
}

impl std::error::Error for Incomparable {}

/// The sums over the lines of a function and of the functions that were inlined into it.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u64,
    largest: u64,
    hot_lines: u64,
}

impl Sums {
    fn of(samples: &Samples, threshold: u64) -> Self {
        let mut sums = Sums::default();
        sums.add(samples, threshold);
        sums
    }

    fn add(&mut self, samples: &Samples, threshold: u64) {
        for line in &samples.body {
            self.samples = self.samples.wrapping_add(line.samples);
            self.largest = self.largest.max(line.samples);
            self.hot_lines += u64::from(line.samples >= threshold);
        }
        for inlined in &samples.inlined {
            self.add(&inlined.samples, threshold);
        }
    }
}

/// The comparison of one function of the second profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionOverlap {
    /// The index of the function in the second profile.
    pub function: usize,
    /// The index of the same function in the first profile; `None` if the first profile lacks the function.
    pub base_function: Option<usize>,
    /// The largest count of the function's lines in the second profile.
    pub largest: u64,
    /// The number of samples of the function in the first profile.
    pub base_samples: u64,
    /// The number of samples of the function in the second profile.
    pub test_samples: u64,
    /// The number of samples of lines that only the first profile has.
    pub base_unique: u64,
    /// The number of samples of lines that only the second profile has.
    pub test_unique: u64,
    /// The sum, over all lines, of the smaller of the two profiles' counts.
    pub common: u64,
    /// The sum, over all lines, of the larger of the two profiles' counts.
    pub union: u64,
    /// How similar the two functions are, from 0 to 1. It is 1 if they are equal.
    pub similarity: f64,
}

/// Numbers of hot functions, or numbers of hot lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotOverlap {
    /// The number of functions or lines that are hot in the first profile.
    pub base: u64,
    /// The number of functions or lines that are hot in the second profile.
    pub test: u64,
    /// The number of functions or lines that are hot in both profiles.
    pub both: u64,
    /// The number of functions or lines that are hot in at least one of the two profiles.
    pub either: u64,
}

/// What two sample profiles have in common.
///
/// ```
/// use profkit_data::sample::overlap::{OverlapSide, SampleOverlap, hot_threshold};
/// use profkit_data::sample::{SampleProfile, read, summarize};
///
/// let text = b"main:100:1\n 1: 60\n 2: 40\n";
/// let mut profile = SampleProfile::new();
/// read(text, &mut profile, 1);
/// let threshold = hot_threshold(&summarize(&profile), 990_000).expect("a cutoff that LLVM has");
/// let side = OverlapSide::new(&profile, threshold);
/// let overlap = SampleOverlap::of(&side, &side)?;
/// assert_eq!(overlap.similarity, 1.0);
/// assert_eq!(overlap.common_samples, 100);
/// # Ok::<(), profkit_data::sample::overlap::Incomparable>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SampleOverlap {
    /// How similar the profiles are, from 0 to 1. It is 1 if they are equal.
    pub similarity: f64,
    /// The sum, over all lines, of the smaller of the two profiles' counts.
    pub common_samples: u64,
    /// The sum, over all lines, of the larger of the two profiles' counts.
    pub union_samples: u64,
    /// The number of samples of lines that only the first profile has.
    pub base_unique_samples: u64,
    /// The number of samples of lines that only the second profile has.
    pub test_unique_samples: u64,
    /// The number of functions that both profiles have.
    pub common_functions: u64,
    /// The number of functions that at least one profile has.
    pub union_functions: u64,
    /// The number of functions that only the first profile has.
    pub base_unique_functions: u64,
    /// The number of functions that only the second profile has.
    pub test_unique_functions: u64,
    /// The numbers of hot functions.
    pub hot_functions: HotOverlap,
    /// The numbers of hot lines.
    pub hot_lines: HotOverlap,
    /// The functions of the second profile, in the order of that profile.
    pub functions: Vec<FunctionOverlap>,
}

/// The largest difference that is treated as a rounding error, as in LLVM.
const EPSILON: f64 = 0.000_005;

impl SampleOverlap {
    /// Compares two profiles.
    ///
    /// # Errors
    /// If only one of the profiles counts pseudo probes, or only one of them has calling contexts.
    pub fn of(base: &OverlapSide<'_>, test: &OverlapSide<'_>) -> Result<Self, Incomparable> {
        if let Some(differ) = Incomparable::between(base.profile.kind, test.profile.kind) {
            return Err(differ);
        }
        let mut overlap = SampleOverlap::default();
        let mut compared = Compared {
            base,
            test,
            hot: HotOverlap::default(),
        };
        let mut matched = vec![false; base.profile.functions().len()];
        overlap.union_functions = matched.len() as u64;
        for (index, function) in test.profile.functions().iter().enumerate() {
            let sums = test.sums(index);
            let mut row = FunctionOverlap {
                function: index,
                largest: sums.largest,
                test_samples: sums.samples,
                ..FunctionOverlap::default()
            };
            let found = same_function(base.profile, test.profile, function);
            let twin = found.and_then(|at| Some((at, base.profile.functions().get(at)?)));
            match twin {
                None => {
                    overlap.test_unique_functions += 1;
                    overlap.union_functions += 1;
                    row.test_unique = sums.samples;
                    overlap.union_samples = overlap.union_samples.wrapping_add(sums.samples);
                    compared.hot_lines(0, sums.samples, sums.hot_lines);
                }
                Some((at, twin)) => {
                    if let Some(seen) = matched.get_mut(at) {
                        *seen = true;
                    }
                    overlap.common_functions += 1;
                    row.base_function = Some(at);
                    row.base_samples = base.sums(at).samples;
                    let inner = compared.function(&twin.samples, &function.samples, &mut row);
                    let inner = if inner.abs() < EPSILON { 0.0 } else { inner };
                    let base_share = share(row.base_samples, base.samples);
                    let test_share = share(row.test_samples, test.samples);
                    row.similarity = inner * (1.0 - (base_share - test_share).abs());
                    overlap.similarity += row.similarity * (base_share / 2.0 + test_share / 2.0);
                    overlap.common_samples = overlap.common_samples.wrapping_add(row.common);
                    overlap.union_samples = overlap.union_samples.wrapping_add(row.union);
                    let unique = &mut overlap.base_unique_samples;
                    *unique = unique.wrapping_add(row.base_unique);
                }
            }
            let unique = &mut overlap.test_unique_samples;
            *unique = unique.wrapping_add(row.test_unique);
            overlap.functions.push(row);
        }
        for (index, _) in matched.iter().enumerate().filter(|(_, seen)| !**seen) {
            let sums = base.sums(index);
            overlap.base_unique_functions += 1;
            let unique = &mut overlap.base_unique_samples;
            *unique = unique.wrapping_add(sums.samples);
            overlap.union_samples = overlap.union_samples.wrapping_add(sums.samples);
            compared.hot_lines(sums.samples, 0, sums.hot_lines);
        }
        if (overlap.similarity - 1.0).abs() < EPSILON {
            overlap.similarity = 1.0;
        }
        overlap.hot_lines = compared.hot;
        overlap.count_hot_functions(base, test);
        Ok(overlap)
    }

    fn count_hot_functions(&mut self, base: &OverlapSide<'_>, test: &OverlapSide<'_>) {
        let is_hot = |side: &OverlapSide<'_>, index| side.sums(index).largest >= side.threshold;
        let count = |side: &OverlapSide<'_>| {
            let all = 0..side.sums.len();
            all.filter(|&index| is_hot(side, index)).count() as u64
        };
        let functions = test.profile.functions().iter().enumerate();
        let both = functions.filter(|&(index, function)| {
            is_hot(test, index)
                && same_function(base.profile, test.profile, function)
                    .is_some_and(|twin| is_hot(base, twin))
        });
        let both = both.count() as u64;
        let (base, test) = (count(base), count(test));
        self.hot_functions = HotOverlap {
            base,
            test,
            both,
            either: base + test - both,
        };
    }
}

/// Returns the index of the function in the other profile that has the same name and callers; `None` if there is no
/// such function. A name that is known only by its hash does not match a name that is known as text.
fn same_function(
    other: &SampleProfile,
    profile: &SampleProfile,
    function: &Function,
) -> Option<usize> {
    let there = |name| other.names.find(profile.names.get(name));
    let callers: Option<Vec<Frame>> = function
        .callers
        .iter()
        .map(|frame| {
            Some(Frame {
                name: there(frame.name)?,
                ..*frame
            })
        })
        .collect();
    other.find(&callers?, there(function.samples.name)?)
}

/// A comparison in progress: the two profiles, and the numbers of hot functions or lines found so far.
struct Compared<'s, 'p> {
    base: &'s OverlapSide<'p>,
    test: &'s OverlapSide<'p>,
    hot: HotOverlap,
}

impl Compared<'_, '_> {
    /// Adds the lines of a unit to the numbers of hot lines. A unit is a single line, or a function that only one
    /// profile has. `base` and `test` are the samples of the whole unit in the first and in the second profile. `lines`
    /// is the number of lines to add: 1 for a single line, and the number of hot lines for a function. The lines are
    /// added for a profile if the samples of the whole unit reach the threshold of this profile.
    fn hot_lines(&mut self, base: u64, test: u64, lines: u64) {
        let base = base >= self.base.threshold;
        let test = test >= self.test.threshold;
        let count = |is_hot: bool| if is_hot { lines } else { 0 };
        self.hot.base += count(base);
        self.hot.test += count(test);
        self.hot.both += count(base && test);
        self.hot.either += count(base || test);
    }

    /// Adds a unit: a line, or an inlined function that only one profile has. `base` and `test` are the samples of the
    /// unit in each profile; `None` if the profile lacks the unit. `lines` is the same as in
    /// [`hot_lines`](Self::hot_lines). The samples are added to `row`. Returns the difference between the shares that
    /// the unit has in the two functions.
    fn unit(
        &mut self,
        base: Option<u64>,
        test: Option<u64>,
        lines: u64,
        row: &mut FunctionOverlap,
    ) -> f64 {
        match (base, test) {
            (Some(base), None) => row.base_unique = row.base_unique.wrapping_add(base),
            (None, Some(test)) => row.test_unique = row.test_unique.wrapping_add(test),
            _ => {}
        }
        let (base, test) = (base.unwrap_or(0), test.unwrap_or(0));
        row.union = row.union.wrapping_add(base.max(test));
        row.common = row.common.wrapping_add(base.min(test));
        self.hot_lines(base, test, lines);
        let similarity =
            1.0 - (share(base, row.base_samples) - share(test, row.test_samples)).abs();
        1.0 - similarity
    }

    /// Compares two functions, or two inlined copies of a function, line by line. Returns how similar they are; 1 if
    /// they are equal.
    fn function(&mut self, base: &Samples, test: &Samples, row: &mut FunctionOverlap) -> f64 {
        let mut difference = 0.0;
        let line = |line: &BodyLine| line.samples;
        join(
            &base.body,
            &test.body,
            |one, two| one.location.cmp(&two.location),
            |one, two| difference += self.unit(one.map(line), two.map(line), 1, row),
        );
        let base_order = self.base.by_name(&base.inlined);
        let test_order = self.test.by_name(&test.inlined);
        join(
            &base_order,
            &test_order,
            |one, two| {
                let names = (self.base.name(one), self.test.name(two));
                (one.location.cmp(&two.location)).then_with(|| names.0.cmp(&names.1))
            },
            |one, two| {
                difference += match (one, two) {
                    (Some(one), Some(two)) => {
                        2.0 - 2.0 * self.function(&one.samples, &two.samples, row)
                    }
                    (one, two) => {
                        let of = |it: Option<&&Inlined>, side: &OverlapSide<'_>| {
                            it.map(|it| Sums::of(&it.samples, side.threshold))
                        };
                        let (one, two) = (of(one, self.base), of(two, self.test));
                        let lines = one.or(two).map_or(0, |sums| sums.hot_lines);
                        let (one, two) = (one.map(|it| it.samples), two.map(|it| it.samples));
                        self.unit(one, two, lines, row)
                    }
                };
            },
        );
        (2.0 - difference) / 2.0
    }
}

impl OverlapSide<'_> {
    fn name(&self, inlined: &Inlined) -> SampleName<'_> {
        self.profile.names.get(inlined.samples.name)
    }

    /// Sorts inlined functions by the location of the call, then by name.
    fn by_name<'s>(&self, inlined: &'s [Inlined]) -> Vec<&'s Inlined> {
        let mut order: Vec<&Inlined> = inlined.iter().collect();
        order.sort_by(|one, two| {
            (one.location.cmp(&two.location)).then_with(|| self.name(one).cmp(&self.name(two)))
        });
        order
    }
}

/// Walks through two lists together, which are sorted by `compare`, and calls `pair` for every item. An item that is in
/// both lists is passed as a pair; an item that is in one list is passed alone.
fn join<T>(
    one: &[T],
    two: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    mut pair: impl FnMut(Option<&T>, Option<&T>),
) {
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    loop {
        match (one.peek(), two.peek()) {
            (None, None) => return,
            (Some(_), None) => pair(one.next(), None),
            (None, Some(_)) => pair(None, two.next()),
            (Some(left), Some(right)) => match compare(left, right) {
                Ordering::Less => pair(one.next(), None),
                Ordering::Greater => pair(None, two.next()),
                Ordering::Equal => pair(one.next(), two.next()),
            },
        }
    }
}
