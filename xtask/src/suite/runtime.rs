//! `cargo xtask runtime-suite`: runs the tests of LLVM's profile runtime (compiler-rt/test/profile) with LLVM's runtime
//! and with profkit's runtime. A test that passes with LLVM's runtime must pass with profkit's.
//!
//! A test compiles and runs programs, and checks their profiles and messages. clang links programs with the runtime in
//! its resource folder. So each run has its own resource folder: it has links to everything in clang's folder except
//! the runtime.
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use profkit_testkit::Llvm;

use super::lit::{self, Comparison};
use super::{source, verdict};
use crate::steps::built_profkit;

/// The release of clang, of its tools and of its runtime. It is the release of the tests.
const RELEASE: u32 = 19;

/// The beginning of the runtime's file name in clang's resource folder.
const RUNTIME: &str = "libclang_rt.profile";

/// Runs the tests with both runtimes.
pub fn run(filter: Option<&str>) -> Result<()> {
    let programs = lit::programs()?;
    let llvm = Llvm::find(RELEASE)
        .with_context(|| format!("clang-{RELEASE} and llvm-{RELEASE} are not installed"))?;
    let tests = source::fetched()?.join("compiler-rt/test/profile");
    let profkit = built_profkit()?;
    let run = |label: &str, ours: Option<&Path>| {
        let work = source::folder().join("runtime").join(label);
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        let resources = resources(&llvm, &work.join("resources"), |place| match ours {
            Some(profkit) => {
                let status = Command::new(profkit)
                    .args(["runtime", "--for", &format!("clang-{RELEASE}"), "-o"])
                    .arg(place)
                    .status()?;
                ensure!(status.success(), "profkit runtime: {status}");
                Ok(true)
            }
            None => Ok(false),
        })?;
        let tools = work.join("tools");
        fs::create_dir(&tools)?;
        symlink(programs.join("lld"), tools.join("ld.lld"))?;
        let setup = Setup {
            clang: llvm.clang(),
            resources: &resources,
            path: std::env::join_paths([&tools, &lit::folder_of(llvm.profdata())?, &programs])?
                .into_string()
                .ok()
                .context("the path of LLVM is not text")?,
            tests: &tests,
            out: &work.join("out"),
        };
        lit::run(&programs, &work, &setup.configuration()?, filter)
    };
    let with_llvm = run("llvm", None)?;
    let with_profkit = run("profkit", Some(&profkit))?;
    let comparison = Comparison {
        tests: "tests of compiler-rt 19",
        theirs: "the C runtime",
        ours: "profkit's",
        page: include_str!("../../../docs/formats/runtime.md"),
    };
    verdict(
        with_llvm.len(),
        &comparison.report(&with_llvm, &with_profkit),
    )
}

