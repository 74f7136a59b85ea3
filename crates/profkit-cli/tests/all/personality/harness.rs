//! Runs one command line with profkit and with LLVM's tool.
use profkit_testkit::{Llvm, some_or_all};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The name under which both tools are started.
pub const PROGRAM: &str = "llvm-profdata-22";

/// A folder of input files, from which both tools are run.
pub struct Pair {
    llvm: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Files that are new or changed, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Pair {
    pub fn new(llvm: &Llvm) -> Self {
        Pair {
            llvm: llvm.profdata().to_owned(),
            files: BTreeMap::new(),
        }
    }

    pub fn file(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.files.insert(name.to_owned(), bytes.as_ref().to_vec());
        self
    }

    pub fn add(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        self.files.insert(name.to_owned(), bytes.as_ref().to_vec());
    }

    pub fn llvm(&self, args: &[&str], stdin: &[u8]) -> Ran {
        self.run(&self.llvm, args, stdin)
    }

    pub fn profkit(&self, args: &[&str], stdin: &[u8]) -> Ran {
        self.run(Path::new(env!("CARGO_BIN_EXE_profkit")), args, stdin)
    }

    /// Whether LLVM's tool gives the same result with different contents and addresses of its memory. If it does not,
    /// it reads memory beyond its buffers, or memory that it has freed.
    pub fn llvm_is_steady(&self, args: &[&str]) -> bool {
        let tunables = [
            "glibc.malloc.perturb=85",
            "glibc.malloc.perturb=170",
            "glibc.malloc.mmap_threshold=0:glibc.malloc.mmap_max=1000000",
        ];
        let runs = tunables.map(|tunables| self.run_in(&self.llvm, args, b"", tunables));
        runs.iter().all(|ran| *ran == runs[0])
    }

    fn run(&self, program: &Path, args: &[&str], stdin: &[u8]) -> Ran {
        self.run_in(program, args, stdin, "")
    }

    fn run_in(&self, program: &Path, args: &[&str], stdin: &[u8], tunables: &str) -> Ran {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, bytes) in &self.files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("an input file");
        }
        let mut child = Command::new(program)
            .arg0(PROGRAM)
            .args(args)
            .current_dir(folder.path())
            .env_remove("TERM")
            .env("GLIBC_TUNABLES", tunables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        // The error of a failed write is ignored: a tool that does not read its input closes the pipe.
        let _ = child.stdin.take().expect("a pipe").write_all(stdin);
        let output = child.wait_with_output().expect("the tool ends");
        let here = fs::canonicalize(folder.path()).expect("the folder");
        let clean =
            |bytes: Vec<u8>| replace(&bytes, here.as_os_str().as_encoded_bytes(), b"FOLDER");
        Ran {
            code: output.status.code(),
            stdout: clean(output.stdout),
            stderr: clean(output.stderr),
            files: self.changed(folder.path()),
        }
    }

    fn changed(&self, folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut changed = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path
                    .strip_prefix(folder)
                    .expect("below")
                    .to_string_lossy()
                    .into_owned();
                let bytes = fs::read(&path).expect("an output file");
                if self.files.get(&name) != Some(&bytes) {
                    changed.insert(name, bytes);
                }
            }
        }
        changed
    }

    /// Runs both tools. Returns profkit's outcome, or a text about the differences.
    pub fn compare(&self, args: &[&str], stdin: &[u8]) -> Result<Ran, String> {
        let mut theirs = self.llvm(args, stdin);
        let ours = self.profkit(args, stdin);
        if theirs.code != Some(0) {
            // An allowed difference: if a tool fails, LLVM's leaves a partly written output, and profkit leaves the
            // file that was there before.
            theirs.files.clear();
            // An allowed difference: if a tool fails, LLVM's loses the text that is still in its output buffer, and
            // profkit prints it.
            if ours.stdout.starts_with(&theirs.stdout) {
                theirs.stdout.clone_from(&ours.stdout);
            }
        }
        if theirs.code.is_none() && ours.code == Some(1) {
            // An allowed difference: where LLVM's tool crashes, profkit fails with a message.
            assert!(!ours.stderr.is_empty(), "{args:?}");
            return Ok(ours);
        }
        if theirs == ours {
            Ok(ours)
        } else {
            Err(difference(args, &theirs, &ours))
        }
    }
}

/// Compares the tools on many command lines, or on a sample of them. Fails with a list of all differences.
pub fn compare_all<'a>(pair: &Pair, lines: impl IntoIterator<Item = &'a str>) {
    let mut failures = String::new();
    // The sample has every seventh command line. Seven is used because no list of command lines repeats with this
    // period.
    let lines = some_or_all(lines, 7);
    let count = lines.len();
    for line in lines {
        let args = words(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        if let Err(difference) = pair.compare(&args, b"") {
            failures.push_str(&difference);
        }
    }
    println!("{count} command lines compared");
    assert!(failures.is_empty(), "{failures}");
}

/// Splits at spaces; `''` is an empty word.
pub fn words(line: &str) -> Vec<String> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| word.replace("''", ""))
        .collect()
}

fn difference(args: &[&str], theirs: &Ran, ours: &Ran) -> String {
    let mut text = format!("\n=== {args:?}\n");
    if theirs.code != ours.code {
        let _ = writeln!(
            text,
            "exit code: LLVM {:?}, profkit {:?}",
            theirs.code, ours.code
        );
    }
    let mut part = |name: &str, theirs: &[u8], ours: &[u8]| {
        if theirs != ours {
            let _ = writeln!(text, "{name} LLVM   : {}", shown(theirs));
            let _ = writeln!(text, "{name} profkit: {}", shown(ours));
        }
    };
    part("stdout", &theirs.stdout, &ours.stdout);
    part("stderr", &theirs.stderr, &ours.stderr);
    let names: std::collections::BTreeSet<_> =
        theirs.files.keys().chain(ours.files.keys()).collect();
    for name in names {
        let of = |ran: &Ran| {
            ran.files
                .get(name)
                .cloned()
                .unwrap_or_else(|| b"(none)".to_vec())
        };
        part(name, &of(theirs), &of(ours));
    }
    text
}

fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 3000;
    let text = bytes
        .get(..MOST)
        .unwrap_or(bytes)
        .escape_ascii()
        .to_string();
    format!("({} bytes) {}", bytes.len(), text.replace("\\n", "\n    "))
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        match rest.strip_prefix(from) {
            Some(after) if !from.is_empty() => {
                result.extend_from_slice(to);
                rest = after;
            }
            _ => {
                result.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    result
}
