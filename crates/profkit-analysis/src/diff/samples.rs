//! Compares two sample profiles: the functions, and the copies of functions that are inlined into others. In a profile
//! with calling contexts, each context is compared by itself. If one of the profiles has only the hash of a name, the
//! names are compared by their hashes.
use super::{
    Change, DiffOptions, FunctionChange, Place, ProfileDiff, Ranks, Target, Totals, Values, blocks,
    joined, keep_first, missing,
};
use crate::overlap::{CannotCompare, Incomparable};
use crate::selection::Selection;
use profkit_data::ids::NameRef;
use profkit_data::index_vec::IndexVec;
use profkit_data::sample::{Location, NameId, ProfileKind, SampleName, SampleProfile, Samples};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// The names in one profile: the hash for each name id, and for each hash the name and whether it is selected.
struct Names<'p> {
    hashes: IndexVec<NameId, NameRef>,
    texts: FxHashMap<NameRef, SampleName<'p>>,
    selected: FxHashMap<NameRef, bool>,
}

impl<'p> Names<'p> {
    fn new(profile: &'p SampleProfile, selection: &Selection) -> Self {
        let names = || profile.names.iter().map(|(_, name)| name);
        let hashes: IndexVec<NameId, NameRef> = names().map(SampleName::guid).collect();
        let mut texts = FxHashMap::default();
        let mut selected = FxHashMap::default();
        for (name, &hash) in names().zip(hashes.as_slice()) {
            let text = texts.entry(hash).or_insert(name);
            if matches!(name, SampleName::Text(_)) {
                *text = name;
            }
            *selected.entry(hash).or_default() |= selection.selects_sample(name);
        }
        Names {
            hashes,
            texts,
            selected,
        }
    }

    fn hash(&self, id: NameId) -> NameRef {
        self.hashes.get(id).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Node<'p> {
    /// The index of the caller's node, and the location of the call in the caller. `None` if the node has no caller.
    parent: Option<(usize, Location)>,
    name: NameRef,
    selected: bool,
    sides: [Option<&'p Samples>; 2],
}

impl Node<'_> {
    fn sums(&self) -> [Option<u128>; 2] {
        self.sides.map(|side| {
            let lines = side?.body.iter();
            Some(lines.map(|line| u128::from(line.samples)).sum())
        })
    }
}

/// The indexes of the nodes below one caller. The key is the location of the call, the hash of the function's name, and
/// a number. This number distinguishes functions of one profile that have the same location and name.
type Found = FxHashMap<(Location, NameRef, u32), usize>;

struct Tree<'p> {
    nodes: Vec<Node<'p>>,
    names: [Names<'p>; 2],
}

pub(super) fn diff(
    old: &SampleProfile,
    new: &SampleProfile,
    options: &DiffOptions,
) -> Result<ProfileDiff, CannotCompare> {
    let differs = |kind| old.kind.contains(kind) != new.kind.contains(kind);
    if differs(ProfileKind::PROBE_BASED) {
        return Err(CannotCompare::Samples(Incomparable::Probes));
    }
    if differs(ProfileKind::CONTEXT_SENSITIVE) {
        return Err(CannotCompare::Samples(Incomparable::Contexts));
    }
    let selection = &options.selection;
    let (old_names, new_names) =
        rayon::join(|| Names::new(old, selection), || Names::new(new, selection));
    let mut tree = Tree {
        nodes: Vec::new(),
        names: [old_names, new_names],
    };
    let mut below = tree.add_functions([old, new]);
    let mut next = 0;
    while let Some(node) = tree.nodes.get(next).copied() {
        tree.add_inlined(next, &node, below.remove(&next).unwrap_or_default());
        next += 1;
    }
    let mut diff = tree.diff(options.most);
    diff.missing = missing(selection, |one| {
        let mut names = [old, new]
            .into_iter()
            .flat_map(|profile| profile.names.iter());
        names.any(|(_, name)| one.selects_sample(name))
    });
    Ok(diff)
}

impl<'p> Tree<'p> {
    /// Returns the index of the node for a function with this name at this place below a caller, and stores the samples
    /// of the function in the node. Adds a node if the tree has none for this function, or if every node for it already
    /// has samples from the same profile. `side` is 0 for a function of the old profile, and 1 for one of the new
    /// profile. `samples` is `None` for a function that is only a caller.
    fn node(
        &mut self,
        found: &mut Found,
        parent: Option<(usize, Location)>,
        name: NameRef,
        side: usize,
        samples: Option<&'p Samples>,
    ) -> usize {
        let place = parent.map_or_else(Location::default, |(_, place)| place);
        let mut number = 0;
        loop {
            let known = found.get(&(place, name, number)).copied();
            let index = known.unwrap_or(self.nodes.len());
            if known.is_none() {
                found.insert((place, name, number), index);
                let above = parent.and_then(|(parent, _)| self.nodes.get(parent));
                let named = self
                    .names
                    .iter()
                    .any(|names| names.selected.get(&name) == Some(&true));
                self.nodes.push(Node {
                    parent,
                    name,
                    selected: named || above.is_some_and(|node| node.selected),
                    sides: [None, None],
                });
            }
            let slot = self
                .nodes
                .get_mut(index)
                .and_then(|node| node.sides.get_mut(side));
            match (slot, samples) {
                (Some(slot @ None), Some(_)) => *slot = samples,
                // The node already has another function of this profile with the same name, so the next number is
                // tried. The number distinguishes functions with the same location and name.
                (Some(Some(_)), Some(_)) => {
                    number += 1;
                    continue;
                }
                _ => {}
            }
            return index;
        }
    }

