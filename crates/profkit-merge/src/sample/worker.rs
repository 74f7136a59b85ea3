//! Sample profiles on the driver: each worker reads inputs that follow one another into one sum.
use super::engine::SampleMergeError;
use super::options::SampleMergeOptions;
use super::ordered::family;
use super::strategy::Strategy;
use crate::driver::{Driver, MergeKind, OpenedInput, Outcome, ReportPart, Schedule};
use crate::inputs::Inputs;
use crate::report::{Action, Event, EventLog, Reason};
use profkit_data::sample::{
    self, AddOutcome, ProfileKind, ReadReport, SampleEncoding, SampleProfile, absorb, remap, scale,
};
use std::io;

/// How many inputs a thread is started for at least.
const INPUTS_PER_THREAD: usize = 2;
/// After so many inputs that cannot be added to a sum, a worker leaves the rest to be read in order: sums would be short,
/// and each takes memory.
const MOST_ODD: usize = 4;

/// Sample profiles on the driver.
pub(super) struct SampleKind<'d, 'a> {
    pub(super) driver: &'d Driver<'a>,
    pub(super) options: &'d SampleMergeOptions,
    pub(super) strategy: &'d dyn Strategy,
}

/// Inputs that follow one another.
#[allow(clippy::large_enum_variant, reason = "a worker has few of them")]
pub(super) enum Piece {
    /// Their sum.
    Sum(Sum),
    /// They are yet to be read, in their order, when all inputs before them are known.
    Later(Vec<usize>),
    /// They were read, and are read again in their order.
    Again(Vec<usize>),
}

/// The sum of inputs that follow one another and go together.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) profile: SampleProfile,
    pub(super) inputs: Vec<usize>,
    /// The first input that decides what the others must be.
    pub(super) first_in_family: Option<usize>,
    family: [bool; 2],
    /// See [`fs_word`].
    pub(super) is_fs: Option<bool>,
    pub(super) part: ReportPart,
}

impl Sum {
    /// Whether the inputs have probes, and contexts.
    pub(super) fn kinds(&self) -> [bool; 2] {
        self.family
    }
}

/// An input that was not added: the order of inputs matters for it. What was added of it is in the sum.
struct Odd;

/// What one worker has merged.
#[derive(Default)]
pub(super) struct SampleWorker {
    pieces: Vec<Piece>,
    sum: Sum,
    /// How many inputs could not be added to `sum`.
    odd: usize,
}

impl SampleWorker {
    /// All inputs in their order.
    pub(super) fn into_pieces(mut self) -> impl Iterator<Item = Piece> {
        self.close();
        self.pieces.into_iter()
    }

    /// Ends the sum, so that the next input begins another one.
    fn close(&mut self) {
        let sum = std::mem::take(&mut self.sum);
        if !sum.inputs.is_empty() {
            self.pieces.push(Piece::Sum(sum));
        }
    }

    fn later(&mut self, index: usize) {
        self.close();
        self.odd += 1;
        match self.pieces.last_mut() {
            Some(Piece::Later(inputs)) => inputs.push(index),
            _ => self.pieces.push(Piece::Later(vec![index])),
        }
    }
}

impl MergeKind for SampleKind<'_, '_> {
    type Worker = SampleWorker;
    type Error = SampleMergeError;

    /// Of functions that contradict each other the first stays.
    fn schedule(&self) -> Schedule {
        Schedule::Ranges {
            at_least: INPUTS_PER_THREAD,
        }
    }

    fn worker(&self) -> SampleWorker {
        SampleWorker::default()
    }

    fn log(&self) -> EventLog {
        self.strategy.log()
    }

    fn take(
        &self,
        worker: &mut SampleWorker,
        input: &OpenedInput<'_>,
        _: &mut ReportPart,
    ) -> Outcome {
        if worker.odd > MOST_ODD {
            worker.later(input.index);
            return Outcome::Pending;
        }
        if !self.driver.inputs.can_reopen(input.index) {
            input.keep_open();
        }
        if worker.sum.inputs.is_empty() {
            worker.sum.part = ReportPart::new(self.log());
        }
        match self.add(&mut worker.sum, input) {
            Ok(outcome) => {
                worker.sum.inputs.push(input.index);
                worker.sum.part.count(outcome, input.bytes().len());
                Outcome::Counted
            }
            Err(Odd) => {
                self.rebuild(worker);
                worker.later(input.index);
                Outcome::Pending
            }
        }
    }

    fn unreadable(
        &self,
        worker: &mut SampleWorker,
        index: usize,
        error: io::Error,
        part: &mut ReportPart,
    ) {
        match self.strategy.unreadable(index, error) {
            Ok(event) => {
                part.count(Outcome::Dropped, 0);
                part.log.push(event);
            }
            // The merge ends there, unless it ends before.
            Err(_) => worker.later(index),
        }
    }

    fn join(
        &self,
        (worker, part): (&mut SampleWorker, &mut ReportPart),
        (mut later, later_part): (SampleWorker, ReportPart),
    ) -> Result<(), SampleMergeError> {
        worker.close();
        later.close();
        worker.pieces.append(&mut later.pieces);
        part.absorb(later_part);
        Ok(())
    }
}

