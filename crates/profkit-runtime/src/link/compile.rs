//! Compiles the source of the runtime with rustc. The build script of this crate uses this file too.
use crate::source;
use profkit_rt::archive::{archive, Member};
use profkit_rt::compiler::{put, run, take, Error};
use std::ffi::OsStr;
use std::format;
use std::path::Path;
use std::process::Command;
use std::string::{String, ToString as _};
use std::vec::Vec;

#[path = "wasm.rs"]
mod wasm;
use wasm::make_weak;

/// The raw versions for which there is a runtime.
pub const VERSIONS: [u32; 5] = [7, 8, 9, 10, 11];

/// The options with which rustc compiles an object file of the runtime.
const FLAGS: &[&str] = &[
    "--crate-type=lib",
    "--edition=2021",
    "--emit=obj",
    "-Cpanic=abort",
    "-Ccodegen-units=1",
    "-Crelocation-model=pic",
    "-Cforce-unwind-tables=no",
    "-Cdebuginfo=0",
];

pub fn compile(rustc: &OsStr, target: &str, version: u32, folder: &Path) -> Result<Vec<u8>, Error> {
    put(
        folder,
        "abi/lib.rs",
        "//! The part of profkit-abi that the runtime uses.\n#![no_std]\npub mod mip;\npub mod raw;\npub mod variant;\n",
    )?;
    put(folder, "abi/mip.rs", profkit_abi::source::MIP)?;
    put(folder, "abi/raw.rs", profkit_abi::source::RAW)?;
    put(folder, "abi/variant.rs", profkit_abi::source::VARIANT)?;
    for (name, text) in profkit_rt::source::FILES {
        put(folder, &format!("profkit-rt/src/{name}"), text)?;
    }
    for (name, text) in source::FILES {
        put(folder, &format!("profkit-runtime/src/{name}"), text)?;
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
    let mut external = std::ffi::OsString::from("profkit_abi=");
    external.push(&metadata);
    // Only on Linux can the runtime write files. For other systems the whole runtime is one object.
    let parts: &[&str] = if target.contains("-linux") {
        &["values", "file", "buffer"]
    } else {
        &[""]
    };
    let mut objects = Vec::new();
    for &part in parts {
        let name = format!("{}.o", if part.is_empty() { "all" } else { part });
        // Instrumented code calls the recorder of values very often, so its speed matters more than its size.
        let level = if part == "values" { "2" } else { "z" };
        let symbols = symbols(part);
        let mut command = Command::new(rustc);
        command
            .args([
                "--crate-name=profkit_runtime",
                "--cfg=profkit_runtime_object",
            ])
            .arg(format!("--cfg=profkit_raw=\"{version}\""))
            .args(FLAGS)
            // In an object file only the C names may be global symbols. If Rust names were global too, the images of
            // one process would share functions.
            .arg(format!("-Cpasses=internalize,globaldce,default<O{level}>"))
            .arg(format!("-Copt-level={level}"))
            .arg(format!(
                "-Cllvm-args=-internalize-public-api-list={}",
                symbols.join(",")
            ))
            .args(["--target", target]);
        if !part.is_empty() {
            command.arg(format!("--cfg=profkit_part=\"{part}\""));
        }
        if target.starts_with("wasm32") {
            // With rustc's default, the position-independent code, the addresses of data would be relative to a base
            // that only dynamic modules have.
            command.arg("-Crelocation-model=static");
        }
        if target.starts_with("aarch64") {
            // `-outline-atomics` makes the compiler generate atomic instructions instead of calls to libgcc.
            command.arg("-Ctarget-feature=-outline-atomics");
        }
        let object = folder.join(&name);
        command
            .arg("--extern")
            .arg(&external)
            .arg("-o")
            .arg(&object);
        run(
            command.arg(folder.join("profkit-runtime/src/lib.rs")),
            rustc,
            target,
        )?;
        let mut bytes = take(&object)?;
        if target.starts_with("wasm32") {
            make_weak(&mut bytes).map_err(|reason| Error::Compiler(reason.to_string()))?;
        }
        objects.push((name, bytes, symbols));
    }
    let object = folder.join("init.o");
    let mut command = Command::new(rustc);
    command
        .arg("--crate-name=profkit_init")
        .args(FLAGS)
        .args(["--target", target, "-o"])
        .args([&object, &folder.join("profkit-runtime/src/init.rs")]);
    run(&mut command, rustc, target)?;
    objects.push((
        "init.o".to_string(),
        take(&object)?,
        ["__llvm_profile_runtime".to_string()].into(),
    ));
    let names: Vec<Vec<&str>> = objects
        .iter()
        .map(|(_, _, symbols)| symbols.iter().map(String::as_str).collect())
        .collect();
    let members: Vec<Member<'_>> = objects
        .iter()
        .zip(&names)
        .map(|((name, object, _), symbols)| Member {
            name,
            object,
            symbols,
        })
        .collect();
    Ok(archive(&members))
}

fn symbols(part: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in source::FILES {
        let of_part = match *file {
            "exports.rs" => part.is_empty() || part == "values",
            "exports_file.rs" => part == "file",
            "exports_buffer.rs" => part.is_empty() || part == "buffer",
            _ => false,
        };
        if !of_part {
            continue;
        }
        for line in text.lines() {
            let rest = match line.trim_start().strip_prefix("fn ") {
                Some(rest) => rest,
                None => continue,
            };
            let name: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            let is_c_name = name.starts_with("__") || name.starts_with("lprof");
            if is_c_name && !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}
