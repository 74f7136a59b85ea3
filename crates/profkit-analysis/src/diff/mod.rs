//! What changed between two profiles of one kind: per function, or per inline context of a sample profile.
//!
//! Counts are compared as shares of the total, so a longer run of the same work is no change. The share that moved is the
//! part of all counts that is found elsewhere in the new profile: in other functions, in other blocks of a function, or at
//! other targets of its calls. It is 0 if all shares are equal, and 1 if the profiles have nothing in common.
//!
//! | profiles | the row | the parts that are compared |
//! |---|---|---|
//! | instrumentation | a function with one hash | counters, call targets |
//! | sample | a function, or a function inlined at a place of another | lines, call targets |
//! | MIP | a function | whether it ran and when it was first called, blocks that ran |
//! | heap | a call stack ([`HeapChanges`]) | bytes, allocations or lifetimes |
mod heap;
mod instr;
mod mip;
mod samples;

pub use heap::{ContextChange, HeapChanges, Measure, Moved};

use crate::overlap::{CannotCompare, ComparedProfile, Content};
use crate::selection::Selection;
use profkit_data::detect::Family;
use profkit_data::sample::Location;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The largest number of blocks, and of call targets, that are listed for a function.
const MOST_PARTS: usize = 3;
/// A block or call target is listed if its share in the function changed by at least this.
const LEAST_PART: f64 = 0.01;

/// How a function changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Only the new profile has the function.
    New,
    /// Only the old profile has the function.
    Gone,
    /// Both profiles have the function, but with different hashes or numbers of counters. Only the sums of its counts are
    /// compared.
    HashChanged,
    /// The function's share of the total moved, or the shares of its blocks or call targets did.
    #[default]
    Moved,
    /// MIP: both profiles have the function, and only the runs of the new one called it.
    Called,
    /// MIP: both profiles have the function, and only the runs of the old one called it.
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

/// What a function called, or the size of a block of memory that it copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The name of a function or virtual table.
    Name(Vec<u8>),
    /// The hash of a name that neither profile has.
    Hash(u64),
    /// A size in bytes.
    Size(u64),
}

/// A counter or a line whose share in its function moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockChange {
    /// The counter or line.
    pub place: Place,
    /// Its counts in the old and in the new profile.
    pub counts: [u64; 2],
    /// Its shares in the counts of the function.
    pub shares: [f64; 2],
}

/// A call target whose share at its call site moved.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetChange {
    /// The call site.
    pub site: Place,
    /// The target.
    pub target: Target,
    /// Its counts in the old and in the new profile.
    pub counts: [u64; 2],
    /// Its shares in the counts of the call site.
    pub shares: [f64; 2],
}

/// A function that changed. Where there are two values, the first is that of the old profile; `None` if this profile does
/// not have the function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionChange {
    /// How it changed.
    pub change: Change,
    /// The function's name as in the profile, or the hash of its name if the profile has no more.
    pub name: Vec<u8>,
    /// Sample profiles: the callers into which the function is inlined, or that its calling context has, outermost first;
    /// with the place of the call.
    pub callers: Vec<(Vec<u8>, Location)>,
    /// Whether the function belongs to the context-sensitive stage, whose total is counted by itself.
    pub context_sensitive: bool,
    /// The function hashes, or the checksums of a sample profile that has them.
    pub hashes: [Option<u64>; 2],
    /// The sums of its counters or of the samples of its lines. MIP: the number of its blocks that ran.
    pub counts: [Option<u128>; 2],
    /// Its shares of the total; `None` for MIP.
    pub shares: [Option<f64>; 2],
    /// Its rank: 1 for the largest count. MIP: its position among the functions that both profiles called, from 1, if it
    /// changed.
    pub ranks: [Option<u64>; 2],
    /// The share of the total that moved with it.
    pub moved: f64,
    /// Its counters or lines that moved most.
    pub blocks: Vec<BlockChange>,
    /// The targets of its calls, and the sizes of its memory operations, that moved most.
    pub targets: Vec<TargetChange>,
}

/// Functions that changed in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChangeSum {
    /// The number of functions.
    pub functions: u64,
    /// Their shares of the old and of the new total.
    pub shares: [f64; 2],
    /// The share of the total that moved with them.
    pub moved: f64,
}

