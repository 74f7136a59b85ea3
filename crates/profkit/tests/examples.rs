//! Runs every example on fixtures, and checks what it prints. `cargo test -p profkit` builds the examples.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

use profkit::data::ids::FuncHash;
use profkit::data::instr::raw::{PointerWidth, RawDialect, RawForm, RawImage, RawImageRecord};
use profkit::object::binary::BinaryFile;
use profkit::object::build_id::build_id;
use profkit::object::correlate::{CounterSection, machine};
use profkit_testkit::repo_root;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    repo_root().join("tests/fixtures").join(name)
}

/// Runs an example, which must succeed, and returns what it printed.
fn run(example: &str, arguments: &[&dyn AsRef<OsStr>]) -> String {
    let test = std::env::current_exe().unwrap();
    // The test's executable is target/debug/deps/examples-…, and the examples are in target/debug/examples.
    let folder = test.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(example);
    assert!(
        program.exists(),
        "{} is not built: `cargo test -p profkit` builds the examples, `--test examples` alone does not",
        program.display()
    );
    let arguments = arguments.iter().map(AsRef::as_ref);
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn read_and_print() {
    let text = run(
        "read_and_print",
        &[&fixture("text/clang-22-ir-plain.proftext")],
    );
    for form in [
        "indexed/clang-22-ir-plain.profdata",
        "raw/clang-22-ir-plain.profraw",
    ] {
        let mut lines: Vec<_> = text.lines().collect();
        let other = run("read_and_print", &[&fixture(form)]);
        let mut others: Vec<_> = other.lines().collect();
        lines.sort_unstable();
        others.sort_unstable();
        assert_eq!(lines, others, "{form}");
    }
    assert!(text.contains("main: "), "{text}");
    let samples = run(
        "read_and_print",
        &[&fixture("sample/llvm-22-nested-ext.sampleprof")],
    );
    assert!(samples.contains(" samples"), "{samples}");
    let mip = run("read_and_print", &[&fixture("mip/v8-b.mip")]);
    assert!(mip.contains(" calls"), "{mip}");
}

#[test]
fn merge_in_memory() {
    let text = run("merge_in_memory", &[]);
    // The first input has the counts 3 and 40. The second has 1 and 2, and the weight 10. So the sums are 3 + 10 · 1
    // and 40 + 10 · 2.
    assert!(text.contains("# Counter Values:\n13\n60\n"), "{text}");
}

#[test]
fn merge_files_for_llvm_16() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.profdata");
    let inputs = [
        "raw/clang-16-ir-plain.profraw",
        "raw/clang-13-ir-plain.profraw",
    ]
    .map(fixture);
    let printed = run(
        "merge_files_for_llvm_16",
        &[&output, &inputs[0], &inputs[1]],
    );
    assert!(printed.contains(" functions, "), "{printed}");
    let written = std::fs::read(&output).unwrap();
    let profile = profkit::data::instr::indexed::IndexedProfile::parse(&written).unwrap();
    // LLVM 16 writes version 9.
    assert_eq!(profile.header().version(), 9);
}

#[test]
fn what_a_merge_repaired() {
    let inputs = [
        "readme/clang-22-truncated.profraw",
        "readme/clang-22.profraw",
    ]
    .map(fixture);
    let printed = run("what_a_merge_repaired", &[&inputs[0], &inputs[1]]);
    assert!(
        printed.starts_with("2 files: 1 kept, 1 repaired, 0 dropped\n"),
        "{printed}"
    );
    assert!(
        printed.contains("NamesFromSibling: the names of 10 functions come from other inputs"),
        "{printed}"
    );
}

#[test]
fn symbolize() {
    let program = fixture("debug_info/clang-22-dwarf-5.elf");
    let file = BinaryFile::open(&program).unwrap();
    let image = file.image(|_| true).unwrap();
    let address = {
        use object::{Object, ObjectSymbol};
        let mut symbols = image.symbols();
        let function = symbols.find(|symbol| symbol.kind() == object::SymbolKind::Text);
        function.unwrap().address()
    };
    let address = format!("{address:#x}");
    let printed = run("symbolize", &[&program, &address]);
    assert!(printed.starts_with(&address), "{printed}");
    assert!(
        printed.contains(" at ") && printed.contains(".c"),
        "{printed}"
    );
}

