//! Compares `profkit llvm-profdata` with llvm-profdata 22: with the same arguments and the same files, the exit code,
//! standard output, standard error and output files must be the same. Here is what `cargo xtask conformance`,
//! `differential` and `llvm-suite` do not reach. docs/formats/llvm-profdata.md lists the allowed differences.
#![cfg(unix)]
use profkit_abi::sample::{flag, section};
use profkit_testkit::{Llvm, fixture, require_or_skip};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Input files, and the tool that profkit is compared with.
struct Pair {
    llvm: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

/// What a run did. `files` are those that are new or changed.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Pair {
    fn new(llvm: &Llvm, files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        Pair {
            llvm: llvm.profdata().to_owned(),
            files: files.collect(),
        }
    }

    fn add(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        self.files.insert(name.to_owned(), bytes.as_ref().to_vec());
    }

    /// Adds what LLVM's tool writes to `out`.
    fn add_made(&mut self, name: &str, line: &str) {
        let made = self.llvm(&words(line), b"").files.remove("out");
        self.add(name, made.expect("LLVM's tool writes it"));
    }

    fn llvm(&self, args: &[&str], stdin: &[u8]) -> Ran {
        self.run(&self.llvm, args, stdin)
    }

    fn profkit(&self, args: &[&str], stdin: &[u8]) -> Ran {
        self.run(Path::new(env!("CARGO_BIN_EXE_profkit")), args, stdin)
    }

    fn run(&self, program: &Path, args: &[&str], stdin: &[u8]) -> Ran {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, bytes) in &self.files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("an input file");
        }
        let mut child = Command::new(program)
            .arg0("llvm-profdata-22")
            .args(args)
            .current_dir(folder.path())
            .env_remove("TERM")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        // The error of a failed write is ignored: a tool that does not read its input closes the pipe.
        let _ = child.stdin.take().expect("a pipe").write_all(stdin);
        let output = child.wait_with_output().expect("the tool ends");
        let here = fs::canonicalize(folder.path())
            .expect("the folder")
            .display()
            .to_string();
        let clean = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => text.replace(&here, "FOLDER").into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let written = ["out", "z", "a.proftext", "folder/out"]
            .into_iter()
            .filter_map(|name| {
                let bytes = fs::read(folder.path().join(name)).ok()?;
                (self.files.get(name) != Some(&bytes)).then(|| (name.to_owned(), bytes))
            });
        Ran {
            code: output.status.code(),
            stdout: clean(output.stdout),
            stderr: clean(output.stderr),
            files: written.collect(),
        }
    }

    /// Runs both tools. Returns a text about the differences, if there are any.
    fn difference(&self, args: &[&str], stdin: &[u8]) -> Option<String> {
        let mut theirs = self.llvm(args, stdin);
        let ours = self.profkit(args, stdin);
        if theirs.code != Some(0) {
            // If a tool fails, LLVM's leaves a partly written output and loses the text that is still in its buffer.
            theirs.files.clear();
            if ours.stdout.starts_with(&theirs.stdout) {
                theirs.stdout.clone_from(&ours.stdout);
            }
        }
        (theirs != ours).then(|| {
            let shown = |Ran {
                             code,
                             stdout,
                             stderr,
                             files,
                         }: &Ran| {
                let texts = [stdout, stderr].into_iter().chain(files.values());
                let texts: Vec<_> = texts.map(|text| text.escape_ascii().to_string()).collect();
                format!("{code:?}\n{}\n", texts.join("\n").replace("\\n", "\n    "))
            };
            format!(
                "=== {args:?}\nLLVM {}profkit {}",
                shown(&theirs),
                shown(&ours)
            )
        })
    }

    /// Compares the tools on each line of a text. Fails with all differences.
    fn compare(&self, lines: &str) {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let failures: String = lines
            .filter_map(|line| self.difference(&words(line), b""))
            .collect();
        assert!(failures.is_empty(), "{failures}");
    }
}

