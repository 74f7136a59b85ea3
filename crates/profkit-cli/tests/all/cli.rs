//! Runs every `tests/cli/**/*.test`: a test of the command is a file dropped in that folder.
//!
//! ```text
//! # What this shows: lines that begin with # are comments and stay where they are.
//! # requires: LLVM 22
//! $ profkit show fixtures/readme/clang-22.profraw
//! | Instrumentation level: Front-end
//! $ profkit show missing.profraw
//! ! error: missing.profraw: no such file
//! = 1
//! ```
//!
//! - `$ ` a command line for `sh`, which runs in an empty folder of its own. `profkit` and `llvm-profdata` (the same
//!   program by its other name) come first on `PATH`; `fixtures` is `tests/fixtures`. A line that ends with a
//!   backslash goes on. Later commands of the file see the files that earlier ones wrote.
//! - `| ` a line of its stdout, then `! ` lines of its stderr, then `= N` its exit code unless that is 0. Output that
//!   ends without a line break has `\ no line break` after it; bytes that are no text are `| [N bytes]`.
//! - `[TMP]` stands for the folder, `[ROOT]` for the repository's.
//! - `# requires: LLVM N` skips the test where that release is not installed (see `profkit_testkit::skip`).
//! - `# requires: Unix: REASON` skips the test of the command for Windows.
//!
//! `cargo xtask windows` runs the same files with the command for Windows under Wine: `CLI_WINDOWS` is a folder with programs of
//! the two names, which start it. A path may then have a drive and the separators of Windows, words may be quoted as its shells want
//! it, and a reason that the system gives may have Windows' words; everything else must be the same.
//!
//! To write a test, write its `$` lines and run `cargo xtask bless` (`BLESS=1 cargo test -p profkit-cli cli::`),
//! which fills in or rewrites everything else; then read the diff. `CLI_TEST=words` runs only the files whose path
//! contains the words.
use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use profkit_testkit::{Llvm, repo_root, skip};
use snapbox::{Assert, Data};

#[test]
fn every_file_in_tests_cli() {
    let windows = std::env::var_os("CLI_WINDOWS").map(PathBuf::from);
    let bless = windows.is_none() && std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let only = std::env::var("CLI_TEST").unwrap_or_default();
    let root = repo_root().join("tests/cli");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(!files.is_empty(), "no test in {}", root.display());
    files.retain(|path| path.to_string_lossy().contains(&only));
    files.sort();

    let scratch = tempfile::tempdir().expect("a scratch folder");
    let bin = windows.as_deref().unwrap_or(scratch.path());
    if windows.is_none() {
        for name in ["profkit", "llvm-profdata"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_profkit"), bin.join(name))
                .expect("a symbolic link");
        }
    }
    let program = Program {
        bin,
        is_windows: windows.is_some(),
    };

    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let skipped = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match check(file, program, bless) {
                        Ok(Outcome::Passed) => {}
                        Ok(Outcome::Skipped) => drop(skipped.fetch_add(1, Ordering::Relaxed)),
                        Err(failure) => failures.lock().expect("no panic holds it").push(failure),
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic held it");
    failures.sort();
    let skipped = skipped.into_inner();
    println!(
        "{} of {} files passed, {skipped} skipped, {} failed",
        files.len() - skipped - failures.len(),
        files.len(),
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} of {} files differ (`cargo xtask bless` rewrites them):\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
}

/// What the tests run.
#[derive(Clone, Copy)]
struct Program<'a> {
    /// The folder with the programs `profkit` and `llvm-profdata`.
    bin: &'a Path,
    is_windows: bool,
}

enum Outcome {
    Passed,
    Skipped,
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "test")
        {
            files.push(path);
        }
    }
}

fn check(file: &Path, program: Program<'_>, bless: bool) -> Result<Outcome, String> {
    let name = file.display();
    let written = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    if let Some(release) = required_release(&written)
        && Llvm::find(release).is_none()
    {
        skip(&format!("{name}: LLVM {release} is not installed"));
        return Ok(Outcome::Skipped);
    }
    if program.is_windows
        && let Some(reason) = required(&written, "Unix: ")
    {
        println!("skipped: {name}: {reason}");
        return Ok(Outcome::Skipped);
    }
    let perform = || perform(&written, program).map_err(|error| format!("{name}: {error}"));
    let mut actual = perform()?;
    // Wine's server kills a process that is not gone half a second after its end, which happens on a busy machine. All that the
    // process printed and wrote is there, but its exit code is lost. Whatever else differs is a failure.
    for _ in 0..4 {
        if program.is_windows && actual.lines().any(is_of_killed) {
            println!("tried again, because Wine killed a process: {name}");
            actual = perform()?;
        }
    }
    let (actual, written) = match program.is_windows {
        true => (like_unix(&actual), like_unix(&written)),
        false => (actual, written),
    };
    if bless {
        if actual != written {
            std::fs::write(file, actual).map_err(|error| format!("{name}: {error}"))?;
        }
        return Ok(Outcome::Passed);
    }
    Assert::new()
        .try_eq(
            Some(&name),
            Data::text(actual).raw(),
            Data::text(written).raw(),
        )
        .map_err(|difference| difference.to_string())?;
    Ok(Outcome::Passed)
}