    /// Adds the top-level functions of both profiles, each below the callers in its context. Returns, for each node,
    /// the nodes below it.
    fn add_functions(&mut self, profiles: [&'p SampleProfile; 2]) -> FxHashMap<usize, Found> {
        let mut roots = Found::default();
        let mut below: FxHashMap<usize, Found> = FxHashMap::default();
        for (side, profile) in profiles.into_iter().enumerate() {
            for function in profile.functions() {
                let hash = |tree: &Self, name| {
                    tree.names
                        .get(side)
                        .map_or_else(Default::default, |it| it.hash(name))
                };
                let mut parent: Option<(usize, Location)> = None;
                for frame in &function.callers {
                    let name = hash(self, frame.name);
                    let found = match parent {
                        Some((index, _)) => below.entry(index).or_default(),
                        None => &mut roots,
                    };
                    parent = Some((self.node(found, parent, name, side, None), frame.location));
                }
                let name = hash(self, function.samples.name);
                let found = match parent {
                    Some((index, _)) => below.entry(index).or_default(),
                    None => &mut roots,
                };
                self.node(found, parent, name, side, Some(&function.samples));
            }
        }
        below
    }

    fn add_inlined(&mut self, index: usize, node: &Node<'p>, mut found: Found) {
        for (side, samples) in node.sides.into_iter().enumerate() {
            for inlined in samples.into_iter().flat_map(|it| &it.inlined) {
                let names = self.names.get(side);
                let name = names.map_or_else(Default::default, |it| it.hash(inlined.samples.name));
                let parent = Some((index, inlined.location));
                self.node(&mut found, parent, name, side, Some(&inlined.samples));
            }
        }
    }

    fn diff(&self, most: usize) -> ProfileDiff {
        let mut sums = [Vec::new(), Vec::new()];
        for node in &self.nodes {
            for (sums, sum) in sums.iter_mut().zip(node.sums()) {
                sums.extend(sum);
            }
        }
        let totals = Totals(sums.each_ref().map(|sums| sums.iter().sum()));
        let ranks = sums.map(Ranks::new);
        let mut diff = ProfileDiff::default();
        let mut rows = Vec::new();
        let mut all_moved: f64 = 0.0;
        for (index, node) in self.nodes.iter().enumerate() {
            let sums = node.sums();
            let both = sums.map(Option::unwrap_or_default);
            let (change, moved) = match node.sides {
                // The node exists only because it is a caller of other nodes, and has no samples of its own.
                [None, None] => continue,
                _ if !node.selected => continue,
                [None, Some(_)] => (Change::New, totals.distance(both) / 2.0),
                [Some(_), None] => (Change::Gone, totals.distance(both) / 2.0),
                [Some(old), Some(new)] => {
                    diff.common += 1;
                    if old.checksum != new.checksum && old.checksum != 0 && new.checksum != 0 {
                        (Change::HashChanged, totals.distance(both) / 2.0)
                    } else {
                        let of_lines = totals.moved(lines(old, new).into_iter().map(|(_, it)| it));
                        let [old_share, new_share] = totals.shares(both);
                        let of_calls = self.targets(old, new).moved();
                        let of_calls = of_calls * old_share.midpoint(new_share);
                        (Change::Moved, of_lines.max(of_calls))
                    }
                }
            };
            if change == Change::Moved && moved == 0.0 {
                diff.unchanged += 1;
                continue;
            }
            diff.count(change, totals.shares(both), moved);
            all_moved += moved;
            rows.push((moved, change, index));
        }
        diff.moved = (!totals.is_any_zero()).then_some(all_moved.min(1.0));
        keep_first(&mut rows, most, |one, two| {
            let by_moved = two.0.total_cmp(&one.0);
            by_moved.then_with(|| self.order(one.2, two.2))
        });
        let rows = rows.into_iter();
        diff.functions = rows
            .filter_map(|(moved, change, index)| self.listed(index, change, moved, totals, &ranks))
            .collect();
        diff
    }

    /// Compares two contexts by their names. The names of the innermost functions are compared first.
    fn order(&self, one: usize, two: usize) -> Ordering {
        let key = |index: usize| {
            self.nodes
                .get(index)
                .map(|node| (self.name(node.name), node.parent))
        };
        let (one, two) = (key(one), key(two));
        match (one, two) {
            (Some((one, one_in)), Some((two, two_in))) => {
                one.cmp(&two).then_with(|| match (one_in, two_in) {
                    (Some((one, at)), Some((two, place))) => {
                        at.cmp(&place).then_with(|| self.order(one, two))
                    }
                    (one, two) => one.cmp(&two),
                })
            }
            _ => Ordering::Equal,
        }
    }

    fn name(&self, name: NameRef) -> SampleName<'p> {
        let known = self
            .names
            .iter()
            .rev()
            .filter_map(|names| names.texts.get(&name));
        let text = known
            .clone()
            .find(|known| matches!(known, SampleName::Text(_)));
        text.or_else(|| known.clone().next())
            .copied()
            .unwrap_or(SampleName::Guid(name))
    }

