//! The samples of one function as a flat list, in the order of the file. A reader first decodes a whole function into
//! this list, and then adds the function to the profile. So no part of a damaged function is added. The memory of the
//! list is reused for the next function.
use super::add::{AddOutcome, Adding};
use super::late::PendingEntries;
use super::model::{Frame, Location, SampleProfile, Samples};
use super::names::{NameId, SampleNames};
use crate::limits::SAMPLE_INLINE_DEPTH;
use rustc_hash::{FxHashMap, FxHashSet};

/// One element of the flat list: a line, a call target, a vtable, or the start or end of an inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The samples of one line. The line belongs to the last inlined function that was entered and not yet left
    /// ([`Step::Enter`], [`Step::Leave`]). If there is no such function, the line belongs to the function itself.
    Line {
        /// The location of the samples: line and discriminator.
        location: Location,
        /// The number of samples of the line.
        samples: u64,
    },
    /// A call target of the last [`Step::Line`] before it in the list.
    Target {
        /// The name of the called function.
        name: NameId,
        /// The number of samples in which this function was called.
        count: u64,
    },
    /// A vtable that was loaded by the function.
    Vtable {
        /// The location at which the vtable was loaded.
        location: Location,
        /// The name of the vtable.
        name: NameId,
        /// The number of samples in which this vtable was loaded.
        count: u64,
    },
    /// The start of an inlined function. The elements up to the matching [`Step::Leave`] belong to the inlined
    /// function.
    Enter {
        /// The call site at which the function was inlined.
        location: Location,
        /// The name of the inlined function.
        name: NameId,
        /// The number of samples in the inlined function.
        total: u64,
    },
    /// The end of the innermost inlined function.
    Leave,
}

/// The checksum and attributes of a function or of one inlined copy of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts {
    /// The checksum of the function ([`Samples::checksum`]).
    pub checksum: u64,
    /// The attributes of the function ([`Samples::attributes`]).
    pub attributes: u32,
}

/// One function of a file: its samples as a flat list, its calling context and its counts.
#[derive(Clone, Debug, Default)]
pub struct FlatFunction {
    /// The callers of the function, outermost first.
    pub callers: Vec<Frame>,
    /// The name of the function.
    pub name: NameId,
    /// The number of sampled branches that entered the function ([`Samples::head`]).
    pub head: u64,
    /// The number of samples in the function ([`Samples::total`]).
    pub total: u64,
    /// The samples of the function as a flat list. Each [`Step::Enter`] has a matching [`Step::Leave`], and inlined
    /// functions nest at most [`SAMPLE_INLINE_DEPTH`] deep.
    pub steps: Vec<Step>,
    /// The checksums and attributes: first those of the function itself, then those of each inlined function in the
    /// order of the list. The vector may be shorter; missing checksums and attributes are 0.
    pub facts: Vec<Facts>,
}

impl FlatFunction {
    /// Removes all samples of the function. The lists keep their memory.
    pub fn clear(&mut self) {
        self.callers.clear();
        self.steps.clear();
        self.facts.clear();
        (self.head, self.total) = (0, 0);
    }

    /// Returns mutable access to the checksum and attributes of the inlined function at position `ordinal`. Inlined
    /// functions are counted from 1 in the order of the list; position 0 is the function itself.
    pub(super) fn facts_mut(&mut self, ordinal: usize) -> &mut Facts {
        if self.facts.len() <= ordinal {
            self.facts.resize(ordinal + 1, Facts::default());
        }
        &mut self.facts[ordinal]
    }
}

/// The treatment of a vtable that the file states twice for one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// The two counts are added.
    Sum,
    /// The first count is kept.
    First,
}

impl FlatFunction {
    /// Sets all discriminator bits that are not in `mask` to 0, except in calling contexts. Entries whose locations
    /// become equal are added up. For vtables whose locations become equal, LLVM's readers differ, so `vtables` selects
    /// the behaviour.
    pub(super) fn cut_discriminators(&mut self, mask: u32, vtables: Repeated) {
        // The vtables of a function follow each other in the list.
        let mut seen: FxHashSet<(Location, NameId)> = FxHashSet::default();
        self.steps.retain_mut(|step| match step {
            Step::Line { location, .. } => {
                location.discriminator &= mask;
                true
            }
            Step::Enter { location, .. } => {
                location.discriminator &= mask;
                seen = FxHashSet::default();
                true
            }
            Step::Vtable { location, name, .. } => {
                location.discriminator &= mask;
                vtables == Repeated::Sum || seen.insert((*location, *name))
            }
            Step::Leave => {
                seen = FxHashSet::default();
                true
            }
            Step::Target { .. } => true,
        });
    }
}

