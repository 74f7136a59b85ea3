//! `cargo xtask llvm-suite`: runs LLVM's own tests of llvm-profdata and llvm-profgen by lit, with the tools of LLVM 22
//! and with profkit under their names. A test that passes with LLVM's tool must pass with profkit.
//!
//! The tests come from Debian's source package of LLVM 19. They are fetched into the target folder; this repository
//! contains none of them.
mod lit;
pub mod runtime;
pub mod source;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use self::lit::{Comparison, Outcomes};
use crate::steps::built_profkit;

/// The tests of one tool.
struct Suite {
    tool: &'static str,
    /// The page with the table of allowed differences.
    page: &'static str,
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

/// Runs the tests with both tools.
pub fn run(filter: Option<&str>) -> Result<()> {
    let programs = lit::programs()?;
    let source = source::fetched()?.join("llvm/test/tools");
    let profkit = built_profkit()?;
    let (mut found, mut faults) = (0, Vec::new());
    for suite in &SUITES {
        let tests = source.join(suite.tool);
        let run = |label, tool: &Path| {
            let work = source::folder().join(suite.tool).join(label);
            run_lit(&work, suite.tool, tool, &programs, &tests, filter)
        };
        let with_llvm = run("llvm", &programs.join(suite.tool))?;
        let with_profkit = run("profkit", &profkit)?;
        found += with_llvm.len();
        let comparison = Comparison {
            tests: "tests of LLVM 19",
            theirs: &format!("{}-22", suite.tool),
            ours: "profkit",
            page: suite.page,
        };
        faults.extend(comparison.report(&with_llvm, &with_profkit));
    }
    verdict(found, &faults)
}

/// Returns an error unless a suite has passed.
fn verdict(found: usize, faults: &[String]) -> Result<()> {
    if found == 0 {
        bail!("no test has such a name");
    }
    if !faults.is_empty() {
        bail!("{}", faults.join(", "));
    }
    Ok(())
}

/// Runs all tests with one tool, and returns the outcomes by the tests' names.
fn run_lit(
    work: &Path,
    name: &str,
    tool: &Path,
    programs: &Path,
    tests: &Path,
    filter: Option<&str>,
) -> Result<Outcomes> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    let tools = work.join("tools");
    fs::create_dir_all(&tools)?;
    symlink(tool, tools.join(name))?;
    let configuration = configuration(name, work, &tools, programs, tests)?;
    lit::run(programs, work, &configuration, filter)
}

/// Returns a configuration for lit. LLVM's own configuration needs a configured build of LLVM; this one needs only the
/// tests and tools.
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
