//! profkit's `llvm-profgen` does the same as llvm-profgen-22, and under the name `llvm-profgen-23` as llvm-profgen-23: it has
//! the same exit code, texts and outputs.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]
use profkit_data::sample::{SampleProfile, text};
use profkit_llvm::{Io, profgen};
use profkit_testkit::simulate::{self, Simulation, Step};
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip, some_or_all};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

#[derive(Debug, PartialEq, Eq)]
struct Run {
    code: i32,
    stdout: String,
    /// The lines of standard error, sorted: LLVM's tool prints details of ranges in the order of a hash table.
    stderr: Vec<String>,
    output: Option<Vec<u8>>,
}

fn sorted(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns the command line: the name of the tool, the arguments, and the option `-o` with the output. If the argument
/// `--without-output` is given, it is removed and `-o` is not added.
fn with_output(release: u32, output: &Path, args: &[String]) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec![format!("llvm-profgen-{release}").into()];
    all.extend(args.iter().map(Into::into));
    if !args.iter().any(|arg| arg == "--without-output") {
        all.push("-o".into());
        all.push(output.into());
    }
    all.retain(|arg| arg != "--without-output");
    all
}

fn ours(release: u32, args: &[String], output: &Path) -> Run {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin = std::io::empty();
    let mut io = Io::new(&mut stdin, &mut stdout, &mut stderr);
    let code = profgen::run(with_output(release, output, args), &mut io);
    Run {
        code: code.into(),
        stdout: String::from_utf8(stdout).expect("text"),
        stderr: sorted(&without_release(release, stderr)),
        output: std::fs::read(output).ok(),
    }
}

/// Removes the release and the folder from the name of the tool.
fn without_release(release: u32, text: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(text).expect("text");
    let text = text.replace(&format!("llvm-profgen-{release}"), "llvm-profgen");
    let mut lines = String::new();
    for line in text.split_inclusive('\n') {
        let path = line.split_once("Try: '");
        match path.and_then(|(before, path)| Some((before, &path[path.find("llvm-profgen")?..]))) {
            Some((before, name)) => lines += &format!("{before}Try: '{name}"),
            None => lines += line,
        }
    }
    lines.into_bytes()
}

/// Runs LLVM's tool in a new folder, because the tool writes into the working folder. Prints a reason and returns
/// `None` if the tool is not installed.
fn theirs(release: u32, args: &[String], output: &Path) -> Option<Run> {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(tool) = Llvm::tool("llvm-profgen", release) else {
        profkit_testkit::skip(&format!("llvm-profgen-{release} is not installed"));
        return None;
    };
    let mut run = Command::new(&tool);
    // The name is in messages.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut run, format!("llvm-profgen-{release}"));
    let run = run
        .args(with_output(release, output, args).split_off(1))
        .current_dir(folder.path())
        .output()
        .expect("the tool runs");
    Some(Run {
        code: run.status.code().expect("an exit code"),
        stdout: String::from_utf8(run.stdout).expect("text"),
        stderr: sorted(&without_release(release, run.stderr)),
        output: std::fs::read(output).ok(),
    })
}

/// Sorts the bytes of the last section of two extensible binary files, if the files contain the same profile. LLVM
/// writes this section, which has the checksums and attributes of functions, in the order of a hash table. After
/// sorting, files that differ only in this order have the same bytes.
fn sort_metadata(one: &mut [u8], other: &mut [u8]) {
    const METADATA: u64 = 5;
    let text = |bytes: &[u8]| {
        let mut profile = SampleProfile::new();
        let report = profkit_data::sample::read(bytes, &mut profile, 1);
        report.strict().ok()?;
        let mut text = Vec::new();
        text::write(&profile, &text::TextOptions::new(), &mut text).ok()?;
        Some(text)
    };
    let number = |bytes: &[u8], at: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
    };
    // The section table has an entry for each section: kind, flags, offset and size.
    let metadata = |bytes: &[u8]| {
        let mut places = 0..bytes.len();
        places.find_map(|at| {
            let (kind, offset) = (number(bytes, at)?, number(bytes, at + 16)?);
            let ends = offset.checked_add(number(bytes, at + 24)?)? == bytes.len() as u64;
            let is_it = kind == METADATA && ends;
            usize::try_from(offset).ok().filter(|_| is_it)
        })
    };
    let Some(start) = metadata(one).filter(|_| one.len() == other.len()) else {
        return;
    };
    if one[..start] == other[..start] && text(one).is_some_and(|it| text(other) == Some(it)) {
        one[start..].sort_unstable();
        other[start..].sort_unstable();
    }
}

fn compare(args: &[&str]) {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    compare_as(22, &args);
    // The wheels of LLVM 23 know no other target than x86. With these options, the order of contexts decides, which in LLVM 23
    // is that of its C++ library's hashes (docs/formats/llvm-profgen.md).
    let differs = |arg: &String| {
        arg.starts_with("--compress-recursion=1") || arg == "--generate-merged-base-profiles"
    };
    if !is_a64(&args) && !args.iter().any(differs) {
        compare_as(23, &args);
    }
}

