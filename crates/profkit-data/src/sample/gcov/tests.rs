use super::*;
use crate::bytes::Endian;
use crate::sample::{AddOutcome, Inlined, Samples};
use crate::sample::{Location, ProfileKind, SampleName, SampleProfile};
use profkit_testkit::{Rng, fixture, mutate};

fn real() -> Vec<u8> {
    fixture("gcov/create_gcov-v1.afdo")
}

fn write(profile: &SampleProfile, options: &GcovOptions) -> (Vec<u8>, GcovLosses) {
    let mut bytes = Vec::new();
    let losses = super::write(profile, options, &mut bytes).unwrap();
    (bytes, losses)
}

fn shown(profile: &SampleProfile) -> String {
    fn show(out: &mut String, profile: &SampleProfile, samples: &Samples, indent: usize) {
        use std::fmt::Write;
        let name = |id| profile.names.get(id).to_string();
        writeln!(
            out,
            "{}:{}:{}",
            name(samples.name),
            samples.total,
            samples.head
        )
        .unwrap();
        let pad = " ".repeat(indent);
        for line in &samples.body {
            let Location {
                line: at,
                discriminator,
            } = line.location;
            write!(out, "{pad}{at}.{discriminator}: {}", line.samples).unwrap();
            for target in samples.targets_at(line.location) {
                write!(out, " {}:{}", name(target.name), target.count).unwrap();
            }
            out.push('\n');
        }
        for Inlined { location, samples } in &samples.inlined {
            write!(out, "{pad}{}.{}: ", location.line, location.discriminator).unwrap();
            show(out, profile, samples, indent + 1);
        }
    }
    let mut functions: Vec<String> = profile
        .functions()
        .iter()
        .map(|function| {
            let mut out = String::new();
            show(&mut out, profile, &function.samples, 1);
            out
        })
        .collect();
    functions.sort();
    functions.concat()
}

