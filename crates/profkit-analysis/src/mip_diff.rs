//! Compares two MIP profiles: which functions are called only in one of them, and which are called earlier or later.
use crate::order::by_mean;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{FunctionId, MipProfile};
use rustc_hash::FxHashMap;

/// The result of [`diff`]. Functions of the two profiles are paired by name. If several functions have the same name,
/// the first of them in the old profile is paired with the first in the new profile, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference<'p> {
    /// The functions of both profiles that only the runs of the new profile called, in the order of their first calls.
    pub newly_called: Vec<&'p [u8]>,
    /// The functions that only the new profile contains and that were called, in the order of their first calls.
    pub added: Vec<&'p [u8]>,
    /// The functions of both profiles that only the runs of the old profile called, in the order of their first calls.
    pub no_longer_called: Vec<&'p [u8]>,
    /// The functions that only the old profile contains and that were called, in the order of their first calls.
    pub removed: Vec<&'p [u8]>,
    /// The functions that were called in both profiles, but earlier in the new profile. They are sorted by their
    /// position in the new profile.
    pub earlier: Vec<Moved<'p>>,
    /// The functions that were called in both profiles, but later in the new profile. They are sorted by their position
    /// in the new profile.
    pub later: Vec<Moved<'p>>,
    /// The number of functions that were called in both profiles at the same position.
    pub unchanged: usize,
}

/// A function that was called in both profiles, but at different positions. Positions count only the functions that
/// were called in both profiles, in the order of their first calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<'p> {
    /// The function's name.
    pub name: &'p [u8],
    /// The function's position in the old profile, from 1.
    pub old: usize,
    /// The function's position in the new profile, from 1.
    pub new: usize,
}

/// Identifies a function by its name and its index among the functions with this name.
type Key<'p> = (&'p [u8], usize);

fn keys(profile: &MipProfile) -> IndexVec<FunctionId, Key<'_>> {
    let mut seen: FxHashMap<&[u8], usize> = FxHashMap::default();
    let number = |function| {
        let count = seen.entry(function).or_default();
        *count += 1;
        (function, *count - 1)
    };
    profile
        .functions
        .iter()
        .map(|function| &*function.name)
        .map(number)
        .collect()
}

/// Compares two profiles.
///
/// Positions count only the functions that were called in both profiles, so that a new function at the start does not
/// move the others. The functions that moved are as few as possible: all others are the longest sequence that both
/// profiles called in the same order.
///
/// ```
/// use profkit_analysis::mip_diff::diff;
/// use profkit_data::mip::{Function, MipProfile};
///
/// let run = |order: [u64; 2]| {
///     let function = |(name, order_sum): (&str, u64)| Function {
///         name: name.into(), calls: 1, called_runs: 1, order_sum, order_runs: 1, ..Function::default()
///     };
///     MipProfile { functions: ["a", "b"].into_iter().zip(order).map(function).collect(), ..MipProfile::default() }
/// };
/// let (old, new) = (run([1, 2]), run([2, 1]));
/// let difference = diff(&old, &new);
/// assert_eq!(difference.earlier.len() + difference.later.len(), 1);
/// assert_eq!(difference.unchanged, 1);
/// ```
pub fn diff<'p>(old: &'p MipProfile, new: &'p MipProfile) -> Difference<'p> {
    let (old_keys, new_keys) = (keys(old), keys(new));
    let called = |profile, keys: &IndexVec<FunctionId, Key<'p>>| -> Vec<Key<'p>> {
        by_mean(profile).into_iter().map(|id| keys[id]).collect()
    };
    let (old_order, new_order) = (called(old, &old_keys), called(new, &new_keys));
    let place = |keys: &[Key<'p>]| -> FxHashMap<Key<'p>, usize> {
        keys.iter()
            .enumerate()
            .map(|(place, key)| (*key, place))
            .collect()
    };
    let (in_old, in_new) = (place(old_keys.as_slice()), place(new_keys.as_slice()));
    let (called_old, called_new) = (place(&old_order), place(&new_order));
    let mut difference = Difference::default();
    for key in &new_order {
        if !called_old.contains_key(key) {
            let list = if in_old.contains_key(key) {
                &mut difference.newly_called
            } else {
                &mut difference.added
            };
            list.push(key.0);
        }
    }
    for key in &old_order {
        if !called_new.contains_key(key) {
            let list = if in_new.contains_key(key) {
                &mut difference.no_longer_called
            } else {
                &mut difference.removed
            };
            list.push(key.0);
        }
    }
    let both_old: Vec<Key<'p>> = old_order
        .into_iter()
        .filter(|key| called_new.contains_key(key))
        .collect();
    let old_places = place(&both_old);
    let both: Vec<(Key<'p>, usize)> = new_order
        .into_iter()
        .filter_map(|key| Some((key, *old_places.get(&key)?)))
        .collect();
    let kept = longest_rising(&both.iter().map(|(_, old)| *old).collect::<Vec<_>>());
    for (new, ((key, old), kept)) in both.iter().zip(kept).enumerate() {
        if kept {
            difference.unchanged += 1;
            continue;
        }
        let moved = Moved {
            name: key.0,
            old: old + 1,
            new: new + 1,
        };
        // If a moved function has the same position in both profiles, other functions have moved past it. It then
        // counts as called later.
        if new < *old {
            difference.earlier.push(moved)
        } else {
            difference.later.push(moved)
        }
    }
    difference
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
        let difference = diff(&old, &new);
        assert_eq!(difference.newly_called, [&b"idle"[..], b"s"]);
        assert_eq!(difference.added, [b"fresh"]);
        assert_eq!(difference.no_longer_called, [&b"gone"[..], b"s"]);
        assert_eq!(difference.removed, Vec::<&[u8]>::new());
        assert_eq!(difference.earlier, []);
        assert_eq!(
            difference.later,
            [Moved {
                name: b"init",
                old: 2,
                new: 4
            }]
        );
        assert_eq!(difference.unchanged, 3);
        let back = diff(&new, &old);
        assert_eq!(back.removed, [b"fresh"]);
        assert_eq!(
            back.earlier,
            [Moved {
                name: b"init",
                old: 4,
                new: 2
            }]
        );
        assert_eq!(
            diff(&old, &old),
            Difference {
                unchanged: 6,
                ..Difference::default()
            }
        );
    }

    #[test]
    fn as_few_as_can_be_have_moved() {
        assert_eq!(longest_rising(&[3, 0, 1, 2]), [false, true, true, true]);
        assert_eq!(longest_rising(&[1, 2, 3, 0]), [true, true, true, false]);
        assert_eq!(longest_rising(&[]), Vec::<bool>::new());
    }
}
