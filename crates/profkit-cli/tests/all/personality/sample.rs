//! `--sample`: profiles of every encoding and of five releases, merged and shown by both tools.
use super::harness::{Pair, compare_all};
use super::profiles::add_fixture;
use profkit_abi::sample::{flag, section};
use profkit_testkit::sample::{SampleOptions, SampleShape, sample_text};
use profkit_testkit::{Llvm, require_or_skip, short_or_whole, some_or_all};
use std::process::Command;

/// Profiles that were written by hand. Each has something that generated profiles do not have.
const TEXTS: [(&str, &str); 16] = [
    (
        "lines",
        "main:184019:0\n 4: 534\n 4.2: 534\n 9: 2064 _Z3bari:1471 _Z3fooi:631\n 10: inline1:1000\n  1: 1000\n 10: inline2:2000\n  1: 2000\n_Z3bari:20301:1437\n 1: 1437\n",
    ),
    (
        "other",
        "# by hand\n_Z3bari:10:3\n 1: 7\n 2: 3\nzero:0:0\nmain:5:1\n 4: 5 _Z3bari:5\n 10: inline1:7\n  1: 7\n   2: deep:3\n    1: 3\n",
    ),
    (
        "contexts",
        "[main:3 @ _Z5funcAi:1 @ _Z8funcLeafi]:500853:20\n 1: 15 _Z3foo:4\n 3: 20\n[main]:300:1\n 1: 3\n 3: 297 _Z5funcAi:100\n[main:3 @ _Z5funcAi]:90:2\n 1: 90 _Z8funcLeafi:50\n[_Z8funcLeafi]:10:1\n 1: 10\n",
    ),
    (
        "probes",
        "foo:3200:13\n 1: 13\n 4: 3180\n 5: bar:10\n  1: 10\n  !CFGChecksum: 99\n !CFGChecksum: 563022570642068\nbar:80:2\n 1: 80\n !CFGChecksum: 99\n",
    ),
    (
        "rebuilt",
        "foo:7:1\n 1: 7\n !CFGChecksum: 5\nbar:6:1\n 1: 6\n !CFGChecksum: 99\n",
    ),
    (
        "attributes",
        "[a:1 @ b]:9:1\n 1: 9\n !CFGChecksum: 7\n !Attributes: 2\n[b]:90000:1\n 1: 90000\n !CFGChecksum: 7\n",
    ),
    (
        "vtables",
        "main:30:1\n 1: 20 a:20\n 1: vtables _ZTV1B:20 _ZTV1A:100 \n 3: f:10\n  1: 10\n 3: vtables _ZTV1C:5 \n",
    ),
    (
        "huge",
        "main:18446744073709551615:1\n 1: 18446744073709551615\n",
    ),
    ("twice", "main:9:1\n 1: 18446744073709551615\n 1: 2\n"),
    ("badbody", "main:10:1\n 1: 2\n x: 4\nfoo:1:1\n"),
    ("badhead", "main:10:1\n 1: 2\nfoo:1\n"),
    ("badmeta", "main:10:1\n 1: 2\n !CFGChecksum: 5\n 2: 4\n"),
    ("spaces", "main:10:1\n 1:  2\n"),
    ("bad", "bad\n"),
    ("empty", ""),
    (
        "suffixes",
        "foo.__uniq.123:9:1\n 1: 9\nfoo.llvm.55:8:1\n 1: 8\n",
    ),
];

/// Returns the text from which the profile with this name was made.
fn text_of(name: &str) -> &'static str {
    let stem = name.split('.').next().unwrap_or(name);
    let found = TEXTS.iter().find(|(known, _)| *known == stem);
    found.map_or("", |(_, text)| text)
}

pub(crate) fn convert(llvm: &Llvm, from: &str, options: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::TempDir::new().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, from).unwrap();
    let mut command = Command::new(llvm.profdata());
    command
        .args(["merge", "--sample"])
        .args(options)
        .arg(&input)
        .arg("-o")
        .arg(&output);
    command
        .output()
        .unwrap()
        .status
        .success()
        .then(|| std::fs::read(&output).unwrap())
}

