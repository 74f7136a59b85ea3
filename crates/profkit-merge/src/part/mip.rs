//! The sums of MIP profiles in parts. docs/formats/part.md describes the format.
use super::bytes::{In, Out};
use crate::driver::ReportPart;
use crate::mip::MipSum;
use profkit_data::mip::{MipProfile, MipWriteOptions, add_profile, write};
use profkit_data::{Error, Result};

pub(super) fn encode(sum: &MipSum) -> Result<Out> {
    let mut out = Out::default();
    let details = &sum.details;
    for number in [
        details.raw_parts,
        details.profiles,
        details.runs,
        details.samples_dropped,
        details.calls_not_kept,
    ] {
        out.number(number);
    }
    out.count(sum.profiles.len());
    for (first, profile) in sum.profiles.values() {
        out.count(*first);
        let mut bytes = Vec::new();
        write(&in_order(profile), &MipWriteOptions::new(), &mut bytes)?;
        out.bytes(&bytes);
    }
    Ok(out)
}

/// The profile with its functions sorted, and with tables that have the order of the functions.
fn in_order(profile: &MipProfile) -> MipProfile {
    let bare = || MipProfile {
        identity: profile.identity.clone(),
        width: profile.width,
        section_address: profile.section_address,
        section_size: profile.section_size,
        ..MipProfile::default()
    };
    // Functions that are new are sorted when all were added, and their locations are copied before.
    let (mut sorted, mut ordered) = (bare(), bare());
    add_profile(&mut sorted, profile);
    add_profile(&mut ordered, &sorted);
    ordered
}

pub(super) fn decode(source: &mut In<'_>, inputs: usize, report: ReportPart) -> Result<MipSum> {
    let mut sum = MipSum {
        report,
        ..MipSum::default()
    };
    let details = &mut sum.details;
    for number in [
        &mut details.raw_parts,
        &mut details.profiles,
        &mut details.runs,
        &mut details.samples_dropped,
        &mut details.calls_not_kept,
    ] {
        *number = source.tally()?;
    }
    for _ in 0..source.count(2)? {
        let first = source.input(inputs)?;
        let at = source.0.offset();
        let bytes = source.bytes()?;
        let profile = MipProfile::parse(&bytes).map_err(|error| {
            let offset = at.saturating_add(error.offset().unwrap_or(0));
            Error::new(error.kind(), error.message().to_owned()).at(offset)
        })?;
        let identity = profile.identity.clone();
        if sum.profiles.insert(identity, (first, profile)).is_some() {
            return Err(source.wrong("a build is there twice"));
        }
    }
    Ok(sum)
}
