//! One function as a list of steps, in the order of the file. Readers decode a whole function into this list before
//! they add any of it to a profile, so nothing of a damaged function is added. The list's memory is used again for the
//! next function.
use super::add::{AddOutcome, Adding};
use super::late::PendingEntries;
use super::model::{Frame, Location, SampleProfile, Samples};
use super::names::{NameId, SampleNames};
use crate::limits::SAMPLE_INLINE_DEPTH;
use rustc_hash::{FxHashMap, FxHashSet};

/// A step of reading the samples of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The samples of one line. The line belongs to the innermost function that was entered and not yet left.
    Line {
        /// The line.
        location: Location,
        /// The number of samples.
        samples: u64,
    },
    /// A call target of the last [`Step::Line`].
    Target {
        /// The name of the called function.
        name: NameId,
        /// The number of samples in which the callee was called.
        count: u64,
    },
    /// A vtable that was loaded.
    Vtable {
        /// The location of the load.
        location: Location,
        /// The name of the vtable.
        name: NameId,
        /// The number of samples.
        count: u64,
    },
    /// The start of an inlined function. The steps up to its [`Step::Leave`] belong to it.
    Enter {
        /// The call site.
        location: Location,
        /// The name of the inlined function.
        name: NameId,
        /// All samples in the inlined function.
        total: u64,
    },
    /// The end of the innermost inlined function.
    Leave,
}

/// The checksum and attributes of a function or of one inlined instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// See [`Samples::checksum`].
    pub checksum: u64,
    /// See [`Samples::attributes`].
    pub attributes: u32,
}

/// One function as a list of steps, with its callers and counts.
#[derive(Clone, Debug, Default)]
pub struct FlatFunction {
    /// The callers, outermost first.
    pub callers: Vec<Frame>,
    /// The name of the function.
    pub name: NameId,
    /// See [`Samples::head`].
    pub head: u64,
    /// See [`Samples::total`].
    pub total: u64,
    /// The samples as steps. Each [`Step::Enter`] has a matching [`Step::Leave`], and inlined functions nest at most
    /// [`SAMPLE_INLINE_DEPTH`] deep.
    pub steps: Vec<Step>,
    /// The facts of the function itself, then of each entered function in the order of the steps. The list may be
    /// shorter than that; absent facts are 0.
    pub facts: Vec<Facts>,
}

impl FlatFunction {
    /// Empties the function but keeps the memory of its lists.
    pub fn clear(&mut self) {
        self.callers.clear();
        self.steps.clear();
        self.facts.clear();
        (self.head, self.total) = (0, 0);
    }

    /// The facts of the function entered as number `ordinal`, for setting; number 0 is the outer function itself.
    pub(super) fn facts_mut(&mut self, ordinal: usize) -> &mut Facts {
        if self.facts.len() <= ordinal {
            self.facts.resize(ordinal + 1, Facts::default());
        }
        #[expect(clippy::indexing_slicing, reason = "resized above")]
        &mut self.facts[ordinal]
    }
}

/// What to do with a vtable that occurs twice at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Add up both counts.
    Sum,
    /// Keep the first count.
    First,
}

impl FlatFunction {
    /// Keeps only the bits in `mask` of all discriminators, except in calling contexts. Entries whose locations become
    /// equal are added up. `vtables` tells what to do with equal vtables, because LLVM's readers differ in this.
    pub(super) fn cut_discriminators(&mut self, mask: u32, vtables: Repeated) {
        // The vtables of a function are adjacent steps.
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

/// Adds the functions of a file to a profile. The added functions are complete only when this value is dropped: if
/// lines of repeated functions come in an unfavourable order, some are kept outside the vectors until then.
#[derive(Debug)]
pub struct Additions<'p> {
    profile: &'p mut SampleProfile,
    /// The pending entries of each function, by the function's index.
    late: FxHashMap<usize, PendingEntries>,
}

impl SampleProfile {
    /// Starts adding functions to this profile.
    pub fn additions(&mut self) -> Additions<'_> {
        Additions {
            profile: self,
            late: FxHashMap::default(),
        }
    }
}

impl Additions<'_> {
    /// The profile's names.
    pub fn names(&mut self) -> &mut SampleNames {
        &mut self.profile.names
    }

    /// Calls `add` with the samples of a function. The second argument of `add` is whether the function is new.
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

    /// Adds samples to a function, as [`Adding::merge`] does. A new function also takes their attributes.
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

    /// Adds a function's samples, each count times `weight`. The names of `function` must be names of this profile.
    pub fn add(&mut self, function: &FlatFunction, weight: u64, outcome: &mut AddOutcome) {
        let FlatFunction { callers, name, .. } = function;
        self.function(callers, *name, |adding, is_new| {
            let mut adder = Adder {
                steps: &function.steps,
                facts: &function.facts,
                ordinal: 0,
                weight,
                outcome,
            };
            adder.enter(adding, is_new, function.total, function.head, 0);
            if is_new {
                // Free unused memory now: other inputs mostly have the same lines, so the vectors hardly grow any more.
                adding.samples().shrink_to_fit();
            }
        });
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
    ordinal: usize,
    weight: u64,
    outcome: &'a mut AddOutcome,
}

impl Adder<'_> {
    /// Adds the steps of one function up to its [`Step::Leave`]. If the checksum differs, they are skipped instead.
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
        if self
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
                } => adding.enter(location, name, |inner, is_new| {
                    self.enter(inner, is_new, total, 0, depth + 1);
                }),
                Step::Leave => return,
            }
        }
    }

    /// Skips the remaining steps of the innermost function.
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
