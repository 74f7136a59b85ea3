//! Adds the frames that are missing in call chains because of tail calls. Frames are added after a call if exactly one
//! path of tail calls leads from this call to the function of the next frame.
use super::{ContextOptions, Contexts};
use crate::code::Flow;
use crate::program::{FunctionId, Program};
use profkit_data::limits::SAMPLE_CONTEXT_DEPTH;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The steps that all searches may take: one for each call, and [`REMEMBERED`] for each stored result, which takes
/// about 60 bytes. Real programs need some thousands. In a malicious recording, many calls can lead to many functions
/// each.
pub(super) const STEPS: u64 = 64 << 20;
const REMEMBERED: u64 = 8;

/// This number of paths means that there is more than one path, or that the search was stopped.
const MANY: u32 = 2;

pub struct Missing<'m, 'files> {
    program: &'m Program<'files>,
    max_depth: u32,
    calls: BTreeMap<u64, BTreeSet<FunctionId>>,
    tail_calls: BTreeMap<u64, BTreeSet<FunctionId>>,
    of_function: FxHashMap<FunctionId, Vec<u64>>,
    tail_called: FxHashSet<FunctionId>,
    /// The number of paths between two functions, and the tail calls on it if there is one.
    known: FxHashMap<(FunctionId, FunctionId), (u32, Vec<u64>)>,
    visiting: FxHashSet<FunctionId>,
    depth: u32,
    inferred: FxHashSet<(u64, FunctionId)>,
    steps: u64,
    /// The number of searches that were skipped because no steps were left or the context was too long.
    given_up: u64,
}

impl<'m, 'files> Missing<'m, 'files> {
    pub fn new(
        program: &'m Program<'files>,
        contexts: &Contexts,
        options: &ContextOptions,
    ) -> Self {
        let mut missing = Missing {
            program,
            max_depth: options.max_search_depth,
            calls: BTreeMap::new(),
            tail_calls: BTreeMap::new(),
            of_function: FxHashMap::default(),
            tail_called: FxHashSet::default(),
            known: FxHashMap::default(),
            visiting: FxHashSet::default(),
            depth: 0,
            inferred: FxHashSet::default(),
            steps: options.search_steps,
            given_up: 0,
        };
        let branches = contexts
            .counts
            .values()
            .flat_map(|counts| counts.branches.keys());
        for &(from, to) in branches {
            if let Some(from) = from {
                missing.add(from, to);
            }
        }
        missing
    }

    fn add(&mut self, from: u64, to: u64) {
        let program = self.program;
        let Some(instruction) = program.code.at(from) else {
            return;
        };
        let source = program.range_at(from);
        let target = program.range_at(to);
        let function = target.map(|range| range.function);
        let is_tail_call = match instruction.flow {
            Flow::Call => {
                if source.is_some() {
                    let called = self.calls.entry(from).or_default();
                    called.extend(function);
                }
                return;
            }
            Flow::Jump => function.is_some() && source.map(|range| range.function) != function,
            Flow::IndirectJump => source.map(std::ptr::from_ref) != target.map(std::ptr::from_ref),
            _ => false,
        };
        let (Some(source), true) = (source, is_tail_call) else {
            return;
        };
        let is_new = !self.tail_calls.contains_key(&from);
        let called = self.tail_calls.entry(from).or_default();
        called.extend(function);
        self.tail_called.extend(function);
        if is_new {
            self.of_function
                .entry(source.function)
                .or_default()
                .push(from);
        }
    }

    pub fn inferred(&self) -> u64 {
        self.inferred.len() as u64
    }

    /// The number of searches that were skipped because of a limit.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Uses up some steps. Returns `false` if fewer steps were left.
    fn step(&mut self, steps: u64) -> bool {
        let has_enough = self.steps >= steps;
        self.steps = self.steps.saturating_sub(steps);
        has_enough
    }

    pub fn between(&mut self, calls: &[u64], address: u64) -> Vec<u64> {
        let mut all = Vec::with_capacity(calls.len() + 1);
        let nexts = calls.iter().skip(1).copied().chain([address]);
        for (&call, next) in calls.iter().zip(nexts) {
            all.push(call);
            self.add_missing(call, next, &mut all);
        }
        all.push(address);
        all
    }

    fn add_missing(&mut self, from: u64, to: u64, path: &mut Vec<u64>) {
        let Some(target) = self.program.range_at(to).map(|range| range.function) else {
            return;
        };
        let Some(called) = self.calls.get(&from) else {
            return;
        };
        // Whether the target was called or tail-called, samples do not tell. A direct call is more likely.
        if called.contains(&target) || !self.tail_called.contains(&target) {
            return;
        }
        if self.steps == 0 || path.len() >= SAMPLE_CONTEXT_DEPTH {
            self.given_up += 1;
            return;
        }
        let called: Vec<FunctionId> = called.iter().copied().collect();
        let start = path.len();
        let mut ways = 0;
        self.visiting.clear();
        self.depth = 0;
        for function in called {
            ways += self.ways_from_function(function, target, path);
            if ways > 1 {
                break;
            }
        }
        if ways == 1 {
            self.inferred.insert((from, target));
        } else {
            path.truncate(start);
        }
    }

    /// Returns the number of paths of tail calls: 0, 1, or more. A single one is appended to `path`.
    fn ways_from_function(&mut self, from: FunctionId, to: FunctionId, path: &mut Vec<u64>) -> u32 {
        if from == to {
            return 1;
        }
        // A cycle is not a path. Known results may come from the current search, so this comes first.
        if self.visiting.contains(&from) {
            return 0;
        }
        if let Some((ways, known)) = self.known.get(&(from, to)) {
            let (ways, copied) = (*ways, known.len() as u64);
            path.extend(known);
            return if self.step(copied) { ways } else { MANY };
        }
        let start = path.len();
        let mut ways = 0;
        self.visiting.insert(from);
        let calls = self.of_function.get(&from).cloned().unwrap_or_default();
        for call in calls {
            ways += self.ways_from_call(call, to, path);
            if ways > 1 {
                break;
            }
        }
        self.visiting.remove(&from);
        if ways != 1 {
            path.truncate(start);
        }
        let found = path.get(start..).unwrap_or_default().to_vec();
        if !self.step(REMEMBERED + found.len() as u64) {
            return MANY;
        }
        self.known.insert((from, to), (ways, found));
        ways
    }

    fn ways_from_call(&mut self, call: u64, to: FunctionId, path: &mut Vec<u64>) -> u32 {
        /// Deeper searches would need too much of the thread's stack. No real chain of tail calls is that long.
        const DEEPEST: u32 = 1000;
        if !self.step(1) {
            return MANY;
        }
        if self.depth >= self.max_depth.min(DEEPEST) {
            return 0;
        }
        let Some(called) = self.tail_calls.get(&call) else {
            return 0;
        };
        let called: Vec<FunctionId> = called.iter().copied().collect();
        self.depth += 1;
        let start = path.len();
        path.push(call);
        let mut ways = 0;
        for function in called {
            ways += self.ways_from_function(function, to, path);
            if ways > 1 {
                break;
            }
        }
        if ways != 1 {
            path.truncate(start);
        }
        self.depth -= 1;
        ways
    }
}