fn texts(pair: &mut Pair) {
    for (name, text) in TEXTS {
        pair.add(name, text);
    }
    pair.add("map", "main renamed\n_Z3bari main\n");
    pair.add("symbols", "b\n a \n\nmain\n");
    pair.add("list", "3,lines\n#x\nother\n");
}

#[test]
fn texts_are_merged_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    texts(&mut pair);
    let mut lines = Vec::new();
    let mut by_meaning = Vec::new();
    for (name, text) in TEXTS {
        for form in ["-text", "-binary -o out"] {
            lines.push(format!("merge -sample {form} {name}"));
        }
        let line = format!("merge -sample -o out {name}");
        match text.contains('!') || text.starts_with('[') {
            true => by_meaning.push(line),
            false => lines.push(line),
        }
        lines.push(format!(
            "merge -sample -text -weighted-input=3,{name} {name} lines"
        ));
        lines.push(format!(
            "merge -sample -text -failure-mode=all lines {name} other"
        ));
        lines.push(format!("merge -sample -text -failure-mode=warn {name}"));
    }
    for options in [
        "-text lines other -function=a",
        "-text lines other -no-function=^_",
        "-text lines -function=(",
        "-text contexts -function=main",
        "-text -r map lines other",
        "-text -r map contexts",
        "-text -r map probes",
        "-text -f list",
        "-gcc lines -o out",
        "-split-layout lines other -o out",
        "-split-layout -binary lines -o out",
        "-split-layout -text lines",
        "-use-md5 lines other -o out",
        "-use-md5 -text lines",
        "-compress-all-sections -text lines",
        "-gen-partial-profile lines -o out",
        "-gen-partial-profile -binary lines -o out",
        "-prof-sym-list=symbols -text lines",
        "-prof-sym-list=nothere lines -o out",
        "-output-size-limit=300 lines other -o out",
        "-output-size-limit=90 -text lines other",
        "-output-size-limit=5 -text lines other",
        "-convert-sample-profile-layout=flat -text lines other",
        "-convert-sample-profile-layout=flat -text contexts",
        "-convert-sample-profile-layout=flat -text probes",
        "-convert-sample-profile-layout=nest -text lines",
        "-convert-sample-profile-layout=nest -text contexts",
        "-convert-sample-profile-layout=nest -text attributes",
        "-sample-merge-cold-context -text contexts",
        "-sample-trim-cold-context -text contexts attributes",
        "-sample-merge-cold-context -sample-trim-cold-context -text contexts",
        "-sample-merge-cold-context -sample-frame-depth-for-cold-context=2 -text contexts",
        "-sample-trim-cold-context -text lines other",
        "-sample-trim-cold-context -profile-summary-cold-count=100 -text lines",
        "-sample-trim-cold-context -profile-summary-cutoff-cold=500000 lines -o out",
        "-text probes rebuilt",
        "-text rebuilt probes",
        "-text lines contexts",
        "-text probes lines",
        "-text lines nothere",
        "-text",
    ] {
        lines.push(format!("merge -sample {options}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
    for options in [
        "-use-md5 contexts -o out",
        "-use-md5 -compress-all-sections probes -o out",
        "-compress-all-sections lines other -o out",
        "-compress-all-sections -prof-sym-list=symbols lines -o out",
        "-prof-sym-list=symbols lines other -o out",
        "-convert-sample-profile-layout=nest contexts -o out",
        "-convert-sample-profile-layout=nest attributes -o out",
        "-generate-merged-base-profiles -convert-sample-profile-layout=nest contexts -o out",
        "-extbinary-write-vtable-type-prof vtables -o out",
    ] {
        by_meaning.push(format!("merge -sample {options}"));
    }
    by_meaning
        .iter()
        .for_each(|line| same_meaning(&llvm, &pair, line));
}

/// Filters by name also work for profiles that have only hashes of names: the hash of the filter's text is compared.
#[test]
fn filters_find_hashed_names() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let lines = "_Z3fooi:7:1\n 1: 6\n?bar@@YAXH@Z:9:2\n 1: 8\n_Z3bazi:3:1\n 1: 2\n";
    pair.add("lines", lines);
    for (name, options) in [("ext", &[][..]), ("md5", &["--use-md5"])] {
        pair.add(name, convert(&llvm, lines, options).unwrap());
    }
    let mut command_lines = Vec::new();
    for input in ["lines", "ext", "md5"] {
        for filter in ["_Z3fooi", "foo", "?bar@@YAXH@Z", "_Z3.*", "nothere"] {
            for option in ["function", "no-function"] {
                command_lines.push(format!("merge -sample -text -{option}={filter} {input}"));
            }
        }
        command_lines.push(format!(
            "merge -sample -text -function=_Z3fooi -no-function=_Z3fooi {input}"
        ));
    }
    // Whether the filters are compared as hashes depends on the last input that can be read.
    pair.add("cut", "_Z3fooi:7:1\n 1: x\n");
    for inputs in [
        "ext md5",
        "md5 ext",
        "md5 lines",
        "md5 lines cut",
        "lines md5 cut",
    ] {
        let options = "-sample -text -failure-mode=warn -function=_Z3fooi";
        command_lines.push(format!("merge {options} {inputs}"));
    }
    compare_all(&pair, command_lines.iter().map(String::as_str));
}

/// If an extensible binary file has two name tables, the second one counts. Here it has fewer names than the functions
/// refer to.
#[test]
fn a_second_name_table_replaces_the_first() {
    /// The length of the magic number and the version, which are ULEB128.
    const COUNT_AT: usize = 10;
    let llvm = require_or_skip!(22);
    let file = convert(&llvm, "b:7:1\n 1: 6\na:9:2\n 1: 8\n", &["--use-md5"]).unwrap();
    let count = usize::from(file[COUNT_AT]);
    // The third section (the one before the samples) and the last section are empty. The test turns one of them into a
    // name table, whose contents are at the end of the file.
    let with_table = |section: usize, names: &[u64]| {
        let mut table = vec![u8::try_from(names.len()).unwrap()];
        names
            .iter()
            .for_each(|name| table.extend(name.to_le_bytes()));
        let mut file = file.clone();
        let fixed = flag::MD5_NAMES | flag::FIXED_MD5_NAMES;
        let entry = [section::NAMES, fixed, file.len() as u64, table.len() as u64];
        let at = COUNT_AT + 8 + 32 * section;
        for (word, place) in entry.iter().zip(file[at..at + 32].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        [file, table].concat()
    };
    let pair = Pair::new(&llvm)
        .file("one", with_table(2, &[1]))
        .file("two", with_table(2, &[1, 2]))
        .file("none", with_table(2, &[]))
        .file("after", with_table(count - 1, &[1]));
    let mut lines = Vec::new();
    for name in ["one", "two", "after"] {
        lines.push(format!("merge -sample -text {name}"));
        lines.push(format!("show -sample {name}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
    for (name, code) in [("one", 1), ("two", 0), ("none", 1), ("after", 0)] {
        assert_eq!(
            pair.profkit(&["show", "-sample", name], b"").code,
            Some(code),
            "{name}"
        );
    }
}

/// Runs both tools. Their lines may be in a different order, because LLVM lists hot functions with equal totals in the
/// order of a hash table.
fn same_lines(pair: &Pair, line: &str) {
    let args: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
    assert_eq!(
        (theirs.code, &theirs.stderr),
        (ours.code, &ours.stderr),
        "{line}"
    );
    let sorted = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(theirs.stdout), sorted(ours.stdout), "{line}");
}

/// Runs both tools, and reads both outputs with LLVM's tool: the texts must be the same, and so must the sections,
/// except for the sizes of compressed ones. This is used if the bytes cannot be the same, because LLVM writes metadata
/// in the order of a hash table, or because another zlib compresses the sections.
fn same_meaning(llvm: &Llvm, pair: &Pair, line: &str) {
    let args: Vec<&str> = line.split(' ').collect();
    let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
    assert_eq!(
        (theirs.code, &theirs.stderr),
        (ours.code, &ours.stderr),
        "{line}"
    );
    let read = |bytes: Option<&Vec<u8>>| {
        let mut pair = Pair::new(llvm);
        let bytes = bytes?;
        pair.add("out", bytes);
        let text = pair.llvm(&["merge", "-sample", "-text", "out"], b"");
        let symbols = pair.llvm(&["show", "-sample", "-show-prof-sym-list", "out"], b"");
        let info = pair.llvm(&["show", "-sample", "-show-sec-info-only", "out"], b"");
        let info = String::from_utf8(info.stdout).unwrap();
        let sections = match info.contains("compressed") {
            true => info
                .lines()
                .map(|line| line.split(" - ").next().unwrap_or("").to_owned())
                .take(7)
                .collect(),
            false => info,
        };
        Some((text.code, text.stdout, symbols.stdout, sections))
    };
    assert_eq!(
        read(theirs.files.get("out")),
        read(ours.files.get("out")),
        "{line}"
    );
}

#[test]
fn profiles_are_shown_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    texts(&mut pair);
    let mut names: Vec<String> = TEXTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (name, text) in TEXTS {
        for (form, options) in [
            ("ext", &[][..]),
            ("bin", &["--binary"]),
            ("md5", &["--use-md5", "--compress-all-sections"]),
            ("split", &["--split-layout", "--gen-partial-profile"]),
        ] {
            if let Some(bytes) = convert(&llvm, text, options) {
                names.push(format!("{name}.{form}"));
                pair.add(&format!("{name}.{form}"), bytes);
            }
        }
    }
    let mut lines = Vec::new();
    for name in &names {
        for options in [
            "",
            "-json",
            "-function=main",
            "-show-sec-info-only",
            "-hot-func-list -detailed-summary",
            "-topn=1 -o out",
            "-all-functions -function=x",
        ] {
            // An allowed difference: if one function is looked up, damage in other functions is not seen.
            let damaged = name.ends_with(".split") && text_of(name).starts_with('[');
            if damaged && options == "-function=main" {
                continue;
            }
            lines.push(format!("show -sample {options} {name}"));
        }
        lines.push(format!("merge -sample -text {name}"));
    }
    for options in [
        "-json -function=main",
        "-show-format=yaml",
        "-function=nothere",
        "-showcs",
    ] {
        lines.push(format!("show -sample {options} lines"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Generated profiles are written by each release, and merged into every encoding for which both tools must write the
/// same bytes.
#[test]
fn profiles_of_every_release_are_merged_alike() {
    let newest = require_or_skip!(22);
    let mut pair = Pair::new(&newest);
    let mut lines = Vec::new();
    for release in short_or_whole(vec![14, 22], vec![13, 14, 16, 19, 22]) {
        let llvm = require_or_skip!(release, continue);
        for (shape, seed) in SampleShape::ALL.into_iter().zip(0u64..) {
            let options = SampleOptions {
                functions: 60,
                pool: 90,
                lines: 6,
                shape,
                one_program: false,
            };
            let mut names = Vec::new();
            for (number, form) in [
                &[][..],
                &["--text"],
                &["--extbinary"],
                &["--binary"],
                &["--extbinary", "--use-md5"],
            ]
            .into_iter()
            .enumerate()
            {
                // LLVM 13 writes calling contexts where LLVM 22 expects names. LLVM 22 rejects these profiles, and
                // profkit reads them.
                if release == 13
                    && matches!(shape, SampleShape::Context | SampleShape::ContextProbes)
                    && form.contains(&"--extbinary")
                {
                    continue;
                }
                let text = sample_text(&options, seed * 100 + number as u64);
                let Some(bytes) = convert(&llvm, &text, form) else {
                    continue;
                };
                let name = format!("{release}.{shape:?}.{number}");
                pair.add(&name, bytes);
                lines.push(format!("merge -sample -text {name}"));
                same_lines(
                    &pair,
                    &format!("show -sample -hot-func-list -detailed-summary {name}"),
                );
                if !form.contains(&"--use-md5") {
                    names.push(name);
                }
            }
            let names = names.join(" ");
            lines.push(format!("merge -sample -text {names}"));
            lines.push(format!(
                "merge -sample -text -convert-sample-profile-layout=flat {names}"
            ));
            lines.push(format!(
                "merge -sample -text -convert-sample-profile-layout=nest {names}"
            ));
            lines.push(format!(
                "merge -sample -text -sample-merge-cold-context {names}"
            ));
            if names.is_empty() {
                continue;
            }
            if shape != SampleShape::Nested {
                same_meaning(&newest, &pair, &format!("merge -sample -o out {names}"));
                same_meaning(
                    &newest,
                    &pair,
                    &format!("merge -sample -use-md5 -o out {names}"),
                );
            } else {
                for more in [
                    "-o out",
                    "-binary -o out",
                    "-use-md5 -o out",
                    "-split-layout -o out",
                    "-output-size-limit=4000 -o out",
                ] {
                    lines.push(format!("merge -sample {more} {names}"));
                }
            }
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Compares the results of `overlap`. LLVM's tool prints functions of equal weight in the order of a hash table, so the
/// order of the lines may differ.
#[test]
fn overlaps_are_told_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    texts(&mut pair);
    for (name, text) in TEXTS {
        for (form, options) in [("ext", &[][..]), ("md5", &["--use-md5"])] {
            if let Some(bytes) = convert(&llvm, text, options) {
                pair.add(&format!("{name}.{form}"), bytes);
            }
        }
    }
    // The profile `heavy` has only one function at the top level, so no two functions have the same weight, and the
    // order of the lines is fixed.
    pair.add("heavy", "main:90:1\n 1: 90\n 2: inline1:9\n  1: 9\n");
    pair.add("zero", "main:0:0\n");
    let mut lines = Vec::new();
    for (one, two) in [
        ("lines", "lines"),
        ("lines", "other"),
        ("other", "lines.ext"),
        ("lines.ext", "lines.md5"),
        ("lines.md5", "other.md5"),
        ("contexts", "contexts.ext"),
        ("contexts.md5", "contexts.ext"),
        ("probes", "rebuilt"),
        ("probes.ext", "probes"),
        ("lines", "contexts"),
        ("probes", "lines"),
        ("attributes", "attributes.ext"),
        ("lines", "zero"),
        ("zero", "zero"),
        ("empty", "lines"),
        ("vtables", "vtables.ext"),
        ("huge", "huge"),
        ("huge", "twice"),
        ("bad", "lines"),
        ("lines", "badbody"),
        ("badbody", "bad"),
        ("lines", "nothere"),
        ("suffixes", "suffixes.ext"),
        ("heavy", "lines"),
    ] {
        lines.push(format!("overlap -sample {one} {two}"));
        // The options do not change the error for a damaged input, so they are tested only with sound inputs.
        if !text_of(one).contains(' ') || !text_of(two).contains(' ') {
            continue;
        }
        for options in [
            "-value-cutoff=1",
            "-value-cutoff=600 -function=main",
            "-similarity-cutoff=1000001 -cs",
            "-function=Z3ba",
        ] {
            same_lines(&pair, &format!("overlap -sample {options} {one} {two}"));
        }
    }
    for line in [
        "overlap -sample lines",
        "overlap -sample lines other -o out",
        "overlap -sample heavy lines -value-cutoff=1 -profile-summary-cutoff-hot=500000",
        "overlap -sample lines other -profile-summary-cutoff-hot=999999",
        // The tool first checks that both profiles are of the same kind, and only then looks for the cutoff in their
        // summaries.
        "overlap -sample probes lines -profile-summary-cutoff-hot=1000000",
        "overlap -sample lines contexts -profile-summary-cutoff-hot=1000000",
        "overlap -sample lines other -value-cutoff=x",
        "overlap -sample lines other -o nowhere/out",
    ] {
        lines.push(line.to_owned());
    }
    compare_all(&pair, lines.iter().map(String::as_str));
    // Profiles with many functions: each result is a sum of many shares.
    let options = |seed| {
        let options = SampleOptions {
            functions: 200,
            pool: 300,
            lines: 8,
            shape: SampleShape::Nested,
            one_program: true,
        };
        sample_text(&options, seed)
    };
    let pair = Pair::new(&llvm)
        .file("one", options(1))
        .file("two", options(2));
    for options in ["", "-value-cutoff=150", "-similarity-cutoff=999000"] {
        same_lines(&pair, &format!("overlap -sample {options} one two"));
    }
}

/// Sample profiles correct instrumentation profiles: the counts of functions that were cold are scaled, or the
/// functions are marked as hot or warm.
#[test]
fn instrumentation_profiles_are_supplemented_alike() {
    let llvm = require_or_skip!(22);
    let mut instr = String::from(":ir\n");
    for (name, counts) in [
        ("hot", vec![1_000_000; 12]),
        ("cold", (0..12).map(|count| count % 4).collect()),
        ("zeros", vec![0; 12]),
        (
            "mostly",
            (0..12)
                .map(|count| u64::from(count == 3))
                .collect::<Vec<u64>>(),
        ),
        ("small", vec![1; 3]),
        ("a.c;local", vec![2; 12]),
        ("b.c;twice", vec![1; 12]),
        ("c.cpp;twice", vec![1; 12]),
        ("x.cc;uniq.__uniq.77", vec![1; 12]),
    ] {
        instr.push_str(&format!("{name}\n1234\n{}\n", counts.len()));
        for count in &counts {
            instr.push_str(&format!("{count}\n"));
        }
        instr.push('\n');
    }
    let samples = "hot:5000:100\n 1: 5000\ncold:900000:8000\n 1: 800000\n 3: inlined:100000\n  1: 100000\n  2: local:50000\n   1: 50000\n\
        zeros:800:10\n 1: 800\nmostly:700000:9000\n 1: 700000\nsmall:600000:9000\n 1: 600000\ntwice:500000:9\n 1: 500000\nuniq:400000:7\n 1: 400000\n";
    let mut pair = Pair::new(&llvm)
        .file("instr", instr)
        .file("samples", samples);
    for (name, options) in [("ext", &[][..]), ("md5", &["--use-md5"])] {
        if let Some(bytes) = convert(&llvm, samples, options) {
            pair.add(name, bytes);
        }
    }
    let samples = samples.replace("local:", "local.__uniq.5:");
    pair.add("unique", samples);
    let mut lines = Vec::new();
    for name in ["samples", "ext", "md5", "unique", "instr", "nothere"] {
        for options in [
            "-text",
            "",
            "-text -suppl-min-size-threshold=2 -zero-counter-threshold=0.9",
            "-text -suppl-min-size-threshold=0 -instr-prof-cold-threshold=3000000",
            "-text -zero-counter-threshold=0.1 -sparse",
            "-text -suppl-min-size-threshold=0 -profile-summary-hot-count=2 -profile-summary-cold-count=1",
            "-text -suppl-min-size-threshold=0 -profile-summary-cutoff-hot=10000 -profile-summary-cutoff-cold=500000",
        ] {
            lines.push(format!(
                "merge -supplement-instr-with-sample={name} {options} instr -o out"
            ));
        }
    }
    for rest in [
        "instr",
        "instr instr -o out",
        "-weighted-input=2,instr -o out",
        "nothere -o out",
        "samples -o out",
    ] {
        lines.push(format!(
            "merge -supplement-instr-with-sample=samples {rest}"
        ));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

#[test]
fn texts_are_read_by_llvms_rules() {
    let llvm = require_or_skip!(22);
    let texts: [(&str, &[u8]); 12] = [
        ("number", b"534\n 1: 5\n 7\n 5:x6\n"),
        ("pair", b"5:7\n 1: 5\n5:8:9\n 6: 6\n"),
        ("nameless", b":7\n 1: 5\n 7: :6\n  3: 6\n"),
        ("zero", b"foo:10:1\n 1: 5\nbar:1\0:1\n"),
        ("cut", b"foo:10:1\n 1: 5\n\0bar:1:1\n"),
        ("firstzero", b"_Z3bar\0:20301:1437\n 1: 5\n"),
        (
            "blanks",
            b"foo:10:1\n 10:   3.1: inline3:700\n   2: 650 malloc:650\n",
        ),
        (
            "context",
            b"[a:x.1 @ b:-1.y @ c]:9:1\n 1: 9\n[a:1 @ b:7:4\n 1: 4\n",
        ),
        (
            "reset",
            b"foo:9:1\n 1: 9\n !Attributes: 2\n !CFGChecksum: 7\n",
        ),
        (
            "trimmed",
            b"foo:9:1\n 1: 9\n !CFGChecksum: 7\n !Attributes: 2\x0b\n",
        ),
        ("again", b"foo:9:1\nfoo:9:1\n 1: 9\n !CFGChecksum: 7\n"),
        ("flat", b"foo:9:1\n 1: bar:9\n  2: 9\n  !Flat\n"),
    ];
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for (name, text) in texts {
        pair.add(name, text);
        lines.push(format!("merge -sample -text {name}"));
        // LLVM writes the metadata of several functions in the order of a hash table.
        if name != "context" {
            lines.push(format!("merge -sample {name} -o out"));
        }
        lines.push(format!("show -sample {name}"));
        lines.push(format!("overlap -sample {name} number"));
    }
    // The first file has a sound header and damage after it. The first line of the second file, a text, is damaged.
    pair.add("sound-header", [&b"foo:10:1\n"[..], b" x\n"].concat());
    pair.add("unknown", "foo:1\n");
    lines.push("overlap -sample sound-header unknown".to_owned());
    for name in ["probes-ext", "contexts-ext-md5", "nested-ext-md5"] {
        add_fixture(&mut pair, &format!("sample/llvm-22-{name}.sampleprof"));
    }
    for options in [
        "-text",
        "-function=jxe -output-size-limit=100000",
        "-function=jxe -split-layout",
    ] {
        lines.push(format!(
            "merge -sample {options} sample/llvm-22-contexts-ext-md5.sampleprof -o out"
        ));
        lines.push(format!(
            "merge -sample {options} sample/llvm-22-probes-ext.sampleprof -o out"
        ));
    }
    lines.push(
        "merge -sample -function=_Z5funcBi sample/llvm-22-contexts-ext-md5.sampleprof -o out"
            .to_owned(),
    );
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Hot functions of profiles whose threshold is 0, because all counts are 0 or there are no functions.
#[test]
fn hot_functions_without_counts_are_listed_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut names = Vec::new();
    for (name, text) in [
        ("no-lines", "main:0:0\n"),
        ("no-lines-but-samples", "main:5:7\n"),
        ("two-without-lines", "main:0:0\nfoo:0:0\n"),
        ("one-without-lines", "main:0:0\nfoo:0:0\n 1: 0\n"),
        ("inlined-line", "main:0:0\n 1: g:0\n  1: 0\nfoo:0:0\n"),
        ("beside-a-hot-one", "main:5:0\nfoo:10:0\n 1: 10\n"),
    ] {
        pair.add(name, text);
        names.push(name.to_owned());
    }
    pair.add("in", "main:10:1\n 1: 10\n");
    for encoding in ["-extbinary", "-binary"] {
        let args = [
            "merge",
            "-sample",
            encoding,
            "-no-function=.",
            "in",
            "-o",
            "out",
        ];
        let empty = pair.llvm(&args, b"").files.remove("out");
        let name = format!("no-functions{encoding}");
        pair.add(&name, empty.expect("LLVM's tool writes it"));
        names.push(name);
    }
    let lines = names.iter().flat_map(|name| {
        ["-hot-func-list", "-hot-func-list -topn=1", "-topn=5"]
            .map(|options| format!("show -sample {options} {name}"))
    });
    let lines: Vec<_> = lines.collect();
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Before LLVM's tool shows sections, it reads the header of a file of any encoding.
#[test]
fn headers_are_checked_before_sections_are_shown() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    pair.add("in", "main:10:1\n 1: 10\nanother:3:0\n 2: 3 main:2\n");
    let mut files = Vec::new();
    for encoding in ["-extbinary", "-binary"] {
        let args = ["merge", "-sample", encoding, "in", "-o", "out"];
        let whole = pair.llvm(&args, b"").files.remove("out");
        let whole = whole.expect("LLVM's tool writes it");
        files.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
        files.extend((8..whole.len().min(40)).map(|at| {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            damaged
        }));
    }
    let mut failures = String::new();
    for bytes in some_or_all(files, 11) {
        let pair = Pair::new(&llvm).file("damaged", bytes);
        let args = ["show", "-sample", "-show-sec-info-only", "damaged"];
        if let Err(difference) = pair.compare(&args, b"") {
            failures.push_str(&difference);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
