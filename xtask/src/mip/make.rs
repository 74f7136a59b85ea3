//! Builds the real programs by their own makefiles, and runs the programs and their tests.
use super::packages::{BZIP2, LUA, LZ4, Package, RE2, Sources, XXHASH, ZLIB, ZSTD};
use anyhow::{Context, Result, bail};
use profkit_testkit::program::MipMode;
use profkit_testkit::{measure, repo_root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler, with the words that come before and after its name on a command line.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The name of the compiler in tables.
    pub label: String,
    /// The words that start the C compiler.
    pub cc: String,
    cxx: String,
    /// Options for compiling.
    flags: Vec<String>,
    link_flags: Vec<String>,
}

impl Toolchain {
    /// clang or gcc with a version number, without `profkit`: `clang-22`, `gcc-12`.
    pub fn plain(compiler: &str) -> Toolchain {
        let cxx = if let Some(number) = compiler.strip_prefix("clang-") {
            format!("clang++-{number}")
        } else {
            compiler.replace("gcc", "g++")
        };
        Toolchain {
            label: format!("plain {compiler}"),
            cc: compiler.to_owned(),
            cxx,
            flags: Vec::new(),
            link_flags: Vec::new(),
        }
    }

    /// clang or gcc with a version number, started by `profkit mip cc`.
    pub fn mip(compiler: &str, profkit: &Path, mode: MipMode) -> Toolchain {
        Toolchain::mip_with(compiler, profkit, mode.name, &mode.arguments.join(" "))
    }

    /// The same with any options of `profkit mip cc`.
    pub fn mip_with(compiler: &str, profkit: &Path, name: &str, options: &str) -> Toolchain {
        let plain = Toolchain::plain(compiler);
        let before = format!("{} mip cc {options} --", profkit.display());
        Toolchain {
            label: format!("{name} {compiler}"),
            cc: format!("{before} {}", plain.cc),
            cxx: format!("{before} {}", plain.cxx),
            ..plain
        }
    }

    /// Adds options for compiling and for linking.
    pub fn with(mut self, label: &str, flags: &[&str], link_flags: &[&str]) -> Toolchain {
        self.label = format!("{} {label}", self.label);
        self.flags
            .extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.link_flags
            .extend(link_flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    fn cc(&self, more: &str) -> String {
        format!("CC={}{more}", self.cc)
    }

    fn cxx(&self) -> String {
        format!("CXX={}", self.cxx)
    }

    /// The options for compiling.
    pub fn flags(&self) -> String {
        self.flags.join(" ")
    }

    fn link_flags(&self) -> String {
        let all: Vec<&str> = self
            .flags
            .iter()
            .chain(&self.link_flags)
            .map(String::as_str)
            .collect();
        all.join(" ")
    }
}

/// A program that is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Real {
    /// lua 5.4.
    Lua,
    /// zstd.
    Zstd,
    /// re2.
    Re2,
    /// The C++ program of this repository, `tests/programs/station`.
    Station,
    /// bzip2.
    Bzip2,
    /// lz4.
    Lz4,
    /// xxhsum.
    Xxhash,
    /// minigzip, a program of zlib.
    Zlib,
}

impl Real {
    /// The programs whose own tests are run.
    pub const USUAL: [Real; 4] = [Real::Lua, Real::Zstd, Real::Re2, Real::Station];
    /// All programs.
    pub const ALL: [Real; 8] = [
        Real::Lua,
        Real::Zstd,
        Real::Re2,
        Real::Station,
        Real::Bzip2,
        Real::Lz4,
        Real::Xxhash,
        Real::Zlib,
    ];
    /// The name of the program in tables.
    pub fn name(self) -> &'static str {
        match self {
            Real::Lua => "lua",
            Real::Zstd => "zstd",
            Real::Re2 => "re2",
            Real::Station => "station",
            Real::Bzip2 => "bzip2",
            Real::Lz4 => "lz4",
            Real::Xxhash => "xxhsum",
            Real::Zlib => "minigzip",
        }
    }

    fn package(self) -> Option<Package> {
        match self {
            Real::Lua => Some(LUA),
            Real::Zstd => Some(ZSTD),
            Real::Re2 => Some(RE2),
            Real::Station => None,
            Real::Bzip2 => Some(BZIP2),
            Real::Lz4 => Some(LZ4),
            Real::Xxhash => Some(XXHASH),
            Real::Zlib => Some(ZLIB),
        }
    }

