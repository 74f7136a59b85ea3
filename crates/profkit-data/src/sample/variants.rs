//! Functions whose checksums differ, kept apart until all inputs are known: then the checksum with the most samples is
//! kept, whatever the order of the inputs.
use super::flat::Facts;
use super::{
    AddOutcome, Adding, Frame, NameId, ProfileKind, SampleName, SampleNames, SampleProfile, Samples,
};
use crate::ids::NameRef;
use crate::index_vec::IndexVec;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A function that [`unite_variants`] left out, wherever it was, because more samples have another checksum of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the function.
    pub name: Vec<u8>,
    /// The ids of the function with this checksum, one for each set of attributes, in the profile that was given.
    pub variants: Vec<NameId>,
    /// The checksum that was left out.
    pub checksum: u64,
    /// The samples of the function with this checksum.
    pub samples: u128,
    /// The checksum that was kept.
    pub kept_checksum: u64,
    /// The samples of the function with the checksum that was kept.
    pub kept_samples: u128,
}

/// Makes a usual profile of one that [keeps variants](SampleProfile::keeping_variants). Of each function, the checksum with
/// the most samples is kept, of equal ones the lower; samples without a checksum are added to it. Attributes are joined. Where
/// a name and its hash both occur, the name replaces the hash. The result has the samples of what was left out in the
/// totals of callers into which it was inlined.
pub fn unite_variants(
    split: SampleProfile,
    outcome: &mut AddOutcome,
) -> (SampleProfile, Vec<LeftOut>) {
    let (mut profile, is_hash) = (split, |name| matches!(name, SampleName::Guid(_)));
    profile.stop_keeping_variants();
    let has_hashes = profile.names.iter().any(|(_, name)| is_hash(name));
    if !has_hashes && profile.names.variants().len() == 0 {
        return (profile, Vec::new());
    }
    let uses = Uses::of(&profile);
    let mut plan = Plan {
        new: (profile.names.iter())
            .map(|(id, _)| profile.names.variant(id))
            .collect(),
        kept: IndexVec::parallel_to(&uses.samples, 0),
    };
    if has_hashes && !plan.name_hashes(&profile.names, &uses) {
        profile.kind = profile.kind.without(ProfileKind::MD5_NAMES);
    }
    let left_out = plan.choose(&profile.names, &uses);
    if !plan.changes_names() {
        return (profile, left_out);
    }
    let functions = profile.take_functions();
    let mut additions = profile.additions();
    for function in functions {
        let Some(name) = plan.kept(function.samples.name) else {
            outcome.mismatches += 1;
            continue;
        };
        let callers = function.callers.iter().map(|frame| Frame {
            name: plan.name(frame.name),
            ..*frame
        });
        let callers: Vec<Frame> = callers.collect();
        additions.function(&callers, name, |adding, _| {
            plan.join(adding, &function.samples, outcome);
        });
    }
    drop(additions);
    (profile, left_out)
}

/// How often the names of a profile are used.
struct Uses {
    is_used: IndexVec<NameId, bool>,
    /// The samples of all functions with this name.
    samples: IndexVec<NameId, u128>,
}

impl Uses {
    fn of(profile: &SampleProfile) -> Self {
        let ids = || profile.names.iter();
        let mut uses = Uses {
            is_used: ids().map(|_| false).collect(),
            samples: ids().map(|_| 0).collect(),
        };
        for function in profile.functions() {
            for frame in &function.callers {
                uses.mark(frame.name);
            }
            uses.see(&function.samples, &profile.names);
        }
        uses
    }

    fn mark(&mut self, name: NameId) {
        let used = self.is_used.get_mut(name);
        used.into_iter().for_each(|used| *used = true);
    }

    fn see(&mut self, samples: &Samples, names: &SampleNames) {
        self.mark(samples.name);
        self.mark(names.variant(samples.name).0);
        if let Some(sum) = self.samples.get_mut(samples.name) {
            *sum += u128::from(samples.total);
        }
        for target in samples.targets.iter().chain(&samples.vtables) {
            self.mark(target.name);
        }
        for inlined in &samples.inlined {
            self.see(&inlined.samples, names);
        }
    }
}

