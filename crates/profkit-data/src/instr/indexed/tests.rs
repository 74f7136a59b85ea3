#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of the test itself"
)]
use super::*;
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::{
    FunctionTable, HeapSection, InstrKind, InstrProfile, InstrSource, Losses, MemProfSection,
    NewRecord, Record, TemporalTrace, TemporalTraces, ValueData, ValueEntry,
};
use crate::releases::Release;
use crate::{Error, ErrorKind};
use profkit_testkit::{ByteBuilder, Endian};
use std::fmt::Write as _;

type NewData<'a> = (u64, &'a [u64], &'a [u8], Option<&'a ValueData>);

/// A profile with three functions. One of them has two function hashes, a bitmap and value data of all kinds. The
/// profile has temporal traces, build ids and vtable names.
fn model() -> InstrProfile {
    let mut values = ValueData::default();
    for kind in 0..3 {
        let sites = values.kind_mut(kind).unwrap();
        let entry = |value, count| ValueEntry { value, count };
        sites.push_site([entry(8, 5), entry(u64::from(kind), 4)]);
        sites.push_site([]);
    }
    let mut table = FunctionTable::new();
    let mut order = 0;
    let mut add = |name: &str, records: &[NewData<'_>]| {
        let function = table
            .push_function(name.as_bytes(), NameRef::of(name.as_bytes()), order)
            .unwrap();
        for &(hash, counts, bitmap, values) in records {
            let record = NewRecord {
                func_hash: FuncHash(hash),
                counts,
                bitmap,
                uniformity: &[],
                values,
                order,
            };
            table.push_record(function, record).unwrap();
            order += 1;
        }
    };
    add(
        "main",
        &[
            (0x10, &[1, 200], &[], Some(&values)),
            (0x20, &[3], &[], None),
        ],
    );
    add("file.c;local", &[(0x30, &[70_000, 0, 9], &[0xff, 1], None)]);
    add("third", &[(0x40, &[0], &[], None)]);
    InstrProfile {
        kind: InstrKind::IR | InstrKind::TEMPORAL,
        tables: vec![table],
        binary_ids: vec![BuildId(vec![7; 20]), BuildId(vec![1, 2, 3])],
        traces: TemporalTraces {
            traces: vec![TemporalTrace {
                weight: 2,
                functions: vec![NameRef::of(b"main"), NameRef::of(b"file.c;local")],
            }],
            stream_size: 5,
        },
        vtable_names: vec![b"_ZTV1A".to_vec(), b"_ZTV1B".to_vec()],
        ..InstrProfile::default()
    }
}

fn encode(profile: &InstrProfile, version: u32) -> (Vec<u8>, Losses) {
    let mut out = Vec::new();
    let losses = write(
        profile,
        &IndexedWriteOptions::for_version(version),
        &mut out,
    )
    .unwrap();
    (out, losses)
}

fn read_all(bytes: &[u8]) -> (Vec<Record>, Vec<Error>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    let profile = match IndexedProfile::parse(bytes) {
        Ok(profile) => profile,
        Err(error) => return (records, vec![error]),
    };
    let mut reader = profile.records();
    let mut record = Record::default();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => records.push(record.clone()),
            Ok(false) => break,
            Err(error) => errors.push(error),
        }
    }
    for name in [&b"main"[..], b"file.c;local", b"x"] {
        match profile.lookup(name) {
            Ok(Some(mut found)) => while let Ok(true) = found.read_record(&mut record) {},
            Ok(None) => {}
            // A look-up reads one bucket. If it fails, this bucket is damaged, so reading all records must have failed
            // there too.
            Err(_) => assert!(!errors.is_empty()),
        }
    }
    errors.extend(profile.binary_ids().err());
    errors.extend(profile.vtable_names().err());
    errors.extend(profile.temporal_traces().err());
    let _ = profile.memprof();
    (records, errors)
}

