//! What goes wrong around a program that writes its profile: it is killed, the disk is full, the folder is read-only, the
//! file is a link or of another program. The file is whole or as it was before, and the reason is on stderr.
use crate::support::{said, Program, ENDS};
use profkit_testkit::{or_skip, succeed, Killer};
use std::fs;
use std::os::unix::fs::{symlink, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// A program with many functions, whose profile is larger than a page. After it has called `getppid`, it only ends, and
/// so writes its profile.
const LARGE: &str = r#"
#include <sys/syscall.h>
#include <unistd.h>
volatile int sink;
#define F(n) __attribute__((noinline)) void f##n(int x) { if (x) sink++; }
#define TEN(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8)
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) if (i % 2) sink++; }
int main(void) { work(100); f10(1); f89(0); syscall(SYS_getppid); return 0; }
"#;

/// A program whose profile is shorter than a page.
const SMALL: &str = r#"
#include <sys/syscall.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) if (i % 2) sink++; }
int main(void) { work(100); syscall(SYS_getppid); return 0; }
"#;

/// The program that kills other programs, or why there is none here.
fn killer(program: &Program) -> Result<Killer, String> {
    Killer::new(&program.path(""), program.llvm.clang())
}

/// Runs the program again and again: the first run is killed at the first system call after the point `from`, the
/// second run at the second, and so on, until a run comes to its end. Before each run, `prepare` restores the profile,
/// but leaves temporary files. Returns the files after each run, with their contents.
fn killed_everywhere(
    program: &Program,
    killer: &Killer,
    from: &str,
    name: &str,
    variables: &[(&str, &str)],
    prepare: impl Fn(),
) -> Vec<Vec<(PathBuf, Vec<u8>)>> {
    let mut outcomes = Vec::new();
    let mut command = Command::new("./program");
    command
        .current_dir(program.path(""))
        .env("LLVM_PROFILE_FILE", name)
        .envs(variables.iter().copied());
    killer.everywhere(from, &command, prepare, |_| {
        let files = program.files().into_iter();
        outcomes.push(
            files
                .map(|file| (file.clone(), fs::read(file).unwrap()))
                .collect(),
        );
    });
    outcomes
}