impl SampleKind<'_, '_> {
    /// Reads the inputs of the sum again, because what was added last cannot be taken out. They were added before without
    /// anything odd.
    fn rebuild(&self, worker: &mut SampleWorker) {
        let spoilt = std::mem::take(&mut worker.sum);
        let mut sum = Sum {
            part: ReportPart::new(self.log()),
            ..Sum::default()
        };
        let mut buffer = Vec::new();
        for &index in &spoilt.inputs {
            let Ok(input) = self.driver.open(index, &mut buffer) else {
                // It was there before. What is wrong now is reported when it is opened in order.
                worker.pieces.push(Piece::Again(spoilt.inputs));
                return;
            };
            let added = self.add(&mut sum, &input);
            let len = input.bytes().len();
            if !self.driver.inputs.can_reopen(index) {
                input.keep_open();
            }
            self.driver.close(input, &mut buffer);
            match added {
                Ok(outcome) => sum.part.count(outcome, len),
                Err(Odd) => {
                    worker.pieces.push(Piece::Again(spoilt.inputs));
                    return;
                }
            }
            sum.inputs.push(index);
        }
        worker.sum = sum;
    }

    /// Reads an input into a sum.
    fn add(&self, sum: &mut Sum, input: &OpenedInput<'_>) -> Result<Outcome, Odd> {
        let options = self.options;
        let bytes = input.bytes();
        let weight = self.driver.inputs.weight(input.index);
        let before = (sum.profile.names.len(), sum.profile.symbols.len());
        let kind_before = sum.profile.kind;
        let integer = weight.as_integer().filter(|_| options.remapping.is_none());
        let report = match integer {
            Some(weight) => {
                let report = sample::read_with(bytes, &mut sum.profile, weight, &options.read);
                if options.drop_symbols {
                    sum.profile.symbols.clear();
                }
                report
            }
            None => self.add_changed(sum, input)?,
        };
        if report.outcome != AddOutcome::default() {
            return Err(Odd);
        }
        let outcome = match (report.fault_count, report.functions) {
            (0, _) => Outcome::Kept,
            _ if !self.strategy.keeps_sound_functions() => return Err(Odd),
            (_, 0) if before == (sum.profile.names.len(), sum.profile.symbols.len()) => {
                sum.profile.kind = kind_before;
                Outcome::Dropped
            }
            (_, 0) => return Err(Odd),
            _ => Outcome::Repaired,
        };
        if outcome != Outcome::Dropped && self.strategy.decides_kind(report.functions) {
            let family = family(report.kind);
            match sum.first_in_family {
                Some(_) if sum.family != family => return Err(Odd),
                Some(_) => {}
                None => {
                    sum.first_in_family = Some(input.index);
                    sum.family = family;
                }
            }
        }
        sum.is_fs = fs_word(bytes, report.kind).or(sum.is_fs);
        if outcome != Outcome::Dropped {
            sum.part.totals.records_merged += report.functions;
        }
        let action = match outcome {
            Outcome::Dropped => Action::Dropped,
            _ => Action::Repaired,
        };
        for error in &report.faults {
            let event = Event::from_error(input.index, action, Reason::of(error), error);
            sum.part.log.push(event);
        }
        Ok(outcome)
    }

    /// Reads an input on its own, renames and weighs it, and adds it.
    fn add_changed(&self, sum: &mut Sum, input: &OpenedInput<'_>) -> Result<ReadReport, Odd> {
        let options = self.options;
        let mut fresh = SampleProfile::new();
        let report = sample::read_with(input.bytes(), &mut fresh, 1, &options.read);
        if report.fault_count > 0 || report.outcome != AddOutcome::default() {
            return Err(Odd);
        }
        if options.drop_symbols {
            fresh.symbols.clear();
        }
        let mut outcome = AddOutcome::default();
        if let Some(remapping) = &options.remapping {
            let cuts_to = self.strategy.renaming_cuts_to();
            let (renamed, renaming) = remap(fresh, remapping, cuts_to);
            fresh = renamed;
            outcome.absorb(renaming);
        }
        let weight = self.driver.inputs.weight(input.index);
        let factor = weight.as_integer().unwrap_or_else(|| {
            scale(&mut fresh, |count| weight.apply(count).0);
            1
        });
        let added = absorb(&mut sum.profile, fresh, factor, |_, _, odd| {
            outcome.absorb(odd)
        });
        if added.is_none() || outcome != AddOutcome::default() {
            return Err(Odd);
        }
        Ok(report)
    }
}

/// What an input of this kind says about LLVM's one variable for whether profiles are of FS-AFDO
/// (`FunctionSamples::ProfileIsFS`): readers of encodings that have no word for it set it to what was assumed, that of the
/// extensible encoding only sets it, and that of GCC's leaves it.
pub(super) fn fs_word(data: &[u8], kind: ProfileKind) -> Option<bool> {
    match sample::encoding(data)? {
        _ if kind.contains(ProfileKind::FS_DISCRIMINATORS) => Some(true),
        SampleEncoding::ExtBinary | SampleEncoding::Gcov => None,
        SampleEncoding::Text | SampleEncoding::Binary | SampleEncoding::CompactBinary => {
            Some(false)
        }
    }
}
