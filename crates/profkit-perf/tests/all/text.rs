//! Counts from texts.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, Numbering, collect};
use profkit_perf::text::{TextKind, TextOptions, read_text, write_addresses};
use profkit_testkit::{Rng, mutate};
use std::process::Command;

fn read(text: &str) -> Counts {
    read_text(text.as_bytes(), TextOptions::default()).expect("a text")
}

/// Returns the counts as a file of addresses.
fn text(counts: &Counts) -> String {
    let mut bytes = Vec::new();
    write_addresses(counts, &mut bytes).expect("a vector takes all");
    String::from_utf8(bytes).expect("text")
}

const LBR: &str = "\
perf 10 PERF_RECORD_MMAP2 10/10: [0x400000(0x1000) @ 0x1000 08:01 7 0]: r-xp /bin/one
PERF_RECORD_MMAP2 10/10: [0x7f0000(0x1000) @ 0 <0011223344556677>]: r-xp /lib/two.so
PERF_RECORD_MMAP -1/0: [0(0xffffffff9fffffff) @ 0xffffffff80200000]: x [kernel.kallsyms]_text
PERF_RECORD_MMAP2 10/10: [0x500000(0x1000) @ 0x1000 08:01 7 0]: rw-p /bin/one
  400100 0x400020/0x400010/P/-/-/0  0x7f0050/0x400018/M/-/-/3/RET/-  0x400016/0x7f0040/P/-/-/1
2
  400104 0x400020/0x400010/PN/-/-/0  0x400020/0x400010/P/-/-/0 0x0/0x0/-/-/-/0
  400108
no sample
";

