//! Samples temporal traces and keeps exactly those that LLVM's reservoir sampling keeps
//! (`InstrProfWriter::addTemporalProfileTrace(s)`).
//!
//! The random numbers come from a Mersenne twister with the default seed. LLVM changed its sampling between versions 19
//! and 22; this module implements both.
use super::{TemporalTrace, TemporalTraces};
use crate::mersenne::Mt19937;
use rustc_hash::FxHashSet;

/// Limits for the temporal traces that a merge keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The maximum number of traces to keep (`--temporal-profile-trace-reservoir-size`).
    pub reservoir_size: u64,
    /// The maximum number of functions to keep in a trace (`--temporal-profile-max-trace-length`).
    pub max_length: u64,
}

/// How LLVM samples the temporal traces if there are more traces than the reservoir can hold
/// (`InstrProfWriter::addTemporalProfileTraces`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceSampling {
    /// The method of LLVM 17 to 19. Every trace of all inputs is equally likely to be kept.
    Llvm19,
    /// The method of LLVM 22. Once the reservoir is full, an input can replace traces only if it has more traces than
    /// the reservoir holds.
    #[default]
    Llvm22,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            reservoir_size: 100,
            max_length: 10_000,
        }
    }
}

/// The temporal traces that were kept so far, and the state of the random number generator.
#[derive(Clone, Debug)]
pub struct Reservoir {
    options: TraceOptions,
    sampling: TraceSampling,
    sampled: TemporalTraces,
    random: Mt19937,
}

impl Reservoir {
    /// Makes an empty reservoir.
    pub fn new(options: TraceOptions, sampling: TraceSampling) -> Self {
        Reservoir {
            options,
            sampling,
            sampled: TemporalTraces::default(),
            random: Mt19937::default(),
        }
    }

    /// Returns the traces that were kept, and the number of traces before sampling.
    pub fn finish(self) -> TemporalTraces {
        self.sampled
    }

    /// Adds the temporal traces of one input, or those of another reservoir.
    pub fn add(&mut self, source: TemporalTraces) {
        let TemporalTraces {
            mut traces,
            stream_size,
        } = source;
        let max = usize::try_from(self.options.max_length).unwrap_or(usize::MAX);
        for trace in &mut traces {
            trace.functions.truncate(max);
        }
        traces.retain(|trace| !trace.functions.is_empty());
        match self.sampling {
            TraceSampling::Llvm22 => self.add_22(traces, stream_size),
            TraceSampling::Llvm19 => self.add_19(traces, stream_size),
        }
    }

    fn add_22(&mut self, mut traces: Vec<TemporalTrace>, stream_size: u64) {
        if traces.is_empty() {
            return;
        }
        let capacity = usize::try_from(self.options.reservoir_size).unwrap_or(usize::MAX);
        let room = capacity.saturating_sub(self.sampled.traces.len());
        let mut rest = traces.split_off(room.min(traces.len()));
        self.sampled.traces.append(&mut traces);
        self.shuffle(&mut rest);
        let mut rest = rest.into_iter().peekable();
        // As in LLVM, `seen` begins with the number of traces in the reservoir, and not with the number of traces that
        // were added so far. So once the reservoir is full, an input with a single trace changes nothing.
        for seen in self.sampled.traces.len() as u64..stream_size.min(MAX_DRAWS) {
            if rest.peek().is_none() {
                break;
            }
            if let Some(index) = self.draw_slot(seen)
                && let Some(slot) = self.sampled.traces.get_mut(index)
                && let Some(trace) = rest.next()
            {
                *slot = trace;
            }
        }
        self.sampled.stream_size = self.sampled.stream_size.saturating_add(stream_size);
    }

