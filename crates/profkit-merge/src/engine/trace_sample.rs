//! Samples temporal traces by priority, so that the sample is a function of the set of traces and not of their order.
//!
//! Each trace draws a number from (0, 1] that its input and its place there decide. Its priority is its weight divided by
//! this number, and the traces with the greatest priorities are kept. A trace of an input that is a sample itself stands
//! for several, so its weight is greater.
use profkit_data::instr::{TemporalTrace, TemporalTraces, TraceOptions};
use std::cmp::Reverse;
use twox_hash::XxHash3_64;

/// A trace with what decides whether it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) priority: f64,
    /// The digest of the input that has the trace, and the place of the trace in it.
    pub(crate) place: (u64, u64),
    pub(crate) trace: TemporalTrace,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TraceSample {
    pub(crate) kept: Vec<Drawn>,
    pub(crate) stream_size: u64,
}

impl TraceSample {
    /// Adds the traces of an input whose content has this digest.
    pub(crate) fn add(&mut self, digest: u64, traces: TemporalTraces, options: TraceOptions) {
        let TemporalTraces {
            mut traces,
            stream_size,
        } = traces;
        let longest = usize::try_from(options.max_length).unwrap_or(usize::MAX);
        for trace in &mut traces {
            trace.functions.truncate(longest);
        }
        if traces.iter().all(|trace| trace.functions.is_empty()) {
            return;
        }
        #[allow(
            clippy::cast_precision_loss,
            reason = "a priority needs no more digits"
        )]
        let stands_for = stream_size.max(1) as f64 / traces.len() as f64;
        for (index, trace) in (0..).zip(traces) {
            if trace.functions.is_empty() {
                continue;
            }
            #[allow(
                clippy::cast_precision_loss,
                reason = "a priority needs no more digits"
            )]
            let weight = trace.weight as f64 * stands_for;
            self.kept.push(Drawn {
                priority: weight / drawn(digest, index),
                place: (digest, index),
                trace,
            });
        }
        self.stream_size = self.stream_size.saturating_add(stream_size);
        let most = usize::try_from(options.reservoir_size).unwrap_or(usize::MAX);
        if self.kept.len() > most.saturating_mul(2).saturating_add(64) {
            self.cut(options);
        }
    }

    pub(crate) fn absorb(&mut self, other: TraceSample, options: TraceOptions) {
        self.kept.extend(other.kept);
        self.stream_size = self.stream_size.saturating_add(other.stream_size);
        self.cut(options);
    }

    /// Sorts the traces by falling priority, and keeps as many as are wanted.
    pub(crate) fn cut(&mut self, options: TraceOptions) {
        self.kept.sort_by(|a, b| {
            let falling = b.priority.total_cmp(&a.priority);
            falling.then_with(|| {
                (a.place, Reverse(a.trace.weight)).cmp(&(b.place, Reverse(b.trace.weight)))
            })
        });
        let most = usize::try_from(options.reservoir_size).unwrap_or(usize::MAX);
        self.kept.truncate(most);
    }

    pub(crate) fn finish(mut self, options: TraceOptions) -> TemporalTraces {
        self.cut(options);
        TemporalTraces {
            traces: self.kept.into_iter().map(|drawn| drawn.trace).collect(),
            stream_size: self.stream_size,
        }
    }
}

/// A number above 0 and at most 1, with 53 bits.
fn drawn(digest: u64, index: u64) -> f64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&digest.to_le_bytes());
    bytes[8..].copy_from_slice(&index.to_le_bytes());
    let bits = (XxHash3_64::oneshot(&bytes) >> 11) + 1;
    #[allow(
        clippy::cast_precision_loss,
        reason = "both numbers have at most 53 bits"
    )]
    let drawn = bits as f64 / (1u64 << 53) as f64;
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::ids::NameRef;

    fn input(weight: u64, functions: u64) -> TemporalTraces {
        TemporalTraces {
            traces: vec![TemporalTrace {
                weight,
                functions: (0..functions).map(NameRef).collect(),
            }],
            stream_size: 1,
        }
    }

    const FEW: TraceOptions = TraceOptions {
        reservoir_size: 10,
        max_length: 3,
    };

    #[test]
    fn the_sample_depends_on_the_set_alone_and_heavy_traces_are_more_likely_kept() {
        let add = |sample: &mut TraceSample, digest| {
            let weight = if digest % 10 == 0 { 50 } else { 1 };
            sample.add(digest, input(weight, 5), FEW);
        };
        let mut forwards = TraceSample::default();
        (0..1000).for_each(|digest| add(&mut forwards, digest));
        let mut halves = [TraceSample::default(), TraceSample::default()];
        (0..1000)
            .rev()
            .for_each(|digest| add(&mut halves[(digest % 3 / 2) as usize], digest));
        let [mut first, second] = halves;
        first.absorb(second, FEW);
        assert_eq!(first.stream_size, 1000);
        let heavy = first.kept.iter().filter(|drawn| drawn.trace.weight == 50);
        assert!(heavy.count() >= 7);
        assert!(
            first
                .kept
                .iter()
                .all(|drawn| drawn.trace.functions.len() == 3)
        );
        assert_eq!(forwards.finish(FEW), first.finish(FEW));
    }
}
