//! `cargo xtask pgo-proof`: programs that nobody here wrote, built plainly, by `profkit pgo`, and by the commands that a
//! person would write instead. Same training, same benchmark, runs in turn; processor time, because it depends less on
//! what else the machine does.
use crate::bench::{machine, replace};
use crate::clients::install as client;
use crate::mip::packages::{LUA, NINJA, Package, SQLITE, Sources, ZSTD};
use crate::mip::{corpus, fresh, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::{Llvm, measure, repo_root, target_folder};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// lua, zstd, sqlite, ninja, ripgrep, orjson; all if none is given
    names: Vec<String>,
    /// How often the benchmark is run with each build
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Write the table of docs/performance.md
    #[arg(long, conflicts_with = "names")]
    table: bool,
}

/// Where sources come from.
#[derive(Clone, Copy)]
enum Origin {
    Debian(Package),
    /// A crate with its version.
    Crate(&'static str, &'static str),
    /// A source distribution of PyPI with its version.
    PyPi(&'static str, &'static str),
}

/// A program. Its commands are of the shell and run in its tree; the inputs are in the folder above.
struct Program {
    name: &'static str,
    /// For the table.
    what: &'static str,
    origin: Origin,
    /// What a user builds with.
    build: &'static str,
    /// What profkit pgo needs as `--clean`.
    clean: Option<&'static str>,
    /// The same build by hand: `$C` and `$RUST` are the flags of the profile.
    by_hand: &'static str,
    /// After each build, before its program is used.
    install: &'static str,
    training: &'static str,
    benchmark: &'static str,
    /// What the benchmark runs: a file or a folder.
    result: &'static str,
    /// Whether cargo-pgo builds it too.
    cargo_pgo: bool,
    /// What its sources, its build and its training need, beside clang and llvm-profdata: commands, and their packages in Debian.
    needs: &'static [(&'static str, &'static str)],
}

const DPKG: (&str, &str) = ("dpkg-source", "dpkg-dev");
const MAKE: (&str, &str) = ("make", "make");

