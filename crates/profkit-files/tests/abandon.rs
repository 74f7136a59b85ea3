//! A test of a process that ends while it writes an output. This test is in a file of its own, because a process can
//! abandon its outputs only once.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use profkit_files::{Content, Output, abandon_outputs};
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn an_abandoned_output_leaves_no_temporary_file_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("out"), folder.path().join("other"));
    let names = || {
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        names.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
        names.len()
    };
    let write = |path, bytes: &'static [u8]| {
        let output = Output::new(path, Content::Binary).unwrap();
        output.write(|sink| sink.put(bytes)).unwrap();
    };
    write(&path, b"old");
    let ((started, is_started), (go_on, may_go_on)) = (channel(), channel());
    let (done, is_done) = channel();
    let target = path.clone();
    std::thread::spawn(move || {
        let output = Output::new(&target, Content::Binary).unwrap();
        let written = output.write(|sink| {
            started.send(()).unwrap();
            may_go_on.recv().unwrap();
            sink.put(b"new")
        });
        done.send(written.is_ok()).unwrap();
    });
    is_started.recv().unwrap();
    assert_eq!(names(), 2, "the output and its temporary file");
    assert_eq!(abandon_outputs(), 1);
    assert_eq!(names(), 1);
    go_on.send(()).unwrap();
    assert!(is_done.recv_timeout(Duration::from_millis(300)).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    // The thread that ends the process can still write, for example a report.
    write(&other, b"report");
    assert_eq!(fs::read(&other).unwrap(), b"report");
}
