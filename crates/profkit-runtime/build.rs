//! With the feature `embed`, compiles the runtimes for the machine that this crate is built for, and puts the static
//! libraries where the crate embeds them.
#![allow(clippy::panic, reason = "a build script reports a failure by a panic")]
extern crate std;

use std::env;
use std::fmt::Write as _;
use std::path::Path;

#[path = "src/link/compile.rs"]
mod compile;
#[path = "src/source.rs"]
mod source;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-env-changed=RUSTC");
    let variable = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let target = variable("TARGET").to_string_lossy().into_owned();
    println!("cargo:rustc-env=PROFKIT_HOST={target}");
    if env::var_os("CARGO_FEATURE_EMBED").is_none() {
        return;
    }
    let folder = variable("OUT_DIR");
    let folder = Path::new(&folder);
    // Elsewhere the runtime is compiled when it is asked for.
    let embedded =
        target.starts_with("x86_64-") && target.contains("-linux") && !target.ends_with("x32");
    let mut table = String::from("&[");
    for version in compile::VERSIONS {
        if !embedded {
            break;
        }
        let work = folder.join(format!("raw-{version}"));
        // A file that the sources no longer have could stand beside a new one for the same module.
        let _ = std::fs::remove_dir_all(&work);
        let library = match compile::compile(&variable("RUSTC"), &target, version, &work) {
            Ok(bytes) => bytes,
            Err(error) => panic!("the profile runtime: {error}"),
        };
        let path = folder.join(format!("libprofkit_profile_{version}.a"));
        if let Err(error) = std::fs::write(&path, library) {
            panic!("cannot write {}: {error}", path.display());
        }
        let _ = write!(table, "({version}, include_bytes!({:?})),", path);
    }
    table.push(']');
    if let Err(error) = std::fs::write(folder.join("embedded.rs"), table) {
        panic!("cannot write the table of runtimes: {error}");
    }
}
