//! Tests call edges, atomic counts and counts that are too large in real programs, which print the truth themselves.
use profkit_testkit::{links_c, or_skip, repo_root, short_or_whole, succeed};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Builds the program with some options of `profkit mip cc` after `--mode calls`.
    fn build(&self, options: &[&str], words: &[&str], output: &str) {
        succeed(
            Command::new(PROFKIT)
                .args(["mip", "cc", "--mode", "calls"])
                .args(options)
                .args(["--", "gcc-12", "-O1", "-pthread"])
                .args(words)
                .arg(repo_root().join("tests/programs/mip/edges.c"))
                .args(["-o", output])
                .current_dir(self.path()),
        );
    }

    /// Runs the program, which writes `raw`, and returns how often it called `f` from `first` and from `second`.
    fn run(&self, program: &str, words: &[&str], raw: &str) -> (u64, u64) {
        let output = succeed(
            Command::new(self.path().join(program))
                .args(words)
                .env("LLVM_MIP_PROFILE_FILENAME", raw)
                .env_remove("PROFKIT_MIP_SIGNAL")
                .current_dir(self.path()),
        );
        let printed = text(&output.stdout);
        let words: Vec<&str> = printed.split_whitespace().collect();
        let number = |at: usize| words[at].parse().unwrap();
        (number(1), number(3))
    }

    fn profkit(&self, words: &[&str]) -> Output {
        Command::new(PROFKIT)
            .args(words)
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// Merges raw files into a new profile. Returns the profile as JSON, and the messages of the merge.
    fn profile(&self, program: &str, raws: &[&str]) -> (Profile, String) {
        let created = self.profkit(&["mip", "create", "-p", "x.mip", program]);
        assert!(created.status.success(), "{}", text(&created.stderr));
        let merged = self.profkit(&[&["mip", "merge", "--strict", "-p", "x.mip"], raws].concat());
        assert!(merged.status.success(), "{}", text(&merged.stderr));
        let shown = self.profkit(&["mip", "show", "--format", "json", "-p", "x.mip"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        (Profile(shown), text(&merged.stderr))
    }
}

struct Profile(Value);

impl Profile {
    fn function(&self, name: &str) -> &Value {
        let functions = self.0["functions"].as_array().unwrap();
        functions
            .iter()
            .find(|function| function["function"] == name)
            .unwrap_or_else(|| panic!("no function {name}"))
    }

    fn calls(&self, name: &str) -> u64 {
        self.function(name)["calls"].as_u64().unwrap()
    }

    /// The weight of the edges from `caller` to `name`.
    fn weight(&self, name: &str, caller: &str) -> u64 {
        let callers = self.function(name)["callers"].as_array().unwrap();
        callers
            .iter()
            .filter(|edge| edge["caller"] == caller)
            .map(|edge| edge["weight"].as_u64().unwrap())
            .sum()
    }

    fn weights(&self) -> u64 {
        let functions = self.0["functions"].as_array().unwrap();
        let callers = functions
            .iter()
            .flat_map(|function| function["callers"].as_array().unwrap());
        callers.map(|edge| edge["weight"].as_u64().unwrap()).sum()
    }
}

/// The shares of `first` and `second` in the calls of `f` are those that the program printed, within `points` hundredths.
fn check_shares(profile: &Profile, (first, second): (u64, u64), points: f64) {
    let share = |part: u64, other: u64| 100.0 * part as f64 / (part + other) as f64;
    let found = (profile.weight("f", "first"), profile.weight("f", "second"));
    let (truth, sampled) = (share(first, second), share(found.0, found.1));
    assert!(
        (truth - sampled).abs() <= points,
        "{first} and {second}: {truth}, found {found:?}: {sampled}"
    );
    let (all, counted) = (found.0 + found.1, first + second);
    assert!(
        all.abs_diff(counted) <= 1 + counted / 500,
        "{all} of {counted}"
    );
}

#[test]
fn shares_of_call_sites_are_those_of_the_run() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    for (options, words) in [
        (&["--return-addresses", "64"] as &[&str], &[] as &[&str]),
        (
            &["--return-addresses", "61", "--atomic"],
            &["-fPIE", "-pie"],
        ),
        (
            &["--return-addresses", "64"],
            &["-mcmodel=large", "-fno-pie", "-no-pie"],
        ),
        (
            &["--return-addresses", "64", "--runtime", "small"],
            &["-masm=intel"],
        ),
    ] {
        place.build(options, words, "edges");
        for how in ["alternate", "rare", "signals"] {
            for (count, points) in [("500", 0.0), ("2000000", 3.0)] {
                let truth = place.run("edges", &[how, count], "x.raw");
                let (profile, _) = place.profile("edges", &["x.raw"]);
                assert_eq!(profile.calls("f"), truth.0 + truth.1, "{how} {options:?}");
                // Signals also make more calls of `second` than are all sampled.
                check_shares(&profile, truth, if how == "signals" { 5.0 } else { points });
                if how == "rare" && count != "500" {
                    let rare = profile.weight("f", "second");
                    assert!((500..=4000).contains(&rare), "{rare} of 2000");
                }
            }
        }
    }
}

#[test]
fn threads_lose_no_call_with_atomic_counts() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    let count: u64 = short_or_whole(2_000_000, 20_000_000);
    let words = count.to_string();
    for options in [
        &["--atomic"] as &[&str],
        &["--atomic", "--return-addresses", "64"],
        &["--return-addresses", "64"],
    ] {
        place.build(options, &[], "edges");
        let truth = place.run("edges", &["threads", &words], "x.raw");
        assert_eq!(truth.0, 4 * count);
        let (profile, _) = place.profile("edges", &["x.raw"]);
        assert_eq!(profile.function("main")["order_min"], 1);
        if options.contains(&"--atomic") {
            assert_eq!(profile.calls("first"), truth.0, "{options:?}");
            assert_eq!(profile.calls("second"), truth.1, "{options:?}");
            assert_eq!(profile.calls("f"), truth.0 + truth.1, "{options:?}");
            assert_eq!(profile.calls("once"), 4);
        } else {
            // Without atomic counts, some calls may be lost, and few are counted twice.
            let calls = profile.calls("f");
            assert!(
                calls > truth.0 / 3 && calls < (truth.0 + truth.1) / 100 * 103,
                "{calls} of {truth:?}"
            );
        }
        if options.len() == 3 {
            check_shares(&profile, truth, 5.0);
        }
    }
}

