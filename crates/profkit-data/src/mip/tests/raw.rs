use super::*;
use crate::ErrorKind;
use profkit_testkit::mip::with_checksum;

fn parts(data: &[u8]) -> String {
    RawParts::new(data)
        .map(|part| match part {
            Err(error) => format!("error: {}\n", message(&error)),
            Ok(part) => {
                let samples: Vec<_> = part.samples().collect();
                let damage = part.damage.as_ref().map(message);
                format!(
                    "{:#x}: version {} {} modes {:#x} runs {} {} of {} bytes of records, {} samples {}\n",
                    part.offset,
                    part.version,
                    part.id.to_identity(),
                    part.modes.0,
                    part.runs,
                    part.records.len(),
                    part.records_size,
                    samples.len(),
                    damage.unwrap_or_default(),
                )
            }
        })
        .collect()
}

#[test]
fn raw_files_of_both_versions() {
    insta::assert_snapshot!(parts(V8_RAW), @"0x0: version 8 module hash 0xdeadbeef modes 0x1 runs 1 34 of 34 bytes of records, 0 samples");
    let mut a = V8_RAW.to_vec();
    a[6] = 1;
    a.drain(20..28);
    a[20] = 0x18;
    insta::assert_snapshot!(parts(&a), @"0x0: version 8 module hash 0xdeadbeef modes 0x1 runs 1 26 of 26 bytes of records, 0 samples");
    let image = mixed_image();
    let raw = image
        .raw_with(&image.records(), 3, &[(0, 0xffff_d000), (0, 0), (12, 7)])
        .finish();
    insta::assert_snapshot!(parts(&raw), @"0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 3 25 of 25 bytes of records, 2 samples");
    let samples: Vec<_> = RawParts::new(&raw)
        .next()
        .unwrap()
        .unwrap()
        .samples()
        .collect();
    assert_eq!(
        samples,
        [(0, 0xffff_d000), (12, 7)].map(|(record_offset, return_offset)| {
            let sample = Sample {
                record_offset,
                return_offset,
            };
            (sample, 1)
        })
    );
}

#[test]
fn the_writer_writes_what_the_builder_builds() {
    let image = mixed_image();
    let records = image.run(&[(0, 7, 1), (3, 2, 0)]);
    let mut written = Vec::new();
    let part = PartToWrite {
        build_id: &image.build_id,
        width: Width::Bits64,
        modes: Modes(image.modes()),
        runs: 2,
        records: &records,
        samples: &[(
            Sample {
                record_offset: 12,
                return_offset: 9,
            },
            1,
        )],
    };
    write_raw(&part, &mut written).unwrap();
    assert_eq!(written, image.raw_with(&records, 2, &[(12, 9)]).finish());
}

