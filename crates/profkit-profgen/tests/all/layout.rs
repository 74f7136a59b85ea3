//! Compiles programs with the layouts that profkit computes. clang and lld must accept the files, the programs must do
//! the same as before, and the code that ran must be contiguous.
use object::{Object as _, ObjectSymbol as _};
use profkit_object::binary::BinaryFile;
use profkit_perf::Recording;
use profkit_perf::collect::{BinaryCounts, CollectOptions, Counts, collect};
use profkit_profgen::layout::{CodeMap, Flow, FunctionOrder, Layout, LayoutOptions};
use profkit_testkit::simulate::{Program, Simulation, Step};
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip, succeed};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn compile(llvm: &Llvm, arguments: &[&str], output: &Path) {
    let result = Command::new(llvm.clang())
        .args(["-O2", "-ffunction-sections", "-fuse-ld=lld"])
        .args(arguments)
        .arg(repo_root().join("tests/programs/walked.c"))
        .arg("-o")
        .arg(output)
        .output();
    let result = result.expect("clang runs");
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{arguments:?}: {errors}");
    assert_eq!(errors, "", "{arguments:?}");
}

fn recorded(program: &Path, seed: u64) -> Counts {
    let simulation = Simulation::new(seed);
    let mut writer = simulation.writer();
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(2000),
    ];
    simulation
        .run(&[Program::open(program)], &steps, &mut writer)
        .expect("a recording");
    let bytes = writer.file();
    let recording = Recording::open(&bytes).expect("a recording");
    collect(&recording, &CollectOptions::default())
}

fn of<'c>(counts: &'c Counts, program: &Path) -> Vec<&'c BinaryCounts> {
    let path = program.as_os_str().as_encoded_bytes();
    let binaries = counts.binaries.iter();
    binaries.filter(|it| it.key.path == path).collect()
}

fn code(program: &Path) -> CodeMap {
    let file = BinaryFile::open(program).expect("a program");
    let image = file.image(|_| true).expect("a program");
    CodeMap::read(&image).expect("blocks")
}

fn addresses(program: &Path) -> BTreeMap<String, u64> {
    let bytes = std::fs::read(program).expect("a program");
    let file = object::File::parse(&*bytes).expect("a program");
    let symbols = file.symbols().filter(|symbol| symbol.is_definition());
    symbols
        .map(|symbol| (symbol.name().expect("a name").to_owned(), symbol.address()))
        .collect()
}

