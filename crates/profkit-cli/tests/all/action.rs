//! Runs the steps of action.yml as they stand, with bash, as GitHub would.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]
use profkit_testkit::{repo_root, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Default)]
struct Step {
    id: String,
    env: Vec<(String, String)>,
    script: String,
}

#[derive(Debug, Default)]
struct Action {
    defaults: BTreeMap<String, String>,
    steps: Vec<Step>,
}

/// Reads the parts of YAML that action.yml uses: maps by indentation, plain scalars, and blocks after `|`.
fn parse(text: &str) -> Action {
    let mut action = Action::default();
    let (mut section, mut input, mut is_env) = (String::new(), String::new(), false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (is_new_step, line) = match line.strip_prefix("- ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (key, value) = line.split_once(':').expect("a key");
        let value = value.trim().trim_matches('\'').to_owned();
        if is_new_step {
            action.steps.push(Step::default());
        }
        match (indent, section.as_str()) {
            (0, _) => section = key.to_owned(),
            (2, "inputs") => input = key.to_owned(),
            (4, "inputs") if key == "default" => {
                action.defaults.insert(input.clone(), value);
            }
            (4.., "runs") if !action.steps.is_empty() => {
                let step = action.steps.last_mut().expect("a step");
                match key {
                    "id" => step.id = value,
                    "run" => {
                        while let Some(next) = lines.peek() {
                            if !next.trim().is_empty() && !next.starts_with("        ") {
                                break;
                            }
                            step.script += next.get(8..).unwrap_or_default();
                            step.script.push('\n');
                            lines.next();
                        }
                    }
                    "env" => is_env = true,
                    "shell" => {
                        is_env = false;
                        assert_eq!(value, "bash");
                    }
                    _ if is_env => step.env.push((key.to_owned(), value)),
                    other => panic!("{other}: not known to this test"),
                }
            }
            _ => {}
        }
    }
    action
}

/// The exit code of the first step that fails, or 0; and what the steps wrote: messages, outputs, the summary.
fn run(folder: &Path, given: &[(&str, &str)]) -> (i32, String, String, String) {
    let action =
        parse(&std::fs::read_to_string(repo_root().join("action.yml")).expect("action.yml"));
    let ids: Vec<_> = action.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["install", "merge", "compare"]);
    let program = Path::new(env!("CARGO_BIN_EXE_profkit"))
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").expect("PATH");
    let (outputs, summary) = (folder.join("outputs"), folder.join("summary"));
    for file in [&outputs, &summary] {
        std::fs::write(file, "").expect("an empty file");
    }
    let (mut code, mut messages) = (0, String::new());
    for step in &action.steps {
        let mut command = Command::new("bash");
        command.args([
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            &step.script,
        ]);
        for (name, value) in &step.env {
            let input = value
                .trim_start_matches("${{ inputs.")
                .trim_end_matches(" }}");
            let given = given.iter().find(|(name, _)| *name == input);
            let default = action.defaults.get(input).map(String::as_str);
            let value = given.map(|(_, value)| *value).or(default);
            command.env(
                name,
                value.unwrap_or_else(|| panic!("{input} is not given")),
            );
        }
        let done = command
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", program.display()))
            .env("GITHUB_OUTPUT", &outputs)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("RUNNER_TEMP", folder)
            .output()
            .expect("bash");
        messages += &String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            code = done.status.code().expect("an exit code");
            break;
        }
    }
    let read = |file| std::fs::read_to_string(file).expect("a file of the action");
    (code, messages, read(&outputs), read(&summary))
}

#[test]
fn the_steps_merge_compare_and_fail_where_a_gate_does_not_hold() {
    if Command::new("bash").arg("--version").output().is_err() {
        return skip("bash is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
    std::fs::create_dir(folder.path().join("runs of a job")).expect("a folder");
    write(
        "runs of a job/a.proftext",
        ":ir\nf\n1\n1\n40\n\nmain\n2\n1\n60\n",
    );
    write("b.proftext", ":ir\nf\n1\n1\n40\n\nmain\n2\n1\n60\n");
    write("old.proftext", ":ir\nf\n1\n1\n90\n\nmain\n2\n1\n10\n");
    let profiles = ("profiles", "runs of a job\n\nb.*text\n");

    let (code, messages, outputs, summary) = run(folder.path(), &[profiles]);
    assert_eq!(
        (code, summary.trim()),
        (0, "No old profile to compare `merged.profdata` with."),
        "{messages}"
    );
    assert!(outputs.contains("profile=merged.profdata\nmanifest=merged.profdata.manifest.json\n"));
    assert!(outputs.ends_with("gate=passed\n"), "{outputs}");
    assert!(
        folder
            .path()
            .join("merged.profdata.manifest.json")
            .is_file()
    );

    let bounds = [
        ("old", "old.proftext"),
        ("fail-over", "20"),
        ("binaries", "old.proftext"),
        ("fail-under", "50"),
    ];
    let given: Vec<_> = [
        profiles,
        ("options", "--stable --llvm 19"),
        ("output", "new one.profdata"),
    ]
    .into_iter()
    .chain(bounds)
    .collect();
    let (code, messages, outputs, summary) = run(folder.path(), &given);
    assert_eq!(code, 3, "{messages}");
    assert!(
        messages.contains("::error title=profkit diff%3A --fail-over::"),
        "{messages}"
    );
    assert!(outputs.ends_with("gate=failed\n"), "{outputs}");
    for part in [
        "## Moved: 50.0%",
        "gate: 50.0%",
        "## new one.profdata: compared with",
        "gate: passed: --fail-under 50",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }

    // A damaged input is an annotation; nothing to merge ends the job before anything is compared.
    write("bad.profraw", "damaged");
    let (code, messages, ..) = run(folder.path(), &[("profiles", "bad.profraw")]);
    assert_eq!(code, 1, "{messages}");
    assert!(messages.contains("::error"), "{messages}");
}
