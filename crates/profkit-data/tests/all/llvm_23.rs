//! Reads and writes instrumentation profiles of LLVM 23: indexed version 14 and raw version 11. The input files do not
//! come from LLVM. A writer in the test support made them, and it follows only the description of the format.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use profkit_abi::variant;
use profkit_data::instr::indexed::{
    IndexedProfile, IndexedReadOptions, IndexedWriteOptions, write,
};
use profkit_data::instr::raw::{RawReadOptions, RawReader};
use profkit_data::instr::{InstrProfile, InstrSource, Losses, Record};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind};
use profkit_testkit::llvm_23::{
    Bytes23, IndexedFunction, IndexedRecord, RawFunction, indexed_profile, llvm_23_fixtures,
    raw_profile,
};
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

/// Checks that the files in `tests/fixtures/llvm-23` have the bytes that the writer in the test support makes.
/// `BLESS=1` writes the files.
#[test]
fn fixtures_are_what_the_writer_writes() {
    for (name, bytes) in llvm_23_fixtures() {
        let path = fixture_path("llvm-23").join(name);
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        } else {
            assert!(std::fs::read(&path).unwrap() == bytes, "{name} differs");
        }
    }
}

#[test]
fn records_of_version_14_have_packed_bitmaps_and_uniformity_bits() {
    let read = |name: &str| {
        let file = fixture(format!("llvm-23/{name}"));
        let profile = IndexedProfile::parse(&file).unwrap();
        assert_eq!(profile.header().version(), 14);
        lines(&sound(&mut profile.records()))
    };
    insta::assert_snapshot!(read("host.profdata"), @"
    eight_bytes 0x0000000000000022 [7] bitmap [01, 02, 03, 04, 05, 06, 07, 08]
    nine_bytes 0x0000000000000033 [9, 1] bitmap [ff, 00, 00, 00, 00, 00, 00, 00, 80]
    calls 0x0000000000000044 [900, 20] kind 0: 2 values
    one_byte 0x0000000000000011 [5, 3] bitmap [06]
    two_hashes 0x0000000000001000 [1]
    two_hashes 0x0000000000001001 [2, 3] bitmap [04]
    ");
    insta::assert_snapshot!(read("gpu.profdata"), @"
    kernel 0x0000000000000051 [6400, 6400, 50] uniform 00000011
    wide_kernel 0x0000000000000052 [64, 64, 64, 64, 64, 64, 64, 64, 64] uniform 11111111 00000001
    host_part 0x0000000000000053 [12]
    ");
}

/// Profkit's writer and the writer in the test support share no code. They must write the same bytes.
#[test]
fn both_writers_write_the_same_bytes() {
    for name in ["host.profdata", "gpu.profdata"] {
        let file = fixture(format!("llvm-23/{name}"));
        let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
        let mut written = Vec::new();
        let options = IndexedWriteOptions::for_llvm("23".parse().unwrap());
        let losses = write(&profile, &options, &mut written).unwrap();
        assert_eq!(losses, Losses::default());
        assert!(written == file, "{name} differs");
    }
}

#[test]
fn every_version_is_converted_to_every_other() {
    for name in [
        "llvm-23/host.profdata",
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
    let file = fixture("llvm-23/gpu.profdata");
    let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
    assert_eq!(profile.uniformity_count(), 2);
    for version in 3..=13 {
        let options = IndexedWriteOptions::for_version(version);
        let losses = write(&profile, &options, &mut Vec::new()).unwrap();
        let counts: Vec<_> = losses.counts().collect();
        assert!(
            counts.contains(&(2, "GPU uniformity bitmaps")),
            "{counts:?}"
        );
    }
}

/// A version 14 file that stores each bitmap byte in a word contradicts the description of the format. The reader uses
/// the layout that fits the file, and reports the contradiction.
#[test]
fn widened_bytes_are_read_and_reported() {
    let file = fixture("llvm-23/widened.bin");
    let profile = IndexedProfile::parse(&file).unwrap();
    let (records, errors) = drain(&mut profile.records());
    let packed = fixture("llvm-23/host.profdata");
    assert_eq!(
        records,
        sound(&mut IndexedProfile::parse(&packed).unwrap().records())
    );
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    insta::assert_snapshot!(error, @"function eight_bytes of indexed profile, at offset 0x20a: the bitmaps of 2 functions, of which this is the first, have 8 bytes in place of each byte, as in version 13, and were read in that way: expected bitmaps without padding, because the file states version 14");
    insta::assert_snapshot!(error.hint().unwrap(), @"the bitmaps are right if the file is undamaged; merge its raw profiles again to be sure");
    let salvaged = IndexedProfile::parse_with(&file, &IndexedReadOptions::new().salvage(true));
    let (again, errors) = drain(&mut salvaged.unwrap().records());
    assert_eq!((again, errors.len()), (records, 1));
}

#[test]
fn damaged_records_of_version_14_are_located() {
    let function = IndexedFunction {
        name: "kernel",
        records: vec![IndexedRecord {
            hash: 1,
            counts: vec![5, 6],
            bitmap: vec![7; 3],
            uniformity: vec![3],
            targets: Vec::new(),
        }],
    };
    let good = indexed_profile(&[function], Bytes23::Packed);
    // The words of the record: hash, number of counters, 2 counters, number of bitmap bytes, bitmap, number of
    // uniformity bytes, uniformity bits, value data.
    let mut said = String::new();
    for (word, value) in [
        (1, 1000),
        (1, 3),
        (4, 24),
        (4, u64::MAX),
        (6, 2),
        (6, 1 << 40),
        (8, 16),
    ] {
        let mut file = ByteBuilder::from_bytes(Endian::Little, good.finish());
        file.label_at("word", good.offset("kernel data") + 8 * word);
        let file = file.patch_u64("word", value).finish();
        let (records, errors) = drain(&mut IndexedProfile::parse(&file).unwrap().records());
        assert_eq!(
            (records.len(), errors.len()),
            (0, 1),
            "word {word} = {value}"
        );
        assert_eq!(errors[0].kind(), ErrorKind::Malformed);
        writeln!(said, "word {word} = {value}: {}", errors[0]).unwrap();
    }
    insta::assert_snapshot!(said, @"
    word 1 = 1000: record of function kernel, at offset 0x230: the counters run past the data of their function: found 1000 words, expected at most 7 words of 8 bytes
    word 1 = 3: record of function kernel, at offset 0x250: the bitmap runs past the data of its function: found 460551 bytes, expected at most 24 bytes
    word 4 = 24: record of function kernel, at offset 0x268: the number of uniformity bytes does not fit the number of counters: found 8, expected 1 or 0
    word 4 = 18446744073709551615: record of function kernel, at offset 0x248: the bitmap runs past the data of its function: found 18446744073709551615 bytes, expected at most 32 bytes
    word 6 = 2: record of function kernel, at offset 0x258: the number of uniformity bytes does not fit the number of counters: found 2, expected 1 or 0
    word 6 = 1099511627776: record of function kernel, at offset 0x258: the number of uniformity bytes does not fit the number of counters: found 1099511627776, expected 1 or 0
    word 8 = 16: value data of record of function kernel, at offset 0x268: TotalSize runs past the end of the data: found 16 bytes, expected at most 8 bytes
    ");
}

#[test]
fn uniform_counters_become_uniformity_bits() {
    let read = |name: &str| {
        let file = fixture(format!("llvm-23/{name}"));
        lines(&sound(&mut RawReader::parse(&file).unwrap()))
    };
    insta::assert_snapshot!(read("host.profraw"), @"
    main 0x0000000000000061 [1, 40]
    decide 0x0000000000000062 [40, 10, 30] bitmap [03, 00, 09]
    ");
    insta::assert_snapshot!(read("gpu-1.profraw"), @"
    kernel 0x0000000000000051 [6400, 6400, 100] uniform 11111011
    wide_kernel 0x0000000000000052 [64, 64, 64, 64, 64, 64, 64, 64, 64] uniform 11101011 11111111
    ");
    insta::assert_snapshot!(read("gpu-2.profraw"), @"
    kernel 0x0000000000000051 [6400, 6400, 100] uniform 11111101
    wide_kernel 0x0000000000000052 [64, 64, 64, 64, 64, 64, 64, 64, 64] uniform 11101011 11111111
    ");
}

/// What llvm-profdata 23 writes of the raw files, byte for byte.
#[test]
fn merged_files_are_those_of_llvm_23() {
    let llvm = require_or_skip!(23);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("x.profdata");
    for name in ["host.profraw", "gpu-1.profraw", "gpu-2.profraw"] {
        let path = fixture_path("llvm-23").join(name);
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

fn kernels() -> Vec<RawFunction> {
    let kernel = |name, counts: &[u64]| RawFunction {
        name,
        hash: 0x51,
        counts: counts.to_vec(),
        uniform: counts.to_vec(),
        wave_size: 64,
        bitmap: vec![1; counts.len()],
    };
    vec![
        kernel("first", &[64, 128]),
        kernel("second", &[0]),
        kernel("third", &[1, 2, 3]),
    ]
}

#[test]
fn all_dialects_of_version_11_give_the_same() {
    let expected = RawReader::parse(&raw_profile(&kernels(), Endian::Little, 8).finish())
        .map(|mut reader| sound(&mut reader))
        .unwrap();
    for (endian, pointer) in [(Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)] {
        let file = raw_profile(&kernels(), endian, pointer).finish();
        assert_eq!(sound(&mut RawReader::parse(&file).unwrap()), expected);
    }
    insta::assert_snapshot!(lines(&expected), @"
    first 0x0000000000000051 [64, 128] bitmap [01, 01] uniform 11111111
    second 0x0000000000000051 [0] bitmap [01] uniform 11111111
    third 0x0000000000000051 [1, 2, 3] bitmap [01, 01, 01] uniform 11111111
    ");
}

/// Violates each check of uniform counters, and compares the error and LLVM's detail text.
#[test]
fn uniform_counters_are_checked() {
    let mut said = String::new();
    let changes: [(&str, &str, u64); 5] = [
        ("before the section", "UniformCountersDelta", 5000),
        ("after the section", "first UniformCounterPtr", 9000),
        ("too many", "first UniformCounterPtr", 216 + 48 + 8 + 40),
        ("section cut", "NumUniformCounters", 4),
        ("no such file", "NumUniformCounters", 1 << 50),
    ];
    for (what, label, value) in changes {
        let file = raw_profile(&kernels(), Endian::Little, 8)
            .patch_u64(label, value)
            .finish();
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
    before the section: data record 0 (function 0x8e295d77e3d5048b), at offset 0x98: uniform counters lie outside their section: found offset -4728, expected 0 to 47
        LLVM: uniform counter offset -4728 is negative
    before the section: data record 1 (function 0xaa867d131ae6f0a9), at offset 0xe0: uniform counters lie outside their section: found offset -4712, expected 0 to 47
        LLVM: uniform counter offset -4712 is negative
    before the section: data record 2 (function 0xcbff5815f58b5cdd), at offset 0x128: uniform counters lie outside their section: found offset -4704, expected 0 to 47
        LLVM: uniform counter offset -4704 is negative
    after the section: data record 0 (function 0x8e295d77e3d5048b), at offset 0x98: uniform counters lie outside their section: found offset 8728, expected 0 to 47
        LLVM: uniform counter offset 8728 is greater than the maximum uniform counter offset 47
    too many: data record 0 (function 0x8e295d77e3d5048b), at offset 0x98: a record has too many uniform counters: found 2, expected at most 1
        LLVM: number of uniform counters 2 is greater than the maximum number of uniform counters 1
    section cut: names, at offset 0x1d8: a chunk of names runs past the end of its section: found 2 bytes left, expected 18 bytes
    no such file: uniform counters, at offset 0x1a8: the file ends within a section: found 72 bytes left, expected 9007199254740992 bytes
    ");
    // A function whose pointer is 0 has no uniform counters.
    let mut file = raw_profile(&kernels(), Endian::Little, 8);
    file.patch_u64("second UniformCounterPtr", 0);
    let records = sound(&mut RawReader::parse(&file.finish()).unwrap());
    assert!(records[1].uniformity.is_empty() && !records[2].uniformity.is_empty());
}

/// The description of the format does not say how uniform counters work with single-byte coverage. So no uniformity
/// bits are computed then.
#[test]
fn single_byte_counters_give_no_uniformity_bits() {
    let mut file = raw_profile(&kernels()[..1], Endian::Little, 8);
    file.label_at("Version", 8);
    // With single-byte coverage, the 16 bytes of the two counters are 16 counters. The record uses two of them.
    file.patch_u64("Version", 11 | variant::IR | variant::BYTE_COVERAGE);
    file.patch_u64("NumCounters", 16);
    let records = sound(&mut RawReader::parse(&file.finish()).unwrap());
    assert_eq!(records[0].counts.len(), 2);
    assert!(records[0].uniformity.is_empty());
}