/// Whether the binary that the arguments name is an ELF file for AArch64.
fn is_a64(args: &[String]) -> bool {
    let mut binaries = args.iter().filter_map(|arg| arg.strip_prefix("--binary="));
    binaries.any(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.starts_with(b"\x7fELF") && bytes.get(18) == Some(&183)
    })
}

fn compare_as(release: u32, args: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out");
    let Some(mut theirs) = theirs(release, args, &output) else {
        return;
    };
    if theirs.code != 0 {
        // LLVM's tool leaves an empty file if it fails.
        theirs.output = None;
    }
    let _ = std::fs::remove_file(&output);
    let mut ours = ours(release, args, &output);
    if let (Some(one), Some(other)) = (&mut ours.output, &mut theirs.output) {
        sort_metadata(one, other);
    }
    if ours != theirs {
        let text = |run: &Run| {
            run.output
                .as_ref()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        panic!(
            "{release}: {args:?}\nours: {} {:?}\n{}\n{:?}\ntheirs: {} {:?}\n{}\n{:?}",
            ours.code,
            ours.stderr,
            ours.stdout,
            text(&ours),
            theirs.code,
            theirs.stderr,
            theirs.stdout,
            text(&theirs)
        );
    }
}

/// A compiled program, a perf recording of a simulated run of it, and a folder with these files.
struct Case {
    folder: tempfile::TempDir,
    binary: String,
    recording: String,
}

impl Case {
    fn of(llvm: &Llvm, source: &str, arguments: &[&str]) -> Case {
        let folder = tempfile::tempdir().expect("a folder");
        let binary = folder.path().join("walked");
        let compiler = if source.ends_with(".cpp") {
            llvm.clangxx()
        } else {
            llvm.clang()
        };
        let run = Command::new(compiler)
            .args(arguments)
            .arg(repo_root().join("tests/programs").join(source))
            .arg("-o")
            .arg(&binary)
            .status();
        assert!(run.expect("clang runs").success(), "{source}");
        let program = simulate::Program::open(&binary);
        let simulation = Simulation::new(7).depth(16);
        let steps = [
            Step::Start {
                pid: 10,
                program: 0,
            },
            Step::Samples(2000),
        ];
        let mut writer = simulation.writer();
        let ran = simulation.run(std::slice::from_ref(&program), &steps, &mut writer);
        ran.expect("a recording");
        let recording = folder.path().join("perf.data");
        std::fs::write(&recording, writer.file()).expect("written");
        let text = |path: &Path| path.to_str().expect("a path of text").to_owned();
        Case {
            binary: text(&binary),
            recording: text(&recording),
            folder,
        }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a path of text").to_owned()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn script(&self) -> Option<String> {
        let run = Command::new("perf")
            .args(["script", "--show-mmap-events", "-F", "ip,brstack", "-i"])
            .arg(&self.recording)
            .output();
        match run {
            Ok(run) if run.status.success() => Some(String::from_utf8(run.stdout).expect("text")),
            _ => {
                profkit_testkit::skip("perf is not installed");
                None
            }
        }
    }

    fn compare(&self, args: &[&str]) {
        let binary = format!("--binary={}", self.binary);
        compare(&[&[binary.as_str()], args].concat());
    }

    /// `options` is split at its spaces.
    fn compare_with(&self, input: &str, options: &str) {
        let options = options.split_whitespace();
        self.compare(&[input].into_iter().chain(options).collect::<Vec<_>>());
    }
}

/// Compiles a program and simulates a run. The file `script` gets the text that `perf script` would print for samples
/// with call chains.
fn with_chains(llvm: &Llvm, source: &str, arguments: &[&str], simulation: &Simulation) -> Case {
    let case = Case::of(llvm, source, arguments);
    let program = simulate::Program::open(Path::new(&case.binary));
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(1500),
    ];
    let mut script = simulate::PerfScript::new(Vec::new(), true);
    let ran = simulation.run(std::slice::from_ref(&program), &steps, &mut script);
    ran.expect("a recording");
    case.file("script", script.into_inner());
    case
}

/// Some branches of every third sample have their start and their end exchanged, so that they are not branches of the
/// program.
fn with_foreign_branches(script: &str) -> String {
    let mut text = String::new();
    for (number, line) in script.lines().enumerate() {
        let words = line.split(' ').enumerate().map(|(word, branch)| {
            let ends: Vec<&str> = branch.splitn(3, '/').collect();
            match ends[..] {
                [from, to, rest] if number % 3 == 0 && word % 4 == 1 => {
                    format!("{to}/{from}/{rest}")
                }
                _ => branch.to_owned(),
            }
        });
        text += &words.collect::<Vec<_>>().join(" ");
        text.push('\n');
    }
    text
}

