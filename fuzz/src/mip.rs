//! Fuzzes MIP files: raw files, maps, profiles and YAML.
use crate::source::located;
use profkit_data::mip::{
    Function, ImageFacts, MipMap, MipProfile, MipWriteOptions, ProfileVersion, RawParts, write,
    yaml as text,
};
use profkit_merge::mip::{MipMergeOptions, MipTarget, add_profile, merge_mip};
use profkit_merge::{InputData, Inputs};
use std::sync::OnceLock;

/// The map to which the raw files among the fixtures belong.
const MAP: &[u8] = include_bytes!("../../tests/fixtures/mip/mixed.mipmap");

struct One<'a>(&'a [u8]);

impl Inputs for One<'_> {
    fn len(&self) -> usize {
        1
    }
    fn name(&self, _: usize) -> std::borrow::Cow<'_, str> {
        "input".into()
    }
    fn open<'s>(&'s self, _: usize, _: &mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        Ok(InputData::Borrowed(self.0))
    }
}

/// Reads any bytes as a raw file, and merges them into a profile. The merged profile must be the same after it is
/// written and read again.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn raw(data: &[u8]) {
    let mut parts = 0;
    for part in RawParts::new(data) {
        parts += 1;
        match part {
            Ok(part) => {
                part.damage.iter().for_each(located);
                assert!(part.records.len() <= data.len());
                assert!(part.samples().count() * 8 <= data.len());
            }
            Err(error) => located(&error),
        }
    }
    assert!(parts <= data.len() + 1, "more parts than bytes");
    static EMPTY: OnceLock<MipProfile> = OnceLock::new();
    let empty = EMPTY.get_or_init(|| {
        let map = MipMap::parse(MAP).expect("a fixture");
        let created = MipProfile::create(&map, &ImageFacts::new());
        created.expect("a fixture").profile
    });
    let target = MipTarget {
        name: "profile".to_owned(),
        profile: empty.clone(),
    };
    let one = MipMergeOptions::new().threads(std::num::NonZeroUsize::new(1));
    let outcome = merge_mip(vec![target], &One(data), &one).expect("nobody cancels it");
    for target in &outcome.targets {
        written_and_read(&target.profile);
    }
}

/// Reads any bytes as a map, and makes a profile of it. The profile must be the same after it is written and read
/// again.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn map(data: &[u8]) {
    let created = MipMap::parse(data).and_then(|map| MipProfile::create(&map, &ImageFacts::new()));
    match created {
        Ok(created) => {
            created.dropped.iter().for_each(located);
            written_and_read(&created.profile);
        }
        Err(error) => located(&error),
    }
}

/// Reads any bytes as a profile. It must be possible to write the profile and read it again, to add it to itself, and
/// to write it as YAML.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn profile(data: &[u8]) {
    match MipProfile::parse(data) {
        Ok(profile) => {
            written_and_read(&profile);
            let mut sum = profile.clone();
            add_profile(&mut sum, &profile);
            let mut yaml = Vec::new();
            text::write(&profile, &MipWriteOptions::new(), &mut yaml)
                .expect("version 9 has a place for all");
            let (read, version) = text::parse(&yaml).expect("our own YAML");
            assert_eq!(version, ProfileVersion::V9);
            assert!(
                shape(&read) == shape(&profile),
                "YAML of a profile reads as another"
            );
        }
        Err(error) => located(&error),
    }
}

/// Reads any bytes as YAML. If they are a profile, it must be possible to write the profile and read it again.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn yaml(data: &[u8]) {
    match text::parse(data) {
        Ok((profile, version)) => {
            written_and_read(&profile);
            let mut again = Vec::new();
            if text::write(
                &profile,
                &MipWriteOptions::new().version(version),
                &mut again,
            )
            .is_ok()
            {
                let (read, _) = text::parse(&again).expect("our own YAML");
                assert!(
                    version == ProfileVersion::V8 || shape(&read) == shape(&profile),
                    "YAML reads as another profile"
                );
            }
        }
        Err(error) => {
            assert!(
                error.line_column().is_some(),
                "an error without a place: {error}"
            );
        }
    }
}

fn written_and_read(profile: &MipProfile) {
    let mut written = Vec::new();
    write(profile, &MipWriteOptions::new(), &mut written).expect("version 9 has a place for all");
    let read = MipProfile::parse(&written).expect("our own profile");
    assert!(read == *profile, "a profile reads as another");
}

/// Returns a profile in a form that does not depend on the order of its tables.
fn shape(profile: &MipProfile) -> (MipProfile, Vec<Vec<String>>) {
    let mut bare = profile.clone();
    let mut frames = Vec::new();
    for function in &mut bare.functions {
        let stack = profile.tables.frames(function.location.take());
        frames.push(stack.map(|frame| format!("{frame:?}")).collect());
        let _: &Function = function;
    }
    bare.tables = Default::default();
    (bare, frames)
}
