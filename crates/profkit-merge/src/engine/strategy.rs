//! The rules of a merge of instrumentation profiles, and the merge as the driver runs it.
use super::Context;
use super::worker::Worker;
use crate::accumulate::Rules;
use crate::driver::{
    Done, MergeKind, Next, OpenedInput, Outcome, ReportPart, Schedule, unreadable,
};
use crate::error::MergeError;
use crate::memprof::is_heap_profile;
use crate::options::{MergeOptions, Policy, ValueWeights};
use crate::report::EventLog;
use profkit_data::detect::{Family, FileKind};
use profkit_data::llvm_order::NumberMap;
use profkit_files::Inputs;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Strategy {
    /// The rules for adding records.
    pub(crate) rules: Rules,
    /// The number of LLVM's writers that the merge imitates: one for each thread, with its own inputs and sample of
    /// traces. `None` if the order of inputs does not matter.
    pub(crate) writers: Option<usize>,
    /// Whether inputs are read, judged and reported as LLVM's tool does it. A record that does not fit an earlier one
    /// is then reported with its input, otherwise at the end.
    pub(crate) is_llvm: bool,
}

impl Strategy {
    pub(crate) const TOLERANT: Self = Strategy {
        rules: Rules::TOLERANT,
        writers: None,
        is_llvm: false,
    };

    pub(crate) const ORDER_FREE: Self = Strategy {
        rules: Rules::ORDER_FREE,
        ..Self::TOLERANT
    };

    pub(crate) fn new(inputs: &dyn Inputs, options: &MergeOptions) -> Self {
        let wanted = options.run.threads.wanted().map(NonZeroUsize::get);
        match options.policy {
            Policy::Llvm => Strategy {
                rules: Rules {
                    map: options
                        .read_as
                        .map_or_else(NumberMap::default, NumberMap::of),
                    ..Rules::LLVM
                },
                writers: Some(wanted.unwrap_or_else(|| {
                    let threads = options.run.threads.count();
                    threads.min(inputs.len().div_ceil(2))
                })),
                is_llvm: true,
            },
            Policy::Tolerant if weights_as_llvm(inputs, options) => Strategy {
                rules: Rules::AS_WRITERS,
                writers: Some(wanted.unwrap_or(1)),
                is_llvm: false,
            },
            Policy::Tolerant => Self::TOLERANT,
        }
    }
}

/// Whether value sites are merged by LLVM's rule although the policy is tolerant.
fn weights_as_llvm(inputs: &dyn Inputs, options: &MergeOptions) -> bool {
    let mut weights = (0..inputs.len()).map(|input| inputs.weight(input));
    options.value_weights == ValueWeights::AsLlvm
        && !options.normalize
        && weights.clone().all(|weight| weight.as_integer().is_some())
        && weights.any(|weight| !weight.is_one())
}

pub(crate) struct Instr<'c, 'i> {
    pub(crate) context: &'c Context<'c, 'i>,
}

impl<'c, 'i> MergeKind for Instr<'c, 'i> {
    type Worker = Worker<'c, 'i>;
    type Error = MergeError;

    fn schedule(&self) -> Schedule {
        match self.context.strategy.writers {
            Some(writers) => Schedule::InTurn { writers },
            None => Schedule::Shared { batch: 1 },
        }
    }

    fn worker(&self) -> Worker<'c, 'i> {
        Worker::new(self.context, self.context.fast)
    }

    fn worker_again(&self) -> Worker<'c, 'i> {
        Worker::new(self.context, false)
    }

    fn log(&self) -> EventLog {
        if self.context.strategy.is_llvm {
            // LLVM's tool prints a line for each event.
            EventLog::unlimited()
        } else {
            EventLog::default()
        }
    }

    fn is_over(&self) -> bool {
        self.context.is_over.load(Ordering::Relaxed)
    }

    fn take(
        &self,
        worker: &mut Worker<'c, 'i>,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        let order_free = self.context.strategy.rules.order_free;
        if order_free {
            worker.note_content(input);
            if worker.unsound.take(input, Family::Instr) {
                worker.no_traces(input.index);
                return Outcome::Pending;
            }
        } else if matches!(input.kind, FileKind::Part(_)) && !self.context.strategy.is_llvm {
            self.context.is_over.store(true, Ordering::Relaxed);
            worker.no_traces(input.index);
            return Outcome::Pending;
        }
        if worker.fast && worker.take_fast(input, part) {
            return Outcome::Kept;
        }
        if self.context.strategy.is_llvm {
            return worker.read_llvm(input, part);
        }
        if is_heap_profile(input) {
            // Heap profiles are merged later, in input order.
            worker.heap.push(input.index);
            worker.no_traces(input.index);
            return Outcome::Pending;
        }
        worker.read_tolerant(input, part)
    }

    fn unreadable(
        &self,
        worker: &mut Worker<'c, 'i>,
        index: usize,
        error: io::Error,
        part: &mut ReportPart,
    ) {
        part.count_unreadable();
        if self.context.strategy.is_llvm {
            return worker.unreadable_llvm(index, &error);
        }
        part.log.push(unreadable(index, &error));
        worker.no_traces(index);
    }

    /// If the fast path added values in another order than LLVM, the inputs are read again without it.
    fn taken_all(&self, worker: &mut Worker<'c, 'i>, part: &mut ReportPart) -> Next {
        let strategy = self.context.strategy;
        if strategy.writers.is_none() {
            return Next::Join;
        }
        if strategy.is_llvm && worker.has_sums_only() && worker.sums_may_wait() {
            return Next::Join;
        }
        worker.add_layout_sums();
        let same = worker.in_order && (!strategy.is_llvm || part.log.is_empty());
        if same || part.totals.fast_profiles == 0 {
            Next::Join
        } else {
            Next::TakeAgain
        }
    }

    fn before_join(&self, workers: &mut [Done<Self>]) -> Vec<usize> {
        if self.context.strategy.is_llvm {
            super::as_llvm::before_join(workers)
        } else {
            Vec::new()
        }
    }

    fn join(
        &self,
        (worker, part): (&mut Worker<'c, 'i>, &mut ReportPart),
        (later, later_part): (Worker<'c, 'i>, ReportPart),
    ) -> Result<(), MergeError> {
        part.absorb(later_part);
        if self.context.strategy.is_llvm {
            return worker.absorb_llvm(later);
        }
        worker.absorb(later, false);
        Ok(())
    }
}
