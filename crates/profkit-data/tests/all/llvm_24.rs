//! Reads and writes sample profiles in the forms that LLVM's development branch has after release 23, including composite
//! sections. The input files do not come from LLVM. A writer in the test support made them, and it follows only the
//! description of the format.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use profkit_data::ids::NameRef;
use profkit_data::sample::ext_binary::{ExtBinaryOptions, ExtBinaryProfile, write};
use profkit_data::sample::{
    ReadReport, SampleName, SampleProfile, SampleReadOptions, read, read_with, text,
};
use profkit_testkit::llvm_24::{
    Composite, SampleForm, Sampled, llvm_24_fixtures, sample_forms, sample_profile,
    sampled_functions,
};
use profkit_testkit::{ByteBuilder, Endian, fixture, fixture_path};
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn as_text(profile: &SampleProfile) -> String {
    let mut out = Vec::new();
    text::write(profile, &text::TextOptions::default(), &mut out).unwrap();
    let mut out = String::from_utf8(out).unwrap();
    let known: BTreeMap<String, &str> = [
        "main", "middle", "leaf", "second", "called", "far", "entered",
    ]
    .map(|name| (NameRef::of(name.as_bytes()).0.to_string(), name))
    .into();
    for (hash, name) in known {
        out = out.replace(&hash, name);
    }
    out
}

fn read_all(file: &[u8]) -> (SampleProfile, ReadReport) {
    let mut profile = SampleProfile::new();
    let report = read(file, &mut profile, 1);
    (profile, report)
}

fn faults(report: &ReadReport) -> String {
    let faults: Vec<_> = report.faults.iter().map(ToString::to_string).collect();
    faults.join("\n")
}

/// Checks that the files in `tests/fixtures/llvm-24` have the bytes that the writer in the test support makes.
/// `BLESS=1` writes the files.
#[test]
fn fixtures_are_what_the_writer_writes() {
    for (name, bytes) in llvm_24_fixtures() {
        let path = fixture_path("llvm-24").join(name);
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        } else {
            assert!(std::fs::read(&path).unwrap() == bytes, "{name} differs");
        }
    }
}

#[test]
fn all_forms_give_the_same_functions() {
    let (plain, report) = read_all(&fixture("llvm-24/plain.prof"));
    assert_eq!(faults(&report), "");
    let expected = as_text(&plain);
    insta::assert_snapshot!(expected, @"
    main:300:7
     1: 200
     2: 10 called:10
     3: middle:90
      4: 30 far:18 called:12
      5: leaf:60
       1: 60
    second:130:40
     2: 100
     9: leaf:30
      1: 30
    called:50:22
     1: 50
    far:18:1
     1: 18
    entered:0:5
    ");
    let mut said = String::new();
    for (name, _) in sample_forms() {
        let (profile, report) = read_all(&fixture(format!("llvm-24/{name}")));
        assert_eq!(report.functions, 5, "{name}");
        // Functions with the same total are ordered by name, and by hash if a file has hashes. So the lines are sorted
        // before they are compared.
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&as_text(&profile)), sorted(&expected), "{name}");
        if !report.faults.is_empty() {
            writeln!(said, "{name}: {}", faults(&report)).unwrap();
        }
    }
    insta::assert_snapshot!(said, @"composite-unknown.prof: CompositeProfileSection, at offset 0xf2: blocks of unknown types were left out: found 8 blocks, the first of type 127, expected type 0 (samples)");
}

#[test]
fn one_function_is_found_by_each_table_of_offsets() {
    for (name, form) in sample_forms() {
        let file = fixture(format!("llvm-24/{name}"));
        let opened = ExtBinaryProfile::parse(&file).unwrap();
        assert_eq!(opened.version(), u64::from(form.version.max(103)));
        for (wanted, total) in [("main", 300), ("called", 50), ("entered", 0)] {
            let mut profile = SampleProfile::new();
            let report = opened.read_functions(&[wanted.as_bytes()], &mut profile);
            assert!(
                report.faults.is_empty() || name == "composite-unknown.prof",
                "{name}"
            );
            let [function] = profile.functions() else {
                panic!("{name}: {wanted}: {:?}", report.faults);
            };
            assert_eq!(function.samples.total, total);
            let found = profile.names.get(function.samples.name);
            assert_eq!(found.guid(), NameRef::of(wanted.as_bytes()));
        }
    }
}