#[test]
fn a_process_killed_at_any_system_call_leaves_a_whole_file() {
    let program = or_skip!(Program::new(LARGE, &["-no-pie"]));
    let killer = or_skip!(killer(&program));
    // For each name pattern: the contents of the profile file after one run, and after two runs.
    let mut stages = Vec::new();
    for name in ["out/%m.profraw", "out/a.profraw"] {
        let once = [("__LLVM_PROFILE_RT_INIT_ONCE", "out/a.profraw")];
        program.run(name, "", &once);
        let file = program.files().pop().unwrap();
        let first = fs::read(&file).unwrap();
        program.run(name, "", &once);
        let second = fs::read(&file).unwrap();
        assert!(first.len() > 4096 && first != second);
        fs::remove_file(&file).unwrap();
        stages.push((name, once, file, first, second));
    }
    for (name, once, file, first, second) in stages {
        for existed in [true, false] {
            let outcomes = killed_everywhere(&program, &killer, "end", name, &once, || {
                if existed {
                    fs::write(&file, &first).unwrap();
                } else {
                    let _ = fs::remove_file(&file);
                }
            });
            // Runs that leave the old profile, the new one, and a temporary file must all occur.
            let (mut before, mut after, mut temporary) = (0, 0, 0);
            let count = outcomes.len();
            for (at, files) in outcomes.into_iter().enumerate() {
                assert!(files.len() <= 2, "{name} {at}: {files:?}");
                for (path, bytes) in files {
                    if path != file {
                        assert!(path.to_str().unwrap().ends_with(".profkit.tmp"), "{path:?}");
                        temporary += 1;
                    } else if existed && bytes == first || !existed && bytes.is_empty() {
                        before += 1;
                    } else {
                        let whole = if existed { &second } else { &first };
                        assert!(&bytes == whole, "{name} {at} of {count}: a part of a file");
                        after += 1;
                    }
                }
            }
            assert!(
                count > 10 && before > 5 && after > 2 && temporary > 2,
                "{name} {existed}: {count} {before} {after} {temporary}"
            );
            // The last run came to its end, and has removed the temporary file that the killed runs had left.
            assert_eq!(program.files(), std::slice::from_ref(&file));
        }
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_short_file_is_written_by_one_system_call() {
    let program = or_skip!(Program::new(SMALL, &["-no-pie"]));
    let killer = or_skip!(killer(&program));
    for (name, existed) in [
        ("out/%m.profraw", false),
        ("out/%m.profraw", true),
        ("out/a.profraw", false),
    ] {
        program.run(name, "", &[]);
        let file = program.files().pop().unwrap();
        let first = fs::read(&file).unwrap();
        program.run(name, "", &[]);
        let second = fs::read(&file).unwrap();
        assert!(first.len() < 4096);
        let (old, whole) = if existed {
            (first, second)
        } else {
            (Vec::new(), first)
        };
        let outcomes = killed_everywhere(&program, &killer, "start", name, &[], || {
            if existed {
                fs::write(&file, &old).unwrap();
            } else {
                let _ = fs::remove_file(&file);
            }
        });
        let (mut before, mut after) = (0, 0);
        for (at, files) in outcomes.into_iter().enumerate() {
            // A short profile is written without a temporary file, so there is never more than one file.
            assert!(files.len() <= 1, "{name} {at}: {files:?}");
            for (path, bytes) in files {
                assert_eq!(path, file, "{name} {at}");
                if bytes == whole {
                    after += 1;
                } else {
                    assert!(bytes == old, "{name} {existed} {at}: a part of a file");
                    before += 1;
                }
            }
        }
        assert!(
            before > 2 && after > 2,
            "{name} {existed}: {before} {after}"
        );
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_short_file_that_may_not_grow_stays_as_it_was() {
    let program = or_skip!(Program::new(SMALL, &["-no-pie"]));
    for existed in [false, true] {
        let name = "out/%m.profraw";
        let mut before = Vec::new();
        if existed {
            program.run(name, "", &[]);
            before = fs::read(program.files().pop().unwrap()).unwrap();
        }
        // Limits in bytes: with the first nothing can be written, with the others only a part of the profile.
        for limit in ["0", "100", "300"] {
            let output = Command::new("prlimit")
                .arg(format!("--fsize={limit}"))
                .arg("./program")
                .current_dir(program.path(""))
                .env("LLVM_PROFILE_FILE", name)
                .output();
            let output = match output {
                Ok(output) => output,
                Err(error) => {
                    profkit_testkit::skip(&format!("prlimit: {error}"));
                    return;
                }
            };
            assert!(output.status.success(), "{limit}: {output:?}");
            assert!(
                said(&output).contains("the process may not write files of this size (error 27)"),
                "{limit}: {output:?}"
            );
            let file = program.files().pop().unwrap();
            assert_eq!(program.files().len(), 1, "{limit}");
            assert!(fs::read(&file).unwrap() == before, "{limit}");
        }
        program.run(name, "", &[]);
        let runs = if existed {
            "2 [200, 100]"
        } else {
            "1 [100, 50]"
        };
        assert_eq!(program.counts("work"), runs);
    }
}

#[test]
fn a_continuous_process_killed_at_any_system_call_leaves_a_file_that_can_be_read() {
    let options = [
        "-no-pie",
        "-static",
        "-mllvm",
        "-runtime-counter-relocation",
    ];
    let program = or_skip!(Program::new(LARGE, &options));
    let killer = or_skip!(killer(&program));
    for name in ["out/a%c.profraw", "out/%m%c.profraw"] {
        let outcomes = killed_everywhere(&program, &killer, "start", name, &[], || {
            for file in program.files() {
                if file.extension().unwrap() == "profraw" {
                    fs::remove_file(file).unwrap();
                }
            }
        });
        let mut counted = 0;
        for (at, files) in outcomes.iter().enumerate() {
            assert!(files.len() <= 2, "{name} {at}: {files:?}");
            for (path, bytes) in files {
                if path.extension().unwrap() == "tmp" || bytes.is_empty() {
                    continue;
                }
                let copy = program.path("copy.profraw");
                fs::write(&copy, bytes).unwrap();
                let counts = program.counts_of(&[copy], &["work"]);
                assert!(
                    ["0 [0, 0]", "1 [100, 50]"].contains(&&*counts),
                    "{at}: {counts}"
                );
                counted += usize::from(counts == "1 [100, 50]");
            }
        }
        assert!(counted > 0, "{name}");
        assert_eq!(program.counts("work"), "1 [100, 50]", "{name}");
    }
}

#[test]
fn processes_killed_at_random_do_not_harm_the_others() {
    let program = or_skip!(Program::new(LARGE, &[]));
    let finished = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..4_u64 {
            let (program, finished) = (&program, &finished);
            scope.spawn(move || {
                let mut random = profkit_testkit::Rng::new(worker + 1);
                for _ in 0..40 {
                    let mut child = program.command("out/%m.profraw", "").spawn().unwrap();
                    if worker % 2 == 0 {
                        std::thread::sleep(std::time::Duration::from_micros(
                            random.below(4000) as u64
                        ));
                        child.kill().unwrap();
                    }
                    if child.wait().unwrap().success() {
                        finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    // The pool, and at most one temporary file of a killed run.
    assert!(program.files().len() <= 2, "{:?}", program.files());
    program.run("out/%m.profraw", "", &[]);
    assert_eq!(program.files().len(), 1);
    let counts = program.counts("work");
    let count: usize = counts.split(' ').next().unwrap().parse().unwrap();
    // The count includes every run that came to its end. It may also include runs that were killed after their write.
    let finished = finished.into_inner() + 1;
    assert!(
        finished >= 81 && (finished..=161).contains(&count),
        "{counts} {finished}"
    );
}

#[test]
fn a_file_that_may_not_grow_stays_as_it_was() {
    let program = or_skip!(Program::new(LARGE, &["-no-pie"]));
    for name in ["out/%m.profraw", "out/a.profraw"] {
        let once = ("__LLVM_PROFILE_RT_INIT_ONCE", "out/a.profraw");
        program.run(name, "", &[once]);
        let file = program.files().pop().unwrap();
        let before = fs::read(&file).unwrap();
        for (blocks, handling) in [(0, ""), (0, "trap '' XFSZ;"), (1, ""), (9, "")] {
            let script = format!("{handling} ulimit -f {blocks}; exec ./program");
            let output = succeed(
                Command::new("sh")
                    .args(["-c", &script])
                    .current_dir(program.path(""))
                    .env("LLVM_PROFILE_FILE", name)
                    .env(once.0, once.1),
            );
            assert_eq!(
                said(&output),
                format!(
                    "LLVM Profile Error: Failed to write file \"{}\": the process may not write files of this size (error 27)\n",
                    file.strip_prefix(program.path("")).unwrap().display()
                ),
                "{script}"
            );
            assert!(fs::read(&file).unwrap() == before, "{script}");
            assert_eq!(program.files(), std::slice::from_ref(&file));
        }
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_pipe_that_nobody_reads_does_not_end_the_program() {
    let program = or_skip!(Program::new(LARGE, &[]));
    let script = "mkfifo pipe; (sleep 0.01 < pipe) & LLVM_PROFILE_FILE=pipe ./program; echo $?";
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(program.path(""))
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"0\n", "{}", said(&output));
}

#[test]
fn a_full_disk_keeps_the_old_profile() {
    let program = or_skip!(Program::new(LARGE, &["-no-pie", "-static"]));
    // A file system of 10 pages, in a namespace of this test.
    let script = "
        mount -t tmpfs -o size=40k profiles out || exit 9
        ./program
        cp out/*.profraw before
        head -c 100000 /dev/zero > out/filler 2> /dev/null
        ./program
        echo $?
        cmp out/*.profraw before && ls out | wc -l
        rm out/filler
        ./program
        cp out/*.profraw after";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .current_dir(program.path(""))
        .env("LLVM_PROFILE_FILE", "out/%m.profraw")
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(9) && !said(&output).contains("unshare") => {
            output
        }
        other => {
            profkit_testkit::skip(&format!("file systems cannot be mounted: {other:?}"));
            return;
        }
    };
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(
        stdout.split_whitespace().collect::<Vec<_>>(),
        ["0", "2"],
        "{output:?}"
    );
    assert!(
        said(&output).contains("no space left on device"),
        "{output:?}"
    );
    fs::rename(program.path("after"), program.path("out/after.profraw")).unwrap();
    assert_eq!(program.counts("work"), "2 [200, 100]");
}

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn folders_and_files_of_others() {
    let program = or_skip!(Program::new(LARGE, &["-no-pie"]));
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(program.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    let is_root = fs::metadata(program.path("out")).unwrap().uid() == 0;
    // The administrator may write everywhere, so the program then runs as `nobody`.
    let run = |name: &str| {
        let mut command = program.command(name, "");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    };
    mode("", 0o755);
    mode("out", 0o555);
    let output = run("out/a.profraw");
    assert!(output.status.success());
    assert!(
        said(&output).contains("out/a.profraw\": permission denied (error 13)"),
        "{output:?}"
    );
    assert!(program.files().is_empty());
    // A file in the folder may be written, but not replaced.
    mode("out", 0o755);
    assert_eq!(said(&program.run("out/%m.profraw", "", &[])), "");
    let file = program.files().pop().unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    mode("out", 0o555);
    for _ in 0..2 {
        assert_eq!(said(&run("out/%m.profraw")), "");
    }
    mode("out", 0o755);
    assert_eq!(program.files(), std::slice::from_ref(&file));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    // A file that is replaced keeps its permissions and its owner.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let owner = if is_root {
        NOBODY
    } else {
        fs::metadata(&file).unwrap().uid()
    };
    std::os::unix::fs::chown(&file, Some(owner), None).unwrap();
    assert_eq!(said(&program.run("out/%m.profraw", "", &[])), "");
    let facts = fs::metadata(&file).unwrap();
    assert_ne!(facts.ino(), inode);
    assert_eq!((facts.mode() & 0o777, facts.uid()), (0o640, owner));
    assert_eq!(program.counts("work"), "4 [400, 200]");
}

#[test]
fn the_file_at_the_end_of_a_link_is_written() {
    let program = or_skip!(Program::new(ENDS, &[]));
    let real = program.path("out/real.profraw");
    let again = [("__LLVM_PROFILE_RT_INIT_ONCE", "link")];
    // Through two relative links to a file that exists at the second run.
    symlink("out/second", program.path("link")).unwrap();
    symlink("../out/real.profraw", program.path("out/second")).unwrap();
    for runs in 1..3 {
        assert_eq!(said(&program.run("link", "", &again)), "");
        let counts = program.counts_of(std::slice::from_ref(&real), &["work"]);
        assert_eq!(counts, format!("{runs} [{}, {}]", runs * 100, runs * 50));
    }
    for link in ["link", "out/second"] {
        assert!(fs::symlink_metadata(program.path(link))
            .unwrap()
            .is_symlink());
    }
    assert_eq!(program.files().len(), 2);
    fs::remove_file(program.path("out/second")).unwrap();
    fs::remove_file(real).unwrap();
    // A pool.
    program.run("out/%m.profraw", "", &[]);
    let pool = program.files().pop().unwrap();
    let moved = program.path("pool.profraw");
    fs::rename(&pool, &moved).unwrap();
    symlink(&moved, &pool).unwrap();
    assert_eq!(said(&program.run("out/%m.profraw", "", &[])), "");
    assert!(fs::symlink_metadata(&pool).unwrap().is_symlink());
    assert_eq!(program.counts_of(&[moved], &["work"]), "2 [200, 100]");
    fs::remove_file(&pool).unwrap();
    // A symbolic link to itself.
    symlink("loop", program.path("loop")).unwrap();
    assert_eq!(
        said(&program.run("loop", "", &[])),
        "LLVM Profile Error: Failed to write file \"loop\": too many symbolic links (error 40)\n"
    );
    // Standard output is a file. The process that has opened it goes on to use it, so the file must not be replaced.
    let output = fs::File::create(program.path("out/stdout")).unwrap();
    let status = program.command("/dev/stdout", "").stdout(output).status();
    assert!(status.unwrap().success());
    assert_eq!(program.counts("work"), "1 [100, 50]");
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}

#[test]
fn programs_and_builds_do_not_share_pools() {
    let program = or_skip!(Program::new(ENDS, &[]));
    // The same program with one function more, and one with the same functions compiled differently.
    let more = format!("{ENDS}\nint other(int x) {{ return x ? 1 : 2; }}\n");
    program.compile(&more, "more", &[]);
    program.compile(ENDS, "different", &["-O2", "-DNDEBUG"]);
    let run = |name: &str, pattern: &str| {
        let output = Command::new(program.path(name))
            .current_dir(program.path(""))
            .env("LLVM_PROFILE_FILE", pattern)
            .output();
        said(&output.unwrap())
    };
    for name in [
        "program",
        "more",
        "different",
        "program",
        "more",
        "different",
    ] {
        assert_eq!(run(name, "out/%m.profraw"), "");
    }
    assert_eq!(program.files().len(), 3);
    assert_eq!(
        program.counts_of(&program.files(), &["work"]),
        "6 [600, 300]"
    );
    // The runtime keeps the pool of another build, and writes to another file.
    for file in program.files() {
        fs::remove_file(file).unwrap();
    }
    run("program", "out/%m.profraw");
    let other = program.files().pop().unwrap();
    let bytes = fs::read(&other).unwrap();
    run("more", "out/%m.profraw");
    let pool = program
        .files()
        .into_iter()
        .find(|file| *file != other)
        .unwrap();
    fs::copy(&other, &pool).unwrap();
    let stderr = run("more", "out/%m.profraw");
    assert!(
        stderr.contains(
            "is damaged or of another program. It is kept, and this profile is written to"
        ),
        "{stderr}"
    );
    assert!(fs::read(&pool).unwrap() == bytes);
    assert_eq!(program.files().len(), 3);
    assert_eq!(program.counts("work"), "3 [300, 150]");
}

#[test]
fn two_builds_with_the_same_build_id_do_not_share_a_pool() {
    let id = "-Wl,--build-id=0x000102030405060708090a0b0c0d0e0f10111213";
    let program = or_skip!(Program::new(LARGE, &[id]));
    // The same numbers of functions, names and counters, but other hashes.
    let other = LARGE.replace("if (x) sink++;", "while (x) { sink++; break; }");
    program.compile(&other, "other", &[id]);
    let run = |name: &str| {
        let mut command = Command::new(program.path(name));
        command
            .current_dir(program.path(""))
            .env("LLVM_PROFILE_FILE", "out/%m.profraw");
        said(&command.output().unwrap())
    };
    assert_eq!(run("program"), "");
    assert_eq!(run("program"), "");
    assert_eq!(program.files().len(), 1);
    let stderr = run("other");
    assert!(
        stderr.contains("is damaged or of another program. It is kept"),
        "{stderr}"
    );
    assert_eq!(program.files().len(), 2);
    assert_eq!(program.counts("work"), "3 [300, 150]");
}

#[test]
fn a_process_without_an_environment_writes_to_its_folder() {
    let program = or_skip!(Program::new(ENDS, &[]));
    let output = program
        .command("", "")
        .env_clear()
        .current_dir(program.path("out"))
        .output()
        .unwrap();
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{output:?}"
    );
    assert_eq!(program.files(), [program.path("out/default.profraw")]);
    assert_eq!(program.counts("work"), "1 [100, 50]");
}

#[test]
fn names_that_are_too_long_are_reported() {
    let program = or_skip!(Program::new(ENDS, &[]));
    let (letters, folders) = ("x".repeat(10_000), "x/".repeat(5_000));
    let part = format!("out/{}", "y".repeat(256));
    for name in [&letters, &folders, &part] {
        let output = program.run(name, "", &[]);
        assert!(output.status.success());
        assert!(
            said(&output).contains("its name is too long (error 36)"),
            "{output:?}"
        );
    }
    assert!(program.files().is_empty());
    // The name of the file has the largest allowed length. The name of its temporary file must be shortened.
    let longest = format!("out/{}", "z".repeat(255));
    assert_eq!(said(&program.run(&longest, "", &[])), "");
    assert_eq!(program.files(), [program.path(&longest)]);
    assert_eq!(program.counts("work"), "1 [100, 50]");
}
