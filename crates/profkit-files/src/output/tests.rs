use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn write(folder: &Path, path: &Path, bytes: &[u8]) -> String {
    let written = Output::new(path, Content::Binary).and_then(|output| {
        output.write(|sink| {
            sink.put(bytes)?;
            Ok(())
        })
    });
    let message = match written {
        Ok(_) => "done".to_owned(),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
    };
    message.replace(&folder.display().to_string(), "[DIR]")
}

fn only_file_in(folder: &Path) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_new_file_gets_the_permissions_that_any_program_would_give() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plain) = (folder.path().join("out"), folder.path().join("plain"));
    assert_eq!(write(folder.path(), &path, b"new"), "done");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    fs::write(&plain, b"").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn an_existing_file_keeps_its_permissions_and_a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("out"), folder.path().join("link"));
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    symlink("out", &link).unwrap();
    assert_eq!(write(folder.path(), &link, b"new"), "done");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_link_that_leads_nowhere_yet_makes_the_file_it_points_to() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    symlink("out", &link).unwrap();
    assert_eq!(write(folder.path(), &link, b"new"), "done");
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"new");

    let round = folder.path().join("round");
    symlink("round", &round).unwrap();
    let message = write(folder.path(), &round, b"new");
    insta::assert_snapshot!(message, @"[DIR]/round: cannot be written: Too many levels of symbolic links");
}

#[test]
fn when_writing_fails_the_old_file_stays_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, b"old").unwrap();
    let failed = Output::new(&path, Content::Binary).unwrap().write(|sink| {
        sink.put(&[0; 1 << 20])?;
        Err(Error::new(
            ErrorKind::CannotRepresent,
            "no version holds this",
        ))
    });
    let message = failed.unwrap_err().to_string();
    assert!(
        message.ends_with("/out: no version holds this"),
        "{message}"
    );
    assert_eq!(fs::read(only_file_in(folder.path())).unwrap(), b"old");
}

#[test]
fn what_is_no_regular_file_is_written_directly() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(write(folder.path(), Path::new("/dev/null"), b"new"), "done");
    let full = write(folder.path(), Path::new("/dev/full"), b"new");
    insta::assert_snapshot!(full, @"/dev/full: cannot be written: No space left on device");
    let link = folder.path().join("link");
    symlink("/dev/full", &link).unwrap();
    let full = write(folder.path(), &link, &[0; 1 << 20]);
    insta::assert_snapshot!(full, @"[DIR]/link: cannot be written: No space left on device");
}

#[test]
fn outputs_that_cannot_be_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| write(folder.path(), path, b"new");
    insta::assert_snapshot!(refused(folder.path()), @r"
    [DIR]: cannot be written: Is a directory
    hint: name a file in the folder: -o [DIR]/FILE
    ");
    insta::assert_snapshot!(refused(&folder.path().join("no/out")), @r"
    [DIR]/no/out: cannot be written: No such file or directory
    hint: there is no folder `[DIR]/no`
    ");
    insta::assert_snapshot!(refused(Path::new("")), @"the path of the output is empty");
    // A folder in which not even root can create files.
    insta::assert_snapshot!(refused(Path::new("/sys/out")), @r"
    /sys/out: cannot be written: Permission denied
    hint: outputs are written to a temporary file first, so the folder /sys must be writable
    ");
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/ptmx")
        .unwrap();
    let problem = refuse_terminal(&terminal, Content::Binary).unwrap_err();
    let error = OutputError::new("terminal".to_owned(), problem);
    insta::assert_snapshot!(error, @"a binary profile is not written to a terminal");
    assert_eq!(
        error.hint().unwrap(),
        "name a file with -o FILE, or ask for text"
    );
    assert!(refuse_terminal(&terminal, Content::Text).is_ok());
}
