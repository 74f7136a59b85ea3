//! `cargo xtask two-commits`: builds a real program before and after an edit that changes one function, renames one and
//! deletes one. `profkit match` and `profkit diff` must report exactly these changes.
use crate::mip::packages::{LUA, Sources};
use crate::mip::{fresh, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSection};
use profkit_testkit::target_folder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of the functions that the edit between the two builds changes, renames and deletes.
struct Edited {
    changed: &'static str,
    renamed: [&'static str; 2],
    deleted: &'static str,
}

const LUA_EDITS: Edited = Edited {
    changed: "luaH_getn",
    renamed: ["luaH_getshortstr", "luaH_getshortstring"],
    deleted: "luaO_ceillog2",
};

const RUST_EDITS: Edited = Edited {
    changed: "demo::changed",
    renamed: ["demo::words::count", "demo::words::count_all"],
    deleted: "demo::deleted",
};

/// The lost functions of a profile. Each has its name, how it was lost, and its likely successor.
type Lost = BTreeSet<(String, String, Option<String>)>;

impl Edited {
    /// Returns the lost functions that `match` must list. Without hashes, a changed function cannot be noticed.
    fn lost(&self, has_hashes: bool) -> Lost {
        let text = str::to_owned;
        let [old, new] = self.renamed;
        let mut lost = Lost::from([
            (text(old), text("gone"), Some(text(new))),
            (text(self.deleted), text("gone"), None),
        ]);
        if has_hashes {
            let changed = text(self.changed);
            lost.insert((changed.clone(), text("changed"), Some(changed)));
        }
        lost
    }
}

/// Runs the checks.
pub fn run() -> Result<()> {
    let folder = target_folder().join("two-commits");
    let checks = Checks {
        profkit: built_profkit()?,
        folder: folder.join("work"),
    };
    fresh(&checks.folder)?;
    let sources = Sources::new(&folder);
    let trees = ["old", "new"].map(|state| checks.folder.join(state));
    for tree in &trees {
        sources.copy(LUA, tree)?;
    }
    edit_lua(&trees[1].join("src"))?;
    fs::write(checks.folder.join("work.lua"), SCRIPT)?;
    let mut failures = 0;
    let steps: [(&str, &dyn Fn() -> Result<String>); 5] = [
        ("lua, counters of LLVM IR", &|| {
            checks.counters(&trees, "-fprofile-generate")
        }),
        ("lua, counters of the front end", &|| {
            checks.counters(&trees, "-fprofile-instr-generate")
        }),
        ("lua, samples", &|| checks.samples(&trees)),
        ("Rust, counters of LLVM IR", &|| {
            checks.rust("-Cprofile-generate")
        }),
        ("Rust, coverage", &|| checks.rust("-Cinstrument-coverage")),
    ];
    for (what, step) in steps {
        match step() {
            Ok(done) => println!("{what}: {done}"),
            Err(error) => {
                failures += 1;
                println!("{what}: FAILED: {error:#}");
            }
        }
    }
    ensure!(failures == 0, "{failures} of {} steps failed", steps.len());
    Ok(())
}

/// A lua script that makes growing tables with number and string keys, and asks for their lengths.
const SCRIPT: &str = "\
local sum = 0
for round = 1, 20000 do
  local t = {}
  for i = 1, 20 do t[i] = i end
  t.x = round; t.y = 2; t.name = 'n'
  for i = 1, 20 do sum = sum + #t + t.x end
end
print(sum)
";

/// Applies the edits to lua. The output of the program stays the same, and only the edited functions change their
/// control flow.
fn edit_lua(folder: &Path) -> Result<()> {
    let edit = |file: &str, from: &str, to: &str| -> Result<()> {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(text.contains(from), "{file} has no {from:?}");
        Ok(fs::write(&path, text.replacen(from, to, 1))?)
    };
    let head = "lua_Unsigned luaH_getn (Table *t) {\n  unsigned int limit = t->alimit;\n";
    let more = "  if (l_unlikely(limit == MAXASIZE)) t->flags = 0;\n";
    edit("ltable.c", head, &format!("{head}{more}"))?;
    // The inline assembly hides the range of the result from the compiler. Without it, the compiler would remove
    // branches in functions that use the macro.
    edit(
        "lobject.h",
        "LUAI_FUNC int luaO_ceillog2 (unsigned int x);",
        "#define luaO_ceillog2(x) __extension__({ int log_ = 31 - __builtin_clz(2 * (unsigned int)(x) - 1); \
         __asm__(\"\" : \"+r\"(log_)); log_; })",
    )?;
    let path = folder.join("lobject.c");
    let text = fs::read_to_string(&path)?;
    let (before, rest) = text
        .split_once("int luaO_ceillog2")
        .context("luaO_ceillog2")?;
    let (_, after) = rest.split_once("\n}\n").context("its end")?;
    fs::write(&path, format!("{before}{after}"))?;
    let [old, new] = LUA_EDITS.renamed;
    for file in c_files(folder)? {
        let text = fs::read_to_string(&file)?;
        fs::write(&file, text.replace(old, new))?;
    }
    Ok(())
}

fn c_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "c" || it == "h") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

