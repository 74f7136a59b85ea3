//! Compares profkit with LLVM's tools, on the real profiles of the [`matrix`](crate::matrix) and on sample profiles of
//! every release and encoding. The same inputs must give the same outputs.
//!
//! `crates/profkit-cli/tests/all/matrix.rs` runs a part of the comparisons, and `cargo xtask conformance` runs all of them.
mod samples;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::matrix::{Compiler, Mode, RawSet, Set};
use crate::{Llvm, RELEASES};

/// The commands that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only one or two commands of each kind are compared.
    Short,
    /// All commands are compared.
    Full,
}

/// The result of one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The outputs of profkit and LLVM are equal.
    Same,
    /// The outputs differ as the table of allowed differences expects. The variant holds the reason.
    Allowed(&'static str),
    /// The outputs differ. The variant describes the difference and the files where both outputs were kept.
    Different(String),
}

/// Why names differ in profiles that profkit writes for releases before LLVM 18.
const LOCAL_NAMES: &str = "profkit spells local functions of IR profiles as the release looks them up (a.c:f); LLVM's tool keeps the spelling of later releases (a.c;f), by which its compiler does not find them";

/// The lines of a text in one order, with one spelling of local functions.
fn respelled(text: &[u8]) -> Vec<Vec<u8>> {
    let line = |line: &[u8]| {
        line.iter()
            .map(|&byte| if byte == b';' { b':' } else { byte })
            .collect()
    };
    let mut lines: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(line).collect();
    lines.sort();
    lines
}

/// A comparison of profkit with LLVM's tools: the inputs, the command, and the result.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The name of the input: a set of raw profiles, or sample profiles.
    pub set: String,
    /// A description of the command that was compared. It is the same for all inputs.
    pub what: String,
    /// The result of the comparison.
    pub outcome: Outcome,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.set, self.what)?;
        match &self.outcome {
            Outcome::Same => f.write_str("same"),
            Outcome::Allowed(reason) => write!(f, "allowed: {reason}"),
            Outcome::Different(what) => f.write_str(what),
        }
    }
}

/// An intended difference between profkit and LLVM: the comparisons that may differ, and the reason.
/// docs/formats/llvm-profdata.md describes the differences.
struct AllowedDifference {
    applies: fn(&Set, &str) -> bool,
    reason: &'static str,
}

/// All differences between profkit and LLVM that are intended.
const ALLOWED: &[AllowedDifference] = &[
    AllowedDifference {
        // A raw file can contain several profiles. When LLVM's reader goes to the next one, it replaces its table of names,
        // so pointers to the names of the earlier profiles become invalid.
        applies: |set, what| {
            let concatenated = !set.program.library.is_empty();
            concatenated
                && [
                    "show --topn=5 (input)",
                    "show --temporal-profile-traces (input)",
                    "order (input)",
                ]
                .contains(&what)
        },
        reason: "LLVM prints freed memory, or nothing, for names of all but the last profile of a concatenated file",
    },
    AllowedDifference {
        applies: |set, what| {
            // The other compilers here link programs without build ids, or write raw profiles that LLVM 17 does not read.
            !set.program.library.is_empty()
                && matches!(set.compiler, Compiler::Clang(14..=16))
                && what.starts_with("profkit merge --llvm 17")
        },
        reason: "LLVM 17 keeps the build ids of the first profile of a concatenated file alone; profkit keeps all",
    },
];

/// The LLVM release that profkit imitates when it runs as `llvm-profdata`.
const REFERENCE: u32 = 22;

/// The release after it, which profkit imitates as `llvm-profdata-23`. Profiles of its compiler can be read by its tools alone.
const NEWEST: u32 = 23;

/// The option that makes LLVM use a single writer. With several writers, LLVM adds temporal traces in a different
/// order, but `profkit merge` always adds them in the order of the inputs.
const ONE_WRITER: &str = "-num-threads=1";