/// Adds the functions of a file to a profile. The added functions are complete only when this value is dropped. If a
/// function occurs several times in the file, some of its entries may be kept outside the sorted vectors until this
/// value is dropped.
#[derive(Debug)]
pub struct Additions<'p> {
    profile: &'p mut SampleProfile,
    /// The entries that are not in the sorted vectors of their function yet, by the index of the function.
    late: FxHashMap<usize, PendingEntries>,
    /// Whether a function that is added again gets the new checksum and attributes in place of the old ones, as in LLVM
    /// within one text file. If not, a function with a different checksum is left out and counted as a mismatch.
    replaces_facts: bool,
}

impl SampleProfile {
    /// Starts adding the functions of a file to this profile.
    pub fn additions(&mut self) -> Additions<'_> {
        Additions {
            profile: self,
            late: FxHashMap::default(),
            replaces_facts: false,
        }
    }
}

impl Additions<'_> {
    /// From now on, if a function is added again, its new checksum and attributes replace the old ones.
    pub(super) fn replace_facts(&mut self) {
        self.replaces_facts = true;
    }

    /// Returns the names of the profile to which functions are added.
    pub fn names(&mut self) -> &mut SampleNames {
        &mut self.profile.names
    }

    /// Whether the profile has functions.
    pub(super) fn has_functions(&self) -> bool {
        !self.profile.functions().is_empty()
    }

    /// The position of the function with this name and no callers among the functions of the profile.
    pub(super) fn place(&self, name: NameId) -> Option<u32> {
        u32::try_from(self.profile.find(&[], name)?).ok()
    }

    /// Calls `add` with the samples of a function. If the profile does not have the function, it is added first. The
    /// second argument of `add` is whether the function is new.
    pub fn function(
        &mut self,
        callers: &[Frame],
        name: NameId,
        add: impl FnOnce(&mut Adding<'_>, bool),
    ) {
        let before = self.profile.functions().len();
        let index = self.profile.find_or_add(callers, name);
        let pending = if self.late.is_empty() {
            PendingEntries::default()
        } else {
            self.late.remove(&index).unwrap_or_default()
        };
        let Some(samples) = self.profile.samples_mut(index) else {
            return;
        };
        let mut adding = Adding::resume(samples, pending);
        add(&mut adding, index == before);
        if let Some(pending) = adding.pause() {
            self.late.insert(index, pending);
        }
    }

    /// Adds samples to a function, as [`Adding::merge`] does. If the function is new, it also gets the attributes of
    /// the samples.
    pub fn merge(
        &mut self,
        callers: &[Frame],
        samples: &Samples,
        names: impl Fn(NameId) -> NameId + Copy,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        self.function(callers, names(samples.name), |adding, is_new| {
            if is_new {
                adding.samples().attributes = samples.attributes;
            }
            adding.merge(samples, is_new, names, weight, outcome);
        });
    }

    /// Adds the samples of a function, each count times `weight`. The names in `function` must be names of this
    /// profile.
    pub fn add(&mut self, function: &FlatFunction, weight: u64, outcome: &mut AddOutcome) {
        let variants = self.variants_of(function);
        let name = variants.first().copied().unwrap_or(function.name);
        let replaces_facts = self.replaces_facts;
        self.function(&function.callers, name, |adding, is_new| {
            let mut adder = Adder {
                steps: &function.steps,
                facts: match variants.is_empty() {
                    true => &function.facts,
                    // The names have the facts.
                    false => &[],
                },
                variants: &variants,
                ordinal: 0,
                weight,
                replaces_facts,
                outcome,
            };
            adder.enter(adding, is_new, function.total, function.head, 0);
            if is_new {
                // Free unused memory now. Later inputs mostly have the same lines, so the vectors will hardly grow.
                adding.samples().shrink_to_fit();
            }
        });
    }
}

