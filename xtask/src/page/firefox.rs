//! Checks that the Firefox Profiler reads what `profkit export --to firefox` writes. The check uses the Firefox
//! Profiler's command from npm. It loads profiles with the same code, and with the same checks, as the page
//! profiler.firefox.com.
use crate::mip::succeed;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const PACKAGE: &str = "@firefox-devtools/profiler-cli@0.10.0";

/// A function as the Firefox Profiler counts it: thread, name, weight of its own, weight with what it calls.
pub type Counted = (&'static str, &'static str, u64, u64);

/// The Firefox Profiler. Its command loads a profile in a process of its own, which answers later calls.
pub struct Firefox<'a> {
    script: PathBuf,
    /// The folder in which the command keeps its sessions, instead of the user's home folder.
    home: &'a Path,
}

impl<'a> Firefox<'a> {
    /// The command in an unpacked package.
    pub fn new(package: &Path, home: &'a Path) -> Self {
        Firefox {
            script: package.join("dist/profiler-cli.js"),
            home,
        }
    }

    /// Loads a profile and compares what the profiler counts for some functions.
    pub fn check(&self, file: &Path, expected: &[Counted]) -> Result<()> {
        let checked = self.compare(file, expected);
        let stopped = self.call(&["stop", "--all"]);
        checked.with_context(|| format!("{} in the Firefox Profiler", file.display()))?;
        stopped.map(drop)
    }

    fn compare(&self, file: &Path, expected: &[Counted]) -> Result<()> {
        let path = file.to_str().context("a path that is not UTF-8")?;
        self.call(&["load", path])?;
        for &(thread, name, own, total) in expected {
            let said = self.call(&[
                "thread",
                "functions",
                "--json",
                "--limit",
                "0",
                "--thread",
                thread,
            ])?;
            let said: Value = serde_json::from_str(&said)?;
            let functions = said["functions"].as_array().context("no functions")?;
            let found = functions.iter().find(|it| it["name"] == name);
            let found = found.with_context(|| format!("{thread}: {name} is not there: {said}"))?;
            ensure!(
                found["selfSamples"] == own && found["totalSamples"] == total,
                "{thread}: {name}: found {found}, expected {own} of its own, {total} in all"
            );
        }
        Ok(())
    }

    fn call(&self, arguments: &[&str]) -> Result<String> {
        succeed(
            Command::new("node")
                .arg(&self.script)
                .args(arguments)
                .env("HOME", self.home),
        )
    }
}
