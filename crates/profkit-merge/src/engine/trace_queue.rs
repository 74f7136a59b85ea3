//! Holds temporal traces until they can be sampled in input order. Each merged profile has its own sample (reservoir).
use super::Context;
use super::trace_sample::TraceSample;
use crate::options::MergeOptions;
use profkit_data::ids::BuildId;
use profkit_data::instr::Reservoir;
use profkit_data::instr::TemporalTraces;
use std::collections::BTreeMap;
use std::sync::MutexGuard;

pub(crate) type TracesOfParts = Vec<(Vec<BuildId>, TemporalTraces)>;

/// The sampled traces of each merged profile, by its build ids.
#[derive(Default)]
pub(crate) struct Reservoirs {
    as_llvm: BTreeMap<Vec<BuildId>, Reservoir>,
    /// Samples that do not depend on the order of inputs.
    pub(crate) by_priority: BTreeMap<Vec<BuildId>, TraceSample>,
}

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
        if !self.as_llvm.contains_key(group) {
            let reservoir = Reservoir::new(options.traces, options.trace_sampling);
            self.as_llvm.insert(group.to_vec(), reservoir);
        }
        if let Some(reservoir) = self.as_llvm.get_mut(group) {
            reservoir.add(traces);
        }
    }

    /// Adds the traces that another of LLVM's writers has sampled.
    pub(crate) fn absorb(&mut self, other: Reservoirs, options: &MergeOptions) {
        for (group, reservoir) in other.as_llvm {
            self.feed(&group, reservoir.finish(), options);
        }
        for (group, sample) in other.by_priority {
            let mine = self.by_priority.entry(group).or_default();
            mine.absorb(sample, options.traces);
        }
    }

    pub(crate) fn take(&mut self, group: &[BuildId], options: &MergeOptions) -> TemporalTraces {
        if let Some(sample) = self.by_priority.remove(group) {
            return sample.finish(options.traces);
        }
        let reservoir = self.as_llvm.remove(group);
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
    /// Samples of the traces of an input with this digest, whatever the order of inputs.
    pub(crate) fn draw_traces(&self, content: u64, parts: TracesOfParts, worker: &mut Reservoirs) {
        for (number, (group, traces)) in (0..).zip(parts) {
            if !traces.traces.is_empty() {
                let sample = worker.by_priority.entry(group).or_default();
                // The profiles of one file must not draw the same numbers.
                sample.add(content.wrapping_add(number), traces, self.options.traces);
            }
        }
    }

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
