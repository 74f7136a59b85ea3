//! Installs the files of a release in empty places and tries the command there.
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use object::read::elf::{Dyn, ElfFile64};
use object::{Endianness, elf};
use profkit_testkit::fixture_path;

use super::{System, fresh, succeed};

/// Files that an archive and a package contain besides the command, below `share`.
const SHARED: &[&str] = &[
    "man/man1/profkit.1",
    "man/man1/profkit-merge.1",
    "man/man1/profkit-llvm-profdata-merge.1",
    "bash-completion/completions/profkit",
    "bash-completion/completions/llvm-profdata",
    "zsh/site-functions/_profkit",
    "zsh/site-functions/_llvm-profdata",
    "fish/vendor_completions.d/profkit.fish",
    "fish/vendor_completions.d/llvm-profdata.fish",
];

/// Lets `install.sh` install the archive of this machine's system, and sees that it refuses one that was changed.
pub fn installer(out: &Path, scratch: &Path) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let here = format!(
        "profkit-{version}-{}-unknown-linux-gnu.tar.gz",
        std::env::consts::ARCH
    );
    if !out.join(&here).is_file() {
        println!("── install.sh: not tried, because {here} was not made");
        return Ok(());
    }
    let install = |from: &Path, prefix: &Path| -> Result<bool> {
        let mut command = Command::new("sh");
        command.arg(out.join("install.sh")).arg(version);
        command.env("FROM", from).env("PREFIX", prefix);
        Ok(command.status().context("sh")?.success())
    };
    let prefix = fresh(scratch.join("prefix"))?;
    ensure!(install(out, &prefix)?, "install.sh fails");
    for file in SHARED {
        there(&prefix.join("share").join(file))?;
    }
    succeed(Command::new(prefix.join("bin/profkit")).arg("--version"))?;
    let changed = fresh(scratch.join("changed"))?;
    fs::copy(out.join("SHA256SUMS"), changed.join("SHA256SUMS"))?;
    let mut bytes = fs::read(out.join(&here))?;
    bytes.push(0);
    fs::write(changed.join(&here), bytes)?;
    let nowhere = scratch.join("nowhere");
    ensure!(
        !install(&changed, &nowhere)? && !nowhere.exists(),
        "install.sh installs an archive that was changed"
    );
    println!("── install.sh: installed {here}, and refused it with one byte more");
    Ok(())
}

/// The place where the files for one system are installed and tried.
pub struct Place<'a> {
    system: &'a System,
    scratch: &'a Path,
}

impl<'a> Place<'a> {
    /// Describes an installation for `system`. Its files will be below the folder `scratch`.
    pub fn new(system: &'a System, scratch: &'a Path) -> Self {
        Place { system, scratch }
    }

