//! Compares two MIP profiles: which functions were called only in one of them, which were called earlier or later, and
//! which blocks ran.
use super::{Change, DiffOptions, FunctionChange, ProfileDiff, keep_first, missing};
use crate::order::by_mean;
use profkit_data::mip::{Function, MipProfile};
use rustc_hash::{FxHashMap, FxHashSet};

/// Identifies a function by its name and its index among the functions with this name.
type Key<'p> = (&'p [u8], usize);

struct Side<'p> {
    functions: FxHashMap<Key<'p>, &'p Function>,
    /// The functions that were called, in the order of their first calls.
    order: Vec<Key<'p>>,
}

impl<'p> Side<'p> {
    fn new(profile: &'p MipProfile) -> Self {
        let mut seen: FxHashMap<&[u8], usize> = FxHashMap::default();
        let mut key = |function: &'p Function| {
            let count = seen.entry(&function.name).or_default();
            *count += 1;
            (&*function.name, *count - 1)
        };
        let keys: profkit_data::index_vec::IndexVec<_, _> =
            profile.functions.iter().map(&mut key).collect();
        let functions = keys.iter().copied().zip(&profile.functions);
        Side {
            functions: functions.collect(),
            order: by_mean(profile).into_iter().map(|id| keys[id]).collect(),
        }
    }

    fn called(&self, key: Key<'p>) -> Option<&'p Function> {
        let function = self.functions.get(&key).copied();
        function.filter(|function| function.is_covered())
    }
}

fn ran(function: &Function) -> FxHashSet<u32> {
    let blocks = function.blocks.iter().filter(|block| block.runs > 0);
    blocks.map(|block| block.offset).collect()
}

/// Returns the share of blocks that ran in only one of the two profiles, among the blocks that ran in at least one of
/// them. The share is from 0 to 1.
fn blocks_moved(old: &Function, new: &Function) -> f64 {
    let (old, new) = (ran(old), ran(new));
    let (both, either) = (old.intersection(&new).count(), old.union(&new).count());
    match either {
        0 => 0.0,
        _ => (either - both) as f64 / either as f64,
    }
}

