//! Reads sample profiles that LLVM wrote from the texts in `tests/programs/samples`, in every release and encoding.
//! Each profile must be equal to the text from which it was written.
use crate::hashed::hashed;
use profkit_data::sample::ext_binary::{ExtBinaryOptions, ExtBinaryProfile};
use profkit_data::sample::text::TextOptions;
use profkit_data::sample::{ReadReport, SampleProfile, binary, ext_binary, text};
use profkit_testkit::{fixture, fixtures_with, repo_root};
use std::collections::BTreeMap;

fn read(data: &[u8], profile: &mut SampleProfile) -> ReadReport {
    match binary::parse_header(data).map(|header| header.encoding) {
        Ok(0xff) => binary::read(data, profile, 1).unwrap(),
        Ok(2) => binary::read_compact(data, profile, 1).unwrap(),
        Ok(_) => ExtBinaryProfile::parse(data).unwrap().read(profile, 1),
        Err(_) => text::read(data, profile, 1),
    }
}

fn sound(data: &[u8]) -> SampleProfile {
    let mut profile = SampleProfile::new();
    let report = read(data, &mut profile);
    assert_eq!(report.faults, []);
    profile
}

fn as_text(profile: &SampleProfile) -> String {
    let mut out = Vec::new();
    text::write(profile, &TextOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_release_and_encoding_is_the_text_it_was_made_from() {
    let mut seen = BTreeMap::<String, usize>::new();
    for path in fixtures_with(&["sampleprof"]) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let words: Vec<&str> = name.split('-').collect();
        let [_, release, source, encoding @ ..] = words.as_slice() else {
            panic!("{name}");
        };
        let original = repo_root().join(format!("tests/programs/samples/{source}.txt"));
        let original = sound(&std::fs::read(original).unwrap());
        let found = sound(&fixture(&path));
        match *encoding {
            // LLVM 13 writes the hash of a whole calling context. The function cannot be found from this hash.
            ["ext", "md5"] if *release == "13" && *source == "contexts" => {
                assert_eq!(found.functions().len(), original.functions().len());
            }
            ["compact"] | ["ext", "md5"] => {
                assert_eq!(
                    as_text(&hashed(&found)),
                    as_text(&hashed(&original)),
                    "{name}"
                );
            }
            _ => assert_eq!(as_text(&found), as_text(&original), "{name}"),
        }
        *seen.entry(encoding.join("-")).or_default() += 1;
    }
    let counts: Vec<_> = seen.into_iter().collect();
    insta::assert_debug_snapshot!(counts);
}

/// Writes files of LLVM 22 again, with the same bytes. Compressed sections are compared after decompression, metadata
/// by their meaning.
#[test]
fn files_of_llvm_22_come_out_with_its_bytes() {
    let mut compared = 0;
    for path in fixtures_with(&["sampleprof"]) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("llvm-22-") {
            continue;
        }
        let file = fixture(&path);
        // LLVM orders functions by name if their totals are equal. A file of hashes does not have the names, so the
        // profile is read from the text from which the file was made.
        let source = name.split('-').nth(2).unwrap();
        let source = repo_root().join(format!("tests/programs/samples/{source}.txt"));
        let profile = if name.ends_with("md5") {
            sound(&std::fs::read(source).unwrap())
        } else {
            sound(&file)
        };
        let mut out = Vec::new();
        let options = ExtBinaryOptions::default()
            .md5_names(name.ends_with("md5"))
            .compress(name.ends_with("compressed"))
            .split_layout(name.ends_with("split"));
        if name.ends_with("-text") {
            text::write(&profile, &TextOptions::default(), &mut out).unwrap();
        } else if name.ends_with("-binary") {
            binary::write(&profile, &mut out).unwrap();
        } else {
            ext_binary::write(&profile, &options, &mut out).unwrap();
            compare_sections(&name, &file, &out);
            compared += 1;
            continue;
        }
        assert!(out == file, "{name}");
        compared += 1;
    }
    assert!(compared >= 14, "{compared}");
}

fn compare_sections(name: &str, one: &[u8], two: &[u8]) {
    let (one, two) = (
        ExtBinaryProfile::parse(one).unwrap(),
        ExtBinaryProfile::parse(two).unwrap(),
    );
    assert_eq!(one.sections().len(), two.sections().len(), "{name}");
    let mut metadata_differ = false;
    for (left, right) in one.sections().iter().zip(two.sections()) {
        assert_eq!((left.kind, left.flags), (right.kind, right.flags), "{name}");
        let (left_bytes, right_bytes) = (one.contents(left).unwrap(), two.contents(right).unwrap());
        assert_eq!(left_bytes.len(), right_bytes.len(), "{name}");
        if left.kind == profkit_abi::sample::section::METADATA {
            metadata_differ = left_bytes != right_bytes;
        } else {
            assert!(left_bytes == right_bytes, "{name}: {}", left.name());
            assert_eq!(
                left.offset == right.offset,
                left.flags & 1 == 0 || left.offset == right.offset
            );
        }
    }
    if metadata_differ {
        let mut texts = [one, two].map(|opened| {
            let mut profile = SampleProfile::new();
            assert_eq!(opened.read(&mut profile, 1).faults, []);
            as_text(&profile)
        });
        let [left, right] = &mut texts;
        assert_eq!(left, right, "{name}");
    }
}