    /// Builds the program in a fresh copy of its sources, without the programs that only its tests need. Returns the
    /// warnings of linkers: the lines of standard error that contain `warning` and the name of a linker.
    pub fn build(self, sources: &Sources, tools: &Toolchain, tree: &Path) -> Result<Vec<String>> {
        match self.package() {
            Some(package) => sources.copy(package, tree)?,
            None => super::fresh(tree)?,
        }
        let log = match self {
            Real::Lua => make(
                tree,
                &[
                    "-C",
                    "src",
                    "linux",
                    &tools.cc(" -std=gnu99"),
                    &format!("MYCFLAGS={}", tools.flags()),
                    &format!("MYLDFLAGS={}", tools.link_flags()),
                ],
            )?,
            Real::Zstd => make(
                tree,
                &[
                    "-C",
                    "programs",
                    "zstd",
                    &tools.cc(""),
                    &format!("MOREFLAGS={}", tools.flags()),
                    &format!("LDFLAGS={}", tools.link_flags()),
                ],
            )?,
            Real::Re2 => make_re2(tree, tools, &["obj/libre2.a"])? + &regex_bench(tree, tools)?,
            Real::Station => station(tree, tools)?,
            Real::Bzip2 => make(
                tree,
                &[
                    "bzip2",
                    &tools.cc(""),
                    &format!("CFLAGS=-O2 -D_FILE_OFFSET_BITS=64 {}", tools.flags()),
                    &format!("LDFLAGS={}", tools.link_flags()),
                ],
            )?,
            Real::Lz4 => make(
                tree,
                &[
                    "-C",
                    "programs",
                    "lz4",
                    &tools.cc(""),
                    &format!("MOREFLAGS={}", tools.flags()),
                    &format!("LDFLAGS={}", tools.link_flags()),
                ],
            )?,
            Real::Xxhash => make(
                tree,
                &[
                    "xxhsum",
                    &tools.cc(""),
                    &format!("CFLAGS=-O3 {}", tools.flags()),
                    &format!("LDFLAGS={}", tools.link_flags()),
                ],
            )?,
            Real::Zlib => {
                let mut configure = Command::new("./configure");
                configure.arg("--static").current_dir(tree);
                configure.env("CC", &tools.cc);
                configure.env("CFLAGS", format!("-O3 {}", tools.flags()));
                configure.env("LDFLAGS", tools.link_flags());
                configure.env("LLVM_MIP_PROFILE_FILENAME", "/dev/null");
                logged(&mut configure)? + &make(tree, &["minigzip"])?
            }
        };
        Ok(log
            .lines()
            .filter(|line| line.contains("warning") && is_linker(line))
            .map(str::to_owned)
            .collect())
    }

    /// The path of the main program in a built tree.
    pub fn executable(self, tree: &Path) -> PathBuf {
        tree.join(match self {
            Real::Lua => "src/lua",
            Real::Zstd => "programs/zstd",
            Real::Re2 => "obj/regex_bench",
            Real::Station => "station",
            Real::Bzip2 => "bzip2",
            Real::Lz4 => "programs/lz4",
            Real::Xxhash => "xxhsum",
            Real::Zlib => "minigzip",
        })
    }

    /// The path of a binary that the program's own tests run.
    pub fn tested(self, tree: &Path) -> PathBuf {
        match self {
            Real::Re2 => tree.join("obj/test/re2_test"),
            _ => self.executable(tree),
        }
    }

