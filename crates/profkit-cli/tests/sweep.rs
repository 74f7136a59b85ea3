//! Runs the command on damaged files. It must end with code 0 or 1, name the file and the place of the damage, and use
//! no more memory than it promises. If a merge fails, the old output must still be there.
//!
//! This is a program of its own, because Linux counts the memory of the process that starts a command as the command's
//! own: the other tests would be in every figure.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use serde::Deserialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use profkit_data::instr::indexed::IndexedProfile;
use profkit_testkit::{Rng, distinct_fixtures_with, fixture, measure, short_or_whole};

/// Every 37th fixture is damaged, or every 7th if the tests run in their long form. The sweep of `profkit-data` damages
/// all fixtures.
const EVERY: [usize; 2] = [37, 7];
/// The largest accepted memory: `RATIO` times the size of the input, plus `FLOOR`.
const RATIO: u64 = 4;
const FLOOR: u64 = 64 << 20;
/// The contents of the output file before the merge.
const OLD: &[u8] = b"what was there before";

#[test]
fn merge_of_damaged_files() {
    each_damage(|name, data, folder| {
        let input = write_input(folder, name, data);
        let output = folder.join("out.profdata");
        std::fs::write(&output, OLD).map_err(|error| error.to_string())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command.current_dir(folder).arg("merge").arg(&input);
        let ran = run(command.args(["-o", "out.profdata"]), data.len())?;
        let written = std::fs::read(&output).map_err(|error| error.to_string())?;
        match ran.code {
            0 => IndexedProfile::parse(&written)
                .and_then(|profile| profile.to_profile())
                .map(drop)
                .map_err(|error| format!("an output that cannot be read: {error}")),
            _ if written != OLD => Err("the old output did not survive".to_owned()),
            _ => says_where(&ran.stderr, name, data),
        }
    });
}

#[test]
fn show_of_damaged_files() {
    each_damage_of(|name, data, whole, folder| {
        let input = write_input(folder, name, data);
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command.current_dir(folder).args(["show", "--functions"]);
        let text = run(command.arg(&input), data.len())?;
        if text.code != 0 {
            says_where(&text.stderr, name, data)?;
        }
        let ran = show_json(folder, name, data.len())?;
        if text.code != ran.code {
            return Err("text and JSON differ in the exit code".to_owned());
        }
        if ran.stdout.is_empty() {
            return match ran.code {
                0 => Err("nothing was printed, and no error".to_owned()),
                _ => Ok(()),
            };
        }
        let shown: Shown = serde_json::from_slice(&ran.stdout)
            .map_err(|error| format!("what was printed is not JSON: {error}"))?;
        shown.check(ran.code)?;
        if whole.starts_with(data) {
            write_input(folder, "whole", whole);
            let whole = show_json(folder, "whole", whole.len())?;
            let whole = serde_json::from_slice(&whole.stdout).map_err(|error| error.to_string())?;
            shown.check_cut(&whole, name.ends_with(".proftext"))?;
        }
        let text = String::from_utf8(text.stdout).map_err(|error| error.to_string())?;
        match text.chars().find(|c| c.is_control() && *c != '\n') {
            Some(control) => Err(format!("a terminal would get {control:?}")),
            None => Ok(()),
        }
    });
}

fn show_json(folder: &Path, name: &str, size: usize) -> Result<Ran, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command.current_dir(folder).args(["show", name]);
    run(
        command.args(["--functions", "--counts", "--format", "json"]),
        size,
    )
}

/// The JSON that `show --functions --counts --format json` prints.
#[derive(Deserialize)]
struct Shown {
    functions: Vec<ShownFunction>,
    totals: Totals,
    errors: Vec<serde_json::Value>,
    error_count: usize,
}

#[derive(Deserialize)]
struct Totals {
    records: usize,
    pseudo_records: usize,
}

#[derive(Deserialize)]
struct ShownFunction {
    /// The hash of the name. It is shown even if the name is lost.
    guid: String,
    hash: String,
    counters: usize,
    /// The counters; `None` for pseudo records, which have no counts.
    counts: Option<Vec<u64>>,
    pseudo: Option<String>,
    #[serde(default)]
    max: u64,
    /// A number of up to 128 bits. The JSON reader has no exact type for numbers above 64 bits.
    sum: Option<serde_json::Number>,
}

impl Shown {
    /// Checks that the parts of the output agree with each other and with the exit code.
    fn check(&self, code: i32) -> Result<(), String> {
        if (self.error_count > 0) != (code == 1) || self.errors.is_empty() != (code == 0) {
            return Err(format!("{} errors, exit code {code}", self.error_count));
        }
        if self.functions.len() != self.totals.records {
            let totals = (self.totals.records, self.totals.pseudo_records);
            return Err(format!(
                "{} functions, totals {totals:?}",
                self.functions.len()
            ));
        }
        for function in &self.functions {
            let Some(counts) = &function.counts else {
                if function.pseudo.is_none() {
                    return Err(format!("{} has no counts", function.guid));
                }
                continue;
            };
            let sum: u128 = counts.iter().map(|count| u128::from(*count)).sum();
            let max = counts.iter().copied().max().unwrap_or(0);
            let expected = (counts.len(), u64::try_from(sum).ok(), max);
            let shown_sum = function.sum.as_ref().and_then(serde_json::Number::as_u64);
            let found = (function.counters, shown_sum, function.max);
            if function.pseudo.is_none() && found != expected {
                return Err(format!(
                    "{}: {found:?}, expected {expected:?}",
                    function.guid
                ));
            }
        }
        Ok(())
    }

