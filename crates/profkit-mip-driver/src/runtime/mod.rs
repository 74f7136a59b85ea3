//! The MIP runtime, which is linked to instrumented programs. This crate contains the compiled runtime for the machine
//! for which the crate is built. For other machines, it calls the user's rustc to compile the runtime.
mod compile;

pub use compile::Error as CompileError;
pub use profkit_rt::Variant;

use profkit_abi::mip::symbol;
use profkit_merge::files::{Content, Output, OutputError, system_text};
use profkit_rt::archive::{Member, archive, darwin_archive};
use profkit_rt::compiler::{darwin_target, linux_target, rustc, same_architecture};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

/// The object file for the machine that this crate is built for; empty if there is none.
const fn embedded(variant: Variant) -> &'static [u8] {
    match variant {
        Variant::Full => include_bytes!(concat!(env!("OUT_DIR"), "/profkit_rt.o")),
        Variant::Small => include_bytes!(concat!(env!("OUT_DIR"), "/profkit_rt_small.o")),
        Variant::Api => include_bytes!(concat!(env!("OUT_DIR"), "/profkit_rt_api.o")),
    }
}

/// The Rust target of the machine that this crate is built for.
pub(crate) const HOST: &str = env!("PROFKIT_HOST");

/// The reason why no runtime can be linked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The runtime does not support the target.
    NoRuntime {
        /// The target that the caller asked for.
        target: String,
    },
    /// A variant of the runtime does not support a target that others support.
    NoVariant {
        /// The target that the caller asked for.
        target: String,
        /// The variant that the caller asked for.
        variant: Variant,
    },
    /// The runtime could not be compiled.
    Compile {
        /// The target that was passed to rustc, as a triple of Rust.
        target: &'static str,
        /// The name or path of the rustc that was used.
        rustc: String,
        /// The reason why compiling failed.
        error: CompileError,
    },
    /// No folder for temporary files could be made.
    Folder(io::Error),
    /// The static library could not be written.
    Write(OutputError),
}

impl Error {
    /// Whether the cause is the request of the caller. If false, the cause is on this machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::NoRuntime { .. } | Error::NoVariant { .. })
    }

    /// Returns a suggestion to the user; `None` if there is nothing that helps.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::NoRuntime { .. } | Error::Folder(_) => None,
            Error::NoVariant { .. } => Some("the full runtime has this target".to_owned()),
            Error::Write(error) => error.hint(),
            Error::Compile {
                target,
                rustc,
                error,
            } => match error {
                CompileError::NoCore => Some(format!(
                    "rustup target add {target} (Debian: the package libstd-rust-dev of the target's architecture), or name a compiler that has this library: RUSTC=…"
                )),
                error => error.hint(rustc),
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoRuntime { target } => write!(
                f,
                "there is no MIP runtime for the target `{target}`: expected Linux on x86-64, AArch64 or 32-bit Arm, or macOS on x86-64 or arm64"
            ),
            Error::NoVariant { target, variant } => write!(
                f,
                "the runtime `{}` is not for macOS, the system of the target `{target}`",
                variant_name(*variant)
            ),
            Error::Compile { target, error, .. } => {
                write!(f, "the MIP runtime for {target}: ")?;
                match error {
                    // `CompileError` cannot use `system_text`, because the build script compiles it too.
                    CompileError::NoCompiler(name, error) => {
                        write!(f, "cannot start {name}: {}", system_text(error))
                    }
                    CompileError::Io(path, error) => write!(f, "{path}: {}", system_text(error)),
                    error => error.fmt(f),
                }
            }
            Error::Folder(error) => write!(
                f,
                "cannot make a folder in {}: {}",
                std::env::temp_dir().display(),
                system_text(error)
            ),
            Error::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// The name of a variant on a command line.
pub fn variant_name(variant: Variant) -> &'static str {
    match variant {
        Variant::Full => "full",
        Variant::Small => "small",
        Variant::Api => "api",
    }
}

/// Returns the variant that has a name on a command line.
pub fn variant_of(name: &OsStr) -> Option<Variant> {
    [Variant::Full, Variant::Small, Variant::Api]
        .into_iter()
        .find(|variant| name == variant_name(*variant))
}