#[test]
fn branches_that_do_not_match_the_binary_are_counted_as_by_llvm_profgen_23() {
    let llvm = require_or_skip!(22);
    for (source, arguments) in [
        ("walked.c", &PROBES[..]),
        ("thrown.cpp", &["-O2", "-g", "-no-pie"]),
        ("conditions.c", &["-O1", "-g1", "-fuse-ld=lld"]),
    ] {
        let simulation = Simulation::new(31).depth(16).chains(true);
        let case = with_chains(&llvm, source, arguments, &simulation);
        let chains = std::fs::read_to_string(case.path("script")).expect("a script");
        let branches = chains.lines().filter(|line| {
            line.contains("PERF_RECORD") || line.starts_with(" 0x") && line.contains('/')
        });
        let branches = branches.map(str::trim_start).collect::<Vec<_>>().join("\n");
        for (name, script) in [
            ("sound-chains", chains.clone()),
            ("chains", with_foreign_branches(&chains)),
            ("branches", with_foreign_branches(&branches)),
            // Samples that occur twice count once.
            (
                "twice",
                format!("{0}\n{0}", with_foreign_branches(&branches)),
            ),
            ("sound", branches.clone()),
        ] {
            let input = format!("--ps={}", case.file(name, &script));
            case.compare(&[&input, "--format=text", "--ignore-stack-samples"]);
            case.compare(&[&input, "--skip-symbolization"]);
            case.compare_with(
                &input,
                "--format=text --csspgo-preinliner=0 --gen-cs-nested-profile=0",
            );
            if name == "twice" {
                let args = [format!("--binary={}", case.binary), input];
                let run = ours(23, &args, Path::new(&case.path("out")));
                let warned = |text: &str| run.stderr.iter().any(|line| line.contains(text));
                assert!(warned("of branch samples do not match"), "{:?}", run.stderr);
                assert!(warned("of branch targets do not match"), "{:?}", run.stderr);
            }
        }
    }
}

const PROBES: [&str; 4] = [
    "-O2",
    "-g",
    "-fpseudo-probe-for-profiling",
    "-mno-omit-leaf-frame-pointer",
];

#[test]
fn contexts_are_written_in_the_encodings_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let simulation = Simulation::new(3).depth(16).chains(true);
    let case = with_chains(&llvm, "walked.c", &PROBES, &simulation);
    let script = format!("--ps={}", case.path("script"));
    for more in [
        "",
        "--use-md5",
        "--populate-profile-symbol-list",
        "--format=binary",
        "--gen-cs-nested-profile=0",
        "--gen-cs-nested-profile=0 --use-md5",
        "--gen-cs-nested-profile=0 --format=text",
        "--csspgo-preinliner=0 --gen-cs-nested-profile=0",
        "--csspgo-preinliner=0 --csprof-merge-cold-context=0",
        "--mark-all-context-preinlined",
        "--mark-all-context-preinlined --format=text",
        "--mark-all-context-preinlined --gen-cs-nested-profile=0 --csspgo-preinliner=0",
        "--mark-all-context-preinlined --ignore-stack-samples --format=text",
        "--mark-all-context-preinlined --ignore-stack-samples",
        "--generate-merged-base-profiles",
        "--skip-symbolization --csprof-max-unsymbolized-context-depth=1",
        "--skip-symbolization --csprof-max-unsymbolized-context-depth=3 --csprof-max-context-depth=2",
        "--skip-symbolization --csprof-max-unsymbolized-context-depth=-2 --csprof-max-context-depth=2",
        "--skip-symbolization --csprof-max-unsymbolized-context-depth=0",
    ] {
        case.compare_with(&script, more);
    }
}

