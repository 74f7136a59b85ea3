//! `cargo xtask clients`: runs cargo-llvm-cov, cargo-pgo, grcov and maturin from start to end on a small Rust project, once with
//! LLVM's llvm-profdata and once with profkit under this name. The results must be equal.
use crate::dist::environment;
use crate::mip::succeed;
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::{Llvm, repo_root, target_folder};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The clients. Each has its name, the version that was examined and run, and the function that runs it.
const CLIENTS: [(&str, &str, Use); 4] = [
    ("cargo-llvm-cov", "0.9.1", llvm_cov),
    ("cargo-pgo", "0.3.0", pgo),
    ("grcov", "0.10.7", grcov),
    ("maturin", "1.16.0", maturin),
];

/// A function that runs a client and returns its results.
type Use = fn(&Setting) -> Result<Artefact>;

/// The results of a client that are compared. Each has a name and its bytes.
type Artefact = Vec<(String, Vec<u8>)>;

/// The file in the folder of the tools that has the last profile which llvm-profdata wrote.
const LAST_PROFILE: &str = "last.profdata";

/// A project for maturin: its wheel has the program, which is trained with one run.
const PYPROJECT: &str = r#"[build-system]
requires = ["maturin>=1.15"]
build-backend = "maturin"

[project]
name = "rust-client"
version = "0.0.0"

[tool.maturin]
bindings = "bin"
pgo-command = "rust-client 1000"
"#;

/// One run of a client: which llvm-profdata it uses, and where it runs.
#[derive(Debug)]
struct Setting {
    /// A copy of the project. Both runs use the same path, because the path influences the object files.
    project: PathBuf,
    /// A folder with `llvm-profdata` and `llvm-cov`.
    tools: PathBuf,
    /// The value of `PATH`: `tools` and the folder of the clients come first.
    path: OsString,
}

/// Runs the clients.
pub fn run(only: Option<&str>) -> Result<()> {
    let root = repo_root();
    let llvm = Llvm::find(22).context("clang-22 and llvm-22 are not installed")?;
    let profkit = built_profkit()?;
    let folder = target_folder().join("clients");
    let mut failures = 0;
    for (client, version, run) in CLIENTS
        .iter()
        .filter(|(client, ..)| only.is_none_or(|only| only == *client))
    {
        install_at(&folder, client, version)?;
        let mut made = Vec::new();
        for (label, profdata) in [("llvm", llvm.profdata()), ("profkit", profkit.as_path())] {
            let setting = prepare(&folder, &root, client, label, profdata, llvm.cov())?;
            made.push(run(&setting).with_context(|| format!("{client} with {label}"))?);
            let calls = fs::read_to_string(setting.tools.join("calls.log"))?;
            if calls.is_empty() {
                bail!(
                    "{client} did not call {}",
                    setting.tools.join("llvm-profdata").display()
                );
            }
            for call in calls.lines() {
                println!("{client} with {label}: llvm-profdata {call}");
            }
        }
        let [with_llvm, with_profkit] = made.as_slice() else {
            bail!("two runs were made")
        };
        let different = differences(with_llvm, with_profkit);
        for (name, bytes) in with_llvm {
            println!("{client} {version}: {name}, {} bytes", bytes.len());
        }
        if different.is_empty() {
            println!("{client} {version}: equal with LLVM's tool and with profkit");
        } else {
            failures += 1;
            println!("{client} {version}: DIFFERENT: {}", different.join(", "));
        }
    }
    if failures > 0 {
        bail!("{failures} clients made something else with profkit");
    }
    Ok(())
}

/// Installs a client below `target/clients/bin`, unless it is there.
pub fn install(client: &str) -> Result<()> {
    let (_, version, _) = CLIENTS
        .iter()
        .find(|(name, ..)| *name == client)
        .context("no such client")?;
    install_at(&target_folder().join("clients"), client, version)
}

