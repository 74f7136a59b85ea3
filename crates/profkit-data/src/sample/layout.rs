//! Changes the layout of sample profiles: functions with calling contexts become nested functions, and nested functions
//! become flat ones (LLVM's `ProfileConverter` in `SampleProf.h` and `SampleProf.cpp`).
use super::{
    AddOutcome, Additions, BodyLine, Frame, Function, Inlined, Location, NameId, ProfileKind,
    SampleNames, SampleProfile, Samples,
};
use crate::ids::NameRef;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How a sample profile stores functions that were inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleLayout {
    /// Inlined functions are stored inside the functions that they were inlined into. Functions have no calling
    /// contexts.
    Nest,
    /// Each function is stored once, and no function contains inlined functions.
    Flat,
}

/// The bit for LLVM's attribute `ContextDuplicatedIntoBase` in the attributes of a function.
const DUPLICATED_INTO_BASE: u32 = 4;

/// Estimates how often a function was entered, from its samples (`getHeadSamplesEstimate`). The estimate is the count
/// of the first line. Exception: if no line comes before the first call site with inlined functions, it is the sum of
/// the estimates for the functions inlined there. The estimate is at least 1 if the function has any samples. If
/// `contexts` is set and the function's own entry count is not 0, the entry count is returned.
pub fn head_estimate(samples: &Samples, contexts: bool) -> u64 {
    if contexts && samples.head > 0 {
        return samples.head;
    }
    let line = samples.body.first();
    let site = samples.inlined.first();
    let count = match (line, site) {
        (Some(line), None) => line.samples,
        (Some(line), Some(site)) if line.location < site.location => line.samples,
        (_, Some(site)) => samples
            .inlined
            .iter()
            .take_while(|inlined| inlined.location == site.location)
            .fold(0, |sum: u64, inlined| {
                sum.wrapping_add(head_estimate(&inlined.samples, contexts))
            }),
        (None, None) => 0,
    };
    match count {
        0 => u64::from(samples.total > 0),
        count => count,
    }
}

/// Changes the profile to the flat layout, in which each function is stored once and has no inlined functions. In a
/// profile with calling contexts, all contexts of a function are added up. Returns the number of overflows and checksum
/// mismatches.
pub fn flatten(profile: &mut SampleProfile) -> AddOutcome {
    flatten_with(profile, false)
}

/// Does the same as [`flatten`] with the losses of LLVM's tool: of a function that occurs several times, only the vtables
/// of the first copy stay (`flattenNestedProfile` adds the lines of later copies and leaves out their vtables).
pub fn flatten_as_llvm(profile: &mut SampleProfile) -> AddOutcome {
    flatten_with(profile, true)
}

fn flatten_with(profile: &mut SampleProfile, first_vtables_only: bool) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    let has_hashes = profile.kind.contains(ProfileKind::MD5_NAMES);
    let functions = profile.take_functions();
    let mut flat = Flattening {
        additions: profile.additions(),
        outcome: &mut outcome,
        first_vtables_only,
        names: has_hashes.then(FxHashMap::default),
    };
    for Function { samples, .. } in functions {
        if contexts {
            let Flattening {
                additions, outcome, ..
            } = &mut flat;
            additions.function(&[], samples.name, |adding, is_new| {
                adding.merge(&samples, is_new, |name| name, 1, outcome);
            });
        } else {
            flat.add(&samples);
        }
    }
    drop(flat);
    if !contexts {
        for function in profile.parts_mut().1 {
            function.samples.head = head_estimate(&function.samples, false);
        }
    }
    profile.kind = profile.kind.without(ProfileKind::CONTEXT_SENSITIVE);
    outcome
}

struct Flattening<'p> {
    additions: Additions<'p>,
    outcome: &'p mut AddOutcome,
    /// Whether a function keeps only the vtables of its first copy.
    first_vtables_only: bool,
    /// The name of each function by the hash of the name; `None` if the profile has no hashes in place of names. A
    /// function that occurs both with its name and with its hash is one function, and keeps the form that occurred
    /// first.
    names: Option<FxHashMap<NameRef, NameId>>,
}

