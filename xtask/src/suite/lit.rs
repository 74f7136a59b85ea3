//! Runs LLVM's tests by lit, and compares the results of two programs.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::Llvm;
use serde_json::Value;

/// The programs that all tests need. They are in the folder of LLVM 22, because Debian's packages of other releases
/// have no lit.
const PROGRAMS: [&str; 4] = ["lit", "FileCheck", "not", "split-file"];

/// lit's result of one test.
pub struct Outcome {
    /// lit's code for the result: PASS, FAIL, UNSUPPORTED, …
    code: String,
    /// The output of the test's commands.
    output: String,
}

impl Outcome {
    fn passed(&self) -> bool {
        self.code == "PASS"
    }
}

/// The outcomes of all tests. The name of a test is its path below the folder of the suite.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Returns the folder of LLVM 22 with lit and the programs that tests call.
pub fn programs() -> Result<PathBuf> {
    let llvm = Llvm::find(22).context("clang-22 and llvm-22 are not installed")?;
    let folder = folder_of(llvm.profdata())?;
    for program in PROGRAMS {
        ensure!(
            folder.join(program).exists(),
            "{program} is not in {}: install llvm-22-tools",
            folder.display()
        );
    }
    Ok(folder)
}

/// Returns the folder of a program. If the program is a link, as in /usr/bin, the folder is that of the program to
/// which the link leads.
pub fn folder_of(program: &Path) -> Result<PathBuf> {
    let path = program
        .canonicalize()
        .with_context(|| program.display().to_string())?;
    let folder = path.parent().context("a program without a folder")?;
    Ok(folder.to_path_buf())
}

/// Runs lit with a configuration in an empty folder `work`. If `filter` is given, only tests whose names match it are
/// run.
pub fn run(
    programs: &Path,
    work: &Path,
    configuration: &str,
    filter: Option<&str>,
) -> Result<Outcomes> {
    let suite = work.join("suite");
    fs::create_dir_all(&suite)?;
    fs::write(suite.join("lit.cfg.py"), configuration)?;
    let results = work.join("results.json");
    let mut command = Command::new(programs.join("lit"));
    // The configurations of tests may leave files in the working folder.
    command
        .current_dir(work)
        .args([
            "-q",
            "--config-prefix=lit",
            "--no-progress-bar",
            "--allow-empty-runs",
            "-o",
        ])
        .arg(&results);
    if let Some(filter) = filter {
        command.args(["--filter", filter]);
    }
    // lit's exit code is ignored, because some tests fail with LLVM's own program too. The file of results is read
    // instead.
    let output = command.arg(&suite).output()?;
    if filter.is_some() && !results.exists() {
        return Ok(BTreeMap::new());
    }
    let text = fs::read_to_string(&results).with_context(|| {
        format!(
            "lit wrote no results:\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    let json: Value = serde_json::from_str(&text)?;
    let tests = json["tests"]
        .as_array()
        .context("lit's results hold no tests")?;
    let field = |test: &Value, name: &str| test[name].as_str().unwrap_or_default().to_owned();
    let outcomes: Outcomes = tests
        .iter()
        .map(|test| {
            let name = field(test, "name");
            let name = name.rsplit(" :: ").next().unwrap_or(&name).to_owned();
            let outcome = Outcome {
                code: field(test, "code"),
                output: field(test, "output"),
            };
            (name, outcome)
        })
        .collect();
    if outcomes.is_empty() && filter.is_none() {
        bail!("lit found no tests in {}", suite.display());
    }
    Ok(outcomes)
}

/// A comparison of two programs that ran the same tests.
pub struct Comparison<'a> {
    /// The name of the tests in the last line of the report.
    pub tests: &'a str,
    /// LLVM's program.
    pub theirs: &'a str,
    /// The name of this repository's program.
    pub ours: &'a str,
    /// The text of a page with a table of tests that LLVM's program passes and this repository's program does not, each
    /// with the reason. If a test in the table passes, that is an error too, so that the table stays true.
    pub page: &'a str,
}

impl Comparison<'_> {
    /// Returns the reason for a test from the table of the page; `None` if the table does not have the test.
    fn reason(&self, test: &str) -> Option<&str> {
        self.page.lines().find_map(|line| {
            let (name, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
            (name == test).then(|| reason.trim_end_matches(" |"))
        })
    }

    /// Prints how many tests each program passes. Returns the tests that contradict the table.
    pub fn report(&self, theirs: &Outcomes, ours: &Outcomes) -> Vec<String> {
        let mut both = 0;
        let mut faults = Vec::new();
        for (name, their) in theirs {
            let our = ours.get(name);
            let passes = our.is_some_and(Outcome::passed);
            match (their.passed(), passes, self.reason(name)) {
                (true, true, None) => both += 1,
                (true, true, Some(_)) => {
                    faults.push(format!("{name} passes: remove it from the table"));
                }
                (true, false, Some(reason)) => println!("{name}: {} differs: {reason}", self.ours),
                (true, false, None) => {
                    let output = our.map_or("", |outcome| outcome.output.as_str());
                    println!("{name}: only {} passes\n{output}", self.theirs);
                    faults.push(name.clone());
                }
                (false, true, _) => println!(
                    "{name}: {}: {}, {}: PASS",
                    self.theirs, their.code, self.ours
                ),
                (false, false, _) => println!("{name}: {}: {}", self.theirs, their.code),
            }
        }
        let passed = |outcomes: &Outcomes| outcomes.values().filter(|o| o.passed()).count();
        println!(
            "{} {}: {} passes {}, {} {}, both {both}",
            theirs.len(),
            self.tests,
            self.theirs,
            passed(theirs),
            self.ours,
            passed(ours),
        );
        faults
    }
}