struct Checks {
    profkit: PathBuf,
    folder: PathBuf,
}

impl Checks {
    fn lua(&self, tree: &Path, options: &[&str], name: &str) -> Result<PathBuf> {
        let program = self.folder.join(name);
        let sources = c_files(&tree.join("src"))?.into_iter();
        let is_part =
            |path: &PathBuf| !path.ends_with("luac.c") && path.extension() == Some("c".as_ref());
        let mut clang = Command::new("clang-22");
        // clang runs in the folder of the sources, so that the names of local functions do not contain the path of this
        // folder.
        clang.current_dir(tree.join("src")).arg("-O2").args(options);
        clang
            .args(["-DLUA_COMPAT_5_3", "-DLUA_USE_LINUX", "-Wl,-E", "-o"])
            .arg(&program);
        clang.args(
            sources
                .filter(is_part)
                .filter_map(|it| it.file_name().map(ToOwned::to_owned)),
        );
        succeed(clang.args(["-lm", "-ldl"]))?;
        Ok(program)
    }

    /// Runs a program with the script. Returns its merged profile, and what the program printed.
    fn profile(&self, program: &Path, arguments: &[&Path]) -> Result<(PathBuf, String)> {
        let raw = program.with_extension("profraw");
        let merged = program.with_extension("profdata");
        let mut ran = Command::new(program);
        let said = succeed(ran.args(arguments).env("LLVM_PROFILE_FILE", &raw))?;
        succeed(
            Command::new(&self.profkit)
                .args(["merge", "-o"])
                .args([&merged, &raw]),
        )?;
        Ok((merged, said))
    }

    fn counters(&self, trees: &[PathBuf; 2], option: &str) -> Result<String> {
        let script = self.folder.join("work.lua");
        let name = |state: &str| format!("lua-{state}{option}");
        let programs = [
            self.lua(&trees[0], &[option], &name("old"))?,
            self.lua(&trees[1], &[option], &name("new"))?,
        ];
        let (old, said) = self.profile(&programs[0], &[&script])?;
        let (new, says) = self.profile(&programs[1], &[&script])?;
        ensure!(said == says, "the programs print {said:?} and {says:?}");
        self.compare(&old, [&programs[0], &programs[1]], &new, &LUA_EDITS)
    }

    /// Compares a profile with the binaries of the old and the new state, and with the profile of the new state.
    fn compare(
        &self,
        old: &Path,
        binaries: [&Path; 2],
        new: &Path,
        edited: &Edited,
    ) -> Result<String> {
        self.gates(old, [binaries[0], binaries[1]])?;
        self.gates(old, [old, new])?;
        for other in [binaries[1], new] {
            let json = self.expect_lost(old, other, &edited.lost(true))?;
            let functions = &json["functions"];
            let numbers = [&functions["changed"], &functions["unknown"]];
            ensure!(
                numbers == [1, 1],
                "{}: changed and unknown: {numbers:?}",
                other.display()
            );
        }
        self.expect_diff(old, new, edited, true)?;
        Ok("match and diff name the changed, the renamed and the deleted function".to_owned())
    }

    /// Checks that `match --fail-under` accepts a profile for its own build even at 100 %, and rejects it for the new
    /// build at 99.9 %.
    fn gates(&self, profile: &Path, [own, new]: [&Path; 2]) -> Result<()> {
        for (other, least, code) in [(own, "100", 0), (new, "1", 0), (new, "99.9", 3)] {
            let mut command = Command::new(&self.profkit);
            command
                .arg("match")
                .args([profile, other])
                .args(["--fail-under", least]);
            let exit = command.output()?.status.code();
            ensure!(
                exit == Some(code),
                "{command:?}: exit code {exit:?}, expected {code}"
            );
        }
        Ok(())
    }

    /// Returns the JSON of `match`, and checks that it lists exactly the lost functions in `wanted`.
    fn expect_lost(&self, profile: &Path, other: &Path, wanted: &Lost) -> Result<Value> {
        let mut command = Command::new(&self.profkit);
        command
            .arg("match")
            .args([profile, other])
            .args(["--format", "json", "--top", "1000"]);
        let json: Value = serde_json::from_str(&succeed(&mut command)?)?;
        let lost = json["hot_lost"].as_array().context("hot_lost")?.iter();
        let lost: Lost = lost
            .map(|one| {
                let successor = one.get("successor").map(|it| shown(&it["demangled"]));
                (shown(&one["demangled"]), shown(&one["outcome"]), successor)
            })
            .collect();
        ensure!(
            lost == *wanted,
            "{command:?}: found {lost:?}, expected {wanted:?}"
        );
        Ok(json)
    }