impl Flattening<'_> {
    /// Adds one copy of a function, and the copies of functions inlined into it. Entry counts are not added, because
    /// they are estimated after all copies were added.
    fn add(&mut self, instance: &Samples) {
        let mut name = instance.name;
        if let Some(known) = &mut self.names {
            let guid = self.additions.names().get(name).guid();
            name = *known.entry(guid).or_insert(name);
        }
        let outcome = &mut *self.outcome;
        let first_vtables_only = self.first_vtables_only;
        self.additions.function(&[], name, |adding, is_new| {
            if is_new {
                let flat = adding.samples();
                flat.attributes = instance.attributes;
                flat.checksum = instance.checksum;
            }
            for line in &instance.body {
                adding.add_line(line.location, line.samples, 1, outcome);
            }
            for target in &instance.targets {
                adding.add_target(target.location, target.name, target.count, 1, outcome);
            }
            if is_new || !first_vtables_only {
                for target in &instance.vtables {
                    adding.add_vtable(target.location, target.name, target.count, 1, outcome);
                }
            }
            let mut total = instance.total;
            for Inlined { location, samples } in &instance.inlined {
                let head = head_estimate(samples, false);
                adding.add_line(*location, head, 1, outcome);
                adding.add_target(*location, samples.name, head, 1, outcome);
                total = total.saturating_sub(samples.total).wrapping_add(head);
            }
            outcome.accumulate(&mut adding.samples().total, total, 1);
        });
        for inlined in &instance.inlined {
            self.add(&inlined.samples);
        }
    }
}

/// Moves functions with a calling context into their callers, if the caller has samples in its own context. Returns the
/// number of overflows and checksum mismatches. A profile without contexts does not change.
///
/// A context whose caller has no samples of its own becomes a function without callers: its samples are added to those
/// of the base profile, and the profile no longer states who called it. So no calling context is left in any case, and
/// an encoding that cannot hold contexts accepts the profile.
///
/// ```
/// use profkit_data::sample::{SampleProfile, nest, read};
///
/// let mut profile = SampleProfile::new();
/// let text = b"[main:1 @ f]:30:3\n 1: 30\n[main]:10:1\n 1: 10 f:3\n[gone:2 @ g]:5:1\n 1: 5\n";
/// assert!(read(text, &mut profile, 1).faults.is_empty());
/// nest(&mut profile);
/// // `f` is now inlined into `main`. `gone` has no samples, so `g` has no caller any more.
/// let names: Vec<_> = profile.functions().iter().map(|one| profile.names.get(one.samples.name).to_string()).collect();
/// assert_eq!(names, ["g", "main"]);
/// assert!(profile.functions().iter().all(|one| one.callers.is_empty()));
/// # Ok::<(), profkit_data::Error>(())
/// ```
pub fn nest(profile: &mut SampleProfile) -> AddOutcome {
    move_into_callers(profile, false)
}

/// Does the same as [`nest`], and also adds the samples of each moved function to the base profile (the function without
/// callers). The moved function is marked as duplicated (`-generate-merged-base-profiles`).
pub fn nest_keeping_bases(profile: &mut SampleProfile) -> AddOutcome {
    move_into_callers(profile, true)
}

fn move_into_callers(profile: &mut SampleProfile, keep_bases: bool) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    if !profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
        return outcome;
    }
    let mut root = Node::default();
    let functions = profile.take_functions();
    let mut keys = Keys {
        names: &profile.names,
        hashes: vec![None; profile.names.len()],
    };
    for function in functions {
        let Function { callers, samples } = function;
        let mut node = &mut root;
        let mut location = Location::default();
        for Frame {
            name,
            location: site,
        } in callers
        {
            node = node.children.entry(keys.of(location, name)).or_default();
            location = site;
        }
        let key = keys.of(location, samples.name);
        node.children.entry(key).or_default().samples = Some(samples);
    }
    let mut nesting = Nesting {
        bases: profile.additions(),
        keep_bases,
        outcome: &mut outcome,
    };
    for (key, node) in root.children {
        if let Some(samples) = nesting.nest(key.name, node) {
            nesting.add_base(&samples);
        }
    }
    drop(nesting);
    profile.kind = profile.kind.without(ProfileKind::CONTEXT_SENSITIVE);
    outcome
}

/// The key by which the callees of one function are sorted. LLVM keeps callees in the order of a hash. If a call site
/// has several callees, this order decides which of them takes the samples of the call. If a function has several
/// contexts, this order decides which of them gives the base profile its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    hash: u64,
    location: Location,
    name: NameId,
}

/// Makes keys. The MD5 of each name is computed once.
struct Keys<'p> {
    names: &'p SampleNames,
    hashes: Vec<Option<u64>>,
}

