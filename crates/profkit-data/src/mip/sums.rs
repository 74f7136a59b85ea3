//! The sums of MIP records, stored as plain arrays.
use super::plan::{Kind, RecordPlan, Segment, Slots};
use super::sampled_calls_record;
use super::{Function, MipProfile, RawPart, Sample, add_samples};
use profkit_abi::mip::record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The number of files that can be added before the sums in `pending`, which have one byte each, must be moved to wider
/// numbers.
const MOST_PENDING: u8 = u8::MAX;

/// The summed MIP records of several runs of one image.
#[derive(Clone, Debug)]
pub struct RecordSums {
    runs: u64,
    /// For each coverage byte of the records: the number of files that mark the code as executed, among the files that
    /// were added since the last call of [`widen`](Self::widen).
    pending: Vec<u8>,
    pending_files: u8,
    coverage: Vec<u64>,
    unary: Vec<UnarySum>,
    calls: Vec<CallsSum>,
    /// For each inferred block, the number of files that show that it ran.
    inferred: Vec<u64>,
    /// For raw files that are cut short. The key is the offset at which the records of such a file end, and the value
    /// is the number of runs in all files whose records end there.
    cuts: BTreeMap<u64, u64>,
    samples: FxHashMap<Sample, u64>,
    lost_samples: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct UnarySum {
    calls: u64,
    called: u64,
}

#[derive(Clone, Copy, Debug)]
struct CallsSum {
    calls: u64,
    /// Whether `calls` is a lower bound.
    at_least: bool,
    order_sum: u64,
    called: u32,
    order_runs: u32,
    /// The smallest ordinal of a first call. All bits are set if no run has an ordinal.
    order_min: u32,
}

impl CallsSum {
    const ZERO: CallsSum = CallsSum {
        calls: 0,
        at_least: false,
        order_sum: 0,
        called: 0,
        order_runs: 0,
        order_min: u32::MAX,
    };

    /// Adds the record of a function in version 9, where `count` is the number of calls minus one. All bits of `count`
    /// are set if the function was never called. If such a record nevertheless has an ordinal, the function was called
    /// and the count has wrapped around, in a program of an earlier release.
    #[inline(always)]
    fn add(&mut self, count: u32, ordinal: u32) {
        let ordered = ordinal != u32::MAX;
        let wrapped = ordered & (count == u32::MAX);
        self.calls += u64::from(count.wrapping_add(1)) | (u64::from(wrapped) << 32);
        self.at_least |= (count >= record::SATURATED_COUNT) & (ordered | (count != u32::MAX));
        self.add_order(ordered | (count != u32::MAX), ordinal);
    }

    #[inline(always)]
    fn add_sampled(&mut self, record: &[u8; record::SAMPLED_CALLS_SIZE]) {
        let calls = sampled_calls_record(record);
        self.calls = self.calls.saturating_add(calls.calls);
        self.add_order(calls.called, calls.ordinal.unwrap_or(u32::MAX));
    }

    #[inline(always)]
    fn add_order(&mut self, called: bool, ordinal: u32) {
        let ordered = ordinal != u32::MAX;
        self.called += u32::from(called);
        self.order_runs += u32::from(ordered);
        self.order_sum += if ordered { u64::from(ordinal) } else { 0 };
        self.order_min = self.order_min.min(ordinal);
    }
}

impl RecordSums {
    /// Makes empty sums, to which no run was added yet.
    pub fn new(plan: &RecordPlan) -> Self {
        RecordSums {
            runs: 0,
            pending: vec![0; plan.coverage],
            pending_files: 0,
            coverage: vec![0; plan.coverage],
            unary: vec![UnarySum::default(); plan.unary],
            calls: vec![CallsSum::ZERO; plan.calls],
            inferred: vec![0; plan.inferred.len()],
            cuts: BTreeMap::new(),
            samples: FxHashMap::default(),
            lost_samples: 0,
        }
    }

    /// Checks whether the records in a file of version 8 can have the layout of the plan. This check is needed because
    /// version 8 has no checksum. A coverage or counter byte must be 0 or 0xff, and a count must come with an ordinal.
    /// The error is the offset of the first record that fails.
    pub fn check_v8(plan: &RecordPlan, records: &[u8]) -> Result<(), usize> {
        for segment in &plan.segments {
            let bytes = clip(records, segment);
            let wrong = match segment.kind {
                Kind::Coverage | Kind::Unary => {
                    bytes.iter().position(|&byte| byte != 0 && byte != 0xff)
                }
                Kind::Calls => {
                    let (records, _) = bytes.as_chunks::<8>();
                    let wrong = records.iter().position(|record| {
                        let (count, ordinal) = words(record);
                        (count == u32::MAX) != (ordinal == u32::MAX)
                    });
                    wrong.map(|index| index * 8)
                }
                Kind::SampledCalls => Some(0),
            };
            if let Some(wrong) = wrong {
                return Err(segment.offset + wrong);
            }
        }
        Ok(())
    }

