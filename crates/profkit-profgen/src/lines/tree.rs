//! Makes trees of samples from the counts of frames, one tree for each outermost function. All processor cores take
//! part.
//!
//! Frames are numbered so that a caller comes before the frames inlined into it. So the facts that a frame inherits
//! from its caller are computed once per frame, without going through all callers of the frame.
use crate::checked::add;
use crate::discriminators::Discriminators;
use crate::lines::{OFFSET_MASK, raise_lines_to_targets, total_of_lines};
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::sample::{
    BodyLine, Inlined, Location, NameId, SampleName, SampleProfile, Samples, Target,
};
use profkit_object::symbolize::{FrameId, Locations};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

#[derive(Clone, Copy, Debug)]
pub(super) struct Counting {
    pub discriminators: Discriminators,
    pub sum_lines: bool,
    pub totals_of_lines: bool,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    total: u64,
    line: u64,
    instructions: u64,
}

#[derive(Clone, Copy)]
struct Facts {
    /// The frame whose line gets the samples: this one if all functions of its inline stack have names, otherwise the
    /// caller of the outermost one without; `None` if there is none.
    own: Option<FrameId>,
    root: usize,
    depth: usize,
    named: bool,
}

#[derive(Clone, Copy)]
struct Call {
    from: FrameId,
    callee: NameId,
    count: u64,
}

struct Group {
    function: usize,
    frames: Vec<FrameId>,
    calls: Vec<Call>,
}

pub(super) struct Trees<'l> {
    profile: SampleProfile,
    locations: &'l Locations,
    counting: Counting,
    facts: Vec<Facts>,
    counts: Vec<Counts>,
    /// For each name in `locations`, its id in the profile; `None` if the profile does not have the name yet.
    names: Vec<Option<NameId>>,
    groups_by_name: Vec<Option<usize>>,
    groups: Vec<Group>,
    heads: Vec<(usize, u64)>,
}

impl<'l> Trees<'l> {
    pub fn new(locations: &'l Locations, counting: Counting) -> Self {
        let mut facts: Vec<Facts> = Vec::with_capacity(locations.frame_count());
        for frame in locations.ids() {
            let caller = locations.caller(frame);
            let outer = caller.and_then(|caller| Some((caller, *facts.get(caller.index())?)));
            let name = locations
                .name_number(frame)
                .filter(|_| has_name(locations, frame));
            facts.push(match (outer, name) {
                (None, Some(root)) => Facts {
                    own: Some(frame),
                    root,
                    depth: 1,
                    named: false,
                },
                (None, None) => Facts {
                    own: None,
                    root: 0,
                    depth: 1,
                    named: false,
                },
                (Some((caller, outer)), name) => Facts {
                    own: outer.own.map(|own| match name {
                        Some(_) if own == caller => frame,
                        _ => own,
                    }),
                    depth: outer.depth + 1,
                    ..outer
                },
            });
        }
        Trees {
            profile: SampleProfile::new(),
            locations,
            counting,
            counts: vec![Counts::default(); facts.len()],
            facts,
            names: vec![None; locations.name_count()],
            groups_by_name: vec![None; locations.name_count()],
            groups: Vec::new(),
            heads: Vec::new(),
        }
    }

    /// Adds (address, size, count). They are the first of `locations`. Returns how many have no line.
    pub fn add_instructions(&mut self, instructions: &[(u64, u8, u64)]) -> u64 {
        let mut without_line = 0;
        let mut order = Vec::new();
        for (index, (_, size, count)) in instructions.iter().enumerate() {
            let leaf = self.locations.leaf(index);
            let Some((leaf, counts)) =
                leaf.and_then(|leaf| Some((leaf, self.counts.get_mut(leaf.index())?)))
            else {
                without_line += 1;
                continue;
            };
            if counts.instructions == 0 {
                order.push(leaf);
            }
            counts.instructions += 1;
            add(&mut counts.total, count.saturating_mul(u64::from(*size)));
            if self.counting.sum_lines {
                add(&mut counts.line, *count);
            } else {
                counts.line = counts.line.max(*count);
            }
        }
        for leaf in order {
            match self.group(leaf) {
                Some(group) => group.frames.push(leaf),
                None => {
                    let counts = self.counts.get(leaf.index());
                    without_line += counts.map_or(0, |counts| counts.instructions);
                }
            }
        }
        without_line
    }

