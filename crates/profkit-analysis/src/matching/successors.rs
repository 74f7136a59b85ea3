//! Guesses what a lost function has become in the new build.
use super::binary::{BinaryFunctions, Outcome, symbol_of};
use super::profile::ProfileFunctions;
use super::shares::{LostFunction, NewFunction};
use crate::names;
use profkit_data::ids::FuncHash;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::fmt;

/// Successors are guessed for at most this many lost functions, the hottest ones.
const MOST_GUESSED: usize = 1000;
/// Names are compared with at most this many others. A bucket with more names, such as that of all functions called
/// `new`, does not tell which of them is meant.
const LARGEST_BUCKET: usize = 64;
/// Longer names are not compared letter by letter.
const LONGEST_NAME: usize = 250;
/// The length of the beginnings and ends of names by which renamed functions are looked for.
const AFFIX: usize = 4;

/// The function that a lost function probably has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Its name in the binaries.
    pub name: Vec<u8>,
    /// Why it is taken for the successor.
    pub reason: SuccessorReason,
}

/// Why a function is taken for the successor of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessorReason {
    /// It has the same name and another hash: the function has changed.
    OtherHash,
    /// It is new and has the same hash, which no other function on either side has.
    SameHash,
    /// It is new, has the same hash, and stands between the same functions.
    SameHashAndNeighbours,
    /// It is new, has the same hash, and a like name.
    SameHashAndName,
    /// It is new and has a like name: another scope, other parameters, or a few other letters.
    NameAlike,
}

impl SuccessorReason {
    /// A word for programs.
    pub fn key(self) -> &'static str {
        match self {
            SuccessorReason::OtherHash => "other-hash",
            SuccessorReason::SameHash => "same-hash",
            SuccessorReason::SameHashAndNeighbours => "same-hash-and-neighbours",
            SuccessorReason::SameHashAndName => "same-hash-and-name",
            SuccessorReason::NameAlike => "name-alike",
        }
    }
}

impl fmt::Display for SuccessorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SuccessorReason::OtherHash => "same name, other hash",
            SuccessorReason::SameHash => "same hash",
            SuccessorReason::SameHashAndNeighbours => "same hash, same neighbours",
            SuccessorReason::SameHashAndName => "same hash, name alike",
            SuccessorReason::NameAlike => "name alike",
        })
    }
}