    fn add_19(&mut self, mut traces: Vec<TemporalTrace>, mut stream_size: u64) {
        let capacity = self.options.reservoir_size;
        let mut source_is_sampled = stream_size > capacity;
        if source_is_sampled && self.sampled.stream_size <= capacity {
            // The input has only a sample of its traces, but this reservoir still has all of its traces. So the traces
            // of the input become the contents of the reservoir, and the former traces of the reservoir are then added
            // one by one.
            std::mem::swap(&mut self.sampled.traces, &mut traces);
            std::mem::swap(&mut self.sampled.stream_size, &mut stream_size);
            source_is_sampled = false;
        }
        if !source_is_sampled {
            traces.into_iter().for_each(|trace| self.add_one(trace));
            return;
        }
        // The input and this reservoir each have only a sample of their traces. Draw one number for each trace that the
        // input had before sampling. If the number is the index of a trace in the reservoir, replace that trace by a
        // trace of the input.
        let mut replaced: Vec<usize> = Vec::new();
        let mut known = FxHashSet::default();
        for _ in 0..stream_size.min(MAX_DRAWS) {
            let drawn = self.draw_slot(self.sampled.stream_size);
            replaced.extend(drawn.filter(|&index| known.insert(index)));
            self.sampled.stream_size = self.sampled.stream_size.saturating_add(1);
        }
        let not_drawn = stream_size.saturating_sub(MAX_DRAWS);
        self.sampled.stream_size = self.sampled.stream_size.saturating_add(not_drawn);
        self.shuffle(&mut traces);
        for (index, trace) in replaced.into_iter().zip(traces) {
            if let Some(slot) = self.sampled.traces.get_mut(index) {
                *slot = trace;
            }
        }
    }

    fn add_one(&mut self, trace: TemporalTrace) {
        if self.sampled.stream_size < self.options.reservoir_size {
            self.sampled.traces.push(trace);
        } else if let Some(index) = self.draw_slot(self.sampled.stream_size)
            && let Some(slot) = self.sampled.traces.get_mut(index)
        {
            *slot = trace;
        }
        self.sampled.stream_size = self.sampled.stream_size.saturating_add(1);
    }

    /// Draws a random number from 0 to `max`. Returns the number if it is the index of a trace in the reservoir,
    /// otherwise `None`.
    fn draw_slot(&mut self, max: u64) -> Option<usize> {
        let drawn = self.random.uniform(max);
        usize::try_from(drawn)
            .ok()
            .filter(|&index| index < self.sampled.traces.len())
    }

    /// Shuffles the traces as `llvm::shuffle` does: for each position from the first on, swaps the trace at this
    /// position with the trace at a random position that is not before it.
    fn shuffle(&mut self, traces: &mut [TemporalTrace]) {
        let len = traces.len();
        for first in 0..len.saturating_sub(1) {
            let offset = self.random.next_u32() as usize % (len - first);
            traces.swap(first, first + offset);
        }
    }
}

/// The maximum number of random draws for one input that was already sampled. Real inputs come from thousands of runs.
/// A damaged file can claim 2^60 runs and must not take hours.
const MAX_DRAWS: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NameRef;

    fn trace(id: u64) -> TemporalTrace {
        TemporalTrace {
            weight: 1,
            functions: vec![NameRef(id), NameRef(id + 1), NameRef(id + 2)],
        }
    }

    fn one(id: u64) -> TemporalTraces {
        TemporalTraces {
            traces: vec![trace(id)],
            stream_size: 1,
        }
    }

    #[test]
    fn short_streams_are_kept_whole_and_long_traces_cut() {
        let options = TraceOptions {
            reservoir_size: 3,
            max_length: 2,
        };
        let mut reservoir = Reservoir::new(options, TraceSampling::Llvm22);
        reservoir.add(one(1));
        reservoir.add(TemporalTraces {
            traces: vec![TemporalTrace::default(), trace(5)],
            stream_size: 2,
        });
        let traces = reservoir.finish();
        assert_eq!(traces.stream_size, 3);
        assert_eq!(traces.traces[1].functions, [NameRef(5), NameRef(6)]);
    }

    #[test]
    fn a_claimed_stream_of_any_length_ends() {
        for sampling in [TraceSampling::Llvm19, TraceSampling::Llvm22] {
            let options = TraceOptions {
                reservoir_size: 2,
                max_length: 10,
            };
            let mut reservoir = Reservoir::new(options, sampling);
            let long = TemporalTraces {
                traces: vec![trace(1), trace(2), trace(3)],
                stream_size: u64::MAX,
            };
            reservoir.add(long.clone());
            reservoir.add(long);
            assert_eq!(reservoir.finish().stream_size, u64::MAX);
        }
    }
}
