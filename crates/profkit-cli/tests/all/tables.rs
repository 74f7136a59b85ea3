//! The tables of an instrumentation profile become the profile again, byte for byte.
use profkit_testkit::{distinct_fixtures_with, fixture_path, some_or_all};
use std::fs;
use std::path::Path;
use std::process::Command;

const EVERY: usize = 11;
const TABLES: [&str; 5] = ["counters", "functions", "values", "traces", "profile"];

/// Runs profkit in a folder, and returns what it printed on standard error if it failed.
fn profkit(folder: &Path, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    let done = command
        .current_dir(folder)
        .args(args)
        .output()
        .expect("profkit runs");
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

fn forms() -> &'static [&'static str] {
    if cfg!(feature = "arrow") {
        &["csv", "json", "parquet", "arrow"]
    } else {
        &["csv", "json"]
    }
}

#[test]
fn untouched_tables_give_the_bytes_of_a_merge() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let all = distinct_fixtures_with(&["profdata", "proftext", "profraw"]);
    let mut checked = 0;
    for path in some_or_all(all.into_iter().map(fixture_path), EVERY) {
        let input = path.to_str().expect("a path of text");
        let merged = ["merge", "-q", input, "-o", "merged"];
        // Raw files without metadata have no functions, and a heap profile has other tables.
        let is_heap = input.contains("memprof") || input.contains("correlat");
        // Their sound part is exported, with an exit code that says so.
        let left_out = is_heap || input.contains("truncated");
        if left_out || profkit(folder, &merged).is_err() {
            continue;
        }
        for form in forms() {
            let mut files = Vec::new();
            for table in TABLES {
                let file = format!("{table}.{form}");
                let export = ["export", input, "--to", form, "--table", table, "-o", &file];
                profkit(folder, &export).unwrap_or_else(|why| panic!("{input} {table}: {why}"));
                files.push(file);
            }
            let mut convert = vec!["convert", "-q", "--to", "indexed", "-o", "back"];
            convert.extend(files.iter().map(String::as_str));
            profkit(folder, &convert).unwrap_or_else(|why| panic!("{input} {form}: {why}"));
            let [merged, back] =
                ["merged", "back"].map(|name| fs::read(folder.join(name)).expect("a profile"));
            assert!(merged == back, "{input} {form}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}
