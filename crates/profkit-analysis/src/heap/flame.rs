//! A heap profile as a flame graph: stacks with weights that a program can draw, and how hot each function is.
use super::figures::to_f64;
use super::folded::{FoldedStacks, HeapWeight};
use super::profile::HeapProfile;
use profkit_data::memprof::{Hotness, Thresholds};
use rustc_hash::FxHashMap;

/// Larger sums are shown in larger units, because programs that draw flame graphs add weights in 64 bits.
const MOST_SUM: u128 = u64::MAX as u128 / 2;

/// The data of a flame graph.
#[derive(Clone, Debug, Default)]
pub struct FlameStacks {
    /// One line per call stack: the folded stack, with its weight at the end.
    pub lines: Vec<String>,
    /// The number by which all weights were divided, so that their sum fits 64 bits. It is 1 except for huge profiles.
    pub divisor: u64,
    /// The functions of the stacks, in no order.
    pub functions: Vec<FlameFunction>,
}

/// How hot the contexts of a function are. Functions with the same name are counted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameFunction {
    /// The name of the function in the stacks.
    pub name: String,
    /// The share of the weight that cold contexts have, from 0 to 1.
    pub cold: f64,
    /// The share of the weight that hot contexts have, from 0 to 1.
    pub hot: f64,
}

/// The weights of a function's cold contexts, of its hot contexts, and of all.
#[derive(Default)]
struct Kinds {
    cold: f64,
    hot: f64,
    all: f64,
}

impl FlameStacks {
    /// The stacks of a profile. Names are not demangled if `mangled`. `None` if all weights are 0, because then there
    /// is nothing to draw.
    pub fn new(
        heap: &HeapProfile,
        weight: HeapWeight,
        thresholds: &Thresholds,
        mangled: bool,
    ) -> Option<Self> {
        let contexts = heap.profile.allocations_by_stack();
        let sum: u128 = contexts
            .iter()
            .map(|context| u128::from(weight.of(&context.block)))
            .sum();
        if sum == 0 {
            return None;
        }
        let mut divisor: u64 = 1;
        while sum / u128::from(divisor) > MOST_SUM {
            divisor *= 1000;
        }
        let mut folded = FoldedStacks::new(heap, mangled);
        let mut lines = Vec::with_capacity(contexts.len());
        let mut kinds: FxHashMap<u64, Kinds> = FxHashMap::default();
        for context in &contexts {
            let own = weight.of(&context.block) / divisor;
            let mut line = String::new();
            folded.append(context, &mut line);
            lines.push(format!("{line} {own}"));
            let hotness = thresholds.hotness(&context.block, true);
            for frame in heap.profile.stack(context.stack) {
                let kinds = kinds.entry(frame.function).or_default();
                kinds.all += to_f64(own);
                match hotness {
                    Hotness::Cold => kinds.cold += to_f64(own),
                    Hotness::Hot => kinds.hot += to_f64(own),
                    Hotness::Warm => {}
                }
            }
        }
        let mut by_name: FxHashMap<&str, Kinds> = FxHashMap::default();
        for (function, own) in &kinds {
            if let Some(name) = folded.name(*function) {
                let sum = by_name.entry(name).or_default();
                sum.cold += own.cold;
                sum.hot += own.hot;
                sum.all += own.all;
            }
        }
        let functions = by_name.into_iter().map(|(name, kinds)| {
            let share = |part: f64| {
                if kinds.all > 0.0 {
                    part / kinds.all
                } else {
                    0.0
                }
            };
            FlameFunction {
                name: name.to_owned(),
                cold: share(kinds.cold),
                hot: share(kinds.hot),
            }
        });
        Some(FlameStacks {
            functions: functions.collect(),
            lines,
            divisor,
        })
    }
}