/// Splits at spaces; `''` is an empty word.
fn words(line: &str) -> Vec<&str> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    words.map(|word| word.trim_matches('\'')).collect()
}

/// Files for tests of the syntax of options.
fn command_lines(llvm: &Llvm) -> Pair {
    const PROFILE: &str = "foo\n10\n2\n1\n2\n\n";
    let mut pair = Pair::new(
        llvm,
        &[
            ("a.proftext", PROFILE),
            ("folder/b.proftext", PROFILE),
            ("same", "@same"),
            ("outer", "merge --dump-input-file-list @inner"),
            ("inner", "a.proftext 'folder/b.proftext' \"\" fold\\er"),
            ("crlf", "merge\r\n-dump-input-file-list\r\n\ta.proftext"),
            ("mark", "\u{feff}merge -dump-input-file-list a.proftext"),
            ("list", "# comment\n\na.proftext\n 7,a.proftext \t\n"),
            ("badlist", "x,a.proftext\n"),
        ],
    );
    pair.add("utf16", b"\xff\xfem\0e\0r\0g\0e\0");
    pair
}

#[test]
fn mistakes_are_named_in_llvms_words() {
    command_lines(&require_or_skip!(22)).compare(
        "
        merge
        merg
        ''
        '' merge
        -- merge
        --
        -
        --color
        --color merge
        @nofile
        @same
        merge @same
        merge @folder
        @utf16
        merge @nofile
        merge -o
        merge -o=
        merge -j
        merge -j2 a.proftext
        merge -j x a.proftext
        merge -j -1 a.proftext
        merge -r
        merge --failure-mode a.proftext
        merge --failure-mode
        merge --sparse=foo --sparse=bar -j=z --unknown
        merge --weighted-input a.proftext
        merge --weighted-input=18446744073709551616,a.proftext
        merge --weighted-input=1,
        merge -- -x
        merge -- --output=x a.proftext
        merge nofile
        merge --color=0 nofile
        merge a.proftext nofile
        merge --failure-mode=all a.proftext nofile
        merge ''
        merge -f nofile
        merge -f badlist
        merge -f -
        merge -f folder
        merge -r nofile a.proftext
        merge folder/nothing
        merge /dev/null
        merge --all-functions
        merge --memory a.proftext
        show
        show ''
        show a.proftext b.proftext
        show nofile
        show --topn
        show -o a.proftext a.proftext
        show -o nofolder/x a.proftext
        show -o folder a.proftext
        show --sparse a.proftext
        order a b
        overlap
        overlap a.proftext
        overlap --memory a b
    ",
    );
}

#[test]
fn inputs_are_listed_alike() {
    let pair = command_lines(&require_or_skip!(22));
    pair.compare(
        "
        merge --dump-input-file-list a.proftext
        merge -dump-input-file-list=1 folder a.proftext
        merge -dump-input-file-list=TRUE a.proftext a.proftext
        merge -dump-input-file-list --weighted-input=3,a.proftext a.proftext -weighted-input 010,folder
        merge -dump-input-file-list --weighted-input=007,a.proftext
        merge -dump-input-file-list -f list
        merge -dump-input-file-list -
        merge -dump-input-file-list - a.proftext /dev/null -
        merge -dump-input-file-list -weighted-input=4,-
        merge -dump-input-file-list -sparse -j 2 -j=3 --num-threads=0x4 a.proftext
        merge -dump-input-file-list -o x -o=y -output z --output= a.proftext
        merge -dump-input-file-list -text -binary -gcc -extbinary -instr -sample a.proftext
        merge --dump-input-file-list --write-prev-version --keep-vtable-symbols --use-md5 --split-layout a.proftext
        merge --dump-input-file-list --memprof-version=3 --memprof-full-schema --memprof-random-hotness --memprof-random-hotness-seed=3 a.proftext
        merge --dump-input-file-list --failure-mode=warn --failure-mode=any --failure-mode all a.proftext
        merge --dump-input-file-list --zero-counter-threshold=1e3 --zero-counter-threshold=.5 --zero-counter-threshold= a.proftext
        merge --dump-input-file-list --debug-file-directory=a --debug-file-directory=b --correlate= --correlate=binary a.proftext
        merge --dump-input-file-list a.proftext ./a.proftext folder/ ./folder
        merge --dump-input-file-list=0 --dump-input-file-list nofile
        @outer
        @crlf
        @mark
        @outer @outer
    ",
    );
    let args = ["merge", "-dump-input-file-list", "-f", "-", "a.proftext"];
    assert_eq!(
        pair.difference(&args, b"a.proftext\n5,a.proftext\r\n#x\n\n"),
        None
    );
}

