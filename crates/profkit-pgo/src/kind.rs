//! What a build is started by: how it is made to compile everything, and where it writes.
use crate::error::{Error, Result};
use crate::tools::on_path;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a build is started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cargo, or what runs cargo.
    Cargo,
    Make,
    Ninja,
    Cmake,
    Meson,
    Other,
}

/// Whether the build is a call of cargo itself, not of what runs cargo.
pub(crate) fn starts_cargo(build: &[OsString]) -> bool {
    build
        .first()
        .is_some_and(|program| Path::new(program).file_stem() == Some(OsStr::new("cargo")))
}

/// The toolchain that a call of cargo names: `+nightly`.
pub(crate) fn toolchain(build: &[OsString]) -> Option<&OsStr> {
    let word = build.get(1).filter(|_| starts_cargo(build))?;
    word.to_str()?.starts_with('+').then_some(word)
}

/// A folder that CMake configured for a compiler of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configured {
    /// The file of the folder that names it.
    pub cache: PathBuf,
    /// The compiler.
    pub compiler: String,
}

impl Configured {
    /// Reads a `CMakeCache.txt`. `None` if the folder has no compiler, or those of `wrappers`.
    pub fn of(cache: &Path, wrappers: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(cache).ok()?;
        let compilers = text.lines().filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let is_compiler = matches!(name, "CMAKE_C_COMPILER" | "CMAKE_CXX_COMPILER");
            Some(rest.split_once('=')?.1).filter(|_| is_compiler)
        });
        let foreign = compilers.into_iter().find(|path| {
            !path.is_empty()
                && !path.ends_with("-NOTFOUND")
                && !Path::new(path).starts_with(wrappers)
        });
        foreign.map(|compiler| Configured {
            cache: cache.to_owned(),
            compiler: compiler.to_owned(),
        })
    }

    /// What the build is known to use before it is started: the folder that it only builds in, without a configuration.
    pub fn before(build: &[OsString], wrappers: &Path) -> Option<Self> {
        let options: &[&str] = match Kind::of(build) {
            Kind::Cmake => &["--build"],
            Kind::Make => &["-C", "--directory"],
            Kind::Ninja => &["-C"],
            Kind::Cargo | Kind::Meson | Kind::Other => return None,
        };
        let folder = values(build, options)
            .last()
            .unwrap_or_else(|| ".".to_owned());
        Self::of(&Path::new(&folder).join("CMakeCache.txt"), wrappers)
    }
}

impl Kind {
    pub fn of(build: &[OsString]) -> Self {
        let name = build
            .first()
            .and_then(|program| Path::new(program).file_stem()?.to_str());
        match name {
            Some("cargo" | "cross" | "maturin") => Kind::Cargo,
            Some("make" | "gmake") => Kind::Make,
            Some("ninja" | "ninja-build" | "samu") => Kind::Ninja,
            Some("cmake") if build.get(1).is_some_and(|word| word == "--build") => Kind::Cmake,
            Some("meson") if build.get(1).is_some_and(|word| word == "compile") => Kind::Meson,
            _ => Kind::Other,
        }
    }

    /// The command after which such a build compiles everything. Cargo needs none: it sees that its flags are others.
    pub fn clean(self, build: &[OsString]) -> Option<Vec<OsString>> {
        match self {
            Kind::Cargo | Kind::Other => None,
            Kind::Make => Some(kept(
                build,
                &["-C", "-f", "-I", "--directory", "--file", "--makefile"],
                &["clean"],
            )),
            Kind::Ninja => Some(kept(build, &["-C", "-f"], &["-t", "clean"])),
            Kind::Cmake => {
                let folder = build.get(..3)?.iter().cloned();
                let which = kept(build.get(2..)?, &["--config"], &["--target", "clean"]);
                Some(folder.chain(which.into_iter().skip(1)).collect())
            }
            Kind::Meson => {
                let how = kept(build.get(1..)?, &["-C"], &["--clean"]);
                Some(build.iter().take(1).cloned().chain(how).collect())
            }
        }
    }
}

/// The program with those of its options that say where and how, followed by other words.
fn kept(build: &[OsString], with_value: &[&str], more: &[&str]) -> Vec<OsString> {
    let mut words = build.iter();
    let mut all: Vec<OsString> = words.next().cloned().into_iter().collect();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let joined = with_value
            .iter()
            .any(|option| text.starts_with(option) && text.len() > option.len());
        if with_value.contains(&&*text) {
            all.push(word.clone());
            all.extend(words.next().cloned());
        } else if joined || text.contains('=') && !text.starts_with('-') {
            all.push(word.clone());
        }
    }
    all.extend(more.iter().map(OsString::from));
    all
}

/// The values of options in a build, each as a word of its own or joined with `=`; those of `-X` also as in `-Xvalue`.
fn values<'b>(build: &'b [OsString], options: &'b [&str]) -> impl Iterator<Item = String> + 'b {
    build.iter().enumerate().filter_map(move |(at, word)| {
        let word = word.to_string_lossy();
        options.iter().find_map(|option| {
            let rest = word.strip_prefix(option)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None if rest.is_empty() => Some(build.get(at + 1)?.to_string_lossy().into_owned()),
                None => (!option.starts_with("--")).then(|| rest.to_owned()),
            }
        })
    })
}