impl Additions<'_> {
    /// If the profile keeps variants and the function has checksums or attributes: the id of the function's variant, then
    /// those of its inlined functions in the order of the list. Otherwise nothing.
    fn variants_of(&mut self, function: &FlatFunction) -> Vec<NameId> {
        let has_facts = |facts: &Facts| *facts != Facts::default();
        if !self.profile.keeps_variants() || !function.facts.iter().any(has_facts) {
            return Vec::new();
        }
        let inlined = function.steps.iter().filter_map(|step| match step {
            Step::Enter { name, .. } => Some(*name),
            _ => None,
        });
        let names = [function.name].into_iter().chain(inlined);
        let facts = function.facts.iter().copied();
        let facts = facts.chain(std::iter::repeat(Facts::default()));
        let table = &mut self.profile.names;
        names
            .zip(facts)
            .map(|(name, facts)| table.insert_variant(name, facts).unwrap_or(name))
            .collect()
    }
}

impl Drop for Additions<'_> {
    fn drop(&mut self) {
        for (index, pending) in self.late.drain() {
            if let Some(samples) = self.profile.samples_mut(index) {
                drop(Adding::resume(samples, pending));
            }
        }
    }
}

struct Adder<'a> {
    steps: &'a [Step],
    facts: &'a [Facts],
    /// The ids of the function and of its inlined functions, if they differ from those in `steps`.
    variants: &'a [NameId],
    ordinal: usize,
    weight: u64,
    replaces_facts: bool,
    outcome: &'a mut AddOutcome,
}

impl Adder<'_> {
    /// Adds the elements of one function up to its [`Step::Leave`]. If the function already has a different checksum
    /// in the profile and checksums are not replaced, skips these elements.
    fn enter(
        &mut self,
        adding: &mut Adding<'_>,
        is_new: bool,
        total: u64,
        head: u64,
        depth: usize,
    ) {
        let facts = self.facts.get(self.ordinal).copied().unwrap_or_default();
        self.ordinal += 1;
        let samples = adding.samples();
        if is_new {
            samples.attributes = facts.attributes;
        }
        if self.replaces_facts && facts != Facts::default() {
            samples.attributes = facts.attributes;
            if facts.checksum != 0 {
                samples.checksum = facts.checksum;
            }
        } else if !self.replaces_facts
            && self
                .outcome
                .is_mismatch(&mut samples.checksum, is_new, facts.checksum)
        {
            return self.skip();
        }
        if depth > SAMPLE_INLINE_DEPTH {
            self.outcome.mismatches += 1;
            return self.skip();
        }
        self.outcome
            .accumulate(&mut samples.total, total, self.weight);
        self.outcome
            .accumulate(&mut samples.head, head, self.weight);
        let mut line = Location::default();
        while let Some((&step, rest)) = self.steps.split_first() {
            self.steps = rest;
            match step {
                Step::Line { location, samples } => {
                    line = location;
                    adding.add_line(location, samples, self.weight, self.outcome);
                }
                Step::Target { name, count } => {
                    adding.add_target(line, name, count, self.weight, self.outcome);
                }
                Step::Vtable {
                    location,
                    name,
                    count,
                } => adding.add_vtable(location, name, count, self.weight, self.outcome),
                Step::Enter {
                    location,
                    name,
                    total,
                } => {
                    let name = self.variants.get(self.ordinal).copied().unwrap_or(name);
                    adding.enter(location, name, |inner, is_new| {
                        self.enter(inner, is_new, total, 0, depth + 1);
                    });
                }
                Step::Leave => return,
            }
        }
    }

    /// Skips the remaining elements of the innermost inlined function.
    fn skip(&mut self) {
        let mut open = 1usize;
        while let Some((step, rest)) = self.steps.split_first() {
            self.steps = rest;
            match step {
                Step::Enter { .. } => {
                    self.ordinal += 1;
                    open += 1;
                }
                Step::Leave => open -= 1,
                _ => {}
            }
            if open == 0 {
                return;
            }
        }
    }
}
