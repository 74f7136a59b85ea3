//! `profkit mip runtime`: the static library that instrumented programs are linked with.
mod archive;
mod compile;

use crate::exit::{Failure, Result, Status};
use clap::Args;
use profkit_abi::mip::symbol;
use profkit_merge::files::{Content, Output};
use std::borrow::Cow;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  profkit mip runtime -o libprofkit_rt.a
  profkit mip runtime --target aarch64-linux-gnu -o libprofkit_rt.a
  RUSTC=/opt/rust/bin/rustc profkit mip runtime --target armv7-unknown-linux-gnueabihf -o rt.o";

/// The runtime for the machine that this command is for; empty if there is none.
const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profkit_rt.o"));
/// That machine, as a Rust target.
const HOST: &str = env!("PROFKIT_HOST");

/// Arguments of `profkit mip runtime`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RuntimeArgs {
    /// What to write it for: a triple of GCC, Clang or Rust; by default this machine
    ///
    /// For another machine the embedded source is compiled with the rustc that RUSTC names, or the one on the path,
    /// which needs that target's core library.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// Where to: NAME.a is a static library, NAME.o the object file in it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs `profkit mip runtime`.
///
/// # Errors
/// If the target has no runtime, its compiler fails, or the output cannot be written.
pub fn run(args: &RuntimeArgs) -> Result {
    let as_object = match args.output.extension().and_then(|e| e.to_str()) {
        Some("o") => true,
        Some("a") => false,
        _ => {
            return Err(Failure::usage(format_args!(
                "{}: the name must end in .a (static library) or .o (object file)",
                args.output.display()
            )));
        }
    };
    let output = Output::new(&args.output, Content::Binary)?;
    let object = object(args.target.as_deref())?;
    output.write(|sink| {
        if as_object {
            sink.put(&object)
        } else {
            sink.put(&library(&object))
        }
    })?;
    Ok(Status::Done)
}

/// The static library of an object file of the runtime.
pub fn library(object: &[u8]) -> Vec<u8> {
    archive::archive(
        object,
        &[
            symbol::HOOK,
            symbol::DUMP,
            symbol::RESET,
            symbol::ORDINAL,
            symbol::RING_NEXT,
        ],
    )
}

/// The object file of the runtime for a target; None is this machine.
///
/// # Errors
/// If the target has no runtime or its compiler fails.
pub fn object(target: Option<&str>) -> Result<Cow<'static, [u8]>> {
    let asked = target.unwrap_or(HOST);
    let Some(target) = rust_target(asked) else {
        return Err(Failure::usage(format_args!(
            "there is no MIP runtime for {asked}: it is for Linux on x86-64, AArch64 and 32-bit Arm"
        )));
    };
    if rust_target(HOST).is_some_and(|host| same_object(host, target)) && !EMBEDDED.is_empty() {
        return Ok(Cow::Borrowed(EMBEDDED));
    }
    let rustc = std::env::var_os("RUSTC")
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| OsString::from("rustc"));
    let folder = tempfile::Builder::new()
        .prefix("profkit-rt-")
        .tempdir()
        .map_err(|error| {
            Failure::io(
                "cannot make a folder in",
                std::env::temp_dir().display(),
                &error,
            )
        })?;
    compile::compile(&rustc, target, folder.path())
        .map(Cow::Owned)
        .map_err(|error| explain(&error, target, &rustc.to_string_lossy()))
}

/// The file of the static library for a target, for a link: in `folder` for this machine, in the user's cache for others.
///
/// # Errors
/// As [`object`], and if it cannot be written.
pub fn place(target: &str, folder: &Path) -> Result<PathBuf> {
    let name = rust_target(target).unwrap_or("unknown");
    let mut path = folder.join("libprofkit_rt.a");
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute());
    if !rust_target(HOST).is_some_and(|host| same_object(host, name))
        && let Some(cache) = cache
    {
        let mut hasher = DefaultHasher::new();
        (
            profkit_rt::source::FILES,
            profkit_abi::source::MIP,
            profkit_rt::COMPILE_FLAGS,
        )
            .hash(&mut hasher);
        let kept = cache
            .join("profkit")
            .join(format!("mip-runtime-{:016x}-{name}.a", hasher.finish()));
        if kept.exists() {
            return Ok(kept);
        }
        // A cache that cannot be made is done without: the runtime is compiled at each link.
        if kept
            .parent()
            .is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
        {
            path = kept;
        }
    }
    let bytes = library(&object(Some(target))?);
    Output::new(&path, Content::Binary)?.write(|sink| sink.put(&bytes))?;
    Ok(path)
}

/// Whether the object of one target serves the other: the runtime does not depend on the C library.
fn same_object(a: &str, b: &str) -> bool {
    let architecture = |target: &str| target.split('-').next().map(str::to_owned);
    architecture(a) == architecture(b)
}

fn explain(error: &compile::Error, target: &str, rustc: &str) -> Failure {
    let failure = Failure::input(format_args!("the MIP runtime for {target}: {error}"));
    match error {
        compile::Error::NoCore => failure.with_hint(format_args!(
            "rustup target add {target} (Debian: libstd-rust-dev of that architecture), or name a compiler that has it: RUSTC=…"
        )),
        compile::Error::NoCompiler(..) => failure
            .with_hint("install Rust (rustup.rs), or name its compiler: RUSTC=/path/to/rustc"),
        compile::Error::UnknownTarget => {
            failure.with_hint(format_args!("{rustc} --print target-list lists what it knows"))
        }
        compile::Error::Io(..) | compile::Error::Compiler(_) => failure,
    }
}

/// The Rust target of a triple of GCC, Clang or Rust. Which C library it names does not matter.
fn rust_target(triple: &str) -> Option<&'static str> {
    let architecture = triple.split('-').next().unwrap_or_default();
    let linux = triple.contains("-linux") && !triple.ends_with("x32") && !triple.contains("ilp32");
    let hard = triple.ends_with("hf");
    match architecture {
        _ if !linux => None,
        "x86_64" | "amd64" => Some("x86_64-unknown-linux-gnu"),
        "aarch64" | "arm64" => Some("aarch64-unknown-linux-gnu"),
        _ if architecture.starts_with("arm") || architecture.starts_with("thumb") => {
            if architecture.ends_with("eb") || architecture.starts_with("armeb") {
                None
            } else if hard {
                Some("armv7-unknown-linux-gnueabihf")
            } else {
                Some("armv7-unknown-linux-gnueabi")
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::rust_target;

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
            assert_eq!(rust_target(triple), expected, "{triple}");
        }
    }
}
