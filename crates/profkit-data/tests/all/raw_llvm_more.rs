//! Compares with `llvm-profdata`: modes of instrumentation with which no program of the test matrix is compiled, and
//! the messages for damaged files.
use profkit_abi::variant;
use profkit_data::bytes::Endian;
use profkit_data::ids::{BuildId, FuncHash};
use profkit_data::instr::raw::{
    PointerWidth, RawDialect, RawImage, RawImageRecord, RawReadOptions, RawReader,
};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrSource, Record, ValueEntry};
use profkit_data::{Error, ErrorKind};
use profkit_testkit::{Llvm, require_or_skip, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

fn read_all(reader: &mut dyn InstrSource) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    let mut record = Record::default();
    while reader.read_record(&mut record)? {
        records.push(record.clone());
    }
    Ok(records)
}

const PROGRAM: &str = "
#include <string.h>
int often(int x) { return x > 3 ? x * 2 : x; }
int (*volatile pointer)(int) = often;
char from[64], to[64];
int main(int count, char **arguments) {
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += pointer(i);
    memcpy(to, from, (size_t)(sum % 60));
    return 0;
}
";

fn build(llvm: &Llvm, flags: &[&str], folder: &Path, pattern: &str) -> PathBuf {
    let [source, program] = ["program.c", "program"].map(|name| folder.join(name));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new(llvm.clang());
    compile
        .args(["-O1", "-fprofile-generate"])
        .args(flags)
        .arg(&source)
        .arg("-o")
        .arg(&program);
    assert!(compile.output().unwrap().status.success(), "{compile:?}");
    let mut run = Command::new(&program);
    run.env("LLVM_PROFILE_FILE", folder.join(pattern));
    succeed(&mut run);
    folder.join(pattern.replace("%c", ""))
}

/// Compiles the program, runs it, and compares its counts, values and traces with those of `merge --text`.
fn compare(llvm: &Llvm, flags: &[&str], pattern: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = build(llvm, flags, folder.path(), pattern);
    let data = std::fs::read(&path).unwrap();
    let mut reader = RawReader::parse(&data).unwrap();
    let mut ours = read_all(&mut reader).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
    assert_eq!(ours.len(), 2, "{flags:?}");
    ours.sort_by(|a, b| a.name.cmp(&b.name));

    let output = succeed(
        Command::new(llvm.profdata())
            .args(["merge", "--text", "-o", "-"])
            .arg(&path),
    );
    let mut text = TextReader::parse(&output.stdout).unwrap();
    let mut theirs = read_all(&mut text).unwrap();
    theirs.sort_by(|a, b| a.name.cmp(&b.name));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(
            (&ours.name, ours.func_hash),
            (&theirs.name, theirs.func_hash),
            "{flags:?}"
        );
        assert_eq!(
            (&ours.counts, &ours.values),
            (&theirs.counts, &theirs.values),
            "{flags:?}"
        );
    }
    assert_eq!(
        reader.temporal_traces().unwrap(),
        text.temporal_traces().unwrap(),
        "{flags:?}"
    );
    let shown = Command::new(llvm.profdata())
        .args(["show", "--binary-ids"])
        .arg(&path)
        .output()
        .unwrap();
    for id in reader.binary_ids().unwrap() {
        assert!(
            String::from_utf8_lossy(&shown.stdout).contains(&id.to_string()),
            "{flags:?}"
        );
    }
}

fn modes_decode_as(release: u32) {
    let llvm = require_or_skip!(release);
    let relocated = [
        "-mllvm",
        "-runtime-counter-relocation",
        "-fno-profile-generate",
        "-fprofile-instr-generate",
    ];
    compare(&llvm, &relocated, "continuous-%c.profraw");
    compare(&llvm, &["-Wl,--build-id=md5", "-m32"], "narrow.profraw");
    compare(&llvm, &["-Wl,--build-id=0x123456789a"], "odd-id.profraw");
    compare(
        &llvm,
        &["-mllvm", "-enable-name-compression=false"],
        "stored-names.profraw",
    );
    if release >= 19 {
        compare(
            &llvm,
            &["-mllvm", "-pgo-temporal-instrumentation", "-m32"],
            "temporal.profraw",
        );
    }
}

#[test]
fn more_modes_decode_as_each_llvm_merges_them() {
    [13, 16, 19, 22].into_iter().for_each(modes_decode_as);
}

/// In continuous mode, records have value sites but the runtime never writes the values. LLVM refuses such a file.
#[test]
fn a_continuous_profile_with_value_sites_is_salvaged() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-mllvm", "-runtime-counter-relocation"];
    let path = build(&llvm, &flags, folder.path(), "continuous-%c.profraw");
    let data = std::fs::read(&path).unwrap();
    let error = RawReader::parse(&data)
        .and_then(|mut reader| read_all(&mut reader))
        .unwrap_err();
    assert_eq!(
        shown(&llvm, &path),
        format!("error: {}: {}", path.display(), text_of(&error))
    );
    assert!(error.hint().unwrap().contains("continuous mode"), "{error}");

    let mut reader =
        RawReader::parse_with(&data, &RawReadOptions::default().salvage(true)).unwrap();
    let mut record = Record::default();
    let (mut names, mut errors) = (Vec::new(), 0);
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => names.push(String::from_utf8_lossy(&record.name).into_owned()),
            Ok(false) => break,
            Err(_) => errors += 1,
        }
    }
    names.sort();
    assert_eq!(
        (names, errors),
        (vec!["main".to_owned(), "often".to_owned()], 1)
    );
}

