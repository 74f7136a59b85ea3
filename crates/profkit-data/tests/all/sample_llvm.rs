//! Compares our sample profiles with those of llvm-profdata: generated profiles, in every encoding and with every
//! option.
use crate::hashed::hashed;
use profkit_data::sample::ext_binary::{ExtBinaryOptions, ExtBinaryProfile};
use profkit_data::sample::text::TextOptions;
use profkit_data::sample::{SampleProfile, binary, ext_binary, text};
use profkit_testkit::{Llvm, OddSamples, odd_sample_text, require_or_skip, skip};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of profiles that are generated for each combination of properties ([`OddSamples`]).
const SEEDS: u64 = 3;

fn read(data: &[u8]) -> SampleProfile {
    let mut profile = SampleProfile::new();
    let report = match binary::parse_header(data).map(|header| header.encoding) {
        Ok(0xff) => binary::read(data, &mut profile, 1).unwrap(),
        Ok(2) => binary::read_compact(data, &mut profile, 1).unwrap(),
        Ok(_) => ExtBinaryProfile::parse(data).unwrap().read(&mut profile, 1),
        Err(_) => text::read(data, &mut profile, 1),
    };
    assert_eq!(report.faults, []);
    profile
}

fn as_text(profile: &SampleProfile) -> Vec<u8> {
    let mut out = Vec::new();
    text::write(profile, &TextOptions::default(), &mut out).unwrap();
    out
}

/// An encoding that both LLVM and our writer support.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Binary,
    Ext(ExtBinaryOptions),
}

/// Returns all encodings. Each is given as options of llvm-profdata and in the form for our writer.
fn forms() -> Vec<(&'static str, Form)> {
    let ext = ExtBinaryOptions::default();
    vec![
        ("--text", Form::Text),
        ("--binary", Form::Binary),
        ("--extbinary", Form::Ext(ext)),
        ("--extbinary --use-md5", Form::Ext(ext.md5_names(true))),
        (
            "--extbinary --split-layout",
            Form::Ext(ext.split_layout(true)),
        ),
        (
            "--extbinary --gen-partial-profile",
            Form::Ext(ext.partial(true)),
        ),
        (
            "--extbinary --compress-all-sections",
            Form::Ext(ext.compress(true)),
        ),
        (
            "--extbinary --extbinary-write-vtable-type-prof",
            Form::Ext(ext.vtables(true)),
        ),
    ]
}

fn write(profile: &SampleProfile, form: Form) -> profkit_data::Result<Vec<u8>> {
    let mut out = Vec::new();
    match form {
        Form::Text => {
            let options = TextOptions::default().llvm_vtables(true);
            text::write(profile, &options, &mut out)
        }
        Form::Binary => binary::write(profile, &mut out),
        Form::Ext(options) => ext_binary::write(profile, &options, &mut out),
    }
    .map(|_| out)
}

