//! Holds temporal traces until they can be sampled in input order. Each merged profile has its own sample (reservoir).
use super::Context;
use crate::options::MergeOptions;
use profkit_data::ids::BuildId;
use profkit_data::instr::Reservoir;
use profkit_data::instr::TemporalTraces;
use std::collections::BTreeMap;
use std::sync::MutexGuard;

pub(crate) type TracesOfParts = Vec<(Vec<BuildId>, TemporalTraces)>;

#[derive(Default)]
pub(crate) struct Reservoirs(BTreeMap<Vec<BuildId>, Reservoir>);

impl Reservoirs {
    pub(crate) fn feed(
        &mut self,
        group: &[BuildId],
        traces: TemporalTraces,
        options: &MergeOptions,
    ) {
        if traces.traces.is_empty() {
            return;
        }
        if !self.0.contains_key(group) {
            let reservoir = Reservoir::new(options.traces, options.trace_sampling);
            self.0.insert(group.to_vec(), reservoir);
        }
        if let Some(reservoir) = self.0.get_mut(group) {
            reservoir.add(traces);
        }
    }

    /// Adds the traces that another of LLVM's writers has sampled.
    pub(crate) fn absorb(&mut self, other: Reservoirs, options: &MergeOptions) {
        for (group, reservoir) in other.0 {
            self.feed(&group, reservoir.finish(), options);
        }
    }

    pub(crate) fn take(&mut self, group: &[BuildId]) -> TemporalTraces {
        let reservoir = self.0.remove(group);
        reservoir.map(Reservoir::finish).unwrap_or_default()
    }
}

/// The traces of inputs that were read too early. They wait, because reservoirs must get traces in input order.
#[derive(Default)]
pub(crate) struct TraceQueue {
    next: usize,
    waiting: BTreeMap<usize, TracesOfParts>,
    pub(crate) reservoirs: Reservoirs,
}

impl Context<'_, '_> {
    /// If the merge imitates several of LLVM's writers, the traces go at once into the reservoirs of `worker`.
    pub(crate) fn traces_of(&self, input: usize, parts: TracesOfParts, worker: &mut Reservoirs) {
        if self.strategy.writers.is_some() {
            for (group, traces) in parts {
                worker.feed(&group, traces, self.options);
            }
            return;
        }
        let mut queue = self.trace_queue();
        queue.waiting.insert(input, parts);
        while let Some(parts) = {
            let next = queue.next;
            queue.waiting.remove(&next)
        } {
            queue.next += 1;
            for (group, traces) in parts {
                queue.reservoirs.feed(&group, traces, self.options);
            }
        }
    }

    pub(crate) fn trace_queue(&self) -> MutexGuard<'_, TraceQueue> {
        match self.traces.lock() {
            Ok(queue) => queue,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
