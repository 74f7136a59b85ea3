//! Merges sample profiles with the common driver. Each worker sums up neighbouring inputs.
use super::options::SampleMergeOptions;
use super::ordered::family;
use super::strategy::Strategy;
use crate::driver::{Driver, MergeKind, OpenedInput, Outcome, ReportPart, Schedule};
use crate::error::MergeError;
use crate::report::{Action, Event, EventLog, Reason};
use profkit_data::detect::FileKind;
use profkit_data::sample::{
    self, AddOutcome, ProfileKind, ReadReport, SampleEncoding, SampleProfile, absorb, remap, scale,
};
use profkit_files::Inputs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// The smallest number of inputs per thread. With fewer inputs, fewer threads are started.
const INPUTS_PER_THREAD: usize = 2;
/// An input whose order matters is left out of the worker's sum; after this many, all others are too. They are read at
/// the end, one by one. A higher limit makes more and shorter sums, and each takes memory.
const MOST_ODD: usize = 4;

pub(super) struct SampleKind<'d, 'a> {
    pub(super) driver: &'d Driver<'a>,
    pub(super) options: &'d SampleMergeOptions,
    pub(super) strategy: Strategy,
    /// Whether a part of a merge is among the inputs, so that all are merged by the rules of parts.
    pub(super) has_parts: AtomicBool,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a worker has only a few values of this type"
)]
pub(super) enum Piece {
    Sum(Sum),
    Later(Vec<usize>),
    /// The inputs were read, and progress was reported for them, but they must be read again, one by one.
    Again(Vec<usize>),
}

#[derive(Default)]
pub(super) struct Sum {
    pub(super) profile: SampleProfile,
    pub(super) inputs: Vec<usize>,
    /// The first input with functions: all others must share its properties (probes, contexts).
    pub(super) first_in_family: Option<usize>,
    family: [bool; 2],
    pub(super) words: LlvmWords,
    pub(super) part: ReportPart,
}

impl Sum {
    pub(super) fn kinds(&self) -> [bool; 2] {
        self.family
    }
}

/// The order of this input matters, so it must not be added to the sum. A part of it may have been added.
struct Odd;

#[derive(Default)]
pub(super) struct SampleWorker {
    pieces: Vec<Piece>,
    sum: Sum,
    /// The number of inputs that could not be added to a sum, because their order matters.
    odd: usize,
}

impl SampleWorker {
    pub(super) fn into_pieces(mut self) -> impl Iterator<Item = Piece> {
        self.close();
        self.pieces.into_iter()
    }

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
    type Error = MergeError;

    /// Sums are joined in the order of the inputs: of functions that contradict each other, the first is kept.
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

    fn is_over(&self) -> bool {
        self.has_parts.load(Ordering::Relaxed)
    }

    fn take(
        &self,
        worker: &mut SampleWorker,
        input: &OpenedInput<'_>,
        _: &mut ReportPart,
    ) -> Outcome {
        if matches!(input.kind, FileKind::Part(_)) && !self.strategy.is_llvm() {
            self.has_parts.store(true, Ordering::Relaxed);
            return Outcome::Pending;
        }
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
                worker.sum.part.count(outcome, input);
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
                part.count_unreadable();
                part.log.push(event);
            }
            // The merge ends when the inputs are added in order, unless an earlier input ends it.
            Err(_) => worker.later(index),
        }
    }

    fn join(
        &self,
        (worker, part): (&mut SampleWorker, &mut ReportPart),
        (mut later, later_part): (SampleWorker, ReportPart),
    ) -> Result<(), MergeError> {
        worker.close();
        later.close();
        worker.pieces.append(&mut later.pieces);
        part.absorb(later_part);
        Ok(())
    }
}

impl SampleKind<'_, '_> {
    /// Makes the current sum again from its inputs: a part of another input that was added cannot be removed.
    fn rebuild(&self, worker: &mut SampleWorker) {
        let spoilt = std::mem::take(&mut worker.sum);
        let mut sum = Sum {
            part: ReportPart::new(self.log()),
            ..Sum::default()
        };
        let mut buffer = Vec::new();
        for &index in &spoilt.inputs {
            let Ok(input) = self.driver.open(index, &mut buffer) else {
                // It could be opened before: the error is reported when the inputs are read in order.
                worker.pieces.push(Piece::Again(spoilt.inputs));
                return;
            };
            let added = self.add(&mut sum, &input);
            if let Ok(outcome) = added {
                sum.part.count(outcome, &input);
            }
            if !self.driver.inputs.can_reopen(index) {
                input.keep_open();
            }
            self.driver.close(input, &mut buffer);
            if added.is_err() {
                worker.pieces.push(Piece::Again(spoilt.inputs));
                return;
            }
            sum.inputs.push(index);
        }
        worker.sum = sum;
    }

    fn add(&self, sum: &mut Sum, input: &OpenedInput<'_>) -> Result<Outcome, Odd> {
        let options = self.options;
        let bytes = input.bytes();
        let weight = self.driver.inputs.weight(input.index);
        let before = (sum.profile.names.len(), sum.profile.symbol_count());
        let kind_before = sum.profile.kind;
        let integer = weight.as_integer().filter(|_| options.remapping.is_none());
        let report = match integer {
            Some(weight) => {
                let report = sample::read_with(bytes, &mut sum.profile, weight, &options.read);
                if options.drop_symbols {
                    sum.profile.clear_symbols();
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
            _ if self.strategy.is_llvm() => return Err(Odd),
            (_, 0) if before == (sum.profile.names.len(), sum.profile.symbol_count()) => {
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
        sum.words = LlvmWords::of(bytes, report.kind).after(sum.words);
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

    fn add_changed(&self, sum: &mut Sum, input: &OpenedInput<'_>) -> Result<ReadReport, Odd> {
        let options = self.options;
        let mut fresh = SampleProfile::new();
        let report = sample::read_with(input.bytes(), &mut fresh, 1, &options.read);
        if report.fault_count > 0 || report.outcome != AddOutcome::default() {
            return Err(Odd);
        }
        if options.drop_symbols {
            fresh.clear_symbols();
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

/// LLVM's variables `FunctionSamples::ProfileIsFS` and `ProfileIsPreInlined`; `None` if no input has set them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LlvmWords {
    pub(super) is_fs: Option<bool>,
    pub(super) is_pre_inlined: Option<bool>,
}

impl LlvmWords {
    /// What LLVM's reader does with the variables. Encodings that cannot express FS-AFDO reset the first; only the text
    /// reader resets the second. The extensible encoding sets them but never resets them. GCC's does not change them.
    pub(super) fn of(data: &[u8], kind: ProfileKind) -> Self {
        let encoding = sample::llvm_encoding(data);
        let resets_fs = !matches!(
            encoding,
            None | Some(SampleEncoding::ExtBinary | SampleEncoding::Gcov)
        );
        let word =
            |flag, resets: bool| (resets || kind.contains(flag)).then(|| kind.contains(flag));
        LlvmWords {
            is_fs: word(ProfileKind::FS_DISCRIMINATORS, resets_fs),
            is_pre_inlined: word(
                ProfileKind::PRE_INLINED,
                encoding == Some(SampleEncoding::Text),
            ),
        }
    }

    /// The values after reading first the inputs of `earlier` and then those of `self`.
    pub(super) fn after(self, earlier: Self) -> Self {
        LlvmWords {
            is_fs: self.is_fs.or(earlier.is_fs),
            is_pre_inlined: self.is_pre_inlined.or(earlier.is_pre_inlined),
        }
    }
}