fn image(width: PointerWidth) -> RawImage {
    let flags = variant::IR;
    let mut image = RawImage::new(RawDialect {
        endian: Endian::Little,
        width,
        version: 10,
        flags,
    });
    image.binary_ids = vec![BuildId(vec![9; 20])];
    for (index, name) in (0u64..).zip(["main", "callee", "other"]) {
        let mut record = RawImageRecord {
            name: name.into(),
            func_hash: FuncHash(index + 1),
            counts: vec![index, 2],
            bitmap: vec![1, 2],
            address: 0x4000 + 16 * index,
            ..RawImageRecord::default()
        };
        let sites = record.values.kind_mut(0).unwrap();
        sites.push_site([ValueEntry {
            value: 0x4010,
            count: 3,
        }]);
        image.records.push(record);
    }
    image
}

fn text_of(error: &Error) -> String {
    let text = match error.kind() {
        ErrorKind::BadMagic => "invalid instrumentation profile data (bad magic)",
        ErrorKind::BadHeader => "invalid instrumentation profile data (file header is corrupt)",
        ErrorKind::TooLarge => "too much profile data",
        ErrorKind::Truncated => "truncated profile data",
        ErrorKind::Malformed => "malformed instrumentation profile data",
        ErrorKind::UnsupportedVersion => "raw profile version mismatch",
        ErrorKind::Empty => "empty raw profile file",
        kind => panic!("{kind:?}: {error}"),
    };
    match error.detail_for_llvm() {
        Some(detail) => format!("{text}: {detail}"),
        None => text.to_owned(),
    }
}

/// One kind of damage: its name, and a function that changes one number or the length of the file.
type Damage = (&'static str, fn(&Places, &mut Vec<u8>));

struct Places {
    record: usize,
    counter_ptr: usize,
    bitmap_ptr: usize,
    num_counters: usize,
    num_bitmap_bytes: usize,
    values: usize,
}

fn put(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

const DAMAGES: [Damage; 25] = [
    ("empty", |_, file| file.clear()),
    ("version", |_, file| file[8] = 99),
    ("cut header", |_, file| file.truncate(100)),
    ("odd binary ids", |_, file| file[16] = 28),
    ("far binary ids", |_, file| file[20] = 1),
    ("empty binary id", |_, file| file[128] = 0),
    ("long binary id", |_, file| file[128] = 30),
    ("many records", |_, file| file[26] = 1),
    ("many counters", |_, file| file[42] = 1),
    ("cut before values", |places, file| {
        file.truncate(places.values - 1)
    }),
    ("no counters", |places, file| {
        put(file, places.num_counters, 0)
    }),
    ("too many counters", |places, file| {
        put(file, places.num_counters, 5)
    }),
    ("counters before", |places, file| {
        put(file, places.counter_ptr, 8)
    }),
    ("counters after", |places, file| {
        put(file, places.counter_ptr, 0x1000)
    }),
    ("counters far", |places, file| {
        put(file, places.counter_ptr, 0x9000_0000)
    }),
    ("bitmap before", |places, file| {
        put(file, places.bitmap_ptr, 8)
    }),
    ("bitmap after", |places, file| {
        put(file, places.bitmap_ptr, 0x1000)
    }),
    ("too much bitmap", |places, file| {
        put(file, places.num_bitmap_bytes, 7)
    }),
    ("values: kinds", |places, file| {
        put(file, places.values + 4, 4)
    }),
    ("values: size", |places, file| put(file, places.values, 33)),
    ("values: far", |places, file| put(file, places.values, 8000)),
    ("values: kind", |places, file| {
        put(file, places.values + 8, 3)
    }),
    ("cut values", |places, file| {
        file.truncate(places.values + 4)
    }),
    ("garbage behind", |_, file| {
        file.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3])
    }),
    ("no magic behind", |_, file| file.extend([1; 200])),
];

#[test]
fn damaged_files_are_worded_as_by_llvm_22() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.profraw");
    for width in [PointerWidth::Bits64, PointerWidth::Bits32] {
        let file = image(width).to_bytes().unwrap();
        let mut reader = RawReader::parse(&file).unwrap();
        let profile = reader.profile().unwrap();
        let layout = *profile.layout();
        let record = usize::try_from(profile.record_offset(1)).unwrap();
        let places = Places {
            record,
            counter_ptr: record + layout.counter_ptr,
            bitmap_ptr: record + layout.bitmap_ptr.unwrap(),
            num_counters: record + layout.num_counters,
            num_bitmap_bytes: record + layout.num_bitmap_bytes.unwrap(),
            values: usize::try_from(profile.sections().value_data.offset).unwrap(),
        };
        assert_eq!(places.record, 160 + layout.stride);
        assert_eq!(read_all(&mut reader).unwrap().len(), 3);
        for (name, damage) in DAMAGES {
            let mut damaged = file.clone();
            damage(&places, &mut damaged);
            std::fs::write(&path, &damaged).unwrap();
            let result = RawReader::parse(&damaged).and_then(|mut reader| read_all(&mut reader));
            let ours = text_of(&result.expect_err(name));
            assert_eq!(
                format!("error: {}: {ours}", path.display()),
                shown(&llvm, &path),
                "{name}, {width:?}"
            );
        }
    }
}

/// The text that `show` prints on standard error. The exit status must be 1.
fn shown(llvm: &Llvm, path: &Path) -> String {
    let output = Command::new(llvm.profdata())
        .arg("show")
        .arg(path)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stderr)
        .trim_end()
        .to_owned()
}