/// `profkit llvm-profdata` lists the same options as LLVM's tool, each with a description of profkit's own.
#[test]
fn help_lists_the_options_that_llvm_lists() {
    let llvm = require_or_skip!(22);
    let pair = command_lines(&llvm);
    for command in ["merge", "show", "order", "overlap"] {
        for help in [
            "--help",
            "--help-hidden",
            "--help-list",
            "--help-list-hidden",
            "-h",
        ] {
            let args = [command, help, "nofile"];
            let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
            assert_eq!(
                (ours.code, &ours.stderr[..]),
                (Some(0), &b""[..]),
                "{args:?}"
            );
            assert_eq!(options(&ours.stdout), options(&theirs.stdout), "{args:?}");
        }
    }
    let args = ["--help"];
    let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
    assert_eq!(ours.code, theirs.code);
    for command in ["  merge ", "  order ", "  overlap ", "  show "] {
        assert!(
            String::from_utf8_lossy(&ours.stdout).contains(command),
            "{command}"
        );
    }
}

/// Returns the options in a help text, sorted. An option is the text before ` - `, with its value.
fn options(help: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(help).into_owned();
    let mut options: Vec<String> = text
        .lines()
        .filter_map(|line| {
            line.split_once(" - ")
                .map(|(left, _)| left.trim().to_owned())
        })
        // LLVM lists only one of `--help-list` and `--help-list-hidden`, without a rule. So these are left out.
        .filter(|option| option.starts_with('-') && !option.starts_with("--help-list"))
        .collect();
    options.sort();
    options
}

#[test]
fn the_version_is_what_scripts_look_for() {
    let llvm = require_or_skip!(22);
    let pair = command_lines(&llvm);
    for args in [
        &["--version"][..],
        &["-version"],
        &["merge", "-version", "nofile"],
        &["show", "--version"],
    ] {
        let (theirs, ours) = (pair.llvm(args, b""), pair.profkit(args, b""));
        assert_eq!(
            (ours.code, &ours.stderr[..]),
            (theirs.code, &b""[..]),
            "{args:?}"
        );
        let version = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            let (_, after) = text.split_once("LLVM version ").expect("LLVM version");
            after.split(char::is_whitespace).next().map(str::to_owned)
        };
        assert_eq!(version(&ours.stdout), version(&theirs.stdout), "{args:?}");
        assert_eq!(version(&ours.stdout).as_deref(), Some("22.1.8"));
    }
}

