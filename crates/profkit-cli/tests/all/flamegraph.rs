//! Flame graphs of heap profiles: what is in the picture.
use std::path::Path;
use std::process::{Command, Output};

/// A heap profile with two contexts: a cold one whose innermost function has no known name, only a GUID; and a hot one
/// whose innermost function has a name that is as hostile as YAML allows.
const HEAP: &str = "\
---
HeapProfileRecords:
- GUID: 0x1
  AllocSites:
  - Callstack:
    - { Function: 0x1, LineOffset: 1, Column: 1, IsInlineFrame: false }
    - { Function: \"_Z5outeri\", LineOffset: 2, Column: 2, IsInlineFrame: false }
    MemInfoBlock:
      AllocCount: 1
      TotalSize: 3000
      TotalLifetime: 900000
      TotalLifetimeAccessDensity: 0
  - Callstack:
    - { Function: \"NAME\", LineOffset: 1, Column: 1, IsInlineFrame: false }
    - { Function: \"_Z5outeri\", LineOffset: 3, Column: 2, IsInlineFrame: false }
    MemInfoBlock:
      AllocCount: 2
      TotalSize: 1000
      TotalLifetime: 10
      TotalLifetimeAccessDensity: 90000000
  CallSites: []
";

fn show(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_profkit"))
        .arg("show")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Draws the profile. Returns the titles of the frames with their colours, in the order of the picture, and the whole
/// picture. A title shows the function and how wide its frame is. The picture must be well-formed XML.
fn drawn(name: &str, weight: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("heap.yaml"), HEAP.replace("NAME", name)).unwrap();
    let args = ["--flamegraph", "heap.svg", "--flamegraph-weight", weight];
    let output = show(folder, &[&args[..], &["heap.yaml"]].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(output.stdout.len(), 0);
    assert_eq!(stderr, "wrote heap.svg\n");
    let svg = std::fs::read_to_string(folder.join("heap.svg")).unwrap();
    let mut frames = Vec::new();
    for part in svg.split("<g><title>").skip(1) {
        let (title, rest) = part.split_once("</title>").unwrap();
        let (_, rest) = rest.split_once("fill=\"").unwrap();
        let (color, _) = rest.split_once('"').unwrap();
        frames.push(format!("{title} {color}"));
    }
    frames.sort();
    (frames.join("\n"), svg)
}

#[test]
fn frames_have_names_weights_and_colours() {
    let (frames, svg) = drawn("_Z5innerv", "bytes");
    insta::assert_snapshot!(frames, @r"
        0x0000000000000001 (3,000 bytes, 75.0%) rgb(110,165,235)
        all (4,000 bytes, 100.0%) rgb(225,225,225)
        inner() (1,000 bytes, 25.0%) rgb(235,95,75)
        outer(int) (4,000 bytes, 100.0%) rgb(141,147,195)
        ");
    let titles: Vec<_> = svg.match_indices("Heap of heap.yaml: bytes").collect();
    assert_eq!(titles.len(), 1);
    // The totals for the other weights.
    let all = |weight: &str| {
        let (frames, _) = drawn("_Z5innerv", weight);
        let line = frames.lines().find(|line| line.starts_with("all "));
        line.unwrap().to_owned()
    };
    insta::assert_snapshot!(all("allocations"), @"all (3 allocations, 100.0%) rgb(225,225,225)");
    insta::assert_snapshot!(all("byte-lifetime"), @"all (2,700,005,000 byte milliseconds, 100.0%) rgb(225,225,225)");
    // Drawing the profile again gives the same picture.
    assert_eq!(svg, drawn("_Z5innerv", "bytes").1);
}

#[test]
fn hostile_names_are_text() {
    let long = "x".repeat(100_000);
    for (name, shown) in [
        (
            "</title><script>alert(1)</script>",
            "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; (1,000 bytes, 25.0%)",
        ),
        ("a&b]]>", "a&amp;b]]&gt; (1,000 bytes, 25.0%)"),
        ("f;main 7", "f;main 7 (1,000 bytes, 25.0%)"),
        ("# comment", "# comment (1,000 bytes, 25.0%)"),
        (
            "operator new 12.5",
            "operator new 12.5 (1,000 bytes, 25.0%)",
        ),
        (
            "\u{2603}\u{202e}x",
            "\u{2603}\u{fffd}x (1,000 bytes, 25.0%)",
        ),
        (long.as_str(), "… (1,000 bytes, 25.0%)"),
    ] {
        let (frames, svg) = drawn(name, "bytes");
        assert!(frames.contains(shown), "{name}: {frames}");
        assert!(frames.contains("all (4,000 bytes, 100.0%)"), "{frames}");
        assert_eq!(svg.matches("<script").count(), 0);
        assert!(svg.len() < 60_000, "{}", svg.len());
    }
}

#[test]
fn nothing_is_drawn_of_what_the_profile_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("heap.yaml"), HEAP).unwrap();
    let args = ["--flamegraph-weight", "accesses", "heap.yaml"];
    let output = show(folder, &[&["--flamegraph", "heap.svg"][..], &args].concat());
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
        error: heap.yaml: the profile does not have the field TotalAccessCount
        hint: a profile for compilers has only bytes, allocations and lifetimes; `profkit merge --memprof-full-schema` keeps all fields
        ");
    // No picture is drawn if the sum of the weights is 0.
    let none = HEAP.replace("TotalSize: 3000", "TotalSize: 0");
    let none = none.replace("TotalSize: 1000", "TotalSize: 0");
    std::fs::write(folder.join("none.yaml"), none).unwrap();
    let output = show(folder, &["--flamegraph", "heap.svg", "none.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"error: none.yaml: there is nothing to draw: the sum of its bytes is 0");
    assert!(!folder.join("heap.svg").exists());
}

/// Sums of more than 64 bits are drawn.
#[test]
fn sums_that_exceed_64_bits_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let most = HEAP.replace("TotalSize: 3000", "TotalSize: 18446744073709551615");
    let most = most.replace("TotalSize: 1000", "TotalSize: 18446744073709551615");
    std::fs::write(folder.join("most.yaml"), most).unwrap();
    let output = show(folder, &["--flamegraph", "heap.svg", "most.yaml"]);
    assert!(output.status.success());
    let svg = std::fs::read_to_string(folder.join("heap.svg")).unwrap();
    assert!(svg.contains("all (36,893,488,147,419,103,230 bytes, 100.0%)"));
}
