use super::*;
use crate::sample::{
    AddOutcome, FlatFunction, Location, ProfileKind, SampleName, SampleProfile, summarize,
};
use std::fmt::Write as _;

fn parse(text: &[u8]) -> (SampleProfile, crate::sample::ReadReport) {
    let mut profile = SampleProfile::new();
    let report = read(text, &mut profile, 1);
    (profile, report)
}

fn written(profile: &SampleProfile, options: TextOptions) -> String {
    let mut out = Vec::new();
    write(profile, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn again(text: &str) -> String {
    let (profile, report) = parse(text.as_bytes());
    assert_eq!(report.faults, []);
    written(&profile, TextOptions::default())
}

#[test]
fn what_is_written_is_sorted() {
    let text = "\
# by hand
b:1:2

small::name:10:1
   7: 3
 3: z:1 not a count:5
  2: 1
  # between
 3.2: 9 few:1 a::b<c d>:8 many:8
 3: y:2
a:1:2\r
";
    assert_eq!(
        again(text),
        "\
small::name:10:1
 3.2: 9 a::b<c d>:8 many:8 few:1
 7: 3
 3: y:2
 3: z:1 not a count:5
  2: 1
a:1:2
b:1:2
"
    );
}

#[test]
fn lines_and_functions_that_occur_twice_add_up() {
    let text = "f:10:1\n 1: 2 g:1 g:5\n 1: 3 g:1\nf:5:1\n 1: 1\n 2: i:4\n  1: 4\n 2: i:6\n";
    assert_eq!(again(text), "f:15:2\n 1: 6 g:6\n 2: i:10\n  1: 4\n");
}

#[test]
fn contexts_checksums_and_attributes() {
    let text = "\
[main:3.1 @ _Z5funcAi:1 @ leaf]:20:11
 0: 6
 !CFGChecksum: 138950591924
 !Attributes: 3
[main]:7:1
 1: 7
 !CFGChecksum: 844635331715433
";
    assert_eq!(again(text), text);
    let (profile, report) = parse(text.as_bytes());
    let kind = ProfileKind::CONTEXT_SENSITIVE
        | ProfileKind::PROBE_BASED
        | ProfileKind::PRE_INLINED
        | ProfileKind::HAS_ATTRIBUTES;
    assert_eq!((report.kind, profile.kind), (kind, kind));
    assert_eq!(profile.functions()[0].callers.len(), 2);
}

#[test]
fn vtables_are_written_once_or_as_llvm_does() {
    let text = "\
f:9:1
 1: 4
 1: vtables _ZTVa:1 _ZTVb:2 
 2: vtables _ZTVa:3 
 3: 1
 4: i:4
  9: vtables _ZTVc:1 
 3: vtables _ZTVd:5 
 4: vtables _ZTVe:6 
 7: vtables _ZTVf:7 
";
    let (profile, report) = parse(text.as_bytes());
    assert_eq!(report.faults, []);
    assert_eq!(
        written(&profile, TextOptions::default()),
        "\
f:9:1
 1: 4
 1: vtables _ZTVa:1 _ZTVb:2 
 2: vtables _ZTVa:3 
 3: 1
 3: vtables _ZTVd:5 
 4: i:4
  9: vtables _ZTVc:1 
 4: vtables _ZTVe:6 
 7: vtables _ZTVf:7 
"
    );
    assert_eq!(
        written(&profile, TextOptions::default().llvm_vtables(true)),
        "\
f:9:1
 1: 4
 1: vtables _ZTVa:1 _ZTVb:2 
 3: 1
 3: vtables _ZTVd:5 
 4: i:4
 4: vtables _ZTVe:6 
"
    );
}

#[test]
fn the_summary_counts_lines_and_joins_contexts() {
    let (profile, _) = parse(b"[a:1 @ b]:9:4\n 1: 6\n 2: 3\n[b]:5:4\n 1: 4\n[a]:1:1\n 1: 1\n");
    let summary = summarize(&profile);
    let found = (
        summary.total_count,
        summary.max_count,
        summary.max_function_count,
        summary.blocks,
        summary.functions,
    );
    assert_eq!(found, (14, 10, 8, 3, 2));
}

#[test]
fn weights_multiply_and_counts_saturate() {
    let mut profile = SampleProfile::new();
    let report = read(b"f:18446744073709551615:3\n 1: 5 g:2\n", &mut profile, 2);
    assert_eq!(report.outcome.overflows, 1);
    assert_eq!(
        written(&profile, TextOptions::default()),
        "f:18446744073709551615:6\n 1: 10 g:4\n"
    );
}

#[test]
fn callers_without_call_site_are_called_at_line_0() {
    let mut profile = SampleProfile::new();
    let report = read(b"[main:3.1 @ f @ g]:1:9\n 1: 1\n", &mut profile, 1);
    assert_eq!((report.fault_count, report.callers_without_site), (0, 1));
    let callers = &profile.functions()[0].callers;
    let sites: Vec<_> = callers.iter().map(|caller| caller.location).collect();
    assert_eq!(sites, [Location::new(3, 1), Location::new(0, 0)]);
}

#[test]
fn each_fault_is_said_and_costs_one_function() {
    let damaged: &[(&str, &str)] = &[
        ("no counts", "f"),
        ("one count", "f:1"),
        ("no name", ":1:2"),
        ("a blank before a count", "f: 1:2"),
        ("a count of 65 bits", "f:1:18446744073709551616"),
        ("a sign", "f:-1:2"),
        ("no closing bracket", "[a:1 @ f:1:2"),
        ("a caller whose call site is no line", "[a: @ f]:1:2"),
        ("a call site of the leaf", "[a:1 @ f:2]:1:2"),
        ("a frame without name", "[:1 @ f]:1:2"),
        ("a zero byte", "f:1:2\n 1: 2\0"),
        ("no line number", "f:1:2\n x: 1"),
        ("a large line number", "f:1:2\n 70000: 1"),
        ("a large discriminator", "f:1:2\n 1.4294967296: 1"),
        ("no colon", "f:1:2\n 1 2"),
        ("no blank after the colon", "f:1:2\n 1:2"),
        ("two blanks after the colon", "f:1:2\n 1:  2"),
        ("letters behind a count", "f:1:2\n 1: 2x"),
        ("a blank at the end", "f:1:2\n 1: 2 "),
        ("a target without count", "f:1:2\n 1: 2 g"),
        ("a target without name", "f:1:2\n 1: 2 :3"),
        ("an inlined function without count", "f:1:2\n 1: g"),
        ("an inlined function with another count", "f:1:2\n 1: g:x"),
        ("a vtable twice", "f:1:2\n 1: vtables a:1 a:2 "),
        ("unknown metadata", "f:1:2\n !Checksum: 1"),
        ("a checksum that is none", "f:1:2\n !CFGChecksum: x"),
        ("large attributes", "f:1:2\n !Attributes: 4294967296"),
        (
            "samples behind metadata",
            "f:1:2\n 1: 2\n !CFGChecksum: 5\n 2: 2",
        ),
    ];
    let mut messages = String::new();
    for (what, text) in damaged {
        let whole = format!("before:1:1\n 1: 1\n{text}\nbehind:2:1\n 1: 2\n");
        let (profile, report) = parse(whole.as_bytes());
        assert_eq!(report.faults.len(), 1, "{what}: {:?}", report.faults);
        let _ = writeln!(messages, "{what}: {}", report.faults[0]);
        let kept = written(&profile, TextOptions::default());
        assert_eq!(kept, "behind:2:1\n 1: 2\nbefore:1:1\n 1: 1\n", "{what}");
    }
    // A line that begins with a tab is an error, because it may belong to the function before it or be a head line. The
    // function before it is kept.
    let (_, report) = parse(b"f:1:1\n 1: 1\n\t2: 2\n");
    assert_eq!(report.functions, 1);
    let _ = writeln!(messages, "a tab: {}", report.faults[0]);
    let (_, report) = parse(b" 1: 2\nf:1:1\n");
    let _ = writeln!(messages, "samples without a function: {}", report.faults[0]);
    let mut deep = "f:1:1\n".to_owned();
    for depth in 1..600 {
        let _ = writeln!(deep, "{}1: g:1", " ".repeat(depth));
    }
    let (_, report) = parse(deep.as_bytes());
    assert_eq!(report.fault_count, 1);
    let _ = writeln!(messages, "inlined too deep: {}", report.faults[0]);
    insta::assert_snapshot!(messages);
}

/// The first 32 call targets are searched one by one, the others through a map. If a name has two counts, the later one
/// is kept.
#[test]
fn many_targets_of_a_line_are_kept_apart_by_name() {
    let mut text = "f:1:1\n 1: 1".to_owned();
    for round in 1..3 {
        for target in 0..100 {
            write!(text, " t{target}:{}", round * 1000 + target).unwrap();
        }
    }
    text.push('\n');
    let (profile, report) = parse(text.as_bytes());
    assert_eq!(report.faults, []);
    let targets = &profile.functions()[0].samples.targets;
    let counts: Vec<u64> = targets.iter().map(|target| target.count).collect();
    assert_eq!(counts, (2000..2100).collect::<Vec<_>>());
    let vtables = text.replace(" 1: 1 ", " 1: vtables ");
    assert_eq!(parse(vtables.as_bytes()).1.fault_count, 1);
}

/// These lines would take minutes if the reader searched all call targets for each call target, or looked for a blank
/// after each colon.
#[test]
fn long_lines_take_time_with_their_length() {
    let mut text = "f:1:1\n 1: 1".to_owned();
    for target in 0..300_000 {
        write!(text, " {target:x}:1").unwrap();
    }
    let (profile, _) = parse(text.as_bytes());
    assert_eq!(profile.functions()[0].samples.targets.len(), 300_000);
    let colons = format!("f:1:1\n 1: 1 {}\n", "a:".repeat(2_000_000));
    assert_eq!(parse(colons.as_bytes()).1.fault_count, 1);
}

#[test]
fn names_that_would_be_taken_for_something_else_are_counted() {
    let losses_of = |name: &'static [u8]| {
        let mut profile = SampleProfile::new();
        let id = profile.intern(SampleName::Text(name)).unwrap();
        let function = FlatFunction {
            name: id,
            ..FlatFunction::default()
        };
        profile
            .additions()
            .add(&function, 1, &mut AddOutcome::default());
        let losses = write(&profile, &TextOptions::default(), &mut Vec::new()).unwrap();
        losses.unspeakable_names
    };
    for name in [b"a\nmain:9:9".as_slice(), b"", b" a", b"# a", b"a\0b"] {
        assert_eq!(losses_of(name), 1, "{name:?}");
    }
    assert_eq!(losses_of(b"a::b<c d>(#)"), 0);
}