    /// Unpacks the archive into an empty folder, checks its files, and tries the command.
    pub fn archive(&self, archive: &Path) -> Result<()> {
        let folder = fresh(self.scratch.join("unpacked"))?;
        succeed(
            Command::new("tar")
                .args(["--strip-components=1", "--extract", "--file"])
                .arg(archive)
                .arg("--directory")
                .arg(&folder),
        )?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            there(&folder.join(file))?;
        }
        let share = folder.join("share");
        for file in SHARED {
            there(&share.join(file))?;
        }
        pages(&share.join("man/man1"))?;
        completions(&share, self.scratch)?;
        self.works(&folder.join("bin/profkit"), archive)
    }

    /// Installs the Debian package by dpkg into an empty root with its own package database. Compares the installed
    /// files with the checksums of the package.
    pub fn deb(&self, package: &Path) -> Result<()> {
        let root = fresh(self.scratch.join("root"))?;
        let database = root.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(database.join(folder))?;
        }
        fs::write(database.join("status"), "")?;
        let dpkg = || {
            let mut option = std::ffi::OsString::from("--root=");
            option.push(&root);
            let mut command = Command::new("dpkg");
            command.arg(option).env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            );
            command
        };
        // The empty root does not have libc6, on which the package depends. The command uses the libc6 of the machine.
        let mut install = dpkg();
        install.args([
            "--force-depends",
            "--force-not-root",
            "--force-script-chrootless",
            "--log=/dev/null",
        ]);
        if !self.system.is_here() {
            install.arg("--force-architecture");
        }
        succeed(install.arg("--install").arg(package))?;
        let differences = dpkg().args(["--verify", "profkit"]).output()?;
        ensure!(
            differences.status.success() && differences.stdout.is_empty(),
            "{}: dpkg --verify: {}",
            package.display(),
            String::from_utf8_lossy(&differences.stdout)
        );
        for file in SHARED {
            let name = if file.starts_with("man/") {
                format!("{file}.gz")
            } else {
                (*file).to_owned()
            };
            there(&root.join("usr/share").join(name))?;
        }
        there(&root.join("usr/share/doc/profkit/copyright"))?;
        self.works(&root.join("usr/bin/profkit"), package)
    }

    /// Installs the wheel by pip without a network. A wheel for this machine goes into an empty virtual environment, where
    /// its command and its library are tried; one for another architecture into an empty folder.
    pub fn wheel(&self, wheel: &Path) -> Result<()> {
        let environment = fresh(self.scratch.join("venv"))?;
        succeed(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        let mut install = Command::new(environment.join("bin/pip"));
        install.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
        ]);
        if self.system.is_here() {
            succeed(install.arg(wheel))?;
            succeed(
                Command::new(environment.join("bin/python"))
                    .args(["-c", "import profkit, sys; profkit.show(sys.argv[1])"])
                    .arg(fixture_path("readme/clang-22.profraw")),
            )?;
            return self.works(&environment.join("bin/profkit"), wheel);
        }
        let folder = fresh(self.scratch.join("installed"))?;
        succeed(
            install
                .args(["--only-binary=:all:", "--platform", platform(wheel)?])
                .arg("--target")
                .arg(&folder)
                .arg(wheel),
        )?;
        // There is no Python of that architecture to run it with.
        there(&folder.join("bin/profkit"))?;
        there(&folder.join("profkit/_native.abi3.so"))
    }

    /// Checks that the command prints its version, merges the profiles that README uses, and behaves like LLVM's tool
    /// when it is started under the name of that tool.
    fn works(&self, program: &Path, of: &Path) -> Result<()> {
        let folder = fresh(self.scratch.join("tried"))?;
        let said = self.printed(program, &["--version"])?;
        ensure!(
            said.starts_with(concat!("profkit ", env!("CARGO_PKG_VERSION"))),
            "{}: --version prints {said:?}",
            of.display()
        );
        let merged = folder.join("merged.profdata");
        let start = Instant::now();
        let inputs = fixture_path("readme");
        self.printed(
            program,
            &["merge", path(&inputs)?, "-o", path(&merged)?, "-q"],
        )?;
        let merging = start.elapsed();
        let shown = self.printed(program, &["show", path(&merged)?])?;
        ensure!(
            !shown.is_empty(),
            "{}: profkit show prints nothing",
            of.display()
        );
        for name in ["damaged.parquet", "damaged.arrow"] {
            self.refuses(program, &fixture_path("tables").join(name))?;
        }
        let link = folder.join("llvm-profdata");
        std::os::unix::fs::symlink(program, &link)?;
        let shown = self.printed(&link, &["show", path(&merged)?])?;
        ensure!(
            shown.starts_with("Instrumentation level:"),
            "{}: as llvm-profdata it prints {shown:?}",
            of.display()
        );
        println!(
            "── {}: installed, merged a profile in {} ms, showed it",
            of.display(),
            merging.as_millis()
        );
        Ok(())
    }

    /// Sees that the command tells what is wrong with a table on which its reader panics, and ends as it does at other errors.
    fn refuses(&self, program: &Path, table: &Path) -> Result<()> {
        let made = self.scratch.join("of-a-damaged-table");
        let mut command = self.command(program);
        command.arg("convert").arg(table).arg("-o").arg(&made);
        let output = command.output().with_context(|| format!("{command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1) && said.contains("cannot be read") && !made.exists(),
            "{command:?}: {}: {said}",
            output.status
        );
        Ok(())
    }

    /// The command, without the surrounding environment variables.
    fn command(&self, program: &Path) -> Command {
        match &self.system.emulator {
            Some(emulator) if !self.system.is_here() => {
                let mut command = Command::new(emulator.program);
                command.args(["-L", emulator.libraries]).arg(program);
                command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
                command
            }
            _ => {
                let mut command = Command::new(program);
                command.env_clear();
                command
            }
        }
    }

    /// Runs the command without the surrounding environment variables, and returns what it prints. It must succeed.
    fn printed(&self, program: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(program);
        let output = command
            .args(arguments)
            .output()
            .with_context(|| format!("{command:?}"))?;
        ensure!(
            output.status.success(),
            "{command:?}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn platform(wheel: &Path) -> Result<&str> {
    let name = wheel.file_stem().and_then(OsStr::to_str);
    let platforms = name.and_then(|name| name.rsplit('-').next());
    platforms
        .and_then(|platforms| platforms.split('.').next())
        .with_context(|| format!("{}: no platform in the name", wheel.display()))
}

fn there(file: &Path) -> Result<()> {
    let size = fs::metadata(file).map_or(0, |metadata| metadata.len());
    ensure!(size > 0, "{}: missing, or empty", file.display());
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

/// Formats all manual pages. Fails if groff complains about one.
fn pages(folder: &Path) -> Result<()> {
    let mut pages = 0;
    for entry in fs::read_dir(folder)? {
        let page = entry?.path();
        let output = Command::new("groff")
            .args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"])
            .arg(&page)
            .output()
            .context("groff")?;
        ensure!(
            output.status.success() && output.stderr.is_empty(),
            "groff: {}: {}",
            page.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        pages += 1;
    }
    println!("── {pages} manual pages, formatted by groff");
    Ok(())
}

/// Asks each installed shell to complete an option of each command.
fn completions(share: &Path, scratch: &Path) -> Result<()> {
    for (command, words, wanted) in [
        ("profkit", "merge --norm", "--normalize"),
        ("llvm-profdata", "merge --spar", "--sparse"),
        ("profkit", "llvm-profdata show --all-f", "--all-functions"),
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let Some(answer) = answer(shell, share, command, words, scratch)? else {
                println!(
                    "── completion of {command} by {shell}: not tried, {shell} is not installed"
                );
                continue;
            };
            ensure!(
                answer.contains(wanted),
                "{shell} does not complete {command} {words:?} to {wanted}: {answer:?}"
            );
        }
    }
    println!(
        "── bash, zsh and fish, where installed, complete options of profkit and llvm-profdata"
    );
    Ok(())
}

/// Returns the words to which a shell completes a command line; `None` if the shell is not installed.
fn answer(
    shell: &str,
    share: &Path,
    command: &str,
    words: &str,
    scratch: &Path,
) -> Result<Option<String>> {
    let text = match shell {
        "bash" => format!(
            r#"source "$1/bash-completion/completions/{command}"
COMP_WORDS=({command} {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
function=$(complete -p {command} | sed 's/.* -F \([^ ]*\) .*/\1/')
"$function" {command} "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
echo "${{COMPREPLY[@]}}""#
        ),
        // The completion system of zsh works only in an interactive shell. So a second zsh runs it on a pseudo
        // terminal.
        "zsh" => format!(
            r#"zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT=; fpath=($1/zsh/site-functions \$fpath); autoload -Uz compinit; compinit -u -d {}/zcompdump"
zpty -w z "bindkey '^I' expand-or-complete; echo re''ady"
zpty -r -m z line '*ready*'
zpty -w -n z $'{command} {words}	'
for ((i = 0; i < 100; i++)); do zpty -r -t z line && print -rn -- "$line"; sleep 0.02; done
zpty -d z"#,
            scratch.display()
        ),
        _ => format!(
            "source $argv[1]/fish/vendor_completions.d/{command}.fish
complete --do-complete '{command} {words}'"
        ),
    };
    let script = scratch.join(format!("complete.{shell}"));
    fs::write(&script, text)?;
    let output = match Command::new(shell).arg(&script).arg(share).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("{shell}: {error}"),
    };
    ensure!(
        output.status.success(),
        "{shell} {}: {}",
        script.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Returns the libraries that a program is linked with. A program that contains the C library must have none. Fails if
/// the program needs a symbol of a glibc newer than `newest`.
pub fn libraries(program: &Path, system: &System, newest: &str) -> Result<Vec<String>> {
    let data = fs::read(program)?;
    let file = ElfFile64::<Endianness>::parse(data.as_slice())?;
    let endian = file.endian();
    let sections = file.elf_section_table();
    let mut needed = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, data.as_slice())? {
        let strings = sections.strings(endian, data.as_slice(), strings)?;
        for entry in entries {
            if entry.tag(endian) == elf::DT_NEEDED {
                let name = entry.string(endian, strings)?;
                needed.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    if system.is_static {
        ensure!(
            needed.is_empty(),
            "{}: needs {needed:?}, expected no library",
            program.display()
        );
    }
    let mut highest = Vec::new();
    if let Some((libraries, strings)) = sections.gnu_verneed(endian, data.as_slice())? {
        let strings = sections.strings(endian, data.as_slice(), strings)?;
        for library in libraries {
            for version in library?.1 {
                let name = String::from_utf8_lossy(version?.name(endian, strings)?).into_owned();
                if let Some(number) = name.strip_prefix("GLIBC_") {
                    highest = highest.max(numbers(number));
                }
            }
        }
    }
    ensure!(
        highest <= numbers(newest),
        "{}: needs glibc {highest:?}, expected none after {newest}",
        program.display()
    );
    println!(
        "── {}: needs {needed:?}, of glibc symbols up to {highest:?}",
        program.display()
    );
    Ok(needed)
}

fn numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}
