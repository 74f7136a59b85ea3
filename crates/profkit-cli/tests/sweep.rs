//! The command on damaged files: it ends with 0 or 1, names the file and the place, stays within the memory that it
//! promises, and a merge that fails leaves what was there before.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use profkit_data::instr::indexed::IndexedProfile;
use profkit_testkit::{Rng, fixture, fixtures, measure};

/// Every so many-th fixture is damaged; `profkit-data`'s sweep has all of them.
const EVERY: usize = 7;
/// The most memory, as a multiple of the input and beyond it.
const RATIO: u64 = 4;
const FLOOR: u64 = 64 << 20;
/// What is in the output's place before the merge.
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
    each_damage(|name, data, folder| {
        let input = write_input(folder, name, data);
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command.current_dir(folder).arg("show").arg(&input);
        let ran = run(&mut command, data.len())?;
        match ran.code {
            0 => Ok(()),
            _ => says_where(&ran.stderr, name, data),
        }
    });
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
        Some(code @ (0 | 1)) => Ok(Ran { code, stderr }),
        _ => Err(format!("{}: {stderr}", measured.status)),
    }
}

fn says_where(stderr: &str, name: &str, data: &[u8]) -> Result<(), String> {
    let place = stderr.contains(" at offset 0x") || stderr.contains(" at line ") || data.is_empty();
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

/// Calls the check with every damage of every chosen fixture, each in an empty folder of its own.
fn each_damage(check: impl Fn(&str, &[u8], &Path) -> Result<(), String> + Sync) {
    let chosen: Vec<PathBuf> = fixtures().into_iter().step_by(EVERY).collect();
    assert!(chosen.len() > 20, "only {} fixtures", chosen.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for (damage, data) in damages(&fixture(path)) {
                        let folder = tempfile::tempdir().expect("a scratch folder");
                        let name = path.file_name().expect("a file").to_string_lossy();
                        if let Err(why) = check(&name, &data, folder.path()) {
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
