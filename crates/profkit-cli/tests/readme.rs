//! What the README shows is what happens.
use profkit_testkit::repo_root;
use std::process::Command;

#[test]
fn the_first_command_prints_what_the_readme_shows() {
    let root = repo_root();
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let shown = "$ cargo run --release -q -- ";
    let (_, rest) = readme.split_once(shown).expect("the command");
    let (arguments, rest) = rest.split_once('\n').expect("its output");
    let (expected, _) = rest.split_once("```").expect("its end");

    // The files by their names, as a shell gives them, and the output elsewhere.
    let folder = tempfile::tempdir().expect("a scratch folder");
    let script = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_profkit"));
    let output = folder.path().join("merged.profdata").display().to_string();
    let script = script.replace("merged.profdata", &output);
    let run = Command::new("sh")
        .args(["-c", &script])
        .current_dir(root)
        .output()
        .expect("sh runs");
    assert!(run.status.success(), "{run:?}");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "");
    let stderr = String::from_utf8_lossy(&run.stderr).replace(&output, "merged.profdata");
    assert_eq!(stderr, expected);
}