/// Compares two profiles. Functions are paired by name. If several functions have the same name, the first of the old
/// profile is paired with the first of the new profile, and so on.
///
/// Positions count only the functions that were called in both profiles, so that a new function at the start does not
/// move the others. As few functions as possible count as moved: the functions that did not move are the longest
/// sequence that both profiles called in the same order.
///
/// Every function that was called in at least one profile has the same share of the total. A function that only one
/// profile called moves its whole share. The share of a function that both profiles called has two halves. The first
/// half moves if the function was called earlier or later. The second half moves in proportion to the blocks that ran
/// in only one profile: if these are a third of the blocks that ran at all, a third of the second half moves. If the
/// code of the function changed, nothing of the second half moves.
pub(super) fn diff(old: &MipProfile, new: &MipProfile, options: &DiffOptions) -> ProfileDiff {
    let (old, new) = (Side::new(old), Side::new(new));
    let selection = &options.selection;
    let mut diff = ProfileDiff {
        missing: missing(selection, |one| {
            let mut keys = old.functions.keys().chain(new.functions.keys());
            keys.any(|(name, _)| one.selects(name))
        }),
        ..ProfileDiff::default()
    };
    let only = |these: &Side<'_>, those: &Side<'_>| {
        let order = these
            .order
            .iter()
            .filter(|key| those.called(**key).is_none());
        order.count()
    };
    let either = new.order.len() + only(&old, &new);
    let one = if either == 0 {
        0.0
    } else {
        1.0 / either as f64
    };
    let mut rows: Vec<(Key<'_>, Change, [Option<u64>; 2], f64)> = Vec::new();
    for key in &new.order {
        if old.called(*key).is_none() {
            let known = old.functions.contains_key(key);
            let change = if known { Change::Called } else { Change::New };
            rows.push((*key, change, [None, None], one));
        }
    }
    for key in &old.order {
        if new.called(*key).is_none() {
            let known = new.functions.contains_key(key);
            let change = if known {
                Change::NotCalled
            } else {
                Change::Gone
            };
            rows.push((*key, change, [None, None], one));
        }
    }
    let both_old = old.order.iter().filter(|key| new.called(**key).is_some());
    let old_places: FxHashMap<_, _> = both_old
        .enumerate()
        .map(|(place, key)| (*key, place))
        .collect();
    let both = new
        .order
        .iter()
        .filter_map(|key| Some((*key, *old_places.get(key)?)));
    let both: Vec<(Key<'_>, usize)> = both.collect();
    let kept = longest_rising(&both.iter().map(|(_, old)| *old).collect::<Vec<_>>());
    for (place, ((key, old_place), kept)) in both.into_iter().zip(kept).enumerate() {
        let (Some(before), Some(after)) = (old.called(key), new.called(key)) else {
            continue;
        };
        diff.common += 1;
        let places = [old_place, place].map(|place| Some(place as u64 + 1));
        // Block offsets can be compared only if both profiles have the same code of the function.
        let is_same_code = before.signature == after.signature;
        let of_blocks = if is_same_code {
            blocks_moved(before, after)
        } else {
            0.0
        };
        let of_order = if kept { 0.0 } else { 1.0 };
        let moved = one * f64::midpoint(of_order, of_blocks);
        if !kept {
            // If a moved function has the same position in both profiles, other functions have moved past it. It then
            // counts as called later.
            let is_earlier = place < old_place;
            let change = if is_earlier {
                Change::Earlier
            } else {
                Change::Later
            };
            rows.push((key, change, places, moved));
        } else if !is_same_code {
            rows.push((key, Change::HashChanged, [None, None], moved));
        } else if moved > 0.0 {
            rows.push((key, Change::Moved, [None, None], moved));
        } else {
            diff.unchanged += u64::from(selection.selects(key.0));
        }
    }
    rows.retain(|((name, _), ..)| selection.selects(name));
    for (_, change, _, moved) in &rows {
        diff.count(*change, [0.0; 2], *moved);
    }
    let is_counted = !old.order.is_empty() && !new.order.is_empty();
    diff.moved = is_counted.then(|| rows.iter().map(|row| row.3).sum::<f64>().min(1.0));
    let distance = |[old, new]: [Option<u64>; 2]| old.unwrap_or(0).abs_diff(new.unwrap_or(0));
    let mut rows: Vec<_> = rows.into_iter().enumerate().collect();
    // The order of functions that moved equal shares of the total: first the functions that only one profile called, in
    // the order of their first calls; then the functions that were called earlier or later, the farthest move first.
    keep_first(&mut rows, options.most, |(one_at, one), (two_at, two)| {
        let by_effect = two.3.total_cmp(&one.3);
        by_effect
            .then_with(|| one.2[0].is_some().cmp(&two.2[0].is_some()))
            .then_with(|| distance(two.2).cmp(&distance(one.2)))
            .then_with(|| one_at.cmp(two_at))
    });
    let listed = |(_, (key, change, ranks, moved))| {
        let sides = [old.functions.get(&key), new.functions.get(&key)];
        let signature = |function: &&Function| u64::from(function.signature);
        FunctionChange {
            change,
            name: Vec::from(key.0),
            hashes: sides.map(|side| side.map(signature).filter(|&hash| hash != 0)),
            counts: sides.map(|side| side.map(|function| ran(function).len() as u128)),
            ranks,
            moved,
            ..FunctionChange::default()
        }
    };
    diff.functions = rows.into_iter().map(listed).collect();
    diff
}

/// For each value, returns whether the value belongs to the longest rising subsequence (patience sorting).
fn longest_rising(values: &[usize]) -> Vec<bool> {
    // For each length: the index of the smallest value that ends a rising sequence of this length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let length = ends.partition_point(|&end| values.get(end).is_some_and(|end| end < value));
        before.push(
            length
                .checked_sub(1)
                .and_then(|shorter| ends.get(shorter))
                .copied(),
        );
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut kept = vec![false; values.len()];
    let mut at = ends.last().copied();
    while let Some(index) = at {
        if let Some(kept) = kept.get_mut(index) {
            *kept = true;
        }
        at = before.get(index).copied().flatten();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::mip::Function;

    fn profile(functions: &[(&str, u64)]) -> MipProfile {
        let function = |&(name, ordinal): &(&str, u64)| Function {
            name: name.into(),
            called_runs: u64::from(ordinal > 0),
            order_sum: ordinal,
            order_runs: u64::from(ordinal > 0),
            ..Function::default()
        };
        MipProfile {
            functions: functions.iter().map(function).collect(),
            ..MipProfile::default()
        }
    }

    #[test]
    fn functions_come_go_and_move() {
        let old = profile(&[
            ("main", 1),
            ("init", 2),
            ("read", 3),
            ("write", 4),
            ("gone", 5),
            ("idle", 0),
            ("s", 6),
            ("s", 0),
        ]);
        let new = profile(&[
            ("main", 1),
            ("init", 9),
            ("read", 2),
            ("write", 4),
            ("gone", 0),
            ("idle", 3),
            ("fresh", 5),
            ("s", 0),
            ("s", 6),
        ]);
        let lists = |old: &MipProfile, new: &MipProfile| {
            let found = diff(old, new, &DiffOptions::default());
            let functions = found.functions.iter();
            let text = functions.map(|it| {
                (
                    it.change,
                    String::from_utf8_lossy(&it.name).into_owned(),
                    it.ranks,
                )
            });
            (text.collect::<Vec<_>>(), found.unchanged)
        };
        let none = [None, None];
        let row = |change, name: &str, ranks| (change, name.to_owned(), ranks);
        let expected = [
            row(Change::Called, "idle", none),
            row(Change::New, "fresh", none),
            row(Change::Called, "s", none),
            row(Change::NotCalled, "gone", none),
            row(Change::NotCalled, "s", none),
            row(Change::Later, "init", [Some(2), Some(4)]),
        ];
        assert_eq!(lists(&old, &new), (expected.into(), 3));
        let (back, _) = lists(&new, &old);
        assert!(back.contains(&row(Change::Gone, "fresh", none)));
        assert!(back.contains(&row(Change::Earlier, "init", [Some(4), Some(2)])));
        assert_eq!(lists(&old, &old), (Vec::new(), 6));
    }

    #[test]
    fn as_few_as_can_be_have_moved() {
        assert_eq!(longest_rising(&[3, 0, 1, 2]), [false, true, true, true]);
        assert_eq!(longest_rising(&[1, 2, 3, 0]), [true, true, true, false]);
        assert_eq!(longest_rising(&[]), Vec::<bool>::new());
    }
}