/// Options for merging that name further files, or patterns.
#[test]
fn texts_are_merged_alike() {
    let llvm = require_or_skip!(22);
    Pair::new(
        &llvm,
        &[
            ("map", "# names\nfoo renamed\n\nbar foo\n"),
            ("badmap", "foo\n"),
            ("list", "3,fe\n#x\nhashes\n"),
            ("fe", "foo\n10\n2\n1\n2\n\nbar\n0x20\n3\n7\n0\n9\n\nzero\n1\n1\n0\n\n"),
            ("hashes", "foo\n10\n2\n1\n2\n\nfoo\n11\n1\n5\n\nfoo\n14\n1\n6\n\nfoo\n18\n1\n7\n\n"),
            ("large", "foo\n10\n2\n18446744073709551612\n2\n\n"),
            (
                "traces",
                ":ir\n:temporal_prof_traces\n2\n5\n1\na,b,c,\n3\nb,a\na\n1\n1\n1\n\nb\n2\n1\n1\n\nc\n3\n1\n1\n\n",
            ),
        ],
    )
    .compare(
        "
        merge -function=^b -o out fe hashes
        merge -function=o -no-function=foo -text fe
        merge -function=a** fe
        merge -function=[b-a] fe
        merge -function=[[:no:]] fe
        merge -function=a{2,1} -o out fe
        merge -no-function=\\ fe
        merge -function=?foo -text fe
        merge -text -r map fe
        merge -text -remapping-file=badmap fe
        merge -text -f list
        merge -text -weighted-input=3,large fe -j 1
        merge -text -extbinary fe -o out
        merge -gcc fe
        merge -debuginfod -binary-file=x fe
        merge -debug-info=x -binary-file=y fe
        merge -correlate=binary fe
        merge -sample -supplement-instr-with-sample=x fe
        merge fe -o nofolder/out
        merge -text -temporal-profile-max-trace-length=2 traces
        merge -text -temporal-profile-trace-reservoir-size=1 traces traces
        merge -o - -text fe -
    ",
    );
}

/// A text profile names virtual tables in its value data. With every input and output format, the same names must be
/// kept as in LLVM 22.
#[test]
fn names_of_virtual_tables_in_texts_are_kept_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm, &[]);
    pair.add("raw", fixture("raw/clang-22-vtables-shapes.profraw"));
    let text = pair.llvm(&["merge", "-text", "-keep-vtable-symbols", "raw"], b"");
    let text = String::from_utf8(text.stdout).expect("a text");
    assert!(text.contains("_ZTV6Square:30\n"), "{text}");
    // This text has other names in another order, a function and a virtual table with the same name, an unknown table,
    // and two tables at one value site.
    let other = ":ir\nf\n1\n1\n5\n2\n0\n1\n1\n_ZTV3Box:4\n2\n2\n3\n_ZTV4Node:2\n_ZTV3Box:1\n** External Symbol **:1\n\
                 1\n_ZTV4Leaf:7\n\n";
    // The damage comes after some names. LLVM's tool keeps the names that it has read before the damage.
    let damaged = text.replacen("_ZTV6Square:30", "_ZTV6Square:x", 1);
    pair.add("damaged", &damaged);
    pair.add("in", &text);
    pair.add("other", other);
    pair.add_made("indexed", "merge -keep-vtable-symbols in -o out");
    let mut lines =
        "show -all-functions -show-vtables in\nshow -all-functions -show-vtables indexed\n"
            .to_owned();
    for form in ["", "-text", "-write-prev-version"] {
        for inputs in [
            "other",
            "in other",
            "indexed other raw",
            "-failure-mode=all other damaged",
            "-failure-mode=all damaged other",
            "-function=nothing in",
        ] {
            for keep in ["", "-keep-vtable-symbols"] {
                let _ = writeln!(lines, "merge -j 1 {form} {keep} {inputs} -o out");
            }
        }
    }
    pair.compare(&lines);
    // The results are not only the same as LLVM's: they must have the names.
    let args = ["merge", "-keep-vtable-symbols", "other", "-o", "out"];
    let merged = pair.profkit(&args, b"").files.remove("out").expect("out");
    let names = profkit_data::instr::indexed::IndexedProfile::parse(&merged)
        .and_then(|profile| profile.vtable_names())
        .expect("names");
    let mut names: Vec<_> = names.iter().map(|(_, name)| name.to_vec()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            b"_ZTV3Box".to_vec(),
            b"_ZTV4Leaf".to_vec(),
            b"_ZTV4Node".to_vec()
        ]
    );
}

