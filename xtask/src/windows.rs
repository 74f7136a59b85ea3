//! `cargo xtask windows`: builds the command for Windows and runs it under Wine: first the tests of `tests/cli`, then over all
//! fixtures, where what it prints and writes is compared with what the command of this machine does.
//!
//! Needs Debian's packages gcc-mingw-w64-x86-64 and wine64, and `rustup target add x86_64-pc-windows-gnu`.
use crate::mip::{fresh, succeed};
use crate::steps::{built_profkit, cargo, has_target};
use anyhow::{Context, Result, ensure};
use profkit_testkit::{distinct_fixtures_with, repo_root, target_folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TARGET: &str = "x86_64-pc-windows-gnu";
/// Where Debian has Wine, which is not on `PATH`.
const WINE: &str = "/usr/lib/wine/wine64";
const WINE_SERVER: &str = "/usr/lib/wine/wineserver64";
/// Wine 8 lacks a library of Windows from which Rust's standard library takes random bytes.
const RANDOM: &str = "#include <windows.h>\n\
    BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)\n\
    { return SystemFunction036(bytes, (ULONG)count); }\n";

/// The names of the command. Under those of LLVM's tools it has another meaning.
const NAMES: &[&str] = &[
    "profkit",
    "llvm-profdata",
    "llvm-profdata-23",
    "llvm-profgen-23",
];

/// The commands that are run on each fixture, which is `$1`. What they write is `$2`.
const COMMANDS: &[&[&str]] = &[
    &["merge", "$1", "-o", "$2"],
    &["show", "$1"],
    &["doctor", "$1"],
];
/// The extensions of the fixtures.
const EXTENSIONS: &[&str] = &[
    "profraw",
    "profdata",
    "proftext",
    "sampleprof",
    "prof",
    "afdo",
    "memprofraw",
    "mip",
    "mipraw",
    "zst",
    "tar",
];

/// Runs `tests/cli`, then all commands on all fixtures.
pub fn run() -> Result<()> {
    ensure!(
        has_target(TARGET)?,
        "there is no standard library for {TARGET}: rustup target add {TARGET}"
    );
    ensure!(
        Path::new(WINE).is_file(),
        "{WINE} is missing: apt-get install wine64"
    );
    // Wine reads the whole program at each start, and debug information is most of it.
    let lean = [("CARGO_PROFILE_DEV_DEBUG", "false")];
    cargo(&["build", "-p", "profkit-cli", "--target", TARGET], &lean)?;
    let folder = target_folder().join("windows");
    let program = target_folder().join(TARGET).join("debug/profkit.exe");
    let bin = programs(&folder, &program)?;
    // What stays keeps the standard output of the command that started it.
    let quietly = |command: &mut Command| -> Result<()> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.stderr(Stdio::null()).status()?;
        ensure!(status.success(), "{command:?}: {status}");
        Ok(())
    };
    let server = |option: &str| {
        let mut command = Command::new(WINE_SERVER);
        quietly(command.env("WINEPREFIX", folder.join("wine")).arg(option))
    };
    // Without a server that stays, Wine starts its services for each command. The one that made the folder does not stay.
    server("-w")?;
    server("-p")?;
    quietly(Command::new(bin.join("profkit")).arg("--version"))?;
    let tested = cargo(
        &[
            "test",
            "-p",
            "profkit-cli",
            "--test",
            "all",
            "--",
            "cli::every_file",
            "--nocapture",
        ],
        &[("CLI_WINDOWS", &bin.to_string_lossy())],
    );
    let compared = fixtures(&folder, &bin.join("profkit"));
    server("-k")?;
    tested.and(compared)
}

/// Makes programs with the names of the command that start it under Wine, and returns their folder.
fn programs(folder: &Path, program: &Path) -> Result<PathBuf> {
    let wine = prefix(folder)?;
    let bin = folder.join("bin");
    fresh(&bin)?;
    for name in NAMES {
        let copy = bin.join(name).with_extension("exe");
        fs::hard_link(program, &copy).or_else(|_| fs::copy(program, &copy).map(drop))?;
        let script = bin.join(name);
        fs::write(
            &script,
            format!(
                "#!/bin/sh\n\
                 # A link to this script has the name of another program. Wine takes arguments to be in the character set of the\n\
                 # locale.\n\
                 LC_ALL=C.UTF-8 WINEDEBUG=-all WINEPREFIX='{}' exec timeout 120 {WINE} '{}'/\"${{0##*/}}\".exe \"$@\"\n",
                wine.display(),
                bin.display()
            ),
        )?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    }
    Ok(bin)
}

/// Compares all commands on all fixtures.
fn fixtures(folder: &Path, under_wine: &Path) -> Result<()> {
    let native = built_profkit()?;
    let scratch = folder.join("written");
    fresh(&scratch)?;
    let (mut count, mut different) = (0, 0);
    for fixture in distinct_fixtures_with(EXTENSIONS) {
        let fixture = Path::new("tests/fixtures").join(fixture);
        for words in COMMANDS {
            let output = scratch.join("output");
            let run = |mut command: Command| -> Result<(Output, Option<Vec<u8>>)> {
                command.current_dir(repo_root());
                for word in *words {
                    match *word {
                        "$1" => command.arg(&fixture),
                        "$2" => command.arg(&output),
                        word => command.arg(word),
                    };
                }
                let printed = command.output()?;
                let written = output.is_file().then(|| fs::read(&output)).transpose()?;
                fresh(&scratch)?;
                Ok((printed, written))
            };
            let (here, there) = (run(Command::new(&native))?, run(Command::new(under_wine))?);
            count += 1;
            if here != there {
                different += 1;
                println!(
                    "{} {}: {} and {}",
                    words.join(" "),
                    fixture.display(),
                    here.0.status,
                    there.0.status
                );
                println!("{}", first_difference(&here.0, &there.0));
            }
        }
    }
    println!("{count} commands, {different} different");
    ensure!(different == 0, "{different} commands differ");
    Ok(())
}

/// Makes Wine's folder, with the library that it lacks, and returns it.
fn prefix(folder: &Path) -> Result<PathBuf> {
    let wine = folder.join("wine");
    let system = wine.join("drive_c/windows/system32");
    fs::create_dir_all(folder)?;
    if !system.is_dir() {
        succeed(
            Command::new(WINE)
                .env("WINEPREFIX", &wine)
                .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
                .args(["wineboot", "--init"]),
        )?;
    }
    let source = folder.join("random.c");
    fs::write(&source, RANDOM)?;
    succeed(
        Command::new("x86_64-w64-mingw32-gcc")
            .args(["-shared", "-o"])
            .arg(system.join("bcryptprimitives.dll"))
            .arg(&source)
            .arg("-ladvapi32"),
    )
    .context("apt-get install gcc-mingw-w64-x86-64")?;
    Ok(wine)
}

/// The first lines in which two outputs differ.
fn first_difference(ours: &Output, theirs: &Output) -> String {
    let both = |ours: &[u8], theirs: &[u8]| {
        let (ours, theirs) = (
            String::from_utf8_lossy(ours),
            String::from_utf8_lossy(theirs),
        );
        let mut lines = ours.lines().zip(theirs.lines());
        lines
            .find(|(ours, theirs)| ours != theirs)
            .map(|(ours, theirs)| format!("  - {ours}\n  + {theirs}"))
    };
    both(&ours.stdout, &theirs.stdout)
        .or_else(|| both(&ours.stderr, &theirs.stderr))
        .unwrap_or_else(|| "  one has more lines, or another file".to_owned())
}
