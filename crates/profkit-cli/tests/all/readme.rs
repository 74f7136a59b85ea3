//! Checks that the commands in the README and in the pages of docs/guide print what these pages show.
//!
//! The commands of a page run in one scratch folder, in the order of the page. profkit is on `PATH`, and the folder
//! `tests` of the repository is in the scratch folder:
//!
//! | in a page | means |
//! |---|---|
//! | <code>```console</code> | lines that begin with `$ ` are commands, lines that begin with `> ` continue them; the lines after a command are what it prints. If no line follows, the output is not compared. In the output, a line `…` stands for any number of lines, and `…` in a line for any text; the last line may be `[exit code N]` |
//! | <code>```c file=NAME</code> | the block is the file NAME |
//! | `<!-- setup`, commands, `-->` | commands that are run and not shown |
//! | `<!-- prints: COMMAND -->` | the command prints the message in the heading above; `…` in it stands for any text |
//! | <code>```python</code> | nothing is run here: the tests of crates/profkit-py run it |
//! | <code>```text</code> | nothing is run |
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]
use profkit_data::releases::RELEASES;
use profkit_testkit::{Llvm, has_heap_runtime, has_profile_runtime, repo_root, skip};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_readme() {
    assert_no_failures(&check(&repo_root().join("README.md")));
}

#[test]
fn the_guide() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(repo_root().join("docs/guide"))
        .expect("docs/guide")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    pages.sort();
    assert!(pages.len() > 5, "{pages:?}");
    let failures: Vec<String> = pages.iter().flat_map(|page| check(page)).collect();
    assert_no_failures(&failures);
}

fn assert_no_failures(failures: &[String]) {
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    File {
        name: String,
        text: String,
    },
    /// A command, and what it prints with its exit code.
    Command {
        line: usize,
        command: String,
        shown: Vec<String>,
    },
    /// A command that prints a line with this text.
    Prints {
        line: usize,
        command: String,
        message: String,
    },
}

/// Runs the commands of a page, and returns the commands that did not print what the page shows.
fn check(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let name = page.strip_prefix(repo_root()).expect("in the repository");
    let steps = steps(&text);
    if let Err(reason) = tools_are_there(&steps) {
        skip(&format!("{}: {reason}", name.display()));
        return Vec::new();
    }
    let mut failures = Vec::new();
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::os::unix::fs::symlink(repo_root().join("tests"), folder.path().join("tests"))
        .expect("a link");
    for step in steps {
        match step {
            Step::File { name, text } => {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            }
            Step::Command {
                line,
                command,
                mut shown,
            } => {
                let place = format!("{}:{line}: $ {command}", name.display());
                let (output, code) = run(&command, folder.path());
                let expected = match shown.last().and_then(|line| exit_code(line)) {
                    Some(code) => {
                        shown.pop();
                        code
                    }
                    None => 0,
                };
                if code != expected {
                    failures.push(format!("{place}\n{output}[exit code {code}]"));
                    continue;
                }
                let printed: Vec<&str> = output.lines().collect();
                if !shown.is_empty() && !lines_match(&shown, &printed) {
                    let shown = shown.join("\n");
                    failures.push(format!("{place}\n{output}\nThe page shows:\n{shown}"));
                }
            }
            Step::Prints {
                line,
                command,
                message,
            } => {
                let (output, _) = run(&command, folder.path());
                let pattern = format!("…{message}…");
                if !output.lines().any(|line| text_matches(&pattern, line)) {
                    let place = format!("{}:{line}: {command}", name.display());
                    failures.push(format!("{place}\n{output}\nThe page shows:\n{message}"));
                }
            }
        }
    }
    failures
}

/// Runs a command, and returns what it printed on both streams and its exit code.
fn run(command: &str, folder: &Path) -> (String, i32) {
    let profkit = Path::new(env!("CARGO_BIN_EXE_profkit"));
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = profkit.parent().expect("a folder").display();
    let mut shell = Command::new("bash");
    for variable in [
        "CARGO_TARGET_DIR",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTFLAGS",
        "LLVM_PROFILE_FILE",
        "NO_COLOR",
    ] {
        shell.env_remove(variable);
    }
    let output = shell
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", format!("{bin}:{path}"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("bash runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code().unwrap_or(-1))
}

fn exit_code(line: &str) -> Option<i32> {
    let number = line.strip_prefix("[exit code ")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Whether a command printed the lines that a page shows.
fn lines_match(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.split_first().is_some_and(|(line, others)| {
            text_matches(first, line.trim_end()) && lines_match(rest, others)
        }),
    }
}

/// Whether a line matches a pattern, in which each `…` stands for any text.
fn text_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pattern
        .contains('…')
        .then(|| parts.next_back().unwrap_or_default())
    else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(place) = rest.find(part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut heading = String::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_matches(['#', ' ', '`']).to_string();
        } else if let Some(command) = line.strip_prefix("<!-- prints: ") {
            steps.push(Step::Prints {
                line: number,
                command: command.trim_end_matches(" -->").to_string(),
                message: heading.clone(),
            });
        } else if line == "<!-- setup" {
            steps.extend(lines.by_ref().take_while(|(line, _)| *line != "-->").map(
                |(line, number)| Step::Command {
                    line: number,
                    command: line.to_string(),
                    shown: Vec::new(),
                },
            ));
        } else if let Some(kind) = line.strip_prefix("```") {
            let block: Vec<(&str, usize)> = lines
                .by_ref()
                .take_while(|(line, _)| *line != "```")
                .collect();
            if let Some((_, name)) = kind.split_once(" file=") {
                let text = block
                    .iter()
                    .fold(String::new(), |text, (line, _)| text + line + "\n");
                steps.push(Step::File {
                    name: name.to_string(),
                    text,
                });
            } else if kind == "console" {
                commands(&block, &mut steps);
            } else {
                assert!(
                    ["text", "c", "python", "rust", "toml", "yaml"].contains(&kind),
                    "line {number}: {kind}"
                );
            }
        }
    }
    steps
}

