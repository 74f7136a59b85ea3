//! Compares symbolising with `llvm-symbolizer-22`: every address of real programs, and every field of every frame.
use object::{Object as _, ObjectSection as _, SectionKind};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{
    DebugInfo, Frame, Inputs, Locations, Options, ProgramFiles, Symbolizer,
};
use profkit_testkit::{
    Llvm, RELEASES, fixture, links_cxx, or_skip, repo_root, require_or_skip, succeed,
};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A frame: function, file, line, column, discriminator, and the line at which the function is declared.
type Row = (String, String, u64, u64, u64, u64);

fn row(frame: &Frame<'_>) -> Row {
    (
        frame.function_text().into_owned(),
        frame.file_text().into_owned(),
        frame.line.into(),
        frame.column.into(),
        frame.discriminator.into(),
        frame.function_line.into(),
    )
}

/// All addresses of code, and some outside of it.
fn code_addresses(program: &Path) -> Vec<u64> {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let mut addresses: Vec<u64> = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .flat_map(|section| {
            section.address().saturating_sub(2)..section.address() + section.size() + 2
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The output of `llvm-symbolizer` for each address.
fn oracle(program: &Path, more: &[&str], addresses: &[u64]) -> Vec<Vec<Row>> {
    let mut tool = Command::new("llvm-symbolizer-22")
        .arg(format!("--obj={}", program.display()))
        .args([
            "--output-style=JSON",
            "--functions=linkage",
            "--inlines",
            "--no-demangle",
        ])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("llvm-symbolizer-22");
    let text: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    let mut stdin = tool.stdin.take().expect("a pipe");
    let writer =
        std::thread::spawn(move || stdin.write_all(text.as_bytes()).expect("the tool reads"));
    let output = tool.wait_with_output().expect("it ends");
    writer.join().expect("the writer");
    let line = |line: &str| {
        let answer: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let frames = answer["Symbol"].as_array().expect("frames").clone();
        let text = |value: &serde_json::Value| {
            let text = value.as_str().expect("text");
            if text.is_empty() {
                "?".to_owned()
            } else {
                text.to_owned()
            }
        };
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        let frame = |frame: &serde_json::Value| {
            (
                text(&frame["FunctionName"]),
                text(&frame["FileName"]),
                number(&frame["Line"]),
                number(&frame["Column"]),
                number(&frame["Discriminator"]),
                number(&frame["StartLine"]),
            )
        };
        let mut rows: Vec<Row> = frames.iter().map(frame).collect();
        // If nothing is known about an address, `llvm-symbolizer` prints an empty frame, and profkit returns no frame.
        rows.retain(|row| *row != ("?".to_owned(), "?".to_owned(), 0, 0, 0, 0));
        rows
    };
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(line)
        .collect()
}

#[track_caller]
fn assert_like_llvm(program: &Path, locations: &Locations, addresses: &[u64], more: &[&str]) {
    let expected = oracle(program, more, addresses);
    assert_eq!(expected.len(), addresses.len(), "{}", program.display());
    let mut inlined = 0;
    for (index, expected) in expected.iter().enumerate() {
        let found: Vec<Row> = locations.stack(index).map(|frame| row(&frame)).collect();
        assert_eq!(
            &found,
            expected,
            "{} at {:#x}",
            program.display(),
            addresses[index]
        );
        inlined += usize::from(found.len() > 1);
    }
    assert!(inlined > 0, "{}: nothing is inlined", program.display());
}

#[track_caller]
fn check(program: &Path) {
    let addresses = code_addresses(program);
    let files = ProgramFiles::open(program, &DebugFolders::default()).expect("files");
    let locations = files
        .symbolizer(&Options::default())
        .expect("debug info")
        .symbolize(&addresses);
    assert_eq!(locations.warnings(), [], "{}", program.display());
    assert_like_llvm(program, &locations, &addresses, &[]);
}

fn programs() -> PathBuf {
    repo_root().join("tests/programs")
}

/// Compiles the C++ test program.
fn build(compiler: &Path, folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let sources = ["shapes.cpp", "shapes_more.cpp"].map(|source| programs().join(source));
    succeed(
        Command::new(compiler)
            .args(options)
            .args(sources)
            .arg("-o")
            .arg(&program)
            .current_dir(folder),
    );
    program
}

#[test]
fn clang_of_all_releases() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    for release in RELEASES {
        let llvm = require_or_skip!(release, continue);
        or_skip!(links_cxx(llvm.clangxx(), &[]), continue);
        let plain = build(llvm.clangxx(), folder.path(), "plain", &["-O2", "-g"]);
        check(&plain);
        if [14, 22].contains(&release) {
            let options = [
                "-O2",
                "-gline-tables-only",
                "-fdebug-info-for-profiling",
                "-no-pie",
            ];
            check(&build(llvm.clangxx(), folder.path(), "profiling", &options));
        }
    }
}

#[test]
fn every_form_of_debug_info() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options) in [
        (
            "dwarf-4",
            "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections",
        ),
        ("g1", "-O2 -g1"),
        ("zlib", "-O3 -g -gz=zlib -fbasic-block-sections=all"),
        ("zstd", "-O2 -g -gz=zstd -fuse-ld=lld"),
        ("library", "-O2 -g -fPIC -shared"),
        (
            "cold",
            "-O2 -g -mllvm -hot-cold-split=1 -fuse-ld=lld -Wl,--icf=all -ffunction-sections",
        ),
        ("lto", "-O2 -g -flto -fuse-ld=lld"),
    ] {
        let options: Vec<&str> = options.split_whitespace().collect();
        check(&build(llvm.clangxx(), folder.path(), name, &options));
    }
}

