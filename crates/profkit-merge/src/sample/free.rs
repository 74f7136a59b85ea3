//! Sums of sample profiles that do not depend on the order of inputs. Functions with different checksums are kept apart
//! until all inputs are known.
use super::engine::{SampleConflict, SampleOutcome, conclude};
use super::options::SampleMergeOptions;
use super::ordered::family;
use super::strategy::judge_by_functions;
use crate::driver::{Driver, MergeKind, OpenedInput, Outcome, ReportPart, Schedule};
use crate::error::MergeError;
use crate::part::{Unsound, content_of, examine};
use crate::report::{Action, Event, Reason};
use profkit_data::detect::{Family, FileKind};
use profkit_data::sample::{
    self, AddOutcome, Extremes, Function, LeftOut, NameId, ReadReport, SampleProfile, absorb,
    context_name, remap, scale, unite_variants,
};
use profkit_files::Inputs;
use rustc_hash::FxHashMap;
use std::mem;

/// Inputs that a worker gets at a time.
const TAKEN_AT_ONCE: usize = 4;

/// What is known of inputs when they were read and nothing was decided yet: the content of a part of a merge.
#[derive(Debug)]
pub(crate) struct SampleSum {
    /// Keeps variants.
    pub(crate) profile: SampleProfile,
    /// The first input that has a function with this name and checksum.
    pub(crate) first: FxHashMap<NameId, usize>,
    /// Of probes and contexts: the first input with functions that has them, and the first that has none.
    pub(crate) seen: [[Option<usize>; 2]; 2],
    pub(crate) report: ReportPart,
    /// The digest of each input that could be read.
    pub(crate) contents: Vec<(usize, u64)>,
    /// Of these, the readers of other families say what is wrong.
    pub(crate) unsound: Unsound,
}

impl Default for SampleSum {
    fn default() -> Self {
        SampleSum {
            profile: SampleProfile::keeping_variants(),
            first: FxHashMap::default(),
            seen: [[None; 2]; 2],
            report: ReportPart::default(),
            contents: Vec::new(),
            unsound: Unsound::default(),
        }
    }
}

impl SampleSum {
    /// Changes the numbers of inputs. `new` must keep their order.
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        let seen = self.seen.iter_mut().flatten().flatten();
        for input in self.first.values_mut().chain(seen) {
            *input = new(*input);
        }
    }

    /// Adds everything but the report.
    pub(crate) fn absorb(&mut self, other: SampleSum) -> Result<(), Box<Event>> {
        for (mine, theirs) in self
            .seen
            .iter_mut()
            .flatten()
            .zip(other.seen.as_flattened())
        {
            *mine = [*mine, *theirs].into_iter().flatten().min();
        }
        self.contents.extend(other.contents);
        self.unsound.absorb(other.unsound);
        if self.profile.names.is_empty() && self.profile.symbol_count() == 0 {
            let kind = self.profile.kind;
            (self.profile, self.first) = (other.profile, other.first);
            self.profile.kind |= kind;
            return Ok(());
        }
        let names = absorb(&mut self.profile, other.profile, 1, |_, _, _| {});
        let Some(names) = names else {
            let message = "the result would have more than 2^32 names";
            let event = Event::new(0, Action::Dropped, Reason::TooLarge, message);
            return Err(Box::new(event));
        };
        for (variant, input) in other.first {
            if let Some(&variant) = names.get(variant) {
                let first = self.first.entry(variant).or_insert(input);
                *first = input.min(*first);
            }
        }
        Ok(())
    }

    /// Whether all inputs with functions have probes, or none has, and so on for contexts.
    fn check_kinds(&self, inputs: &dyn Inputs) -> Result<(), MergeError> {
        // LLVM checks pseudo probes before calling contexts.
        let kinds = [SampleConflict::Probes, SampleConflict::Contexts];
        for (what, seen) in kinds.into_iter().zip(self.seen) {
            if let [Some(with), Some(without)] = seen {
                let named = |index| (index, inputs.name(index).into_owned());
                return Err(MergeError::Kinds {
                    what,
                    with: named(with),
                    without: named(without),
                    report: Box::new(self.report.clone().finish(inputs)),
                });
            }
        }
        Ok(())
    }

    /// Finishes the merge. `inputs` has the names of the inputs.
    pub(crate) fn finish(
        mut self,
        inputs: &dyn Inputs,
        options: &SampleMergeOptions,
    ) -> Result<SampleOutcome, MergeError> {
        self.check_kinds(inputs)?;
        if options.layout.is_some() || options.cold.is_some() {
            // How often sums are limited to the largest count depends on the order in which functions are added.
            self = self.in_order(inputs.len());
        }
        let mut part = self.report;
        let mut outcome = AddOutcome::default();
        let (profile, left_out) = unite_variants(self.profile, &mut outcome);
        part.totals.records_dropped += outcome.mismatches;
        for one in &left_out {
            let inputs = one.variants.iter();
            let first = inputs.filter_map(|variant| self.first.get(variant)).min();
            part.log
                .push(checksum_event(first.copied().unwrap_or(0), one));
        }
        report_limited(&profile, &mut part);
        conclude(profile, part, options, inputs)
    }
}