    /// Returns command lines that use the program in the usual way, and not its tests. They are deterministic and use
    /// one thread each. With more `rounds` they take longer.
    pub fn workload(self, tree: &Path, rounds: u32) -> Result<Vec<Vec<String>>> {
        let program = self.executable(tree).display().to_string();
        let line = |arguments: &[&str]| {
            let mut all = vec![program.clone()];
            all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
            all
        };
        let count = |times: u32| (times * rounds).to_string();
        Ok(match self {
            Real::Lua => LUA_SCRIPTS
                .iter()
                .map(|(script, _)| {
                    let script = repo_root().join("tests/programs/lua").join(script);
                    line(&[&script.display().to_string(), &count(12)])
                })
                .collect(),
            Real::Zstd => {
                let corpus = corpus(tree, rounds)?;
                let packed = tree.with_extension("zst").display().to_string();
                vec![
                    line(&["-q", "-f", "--single-thread", "-1", &corpus, "-o", &packed]),
                    line(&["-q", "-t", "--single-thread", &packed]),
                    line(&["-q", "-f", "--single-thread", "-6", &corpus, "-o", &packed]),
                    line(&["-q", "-t", "--single-thread", &packed]),
                    line(&["-q", "-f", "--single-thread", "-13", &corpus, "-o", &packed]),
                ]
            }
            Real::Re2 => vec![line(&[&count(20)])],
            Real::Station => vec![line(&["run", &count(10_000), "1"]), line(&["explain"])],
            Real::Bzip2 => {
                let corpus = corpus(tree, rounds)?;
                let packed = format!("{corpus}.bz2");
                vec![
                    line(&["-k", "-f", "-q", "-9", &corpus]),
                    line(&["-t", &packed]),
                ]
            }
            Real::Lz4 => {
                let corpus = corpus(tree, rounds * 4)?;
                let packed = format!("{corpus}.lz4");
                vec![
                    line(&["-q", "-f", "-1", &corpus, &packed]),
                    line(&["-q", "-t", &packed]),
                    line(&["-q", "-f", "-9", &corpus, &packed]),
                    line(&["-q", "-t", &packed]),
                ]
            }
            Real::Xxhash => {
                let corpus = corpus(tree, rounds * 16)?;
                ["-H0", "-H1", "-H2", "-H3"]
                    .iter()
                    .map(|hash| line(&["-q", hash, &corpus]))
                    .collect()
            }
            Real::Zlib => {
                let corpus = corpus(tree, rounds)?;
                vec![line(&["-c", "-1", &corpus]), line(&["-c", "-9", &corpus])]
            }
        })
    }

    /// Runs the program's own tests. The raw profiles are merged below `raws`, an existing folder. The tests of zstd are
    /// `playTests.sh`, and with `whole` also its fuzzers. The tests of re2 are linked with the static library, and with
    /// `whole` a second time with the shared library.
    pub fn test(
        self,
        tools: &Toolchain,
        tree: &Path,
        raws: &Path,
        whole: bool,
    ) -> Result<Vec<String>> {
        let run = Run { tree, raws, whole };
        match self {
            Real::Lua => test_lua(&run),
            Real::Zstd => test_zstd(&run, tools),
            Real::Re2 => test_re2(&run, tools),
            Real::Station => test_station(&run),
            Real::Bzip2 | Real::Lz4 | Real::Xxhash | Real::Zlib => {
                bail!("the tests of {} are not run", self.name())
            }
        }
    }
}

/// Writes a text of `size` MiB to a file beside the tree. Returns the path of the file.
fn corpus(tree: &Path, size: u32) -> Result<String> {
    let path = tree.with_extension("corpus");
    std::fs::write(&path, super::corpus(size as usize * (1 << 20)))?;
    Ok(path.display().to_string())
}

fn is_linker(line: &str) -> bool {
    ["ld:", "ld.lld", "lld:", "ld.bfd", "ld.gold"]
        .iter()
        .any(|name| line.contains(name))
}

fn make(tree: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("make");
    // The makefiles call python3. They need the python3 of the system, which has their modules.
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .current_dir(tree)
        .env("PATH", format!("/usr/bin:/bin:{path}"))
        .env_remove("MAKEFLAGS")
        .arg("-j2")
        .args(arguments);
    logged(&mut command)
}

/// Runs a command and returns its standard output and standard error.
fn logged(command: &mut Command) -> Result<String> {
    let made = measure(command.stdin(std::process::Stdio::null()))
        .with_context(|| command.get_program().display().to_string())?;
    let log =
        String::from_utf8_lossy(&made.stdout).into_owned() + &String::from_utf8_lossy(&made.stderr);
    if !made.status.success() {
        bail!("{command:?}\n{}\n{}", made.status, super::last_lines(&log));
    }
    Ok(log)
}

