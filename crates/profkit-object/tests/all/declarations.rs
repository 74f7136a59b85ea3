//! Compares the declarations of functions with `llvm-symbolizer-22`, for programs with every form of debug info.
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use profkit_data::ids::NameRef;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, Declarations};
use profkit_testkit::{links_cxx, or_skip, repo_root, require_or_skip};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn programs() -> PathBuf {
    repo_root().join("tests/programs")
}

/// Compiles a C++ program; its sources are named by a path with `..`.
fn build(compiler: &Path, folder: &Path, options: &str) -> PathBuf {
    let program = folder.join("program");
    let sources =
        ["shapes.cpp", "shapes_more.cpp"].map(|source| programs().join("../programs").join(source));
    run(Command::new(compiler)
        .args(options.split_whitespace())
        .args(sources)
        .arg("-o")
        .arg(&program)
        .current_dir(folder));
    program
}

fn read(paths: &[PathBuf]) -> Declarations {
    Declarations::read(paths, &DebugFolders::default()).expect("binaries")
}

/// The functions in the symbol table, with their addresses.
fn symbols(program: &Path) -> BTreeMap<u64, Vec<u8>> {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("an object file");
    file.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| {
            (
                symbol.address(),
                symbol.name_bytes().expect("a name").to_vec(),
            )
        })
        .collect()
}

/// Resolves `.` and `..`.
fn cleaned(path: &str) -> String {
    let mut clean = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean.display().to_string()
}

/// Returns for each address the path and the line of its function, as `llvm-symbolizer` prints them: those of the
/// declaration, or else those of the first instruction. Functions without either are left out.
fn oracle(program: &Path, addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, (String, u64)> {
    let addresses: Vec<u64> = addresses.collect();
    let lines: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    let questions = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(questions.path(), lines).expect("written");
    let output = run(Command::new("llvm-symbolizer-22")
        .arg(format!("--obj={}", program.display()))
        .args(["--output-style=JSON", "--inlines"])
        .stdin(questions.reopen().expect("a file")));
    let text = String::from_utf8(output).expect("UTF-8");
    assert_eq!(text.lines().count(), addresses.len());
    let place = |line: &str| {
        let answer: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let frame = answer["Symbol"].as_array()?.last()?.clone();
        let field = |name: &str| frame[name].as_str().filter(|text| !text.is_empty());
        let number = |name: &str| frame[name].as_u64().filter(|&line| line > 0);
        match field("StartFileName") {
            Some(file) => Some((cleaned(file), number("StartLine")?)),
            None => Some((cleaned(field("FileName")?), number("Line")?)),
        }
    };
    let places = text.lines().map(place);
    let places = addresses.into_iter().zip(places);
    places
        .filter_map(|(address, place)| Some((address, place?)))
        .collect()
}

/// Checks every function of a program that has a symbol.
#[track_caller]
fn check(program: &Path, what: &str) -> Declarations {
    let declarations = read(&[program.to_owned()]);
    let symbols = symbols(program);
    let expected = oracle(program, symbols.keys().copied());
    assert!(expected.len() > 5, "{what}: {expected:?}");
    for (address, (file, line)) in expected {
        let name = &symbols[&address];
        let text = String::from_utf8_lossy(name);
        let found = declarations.find(name);
        let found = found.unwrap_or_else(|| panic!("{what}: {text} is not found"));
        let mut path = String::from_utf8_lossy(found.file).into_owned();
        // With the component rust-src, a file of the standard library has two paths.
        let inside = file
            .strip_prefix("/rustc/")
            .and_then(|rest| rest.split_once('/'));
        if inside.is_some_and(|(_, inside)| path.ends_with(&format!("/{inside}"))) {
            path.clone_from(&file);
        }
        assert_eq!(
            (path, u64::from(found.line)),
            (file, line),
            "{what}: {text}"
        );
        assert_eq!(declarations.find_hash(NameRef::of(name)), Some(found));
    }
    declarations
}

#[test]
fn every_form_of_debug_info() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    for options in [
        "-O0 -g",
        "-O2 -g",
        "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections",
        "-O2 -g1",
        "-O0 -gline-tables-only -fdebug-info-for-profiling",
        "-O2 -g -gz=zlib",
        "-O2 -g -flto -fuse-ld=lld",
        "-O2 -gsplit-dwarf=single -gdwarf-5",
        "-O2 -gsplit-dwarf -gdwarf-5",
    ] {
        let program = build(llvm.clangxx(), folder.path(), options);
        let declarations = check(&program, options);
        let [binary] = declarations.binaries.as_slice() else {
            panic!("one binary");
        };
        assert_eq!(binary.debug_info, DebugInfo::Binary, "{options}");
        // With `-gsplit-dwarf=single`, the split debug info is in the object files that the linker read. The compiler
        // driver removes these files after linking, so only the line tables are left.
        let missing = 2 * usize::from(options.contains("=single"));
        let problems = (binary.missing_split, binary.warnings.len());
        assert_eq!(problems, (missing, 0), "{options}");
        assert_eq!(binary.functions, declarations.len(), "{options}");
    }
}

