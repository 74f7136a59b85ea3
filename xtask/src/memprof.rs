//! `cargo xtask memprof-programs`: builds re2 from Debian's sources with its own makefile, with heap profiling, by ten
//! releases of clang. Its tests are run. Their dumps are merged and shown by the LLVM tool of the release and by
//! profkit.
use crate::mip::make::{Real, Toolchain, re2_tests};
use crate::mip::packages::Sources;
use crate::mip::{fresh, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::heap::{
    HeapContext, contexts_of_llvm, contexts_of_profkit, same_contexts, without_densities,
};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, Llvm, heap_dump, target_folder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// For the dump of each program:
///
/// - `profkit merge --llvm N` writes the bytes that llvm-profdata-N writes: 19 versions 0 to 3, 22 versions 2 to 4, with both
///   schemas; with 15 and 16 as many bytes and the same contexts, for the order of their functions is that of a hash table
///
/// - `profkit show` has the contexts of `llvm-profdata-N show --memory`; with 22 the personality prints the same text
///
/// Dumps of clang 14 are read by llvm-profdata-15: that of 14 only counts, and these counts are compared too. Needs
/// dpkg-dev, make, python3-six, unicode-data.
#[derive(Debug, Default, clap::Args)]
pub struct Arguments {
    /// 14 to 23 [default: all]
    #[arg(long)]
    release: Vec<u32>,
}

/// Tests of re2. Some allocate much memory, others little.
const TESTS: [&str; 5] = [
    "parse_test",
    "re2_test",
    "regexp_test",
    "search_test",
    "set_test",
];

/// A compiler, and the tool that reads its dumps.
#[derive(Clone, Copy)]
struct Release {
    clang: u32,
    tool: u32,
    /// The versions of the MemProf section that are asked for. If empty, only the default version is written.
    versions: &'static [u32],
    /// Whether the tool writes the functions in the same order as profkit, so that the bytes of the outputs can be equal,
    /// and reads dumps of position-independent programs.
    modern: bool,
}

const RELEASES: [Release; 10] = [
    release(14, 15, &[], false),
    release(15, 15, &[], false),
    release(16, 16, &[], false),
    release(17, 17, &[], false),
    release(18, 18, &[], false),
    release(19, 19, &[0, 1, 2, 3], true),
    release(20, 20, &[2, 3], true),
    release(21, 21, &[2, 3, 4], true),
    release(22, 22, &[2, 3, 4], true),
    release(23, 23, &[2, 3, 4], true),
];

const fn release(clang: u32, tool: u32, versions: &'static [u32], modern: bool) -> Release {
    Release {
        clang,
        tool,
        versions,
        modern,
    }
}

/// Runs the checks.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = target_folder().join("memprof-programs");
    let profkit = built_profkit()?;
    let sources = Sources::new(&folder);
    let mut failures = 0;
    let wanted = |release: &Release| {
        arguments.release.is_empty() || arguments.release.contains(&release.clang)
    };
    for release in RELEASES.into_iter().filter(wanted) {
        let began = Instant::now();
        let place = folder.join(format!("re2-clang-{}", release.clang));
        let mut say = |what: &str, made: Result<String>, began: Instant| {
            let seconds = began.elapsed().as_secs();
            match made {
                Ok(said) => println!("clang-{} {what}: {said} ({seconds} s)", release.clang),
                Err(error) => {
                    failures += 1;
                    println!(
                        "clang-{} {what}: FAILED ({seconds} s): {error:#}",
                        release.clang
                    );
                }
            }
        };
        let programs = match build(release, &sources, &place) {
            Ok(programs) => programs,
            Err(error) => {
                say("build", Err(error), began);
                continue;
            }
        };
        say("build", Ok(format!("{} programs", programs.len())), began);
        for (program, arguments) in &programs {
            let began = Instant::now();
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            let check = Check {
                release,
                profkit: &profkit,
                place: &place,
                program,
                name: &name,
            };
            let made = check.run(arguments);
            say(&name, made, began);
        }
        std::fs::remove_dir_all(place.join("tree"))?;
    }
    if failures > 0 {
        bail!("{failures} checks failed");
    }
    Ok(())
}

/// Builds the library and its test programs. Returns the programs with their arguments.
fn build(
    release: Release,
    sources: &Sources,
    place: &Path,
) -> Result<Vec<(PathBuf, Vec<&'static str>)>> {
    fresh(place)?;
    let mut flags = HEAP_FLAGS.to_vec();
    let mut link = HEAP_LINK_FLAGS.to_vec();
    if !release.modern {
        flags.push("-fno-pie");
        link.push("-no-pie");
    }
    let compiler = format!("clang-{}", release.clang);
    let tools = Toolchain::plain(&compiler).with("heap", &flags, &link);
    let tree = place.join("tree");
    Real::Re2.build(sources, &tools, &tree)?;
    re2_tests(&tree, &tools, &TESTS)?;
    let tests = TESTS.map(|test| (tree.join("obj/test").join(test), Vec::new()));
    let mut programs = vec![(Real::Re2.executable(&tree), vec!["1"])];
    programs.extend(tests);
    Ok(programs)
}

