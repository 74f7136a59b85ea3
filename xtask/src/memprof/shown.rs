//! Reads the contexts of a profile from the JSON of `profkit show`.
use crate::mip::succeed;
use anyhow::Result;
use profkit_testkit::heap::{HeapContext, contexts_of_profkit};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the contexts of a dump, which needs its binary, or of an indexed profile.
///
/// # Errors
/// If the command fails or its JSON is not as expected.
pub fn contexts(
    profkit: &Path,
    file: &Path,
    binary: Option<&Path>,
) -> Result<BTreeSet<HeapContext>> {
    let mut command = Command::new(profkit);
    command.arg("show").arg("--memory").arg(file);
    if let Some(binary) = binary {
        command.arg("--binaries").arg(binary);
    }
    let text = succeed(command.args(["--format", "json", "--top", "100000000"]))?;
    contexts_of_profkit(&text)
}
