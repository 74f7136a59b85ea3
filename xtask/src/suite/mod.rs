//! `cargo xtask llvm-suite`: LLVM's own tests of llvm-profdata and llvm-profgen, run by lit with the tools of LLVM 22 and
//! with profkit under their names. A test that passes with LLVM's tool must pass with profkit.
//!
//! The tests are those of Debian's source package of LLVM 19. They are fetched into the target folder, and nothing of
//! them is in this repository.
pub mod source;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use profkit_testkit::{Llvm, target_folder};
use serde_json::Value;

use crate::steps::built_profkit;

const HELP: &str = "\
cargo xtask llvm-suite [FILTER]

Runs LLVM's own tests of llvm-profdata and of llvm-profgen twice, with the tools of LLVM 22 and with profkit under their
names. The tests come from Debian's source package of LLVM 19, which is fetched into target/llvm-suite (165 MB). lit and
FileCheck come from the package llvm-22-tools.
  FILTER  a regular expression: only the tests whose name it matches

Example: cargo xtask llvm-suite sample
";

/// The tests of one tool.
struct Suite {
    /// The tool, and the folder of its tests.
    tool: &'static str,
    /// The page with a table of the tests that LLVM's tool passes and profkit does not, each with the reason. A test in
    /// this table that passes is an error too, so that the table stays true.
    page: &'static str,
}

impl Suite {
    /// The reason why profkit does not pass a test: rows of the page that begin with the test's name.
    fn reason(&self, test: &str) -> Option<&'static str> {
        self.page.lines().find_map(|line| {
            let (name, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
            (name == test).then(|| reason.trim_end_matches(" |"))
        })
    }
}

const SUITES: [Suite; 2] = [
    Suite {
        tool: "llvm-profdata",
        page: include_str!("../../../docs/formats/llvm-profdata.md"),
    },
    Suite {
        tool: "llvm-profgen",
        page: include_str!("../../../docs/formats/llvm-profgen.md"),
    },
];

/// The programs that the tests need, in the folder of LLVM 22.
const TOOLS: [&str; 4] = ["lit", "FileCheck", "not", "split-file"];

/// Runs the tests with both tools.
///
/// # Errors
/// If a tool or the source package cannot be had, or if profkit fails a test that LLVM's tool passes.
pub fn run(args: &[String]) -> Result<()> {
    let filter = match args {
        [] => None,
        [help] if help == "--help" || help == "-h" => {
            print!("{HELP}");
            return Ok(());
        }
        [filter] => Some(filter.as_str()),
        _ => bail!("too many arguments\n\n{HELP}"),
    };
    let llvm = Llvm::find(22).context("clang-22 and llvm-22 are not installed")?;
    let programs = llvm
        .profdata()
        .canonicalize()?
        .parent()
        .context("llvm-profdata has no folder")?
        .to_path_buf();
    for tool in TOOLS {
        if !programs.join(tool).exists() {
            bail!(
                "{tool} is not in {}: install llvm-22-tools",
                programs.display()
            );
        }
    }
    let folder = target_folder().join("llvm-suite");
    let source = source::fetched(&folder)?.join("llvm/test/tools");
    let profkit = built_profkit()?;
    let (mut found, mut faults) = (0, Vec::new());
    for suite in &SUITES {
        let tests = source.join(suite.tool);
        let run = |label, tool: &Path| {
            let work = folder.join(suite.tool).join(label);
            run_lit(&work, suite.tool, tool, &programs, &tests, filter)
        };
        let with_llvm = run("llvm", &programs.join(suite.tool))?;
        let with_profkit = run("profkit", &profkit)?;
        found += with_llvm.len();
        faults.extend(report(suite, &with_llvm, &with_profkit));
    }
    if found == 0 {
        bail!("no test has such a name");
    }
    if !faults.is_empty() {
        bail!("{}", faults.join(", "));
    }
    Ok(())
}

/// What lit says of one test.
struct Outcome {
    /// lit's code: PASS, FAIL, UNSUPPORTED, …
    code: String,
    /// What the commands of the test printed.
    output: String,
}