    pub fn add_call(&mut self, from: Option<FrameId>, callee: &[u8], count: u64) {
        let Some(callee) = self.profile.intern(SampleName::Text(callee)) else {
            return;
        };
        if let Some(from) = from
            && let Some(group) = self.group(from)
        {
            group.calls.push(Call {
                from,
                callee,
                count,
            });
        }
        let function = self.profile.find_or_add(&[], callee);
        self.heads.push((function, count));
    }

    /// The group of the outermost function. Names of the inline stack join the profile. `None` if the outermost has no
    /// name, or the stack is deeper than a profile can hold.
    fn group(&mut self, frame: FrameId) -> Option<&mut Group> {
        let facts = *self.facts.get(frame.index())?;
        let own = facts.own.filter(|_| facts.depth <= SAMPLE_INLINE_DEPTH)?;
        // The names are added from the outermost function on.
        let mut stack = Vec::new();
        let mut at = Some(own);
        while let Some(frame) = at
            && let Some(facts) = self.facts.get_mut(frame.index())
            && !std::mem::replace(&mut facts.named, true)
        {
            stack.push(frame);
            at = self.locations.caller(frame);
        }
        for frame in stack.into_iter().rev() {
            let number = self.locations.name_number(frame)?;
            let slot = self.names.get_mut(number)?;
            if slot.is_none() {
                let name = self.locations.frame(frame)?.function?;
                *slot = Some(self.profile.intern(SampleName::Text(name))?);
            }
        }
        let slot = self.groups_by_name.get_mut(facts.root)?;
        let index = match *slot {
            Some(index) => index,
            None => {
                let name = self.names.get(facts.root).copied().flatten()?;
                let index = self.groups.len();
                self.groups.push(Group {
                    function: self.profile.find_or_add(&[], name),
                    frames: Vec::new(),
                    calls: Vec::new(),
                });
                *slot = Some(index);
                index
            }
        };
        self.groups.get_mut(index)
    }

    pub fn finish(mut self) -> SampleProfile {
        let groups = std::mem::take(&mut self.groups);
        let trees: Vec<(usize, Samples)> = groups
            .into_par_iter()
            .map(|group| (group.function, Tree::of(&self, &group)))
            .collect();
        for (function, tree) in trees {
            if let Some(samples) = self.profile.samples_mut(function) {
                *samples = Samples {
                    name: samples.name,
                    ..tree
                };
            }
        }
        for (function, count) in self.heads {
            if let Some(samples) = self.profile.samples_mut(function) {
                add(&mut samples.head, count);
            }
        }
        self.profile
    }
}

fn has_name(locations: &Locations, frame: FrameId) -> bool {
    let frame = locations.frame(frame);
    let name = frame.and_then(|frame| frame.function);
    name.is_some_and(|name| !name.is_empty())
}

struct Node {
    parent: usize,
    location: Location,
    name: NameId,
    total: u64,
}

struct Tree<'t, 'l> {
    trees: &'t Trees<'l>,
    nodes: Vec<Node>,
    nodes_by_frame: FxHashMap<FrameId, usize>,
    nodes_by_place: FxHashMap<(usize, Location, NameId), usize>,
    lines: Vec<(usize, Location, u64)>,
    targets: Vec<(usize, Location, NameId, u64)>,
}

impl Tree<'_, '_> {
    fn of(trees: &Trees<'_>, group: &Group) -> Samples {
        let mut tree = Tree {
            trees,
            nodes: Vec::new(),
            nodes_by_frame: FxHashMap::default(),
            nodes_by_place: FxHashMap::default(),
            lines: Vec::new(),
            targets: Vec::new(),
        };
        for &frame in &group.frames {
            tree.add_frame(frame);
        }
        for call in &group.calls {
            tree.add_call(call);
        }
        let mut samples = tree.finish();
        raise_lines_to_targets(&mut samples);
        if trees.counting.totals_of_lines {
            total_of_lines(&mut samples);
        }
        samples
    }

    fn line(&self, frame: FrameId) -> Location {
        let frame = self.trees.locations.frame(frame);
        frame.map_or(Location::default(), |frame| {
            Location::new(
                frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK,
                frame.discriminator,
            )
        })
    }

    fn base(&self, location: Location) -> Location {
        let discriminators = self.trees.counting.discriminators;
        Location::new(location.line, discriminators.place(location.discriminator))
    }

