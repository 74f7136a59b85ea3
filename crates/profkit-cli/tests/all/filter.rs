//! `profkit filter` on the profiles of real tools: nothing to cut changes nothing, LLVM reads what is left, and no name
//! stays in a redacted profile.
use profkit_testkit::{Llvm, distinct_fixtures_with, fixture_path, skip, some_or_all};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const EVERY: usize = 9;

fn profkit(args: &[&str], files: [&Path; 2]) -> Output {
    let [input, output] = files;
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command
        .args(args)
        .arg("-q")
        .arg(input)
        .arg("-o")
        .arg(output);
    command.output().expect("profkit runs")
}

fn fixtures() -> Vec<PathBuf> {
    let all = distinct_fixtures_with(&["profdata", "proftext", "sampleprof"]);
    some_or_all(all.into_iter().map(fixture_path), EVERY)
}

/// The form that a fixture has, as `--to` takes it.
fn form(path: &Path) -> &'static str {
    let name = path.file_name().expect("a name").to_string_lossy();
    match path.extension().and_then(|it| it.to_str()) {
        Some("profdata") => "indexed",
        Some("sampleprof") if name.contains("-ext") => "ext-binary",
        Some("sampleprof") if name.contains("-binary") => "binary",
        Some("sampleprof") if name.contains("-compact") => "compact-binary",
        _ => "text",
    }
}

#[test]
fn nothing_to_cut_gives_the_bytes_of_convert() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    for path in fixtures() {
        let converted = profkit(&["convert", "--to", form(&path)], [&path, &one]);
        let filtered = profkit(&["filter", "--hottest", "1000000"], [&path, &two]);
        assert_eq!(converted.status.code(), filtered.status.code(), "{path:?}");
        if converted.status.success() {
            let bytes = [&one, &two].map(|path| fs::read(path).expect("a profile"));
            assert!(bytes[0] == bytes[1], "{path:?}");
        }
    }
}

#[test]
fn llvm_reads_what_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("cut");
    for path in fixtures() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let mut parts = name.split('-');
        let release = match (parts.next(), parts.next()) {
            (Some("clang" | "llvm"), Some(release)) => release.parse().unwrap_or(22),
            _ => 22,
        };
        let Some(llvm) = Llvm::find(release) else {
            skip(&format!("{name}: LLVM {release} is not installed"));
            continue;
        };
        // LLVM 13 has another form of contexts in the extensible encoding, which profkit reads and does not write.
        if name.starts_with("llvm-13-contexts-ext") {
            continue;
        }
        let is_sample = name.ends_with("sampleprof");
        let option = if is_sample { "--sample" } else { "--instr" };
        for cut in [
            &["filter", "--hottest", "1"][..],
            &["filter", "--hottest", "60%", "--drop-values"],
        ] {
            // Without a release, the result is for the newest one that understands the input.
            let release = release.to_string();
            let mut args = cut.to_vec();
            args.extend(["--llvm", release.as_str(), "--to", form(&path)]);
            let done = profkit(&args, [&path, &output]);
            if !done.status.success() {
                let words = String::from_utf8_lossy(&done.stderr).into_owned();
                let is_heap = words.contains("--drop-values means nothing for a heap profile");
                assert!(
                    is_heap || words.contains("leave nothing"),
                    "{name}: {words}"
                );
                continue;
            }
            let mut show = Command::new(llvm.profdata());
            show.args(["show", option, "--all-functions"]).arg(&output);
            let shown = show.output().expect("llvm-profdata runs");
            let words = String::from_utf8_lossy(&shown.stderr);
            assert!(shown.status.success(), "{name} {cut:?}: {words}");
        }
    }
}

#[test]
fn no_name_stays_in_a_redacted_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let [rows, output] = ["rows", "redacted"].map(|name| folder.path().join(name));
    let mut names = 0;
    for path in fixtures() {
        let table = ["export", "--to", "csv", "--table", "functions"];
        let mut export = Command::new(env!("CARGO_BIN_EXE_profkit"));
        export.args(table).arg(&path).arg("-o").arg(&rows);
        if !export.output().expect("profkit runs").status.success() {
            continue;
        }
        let done = profkit(&["filter", "--redact", "salt"], [&path, &output]);
        assert!(done.status.success(), "{path:?}");
        let bytes = fs::read(&output).expect("a profile");
        let text = fs::read_to_string(&rows).expect("rows");
        let symbols = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split(',').next());
        for symbol in symbols.filter(|symbol| symbol.len() > 4 && !symbol.starts_with("0x")) {
            names += 1;
            let found = bytes
                .windows(symbol.len())
                .any(|part| part == symbol.as_bytes());
            assert!(!found, "{path:?}: {symbol}");
        }
    }
    assert!(names > 0);
}
