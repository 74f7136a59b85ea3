//! What parts hold, by the family of the profiles.
use super::key::Key;
use crate::driver::ReportPart;
use crate::engine::{Collected, Group};
use crate::mip::MipSum;
use crate::sample::SampleSum;
use profkit_data::detect::Family;
use profkit_data::ids::BuildId;
use profkit_data::instr::InstrKind;
use profkit_data::mip::Identity;
use std::collections::BTreeSet;

/// What is known of inputs when they were read and nothing was decided yet.
#[allow(
    clippy::large_enum_variant,
    reason = "a merge has few values of this type"
)]
pub(crate) enum Sum {
    Instr(Collected),
    Sample(SampleSum),
    Mip(MipSum),
}

impl Sum {
    pub(crate) fn of(family: Family) -> Self {
        match family {
            Family::Sample => Sum::Sample(SampleSum::default()),
            Family::Mip => Sum::Mip(MipSum::default()),
            _ => Sum::Instr(Collected::default()),
        }
    }

    /// What is known of inputs of which none was sound.
    pub(crate) fn of_report(family: Family, report: ReportPart) -> Self {
        let mut sum = Sum::of(family);
        *sum.report_mut() = report;
        sum
    }

    pub(crate) fn into_report(mut self) -> ReportPart {
        std::mem::take(self.report_mut())
    }

    /// Whether no input was sound: the sum fits those of each family.
    pub(crate) fn is_neutral(&self) -> bool {
        self.report().families.is_empty()
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Sum::Instr(_) => Family::Instr,
            Sum::Sample(_) => Family::Sample,
            Sum::Mip(_) => Family::Mip,
        }
    }

    pub(crate) fn report(&self) -> &ReportPart {
        match self {
            Sum::Instr(sum) => &sum.report,
            Sum::Sample(sum) => &sum.report,
            Sum::Mip(sum) => &sum.report,
        }
    }

    fn report_mut(&mut self) -> &mut ReportPart {
        match self {
            Sum::Instr(sum) => &mut sum.report,
            Sum::Sample(sum) => &mut sum.report,
            Sum::Mip(sum) => &mut sum.report,
        }
    }

    /// The digest of each input that was read, by its number.
    pub(crate) fn contents(&self) -> &[(usize, u64)] {
        match self {
            Sum::Instr(sum) => &sum.contents,
            Sum::Sample(sum) => &sum.contents,
            Sum::Mip(sum) => &sum.contents,
        }
    }

    /// The number of functions, and the build ids of the programs.
    pub(crate) fn facts(&self) -> (u64, Vec<BuildId>) {
        match self {
            Sum::Instr(sum) => {
                let tables = sum.groups.iter().map(|group| group.acc.table());
                let ids = sum.groups.iter().flat_map(|group| &group.binary_ids);
                let ids: BTreeSet<_> = ids.cloned().collect();
                let functions = tables.map(|table| table.record_count() as u64);
                (functions.sum(), ids.into_iter().collect())
            }
            Sum::Sample(sum) => (sum.profile.functions().len() as u64, Vec::new()),
            Sum::Mip(sum) => {
                let profiles = || sum.profiles.values().map(|(_, profile)| profile);
                let ids = profiles().filter_map(|profile| match &profile.identity {
                    Identity::BuildId(id) => Some(id.clone()),
                    Identity::ModuleHash(_) => None,
                });
                let functions = profiles().map(|profile| profile.function_counts().0);
                (functions.sum(), ids.collect())
            }
        }
    }

    /// Whether all sound inputs are heap profiles.
    pub(crate) fn is_heap_only(&self) -> bool {
        let Sum::Instr(sum) = self else {
            return false;
        };
        let mut groups = sum.groups.iter();
        sum.heap.is_some()
            && groups.all(|group| group.inputs.is_empty() && group.memprof.sum.is_none())
    }

    /// The kind of the first instrumentation profile with functions.
    pub(crate) fn instr_kind(&self) -> Option<InstrKind> {
        let Sum::Instr(sum) = self else {
            return None;
        };
        let mut inputs = sum.groups.iter().flat_map(|group| &group.inputs);
        let known = inputs.find(|input| input.has_functions && !input.kind.is_unknown());
        known.map(|input| input.kind)
    }

    /// Changes the numbers of inputs. `new` must keep their order.
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        match self {
            Sum::Instr(sum) => sum.renumber(new),
            Sum::Sample(sum) => sum.renumber(new),
            Sum::Mip(sum) => sum.renumber(new),
        }
        let report = self.report_mut();
        for members in report.families.values_mut() {
            members.renumber(new);
        }
        report.log.renumber(new);
    }

    /// Adds the sum of other inputs of the same family. The inputs of both must have been numbered together.
    pub(crate) fn absorb(&mut self, mut other: Sum, key: &Key) {
        let report = std::mem::take(other.report_mut());
        self.report_mut().absorb(report);
        match (&mut *self, other) {
            (Sum::Instr(sum), Sum::Instr(other)) => sum.absorb(other, key),
            (Sum::Sample(sum), Sum::Sample(other)) => {
                if let Err(event) = sum.absorb(other) {
                    sum.report.log.push(*event);
                }
            }
            (Sum::Mip(sum), Sum::Mip(other)) => sum.absorb(other),
            // The caller keeps families apart.
            (Sum::Instr(_) | Sum::Sample(_) | Sum::Mip(_), _) => {}
        }
        self.report_mut().log.settle();
    }
}

impl Collected {
    fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        for group in &mut self.groups {
            group.acc.renumber(new);
            for one in &mut group.inputs {
                one.input = new(one.input);
            }
            for (input, _) in &mut group.indexed {
                *input = new(*input);
            }
        }
        for members in self.generations.origins.values_mut() {
            members.renumber(new);
        }
    }

    fn absorb(&mut self, other: Collected, key: &Key) {
        for group in other.groups {
            match self.groups.iter_mut().find(|mine| mine.ids == group.ids) {
                Some(mine) => mine.absorb(group, false),
                None => self.groups.push(group),
            }
        }
        self.generations.absorb(other.generations);
        match (&mut self.heap, other.heap) {
            (Some(sum), Some(other)) => sum.absorb(&other),
            (sum @ None, other) => *sum = other,
            (Some(_), None) => {}
        }
        for (group, sample) in other.traces {
            self.traces
                .entry(group)
                .or_default()
                .absorb(sample, key.traces);
        }
    }

    /// The groups in the order in which parts hold them.
    pub(crate) fn sorted_groups(&self) -> Vec<&Group> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by(|a, b| a.ids.cmp(&b.ids));
        groups
    }
}