/// The encoding does not show whether the head samples or the total samples come first. Either the values of the two
/// numbers show the order, or a warning says that they do not.
#[test]
fn the_samples_show_which_number_is_the_total() {
    let file = |functions: &[Sampled], composite: Composite| {
        let form = SampleForm {
            version: 105,
            composite: Some(composite),
            ..SampleForm::default()
        };
        sample_profile(functions, &form).finish()
    };
    let one = |head, total, lines: u64| Sampled {
        name: "main",
        head,
        total,
        lines: vec![(1, lines, Vec::new())],
        ..Sampled::default()
    };
    let mut said = String::new();
    for (what, functions) in [
        ("the total is the sum of the lines", vec![one(90, 30, 30)]),
        ("the head is less than the lines", vec![one(20, 50, 40)]),
        ("equal numbers", vec![one(7, 7, 5)]),
        ("both may be the total", vec![one(40, 50, 30)]),
        (
            "functions contradict each other",
            vec![one(90, 30, 30), one(30, 90, 30)],
        ),
    ] {
        for head_first in [false, true] {
            let composite = Composite {
                head_first,
                ..Composite::default()
            };
            let (profile, report) = read_all(&file(&functions, composite));
            let samples = &profile.functions()[0].samples;
            let numbers = format!("head {}, total {}", samples.head, samples.total);
            let order = if head_first { "head" } else { "total" };
            writeln!(said, "{what}, {order} first: {numbers} {}", faults(&report)).unwrap();
        }
    }
    insta::assert_snapshot!(said, @"
    the total is the sum of the lines, total first: head 90, total 30 
    the total is the sum of the lines, head first: head 90, total 30 
    the head is less than the lines, total first: head 20, total 50 
    the head is less than the lines, head first: head 20, total 50 
    equal numbers, total first: head 7, total 7 
    equal numbers, head first: head 7, total 7 
    both may be the total, total first: head 40, total 50 CompositeProfileSection, at offset 0xc1: it is not clear whether a function's total or its head samples come first; the total was taken to come first
    both may be the total, head first: head 50, total 40 CompositeProfileSection, at offset 0xc1: it is not clear whether a function's total or its head samples come first; the total was taken to come first
    functions contradict each other, total first: head 120, total 120 CompositeProfileSection, at offset 0xc3: it is not clear whether a function's total or its head samples come first; the total was taken to come first
    functions contradict each other, head first: head 120, total 120 CompositeProfileSection, at offset 0xc3: it is not clear whether a function's total or its head samples come first; the total was taken to come first
    ");
}

#[test]
fn inlined_functions_with_and_without_head_are_read() {
    for inlined_heads in [false, true] {
        for head_first in [false, true] {
            let form = SampleForm {
                version: 105,
                composite: Some(Composite {
                    head_first,
                    inlined_heads,
                    unknown_blocks: false,
                }),
                ..SampleForm::default()
            };
            let (profile, report) = read_all(&sample_profile(&sampled_functions(), &form).finish());
            assert_eq!(faults(&report), "");
            let (plain, _) = read_all(&fixture("llvm-24/plain.prof"));
            assert_eq!(as_text(&profile), as_text(&plain));
        }
    }
}

/// If one file has both plain and composite sections of samples, the functions of both kinds of sections are read.
#[test]
fn both_kinds_of_sections_in_one_file_add_up() {
    let form = SampleForm {
        version: 105,
        split: true,
        composite: Some(Composite::default()),
        ..SampleForm::default()
    };
    let functions = sampled_functions();
    let composite = sample_profile(&functions, &form);
    let legacy = sample_profile(
        &functions,
        &SampleForm {
            composite: None,
            ..form.clone()
        },
    );
    // Replace the composite section of functions without inlined functions by the plain section of the file `legacy`.
    let flat = |file: &ByteBuilder| {
        let bytes = file.finish();
        bytes[file.offset("flat samples")..file.offset("symbols")].to_vec()
    };
    let mut file = composite.clone();
    let start = file.len() as u64;
    let flat = flat(&legacy);
    file.bytes(&flat);
    let entry = file.offset("entry of flat samples");
    for (word, value) in [(0, 32), (2, start), (3, flat.len() as u64)] {
        let label = format!("word {word}");
        file.label_at(&label, entry + 8 * word);
        file.patch_u64(&label, value);
    }
    let (profile, report) = read_all(&file.finish());
    assert_eq!(faults(&report), "");
    let (plain, _) = read_all(&fixture("llvm-24/plain.prof"));
    assert_eq!(as_text(&profile), as_text(&plain));
}

#[test]
fn symbol_lists_of_hashes_are_kept() {
    let file = fixture("llvm-24/symbols.prof");
    let (mut profile, report) = read_all(&file);
    assert_eq!(faults(&report), "");
    let hash = |name: &str| NameRef::of(name.as_bytes()).0;
    assert!(profile.symbols.is_empty() && profile.symbol_hashes.contains(&hash("never")));
    assert_eq!(profile.symbol_hashes.len(), 5);
    // Add two symbols that are known by name. If the list also has hashes, all symbols are written as hashes.
    profile.symbols.insert((*b"named").into());
    profile.symbols.insert((*b"never").into());
    let mut out = Vec::new();
    let losses = write(&profile, &ExtBinaryOptions::new(), &mut out).unwrap();
    assert!(losses.is_empty());
    let (again, report) = read_all(&out);
    assert_eq!(faults(&report), "");
    assert_eq!(again.symbol_hashes.len(), 6);
    assert!(again.symbol_hashes.contains(&hash("named")) && again.symbols.is_empty());
    // If the option forbids hashes, only the two symbols that are known by name are written.
    let options = ExtBinaryOptions::new().no_symbol_hashes(true);
    out.clear();
    let losses = write(&profile, &options, &mut out).unwrap();
    assert_eq!(losses.symbols, 5);
    let (again, _) = read_all(&out);
    assert_eq!((again.symbols.len(), again.symbol_hashes.len()), (2, 0));
    let mut few = SampleProfile::new();
    read_with(
        &file,
        &mut few,
        1,
        &SampleReadOptions::new().symbols(Some(2)),
    );
    assert_eq!(few.symbol_count(), 2);
}

/// LLVM 22 does not know versions 104 and 105. With `llvm_checks`, our reader rejects files of these versions too.
#[test]
fn the_reader_of_llvm_22_refuses_new_versions() {
    let options = SampleReadOptions::new().llvm_checks(true);
    for name in ["version-104.prof", "composite.prof"] {
        let file = fixture(format!("llvm-24/{name}"));
        let error = ExtBinaryProfile::parse_with(&file, &options).unwrap_err();
        assert_eq!(error.kind(), profkit_data::ErrorKind::UnsupportedVersion);
    }
}

/// One kind of damage: its name, the form of the file that is damaged, and a function that damages the file.
type Damage = (&'static str, SampleForm, fn(&mut ByteBuilder));

#[test]
fn each_damage_has_its_message() {
    let eytzinger = SampleForm {
        eytzinger: true,
        symbols: vec!["main", "second", "third"],
        ..SampleForm::default()
    };
    let split = SampleForm {
        split: true,
        ..eytzinger.clone()
    };
    let composite = SampleForm {
        version: 105,
        composite: Some(Composite::default()),
        ..SampleForm::default()
    };
    let damages: Vec<Damage> = vec![
        ("sizes too small", eytzinger.clone(), |file| {
            file.patch("names", [1]);
        }),
        ("sizes too large", eytzinger.clone(), |file| {
            file.patch("names", [200, 1]);
        }),
        ("names in another order", eytzinger.clone(), |file| {
            let at = file.offset("names") + 3;
            file.label_at("hash", at).patch_u64("hash", 0);
        }),
        ("symbols in another order", eytzinger.clone(), |file| {
            file.patch_u64("symbols", 1);
        }),
        ("symbols cut", eytzinger.clone(), |file| {
            let at = file.offset("entry of symbols") + 24;
            file.label_at("size", at).patch_u64("size", 20);
        }),
        (
            "a function damaged, offsets lead on",
            eytzinger.clone(),
            |file| {
                file.patch("samples", [0, 0, 0, 255, 255, 255, 255, 255]);
            },
        ),
        ("the same in the split layout", split, |file| {
            file.patch("flat samples", [0, 0x7f]);
        }),
        ("and offsets of another number", eytzinger.clone(), |file| {
            file.patch("samples", [0, 0, 0, 255, 255, 255, 255, 255]);
            let at = file.offset("entry of offsets") + 24;
            file.label_at("size", at).patch_u64("size", 12);
        }),
        (
            "and offsets without a sorted name table",
            eytzinger,
            |file| {
                file.patch("samples", [0, 0, 0, 255, 255, 255, 255, 255]);
                file.patch("names", [1]);
            },
        ),
        (
            "a composite section in version 104",
            composite.clone(),
            |file| {
                file.label_at("version", 9).patch("version", [104]);
            },
        ),
        (
            "an unknown section with samples",
            composite.clone(),
            |file| {
                file.patch_u64("entry of samples", 34);
            },
        ),
        ("version 106", composite.clone(), |file| {
            file.label_at("version", 9).patch("version", [106]);
        }),
        ("a block beyond the section", composite.clone(), |file| {
            // The section begins with one byte each for the name, the number of blocks, the type and the size of the
            // first block.
            let at = file.offset("samples") + 3;
            file.label_at("size", at).patch("size", [0xff, 0x7f]);
        }),
        ("a block too short", composite.clone(), |file| {
            let at = file.offset("samples") + 3;
            file.label_at("size", at).patch("size", [2]);
        }),
        ("a block too long", composite.clone(), |file| {
            let at = file.offset("samples") + 3;
            file.label_at("size", at).patch("size", [30]);
        }),
        ("two blocks of one type", composite.clone(), |file| {
            // Two blocks of type 127 without payload.
            file.patch("samples", [3, 2, 127, 0, 127, 0]);
        }),
        ("too many blocks", composite, |file| {
            file.patch("samples", [3, 0xff, 0x7f]);
        }),
    ];
    let mut said = String::new();
    for (what, form, damage) in damages {
        let mut file = sample_profile(&sampled_functions(), &form);
        damage(&mut file);
        let (profile, report) = read_all(&file.finish());
        let functions = profile.functions().len();
        writeln!(said, "{what}: {functions} functions").unwrap();
        for fault in &report.faults {
            writeln!(said, "    {fault}").unwrap();
        }
    }
    insta::assert_snapshot!(said, @"
    sizes too small: 0 functions
        NameTableSection, at offset 0xb8: the name table has another size than its header states: found 56 bytes, expected 8 bytes for each of 1 nested, 3 flat and 2 inlined names
        function that begins at 0x0 of LBRProfileSection, at offset 0x108: the index of a name is beyond the name table: found 0, expected no index, because the table is empty
        FuncOffsetTableSection, at offset 0xf3: the table of offsets belongs to a name table in Eytzinger order: found a name table that is damaged or has another order
    sizes too large: 0 functions
        NameTableSection, at offset 0xb8: the name table has another size than its header states: found 51 bytes, expected 8 bytes for each of 200 nested, 2 flat and 14711745274 inlined names
        function that begins at 0x0 of LBRProfileSection, at offset 0x108: the index of a name is beyond the name table: found 0, expected no index, because the table is empty
        FuncOffsetTableSection, at offset 0xf3: the table of offsets belongs to a name table in Eytzinger order: found a name table that is damaged or has another order
    names in another order: 5 functions
        NameTableSection, at offset 0xbb: the hashes are not in Eytzinger order: found 0x0000000000000000, expected above 0xaa867d131ae6f0a9
    symbols in another order: 5 functions
        ProfileSymbolListSection, at offset 0x15b: the hashes are not in Eytzinger order: found 0x0000000000000001, expected above 0xaa867d131ae6f0a9
    symbols cut: 5 functions
        ProfileSymbolListSection, at offset 0x16b: the last hash is cut off: found 4 bytes, expected 8 bytes
    a function damaged, offsets lead on: 4 functions
        function that begins at 0x0 of LBRProfileSection, at offset 0x10a: a function claims more lines than the bytes left can hold: found 68719476735, expected at most 18, because each takes at least 4 bytes and only 75 are left
    the same in the split layout: 4 functions
        function that begins at 0x0 of LBRProfileSection, at offset 0x185: the index of a name is beyond the name table: found 127, expected below 7
    and offsets of another number: 0 functions
        function that begins at 0x0 of LBRProfileSection, at offset 0x10a: a function claims more lines than the bytes left can hold: found 68719476735, expected at most 18, because each takes at least 4 bytes and only 75 are left
        FuncOffsetTableSection, at offset 0xf3: the table of offsets does not have one offset per function: found 12 bytes, expected 4 bytes for each of 5 functions
    and offsets without a sorted name table: 0 functions
        NameTableSection, at offset 0xb8: the name table has another size than its header states: found 56 bytes, expected 8 bytes for each of 1 nested, 3 flat and 2 inlined names
        function that begins at 0x0 of LBRProfileSection, at offset 0x108: the index of a name is beyond the name table: found 0, expected no index, because the table is empty
        FuncOffsetTableSection, at offset 0xf3: the table of offsets belongs to a name table in Eytzinger order: found a name table that is damaged or has another order
    a composite section in version 104: 0 functions
        section table, at offset 0xef: the samples of the composite section were left out, because the version of the file does not allow this section: found version 104, expected version 105
    an unknown section with samples: 0 functions
        section table, at offset 0xef: a section has samples of an unknown form; they were left out: found section kind 34, expected 32 or 33
    version 106: 0 functions
        header, at offset 0x9: the version is not known: found 106, expected 103, 104, 105
    a block beyond the section: 4 functions
        function that begins at 0x0 of CompositeProfileSection, at offset 0xf1: a block runs past the end of its section: found type 0 with 16383 bytes, expected at most 103 bytes
    a block too short: 4 functions
        function that begins at 0x0 of CompositeProfileSection, at offset 0xf5: the data are too short here: found 0 bytes left, expected 1 byte
    a block too long: 4 functions
        function that begins at 0x0 of CompositeProfileSection, at offset 0x102: a block of samples has bytes after the samples: found 15 unread bytes, expected none
    two blocks of one type: 4 functions
        function that begins at 0x0 of CompositeProfileSection, at offset 0xf3: a function has two blocks of one type: found type 127 again
        CompositeProfileSection, at offset 0xf1: blocks of unknown types were left out: found a block of type 127, expected type 0 (samples)
    too many blocks: 4 functions
        function that begins at 0x0 of CompositeProfileSection, at offset 0xf0: a function claims more blocks than the bytes left can hold: found 16383, expected at most 52, because each takes at least 2 bytes and only 105 are left
    ");
}

/// Whatever bytes are changed or cut off, reading does not panic, and each error has an offset.
#[test]
fn damaged_files_are_read_without_a_panic() {
    for (name, form) in sample_forms() {
        let file = sample_profile(&sampled_functions(), &form).finish();
        for at in 0..file.len() {
            read_all(&file[..at]);
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = ByteBuilder::from_bytes(Endian::Little, file.clone());
                let bytes = bytes.label_at("byte", at).patch("byte", [value]).finish();
                let (_, report) = read_all(&bytes);
                assert!(
                    report.faults.iter().all(|error| error.offset().is_some()),
                    "{name}: {}",
                    faults(&report)
                );
            }
        }
    }
}

#[test]
fn names_of_sorted_tables_are_hashes() {
    let (profile, _) = read_all(&fixture("llvm-24/eytzinger.prof"));
    let name = profile.names.get(profile.functions()[0].samples.name);
    assert!(matches!(name, SampleName::Guid(_)));
}