#[test]
fn parts_stand_behind_each_other() {
    let image = mixed_image();
    let one = image.raw(&image.records());
    let mut damaged = one.clone();
    let at = damaged.len() - 10;
    damaged[at] ^= 1;
    let file = [&one[..], &damaged, &one, &one[..80]].concat();
    insta::assert_snapshot!(parts(&file), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples 
    error: raw file of part 2, at offset 0xaa: the checksum does not fit the bytes before it: found 0x60e89cf86d139bdb, expected 0x13443ca96f8f77ee
    hint: the file was changed after it was written: copy it again
    0xb2: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples 
    0x10b: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 24 of 25 bytes of records, 0 samples raw file, at offset 0x15b: the file ends inside one of its parts: found 24 bytes of records, samples and checksum, expected 33 bytes
    hint: the file lost its end after it was written: copy it again
    ");
    insta::assert_snapshot!(parts(&[&one[..], V8_RAW].concat()), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples 
    error: raw file of part 2, at offset 0x59: a part of version 8 is not the first part
    hint: split the file: a version 8 part does not state its size, so it must be in a file of its own
    ");
    insta::assert_snapshot!(parts(&[&one[..], b"\0\0"].concat()), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples 
    error: raw file of part 2, at offset 0x59: there are bytes after the last part: found 2 bytes, expected the end of the file or another part
    ");
    insta::assert_snapshot!(parts(&[&one[..], &one[..6]].concat()), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples 
    error: header of part 2, at offset 0x59: the data are too short here
    ");
}

#[test]
fn damaged_raw_files() {
    let image = mixed_image();
    let with = |label: &str, value: u32| {
        let mut raw = image.raw_with(&image.records(), 1, &[(0, 1)]);
        raw.patch_u32(label, value);
        parts(&with_checksum(raw.finish()))
    };
    insta::assert_snapshot!(parts(b""), @"
error: the file is empty
hint: the program ended before it wrote its records, or it still runs and has not written them yet
");
    insta::assert_snapshot!(parts(b"\xfb"), @"error: header, at offset 0x0: the data are too short here: found 1 byte left, expected 4 bytes");
    insta::assert_snapshot!(with("magic", 7), @"error: this is not a MIP file: found magic 0x00000007, expected 0x50494dfb");
    insta::assert_snapshot!(with("version", 0x0011_000a), @"
    error: header, at offset 0x4: the version is not supported: found 10, expected 8 or 9
    hint: a newer version of profkit may support this format version
    ");
    insta::assert_snapshot!(with("version", 0x0010_0009), @"error: header, at offset 0x6: the file type is unknown: found 0x10, expected 0x1, 0x2, 0x4 or 0x8 in the low four bits");
    insta::assert_snapshot!(with("version", 0x0018_0009), @"
    error: header, at offset 0x6: this is another kind of MIP file: found a profile, expected a raw file
    hint: give the map, or the raw files that runs of the program wrote
    ");
    insta::assert_snapshot!(with("modes", 0x40), @"error: header, at offset 0x8: there are unknown mode flags: found 0x40, expected only bits of 0xbf");
    insta::assert_snapshot!(with("id.length", 65), @"error: header, at offset 0xc: the build id is too long: found 65 bytes, expected at most 64");
    insta::assert_snapshot!(with("samples.size", 9), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples raw file, at offset 0x61: the file ends inside one of its parts: found 41 bytes of records, samples and checksum, expected 42 bytes
    hint: the file lost its end after it was written: copy it again
    ");
    insta::assert_snapshot!(with("runs", 0), @"error: header, at offset 0x14: the number of runs is 0: found 0, expected at least 1");
    insta::assert_snapshot!(with("records.size", u32::MAX), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 41 of 4294967295 bytes of records, 0 samples raw file, at offset 0x61: the file ends inside one of its parts: found 41 bytes of records, samples and checksum, expected 4294967311 bytes
    hint: the file lost its end after it was written: copy it again
    ");
    let mut changed = image.raw_with(&image.records(), 1, &[]);
    changed.patch_u8("records", 0);
    insta::assert_snapshot!(parts(&changed.finish()), @"
    error: raw file, at offset 0x51: the checksum does not fit the bytes before it: found 0x60e89cf86d139bdb, expected 0x500464030987f5a8
    hint: the file was changed after it was written: copy it again
    ");
    let whole = image.raw(&image.records());
    insta::assert_snapshot!(parts(&whole[..40]), @"error: build id, at offset 0x20: the data are too short here: found 8 bytes left, expected 20 bytes");
    insta::assert_snapshot!(parts(&whole[..whole.len() - 1]), @"
    0x0: version 9 build id abababababababababababababababababababab modes 0x3f runs 1 25 of 25 bytes of records, 0 samples raw file, at offset 0x58: the file ends inside one of its parts: found 32 bytes of records, samples and checksum, expected 33 bytes
    hint: the file lost its end after it was written: copy it again
    ");
    let mut returns = V8_RAW.to_vec();
    returns[6] = 0x12;
    insta::assert_snapshot!(parts(&returns), @"
    error: header, at offset 0x6: this is another kind of MIP file: found a file of return-address samples, expected a raw file
    hint: no tool ever wrote such files for version 8, so their layout is unknown
    ");
}

/// A raw file of an image with one function whose calls are sampled.
fn sampled(modes: Modes, samples: &[(Sample, u64)]) -> Vec<u8> {
    let mut written = Vec::new();
    let part = PartToWrite {
        build_id: &[1, 2],
        width: Width::Bits64,
        modes,
        runs: 1,
        records: &[0xff; 16],
        samples,
    };
    write_raw(&part, &mut written).unwrap();
    written
}

fn at(record_offset: u32, return_offset: u32) -> Sample {
    Sample {
        record_offset,
        return_offset,
    }
}

#[test]
fn a_table_of_sampled_calls_has_weights_and_says_what_it_could_not_keep() {
    let modes = Modes::CALLS.union(Modes::CALL_EDGES);
    let lost = at(u32::MAX, u32::MAX);
    // The state of the table, what was lost, a slot, an empty slot, and a slot that was taken but not counted yet.
    let slots = [
        (at(77, 0), 1 << 33),
        (lost, 9),
        (at(0, 5), 1 << 40),
        (at(0, 0), 0),
        (at(0, 8), 0),
    ];
    let file = sampled(modes, &slots);
    let part = RawParts::new(&file).next().unwrap().unwrap();
    assert_eq!(part.samples().collect::<Vec<_>>(), [(at(0, 5), 1 << 40)]);
    assert_eq!(part.lost_samples(), 9);
    let ring = sampled(Modes::CALLS.union(Modes::RETURN_ADDRESSES), &[(lost, 1)]);
    let part = RawParts::new(&ring).next().unwrap().unwrap();
    assert_eq!((part.lost_samples(), part.samples().count()), (0, 0));
    let part = PartToWrite {
        build_id: &[],
        width: Width::Bits64,
        modes: Modes::CALLS,
        runs: 1,
        records: &[],
        samples: &[(lost, 2)],
    };
    let error = write_raw(&part, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotRepresent);
}

#[test]
fn records_are_kept_when_the_table_of_sampled_calls_is_damaged() {
    let modes = Modes::CALLS.union(Modes::CALL_EDGES);
    let shorter = |modes, size: u8| {
        let mut file = sampled(modes, &[(at(0, 5), 6), (at(0, 6), 6)]);
        file.drain(56..56 + usize::from(32 - size));
        file[16] = size;
        with_checksum(file)
    };
    insta::assert_snapshot!(parts(&shorter(modes, 32)), @"0x0: version 9 build id 0102 modes 0x8c runs 1 16 of 16 bytes of records, 2 samples");
    insta::assert_snapshot!(parts(&shorter(modes, 24)), @"0x0: version 9 build id 0102 modes 0x8c runs 1 16 of 16 bytes of records, 0 samples call edges, at offset 0x10: the last sample is incomplete: found 24 bytes, expected a multiple of 16");
    insta::assert_snapshot!(parts(&shorter(modes.union(Modes::RETURN_ADDRESSES), 32)), @"
    0x0: version 9 build id 0102 modes 0x9c runs 1 16 of 16 bytes of records, 0 samples call edges, at offset 0x10: the samples have two forms, because objects of two releases of profkit were linked: found mode bits 0x9c, expected only one of 0x10 and 0x80
    hint: instrument all objects with one release of profkit
    ");
    let cut = sampled(modes, &[(at(0, 5), 6)]);
    insta::assert_snapshot!(parts(&cut[..cut.len() - 20]), @"
    0x0: version 9 build id 0102 modes 0x8c runs 1 16 of 16 bytes of records, 0 samples raw file, at offset 0x3c: the file ends inside one of its parts: found 20 bytes of records, samples and checksum, expected 40 bytes
    hint: the file lost its end after it was written: copy it again
    ");
}

#[test]
fn counts_and_ordinals() {
    let never = u32::MAX;
    assert_eq!(calls_record(never, never), EntryRecord::default());
    let record = |calls, ordinal| EntryRecord {
        called: true,
        calls,
        at_least: false,
        ordinal,
    };
    let at_least = |calls, ordinal| EntryRecord {
        at_least: true,
        ..record(calls, ordinal)
    };
    assert_eq!(calls_record(0, 1), record(1, Some(1)));
    assert_eq!(calls_record(41, never), record(42, None));
    assert_eq!(calls_record(never, 3), at_least(1 << 32, Some(3)));
    assert_eq!(calls_record(0x7eff_ffff, 3), record(0x7f00_0000, Some(3)));
    assert_eq!(calls_record(0x7f00_0000, 3), at_least(0x7f00_0001, Some(3)));
    assert_eq!(
        calls_record(never - 1, 3),
        at_least(u32::MAX.into(), Some(3))
    );
    let sampled = |remaining: i32, ordinal: u32, next: u64| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&remaining.to_le_bytes());
        bytes[4..8].copy_from_slice(&ordinal.to_le_bytes());
        bytes[8..].copy_from_slice(&next.to_le_bytes());
        sampled_calls_record(&bytes)
    };
    assert_eq!(sampled(-1, never, u64::MAX), EntryRecord::default());
    // The first call was made, and the second one is to be sampled.
    assert_eq!(sampled(-1, 1, 0), record(1, Some(1)));
    assert_eq!(sampled(-5, 2, (1 << 40) + 3), record(1 << 40, Some(2)));
    // Threads may be in the middle of a sample, or have lost a part of one.
    assert_eq!(sampled(2, 2, 5), record(9, Some(2)));
    assert_eq!(sampled(-100, 2, 5), record(1, Some(2)));
    assert_eq!(sampled(-100, never, 5), EntryRecord::default());
}
