//! Changes the names of functions: replaces names as a remapping file states, and replaces hashes by names that occur
//! elsewhere in the profile.
use super::{
    AddOutcome, Adding, Frame, FsPass, Location, NameId, ProfileKind, SampleName, SampleProfile,
    Samples,
};
use crate::ids::NameRef;
use crate::index_vec::IndexVec;
use crate::remap::Remapping;
use rustc_hash::FxHashMap;

/// Changes the names of all functions, callees and callers of a profile. Functions that get the same name are added up.
/// For each name, `renamed` has the id of its new name. The table of names does not change.
fn rename(
    profile: SampleProfile,
    renamed: &IndexVec<NameId, NameId>,
    facts: Facts,
    outcome: &mut AddOutcome,
) -> SampleProfile {
    let mut profile = profile;
    let functions = profile.take_functions();
    let name = |id: NameId| renamed.get(id).copied().unwrap_or(id);
    let mut additions = profile.additions();
    for function in functions {
        let callers: Vec<Frame> = match facts {
            Facts::Lost { .. } => Vec::new(),
            Facts::Kept => function
                .callers
                .iter()
                .map(|frame| Frame {
                    name: name(frame.name),
                    ..*frame
                })
                .collect(),
        };
        let samples = &function.samples;
        match facts {
            Facts::Kept => additions.merge(&callers, samples, name, 1, outcome),
            Facts::Lost { mask } => {
                additions.function(&callers, name(samples.name), |adding, _| {
                    merge_counts(adding, samples, name, mask, outcome);
                });
            }
        }
    }
    drop(additions);
    profile
}

/// Whether to keep checksums, attributes, calling contexts and vtables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Facts {
    Kept,
    /// Checksums, attributes, calling contexts and vtables are lost. Discriminators lose the bits that are not in
    /// `mask`, except in call sites. LLVM's `remapSamples` does the same.
    Lost {
        mask: u32,
    },
}

/// Adds the counts of the samples `other`, but not their checksum, attributes and vtables. `name` returns the id of the
/// new name for the id of an old name. Discriminators lose the bits that are not in `mask`, except in call sites.
fn merge_counts(
    adding: &mut Adding<'_>,
    other: &Samples,
    name: impl Fn(NameId) -> NameId + Copy,
    mask: u32,
    outcome: &mut AddOutcome,
) {
    let cut = |at: Location| Location::new(at.line, at.discriminator & mask);
    let sum = adding.samples();
    outcome.accumulate(&mut sum.total, other.total, 1);
    outcome.accumulate(&mut sum.head, other.head, 1);
    for line in &other.body {
        adding.add_line(cut(line.location), line.samples, 1, outcome);
    }
    for target in &other.targets {
        let location = cut(target.location);
        adding.add_target(location, name(target.name), target.count, 1, outcome);
    }
    for inlined in &other.inlined {
        let callee = name(inlined.samples.name);
        adding.enter(inlined.location, callee, |inner, _| {
            merge_counts(inner, &inlined.samples, name, mask, outcome);
        });
    }
}

/// Changes the names of functions, callees and inlined functions as a remapping file states.
///
/// `as_llvm` imitates LLVM's tool: calling contexts, checksums, attributes and vtables are lost. The discriminators of
/// lines lose all bits above those of the given pass, even if the profile does not come from FS-AFDO.
pub fn remap(
    profile: SampleProfile,
    remapping: &Remapping,
    as_llvm: Option<FsPass>,
) -> (SampleProfile, AddOutcome) {
    let facts = as_llvm.map_or(Facts::Kept, |pass| Facts::Lost { mask: pass.mask() });
    let new_name = |name: SampleName<'_>| match name {
        SampleName::Text(text) => remapping.get(text).map(<[u8]>::to_vec),
        SampleName::Guid(_) => None,
    };
    with_new_names(profile, new_name, facts)
}

/// Gives new names to functions, callers, callees, inlined functions, virtual tables and the list of the program's
/// symbols. `new_name` returns the new name, or `None` to keep the old one. Where the profile has the hash of a name, it
/// gets the hash of the new one.
pub fn rename_all(
    profile: SampleProfile,
    new_name: impl Fn(SampleName<'_>) -> Option<Vec<u8>>,
) -> (SampleProfile, AddOutcome) {
    let mut profile = profile;
    let symbols = std::mem::take(&mut profile.symbols).into_iter();
    let renamed = symbols.map(|symbol| {
        let new = new_name(SampleName::Text(&symbol));
        new.map_or(symbol, Vec::into_boxed_slice)
    });
    profile.symbols = renamed.collect();
    let hashes = std::mem::take(&mut profile.symbol_hashes).into_iter();
    let renamed = hashes.map(|hash| {
        let new = new_name(SampleName::Guid(NameRef(hash)));
        new.map_or(hash, |new| NameRef::of(&new).0)
    });
    profile.symbol_hashes = renamed.collect();
    with_new_names(profile, new_name, Facts::Kept)
}

fn with_new_names(
    mut profile: SampleProfile,
    new_name: impl Fn(SampleName<'_>) -> Option<Vec<u8>>,
    facts: Facts,
) -> (SampleProfile, AddOutcome) {
    let mut outcome = AddOutcome::default();
    let is_text = |name: &SampleName<'_>| matches!(name, SampleName::Text(_));
    let new_names: Vec<_> = profile
        .names
        .iter()
        .map(|(id, name)| (id, is_text(&name), new_name(name)))
        .collect();
    let mut renamed: IndexVec<NameId, NameId> = IndexVec::new();
    for (id, is_text, new) in new_names {
        let new = new.as_ref().map(|new| match is_text {
            true => SampleName::Text(new),
            false => SampleName::Guid(NameRef::of(new)),
        });
        let (name, facts) = profile.names.variant(id);
        let new = match renamed.get(name) {
            // The name of a variant comes before the variant.
            Some(&name) => profile.names.insert_variant(name, facts),
            None => new.and_then(|new| profile.intern(new)),
        };
        renamed.push(new.unwrap_or(id));
    }
    let profile = rename(profile, &renamed, facts, &mut outcome);
    (profile, outcome)
}

/// Replaces hashes by names: if a function occurs in the profile both with its name and with only the hash of the name,
/// the name replaces the hash. Returns the number of hashes that were replaced.
pub fn unify_hashes(profile: &mut SampleProfile, outcome: &mut AddOutcome) -> u64 {
    let mut hashes: FxHashMap<NameRef, NameId> = FxHashMap::default();
    for (id, name) in profile.names.iter() {
        if let SampleName::Guid(guid) = name {
            hashes.insert(guid, id);
        }
    }
    if hashes.is_empty() {
        return 0;
    }
    let mut renamed: IndexVec<NameId, NameId> = profile.names.iter().map(|(id, _)| id).collect();
    let mut found = 0;
    let mut left = hashes.len();
    for (id, name) in profile.names.iter() {
        if let SampleName::Text(text) = name
            && let Some(hash) = hashes.get(&NameRef::of(text))
            && let Some(slot) = renamed.get_mut(*hash)
        {
            *slot = id;
            found += 1;
            left -= 1;
        }
    }
    if found > 0 {
        *profile = rename(std::mem::take(profile), &renamed, Facts::Kept, outcome);
    }
    if left == 0 {
        profile.kind = profile.kind.without(ProfileKind::MD5_NAMES);
    }
    found
}