/// Compiles programs with many different options and for two instruction sets, because llvm-profgen reads different
/// parts of the binary for each of them. Then compares the profiles, with options of llvm-profgen that no other test
/// combines.
#[test]
fn programs_of_many_builds_have_the_profiles_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let probes = "-fpseudo-probe-for-profiling";
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld", "-g"];
    let mut builds: Vec<(&str, Vec<&str>)> = vec![
        ("tail_calls.c", vec!["-O2", "-g", probes]),
        (
            "cold_parts.c",
            vec!["-O2", "-g", "-fsplit-machine-functions"],
        ),
        (
            "conditions.c",
            vec!["-O3", "-g", "-gdwarf-4", "-ffunction-sections"],
        ),
        (
            "thrown.cpp",
            vec!["-O2", "-g", probes, "-funique-internal-linkage-names"],
        ),
        (
            "sampled.c",
            vec!["-O1", "-g1", "-fdebug-info-for-profiling", "-no-pie"],
        ),
    ];
    if links_c(llvm.clang(), &a64[..2]).is_ok() {
        builds.push(("tail_calls.c", [&a64[..], &["-O2", probes]].concat()));
        builds.push((
            "conditions.c",
            [&a64[..], &["-O2", "-fdebug-info-for-profiling"]].concat(),
        ));
    } else {
        profkit_testkit::skip("clang-22 cannot link for AArch64");
    }
    for (index, (source, arguments)) in builds.into_iter().enumerate() {
        let simulation = Simulation::new(20 + index as u64).depth(24).chains(true);
        let case = with_chains(&llvm, source, &arguments, &simulation);
        let script = format!("--ps={}", case.path("script"));
        let options = [
            "--format=text --show-detailed-warning",
            "--format=text --ignore-stack-samples --use-md5",
            "--format=text --ignore-stack-samples --update-total-samples --fill-zero-for-all-funcs",
            "--format=text --compress-recursion=1 --csspgo-preinliner=0",
            "--format=text --csprof-max-context-depth=3 --gen-cs-nested-profile=0 --csspgo-preinliner=0 --trim-cold-profile",
            "--format=text --infer-missing-frames=0 --csprof-merge-cold-context=1 --csprof-max-cold-context-depth=3",
            "--format=text --max-search-depth=1 --show-density",
            "--format=text --use-dwarf-correlation --ignore-stack-samples --profile-density-cutoff-hot=700000 --show-density",
            "--format=text --csspgo-replay-preinline --use-context-cost-for-preinliner=0 --generate-merged-base-profiles",
            "--skip-symbolization --use-offset=0",
            "--skip-symbolization --ignore-stack-samples --use-first-loadable-segment-as-base",
            "--format=binary --ignore-stack-samples --populate-profile-symbol-list",
            "--ignore-stack-samples --use-md5 --trim-cold-profile",
            "--format=text --profile-summary-cutoff-hot=500000 --profile-summary-cutoff-cold=600000 --trim-cold-profile",
        ];
        // Each build is tested with a different part of the list of options.
        for more in some_or_all(
            options.into_iter().cycle().skip(index).take(options.len()),
            5,
        ) {
            case.compare_with(&script, more);
        }
    }
}

#[test]
fn finished_profiles_with_contexts_get_the_last_steps_again() {
    let llvm = require_or_skip!(22);
    let simulation = Simulation::new(5).depth(16).chains(true);
    let case = with_chains(&llvm, "walked.c", &PROBES, &simulation);
    for (index, made) in [
        "--format=text",
        "--format=text --use-dwarf-correlation",
        "--format=extbinary",
    ]
    .into_iter()
    .enumerate()
    {
        let profile = case.path(&format!("profile{index}"));
        let mut args = vec![
            format!("--binary={}", case.binary),
            format!("--ps={}", case.path("script")),
            "--csspgo-preinliner=0".to_owned(),
            "--gen-cs-nested-profile=0".to_owned(),
            "--csprof-merge-cold-context=0".to_owned(),
        ];
        args.extend(made.split_whitespace().map(str::to_owned));
        let run = ours(22, &args, Path::new(&profile));
        assert_eq!(run.code, 0, "{run:?}");
        let input = format!("--llvm-sample-profile={profile}");
        let lines = made.strip_prefix("--format=text").unwrap_or_default();
        for more in [
            "--format=text",
            "--format=text --gen-cs-nested-profile=0",
            "--format=text --gen-cs-nested-profile=0 --sample-profile-hot-inline-threshold=3000 --sample-profile-cold-inline-threshold=45",
            "--format=text --csspgo-preinliner=0",
            "--format=text --csspgo-preinliner=0 --gen-cs-nested-profile=0 --trim-cold-profile",
            "--gen-cs-nested-profile=0",
            "",
        ] {
            case.compare_with(&input, &format!("{lines} {more}"));
        }
    }
    // LLVM's tool crashes on profiles with contexts whose names are hashes.
    let hashes = case.path("hashes");
    let again = case.path("again");
    let args = |more: &[&str]| -> Vec<String> {
        let binary = format!("--binary={}", case.binary);
        std::iter::once(binary)
            .chain(more.iter().map(|&arg| arg.to_owned()))
            .collect()
    };
    let script = format!("--ps={}", case.path("script"));
    let made = ours(
        22,
        &args(&[&script, "--use-md5", "--gen-cs-nested-profile=0"]),
        Path::new(&hashes),
    );
    assert_eq!(made.code, 0, "{made:?}");
    let input = format!("--llvm-sample-profile={hashes}");
    let run = ours(22, &args(&[&input, "--format=text"]), Path::new(&again));
    assert_eq!(run.code, 0, "{run:?}");
}

const DEBUG: [&str; 3] = ["-O2", "-g", "-fdebug-info-for-profiling"];

#[test]
fn recordings_give_the_profiles_of_llvm_profgen_in_every_encoding() {
    let llvm = require_or_skip!(22);
    let case = Case::of(&llvm, "walked.c", &DEBUG);
    let recording = format!("--perfdata={}", case.recording);
    for more in [
        "--format=text",
        "--format=text --show-density --update-total-samples",
        "--format=text --trim-cold-profile --profile-summary-cold-count=500",
        "--format=text --fill-zero-for-all-funcs --profile-density-threshold=1e9",
        "--format=binary",
        "--format=extbinary",
        "",
        "--use-md5 --populate-profile-symbol-list",
        "--use-md5 --format=text",
        "--skip-symbolization",
        "--skip-symbolization --use-offset=0",
        "--skip-symbolization --use-first-loadable-segment-as-base",
        "--format=text --pid=10",
    ] {
        case.compare_with(&recording, more);
    }
}

