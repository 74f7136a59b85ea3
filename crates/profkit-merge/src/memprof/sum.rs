//! Adds up heap profiles that have function records: allocations with the same call stack are added.
use profkit_data::memprof::{AllocSite, CallSite, FrameId, MemProfile, Record, StackId};
use rustc_hash::FxHashMap;

/// What to do with an allocation context that the sum already contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextRule {
    /// Add the statistics. Compilers may copy a call, so a profile may have a context several times: the first copy is
    /// added to the first copy in the sum, the second to the second, and so on.
    #[default]
    Add,
    /// Append the context as a separate context, as LLVM 19 does.
    Append,
}

/// A sum of heap profiles.
#[derive(Clone, Debug, Default)]
pub struct MemProfSum {
    rule: ContextRule,
    profile: MemProfile,
    alloc_sites: FxHashMap<(u64, StackId, u32), usize>,
    call_sites: FxHashMap<(u64, StackId, u32), usize>,
    added: usize,
}

impl MemProfSum {
    /// Makes an empty sum of heap profiles.
    pub fn new(rule: ContextRule) -> Self {
        MemProfSum {
            rule,
            ..MemProfSum::default()
        }
    }

    /// Adds a profile. The caller must add profiles in the order of their runs, the earliest first.
    pub fn add(&mut self, later: &MemProfile) {
        self.added += 1;
        let mut scratch = Vec::new();
        // All frames and call stacks are added in the order of the profile, including those that no record uses.
        for &frame in later.frames() {
            self.profile.add_frame(frame);
        }
        for stack in later.stacks().ids() {
            self.profile.copy_stack(later, stack, &mut scratch);
        }
        for record in later.records() {
            match self.rule {
                ContextRule::Append => self.profile.copy_record(later, record),
                ContextRule::Add => self.add_record(later, record, &mut scratch),
            }
        }
        match (&mut self.profile.data_access, &later.data_access) {
            (Some(own), Some(later)) => own.add(later),
            (own @ None, Some(later)) => *own = Some(later.clone()),
            (_, None) => {}
        }
        for (&function, name) in &later.names {
            self.profile
                .names
                .entry(function)
                .or_insert_with(|| name.clone());
        }
    }

    fn add_record(&mut self, later: &MemProfile, record: &Record, scratch: &mut Vec<FrameId>) {
        let function = record.function;
        let mut times: FxHashMap<StackId, u32> = FxHashMap::default();
        let mut nth = |stack: StackId| {
            let times = times.entry(stack).or_insert(0);
            *times += 1;
            *times
        };
        self.profile.record_mut(function);
        for site in &record.alloc_sites {
            let stack = self.profile.copy_stack(later, site.stack, scratch);
            let own = self.profile.record_mut(function);
            let next = own.alloc_sites.len();
            let key = (function, stack, nth(stack));
            let index = *self.alloc_sites.entry(key).or_insert(next);
            match own.alloc_sites.get_mut(index) {
                Some(own) => own.block.add_later(&site.block),
                None => own.alloc_sites.push(AllocSite {
                    stack,
                    ..site.clone()
                }),
            }
        }
        let mut times: FxHashMap<StackId, u32> = FxHashMap::default();
        let mut nth = |stack: StackId| {
            let times = times.entry(stack).or_insert(0);
            *times += 1;
            *times
        };
        for site in &record.call_sites {
            let stack = self.profile.copy_stack(later, site.stack, scratch);
            let own = self.profile.record_mut(function);
            let next = own.call_sites.len();
            let key = (function, stack, nth(stack));
            let index = *self.call_sites.entry(key).or_insert(next);
            match own.call_sites.get_mut(index) {
                Some(own) => {
                    for callee in &site.callees {
                        if !own.callees.contains(callee) {
                            own.callees.push(*callee);
                        }
                    }
                }
                None => own.call_sites.push(CallSite {
                    stack,
                    callees: site.callees.clone(),
                }),
            }
        }
    }

    /// The number of profiles that were added.
    pub fn added(&self) -> usize {
        self.added
    }

    /// Returns the summed heap profile.
    pub fn finish(self) -> MemProfile {
        self.profile
    }
}