const PROGRAMS: [Program; 6] = [
    Program {
        name: "lua",
        what: "lua 5.4, C, make",
        origin: Origin::Debian(LUA),
        build: "make -j2 linux",
        clean: None,
        by_hand: "make clean; make -j2 linux CC=\"clang-22 -std=gnu99 $C\"",
        install: "",
        training: "for s in calls numbers objects strings; do src/lua ../lua/$s.lua 8; done",
        benchmark: "for s in calls numbers objects strings; do src/lua ../lua/$s.lua 40; done",
        result: "src/lua",
        cargo_pgo: false,
        needs: &[DPKG, MAKE],
    },
    Program {
        name: "zstd",
        what: "zstd, C, make",
        origin: Origin::Debian(ZSTD),
        build: "make -C programs -j2 zstd",
        clean: None,
        by_hand: "make -C programs clean; make -C programs -j2 zstd CC=\"clang-22 $C\"",
        install: "",
        training: "programs/zstd -q -f -6 ../corpus -o ../out.zst && programs/zstd -q -t ../out.zst",
        benchmark: "for i in 1 2 3; do programs/zstd -q -f --single-thread -6 ../corpus -o ../out.zst && programs/zstd -q -t ../out.zst; done",
        result: "programs/zstd",
        cargo_pgo: false,
        needs: &[DPKG, MAKE],
    },
    Program {
        name: "sqlite",
        what: "sqlite, C, configure and make",
        origin: Origin::Debian(SQLITE),
        build: "./configure --disable-tcl --disable-shared && make -j2 sqlite3",
        clean: Some("make distclean"),
        by_hand: "make distclean; CC=clang-22 CFLAGS=\"-g -O2 $C\" ./configure --disable-tcl --disable-shared && make -j2 sqlite3",
        install: "",
        training: "./sqlite3 :memory: < ../small.sql",
        benchmark: "./sqlite3 :memory: < ../large.sql",
        result: "sqlite3",
        cargo_pgo: false,
        needs: &[DPKG, MAKE, ("tclsh", "tcl")],
    },
    Program {
        name: "ninja",
        what: "ninja, C++, cmake with link-time optimisation",
        origin: Origin::Debian(NINJA),
        build: "cmake --fresh -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF && ninja -C build",
        clean: None,
        by_hand: "cmake --fresh -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_CXX_FLAGS=\"$C\" && ninja -C build",
        install: "",
        training: "build/ninja -C ../build -t commands && build/ninja -C ../build -t graph",
        benchmark: "for i in 1 2 3; do build/ninja -C ../build -t commands && build/ninja -C ../build -t graph; done",
        result: "build/ninja",
        cargo_pgo: false,
        needs: &[
            DPKG,
            ("cmake", "cmake"),
            ("ninja", "ninja-build"),
            ("ld.lld-22", "lld-22"),
        ],
    },
    Program {
        name: "ripgrep",
        what: "ripgrep, Rust, cargo",
        origin: Origin::Crate("ripgrep", "15.2.0"),
        build: "cargo build --release",
        clean: None,
        by_hand: "RUSTFLAGS=\"$RUST\" cargo build --release",
        install: "",
        training: "target/release/rg -c '[a-z]+ing' ../corpus; target/release/rg -ic 'ab|cde' ../corpus; true",
        benchmark: "for i in 1 2 3; do target/release/rg -c '[a-z]+ing' ../corpus; target/release/rg -ic 'ab|cde' ../corpus; done; true",
        result: "target/release/rg",
        cargo_pgo: true,
        needs: &[("cargo", "cargo")],
    },
    Program {
        name: "orjson",
        what: "orjson, Rust and C, maturin",
        origin: Origin::PyPi("orjson", "3.13.0"),
        build: "maturin build --release",
        clean: None,
        by_hand: "RUSTFLAGS=\"$RUST\" CC=clang-22 CFLAGS=\"$C\" maturin build --release",
        install: "rm -rf ../site && python3 -m zipfile -e target/wheels/*.whl ../site",
        training: "python3 ../json_bench.py 20",
        benchmark: "PYTHONPATH=../site python3 ../json_bench.py 150",
        result: "../site",
        cargo_pgo: false,
        needs: &[("cargo", "cargo"), ("pip", "python3-pip")],
    },
];

/// The builds that are compared; the last one only where it can be made.
const BUILDS: [&str; 4] = ["plain", "profkit", "by hand", "cargo-pgo"];

struct Figures {
    /// Seconds of processor time, by build and run.
    seconds: [Vec<f64>; 4],
    functions: String,
    raws: usize,
}

/// Builds, checks and measures.
pub fn run(arguments: &Arguments) -> Result<()> {
    let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    if let Some(other) = arguments
        .names
        .iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        bail!("no program {other}: there are {}", known.join(", "));
    }
    let wanted: Vec<&Program> = PROGRAMS
        .iter()
        .filter(|program| {
            arguments.names.is_empty() || arguments.names.iter().any(|name| name == program.name)
        })
        .collect();
    let llvm = Llvm::find(22).context("clang-22 and llvm-22 are not installed")?;
    complete(&wanted)?;
    let profkit = built_profkit()?;
    let mut table = "| program | plain, seconds | `profkit pgo`, times as fast | by hand, times as fast | by cargo-pgo | functions that ran |\n|---|---|---|---|---|---|\n".to_owned();
    for program in wanted {
        let figures = prove(program, &profkit, llvm.profdata(), arguments.runs)
            .with_context(|| program.name)?;
        let [plain, ours, hand, tool] = &figures.seconds;
        let row = format!(
            "| {} | {} | {} | {} | {} | {} |",
            program.what,
            spread(plain),
            faster(plain, ours),
            faster(plain, hand),
            match program.cargo_pgo {
                true => faster(plain, tool),
                false => String::new(),
            },
            figures.functions
        );
        println!(
            "{row}\n{}: the bytes of the profile are those of llvm-profdata merge of {} raw profiles",
            program.name, figures.raws
        );
        let _ = writeln!(table, "{row}");
    }
    if arguments.table {
        let _ = writeln!(table, "\n{}", machine(u32::try_from(arguments.runs)?)?);
        replace("docs/performance.md", "pgo", &table)?;
    }
    Ok(())
}

