//! An input folder contains a folder that the user may not read.
#![cfg(unix)]
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The id of the user and the group `nobody`, which own no files.
const NOBODY: u32 = 65534;

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
    // Root may read any folder. If root runs this test, the command is run as another user, from a copy that this user
    // may read.
    let is_root = fs::read_dir(&secret).is_ok();
    let command = folder.path().join("profkit");
    let built = env!("CARGO_BIN_EXE_profkit");
    if fs::hard_link(built, &command).is_err() {
        fs::copy(built, &command).expect("a copy of the command");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
    let merge = |more: &[&str]| {
        let mut merge = Command::new(&command);
        if is_root {
            merge.uid(NOBODY).gid(NOBODY);
        }
        merge
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