/// Makes a resource folder for clang, with links to all parts of clang's own folder. For the profile runtime of x86-64,
/// `replace` is called with the path of the file. If `replace` writes a file there, it returns `true`, and no link is
/// made.
fn resources(
    llvm: &Llvm,
    folder: &Path,
    replace: impl Fn(&Path) -> Result<bool>,
) -> Result<PathBuf> {
    let output = Command::new(llvm.clang())
        .arg("-print-resource-dir")
        .output()?;
    let own = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
    let libraries = own.join("lib");
    fs::create_dir_all(folder.join("lib"))?;
    for entry in fs::read_dir(&own)? {
        let entry = entry?;
        if entry.file_name() != "lib" {
            symlink(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    let mut found = false;
    for system in fs::read_dir(&libraries)? {
        let system = system?;
        let place = folder.join("lib").join(system.file_name());
        fs::create_dir(&place)?;
        for file in fs::read_dir(system.path())? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let place = place.join(&name);
            let is_runtime =
                name.starts_with(RUNTIME) && file.path().to_string_lossy().contains("x86_64");
            found |= is_runtime;
            if !(is_runtime && replace(&place)?) {
                symlink(file.path(), place)?;
            }
        }
    }
    ensure!(
        found,
        "{RUNTIME}-x86_64.a is not below {}: install libclang-rt-{RELEASE}-dev",
        libraries.display()
    );
    Ok(folder.to_path_buf())
}

/// The values from which lit's configuration is made.
struct Setup<'a> {
    clang: &'a Path,
    /// clang's resource folder.
    resources: &'a Path,
    /// The value of `PATH`: the folders with programs that tests call.
    path: String,
    tests: &'a Path,
    /// The folder for files that the tests write.
    out: &'a Path,
}

/// The modes in which tests instrument programs: the word in a test, and clang's option. Each mode has a second form in
/// which a file name follows after `=`.
const MODES: [(&str, &str); 3] = [
    ("profgen", "-fprofile-instr-generate"),
    ("pgogen", "-fprofile-generate"),
    ("cspgogen", "-fcs-profile-generate"),
];

/// The modes in which tests use profiles: the word in a test, and clang's option.
const USES: [(&str, &str); 2] = [
    ("profuse", "-fprofile-instr-use"),
    ("pgouse", "-fprofile-use"),
];

impl Setup<'_> {
    /// Returns a configuration for lit. compiler-rt's own configuration needs a configured build of LLVM.
    fn configuration(&self) -> Result<String> {
        let quoted = |text: &str| serde_json::to_string(text);
        let mut words = Vec::new();
        for (word, mode) in [("clang", ""), ("clangxx", " --driver-mode=g++")] {
            let compiler = format!(
                "{}{mode} -resource-dir {} -ldl",
                self.clang.display(),
                self.resources.display()
            );
            words.push((format!("%{word} "), format!("{compiler} ")));
            for (mode, option) in MODES {
                words.push((format!("%{word}_{mode} "), format!("{compiler} {option} ")));
                words.push((format!("%{word}_{mode}="), format!("{compiler} {option}=")));
            }
            for (mode, option) in USES {
                words.push((format!("%{word}_{mode}="), format!("{compiler} {option}=")));
            }
            words.push((
                format!("%{word}_lto_profgen="),
                format!("{compiler} -fuse-ld=lld -flto {}=", MODES[0].1),
            ));
        }
        words.push(("%shared_lib_flag".into(), "-shared".into()));
        words.push(("%run ".into(), String::new()));
        words.push(("%expect_crash ".into(), "not --crash ".into()));
        let mut text = format!(
            "import lit.formats, os\n\
             config.name = 'profile'\n\
             config.test_format = lit.formats.ShTest(True)\n\
             config.suffixes = ['.c', '.cpp', '.ll', '.test']\n\
             config.excludes = ['Inputs']\n\
             config.test_source_root = {}\n\
             config.test_exec_root = {}\n\
             config.environment['PATH'] = os.pathsep.join([{}, os.environ['PATH']])\n\
             config.environment['LC_ALL'] = 'C'\n\
             config.available_features.update({})\n\
             config.host_os = 'Linux'\n\
             config.have_curl = True\n\
             config.gold_executable = '/usr/bin/ld.gold'\n\
             config.clang = {}\n",
            quoted(&self.tests.to_string_lossy())?,
            quoted(&self.out.to_string_lossy())?,
            quoted(&self.path)?,
            serde_json::to_string(&FEATURES)?,
            quoted(&self.clang.to_string_lossy())?,
        );
        for (word, meaning) in words {
            writeln!(
                text,
                "config.substitutions.append(({}, {}))",
                quoted(&word)?,
                quoted(&meaning)?
            )?;
        }
        Ok(text)
    }
}

/// What tests may require.
const FEATURES: [&str; 10] = [
    "linux",
    "target=x86_64-pc-linux-gnu",
    "x86_64-linux",
    "shell",
    "zlib",
    "lld",
    "lld-available",
    "lto",
    "binutils_lto",
    "host-byteorder-little-endian",
];
