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

/// Control characters of names are escaped on a terminal, and stay in files and pipes as they are.
#[test]
fn text_is_escaped() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profile = folder.path().join("evil.proftext");
    std::fs::write(&profile, b":ir\nevil\x1b[2Jname\n12\n1\n90\n\n").expect("a profile is written");
    let profile = profile.display().to_string();
    let merge = |to: &str| {
        let program = env!("CARGO_BIN_EXE_profkit");
        format!("{program} merge --text --quiet {profile} -o {to}")
    };
    for to in ["-", "/dev/stdout"] {
        // `script` runs a command on a terminal of its own, and copies what the terminal gets to its own output.
        let mut script = Command::new("script");
        script
            .args(["-qec", &merge(to), "/dev/null"])
            .stdin(Stdio::null());
        let seen = script.output().expect("script (util-linux) runs").stdout;
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.contains("evil\\u{1b}[2Jname"), "{to}: {seen:?}");
        assert!(!seen.contains('\x1b'), "{to}: {seen:?}");
    }
    let piped = Command::new("sh").args(["-c", &merge("-")]).output();
    let piped = piped.expect("sh runs").stdout;
    assert!(String::from_utf8_lossy(&piped).contains("evil\x1b[2Jname"));
}
