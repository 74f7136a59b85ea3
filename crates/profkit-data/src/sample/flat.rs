//! One function as readers hand it over: a list of steps in the order of the file. A function is decoded whole before
//! any of it is added to a profile, so nothing of a damaged one is added; and the list's memory is used again for the
//! next function.
use super::add::{AddOutcome, Adding};
use super::late::PendingEntries;
use super::model::{Frame, Location, SampleProfile, Samples};
use super::names::{NameId, SampleNames};
use crate::limits::SAMPLE_INLINE_DEPTH;
use rustc_hash::{FxHashMap, FxHashSet};

/// A step through the samples of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Samples of a line of the function that was entered last and not left.
    Line {
        /// Where.
        location: Location,
        /// How many.
        samples: u64,
    },
    /// What was called at the line before.
    Target {
        /// The callee.
        name: NameId,
        /// How many samples.
        count: u64,
    },
    /// A vtable.
    Vtable {
        /// Where.
        location: Location,
        /// The vtable.
        name: NameId,
        /// How many samples.
        count: u64,
    },
    /// A function is inlined here; what follows is of it.
    Enter {
        /// Where.
        location: Location,
        /// The function.
        name: NameId,
        /// Its samples.
        total: u64,
    },
    /// The inlined function is done.
    Leave,
}

/// Checksum and attributes of a function or of an inlined instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// See [`Samples::checksum`].
    pub checksum: u64,
    /// See [`Samples::attributes`].
    pub attributes: u32,
}

/// One function as a list of steps.
#[derive(Clone, Debug, Default)]
pub struct FlatFunction {
    /// The callers, outermost first.
    pub callers: Vec<Frame>,
    /// The function.
    pub name: NameId,
    /// See [`Samples::head`].
    pub head: u64,
    /// See [`Samples::total`].
    pub total: u64,
    /// The samples. Each [`Step::Enter`] has its [`Step::Leave`], and they nest no deeper than
    /// [`SAMPLE_INLINE_DEPTH`].
    pub steps: Vec<Step>,
    /// The facts of the function and then of each entered one, in the order of the steps. May end early, or be empty.
    pub facts: Vec<Facts>,
}

impl FlatFunction {
    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.callers.clear();
        self.steps.clear();
        self.facts.clear();
        (self.head, self.total) = (0, 0);
    }

    /// Sets the facts of the function that was entered as the `ordinal`-th; 0 is the function itself.
    pub(super) fn facts_mut(&mut self, ordinal: usize) -> &mut Facts {
        if self.facts.len() <= ordinal {
            self.facts.resize(ordinal + 1, Facts::default());
        }
        #[expect(clippy::indexing_slicing, reason = "resized above")]
        &mut self.facts[ordinal]
    }
}

/// What becomes of a vtable that stands twice at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Both counts are added up.
    Sum,
    /// The first one counts.
    First,
}

impl FlatFunction {
    /// Cuts the discriminators of all places but those of callers to the bits of `mask`. `vtables` is what LLVM's reader
    /// of the encoding does with those that fall together; whatever else does is added up.
    pub(super) fn cut_discriminators(&mut self, mask: u32, vtables: Repeated) {
        // Vtables of a function follow one another.
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

/// Adds the functions of a file to a profile. They are whole only when this is dropped: where lines of repeated functions
/// come in a bad order, some are kept beside them until then.
#[derive(Debug)]
pub struct Additions<'p> {
    profile: &'p mut SampleProfile,
    /// By the place of the function.
    late: FxHashMap<usize, PendingEntries>,
}

impl SampleProfile {
    /// Adds functions to this profile.
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

    /// Lets `add` add to a function; its second argument says whether the function is new.
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

    /// Adds samples to those of a function, as [`Adding::merge`] does; a new one has their attributes.
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

    /// Adds a function's samples, each count times `weight`. Names are of this profile.
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
                // Other inputs mostly have the same lines.
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
    /// Adds a function up to where it is left, unless its checksum differs.
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

    /// Passes over the rest of the function entered last.
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