/// The names and checksums that functions get.
struct Plan {
    /// For each name, its new id, and what the old one says.
    new: IndexVec<NameId, (NameId, Facts)>,
    /// For each new id, the checksum that is kept.
    kept: IndexVec<NameId, u64>,
}

impl Plan {
    /// Replaces hashes by names that occur too. Returns whether hashes are left.
    fn name_hashes(&mut self, names: &SampleNames, uses: &Uses) -> bool {
        let is_used = |id: &NameId| uses.is_used.get(*id).copied().unwrap_or(false);
        let plain = || {
            let names = names.iter().filter(|(id, _)| is_used(id));
            names.filter(|&(id, _)| names_itself(&self.new, id))
        };
        let mut hashes: FxHashMap<NameRef, Option<NameId>> = FxHashMap::default();
        for (_, name) in plain() {
            if let SampleName::Guid(guid) = name {
                hashes.insert(guid, None);
            }
        }
        for (id, name) in plain() {
            if let SampleName::Text(text) = name
                && let Some(found) = hashes.get_mut(&NameRef::of(text))
            {
                *found = Some(id);
            }
        }
        for (id, name) in names.iter() {
            if let SampleName::Guid(guid) = name
                && let Some(&Some(text)) = hashes.get(&guid)
                && let Some((new, _)) = self.new.get_mut(id)
            {
                *new = text;
            }
        }
        hashes.values().any(Option::is_none)
    }

    fn choose(&mut self, names: &SampleNames, uses: &Uses) -> Vec<LeftOut> {
        let mut sums: BTreeMap<(NameId, u64), (u128, Vec<NameId>)> = BTreeMap::new();
        for (id, (&(new, facts), &samples)) in names
            .iter()
            .map(|(id, _)| id)
            .zip(self.new.iter().zip(&uses.samples))
        {
            let is_used = uses.is_used.get(id).copied().unwrap_or(false);
            if is_used && facts.checksum != 0 {
                let (sum, variants) = sums.entry((new, facts.checksum)).or_default();
                *sum += samples;
                variants.push(id);
            }
        }
        let mut best: FxHashMap<NameId, (u128, u64)> = FxHashMap::default();
        for (&(name, checksum), &(samples, _)) in &sums {
            let (most, kept) = best.entry(name).or_insert((samples, checksum));
            // Checksums come in ascending order.
            if samples > *most {
                (*most, *kept) = (samples, checksum);
            }
        }
        let mut left_out = Vec::new();
        for ((name, checksum), (samples, variants)) in sums {
            let Some(&(kept_samples, kept_checksum)) = best.get(&name) else {
                continue;
            };
            if let Some(kept) = self.kept.get_mut(name) {
                *kept = kept_checksum;
            }
            if checksum != kept_checksum {
                left_out.push(LeftOut {
                    name: names.get(name).to_string().into_bytes(),
                    variants,
                    checksum,
                    samples,
                    kept_checksum,
                    kept_samples,
                });
            }
        }
        left_out.sort_by(|one, two| (&one.name, one.checksum).cmp(&(&two.name, two.checksum)));
        left_out
    }

    fn changes_names(&self) -> bool {
        let mut ids = self.kept.ids();
        ids.any(|id| !names_itself(&self.new, id))
    }

    fn name(&self, id: NameId) -> NameId {
        self.new.get(id).map_or(id, |(new, _)| *new)
    }

    /// The new name of a function; `None` if the function is left out.
    fn kept(&self, id: NameId) -> Option<NameId> {
        let &(name, facts) = self.new.get(id)?;
        let is_kept = facts.checksum == 0 || self.kept.get(name) == Some(&facts.checksum);
        is_kept.then_some(name)
    }

    fn join(&self, adding: &mut Adding<'_>, other: &Samples, outcome: &mut AddOutcome) {
        let sum = adding.samples();
        if let Some(&(name, facts)) = self.new.get(other.name) {
            sum.attributes |= facts.attributes;
            sum.checksum = self.kept.get(name).copied().unwrap_or(0);
        }
        outcome.accumulate(&mut sum.total, other.total, 1);
        outcome.accumulate(&mut sum.head, other.head, 1);
        for line in &other.body {
            adding.add_line(line.location, line.samples, 1, outcome);
        }
        for target in &other.targets {
            let name = self.name(target.name);
            adding.add_target(target.location, name, target.count, 1, outcome);
        }
        for target in &other.vtables {
            let name = self.name(target.name);
            adding.add_vtable(target.location, name, target.count, 1, outcome);
        }
        for inlined in &other.inlined {
            match self.kept(inlined.samples.name) {
                Some(name) => adding.enter(inlined.location, name, |inner, _| {
                    self.join(inner, &inlined.samples, outcome);
                }),
                None => outcome.mismatches += 1,
            }
        }
    }
}