fn checksum_event(input: usize, one: &LeftOut) -> Event {
    let message = "more samples have another checksum of the function";
    Event::new(input, Action::Dropped, Reason::ChecksumMismatch, message)
        .function(&one.name)
        .sides(
            format_args!("{} samples with {:#x}", one.samples, one.checksum),
            format_args!("{} with {:#x}", one.kept_samples, one.kept_checksum),
        )
        .hint("the function was changed between two builds: merge only profiles of one build")
}

/// Sums do not say which input made them too large, so the report names the first function for all.
fn report_limited(profile: &SampleProfile, part: &mut ReportPart) {
    let is_limited = |function: &&Function| Extremes::of_function(function).count == u64::MAX;
    let limited = profile.functions().iter().filter(is_limited);
    let names = limited.map(|function| context_name(profile, function));
    let names: Vec<_> = names.collect();
    let Some(first) = names.iter().min() else {
        return;
    };
    part.totals.records_overflowed += names.len() as u64;
    let message = "a count exceeded the largest possible value and was limited to it";
    let event = Event::new(0, Action::Repaired, Reason::CounterOverflow, message).function(first);
    part.log.push(event);
}

/// Reads inputs that are no parts of merges.
pub(crate) fn collect(
    inputs: &dyn Inputs,
    options: &SampleMergeOptions,
) -> Result<SampleSum, MergeError> {
    let driver = Driver::new(inputs, &options.run);
    let kind = Free {
        driver: &driver,
        options,
    };
    let all: Vec<usize> = (0..inputs.len()).collect();
    let (mut sum, report) = driver.merge(&kind, &all)?;
    sum.report = report;
    let unsound = mem::take(&mut sum.unsound).report(&driver)?;
    sum.report.absorb(unsound);
    Ok(sum)
}

struct Free<'d, 'a> {
    driver: &'d Driver<'a>,
    options: &'d SampleMergeOptions,
}

impl MergeKind for Free<'_, '_> {
    type Worker = SampleSum;
    type Error = MergeError;

    /// A worker gets its inputs in ascending order, so that it meets the first input with a variant first.
    fn schedule(&self) -> Schedule {
        Schedule::Shared {
            batch: TAKEN_AT_ONCE,
        }
    }

    fn worker(&self) -> SampleSum {
        SampleSum::default()
    }

    fn take(&self, sum: &mut SampleSum, input: &OpenedInput<'_>, part: &mut ReportPart) -> Outcome {
        let (index, bytes) = (input.index, input.bytes());
        let weight = self.driver.inputs.weight(index);
        sum.contents.push((index, content_of(bytes, weight)));
        if sum.unsound.take(input, Family::Sample) {
            return Outcome::Pending;
        }
        if let FileKind::Part(_) = input.kind
            && let Err(error) = examine(bytes)
        {
            let event = Event::from_error(index, Action::Dropped, Reason::of(&error), &error);
            part.log.push(event);
            return Outcome::Dropped;
        }
        let (kind, known) = (sum.profile.kind, sum.profile.names.variants().len());
        let report = self.read(sum, input);
        let new = sum.profile.names.variants().skip(known);
        sum.first.extend(new.map(|variant| (variant, index)));
        let (outcome, events) = judge_by_functions(index, &report);
        events.into_iter().for_each(|event| part.log.push(event));
        if outcome == Outcome::Dropped {
            sum.profile.kind = kind;
            return outcome;
        }
        part.totals.records_merged += report.functions;
        if report.functions > 0 {
            for ([with, without], has) in sum.seen.iter_mut().zip(family(report.kind)) {
                (if has { with } else { without }).get_or_insert(index);
            }
        }
        outcome
    }

    fn join(
        &self,
        (sum, part): (&mut SampleSum, &mut ReportPart),
        (later, later_part): (SampleSum, ReportPart),
    ) -> Result<(), MergeError> {
        part.absorb(later_part);
        if let Err(event) = sum.absorb(later) {
            part.log.push(*event);
        }
        Ok(())
    }
}

impl Free<'_, '_> {
    fn read(&self, sum: &mut SampleSum, input: &OpenedInput<'_>) -> ReadReport {
        let options = self.options;
        let weight = self.driver.inputs.weight(input.index);
        let integer = weight.as_integer().filter(|_| options.remapping.is_none());
        let profile = &mut sum.profile;
        let report = match integer {
            Some(weight) => sample::read_with(input.bytes(), profile, weight, &options.read),
            None => {
                let mut own = SampleProfile::keeping_variants();
                let report = sample::read_with(input.bytes(), &mut own, 1, &options.read);
                if let Some(remapping) = &options.remapping {
                    own = remap(own, remapping, None).0;
                }
                let factor = weight.as_integer().unwrap_or_else(|| {
                    scale(&mut own, |count| weight.apply(count).0);
                    1
                });
                absorb(profile, own, factor, |_, _, _| {});
                report
            }
        };
        if options.drop_symbols {
            profile.clear_symbols();
        }
        report
    }
}