    /// Adds one part of a raw file. The records in the part must have the layout of the plan. If the part is cut short,
    /// only complete records are added.
    pub fn add(&mut self, plan: &RecordPlan, part: &RawPart<'_>) {
        let runs = u64::from(part.runs);
        self.runs = self.runs.saturating_add(runs);
        let mut records = part.records;
        if part.damage.is_some() {
            // A record that is cut off in the middle is not used at all.
            let whole = plan.whole_records(records.len() as u64);
            records = usize::try_from(whole)
                .ok()
                .and_then(|whole| records.get(..whole))
                .unwrap_or_default();
            let cut = self.cuts.entry(whole).or_default();
            *cut = cut.saturating_add(runs);
        }
        let v8 = part.version == profkit_abi::mip::v8::VERSION;
        for segment in &plan.segments {
            self.add_segment(segment, clip(records, segment), v8);
        }
        self.infer(plan, records);
        self.pending_files += 1;
        if self.pending_files == MOST_PENDING {
            self.widen();
        }
        for (sample, weight) in part.samples() {
            let sum = self.samples.entry(sample).or_default();
            *sum = sum.saturating_add(weight);
        }
        self.lost_samples = self.lost_samples.saturating_add(part.lost_samples());
    }

    /// Counts the inferred blocks that ran. A file says which blocks ran, so each file is looked at by itself: sums of
    /// several files do not tell in how many of them one of several blocks ran.
    fn infer(&mut self, plan: &RecordPlan, records: &[u8]) {
        let mut start = 0;
        for (sum, &end) in self.inferred.iter_mut().zip(&plan.inferred) {
            let signs = plan.signs.get(start..end).unwrap_or_default();
            *sum += u64::from(signs.iter().any(|sign| sign.shows(records)));
            start = end;
        }
    }

    #[inline]
    fn add_segment(&mut self, segment: &Segment, bytes: &[u8], v8: bool) {
        let slot = segment.slot;
        match segment.kind {
            Kind::Coverage => {
                let sums = self.pending.get_mut(slot..).unwrap_or_default();
                for (sum, &byte) in sums.iter_mut().zip(bytes) {
                    // This addition cannot overflow, because `widen` is called before a sum could overflow.
                    *sum = sum.wrapping_add(u8::from(byte == 0));
                }
            }
            Kind::Unary => {
                let sums = self.unary.get_mut(slot..).unwrap_or_default();
                for (sum, &byte) in sums.iter_mut().zip(bytes) {
                    sum.calls += u64::from(byte.count_zeros());
                    sum.called += u64::from(byte != 0xff);
                }
            }
            Kind::Calls => {
                let (records, _) = bytes.as_chunks::<8>();
                let sums = self.calls.get_mut(slot..).unwrap_or_default();
                if v8 {
                    // A record of version 8 holds the number of calls, not the number minus one as in version 9.
                    for (sum, record) in sums.iter_mut().zip(records) {
                        let (count, ordinal) = words(record);
                        if count != u32::MAX {
                            sum.add(count.wrapping_sub(1), ordinal);
                        }
                    }
                } else {
                    for (sum, record) in sums.iter_mut().zip(records) {
                        let (count, ordinal) = words(record);
                        sum.add(count, ordinal);
                    }
                }
            }
            Kind::SampledCalls => {
                let (records, _) = bytes.as_chunks();
                let sums = self.calls.get_mut(slot..).unwrap_or_default();
                for (sum, record) in sums.iter_mut().zip(records) {
                    sum.add_sampled(record);
                }
            }
        }
    }

    /// Adds the one-byte sums in `pending` to the wider sums in `coverage`, and sets the one-byte sums to 0.
    fn widen(&mut self) {
        for (wide, narrow) in self.coverage.iter_mut().zip(&mut self.pending) {
            *wide += u64::from(std::mem::take(narrow));
        }
        self.pending_files = 0;
    }