/// `overlap` merges its first profile. profkit leaves out this merge if the profile is indexed and sound, because the
/// merge would not change it. Exception: a profile that contains a record twice is merged, because the merge changes
/// it.
#[test]
fn a_first_profile_that_has_a_record_twice_is_merged() {
    let llvm = require_or_skip!(22);
    let (one, two) = (0x1111_1111_1111_1111_u64, 0x2222_2222_2222_2222_u64);
    let text = format!(
        ":ir\naa\n{one}\n2\n5\n{}\n\naa\n{two}\n2\n7\n9\n2\n0\n1\n2\nbb:3\ncc:1\n1\n0\n\nbb\n{one}\n2\n40\n2\n\ncc\n3\n1\n6\n",
        u64::MAX / 2
    );
    let mut pair = Pair::new(&llvm, &[("text", &text)]);
    pair.add_made("sound", "merge text -o out");
    let sound = pair.files["sound"].clone();
    let replaced = |changes: &[(&[u8], &[u8])]| {
        let mut bytes = sound.clone();
        for (from, to) in changes {
            let at = memchr::memmem::find(&sound, from).expect("the bytes");
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    };
    let hash = |name: &[u8]| profkit_data::ids::NameRef::of(name).0.to_le_bytes();
    let key = |name: &[u8]| [hash(name).as_slice(), &2_u64.to_le_bytes()].concat();
    let (one, two) = (one.to_le_bytes(), two.to_le_bytes());
    pair.add("record", replaced(&[(&two, &one)]));
    pair.add(
        "few",
        replaced(&[(
            &[two, 2_u64.to_le_bytes()].concat(),
            &[one, 1_u64.to_le_bytes()].concat(),
        )]),
    );
    let (aa, bb) = (key(b"aa"), key(b"bb"));
    let at = memchr::memmem::find(&sound, &bb).expect("the key of bb") + 24;
    let mut name = replaced(&[(&bb, &aa)]);
    assert_eq!(name[at..at + 2], *b"bb");
    name[at..at + 2].copy_from_slice(b"aa");
    pair.add("name", name);
    let mut lines = String::new();
    for first in ["sound", "record", "few", "name", "text"] {
        for second in ["sound", "record", "name", "text"] {
            let _ = writeln!(
                lines,
                "overlap {first} {second}\noverlap --value-cutoff=0 {first} {second}"
            );
        }
    }
    pair.compare(&lines);
}

/// Names that only a trace has, an empty name, names of functions that are local to a file; and paths that lead nowhere.
#[test]
fn texts_are_compared_and_ordered_alike() {
    let llvm = require_or_skip!(22);
    let names = ":ir\n:temporal_prof_traces\n2\n2\n1\na,gone,a.c;b, ,;c,d;\n1\ntarget,a\na\n1\n1\n1\n1\n0\n1\n1\ntarget:2\n\na.c;b\n1\n1\n1\n\n;c\n1\n1\n1\n\nd;\n1\n1\n1\n";
    let unnamed = ":ir\n:temporal_prof_traces\n1\n1\n1\na,gone\na\n1\n1\n1\n";
    let mut pair = Pair::new(
        &llvm,
        &[
            ("names", names),
            ("unnamed.text", unnamed),
            ("fe", "foo\n10\n1\n1\n\n"),
        ],
    );
    pair.add_made("unnamed", "merge unnamed.text -o out");
    pair.compare(
        "
        overlap nowhere fe
        overlap fe nowhere -o out
        overlap fe fe -o nowhere/out
        overlap fe .
        order nowhere
        order names -o nowhere/out
        show --temporal-profile-traces names
        order names
        order unnamed
    ",
    );
}

/// Cases that `cargo xtask differential` found.
#[test]
fn what_llvm_reads_first_is_reported_first() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm, &[]);
    // With --keep-vtable-symbols, LLVM collects the names of functions. In this file one of the names is filled with
    // zeros.
    let mut nameless = fixture("indexed/clang-13-ir-32-plain.profdata");
    nameless[600..720].fill(0);
    pair.add("nameless", nameless);
    // The file has the flag for a heap profile, but the number at the place of the heap profile's version is not a
    // version.
    let mut no_heap = fixture("indexed/clang-22-function-entry-plain.profdata");
    no_heap[15] |= 0x40;
    pair.add("no-heap", no_heap);
    pair.add("target", "main:1:1\n 1: 1\n !CFGChecksum: 4\n 1: 10 !A\n");
    pair.add("place", "main:1:1\n 1: 1\n !CFGChecksum: 4\n 1: 10 a:1\n");
    // The table of sections says that the summary is compressed, and the summary is not.
    let mut flags = fixture("sample/llvm-16-nested-ext.sampleprof");
    flags[26..28].fill(0xff);
    pair.add("flags", flags);
    // The section with the function offsets is compressed. It states two more bytes than its compressed data have.
    let mut short = fixture("sample/llvm-14-probes-ext-compressed.sampleprof");
    assert_eq!(short[448], 5);
    short[448] = 7;
    pair.add("short", short);
    // Not the data of a record, but a size of 0 before them: LLVM's tool reads those of the next record in their place.
    let mut sizeless = fixture("indexed/clang-22-vtables-shapes.profdata");
    let word = |at: usize| u32::from_le_bytes(sizeless[at..at + 4].try_into().expect("4 bytes"));
    let mut places = (0..sizeless.len() - 12).step_by(8);
    let at = places.find(|&at| {
        matches!(word(at), 24..1000) && matches!(word(at + 4), 1..=3) && word(at + 8) < 3
    });
    let at = at.expect("value data");
    sizeless[at..at + 4].fill(0);
    pair.add("sizeless", sizeless);
    pair.add(
        "object",
        [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 200]].concat(),
    );
    pair.compare(
        "
        merge nameless
        merge --keep-vtable-symbols nameless
        show no-heap
        show --memory no-heap
        order no-heap
        overlap no-heap no-heap
        merge no-heap
        merge -text no-heap
        show -sample target
        show -sample place
        show -sample -json -function=main flags
        show -sample short
        merge -sample short -o out
        show -sample -show-sec-info-only short
        show -all-functions -counts -ic-targets sizeless
        merge -j 1 -text sizeless
        show object
        show target
        merge -j 1 -failure-mode=all object target sizeless -o out
    ",
    );
}

