//! Programs that take the place of compilers in a build. They are scripts of the shell, so that a script that profkit
//! prints can make them too. Without [`FLAGS`] in the environment they are the compiler as it is: a build folder that
//! remembers their path stays of use.
use crate::error::{Error, Result};
use crate::tools::{Clang, on_path};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The variable with the options that are added to each call of a compiler, one per line.
pub(crate) const FLAGS: &str = "PROFKIT_PGO_FLAGS";

/// The variable with the options that make use of what was collected, one per line. They are not added where a
/// configuration only tries the compiler: clang warns there that the profile does not fit the file, and scripts of autoconf
/// and CMake take a warning for a feature that is missing.
pub(crate) const USE: &str = "PROFKIT_PGO_USE";

/// The variable with the folder of the job's programs. Those of another folder end with an error: the build was
/// configured for another compiler than the one that the job is for.
pub(crate) const FOLDER: &str = "PROFKIT_PGO_FOLDER";

/// The variable with the words that come before each call of a compiler, one per line: a program that starts it.
pub(crate) const BEFORE: &str = "PROFKIT_PGO_BEFORE";

/// Names that builds call C compilers, C++ compilers, and the tools for objects of link-time optimisation by.
const C: [&str; 6] = ["cc", "gcc", "c89", "c99", "clang", "clang-cc"];
const CXX: [&str; 4] = ["c++", "g++", "clang++", "clang-c++"];
const BINUTILS: [&str; 3] = ["ar", "nm", "ranlib"];

/// Where a configuration tries the compiler: the files of autoconf, and the folders of CMake and Meson. The words of a call
/// and its folder are lines.
const TRIALS: &str = "*'\n'conftest.*|*/CMakeFiles/CMakeScratch/*|*/CMakeFiles/CMakeTmp/*|*/CMakeFiles/*/CompilerIdC*|*/meson-private/tmp*|*/meson-private/sanitycheck*";

/// The script in the place of a compiler.
fn script(folder: &Path, compiler: &Path) -> String {
    let folder = quoted(folder.as_os_str());
    let compiler = quoted(compiler.as_os_str());
    format!(
        "#!/bin/sh\n\
         case $1 in -cc1*) exec {compiler} \"$@\";; esac\n\
         own={folder}\n\
         if [ \"${{{FOLDER}-$own}}\" != \"$own\" ]; then\n\
         echo \"profkit pgo: this build was configured for $own, and the job compiles by ${FOLDER}: configure it again\" >&2\n\
         exit 1\n\
         fi\n\
         IFS='\n'\n\
         set -f\n\
         case \"/$PWD/$IFS$*$IFS\" in {TRIALS}) exec {compiler} ${FLAGS} \"$@\";; esac\n\
         exec ${BEFORE} {compiler} ${FLAGS} ${USE} \"$@\"\n"
    )
}

/// The names of GCC with a version in `PATH`, which builds may name.
fn numbered_gcc(name: &str) -> Vec<String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&folders)
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten());
    let mut names: Vec<String> = files
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|file| {
            let version = file
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'));
            version.is_some_and(|version| {
                version.starts_with(|first: char| first.is_ascii_digit())
                    && version
                        .bytes()
                        .all(|byte| byte.is_ascii_digit() || byte == b'.')
            })
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The scripts: the name and the text of each.
pub(crate) fn scripts(folder: &Path, clang: &Clang) -> Vec<(String, String)> {
    let wrapper = |compiler: &Path| script(folder, compiler);
    let mut scripts = Vec::new();
    let numbered = |name: &str| format!("{name}-{}", clang.release);
    for (names, last, gcc, compiler) in [
        (&C[..], numbered("clang"), "gcc", &clang.c),
        (&CXX[..], numbered("clang++"), "g++", &clang.cxx),
    ] {
        let arch = std::env::consts::ARCH;
        let names = names
            .iter()
            .map(|name| (*name).to_owned())
            .chain([last, format!("{arch}-linux-gnu-{gcc}")])
            .chain(numbered_gcc(gcc));
        scripts.extend(names.map(|name| (name, wrapper(compiler))));
    }
    for name in BINUTILS {
        let program = format!("llvm-{name}-{}", clang.release);
        let program = on_path(OsStr::new(&program)).or_else(|| {
            clang
                .c
                .parent()
                .map(|folder| folder.join(format!("llvm-{name}")))
                .filter(|path| path.is_file())
        });
        if let Some(program) = program {
            let text = format!("#!/bin/sh\nexec {} \"$@\"\n", quoted(program.as_os_str()));
            scripts
                .extend([name.to_owned(), format!("gcc-{name}")].map(|name| (name, text.clone())));
        }
    }
    scripts
}

/// The folder of the scripts for this compiler. Its path is the same in all jobs.
pub(crate) fn folder(clang: &Clang) -> Result<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let cache = variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| {
            Error::NoWrappers("neither XDG_CACHE_HOME nor HOME names a folder".to_owned())
        })?;
    let name = clang.c.to_string_lossy().replace('/', "-");
    Ok(cache.join("profkit").join("pgo").join(name))
}

/// Writes the scripts. A file with the right text stays as it is: another job may be using it.
pub(crate) fn write(folder: &Path, clang: &Clang) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| Error::NoWrappers(format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for (name, text) in scripts(folder, clang) {
        let path = folder.join(&name);
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        let temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed(folder))?;
        fs::write(temporary.path(), text).map_err(failed(&path))?;
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o755))
            .map_err(failed(&path))?;
        temporary
            .persist(&path)
            .map_err(|error| failed(&path)(error.error))?;
    }
    Ok(())
}

/// Whether the shell reads a word as it is. Makefiles use the path of a compiler without quotes.
pub(crate) fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    !word.is_empty() && word.bytes().all(plain)
}

/// A word as the shell reads it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    if is_plain(&text) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
