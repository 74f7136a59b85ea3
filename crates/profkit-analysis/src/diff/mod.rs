//! What changed between two profiles of one kind: per function, or per inline context of a sample profile.
//!
//! Counts are compared as shares of the total, so a longer run of the same work is no change. The share that moved is
//! the part of all counts that the new profile has in other places: in other functions, in other blocks of a function,
//! or at other call targets. This share is 0 if nothing changed, and 1 if the profiles have nothing in common.
//!
//! | profiles | the row | the parts that are compared |
//! |---|---|---|
//! | instrumentation | a function with one hash | counters, call targets |
//! | sample | a function, or a copy of a function that is inlined into another | lines, call targets |
//! | MIP | a function | whether it ran and when it was first called, blocks that ran |
//! | heap | a call stack ([`HeapChanges`]) | bytes, allocations or lifetimes |
mod heap;
pub(crate) mod instr;
mod mip;
mod samples;

pub use heap::{ContextChange, HeapChanges, Measure, Moved};

use crate::overlap::{CannotCompare, ComparedProfile, Content, Side};
use crate::selection::Selection;
use profkit_data::detect::Family;
use profkit_data::sample::Location;
use regex::bytes::Regex;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The largest number of blocks that are listed for a function, and the largest number of call targets.
const MOST_PARTS: usize = 3;
/// A block or a call target is listed only if its share in the function changed by at least this number.
const LEAST_PART: f64 = 0.01;

/// How a function changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Only the new profile has the function.
    New,
    /// Only the old profile has the function.
    Gone,
    /// Both profiles have the function, but with different hashes or numbers of counters. Only the sums of its counts
    /// are compared.
    HashChanged,
    /// Both profiles have the function with the same hash. Its share of the total changed, or the shares of its blocks
    /// or call targets in the function changed.
    #[default]
    Moved,
    /// MIP: both profiles have the function, but only the runs of the new profile called it.
    Called,
    /// MIP: both profiles have the function, but only the runs of the old profile called it.
    NotCalled,
    /// MIP: the function was called earlier than in the old profile.
    Earlier,
    /// MIP: the function was called later than in the old profile.
    Later,
}

/// A part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A counter, or a value site, by its index.
    Index(usize),
    /// A line.
    Line(Location),
}

/// A value that was counted at a value site or at a line: the function that was called, the virtual table that was
/// used, or the size of a memory operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The name of a function or virtual table.
    Name(Vec<u8>),
    /// The hash of a name that neither profile has.
    Hash(u64),
    /// No virtual table that the program knows: the value 0 in a value site for virtual tables.
    UnknownVTable,
    /// A size in bytes.
    Size(u64),
}

/// A counter or a line whose share in its function changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockChange {
    /// The counter or line.
    pub place: Place,
    /// The counts of the counter or line in the old and in the new profile.
    pub counts: [u64; 2],
    /// The share of the counter or line in the sum of the function's counts, in the old and in the new profile.
    pub shares: [f64; 2],
}

/// A call target whose share at its call site changed.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetChange {
    /// The call site.
    pub site: Place,
    /// The target.
    pub target: Target,
    /// The counts of the target in the old and in the new profile.
    pub counts: [u64; 2],
    /// The share of the target in the sum of the call site's counts, in the old and in the new profile.
    pub shares: [f64; 2],
}

/// A function that changed. In a field with two values, the first value is from the old profile and the second from the
/// new one. A value is `None` if its profile does not have the function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionChange {
    /// How the function changed.
    pub change: Change,
    /// The function's name as in the profile. If the profile has only the hash of the name, the hash as text.
    pub name: Vec<u8>,
    /// Sample profiles: the callers into which the function is inlined, or the callers in its calling context; the
    /// outermost caller first. Each caller comes with the location of the call in it.
    pub callers: Vec<(Vec<u8>, Location)>,
    /// Whether the function belongs to the context-sensitive stage, which has a total of its own.
    pub context_sensitive: bool,
    /// The function hashes; for a sample profile, the checksums if it has any. `None` for a profile that does not have
    /// the function.
    pub hashes: [Option<u64>; 2],
    /// The sum of the function's counters, or of the samples of its lines. MIP: the number of the function's blocks
    /// that ran. `None` for a profile that does not have the function.
    pub counts: [Option<u128>; 2],
    /// The function's shares of the total. `None` for a profile that does not have the function, and for MIP.
    pub shares: [Option<f64>; 2],
    /// The function's rank: 1 for the largest count. `None` for a profile that does not have the function. MIP: the
    /// function's position among the functions that both profiles called, counted from 1; `None` unless the function
    /// was called earlier or later.
    pub ranks: [Option<u64>; 2],
    /// The share of the total that moved because of this function.
    pub moved: f64,
    /// The counters or lines of the function whose shares changed most.
    pub blocks: Vec<BlockChange>,
    /// The call targets, and the sizes of memory operations, whose shares changed most in the function.
    pub targets: Vec<TargetChange>,
}

