//! Tests `profkit mip cargo` on a workspace with a program, a library, a build script, a procedural macro, and a
//! dependency that is not a member of the workspace. The functions that ran must be the same as with rustc's own
//! instrumentation.
use profkit_testkit::{links_c, or_skip, short_or_whole, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

/// The files of the workspace. The program has functions of each kind: generic functions, closures, trait methods,
/// drops, and functions of other modules. It calls some functions of each kind, and never calls others.
const FILES: &[(&str, &str)] = &[
    (
        "work/Cargo.toml",
        "[workspace]\nmembers = [\"app\", \"util\", \"seven\"]\nresolver = \"2\"\n",
    ),
    (
        "work/app/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nutil = { path = \"../util\" }\nseven = { path = \"../seven\" }\nother = { path = \"../../other\" }\n\
         [build-dependencies]\nutil = { path = \"../util\" }\n",
    ),
    (
        "work/app/build.rs",
        "fn main() { println!(\"cargo::rustc-env=NUMBER={}\", util::twice(4)); }\n",
    ),
    (
        "work/app/src/main.rs",
        "mod shapes;\nuse shapes::{Round, Shape, Square};\n\
         fn main() {\n    let n: u32 = env!(\"NUMBER\").parse().unwrap();\n    let long = std::env::args().count() > 9;\n    \
         let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(n)), Box::new(Square(1))];\n    \
         let area: u32 = shapes.iter().map(|shape| shape.area()).sum();\n    \
         if long { never(Box::new(Round(n))); }\n    \
         let worker = std::thread::spawn(move || util::generic(u64::from(n)));\n    \
         println!(\"{} {} {}\", area + seven::seven!(), worker.join().unwrap(), other::outside(n));\n}\n\
         fn never(shape: Box<dyn Shape>) { println!(\"{} {}\", shape.area(), util::generic(1.5)); }\n",
    ),
    (
        "work/app/src/shapes.rs",
        "pub trait Shape { fn area(&self) -> u32; }\npub struct Square(pub u32);\npub struct Round(pub u32);\n\
         impl Shape for Square { fn area(&self) -> u32 { self.0 * self.0 } }\n\
         impl Shape for Round { fn area(&self) -> u32 { self.0 * self.0 * 3 } }\n\
         impl Drop for Square { fn drop(&mut self) { util::twice(self.0); } }\n",
    ),
    (
        "work/util/Cargo.toml",
        "[package]\nname = \"util\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    (
        "work/util/src/lib.rs",
        "/// ```\n/// assert_eq!(util::twice(2), 4);\n/// ```\n#[inline(never)]\npub fn twice(n: u32) -> u32 { n * 2 }\n\
         pub fn generic<T: std::ops::Add<Output = T> + Copy>(n: T) -> T { n + n }\n\
         #[cfg(test)]\nmod tests {\n    #[test]\n    fn doubles() { assert_eq!(super::twice(2), 4); }\n}\n",
    ),
    (
        "work/seven/Cargo.toml",
        "[package]\nname = \"seven\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\nproc-macro = true\n\
         [dependencies]\nutil = { path = \"../util\" }\n",
    ),
    (
        "work/seven/src/lib.rs",
        "#[proc_macro]\npub fn seven(_: proc_macro::TokenStream) -> proc_macro::TokenStream {\n    \
         (util::twice(3) + 1).to_string().parse().unwrap()\n}\n",
    ),
    (
        "other/Cargo.toml",
        "[package]\nname = \"other\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    (
        "other/src/lib.rs",
        "#[inline(never)]\npub fn outside(n: u32) -> u32 { n + 1 }\n",
    ),
];
const PRINTED: &str = "72 16 9\n";

/// A copy of the workspace in a folder of its own.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in FILES {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        Workspace(folder)
    }

    fn work(&self) -> std::path::PathBuf {
        self.0.path().join("work")
    }

    /// A command in the workspace, without the settings of the cargo that runs this test.
    fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command
            .current_dir(self.work())
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_COLOR", "never");
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_BUILD_TARGET_DIR",
            "CARGO_INCREMENTAL",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTDOC",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn mip_cargo(&self, options: &[&str], cargo: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(PROFKIT);
        command
            .args(["mip", "cargo"])
            .args(options)
            .arg("--")
            .args(cargo);
        command.envs(variables.iter().copied());
        command.output().expect("started")
    }

    /// Runs a program of the workspace, and returns its functions with their number of calls, by demangled name. If
    /// several functions have one name, the calls are added.
    fn calls(&self, program: &str) -> BTreeMap<String, u64> {
        let mut run = self.command(self.work().join(program));
        let output = succeed(run.env("LLVM_MIP_PROFILE_FILENAME", "app.mipraw"));
        assert_eq!(output, PRINTED);
        let profkit = |words: &[&str]| succeed(self.command(PROFKIT).arg("mip").args(words));
        profkit(&["create", "-p", "app.mip", program]);
        profkit(&["merge", "--strict", "-p", "app.mip", "app.mipraw"]);
        let shown = profkit(&["show", "-p", "app.mip", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let mut calls = BTreeMap::new();
        for function in json["functions"].as_array().expect("functions") {
            let name = function["demangled"]
                .as_str()
                .or(function["function"].as_str());
            *calls.entry(name.expect("a name").to_owned()).or_default() +=
                function["calls"].as_u64().expect("calls");
        }
        calls
    }
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[track_caller]
fn built(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// The files below a folder whose names have one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        if path.is_dir() {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(name);
        }
    }
}

