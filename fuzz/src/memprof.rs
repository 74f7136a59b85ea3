//! Fuzzes heap profiles: raw dumps, sections of indexed profiles, and YAML.
use crate::source::located;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::diff::diff;
use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions, encode};
use profkit_data::memprof::portable::{self, PortableSection};
use profkit_data::memprof::raw::RawMemProf;
use profkit_data::memprof::{MemProfile, yaml};
use profkit_merge::memprof::{ContextRule, MemProfSum, RawContexts};

/// Reads any bytes as raw dumps, and adds up their contexts twice. The second time must add no new context.
///
/// # Panics
/// If it adds a context, or if an error states no position.
pub(crate) fn raw(data: &[u8]) {
    let profile = match RawMemProf::parse(data) {
        Ok(profile) => profile,
        Err(error) => return located(&error),
    };
    let sum = || {
        let mut contexts = RawContexts::default();
        contexts.add(&profile, |skipped| {
            if skipped.error.offset().is_some() {
                located(&skipped.error);
            }
        });
        contexts
    };
    let mut twice = sum();
    let contexts = twice.contexts().len();
    twice.absorb(sum());
    assert_eq!(twice.contexts().len(), contexts, "contexts do not meet");
}

/// Reads any bytes as an indexed profile with a MemProf section. The result must be writable in every version and
/// readable again.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn indexed(data: &[u8]) {
    let Ok(profile) = IndexedProfile::parse(data) else {
        return;
    };
    let Some(section) = profile.memprof() else {
        return;
    };
    let end = usize::try_from(section.offset).expect("in the file") + section.bytes.len();
    let section = match IndexedMemProf::parse(&data[..end], section.offset) {
        Ok(section) => section,
        Err(error) => return located(&error),
    };
    section.to_profile_salvaging(|error| drop(error.to_string()));
    if let Ok(profile) = section.to_profile() {
        rewritten(&profile);
    }
}

/// Reads any bytes as a portable section, once as they are and once with a checksum that fits. What is read must be
/// readable again after it is written.
///
/// # Panics
/// If a written section cannot be read, or has other names or source locations.
pub(crate) fn portable_section(data: &[u8]) {
    let mut sealed = data.to_vec();
    // Few mutations would pass the checksum and the two sizes.
    if data.len() >= 48 {
        let end = data.len() - 16;
        let size = (data.len() as u64).to_le_bytes();
        sealed[..8].copy_from_slice(&portable::MAGIC);
        sealed[8..16].copy_from_slice(&portable::VERSION.to_le_bytes());
        sealed[16..24].copy_from_slice(&size);
        let hash = portable::checksum(&data[32..end]).to_le_bytes();
        sealed[24..32].copy_from_slice(&hash);
        sealed[end..end + 8].copy_from_slice(&size);
        sealed[end + 8..].copy_from_slice(&portable::MAGIC);
    }
    for bytes in [data, &sealed] {
        match portable::find(bytes, 0) {
            Ok(Some((found, at))) => match PortableSection::parse(found, at) {
                Ok(section) => kept(&section),
                Err(error) => located(&error),
            },
            Ok(None) => {}
            Err(error) => located(&error),
        }
    }
}

/// Gives the names and locations of a section to a profile that has all its frames, and writes them again.
fn kept(section: &PortableSection<'_>) {
    let mut profile = section.frames();
    section.add_to(&mut profile);
    let bytes = portable::encode(&profile).expect("what was read can be written");
    let again = PortableSection::parse(&bytes, 0).expect("our own section");
    let mut twice = again.frames();
    again.add_to(&mut twice);
    assert_eq!(profile.locations, twice.locations);
    assert_eq!(profile.names, twice.names);
}

/// Reads any bytes as YAML.
///
/// # Panics
/// If the profile is not the same after it is written and read again.
pub(crate) fn yaml_text(data: &[u8]) {
    let profile = match yaml::parse(data) {
        Ok(profile) => profile,
        Err(error) => {
            drop(error.to_string());
            return;
        }
    };
    let text = text_of(&profile);
    let again = yaml::parse(text.as_bytes()).expect("our own text");
    assert_eq!(text_of(&again), text);
    rewritten(&profile);
}

fn rewritten(profile: &MemProfile) {
    let mut sum = MemProfSum::new(ContextRule::Add);
    sum.add(profile);
    let sum = sum.finish();
    for version in 0..=4 {
        let options = IndexedMemProfOptions::for_version(version, true);
        let section = encode(&sum, &options).expect("what was read can be written");
        let base = usize::try_from(section.offset).expect("small");
        let mut file = vec![0; base];
        file.extend(section.bytes);
        let again = IndexedMemProf::parse(&file, section.offset).expect("our own section");
        let again = again.to_profile().expect("our own section");
        assert_eq!(again.records().len(), profile.records().len());
    }
    // A profile has the same contexts as itself, and as the sum of two copies of itself.
    for other in [profile, &sum] {
        let found = diff(profile, other);
        assert!(found.appeared.is_empty() && found.gone.is_empty());
        assert!(found.both.iter().all(|pair| !pair.moved));
    }
}

fn text_of(profile: &MemProfile) -> String {
    let mut out = Vec::new();
    yaml::write(profile, &mut out).expect("memory");
    String::from_utf8_lossy(&out).into_owned()
}
