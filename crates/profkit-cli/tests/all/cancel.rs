//! A merge that the user cancels while it waits for an input.
#![cfg(target_os = "linux")]
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Starts a merge of a file and a pipe in `folder`, and sends a signal to it while it reads the pipe.
fn cancelled(folder: &Path, command: &[&str], signal: &str) -> Output {
    let pipe = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    // A test may run in a process that ignores these signals, for example a background command of a shell. profkit
    // would inherit this and ignore them too.
    let merge = Command::new("env")
        .arg("--default-signal=INT,TERM")
        .arg(env!("CARGO_BIN_EXE_profkit"))
        .args(command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("profkit starts");
    // Opening the pipe for writing waits until the merge has opened it for reading.
    let writer = File::options().write(true).open(&pipe).expect("a pipe");
    let sent = Command::new("kill")
        .args([signal, &merge.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    let output = merge.wait_with_output().expect("profkit ends");
    drop(writer);
    fs::remove_file(pipe).expect("the pipe is removed");
    output
}

#[test]
fn a_cancelled_merge_says_so_reports_and_leaves_the_old_output() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profile = profkit_testkit::fixture("readme/clang-22.profraw");
    fs::write(folder.path().join("1.profraw"), profile).expect("a profile");
    fs::write(folder.path().join("out.profdata"), "old").expect("a file");
    let merge = ["merge", "1.profraw", "pipe", "-o", "out.profdata"];
    for (signal, name, number) in [("-INT", "SIGINT", 2), ("-TERM", "SIGTERM", 15)] {
        let command = [&merge[..], &["--report", "report.json"]].concat();
        let output = cancelled(folder.path(), &command, signal);
        assert_eq!(output.status.signal(), Some(number));
        let message = format!("cancelled by {name} after 0 of 2 inputs: no output was written");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("error: {message}\n")
        );
        let report = fs::read(folder.path().join("report.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!(report["schema"], "profkit-merge");
        assert_eq!(report["cancelled"]["by"], name);
        assert_eq!(report["cancelled"]["inputs_done"], 0);
        assert_eq!(report["totals"]["files"], 2);
        assert_eq!(report["errors"][0], message);
    }
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["1.profraw", "out.profdata", "report.json"]);
    let old = fs::read(folder.path().join("out.profdata")).expect("a file");
    assert_eq!(old, b"old");
}

/// A shell starts commands in the background with SIGINT ignored: Ctrl-C is for the command in the foreground.
#[test]
fn a_signal_that_the_parent_ignores_is_ignored() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profkit = env!("CARGO_BIN_EXE_profkit");
    let profile = profkit_testkit::repo_root().join("tests/fixtures/readme/clang-22.profraw");
    let script = format!(
        "mkfifo pipe; '{profkit}' merge -q pipe -o out.profdata & exec 3> pipe; kill -INT $!; cat '{}' >&3; exec 3>&-; wait $!",
        profile.display()
    );
    let done = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .output()
        .expect("sh runs");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert!(done.status.success());
    assert!(folder.path().join("out.profdata").exists());
}