/// Measuring takes half an hour: what is missing is said before it begins.
fn complete(programs: &[&Program]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |command: &str| std::env::split_paths(&path).any(|one| one.join(command).is_file());
    let needs = programs.iter().flat_map(|program| program.needs);
    let missing: BTreeSet<&str> = needs
        .filter(|(command, _)| !has(command))
        .map(|&(_, package)| package)
        .collect();
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.into_iter().collect();
        bail!("not installed: {0}. apt-get install {0}", missing.join(" "));
    }
    Ok(())
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

fn spread(seconds: &[f64]) -> String {
    let all = sorted(seconds.iter().copied());
    format!(
        "{:.2} ({:.2} to {:.2})",
        all[all.len() / 2],
        all[0],
        all[all.len() - 1]
    )
}

/// How many times as fast: the median of the rounds, the least and the greatest.
fn faster(plain: &[f64], other: &[f64]) -> String {
    let all = sorted(plain.iter().zip(other).map(|(plain, other)| plain / other));
    format!(
        "{:.2} × ({:.2} to {:.2})",
        all[all.len() / 2],
        all[0],
        all[all.len() - 1]
    )
}

fn shell(tree: &Path, text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", text]).current_dir(tree);
    // maturin and cargo-pgo, where a program needs them.
    let tools = target_folder().join("clients/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tools).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(path) {
        command.env("PATH", path);
    }
    // This task itself runs under cargo. The programs have flags and folders of their own.
    for name in [
        "RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "CARGO_ENCODED_RUSTFLAGS",
        "CC",
        "CXX",
        "CFLAGS",
        "MAKEFLAGS",
    ] {
        command.env_remove(name);
    }
    command
}

