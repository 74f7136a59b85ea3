//! `--fs-discriminator-pass` and `--profile-isfs`: FS-AFDO discriminators are cut to the bits that one pass and the
//! passes before it set.
use super::harness::{Pair, compare_all};
use super::sample::convert;
use profkit_testkit::sample::{SampleOptions, SampleShape, sample_text};
use profkit_testkit::{Llvm, require_or_skip, short_or_whole};
use std::fmt::Write;

const PASSES: [&str; 5] = ["Base", "Pass1", "Pass2", "Pass3", "PassLast"];

/// Lines, call targets and inlined functions whose locations become equal when their discriminators are cut to the bits
/// of a pass.
const PLACES: &str = "foo:1000:10\n 1: 10\n 2.3: 20 bar:15 baz:5\n 2.259: 40 bar:40\n 2.20000: 1\n 2.4000000: 2\n \
     2.3000000003: 3\n 3.1: bar:100\n  1: 50\n  1.257: 50\n 3.257: bar:200\n  1: 200\n  4.300: 7\nmain:5:1\n 1.511: 5\n";
const CONTEXTS: &str =
    "[main:3.259 @ foo]:100:10\n 1: 10\n 2.3: 5\n 2.259: 6\n[main:3.3 @ foo]:100:10\n 2.259: 6\n";
const VTABLES: &str = "foo:100:10\n 1: 10\n 2.3: 5\n 2.259: 6\n 2.3: vtables _ZTVa:5 _ZTVb:7\n 2.259: vtables _ZTVa:9 _ZTVc:1\n";

/// A generated profile in which every second location has a discriminator of up to 32 bits.
fn generated(seed: u64) -> String {
    let options = SampleOptions {
        functions: 60,
        pool: 90,
        lines: 12,
        shape: SampleShape::Nested,
        one_program: true,
    };
    let mut text = String::new();
    for (index, line) in (0u32..).zip(sample_text(&options, seed).lines()) {
        match line.split_once(": ") {
            Some((place, rest)) if line.starts_with(' ') && index % 2 == 0 => {
                let place = place.split('.').next().unwrap_or(place);
                // Only a few bits of each pass are used, so that some discriminators become equal.
                let discriminator = index.wrapping_mul(2_654_435_761) & 0xc308_2107;
                writeln!(text, "{place}.{discriminator}: {rest}").unwrap();
            }
            _ => writeln!(text, "{line}").unwrap(),
        }
    }
    text
}

/// Returns text profiles, and the same profiles as several LLVM releases write them in each encoding that LLVM 22
/// reads.
fn profiles(llvm: &Llvm) -> (Pair, Vec<String>) {
    let mut pair = Pair::new(llvm);
    let mut names = Vec::new();
    let texts = [
        ("places", PLACES.to_owned()),
        ("contexts", CONTEXTS.to_owned()),
        ("many", generated(1)),
    ];
    for (name, text) in &texts {
        pair.add(name, text);
        names.push((*name).to_owned());
        for release in short_or_whole(vec![13, 22], vec![13, 14, 15, 16, 19, 22]) {
            let llvm = require_or_skip!(release, continue);
            for (form, options) in [
                ("fs", &["--profile-isfs"][..]),
                ("ext", &[]),
                ("bin", &["--binary", "--profile-isfs"]),
                ("md5", &["--use-md5", "--profile-isfs"]),
            ] {
                // LLVM 22 does not read the calling contexts that LLVM 13 writes. profkit reads them, which is an
                // allowed difference.
                if release == 13 && *name == "contexts" {
                    continue;
                }
                if let Some(bytes) = convert(&llvm, text, options) {
                    let name = format!("{name}.{form}{release}");
                    pair.add(&name, bytes);
                    names.push(name);
                }
            }
        }
    }
    (pair, names)
}

