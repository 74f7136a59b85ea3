//! Replaces the names in a sample profile by their hashes.
use profkit_data::ids::NameRef;
use profkit_data::sample::{AddOutcome, Frame, SampleName, SampleProfile};

/// Returns the profile with a hash in place of every name. The result can be compared with a profile from a file that
/// stores hashes instead of names.
pub fn hashed(profile: &SampleProfile) -> SampleProfile {
    let mut hashed = SampleProfile::new();
    hashed.kind = profile.kind;
    let ids: Vec<_> = profile
        .names
        .iter()
        .map(|(_, name)| {
            let guid = match name {
                SampleName::Text(text) => NameRef::of(text),
                SampleName::Guid(guid) => guid,
            };
            hashed.intern(SampleName::Guid(guid)).unwrap()
        })
        .collect();
    let outcome = &mut AddOutcome::default();
    let mut additions = hashed.additions();
    for function in profile.functions() {
        let callers: Vec<_> = function
            .callers
            .iter()
            .map(|frame| Frame {
                name: ids[frame.name.index()],
                ..*frame
            })
            .collect();
        additions.merge(
            &callers,
            &function.samples,
            |name| ids[name.index()],
            1,
            outcome,
        );
    }
    drop(additions);
    hashed
}