/// The sums over all functions that have the same kind of change ([`Change`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChangeSum {
    /// The number of functions.
    pub functions: u64,
    /// The sum of the shares of the changed functions, in the old and in the new profile.
    pub shares: [f64; 2],
    /// The share of the total that moved because of the changed functions.
    pub moved: f64,
}

impl ChangeSum {
    fn add(&mut self, other: &ChangeSum) {
        self.functions += other.functions;
        self.moved += other.moved;
        for (sum, share) in self.shares.iter_mut().zip(other.shares) {
            *sum += share;
        }
    }
}

/// What to compare, and what to list.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The functions to compare. Their shares refer to the total of all functions, selected or not. A context of a
    /// sample profile is selected if any of its functions is selected.
    pub selection: Selection,
    /// The largest number of functions to list.
    pub most: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            selection: Selection::everything(),
            most: usize::MAX,
        }
    }
}

/// What changed between two profiles of one kind.
///
/// ```
/// use profkit_analysis::diff::{Change, DiffOptions, ProfileDiff};
/// use profkit_analysis::overlap::ComparedProfile;
///
/// let old = ComparedProfile::open(b":ir\nmain\n1\n1\n60\n\nwork\n2\n1\n40\n")?;
/// let new = ComparedProfile::open(b":ir\nmain\n1\n1\n900\n\nlate\n3\n1\n100\n")?;
/// let diff = ProfileDiff::of(&old, &new, &DiffOptions::default())?;
/// let changes: Vec<_> = diff.functions.iter().map(|function| (function.change, &*function.name)).collect();
/// assert_eq!(changes, [(Change::Gone, &b"work"[..]), (Change::Moved, b"main"), (Change::New, b"late")]);
/// assert!(diff.moved.is_some_and(|moved| (moved - 0.4).abs() < 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileDiff {
    /// The share of the total that moved because of the selected functions, from 0 to 1. `None` if one of the profiles
    /// counted nothing. A profile with context-sensitive counters has two stages, and each stage has a total of its
    /// own. The field is then the larger of the two shares.
    pub moved: Option<f64>,
    /// The sums of the functions that changed, for each kind of change.
    pub changes: BTreeMap<Change, ChangeSum>,
    /// The number of functions that did not change.
    pub unchanged: u64,
    /// The number of functions that both profiles have and whose counts were compared. MIP: the number of functions
    /// that both profiles called.
    pub common: u64,
    /// The functions that changed, sorted by the share of the total that moved because of them, largest first.
    pub functions: Vec<FunctionChange>,
    /// The names, parts of names and regular expressions of the selection that fit no function of either profile.
    pub missing: Vec<String>,
}