#[test]
fn gcc() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    or_skip!(links_cxx("g++-12", &[]));
    for options in [["-O2", "-g"], ["-O3", "-g1"]] {
        check(&build(Path::new("g++-12"), folder.path(), "gcc", &options));
    }
}

#[test]
fn rustc() {
    let _ = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("traits");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    succeed(
        Command::new(compiler)
            .args(["-O", "-g", "--edition", "2021", "-o"])
            .arg(&program)
            .arg(programs().join("traits.rs")),
    );
    check(&program);
}

/// Compiles the program with split DWARF, in a folder of its own.
fn build_split(llvm: &Llvm, folder: &Path, version: &str) -> PathBuf {
    std::fs::create_dir(folder).expect("a folder");
    for source in ["shapes", "shapes_more"] {
        succeed(
            Command::new(llvm.clangxx())
                .args(["-O2", "-gsplit-dwarf", version, "-c", "-o"])
                .arg(format!("{source}.o"))
                .arg(programs().join(format!("{source}.cpp")))
                .current_dir(folder),
        );
    }
    let program = folder.join("program");
    succeed(
        Command::new(llvm.clangxx())
            .args(["shapes.o", "shapes_more.o", "-o"])
            .arg(&program)
            .current_dir(folder),
    );
    program
}

#[test]
fn split_debug_info() {
    let llvm = require_or_skip!(22);
    let root = tempfile::tempdir().expect("a folder");
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let folder = root.path().join(version);
        let program = build_split(&llvm, &folder, version);
        check(&program);
        succeed(
            Command::new("llvm-dwp-22")
                .arg("-e")
                .arg(&program)
                .arg("-o")
                .arg(folder.join("program.dwp")),
        );
        let dwo = ["shapes.dwo", "shapes_more.dwo"].map(|name| folder.join(name));
        for file in &dwo {
            std::fs::remove_file(file).expect("a .dwo file");
        }
        check(&program);
        // Without the .dwo and .dwp files, only lines and symbols are left, and a warning is given.
        std::fs::remove_file(folder.join("program.dwp")).expect("the .dwp file");
        let addresses = code_addresses(&program);
        let files = ProgramFiles::open(&program, &DebugFolders::default()).expect("files");
        let locations = files
            .symbolizer(&Options::default())
            .expect("skeletons")
            .symbolize(&addresses);
        let warnings: Vec<String> = locations
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(warnings.len(), 2);
        assert_eq!(
            warnings[0],
            "unit at 0x0 of .debug_info: split debug info shapes.dwo is missing"
        );
        let in_main = (0..addresses.len()).flat_map(|index| locations.stack(index));
        assert!(
            in_main
                .filter(|frame| frame.function == Some(b"main") && frame.line > 0)
                .count()
                > 10
        );
        // One `.dwo` file is replaced by a file of another program, the other by a text that is no object file.
        std::fs::write(&dwo[0], fixture("debug_info/clang-22-dwarf-5.elf")).expect("written");
        std::fs::write(&dwo[1], "no object file").expect("written");
        let locations = files
            .symbolizer(&Options::default())
            .expect("skeletons")
            .symbolize(&addresses);
        let warnings: Vec<String> = locations
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            warnings[0],
            "split part of unit at 0x0 of .debug_info: the file has no compile unit with the id of the skeleton unit"
        );
        assert!(
            warnings[1].starts_with("shapes_more.dwo of unit at ")
                && warnings[1].contains("not an object file: "),
            "{warnings:?}"
        );
    }
}