fn names_itself(new: &IndexVec<NameId, (NameId, Facts)>, id: NameId) -> bool {
    new.get(id).is_some_and(|&(name, _)| name == id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use crate::sample::ext_binary::{self, ExtBinaryOptions};
    use crate::sample::{read, text};

    fn united(inputs: &[&str]) -> (String, Vec<LeftOut>) {
        let mut profile = SampleProfile::keeping_variants();
        for input in inputs {
            let report = read(input.as_bytes(), &mut profile, 1);
            assert_eq!(report.outcome, AddOutcome::default());
        }
        let (profile, left_out) = unite_variants(profile, &mut AddOutcome::default());
        (shown(&profile), left_out)
    }

    fn shown(profile: &SampleProfile) -> String {
        let mut bytes = Vec::new();
        text::write(profile, &text::TextOptions::default(), &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Whatever the order of the inputs.
    fn each_way(inputs: &[&str]) -> (String, Vec<LeftOut>) {
        let (text, left_out) = united(inputs);
        let reversed: Vec<_> = inputs.iter().rev().copied().collect();
        let (other, others) = united(&reversed);
        assert_eq!(text, other);
        assert_eq!(left_out.len(), others.len());
        (text, left_out)
    }

    #[test]
    fn the_checksum_with_the_most_samples_is_kept_wherever_the_function_is() {
        let (text, left_out) = each_way(&[
            "f:5:1\n 1: 5\n !CFGChecksum: 7\n",
            "f:9:1\n 1: 9\n !CFGChecksum: 8\n",
            "g:4:1\n 1: 0\n 2: f:4\n  1: 4\n  !CFGChecksum: 7\n !CFGChecksum: 3\n",
            "g:1:1\n 1: 1\n",
        ]);
        // Seven has 9 samples too, and is lower.
        assert_eq!(
            text,
            "f:5:1\n 1: 5\n !CFGChecksum: 7\ng:5:2\n 1: 1\n 2: f:4\n  1: 4\n  !CFGChecksum: 7\n !CFGChecksum: 3\n"
        );
        let [left_out] = left_out.as_slice() else {
            panic!("{left_out:?}");
        };
        assert_eq!(
            (left_out.checksum, left_out.samples, left_out.kept_samples),
            (8, 9, 9)
        );
    }

    #[test]
    fn attributes_are_joined_and_hashes_get_their_names() {
        let of = |text: &str| {
            let mut profile = SampleProfile::new();
            read(text.as_bytes(), &mut profile, 1).strict().unwrap();
            profile.kind |= ProfileKind::PROBE_BASED;
            let mut bytes = Vec::new();
            let options = ExtBinaryOptions::default().md5_names(true);
            ext_binary::write(&profile, &options, &mut bytes).unwrap();
            bytes
        };
        let inputs = [
            of("f:3:0\n 1: 3\n !CFGChecksum: 7\n"),
            of("f:4:0\n 1: 4\n !CFGChecksum: 8\n"),
            b"f:1:0\n 1: 1\n !CFGChecksum: 7\n !Attributes: 1\n".to_vec(),
            b"f:1:0\n 1: 1\n !CFGChecksum: 7\n !Attributes: 2\n".to_vec(),
        ];
        for order in [[0, 1, 2, 3], [3, 2, 0, 1]] {
            let mut profile = SampleProfile::keeping_variants();
            for input in order {
                read(&inputs[input], &mut profile, 1);
            }
            let (profile, left_out) = unite_variants(profile, &mut AddOutcome::default());
            assert_eq!(
                shown(&profile),
                "f:5:0\n 1: 5\n !CFGChecksum: 7\n !Attributes: 3\n"
            );
            assert!(!profile.kind.contains(ProfileKind::MD5_NAMES));
            assert_eq!(left_out[0].name, b"f");
        }
    }
}