#[test]
fn texts_of_perf_script_are_read_by_the_same_rules() {
    let llvm = require_or_skip!(22);
    let case = Case::of(&llvm, "walked.c", &DEBUG);
    let Some(script) = case.script() else {
        return;
    };
    let samples: Vec<&str> = script
        .lines()
        .filter(|line| !line.contains("MMAP"))
        .collect();
    let mapping = script
        .lines()
        .find(|line| line.contains("MMAP") && line.ends_with("/walked"))
        .expect("a mapping of the program");
    let aggregated: Vec<String> = samples.iter().map(|line| format!("3\n{line}")).collect();
    let odd = [
        &samples[..3],
        &[
            "",
            "# a comment",
            "  12 x",
            "0x1/0x2/P zz/0x3",
            "4005d7 0x40/zz/P/-/-/1",
        ],
        &samples[3..9],
        &["not a line of samples", " 0x1/0x2/P"],
    ]
    .concat();
    let at = mapping.find("[0x").expect("an address");
    let moved = mapping.replacen("[0x", "[0x1", 1);
    assert!(at > 0);
    let elsewhere = mapping.replacen("/walked", "/another", 1);
    let texts = [
        script.clone(),
        samples.join("\n"),
        aggregated.join("\n"),
        odd.join("\n"),
        format!("{elsewhere}\n{}", samples.join("\n")),
        format!("{moved}\n{}", samples.join("\n")),
        format!(
            "{mapping}\n{}\n{moved}\n{}",
            samples[..50].join("\n"),
            samples[50..].join("\n")
        ),
        "PERF_RECORD_MMAP2 this is no mapping although it has the name of one\n".repeat(2)
            + samples[0],
        "no samples at all\n".to_owned(),
        String::new(),
    ];
    for (index, text) in texts.iter().enumerate() {
        let input = format!("--ps={}", case.file(&format!("{index}.script"), text));
        case.compare(&[
            &input,
            "--format=text",
            "--show-mmap-events",
            "--show-detailed-warning",
        ]);
        case.compare(&[&input, "--skip-symbolization", "--use-offset=false"]);
    }
}

#[test]
fn unsymbolized_and_finished_profiles_are_read_by_the_same_rules() {
    let llvm = require_or_skip!(22);
    let case = Case::of(&llvm, "walked.c", &DEBUG);
    let recording = format!("--perfdata={}", case.recording);
    let output = case.path("unsymbolized");
    let binary = format!("--binary={}", case.binary);
    let made = ours(
        22,
        &[
            binary.clone(),
            recording.clone(),
            "--skip-symbolization".to_owned(),
        ],
        Path::new(&output),
    );
    assert_eq!(made.code, 0, "{made:?}");
    let text = std::fs::read_to_string(&output).expect("text");
    assert!(text.lines().count() > 20, "{text}");
    case.compare(&[&format!("--up={output}"), "--format=text"]);
    case.compare(&[&format!("--up={output}"), "--format=text", "--use-offset=0"]);
    case.compare(&[&format!("--up={output}"), "--skip-symbolization"]);
    for (index, wrong) in [
        "x\n",
        "1\n",
        "0\n",
        "0\n0",
        "0\n0\n0\n",
        "1\n10-20\n0\n",
        "1\n10-20:5x\n0\n",
        "1\n10->20:5\n0\n",
        "  1\n  10-2000:5\n  1\n  0x10->0x20:5\n",
        "1\n20-10:5\n0\n",
    ]
    .iter()
    .enumerate()
    {
        let input = format!("--up={}", case.file(&format!("{index}.up"), wrong));
        case.compare(&[&input, "--format=text"]);
    }
    let profile = case.path("profile");
    let args = [binary, recording, "--format=text".to_owned()];
    assert_eq!(ours(22, &args, Path::new(&profile)).code, 0);
    let input = format!("--llvm-sample-profile={profile}");
    case.compare(&[&input, "--format=text"]);
    case.compare(&[
        &input,
        "--format=text",
        "--trim-cold-profile",
        "--profile-summary-cutoff-cold=900000",
    ]);
    case.compare(&[
        &input,
        "--show-density",
        "--profile-density-cutoff-hot=500000",
    ]);
}