#[test]
fn what_create_gcov_wrote_is_read() {
    let profile = GcovProfile::parse(&real()).unwrap();
    assert_eq!(profile.damage, None);
    assert_eq!(profile.version, GcovVersion::V1);
    insta::assert_snapshot!(shown(&profile.profile), @r"
    _start:3000:0
     1.0: 1000
     2.1: 1000
     3.1: 1000
    rare:4000:0
     1.0: 2000
     2.0: 2000
    work:22000:0
     2.0: 3000
     3.0: 4000
     5.0: 3000
     1.0: folded:12000:0
      1.0: 3000
      2.0: 3000
      3.0: 3000
      3.0: twice:3000:0
       1.0: 3000
    ");
    let old = GcovProfile::parse(&fixture("gcov/create_gcov-v407.afdo")).unwrap();
    assert_eq!(old.version, GcovVersion::Gcc47);
    assert_eq!(shown(&old.profile), shown(&profile.profile));
}

#[test]
fn sections_are_written_as_create_gcov_does() {
    let real = real();
    let profile = GcovProfile::parse(&real).unwrap();
    let (ours, losses) = write(&profile.profile, &GcovOptions::new(GcovVersion::V1));
    assert_eq!(losses, GcovLosses::default());
    assert_eq!(ours.len(), real.len());
    // The working sets (statistics of the largest counts) at the end of the file differ, because `create_gcov` computes
    // them from counts of single instructions. The other sections do not contain these counts.
    let tag = 0xaf00_0000u32.to_le_bytes();
    let end = real.windows(4).position(|word| word == tag).unwrap();
    assert_eq!(ours[..end + 8], real[..end + 8]);
}

fn every_feature() -> SampleProfile {
    let mut profile = GcovProfile::parse(&real()).unwrap().profile;
    let [callee, other, base] = [&b"callee"[..], b"x.other", b"_ZN1AC4Ev"]
        .map(|name| profile.intern(SampleName::Text(name)).unwrap());
    let index = profile.find_or_add(&[], base);
    let samples = profile.samples_mut(index).unwrap();
    let outcome = &mut AddOutcome::default();
    for (line, count) in [(7, 1 << 40), (0xffff, 3)] {
        samples
            .adding()
            .add_line(Location::new(line, 0xffff), count, 1, outcome);
    }
    samples.total = (1 << 40) + 3;
    samples.head = 1 << 33;
    samples
        .adding()
        .add_target(Location::new(7, 0xffff), other, 1 << 35, 1, outcome);
    samples
        .adding()
        .add_target(Location::new(7, 0xffff), callee, 9, 1, outcome);
    profile
}

#[test]
fn every_version_and_byte_order_round_trips() {
    let profile = every_feature();
    let wanted = shown(&profile).replace("_ZN1AC4Ev", "_ZN1AC2Ev");
    for (_, version) in [
        ("406p", GcovVersion::Gcc46),
        ("407*", GcovVersion::Gcc47),
        ("1", GcovVersion::V1),
        ("2", GcovVersion::V2),
        ("3", GcovVersion::V3),
    ] {
        for endian in [Endian::Little, Endian::Big] {
            let mut options = GcovOptions::new(version);
            options.endian = endian;
            options.files = vec![(*b"a.c").into(), (*b"dir/b.cc").into()];
            options.file_of = vec![None, Some(1), Some(0)];
            let (bytes, losses) = write(&profile, &options);
            let mut expected = GcovLosses::default();
            if version != GcovVersion::V3 {
                expected.files = 2;
            }
            assert_eq!(losses, expected);
            let back = GcovProfile::parse(&bytes).unwrap();
            assert_eq!(back.damage, None);
            assert_eq!((back.version, back.endian), (version, endian));
            assert_eq!(shown(&back.profile), wanted, "{version:?} {endian:?}");
            if version == GcovVersion::V3 {
                assert_eq!(back.files, options.files);
                assert_eq!(back.file_of.iter().flatten().count(), 2);
            }
            // Writing the profile again gives the same bytes.
            options.file_of.clone_from(&back.file_of);
            assert_eq!(write(&back.profile, &options).0, bytes);
        }
    }
}

#[test]
fn what_has_no_place_is_counted() {
    let mut profile = every_feature();
    let guid = profile
        .intern(SampleName::Guid(crate::ids::NameRef(77)))
        .unwrap();
    let index = profile.find_or_add(&[], guid);
    let samples = profile.samples_mut(index).unwrap();
    let outcome = &mut AddOutcome::default();
    samples
        .adding()
        .add_line(Location::new(0x1_0000, 0), 5, 1, outcome);
    samples
        .adding()
        .add_line(Location::new(0x1_0001, 0), 5, 1, outcome);
    samples
        .adding()
        .add_vtable(Location::new(1, 0), guid, 5, 1, outcome);
    samples.total = 11;
    samples.checksum = 1;
    samples.attributes = 2;
    profile.kind |= ProfileKind::MD5_NAMES;
    profile.symbols.insert((*b"main").into());
    let (_, losses) = write(&profile, &GcovOptions::new(GcovVersion::V2));
    let counts: Vec<String> = losses
        .counts()
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    assert_eq!(
        counts,
        [
            "2 locations with a line or discriminator above 65535",
            "1 totals that differ from the sum of their lines",
            "1 checksums",
            "1 attributes",
            "1 vtables",
            "1 names of the symbol list",
            "1 names that are known by their hash only",
        ]
    );
    let callers = [crate::sample::Frame {
        name: guid,
        location: Location::new(1, 0),
    }];
    profile.find_or_add(&callers, guid);
    let options = GcovOptions::new(GcovVersion::V2);
    let error = super::write(&profile, &options, &mut Vec::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "GCC's encoding cannot hold calling contexts"
    );
}

#[test]
fn multiplicity_stands_in_the_discriminator() {
    let place = GcovDiscriminator(0x8305);
    assert_eq!(
        (place.base(), place.multiplicity(), place.copy()),
        (5, 3, 1)
    );
    let versions = [4, 5, 11, 12, 15, 16].map(GcovVersion::of_gcc);
    let (one, two) = (Some(GcovVersion::V1), Some(GcovVersion::V2));
    assert_eq!(versions, [None, one, one, two, two, Some(GcovVersion::V3)]);
}

fn broken(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = real();
    change(&mut bytes);
    match GcovProfile::parse(&bytes) {
        Err(error) => error.to_string(),
        Ok(profile) => match profile.damage {
            Some(damage) => format!(
                "{} functions, then: {damage}",
                profile.profile.functions().len()
            ),
            None => "no fault".to_owned(),
        },
    }
}

fn set(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

fn tag(bytes: &[u8], tag: u32) -> usize {
    bytes
        .windows(4)
        .position(|word| word == tag.to_le_bytes())
        .unwrap()
}

#[test]
fn every_check_has_its_message() {
    let functions = tag(&real(), 0xac00_0000);
    let modules = tag(&real(), 0xae00_0000);
    let sets = tag(&real(), 0xaf00_0000);
    let messages = [
        broken(|bytes| bytes.truncate(3)),
        broken(|bytes| set(bytes, 0, 7)),
        broken(|bytes| set(bytes, 4, 4)),
        broken(|bytes| bytes.truncate(9)),
        broken(|bytes| set(bytes, 12, 7)),
        broken(|bytes| set(bytes, 20, 1 << 30)),
        broken(|bytes| set(bytes, 24, 1 << 30)),
        broken(|bytes| bytes[42..44].copy_from_slice(b"xx")),
        broken(|bytes| set(bytes, functions, 7)),
        // The test changes three fields of the first function: its name, its number of lines, and the number of call
        // targets of its first line.
        broken(|bytes| set(bytes, functions + 20, 99)),
        broken(|bytes| set(bytes, functions + 24, 1 << 31)),
        broken(|bytes| set(bytes, functions + 36, 1)),
        broken(|bytes| bytes.truncate(modules - 4)),
        broken(|bytes| bytes.truncate(modules)),
        broken(|bytes| set(bytes, modules, 7)),
        broken(|bytes| {
            set(bytes, modules + 4, 1 << 20);
            set(bytes, modules + 8, 1);
        }),
        broken(|bytes| set(bytes, sets, 7)),
        broken(|bytes| bytes.truncate(sets + 100)),
        broken(|bytes| bytes.push(0)),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    header, at offset 0x0: the data are too short here: found 3 bytes left, expected 4 bytes
    header, at offset 0x0: this is not a sample profile of GCC: found 0x00000007, expected the magic "adcg" or "gcda"
    header, at offset 0x4: the version of GCC's sample profile is unknown: found 0x4, expected 1, 2, 3, 407* or 406p
    header, at offset 0x8: the data are too short here: found 1 byte left, expected 4 bytes
    names, at offset 0xc: a section has the wrong tag: found tag 0x00000007, expected tag 0xaa000000
    names, at offset 0x14: the data are too short here: found 1073741824 names in 1920 bytes
    names, at offset 0x1c: the data are too short here: found 1916 bytes left, expected 4294967296 bytes
    names, at offset 0x20: a string is not terminated: found 8 bytes without a zero
    0 functions, then: functions, at offset 0x5c: a section has the wrong tag: found tag 0x00000007, expected tag 0xac000000
    0 functions, then: functions, at offset 0x70: the index of a name is beyond the name table: found 99, expected below 6
    0 functions, then: functions, at offset 0xcc: a value has an unknown kind: found 0, expected 7, targets of indirect calls
    0 functions, then: functions, at offset 0x8c: a value has an unknown kind: found 131073, expected 7, targets of indirect calls
    2 functions, then: functions, at offset 0x180: the data are too short here: found 0 bytes left, expected 4 bytes
    no fault
    3 functions, then: modules, at offset 0x184: a section has the wrong tag: found tag 0x00000007, expected tag 0xae000000
    3 functions, then: modules, at offset 0x190: the data are too short here: found 1544 bytes left, expected 4194300 bytes
    3 functions, then: working sets, at offset 0x190: a section has the wrong tag: found tag 0x00000007, expected tag 0xaf000000
    3 functions, then: working sets, at offset 0x198: the data are too short here: found 92 bytes left, expected 1536 bytes
    3 functions, then: working sets, at offset 0x798: there are bytes after the last section: found 1 byte
    "#);
}

#[test]
fn summary_files_and_depth_are_checked() {
    let profile = every_feature();
    let mut options = GcovOptions::new(GcovVersion::V3);
    options.files = vec![(*b"a.c").into()];
    options.file_of = vec![Some(0), Some(5)];
    let (bytes, _) = write(&profile, &options);
    let mut cut = bytes.clone();
    set(&mut cut, 12 + 4 + 40, u32::MAX);
    let mut deep = Vec::new();
    for word in [0x6763_6461u32, 2, 0, 0xaa00_0000, 0, 1, 2, 0x61] {
        deep.extend_from_slice(&word.to_le_bytes());
    }
    deep.truncate(deep.len() - 2);
    for word in [0xac00_0000u32, 0, 1, 0, 0, 0, 0, 1] {
        deep.extend_from_slice(&word.to_le_bytes());
    }
    for _ in 0..600 {
        for word in [0u32, 0, 0, 1] {
            deep.extend_from_slice(&word.to_le_bytes());
        }
    }
    let said = [&bytes, &cut, &deep].map(|bytes| match GcovProfile::parse(bytes) {
        Err(error) => error.to_string(),
        Ok(profile) => format!("{:?}", profile.damage.map(|damage| damage.to_string())),
    });
    insta::assert_snapshot!(said.join("\n"), @r#"
    names, at offset 0x1be: the index of a source file is beyond the table of files: found 5, expected below 1, or 0xffffffff
    summary of names, at offset 0x40: the data are too short here: found 2416 bytes left, expected 85899345900 bytes
    Some("functions, at offset 0x2042: inlined functions nest too deeply: expected at most 512 levels")
    "#);
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng::new(1);
    let seeds = [
        real(),
        write(&every_feature(), &GcovOptions::new(GcovVersion::V3)).0,
    ];
    for _ in 0..3000 {
        let seed = &seeds[rng.below(2)];
        let mut bytes = seed.clone();
        mutate(&mut bytes, &seeds[0], &mut rng);
        let Ok(read) = GcovProfile::parse(&bytes) else {
            continue;
        };
        let (written, _) = write(&read.profile, &GcovOptions::new(GcovVersion::V2));
        let again = GcovProfile::parse(&written).unwrap();
        assert_eq!(again.damage, None);
    }
}

#[test]
fn sections_longer_than_their_length_can_say_are_refused() {
    use super::writer::section_length;
    let most = u32::MAX as usize;
    assert_eq!(section_length(GcovVersion::V2, most).unwrap(), u32::MAX);
    assert_eq!(section_length(GcovVersion::V1, most + 1).unwrap(), 1 << 30);
    let error = section_length(GcovVersion::V3, most + 1).unwrap_err();
    insta::assert_snapshot!(error, @"a section is too long for GCC's encoding: found 4294967296 bytes, expected a length of 32 bits");
}