/// Adds the commands of a block. `cargo run` in the README is replaced by `profkit`, and commands that run the tests
/// are left out.
fn commands(block: &[(&str, usize)], steps: &mut Vec<Step>) {
    for &(line, number) in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.replace("cargo run --release -q -- ", "profkit ");
            let command = match command.starts_with("cargo test --workspace") {
                true => "true".to_string(),
                false => command,
            };
            steps.push(Step::Command {
                line: number,
                command,
                shown: Vec::new(),
            });
            continue;
        }
        let Some(Step::Command { command, shown, .. }) = steps.last_mut() else {
            panic!("line {number}: output before a command");
        };
        match line.strip_prefix("> ") {
            Some(more) if shown.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            _ => shown.push(line.trim_end().to_string()),
        }
    }
}

fn tools_are_there(steps: &[Step]) -> Result<(), String> {
    let mut releases = BTreeSet::new();
    for step in steps {
        let (Step::Command { command, .. } | Step::Prints { command, .. }) = step else {
            continue;
        };
        for word in command.split(|c: char| !c.is_alphanumeric() && !"-+".contains(c)) {
            let Some((tool, release)) = word.rsplit_once('-') else {
                continue;
            };
            if ["clang", "clang++", "llvm-profdata", "llvm-cov"].contains(&tool) {
                releases.extend(release.parse::<u32>());
            }
        }
        if let Some(tool) = ["rustc", "cargo"]
            .into_iter()
            .find(|tool| command.starts_with(*tool))
        {
            profkit_testkit::on_path(tool).ok_or(format!("{tool} is not installed"))?;
        }
        if command.contains("-fmemory-profile ") {
            has_heap_runtime(&Llvm::find(22).ok_or("LLVM 22 is not installed")?)?;
        }
    }
    for release in releases {
        let llvm = Llvm::find(release).ok_or(format!("LLVM {release} is not installed"))?;
        if release == 22 {
            has_profile_runtime(&llvm)?;
        }
    }
    Ok(())
}

#[test]
fn pages_are_read_as_described() {
    let page = "# `a … b`\n<!-- prints: false -->\n<!-- setup\ntrue\n-->\n```c file=x.c\nint x;\n```\n```console\n$ one \\\n> two\nout\n[exit code 3]\n$ three\n```\n";
    let command = |line, command: &str, shown: &[&str]| Step::Command {
        line,
        command: command.into(),
        shown: shown.iter().map(|line| line.to_string()).collect(),
    };
    let expected = [
        Step::Prints {
            line: 2,
            command: "false".into(),
            message: "a … b".into(),
        },
        command(4, "true", &[]),
        Step::File {
            name: "x.c".into(),
            text: "int x;\n".into(),
        },
        command(10, "one \\\ntwo", &["out", "[exit code 3]"]),
        command(14, "three", &[]),
    ];
    assert_eq!(steps(page), expected);
    assert!(text_matches("a … b", "a long b") && !text_matches("a … b", "a long c"));
    assert!(!text_matches("a", "ab") && text_matches("…b…", "abc"));
    let shown = ["a".to_string(), "…".into(), "z".into()];
    assert!(lines_match(&shown, &["a", "b", "c", "z"]) && lines_match(&shown, &["a", "z"]));
    assert!(!lines_match(&shown, &["a", "b"]));
}

/// Checks that the table of versions in the guide agrees with `profkit_data::releases`. With `BLESS=1`, writes the
/// table.
#[test]
fn the_table_of_versions_is_that_of_the_code() {
    let page = repo_root().join("docs/guide/which-llvm-reads-what.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (begin, end) = ("<!-- versions: written by BLESS=1 -->\n", "<!-- end -->");
    let (before, rest) = text.split_once(begin).expect("the beginning of the table");
    let (table, after) = rest.split_once(end).expect("the end of the table");
    let expected = versions();
    if std::env::var_os("BLESS").is_some() {
        let whole = format!("{before}{begin}{expected}{end}{after}");
        std::fs::write(page, whole).expect("the page can be written");
    } else {
        assert_eq!(table, expected, "BLESS=1 writes the table");
    }
}

/// A row per LLVM release, the newest first. Releases with the same versions share a row.
fn versions() -> String {
    let mut rows: Vec<(String, String, u32, u32)> = Vec::new();
    for facts in RELEASES.iter().rev() {
        let name = facts.release.to_string();
        match rows.last_mut() {
            Some((_, first, raw, indexed)) if (*raw, *indexed) == (facts.raw, facts.indexed) => {
                *first = name;
            }
            _ => rows.push((name.clone(), name, facts.raw, facts.indexed)),
        }
    }
    let mut table = String::from(
        "| LLVM | writes and reads raw | writes indexed | reads indexed |\n|---|---|---|---|\n",
    );
    for (last, first, raw, indexed) in rows {
        let releases = match first == last {
            true => first,
            false => format!("{first} to {last}"),
        };
        let reads = match indexed {
            1 => "1".to_string(),
            _ => format!("1 to {indexed}"),
        };
        let _ = writeln!(table, "| {releases} | {raw} | {indexed} | {reads} |");
    }
    table
}