#[test]
fn wrong_command_lines_and_files_give_the_texts_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let case = Case::of(&llvm, "walked.c", &["-O1"]);
    let zero = format!("--up={}", case.file("zero", "0\n0\n"));
    let text = format!("--binary={}", case.file("text", "no program\n"));
    let archive = format!("--binary={}", case.file("archive", "!<arch>\n"));
    let folder = format!("--binary={}", case.folder.path().display());
    let binary = format!("--binary={}", case.binary);
    let object = case.path("object.o");
    let source = case.file("object.c", "int f(void) { return 1; }\n");
    let compiled = Command::new(llvm.clang())
        .args(["-c", "-g", &source, "-o", &object])
        .status();
    assert!(compiled.expect("clang runs").success());
    let object = format!("--binary={object}");
    let mach = case.path("mach.o");
    let compiled = Command::new(llvm.clang())
        .args(["--target=x86_64-apple-darwin", "-c", &source, "-o", &mach])
        .status();
    assert!(compiled.expect("clang runs").success());
    let mach = format!("--binary={mach}");
    for args in [
        &["--without-output"][..],
        &["--without-output", "--binary"],
        &["--without-output", "--binary=x", "y", "-z"],
        &["--without-output", &binary],
        &[],
        &[&binary],
        &[&binary, "--ps=nowhere"],
        &[&binary, "--perfdata=nowhere", "--up=nowhere"],
        &["--binary=nowhere", &zero],
        &[&binary, &zero, "--compress-recursion=-2"],
        &[&binary, &zero, "--compress-recursion=two"],
        &[&binary, &zero, "--csprof-max-context-depth=-2147483649"],
        &[&binary, &zero, "--pid=-1"],
        &[&binary, &zero, "--format=yaml"],
        &[&binary, &zero, "--show-source-locations"],
        &[&binary, &zero, "--use-offset=maybe"],
        &[&binary, &zero, "--profile-density-threshold=few"],
        &[&binary, &zero, "--debug-binary=nowhere"],
        &[&binary, &zero, "--dwp=nowhere"],
        &[&binary, &zero],
        &[&text, &zero],
        &[&archive, &zero],
        &[&folder, &zero],
        &[&object, &zero],
        &[&mach, &zero],
        &[&binary, &zero, "--format=gcc"],
        &[&binary, "--perfdata=/dev/null"],
        &[&binary, "--ps=/dev/null"],
        &[&binary, &zero, "--skip-symbolizatio"],
        &[&binary, &zero, "-h=1"],
        &[&binary, &zero, "--version=1"],
    ] {
        compare(args);
    }
}

/// Runs LLVM's tool and profkit with the same arguments, and checks that the given message is in a line of standard
/// error.
fn compare_message(args: &[&str], message: &str) {
    compare(args);
    let folder = tempfile::tempdir().expect("a folder");
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let run = ours(22, &args, &folder.path().join("out"));
    let said = run.stderr.iter().any(|line| line.contains(message));
    assert!(said, "{args:?}: {message:?} is not among {:?}", run.stderr);
}

/// Returns a sample as `perf script` prints it: a mapping of the fixture, a call chain, and a branch stack with the
/// newest branch first. The arguments are addresses relative to the mapping.
fn script_of(chain: &[u64], branches: &[(u64, u64)]) -> String {
    let mut script =
        "PERF_RECORD_MMAP2 10/10: [0x400000(0x2000) @ 0 08:01 7 0]: r-xp /opt/clang-22-dwarf-5.elf\n"
            .to_owned();
    let address = |place: u64| 0x40_0000 + place;
    for &frame in chain {
        script.push_str(&format!("\t          {:x}\n", address(frame)));
    }
    for &(from, to) in branches {
        script.push_str(&format!(
            " 0x{:x}/0x{:x}/P/-/-/0",
            address(from),
            address(to)
        ));
    }
    script.push_str("\n\n");
    script
}