#[test]
fn separate_debug_files() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let whole = build(
        llvm.clangxx(),
        folder.path(),
        "whole",
        &["-O2", "-g", "-Wl,--build-id"],
    );
    let objcopy = || Command::new("llvm-objcopy-22");
    succeed(
        objcopy()
            .arg("--only-keep-debug")
            .arg(&whole)
            .arg(path("app.debug")),
    );
    succeed(
        objcopy()
            .arg("--strip-debug")
            .arg(&whole)
            .arg(path("stripped")),
    );
    succeed(
        objcopy()
            .arg(format!(
                "--add-gnu-debuglink={}",
                path("app.debug").display()
            ))
            .arg(path("stripped"))
            .arg(path("app")),
    );
    let addresses = code_addresses(&whole);
    let like_whole = |program: &str, folders: &DebugFolders| {
        let files = ProgramFiles::open(&path(program), folders).expect("files");
        let symbolizer = files.symbolizer(&Options::default()).expect("debug info");
        assert_eq!(symbolizer.debug_info(), DebugInfo::DebugFile);
        let tree = format!("--debug-file-directory={}", path("tree").display());
        assert_like_llvm(
            &path(program),
            &symbolizer.symbolize(&addresses),
            &addresses,
            &[&tree],
        );
    };
    // The debug file is first found by its debug link. Then it is found only by its build id, in a `.build-id` tree as
    // distributions have it.
    like_whole(
        "app",
        &DebugFolders {
            folders: Vec::new(),
        },
    );
    let files = ProgramFiles::open(
        &path("app"),
        &DebugFolders {
            folders: Vec::new(),
        },
    )
    .expect("files");
    assert_eq!(files.debug_file(), Some(&*path("app.debug")));
    let id = profkit_object::build_id::build_id(
        &profkit_object::binary::BinaryFile::open(&whole)
            .expect("opens")
            .images()
            .expect("images")[0],
    )
    .expect("notes")
    .expect("a build id");
    let tree = DebugFolders {
        folders: vec![path("tree")],
    };
    let place = DebugFolders::build_id_path(&path("tree"), &id, ".debug").expect("a path");
    std::fs::create_dir_all(place.parent().expect("a folder")).expect("folders");
    std::fs::rename(path("app.debug"), place).expect("moved");
    like_whole("stripped", &tree);
    // Without any debug file there are functions from the symbol table, but no lines.
    let files = ProgramFiles::open(
        &path("stripped"),
        &DebugFolders {
            folders: Vec::new(),
        },
    )
    .expect("files");
    let symbolizer = files.symbolizer(&Options::default()).expect("symbols");
    assert_eq!(symbolizer.debug_info(), DebugInfo::SymbolsOnly);
    let locations = symbolizer.symbolize(&addresses);
    let expected = oracle(&path("stripped"), &["--no-debuginfod"], &addresses);
    for (index, expected) in expected.iter().enumerate() {
        let found: Vec<Row> = locations.stack(index).map(|frame| row(&frame)).collect();
        assert_eq!(&found, expected);
    }
}

