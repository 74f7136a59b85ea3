//! `profkit pgo` with builds, trainings and machines that are not as simple as most.
use crate::pgo::{MAIN, has_counters, in_c, pgo, said};
use profkit_testkit::{Llvm, on_path, require_or_skip, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output};

/// A job whose environment is changed before it is started.
fn with(
    folder: &Path,
    llvm: &Llvm,
    arguments: &[&str],
    change: impl FnOnce(&mut Command) -> &mut Command,
) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    prepared(&mut command, folder, llvm, arguments);
    change(&mut command).output().unwrap()
}

fn prepared(command: &mut Command, folder: &Path, llvm: &Llvm, arguments: &[&str]) {
    command
        .args(["pgo", "--compiler"])
        .arg(llvm.clang())
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("CC");
}

fn done(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_folder_that_cmake_configured_before_is_refused_before_anything_is_trained() {
    let llvm = require_or_skip!(22);
    if on_path("cmake").is_none() || on_path("cc").is_none() {
        skip("no cmake, or no compiler of the system");
        return;
    }
    let folder = in_c();
    let dir = folder.path();
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app main.c)\n";
    fs::write(dir.join("CMakeLists.txt"), list).unwrap();
    done(dir, "cmake", &["-S", ".", "-B", "out"]);
    // What an earlier job has kept here is not of the build.
    let kept = dir.join("kept/profkit-pgo-runs/build");
    fs::create_dir_all(&kept).unwrap();
    let mut clang = Command::new(llvm.clang());
    clang.args(["-fprofile-generate", "main.c", "-o"]);
    assert!(
        clang
            .arg(kept.join("check"))
            .current_dir(dir)
            .status()
            .unwrap()
            .success()
    );
    let again = "cmake -S . -B out && cmake --build out";
    for build in [
        &["cmake", "--build", "out"][..],
        &["make", "-C", "out"],
        &["sh", "-c", again],
    ] {
        let arguments = [&["--train", "touch trained; out/app 5", "--"], build].concat();
        let output = pgo(dir, &llvm, &arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("out/CMakeCache.txt: the folder was configured before, for /"),
            "{text}"
        );
        assert!(text.contains("hint: configure in BUILD"), "{text}");
        assert!(!dir.join("trained").exists(), "{text}");
    }
    // What the same folder is configured by as a part of the job may be built in alone from then on.
    let fresh = "cmake --fresh -S . -B out && cmake --build out";
    for build in [
        &["sh", "-c", fresh][..],
        &["cmake", "--build", "out", "-j2"],
    ] {
        let arguments = [&["--train", "out/app 1000", "--"], build].concat();
        let output = pgo(dir, &llvm, &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
}

#[test]
fn a_folder_of_meson_is_cleaned_by_meson() {
    let llvm = require_or_skip!(22);
    if on_path("meson").is_none() || on_path("ninja").is_none() {
        skip("no meson");
        return;
    }
    let folder = in_c();
    let dir = folder.path();
    fs::write(
        dir.join("meson.build"),
        "project('app', 'c')\nexecutable('app', 'main.c')\n",
    )
    .unwrap();
    let setup = ["-c", "CC=cc meson setup out"];
    done(dir, "sh", &setup);
    done(dir, "meson", &["compile", "-C", "out"]);
    let output = pgo(
        dir,
        &llvm,
        &[
            "--train",
            "out/app 1000",
            "--",
            "meson",
            "compile",
            "-C",
            "out",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("merged 1 of 1 raw profiles"));
    assert!(!has_counters(&dir.join("out/app")));
}

/// A script of autoconf takes each warning for a feature that is missing. The profile has a `main` that is not the trial's.
#[test]
fn trials_of_a_configuration_see_no_profile() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let trial = "int main(int c, char **v) { int n = 0; for (int i = 0; i < c; i++) n += v[i][0]; return n == 1; }";
    fs::write(dir.join("conftest.c"), trial).unwrap();
    fs::write(dir.join("other.c"), trial).unwrap();
    let build = "rm -f *.err; $CC -O2 -o conftest conftest.c 2>conftest.err && $CC -O2 -c other.c 2>other.err && make";
    let output = pgo(
        dir,
        &llvm,
        &[
            "--train",
            "./app 1000",
            "--clean",
            "make clean",
            "--",
            "sh",
            "-c",
            build,
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(fs::read_to_string(dir.join("conftest.err")).unwrap(), "");
    // The same file under another name has the warning.
    let warned = fs::read_to_string(dir.join("other.err")).unwrap();
    assert!(warned.contains("[-Wbackend-plugin]"), "{warned}");
}

const SLEEPER: &str = "\
#include <stdlib.h>
#include <unistd.h>
int main(int c, char **v) { if (c > 1) sleep(atoi(v[1])); return 0; }
";

#[test]
fn processes_that_outlive_a_training_are_waited_for_or_named() {
    let llvm = require_or_skip!(22);
    if !Path::new("/proc/self/environ").exists() {
        skip("the system does not show the environment of processes");
        return;
    }
    let folder = in_c();
    let dir = folder.path();
    fs::write(dir.join("main.c"), SLEEPER).unwrap();
    let ends = "./app 1 >/dev/null 2>&1 &";
    let stays = "./app 100 >/dev/null 2>&1 & echo $! > stays";
    let output = pgo(
        dir,
        &llvm,
        &["--train", ends, "--train", stays, "--", "make"],
    );
    let pid = fs::read_to_string(dir.join("stays")).unwrap();
    done(dir, "kill", &[pid.trim()]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let named = format!(
        "still runs {}/app (process {})",
        dir.canonicalize().unwrap().display(),
        pid.trim()
    );
    assert!(text.contains(&named), "{text}");
    assert_eq!(text.matches("still runs").count(), 1, "{text}");
    assert!(text.contains("merged 1 of 1 raw profiles"), "{text}");
}

#[test]
fn a_training_that_empties_the_environment_counts_too() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let arguments = [
        "--train",
        "env -i ./app 1000",
        "--train",
        "3,env -i ./app 10",
        "--keep",
        "kept",
        "--",
        "make",
    ];
    let output = pgo(dir, &llvm, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("merged 2 of 2 raw profiles"),
        "{}",
        said(&output)
    );
    let profile = fs::read(dir.join("kept/merged.profdata")).unwrap();
    crate::pgo::run_script(dir, &llvm, &arguments);
    assert!(profile == fs::read(dir.join("kept/merged.profdata")).unwrap());
}

#[test]
fn what_no_training_ran_is_named() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    fs::write(dir.join("lib.c"), "int shared(int x) { return x * 3; }\n").unwrap();
    fs::write(
        dir.join("tool.c"),
        "int shared(int); int main(void) { return shared(0); }\n",
    )
    .unwrap();
    let build = "$CC -O2 main.c -o app && $CC -O2 -fPIC -shared lib.c -o libown.so && $CC -O2 tool.c -L. -lown -o tool";
    let arguments = [
        "--train",
        "./app 1000",
        "--clean",
        "rm -f app tool libown.so",
    ];
    let output = pgo(
        dir,
        &llvm,
        &[&arguments[..], &["--", "sh", "-c", build]].concat(),
    );
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let at = text
        .find("No training ran\n")
        .unwrap_or_else(|| panic!("{text}"));
    let rows: Vec<&str> = text[at..].lines().skip(1).take(2).collect();
    assert!(
        rows[0].trim_start().starts_with("libown.so") && rows[0].contains("from elsewhere"),
        "{text}"
    );
    assert!(rows[1].trim_start().starts_with("tool"), "{text}");
    let output = pgo(
        dir,
        &llvm,
        &[
            &arguments[..],
            &["--format", "json", "--", "sh", "-c", build],
        ]
        .concat(),
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
    let untrained = json["used"]["untrained"].as_array().unwrap();
    let names = untrained
        .iter()
        .map(|path| path.as_str().unwrap().rsplit('/').next());
    assert_eq!(names.collect::<Vec<_>>(), [Some("libown.so"), Some("tool")]);
}

/// The programs in the place of compilers have to lie somewhere, and makefiles do not quote their path.
#[test]
fn a_home_may_have_spaces_and_has_to_be_writable() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let build = [
        "--",
        "sh",
        "-c",
        "test \"$CCACHE_DISABLE\" = 1 && $CC -O2 main.c -o app",
    ];
    let arguments = [
        &["--train", "./app 1000", "--clean", "rm -f app"],
        &build[..],
    ]
    .concat();
    let spaces = with(dir, &llvm, &arguments, |job| {
        job.env("XDG_CACHE_HOME", dir.join("my cache"))
    });
    assert_eq!(spaces.status.code(), Some(0), "{}", said(&spaces));
    assert!(
        said(&spaces).contains("merged 1 of 1 raw profiles"),
        "{}",
        said(&spaces)
    );
    let file = with(dir, &llvm, &arguments, |job| {
        job.env("XDG_CACHE_HOME", dir.join("main.c"))
    });
    let none = with(dir, &llvm, &arguments, |job| {
        job.env_remove("XDG_CACHE_HOME").env_remove("HOME")
    });
    for (output, words) in [
        (file, "main.c/profkit"),
        (none, "neither XDG_CACHE_HOME nor HOME names a folder"),
    ] {
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("take the place of compilers cannot be written: "),
            "{text}"
        );
        assert!(
            text.contains(words) && text.contains("hint: let XDG_CACHE_HOME be"),
            "{text}"
        );
    }
}

#[test]
fn a_build_that_was_configured_for_another_clang_ends_with_an_error() {
    let llvm = require_or_skip!(22);
    let older = require_or_skip!(19);
    let folder = in_c();
    let dir = folder.path();
    let build =
        "test -f configured || echo \"$CC\" > configured; $(cat configured) -O2 main.c -o app";
    let arguments = [
        "--train",
        "./app 1000",
        "--clean",
        "rm -f app",
        "--",
        "sh",
        "-c",
        build,
    ];
    let output = pgo(dir, &llvm, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = pgo(dir, &older, &arguments);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("profkit pgo: this build was configured for "),
        "{text}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_job_that_a_signal_ends_removes_its_files_and_says_what_is_left() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    fs::create_dir(dir.join("temporary")).unwrap();
    // Ctrl-C in a terminal is for the training as well, which ends before the job does.
    for (signal, number, whom) in [("INT", 2, "$PPID"), ("TERM", 15, "$PPID"), ("INT", 2, "0")] {
        let train = format!("kill -{signal} {whom}; sleep 1");
        // The test may run in a process that ignores signals, as background commands of shells do.
        let mut job = Command::new("env");
        job.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_profkit")]);
        prepared(&mut job, dir, &llvm, &["--train", &train, "--", "make"]);
        job.env("TMPDIR", dir.join("temporary")).process_group(0);
        let output = job.output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.signal(), Some(number), "{text}");
        let words = format!("error: ended by SIG{signal}: the programs that the build has left");
        assert!(text.contains(&words), "{text}");
        let left = fs::read_dir(dir.join("temporary")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(
            !left
                .iter()
                .any(|name| name.to_string_lossy().starts_with("profkit-pgo-")),
            "{left:?}"
        );
    }
}

#[test]
fn programs_elsewhere_are_found_by_the_training_or_not_measured() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let tree = dir.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::create_dir(dir.join("elsewhere")).unwrap();
    fs::write(tree.join("main.c"), MAIN).unwrap();
    let build = ["--", "sh", "-c", "$CC -O2 main.c -o ../elsewhere/app"];
    let named = [
        "--train",
        "../elsewhere/app 1000",
        "--bench",
        "cd ../elsewhere && ./app 5",
        "--runs",
        "1",
    ];
    let output = pgo(&tree, &llvm, &[&named[..], &build].concat());
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("share of all counts       100.0%") && text.contains("times as fast"),
        "{text}"
    );
    let hidden = ["--train", "cd ../elsewhere && ./app 1000"];
    let output = pgo(&tree, &llvm, &[&hidden[..], &build].concat());
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("whether it was compiled with the profile is not known"),
        "{text}"
    );
    let output = pgo(
        &tree,
        &llvm,
        &[&hidden[..], &["--bench", "true"], &build].concat(),
    );
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("--bench has nothing to exchange\nhint: start profkit in the folder"),
        "{text}"
    );
}