/// This test covers only some of the warnings. Other tests in this file cover the others.
#[test]
fn samples_that_do_not_fit_give_the_warnings_of_llvm_profgen() {
    let _llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let binary = repo_root().join("tests/fixtures/debug_info/clang-22-dwarf-5.elf");
    let binary = format!("--binary={}", binary.display());
    let path = folder.path().join("script");
    let input = format!("--ps={}", path.display());
    // Branches in the fixture, as addresses relative to its mapping: a loop in `work`, the call of `work` in `_start`,
    // and an address far outside of the fixture.
    const LOOP: (u64, u64) = (0x33f, 0x300);
    const CALL: (u64, u64) = (0x3b7, 0x280);
    const OUTSIDE: u64 = 0x10_0000;
    let detailed = ["--show-detailed-warning"];
    /// A test case: the addresses of a call chain, the branches of a branch stack, additional options, and a part of
    /// the expected message.
    type Unfitting<'t> = (&'t [u64], &'t [(u64, u64)], &'t [&'t str], &'t str);
    let cases: [Unfitting<'_>; 14] = [
        (
            &[],
            &[LOOP, (0x33f, 0x301), LOOP],
            &[],
            "that are not on instruction boundary.",
        ),
        (
            &[],
            &[LOOP, (0x33f, 0x301), LOOP],
            &detailed,
            "Range is not on instruction boundary",
        ),
        (
            &[],
            &[(0x3b0, 0x300), (0x33f, 0x39f), LOOP],
            &[],
            "that do cross function boundaries.",
        ),
        (
            &[],
            &[(0x3b0, 0x300), (0x33f, 0x39f), LOOP],
            &detailed,
            "Fall through range should not cross function",
        ),
        (
            &[],
            &[LOOP, (0x33f, 0x341), LOOP],
            &[],
            "acrossing the unconditinal jmp.",
        ),
        (
            &[],
            &[LOOP, (0x33f, 0x341), LOOP],
            &detailed,
            "Range start is after or too far from range end.",
        ),
        (
            &[0x300, 0x3a2],
            &[LOOP, LOOP],
            &[],
            "of truncated stack samples due to invalid return address",
        ),
        (
            &[0x300, 0x3a2],
            &[LOOP, LOOP],
            &detailed,
            "Truncated stack sample due to invalid return address at 0x",
        ),
        // The caller differs: it is `work` in the call chain, and `_start` in the branch stack.
        (
            &[0x300, 0x39f],
            &[LOOP, CALL, LOOP],
            &[],
            "likely due to frame in prolog/epilog.",
        ),
        // A call that comes from outside of the binary.
        (
            &[0x300, 0x3bc],
            &[(OUTSIDE, 0x300), LOOP],
            &[],
            "likely due to unwinding error of external frame.",
        ),
        (
            &[0x300, 0x3bc],
            &[LOOP, (OUTSIDE, 0x300), LOOP],
            &[],
            "doesn't have another external address to pair",
        ),
        (
            &[OUTSIDE, 0x3bc],
            &[LOOP, CALL],
            &[],
            "of samples have leaf external frame in call stack.",
        ),
        (
            &[],
            &[LOOP, LOOP],
            &["--kernel", "--binary=vmlinux"],
            "Kernel is requested, but no kernel is found in mmap events.",
        ),
        (&[], &[], &[], "Invalid perf script input!"),
    ];
    for (chain, branches, more, message) in cases {
        std::fs::write(&path, script_of(chain, branches)).expect("written");
        let kernel = folder.path().join("vmlinux");
        let kernel = format!("--binary={}", kernel.display());
        let other = more.contains(&"--binary=vmlinux");
        if other {
            let fixture = binary.strip_prefix("--binary=").expect("a path");
            std::fs::copy(fixture, folder.path().join("vmlinux")).expect("copied");
        }
        let binary = if other { &kernel } else { &binary };
        let more = more.iter().filter(|it| !it.starts_with("--binary="));
        let args: Vec<&str> = [binary.as_str(), &input, "--format=text"]
            .into_iter()
            .chain(more.copied())
            .collect();
        compare_message(&args, message);
    }
    let write = |text: &str| std::fs::write(&path, text).expect("written");
    let args = [binary.as_str(), input.as_str(), "--format=text"];
    // A sample with a call chain, and one whose branch stack is missing.
    let sound = script_of(&[0x300, 0x3bc], &[LOOP, LOOP]);
    write(&format!("{sound}\t          400300\n\t          4003bc\n"));
    compare_message(
        &args,
        "'Hybrid perf sample is corrupted, No LBR sample line",
    );
    // Without a mapping, the addresses in the text are taken as addresses in the file.
    write(" 1300 0x133f/0x1300/P/-/-/0 0x133f/0x1300/P/-/-/0\n");
    compare_message(
        &args,
        "No relevant mmap event is matched for clang-22-dwarf-5.elf, will use preferred address",
    );
    // A second mapping maps the middle of the file, from offset 0x1000. But it does not start 0x1000 bytes after the
    // start of the first mapping, so the two do not fit each other.
    let mapping = sound.lines().next().expect("a mapping");
    let second = mapping.replace("[0x400000(0x2000) @ 0 ", "[0x700000(0x2000) @ 0x1000 ");
    write(&format!(
        "{mapping}\n{second}\n 400300 0x40033f/0x400300/P/-/-/0\n"
    ));
    compare_message(&args, "Segment not loaded by consecutive mmaps");
}