/// Writes the raw profile that a run of this program would have written. It holds only counters, with the values 0, 1,
/// 2 and so on.
fn bare_profile(program: &std::path::Path) -> Vec<u8> {
    let file = BinaryFile::open(program).unwrap();
    let image = file.image(|_| true).unwrap();
    let (endian, width) = machine(&image);
    assert_eq!(width, PointerWidth::Bits64);
    let counters = CounterSection::of(&image).unwrap();
    let mut raw = RawImage::new(RawDialect {
        endian,
        width,
        version: 10,
        flags: profkit::data::instr::raw::variant::IR,
    });
    raw.binary_ids.extend(build_id(&image).unwrap());
    raw.records = vec![RawImageRecord {
        name: b"any".to_vec(),
        func_hash: FuncHash(1),
        counts: (0..(counters.end - counters.start).div_ceil(8)).collect(),
        ..RawImageRecord::default()
    }];
    raw.form = RawForm {
        correlate: true,
        ..RawForm::default()
    };
    raw.to_bytes().unwrap()
}

#[test]
fn correlate() {
    let folder = tempfile::tempdir().unwrap();
    let program = fixture("correlation/elf-binary.image");
    let (input, output) = (
        folder.path().join("bare.profraw"),
        folder.path().join("out"),
    );
    std::fs::write(&input, bare_profile(&program)).unwrap();
    let printed = run("correlate", &[&output, &program, &input]);
    assert!(
        printed.contains("elf-binary.image: 2 functions"),
        "{printed}"
    );
    let written = std::fs::read(&output).unwrap();
    let profile = profkit::data::instr::indexed::IndexedProfile::parse(&written).unwrap();
    assert!(profile.lookup(b"start").unwrap().is_some());
}

#[test]
fn sample_to_another_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let input = fixture("sample/llvm-22-nested-binary.sampleprof");
    let (text, binary) = (folder.path().join("out.txt"), folder.path().join("out"));
    run("sample_to_another_encoding", &[&input, &binary]);
    let printed = run("sample_to_another_encoding", &[&binary, &text]);
    assert!(printed.contains(" functions; "), "{printed}");
    let expected =
        std::fs::read_to_string(fixture("sample/llvm-22-nested-text.sampleprof")).unwrap();
    assert_eq!(std::fs::read_to_string(&text).unwrap(), expected);
}

#[test]
fn heap_contexts() {
    let printed = run(
        "heap_contexts",
        &[&fixture("indexed/clang-22-memprof-heap.profdata")],
    );
    assert!(printed.contains(" bytes, "), "{printed}");
    assert!(printed.contains("\n  0x"), "{printed}");
}

#[test]
fn stale_for_this_binary() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.proftext");
    std::fs::write(&profile, ":ir\nstart\n1\n1\n90\n\ngone\n1\n1\n10\n").unwrap();
    let binary = fixture("debug_info/clang-22-dwarf-5.elf");
    let printed = run("stale_for_this_binary", &[&profile, &binary]);
    let stale = "100.0 % of all counts are of functions that changed or are gone\n";
    assert!(printed.contains(stale), "{printed}");
    assert!(printed.contains("Unknown: gone\n"), "{printed}");
}

#[test]
fn what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let old = write("old", ":ir\na.c:f\n1\n1\n50\n\ngone\n1\n1\n50\n");
    let new = write("new", ":ir\na.c;f\n1\n1\n50\n\nfresh\n1\n1\n50\n");
    let printed = run("what_changed", &[&old, &new]);
    assert!(printed.contains("50.0 % of the total moved\n"), "{printed}");
    assert!(printed.contains("Gone: gone: 25.0 %\n"), "{printed}");
    // The two spellings `a.c:f` and `a.c;f` name the same local function, so it is not reported as changed.
    assert!(!printed.contains("a.c"), "{printed}");
}
