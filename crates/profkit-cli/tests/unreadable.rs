//! A folder that the user may not read, below a folder that is an input.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_folder_that_may_not_be_read_is_reported_with_its_path_and_the_rest_is_merged() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let secret = folder.path().join("runs/secret");
    fs::create_dir_all(&secret).expect("a folder");
    let profile = profkit_testkit::fixture("raw/clang-22-fe-plain.profraw");
    fs::write(folder.path().join("runs/a.profraw"), &profile).expect("a profile");
    fs::write(secret.join("b.profraw"), &profile).expect("a profile");
    let allow = |mode| {
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    allow(0o000);
    if fs::read_dir(&secret).is_ok() {
        allow(0o755);
        // Not `eprintln!`, which the test harness hides. A unit test of `files/walk.rs` runs as root too.
        let _ = writeln!(std::io::stderr(), "skipped: this user may read any folder");
        return;
    }
    let merge = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_profkit"))
            .args(["merge", "-q", "runs", "-o", "out.profdata"])
            .args(more)
            .current_dir(folder.path())
            .output()
            .expect("profkit runs")
    };
    let (done, strict) = (merge(&[]), merge(&["--strict"]));
    allow(0o755);
    assert_eq!(
        String::from_utf8_lossy(&done.stderr),
        "warning: runs/secret: dropped: cannot be read: Permission denied\n"
    );
    assert!(done.status.success() && folder.path().join("out.profdata").is_file());
    assert_eq!(strict.status.code(), Some(1));
}