const BUILD_SCRIPT: &str = r#"
use std::process::Command;
fn main() {
    println!("cargo:rerun-if-env-changed=CFLAGS");
    let folder = std::env::var("OUT_DIR").unwrap();
    let (object, archive) = (format!("{folder}/hot.o"), format!("{folder}/libhot.a"));
    let flags = std::env::var("CFLAGS").unwrap_or_default();
    let mut compiler = Command::new(std::env::var("CC").unwrap());
    compiler.args(flags.split_whitespace()).args(["-O2", "-c", "hot.c", "-o", &object]);
    assert!(compiler.status().unwrap().success());
    assert!(Command::new("ar").args(["crs", &archive, &object]).status().unwrap().success());
    println!("cargo:rustc-link-search={folder}\ncargo:rustc-link-lib=static=hot");
}
"#;

/// The variables whose words build scripts cut at spaces have no path of profkit.
#[test]
fn c_in_build_scripts_is_trained_in_folders_with_spaces() {
    let llvm = require_or_skip!(22);
    if on_path("cargo").is_none() || on_path("ar").is_none() {
        skip("no cargo, or no ar");
        return;
    }
    let folder = in_c();
    let dir = folder.path().join("a tree");
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::write(
        dir.join("Cargo.toml"),
        "[package]\nname = \"hot\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    fs::write(dir.join("build.rs"), BUILD_SCRIPT).unwrap();
    fs::write(
        dir.join("hot.c"),
        "long hot_c(long n) { long s = 0; for (long i = 0; i < n; i++) s += i % 3; return s; }\n",
    )
    .unwrap();
    fs::write(dir.join("src/main.rs"), "extern \"C\" { fn hot_c(n: i64) -> i64; }\nfn main() { println!(\"{}\", unsafe { hot_c(1000) }); }\n").unwrap();
    let run = |build: &[&str]| {
        let arguments = [
            &[
                "--train",
                "target/release/hot",
                "--keep",
                "my profiles",
                "--",
            ],
            build,
        ]
        .concat();
        with(&dir, &llvm, &arguments, |job| {
            job.env_remove("CARGO_TARGET_DIR")
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .env_remove("CFLAGS")
        })
    };
    let output = run(&["cargo", "build", "--release"]);
    let text = said(&output);
    if text.contains("have different versions") {
        skip("this rustc and clang 22 write different raw profiles");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    let mut show = Command::new(llvm.profdata());
    show.args([
        "show",
        "--function=hot_c",
        "--counts",
        "my profiles/merged.profdata",
    ])
    .current_dir(&dir);
    let show = String::from_utf8(show.output().unwrap().stdout).unwrap();
    assert!(show.contains("1000"), "{show}");
    assert!(!has_counters(&dir.join("target/release/hot")));
    // Flags that cargo would get from its command line alone cannot be kept.
    let output = run(&[
        "cargo",
        "build",
        "--config",
        "build.rustflags=['-Cdebuginfo=1']",
    ]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("has rustflags, which would be lost")
            && text.contains("hint: give the flags in RUSTFLAGS"),
        "{text}"
    );
    // A compiler for one target comes before CC.
    let arguments = ["--dry-run", "--train", "x", "--", "cargo", "build"];
    let output = with(&dir, &llvm, &arguments, |job| {
        job.env("CC_x86_64_unknown_linux_gnu", "mine")
    });
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("warning: C and C++ that build scripts compile by CC_x86_64_unknown_linux_gnu=mine have no profile"),
        "{text}"
    );
    // A toolchain that is named is the one that is asked for its LLVM.
    let tools = dir.join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(
        tools.join("rustc"),
        "#!/bin/sh\ntest \"$1\" = +mine || exit 1\necho 'LLVM version: 14.0.6'\n",
    )
    .unwrap();
    fs::set_permissions(tools.join("rustc"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(
        std::iter::once(tools).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let arguments = ["--dry-run", "--train", "x", "--", "cargo", "+mine", "build"];
    let output = with(&dir, &llvm, &arguments, |job| {
        job.env("PATH", path.unwrap()).env_remove("RUSTC")
    });
    let text = said(&output);
    assert!(
        text.contains("of rustc (LLVM 14) have different versions"),
        "{text}"
    );
}