#[test]
fn version_1_has_one_hash_a_name_and_counters_to_the_end() {
    let mut file = ByteBuilder::new(Endian::Little);
    file.u64(profkit_abi::indexed::MAGIC).u64(1).u64(200).u64(0);
    file.label("hash offset").u64(0).label("bucket");
    file.u16(1)
        .u64(NameRef::of(b"main").0)
        .u64(4)
        .label("data length")
        .u64(24);
    file.bytes("main").u64(0x10).u64(1).u64(200).align(8);
    file.label("index").u64(1).u64(1).label("offset").u64(0);
    let (index, bucket) = (file.offset("index") as u64, file.offset("bucket") as u64);
    file.patch_u64("hash offset", index)
        .patch_u64("offset", bucket);
    let (records, errors) = read_all(&file.finish());
    assert_eq!(errors, []);
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].func_hash.0, &records[0].counts[..]),
        (0x10, &[1, 200][..])
    );
    // Shorten the function's data to 8 bytes, so that only the function hash remains.
    file.patch_u64("data length", 8);
    let (_, errors) = read_all(&file.finish());
    insta::assert_snapshot!(errors[0], @"record of function main, at offset 0x4e: a record has no counters: found 0, expected at least 1 in version 1");
}

#[test]
fn version_2_states_the_number_of_counters_and_has_no_value_data() {
    let mut file = ByteBuilder::new(Endian::Little);
    file.u64(profkit_abi::indexed::MAGIC).u64(2).u64(200).u64(0);
    file.label("hash offset").u64(0).label("bucket");
    file.u16(1)
        .u64(NameRef::of(b"main").0)
        .u64(4)
        .u64(56)
        .bytes("main");
    file.u64(0x10)
        .u64(2)
        .u64(1)
        .u64(200)
        .u64(0x20)
        .u64(1)
        .u64(3)
        .align(8);
    file.label("index").u64(1).u64(1).label("offset").u64(0);
    let (index, bucket) = (file.offset("index") as u64, file.offset("bucket") as u64);
    file.patch_u64("hash offset", index)
        .patch_u64("offset", bucket);
    let bytes = file.finish();
    let (records, errors) = read_all(&bytes);
    assert_eq!(errors, []);
    let found: Vec<_> = records
        .iter()
        .map(|record| (record.func_hash.0, record.counts.len()))
        .collect();
    assert_eq!(found, [(0x10, 2), (0x20, 1)]);
    let profile = IndexedProfile::parse(&bytes).unwrap();
    assert_eq!(profile.summary(), None);
    assert_eq!(profile.header().max_function_count, 200);
}

/// Expected bytes of versions that none of the installed tools writes. Version 7 and later are compared with LLVM's
/// tools.
#[test]
fn versions_3_to_6_do_not_change() {
    let mut dump = String::new();
    for version in 3..=6 {
        let (bytes, losses) = encode(&model(), version);
        let lost: Vec<_> = losses
            .counts()
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        writeln!(
            dump,
            "version {version}; lost: {}; flags: {}",
            lost.join(", "),
            losses.flags
        )
        .unwrap();
        for (index, line) in bytes.chunks(32).enumerate() {
            let hex: Vec<_> = line
                .chunks(4)
                .map(|word| {
                    word.iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect::<String>()
                })
                .collect();
            writeln!(dump, "{:04x}  {}", index * 32, hex.join(" ")).unwrap();
        }
    }
    insta::assert_snapshot!(dump);
}

#[test]
fn what_an_older_version_cannot_hold_is_counted() {
    let mut profile = model();
    profile.kind = profile.kind | InstrKind::LOOP_ENTRIES | InstrKind::ENTRY_FIRST;
    let mut said = String::new();
    for release in [
        "3.8", "3.9", "10", "11", "14", "15", "16", "17", "18", "19", "21", "22", "23",
    ] {
        let options = IndexedWriteOptions::for_llvm(release.parse::<Release>().unwrap());
        let losses = write(&profile, &options, &mut Vec::new()).unwrap();
        writeln!(
            said,
            "LLVM {release} (version {}) cannot hold: {losses}",
            options.version
        )
        .unwrap();
    }
    insta::assert_snapshot!(said);
    for release in ["3.5", "3.7"] {
        let options = IndexedWriteOptions::for_llvm(release.parse::<Release>().unwrap());
        let error = write(&profile, &options, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotRepresent);
    }
    let options = IndexedWriteOptions::for_version(15);
    let error = write(&profile, &options, &mut Vec::new()).unwrap_err();
    insta::assert_snapshot!(error, @"this version of the indexed profile cannot be written: found 15, expected 3 to 14");
}

