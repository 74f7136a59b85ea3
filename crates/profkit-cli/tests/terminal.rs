//! What goes to a terminal and what does not. The master side of a pseudo terminal counts as one.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]
use std::fs::File;
use std::process::{Command, Stdio};

const PROFILE: &str = "fixtures/text/clang-22-ir-plain.proftext";

fn profkit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command
        .args(arguments)
        .current_dir(profkit_testkit::repo_root().join("tests"))
        .stdin(Stdio::null());
    command
}

fn terminal() -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.open("/dev/ptmx").expect("a pseudo terminal")
}

#[test]
fn no_binary_profile_goes_to_a_terminal() {
    for arguments in [
        &["merge", PROFILE, "-o", "-"][..],
        &["merge", PROFILE, "-o", "/dev/stdout"],
        &["convert", PROFILE, "-o", "-"],
    ] {
        let output = profkit(arguments)
            .stdout(terminal())
            .stderr(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .expect("profkit runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            message,
            "error: a binary profile is not written to a terminal\n\
             hint: name a file with -o FILE, or ask for text\n",
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn text_does() {
    let status = profkit(&["merge", "--text", "--quiet", PROFILE, "-o", "-"])
        .stdout(terminal())
        .status()
        .expect("profkit runs");
    assert!(status.success());
}
