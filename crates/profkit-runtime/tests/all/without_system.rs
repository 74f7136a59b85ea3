//! Programs without an operating system: examples/bare-metal on an emulated AArch64 machine, examples/wasm in node. Each
//! gives a profile that LLVM's tool merges, with the counts of the program.
use crate::support::ran;
use profkit_runtime::link::{library, Compiler, Error};
use profkit_testkit::{on_path, or_skip, skip, Llvm};
use std::fs;
use std::path::Path;
use std::process::Command;

/// `collatz` is called for the numbers 1 to 20, and takes 196 steps, 51 of them from odd numbers.
const CALLS: u64 = 20;
const STEPS: u64 = 196;
const ODD: u64 = 51;

/// Prepares the folder of an example, with the library for a target. Also returns LLVM 22. `None` if a tool is not
/// installed.
fn prepared(
    example: &str,
    compiler: Compiler,
    target: &str,
    tools: &[&str],
) -> Result<(Llvm, tempfile::TempDir, String), String> {
    let llvm = Llvm::find(22).ok_or("LLVM 22 is not installed")?;
    for tool in tools {
        on_path(tool).ok_or_else(|| format!("{tool} is not installed"))?;
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = match library(compiler.raw_version().unwrap(), Some(target)) {
        Ok(bytes) => bytes,
        Err(error @ Error::Compile { .. }) if error.hint().is_some() => {
            return Err(format!("{error} ({})", error.hint().unwrap()));
        }
        Err(error) => panic!("{error}"),
    };
    fs::write(folder.path().join("libprofkit_profile.a"), bytes).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(example);
    Ok((llvm, folder, example.to_str().unwrap().to_owned()))
}

/// What LLVM's tool shows of the function `collatz`.
fn shown(llvm: &Llvm, folder: &Path, raw: &str) -> (u64, Vec<u64>) {
    ran(Command::new(llvm.profdata()).current_dir(folder).args([
        "merge",
        "--failure-mode=any",
        raw,
        "-o",
        "merged.profdata",
    ]));
    let output = ran(Command::new(llvm.profdata()).current_dir(folder).args([
        "show",
        "--counts",
        "--function=collatz",
        "merged.profdata",
    ]));
    let text = String::from_utf8(output.stdout).unwrap();
    let field = |name: &str| {
        let rest = text.split_once(name).unwrap_or_else(|| panic!("{text}")).1;
        rest.lines().next().unwrap().trim().to_owned()
    };
    let blocks = field("Block counts:");
    let blocks = blocks
        .trim_matches(['[', ']'])
        .split(", ")
        .map(|count| count.parse().unwrap());
    (field("Function count:").parse().unwrap(), blocks.collect())
}

#[test]
fn an_aarch64_machine_without_an_operating_system() {
    let tools = ["qemu-system-aarch64", "ld.lld-22"];
    let (compiler, target) = (Compiler::Clang(22), "aarch64-none-elf");
    let (llvm, folder, example) = or_skip!(prepared("bare-metal", compiler, target, &tools));
    let folder = folder.path();
    ran(Command::new(format!("{example}/build.sh"))
        .env("CLANG", llvm.clang())
        .current_dir(folder));
    ran(Command::new("timeout")
        .args(["60", &format!("{example}/run.sh")])
        .current_dir(folder));
    assert_eq!(
        shown(&llvm, folder, "bare.profraw"),
        (CALLS, vec![STEPS, ODD])
    );
}

#[test]
fn webassembly_from_c() {
    let tools = ["node", "wasm-ld-22"];
    let target = "wasm32-unknown-unknown";
    let compiler = Compiler::Clang(22);
    let (llvm, folder, example) = or_skip!(prepared("wasm", compiler, target, &tools));
    let folder = folder.path();
    ran(Command::new(format!("{example}/build.sh"))
        .env("CLANG", llvm.clang())
        .current_dir(folder));
    ran(Command::new("node")
        .arg(format!("{example}/run.mjs"))
        .args(["module.wasm", "c.profraw"])
        .current_dir(folder));
    assert_eq!(shown(&llvm, folder, "c.profraw"), (CALLS, vec![STEPS, ODD]));
}

#[test]
fn webassembly_from_rust() {
    let target = "wasm32-unknown-unknown";
    let (llvm, folder, example) = or_skip!(prepared("wasm", Compiler::Rustc, target, &["node"]));
    let folder = folder.path();
    ran(Command::new(format!("{example}/build-rust.sh")).current_dir(folder));
    ran(Command::new("node")
        .arg(format!("{example}/run.mjs"))
        .args(["module.wasm", "rust.profraw"])
        .current_dir(folder));
    // The release of rustc decides which blocks have counters. But one counter is always in the branch for odd numbers.
    let (calls, blocks) = shown(&llvm, folder, "rust.profraw");
    assert_eq!(calls, CALLS);
    assert!(blocks.contains(&ODD), "{blocks:?}");
}

#[test]
fn the_libraries_need_nothing_else() {
    let Some(nm) = on_path("llvm-nm-22") else {
        return skip("llvm-nm-22 is not installed");
    };
    for target in ["aarch64-none-elf", "wasm32-unknown-unknown"] {
        for version in profkit_testkit::some_or_all(&[11, 7, 8, 9, 10], 2) {
            let compiler = Compiler::Raw(*version);
            let (_, folder, _) = or_skip!(prepared("wasm", compiler, target, &[]), continue);
            let listed = ran(Command::new(&nm)
                .arg("-u")
                .arg("libprofkit_profile.a")
                .current_dir(&folder));
            let listed = String::from_utf8(listed.stdout).unwrap();
            let mut weak = 0;
            for line in listed.lines() {
                if let Some((kind, name)) = line.trim_start().split_once(' ') {
                    // These two symbols are defined by the linker.
                    let of_linker =
                        ["__indirect_function_table", "__stack_pointer"].contains(&name);
                    assert!(
                        of_linker || kind == "w" || kind == "v",
                        "{target} raw {version}: {name}"
                    );
                    weak += 1;
                }
            }
            assert!(weak > 5, "{listed}");
        }
    }
}