/// Checks the inline stacks in two fixtures. This test needs no tool.
#[test]
fn stacks_of_a_small_program() {
    for name in [
        "debug_info/clang-22-dwarf-4.elf",
        "debug_info/clang-22-dwarf-5.elf",
    ] {
        let bytes = fixture(name);
        let addresses: Vec<u64> = (0x1280..0x13e1).collect();
        let locations = Symbolizer::new(&Inputs::new(&bytes), &Options::default())
            .expect("debug info")
            .symbolize(&addresses);
        assert_eq!(locations.warnings(), []);
        let deepest = (0..addresses.len()).map(|index| locations.stack(index).collect::<Vec<_>>());
        let deepest = deepest.filter(|stack| stack.len() == 3).map(|stack| {
            stack
                .iter()
                .map(|frame| format!("{}:{}", frame.function_text(), frame.function_line))
                .collect::<Vec<_>>()
                .join(" < ")
        });
        let mut deepest: Vec<String> = deepest.collect();
        deepest.dedup();
        assert!(!deepest.is_empty());
        assert!(
            deepest
                .iter()
                .all(|stack| stack == "twice:8 < folded:12 < work:19"),
            "{deepest:?}"
        );
        let files: std::collections::BTreeSet<_> = (0..addresses.len())
            .flat_map(|index| locations.stack(index))
            .map(|frame| frame.file_text().into_owned())
            .collect();
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["/src/inlined.c"]);
    }
}

/// If names come from the debug info and not from symbols, the cold part of a function has the function's own name.
#[test]
fn names_come_from_where_they_are_asked_from() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(
        llvm.clangxx(),
        folder.path(),
        "parts",
        &["-O2", "-g", "-fbasic-block-sections=all"],
    );
    let addresses = code_addresses(&program);
    let files = ProgramFiles::open(&program, &DebugFolders::default()).expect("files");
    let parts = |options: Options| {
        let locations = files
            .symbolizer(&options)
            .expect("debug info")
            .symbolize(&addresses);
        let frames = (0..addresses.len()).flat_map(|index| {
            locations
                .stack(index)
                .map(|frame| (frame.function_text().into_owned(), frame.line))
                .collect::<Vec<_>>()
        });
        frames
            .filter(|(name, line)| name.starts_with("main.__part.") && *line > 0)
            .count()
    };
    assert!(parts(Options::default()) > 0);
    assert_eq!(parts(Options::default().symbol_names(false)), 0);
}

/// The bytes of a fixture in which `change` has damaged a section.
fn damaged(name: &str, section: &str, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = fixture(name);
    let file = object::File::parse(&*bytes).expect("an object file");
    let (offset, size) = file
        .section_by_name(section)
        .expect("the section")
        .file_range()
        .expect("in the file");
    let (offset, size) = (
        usize::try_from(offset).expect("small"),
        usize::try_from(size).expect("small"),
    );
    change(&mut bytes[offset..offset + size]);
    bytes
}

fn complaints(bytes: &[u8]) -> (String, usize) {
    let addresses: Vec<u64> = (0x1280..0x13e1).collect();
    match Symbolizer::new(&Inputs::new(bytes), &Options::default()) {
        Err(error) => (error.to_string(), 0),
        Ok(symbolizer) => {
            let locations = symbolizer.symbolize(&addresses);
            let warnings: Vec<String> = locations
                .warnings()
                .iter()
                .map(ToString::to_string)
                .collect();
            let known = (0..addresses.len())
                .filter(|&index| locations.stack(index).any(|frame| frame.line > 0))
                .count();
            (warnings.join("\n"), known)
        }
    }
}

