//! Adds one sample profile to another. Also finds the largest count of a profile, and whether the checksums of two
//! profiles differ.
use super::{AddOutcome, Frame, Function, Inlined, NameId, SampleProfile, Samples};
use crate::index_vec::IndexVec;

/// Adds the profile `other`, each count times `weight`, to the profile `sum`, one function at a time. Calls `report`
/// for each function with overflows or with checksums that differ. Returns the ids that the names of `other` have in the
/// sum; `None` if the sum would have more names than a profile can hold.
pub fn absorb(
    sum: &mut SampleProfile,
    mut other: SampleProfile,
    weight: u64,
    mut report: impl FnMut(&SampleProfile, &Function, AddOutcome),
) -> Option<IndexVec<NameId, NameId>> {
    let names = sum.names.insert_all(&other.names)?;
    let name = |id: NameId| names.get(id).copied().unwrap_or(id);
    sum.kind |= other.kind;
    sum.symbols.append(&mut other.symbols);
    sum.symbol_hashes.append(&mut other.symbol_hashes);
    let mut callers = Vec::new();
    let mut additions = sum.additions();
    for function in other.take_functions() {
        callers.clear();
        callers.extend(function.callers.iter().map(|frame| Frame {
            name: name(frame.name),
            ..*frame
        }));
        let mut outcome = AddOutcome::default();
        additions.merge(&callers, &function.samples, name, weight, &mut outcome);
        if outcome != AddOutcome::default() {
            report(&other, &function, outcome);
        }
    }
    drop(additions);
    Some(names)
}

/// The largest count of a profile, and whether the profile has checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The largest count in the profile: of all lines, call targets, vtables and function entries, and of the totals of
    /// all functions.
    pub count: u64,
    /// Whether any function has a checksum.
    pub has_checksums: bool,
}

impl Extremes {
    /// Finds the largest count of a profile, and whether it has checksums.
    pub fn of(profile: &SampleProfile) -> Self {
        let mut extremes = Extremes::default();
        for function in profile.functions() {
            extremes.see(&function.samples);
        }
        extremes
    }

    /// Finds the largest count of one function, and whether it has a checksum.
    pub fn of_function(function: &Function) -> Self {
        let mut extremes = Extremes::default();
        extremes.see(&function.samples);
        extremes
    }

    fn see(&mut self, samples: &Samples) {
        self.has_checksums |= samples.checksum != 0;
        let lines = samples.body.iter().map(|line| line.samples);
        let targets = samples.targets.iter().chain(&samples.vtables);
        let counts = lines.chain(targets.map(|target| target.count));
        let most = counts.max().unwrap_or(0);
        self.count = self.count.max(most).max(samples.total).max(samples.head);
        for inlined in &samples.inlined {
            self.see(&inlined.samples);
        }
    }
}

/// Whether there is a function, inlined or not, whose checksums differ between the two profiles.
pub fn checksums_differ(one: &SampleProfile, two: &SampleProfile) -> bool {
    let id = |id: NameId| one.names.find(two.names.get(id));
    two.functions().iter().any(|theirs| {
        let callers = theirs.callers.iter().map(|frame| {
            Some(Frame {
                name: id(frame.name)?,
                ..*frame
            })
        });
        // If the profile `one` does not have the name of the function or of a caller, the profile does not have the
        // function.
        let (Some(callers), Some(name)) =
            (callers.collect::<Option<Vec<_>>>(), id(theirs.samples.name))
        else {
            return false;
        };
        let mine = one.find(&callers, name);
        mine.and_then(|index| one.functions().get(index))
            .is_some_and(|mine| differ(&mine.samples, &theirs.samples, &id))
    })
}

fn differ(one: &Samples, two: &Samples, id: &impl Fn(NameId) -> Option<NameId>) -> bool {
    one.checksum != two.checksum
        || two.inlined.iter().any(|theirs| {
            let Some(name) = id(theirs.samples.name) else {
                return false;
            };
            let key = |inlined: &Inlined| (inlined.location, inlined.samples.name);
            let found = one
                .inlined
                .binary_search_by_key(&(theirs.location, name), key);
            found
                .ok()
                .and_then(|index| one.inlined.get(index))
                .is_some_and(|mine| differ(&mine.samples, &theirs.samples, id))
        })
}

/// Returns the function's name as LLVM prints it, with its calling context if it has one.
pub fn context_name(profile: &SampleProfile, function: &Function) -> Vec<u8> {
    let mut text = String::new();
    for frame in &function.callers {
        use std::fmt::Write;
        let _ = write!(
            text,
            "{}:{}",
            profile.names.get(frame.name),
            frame.location.line
        );
        if frame.location.discriminator > 0 {
            let _ = write!(text, ".{}", frame.location.discriminator);
        }
        text.push_str(" @ ");
    }
    text.push_str(&profile.names.get(function.samples.name).to_string());
    text.into_bytes()
}

/// Replaces each count of a profile by the result of `change(count)`, for example to apply a weight.
pub fn scale(profile: &mut SampleProfile, change: impl Fn(u64) -> u64) {
    for function in profile.parts_mut().1 {
        scale_samples(&mut function.samples, &change);
    }
}

fn scale_samples(samples: &mut Samples, change: &impl Fn(u64) -> u64) {
    let lines = samples.body.iter_mut().map(|line| &mut line.samples);
    let targets = samples.targets.iter_mut().chain(&mut samples.vtables);
    let counts = lines.chain(targets.map(|target| &mut target.count));
    for count in counts.chain([&mut samples.total, &mut samples.head]) {
        *count = change(*count);
    }
    for inlined in &mut samples.inlined {
        scale_samples(&mut inlined.samples, change);
    }
}