#[test]
fn a_reader_can_be_limited_to_the_versions_of_a_release() {
    let (bytes, _) = encode(&model(), 14);
    let limited = IndexedReadOptions::new().newest(13);
    let refusal = |options| IndexedProfile::parse_with(&bytes, &options).unwrap_err();
    let error = refusal(limited);
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    insta::assert_snapshot!(error, @"header of indexed profile, at offset 0x8: the version of the indexed profile is not supported: found 14, expected 1 to 13");
    assert_eq!(refusal(limited.salvage(true)), error);
    let options = IndexedReadOptions::new().newest(14);
    assert!(IndexedProfile::parse_with(&bytes, &options).is_ok());
}

/// An undamaged indexed profile, with labels at the bytes that the tests change.
fn labelled() -> ByteBuilder {
    let (bytes, _) = encode(&model(), 13);
    let header = IndexedHeader::parse(&bytes).unwrap();
    let profile = IndexedProfile::parse(&bytes).unwrap();
    let mut places = Vec::new();
    for entry in profile.table().entries() {
        let entry = entry.unwrap();
        let name = String::from_utf8_lossy(entry.key).into_owned();
        places.push((format!("{name} item"), entry.offset));
        places.push((format!("{name} data"), entry.data_offset));
    }
    let mut file = ByteBuilder::from_bytes(Endian::Little, bytes);
    for (name, place) in places {
        file.label_at(&name, place as usize);
    }
    for (name, offset, value) in header.named_fields() {
        file.label_at(name, offset as usize);
        if name.ends_with("Offset") && value != 0 {
            file.label_at(&format!("at {name}"), value as usize);
        }
    }
    file.label_at("summary", header.encoded_len() as usize);
    file
}

