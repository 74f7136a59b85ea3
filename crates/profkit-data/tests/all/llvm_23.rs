//! Reads and writes instrumentation profiles of LLVM 23: indexed version 14 and raw version 11. Its compilers, its runtime
//! and its llvm-profdata made the files. Those in `offload` have what programs for GPUs have, but no GPU ran: the runtime
//! wrote counters that tests/programs/offload.c gave it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use profkit_abi::variant;
use profkit_data::instr::indexed::{IndexedProfile, IndexedWriteOptions, write};
use profkit_data::instr::raw::{RawReadOptions, RawReader};
use profkit_data::instr::{InstrProfile, InstrSource, Losses, Record};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind};
use profkit_testkit::{ByteBuilder, Endian, fixture, fixture_path, require_or_skip, succeed};
use std::fmt::Write as _;
use std::process::Command;

fn drain(reader: &mut impl InstrSource) -> (Vec<Record>, Vec<Error>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for read in reader.records() {
        match read {
            Ok(record) => records.push(record),
            Err(error) => errors.push(error),
        }
    }
    (records, errors)
}

fn sound(reader: &mut impl InstrSource) -> Vec<Record> {
    let (records, errors) = drain(reader);
    assert_eq!(errors, []);
    records
}

fn lines(records: &[Record]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for record in records {
        let mut line = String::from_utf8_lossy(&record.name).into_owned();
        write!(line, " {} {:?}", record.func_hash, record.counts).unwrap();
        if !record.bitmap.is_empty() {
            write!(line, " bitmap {:02x?}", record.bitmap).unwrap();
        }
        if !record.uniformity.is_empty() {
            write!(line, " uniform {:08b}", record.uniformity[0]).unwrap();
            for byte in &record.uniformity[1..] {
                write!(line, " {byte:08b}").unwrap();
            }
        }
        for (kind, sites) in record
            .values
            .kinds()
            .filter(|(_, sites)| sites.site_count() > 0)
        {
            write!(line, " kind {kind}: {} values", sites.entries().len()).unwrap();
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The profile of a device, of two runs. llvm-profdata 23 merged it.
const DEVICE: &str = "offload/clang-23/gfx90a.profdata";

#[test]
fn records_of_version_14_have_packed_bitmaps_and_uniformity_bits() {
    let read = |name: &str| {
        let file = fixture(name);
        let profile = IndexedProfile::parse(&file).unwrap();
        assert_eq!(profile.header().version(), 14);
        lines(&sound(&mut profile.records()))
    };
    insta::assert_snapshot!(read("indexed/clang-23-mcdc-conditions.profdata"), @"
    conditions.c:grade 0x0f7916560fe81660 [50, 18, 18, 39, 39, 21, 0, 0, 15, 17, 17, 0, 1, 2, 1] bitmap [c2, 75]
    main 0x035c35c11b34d458 [1, 1, 1, 50, 12, 11]
    conditions.c:leap 0x000000060f39f81f [50, 38, 38, 12, 12] bitmap [11]
    conditions.c:between 0x000000000060e79d [50, 47, 11] bitmap [07]
    ");
    insta::assert_snapshot!(read(DEVICE), @"
    kernel 0x0f9bab17ad9a8e44 [9600, 6336, 192] uniform 11111001
    main 0x0209aa3e1d398548 [0, 192] uniform 11111101
    offload.c;clamp 0x0a4d0ad3efffffff [6336] uniform 11111111
    ");
}

#[test]
fn what_llvm_wrote_is_written_with_the_same_bytes() {
    for name in [
        "indexed/clang-23-fe-plain.profdata",
        "indexed/clang-23-ir-plain.profdata",
        "indexed/clang-23-cs-ir-plain.profdata",
        "indexed/clang-23-function-entry-plain.profdata",
        "indexed/clang-23-temporal-plain.profdata",
        "indexed/clang-23-vtables-shapes.profdata",
        "indexed/clang-23-mcdc-conditions.profdata",
        DEVICE,
    ] {
        let file = fixture(name);
        let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
        let mut written = Vec::new();
        let options = IndexedWriteOptions::for_llvm(Release::new(23));
        let losses = write(&profile, &options, &mut written).unwrap();
        assert_eq!(losses, Losses::default());
        assert!(written == file, "{name} differs");
    }
}

#[test]
fn every_version_is_converted_to_every_other() {
    for name in [
        "indexed/clang-23-mcdc-conditions.profdata",
        "indexed/clang-22-mcdc-conditions.profdata",
    ] {
        let file = fixture(name);
        let whole = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
        for from in 3..=14 {
            let mut first = Vec::new();
            write(&whole, &IndexedWriteOptions::for_version(from), &mut first).unwrap();
            let view = IndexedProfile::parse(&first).unwrap();
            let profile = view.to_profile().unwrap();
            let sorted = |mut records: Vec<Record>| {
                records.sort_by(|a, b| (&a.name, a.func_hash).cmp(&(&b.name, b.func_hash)));
                records
            };
            let records = sorted(sound(&mut view.records()));
            assert_eq!(records.len(), whole.record_count());
            for to in 3..=14 {
                let mut second = Vec::new();
                let options = IndexedWriteOptions::for_version(to);
                let losses = write(&profile, &options, &mut second).unwrap();
                let again = IndexedProfile::parse(&second).unwrap();
                assert_eq!(again.header().version(), to);
                let mut again = sorted(sound(&mut again.records()));
                assert_eq!(losses.bitmaps > 0, from >= 11 && to < 11, "{from} to {to}");
                for (again, record) in again.iter_mut().zip(&records) {
                    if to < 11 {
                        again.bitmap.clone_from(&record.bitmap);
                    }
                }
                assert_eq!(again, records, "{name}: {from} to {to}");
            }
        }
    }
}

#[test]
fn older_versions_lose_uniformity_bits_and_say_so() {
    let file = fixture(DEVICE);
    let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
    assert_eq!(profile.uniformity_count(), 3);
    for version in 3..=13 {
        let options = IndexedWriteOptions::for_version(version);
        let losses = write(&profile, &options, &mut Vec::new()).unwrap();
        let counts: Vec<_> = losses.counts().collect();
        assert!(
            counts.contains(&(3, "GPU uniformity bitmaps")),
            "{counts:?}"
        );
    }
}

#[test]
fn damaged_records_of_version_14_are_located() {
    let good = fixture("indexed/clang-23-mcdc-conditions.profdata");
    let profile = IndexedProfile::parse(&good).unwrap();
    let record = sound(&mut profile.records());
    let record = record.iter().find(|record| !record.bitmap.is_empty());
    let record = record.unwrap();
    let name = good
        .windows(record.name.len())
        .rposition(|bytes| bytes == record.name);
    let data = name.unwrap() + record.name.len();
    let counters = record.counts.len();
    // The words of the record: hash, number of counters, the counters, number of bitmap bytes, bitmap, number of uniformity
    // bytes, value data.
    let (bitmap, uniformity) = (2 + counters, 3 + counters + record.bitmap.len().div_ceil(8));
    let mut said = String::new();
    for (word, value) in [
        (1, 1000),
        (1, counters as u64 + 1),
        (bitmap, 24),
        (bitmap, u64::MAX),
        (uniformity, 2),
        (uniformity, 1 << 40),
        (uniformity + 1, 16),
    ] {
        let mut file = ByteBuilder::from_bytes(Endian::Little, good.clone());
        file.label_at("word", data + 8 * word);
        let file = file.patch_u64("word", value).finish();
        let (records, errors) = drain(&mut IndexedProfile::parse(&file).unwrap().records());
        assert!(records.iter().all(|other| other.name != record.name));
        assert_eq!(errors.len(), 1, "word {word} = {value}");
        assert_eq!(errors[0].kind(), ErrorKind::Malformed);
        writeln!(said, "word {word} = {value}: {}", errors[0]).unwrap();
    }
    insta::assert_snapshot!(said, @"
    word 1 = 1000: record of function conditions.c:grade, at offset 0x23c: the counters run past the data of their function: found 1000 words, expected at most 19 words of 8 bytes
    word 1 = 16: record of function conditions.c:grade, at offset 0x2c4: the bitmap runs past the data of its function: found 30146 bytes, expected at most 16 bytes
    word 17 = 24: record of function conditions.c:grade, at offset 0x2dc: the data of a function end inside a record
    word 17 = 18446744073709551615: record of function conditions.c:grade, at offset 0x2bc: the bitmap runs past the data of its function: found 18446744073709551615 bytes, expected at most 24 bytes
    word 19 = 2: value data of record of function conditions.c:grade, at offset 0x2dc: the data are too short here: found 0 bytes left, expected 8 bytes
    word 19 = 1099511627776: record of function conditions.c:grade, at offset 0x2cc: the number of uniformity bytes does not fit the number of counters: found 1099511627776, expected 2 or 0
    word 20 = 16: value data of record of function conditions.c:grade, at offset 0x2d4: TotalSize runs past the end of the data: found 16 bytes, expected at most 8 bytes
    ");
}

#[test]
fn uniform_counters_become_uniformity_bits() {
    let read = |name: &str| {
        let file = fixture(format!("offload/clang-23/{name}default.profraw"));
        lines(&sound(&mut RawReader::parse(&file).unwrap()))
    };
    insta::assert_snapshot!(read(""), @"
    kernel 0x0f9bab17ad9a8e44 [50, 33, 1]
    offload.c;clamp 0x0a4d0ad3efffffff [33]
    main 0x0209aa3e1d398548 [2, 1]
    ");
    insta::assert_snapshot!(read("gfx90a."), @"
    kernel 0x0f9bab17ad9a8e44 [3200, 2112, 64] uniform 11111011
    offload.c;clamp 0x0a4d0ad3efffffff [2112] uniform 11111111
    main 0x0209aa3e1d398548 [0, 64] uniform 11111101
    ");
    insta::assert_snapshot!(read("gfx90a.1."), @"
    kernel 0x0f9bab17ad9a8e44 [6400, 4224, 128] uniform 11111101
    offload.c;clamp 0x0a4d0ad3efffffff [4224] uniform 11111111
    main 0x0209aa3e1d398548 [0, 128] uniform 11111111
    ");
}

/// What llvm-profdata 23 writes of the raw files, byte for byte.
#[test]
fn merged_files_are_those_of_llvm_23() {
    let llvm = require_or_skip!(23);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("x.profdata");
    for name in ["", "gfx90a.", "gfx90a.1."] {
        let path = fixture_path("offload/clang-23").join(format!("{name}default.profraw"));
        succeed(
            Command::new(llvm.profdata())
                .arg("merge")
                .arg(&path)
                .arg("-o")
                .arg(&output),
        );
        let file = std::fs::read(path).unwrap();
        let profile = InstrProfile::read(&mut RawReader::parse(&file).unwrap()).unwrap();
        let options = IndexedWriteOptions::for_llvm(Release::new(23));
        let mut written = Vec::new();
        write(&profile, &options, &mut written).unwrap();
        assert!(written == std::fs::read(&output).unwrap(), "{name}");
    }
}

/// The raw profile of a device, with labels for what the tests change. It has no bitmaps.
fn device() -> ByteBuilder {
    let mut file = ByteBuilder::from_bytes(
        Endian::Little,
        fixture("offload/clang-23/gfx90a.default.profraw"),
    );
    for (word, label) in [
        (1, "Version"),
        (5, "NumCounters"),
        (9, "NumUniformCounters"),
        (11, "UniformCountersDelta"),
    ] {
        file.label_at(label, 8 * word);
    }
    let bytes = file.finish();
    let ids = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
    let data = 19 * 8 + usize::try_from(ids).unwrap();
    for (record, label) in ["first", "second", "third"].into_iter().enumerate() {
        file.label_at(
            &format!("{label} UniformCounterPtr"),
            data + 72 * record + 24,
        );
    }
    file
}

/// Violates each check of uniform counters, and compares the error and LLVM's detail text.
#[test]
fn uniform_counters_are_checked() {
    let mut said = String::new();
    let changes: [(&str, &str, u64); 5] = [
        ("before the section", "UniformCountersDelta", 5000),
        ("after the section", "first UniformCounterPtr", 9000),
        (
            "too many",
            "first UniformCounterPtr",
            3 * 72 + 6 * 8 + 5 * 8,
        ),
        ("section cut", "NumUniformCounters", 4),
        ("no such file", "NumUniformCounters", 1 << 50),
    ];
    for (what, label, value) in changes {
        let file = device().patch_u64(label, value).finish();
        let mut reader = match RawReader::parse_with(&file, &RawReadOptions::new()) {
            Ok(reader) => reader,
            Err(error) => {
                writeln!(said, "{what}: {error}").unwrap();
                continue;
            }
        };
        let (_, errors) = drain(&mut reader);
        for error in errors {
            let llvm = error.detail_for_llvm().unwrap_or("-");
            writeln!(said, "{what}: {error}\n    LLVM: {llvm}").unwrap();
        }
    }
    insta::assert_snapshot!(said, @"
    before the section: data record 0 (function 0xf3daaff1194c4850), at offset 0xb8: uniform counters lie outside their section: found offset -4736, expected 0 to 47
        LLVM: uniform counter offset -4736 is negative
    before the section: data record 1 (function 0x3a47472ccb0819e6), at offset 0x100: uniform counters lie outside their section: found offset -4712, expected 0 to 47
        LLVM: uniform counter offset -4712 is negative
    before the section: data record 2 (function 0xdb956436e78dd5fa), at offset 0x148: uniform counters lie outside their section: found offset -4704, expected 0 to 47
        LLVM: uniform counter offset -4704 is negative
    after the section: data record 0 (function 0xf3daaff1194c4850), at offset 0xb8: uniform counters lie outside their section: found offset 8736, expected 0 to 47
        LLVM: uniform counter offset 8736 is greater than the maximum uniform counter offset 47
    too many: data record 0 (function 0xf3daaff1194c4850), at offset 0xb8: a record has too many uniform counters: found 3, expected at most 1
        LLVM: number of uniform counters 3 is greater than the maximum number of uniform counters 1
    section cut: names, at offset 0x1e8: a chunk of names runs past the end of its section: found 27 bytes left, expected 32 bytes
    no such file: uniform counters, at offset 0x1c0: the file ends within a section: found 88 bytes left, expected 9007199254740992 bytes
    ");
    // A function whose pointer is 0 has no uniform counters.
    let mut file = device();
    file.patch_u64("second UniformCounterPtr", 0);
    let records = sound(&mut RawReader::parse(&file.finish()).unwrap());
    assert!(records[1].uniformity.is_empty() && !records[2].uniformity.is_empty());
}

/// The description of the format does not say how uniform counters work with single-byte coverage. So no uniformity
/// bits are computed then.
#[test]
fn single_byte_counters_give_no_uniformity_bits() {
    let mut file = device();
    // With single-byte coverage, the 48 bytes of the six counters are 48 counters. The records use six of them.
    file.patch_u64("Version", 11 | variant::IR | variant::BYTE_COVERAGE);
    file.patch_u64("NumCounters", 48);
    let (records, _) = drain(&mut RawReader::parse(&file.finish()).unwrap());
    assert_eq!(records[0].counts.len(), 3);
    assert!(records.iter().all(|record| record.uniformity.is_empty()));
}
