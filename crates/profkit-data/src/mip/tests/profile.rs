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
    insta::assert_snapshot!(refused(&|profile| profile.identity = Identity::UNKNOWN), @"version 8 cannot hold a build id in MIP profile only a profile that was made from a version 8 map can be written as version 8");
    insta::assert_snapshot!(refused(&|profile| profile.edges = full().edges), @"version 8 cannot hold call edges in MIP profile");
    insta::assert_snapshot!(refused(&|profile| profile.functions[function(0)].modes = Modes::CALLS), @"version 8 cannot hold functions with different modes in MIP profile");
    insta::assert_snapshot!(refused(&|profile| profile.functions[function(0)].name = b"a\0".to_vec()), @"version 8 cannot hold a name with a zero byte in MIP profile");
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
    insta::assert_snapshot!(refused(b""), @"the file is empty in MIP profile");
    insta::assert_snapshot!(refused(&whole[..20]), @"the data end too early in header of MIP profile at offset 0x14: found 0 bytes left, expected 4 bytes");
    insta::assert_snapshot!(refused(&whole[..200]), @r"
the file is cut short in MIP profile at offset 0xc8: found 200 bytes, expected 1104, the size in the header
hint: the file lost its end after it was written: copy it again, or merge the raw files again
");
    insta::assert_snapshot!(refused(&[&whole[..], b"x"].concat()), @r"
there are bytes after the end in MIP profile at offset 0x450: found 1105 bytes, expected 1104, the size in the header
hint: something was added to the file after it was written
");
    let mut changed = whole.clone();
    changed[300] ^= 4;
    insta::assert_snapshot!(refused(&changed), @r"
the checksum is wrong in MIP profile at offset 0x448: found 0xd4e11a22b51535b5, expected 0x9607922c986cb733 for the bytes before the checksum
hint: the file was changed after it was written: copy it again, or merge the raw files again
");
    insta::assert_snapshot!(with(4, 0x0011_0009), @r"
this is another kind of MIP file in header of MIP profile at offset 0x6: found a raw file, expected a profile
hint: merge raw files into a profile first
");
    insta::assert_snapshot!(with(8, 0x100), @"there are unknown mode flags in header of MIP profile at offset 0x8: found 0x100, expected only bits of 0x3f");
    insta::assert_snapshot!(with(12, 4), @r"
there are unknown flags in header of MIP profile at offset 0xc: found 0x4, expected only bits of 0x3
hint: a newer version of profkit may support these flags
");
    insta::assert_snapshot!(with(16, 5000), @"the identity of the image has an impossible length in header of MIP profile at offset 0x10: found 5000 bytes, expected at most 4096");
    insta::assert_snapshot!(with(12, 1), @"the identity of the image has an impossible length in header of MIP profile at offset 0x10: found 20 bytes, expected 4 bytes, for a module hash");
    insta::assert_snapshot!(with(56, 1), @"a reserved field is not 0 in header of MIP profile at offset 0x38: found 0x1, expected 0");
    insta::assert_snapshot!(with(20, 6), @"the section of stack entries is missing in list of sections of MIP profile at offset 0xe8");
    // The table of sections comes after the header, the build id of 20 bytes and 4 bytes of padding.
    let list = 64 + 24;
    insta::assert_snapshot!(with(list, 8), @r"
a section has an unknown kind in section 0 of MIP profile at offset 0x58: found 8, expected 1 to 7
hint: a newer version of profkit may support this kind of section
");
    insta::assert_snapshot!(with(list, 2), @"a section occurs twice in section 1 of MIP profile at offset 0x70: found another section 2");
    insta::assert_snapshot!(with(list + 8, 1 << 30), @"a section lies outside the file in section 0 of MIP profile at offset 0x58: found 440 bytes at 0x40000000, expected an end at 0x448 or before");
    insta::assert_snapshot!(with(list + 16, 89), @"the data end too early in function 1 of section of functions of MIP profile at offset 0x158: found 1 bytes left, expected 88 bytes");
    insta::assert_snapshot!(with(list + 24 + 16, 4), @"the data end too early in string table of section of names of MIP profile at offset 0x2bc: found 0 bytes left, expected 4 bytes");
    insta::assert_snapshot!(with(list + 2 * 24 + 16, 12), @"a function claims more blocks than are left in function 0 of section of functions of MIP profile at offset 0x120: found 3, expected at most 1");
    let functions = list + 7 * 24;
    insta::assert_snapshot!(with(functions, 99), @"the index of a name is out of bounds in function 0 of section of functions of MIP profile at offset 0x100: found 99, expected an index below 5");
    insta::assert_snapshot!(with(functions + 4, 2), @"the mode flags are not a valid combination in function 0 of section of functions of MIP profile at offset 0x104: found 0x2, expected 0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks) and 0x10 (return addresses); 0x40 (part) only with 0x2");
    insta::assert_snapshot!(with(functions + 32, 1), @"there are bytes after the last entry in section of blocks of MIP profile at offset 0x32c: found 24 bytes, expected the end of the section");
    insta::assert_snapshot!(with(functions + 32, 99), @"a function claims more blocks than are left in function 0 of section of functions of MIP profile at offset 0x120: found 99, expected at most 5");
    insta::assert_snapshot!(with(functions + 36, 9), @"the index of a stack entry is out of bounds in function 0 of section of functions of MIP profile at offset 0x124: found 9, expected at most 3");
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let edges = usize::try_from(word(list + 3 * 24 + 8)).unwrap();
    insta::assert_snapshot!(with(edges + 8, 5), @"the index of a function is out of bounds in call edge 0 of section of call edges of MIP profile at offset 0x348: found 5, expected an index below 5");
    insta::assert_snapshot!(with(edges + 24, 9), @"the index of a function is out of bounds in call edge 1 of section of call edges of MIP profile at offset 0x360: found 9, expected an index below 5");
    insta::assert_snapshot!(with(edges, 1), @"the call edges are out of order in call edge 1 of section of call edges of MIP profile at offset 0x360");
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
    insta::assert_snapshot!(with(32, 3), @"the data end too early in function 2 of MIP profile at offset 0xb5: found 1 bytes left, expected 8 bytes");
    insta::assert_snapshot!(with(40, 1), @"no name has the hash that a function states in names of MIP profile at offset 0xa5: found the hash 0x5cf8c24c00000001, expected the hash of a name");
    insta::assert_snapshot!(with(0x48, u32::MAX), @"there are more blocks than the file has room for in function 0 of MIP profile at offset 0x48: found 4294967295, expected at most 17");
    insta::assert_snapshot!(with(0x64, 2), @"a block's coverage is neither 0 nor 1 in function 0 of MIP profile at offset 0x64: found 2, expected 0 or 1");
    insta::assert_snapshot!(with(0x65, 1), @"the profile has call edges, whose layout version 8 never defined in function 0 of MIP profile at offset 0x65: found 1, expected 0");
    insta::assert_snapshot!(refused(&whole[..181]), @"a name is not terminated in names of MIP profile at offset 0xb1: found 1 whole names, expected 2 names, the number at offset 0xa5");
    insta::assert_snapshot!(refused(&whole[..100]), @"there are more blocks than the file has room for in function 0 of MIP profile at offset 0x48: found 1, expected at most 0");
    insta::assert_snapshot!(refused(&[&whole[..], b"x"].concat()), @"there are bytes after the names in names of MIP profile at offset 0xb6: found 1 bytes, expected the end of the file");
    let mut a = whole.clone();
    a[6] = 3;
    a[20] = 0x18;
    insta::assert_snapshot!(refused(&a), @r"
a profile of layout A is not supported: its only descriptions are drafts that contradict each other in header of MIP profile at offset 0x14
hint: create the profile again from the map and the raw files
");
}
