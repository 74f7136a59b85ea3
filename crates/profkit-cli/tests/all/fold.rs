//! Real processes that fold into one store, several at a time, and are killed.
use profkit_testkit::short_or_whole;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn profkit(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command.args(args).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn succeed(folder: &Path, args: &[&str]) {
    let output = profkit(folder, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
}

#[test]
fn processes_that_are_killed_lose_and_repeat_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("runs")).unwrap();
    let mut runs = 0;
    let mut killed = 0;
    for round in 0..short_or_whole(20, 200_u64) {
        for _ in 0..4 {
            let text = format!(":ir\nmain\n1234\n1\n1\n\nf{runs}\n1\n1\n{runs}\n");
            fs::write(folder.join(format!("runs/{runs}.proftext")), text).unwrap();
            runs += 1;
        }
        let fold = ["fold", "-q", "runs", "--store", "store", "--every", "hour"];
        let compact = ["fold", "-q", "--store", "store", "--compact"];
        let mut processes: Vec<Child> = [&fold[..], &fold[..], &compact[..]]
            .iter()
            .map(|args| profkit(folder, args).spawn().unwrap())
            .collect();
        // From before a process reads anything until after it has ended.
        std::thread::sleep(Duration::from_micros(round * 7919 % 40_000));
        for process in &mut processes {
            let _ = process.kill();
            killed += u32::from(!process.wait().unwrap().success());
        }
    }
    assert!(killed > 3, "{killed}");
    // Two that are left alone both end well.
    let args = ["fold", "runs", "--store", "store", "--report", "a.json"];
    let others = ["fold", "runs", "--store", "store", "--report", "b.json"];
    let both = [&args, &others].map(|args| profkit(folder, args).spawn().unwrap());
    for process in both {
        let output = process.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    succeed(
        folder,
        &[
            "fold",
            "-q",
            "--store",
            "store",
            "--compact",
            "-o",
            "folded.profdata",
        ],
    );
    succeed(
        folder,
        &[
            "merge",
            "-q",
            "--order-free",
            "runs",
            "-o",
            "merged.profdata",
        ],
    );
    let [folded, merged] =
        ["folded.profdata", "merged.profdata"].map(|name| fs::read(folder.join(name)).unwrap());
    assert!(folded == merged);
}