fn install_at(folder: &Path, client: &str, version: &str) -> Result<()> {
    let installed = |program: &Path| {
        let mut command = Command::new(program);
        // cargo passes the name of the subcommand as the first argument.
        if let Some(name) = client.strip_prefix("cargo-") {
            command.arg(name);
        }
        let output = command.arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(version))
    };
    if installed(&folder.join("bin").join(client)) || installed(Path::new(client)) {
        return Ok(());
    }
    if client == "maturin" {
        // The wheel of maturin has the program; its crate takes minutes to build.
        let bin = environment(&folder.join("python"), &[&format!("maturin=={version}")])?;
        fs::create_dir_all(folder.join("bin"))?;
        let program = folder.join("bin").join(client);
        if program.is_symlink() {
            fs::remove_file(&program)?;
        }
        symlink(bin.join(client), program)?;
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["install", "--locked", "--root"])
        .arg(folder)
        .args(["--version", version, client]);
    succeed(&mut command).map(drop)
}

fn prepare(
    folder: &Path,
    root: &Path,
    client: &str,
    label: &str,
    profdata: &Path,
    cov: &Path,
) -> Result<Setting> {
    let tools = folder.join("tools").join(label);
    // An old link must be removed first: writing to it would overwrite the file that it points to.
    if tools.exists() {
        fs::remove_dir_all(&tools)?;
    }
    fs::create_dir_all(&tools)?;
    let real = tools.join("real");
    fs::create_dir_all(&real)?;
    symlink(profdata, real.join("llvm-profdata"))?;
    symlink(cov, tools.join("llvm-cov"))?;
    // A wrapper that records each call, so that a client cannot use another llvm-profdata unnoticed, and keeps the profile,
    // which some clients delete.
    let calls = tools.join("calls.log");
    fs::write(&calls, "")?;
    let wrapper = tools.join("llvm-profdata");
    let quoted = |path: &Path| format!("'{}'", path.display());
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\n{} \"$@\" || exit\nwhile [ $# -gt 1 ]; do if [ \"$1\" = -o ]; then cp \"$2\" {}; fi; shift; done\n",
        quoted(&calls),
        quoted(&real.join("llvm-profdata")),
        quoted(&tools.join(LAST_PROFILE))
    );
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let project = folder.join("work").join(client);
    if project.exists() {
        fs::remove_dir_all(&project)?;
    }
    copy_tree(&root.join("tests/programs/rust-client"), &project)?;
    let old = std::env::var_os("PATH").unwrap_or_default();
    let path = [tools.clone(), folder.join("bin")]
        .into_iter()
        .chain(std::env::split_paths(&old));
    Ok(Setting {
        path: std::env::join_paths(path)?,
        project,
        tools,
    })
}

/// Runs `cargo llvm-cov`: the unit tests, with the coverage exported as JSON and as text.
fn llvm_cov(setting: &Setting) -> Result<Artefact> {
    let json = setting.project.join("coverage.json");
    succeed(
        setting
            .cargo(&["llvm-cov", "--json", "--output-path"])
            .arg(&json),
    )?;
    let lcov = setting.project.join("coverage.lcov");
    succeed(
        setting
            .cargo(&["llvm-cov", "report", "--lcov", "--output-path"])
            .arg(&lcov),
    )?;
    read_all(&[json, lcov])
}

/// Runs `cargo pgo`: an instrumented build, two runs, an optimised build. The programs must be equal byte for byte.
fn pgo(setting: &Setting) -> Result<Artefact> {
    succeed(&mut setting.cargo(&["pgo", "build"]))?;
    let program = setting
        .project
        .join("target/x86_64-unknown-linux-gnu/release/rust-client");
    for argument in ["1000", "50"] {
        let profile = setting
            .project
            .join(format!("target/pgo-profiles/run-{argument}.profraw"));
        succeed(
            Command::new(&program)
                .arg(argument)
                .env("LLVM_PROFILE_FILE", profile),
        )?;
    }
    // The folder is removed, so that only files of the optimised build are read afterwards.
    fs::remove_file(&program)?;
    succeed(&mut setting.cargo(&["pgo", "optimize"]))?;
    read_all(&[program])
}

