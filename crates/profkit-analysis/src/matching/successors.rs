//! Guesses what a lost function has become in the new build.
use super::binary::{BinaryFunctions, Outcome};
use super::profile::ProfileFunctions;
use super::shares::{LostFunction, NewFunction};
use crate::names;
use profkit_data::ids::FuncHash;
use profkit_object::names::{Demangled, LikeNames, symbol_of};
use rustc_hash::FxHashMap;
use std::cell::LazyCell;

/// The largest number of lost functions for which a successor is guessed. The hottest functions come first.
const MOST_GUESSED: usize = 1000;
/// The function that a lost function probably has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The name of the successor in the binaries.
    pub name: Vec<u8>,
    /// The reason why the function is probably the successor.
    pub reason: SuccessorReason,
}

/// The reason why a function is probably the successor of a lost function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuccessorReason {
    /// The successor has the same name and a different hash: the function has changed.
    OtherHash,
    /// The successor is new and has the same hash. No other function in the profile or in the binaries has this hash.
    SameHash,
    /// The successor is new and has the same hash. In the profile, the lost function lies between two functions that
    /// the binaries have too. The successor is the only function with this hash that lies between the same two
    /// functions in the binaries.
    SameHashAndNeighbours,
    /// The successor is new, and has the same hash and a similar name.
    SameHashAndName,
    /// The successor is new and has a similar name: a different scope, different parameters, or a few different
    /// letters.
    NameAlike,
}

/// Finds the successors of lost functions among the new functions in the binaries. A new function is the successor of
/// at most one lost function. Equal hashes are tried before similar names, and hotter functions before colder ones.
pub(super) fn find_successors(
    profile: &ProfileFunctions,
    binaries: &BinaryFunctions,
    new: &mut [NewFunction<'_>],
    lost: &mut [LostFunction],
) {
    for changed in lost.iter_mut().filter(|it| it.outcome == Outcome::Changed) {
        changed.successor = Some(Successor {
            name: changed.name.clone(),
            reason: SuccessorReason::OtherHash,
        });
    }
    let is_gone = |it: &&mut LostFunction| {
        matches!(it.outcome, Outcome::Unknown | Outcome::InlinedOrGone) && !it.is_name_hash
    };
    let mut gone: Vec<&mut LostFunction> =
        (lost.iter_mut().filter(is_gone).take(MOST_GUESSED)).collect();
    if gone.is_empty() || new.is_empty() {
        return;
    }
    new.sort_unstable_by_key(|(name, _)| *name);
    let new = &*new;
    let by_hash = ByHash::new(profile, binaries, new, &gone);
    let names =
        LazyCell::new(|| LikeNames::new(new.iter().map(|(name, _)| demangled(name)).collect()));
    let mut taken = vec![false; new.len()];
    for by_name in [false, true] {
        for one in gone.iter_mut().filter(|one| one.successor.is_none()) {
            let found = if by_name {
                let nearest = names.nearest(&demangled(&one.name), None, |index| {
                    taken.get(index) == Some(&false)
                });
                nearest.map(|index| (index, SuccessorReason::NameAlike))
            } else {
                by_hash.find(one, &taken, &names)
            };
            if let Some((index, reason)) = found
                && let (Some(taken), Some((name, _))) = (taken.get_mut(index), new.get(index))
            {
                *taken = true;
                one.successor = Some(Successor {
                    name: name.to_vec(),
                    reason,
                });
            }
        }
    }
}

/// The functions that have the same hash as a lost function.
#[derive(Default)]
struct WithHash {
    new: Vec<usize>,
    /// The numbers of functions with this hash: in the profile, and in the binaries.
    known: [usize; 2],
}

struct ByHash<'a> {
    functions: FxHashMap<FuncHash, WithHash>,
    new: &'a [NewFunction<'a>],
    profile: &'a ProfileFunctions,
    /// For each function that the profile and the binaries have: its position in the profile, and its position in the
    /// binaries. Sorted by the position in the profile.
    common: Vec<(u32, u32)>,
}

impl<'a> ByHash<'a> {
    fn new(
        profile: &'a ProfileFunctions,
        binaries: &BinaryFunctions,
        new: &'a [NewFunction<'a>],
        gone: &[&mut LostFunction],
    ) -> Self {
        let mut functions: FxHashMap<FuncHash, WithHash> = FxHashMap::default();
        for hash in gone.iter().filter_map(|one| one.hash) {
            functions.entry(hash).or_default();
        }
        let mut common = Vec::new();
        for (name, known) in &profile.functions {
            let named = binaries.named(name);
            for known in known {
                if let Some(found) = known.hash.and_then(|hash| functions.get_mut(&hash)) {
                    found.known[0] += 1;
                }
                let there = named.and_then(|(_, named)| named.position);
                common.extend(known.position.zip(there));
            }
        }
        common.sort_unstable();
        for (_, named) in binaries.functions() {
            for hash in named.hashes.iter().flatten() {
                if let Some(found) = functions.get_mut(hash) {
                    found.known[1] += 1;
                }
            }
        }
        for (index, (_, named)) in new.iter().enumerate() {
            for hash in named.hashes.iter().flatten() {
                if let Some(found) = functions.get_mut(hash) {
                    found.new.push(index);
                }
            }
        }
        ByHash {
            functions,
            new,
            profile,
            common,
        }
    }

    fn find<F: FnOnce() -> LikeNames>(
        &self,
        lost: &LostFunction,
        taken: &[bool],
        names: &LazyCell<LikeNames, F>,
    ) -> Option<(usize, SuccessorReason)> {
        let with_hash = self.functions.get(&lost.hash?)?;
        let free = |index: &&usize| taken.get(**index) == Some(&false);
        let first = *with_hash.new.iter().find(free)?;
        if with_hash.known == [1, 1] {
            return Some((first, SuccessorReason::SameHash));
        }
        let between = self.neighbours(lost);
        let mut alike = with_hash.new.iter().filter(free).filter(|&&index| {
            let position = self.new.get(index).and_then(|(_, named)| named.position);
            position.zip(between).is_some_and(|(it, (low, high))| {
                low < Some(it) && high.is_none_or(|high| it < high)
            })
        });
        if let (Some(&only), None) = (alike.next(), alike.next()) {
            return Some((only, SuccessorReason::SameHashAndNeighbours));
        }
        let nearest = names.nearest(&demangled(&lost.name), Some(&with_hash.new), |index| {
            free(&&index)
        })?;
        Some((nearest, SuccessorReason::SameHashAndName))
    }

    /// Returns the range of positions in the binaries in which the lost function is expected. The limits are the
    /// positions of two functions that both the profile and the binaries have: the last such function before the lost
    /// function in the profile, and the first such function after the lost function. A limit is `None` if there is no
    /// such function on that side. Returns `None` if both limits are missing, or if the lost function has no position.
    fn neighbours(&self, lost: &LostFunction) -> Option<(Option<u32>, Option<u32>)> {
        let mut known = self.profile.functions.get(&lost.name)?.iter();
        let position = known.find(|known| known.hash == lost.hash)?.position?;
        let next = self.common.partition_point(|&(here, _)| here < position);
        let there = |index: usize| self.common.get(index).map(|&(_, there)| there);
        let (before, after) = (next.checked_sub(1).and_then(there), there(next));
        (before.is_some() || after.is_some()).then_some((before, after))
    }
}

/// The demangled name of a function, without the file name of a local function.
fn demangled(name: &[u8]) -> Demangled {
    let whole = names::display(symbol_of(name)).into_owned();
    let path = names::path(&whole);
    Demangled { whole, path }
}