#[test]
fn children_have_edges_of_their_own() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    place.build(&["--return-addresses", "64"], &[], "edges");
    let truth = place.run("edges", &["fork", "300"], "x%p.raw");
    let raws: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".raw"))
        .collect();
    assert_eq!(raws.len(), 2);
    let raws: Vec<&str> = raws.iter().map(String::as_str).collect();
    let (profile, _) = place.profile("edges", &raws);
    assert_eq!(profile.calls("f"), 1200);
    check_shares(&profile, truth, 0.0);
}

#[test]
fn what_a_small_table_could_not_keep_is_said() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    for slots in ["1", "7", "64"] {
        place.build(&["--return-addresses", slots], &[], "edges");
        place.run("edges", &["many", "300"], "x.raw");
        let (profile, said) = place.profile("edges", &["x.raw"]);
        let lost: u64 = said
            .split("the callers of ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .map(|number| number.replace(',', "").parse().unwrap())
            .unwrap_or_else(|| panic!("{said}"));
        assert!(said.contains("a larger --return-addresses"), "{said}");
        let functions = profile.0["functions"].as_array().unwrap();
        let calls: u64 = functions
            .iter()
            .map(|one| one["calls"].as_u64().unwrap())
            .sum();
        let all = profile.weights() + lost;
        assert!(
            (calls..=calls + calls / 100).contains(&all),
            "{all} of {calls}"
        );
    }
    place.build(&["--return-addresses", "4096"], &[], "edges");
    place.run("edges", &["many", "300"], "x.raw");
    let (profile, said) = place.profile("edges", &["x.raw"]);
    assert!(!said.contains("not known"), "{said}");
    assert_eq!(
        profile.function("g42")["callers"].as_array().unwrap().len(),
        8
    );
}

#[test]
fn counts_that_are_too_large_are_said_to_be_lower_bounds() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    let least = 0x7f00_0000_u64;
    for (options, words) in [
        (&[] as &[&str], &[] as &[&str]),
        (&["--atomic"], &[]),
        (&[], &["-mcmodel=large", "-fno-pie", "-no-pie"]),
    ] {
        place.build(options, words, "edges");
        // The count is 10 below the largest signed number. The call that overflows and the next one follow.
        for (more, calls) in [
            (9, 0x8000_0000 - 1),
            (10, 0x8000_0000),
            (11, 0x8000_0001),
            (12, least + 1),
            (1000, least + 989),
        ] {
            place.run("edges", &["large", &more.to_string()], "x.raw");
            let (profile, _) = place.profile("edges", &["x.raw"]);
            let f = profile.function("f");
            assert_eq!(f["calls"], calls, "{more}");
            assert_eq!(f["calls_at_least"], true);
            assert_eq!(profile.function("main")["calls_at_least"], false);
            assert_eq!(f["order_min"], 2);
        }
    }
    let shown = place.profkit(&["mip", "show", "--regex", "^f$", "-p", "x.mip"]);
    assert!(
        text(&shown.stdout).contains("at least 2,130,707,421"),
        "{}",
        text(&shown.stdout)
    );
    let shown = place.profkit(&["show", "x.mip"]);
    assert!(text(&shown.stdout).contains("at least: the counters of 1 function"));
    // A pool keeps the mark too.
    for _ in 0..2 {
        place.run("edges", &["large", "1000"], "%m.pool");
    }
    let pool: Vec<PathBuf> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pool")
        })
        .collect();
    let (profile, _) = place.profile("edges", &[pool[0].to_str().unwrap()]);
    let f = profile.function("f");
    assert_eq!(
        (&f["calls"], &f["calls_at_least"]),
        (&(2 * (least + 989)).into(), &true.into())
    );
}

