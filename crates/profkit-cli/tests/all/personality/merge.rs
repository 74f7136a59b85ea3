//! `merge`: bytes, messages and exit codes.
use super::harness::{Pair, compare_all};
use super::profiles::{TEXTS, add_fixture, real};
use profkit_testkit::require_or_skip;

#[test]
fn texts_are_merged_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm)
        .file("map", "# names\nfoo renamed\n\nbar foo\n")
        .file("badmap", "foo\n")
        .file("list", "3,fe.proftext\n#x\nhashes.proftext\n");
    let mut lines = Vec::new();
    for (name, text) in TEXTS {
        pair.add(name, text);
        lines.push(format!("merge {name} -o out"));
        lines.push(format!("merge -text -sparse {name}"));
        lines.push(format!("merge -text -weighted-input=3,{name} {name} -j 1"));
        lines.push(format!("merge -failure-mode=all -o=out fe.proftext {name}"));
        lines.push(format!(
            "merge -failure-mode=warn -j 1 -o=out ir.proftext {name} {name}"
        ));
    }
    for options in [
        "-function=oo -text fe.proftext",
        "-function=^b -o out fe.proftext hashes.proftext",
        "-no-function=oo -text fe.proftext",
        "-function=o -no-function=foo -text fe.proftext",
        "-function=( fe.proftext",
        "-function=[ fe.proftext",
        "-function=a** fe.proftext",
        "-function=[b-a] fe.proftext",
        "-function=[[:no:]] fe.proftext",
        "-function=a{2,1} -o out fe.proftext",
        "-no-function=\\ fe.proftext",
        "-no-function=) fe.proftext",
        "-function=?foo -text fe.proftext",
        "-text -r map fe.proftext",
        "-text -remapping-file=badmap fe.proftext",
        "-text -f list",
        "-text -f list counters.proftext",
        "-binary -text fe.proftext",
        "-text -extbinary fe.proftext -o out",
        "-gcc fe.proftext",
        "-write-prev-version fe.proftext -o out",
        "-debuginfod fe.proftext",
        "-debuginfod -binary-file=x fe.proftext",
        "-debug-info=x -binary-file=y fe.proftext",
        "-debug-file-directory=x fe.proftext",
        "-correlate=binary fe.proftext",
        "-sample -supplement-instr-with-sample=x fe.proftext",
        "fe.proftext -o nofolder/out",
        "fe.proftext -o ''",
        "-text ir.proftext fe.proftext counters.proftext",
        "-text bitmap.proftext bitmap3.proftext",
        "-text -temporal-profile-max-trace-length=2 traces.proftext",
        "-text -temporal-profile-trace-reservoir-size=1 traces.proftext traces.proftext",
        "-temporal-profile-trace-reservoir-size=0 traces.proftext -o out",
        "-o - -text fe.proftext -",
    ] {
        lines.push(format!("merge {options}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

#[test]
fn real_profiles_are_merged_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for folder in ["raw", "indexed"] {
        for name in real(folder, "clang-22")
            .into_iter()
            .chain(real(folder, "rustc"))
        {
            add_fixture(&mut pair, &name);
            lines.push(format!("merge {name} -o out"));
            lines.push(format!(
                "merge -sparse -weighted-input=5,{name} {name} -o out"
            ));
        }
    }
    for mode in [
        "fe",
        "ir",
        "cs-ir",
        "mcdc",
        "vtables",
        "fe-values",
        "block-coverage",
        "temporal",
    ] {
        let mut names = real("raw", &format!("clang-22-{mode}-"));
        names.extend(real("raw", &format!("clang-19-{mode}-")));
        names.iter().for_each(|name| add_fixture(&mut pair, name));
        let names = names.join(" ");
        lines.push(format!("merge -j 1 -o out {names}"));
        lines.push(format!("merge -text -j 1 -sparse -o out {names}"));
    }
    for name in real("raw", "fe-plain") {
        add_fixture(&mut pair, &name);
        lines.push(format!("merge {name} -o out"));
    }
    for name in [
        "raw/clang-22-vtables-shapes.profraw",
        "indexed/clang-22-vtables-shapes.profdata",
    ] {
        lines.push(format!("merge -keep-vtable-symbols {name} -o out"));
    }
    for folder in ["raw", "indexed"] {
        let [entries, loops] = ["function-entry", "loop-entries"]
            .map(|mode| real(folder, &format!("clang-22-{mode}-")).join(" "));
        lines.push(format!("merge -j 1 -o out {entries} {loops}"));
        lines.push(format!("merge -j 1 -o out {loops} {entries}"));
    }
    let old = real("raw", "clang-16-fe-plain").join(" ");
    lines.push(format!(
        "merge -failure-mode=all {old} raw/clang-22-fe-plain.profraw -o out"
    ));
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// A text profile names virtual tables in its value data. With every input and output format, the same names must be
/// kept as in LLVM 22.
#[test]
fn names_of_virtual_tables_in_texts_are_kept_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    add_fixture(&mut pair, "raw/clang-22-vtables-shapes.profraw");
    let text = pair.llvm(
        &[
            "merge",
            "-text",
            "-keep-vtable-symbols",
            "raw/clang-22-vtables-shapes.profraw",
        ],
        b"",
    );
    let text = String::from_utf8(text.stdout).expect("a text");
    assert!(text.contains("_ZTV6Square:30\n"), "{text}");
    // This text has other names in another order, a function and a virtual table with the same name, an unknown table,
    // and two tables at one value site.
    let other = ":ir\nf\n1\n1\n5\n2\n0\n1\n1\n_ZTV3Box:4\n2\n2\n3\n_ZTV4Node:2\n_ZTV3Box:1\n** External Symbol **:1\n\
                 1\n_ZTV4Leaf:7\n\n";
    // The damage comes after some names. LLVM's tool keeps the names that it has read before the damage.
    let damaged = text.replacen("_ZTV6Square:30", "_ZTV6Square:x", 1);
    pair.add("damaged.proftext", &damaged);
    pair.add("in.proftext", &text);
    let args = ["merge", "-keep-vtable-symbols", "in.proftext", "-o", "out"];
    let indexed = pair.llvm(&args, b"").files.remove("out");
    pair.add("indexed.profdata", indexed.expect("LLVM's tool writes it"));
    pair.add("other.proftext", other);
    let mut lines = Vec::new();
    for form in ["", "-text", "-sparse", "-write-prev-version"] {
        for inputs in [
            "in.proftext",
            "other.proftext",
            "indexed.profdata",
            "in.proftext other.proftext",
            "other.proftext in.proftext",
            "indexed.profdata other.proftext raw/clang-22-vtables-shapes.profraw",
            "-failure-mode=all other.proftext damaged.proftext",
            "-failure-mode=all damaged.proftext other.proftext",
            "-failure-mode=all damaged.proftext damaged.proftext",
            "-function=nothing in.proftext",
        ] {
            for keep in ["", "-keep-vtable-symbols"] {
                lines.push(format!("merge -j 1 {form} {keep} {inputs} -o out"));
            }
        }
    }
    for name in ["in.proftext", "indexed.profdata"] {
        lines.push(format!("show -all-functions -show-vtables {name}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
    // The results are not only the same as LLVM's: they must have the names.
    let args = [
        "merge",
        "-keep-vtable-symbols",
        "other.proftext",
        "-o",
        "out",
    ];
    let merged = pair.profkit(&args, b"").files.remove("out").expect("out");
    let names = profkit_data::instr::indexed::IndexedProfile::parse(&merged)
        .and_then(|profile| profile.vtable_names())
        .expect("names");
    let mut names: Vec<_> = names.iter().map(|(_, name)| name.to_vec()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            b"_ZTV3Box".to_vec(),
            b"_ZTV4Leaf".to_vec(),
            b"_ZTV4Node".to_vec()
        ]
    );
}