/// Makes a static library from an object file of the runtime, for a target; `None` means this machine.
pub fn library(object: &[u8], target: Option<&str>, variant: Variant) -> Vec<u8> {
    let functions: &[&str] = match variant {
        Variant::Full | Variant::Small => &[symbol::DUMP],
        Variant::Api => &[symbol::WRITE, symbol::SIZE, symbol::COPY],
    };
    let common = [
        symbol::HOOK,
        symbol::RESET,
        symbol::ORDINAL,
        symbol::RING_NEXT,
    ];
    let member = Member {
        name: "profkit_rt.o",
        object,
        symbols: &[&common, functions].concat(),
    };
    match darwin_target(target.unwrap_or(HOST)) {
        Some(_) => darwin_archive(&[member]),
        None => archive(&[member]),
    }
}

/// Returns the bytes for an output file whose name says what it is: `.o` an object file, `.a` a static library. Returns
/// `None` for other names.
///
/// # Errors
/// The same as [`object()`].
pub fn file(
    output: &Path,
    target: Option<&str>,
    variant: Variant,
) -> Option<Result<Vec<u8>, Error>> {
    let as_object = match output.extension().and_then(OsStr::to_str) {
        Some("o") => true,
        Some("a") => false,
        _ => return None,
    };
    Some(object(target, variant).map(|object| {
        if as_object {
            object.into_owned()
        } else {
            library(&object, target, variant)
        }
    }))
}

/// Returns the object file of a variant of the runtime for a target; `None` means this machine.
///
/// # Errors
/// If there is no runtime for the target, or compiling it fails.
pub fn object(target: Option<&str>, variant: Variant) -> Result<Cow<'static, [u8]>, Error> {
    let asked = target.unwrap_or(HOST);
    let Some(target) = target_for(asked, variant) else {
        return Err(Error::NoRuntime {
            target: asked.to_owned(),
        });
    };
    // This variant relies on the linker's symbols of ELF programs.
    if variant == Variant::Small && darwin_target(asked).is_some() {
        return Err(Error::NoVariant {
            target: asked.to_owned(),
            variant,
        });
    }
    let aligned = is_aligned(asked);
    let embedded = embedded(variant);
    if is_for_host(target) && !aligned && !embedded.is_empty() {
        return Ok(Cow::Borrowed(embedded));
    }
    let rustc = rustc();
    let folder = tempfile::Builder::new()
        .prefix("profkit-rt-")
        .tempdir()
        .map_err(Error::Folder)?;
    compile::compile(&rustc, target, variant, aligned, folder.path())
        .map(Cow::Owned)
        .map_err(|error| Error::Compile {
            target,
            rustc: rustc.to_string_lossy().into_owned(),
            error,
        })
}

/// Returns the path of the static library to link: a variant of the runtime for a target. The library for this machine
/// is written to `folder`. The library for another machine is kept in the user's cache.
///
/// # Errors
/// The same as [`object()`], and if the library cannot be written.
pub fn place(target: &str, variant: Variant, folder: &Path) -> Result<PathBuf, Error> {
    let name = target_for(target, variant).unwrap_or("unknown");
    let mut path = folder.join("libprofkit_rt.a");
    let aligned = is_aligned(target);
    if (aligned || !is_for_host(name))
        && let Some(cache) = cache_folder()
    {
        let mut hasher = DefaultHasher::new();
        (
            profkit_rt::source::FILES,
            profkit_abi::source::MIP,
            profkit_rt::compiler::FLAGS,
            profkit_rt::COMPILE_FLAGS,
            variant,
            aligned,
        )
            .hash(&mut hasher);
        let kept = cache
            .join("profkit")
            .join(format!("mip-runtime-{:016x}-{name}.a", hasher.finish()));
        if kept.exists() {
            return Ok(kept);
        }
        // Without a cache folder, each link compiles the runtime again.
        if kept
            .parent()
            .is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
        {
            path = kept;
        }
    }
    let bytes = library(&object(Some(target), variant)?, Some(target), variant);
    Output::new(&path, Content::Binary)
        .and_then(|output| output.write(|sink| sink.put(&bytes)))
        .map_err(Error::Write)?;
    Ok(path)
}

/// Returns the user's folder for cached files. `None` if the environment names none.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute())
}

fn is_for_host(target: &str) -> bool {
    darwin_target(target).is_none()
        && linux_target(HOST).is_some_and(|host| same_architecture(host, target))
}

/// 64-bit Arm demands aligned numbers while the memory management unit is off, as it may always be without a system.
fn is_aligned(triple: &str) -> bool {
    is_bare(triple) && (triple.starts_with("aarch64-") || triple.starts_with("arm64-"))
}

