//! The rules of a merge of instrumentation profiles: what happens to faults, how inputs are distributed to workers, and
//! how workers are joined.
use super::worker::Worker;
use super::{Context, MergeOutcome};
use crate::accumulate::Rules;
use crate::driver::{
    Done, MergeKind, Next, OpenedInput, Outcome, ReportPart, Schedule, unreadable,
};
use crate::error::MergeError;
use crate::memprof::is_heap_profile;
use crate::report::EventLog;
use profkit_data::instr::InstrKind;
use std::io;

/// The rules of a merge of instrumentation profiles: [`Tolerant`], [`AsWriters`] or [`AsLlvm`](super::as_llvm::AsLlvm).
pub(crate) trait Strategy: Sync {
    fn rules(&self) -> Rules {
        Rules::TOLERANT
    }

    /// The number of LLVM's writers that the merge imitates. LLVM's tool has a writer for each of its threads; each
    /// writer has its own inputs and samples its own temporal traces. `None` if the order of inputs does not matter;
    /// then any free worker reads the next input.
    fn writers(&self) -> Option<usize> {
        None
    }

    /// Whether a new record that does not fit an earlier record is reported while the input of the new record is read.
    /// If not, such records are found at the end, when all inputs are known.
    fn faults_have_inputs(&self) -> bool {
        false
    }

    fn schedule(&self) -> Schedule {
        match self.writers() {
            Some(writers) => Schedule::InTurn { writers },
            None => Schedule::Shared { batch: 1 },
        }
    }

    fn log(&self) -> EventLog {
        EventLog::default()
    }

    fn read(
        &self,
        worker: &mut Worker<'_, '_>,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        read_any(worker, input, part)
    }

    /// Returns the kind that the worker has after the fast path has added one more raw profile. `before` is the kind of
    /// the worker's earlier inputs; `kind` and `word` are the kind and the version word of the raw profile. `None` if
    /// the fast path must not add this raw profile.
    fn kind_with(
        &self,
        context: &Context<'_, '_>,
        before: InstrKind,
        kind: InstrKind,
        word: u64,
    ) -> Option<InstrKind> {
        let _ = (context, kind, word);
        Some(before)
    }

    fn no_traces(&self, worker: &mut Worker<'_, '_>, input: usize) {
        worker.no_traces(input);
    }

    fn unreadable(
        &self,
        worker: &mut Worker<'_, '_>,
        index: usize,
        error: &io::Error,
        part: &mut ReportPart,
    ) {
        part.count_unreadable();
        part.log.push(unreadable(index, error));
        self.no_traces(worker, index);
    }

    fn taken_all(&self, worker: &mut Worker<'_, '_>, part: &mut ReportPart) -> Next {
        let _ = (worker, part);
        Next::Join
    }

    fn before_join(&self, workers: &mut [Done<Instr<'_, '_>>]) -> Vec<usize> {
        let _ = workers;
        Vec::new()
    }

    fn join<'c, 'i>(
        &self,
        into: &mut Worker<'c, 'i>,
        later: Worker<'c, 'i>,
    ) -> Result<(), MergeError> {
        into.absorb(later, false);
        Ok(())
    }

    fn finish(
        &self,
        context: &Context<'_, '_>,
        worker: Worker<'_, '_>,
        part: ReportPart,
    ) -> Result<MergeOutcome, MergeError> {
        super::finish_tolerant(context, worker, part)
    }
}

#[derive(Debug)]
pub(crate) struct Tolerant;

impl Strategy for Tolerant {}

/// The rules of [`Policy::Tolerant`](crate::Policy::Tolerant) with
/// [`ValueWeights::AsLlvm`](crate::ValueWeights::AsLlvm). There is one worker for each of LLVM's writers, and workers
/// are joined as LLVM joins its writers.
#[derive(Debug)]
pub(crate) struct AsWriters {
    /// The number of writers that LLVM's tool would have: one for each of its threads.
    pub(crate) writers: usize,
}

impl Strategy for AsWriters {
    fn rules(&self) -> Rules {
        Rules::AS_WRITERS
    }

    fn writers(&self) -> Option<usize> {
        Some(self.writers)
    }

    /// If the fast path (which adds raw profiles without parsing them) added values in a different order than LLVM
    /// would have, the inputs are read again without it.
    fn taken_all(&self, worker: &mut Worker<'_, '_>, _: &mut ReportPart) -> Next {
        worker.add_layout_sums();
        if worker.in_order {
            Next::Join
        } else {
            Next::TakeAgain
        }
    }
}

/// Reads an instrumentation profile as far as it is sound. A heap profile is only recorded here, because heap profiles
/// are merged later, in input order.
fn read_any(
    worker: &mut Worker<'_, '_>,
    input: &OpenedInput<'_>,
    part: &mut ReportPart,
) -> Outcome {
    if is_heap_profile(input) {
        worker.heap.push(input.index);
        worker.no_traces(input.index);
        return Outcome::Pending;
    }
    worker.read_tolerant(input, None, 0, part)
}

pub(crate) struct Instr<'c, 'i> {
    pub(crate) context: &'c Context<'c, 'i>,
}

impl<'c, 'i> MergeKind for Instr<'c, 'i> {
    type Worker = Worker<'c, 'i>;
    type Error = MergeError;

    fn schedule(&self) -> Schedule {
        self.context.strategy.schedule()
    }

    fn worker(&self) -> Worker<'c, 'i> {
        Worker::new(self.context, self.context.fast)
    }

    fn worker_again(&self) -> Worker<'c, 'i> {
        Worker::new(self.context, false)
    }

    fn log(&self) -> EventLog {
        self.context.strategy.log()
    }

    fn take(
        &self,
        worker: &mut Worker<'c, 'i>,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        if worker.fast && worker.take_fast(input, part) {
            return Outcome::Kept;
        }
        self.context.strategy.read(worker, input, part)
    }

    fn unreadable(
        &self,
        worker: &mut Worker<'c, 'i>,
        index: usize,
        error: io::Error,
        part: &mut ReportPart,
    ) {
        self.context
            .strategy
            .unreadable(worker, index, &error, part);
    }

    fn taken_all(&self, worker: &mut Worker<'c, 'i>, part: &mut ReportPart) -> Next {
        self.context.strategy.taken_all(worker, part)
    }

    fn before_join(&self, workers: &mut [Done<Self>]) -> Vec<usize> {
        self.context.strategy.before_join(workers)
    }

    fn join(
        &self,
        (worker, part): (&mut Worker<'c, 'i>, &mut ReportPart),
        (later, later_part): (Worker<'c, 'i>, ReportPart),
    ) -> Result<(), MergeError> {
        part.absorb(later_part);
        self.context.strategy.join(worker, later)
    }
}
