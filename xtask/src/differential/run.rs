//! Runs one command line with both tools.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::cases::Case;

/// The paths of the two programs that are compared.
pub struct Tools {
    pub llvm: PathBuf,
    pub profkit: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The exit code; `None` if a signal ended the tool.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The files that the tool wrote or changed, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Tools {
    /// Runs a command line with LLVM's tool, then with profkit.
    pub fn both(&self, case: &Case) -> Result<(Ran, Ran)> {
        Ok((ran(&self.llvm, case)?, ran(&self.profkit, case)?))
    }
}

/// Runs a program in a folder that contains only the inputs. The run is stopped after 20 seconds.
pub fn ran(program: &Path, case: &Case) -> Result<Ran> {
    let folder = TempDir::new()?;
    for input in &case.inputs {
        fs::write(folder.path().join(&input.name), &input.bytes)?;
    }
    let mut command = Command::new("timeout");
    // Both tools are started under the same name, because messages contain the name.
    let name = folder.path().join("llvm-profdata");
    std::os::unix::fs::symlink(program.canonicalize()?, &name)?;
    // Standard output is a file, because LLVM's tool cannot write a binary profile to a pipe.
    let stdout = folder.path().join("standard-output");
    let output = command
        .args(["20", "./llvm-profdata"])
        .args(case.arguments())
        .current_dir(folder.path())
        .env_remove("TERM")
        .env("LLVM_DISABLE_SYMBOLIZATION", "1")
        .stdin(Stdio::null())
        .stdout(fs::File::create(&stdout)?)
        .output()
        .with_context(|| program.display().to_string())?;
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "llvm-profdata" || name == "standard-output" || entry.file_type()?.is_dir() {
            continue;
        }
        let bytes = fs::read(entry.path())?;
        let is_input = case
            .inputs
            .iter()
            .any(|input| input.name == name && input.bytes == bytes);
        if !is_input {
            files.insert(name, bytes);
        }
    }
    // If a signal ended the tool, `timeout` exits with 128 plus the number of the signal.
    let code = output.status.code().filter(|&code| code < 128);
    let stdout = fs::read(stdout)?;
    Ok(Ran {
        code,
        stdout,
        stderr: output.stderr,
        files,
    })
}

/// Describes how the results of the two tools differ.
pub fn difference(case: &Case, theirs: &Ran, ours: &Ran) -> String {
    let mut text = format!("llvm-profdata {}\n", case.arguments().join(" "));
    for input in &case.inputs {
        let _ = writeln!(
            text,
            "  {}: {}, {} bytes",
            input.name,
            input.origin,
            input.bytes.len()
        );
    }
    if theirs.code != ours.code {
        let _ = writeln!(
            text,
            "  exit code: LLVM {:?}, profkit {:?}",
            theirs.code, ours.code
        );
    }
    let mut parts = vec![
        ("standard output".to_owned(), &theirs.stdout, &ours.stdout),
        ("standard error".to_owned(), &theirs.stderr, &ours.stderr),
    ];
    let names: BTreeSet<_> = theirs.files.keys().chain(ours.files.keys()).collect();
    for name in names {
        match (theirs.files.get(name), ours.files.get(name)) {
            (Some(theirs), Some(ours)) => parts.push((name.clone(), theirs, ours)),
            (theirs, _) => {
                let who = if theirs.is_some() {
                    "LLVM's tool"
                } else {
                    "profkit"
                };
                let _ = writeln!(text, "  only {who} wrote {name}");
            }
        }
    }
    for (what, theirs, ours) in parts {
        if theirs != ours {
            let same = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
            let from = same.saturating_sub(60);
            let part = |bytes: &[u8]| {
                let end = bytes.len().min(same + 160);
                String::from_utf8_lossy(bytes.get(from..end).unwrap_or_default())
                    .escape_debug()
                    .to_string()
            };
            let _ = writeln!(
                text,
                "  {what} from byte {same}:\n    LLVM    ({} bytes) {}\n    profkit ({} bytes) {}",
                theirs.len(),
                part(theirs),
                ours.len(),
                part(ours)
            );
        }
    }
    text
}
