//! Instrumentation profiles cut down.
use super::choice::{self, Candidate, largest_fitting, ranked};
use super::{ColdRule, Filter, Filtered, known};
use crate::heat::{Heat, HeatLimits};
use profkit_data::instr::{FunctionRef, FunctionTable, InstrProfile};
use profkit_data::summary::SummaryBuilder;
use rustc_hash::FxHashSet;

impl Filter {
    /// Cuts an instrumentation profile down. The heap profile in it is not changed ([`heap`](Self::heap) does that).
    pub fn instr(&self, profile: &mut InstrProfile) -> Filtered {
        let mut filtered = Filtered::default();
        let kept = {
            let functions: Vec<_> = functions(profile).collect();
            let mut all: Vec<_> = functions.iter().map(candidate).collect();
            let keeps = |index: usize| {
                let function = functions.get(index);
                function.is_some_and(|one| self.keeps(known(one.name(), one.name_ref())))
            };
            self.choose_by_name(&mut all, keeps, &mut filtered);
            let [first, second] = match self.cold {
                Some(ColdRule::Summary) => limits(&functions, &all),
                _ => Default::default(),
            };
            let is_cold = |index: usize| {
                let function = functions.get(index);
                let mut records = function.into_iter().flat_map(FunctionRef::records);
                records.all(|record| {
                    let in_second = record.func_hash.is_context_sensitive();
                    let limits = if in_second { second } else { first };
                    let largest = record.counts.iter().max().copied().unwrap_or(0);
                    !record.is_pseudo() && limits.is_none_or(|it| it.heat(largest) <= Heat::Cold)
                })
            };
            self.choose_cold(&mut all, is_cold, &mut filtered);
            self.choose_hottest(&mut all, &mut filtered);
            filtered.kept = choice::kept(&all);
            all.into_iter().map(|one| one.kept).collect::<Vec<_>>()
        };
        if kept.contains(&false) {
            let mut kept = kept.into_iter();
            profile.retain(|_| kept.next().unwrap_or(true));
        }
        if self.drop_values {
            filtered.values = profile.clear_values();
        }
        if let Some(redaction) = &self.redact {
            profile.rename(|name, _| Some(redaction.name(name)));
            filtered.redacted = true;
        }
        filtered
    }
}

impl Filtered {
    /// Drops the functions with the smallest sums of counts until the file has at most `limit` bytes. `size` returns the
    /// size of the file of a profile. Returns whether a profile with one function fits.
    ///
    /// # Errors
    /// The errors of `size`.
    pub fn fit_instr<E>(
        &mut self,
        profile: &mut InstrProfile,
        limit: u64,
        mut size: impl FnMut(&InstrProfile) -> Result<u64, E>,
    ) -> Result<bool, E> {
        if size(profile)? <= limit {
            return Ok(true);
        }
        let traces = profile.traces.clone();
        let tables = std::mem::take(&mut profile.tables);
        let whole: Vec<_> = tables.iter().flat_map(FunctionTable::functions).collect();
        let all: Vec<_> = whole.iter().map(candidate).collect();
        let order = ranked(&all);
        let cut_to = |profile: &mut InstrProfile, count: usize| {
            let kept: FxHashSet<usize> = order.iter().take(count).copied().collect();
            profile.tables.clone_from(&tables);
            profile.traces.clone_from(&traces);
            let mut index = 0..;
            profile.retain(|_| index.next().is_some_and(|index| kept.contains(&index)));
        };
        let found = largest_fitting(order.len().saturating_sub(1), |count| {
            cut_to(profile, count);
            size(profile).map(|size| size <= limit)
        })?;
        let count = found.unwrap_or(0);
        cut_to(profile, count);
        self.cut_after(&all, order.iter().skip(count));
        Ok(found.is_some())
    }
}

fn functions(profile: &InstrProfile) -> impl Iterator<Item = FunctionRef<'_>> {
    profile.tables.iter().flat_map(FunctionTable::functions)
}

/// A record with a marker for hot or warm instead of counters has no counts.
fn candidate<'p>(function: &FunctionRef<'p>) -> Candidate<'p> {
    let records = function.records().filter(|record| !record.is_pseudo());
    let counts = records.flat_map(|record| record.counts);
    let (sum, max) = counts.fold((0, 0), |(sum, max), &count| {
        (sum + u128::from(count), count.max(max))
    });
    let name = function.name();
    Candidate {
        name,
        sum,
        // A marker says that the function ran.
        max: match function.records().any(|record| record.is_pseudo()) {
            true => u64::MAX,
            false => max,
        },
        kept: true,
    }
}

/// The limits of the first and of the second stage, whose records have a summary of their own.
fn limits(functions: &[FunctionRef<'_>], all: &[Candidate<'_>]) -> [Option<HeatLimits>; 2] {
    let [mut first, mut second] = [(); 2].map(|()| SummaryBuilder::new());
    let kept = functions.iter().zip(all).filter(|(_, one)| one.kept);
    for record in kept.flat_map(|(function, _)| function.records()) {
        if record.func_hash.is_context_sensitive() {
            second.add_counts(record.counts);
        } else {
            first.add_counts(record.counts);
        }
    }
    [first, second].map(|stage| Some(HeatLimits::of(&stage.finish())))
}