#[test]
fn each_damage_has_its_message() {
    let (records, errors) = read_all(&labelled().finish());
    assert_eq!((records.len(), errors), (4, vec![]));
    let mut said = String::new();
    let mut damage = |name: &str, change: &dyn Fn(&mut ByteBuilder)| {
        let mut file = labelled();
        change(&mut file);
        let (records, errors) = read_all(&file.finish());
        assert!(!errors.is_empty(), "{name}");
        writeln!(said, "{name}: {} records", records.len()).unwrap();
        for error in errors {
            let detail = error.detail_for_llvm().unwrap_or("-");
            writeln!(
                said,
                "    {error}\n    {:?}, for LLVM: {detail}",
                error.kind()
            )
            .unwrap();
        }
    };
    damage("20 bytes", &|file| {
        let cut = ByteBuilder::from_bytes(Endian::Little, &file.finish()[..20]);
        *file = cut;
    });
    damage("magic", &|file| {
        file.patch_u8("Magic", 0);
    });
    damage("version 0", &|file| {
        file.patch_u8("Version", 0);
    });
    damage("version 99", &|file| {
        file.patch_u8("Version", 99);
    });
    damage("hash type 1", &|file| {
        file.patch_u8("HashType", 1);
    });
    damage("cut in the header", &|file| {
        file.cut_at("VTableNamesOffset");
    });
    damage("cut in the summary", &|file| {
        let offset = file.offset("summary");
        file.label_at("cut", offset + 100).cut_at("cut");
    });
    damage("a lying number of summary fields", &|file| {
        file.patch_u64("summary", 1 << 61);
    });
    damage("a second summary that is not there", &|file| {
        let word = 13 | profkit_abi::variant::IR | profkit_abi::variant::CSIR;
        file.patch_u64("Version", word);
    });
    damage("hash offset beyond the file", &|file| {
        file.patch_u64("HashOffset", u64::MAX);
    });
    damage("hash offset in the header", &|file| {
        file.patch_u64("HashOffset", 8);
    });
    damage("build ids beyond the file", &|file| {
        file.patch_u64("BinaryIdOffset", 1 << 40);
    });
    damage("vtable names beyond the file", &|file| {
        file.patch_u64("VTableNamesOffset", 1 << 40);
    });
    damage("traces beyond the file", &|file| {
        file.patch_u64("TemporalProfTracesOffset", 1 << 40);
    });
    damage("MemProf section beyond the file", &|file| {
        let flags = profkit_abi::variant::IR | profkit_abi::variant::MEMPROF;
        file.patch_u64("Version", 13 | flags)
            .patch_u64("MemProfOffset", 1 << 40);
    });
    damage("length of the build ids not a multiple of 8", &|file| {
        file.patch_u64("at BinaryIdOffset", 7);
    });
    damage("length of the build ids beyond the file", &|file| {
        file.patch_u64("at BinaryIdOffset", 1 << 60);
    });
    damage("length of the build ids too small for them", &|file| {
        file.patch_u64("at BinaryIdOffset", 24);
    });
    damage("an empty build id", &|file| {
        let offset = file.offset("at BinaryIdOffset");
        file.label_at("id", offset + 8).patch_u64("id", 0);
    });
    damage("length of the vtable names", &|file| {
        file.patch_u64("at VTableNamesOffset", 1 << 60);
    });
    damage("vtable names that do not inflate", &|file| {
        let offset = file.offset("at VTableNamesOffset");
        file.label_at("zlib", offset + 12).patch_u8("zlib", 0);
    });
    damage("a lying number of traces", &|file| {
        file.patch_u64("at TemporalProfTracesOffset", 1 << 60);
    });
    damage("a lying length of a trace", &|file| {
        let offset = file.offset("at TemporalProfTracesOffset");
        file.label_at("length", offset + 24)
            .patch_u64("length", 1 << 60);
    });
    damage("a key of another bucket", &|file| {
        file.patch_u64("main item", 1 << 63 | 1);
    });
    damage("a lying number of counters", &|file| {
        let offset = file.offset("main data");
        file.label_at("counters", offset + 8)
            .patch_u64("counters", 1 << 60);
    });
    damage("a lying length of a bitmap", &|file| {
        let offset = file.offset("file.c;local data");
        file.label_at("bitmap", offset + 40)
            .patch_u64("bitmap", 1 << 60);
    });
    damage("a bitmap word above a byte", &|file| {
        let offset = file.offset("file.c;local data");
        file.label_at("bitmap", offset + 48)
            .patch_u64("bitmap", 0x1ff);
    });
    damage("value data beyond the function", &|file| {
        let offset = file.offset("file.c;local data");
        file.label_at("values", offset + 64)
            .patch_u32("values", 1 << 30);
    });
    damage("an item without data", &|file| {
        let offset = file.offset("file.c;local item");
        file.label_at("length", offset + 16).patch_u64("length", 0);
    });
    damage("data that are no words", &|file| {
        let offset = file.offset("file.c;local item");
        file.label_at("length", offset + 16).patch_u64("length", 71);
    });
    damage("data that end inside a record", &|file| {
        let offset = file.offset("file.c;local item");
        file.label_at("length", offset + 16).patch_u64("length", 8);
    });
    damage("more items than there are", &|file| {
        let offset = file.offset("at HashOffset");
        file.label_at("items", offset + 8).patch_u64("items", 4);
    });
    insta::assert_snapshot!(said);
}