/// The other releases whose formats `profkit merge --llvm` writes, newest first.
const OTHER: [u32; 10] = [23, 21, 20, 19, 18, 17, 16, 15, 14, 13];

/// Makes the comparisons for each item, with one thread per core.
pub fn in_parallel<T: Sync>(
    items: &[T],
    check: impl Fn(&T) -> Vec<Comparison> + Sync,
) -> Vec<Comparison> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let comparisons = check(item);
                    let mut found = found.lock().unwrap_or_else(|poison| poison.into_inner());
                    found.extend(comparisons);
                }
            });
        }
    });
    found
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
}

/// Compares profkit with the installed tools of LLVM.
#[derive(Debug)]
pub struct Conformance {
    profkit: PathBuf,
    /// The path of a link named `llvm-profdata` to profkit. Under this name, profkit behaves like LLVM's tool.
    personality: PathBuf,
    /// The same for the tool of [`NEWEST`].
    newest_personality: PathBuf,
    scope: Scope,
    llvms: BTreeMap<u32, Llvm>,
    /// The folder that contains the symbolic links.
    _folder: tempfile::TempDir,
}

impl Conformance {
    /// Prepares the comparisons of a `profkit` program with all installed LLVM releases.
    ///
    /// # Panics
    /// If the program is missing or the temporary folder cannot be written.
    pub fn new(profkit: &Path, scope: Scope) -> Self {
        let profkit = profkit.canonicalize().expect("the profkit program");
        let folder = tempfile::tempdir().expect("a scratch folder");
        let personality = folder.path().join("llvm-profdata");
        let newest_personality = folder.path().join(format!("llvm-profdata-{NEWEST}"));
        for link in [&personality, &newest_personality] {
            std::os::unix::fs::symlink(&profkit, link).expect("a symbolic link");
        }
        let found = RELEASES.into_iter().filter_map(Llvm::find);
        Conformance {
            profkit,
            personality,
            newest_personality,
            scope,
            llvms: found.map(|llvm| (llvm.release(), llvm)).collect(),
            _folder: folder,
        }
    }

    /// Makes all comparisons for one set of raw profiles, as far as the needed tools are installed.
    ///
    /// # Panics
    /// If a tool cannot be started or the temporary folder cannot be written.
    pub fn check(&self, raws: &RawSet) -> Vec<Comparison> {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for (run, raw) in raws.raws.iter().enumerate() {
            std::fs::copy(raw, folder.path().join(format!("{run}.profraw"))).expect("a copy");
        }
        let mut bench = Bench {
            conformance: self,
            set: raws.set,
            folder: folder.path(),
            found: Vec::new(),
        };
        let reference = bench.reference();
        let inputs = bench.inputs_for_the_reference();
        if let (Some(llvm), Some(inputs)) = (self.llvms.get(&reference), inputs) {
            bench.personality_merges(llvm, &inputs);
            bench.personality_shows(llvm, &inputs);
            bench.personality_compares(llvm, &inputs);
            bench.native(llvm, &inputs);
        }
        for release in OTHER.into_iter().filter(|&release| release != reference) {
            if let Some(llvm) = self.llvms.get(&release) {
                bench.down_level(llvm);
            }
        }
        bench.found
    }
}

/// Returns the LLVM release whose formats a compiler writes.
fn release_of(compiler: Compiler) -> u32 {
    match compiler {
        Compiler::Clang(release) => release,
        // rustc 1.95 is based on LLVM 22.
        Compiler::Rustc => REFERENCE,
    }
}

/// Whether the llvm-profdata of the release `tool` reads raw files of the release `written_by`. The answers were found
/// by experiments (clients.md).
fn reads_raw(tool: u32, written_by: u32) -> bool {
    // Each version of the raw format is read by the releases that write it.
    let first_with_its_version = |release| match release {
        ..=13 => 13,
        14..=17 => 14,
        18 => 18,
        19..=22 => 19,
        _ => NEWEST,
    };
    first_with_its_version(tool) == first_with_its_version(written_by)
}

