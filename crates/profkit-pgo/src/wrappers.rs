//! Programs that take the place of compilers in a build. They are scripts of the shell, so that a script that profkit
//! prints can make them too. Without [`FLAGS`] in the environment they are the compiler as it is: a build folder that
//! remembers their path stays of use.
use crate::error::{Error, Result};
use crate::tools::{Clang, on_path};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The variable with the options that are added to each call of a compiler, one per line.
pub(crate) const FLAGS: &str = "PROFKIT_PGO_FLAGS";

/// The variable with the words that come before each call of a compiler, one per line: a program that starts it.
pub(crate) const BEFORE: &str = "PROFKIT_PGO_BEFORE";

/// Names that builds call C compilers, C++ compilers, and the tools for objects of link-time optimisation by.
const C: [&str; 5] = ["cc", "gcc", "c99", "clang", "clang-cc"];
const CXX: [&str; 4] = ["c++", "g++", "clang++", "clang-c++"];
const BINUTILS: [&str; 3] = ["ar", "nm", "ranlib"];

/// The scripts: the name and the text of each.
pub(crate) fn scripts(clang: &Clang) -> Vec<(String, String)> {
    let wrapper = |compiler: &Path| {
        let compiler = quoted(compiler.as_os_str());
        format!(
            "#!/bin/sh\ncase $1 in -cc1*) exec {compiler} \"$@\";; esac\nIFS='\n'\nset -f\nexec ${BEFORE} {compiler} ${FLAGS} \"$@\"\n"
        )
    };
    let mut scripts = Vec::new();
    let numbered = |name: &str| format!("{name}-{}", clang.release);
    for (names, last, compiler) in [
        (&C[..], numbered("clang"), &clang.c),
        (&CXX[..], numbered("clang++"), &clang.cxx),
    ] {
        let names = names.iter().map(|name| (*name).to_owned()).chain([last]);
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
pub(crate) fn folder(clang: &Clang) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute())?;
    let name = clang.c.to_string_lossy().replace('/', "-");
    Some(cache.join("profkit").join("pgo").join(name))
}

/// Writes the scripts. A file with the right text stays as it is: another job may be using it.
pub(crate) fn write(folder: &Path, clang: &Clang) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::Io(path, error)
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for (name, text) in scripts(clang) {
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
            .map_err(|error| Error::Io(path, error.error))?;
    }
    Ok(())
}

/// A word as the shell reads it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