fn output(program: &Path) -> String {
    let output = succeed(Command::new(program).arg("50"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn programs_with_a_new_layout_do_what_they_did() {
    let _newest = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut with_cold = 0;
    for (release, option) in [
        (13, "-fbasic-block-sections=labels"),
        (16, "-fbasic-block-sections=labels"),
        (19, "-fbasic-block-address-map"),
        (22, "-fbasic-block-address-map"),
    ] {
        let Some(llvm) = Llvm::find(release) else {
            profkit_testkit::skip(&format!("LLVM {release} is not installed"));
            continue;
        };
        let linker = "--ld-path=/usr/bin/ld.lld-22";
        or_skip!(links_c(llvm.clang(), &[linker]), continue);
        let (old, new) = (at("old"), at("new"));
        compile(&llvm, &[option, linker], &old);
        let (counts, code) = (recorded(&old, 3), code(&old));
        let flow = Flow::new(&code, &of(&counts, &old));
        assert_eq!(flow.losses.into_middle, 0, "clang-{release}");
        assert_eq!(flow.losses.broken_ranges, 0, "clang-{release}");
        let layout = Layout::new(&code, &flow, LayoutOptions::default()).expect("a layout");
        let (before, after) = layout.functions.iter().fold((0.0, 0.0), |sum, it| {
            (sum.0 + it.score_before, sum.1 + it.score_after)
        });
        assert!(after > before, "clang-{release}: {before} {after}");
        let cc = layout.cc_profile(true);
        assert_eq!(cc.starts_with(b"v1\n"), release > 16);
        std::fs::write(at("cc"), &cc).expect("a file");
        std::fs::write(at("ld"), layout.ld_profile()).expect("a file");
        let list = format!("-fbasic-block-sections=list={}", at("cc").display());
        let order = format!("-Wl,--symbol-ordering-file={}", at("ld").display());
        let silent = "-Wl,--no-warn-symbol-ordering";
        compile(&llvm, &[&list, &order, silent, linker], &new);
        assert_eq!(output(&old), output(&new), "clang-{release}");
        // The linker's order of functions, then their parts that did not run.
        let places = addresses(&new);
        let ld = String::from_utf8(layout.ld_profile()).expect("text");
        let found: Vec<(u64, &str)> = ld
            .lines()
            .filter_map(|name| Some((*places.get(name)?, name)))
            .collect();
        assert!(
            found.len() >= layout.functions.len(),
            "clang-{release}: {found:?}"
        );
        assert!(found.is_sorted(), "clang-{release}: {found:x?}");
        let cold = found.iter().filter(|(_, name)| name.ends_with(".cold"));
        let expected = layout.functions.iter().filter(|it| it.cold > 0).count();
        assert_eq!(cold.count(), expected, "clang-{release}: {found:x?}");
        with_cold += expected;
    }
    assert!(with_cold > 0);
}

/// Functions then are in several parts. A recording must still fit the blocks.
#[test]
fn a_program_with_a_new_layout_can_be_laid_out_again() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &["-fuse-ld=lld"]));
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let map = "-fbasic-block-address-map";
    let mut more: Vec<String> = Vec::new();
    for round in ["first", "second"] {
        let program = at(round);
        let arguments: Vec<&str> = more.iter().map(String::as_str).collect();
        compile(&llvm, &[&[map], &arguments[..]].concat(), &program);
        let (counts, code) = (recorded(&program, 3), code(&program));
        let flow = Flow::new(&code, &of(&counts, &program));
        assert_eq!((flow.losses.into_middle, flow.losses.broken_ranges), (0, 0));
        let mut options = LayoutOptions::default();
        options.functions = FunctionOrder::Original;
        let layout = Layout::new(&code, &flow, options).expect("a layout");
        assert!(layout.functions.len() >= 6, "{round}");
        assert!(layout.order.is_sorted());
        std::fs::write(at("cc"), layout.cc_profile(false)).expect("a file");
        more = vec![format!(
            "-fbasic-block-sections=list={}",
            at("cc").display()
        )];
    }
}

#[test]
fn programs_that_cannot_be_laid_out() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &["-fuse-ld=lld"]));
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let map = "-fbasic-block-address-map";
    // Text and hint.
    let whole = |error: profkit_data::Error| {
        let hint = error.hint().unwrap_or_default();
        format!("{error}; {hint}")
    };
    let error_of = |program: &Path| {
        let file = BinaryFile::open(program).expect("a program");
        let image = file.image(|_| true).expect("a program");
        whole(CodeMap::read(&image).expect_err("no blocks"))
    };
    compile(&llvm, &[], &at("plain"));
    insta::assert_snapshot!(error_of(&at("plain")), @"the program has no section .llvm_bb_addr_map, which says where its basic blocks are; compile it with -fbasic-block-address-map (clang 19 and later) or -fbasic-block-sections=labels (clang 13 to 18), and record that program");
    compile(&llvm, &[map, "-s"], &at("stripped"));
    insta::assert_snapshot!(error_of(&at("stripped")), @"the program has no symbols, which name its functions; give the program as it was before strip");
    compile(&llvm, &[map], &at("program"));
    let code = code(&at("program"));
    let error_of = |counts: &[&BinaryCounts]| {
        let flow = Flow::new(&code, counts);
        let layout = Layout::new(&code, &flow, LayoutOptions::default());
        whole(layout.expect_err("no layout"))
    };
    insta::assert_snapshot!(error_of(&[]), @"no branch of the program was recorded; record with branch stacks: `perf record -b`");
    // A recording of another build, which has other code at these addresses.
    compile(&llvm, &["-O0"], &at("other"));
    let counts = recorded(&at("other"), 1);
    insta::assert_snapshot!(error_of(&of(&counts, &at("other"))), @"the recording does not fit the program: branches into the middle of basic blocks: 239 of 40352; runs of code between two branches that do not follow the blocks: 7435 of 22630: expected at most 30 % and 10 %; give the very program that was recorded; after a new build, record again");
}