/// Finds the successors of lost functions among the new functions of the binaries. Each new function is the successor
/// of one lost function at most; hotter functions come first, and hashes count more than names.
pub(super) fn find_successors(
    profile: &ProfileFunctions,
    binaries: &BinaryFunctions,
    new: &[NewFunction<'_>],
    lost: &mut [LostFunction],
) {
    for changed in lost.iter_mut().filter(|it| it.outcome == Outcome::Changed) {
        changed.successor = Some(Successor {
            name: changed.name.clone(),
            reason: SuccessorReason::OtherHash,
        });
    }
    let is_gone = |it: &&mut LostFunction| it.outcome == Outcome::Unknown && !it.is_name_hash;
    let mut gone: Vec<&mut LostFunction> =
        (lost.iter_mut().filter(is_gone).take(MOST_GUESSED)).collect();
    if gone.is_empty() || new.is_empty() {
        return;
    }
    let by_hash = ByHash::new(profile, binaries, new, &gone);
    let names = LazyCell::new(|| Names::new(new));
    let mut taken = vec![false; new.len()];
    for by_name in [false, true] {
        for one in gone.iter_mut().filter(|one| one.successor.is_none()) {
            let found = if by_name {
                let nearest = names.nearest(&one.name, None, &taken);
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

/// The functions that have a hash of the lost functions.
#[derive(Default)]
struct WithHash {
    /// The indices of new functions.
    new: Vec<usize>,
    /// The numbers of functions in the profile and in the binaries.
    known: [usize; 2],
}

struct ByHash<'a> {
    functions: FxHashMap<FuncHash, WithHash>,
    new: &'a [NewFunction<'a>],
    profile: &'a ProfileFunctions,
    /// The positions of functions that both sides have, in the profile and in the binaries.
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

    fn find<'n, F: FnOnce() -> Names<'n>>(
        &self,
        lost: &LostFunction,
        taken: &[bool],
        names: &LazyCell<Names<'n>, F>,
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
        let nearest = names.nearest(&lost.name, Some(&with_hash.new), taken)?;
        Some((nearest, SuccessorReason::SameHashAndName))
    }

    /// The positions in the binaries between which the lost function would be: those of the last common function before
    /// it and of the first after it.
    fn neighbours(&self, lost: &LostFunction) -> Option<(Option<u32>, Option<u32>)> {
        let mut known = self.profile.functions.get(&lost.name)?.iter();
        let position = known.find(|known| known.hash == lost.hash)?.position?;
        let next = self.common.partition_point(|&(here, _)| here < position);
        let there = |index: usize| self.common.get(index).map(|&(_, there)| there);
        let (before, after) = (next.checked_sub(1).and_then(there), there(next));
        (before.is_some() || after.is_some()).then_some((before, after))
    }
}

/// The new functions by their demangled names.
struct Names<'a> {
    texts: Vec<(String, String)>,
    new: &'a [NewFunction<'a>],
    /// The indices of functions with a whole name, a base name, or a beginning or end of a base name.
    buckets: FxHashMap<(Part, String), Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Whole,
    Base,
    Start,
    End,
}

/// The demangled name of a function without the file of a local function, and without parameters.
fn texts_of(name: &[u8]) -> (String, String) {
    let whole = names::display(symbol_of(name), false).into_owned();
    let path = names::path(&whole);
    (whole, path)
}

fn parts_of((whole, path): &(String, String)) -> Vec<(Part, String)> {
    let base = names::base(path);
    let mut parts = vec![(Part::Whole, whole.clone()), (Part::Base, base.to_owned())];
    let ends = [
        (Part::Start, base.get(..AFFIX)),
        (
            Part::End,
            base.len()
                .checked_sub(AFFIX)
                .and_then(|start| base.get(start..)),
        ),
    ];
    parts.extend(
        ends.into_iter()
            .filter_map(|(part, text)| Some((part, text?.to_owned()))),
    );
    parts
}

impl<'a> Names<'a> {
    fn new(new: &'a [NewFunction<'a>]) -> Self {
        let texts: Vec<_> = new.iter().map(|(name, _)| texts_of(name)).collect();
        let mut buckets: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (index, text) in texts.iter().enumerate() {
            for part in parts_of(text) {
                buckets.entry(part).or_default().push(index);
            }
        }
        Names {
            texts,
            new,
            buckets,
        }
    }

    /// The function whose name is most like a name: of the given ones, or of all. `None` if no name is alike, or if two
    /// are equally so.
    fn nearest(&self, name: &[u8], among: Option<&[usize]>, taken: &[bool]) -> Option<usize> {
        let texts = texts_of(name);
        let free = |index: &&usize| taken.get(**index) == Some(&false);
        for part in parts_of(&texts) {
            let bucket = among.or_else(|| self.buckets.get(&part).map(Vec::as_slice));
            let free = bucket.unwrap_or_default().iter().filter(free);
            if part.0 == Part::Whole {
                // Instances of one Rust function, and local functions of several files, have one name.
                let same =
                    |&&index: &&usize| self.texts.get(index).is_some_and(|it| it.0 == texts.0);
                let name_of = |index: &&usize| self.new.get(**index).map(|(name, _)| *name);
                if let Some(&same) = free.filter(same).min_by_key(name_of) {
                    return Some(same);
                }
                continue;
            }
            if bucket.is_none_or(|bucket| bucket.len() > LARGEST_BUCKET) {
                continue;
            }
            let mut alike: Vec<_> = free
                .filter_map(|&index| Some((distance(&texts, self.texts.get(index)?)?, index)))
                .collect();
            alike.sort_unstable();
            match alike.as_slice() {
                [(best, _), (second, _), ..] if best == second => return None,
                [(_, index), ..] => return Some(*index),
                [] => {}
            }
        }
        None
    }
}

/// How far two names are from each other: their paths, then their parameters. `None` if they are not alike: with the same
/// base name, half of the letters of the path may differ, otherwise a quarter.
fn distance(one: &(String, String), two: &(String, String)) -> Option<(usize, usize)> {
    let longer = one.1.len().max(two.1.len());
    let most = if names::base(&one.1) == names::base(&two.1) {
        longer / 2
    } else {
        longer / 4
    };
    if longer > LONGEST_NAME || one.1.len().abs_diff(two.1.len()) > most {
        return None;
    }
    let paths = strsim::levenshtein(&one.1, &two.1);
    let short = |text: &str| text.chars().take(LONGEST_NAME).collect::<String>();
    (paths <= most).then(|| (paths, strsim::levenshtein(&short(&one.0), &short(&two.0))))
}