#[test]
fn gcc() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    or_skip!(links_cxx("g++-12", &[]));
    for options in ["-O2 -g", "-O2 -g1"] {
        check(&build(Path::new("g++-12"), folder.path(), options), options);
    }
}

#[test]
fn rustc() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("traits");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    run(Command::new(compiler)
        .args(["-O", "-g", "--edition", "2021", "-o"])
        .arg(&program)
        .arg(programs().join("traits.rs")));
    check(&program, "rustc");
}

/// Compiles two C files with local functions of the same name.
fn build_plain(folder: &Path, options: &str) -> PathBuf {
    let program = folder.join("plain");
    run(Command::new("clang-22")
        .args(options.split_whitespace())
        .args(["plain.c", "plain_more.c", "-o"])
        .arg(&program)
        .current_dir(programs()));
    program
}

#[test]
fn local_functions_are_told_apart_by_their_file_and_inlined_ones_are_known() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let declarations = read(&[build_plain(folder.path(), "-O2 -g")]);
    let at = |name: &[u8]| {
        let found = declarations.find(name)?;
        let source = std::fs::read_to_string(Path::new(std::str::from_utf8(found.file).ok()?));
        let source = source.expect("the source file");
        let line = source
            .lines()
            .nth(found.line as usize - 1)
            .expect("the line");
        Some((
            found.file.rsplit(|&byte| byte == b'/').next()?.to_vec(),
            line.to_owned(),
        ))
    };
    for (name, expected) in [
        (&b"plain.c;helper"[..], "plain.c"),
        (b"plain_more.c:helper", "plain_more.c"),
    ] {
        let (file, line) = at(name).expect("a local function");
        assert_eq!(file, expected.as_bytes());
        assert!(line.starts_with("static unsigned helper("), "{line}");
    }
    assert_eq!(at(b"helper"), None);
    // All calls of this function are inlined, and it has no code.
    let (file, line) = at(b"rotate").expect("an inlined function");
    assert_eq!(file, b"plain.h");
    assert!(line.contains("rotate("), "{line}");
}

#[test]
fn what_has_no_debug_info_says_so() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let program = build_plain(folder.path(), "-O2 -g -Wl,--build-id");
    let strip = |options: &[&str], output: &str| {
        let output = folder.path().join(output);
        run(Command::new("llvm-objcopy-22")
            .args(options)
            .arg(&program)
            .arg(&output));
        output
    };
    let debug = strip(&["--only-keep-debug"], "plain.debug");
    let symbols = strip(&["--strip-debug"], "symbols");
    let nothing = strip(&["--strip-all"], "nothing");
    let info = |path: &Path| {
        let found = read(&[path.to_owned()]);
        let binary = &found.binaries[0];
        assert!(binary.build_id.is_some());
        (binary.debug_info, found.len())
    };
    assert_eq!(info(&symbols), (DebugInfo::SymbolsOnly, 0));
    assert!(matches!(
        info(&nothing).0,
        DebugInfo::SymbolsOnly | DebugInfo::Nothing
    ));
    let all = read(std::slice::from_ref(&program)).len();
    assert_eq!(info(&debug), (DebugInfo::Binary, all));
    // The program and its debug file together have each function once.
    assert_eq!(read(&[program, debug]).len(), all);
}

#[test]
fn files_that_are_no_binaries() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "no binary").expect("written");
    let error = |path: &Path| {
        let error = Declarations::read(&[path.to_owned()], &DebugFolders::default());
        let error = error.expect_err("no binary").to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    insta::assert_snapshot!(error(&text), @"FOLDER/text: the file is not an ELF, PE, COFF or Mach-O file");
    insta::assert_snapshot!(error(&folder.path().join("absent")), @"FOLDER/absent: cannot be opened: No such file or directory");
    // Files in folders are only read if they are programs or libraries.
    let found = read(&[folder.path().to_owned()]);
    assert!(found.is_empty() && found.binaries.is_empty() && found.unreadable.is_empty());
}