/// Folders that a build may write to beside the current one: those that its options name, and that of cargo.
pub(crate) fn folders(kind: Kind, build: &[OsString]) -> Vec<PathBuf> {
    let named = [
        "-C",
        "-B",
        "-o",
        "--build",
        "--directory",
        "--out",
        "--out-dir",
        "--artifact-dir",
        "--target-dir",
    ];
    let mut folders: Vec<PathBuf> = values(build, &named).map(PathBuf::from).collect();
    folders.retain(|folder| folder != Path::new("/"));
    folders.extend(std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from));
    if kind == Kind::Cargo {
        folders.extend(target_folder(build));
    }
    folders
}

/// Cargo's word on its target folder: that of a workspace is not in the folder of a member.
fn target_folder(build: &[OsString]) -> Option<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    for (option, short) in [("--manifest-path", "-m"), ("--config", "--config")] {
        for value in values(build, &[option, short]) {
            cargo.arg(option).arg(value);
        }
    }
    let output = cargo.output().ok()?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(said.get("target_directory")?.as_str()?.into())
}

/// What makes the builds of setuptools compile everything: they keep objects in the folder `build`.
pub(crate) const FORCE: &str = "[build]\nforce=1\n";

/// The file with [`FORCE`].
pub(crate) fn force_file(scratch: &Path) -> PathBuf {
    scratch.join("setuptools.cfg")
}

/// Whether a build makes wheels, the packages of Python: by maturin, or by one of the usual programs for that.
pub(crate) fn makes_wheels(build: &[OsString]) -> bool {
    let text = build.join(OsStr::new(" "));
    let text = text.to_string_lossy();
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || ";&|()".contains(c))
        .filter_map(|word| word.rsplit('/').next())
        .collect();
    words.windows(2).any(|pair| {
        matches!(pair, ["maturin", _] | ["uv", "build"] | ["-m", "build"])
            || pair.first().is_some_and(|name| name.starts_with("pip"))
                && pair.last() == Some(&"wheel")
    })
}

/// The flags that cargo would give rustc here, from the environment and its files of configuration.
pub(crate) fn rustflags(build: &[OsString]) -> Result<Vec<OsString>> {
    let failed = |error: cargo_config2::Error| Error::CargoConfig(error.to_string());
    if on_path(OsStr::new("cargo")).is_none() {
        return Ok(Vec::new());
    }
    for value in values(build, &["--config"]) {
        // A file, or a setting in one word.
        let text = std::fs::read_to_string(&value).unwrap_or_else(|_| value.clone());
        if text.contains("rustflags") {
            return Err(Error::CargoConfig(format!(
                "--config {value} has rustflags, which would be lost: cargo takes those of one place"
            )));
        }
    }
    let config = cargo_config2::Config::load().map_err(failed)?;
    let named: Vec<String> = values(build, &["--target"]).collect();
    let targets = config.build_target_for_cli(named).map_err(failed)?;
    let target = match targets.into_iter().next() {
        Some(target) => target,
        None => config.host_triple().map_err(failed)?.to_owned(),
    };
    let flags = config.rustflags(target.as_str()).map_err(failed)?;
    Ok(flags.map_or_else(Vec::new, |flags| {
        flags.flags.into_iter().map(OsString::from).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn each_kind_of_build_has_its_way_to_compile_everything() {
        for (build, clean) in [
            ("make", "make clean"),
            ("make -j8 linux", "make clean"),
            (
                "make -C src -f Makefile.old CFLAGS=-O3 all",
                "make -C src -f Makefile.old CFLAGS=-O3 clean",
            ),
            ("gmake -Csrc all", "gmake -Csrc clean"),
            (
                "/usr/bin/ninja -C out app",
                "/usr/bin/ninja -C out -t clean",
            ),
            (
                "cmake --build b -j8 --target app",
                "cmake --build b --target clean",
            ),
            (
                "cmake --build b --config Debug -j4",
                "cmake --build b --config Debug --target clean",
            ),
            ("cmake -B b", ""),
            ("meson compile -C out -j 3", "meson compile -C out --clean"),
            ("meson setup out", ""),
            ("samu -C out", "samu -C out -t clean"),
            ("cargo build --release", ""),
            ("./build.sh make", ""),
        ] {
            let build = words(build);
            let found = Kind::of(&build).clean(&build).unwrap_or_default();
            assert_eq!(found, words(clean), "{build:?}");
        }
    }

    #[test]
    fn options_name_folders() {
        let named = |text: &str| -> Vec<PathBuf> { folders(Kind::Other, &words(text)) };
        let own: Vec<PathBuf> = std::env::var_os("CARGO_TARGET_DIR")
            .map(PathBuf::from)
            .into_iter()
            .collect();
        for (build, wanted) in [
            ("make -C src -j8", &["src"][..]),
            ("make -Csrc --directory=out", &["src", "out"]),
            ("cmake --build ../b --target app", &["../b"]),
            ("cargo build --target-dir /t --target x", &["/t"]),
            ("maturin build -o / --out", &[]),
        ] {
            let wanted: Vec<PathBuf> = wanted
                .iter()
                .map(PathBuf::from)
                .chain(own.clone())
                .collect();
            assert_eq!(named(build), wanted, "{build}");
        }
        let build = words("cargo build --target-dir=/t --target=a --release");
        assert_eq!(values(&build, &["--target"]).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn programs_that_make_wheels_are_known() {
        for (build, makes) in [
            ("maturin build --release", true),
            ("sh -c cd\tx;/usr/bin/maturin\tbuild", true),
            ("python3 -m build", true),
            ("pip3 wheel .", true),
            ("uv build", true),
            ("pip install x", false),
            ("make wheel", false),
        ] {
            assert_eq!(makes_wheels(&words(build)), makes, "{build}");
        }
    }
}