    /// Adds the sums of another worker. Both workers must use the same plan.
    pub fn join(&mut self, mut other: RecordSums) {
        self.widen();
        other.widen();
        self.runs = self.runs.saturating_add(other.runs);
        for (sum, more) in self.coverage.iter_mut().zip(other.coverage) {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in self.unary.iter_mut().zip(other.unary) {
            sum.calls = sum.calls.saturating_add(more.calls);
            sum.called = sum.called.saturating_add(more.called);
        }
        for (sum, more) in self.calls.iter_mut().zip(other.calls) {
            sum.calls = sum.calls.saturating_add(more.calls);
            sum.at_least |= more.at_least;
            sum.order_sum = sum.order_sum.saturating_add(more.order_sum);
            sum.called = sum.called.saturating_add(more.called);
            sum.order_runs = sum.order_runs.saturating_add(more.order_runs);
            sum.order_min = sum.order_min.min(more.order_min);
        }
        for (sum, more) in self.inferred.iter_mut().zip(other.inferred) {
            *sum = sum.saturating_add(more);
        }
        for (cut, runs) in other.cuts {
            let sum = self.cuts.entry(cut).or_default();
            *sum = sum.saturating_add(runs);
        }
        for (sample, weight) in other.samples {
            let sum = self.samples.entry(sample).or_default();
            *sum = sum.saturating_add(weight);
        }
        self.lost_samples = self.lost_samples.saturating_add(other.lost_samples);
    }

    /// The weight of the calls that the tables of the programs had no room for.
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }

    /// The number of runs that were added.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Adds the sums to the profile from which the plan was made. Returns the total weight of the samples whose callee
    /// is not a function of that profile.
    pub fn add_to(mut self, plan: &RecordPlan, profile: &mut MipProfile) -> u64 {
        self.widen();
        profile.runs = profile.runs.saturating_add(self.runs);
        for (function, slots) in profile.functions.iter_mut().zip(&plan.functions) {
            let unseen = self.cuts.range(..slots.end).map(|(_, runs)| runs);
            let unseen = unseen.fold(0u64, |sum, runs| sum.saturating_add(*runs));
            let seen = self.runs.saturating_sub(unseen);
            function.raw_runs = function.raw_runs.saturating_add(seen);
            self.add_entry(slots, function);
            let recorded = self.coverage.get(slots.blocks..).unwrap_or_default();
            let mut recorded = recorded.iter().take(slots.block_count);
            match &function.inference {
                None => {
                    for (block, &count) in function.blocks.iter_mut().zip(recorded) {
                        block.runs = block.runs.saturating_add(count);
                    }
                }
                Some(inference) => {
                    let mut inferred = self
                        .inferred
                        .get(slots.inferred..)
                        .unwrap_or_default()
                        .iter();
                    let mut lists = inference.lists();
                    if lists.next().is_some_and(|list| !list.is_empty()) {
                        let called = inferred.next().copied().unwrap_or(0);
                        function.called_runs = function.called_runs.saturating_add(called);
                    }
                    for (block, list) in function.blocks.iter_mut().zip(lists) {
                        let count = match list {
                            [] => recorded.next(),
                            _ => inferred.next(),
                        };
                        block.runs = block.runs.saturating_add(count.copied().unwrap_or(0));
                    }
                }
            }
        }
        add_samples(profile, &self.samples)
    }

    fn add_entry(&self, slots: &Slots, function: &mut Function) {
        let mut called = 0;
        match slots.kind {
            Kind::Coverage => called = self.coverage.get(slots.entry).copied().unwrap_or(0),
            Kind::Unary => {
                if let Some(sum) = self.unary.get(slots.entry) {
                    called = sum.called;
                    function.calls = function.calls.saturating_add(sum.calls);
                }
            }
            Kind::Calls | Kind::SampledCalls => {
                if let Some(sum) = self.calls.get(slots.entry) {
                    called = u64::from(sum.called);
                    function.calls_at_least |= sum.at_least;
                    function.calls = function.calls.saturating_add(sum.calls);
                    function.order_sum = function.order_sum.saturating_add(sum.order_sum);
                    function.order_runs = function.order_runs.saturating_add(sum.order_runs.into());
                    if sum.order_min != u32::MAX {
                        let known = function.order_min.unwrap_or(u32::MAX);
                        function.order_min = Some(known.min(sum.order_min));
                    }
                }
            }
        }
        function.called_runs = function.called_runs.saturating_add(called);
    }
}

/// Returns the bytes of a segment, as far as the file has them. A record that consists of a count and an ordinal is
/// returned completely or not at all.
fn clip<'data>(records: &'data [u8], segment: &Segment) -> &'data [u8] {
    let rest = records.get(segment.offset..).unwrap_or_default();
    rest.get(..segment.len).unwrap_or(rest)
}

#[inline(always)]
fn words(record: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, rest @ ..] = *record;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(rest))
}
