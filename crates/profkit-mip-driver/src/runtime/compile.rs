//! Compiles the source of the MIP runtime with rustc. The build script uses this file too.
use profkit_rt::Variant;
use profkit_rt::compiler::Compiler;
pub use profkit_rt::compiler::Error;
use std::ffi::OsStr;
use std::path::Path;

/// With `aligned`, the object reads and writes numbers only at multiples of their size.
pub fn compile(
    rustc: &OsStr,
    target: &str,
    variant: Variant,
    aligned: bool,
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let files = profkit_rt::source::FILES.iter();
    let files = files.map(|&(name, text)| (format!("rt/{name}"), text));
    let abi = [("mip", profkit_abi::source::MIP)];
    let compiler = Compiler::new((rustc, target), folder, &abi, files)?;
    // rustc prints a warning about `strict-align`, and passes this feature to LLVM unchanged.
    let aligned: &[&str] = if aligned {
        &["-Ctarget-feature=+strict-align"]
    } else {
        &[]
    };
    let flags = [profkit_rt::COMPILE_FLAGS, variant.compile_flags(), aligned].concat();
    compiler.object("profkit_rt.o", "rt/lib.rs", &flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(target: &str) -> Error {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rustc = profkit_rt::compiler::rustc();
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
        // Every rustc knows this tier 3 target, but no one distributes a core library for it.
        let error = failure("msp430-none-elf");
        assert!(matches!(error, Error::NoCore), "{error}");
    }
}