/// The comparison of both tools on the dump of one program.
struct Check<'a> {
    release: Release,
    profkit: &'a Path,
    place: &'a Path,
    program: &'a Path,
    name: &'a str,
}

impl Check<'_> {
    fn run(&self, arguments: &[&str]) -> Result<String> {
        heap_dump(
            Command::new(self.program).args(arguments),
            self.place,
            self.name,
        )?;
        let mut merges = 0;
        self.same_bytes(&[])?;
        for version in self.release.versions {
            let version = format!("--memprof-version={version}");
            self.same_bytes(&[&version])?;
            self.same_bytes(&[&version, "--memprof-full-schema"])?;
            merges += 2;
        }
        let show = ["show", "--memory", &self.raw(), &self.binary()];
        let theirs = succeed(self.tool(self.release.tool).args(show))?;
        let expected = contexts_of_llvm(&theirs)?;
        let raw = self.place.join(self.raw());
        let ours = contexts(self.profkit, &raw, Some(self.program))?;
        let ours = match self.release.clang {
            ..=15 => without_densities(ours),
            _ => ours,
        };
        same_contexts(&expected, &ours)?;
        if self.release.tool == 22 {
            let mut personality = Command::new(self.profkit);
            personality.current_dir(self.place).arg("llvm-profdata");
            let ours = succeed(personality.args(show))?;
            ensure!(ours == theirs, "the text of show --memory differs");
        }
        if self.release.clang != self.release.tool {
            self.same_counts()?;
        }
        Ok(format!(
            "{} bytes {}equal in {} merges, {} contexts equal",
            std::fs::metadata(self.place.join("theirs"))?.len(),
            if self.release.modern {
                ""
            } else {
                "but for their order "
            },
            merges + 1,
            expected.len()
        ))
    }

    fn raw(&self) -> String {
        format!("{}.memprofraw", self.name)
    }

    fn binary(&self) -> String {
        format!("--profiled-binary={}", self.program.display())
    }

    fn tool(&self, release: u32) -> Command {
        let name = format!("llvm-profdata-{release}");
        let tool = Llvm::tool("llvm-profdata", release);
        let mut command = Command::new(tool.unwrap_or_else(|| name.into()));
        command.current_dir(self.place);
        command
    }

    fn same_bytes(&self, options: &[&str]) -> Result<()> {
        let merge = ["merge", &self.raw(), "-o"];
        succeed(
            self.tool(self.release.tool)
                .args(merge)
                .args(["theirs", &self.binary()])
                .args(options),
        )?;
        succeed(
            Command::new(self.profkit)
                .current_dir(self.place)
                .args(merge)
                .args(["ours", "-q", "--llvm", &self.release.tool.to_string()])
                .arg("--binaries")
                .arg(self.program)
                .args(options),
        )?;
        let file = |name: &str| self.place.join(name);
        let (ours, theirs) = (std::fs::read(file("ours"))?, std::fs::read(file("theirs"))?);
        if ours == theirs {
            return Ok(());
        }
        // The hash map by which LLVM 23 orders the frames of version 2 places colliding keys otherwise.
        let other_order = self.release.tool == 23 && options.contains(&"--memprof-version=2");
        ensure!(
            !self.release.modern || other_order,
            "bytes differ with {options:?}"
        );
        ensure!(ours.len() == theirs.len(), "sizes differ");
        let read = |name: &str| contexts(self.profkit, &file(name), None);
        same_contexts(&read("theirs")?, &read("ours")?)
    }

    /// Compares the number of memory info blocks (MIBs) in a dump, which llvm-profdata-14 shows, with profkit's number
    /// of contexts.
    fn same_counts(&self) -> Result<()> {
        let show = ["show", "--memory", &self.raw()];
        let theirs = succeed(self.tool(self.release.clang).args(show))?;
        let blocks = theirs
            .lines()
            .find_map(|line| line.trim().strip_prefix("NumMIBInfo:"))
            .context("NumMIBInfo")?;
        let mut command = Command::new(self.profkit);
        command.arg("show").arg(self.place.join(self.raw()));
        command.arg("--binaries").arg(self.program);
        let text = succeed(command.args(["--format", "json", "--top", "1"]))?;
        let json: serde_json::Value = serde_json::from_str(&text)?;
        let notes = json["notes"].as_array().context("the notes")?;
        let wanted = format!(" of {} context", blocks.trim());
        // Numbers are grouped.
        let states = |note: &serde_json::Value| {
            let note = note.as_str().unwrap_or_default().replace(',', "");
            note.contains(&wanted)
        };
        ensure!(
            notes.iter().any(states),
            "NumMIBInfo: {blocks}, and {notes:?}"
        );
        Ok(())
    }
}

/// The contexts of a dump, which needs its binary, or of an indexed profile.
fn contexts(profkit: &Path, file: &Path, binary: Option<&Path>) -> Result<BTreeSet<HeapContext>> {
    let mut command = Command::new(profkit);
    command.arg("show").arg("--memory").arg(file);
    if let Some(binary) = binary {
        command.arg("--binaries").arg(binary);
    }
    contexts_of_profkit(&succeed(command.args([
        "--format",
        "json",
        "--top",
        "100000000",
    ]))?)
}
