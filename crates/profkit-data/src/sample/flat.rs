//! One function as readers hand it over: a list of steps in the order of the file. A function is decoded whole before
//! any of it is added to a profile, so a damaged one leaves nothing behind; and the list's memory is used again for the
//! next function.
use super::add::{AddOutcome, Hints};
use super::model::{Frame, Location, SampleProfile, Samples};
use super::names::NameId;
use crate::limits::SAMPLE_INLINE_DEPTH;

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

impl SampleProfile {
    /// Adds a function's samples, each count times `weight`. Names are of this profile.
    pub fn add_function(&mut self, function: &FlatFunction, weight: u64, outcome: &mut AddOutcome) {
        let before = self.functions().len();
        let index = self.find_or_add(&function.callers, function.name);
        let is_new = index == before;
        let Some(samples) = self.samples_mut(index) else {
            return;
        };
        let mut adder = Adder {
            steps: &function.steps,
            facts: &function.facts,
            ordinal: 0,
            weight,
            outcome,
        };
        adder.enter(samples, is_new, function.total, function.head, 0);
        if is_new {
            // Other inputs mostly have the same lines.
            samples.shrink_to_fit();
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
    fn enter(&mut self, samples: &mut Samples, is_new: bool, total: u64, head: u64, depth: usize) {
        let facts = self.facts.get(self.ordinal).copied().unwrap_or_default();
        self.ordinal += 1;
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
        let hints = &mut Hints::default();
        let mut line = Location::default();
        while let Some((&step, rest)) = self.steps.split_first() {
            self.steps = rest;
            match step {
                Step::Line {
                    location,
                    samples: count,
                } => {
                    line = location;
                    samples.add_line(hints, location, count, self.weight, self.outcome);
                }
                Step::Target { name, count } => {
                    samples.add_target(hints, line, name, count, self.weight, self.outcome);
                }
                Step::Vtable {
                    location,
                    name,
                    count,
                } => {
                    samples.add_vtable(hints, location, name, count, self.weight, self.outcome);
                }
                Step::Enter {
                    location,
                    name,
                    total,
                } => {
                    let (inner, is_new) = samples.inlined_at(hints, location, name);
                    self.enter(inner, is_new, total, 0, depth + 1);
                }
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
