//! Compiles the MIP runtime for the machine that this crate is built for, and puts the object files where the crate embeds
//! them: `cargo install` is all that a user of the command needs.
#![allow(clippy::panic, reason = "a build script reports a failure by a panic")]
use profkit_rt::Variant;
use std::env;
use std::path::Path;

#[path = "src/runtime/compile.rs"]
mod compile;

fn main() {
    println!("cargo::rerun-if-changed=src/runtime/compile.rs");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let variable = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let folder = variable("OUT_DIR");
    let target = variable("TARGET").to_string_lossy().into_owned();
    let supported = (target.starts_with("x86_64-") && !target.ends_with("x32"))
        || target.starts_with("aarch64-")
        || target.starts_with("armv7");
    for (variant, name) in [
        (Variant::Full, "profkit_rt.o"),
        (Variant::Small, "profkit_rt_small.o"),
        (Variant::Api, "profkit_rt_api.o"),
    ] {
        let made = if supported && target.contains("-linux") {
            let work = Path::new(&folder).join("rt");
            match compile::compile(&variable("RUSTC"), &target, variant, false, &work) {
                Ok(bytes) => bytes,
                Err(error) => panic!("the MIP runtime: {error}"),
            }
        } else {
            // A host that we emit no code for: asking for the runtime is an error there.
            Vec::new()
        };
        let object = Path::new(&folder).join(name);
        if let Err(error) = std::fs::write(&object, made) {
            panic!("cannot write {}: {error}", object.display());
        }
    }
    println!("cargo::rustc-env=PROFKIT_HOST={target}");
}