/// Filters by name also work for profiles that have only hashes of names: the hash of the filter's text is compared.
#[test]
fn filters_find_hashed_names() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(
        &llvm,
        &[
            (
                "lines",
                "_Z3fooi:7:1\n 1: 6\n?bar@@YAXH@Z:9:2\n 1: 8\n_Z3bazi:3:1\n 1: 2\n",
            ),
            ("cut", "_Z3fooi:7:1\n 1: x\n"),
        ],
    );
    pair.add_made("ext", "merge --sample lines -o out");
    pair.add_made("md5", "merge --sample --use-md5 lines -o out");
    let mut lines = String::new();
    for input in ["lines", "ext", "md5"] {
        for filter in ["_Z3fooi", "foo", "?bar@@YAXH@Z", "_Z3.*"] {
            for option in ["function", "no-function"] {
                let _ = writeln!(lines, "merge -sample -text -{option}={filter} {input}");
            }
        }
    }
    // Whether the filters are compared as hashes depends on the last input that can be read.
    for inputs in ["ext md5", "md5 ext", "md5 lines cut", "lines md5 cut"] {
        let _ = writeln!(
            lines,
            "merge -sample -text -failure-mode=warn -function=_Z3fooi {inputs}"
        );
    }
    pair.compare(&lines);
}

