use super::*;
use profkit_testkit::mip::with_checksum;

#[test]
fn every_field_comes_back() {
    let profile = full();
    let bytes = encoded(&profile, ProfileVersion::V9);
    assert_eq!(MipProfile::parse(&bytes).unwrap(), profile);
    assert_eq!(
        MipProfile::parse_header(&bytes).unwrap(),
        ProfileHeader {
            version: 9,
            identity: profile.identity
        }
    );
    let empty = MipProfile::default();
    assert_eq!(
        MipProfile::parse(&encoded(&empty, ProfileVersion::V9)).unwrap(),
        empty
    );
}

#[test]
fn version_8_comes_back_and_can_be_kept_as_version_9() {
    let mut profile = created(V8_MAP, &ImageFacts::new()).unwrap().profile;
    for called in [0, 1] {
        profile.runs = called;
        profile.functions[function(0)].called_runs = called;
        for function in &mut profile.functions {
            function.raw_runs = called;
        }
        let eight = encoded(&profile, ProfileVersion::V8);
        assert_eq!(eight.len(), 182);
        let mut read = MipProfile::parse(&eight).unwrap();
        // The header of version 8 does not have the width of addresses.
        assert_eq!(read.width.take(), None);
        profile.width = None;
        assert_eq!(read, profile);
        let nine = encoded(&profile, ProfileVersion::V9);
        assert_eq!(MipProfile::parse(&nine).unwrap(), profile);
    }
}

#[test]
fn what_version_8_cannot_hold() {
    let refused = |change: &dyn Fn(&mut MipProfile)| {
        let mut profile = created(V8_MAP, &ImageFacts::new()).unwrap().profile;
        change(&mut profile);
        let options = MipWriteOptions::new().version(ProfileVersion::V8);
        let error = write(&profile, &options, &mut Vec::new()).unwrap_err();
        format!("{error} {}", error.hint().unwrap_or_default())
    };
    insta::assert_snapshot!(refused(&|profile| profile.identity = Identity::UNKNOWN), @"MIP profile: version 8 cannot hold a build id only a profile that was made from a version 8 map can be written as version 8");
    insta::assert_snapshot!(refused(&|profile| profile.edges = full().edges), @"MIP profile: version 8 cannot hold call edges");
    insta::assert_snapshot!(refused(&|profile| profile.functions[function(0)].modes = Modes::CALLS), @"MIP profile: version 8 cannot hold functions with different modes");
    insta::assert_snapshot!(refused(&|profile| profile.functions[function(0)].name = b"a\0".to_vec()), @"MIP profile: version 8 cannot hold a name with a zero byte");
}

fn refused(bytes: &[u8]) -> String {
    message(&MipProfile::parse(bytes).unwrap_err())
}

