//! Compiles the source of the runtime with rustc. The build script of this crate uses this file too.
use crate::source;
use profkit_rt::archive::{archive, Member};
use profkit_rt::compiler::{Compiler, Error};
use std::ffi::OsStr;
use std::format;
use std::path::Path;
use std::string::{String, ToString as _};
use std::vec::Vec;

#[path = "wasm.rs"]
mod wasm;
use wasm::make_weak;

/// The raw versions for which there is a runtime.
pub const VERSIONS: [u32; 5] = [7, 8, 9, 10, 11];

/// Compiles the runtime for a raw version in `folder`. Returns a static library.
pub fn compile(rustc: &OsStr, target: &str, version: u32, folder: &Path) -> Result<Vec<u8>, Error> {
    let abi = [
        ("mip", profkit_abi::source::MIP),
        ("raw", profkit_abi::source::RAW),
        ("variant", profkit_abi::source::VARIANT),
    ];
    let of_rt = profkit_rt::source::FILES.iter();
    let of_rt = of_rt.map(|(name, text)| (format!("profkit-rt/src/{name}"), *text));
    let own = source::FILES.iter();
    let own = own.map(|(name, text)| (format!("profkit-runtime/src/{name}"), *text));
    let compiler = Compiler::new((rustc, target), folder, &abi, of_rt.chain(own))?;
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
        let mut flags = Vec::from([
            "--crate-name=profkit_runtime".to_string(),
            "--cfg=profkit_runtime_object".to_string(),
            format!("--cfg=profkit_raw=\"{version}\""),
            // If Rust names were global too, the images of one process would share functions.
            format!("-Cpasses=internalize,globaldce,default<O{level}>"),
            format!("-Copt-level={level}"),
            format!(
                "-Cllvm-args=-internalize-public-api-list={}",
                symbols.join(",")
            ),
        ]);
        if !part.is_empty() {
            flags.push(format!("--cfg=profkit_part=\"{part}\""));
        }
        if target.starts_with("wasm32") {
            // Position-independent addresses would be relative to a base that only dynamic modules have.
            flags.push("-Crelocation-model=static".to_string());
        }
        let mut bytes = compiler.object(&name, "profkit-runtime/src/lib.rs", &flags)?;
        if target.starts_with("wasm32") {
            make_weak(&mut bytes).map_err(|reason| Error::Compiler(reason.to_string()))?;
        }
        objects.push((name, bytes, symbols));
    }
    let init = "profkit-runtime/src/init.rs";
    objects.push((
        "init.o".to_string(),
        compiler.object("init.o", init, &["--crate-name=profkit_init"])?,
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