    /// Checks that the functions shown for a truncated file are also in the whole file, with the same counts. In a text
    /// file, the last function is not checked, because its last count may have lost digits.
    fn check_cut(&self, whole: &Shown, is_text: bool) -> Result<(), String> {
        let known: HashSet<_> = whole.functions.iter().map(ShownFunction::key).collect();
        let sure = self.functions.len() - usize::from(is_text && !self.functions.is_empty());
        for function in self.functions.iter().take(sure) {
            if !known.contains(&function.key()) {
                return Err(format!("{} is not so in the whole file", function.guid));
            }
        }
        Ok(())
    }
}

impl ShownFunction {
    fn key(&self) -> (&str, &str, &[u64]) {
        (
            &self.guid,
            &self.hash,
            self.counts.as_deref().unwrap_or_default(),
        )
    }
}

#[test]
fn llvm_profdata_merge_of_damaged_files() {
    each_damage(|name, data, folder| {
        let input = write_input(folder, name, data);
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command.current_dir(folder).args(["llvm-profdata", "merge"]);
        command.arg(&input).args(["-o", "out.profdata"]);
        let ran = run(&mut command, data.len())?;
        let written = std::fs::read(folder.join("out.profdata")).unwrap_or_default();
        match ran.code {
            0 => Ok(()),
            _ if !written.is_empty() => Err("a failed merge left an output".to_owned()),
            _ if ran.stderr.contains(name) => Ok(()),
            _ => Err(format!("no file name in {:?}", ran.stderr)),
        }
    });
}

struct Ran {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

fn run(command: &mut Command, size: usize) -> Result<Ran, String> {
    let measured = measure(command).map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&measured.stderr).into_owned();
    let allowed = RATIO * size as u64 + FLOOR;
    if measured.peak_rss > allowed {
        return Err(format!("{} bytes resident", measured.peak_rss));
    }
    match measured.code() {
        Some(code @ (0 | 1)) => Ok(Ran {
            code,
            stdout: measured.stdout,
            stderr,
        }),
        _ => Err(format!("{}: {stderr}", measured.status)),
    }
}

fn says_where(stderr: &str, name: &str, data: &[u8]) -> Result<(), String> {
    // If the file has no known magic number, the message is about the whole file and states no place.
    let whole = data.is_empty() || stderr.contains("not a profile of");
    let place = stderr.contains("at offset 0x") || stderr.contains("at line ") || whole;
    if stderr.contains(name) && place {
        Ok(())
    } else {
        Err(format!("no file or no place in {stderr:?}"))
    }
}

fn write_input(folder: &Path, name: &str, data: &[u8]) -> PathBuf {
    let input = folder.join(name);
    std::fs::write(&input, data).expect("a writable folder");
    PathBuf::from(name)
}

/// Damages each chosen fixture in many ways. For each damaged file, calls `check` with the name, the bytes, and an
/// empty folder.
fn each_damage(check: impl Fn(&str, &[u8], &Path) -> Result<(), String> + Sync) {
    each_damage_of(|name, data, _, folder| check(name, data, folder));
}

/// Does the same as [`each_damage`]; `check` also gets the undamaged fixture.
fn each_damage_of(check: impl Fn(&str, &[u8], &[u8], &Path) -> Result<(), String> + Sync) {
    let [short, whole] = EVERY;
    let every = short_or_whole(short, whole);
    let fixtures = distinct_fixtures_with(&["profraw", "profdata", "proftext"]);
    let chosen: Vec<PathBuf> = fixtures.into_iter().step_by(every).collect();
    assert!(chosen.len() > 200 / every, "only {} fixtures", chosen.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let whole = fixture(path);
                    for (damage, data) in damages(&whole) {
                        let folder = tempfile::tempdir().expect("a scratch folder");
                        let name = path.file_name().expect("a file").to_string_lossy();
                        if let Err(why) = check(&name, &data, &whole, folder.path()) {
                            let failure = format!("{}, {damage}: {why}", path.display());
                            failures.lock().expect("no panic holds it").push(failure);
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic held it");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn damages(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let len = whole.len();
    let mut damages: Vec<(String, Vec<u8>)> = Vec::new();
    for kept in [0, 1, 8, 40, len / 3, len / 2, len - 9, len - 1] {
        let cut = whole.get(..kept).unwrap_or(whole).to_vec();
        damages.push((format!("cut to {kept} bytes"), cut));
    }
    let mut rng = Rng::new(len as u64);
    for word in 0..12 {
        let mut changed = whole.to_vec();
        let value = [u64::MAX, 1 << 40, 3, rng.bits()][word % 4];
        let at = if word < 8 {
            (word + 1) * 8
        } else {
            rng.below(len / 8) * 8
        };
        if let Some(bytes) = changed.get_mut(at..at + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        damages.push((format!("{value:#x} at {at:#x}"), changed));
    }
    damages
}
