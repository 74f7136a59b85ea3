//! Fuzzes the reader of GCC's sample profiles.
use profkit_data::sample::gcov::{GcovOptions, GcovProfile, GcovVersion, write};

/// Reads any bytes as a GCC profile. The result is written in every version, read, and written again. The written
/// profiles must be sound and equal.
pub fn gcov(data: &[u8]) {
    let Ok(read) = GcovProfile::parse(data) else {
        return;
    };
    for version in [GcovVersion::V1, GcovVersion::V2, GcovVersion::V3] {
        let mut options = GcovOptions::new(version);
        options.endian = read.endian;
        let write = |profile: &GcovProfile| {
            let mut bytes = Vec::new();
            write(&profile.profile, &options, &mut bytes).expect("it has no contexts");
            bytes
        };
        let bytes = write(&read);
        let again = GcovProfile::parse(&bytes).expect("what was written can be read");
        assert_eq!(again.damage, None);
        assert_eq!(
            again.profile.functions().len(),
            read.profile.functions().len()
        );
        assert_eq!(write(&again), bytes);
    }
}