fn prove(program: &Program, profkit: &Path, profdata: &Path, runs: usize) -> Result<Figures> {
    let folder = target_folder().join("pgo-proof").join(program.name);
    let tree = folder.join("tree");
    fresh(&folder)?;
    inputs(&folder)?;
    let results = folder.join("results");
    fs::create_dir_all(&results)?;
    let keep = |build: &str| -> Result<()> {
        succeed(&mut shell(&tree, program.install))?;
        succeed(
            Command::new("cp")
                .arg("-a")
                .arg(tree.join(program.result))
                .arg(results.join(build)),
        )
        .map(drop)
    };
    let by_hand = |c: String, rust: String| {
        succeed(shell(&tree, program.by_hand).env("C", c).env("RUST", rust))
    };

    sources(program.origin, &tree)?;
    by_hand(String::new(), String::new())?;
    keep("plain")?;

    let raws = folder.join("raws");
    let profile = folder.join("by-hand.profdata");
    let (raw, used) = (raws.display(), profile.display());
    by_hand(
        format!("-fprofile-generate={raw}/build"),
        format!("-Cprofile-generate={raw}/build"),
    )?;
    succeed(&mut shell(&tree, program.install))?;
    succeed(
        shell(&tree, program.training)
            .env("LLVM_PROFILE_FILE", raws.join("train/%m-%p.profraw"))
            .env("PYTHONPATH", folder.join("site")),
    )?;
    merge(profdata, &[raws.join("train")], &profile)?;
    by_hand(
        format!("-fprofile-use={used}"),
        format!("-Cprofile-use={used}"),
    )?;
    keep("by hand")?;

    if program.cargo_pgo {
        sources(program.origin, &tree)?;
        with_cargo_pgo(program, &tree, profdata)?;
        keep("cargo-pgo")?;
    }

    sources(program.origin, &tree)?;
    let kept = folder.join("kept");
    let mut job = shell(&tree, "\"$@\"");
    job.arg("sh").arg(profkit).args([
        "pgo",
        "--compiler",
        "clang-22",
        "--format",
        "json",
        "--train",
        program.training,
        "--keep",
    ]);
    job.arg(&kept);
    job.args(program.clean.iter().flat_map(|clean| ["--clean", clean]));
    job.arg("--");
    if program.build.contains("&&") {
        job.args(["sh", "-c", program.build]);
    } else {
        job.args(program.build.split(' '));
    }
    let made = measure(&mut job)?;
    let said = String::from_utf8_lossy(&made.stdout);
    if !made.status.success() {
        bail!(
            "profkit pgo: {}\n{said}\n{}",
            made.status,
            String::from_utf8_lossy(&made.stderr)
        );
    }
    keep("profkit")?;
    let answer = said
        .rfind("{\n  \"schema\"")
        .or_else(|| said.find("\n{\n").map(|at| at + 1))
        .or_else(|| said.starts_with('{').then_some(0))
        .and_then(|at| serde_json::from_str::<serde_json::Value>(&said[at..]).ok())
        .context("profkit pgo has printed no JSON")?;
    let number = |name: &str| answer["profile"][name].as_u64().unwrap_or_default();
    let theirs = folder.join("theirs.profdata");
    merge(profdata, &[kept.join("profkit-pgo-runs/train-1")], &theirs)?;
    if fs::read(&theirs)? != fs::read(kept.join("merged.profdata"))? {
        bail!(
            "{} and {} differ",
            theirs.display(),
            kept.join("merged.profdata").display()
        );
    }

    let place = tree.join(program.result);
    let mut seconds: [Vec<f64>; 4] = Default::default();
    let builds = BUILDS.len() - usize::from(!program.cargo_pgo);
    // The first round fills the caches.
    for round in 0..=runs {
        for turn in 0..builds {
            let build = (round + turn) % builds;
            let result = results.join(BUILDS[build]);
            succeed(Command::new("rm").arg("-rf").arg(&place))?;
            succeed(Command::new("cp").arg("-a").arg(&result).arg(&place))?;
            let made = measure(&mut shell(&tree, program.benchmark))?;
            if !made.status.success() {
                bail!(
                    "the benchmark of {}: {}\n{}",
                    BUILDS[build],
                    made.status,
                    String::from_utf8_lossy(&made.stderr)
                );
            }
            if round > 0 {
                seconds[build].push(made.cpu.as_secs_f64());
            }
        }
    }
    Ok(Figures {
        seconds,
        functions: format!("{} of {}", number("ran"), number("functions")),
        raws: usize::try_from(number("inputs"))?,
    })
}

/// Builds, trains and builds again as cargo-pgo does, which has a target folder by architecture, and lays the program
/// where the other builds have it.
fn with_cargo_pgo(program: &Program, tree: &Path, profdata: &Path) -> Result<()> {
    client("cargo-pgo")?;
    // It takes llvm-profdata from there, and that of rustc's release is needed.
    let tools = target_folder().join("pgo-proof/tools");
    fresh(&tools)?;
    std::os::unix::fs::symlink(profdata, tools.join("llvm-profdata"))?;
    let theirs = "target/x86_64-unknown-linux-gnu/release/";
    for text in [
        "cargo pgo build",
        &program.training.replace("target/release/", theirs),
        "cargo pgo optimize",
        &format!(
            "mkdir -p target/release && cp {theirs}* target/release/ 2>/dev/null; test -e {}",
            program.result
        ),
    ] {
        let text = format!("PATH={}:$PATH; {text}", tools.display());
        succeed(&mut shell(tree, &text))?;
    }
    Ok(())
}

fn merge(profdata: &Path, folders: &[PathBuf], output: &Path) -> Result<()> {
    let mut command = Command::new(profdata);
    command.args(["merge", "-o"]).arg(output).args(folders);
    succeed(&mut command).map(drop)
}