fn make_re2(tree: &Path, tools: &Toolchain, targets: &[&str]) -> Result<String> {
    // As in Debian's build, re2's makefile generates the Unicode tables anew. The sources need C++14, because they use
    // parts of the language that C++17 removed.
    let cxx = tools.cxx();
    let flags = format!("CXXFLAGS=-O2 -std=c++14 {}", tools.flags());
    let link = format!("LDFLAGS={}", tools.link_flags());
    let mut arguments = vec!["REBUILD_TABLES=1", &cxx, &flags, &link];
    arguments.extend(targets);
    make(tree, &arguments).context("re2 needs the packages unicode-data and python3-six")
}

/// Builds some of re2's test programs in `obj/test`, in a tree that [`Real::build`] has built.
pub fn re2_tests(tree: &Path, tools: &Toolchain, names: &[&str]) -> Result<()> {
    let targets: Vec<String> = names
        .iter()
        .map(|name| format!("obj/test/{name}"))
        .collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    make_re2(tree, tools, &targets).map(|_| ())
}

/// Builds this repository's test driver and links it with re2's library.
fn regex_bench(tree: &Path, tools: &Toolchain) -> Result<String> {
    let source = repo_root().join("tests/programs/regex_bench.cpp");
    let compile = format!(
        "{} -O2 -std=c++14 {} -I. -pthread -c -o obj/regex_bench.o {}",
        tools.cxx,
        tools.flags(),
        source.display()
    );
    let link = format!(
        "{} -pthread -o obj/regex_bench obj/regex_bench.o obj/libre2.a {}",
        tools.cxx,
        tools.link_flags()
    );
    let mut log = String::new();
    for line in [compile, link] {
        log += &logged(Command::new("sh").current_dir(tree).args(["-c", &line]))?;
    }
    Ok(log)
}

fn station(tree: &Path, tools: &Toolchain) -> Result<String> {
    let folder = repo_root().join("tests/programs/station");
    let mut log = String::new();
    let mut objects = Vec::new();
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    sources.sort();
    for source in sources {
        let Some(stem) = source
            .file_stem()
            .filter(|_| source.extension().is_some_and(|e| e == "cpp"))
        else {
            continue;
        };
        let object = format!("{}.o", stem.to_string_lossy());
        let line = format!(
            "{} -O2 -std=c++17 {} -pthread -w -c {} -o {object}",
            tools.cxx,
            tools.flags(),
            source.display()
        );
        log += &logged(Command::new("sh").current_dir(tree).args(["-c", &line]))?;
        objects.push(object);
    }
    let line = format!(
        "{} -pthread -o station {} {}",
        tools.cxx,
        objects.join(" "),
        tools.link_flags()
    );
    log += &logged(Command::new("sh").current_dir(tree).args(["-c", &line]))?;
    Ok(log)
}

/// The folders for a run of tests: where the tests run, and where their raw profiles go.
struct Run<'a> {
    tree: &'a Path,
    raws: &'a Path,
    /// Whether the long form of the tests is run.
    whole: bool,
}

impl Run<'_> {
    /// Sets the variables that merge the profiles of all processes into one file per binary.
    fn prepared<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("LLVM_MIP_PROFILE_FILENAME", self.raws.join("%h-%m.mipraw"))
            .env("LLVM_PROFILE_FILE", self.raws.join("%m.profraw"))
    }

    fn logged(&self, command: &mut Command) -> Result<String> {
        logged(self.prepared(command))
    }
}

/// Runs the scripts of this repository and compares their output. Debian's package has none of lua's own tests.
fn test_lua(run: &Run<'_>) -> Result<Vec<String>> {
    let lua = run.tree.join("src/lua");
    let mut done = Vec::new();
    let said = run.logged(Command::new("make").current_dir(run.tree).arg("test"))?;
    if !said.contains("Lua 5.4") {
        bail!("make test printed no version: {said}");
    }
    done.push("make test".to_owned());
    for (script, expected) in LUA_SCRIPTS {
        let script = repo_root().join("tests/programs/lua").join(script);
        let said = run.logged(Command::new(&lua).arg(&script).arg("3"))?;
        if said.trim_end() != *expected {
            bail!("{}: {said:?} instead of {expected:?}", script.display());
        }
    }
    done.push(format!("{} scripts", LUA_SCRIPTS.len()));
    Ok(done)
}