    fn text(&self, name: NameRef) -> Vec<u8> {
        match self.name(name) {
            SampleName::Text(text) => text.to_vec(),
            hash @ SampleName::Guid(_) => hash.to_string().into_bytes(),
        }
    }

    fn targets(&self, old: &Samples, new: &Samples) -> Values {
        let values = [(old, &self.names[0]), (new, &self.names[1])].map(|(samples, names)| {
            let targets = samples.targets.iter();
            let value = |target: &profkit_data::sample::Target| {
                (
                    (Place::Line(target.location), names.hash(target.name).0),
                    target.count,
                )
            };
            targets.map(value).collect::<Vec<_>>()
        });
        let [old, new] = values;
        Values::new(old, new)
    }

    fn listed(
        &self,
        index: usize,
        change: Change,
        moved: f64,
        totals: Totals,
        ranks: &[Ranks; 2],
    ) -> Option<FunctionChange> {
        let node = self.nodes.get(index)?;
        let mut callers = Vec::new();
        let mut above = node.parent;
        while let Some((index, place)) = above {
            let parent = self.nodes.get(index)?;
            callers.push((self.text(parent.name), place));
            above = parent.parent;
        }
        callers.reverse();
        let counts = node.sums();
        let both = counts.map(Option::unwrap_or_default);
        let [old_share, new_share] = totals.shares(both);
        let rank = |ranks: &Ranks, count: Option<u128>| Some(ranks.of(count?));
        let checksum = |side: Option<&Samples>| Some(side?.checksum).filter(|&sum| sum != 0);
        let (mut moved_lines, mut targets) = (Vec::new(), Vec::new());
        if let ([Some(old), Some(new)], Change::Moved) = (node.sides, change) {
            let lines = lines(old, new).into_iter();
            let lines = lines.map(|(place, counts)| (Place::Line(place), counts));
            moved_lines = blocks(Totals(both), lines);
            targets = self
                .targets(old, new)
                .changes(|hash| match self.name(NameRef(hash)) {
                    SampleName::Text(text) => Target::Name(text.to_vec()),
                    SampleName::Guid(hash) => Target::Hash(hash.0),
                });
        }
        Some(FunctionChange {
            change,
            name: self.text(node.name),
            callers,
            hashes: node.sides.map(checksum),
            counts,
            shares: [counts[0].map(|_| old_share), counts[1].map(|_| new_share)],
            ranks: [rank(&ranks[0], counts[0]), rank(&ranks[1], counts[1])],
            moved,
            blocks: moved_lines,
            targets,
            ..FunctionChange::default()
        })
    }
}

fn lines(old: &Samples, new: &Samples) -> Vec<(Location, [u64; 2])> {
    let [old, new] = [old, new].map(|samples| {
        let lines = samples
            .body
            .iter()
            .map(|line| (line.location, line.samples));
        lines.collect::<Vec<_>>()
    });
    joined(&old, &new)
}