impl ProfileDiff {
    /// Compares two profiles.
    ///
    /// # Errors
    /// If the profiles are not of one kind, or are heap profiles.
    pub fn of(
        old: &ComparedProfile<'_>,
        new: &ComparedProfile<'_>,
        options: &DiffOptions,
    ) -> Result<Self, CannotCompare> {
        match (&old.content, &new.content) {
            (Content::Instr(_) | Content::Indexed(_), Content::Instr(_) | Content::Indexed(_)) => {
                match rayon::join(|| Side::of(&old.content), || Side::of(&new.content)) {
                    (Some(old), Some(new)) => instr::diff(&old, &new, options),
                    _ => Err(CannotCompare::Families(old.family(), new.family())),
                }
            }
            (Content::Sample { profile: old, .. }, Content::Sample { profile: new, .. }) => {
                samples::diff(old, new, options)
            }
            (Content::Mip(old), Content::Mip(new)) => Ok(mip::diff(old, new, options)),
            (Content::Heap(_), Content::Heap(_)) => Err(CannotCompare::Heap),
            _ => Err(CannotCompare::Families(old.family(), new.family())),
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether each function has a share of the total in profiles of this family. MIP profiles have no such shares.
    pub fn has_shares(family: Family) -> bool {
        family != Family::Mip
    }

    fn count(&mut self, change: Change, shares: [f64; 2], moved: f64) {
        self.changes.entry(change).or_default().add(&ChangeSum {
            functions: 1,
            shares,
            moved,
        });
    }
}

fn keep_first<T>(rows: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> Ordering) {
    if most < rows.len() {
        if most > 0 {
            rows.select_nth_unstable_by(most, &order);
        }
        rows.truncate(most);
    }
    rows.sort_unstable_by(order);
}

/// The totals to which shares refer, one of the old and one of the new profile. A total is the sum of all counts, the
/// sum of the counts of one function, or the sum of the counts of one call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals([u128; 2]);

impl Totals {
    fn is_any_zero(self) -> bool {
        self.0.contains(&0)
    }

    fn shares(self, parts: [u128; 2]) -> [f64; 2] {
        let [old, new] = parts;
        [
            profkit_data::share(old, self.0[0]),
            profkit_data::share(new, self.0[1]),
        ]
    }

    /// Returns the difference between the share of `old` in the old total and the share of `new` in the new total,
    /// without its sign. The result is exactly 0 if the shares are equal, however large the totals are.
    fn distance(self, [old, new]: [u128; 2]) -> f64 {
        let Totals([old_total, new_total]) = self;
        let products = old.checked_mul(new_total).zip(new.checked_mul(old_total));
        match products {
            Some((one, two)) if !self.is_any_zero() => {
                one.abs_diff(two) as f64 / (old_total as f64 * new_total as f64)
            }
            _ => {
                let [old, new] = self.shares([old, new]);
                (old - new).abs()
            }
        }
    }

    /// Returns the share of the total that moved from some parts (counters, lines or call targets) to others. For each
    /// part, `parts` has its count in the old and in the new profile.
    fn moved(self, parts: impl Iterator<Item = [u64; 2]>) -> f64 {
        let distances = parts.map(|counts| self.distance(counts.map(u128::from)));
        (distances.sum::<f64>() / 2.0).min(1.0)
    }
}

/// Returns the counters, lines or call targets whose shares changed most, the largest change first.
fn largest<P: Copy + Ord>(
    totals: Totals,
    parts: impl Iterator<Item = (P, [u64; 2])>,
) -> Vec<(P, [u64; 2])> {
    if totals.is_any_zero() {
        return Vec::new();
    }
    let moved =
        parts.map(|(place, counts)| (totals.distance(counts.map(u128::from)), place, counts));
    let mut moved: Vec<_> = moved.filter(|(moved, ..)| *moved >= LEAST_PART).collect();
    keep_first(&mut moved, MOST_PARTS, |one, two| {
        two.0.total_cmp(&one.0).then_with(|| one.1.cmp(&two.1))
    });
    moved
        .into_iter()
        .map(|(_, place, counts)| (place, counts))
        .collect()
}

/// Returns the counters or lines of a function whose shares changed most, the largest change first.
fn blocks(totals: Totals, parts: impl Iterator<Item = (Place, [u64; 2])>) -> Vec<BlockChange> {
    let change = |(place, counts): (Place, [u64; 2])| BlockChange {
        place,
        counts,
        shares: totals.shares(counts.map(u128::from)),
    };
    largest(totals, parts).into_iter().map(change).collect()
}

/// Joins two lists of counts by their keys. Returns, for each key, the sum of its counts in the old list and the sum of
/// its counts in the new list. The lists are sorted, and a key may occur several times in one list.
fn joined<K: Copy + Ord>(old: &[(K, u64)], new: &[(K, u64)]) -> Vec<(K, [u64; 2])> {
    let mut all: Vec<(K, [u64; 2])> = Vec::with_capacity(old.len().max(new.len()));
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let next = match (old.peek(), new.peek()) {
            (Some((one, _)), Some((two, _))) => *one.min(two),
            (Some((key, _)), None) | (None, Some((key, _))) => *key,
            (None, None) => return all,
        };
        let mut sums = [0u64; 2];
        for (list, sum) in [&mut old, &mut new].into_iter().zip(&mut sums) {
            while let Some((_, count)) = list.next_if(|(key, _)| *key == next) {
                *sum = sum.saturating_add(*count);
            }
        }
        all.push((next, sums));
    }
}

/// A value site or line of a function, and a value that was counted there. If the value is a call target, it is the
/// hash of the target's name.
type Value = (Place, u64);

/// The values of the value sites and lines of a function, sorted. Each value has its count in the old profile and its
/// count in the new profile.
#[derive(Debug, Default)]
struct Values(Vec<(Value, [u64; 2])>);

impl Values {
    fn new(mut old: Vec<(Value, u64)>, mut new: Vec<(Value, u64)>) -> Self {
        old.sort_unstable();
        new.sort_unstable();
        Values(joined(&old, &new))
    }