fn merge(llvm: &Llvm, options: &str, input: &Path) -> Result<Vec<u8>, String> {
    // LLVM's writers seek in their output, so it must be a file and not standard output.
    let written = input.with_extension("out");
    let output = Command::new(llvm.profdata())
        .args(["merge", "--sample", "-o"])
        .arg(&written)
        .args(options.split_whitespace())
        .arg(input)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(std::fs::read(&written).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn generated_profiles_come_out_of_every_form_with_the_bytes_of_llvm_22() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    for shape in OddSamples::all() {
        for seed in 0..SEEDS {
            let source = odd_sample_text(shape, seed);
            let input = file(&folder, "input.prof", source.as_bytes());
            let profile = read(source.as_bytes());
            assert_eq!(as_text(&profile), as_text(&read(&as_text(&profile))));
            for (options, form) in forms() {
                let what = format!("{shape:?}, seed {seed}, {options}");
                let ours = write(&profile, form);
                if shape.contexts && options.ends_with("--split-layout") {
                    assert!(ours.is_err(), "{what}");
                    continue;
                }
                let theirs = merge(&llvm, options, &input);
                match (ours, theirs) {
                    (Ok(ours), Ok(theirs)) => compare(&what, form, &ours, &theirs),
                    (Err(_), Err(_)) => {}
                    (Ok(_), Err(why)) => panic!("{what}: LLVM refuses: {why}"),
                    (Err(why), Ok(_)) => panic!("{what}: profkit refuses: {why}"),
                }
            }
        }
    }
}

fn compare(what: &str, form: Form, ours: &[u8], theirs: &[u8]) {
    if ours == theirs {
        return;
    }
    let Form::Ext(options) = form else {
        panic!(
            "{what}:\n{}\n----\n{}",
            String::from_utf8_lossy(ours),
            String::from_utf8_lossy(theirs)
        );
    };
    let (one, two) = (
        ExtBinaryProfile::parse(ours).unwrap(),
        ExtBinaryProfile::parse(theirs).unwrap(),
    );
    assert_eq!(one.sections().len(), two.sections().len(), "{what}");
    for (left, right) in one.sections().iter().zip(two.sections()) {
        assert_eq!((left.kind, left.flags), (right.kind, right.flags), "{what}");
        if !options.compress {
            assert_eq!(
                (left.offset, left.size),
                (right.offset, right.size),
                "{what}"
            );
        }
        // LLVM writes the metadata in the order of a hash table, so the bytes of this section are not compared.
        if left.kind != profkit_abi::sample::section::METADATA {
            let bytes = (one.contents(left).unwrap(), two.contents(right).unwrap());
            assert!(bytes.0 == bytes.1, "{what}: {}", left.name());
        }
    }
    assert_eq!(as_text(&read(ours)), as_text(&read(theirs)), "{what}");
}

#[test]
fn what_is_written_is_read_by_every_release() {
    let folder = tempfile::tempdir().unwrap();
    for llvm in Llvm::installed() {
        // LLVM 13 has a different layout for contexts and metadata, so profiles with contexts or checksums are skipped.
        let is_13 = llvm.release() == 13;
        for shape in OddSamples::all().filter(|shape| !shape.vtables && !shape.attributes) {
            if is_13 && (shape.contexts || shape.probes) {
                continue;
            }
            let profile = read(odd_sample_text(shape, 7).as_bytes());
            let written = as_text(&profile);
            let source = file(&folder, "source.prof", &written);
            let expected = merge(&llvm, "--text", &source).unwrap();
            for (options, form) in forms() {
                let reads_md5 = !options.ends_with("md5");
                if !reads_md5 || options.ends_with("vtable-type-prof") {
                    continue;
                }
                // LLVM 13 does not know the section of contexts, which LLVM 14 introduced. Our writer leaves this
                // section out only in the split layout, so all other layouts are skipped.
                if is_13 && matches!(form, Form::Ext(options) if !options.split_layout) {
                    continue;
                }
                let Ok(bytes) = write(&profile, form) else {
                    continue;
                };
                let input = file(&folder, "written.prof", &bytes);
                let found = merge(&llvm, "--text", &input).unwrap();
                assert_eq!(
                    String::from_utf8_lossy(&found),
                    String::from_utf8_lossy(&expected),
                    "{shape:?} {options} in LLVM {}",
                    llvm.release()
                );
            }
            if llvm.release() < 17 && !shape.contexts && !shape.probes {
                let mut compact = Vec::new();
                binary::write_compact(&profile, &mut compact).unwrap();
                let theirs = merge(&llvm, "--compbinary", &source).unwrap();
                let summary_and_size =
                    |bytes: &[u8]| (bytes.len(), bytes.get(..60).map(<[u8]>::to_vec));
                assert_eq!(summary_and_size(&compact), summary_and_size(&theirs));
                let input = file(&folder, "compact.prof", &compact);
                let again = file(&folder, "theirs.prof", &theirs);
                assert_eq!(
                    merge(&llvm, "--text", &input),
                    merge(&llvm, "--text", &again)
                );
            }
        }
    }
    if Llvm::installed().is_empty() {
        skip("no LLVM is installed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Writes and reads a profile in a random sequence of encodings: text, extensible binary in every layout and, if it
    /// can hold the profile, binary. The profile must not change.
    #[test]
    fn every_encoding_comes_back(
        seed: u64,
        bits in 0usize..16,
        path in proptest::collection::vec(0usize..6, 1..6),
    ) {
        let shape = OddSamples::all().nth(bits).unwrap();
        let original = read(odd_sample_text(shape, seed).as_bytes());
        let wanted = as_text(&original);
        let mut profile = original;
        for step in path {
            let options = ExtBinaryOptions::default().vtables(true);
            let form = match step {
                0 => Form::Text,
                1 if !shape.vtables && !shape.attributes => Form::Binary,
                2 if !shape.contexts => Form::Ext(options.split_layout(true)),
                3 => Form::Ext(options.compress(true)),
                _ => Form::Ext(options),
            };
            let bytes = match form {
                Form::Text => as_text(&profile),
                form => match write(&profile, form) {
                    Ok(bytes) => bytes,
                    Err(_) => continue,
                },
            };
            profile = read(&bytes);
        }
        // Attributes are stored only in profiles with contexts or with decisions of the preinliner.
        let found = as_text(&profile);
        if shape.attributes && !shape.contexts {
            let lines = |text: &[u8]| {
                let text = String::from_utf8(text.to_vec()).unwrap();
                let lines = text.lines().filter(|line| !line.contains("!Attributes"));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(lines(&found), lines(&wanted));
        } else {
            prop_assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(wanted).unwrap());
        }
    }
    /// The compact binary encoding holds hashes in place of names, and no contexts, checksums, attributes or vtables.
    #[test]
    fn compact_binary_comes_back_as_hashes(seed: u64, bits in 0usize..16) {
        let shape = OddSamples::all().nth(bits).unwrap();
        let source = odd_sample_text(shape, seed);
        let original = read(source.as_bytes());
        let mut file = Vec::new();
        let written = binary::write_compact(&original, &mut file);
        prop_assert_eq!(written.is_err(), shape.contexts || shape.probes);
        if written.is_err() {
            return Ok(());
        }
        let found = read(&file);
        let kept = source
            .lines()
            .filter(|line| !line.contains("!Attributes") && !line.contains(": vtables "));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let wanted = hashed(&read(kept.as_bytes()));
        prop_assert_eq!(
            String::from_utf8(as_text(&found)).unwrap(),
            String::from_utf8(as_text(&wanted)).unwrap()
        );
        let mut again = Vec::new();
        binary::write_compact(&found, &mut again).unwrap();
        prop_assert_eq!(read(&again).functions().len(), found.functions().len());
        prop_assert_eq!(as_text(&read(&again)), as_text(&found));
    }
}
