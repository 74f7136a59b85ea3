//! Tests programs for 32-bit Arm under qemu, in both instruction sets, with the runtime that rustc compiles for them.
use profkit_testkit::{links_c, or_skip, repo_root, skip, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");
const GCC: &str = "arm-linux-gnueabihf-gcc-12";

/// Builds a program, runs it, and returns its profile as JSON. `None` if rustc cannot compile the runtime.
fn profile(
    folder: &Path,
    mip: &[&str],
    compiler: &[&str],
    source: &str,
    words: &[&str],
) -> Option<Value> {
    let build = Command::new(PROFKIT)
        .args(["mip", "cc"])
        .args(mip)
        .args(["--", GCC])
        .args(compiler)
        .args(["-O1", "-pthread", "-w"])
        .arg(repo_root().join("tests/programs").join(source))
        .args(["-o", "program"])
        .current_dir(folder)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&build.stderr).into_owned();
    if messages.contains("no core library") {
        skip("rustc has no core library for 32-bit Arm");
        return None;
    }
    assert!(build.status.success(), "{messages}");
    assert_eq!(messages, "");
    succeed(
        Command::new("qemu-arm")
            .args(["-L", "/usr/arm-linux-gnueabihf", "program"])
            .args(words)
            .env("LLVM_MIP_PROFILE_FILENAME", "a.mipraw")
            .env_remove("PROFKIT_MIP_SIGNAL")
            .current_dir(folder),
    );
    let run =
        |words: &[&str]| succeed(Command::new(PROFKIT).args(words).current_dir(folder)).stdout;
    run(&["mip", "create", "-p", "a.mip", "program"]);
    run(&["mip", "merge", "--strict", "-q", "-p", "a.mip", "a.mipraw"]);
    Some(serde_json::from_slice(&run(&["mip", "show", "--format", "json", "-p", "a.mip"])).unwrap())
}

fn function<'j>(profile: &'j Value, name: &str) -> &'j Value {
    let functions = profile["functions"].as_array().unwrap();
    functions.iter().find(|it| it["function"] == name).unwrap()
}

/// The calls of `f` from `first` and from `second`, as samples tell.
fn callers(profile: &Value) -> (f64, f64) {
    let of = |name: &str| -> f64 {
        let callers = function(profile, "f")["callers"].as_array().unwrap().iter();
        let weights = callers.filter(|it| it["caller"] == name);
        weights.map(|it| it["weight"].as_f64().unwrap()).sum()
    };
    (of("first"), of("second"))
}

#[test]
fn callers_and_exact_counts() {
    or_skip!(links_c(GCC, &[]));
    if Command::new("qemu-arm").arg("--version").output().is_err() {
        skip("qemu-arm is not installed");
        return;
    }
    for set in ["-marm", "-mthumb"] {
        let folder = tempfile::tempdir().unwrap();
        let edges = |mip: &[&str], words: &[&str]| {
            let mip = [&["--mode", "calls"], mip].concat();
            profile(folder.path(), &mip, &[set], "mip/edges.c", words)
        };
        let sampled = ["--return-addresses", "64"];
        let Some(alternate) = edges(&sampled, &["alternate", "20000"]) else {
            return;
        };
        assert_eq!(function(&alternate, "f")["calls"], 40_000);
        let (first, second) = callers(&alternate);
        assert!((first - 20_000.0).abs() < 1_200.0, "{first} {second}");
        assert!((second - 20_000.0).abs() < 1_200.0, "{first} {second}");

        let rare = edges(&sampled, &["rare", "100000"]).unwrap();
        let (first, second) = callers(&rare);
        assert!(first > 99_000.0 && second < 1_000.0, "{first} {second}");

        // The first calls of a function are all sampled, so eight call sites of 1,000 calls are told apart.
        let many = edges(&["--return-addresses", "1024"], &["many", "100"]).unwrap();
        let sites = function(&many, "g00")["callers"].as_array().unwrap();
        let weights: Vec<u64> = sites
            .iter()
            .map(|it| it["weight"].as_u64().unwrap())
            .collect();
        assert_eq!(weights, [100; 8]);

        for mip in [&["--atomic"][..], &["--atomic", "--return-addresses", "64"]] {
            let threads = edges(mip, &["threads", "20000"]).unwrap();
            assert_eq!(function(&threads, "f")["calls"], 100_000, "{set} {mip:?}");
            assert_eq!(function(&threads, "once")["calls"], 4);
        }
    }
}
