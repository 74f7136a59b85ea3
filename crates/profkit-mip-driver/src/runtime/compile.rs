//! Compiles the source of the MIP runtime with rustc. The build script uses this file too.
use profkit_rt::Variant;
pub use profkit_rt::compiler::Error;
use profkit_rt::compiler::{put, run, take};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Compiles a variant of the runtime in `folder`, which is created if necessary. Returns the bytes of the object file.
/// With `aligned`, the object reads and writes numbers only at multiples of their size.
pub fn compile(
    rustc: &OsStr,
    target: &str,
    variant: Variant,
    aligned: bool,
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    put(
        folder,
        "abi/lib.rs",
        "//! The part of profkit-abi that the runtime uses.\n#![no_std]\npub mod mip;\n",
    )?;
    put(folder, "abi/mip.rs", profkit_abi::source::MIP)?;
    for (name, text) in profkit_rt::source::FILES {
        put(folder, &format!("rt/{name}"), text)?;
    }
    let metadata = folder.join("libprofkit_abi.rmeta");
    run(
        Command::new(rustc)
            .args([
                "--crate-name=profkit_abi",
                "--crate-type=lib",
                "--edition=2021",
            ])
            .args(["--emit=metadata", "-Cpanic=abort", "--target", target, "-o"])
            .args([&metadata, &folder.join("abi/lib.rs")]),
        rustc,
        target,
    )?;
    let object = folder.join("profkit_rt.o");
    let mut external = std::ffi::OsString::from("profkit_abi=");
    external.push(&metadata);
    let mut command = Command::new(rustc);
    command
        .args(profkit_rt::COMPILE_FLAGS)
        .args(variant.compile_flags())
        .args(["--target", target]);
    if target.starts_with("aarch64") {
        // `-outline-atomics` makes the compiler generate atomic instructions instead of calls to libgcc. Old compilers
        // do not know the option and print a warning.
        command.arg("-Ctarget-feature=-outline-atomics");
    }
    if aligned {
        // rustc prints a warning about `strict-align`, and passes this feature to LLVM unchanged.
        command.arg("-Ctarget-feature=+strict-align");
    }
    command.arg("--extern").arg(external).arg("-o");
    run(
        command.args([&object, &folder.join("rt/lib.rs")]),
        rustc,
        target,
    )?;
    take(&object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(target: &str) -> Error {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        compile(&rustc, target, Variant::Full, false, folder.path())
            .expect_err("no object file for such a target")
    }

    #[test]
    fn a_target_that_the_compiler_does_not_know() {
        let error = failure("no-such-target");
        assert!(matches!(error, Error::UnknownTarget), "{error}");
    }

    #[test]
    fn a_target_without_a_core_library() {
        // Every rustc knows this tier 3 target, but no one distributes a core library for it. So the runtime cannot be
        // compiled for it.
        let error = failure("msp430-none-elf");
        assert!(matches!(error, Error::NoCore), "{error}");
    }
}