#[test]
fn segments_that_are_not_mapped_together_give_the_errors_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("two.c"),
        "__attribute__((section(\".far\"))) int far(int x) { return x + 1; }\nint main(void) { return far(1); }\n",
    )
    .expect("written");
    let compiled = Command::new(llvm.clang())
        .args([
            "-g",
            "-no-pie",
            "-Wl,-z,separate-code",
            "-Wl,--section-start=.far=0x800000",
        ])
        .arg(at("two.c"))
        .arg("-o")
        .arg(at("two"))
        .status();
    assert!(compiled.expect("clang runs").success());
    let binary = format!("--binary={}", at("two").display());
    let input = format!("--ps={}", at("script").display());
    let mapping = |address: u64, offset: u64| {
        format!(
            "PERF_RECORD_MMAP2 10/10: [{address:#x}(0x1000) @ {offset:#x} 08:01 7 0]: r-xp /opt/two\n"
        )
    };
    // The file offsets of the segments with code, rounded down to whole pages.
    let bytes = std::fs::read(at("two")).expect("read");
    let number = |at: usize, len: usize| {
        let field = bytes[at..at + len].iter().rev();
        field.fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let mut offsets = Vec::new();
    for header in 0..usize::try_from(number(56, 2)).expect("small") {
        let header = usize::try_from(number(32, 8)).expect("small") + header * 56;
        if (number(header, 4), number(header + 4, 4) & 1) == (1, 1) {
            offsets.push(number(header + 8, 8) & !0xfff);
        }
    }
    let [first, second] = offsets[..] else {
        panic!("{offsets:?}");
    };
    let sample = " 401000 0x401000/0x401000/P/-/-/0\n";
    // A branch at the start of the function `_init`, which has no debug info.
    let branch = " 0x401000/0x401000/P/-/-/0";
    let text = mapping(0x40_1000, first) + &format!("{branch}{branch}\n");
    std::fs::write(at("script"), text).expect("written");
    let detailed = [&*binary, &input, "--show-detailed-warning"];
    compare_message(&detailed, "Range does not belong to any functions");
    for (mappings, message) in [
        (
            mapping(0x90_0000, first) + &mapping(0x90_1000, second),
            "Executable segments not loaded consecutively",
        ),
        (mapping(0x90_0000, 0), "File offset not found"),
        (
            mapping(0x90_0000, first) + &mapping(0x99_0000, second + 0x1000),
            "Segment not loaded by consecutive mmaps",
        ),
    ] {
        std::fs::write(at("script"), mappings + sample).expect("written");
        compare_message(&[&binary, &input], message);
    }
}

#[test]
fn debug_info_that_does_not_fit_gives_the_warnings_of_llvm_profgen() {
    const SAME: &str = "__attribute__((noinline)) int one(int x) { return x * 3 + 1; }
__attribute__((noinline)) int two(int x) { return x * 3 + 1; }
int unused(int x) { return x * 5 + 1; }
int main(int argc, char **argv) { return one(argc) + two(argc); }
";
    // The compiler splits the function `work` into two address ranges.
    const PARTS: &str = "__attribute__((noinline, cold)) void complain(int value) { __asm__ volatile(\"\" :: \"r\"(value)); }
__attribute__((noinline)) int work(int value) {
  if (__builtin_expect(value == 3, 0)) { complain(value); complain(value + 1); return -1; }
  return value * 2 + 1;
}
int unused(int x) { return x * 5 + 1; }
int main(int argc, char **argv) { return work(argc); }
";
    // Two units have debug info of one function.
    const SHARED: &str =
        "inline __attribute__((noinline)) int shared(int x) { return x * 3 + 1; }\n";
    let llvm = require_or_skip!(22);
    or_skip!(links_c(Path::new("gcc-12"), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let run = |command: &mut Command| {
        let run = command.current_dir(folder.path()).status();
        assert!(run.expect("runs").success(), "{command:?}");
    };
    let using = |rest: &str| format!("{SHARED}{rest}");
    for (name, source) in [
        ("same.c", SAME.to_owned()),
        ("parts.c", PARTS.to_owned()),
        ("one.cpp", using("int other(int x) { return shared(x); }\n")),
        (
            "two.cpp",
            using("int other(int);\nint main(int c, char **) { return shared(c) + other(c); }\n"),
        ),
        ("counts", "1\n0-4:1\n0\n".to_owned()),
    ] {
        std::fs::write(at(name), source).expect("written");
    }
    run(Command::new(llvm.clang()).args(["-O1", "-g", "-gsplit-dwarf", "-c", "same.c"]));
    std::fs::remove_file(at("same.dwo")).expect("the split debug info");
    run(Command::new(llvm.clang()).args(["same.o", "-o", "split"]));
    run(Command::new(llvm.clangxx()).args(["-O1", "-g", "one.cpp", "two.cpp", "-o", "shared"]));
    let sections = ["-ffunction-sections", "-Wl,--gc-sections"];
    run(Command::new("gcc-12")
        .args([
            "-O2",
            "-g",
            "-freorder-blocks-and-partition",
            "parts.c",
            "-o",
            "parts",
        ])
        .args(sections));
    run(Command::new("objcopy").args(["--redefine-sym", "work=other", "parts", "renamed"]));
    let counts = format!("--up={}", at("counts").display());
    let binary = |name: &str| format!("--binary={}", at(name).display());
    for (name, message) in [
        (
            "split",
            "DWO debug information was not loaded for 1 modules.",
        ),
        ("shared", "Found 1 start addresses with multiple symbols"),
        (
            "renamed",
            "%(1/4) of functions failed to determine function entry due to inconsistent name",
        ),
    ] {
        compare_message(&[&binary(name), &counts, "--format=text"], message);
    }
    // The linker removes or folds functions in these programs. Such functions cause none of the messages above.
    run(Command::new(llvm.clang())
        .args([
            "-O1",
            "-g",
            "-fuse-ld=lld",
            "-Wl,--icf=all",
            "same.c",
            "-o",
            "folded",
        ])
        .args(sections));
    for name in ["parts", "folded"] {
        compare(&[&binary(name), &counts, "--format=text"]);
    }
}
