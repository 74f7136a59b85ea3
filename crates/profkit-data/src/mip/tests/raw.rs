use super::*;
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
        [(0, 0xffff_d000), (12, 7)].map(|(record_offset, return_offset)| Sample {
            record_offset,
            return_offset
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
        samples: &[Sample {
            record_offset: 12,
            return_offset: 9,
        }],
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
    insta::assert_snapshot!(with("modes", 0x40), @"error: header, at offset 0x8: there are unknown mode flags: found 0x40, expected only bits of 0x3f");
    insta::assert_snapshot!(with("id.length", 65), @"error: header, at offset 0xc: the build id is too long: found 65 bytes, expected at most 64");
    insta::assert_snapshot!(with("samples.size", 9), @"error: header, at offset 0x10: the last sample is incomplete: found 9 bytes, expected a multiple of 8");
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

#[test]
fn counts_and_ordinals() {
    let never = u32::MAX;
    assert_eq!(calls_record(never, never), EntryRecord::default());
    let record = |calls, ordinal| EntryRecord {
        called: true,
        calls,
        ordinal,
    };
    assert_eq!(calls_record(0, 1), record(1, Some(1)));
    assert_eq!(calls_record(41, never), record(42, None));
    assert_eq!(calls_record(never, 3), record(1 << 32, Some(3)));
}