    /// Checks that `diff` lists only the edited functions as new, gone and changed, and that its gates hold. The shares
    /// of other functions move a little, because the counts of the deleted function are no longer in the total.
    fn expect_diff(&self, old: &Path, new: &Path, edited: &Edited, has_hashes: bool) -> Result<()> {
        let mut command = Command::new(&self.profkit);
        command
            .arg("diff")
            .args([old, new])
            .args(["--format", "json", "--top", "100000"]);
        let json: Value = serde_json::from_str(&succeed(&mut command)?)?;
        let functions = json["functions"].as_array().context("functions")?.iter();
        let found: BTreeSet<(String, &str)> = functions
            .map(|row| {
                (
                    shown(row.get("demangled").unwrap_or(&row["function"])),
                    row["change"].as_str().unwrap_or_default(),
                )
            })
            .filter(|(_, change)| *change != "moved")
            .collect();
        let [renamed, now] = edited.renamed;
        let mut wanted = vec![(renamed, "gone"), (now, "new"), (edited.deleted, "gone")];
        if has_hashes {
            wanted.push((edited.changed, "hash_changed"));
        }
        let wanted = wanted
            .into_iter()
            .map(|(name, change)| (name.to_owned(), change))
            .collect();
        ensure!(
            found == wanted,
            "{command:?}: found {found:?}, expected {wanted:?}"
        );
        for (other, most, code) in [(old, "0", 0), (new, "99", 0), (new, "0.1", 3)] {
            let mut command = Command::new(&self.profkit);
            command
                .arg("diff")
                .args([old, other])
                .args(["--fail-over", most]);
            let exit = command.output()?.status.code();
            ensure!(
                exit == Some(code),
                "{command:?}: exit code {exit:?}, expected {code}"
            );
        }
        Ok(())
    }

