//! Tests what is printed on a terminal and what is not. The tests use the master side of a pseudo terminal as a
//! terminal.
#![cfg(target_os = "linux")]
use profkit_testkit::succeed;
use std::fs::File;
use std::process::{Command, Stdio};

const PROFILE: &str = "fixtures/text/clang-22-ir-plain.proftext";

/// The environment variables that, like the terminal itself, decide about colours, widths and pagers. If `CI` is set,
/// the output counts as a terminal with colours.
const SETTINGS: [&str; 7] = [
    "CI",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "PAGER",
    "LESS",
];

/// Makes a command without the environment variables in [`SETTINGS`], so that the environment of the tests has no
/// influence.
fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for setting in SETTINGS {
        command.env_remove(setting);
    }
    command
}

fn profkit(arguments: &[&str]) -> Command {
    let mut command = clean(env!("CARGO_BIN_EXE_profkit"));
    command
        .args(arguments)
        .current_dir(profkit_testkit::repo_root().join("tests"))
        .stdin(Stdio::null());
    command
}

fn terminal() -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.open("/dev/ptmx").expect("a pseudo terminal")
}

#[test]
fn no_binary_profile_goes_to_a_terminal() {
    for arguments in [
        &["merge", PROFILE, "-o", "-"][..],
        &["merge", PROFILE, "-o", "/dev/stdout"],
        &["convert", PROFILE, "-o", "-"],
    ] {
        let output = profkit(arguments)
            .stdout(terminal())
            .stderr(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .expect("profkit runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            message,
            "error: a binary profile is not written to a terminal\n\
             hint: name a file with -o FILE, or ask for text\n",
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn text_does() {
    succeed(profkit(&["merge", "--text", "--quiet", PROFILE, "-o", "-"]).stdout(terminal()));
}

/// Control characters in names are escaped on a terminal. In files and pipes they stay as they are.
#[test]
fn text_is_escaped() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profile = folder.path().join("evil.proftext");
    std::fs::write(&profile, b":ir\nevil\x1b[2Jname\n12\n1\n90\n\n").expect("a profile is written");
    let profile = profile.display().to_string();
    let merge = |to: &str| {
        let program = env!("CARGO_BIN_EXE_profkit");
        format!("{program} merge --text --quiet {profile} -o {to}")
    };
    for to in ["-", "/dev/stdout"] {
        // `script` runs a command on a terminal of its own, and copies what the terminal gets to its own output.
        let mut script = clean("script");
        script
            .args(["-qec", &merge(to), "/dev/null"])
            .stdin(Stdio::null());
        let seen = script.output().expect("script (util-linux) runs").stdout;
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.contains("evil\\u{1b}[2Jname"), "{to}: {seen:?}");
        assert!(!seen.contains('\x1b'), "{to}: {seen:?}");
    }
    let piped = Command::new("sh").args(["-c", &merge("-")]).output();
    let piped = piped.expect("sh runs").stdout;
    assert!(String::from_utf8_lossy(&piped).contains("evil\x1b[2Jname"));
}

/// Runs a command on a terminal of this size. Returns the output and the exit code. The terminal does not add carriage
/// returns before line feeds.
fn on_terminal(size: (u32, u32), setting: &str, command: &str) -> (String, Option<i32>) {
    let (columns, rows) = size;
    let program = env!("CARGO_BIN_EXE_profkit");
    let line = format!("stty cols {columns} rows {rows} -onlcr; {setting} {program} {command}");
    let mut script = clean("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(profkit_testkit::repo_root().join("tests"))
        .stdin(Stdio::null());
    let output = script.output().expect("script (util-linux) runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}

/// Makes a profile with two functions: one with a control sequence in its name, which would change the colour of the
/// text, and one with a very long name.
fn evil_profile(folder: &std::path::Path) -> String {
    let profile = folder.join("evil.proftext");
    let long = format!("begin{}end", "x".repeat(200));
    let text = format!(":ir\nevil\x1b[31mname\n12\n1\n90\n\n{long}\n13\n1\n10\n\n");
    std::fs::write(&profile, text).expect("a profile is written");
    profile.display().to_string()
}

#[test]
fn colours_are_ours_alone() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profile = evil_profile(folder.path());
    let show = format!("show {profile}");
    let (seen, _) = on_terminal((100, 50), "", &show);
    assert!(seen.contains("\x1b[1mSummary\x1b[0m"), "{seen:?}");
    assert!(seen.contains("\x1b[31mhot\x1b[0m"), "{seen:?}");
    assert!(seen.contains("evil\\u{1b}[31mname"), "{seen:?}");
    let (seen, _) = on_terminal((100, 50), "", "show fixtures/missing.profraw");
    assert!(
        seen.starts_with("\x1b[1m\x1b[31merror:\x1b[0m fixtures/missing.profraw: cannot be read"),
        "{seen:?}"
    );
    for (setting, options) in [("NO_COLOR=1", ""), ("TERM=dumb", ""), ("", "--color never")] {
        let (seen, _) = on_terminal((100, 50), setting, &format!("{show} {options}"));
        assert!(!seen.contains('\x1b'), "{setting} {options}: {seen:?}");
    }
    let piped = |arguments: &[&str], force: bool| {
        let mut command = profkit(arguments);
        if force {
            command.env("CLICOLOR_FORCE", "1");
        }
        let output = command.output();
        String::from_utf8(output.expect("profkit runs").stdout).expect("text")
    };
    assert!(!piped(&["show", &profile], false).contains('\x1b'));
    assert!(piped(&["show", &profile], true).contains('\x1b'));
    assert!(piped(&["show", "--color=always", &profile], false).contains('\x1b'));
    assert!(piped(&["show", "--color", "always", "--help"], false).contains('\x1b'));
    assert!(
        !piped(
            &["show", "--color", "always", "--format", "json", &profile],
            true
        )
        .contains('\x1b')
    );
}

#[test]
fn names_are_cut_to_the_width_of_a_terminal() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let profile = evil_profile(folder.path());
    for width in [60, 80, 200] {
        let (seen, _) = on_terminal((width, 50), "NO_COLOR=1", &format!("show {profile}"));
        let list = seen.split_once("Top 2").expect("a list").1;
        for line in list.lines() {
            assert!(line.chars().count() <= width as usize, "{width}: {line}");
        }
        assert!(
            list.contains("begin") && list.contains("…") && list.contains("end"),
            "{list}"
        );
    }
    let piped = profkit(&["show", &profile])
        .output()
        .expect("profkit runs")
        .stdout;
    let long = format!("begin{}end", "x".repeat(200));
    assert!(String::from_utf8_lossy(&piped).contains(&long));
}

#[test]
fn long_texts_go_through_the_pager() {
    let long = format!("show --functions {PROFILE}");
    let numbered = |setting: &str, command: &str| on_terminal((80, 10), setting, command);
    // The pager numbers the lines, so its output differs from that of the command.
    let (seen, code) = numbered("PAGER='cat -n'", &long);
    assert!(
        seen.contains("     1\t") && seen.contains("    12\t"),
        "{seen}"
    );
    assert_eq!(code, Some(0));
    let (seen, _) = numbered("PAGER='sed s/^/+/'", &format!("--no-pager {long}"));
    assert!(!seen.contains("\n+"), "{seen}");
    // If the text fits on the terminal, no pager is started. If the pager cannot be started, the text is printed
    // without one.
    let (seen, _) = on_terminal((80, 200), "PAGER='sed s/^/+/'", &long);
    assert!(!seen.contains('+'), "{seen}");
    for pager in ["PAGER=/nowhere/pager", "PAGER=", "PAGER=cat"] {
        let (seen, code) = numbered(pager, &long);
        assert!(
            seen.contains("Top") || seen.contains("hash"),
            "{pager}: {seen}"
        );
        assert_eq!(code, Some(0), "{pager}");
    }
    // This pager has an argument, so it is started by a shell, which does not find it. The text is then printed without
    // a pager.
    let (seen, code) = numbered("PAGER='nosuchpager -%'", &long);
    let (whole, _) = numbered("PAGER=cat", &long);
    let (_, after) = seen.split_once("names no program\n").expect("a note");
    assert_eq!(after, whole);
    assert_eq!(code, Some(0));
    // The exit code is that of the command, even if the pager ends at once.
    let damaged = "show --functions fixtures/readme/clang-22-truncated.profraw";
    let (_, code) = numbered("PAGER=true", &long);
    assert_eq!(code, Some(0));
    let (_, code) = numbered("PAGER=true", damaged);
    assert_eq!(code, Some(1));
}
