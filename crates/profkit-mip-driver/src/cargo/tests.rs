//! Tests of the parts that need no rustc. crates/profkit-cli/tests/mip_cargo.rs builds programs.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]
use super::link::Tools;
use super::rustc::Options;
use super::units;
use object::read::archive::ArchiveFile;
use profkit_mip::instrument;
use profkit_rt::archive::{Member, archive};
use std::ffi::OsString;
use std::fs;

fn options(line: &str) -> Options {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    Options::parse(&words)
}

#[test]
fn options_in_all_spellings() {
    for line in [
        "--crate-name app -C linker=old -Clinker=clang --target x86_64-unknown-linux-gnu",
        "--crate-name=app --codegen=linker=old --codegen linker=clang --target=/a/x86_64-unknown-linux-gnu.json",
    ] {
        let options = options(line);
        assert_eq!(options.codegen("linker"), Some("clang"), "{line}");
        assert_eq!(
            options.target().as_deref(),
            Some("x86_64-unknown-linux-gnu"),
            "{line}"
        );
        let tools = Tools::of(&options);
        assert_eq!(tools.linker, "clang");
    }
    assert_eq!(Tools::of(&options("--test")).linker, "cc");
}

#[test]
fn libraries_with_long_names() {
    let long = "app-0123456789abcdef.app.fedcba9876543210-cgu.0.rcgu.o";
    let members = [
        ("lib.rmeta", &b"odd"[..], &[][..]),
        (long, b"even", &["first", "second"]),
        ("exactly-16-bytes", b"x", &["third"]),
        ("exactly-15-byte", b"", &[]),
    ];
    let bytes = archive(&members.map(|(name, object, symbols)| Member {
        name,
        object,
        symbols,
    }));
    let read = ArchiveFile::parse(&*bytes).expect("an archive");
    let mut found = Vec::new();
    for member in read.members() {
        let member = member.expect("a member");
        let name = std::str::from_utf8(member.name()).expect("text");
        found.push((name, member.data(&*bytes).expect("bytes")));
    }
    assert_eq!(found, members.map(|(name, object, _)| (name, object)));
    let symbols = read.symbols().expect("an index").expect("an index");
    let of: Vec<(&[u8], &[u8])> = symbols
        .map(|symbol| {
            let symbol = symbol.expect("a symbol");
            let member = read.member(symbol.offset()).expect("its member");
            (symbol.name(), member.data(&*bytes).expect("bytes"))
        })
        .collect();
    let expected: [(&[u8], &[u8]); 3] =
        [(b"first", b"even"), (b"second", b"even"), (b"third", b"x")];
    assert_eq!(of, expected);
}

#[test]
fn messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let outputs = folder.path().join("app-1");
    let library = folder.path().join("libapp-1.rlib");
    let tools = Tools {
        linker: "gcc-that-is-missing".into(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
    };
    let message = |members: &[u8]| {
        fs::write(&library, members).expect("written");
        let made =
            units::replace_members(&library, &outputs, &tools, &instrument::Options::default());
        let error = made.expect_err("an error");
        let text = format!("{error}\n{}", error.hint().unwrap_or_default());
        text.replace(&folder.path().display().to_string(), "FOLDER")
    };
    let with = |name: &str| {
        archive(&[Member {
            name,
            object: b"",
            symbols: &[],
        }])
    };
    let whole = with("app-1.app.2-cgu.0.rcgu.o");
    insta::assert_snapshot!(message(b"no archive"), @"FOLDER/libapp-1.rlib: the library cannot be read: Unsupported archive identifier");
    insta::assert_snapshot!(message(&whole[..whole.len() - 3]), @"FOLDER/libapp-1.rlib: the library cannot be read: Invalid archive member header");
    insta::assert_snapshot!(message(&whole), @r"
    rustc wrote no assembly of app-1.app.2-cgu.0.rcgu.o, so it cannot be instrumented
    build without -Cincremental and without other wrappers of rustc
    ");
    fs::write(folder.path().join("app-1.s"), "\t.text\n").expect("written");
    insta::assert_snapshot!(message(&whole), @r"
    cannot start gcc-that-is-missing: No such file or directory
    install it, or give its path: the option linker of the target in .cargo/config.toml
    ");
    let tools = Tools {
        linker: "gcc-12".into(),
        ..tools
    };
    if profkit_testkit::on_path("gcc-12").is_none() {
        profkit_testkit::skip("no gcc-12");
        return;
    }
    fs::write(folder.path().join("app-1.s"), "\tno such thing\n").expect("written");
    let made = units::replace_members(&library, &outputs, &tools, &instrument::Options::default());
    insta::assert_snapshot!(made.expect_err("an error"), @"gcc-12 cannot assemble the instrumented code (its messages are above)");
}