/// Fetches sources below target/pgo-proof, unless an earlier call did, and lays a copy.
fn sources(origin: Origin, tree: &Path) -> Result<()> {
    let folder = target_folder().join("pgo-proof");
    let copy = |from: &Path| {
        if tree.exists() {
            fs::remove_dir_all(tree)?;
        }
        succeed(Command::new("cp").arg("-a").arg(from).arg(tree))?;
        // Cargo must not take the tree for a member of this repository's workspace.
        let manifest = tree.join("Cargo.toml");
        let text = fs::read_to_string(&manifest)?;
        fs::write(manifest, text + "\n[workspace]\n")?;
        anyhow::Ok(())
    };
    match origin {
        Origin::Debian(package) => {
            Sources::new(&target_folder().join("mip-programs")).copy(package, tree)
        }
        Origin::Crate(name, version) => {
            let vendored = folder.join("crates");
            if !vendored.join(name).is_dir() {
                let dummy = folder.join("crates-of");
                fresh(&dummy.join("src"))?;
                fs::write(dummy.join("src/lib.rs"), "")?;
                fs::write(
                    dummy.join("Cargo.toml"),
                    format!(
                        "[package]\nname = \"crates-of\"\nedition = \"2021\"\n[dependencies]\n{name} = \"={version}\"\n[workspace]\n"
                    ),
                )?;
                succeed(
                    shell(&dummy, "cargo vendor -q --no-delete \"$OUT\"").env("OUT", &vendored),
                )?;
            }
            copy(&vendored.join(name))
        }
        Origin::PyPi(name, version) => {
            let unpacked = folder.join(format!("{name}-{version}"));
            client("maturin")?;
            if !unpacked.is_dir() {
                let download = format!(
                    "pip download -q --no-deps --no-binary {name} {name}=={version} && tar xzf {name}-{version}.tar.gz"
                );
                fs::create_dir_all(&folder)?;
                succeed(&mut shell(&folder, &download))?;
            }
            copy(&unpacked)
        }
    }
}

/// What the programs read.
fn inputs(folder: &Path) -> Result<()> {
    fs::write(folder.join("corpus"), corpus(8 << 20))?;
    for (name, rows) in [("small.sql", 20_000), ("large.sql", 150_000)] {
        fs::write(
            folder.join(name),
            format!(
                "create table t(a integer primary key, b text, c real);\n\
                 with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})\n\
                 insert into t select i, printf('row %d %x', i, i * 2654435761 % 1000003), i * 0.37 from n;\n\
                 create index tb on t(b);\n\
                 select count(*), sum(c) from t where b like 'row 1%';\n\
                 select x.b, count(*) from t x join t y on x.a = y.a / 2 group by substr(x.b, 1, 6) order by 2 desc limit 10;\n\
                 update t set c = c + 1 where a % 3 = 0;\n\
                 delete from t where a % 7 = 0;\n\
                 select avg(length(b)), max(c) from t;\n"
            ),
        )?;
    }
    let mut ninja =
        "rule cc\n  command = cc -Iinclude -DNAME=$name -c $in -o $out\n  depfile = $out.d\n\
                     rule link\n  command = ld $in -o $out\n"
            .to_owned();
    for library in 0..300 {
        let mut objects = String::new();
        for file in 0..100 {
            let object = format!("out/lib{library}/file_{file}.o");
            let _ = writeln!(
                ninja,
                "build {object}: cc src/lib{library}/file_{file}.c | include/a{file}.h include/common.h\n  name = lib{library}_{file}"
            );
            objects = objects + " " + &object;
        }
        let _ = writeln!(ninja, "build out/lib{library}.so: link{objects}");
    }
    fs::create_dir_all(folder.join("build"))?;
    fs::write(folder.join("build/build.ninja"), ninja)?;
    for (from, to) in [("lua", "lua"), ("pgo/json_bench.py", "json_bench.py")] {
        let from = repo_root().join("tests/programs").join(from);
        succeed(Command::new("cp").arg("-a").arg(from).arg(folder.join(to)))?;
    }
    Ok(())
}