/// What to compare, and what to list.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The functions to compare. Shares are those of the total of all functions. A context of a sample profile is selected
    /// with any of its functions.
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
    /// The share of the total that moved, from 0 to 1, over the selected functions. `None` if one of the profiles counted
    /// nothing. If there are context-sensitive counters, it is the larger one of those of the two stages.
    pub moved: Option<f64>,
    /// The functions that changed, by the kind of change.
    pub changes: BTreeMap<Change, ChangeSum>,
    /// The number of functions that did not change.
    pub unchanged: u64,
    /// The functions that both profiles have.
    pub common: u64,
    /// The functions that changed; those with which most of the total moved come first.
    pub functions: Vec<FunctionChange>,
    /// The names of the selection that no function has.
    pub missing: Vec<String>,
}

impl ProfileDiff {
    /// Compares two profiles.
    ///
    /// # Errors
    /// If the profiles are not of one kind, or are heap profiles.
    pub fn of(
        old: &ComparedProfile,
        new: &ComparedProfile,
        options: &DiffOptions,
    ) -> Result<Self, CannotCompare> {
        match (&old.content, &new.content) {
            (Content::Instr(old), Content::Instr(new)) => instr::diff(old, new, options),
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

    /// Whether the profiles are of a kind whose functions have shares of a total.
    pub fn has_shares(family: Family) -> bool {
        family != Family::Mip
    }

    fn count(&mut self, change: Change, shares: [f64; 2], moved: f64) {
        let sum = self.changes.entry(change).or_default();
        sum.functions += 1;
        sum.moved += moved;
        for (sum, share) in sum.shares.iter_mut().zip(shares) {
            *sum += share;
        }
    }
}

/// Keeps the first `most` rows of an order, sorted.
fn keep_first<T>(rows: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> Ordering) {
    if most < rows.len() {
        if most > 0 {
            rows.select_nth_unstable_by(most, &order);
        }
        rows.truncate(most);
    }
    rows.sort_unstable_by(order);
}

/// The share of a part in a whole; 0 if the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
fn share(part: u128, whole: u128) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// The totals of the two profiles, or the sums of a function in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals([u128; 2]);

impl Totals {
    fn is_any_zero(self) -> bool {
        self.0.contains(&0)
    }

    fn shares(self, parts: [u128; 2]) -> [f64; 2] {
        let [old, new] = parts;
        [share(old, self.0[0]), share(new, self.0[1])]
    }

    /// The difference of the two shares. It is exactly 0 if they are equal, whatever the totals are.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
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

    /// The share of the total that moved between these parts.
    fn moved(self, parts: impl Iterator<Item = [u64; 2]>) -> f64 {
        let distances = parts.map(|counts| self.distance(counts.map(u128::from)));
        (distances.sum::<f64>() / 2.0).min(1.0)
    }
}

/// The parts whose shares moved most, largest first.
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

/// The counters or lines that moved most.
fn blocks(totals: Totals, parts: impl Iterator<Item = (Place, [u64; 2])>) -> Vec<BlockChange> {
    let change = |(place, counts): (Place, [u64; 2])| BlockChange {
        place,
        counts,
        shares: totals.shares(counts.map(u128::from)),
    };
    largest(totals, parts).into_iter().map(change).collect()
}

/// Joins two lists of counts by their keys. The lists are sorted, and a key may occur several times in one list.
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

/// A value of a value site, or a call target at a line.
type Value = (Place, u64);

/// The values that were seen at the sites of a function.
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

    /// The share of the values that moved to other values, if both profiles have some.
    fn moved(&self) -> f64 {
        let sums = Self::sums(self.0.iter());
        if sums.is_any_zero() {
            return 0.0;
        }
        sums.moved(self.0.iter().map(|(_, counts)| *counts))
    }

    /// The values that moved most, with their shares at their sites.
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

/// The ranks of counts in one profile.
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

/// The names of the selection that are not found.
fn missing(selection: &Selection, found: impl Fn(&str) -> bool) -> Vec<String> {
    let wanted = selection.names.iter().filter(|_| !selection.all);
    wanted.filter(|name| !found(name)).cloned().collect()
}

#[cfg(test)]
mod tests;