/// The functions of the workspace's crates and whether they ran, as rustc's own instrumentation says.
fn covered_by_rustc(workspace: &Workspace) -> Option<BTreeMap<String, bool>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = workspace
        .command(cargo)
        .args(["build", "--target-dir", "coverage"])
        .env("RUSTFLAGS", "-Cinstrument-coverage")
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .output()
        .expect("started");
    if !output.status.success()
        && String::from_utf8_lossy(&output.stderr).contains("profiler_builtins")
    {
        skip("rustc without the library profiler_builtins");
        return None;
    }
    built(&output);
    let mut run = workspace.command(workspace.work().join("coverage/debug/app"));
    succeed(run.env("LLVM_PROFILE_FILE", "app.profraw"));
    let shown = succeed(workspace.command(PROFKIT).args([
        "show",
        "app.profraw",
        "--functions",
        "--format",
        "json",
    ]));
    let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let mut covered = BTreeMap::new();
    for function in json["functions"].as_array().expect("functions") {
        let name = function["demangled"]
            .as_str()
            .or(function["function"].as_str());
        let ran = function["max"].as_u64().expect("a count") > 0;
        *covered
            .entry(name.expect("a name").to_owned())
            .or_insert(false) |= ran;
    }
    Some(covered)
}

/// The builds differ in the number of codegen units, the assembler (GNU as or clang), the linker (rustc's or GNU ld),
/// the mangling, and optimisation with and without link-time optimisation. In all of them, the functions of the
/// workspace are counted, the functions of the dependency are not, and no temporary file is left.
#[test]
fn programs_of_all_kinds_of_builds() {
    or_skip!(links_c("cc", &[]));
    let workspace = Workspace::new();
    let lto = |kind| {
        [
            ("CARGO_PROFILE_RELEASE_LTO", kind),
            ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
        ]
    };
    let clang = [("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "clang-22")];
    let v0 = [(
        "RUSTFLAGS",
        "-Csymbol-mangling-version=v0 -Clinker-features=-lld -Cdwarf-version=5",
    )];
    let has_clang = cfg!(target_arch = "x86_64") && {
        let links = links_c("clang-22", &[]);
        links.as_ref().err().is_none_or(|reason| {
            skip(reason);
            false
        })
    };
    let (thin, fat) = (lto("thin"), lto("fat"));
    let builds = [
        (false, &[][..]),
        (false, &[("RUSTFLAGS", "-Ccodegen-units=8")]),
        (false, if has_clang { &clang } else { &[] }),
        (false, &v0),
        (true, &[]),
        (true, &thin),
        (true, &fat),
    ];
    // Link-time optimisation compiles the standard library with the program, which takes a minute on a busy machine.
    let count = short_or_whole(builds.len() - 2, builds.len());
    for (release, variables) in builds.into_iter().take(count) {
        let mut words = vec!["build"];
        words.extend(release.then_some("--release"));
        built(&workspace.mip_cargo(&["--mode", "calls"], &words, variables));
        let calls = workspace.calls(if release {
            "target/release/app"
        } else {
            "target/debug/app"
        });
        let of = |name: &str| calls.get(name).copied();
        let context = format!("{variables:?} {calls:?}");
        assert_eq!(of("app::main"), Some(1), "{context}");
        assert_eq!(of("app::never").unwrap_or(0), 0, "{context}");
        if variables.contains(&("CARGO_PROFILE_RELEASE_LTO", "fat")) {
            // All code of the program is in one codegen unit, and rustc inlines functions across crates.
            continue;
        }
        assert_eq!(of("util::twice"), Some(2), "{context}");
        assert_eq!(of("other::outside"), None, "{context}");
        if release {
            continue;
        }
        assert_eq!(
            of("<app::shapes::Square as app::shapes::Shape>::area"),
            Some(2),
            "{context}"
        );
        assert_eq!(
            of("<app::shapes::Round as app::shapes::Shape>::area"),
            Some(0),
            "{context}"
        );
    }
    let mut left = Vec::new();
    files(&workspace.work(), &[".s", ".mipraw"], &mut left);
    left.retain(|name| !name.ends_with("work/app.mipraw"));
    assert_eq!(left, [""; 0]);
    assert!(
        !workspace
            .work()
            .join("target/debug/deps")
            .read_dir()
            .expect("a folder")
            .any(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .starts_with("profkit")
            })
    );
}

/// A function that both profkit and rustc know was entered according to both, or according to neither.
#[test]
fn coverage_is_that_of_rustc() {
    or_skip!(links_c("cc", &[]));
    let workspace = Workspace::new();
    let Some(expected) = covered_by_rustc(&workspace) else {
        return;
    };
    // rustc uses the mangling v0 when it instruments code itself. With v0, the types of a generic function are part of
    // its name.
    let mangling = [("RUSTFLAGS", "-Csymbol-mangling-version=v0")];
    built(&workspace.mip_cargo(
        &["--mode", "calls", "--dependencies"],
        &["build"],
        &mangling,
    ));
    let calls = workspace.calls("target/debug/app");
    let mut compared = BTreeSet::new();
    for (name, covered) in &expected {
        if let Some(&count) = calls.get(name) {
            assert_eq!(count > 0, *covered, "{name}: {count} calls");
            compared.insert(name.as_str());
        }
    }
    for name in [
        "app::main",
        "app::main::{closure#0}",
        "app::main::{closure#1}",
        "util::generic::<f64>",
        "util::generic::<u64>",
        "app::never",
        "<app::shapes::Square as app::shapes::Shape>::area",
        "<app::shapes::Round as app::shapes::Shape>::area",
        "<app::shapes::Square as core::ops::drop::Drop>::drop",
        "util::twice",
        "other::outside",
    ] {
        assert!(
            compared.contains(name),
            "{name}: {compared:?}\n{expected:?}\n{calls:?}"
        );
    }
}

/// If an option changes, the members of the workspace are compiled again. If no option changes, nothing is compiled.
/// Builds without profkit have artifacts of their own.
#[test]
fn builds_with_other_options() {
    or_skip!(links_c("cc", &[]));
    let workspace = Workspace::new();
    let compiled = |output: Output| {
        built(&output);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Compiling "));
        lines
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect::<BTreeSet<_>>()
    };
    let members = ["app", "seven", "util"];
    let all = ["app", "other", "seven", "util"];
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let build = |options: &[&str]| compiled(workspace.mip_cargo(options, &["build"], &[]));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let plain = || {
        compiled(
            workspace
                .command(&cargo)
                .arg("build")
                // Cargo compiles path dependencies again if CARGO_INCREMENTAL changes. `profkit mip cargo` sets it, so
                // the plain build must set it too.
                .env("CARGO_INCREMENTAL", "0")
                .output()
                .expect("started"),
        )
    };
    assert_eq!(plain(), set(&all));
    assert_eq!(build(&[]), set(&members));
    assert_eq!(build(&[]), set(&[]));
    assert_eq!(plain(), set(&[]));
    assert_eq!(build(&["--mode", "calls"]), set(&members));
    assert_eq!(
        workspace.calls("target/debug/app").get("other::outside"),
        None
    );
    std::fs::write(workspace.work().join("list"), "[mip]\nfun:*twice*\n").expect("written");
    let listed = ["--mode", "calls", "--ignorelist", "list"];
    assert_eq!(build(&listed), set(&members));
    assert_eq!(workspace.calls("target/debug/app").get("util::twice"), None);
    std::fs::write(workspace.work().join("list"), "[mip]\nfun:*area*\n").expect("written");
    assert_eq!(build(&listed), set(&members), "the list has changed");
    assert_eq!(
        workspace.calls("target/debug/app").get("util::twice"),
        Some(&2)
    );
    assert_eq!(build(&["--mode", "calls", "--dependencies"]), set(&all));
    assert_eq!(
        workspace.calls("target/debug/app").get("other::outside"),
        Some(&1)
    );
    assert_eq!(build(&["--mode", "calls", "--dependencies"]), set(&[]));
}

/// Calls in unit tests are counted. Documentation tests are linked with instrumented crates, but write no raw file.
#[test]
fn cargo_test() {
    or_skip!(links_c("cc", &[]));
    let workspace = Workspace::new();
    let raw = workspace.work().join("%h.mipraw").display().to_string();
    let output = workspace.mip_cargo(
        // The output options of profkit. Each call of profkit that cargo starts gets them too.
        &["--color=never", "--no-pager"],
        &["test", "-p", "util"],
        &[("LLVM_MIP_PROFILE_FILENAME", &raw)],
    );
    built(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("1 passed; 0 failed").count(), 2, "{text}");
    let mut raws = Vec::new();
    files(&workspace.work(), &[".mipraw"], &mut raws);
    assert_eq!(raws.len(), 1, "{raws:?}");
}

/// If something cannot be instrumented, an error says what to do.
#[test]
fn refusals() {
    or_skip!(links_c("cc", &[]));
    let workspace = Workspace::new();
    let failure = |variables: &[(&str, &str)]| {
        let output = workspace.mip_cargo(&[], &["build", "-j1"], variables);
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = text
            .lines()
            .map(|line| line.trim_start_matches("= note: ").trim_start());
        let of_profkit =
            |line: &&str| line.starts_with("error: profkit") || line.starts_with("hint: ");
        let mut found: Vec<&str> = lines.filter(of_profkit).collect();
        found.dedup();
        assert!(!found.is_empty(), "{text}");
        found.join("\n")
    };
    insta::assert_snapshot!(failure(&[("RUSTFLAGS", "-Csplit-debuginfo=packed")]), @r"
    error: profkit mip cargo: -Csplit-debuginfo=packed: the debug information would be in files that are made without the instrumentation
    hint: keep it in the program: set CARGO_PROFILE_DEV_SPLIT_DEBUGINFO=off (or that of your profile)
    ");
    insta::assert_snapshot!(failure(&[("RUSTFLAGS", "-Clinker-plugin-lto -Cembed-bitcode=yes")]), @r#"
    error: profkit mip cargo: -Clinker-plugin-lto: the linker makes the machine code, so there is no assembly of it
    hint: use lto = "thin" or lto = "fat" in the profile: then rustc makes the machine code
    "#);
}
