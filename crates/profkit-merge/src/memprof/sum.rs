//! Adds up heap profiles that have function records: allocations with the same call stack are added.
use profkit_data::memprof::{
    AllocSite, CallSite, FrameId, InlinedAt, MemProfile, Record, StackId, add_histogram,
};
use rustc_hash::FxHashMap;

/// What to do with an allocation context that the sum already contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextRule {
    /// Add the statistics, so that each call stack is one context. A profile may have a call stack several times: it has
    /// one for each build of a program, and for each copy of a call that compilers made.
    #[default]
    Add,
    /// Add the statistics, and keep contexts apart that a profile has several times with the same call stack, as
    /// llvm-profdata does: the first is added to the first one in the sum, the second to the second, and so on.
    AddCopies,
    /// Append the context as a separate context, as LLVM 19 does.
    Append,
}

/// A sum of heap profiles.
#[derive(Clone, Debug, Default)]
pub struct MemProfSum {
    rule: ContextRule,
    /// Whether the order in which profiles are added does not matter.
    unordered: bool,
    profile: MemProfile,
    /// Where the record of a function has the allocations with a call stack. The record may have several of them: if a
    /// function is inlined into itself at the allocation, its record has each context several times, and
    /// [`ContextRule::AddCopies`] keeps copies. The last number counts them.
    alloc_sites: FxHashMap<(u64, StackId, u32), usize>,
    call_sites: FxHashMap<(u64, StackId, u32), usize>,
    inlined: InlinedAt,
    combined: bool,
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

    /// Makes an empty sum that does not depend on the order of the profiles, unless contexts are appended.
    pub(crate) fn unordered(rule: ContextRule) -> Self {
        MemProfSum {
            unordered: true,
            ..Self::new(rule)
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
                ContextRule::Add | ContextRule::AddCopies => {
                    self.add_record(later, record, &mut scratch);
                }
            }
        }
        match (&mut self.profile.data_access, &later.data_access) {
            (Some(own), Some(later)) => own.add(later),
            (own @ None, Some(later)) => *own = Some(later.clone()),
            (_, None) => {}
        }
        for (&function, name) in &later.names {
            let own = self.profile.names.entry(function);
            let own = own.or_insert_with(|| name.clone());
            if self.unordered && name < own {
                own.clone_from(name);
            }
        }
        for (&frame, location) in &later.locations {
            let own = self.profile.locations.entry(frame);
            let own = own.or_insert_with(|| location.clone());
            // Two builds may have a frame at different lines. The order of inputs must not decide which of them stays.
            if location < own {
                own.clone_from(location);
            }
        }
    }

    fn add_record(&mut self, later: &MemProfile, record: &Record, scratch: &mut Vec<FrameId>) {
        let function = record.function;
        let mut seen: FxHashMap<StackId, u32> = FxHashMap::default();
        self.profile.record_mut(function);
        for site in &record.alloc_sites {
            let stack = self.profile.copy_stack(later, site.stack, scratch);
            let repetitions = match self.rule {
                ContextRule::Add => self.inlined.times(&self.profile, stack, function).max(1),
                _ => u32::MAX,
            };
            let seen = seen.entry(stack).or_insert(0);
            let key = (function, stack, *seen % repetitions);
            *seen += 1;
            let own = self.profile.record_mut(function);
            let next = own.alloc_sites.len();
            let index = *self.alloc_sites.entry(key).or_insert(next);
            match own.alloc_sites.get_mut(index) {
                Some(own) => {
                    self.combined = true;
                    match self.unordered {
                        true => own.block.add_unordered(&site.block),
                        false => own.block.add_later(&site.block),
                    }
                    add_histogram(&mut own.histogram, &site.histogram);
                }
                None => own.alloc_sites.push(AllocSite {
                    stack,
                    ..site.clone()
                }),
            }
        }
        let mut seen: FxHashMap<StackId, u32> = FxHashMap::default();
        for site in &record.call_sites {
            let stack = self.profile.copy_stack(later, site.stack, scratch);
            let seen = seen.entry(stack).or_insert(0);
            let key = (function, stack, *seen);
            *seen += u32::from(self.rule != ContextRule::Add);
            let own = self.profile.record_mut(function);
            let next = own.call_sites.len();
            let index = *self.call_sites.entry(key).or_insert(next);
            match own.call_sites.get_mut(index) {
                Some(own) => {
                    self.combined = true;
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

    /// Whether the sum has fewer contexts or calls than the profiles that were added: call stacks that occur several
    /// times became one.
    pub fn has_combined(&self) -> bool {
        self.combined
    }

    /// What was added so far.
    pub(crate) fn profile(&self) -> &MemProfile {
        &self.profile
    }

    /// Returns the summed heap profile.
    pub fn finish(self) -> MemProfile {
        match self.unordered {
            true => self.profile.sorted(),
            false => self.profile,
        }
    }
}
