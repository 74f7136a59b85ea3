//! Indexed instrumentation profiles.
use profkit_data::instr::indexed::{IndexedProfile, IndexedWriteOptions, write};
use profkit_data::instr::{InstrProfile, Record};

use crate::source::{Contents, located, read_all};

/// The version that is written back: the newest.
const VERSION: u32 = 13;

/// Reads any bytes as an indexed profile, whole and in shares, which must hold the same records. What reads without
/// an error can be written, and what was written is written the same again after it was read.
///
/// # Panics
/// If one of that does not hold, or a law of [`read_all`].
pub(crate) fn indexed(data: &[u8]) {
    let profile = match IndexedProfile::parse(data) {
        Ok(profile) => profile,
        Err(error) => {
            located(&error);
            return in_part(data);
        }
    };
    let whole = read_all(profile.records(), data.len());
    if whole.errors.is_empty() {
        let mut shared: Vec<Record> = Vec::new();
        for share in 0..2 {
            let Contents { records, errors } =
                read_all(profile.records_of_share(share, 2), data.len());
            assert_eq!(errors, [], "in share {share}");
            shared.extend(records);
        }
        assert_eq!(sorted(shared), sorted(whole.records));
    }
    match profile.to_profile() {
        Ok(owned) => write_and_read(&owned),
        Err(error) => located(&error),
    }
}

/// What can be read of a file that is refused, such as version 14.
fn in_part(data: &[u8]) {
    let Ok(profile) = IndexedProfile::parse_known(data) else {
        return;
    };
    read_all(profile.records(), data.len());
    for result in [
        profile.vtable_names().err(),
        profile.binary_ids().err(),
        profile.lookup(b"main").err(),
    ] {
        result.iter().for_each(located);
    }
}

fn write_and_read(profile: &InstrProfile) {
    let options = IndexedWriteOptions::for_version(VERSION);
    let mut first = Vec::new();
    if let Err(error) = write(profile, &options, &mut first) {
        // No version holds more than 255 values a site, nor a MemProf section that contradicts itself.
        assert!(matches!(
            error.kind(),
            profkit_data::ErrorKind::CannotRepresent | profkit_data::ErrorKind::Malformed
        ));
        return;
    }
    let again = IndexedProfile::parse(&first).expect("our own header");
    let again = again.to_profile().expect("our own records");
    let mut second = Vec::new();
    write(&again, &options, &mut second).expect("what was written before");
    assert!(first == second, "written differently the second time");
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by(|left, right| {
        let key = |record: &Record| (record.name.clone(), record.func_hash, record.counts.clone());
        key(left).cmp(&key(right))
    });
    records
}