/// The scripts in `tests/programs/lua`, each with its output after 3 rounds.
pub const LUA_SCRIPTS: &[(&str, &str)] = &[
    ("calls.lua", "calls\t118170753"),
    ("numbers.lua", "numbers\t9735\t-58851.844"),
    ("objects.lua", "objects\t392337"),
    ("strings.lua", "strings\t148894"),
];

fn test_zstd(run: &Run<'_>, tools: &Toolchain) -> Result<Vec<String>> {
    let cc = tools.cc("");
    let flags = format!("MOREFLAGS={}", tools.flags());
    let link = format!("LDFLAGS={}", tools.link_flags());
    let fuzzers: &[&str] = if run.whole {
        &["fuzzer", "zstreamtest", "poolTests"]
    } else {
        &[]
    };
    let mut arguments = vec!["-C", "tests", "datagen"];
    arguments.extend(fuzzers);
    arguments.extend([cc.as_str(), &flags, &link]);
    make(run.tree, &arguments)?;
    let tests = run.tree.join("tests");
    // These are the steps of `make check`, for the zstd that is already built.
    run.logged(
        Command::new("./playTests.sh")
            .current_dir(&tests)
            .env("ZSTD_BIN", "../programs/zstd")
            .env("DATAGEN_BIN", "./datagen"),
    )
    .context("playTests.sh")?;
    let mut done = vec!["playTests.sh".to_owned()];
    if !run.whole {
        return Ok(done);
    }
    for line in [
        "fuzzer -v -s17 -i60",
        "zstreamtest -v -s17 -i60",
        "zstreamtest --newapi -t1 -s17 -i60",
        "poolTests",
    ] {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        run.logged(
            Command::new(format!("./{program}"))
                .current_dir(&tests)
                .args(words),
        )
        .context(line)?;
        done.push(line.to_owned());
    }
    Ok(done)
}

fn test_re2(run: &Run<'_>, tools: &Toolchain) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let targets = [("static-test", "TESTS"), ("shared-test", "STESTS")];
    for (target, programs) in targets.into_iter().take(1 + usize::from(run.whole)) {
        // The test programs are compiled first, without the environment variables of the tests. The target for the
        // tests would compile them with these variables.
        let cxx = tools.cxx();
        let flags = format!("CXXFLAGS=-O2 -std=c++14 {}", tools.flags());
        let link = format!("LDFLAGS={}", tools.link_flags());
        let arguments = ["REBUILD_TABLES=1", &cxx, &flags, &link];
        let programs = format!("print-programs: $({programs})");
        make_with(run, &arguments, &programs, "print-programs")?;
        let mut command = Command::new("make");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(run.tree)
            .env("PATH", format!("/usr/bin:/bin:{path}"))
            .args(arguments)
            .arg(target);
        let said = run.logged(&mut command).context(target)?;
        if !said.contains("ALL TESTS PASSED.") {
            bail!("{target}: {}", super::last_lines(&said));
        }
        done.push(format!("{target} ({})", said.matches("PASS\n").count()));
    }
    Ok(done)
}

fn make_with(run: &Run<'_>, arguments: &[&str], rule: &str, target: &str) -> Result<String> {
    let mut all = vec!["--eval", rule];
    all.extend(arguments);
    all.push(target);
    make(run.tree, &all)
}

fn test_station(run: &Run<'_>) -> Result<Vec<String>> {
    let station = run.tree.join("station");
    for (arguments, expected) in STATION_RUNS {
        let said = run.logged(Command::new(&station).args(*arguments))?;
        if !said.contains(expected) {
            bail!(
                "station {}: {said:?} is without {expected:?}",
                arguments.join(" ")
            );
        }
    }
    Ok(vec![format!("{} runs", STATION_RUNS.len())])
}

/// The runs of station, the program with two phases: the arguments of each run, and a text that its output contains.
pub const STATION_RUNS: &[(&[&str], &str)] = &[
    (&["start"], "64 stages\nrefused: line 2 is no setting"),
    (&["run", "20000", "1"], "sum 18071820373898808784"),
    (&["run", "20000", "4"], "sum 18071820373898808784"),
    (&["explain"], "ordering 19 of "),
];