fn is_bare(triple: &str) -> bool {
    !triple.contains("-linux") && triple.contains("-none")
}

/// The Rust target of the runtime for `triple`. The variant `Api` makes no system calls, so that programs without an
/// operating system use its object for Linux.
fn target_for(triple: &str, variant: Variant) -> Option<&'static str> {
    if variant == Variant::Api && is_bare(triple) {
        let architecture = triple.split('-').next().unwrap_or_default();
        let hard = if triple.ends_with("hf") { "hf" } else { "" };
        return linux_target(&format!("{architecture}-linux-gnueabi{hard}"));
    }
    linux_target(triple).or_else(|| darwin_target(triple))
}

#[cfg(test)]
mod tests {
    use super::{Variant, darwin_target, is_aligned, linux_target, target_for};

    #[test]
    fn the_built_in_objects_are_the_compiled_ones() {
        for variant in [Variant::Full, Variant::Small, Variant::Api] {
            let embedded = super::embedded(variant);
            if embedded.is_empty() {
                continue;
            }
            let folder = tempfile::tempdir().expect("a folder");
            let (rustc, path) = (super::rustc(), folder.path());
            let compiled = super::compile::compile(&rustc, super::HOST, variant, false, path);
            assert!(compiled.expect("compiled") == embedded, "{variant:?}");
        }
    }

    #[test]
    fn programs_without_an_operating_system_use_the_variant_without_files() {
        for (triple, expected) in [
            ("aarch64-none-elf", Some("aarch64-unknown-linux-gnu")),
            ("x86_64-unknown-none", Some("x86_64-unknown-linux-gnu")),
            ("armv7a-none-eabihf", Some("armv7-unknown-linux-gnueabihf")),
            ("arm-none-eabi", Some("armv7-unknown-linux-gnueabi")),
            ("aarch64-linux-gnu", Some("aarch64-unknown-linux-gnu")),
            ("x86_64-apple-darwin", Some("x86_64-apple-darwin")),
            ("riscv64-unknown-none-elf", None),
        ] {
            assert_eq!(target_for(triple, Variant::Api), expected, "{triple}");
        }
        assert_eq!(target_for("aarch64-none-elf", Variant::Small), None);
        assert!(is_aligned("aarch64-none-elf") && is_aligned("aarch64-unknown-none"));
        for triple in [
            "aarch64-linux-gnu",
            "aarch64-none-linux-gnu",
            "armv7a-none-eabihf",
        ] {
            assert!(!is_aligned(triple), "{triple}");
        }
    }

    #[test]
    fn triples_of_all_compilers_are_understood() {
        for (triple, expected) in [
            ("x86_64-linux-gnu", Some("x86_64-unknown-linux-gnu")),
            ("x86_64-pc-linux-gnu", Some("x86_64-unknown-linux-gnu")),
            (
                "x86_64-unknown-linux-musl",
                Some("x86_64-unknown-linux-gnu"),
            ),
            ("aarch64-linux-gnu", Some("aarch64-unknown-linux-gnu")),
            ("aarch64-linux-android21", Some("aarch64-unknown-linux-gnu")),
            ("arm-linux-gnueabihf", Some("armv7-unknown-linux-gnueabihf")),
            (
                "armv7-unknown-linux-gnueabi",
                Some("armv7-unknown-linux-gnueabi"),
            ),
            ("armeb-linux-gnueabi", None),
            ("x86_64-linux-gnux32", None),
            ("i686-linux-gnu", None),
            ("x86_64-apple-darwin", None),
            ("x86_64-pc-windows-msvc", None),
        ] {
            assert_eq!(linux_target(triple), expected, "{triple}");
        }
        for (triple, expected) in [
            ("x86_64-apple-darwin", Some("x86_64-apple-darwin")),
            ("x86_64-apple-macosx10.15", Some("x86_64-apple-darwin")),
            ("arm64-apple-macosx13.0", Some("aarch64-apple-darwin")),
            ("arm64-apple-darwin22", Some("aarch64-apple-darwin")),
            ("arm64-apple-ios16", None),
            ("arm64-apple-ios16-macabi", None),
            ("x86_64-linux-gnu", None),
        ] {
            assert_eq!(darwin_target(triple), expected, "{triple}");
        }
        assert!(!super::is_for_host("x86_64-apple-darwin"));
    }
}