/// Runs `grcov` on the raw profiles of unit tests that were built with coverage. grcov gives llvm-profdata a list of
/// them on standard input.
fn grcov(setting: &Setting) -> Result<Artefact> {
    let raw = setting.project.join("raw");
    let mut test = setting.cargo(&["test"]);
    test.env("RUSTFLAGS", "-Cinstrument-coverage")
        .env("LLVM_PROFILE_FILE", raw.join("%p-%m.profraw"));
    succeed(&mut test)?;
    let lcov = setting.project.join("coverage.lcov");
    let mut grcov = Command::new("grcov");
    grcov
        .env("PATH", &setting.path)
        .current_dir(&setting.project)
        .arg(&raw);
    grcov.args(["--llvm", "--llvm-path"]).arg(&setting.tools);
    grcov.args([
        "--binary-path",
        "target/debug",
        "--source-dir",
        ".",
        "--output-type",
        "lcov",
        "--output-path",
    ]);
    succeed(grcov.arg(&lcov))?;
    read_all(&[lcov])
}

/// Runs `maturin build --pgo`: an instrumented wheel, the training, the optimised wheel. The functions and counts of the
/// profile, and the program in the wheel, must be equal.
fn maturin(setting: &Setting) -> Result<Artefact> {
    fs::write(setting.project.join("pyproject.toml"), PYPROJECT)?;
    let mut build = Command::new("maturin");
    build
        .args([
            "build",
            "--release",
            "--pgo",
            "--offline",
            "-i",
            "python3",
            "-o",
            "dist",
        ])
        .current_dir(&setting.project)
        .env("PATH", &setting.path);
    for variable in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_ENCODED_RUSTFLAGS"] {
        build.env_remove(variable);
    }
    succeed(&mut build)?;
    let wheels: Vec<PathBuf> = fs::read_dir(setting.project.join("dist"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    let [wheel] = wheels.as_slice() else {
        bail!("maturin wrote {} files in place of one wheel", wheels.len());
    };
    let unpacked = setting.project.join("unpacked");
    let mut unpack = Command::new("python3");
    unpack
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(&unpacked);
    succeed(&mut unpack)?;
    // maturin trains in a folder of a random name, which the instrumented program holds: its build id differs in each run, and
    // texts have no build ids.
    let text = setting.project.join("last.proftext");
    let llvm = Llvm::find(22).context("llvm-22 is not installed")?;
    let mut as_text = Command::new(llvm.profdata());
    as_text.args(["merge", "--text", "-o"]).arg(&text);
    succeed(as_text.arg(setting.tools.join(LAST_PROFILE)))?;
    read_all(&[
        text,
        unpacked.join("rust_client-0.0.0.data/scripts/rust-client"),
    ])
}

impl Setting {
    fn cargo(&self, args: &[&str]) -> Command {
        // cargo is started by name and not through `$CARGO`, because it looks for its subcommands in `PATH`.
        let mut command = Command::new("cargo");
        command
            .args(args)
            .current_dir(&self.project)
            .env("PATH", &self.path);
        command
            .env("LLVM_PROFDATA", self.tools.join("llvm-profdata"))
            .env("LLVM_COV", self.tools.join("llvm-cov"));
        // This task itself runs under cargo. cargo's variables must not reach the client.
        for variable in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_ENCODED_RUSTFLAGS"] {
            command.env_remove(variable);
        }
        command
    }
}

fn differences(first: &Artefact, second: &Artefact) -> Vec<String> {
    first
        .iter()
        .zip(second)
        .filter(|(one, other)| one != other || one.1.is_empty())
        .map(|(one, _)| one.0.clone())
        .collect()
}

fn read_all(files: &[PathBuf]) -> Result<Artefact> {
    files
        .iter()
        .map(|file| {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Ok((
                name,
                fs::read(file).with_context(|| file.display().to_string())?,
            ))
        })
        .collect()
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == "target" => {}
            true => copy_tree(&entry.path(), &target)?,
            false => {
                fs::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}