#[test]
fn no_cut_and_no_flipped_bit_is_a_panic() {
    for version in [3, 8, 13] {
        let (good, _) = encode(&model(), version);
        for len in 0..good.len() {
            read_all(&good[..len]);
        }
        let mut bytes = good.clone();
        for bit in 0..8 * good.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            read_all(&bytes);
            if let Ok(profile) = IndexedProfile::parse(&bytes)
                && let Ok(model) = profile.to_profile()
            {
                write(
                    &model,
                    &IndexedWriteOptions::for_version(13),
                    &mut Vec::new(),
                )
                .unwrap();
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn damage_to_one_function_leaves_the_others() {
    let mut file = labelled();
    let offset = file.offset("main data");
    file.label_at("counters", offset + 8)
        .patch_u64("counters", 1 << 60);
    let bytes = file.finish();
    let profile = IndexedProfile::parse(&bytes).unwrap();
    let mut reader = profile.records();
    let mut record = Record::default();
    let (mut names, mut errors) = (Vec::new(), 0);
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => names.push(record.name.clone()),
            Ok(false) => break,
            Err(_) => errors += 1,
        }
    }
    assert_eq!(names, [&b"file.c;local"[..], b"third"]);
    assert_eq!(errors, 1);
}

#[test]
fn memprof_sections_that_cannot_be_carried_are_refused() {
    let section = |words: &[u64]| MemProfSection {
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        offset: 0x100,
    };
    let refuse = |words: &[u64]| {
        let profile = InstrProfile {
            memprof: Some(HeapSection::Stored(section(words))),
            ..InstrProfile::default()
        };
        let options = IndexedWriteOptions::for_version(12);
        write(&profile, &options, &mut Vec::new())
            .unwrap_err()
            .to_string()
    };
    let said = [
        refuse(&[5, 0, 0, 0]),
        refuse(&[]),
        refuse(&[3, 0x100, 0x100]),
        refuse(&[3, 0x100, 0x100, 0x4000, 0]),
        refuse(&[3, 0x100, 0x100, 0x120, 1 << 60, 0]),
        refuse(&[3, 0x100, 0x100, 0x120, 1, 1, 0x40]),
    ];
    insta::assert_snapshot!(said.join("\n"));
    // A MemProf section is left out and counted as a loss if the LLVM release does not know its version.
    let profile = InstrProfile {
        memprof: Some(HeapSection::Stored(section(&[
            3, 0x100, 0x100, 0x120, 1, 0, 0,
        ]))),
        ..InstrProfile::default()
    };
    for (release, lost) in [(14, true), (16, true), (19, false), (22, false)] {
        let options = IndexedWriteOptions::for_llvm(Release::new(release));
        let mut out = Vec::new();
        let losses = write(&profile, &options, &mut out).unwrap();
        assert_eq!(losses.memprof, lost, "LLVM {release}");
        assert_eq!(
            IndexedProfile::parse(&out).unwrap().memprof().is_none(),
            lost
        );
    }
}

/// LLVM decodes all records of a name before it returns the first of them.
#[test]
fn with_llvms_checks_a_name_has_all_of_its_records_or_none() {
    let (mut bytes, _) = encode(&model(), 10);
    let first = {
        let records = IndexedProfile::parse(&bytes).unwrap();
        let mut records = records.lookup(b"main").unwrap().unwrap();
        let mut record = Record::default();
        assert!(records.read_record(&mut record).unwrap());
        record
    };
    // The second record of `main`: function hash, number of counters, counter, length of the value data.
    let second = [0x20u64, 1, 3, 8].map(u64::to_le_bytes).concat();
    let found = |part: &[u8]| part == second;
    let at = bytes.windows(second.len()).position(found).unwrap();
    bytes[at + 8] = 200;
    let read = |llvm| {
        let options = IndexedReadOptions::new().llvm_checks(llvm);
        let profile = IndexedProfile::parse_with(&bytes, &options).unwrap();
        let mut reader = profile.records();
        let mut record = Record::default();
        let (mut main, mut errors) = (Vec::new(), 0);
        loop {
            match reader.read_record(&mut record) {
                Ok(true) if record.name == b"main" => main.push(record.clone()),
                Ok(true) => {}
                Ok(false) => return (main, errors),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Malformed);
                    errors += 1;
                }
            }
        }
    };
    assert_eq!(read(false), (vec![first], 1));
    assert_eq!(read(true), (Vec::new(), 1));
}