/// Runs all tests with one tool, and returns the outcomes by the tests' names.
fn run_lit(
    work: &Path,
    name: &str,
    tool: &Path,
    programs: &Path,
    tests: &Path,
    filter: Option<&str>,
) -> Result<BTreeMap<String, Outcome>> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    let tools = work.join("tools");
    fs::create_dir_all(&tools)?;
    symlink(tool, tools.join(name))?;
    let suite = work.join("suite");
    fs::create_dir_all(&suite)?;
    fs::write(
        suite.join("lit.cfg.py"),
        configuration(name, work, &tools, programs, tests)?,
    )?;
    let results = work.join("results.json");
    let mut command = Command::new(programs.join("lit"));
    command
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
    // Some tests fail with LLVM's tool too, so lit's exit code decides nothing. Its file of results does.
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
    let outcomes: BTreeMap<String, Outcome> = tests
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

/// lit's configuration: LLVM's own one needs a configured build of LLVM, this one only its tests and tools.
fn configuration(
    name: &str,
    work: &Path,
    tools: &Path,
    programs: &Path,
    tests: &Path,
) -> Result<String> {
    let path = std::env::join_paths([tools, programs])?;
    let quoted = |path: &Path| serde_json::to_string(&path.to_string_lossy());
    Ok(format!(
        "import lit.formats, os\n\
         config.name = '{name}'\n\
         config.test_format = lit.formats.ShTest(False)\n\
         config.suffixes = ['.test', '.proftext']\n\
         config.excludes = ['Inputs']\n\
         config.targets = ['X86']\n\
         config.test_source_root = {}\n\
         config.test_exec_root = {}\n\
         config.environment['PATH'] = os.pathsep.join([{}, os.environ['PATH']])\n\
         config.environment['LC_ALL'] = 'C'\n\
         config.available_features.update(['zlib', 'x86_64-linux', 'x86-registered-target', 'shell', 'system-linux'])\n\
         config.substitutions.append(('%errc_ENOENT', \"'No such file or directory'\"))\n\
         config.substitutions.append(('%errc_EACCES', \"'Permission denied'\"))\n\
         config.substitutions.append(('%errc_EISDIR', \"'Is a directory'\"))\n\
         config.substitutions.append(('%errc_EINVAL', \"'Invalid argument'\"))\n",
        quoted(tests)?,
        quoted(&work.join("out"))?,
        quoted(&PathBuf::from(path))?,
    ))
}

/// Prints what both tools pass. Returns the tests that profkit fails and LLVM's tool passes.
fn report(
    suite: &Suite,
    with_llvm: &BTreeMap<String, Outcome>,
    with_profkit: &BTreeMap<String, Outcome>,
) -> Vec<String> {
    let passes = |outcome: Option<&Outcome>| outcome.is_some_and(|outcome| outcome.code == "PASS");
    let mut both = 0;
    let mut faults = Vec::new();
    for (name, llvm) in with_llvm {
        let profkit = with_profkit.get(name);
        let reason = suite.reason(name);
        match (passes(Some(llvm)), passes(profkit), reason) {
            (true, true, None) => both += 1,
            (true, true, Some(_)) => {
                faults.push(format!("{name} passes: remove it from the table"))
            }
            (true, false, Some(reason)) => println!("{name}: profkit differs: {reason}"),
            (true, false, None) => {
                let output = profkit.map_or("", |outcome| outcome.output.as_str());
                println!("{name}: only LLVM's tool passes\n{output}");
                faults.push(name.clone());
            }
            (false, passes, _) => println!(
                "{name}: LLVM 22's tool: {}{}",
                llvm.code,
                if passes { ", profkit: PASS" } else { "" }
            ),
        }
    }
    let passed = |outcomes: &BTreeMap<String, Outcome>| {
        outcomes
            .values()
            .filter(|outcome| passes(Some(outcome)))
            .count()
    };
    println!(
        "{} tests of LLVM 19: {}-22 passes {}, profkit {}, both {both}",
        with_llvm.len(),
        suite.tool,
        passed(with_llvm),
        passed(with_profkit),
    );
    faults
}