    fn node(&mut self, frame: FrameId) -> Option<(FrameId, usize)> {
        let trees = self.trees;
        let own = trees.facts.get(frame.index())?.own?;
        let mut path = Vec::new();
        let mut at = own;
        let mut node = loop {
            if let Some(&node) = self.nodes_by_frame.get(&at) {
                break Some(node);
            }
            path.push(at);
            match trees.locations.caller(at) {
                Some(caller) => at = caller,
                None => break None,
            }
        };
        for frame in path.into_iter().rev() {
            let number = trees.locations.name_number(frame)?;
            let name = trees.names.get(number).copied().flatten()?;
            let caller = trees.locations.caller(frame);
            let location = caller.map_or(Location::default(), |caller| self.line(caller));
            let location = self.base(location);
            let next = self.nodes.len();
            let found = match node {
                // All frames of a group have the same outermost function.
                None if next > 0 => 0,
                None => next,
                Some(parent) => match self.nodes_by_place.entry((parent, location, name)) {
                    Entry::Occupied(found) => *found.get(),
                    Entry::Vacant(place) => *place.insert(next),
                },
            };
            if found == next {
                self.nodes.push(Node {
                    parent: node.unwrap_or(0),
                    location,
                    name,
                    total: 0,
                });
            }
            self.nodes_by_frame.insert(frame, found);
            node = Some(found);
        }
        Some((own, node?))
    }

    fn add_frame(&mut self, frame: FrameId) {
        let Some((own, node)) = self.node(frame) else {
            return;
        };
        let counts = self.trees.counts.get(frame.index()).copied();
        let counts = counts.unwrap_or_default();
        let line = self.line(own);
        let counting = self.trees.counting;
        // LLVM multiplies the largest count of a line, not the sum of its samples.
        let factor = match counting.discriminators {
            Discriminators::Llvm if counting.sum_lines => 1,
            discriminators => discriminators.factor(line.discriminator),
        };
        let count = counts.line.saturating_mul(u64::from(factor));
        self.lines.push((node, self.base(line), count));
        if let Some(node) = self.nodes.get_mut(node) {
            add(&mut node.total, counts.total);
        }
    }

    fn add_call(&mut self, call: &Call) {
        let Some((own, node)) = self.node(call.from) else {
            return;
        };
        let location = self.base(self.line(own));
        self.lines.push((node, location, 0));
        self.targets.push((node, location, call.callee, call.count));
    }

    fn finish(mut self) -> Samples {
        let samples = self.nodes.iter().map(|node| Samples {
            name: node.name,
            total: node.total,
            ..Samples::default()
        });
        let mut samples: Vec<Samples> = samples.collect();
        self.lines
            .sort_unstable_by_key(|&(node, location, _)| (node, location));
        for lines in self.lines.chunk_by(|a, b| a.0 == b.0) {
            let Some(samples) = lines.first().and_then(|line| samples.get_mut(line.0)) else {
                continue;
            };
            samples.body.reserve_exact(lines.len());
            for &(_, location, count) in lines {
                match samples.body.last_mut() {
                    Some(line) if line.location == location => {
                        line.samples = if self.trees.counting.sum_lines {
                            line.samples.saturating_add(count)
                        } else {
                            line.samples.max(count)
                        };
                    }
                    _ => samples.body.push(BodyLine {
                        location,
                        samples: count,
                    }),
                }
            }
        }
        self.targets
            .sort_unstable_by_key(|&(node, location, name, _)| (node, location, name));
        for &(node, location, name, count) in &self.targets {
            let Some(samples) = samples.get_mut(node) else {
                continue;
            };
            match samples.targets.last_mut() {
                Some(target) if (target.location, target.name) == (location, name) => {
                    add(&mut target.count, count);
                }
                _ => samples.targets.push(Target {
                    location,
                    name,
                    count,
                }),
            }
        }
        // Inlined functions come later and are taken first, so each is complete when it is moved.
        while let Some(mut inner) = samples.pop() {
            inner
                .inlined
                .sort_unstable_by_key(|inlined| (inlined.location, inlined.samples.name));
            let Some((node, outer)) = self
                .nodes
                .get(samples.len())
                .and_then(|node| Some((node, samples.get_mut(node.parent)?)))
            else {
                return inner;
            };
            add(&mut outer.total, inner.total);
            outer.inlined.push(Inlined {
                location: node.location,
                samples: inner,
            });
        }
        Samples::default()
    }
}