#[test]
fn damaged_profiles_of_version_9() {
    let whole = encoded(&full(), ProfileVersion::V9);
    let with = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        refused(&with_checksum(bytes))
    };
    insta::assert_snapshot!(refused(b""), @"MIP profile: the file is empty");
    insta::assert_snapshot!(refused(&whole[..20]), @"header of MIP profile, at offset 0x14: the data are too short here: found 0 bytes left, expected 4 bytes");
    insta::assert_snapshot!(refused(&whole[..200]), @"
    MIP profile, at offset 0xc8: the file is cut short: found 200 bytes, expected 1104, the size in the header
    hint: the file lost its end after it was written: copy it again, or merge the raw files again
    ");
    insta::assert_snapshot!(refused(&[&whole[..], b"x"].concat()), @"
    MIP profile, at offset 0x450: there are bytes after the end: found 1105 bytes, expected 1104, the size in the header
    hint: something was added to the file after it was written
    ");
    let mut changed = whole.clone();
    changed[300] ^= 4;
    insta::assert_snapshot!(refused(&changed), @"
    MIP profile, at offset 0x448: the checksum does not fit the bytes before it: found 0x06a329ee52d1df7d, expected 0x29c3eb6c1e35cd21
    hint: the file was changed after it was written: copy it again, or merge the raw files again
    ");
    insta::assert_snapshot!(with(4, 0x0011_0009), @"
    header of MIP profile, at offset 0x6: this is another kind of MIP file: found a raw file, expected a profile
    hint: merge raw files into a profile first
    ");
    insta::assert_snapshot!(with(8, 0x100), @"header of MIP profile, at offset 0x8: there are unknown mode flags: found 0x100, expected only bits of 0xbf");
    insta::assert_snapshot!(with(12, 4), @"
    header of MIP profile, at offset 0xc: there are unknown flags: found 0x4, expected only bits of 0x3
    hint: a newer version of profkit may support these flags
    ");
    insta::assert_snapshot!(with(16, 5000), @"header of MIP profile, at offset 0x10: the identity of the image has an impossible length: found 5000 bytes, expected at most 4096");
    insta::assert_snapshot!(with(12, 1), @"header of MIP profile, at offset 0x10: the identity of the image has an impossible length: found 20 bytes, expected 4 bytes, for a module hash");
    insta::assert_snapshot!(with(56, 1), @"header of MIP profile, at offset 0x38: a reserved field is not 0: found 0x1, expected 0");
    insta::assert_snapshot!(with(20, 6), @"list of sections of MIP profile, at offset 0xe8: the section of stack entries is missing");
    // The table of sections comes after the header, the build id of 20 bytes and 4 bytes of padding.
    let list = 64 + 24;
    insta::assert_snapshot!(with(list, 9), @"
    section 0 of MIP profile, at offset 0x58: a section has an unknown kind: found 9, expected 1 to 8
    hint: a newer version of profkit may support this kind of section
    ");
    insta::assert_snapshot!(with(list, 2), @"section 1 of MIP profile, at offset 0x70: a section occurs twice: found another section 2");
    insta::assert_snapshot!(with(list + 8, 1 << 30), @"section 0 of MIP profile, at offset 0x58: a section lies outside the file: found 440 bytes at 0x40000000, expected an end at 0x448 or before");
    insta::assert_snapshot!(with(list + 16, 89), @"function 1 of section of functions of MIP profile, at offset 0x158: the data are too short here: found 1 byte left, expected 88 bytes");
    insta::assert_snapshot!(with(list + 24 + 16, 4), @"string table of section of names of MIP profile, at offset 0x2bc: the data are too short here: found 0 bytes left, expected 4 bytes");
    insta::assert_snapshot!(with(list + 2 * 24 + 16, 12), @"function 0 of section of functions of MIP profile, at offset 0x120: a function claims more blocks than are left: found 3, expected at most 1");
    let functions = list + 7 * 24;
    insta::assert_snapshot!(with(functions, 99), @"function 0 of section of functions of MIP profile, at offset 0x100: the index of a name is out of bounds: found 99, expected an index below 5");
    insta::assert_snapshot!(with(functions + 4, 2), @"function 0 of section of functions of MIP profile, at offset 0x104: the mode flags are not a valid combination: found 0x2, expected 0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2");
    insta::assert_snapshot!(with(functions + 32, 1), @"section of blocks of MIP profile, at offset 0x32c: there are bytes after the last entry: found 24 bytes, expected the end of the section");
    insta::assert_snapshot!(with(functions + 32, 99), @"function 0 of section of functions of MIP profile, at offset 0x120: a function claims more blocks than are left: found 99, expected at most 5");
    insta::assert_snapshot!(with(functions + 36, 9), @"function 0 of section of functions of MIP profile, at offset 0x124: the index of a stack entry is out of bounds: found 9, expected at most 3");
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let edges = usize::try_from(word(list + 3 * 24 + 8)).unwrap();
    insta::assert_snapshot!(with(edges + 8, 5), @"call edge 0 of section of call edges of MIP profile, at offset 0x348: the index of a function is out of bounds: found 5, expected an index below 5");
    insta::assert_snapshot!(with(edges + 24, 9), @"call edge 1 of section of call edges of MIP profile, at offset 0x360: the index of a function is out of bounds: found 9, expected an index below 5");
    insta::assert_snapshot!(with(edges, 1), @"call edge 1 of section of call edges of MIP profile, at offset 0x360: the call edges are out of order");
}

#[test]
fn damaged_profiles_of_version_8() {
    let profile = created(V8_MAP, &ImageFacts::new()).unwrap().profile;
    let whole = encoded(&profile, ProfileVersion::V8);
    let with = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        refused(&bytes)
    };
    insta::assert_snapshot!(with(32, 3), @"function 2 of MIP profile, at offset 0xb5: the data are too short here: found 1 byte left, expected 8 bytes");
    insta::assert_snapshot!(with(40, 1), @"names of MIP profile, at offset 0xa5: no name has the hash that a function states: found the hash 0x5cf8c24c00000001, expected the hash of a name");
    insta::assert_snapshot!(with(0x48, u32::MAX), @"function 0 of MIP profile, at offset 0x48: there are more blocks than the file has room for: found 4294967295, expected at most 17");
    insta::assert_snapshot!(with(0x64, 2), @"function 0 of MIP profile, at offset 0x64: a block's coverage is neither 0 nor 1: found 2, expected 0 or 1");
    insta::assert_snapshot!(with(0x65, 1), @"function 0 of MIP profile, at offset 0x65: the profile has call edges, whose layout version 8 never defined: found 1, expected 0");
    insta::assert_snapshot!(refused(&whole[..181]), @"names of MIP profile, at offset 0xb1: a name is not terminated: found 1 whole names, expected 2 names, the number at offset 0xa5");
    insta::assert_snapshot!(refused(&whole[..100]), @"function 0 of MIP profile, at offset 0x48: there are more blocks than the file has room for: found 1, expected at most 0");
    insta::assert_snapshot!(refused(&[&whole[..], b"x"].concat()), @"names of MIP profile, at offset 0xb6: there are bytes after the names: found 1 byte, expected the end of the file");
    let mut a = whole.clone();
    a[6] = 3;
    a[20] = 0x18;
    insta::assert_snapshot!(refused(&a), @"
    header of MIP profile, at offset 0x14: a profile of layout A is not supported: its only descriptions are drafts that contradict each other
    hint: create the profile again from the map and the raw files
    ");
}