#[test]
fn output_of_perf_script_is_read() {
    assert_eq!(TextKind::detect(LBR.as_bytes()), Some(TextKind::Script));
    insta::assert_snapshot!(text(&read(LBR)), @"
    # profkit addresses 1
    losses samples 4
    losses with-branches 3
    losses branches 7
    losses damaged-lines 1
    binary file-offsets - /bin/one
    ranges 2
    1010-1020:2
    1018-1020:1
    branches 3
    1016->*:1
    1020->1010:5
    *->1018:1
    samples 3
    1100:1
    1104:2
    1108:1
    binary file-offsets 0011223344556677 /lib/two.so
    ranges 1
    40-50:1
    branches 2
    50->*:1
    *->40:1
    ");
}

#[test]
fn samples_with_call_chains_are_read() {
    let script = "\
PERF_RECORD_MMAP2 10/10: [0x400000(0x1000) @ 0x1000 08:01 7 0]: r-xp /bin/one

\t          400100
\t          400200
 0x400020/0x400010/P/-/-/0  0x400020/0x400010/P/-/-/0

3
\t          400100
\t          400200
 0x400020/0x400010/P/-/-/0  0x400020/0x400010/P/-/-/0
\t          400300

";
    insta::assert_snapshot!(text(&read(script)), @"
    # profkit addresses 1
    losses samples 5
    losses with-branches 4
    losses with-chain 5
    losses branches 8
    binary file-offsets - /bin/one
    ranges 1
    1010-1020:4
    branches 1
    1020->1010:8
    samples 2
    1100:4
    1300:1
    ");
}

#[test]
fn the_last_sample_of_a_text_belongs_to_the_mapping_before_it() {
    let script = "\
PERF_RECORD_MMAP2 10/10: [0x400000(0x1000) @ 0x1000 08:01 7 0]: r-xp /bin/one

\t          400100
\t          400200
 0x400020/0x400010/P/-/-/0

PERF_RECORD_MMAP2 10/10: [0x400000(0x1000) @ 0x1000 08:01 8 0]: r-xp /bin/other
\t          400300
\t          400200
";
    insta::assert_snapshot!(text(&read(script)), @"
    # profkit addresses 1
    losses samples 2
    losses with-branches 1
    losses with-chain 2
    losses branches 1
    binary file-offsets - /bin/one
    branches 1
    1020->1010:1
    samples 1
    1100:1
    binary file-offsets - /bin/other
    samples 1
    1300:1
    ");
}

#[test]
fn without_mappings_places_are_addresses() {
    let counts = read(" 400100 0x400020/0x400010/P/-/-/0  0x400020/0x400010/P/-/-/0\n");
    let key = &counts.binaries[0].key;
    assert_eq!((key.numbering, key.path.len()), (Numbering::Address, 0));
    insta::assert_snapshot!(text(&counts), @"
    # profkit addresses 1
    losses samples 1
    losses with-branches 1
    losses branches 2
    binary addresses - 
    ranges 1
    400010-400020:1
    branches 1
    400020->400010:2
    samples 1
    400100:1
    ");
}

#[test]
fn unsymbolized_profiles_are_read() {
    let flat = "2\n4-8:10\n4-a:3\n3\n8->4:7\n1->4:1\nffffffffffc00001->6:2\n";
    assert_eq!(
        TextKind::detect(flat.as_bytes()),
        Some(TextKind::Unsymbolized)
    );
    insta::assert_snapshot!(text(&read(flat)), @"
    # profkit addresses 1
    binary from-base - 
    ranges 2
    4-8:10
    4-a:3
    branches 3
    8->4:7
    *->4:1
    *->6:2
    ");
    let contexts = "[main:1 @ foo]\n  1\n  4-8:10\n  0\n[main]\n  0\n  1\n  8->4:7\n";
    insta::assert_snapshot!(text(&read(contexts)), @"
    # profkit addresses 1
    binary from-base - 
    context main
    branches 1
    8->4:7
    context main:1 @ foo
    ranges 1
    4-8:10
    ");
    let mut options = TextOptions::default();
    options.absolute = true;
    let counts = read_text(flat.as_bytes(), options).expect("a text");
    assert_eq!(counts.binaries[0].key.numbering, Numbering::Address);
}

#[test]
fn texts_of_autofdo_are_read() {
    let lines =
        "1\n4-8:10\n1\n4:2\n2\n8->4:7\n8->0:1\n// build_id: 0x0011223344556677\n// /lib/two.so\n";
    assert_eq!(TextKind::detect(lines.as_bytes()), Some(TextKind::Autofdo));
    insta::assert_snapshot!(text(&read(lines)), @"
    # profkit addresses 1
    binary file-offsets 0011223344556677 /lib/two.so
    ranges 1
    4-8:10
    branches 2
    8->4:7
    8->*:1
    samples 1
    4:2
    ");
    for empty in ["0\n0\n0\n", "0\n1\n4:2\n0\n"] {
        assert_eq!(
            TextKind::detect(empty.as_bytes()),
            Some(TextKind::Autofdo),
            "{empty}"
        );
    }
}

const PRE_AGGREGATED: &str = "\
E br_inst_retired.near_taken
B 401000 401020 3 1
B 401000 401020 2 0
B 401000 0011223344556677:50 4 0
B X:0 401020 5 0
F 401020 401040 7
f 401020 401040 1
r 0011223344556677:50 0011223344556677:60 9
F 401020 0011223344556677:60 9
T 401040 401000 401010 11
R 0011223344556677:70 401000 401010 13
T ffffffffffffffff 401000 401010 17
T 401040 401000 ffffffffffffffff 19
S 401008 23
S X:9 1
";

#[test]
fn pre_aggregated_samples_are_read_by_build_id() {
    let kind = TextKind::detect(PRE_AGGREGATED.as_bytes());
    assert_eq!(kind, Some(TextKind::PreAggregated));
    insta::assert_snapshot!(text(&read(PRE_AGGREGATED)), @"
    # profkit addresses 1
    binary addresses - 
    ranges 2
    401000-401010:41
    401020-401040:8
    branches 5
    401000->401020:5
    401000->*:4
    401040->401000:30
    *->401000:13
    *->401020:5
    samples 1
    401008:23
    binary addresses 0011223344556677 
    ranges 1
    50-60:9
    branches 2
    70->*:13
    *->50:4
    ");
    for other in [
        "",
        "B\n",
        "B 1 2 3\n",
        "E cycles\n",
        "F 1 2 x\n",
        "T 1 2 3\n",
        "B 12g 4 1 0\n",
        "B zz:4 4 1 0\n",
        "F 1 2 3 4\n",
    ] {
        let kind = TextKind::detect(other.as_bytes());
        assert_ne!(kind, Some(TextKind::PreAggregated), "{other}");
    }
}

#[test]
fn addresses_are_read_as_they_were_written_and_add_up() {
    let mut odd = read(LBR);
    odd.binaries[0].key.path = b"/a b/100%\n".to_vec();
    let written = text(&odd);
    let again = read(&written);
    assert_eq!(again, odd);
    let sum = Counts::sum([&odd, &again]);
    assert_eq!(sum.losses.samples, 2 * odd.losses.samples);
    assert_eq!(
        sum.binaries[0].sums.taken(),
        2 * odd.binaries[0].sums.taken()
    );
}

#[test]
fn damaged_texts_have_errors_with_places() {
    let cases = [
        "hello\nworld\n",
        "2\n4-8:10\n",
        "S 4 1\nB 4 8 1\n",
        "2\n4-8:10\n4->8:1\n0\n",
        "1\n4-8:10\nx\n",
        "1\n4-8:10\n1\n4:1\n",
        "[main\n0\n0\n",
        "[main]\n0\n[foo]\n0\n0\n",
        "# profkit addresses 2\n",
        "# profkit addresses 1\nlosses what 1\n",
        "# profkit addresses 1\nranges 1\n",
        "# profkit addresses 1\nbinary file-offsets 0g /a\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nranges 2\n1-2:3\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nranges 1\n1-*:3\n",
        "# profkit addresses 1\nlosses samples\n",
        "# profkit addresses 1\nbinary file-offsets - /a\ncontext %0\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nwhat 1\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nbranches x\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nbranches 1\n1-2:3\n",
        "# profkit addresses 1\nbinary file-offsets - /a\nsamples 1\n*:3\n",
    ];
    let errors: Vec<String> = cases
        .iter()
        .map(|text| {
            let error = read_text(text.as_bytes(), TextOptions::default());
            error.expect_err(text).to_string()
        })
        .collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    text with samples by address, at offset 0x0: the text has neither samples nor counts that profkit can read: expected the output of `perf script --show-mmap-events -F ip,brstack`, or an unsymbolized profile
    text with samples by address, at offset 0x9: the text ends within a section
    text with samples by address, at offset 0x6: a line cannot be read: found `B 4 8 1`, expected `B FROM TO COUNT MISPREDICTED`, `F START END COUNT`, `T FROM TO END COUNT`, `S PLACE COUNT` or `E EVENT`
    text with samples by address, at offset 0x9: a line cannot be read: found `4->8:1`, expected `START-END:COUNT`
    text with samples by address, at offset 0x9: a line cannot be read: found `x`, expected the number of entries of a section
    text with samples by address, at offset 0xf: the text ends within a section
    text with samples by address, at offset 0x0: a line cannot be read: found `[main`, expected a context in brackets
    text with samples by address, at offset 0x9: a context does not have two sections: expected a section of ranges and a section of branches
    text with samples by address, at offset 0x14: the version of these counts by address is not known: found 2, expected 1
    text with samples by address, at offset 0x16: a line cannot be read: found `losses what 1`, expected a name that this version writes
    text with samples by address, at offset 0x16: a line cannot be read: found `ranges 1`, expected a binary
    text with samples by address, at offset 0x16: a line cannot be read: found `binary file-offsets 0g /a`, expected `binary NUMBERING BUILD-ID PATH`
    text with samples by address, at offset 0x3e: the file ends within a section
    text with samples by address, at offset 0x38: a line cannot be read: found `1-*:3`, expected `START-END:COUNT`
    text with samples by address, at offset 0x16: a line cannot be read: found `losses samples`, expected `losses NAME NUMBER`
    text with samples by address, at offset 0x2f: a line cannot be read: found `context %0`, expected `context NAME`
    text with samples by address, at offset 0x2f: a line cannot be read: found `what 1`, expected a section or a binary
    text with samples by address, at offset 0x2f: a line cannot be read: found `branches x`, expected the number of entries of a section
    text with samples by address, at offset 0x3a: a line cannot be read: found `1-2:3`, expected `FROM->TO:COUNT`
    text with samples by address, at offset 0x39: a line cannot be read: found `*:3`, expected `PLACE:COUNT`
    ");
}

#[test]
fn damage_never_panics() {
    let mut rng = Rng::new(11);
    for _ in 0..3000 {
        let mut bytes = LBR.as_bytes().to_vec();
        mutate(&mut bytes, b"0x1/0x2/P 1\n2\n", &mut rng);
        let _ = read_text(&bytes, TextOptions::default());
    }
}

/// The output of `perf script` for a recording gives the same counts as the recording itself.
#[test]
fn perf_script_says_what_the_recording_says() {
    for path in profkit_testkit::perf_recordings() {
        if !path.ends_with("test.lbr") {
            continue;
        }
        let script = Command::new("perf")
            .args(["script", "--show-mmap-events", "-F", "ip,brstack", "-i"])
            .arg(&path)
            .output();
        let Ok(script) = script else {
            profkit_testkit::skip("perf is not installed");
            continue;
        };
        let bytes = std::fs::read(&path).expect("the recording");
        let recording = Recording::open(&bytes).expect("a recording");
        let mut expected = collect(&recording, &CollectOptions::default());
        let mut found = read_text(&script.stdout, TextOptions::default()).expect("a text");
        for counts in [&mut expected, &mut found] {
            counts.binaries.retain(|binary| !binary.key.kernel);
            for binary in &mut counts.binaries {
                binary.key.build_id = None;
            }
        }
        assert_eq!(found.binaries.len(), expected.binaries.len());
        for (found, expected) in found.binaries.iter().zip(&expected.binaries) {
            assert_eq!(found, expected);
        }
        assert_eq!(found.losses.damaged_lines, 0);
    }
}

/// Traces are the branches with the code after each, and are in the ranges and branches too.
#[test]
fn branches_are_counted_with_the_code_after_them() {
    let stacks = " 0x120/0x100/M/-/-/0  0x110/0x118/P/-/-/0  0x999999/0x104/P/-/-/0\n\
                   0x120/0x100/P/-/-/0  0x110/0x118/M/-/-/0\n";
    let script =
        format!("PERF_RECORD_MMAP2 1/1: [0x100(0x100) @ 0 08:01 1 0]: r-xp /bin/app\n{stacks}");
    let mut options = TextOptions::default();
    let without = read_text(script.as_bytes(), options).expect("a text");
    assert!(without.binaries[0].sums.traces.is_empty());
    options.traces = true;
    let counts = read_text(script.as_bytes(), options).expect("a text");
    let sums = &counts.binaries[0].sums;
    assert_eq!(sums.branches, without.binaries[0].sums.branches);
    assert_eq!(sums.ranges, without.binaries[0].sums.ranges);
    let traces: Vec<_> = sums
        .traces
        .iter()
        .map(|it| (it.from.get(), it.to.get(), it.end.get(), it.count))
        .collect();
    let expected = [
        (Some(0x10), Some(0x18), Some(0x20), 2),
        (Some(0x20), Some(0), None, 2),
        (None, Some(4), Some(0x10), 1),
    ];
    assert_eq!(traces, expected);
    let mispredicted: Vec<_> = sums
        .mispredicted
        .iter()
        .map(|it| (it.from.get(), it.count))
        .collect();
    assert_eq!(mispredicted, [(Some(0x10), 1), (Some(0x20), 1)]);
    // Counts of several inputs are added.
    let twice = profkit_perf::collect::Counts::sum([&counts, &counts]);
    assert_eq!(twice.binaries[0].sums.traces[0].count, 4);
    // The lines of perf2bolt: an event, a branch without a range, and a return from code that is not known.
    let lines =
        "E cycles\nT 110 118 120 2\nB 120 100 2 1\nR 0 104 110 1\nT fffffffffffffffd 104 110 3\n";
    let counts = read_text(lines.as_bytes(), options).expect("a text");
    let sums = &counts.binaries[0].sums;
    let counted = |end: u64| {
        let ranges = sums.ranges.iter().filter(|range| range.end == end);
        ranges.map(|range| range.count).sum::<u64>()
    };
    assert_eq!((counted(0x120), counted(0x110)), (2, 4));
    assert_eq!(sums.traces.len(), 2);
    assert_eq!(sums.mispredicted.len(), 1);
}