#[test]
fn damaged_files_with_edges_cost_a_message_and_only_what_is_damaged() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    place.build(&["--return-addresses", "64"], &[], "edges");
    place.run("edges", &["alternate", "500"], "x.raw");
    let whole = fs::read(place.path().join("x.raw")).unwrap();
    let create = place.profkit(&["mip", "create", "-p", "x.mip", "edges"]);
    assert!(create.status.success());
    let merge = |raw: &str| {
        let made = place.profkit(&["mip", "merge", "-p", "x.mip", raw]);
        (made.status.code(), text(&made.stderr))
    };
    // A file that is cut inside the table keeps its records.
    fs::write(place.path().join("cut.raw"), &whole[..whole.len() - 200]).unwrap();
    let (code, said) = merge("cut.raw");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("the file ends inside one of its parts"),
        "{said}"
    );
    // A changed byte of the table is found by the checksum.
    let mut changed = whole.clone();
    let at = changed.len() - 100;
    changed[at] ^= 1;
    fs::write(place.path().join("changed.raw"), &changed).unwrap();
    let (code, said) = merge("changed.raw");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("checksum"), "{said}");
    // Another build.
    place.build(&["--return-addresses", "32"], &[], "other");
    place.run("other", &["alternate", "500"], "other.raw");
    let (code, said) = merge("other.raw");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("build"), "{said}");
    // A full disk: a line, no file, and the exit status of the program.
    let output = Command::new(place.path().join("edges"))
        .args(["alternate", "5"])
        .env("LLVM_MIP_PROFILE_FILENAME", "/dev/full")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        text(&output.stderr).contains("no space left on device"),
        "{}",
        text(&output.stderr)
    );
    let shown = place.profkit(&["mip", "show", "--format", "json", "-p", "x.mip"]);
    let profile = Profile(serde_json::from_slice(&shown.stdout).unwrap());
    assert_eq!(
        (profile.calls("f"), profile.0["runs"].as_u64()),
        (1000, Some(1))
    );
    assert_eq!(profile.weights(), 0);
}

#[test]
fn atomic_counts_need_counts() {
    let place = Place::new();
    let said = |words: &[&str]| {
        let made = place.profkit(words);
        (made.status.code(), text(&made.stderr))
    };
    let (code, message) = said(&["mip", "cc", "--atomic", "--", "gcc-12", "-c", "a.c"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("--atomic works only with `--mode calls`"),
        "{message}"
    );
}

#[test]
fn merges_at_the_same_time_lose_no_run() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let place = Place::new();
    place.build(&[], &[], "edges");
    place.run("edges", &["alternate", "10"], "x.raw");
    fs::create_dir(place.path().join("folder")).unwrap();
    let start = |words: &[&str]| {
        Command::new(PROFKIT)
            .args(["mip", "merge", "-q", "--binary", "edges", "x.raw", "-p"])
            .args(words)
            .current_dir(place.path())
            .spawn()
            .unwrap()
    };
    // Half of them name a file that none of them finds at first, and half its folder.
    let processes: Vec<_> = (0..24)
        .map(|number| start(&[["one.mip", "folder"][number % 2]]))
        .collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let runs = |profile: &str| {
        let shown = place.profkit(&["mip", "show", "--format", "json", "-p", profile]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["runs"].as_u64()
    };
    assert_eq!(runs("one.mip"), Some(12));
    let files = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let in_folder = files(&place.path().join("folder"));
    assert_eq!(in_folder.len(), 1);
    let path = place.path().join("folder").join(&in_folder[0]);
    assert_eq!(runs(path.to_str().unwrap()), Some(12));
    assert_eq!(files(place.path()), ["edges", "folder", "one.mip", "x.raw"]);
    // Where there are no locks, that is said, and the merge is done.
    fs::create_dir(place.path().join(".profkit-lock.tmp")).unwrap();
    let made = place.profkit(&["mip", "merge", "-p", "one.mip", "x.raw"]);
    assert!(made.status.success());
    assert!(
        text(&made.stderr).contains("cannot be locked"),
        "{}",
        text(&made.stderr)
    );
    assert_eq!(runs("one.mip"), Some(13));
}