#[test]
fn damage_is_said_and_the_rest_is_kept() {
    const V5: &str = "debug_info/clang-22-dwarf-5.elf";
    const V4: &str = "debug_info/clang-22-dwarf-4.elf";
    let cases = [
        ("nothing", Vec::new()),
        (
            "text",
            b"no program at all, but long enough to be looked at: sixty-four bytes and more"
                .to_vec(),
        ),
        (
            "unit version",
            damaged(V5, ".debug_info", |info| info[4] = 77),
        ),
        (
            "unit length",
            damaged(V5, ".debug_info", |info| info[3] = 1),
        ),
        (
            "abbreviation of the unit",
            damaged(V5, ".debug_info", |info| info[12] = 0x7e),
        ),
        (
            "abbreviation of an entry",
            damaged(V5, ".debug_info", |info| info[0x98] = 0x7e),
        ),
        (
            "all abbreviations",
            damaged(V5, ".debug_abbrev", |abbrev| abbrev.fill(0xff)),
        ),
        (
            "line table version",
            damaged(V5, ".debug_line", |line| line[4] = 99),
        ),
        (
            "end of the line table",
            damaged(V5, ".debug_line", |line| {
                let len = line.len();
                line[len - 40..].fill(0xff);
            }),
        ),
        (
            "range lists",
            damaged(V5, ".debug_rnglists", |ranges| ranges.fill(0xee)),
        ),
        (
            "compressed data",
            damaged(V4, ".debug_info", |info| info[24..].fill(0xaa)),
        ),
        (
            "compression header",
            damaged(V4, ".debug_info", |info| info[8..16].fill(0x7f)),
        ),
    ];
    let report: Vec<String> = cases
        .iter()
        .map(|(name, bytes)| {
            let (warnings, known) = complaints(bytes);
            format!(
                "{name}: {known} addresses known\n  {}",
                warnings.replace('\n', "\n  ")
            )
        })
        .collect();
    insta::assert_snapshot!(report.join("\n"), @"
    nothing: 0 addresses known
      binary: this object file cannot be symbolised: Could not read file magic: expected an ELF, Mach-O or COFF file
    text: 0 addresses known
      binary: this object file cannot be symbolised: Unknown file magic: expected an ELF, Mach-O or COFF file
    unit version: 0 addresses known
      unit headers of .debug_info: debug info cannot be read: unknown DWARF version: 77
    unit length: 0 addresses known
      unit headers of .debug_info: debug info cannot be read: unexpected end of input at .debug_info+0x4
    abbreviation of the unit: 0 addresses known
      unit at 0x0 of .debug_info: debug info cannot be read: invalid abbreviation code: 126
    abbreviation of an entry: 256 addresses known
      unit at 0x0 of .debug_info: debug info cannot be read: invalid abbreviation code: 126
    all abbreviations: 0 addresses known
      unit at 0x0 of .debug_info: debug info cannot be read: unsigned LEB128 overflow
    line table version: 0 addresses known
      unit at 0x0 of .debug_info: debug info cannot be read: unknown DWARF version: 99
    end of the line table: 278 addresses known
      line table of unit at 0x0 of .debug_info: the last sequence of the line table has no end
    range lists: 0 addresses known
      unit at 0x0 of .debug_info: debug info cannot be read: unexpected end of input at .debug_info+0x10b
    compressed data: 0 addresses known
      .debug_info: a section cannot be read: Invalid zlib compressed data
    compression header: 0 addresses known
      .debug_info: a compressed section claims to have more bytes than a file of this size can have: found 9187201950435737471 bytes, expected at most 50571008 more bytes
    ");
}
