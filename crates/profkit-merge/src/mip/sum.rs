//! Sums of MIP files that do not depend on the order of inputs.
use super::engine::{
    Index, MipMergeOptions, MipOutcome, MipTarget, MipWorker, Profiles, add_raw, event_of, finish,
    other_profile, read,
};
use crate::Inputs;
use crate::driver::{Driver, InputStore, ReportPart};
use crate::error::MergeError;
use crate::report::{Action, MipDetails, Reason};
use profkit_data::mip::{Identity, MipProfile, add_profile};
use std::collections::{BTreeMap, btree_map};

/// What is known of inputs when they were read: the content of a part of a merge.
#[derive(Clone, Debug, Default)]
pub(crate) struct MipSum {
    /// The counts of the inputs by build, each with the first of them.
    pub(crate) profiles: BTreeMap<Identity, (usize, MipProfile)>,
    pub(crate) details: MipDetails,
    pub(crate) report: ReportPart,
    /// The first build of which two profiles have different functions: their sum would depend on the order.
    pub(crate) contradiction: Option<Identity>,
    /// The digest of each input that could be read.
    pub(crate) contents: Vec<(usize, u64)>,
}

impl MipSum {
    /// Changes the numbers of inputs. `new` must keep their order.
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        for (first, _) in self.profiles.values_mut() {
            *first = new(*first);
        }
    }

    /// Adds everything but the report.
    pub(crate) fn absorb(&mut self, other: MipSum) {
        self.details.absorb(&other.details);
        for (identity, (first, profile)) in other.profiles {
            self.add(identity, first, profile);
        }
        let both = [self.contradiction.take(), other.contradiction];
        self.contradiction = both.into_iter().flatten().min();
    }

    fn add(&mut self, identity: Identity, first: usize, profile: MipProfile) {
        match self.profiles.entry(identity) {
            btree_map::Entry::Vacant(place) => {
                place.insert((first, profile));
            }
            btree_map::Entry::Occupied(mut place) => {
                let (mine, sum) = place.get_mut();
                *mine = first.min(*mine);
                if !add_profile(sum, &profile).is_empty() {
                    let build = Some(place.key().clone());
                    self.contradiction = [self.contradiction.take(), build]
                        .into_iter()
                        .flatten()
                        .min();
                }
            }
        }
    }

    /// Finishes the merge. `inputs` has the names of the inputs.
    pub(crate) fn finish(
        self,
        targets: Vec<MipTarget>,
        inputs: &dyn Inputs,
        options: &MipMergeOptions,
    ) -> MipOutcome {
        let mut part = self.report;
        let known = Index::new(&targets);
        let mut profiles = Profiles::default();
        for (identity, (first, profile)) in self.profiles {
            if options.take_profiles || known.find_identity(&identity).is_some() {
                profiles.sums.insert(identity, (first, profile));
            } else {
                let error = other_profile(&identity);
                let reason = Reason::OtherBuild;
                part.log
                    .push(event_of(first, Action::Dropped, reason, &error));
            }
        }
        let worker = MipWorker {
            profiles,
            details: self.details,
            ..MipWorker::default()
        };
        finish(targets, worker, part, inputs)
    }
}

/// Reads inputs that are no parts of merges. `targets` are the profiles of the builds that they may be of.
pub(crate) fn collect(
    targets: &[MipTarget],
    inputs: &dyn Inputs,
    options: &MipMergeOptions,
) -> Result<MipSum, MergeError> {
    let mut bare = targets.to_vec();
    bare.iter_mut()
        .for_each(|target| target.profile.clear_runs());
    // Profiles among the inputs get no raw files: they may be in another part than these.
    let store = InputStore::new(&inputs);
    let (mut targets, mut worker, mut part) = read(bare, &store, options, false, None)?;
    let unsound = std::mem::take(&mut worker.unsound);
    part.absorb(unsound.report(&Driver::new(&store, &options.run))?);
    let mut sum = MipSum {
        report: part,
        contradiction: worker.profiles.contradiction.take(),
        contents: std::mem::take(&mut worker.contents),
        ..MipSum::default()
    };
    let firsts = std::mem::take(&mut worker.first);
    add_raw(&mut targets, &mut worker);
    sum.details = worker.details;
    for (target, first) in targets.into_iter().zip(firsts) {
        if let Some(first) = first {
            sum.add(target.profile.identity.clone(), first, target.profile);
        }
    }
    for (identity, (first, profile)) in worker.profiles.sums {
        sum.add(identity, first, profile);
    }
    Ok(sum)
}
