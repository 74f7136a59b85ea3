//! Finds the repository and its test fixtures.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The path of the repository.
///
/// # Panics
/// If this crate was moved out of `crates/`.
pub fn repo_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two folders below the root")
        .to_owned()
}

/// Returns the folder in which cargo builds: `CARGO_TARGET_DIR` if it is set, else `target` in the repository.
pub fn target_folder() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    repo_root().join(named.unwrap_or_else(|| "target".into()))
}

/// Returns the path of a fixture, given its path below `tests/fixtures`.
pub fn fixture_path(name: impl AsRef<Path>) -> PathBuf {
    repo_root().join("tests/fixtures").join(name)
}

/// Returns the bytes of a fixture, given its path below `tests/fixtures`.
///
/// # Panics
/// If the fixture cannot be read.
pub fn fixture(name: impl AsRef<Path>) -> Vec<u8> {
    let path = fixture_path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("fixture {}: {error}", path.display()))
}

/// Returns the paths of all profiles among the fixtures (extensions `profraw`, `profdata`, `proftext`), relative to
/// `tests/fixtures` and sorted.
///
/// # Panics
/// If a folder cannot be read.
pub fn fixtures() -> Vec<PathBuf> {
    fixtures_with(&["profraw", "profdata", "proftext"])
}

/// Returns the fixtures that [`fixtures_with`] returns, but only the first one of those with the same bytes. Releases of
/// LLVM that write the same bytes have a fixture each, and to damage one of them is enough.
///
/// # Panics
/// If a folder or a file cannot be read.
pub fn distinct_fixtures_with(extensions: &[&str]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let mut found = fixtures_with(extensions);
    found.retain(|name| seen.insert(fixture(name)));
    found
}

/// Returns the paths of all fixtures with one of these file extensions, relative to `tests/fixtures` and sorted.
///
/// # Panics
/// If a folder cannot be read.
pub fn fixtures_with(extensions: &[&str]) -> Vec<PathBuf> {
    let root = fixture_path("");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extensions.iter().any(|known| extension == *known))
            {
                let below = path.strip_prefix(&root).expect("below the root");
                found.push(below.to_owned());
            }
        }
    }
    found.sort();
    found
}