/// Whether the indexed format of a release can contain everything in a profile of this mode.
fn can_say(release: u32, mode: Mode) -> bool {
    match mode {
        Mode::Temporal => release >= 17,
        Mode::Mcdc => release >= 18,
        Mode::Vtables => release >= 19,
        Mode::LoopEntries => release >= 20,
        Mode::FunctionEntry | Mode::BlockCoverage | Mode::ColdFunctions => release >= 14,
        _ => true,
    }
}

/// Whether the text format of a release can contain everything in a profile of this mode.
fn can_say_in_text(release: u32, mode: Mode) -> bool {
    match mode {
        // LLVM 17 does not yet support `:single_byte_coverage`.
        Mode::FunctionEntry | Mode::BlockCoverage | Mode::ColdFunctions => release >= 18,
        _ => can_say(release, mode),
    }
}

/// The comparisons of one set of raw profiles.
struct Bench<'a> {
    conformance: &'a Conformance,
    set: Set,
    folder: &'a Path,
    found: Vec<Comparison>,
}

/// The result of a command: its exit code, messages and output file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
    /// The bytes of the output file, if the command wrote one.
    output: Option<Vec<u8>>,
}

/// Whether a release writes the same bytes for the same profile, so that profkit's file can be compared with its own.
fn has_one_order(release: u32) -> bool {
    release >= 17
}

