//! Sample profiles cut down.
use super::choice::{self, Candidate};
use super::{Amount, ColdRule, Filter, Filtered, Unit};
use crate::heat::{Heat, HeatLimits};
use crate::samples::numbers;
use profkit_data::sample::{
    ProfileKind, SampleName, SampleProfile, Samples, context_name, rename_all, summarize,
};
use std::mem;

impl Filter {
    /// Cuts a sample profile down: its functions with all that was inlined into them, or in a profile with contexts each
    /// context of a function on its own.
    pub fn samples(&self, profile: &mut SampleProfile) -> Filtered {
        let mut filtered = Filtered::default();
        if profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
            filtered.unit = Unit::CallingContext;
        }
        self.by_name(profile, &mut filtered);
        let by_summary = self.cold == Some(ColdRule::Summary);
        let limits = by_summary.then(|| HeatLimits::of(&summarize(profile)));
        let kept = {
            let names = names(profile);
            let mut all = candidates(profile, &names);
            let largest: Vec<u64> = all.iter().map(|one| one.max).collect();
            let is_cold = |index: usize| {
                let heat = largest.get(index).zip(limits);
                heat.is_none_or(|(&largest, limits)| limits.heat(largest) <= Heat::Cold)
            };
            self.choose_cold(&mut all, is_cold, &mut filtered);
            self.choose_hottest(&mut all, &mut filtered);
            filtered.kept = choice::kept(&all);
            all.into_iter().map(|one| one.kept).collect::<Vec<_>>()
        };
        retain(profile, kept);
        if self.drop_values {
            let (_, functions) = profile.parts_mut();
            for function in functions {
                filtered.values += clear_values(&mut function.samples);
            }
            profile.kind = profile.kind.without(ProfileKind::HAS_VTABLES);
        }
        if self.drop_symbols {
            filtered.symbols = profile.symbol_count() as u64;
            profile.clear_symbols();
        }
        if let Some(redaction) = &self.redact {
            let new_name = |name: SampleName<'_>| Some(redaction.name(name.guid()));
            *profile = rename_all(mem::take(profile), new_name).0;
            filtered.redacted = true;
        }
        filtered
    }

    fn by_name(&self, profile: &mut SampleProfile, filtered: &mut Filtered) {
        let kept = {
            let names = names(profile);
            let mut all = candidates(profile, &names);
            let keeps = |index: usize| {
                let function = profile.functions().get(index);
                function.is_some_and(|one| self.keeps(profile.names.get(one.samples.name)))
            };
            self.choose_by_name(&mut all, keeps, filtered);
            all.into_iter().map(|one| one.kept).collect()
        };
        retain(profile, kept);
    }
}

impl Filtered {
    /// Notes which functions a writer left out to stay within a size. `profile` is what it wrote.
    pub fn note_size(&mut self, profile: &SampleProfile) {
        let functions = profile.functions();
        let left = Amount {
            units: functions.len() as u64,
            counts: functions.iter().map(|one| numbers(&one.samples).sum).sum(),
        };
        self.by_size += Amount {
            units: self.kept.units.saturating_sub(left.units),
            counts: self.kept.counts.saturating_sub(left.counts),
        };
        self.kept = left;
    }
}

/// The whole names of the functions, with their contexts.
fn names(profile: &SampleProfile) -> Vec<Vec<u8>> {
    let functions = profile.functions().iter();
    functions.map(|one| context_name(profile, one)).collect()
}

fn candidates<'n>(profile: &SampleProfile, names: &'n [Vec<u8>]) -> Vec<Candidate<'n>> {
    let functions = profile.functions().iter().zip(names);
    let candidate = |(function, name): (&profkit_data::sample::Function, &'n Vec<u8>)| {
        let numbers = numbers(&function.samples);
        Candidate {
            name,
            sum: numbers.sum,
            max: numbers.max,
            kept: true,
        }
    };
    functions.map(candidate).collect()
}

fn retain(profile: &mut SampleProfile, kept: Vec<bool>) {
    if kept.contains(&false) {
        let mut kept = kept.into_iter();
        profile.retain(|_| kept.next().unwrap_or(true));
    }
}

fn clear_values(samples: &mut Samples) -> u64 {
    let mut cleared = 0;
    let mut pending = vec![samples];
    while let Some(samples) = pending.pop() {
        cleared += (samples.targets.len() + samples.vtables.len()) as u64;
        samples.targets.clear();
        samples.vtables.clear();
        pending.extend(samples.inlined.iter_mut().map(|one| &mut one.samples));
    }
    cleared
}