#[test]
fn discriminators_are_cut_alike() {
    let llvm = require_or_skip!(22);
    let (pair, names) = profiles(&llvm);
    let mut lines = Vec::new();
    for (index, name) in names.iter().enumerate() {
        // Text profiles are tested with all passes. A profile in another encoding is tested with one pass, a different
        // one for each release, because the releases write almost the same file.
        let passes = match name.contains('.') {
            true => &PASSES[index % 4..=index % 4],
            false => &PASSES[..],
        };
        for pass in passes {
            let options = format!("-fs-discriminator-pass={pass}");
            lines.push(format!("merge -sample -text {options} {name}"));
            lines.push(format!("show -sample {options} -profile-isfs {name}"));
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Further options that LLVM's libraries define and that change how sample profiles are read.
#[test]
fn cutoffs_of_libraries_are_known() {
    let llvm = require_or_skip!(22);
    let contexts = "[main:3 @ a:1 @ b]:500:20\n 1: 400\n 3: 100\n[main:4 @ a:1 @ b]:60:20\n 1: 60\n\
        [main:5 @ a:1 @ b]:6:2\n 1: 6\n[main]:300:1\n 1: 3\n";
    let mut pair = Pair::new(&llvm)
        .file("contexts", contexts)
        .file("places", PLACES)
        .file("symbols", "zz\naa\nmm\nbb\n");
    let listed = pair.llvm(
        &[
            "merge",
            "-sample",
            "-prof-sym-list=symbols",
            "places",
            "-o",
            "out",
        ],
        b"",
    );
    pair.add("listed", &listed.files["out"]);
    let mut lines = Vec::new();
    for cutoff in [999_999, 900_000, 500_000, 1] {
        for what in ["merge", "trim"] {
            lines.push(format!(
                "merge -sample -text -sample-{what}-cold-context -profile-summary-cutoff-cold={cutoff} contexts"
            ));
        }
    }
    for count in ["0", "1", "7", "100", "500", "18446744073709551615", "x"] {
        for what in ["merge", "trim"] {
            lines.push(format!(
                "merge -sample -text -sample-{what}-cold-context -profile-summary-cold-count={count} contexts"
            ));
        }
        lines.push(format!(
            "overlap -sample contexts contexts -profile-summary-hot-count={count}"
        ));
    }
    for contextless in ["", "=1", "=0", "=x"] {
        for command in [
            "merge -sample -binary",
            "merge -sample -text -sample-trim-cold-context",
            "merge -sample -text -sample-merge-cold-context -profile-summary-cutoff-cold=900000",
        ] {
            lines.push(format!(
                "{command} -profile-summary-contextless{contextless} contexts -o out"
            ));
        }
        lines.push(format!(
            "show -sample -detailed-summary -hot-func-list -profile-summary-contextless{contextless} contexts"
        ));
    }
    for cutoff in ["1", "2", "4", "0", "18446744073709551615", "x"] {
        for command in ["show -sample -show-prof-sym-list", "merge -sample -o out"] {
            lines.push(format!(
                "{command} -profile-symbol-list-cutoff={cutoff} listed"
            ));
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

#[test]
fn all_commands_cut_discriminators_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm)
        .file("places", PLACES)
        .file("vtables", VTABLES)
        .file("other", generated(2))
        .file("map", "bar renamed\n")
        .file(
            "instr",
            ":ir\nfoo\n1\n12\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n\nhot\n1\n1\n900000\n\n",
        );
    for (name, text, options) in [
        ("fs", PLACES, &["--profile-isfs"][..]),
        ("plain", PLACES, &[]),
        ("bin", PLACES, &["--binary"]),
    ] {
        pair.add(name, convert(&llvm, text, options).unwrap());
    }
    let mut lines = Vec::new();
    // Only some encodings can mark a profile as an FS-AFDO profile. The last input with such an encoding decides: the
    // result is marked if this input is.
    for inputs in [
        "fs places",
        "places fs",
        "fs plain",
        "plain fs",
        "fs bin plain",
        "-weighted-input=3,fs fs",
        "fs nothere",
    ] {
        for options in ["", "-profile-isfs ", "-fs-discriminator-pass=Pass2 "] {
            lines.push(format!("merge -sample -o out {options}{inputs}"));
            lines.push(format!("merge -sample -binary -o out {options}{inputs}"));
        }
    }
    for options in [
        "merge -sample -text -r map places",
        "merge -sample -text -r map fs",
        "merge -sample -o out -r map fs",
        "merge -sample -text -profile-isfs vtables",
        "merge -sample -text -convert-sample-profile-layout=flat fs",
        "merge -supplement-instr-with-sample=fs instr -text -o out",
        "show -sample -json fs",
        "show -sample -function=foo fs",
        "show -sample -profile-isfs -function=foo places",
        "show -sample -show-sec-info-only fs",
        "overlap -sample fs other",
        "overlap -sample other fs",
        "overlap -sample -profile-isfs places bin",
        "overlap -sample fs places",
    ] {
        for pass in ["Base", "Pass1", "Pass3"] {
            lines.push(format!("{options} -fs-discriminator-pass={pass}"));
        }
    }
    for options in [
        "-fs-discriminator-pass=base",
        "-fs-discriminator-pass=Pass4",
        "-fs-discriminator-pass=",
        "-fs-discriminator-pass",
        "--fs-discriminator-pass Base",
        "-fs-discriminator-pass=Base -fs-discriminator-pass=Pass1",
        "-profile-isfs=0",
        "-profile-isfs=maybe",
    ] {
        lines.push(format!("merge -sample -text places {options}"));
        lines.push(format!("show -sample places {options}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}