    fn sums<'v>(values: impl Iterator<Item = &'v (Value, [u64; 2])>) -> Totals {
        let mut sums = Totals::default();
        for (_, counts) in values {
            for (sum, &count) in sums.0.iter_mut().zip(counts) {
                *sum += u128::from(count);
            }
        }
        sums
    }

    /// The share of the counts that moved from some values to others; 0 if one of the profiles has no values.
    fn moved(&self) -> f64 {
        let sums = Self::sums(self.0.iter());
        if sums.is_any_zero() {
            return 0.0;
        }
        sums.moved(self.0.iter().map(|(_, counts)| *counts))
    }

    /// Returns the values to list for a function. Values are chosen by the change of their share in the sum of all
    /// values of the function. The result states a different share: the share of each value in the sum of the values at
    /// the same place (value site or line).
    fn changes(&self, name: impl Fn(u64) -> Target) -> Vec<TargetChange> {
        let moved = largest(Self::sums(self.0.iter()), self.0.iter().copied());
        let change = |((site, value), counts): (Value, [u64; 2])| {
            let of_site = self.0.iter().filter(|((place, _), _)| *place == site);
            TargetChange {
                site,
                target: name(value),
                counts,
                shares: Self::sums(of_site).shares(counts.map(u128::from)),
            }
        };
        moved.into_iter().map(change).collect()
    }
}

/// The counts of one profile, sorted. They give the rank of any count.
#[derive(Debug, Default)]
struct Ranks(Vec<u128>);

impl Ranks {
    fn new(mut counts: Vec<u128>) -> Self {
        counts.sort_unstable();
        Ranks(counts)
    }

    /// The rank of a count: 1 for the largest one. Equal counts have equal ranks.
    fn of(&self, count: u128) -> u64 {
        let up_to = self.0.partition_point(|&other| other <= count);
        (self.0.len() - up_to) as u64 + 1
    }
}

/// The names, parts of names and regular expressions of the selection that select nothing: for a selection with only one
/// of them, `found` returns false. Empty if all functions are selected.
fn missing(selection: &Selection, found: impl Fn(&Selection) -> bool) -> Vec<String> {
    if selection.all {
        return Vec::new();
    }
    let name = |text: &String| {
        let names = vec![text.clone()];
        let alone = Selection {
            names,
            ..Selection::default()
        };
        (text.clone(), alone)
    };
    let part = |text: &String| {
        let parts = vec![text.clone()];
        let alone = Selection {
            parts,
            ..Selection::default()
        };
        (text.clone(), alone)
    };
    let pattern = |regex: &Regex| {
        let patterns = vec![regex.clone()];
        let alone = Selection {
            patterns,
            ..Selection::default()
        };
        (regex.as_str().to_owned(), alone)
    };
    let all = selection.names.iter().map(name);
    let all = all.chain(selection.parts.iter().map(part));
    let all = all.chain(selection.patterns.iter().map(pattern));
    let none = all.filter(|(_, alone)| !found(alone));
    none.map(|(text, _)| text).collect()
}

#[cfg(test)]
mod tests;
