//! Tests a profile with very many records of one name. If the time grew with the square of the number of records, this
//! test would not end within a day.
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The number of records in the profile.
const RECORDS: u64 = 200_000;

/// Runs the command in a folder. Returns what it printed.
fn run(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("profkit runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn many_records_of_one_name_take_no_longer_than_other_records() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    // The function hashes of two profiles. Half of the hashes are in both profiles.
    for (name, first) in [("a.proftext", 0), ("b.proftext", RECORDS / 2)] {
        let mut text = String::new();
        for hash in first..first + RECORDS {
            let _ = write!(text, "f\n{hash}\n2\n{}\n1\n", hash % 100);
        }
        std::fs::write(folder.join(name), text).expect("a profile");
    }
    run(folder, &["merge", "-q", "a.proftext", "-o", "a.profdata"]);
    run(folder, &["merge", "-q", "b.proftext", "-o", "b.profdata"]);
    let inputs = ["a.profdata", "b.profdata", "b.proftext"];
    let merge = ["merge", "-q", "--text", "-o", "all.proftext"];
    run(folder, &[&merge[..], &inputs].concat());
    let merged = std::fs::read_to_string(folder.join("all.proftext")).expect("the result");
    let records = merged.split("\n\n").filter(|record| record.contains("f\n"));
    let sums: Vec<u64> = records
        .map(|record| {
            let mut lines = record.lines().skip_while(|line| *line != "f").skip(1);
            let mut next = || -> u64 {
                let mut numbers = lines.by_ref().filter(|line| !line.starts_with('#'));
                numbers
                    .next()
                    .and_then(|line| line.parse().ok())
                    .expect("a number")
            };
            let (hash, counters, first) = (next(), next(), next());
            assert_eq!(counters, 2);
            let inputs = u64::from(hash < RECORDS) + 2 * u64::from(hash >= RECORDS / 2);
            assert_eq!(first, hash % 100 * inputs, "the record with hash {hash}");
            next()
        })
        .collect();
    assert_eq!(sums.len() as u64, RECORDS * 3 / 2);
    assert_eq!(sums.iter().sum::<u64>(), RECORDS * 3);

    let half = RECORDS / 2;
    let overlap = run(
        folder,
        &["llvm-profdata", "overlap", "a.profdata", "b.profdata"],
    );
    let line = format!("# of functions mismatch: {half}");
    assert!(overlap.contains(&line), "{overlap}");
    let overlap = run(
        folder,
        &["overlap", "--top", "5", "a.profdata", "b.profdata"],
    );
    assert!(overlap.contains("100,000"), "{overlap}");
    let diff = run(folder, &["diff", "a.profdata", "b.profdata"]);
    assert!(diff.contains("100,000"), "{diff}");
}
