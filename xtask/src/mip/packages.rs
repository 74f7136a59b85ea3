//! The sources of real programs, from Debian's source packages.
use super::{fresh, succeed};
use crate::suite::source::download;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Debian source package.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The name of the package for `apt-get source`.
    pub name: &'static str,
    /// The beginning of the names of the package's files.
    pub files: &'static str,
    /// Whether Debian's patches are applied. The patches of lua replace its makefile by one for libtool, those of lz4 link
    /// the system's library.
    pub patched: bool,
}

/// lua 5.4, an interpreter in C.
pub const LUA: Package = Package {
    name: "lua5.4",
    files: "lua5.4_",
    patched: false,
};
/// zstd: C, a compressor.
pub const ZSTD: Package = Package {
    name: "libzstd",
    files: "libzstd_",
    patched: true,
};
/// re2: C++, a library.
pub const RE2: Package = Package {
    name: "re2",
    files: "re2_",
    patched: true,
};

/// bzip2: C, a compressor.
pub const BZIP2: Package = Package {
    name: "bzip2",
    files: "bzip2_",
    patched: false,
};
/// lz4: C, a compressor.
pub const LZ4: Package = Package {
    name: "lz4",
    files: "lz4_",
    patched: false,
};
/// xxhash: C, checksums.
pub const XXHASH: Package = Package {
    name: "xxhash",
    files: "xxhash_",
    patched: true,
};
/// zlib: C, a compressor.
pub const ZLIB: Package = Package {
    name: "zlib",
    files: "zlib_",
    patched: true,
};

/// sqlite: C, a database.
pub const SQLITE: Package = Package {
    name: "sqlite3",
    files: "sqlite3_",
    patched: true,
};
/// ninja: C++, a build tool.
pub const NINJA: Package = Package {
    name: "ninja-build",
    files: "ninja-build_",
    patched: true,
};

/// The folders in which the sources of packages are kept.
#[derive(Debug)]
pub struct Sources {
    /// The folder for unpacked sources, below `target`.
    folder: PathBuf,
}

impl Sources {
    pub fn new(folder: &Path) -> Sources {
        Sources {
            folder: folder.to_owned(),
        }
    }

    /// Copies a package's tree to `to`. An existing tree there is removed first.
    pub fn copy(&self, package: Package, to: &Path) -> Result<()> {
        let tree = self.tree(package)?;
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if to.exists() {
            std::fs::remove_dir_all(to)?;
        }
        succeed(Command::new("cp").arg("-a").arg(&tree).arg(to))?;
        Ok(())
    }

    /// Returns the unpacked tree of a package. The tree is never changed; builds use copies.
    fn tree(&self, package: Package) -> Result<PathBuf> {
        let tree = self.folder.join("sources").join(package.name);
        if tree.is_dir() {
            return Ok(tree);
        }
        let folder = self.download(package)?;
        let description = description(&folder, package)?;
        let partly = tree.with_extension("partly");
        fresh(&partly)?;
        let unpacked = partly.join("tree");
        let mut command = Command::new("dpkg-source");
        if !package.patched {
            command.arg("--skip-patches");
        }
        succeed(
            command
                .args(["--no-check", "-x"])
                .arg(&description)
                .arg(&unpacked),
        )
        .context("dpkg-source is in the package dpkg-dev")?;
        std::fs::rename(&unpacked, &tree)?;
        std::fs::remove_dir_all(&partly)?;
        Ok(tree)
    }

    fn download(&self, package: Package) -> Result<PathBuf> {
        let folder = self.folder.join("download");
        std::fs::create_dir_all(&folder)?;
        if description(&folder, package).is_err() {
            download(package.name, &folder).with_context(|| {
                format!(
                    "the sources of {} are not to be had from Debian; put the .dsc and what it names into {}",
                    package.name,
                    folder.display()
                )
            })?;
        }
        Ok(folder)
    }
}

fn description(folder: &Path, package: Package) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(package.files) && name.ends_with(".dsc") {
            found.push(name);
        }
    }
    found.sort();
    match found.pop() {
        Some(name) => Ok(folder.join(name)),
        None => bail!("no {}*.dsc in {}", package.files, folder.display()),
    }
}