/// If an extensible binary file has two name tables, the second one counts. Here it has fewer names than the functions
/// refer to.
#[test]
fn a_second_name_table_replaces_the_first() {
    /// The length of the magic number and the version, which are ULEB128.
    const COUNT_AT: usize = 10;
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm, &[("text", "b:7:1\n 1: 6\na:9:2\n 1: 8\n")]);
    pair.add_made("file", "merge --sample --use-md5 text -o out");
    let file = pair.files["file"].clone();
    let count = usize::from(file[COUNT_AT]);
    // The third section (the one before the samples) and the last section are empty. The test turns one of them into a
    // name table, whose contents are at the end of the file.
    let with_table = |section: usize, names: &[u64]| {
        let mut table = vec![u8::try_from(names.len()).unwrap()];
        names
            .iter()
            .for_each(|name| table.extend(name.to_le_bytes()));
        let mut file = file.clone();
        let fixed = flag::MD5_NAMES | flag::FIXED_MD5_NAMES;
        let entry = [section::NAMES, fixed, file.len() as u64, table.len() as u64];
        let at = COUNT_AT + 8 + 32 * section;
        for (word, place) in entry.iter().zip(file[at..at + 32].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        [file, table].concat()
    };
    pair.add("one", with_table(2, &[1]));
    pair.add("two", with_table(2, &[1, 2]));
    pair.add("none", with_table(2, &[]));
    pair.add("after", with_table(count - 1, &[1]));
    for (name, code) in [("one", 1), ("two", 0), ("none", 1), ("after", 0)] {
        if name != "none" {
            pair.compare(&format!("merge -sample -text {name}\nshow -sample {name}"));
        }
        assert_eq!(
            pair.profkit(&["show", "-sample", name], b"").code,
            Some(code),
            "{name}"
        );
    }
}

/// Sample profiles correct instrumentation profiles: the counts of functions that were cold are scaled, or the
/// functions are marked as hot or warm.
#[test]
fn instrumentation_profiles_are_supplemented_alike() {
    let llvm = require_or_skip!(22);
    let mut instr = String::from(":ir\n");
    for (name, counts) in [
        ("hot", vec![1_000_000; 12]),
        ("cold", (0..12).map(|count| count % 4).collect()),
        ("zeros", vec![0; 12]),
        (
            "mostly",
            (0..12)
                .map(|count| u64::from(count == 3))
                .collect::<Vec<u64>>(),
        ),
        ("small", vec![1; 3]),
        ("a.c;local", vec![2; 12]),
        ("b.c;twice", vec![1; 12]),
        ("c.cpp;twice", vec![1; 12]),
        ("x.cc;uniq.__uniq.77", vec![1; 12]),
    ] {
        instr.push_str(&format!("{name}\n1234\n{}\n", counts.len()));
        for count in &counts {
            instr.push_str(&format!("{count}\n"));
        }
        instr.push('\n');
    }
    let samples = "hot:5000:100\n 1: 5000\ncold:900000:8000\n 1: 800000\n 3: inlined:100000\n  1: 100000\n  2: local:50000\n   1: 50000\n\
        zeros:800:10\n 1: 800\nmostly:700000:9000\n 1: 700000\nsmall:600000:9000\n 1: 600000\ntwice:500000:9\n 1: 500000\nuniq:400000:7\n 1: 400000\n";
    let unique = samples.replace("local:", "local.__uniq.5:");
    let mut pair = Pair::new(
        &llvm,
        &[("instr", &instr), ("samples", samples), ("unique", &unique)],
    );
    pair.add_made("ext", "merge --sample samples -o out");
    pair.add_made("md5", "merge --sample --use-md5 samples -o out");
    let mut lines = "merge -supplement-instr-with-sample=samples instr instr -o out\n\
        merge -supplement-instr-with-sample=samples -weighted-input=2,instr -o out\n\
        merge -supplement-instr-with-sample=samples nothere -o out\n\
        merge -supplement-instr-with-sample=samples samples -o out\n"
        .to_owned();
    for name in ["samples", "ext", "md5", "unique", "instr", "nothere"] {
        for options in [
            "",
            "-text -suppl-min-size-threshold=2 -zero-counter-threshold=0.9",
            "-text -suppl-min-size-threshold=0 -instr-prof-cold-threshold=3000000",
            "-text -zero-counter-threshold=0.1 -sparse",
            "-text -suppl-min-size-threshold=0 -profile-summary-hot-count=2 -profile-summary-cold-count=1",
            "-text -suppl-min-size-threshold=0 -profile-summary-cutoff-hot=10000 -profile-summary-cutoff-cold=500000",
        ] {
            let _ = writeln!(
                lines,
                "merge -supplement-instr-with-sample={name} {options} instr -o out"
            );
        }
    }
    pair.compare(&lines);
}