impl Keys<'_> {
    fn of(&mut self, location: Location, name: NameId) -> Key {
        let names = self.names;
        let of_name = || names.get(name).guid().0;
        let name_hash = match self.hashes.get_mut(name.index()) {
            Some(known) => *known.get_or_insert_with(of_name),
            None => of_name(),
        };
        Key {
            hash: call_site_hash(name_hash, location),
            location,
            name,
        }
    }
}

/// Returns LLVM's hash of a function that is called at a location (`SampleContextFrame::getHashCode`). `name` is the
/// MD5 of the function's name.
pub fn call_site_hash(name: u64, location: Location) -> u64 {
    let place = u64::from(location.discriminator) << 32 | u64::from(location.line);
    name.wrapping_add(place << 5).wrapping_add(place)
}

#[derive(Default)]
struct Node {
    samples: Option<Samples>,
    children: BTreeMap<Key, Node>,
}

struct Nesting<'p> {
    bases: Additions<'p>,
    keep_bases: bool,
    outcome: &'p mut AddOutcome,
}

impl Nesting<'_> {
    /// Returns the samples of a node of the tree of calling contexts, with the samples of its children as inlined
    /// functions. If the node has no samples, returns `None`, and its children become top-level functions.
    fn nest(&mut self, name: NameId, node: Node) -> Option<Samples> {
        let mut samples = node.samples;
        let mut moves = Moves::default();
        for (Key { location, name, .. }, child) in node.children {
            let Some(mut child) = self.nest(name, child) else {
                continue;
            };
            let Some(parent) = &mut samples else {
                self.add_base(&child);
                continue;
            };
            if self.keep_bases {
                self.add_base(&child);
                child.attributes |= DUPLICATED_INTO_BASE;
            }
            self.outcome.accumulate(&mut parent.total, child.total, 1);
            let moved = moves.take_call(parent, location, child.name);
            parent.total = parent.total.saturating_sub(moved);
            moves.inlined.push(Inlined {
                location,
                samples: child,
            });
        }
        if let Some(parent) = &mut samples {
            moves.finish(parent);
        }
        debug_assert!(samples.as_ref().is_none_or(|samples| samples.name == name));
        samples
    }

    fn add_base(&mut self, samples: &Samples) {
        self.bases.merge(&[], samples, |name| name, 1, self.outcome);
    }
}

/// The changes to one function when its callees are moved into it. The changes are collected first, in the order of the
/// callees' keys, and then applied together.
#[derive(Default)]
struct Moves {
    /// The lines to remove, because they have no samples left. Their call targets are removed too.
    lines: BTreeSet<Location>,
    targets: BTreeSet<(Location, NameId)>,
    inlined: Vec<Inlined>,
}

impl Moves {
    /// Subtracts the samples of a call from the line of the call, because they are now counted in the inlined function.
    /// A line without samples is removed. Returns the number of samples that were subtracted
    /// (`removeCalledTargetAndBodySample`).
    fn take_call(&mut self, samples: &mut Samples, location: Location, callee: NameId) -> u64 {
        if self.lines.contains(&location) {
            return 0;
        }
        let find = |line: &BodyLine| line.location.cmp(&location);
        let line = samples.body.binary_search_by(find).ok();
        let Some(line) = line.and_then(|at| samples.body.get_mut(at)) else {
            return 0;
        };
        let key = (location, callee);
        let targets = &samples.targets;
        let target = targets.binary_search_by_key(&key, |target| (target.location, target.name));
        let target = target.ok().and_then(|at| targets.get(at));
        let called = target.map_or(0, |target| target.count);
        if target.is_some() {
            self.targets.insert(key);
        }
        let count = called.min(line.samples);
        line.samples -= count;
        if line.samples == 0 {
            self.lines.insert(location);
        }
        count
    }

    fn finish(self, samples: &mut Samples) {
        let stays = |location| !self.lines.contains(&location);
        samples.body.retain(|line| stays(line.location));
        samples.targets.retain(|target| {
            let key = (target.location, target.name);
            stays(target.location) && !self.targets.contains(&key)
        });
        let mut adding = samples.adding();
        for inlined in self.inlined {
            let (inner, is_new) = adding.inlined_at(inlined.location, inlined.samples.name);
            // If the function is already inlined at this location, its samples do not change. LLVM does not change them
            // either, because it uses `emplace`.
            if is_new {
                *inner = inlined.samples;
            }
        }
    }
}