/// Whether a line of an output says that a process was killed: by the shell, or as the exit code of the last command.
fn is_of_killed(line: &str) -> bool {
    line == "= 137"
        || line
            .strip_prefix("! ")
            .is_some_and(|said| said.trim_end() == "Killed")
}

/// The rest of the line `# requires: ` that goes on with these words.
fn required<'t>(written: &'t str, words: &str) -> Option<&'t str> {
    let mut lines = written.lines();
    lines.find_map(|line| line.strip_prefix("# requires: ")?.strip_prefix(words))
}

fn required_release(written: &str) -> Option<u32> {
    let line = required(written, "LLVM ")?;
    Some(line.trim().parse().expect("a release number after LLVM"))
}

/// Reasons in the words of Wine, and of Linux.
const REASONS: &[(&str, &str)] = &[
    ("File not found.", "No such file or directory"),
    ("Path not found.", "No such file or directory"),
    ("File already exists.", "File exists"),
    ("Disk full.", "No space left on device"),
    ("General failure.", "File name too long"),
];

/// Text with Wine's paths, quotation marks and reasons as on Linux: Wine has the files of Linux on the drive Z.
fn like_unix(text: &str) -> String {
    let mut like = String::with_capacity(text.len());
    for character in text.chars() {
        let character = match character {
            '\\' => '/',
            '"' => '\'',
            other => other,
        };
        // In JSON, a separator is written twice.
        if character != '/' || !like.ends_with('/') {
            like.push(character);
        }
    }
    let mut like = like.replace("/?/Z:/", "/").replace("Z:/", "/");
    for (wine, linux) in REASONS {
        like = like.replace(wine, linux);
    }
    like
}

/// Runs the commands of a test file. Returns the file with the expectations that the actual output would meet.
fn perform(written: &str, program: Program<'_>) -> std::io::Result<String> {
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::symlink(
        repo_root().join("tests/fixtures"),
        folder.path().join("fixtures"),
    )?;
    let mut actual = String::new();
    let mut lines = written.lines();
    while let Some(line) = lines.next() {
        let Some(mut command) = line.strip_prefix("$ ").map(str::to_owned) else {
            // Lines with old expectations are removed. Comments, blank lines and all other lines stay.
            if !["|", "!", "="].iter().any(|mark| line.starts_with(mark)) {
                writeln!(actual, "{line}").expect("a string");
            }
            continue;
        };
        while command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().unwrap_or_default());
        }
        writeln!(actual, "$ {command}").expect("a string");
        run(&command, folder.path(), program, &mut actual)?;
    }
    Ok(actual)
}

fn run(
    line: &str,
    folder: &Path,
    program: Program<'_>,
    actual: &mut String,
) -> std::io::Result<()> {
    let old_path = std::env::var_os("PATH").unwrap_or_default();
    let path = [program.bin.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&old_path));
    let mut shell = Command::new(if program.is_windows { "timeout" } else { "sh" });
    if program.is_windows {
        shell.args(["120", "sh"]);
    }
    let output = shell
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).expect("no colon in it"))
        .env("LC_ALL", "C")
        .env("COLUMNS", "80")
        .env_remove("LLVM_PROFILE_FILE")
        .env_remove("RAYON_NUM_THREADS")
        .env_remove("RUST_BACKTRACE")
        .output()?;
    let is_windows = program.is_windows;
    append(actual, "| ", &output.stdout, folder, is_windows);
    append(actual, "! ", &output.stderr, folder, is_windows);
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(actual, "= {code}").expect("a string"),
        None => writeln!(actual, "= {}", output.status).expect("a string"),
    }
    Ok(())
}

/// The size of a page changes with each word of its program, and says nothing about the command.
fn without_page_size(line: &str) -> Cow<'_, str> {
    let page = line
        .starts_with("wrote ")
        .then(|| line.split_once(".html ("))
        .flatten();
    page.map_or(line.into(), |(name, _)| format!("{name}.html (…)").into())
}

fn append(actual: &mut String, mark: &str, bytes: &[u8], folder: &Path, is_windows: bool) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        writeln!(actual, "{mark}[{} bytes]", bytes.len()).expect("a string");
        return;
    };
    if text.is_empty() {
        return;
    }
    let text = match is_windows {
        true => Cow::Owned(like_unix(text)),
        false => text.into(),
    };
    let text = text
        .replace(&*folder.to_string_lossy(), "[TMP]")
        .replace(&*repo_root().to_string_lossy(), "[ROOT]");
    for line in text.lines() {
        let line = format!("{mark}{}", without_page_size(line));
        let line = if line == mark { mark.trim_end() } else { &line };
        writeln!(actual, "{line}").expect("a string");
    }
    if !text.ends_with('\n') {
        writeln!(actual, "{mark}\\ no line break").expect("a string");
    }
}