/// Options of sample profiles that name further files or come from LLVM's libraries, and discriminators of FS-AFDO that
/// are cut to the bits of a pass.
#[test]
fn samples_are_merged_alike() {
    let llvm = require_or_skip!(22);
    let places = "foo:1000:10\n 1: 10\n 2.3: 20 bar:15 baz:5\n 2.259: 40 bar:40\n 2.20000: 1\n 2.4000000: 2\n \
     2.3000000003: 3\n 3.1: bar:100\n  1: 50\n  1.257: 50\n 3.257: bar:200\n  1: 200\n  4.300: 7\nmain:5:1\n 1.511: 5\n";
    let contexts = "[main:3 @ a:1 @ b]:500:20\n 1: 400\n 3: 100\n[main:4 @ a:1 @ b]:60:20\n 1: 60\n\
    [main:5 @ a:1 @ b]:6:2\n 1: 6\n[main]:300:1\n 1: 3\n";
    let mut pair = Pair::new(
        &llvm,
        &[
            ("places", places),
            ("contexts", contexts),
            ("map", "main renamed\nbar main\n"),
            ("symbols", "zz\n a \n\nmm\nbb\n"),
            ("list", "3,places\n#x\nplaces\n"),
            (
                "instr",
                ":ir\nfoo\n1\n12\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n\nhot\n1\n1\n900000\n\n",
            ),
        ],
    );
    pair.add_made("fs", "merge -sample -profile-isfs places -o out");
    pair.add_made("plain", "merge -sample places -o out");
    pair.add_made(
        "listed",
        "merge -sample -prof-sym-list=symbols places -o out",
    );
    pair.compare(
        "
        merge -sample -text -r map places
        merge -sample -text -r map contexts
        merge -sample -text -f list
        merge -sample -gcc places -o out
        merge -sample -prof-sym-list=symbols -text places
        merge -sample -prof-sym-list=nothere places -o out
        merge -sample -text -sample-trim-cold-context -profile-summary-cold-count=x contexts
        merge -sample -text -sample-merge-cold-context -profile-summary-cold-count=100 contexts
        merge -sample -binary -profile-summary-contextless=0 contexts -o out
        merge -sample -text -profile-summary-contextless=x contexts
        show -sample -detailed-summary -hot-func-list -profile-summary-contextless contexts
        show -sample -show-prof-sym-list -profile-symbol-list-cutoff=2 listed
        merge -sample -o out -profile-symbol-list-cutoff=2 listed
        merge -sample -o out -profile-symbol-list-cutoff=x listed
        overlap -sample contexts contexts -profile-summary-hot-count=7
        merge -sample -o out fs places
        merge -sample -o out places fs
        merge -sample -o out -profile-isfs fs plain
        merge -sample -binary -o out plain fs
        merge -sample -o out -fs-discriminator-pass=Pass2 -weighted-input=3,fs fs
        merge -sample -o out fs nothere
        merge -sample -text -r map fs -fs-discriminator-pass=Pass1
        merge -sample -text -convert-sample-profile-layout=flat fs -fs-discriminator-pass=Base
        merge -supplement-instr-with-sample=fs instr -text -o out -fs-discriminator-pass=Pass3
        show -sample -profile-isfs -function=foo places -fs-discriminator-pass=Base
        overlap -sample -profile-isfs places plain -fs-discriminator-pass=Pass1
        merge -sample -text places -fs-discriminator-pass=base
        merge -sample -text places -fs-discriminator-pass=Pass4
        merge -sample -text places -fs-discriminator-pass
        merge -sample -text places --fs-discriminator-pass Base
        merge -sample -text places -profile-isfs=maybe
        show -sample places -profile-isfs=0
    ",
    );
}