    /// Checks sample profiles. They are made from the counters of the instrumented build, with one line per function.
    fn samples(&self, trees: &[PathBuf; 2]) -> Result<String> {
        let script = self.folder.join("work.lua");
        let (mut probed, mut plain, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (state, tree) in ["old", "new"].into_iter().zip(trees) {
            let counted = self.lua(
                tree,
                &["-fprofile-instr-generate"],
                &format!("counted-{state}"),
            )?;
            let (counts, _) = self.profile(&counted, &[&script])?;
            let program = self.lua(
                tree,
                &["-g1", "-fpseudo-probe-for-profiling"],
                &format!("probes-{state}"),
            )?;
            plain.push(self.lua(tree, &["-g1"], &format!("plain-{state}"))?);
            let checksums = checksums(&program)?;
            probed.push(program);
            let [mut lines, mut probes] = [String::new(), String::new()];
            let mut show = Command::new(&self.profkit);
            show.arg("show")
                .arg(&counts)
                .args(["--functions", "--format", "jsonl"]);
            for row in succeed(&mut show)?.lines() {
                let row: Value = serde_json::from_str(row)?;
                let name = row["function"].as_str().context("name")?;
                let name = name.rsplit([';', ':']).next().unwrap_or(name);
                let sum = row["sum"].as_u64().context("sum")?;
                if let Some(checksum) = checksums.get(name).filter(|_| sum > 0) {
                    writeln!(lines, "{name}:{sum}:1\n 1: {sum}")?;
                    writeln!(
                        probes,
                        "{name}:{sum}:1\n 1: {sum}\n !CFGChecksum: {checksum}"
                    )?;
                }
            }
            let files = [format!("lines-{state}.txt"), format!("probes-{state}.txt")];
            let [lines_file, probes_file] = files.map(|name| self.folder.join(name));
            fs::write(&lines_file, lines)?;
            fs::write(&probes_file, probes)?;
            texts.push([lines_file, probes_file]);
        }
        let [old, new] = texts.as_slice() else {
            bail!("two states");
        };
        self.expect_lost(&old[0], &plain[1], &LUA_EDITS.lost(false))?;
        self.expect_lost(&old[0], &new[0], &LUA_EDITS.lost(false))?;
        self.expect_lost(&old[1], &probed[1], &LUA_EDITS.lost(true))?;
        self.expect_lost(&old[1], &new[1], &LUA_EDITS.lost(true))?;
        self.expect_diff(&old[0], &new[0], &LUA_EDITS, false)?;
        self.expect_diff(&old[1], &new[1], &LUA_EDITS, true)?;
        self.gates(&old[1], [&probed[0], &probed[1]])?;
        self.gates(&old[1], [&old[1], &new[1]])?;
        Ok(
            "match names the renamed and the deleted function, and by checksums the changed one"
                .to_owned(),
        )
    }

    fn rust(&self, option: &str) -> Result<String> {
        let mut made = Vec::new();
        for (state, source) in [("old", RUST_OLD.to_owned()), ("new", edited_rust()?)] {
            let folder = self.folder.join(format!("rust{option}"));
            fs::create_dir_all(folder.join("src"))?;
            let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
            fs::write(folder.join("Cargo.toml"), manifest)?;
            fs::write(folder.join("src/main.rs"), source)?;
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let target = folder.join(format!("target-{state}"));
            succeed(
                Command::new(cargo)
                    .current_dir(&folder)
                    .args(["build", "--release", "--offline"])
                    .env("CARGO_TARGET_DIR", &target)
                    .env("RUSTFLAGS", option)
                    .env_remove("CARGO_ENCODED_RUSTFLAGS"),
            )?;
            let program = target.join("release/demo");
            let (profile, said) = self.profile(&program, &[])?;
            made.push((program, profile, said));
        }
        let [(old, old_profile, said), (new, new_profile, says)] = made.as_slice() else {
            bail!("two states");
        };
        ensure!(said == says, "the programs print {said:?} and {says:?}");
        self.compare(old_profile, [old, new], new_profile, &RUST_EDITS)
    }
}

/// The Rust program before the edit. Its functions are called through a table, and the edit moves no line. Otherwise
/// rustc's coverage hashes of unedited functions would change: they depend on the text and the place of a function, and
/// on the names of the functions that it calls.
const RUST_OLD: &str = "\
fn main() {
    let mut sum = 0;
    for n in 0..2000 {
        for work in std::hint::black_box(WORK) {
            sum += work(n);
        }
    }
    println!(\"{sum}\");
}

fn same(n: usize) -> usize {
    let mut bits = 0;
    let mut rest = n;
    while rest > 0 {
        bits += rest & 1;
        rest = std::hint::black_box(rest >> 1);
    }
    bits
}

fn changed(n: usize) -> usize {
    if n % 3 == 0 { std::hint::black_box(n) } else { 1 }
}

mod words {
    pub fn count(n: usize) -> usize {
        let mut words = 0;
        let mut inside = false;
        for byte in std::hint::black_box(\"the quick brown fox\").bytes() {
            if byte == b' ' {
                inside = false;
            } else if !inside {
                inside = true;
                words += n;
            }
        }
        words
    }
}

static WORK: &[fn(usize) -> usize] = &[same, changed, words::count, deleted];

fn deleted(n: usize) -> usize {
    let mut root = 0;
    while root * root < n {
        root = std::hint::black_box(root + 1);
    }
    0
}
";

fn edited_rust() -> Result<String> {
    let (before, _) = RUST_OLD.split_once("\nfn deleted").context("deleted")?;
    let edits = [
        ("words::count, deleted]", "words::count_all]"),
        ("fn count(", "fn count_all("),
        (
            "if n % 3 == 0",
            "if n > 5000 { std::hint::black_box(2) } else if n % 3 == 0",
        ),
    ];
    edits
        .iter()
        .try_fold(before.to_owned(), |text, (from, to)| {
            ensure!(text.contains(from), "the program has no {from:?}");
            Ok(text.replace(from, to))
        })
}

/// Returns a name without the file name of a local function. rustc makes this file name from hashes.
fn shown(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.rsplit(';').next().unwrap_or(text).to_owned()
}

/// Returns the checksums of a binary's functions by name. An entry of `.pseudo_probe_desc` has the hash of the name,
/// the checksum, the length of the name (ULEB128) and the name.
fn checksums(program: &Path) -> Result<BTreeMap<String, u64>> {
    let data = fs::read(program)?;
    let file = object::File::parse(&*data)?;
    let section = file
        .section_by_name(".pseudo_probe_desc")
        .context("no .pseudo_probe_desc")?;
    let mut rest = section.data()?;
    let mut found = BTreeMap::new();
    while let Some((_, after)) = rest.split_first_chunk::<8>() {
        let (checksum, mut after) = after.split_first_chunk::<8>().context("a checksum")?;
        let mut length = 0;
        for shift in (0..).step_by(7) {
            let (&byte, more) = after.split_first().context("a length")?;
            after = more;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let (name, after) = after.split_at_checked(length).context("a name")?;
        let name = String::from_utf8_lossy(name).into_owned();
        found.insert(name, u64::from_le_bytes(*checksum));
        rest = after;
    }
    Ok(found)
}