impl Bench<'_> {
    /// The release whose tool can read everything that the set's compiler writes.
    fn reference(&self) -> u32 {
        match self.set.compiler {
            Compiler::Clang(NEWEST) => NEWEST,
            _ => REFERENCE,
        }
    }

    /// Returns three files that the reference release can read: the raw files, or indexed files that the release of the
    /// compiler makes from them.
    fn inputs_for_the_reference(&self) -> Option<[String; 3]> {
        let release = release_of(self.set.compiler);
        if reads_raw(self.reference(), release) {
            return Some([0, 1, 2].map(|run| format!("{run}.profraw")));
        }
        let own = self.conformance.llvms.get(&release)?;
        Some([0, 1, 2].map(|run| {
            let name = format!("{run}.profdata");
            let ran = self.run(
                own.profdata(),
                &["merge", &format!("{run}.profraw"), "-o", &name],
            );
            assert_eq!(ran.code, Some(0), "{}: {ran:?}", self.set);
            name
        }))
    }

    fn personality_merges(&mut self, llvm: &Llvm, inputs: &[String; 3]) {
        let [a, b, c] = inputs.each_ref().map(String::as_str);
        let weighted = [
            format!("-weighted-input=3,{a}"),
            format!("--weighted-input=2,{b}"),
        ];
        let [wa, wb] = weighted.each_ref().map(String::as_str);
        let mut commands: Vec<(&str, Vec<&str>)> = vec![
            ("merge", vec![a, b, c]),
            ("merge -sparse", vec!["-sparse", a, b, c]),
            ("merge -weighted-input", vec![wa, wb, c]),
            ("merge -text", vec!["-text", a, b, c]),
            ("merge -num-threads=2", vec!["-num-threads=2", a, b, c]),
        ];
        if self.conformance.scope == Scope::Full {
            commands.extend([
                ("merge of one", vec![a]),
                ("merge in another order", vec![c, a, b]),
                ("merge of one twice", vec![b, b]),
                ("merge -num-threads=1", vec!["-num-threads=1", a, b, c]),
                ("merge -j 4", vec!["-j", "4", a, b, c]),
                ("merge -sparse -text", vec!["-sparse", "-text", a, b, c]),
                ("merge -text weighted", vec!["-text", wa, wb]),
            ]);
        }
        for (what, options) in commands {
            let arguments: Vec<&str> = ["merge"]
                .into_iter()
                .chain(options)
                .chain(["-o", "out"])
                .collect();
            self.same_run(what, llvm.profdata(), &arguments);
        }
    }

    fn personality_shows(&mut self, llvm: &Llvm, inputs: &[String; 3]) {
        let merge = [
            "merge",
            &inputs[0],
            &inputs[1],
            &inputs[2],
            "-o",
            "merged.profdata",
        ];
        let merged = self.run(llvm.profdata(), &merge);
        assert_eq!(merged.code, Some(0), "{}: {merged:?}", self.set);
        let everything = [
            "--all-functions",
            "--counts",
            "--ic-targets",
            "--memop-sizes",
        ];
        let mut options: Vec<Vec<&str>> = vec![vec![], everything.to_vec()];
        if self.conformance.scope == Scope::Full {
            options.extend([
                vec!["--all-functions", "--counts", "--show-vtables"],
                vec!["--all-functions"],
                vec!["--detailed-summary"],
                vec!["--topn=5"],
                vec!["--covered"],
                vec!["--text"],
                vec!["--binary-ids"],
                vec!["--temporal-profile-traces"],
                vec!["--profile-version"],
                vec!["--showcs", "--all-functions", "--counts"],
                vec!["--list-below-cutoff", "--value-cutoff=20"],
                vec!["--function=main", "--counts"],
            ]);
        }
        for options in options {
            for (form, file) in [("indexed", "merged.profdata"), ("input", &inputs[1])] {
                let mut arguments = vec!["show"];
                arguments.extend(&options);
                arguments.push(file);
                let what = format!("show {} ({form})", options.join(" "));
                self.same_run(&what.replace("  ", " "), llvm.profdata(), &arguments);
            }
        }
    }

    /// Compares how profkit and LLVM's tool compute the overlap of two profiles, and how they order functions.
    fn personality_compares(&mut self, llvm: &Llvm, inputs: &[String; 3]) {
        let [a, b, _] = inputs.each_ref().map(String::as_str);
        let merged = "merged.profdata";
        let mut commands: Vec<(&str, Vec<&str>)> = vec![
            (
                "overlap (inputs)",
                vec!["overlap", "--value-cutoff=1", a, b],
            ),
            ("order (indexed)", vec!["order", merged]),
        ];
        if self.conformance.scope == Scope::Full {
            commands.extend([
                ("overlap (input, indexed)", vec!["overlap", a, merged]),
                ("overlap (indexed, input)", vec!["overlap", merged, b]),
                (
                    "overlap --cs",
                    vec!["overlap", "--cs", "--function=a", a, merged],
                ),
                ("order (input)", vec!["order", a]),
                (
                    "order --num-test-traces",
                    vec!["order", "--num-test-traces=1", merged],
                ),
            ]);
        }
        for (what, arguments) in commands {
            self.same_run(what, llvm.profdata(), &arguments);
        }
    }

    /// Compares `profkit merge` with the tool of the reference release.
    fn native(&mut self, llvm: &Llvm, inputs: &[String; 3]) {
        let [a, b, c] = inputs.each_ref().map(String::as_str);
        let release = llvm.release().to_string();
        for (theirs, ours) in [
            (vec![ONE_WRITER], vec!["--llvm", &release]),
            (
                vec![ONE_WRITER, "-sparse"],
                vec!["--llvm", &release, "--sparse"],
            ),
            (vec![ONE_WRITER], vec!["--llvm", &release, "--threads", "1"]),
            (vec![ONE_WRITER, "-text"], vec!["--text"]),
        ] {
            let what = format!("profkit merge {}", ours.join(" "));
            let theirs = [theirs, self.kept_names()].concat();
            let run = |tool: &Path, options: Vec<&str>| {
                let words = [vec!["merge"], options, vec![a, b, c, "-o", "out"]].concat();
                self.run_for(tool, &words, "out")
            };
            let theirs = run(llvm.profdata(), theirs);
            let ours = run(&self.conformance.profkit, ours);
            self.same_output(&what, &theirs, &ours);
        }
        self.native_weighted(llvm, &release, inputs);
    }

    /// Returns the option with which LLVM's tool keeps the names of virtual tables. `profkit merge` always keeps them.
    /// Empty if the set has no such names.
    fn kept_names(&self) -> Vec<&'static str> {
        let has_names = self.set.mode == Mode::Vtables;
        has_names
            .then_some("-keep-vtable-symbols")
            .into_iter()
            .collect()
    }

    /// Compares weighted merges by `profkit merge --llvm N` with those by the tool of that release. profkit and the
    /// tool use the same number of writers and must write the same bytes.
    fn native_weighted(&mut self, llvm: &Llvm, release: &str, inputs: &[String; 3]) {
        let [a, b, c] = inputs.each_ref().map(String::as_str);
        // LLVM's tool reads weighted inputs after all other inputs.
        let (wa, wb) = (format!("3,{a}"), format!("2,{b}"));
        let flag = "--weighted-input";
        let mut threads = vec![None, Some("2")];
        if self.conformance.scope == Scope::Full {
            threads.extend([Some("1"), Some("4")]);
        }
        if self.set.mode == Mode::Vtables {
            // LLVM's tool does not pass names of virtual tables from one writer to another.
            threads.retain(|count| count.is_none_or(|count| count == "1"));
        }
        let kept_names = self.kept_names();
        for count in threads {
            let number = count.map_or(ONE_WRITER.to_owned(), |n| format!("--num-threads={n}"));
            let mut theirs = vec!["merge", &number, c, flag, &wa, flag, &wb, "-o", "own"];
            theirs.extend(&kept_names);
            let mut ours = vec!["merge", "--llvm", release, c, &wa, &wb, "-o", "ours"];
            ours.extend(count.iter().flat_map(|&count| ["--threads", count]));
            let what = ours[..3].join(" ");
            let what = match count {
                Some(count) => format!("profkit {what}, weighted, --threads {count}"),
                None => format!("profkit {what}, weighted"),
            };
            let ours = self.run_for(&self.conformance.profkit.clone(), &ours, "ours");
            // With several threads, LLVM may read the inputs of one writer in a different order. So LLVM's tool is run
            // several times.
            let attempts = if count == Some("2") { 8 } else { 1 };
            let mut runs = (0..attempts).map(|_| self.run_for(llvm.profdata(), &theirs, "own"));
            let first = runs.next().expect("LLVM's tool is run at least once");
            let theirs = if first.output == ours.output {
                first
            } else {
                runs.find(|run| run.output == ours.output).unwrap_or(first)
            };
            self.same_output(&what, &theirs, &ours);
        }
    }

    /// Compares the output files of two commands.
    fn same_output(&mut self, what: &str, theirs: &Ran, ours: &Ran) {
        let outcome = match (&theirs.output, &ours.output) {
            (Some(theirs), Some(ours)) => self.compare(what, theirs, ours),
            _ => Outcome::Different(format!("LLVM {theirs:?}, profkit {ours:?}")),
        };
        self.add(what, outcome);
    }

    /// Compares `profkit merge --llvm N` with the tool of that older release.
    fn down_level(&mut self, llvm: &Llvm) {
        let release = llvm.release();
        let made_by = release_of(self.set.compiler);
        if !can_say(release, self.set.mode) {
            return;
        }
        let raws = ["0.profraw", "1.profraw", "2.profraw"];
        // If the tool of the older release cannot read the raw files, it gets texts that were made from the raw files.
        let own_inputs: Vec<String> = if reads_raw(release, made_by) {
            raws.map(str::to_owned).to_vec()
        } else if self.conformance.scope == Scope::Full && can_say_in_text(release, self.set.mode) {
            match self.texts(made_by) {
                Some(texts) => texts,
                None => return,
            }
        } else {
            return;
        };
        let number = release.to_string();
        let from_raws = reads_raw(release, made_by);
        let same_bytes = from_raws && has_one_order(release);
        if same_bytes {
            self.native_weighted(llvm, &number, &raws.map(str::to_owned));
        }
        let variants: [(&str, Vec<&str>); 2] = [("", vec![]), (" --sparse", vec!["--sparse"])];
        for (suffix, options) in variants {
            let what = format!("profkit merge --llvm {release}{suffix}");
            let mut own = vec!["merge", ONE_WRITER];
            own.extend(&options);
            own.extend(self.kept_names());
            own.extend(own_inputs.iter().map(String::as_str));
            own.extend(["-o", "own"]);
            let own = self.run_for(llvm.profdata(), &own, "own");
            let mut ours = vec!["merge", "--llvm", &number];
            ours.extend(options);
            ours.extend(raws);
            ours.extend(["-o", "ours"]);
            let ours = self.run_for(&self.conformance.profkit.clone(), &ours, "ours");
            let written = own.output.is_some() && ours.output.is_some();
            if same_bytes || !written {
                self.same_output(&what, &own, &ours);
            }
            if !written {
                continue;
            }
            if !same_bytes {
                self.same_show(&what, llvm);
            }
            if suffix.is_empty() && made_by == release {
                self.same_objects(&what);
            }
        }
    }

    /// Converts the raw files to text with the tool of the release that wrote them.
    fn texts(&self, made_by: u32) -> Option<Vec<String>> {
        let own = self.conformance.llvms.get(&made_by)?;
        let convert = |run: usize| {
            let (raw, text) = (format!("{run}.profraw"), format!("{run}.proftext"));
            let ran = self.run(own.profdata(), &["merge", "-text", &raw, "-o", &text]);
            assert_eq!(ran.code, Some(0), "{}: {ran:?}", self.set);
            text
        };
        Some((0..3).map(convert).collect())
    }

    /// Checks that `llvm-profdata show` of the release `llvm` prints the same for two files: `own`, which LLVM wrote,
    /// and `ours`, which profkit wrote.
    fn same_show(&mut self, what: &str, llvm: &Llvm) {
        let options = [
            "--all-functions",
            "--counts",
            "--ic-targets",
            "--memop-sizes",
        ];
        let show = |file: &str| {
            let mut arguments = vec!["show"];
            arguments.extend(options);
            arguments.push(file);
            self.run(llvm.profdata(), &arguments)
        };
        let (own, ours) = (show("own"), show("ours"));
        let outcome = if own.code != Some(0) || own.code != ours.code || own.stderr != ours.stderr {
            Outcome::Different(format!(
                "show of LLVM's file: {own:?}; show of profkit's file: {ours:?}"
            ))
        } else if own.stdout != ours.stdout && respelled(&own.stdout) == respelled(&ours.stdout) {
            Outcome::Allowed(LOCAL_NAMES)
        } else {
            self.compare(&format!("{what}, shown"), &own.stdout, &ours.stdout)
        };
        self.add(&format!("{what}, shown"), outcome);
    }

    /// Checks that the compiler makes the same object files with two profiles: `own`, which LLVM wrote, and `ours`,
    /// which profkit wrote.
    fn same_objects(&mut self, what: &str) {
        let what = format!("{what}, compiled");
        let compile = |file: &str| self.set.compile_using(&self.folder.join(file));
        let outcome = match (compile("own"), compile("ours")) {
            (Ok(own), Ok(ours)) if own == ours => Outcome::Same,
            (Ok(_), Ok(_)) => Outcome::Different("the object files differ".to_owned()),
            (Err(own), Err(ours)) if normal(&own) == normal(&ours) => Outcome::Same,
            (own, ours) => Outcome::Different(format!(
                "compiling with LLVM's profile: {own:?}; with profkit's profile: {ours:?}"
            )),
        };
        self.add(&what, outcome);
    }

    /// Checks that profkit, running as llvm-profdata, and LLVM's tool give the same exit code, stdout, stderr and
    /// output file.
    fn same_run(&mut self, what: &str, tool: &Path, arguments: &[&str]) {
        let theirs = self.run_for(tool, arguments, "out");
        let personality = match self.reference() {
            NEWEST => self.conformance.newest_personality.clone(),
            _ => self.conformance.personality.clone(),
        };
        let ours = self.run_for(&personality, arguments, "out");
        let outcome = if theirs.code != ours.code || theirs.stderr != ours.stderr {
            Outcome::Different(format!(
                "LLVM: exit {:?}, stderr {:?}; profkit: exit {:?}, stderr {:?}",
                theirs.code, theirs.stderr, ours.code, ours.stderr
            ))
        } else if theirs.stdout != ours.stdout {
            self.compare(what, &theirs.stdout, &ours.stdout)
        } else {
            let bytes = |ran: &Ran| ran.output.clone().unwrap_or_default();
            self.compare(what, &bytes(&theirs), &bytes(&ours))
        };
        self.add(what, outcome);
    }

    fn run(&self, tool: &Path, arguments: &[&str]) -> Ran {
        self.run_for(tool, arguments, "")
    }

    fn run_for(&self, tool: &Path, arguments: &[&str], output: &str) -> Ran {
        let path = self.folder.join(output);
        if !output.is_empty() && path.exists() {
            std::fs::remove_file(&path).expect("a writable folder");
        }
        let ran = Command::new(tool)
            .args(arguments)
            .current_dir(self.folder)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
        Ran {
            code: ran.status.code(),
            stdout: ran.stdout,
            stderr: String::from_utf8_lossy(&ran.stderr).into_owned(),
            output: std::fs::read(&path).ok().filter(|_| !output.is_empty()),
        }
    }

    fn compare(&self, what: &str, theirs: &[u8], ours: &[u8]) -> Outcome {
        if theirs == ours {
            return Outcome::Same;
        }
        let same = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
        let kept = keep(&self.set.to_string(), what, theirs, ours);
        let place = match (std::str::from_utf8(theirs), std::str::from_utf8(ours)) {
            (Ok(theirs), Ok(ours)) => first_line(theirs, ours),
            _ => format!("from byte {same:#x} on"),
        };
        let sizes = format!("{} and {} bytes", theirs.len(), ours.len());
        Outcome::Different(format!("{sizes}, {place}; kept in {}", kept.display()))
    }

    fn add(&mut self, what: &str, outcome: Outcome) {
        let allowed = ALLOWED
            .iter()
            .find(|allowed| (allowed.applies)(&self.set, what));
        let outcome = match (outcome, allowed) {
            (Outcome::Different(_), Some(allowed)) => Outcome::Allowed(allowed.reason),
            (outcome, _) => outcome,
        };
        self.found.push(Comparison {
            set: self.set.to_string(),
            what: what.to_owned(),
            outcome,
        });
    }
}

/// Returns a compiler's messages without the name of the profile.
fn normal(words: &str) -> String {
    words.replace("/ours", "/own")
}

fn first_line(theirs: &str, ours: &str) -> String {
    let (mut theirs, mut ours) = (theirs.lines(), ours.lines());
    let mut line = 0;
    loop {
        line += 1;
        let (a, b) = (theirs.next(), ours.next());
        if a != b || a.is_none() {
            return format!("line {line}: LLVM {a:?}, profkit {b:?}");
        }
    }
}

/// Stores two different outputs so that a person can examine them. Returns the path of their folder.
fn keep(set: &str, what: &str, theirs: &[u8], ours: &[u8]) -> PathBuf {
    let target = crate::target_folder();
    let name: String = what
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = target.join("conformance").join(set).join(name);
    std::fs::create_dir_all(&folder).expect("target is writable");
    std::fs::write(folder.join("llvm"), theirs).expect("target is writable");
    std::fs::write(folder.join("profkit"), ours).expect("target is writable");
    folder
}
