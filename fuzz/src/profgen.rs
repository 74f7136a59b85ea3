//! Sample profiles of recordings, and llvm-profgen.
use profkit_llvm::{Io, profgen};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{BranchCount, Numbering, Place, RangeCount, Sums};
use profkit_profgen::{LineOptions, Program, ProgramOptions, make_profile};
use profkit_testkit::fixture_path;
use std::ffi::OsString;
use std::path::Path;

/// Runs llvm-profgen, and returns what it wrote, if it ended with success.
fn run(folder: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let output = folder.join("out");
    let binary = fixture_path("debug_info/clang-22-dwarf-5.elf");
    let mut all: Vec<OsString> = vec!["llvm-profgen".into(), "--binary".into(), binary.into()];
    all.extend(args.iter().map(Into::into));
    all.extend(["-o".into(), OsString::from(&output)]);
    let (mut stdin, mut stdout, mut stderr) = (std::io::empty(), Vec::new(), Vec::new());
    let mut io = Io::new(&mut stdin, &mut stdout, &mut stderr);
    let code = profgen::run(all, &mut io);
    assert!(code == 0 || !stderr.is_empty());
    (code == 0).then(|| std::fs::read(&output).expect("what was written"))
}

/// A text gives the same profile at once and by way of the counts by address, or an error both times. As counts by address,
/// it gives an error or a profile.
///
/// # Panics
/// If that does not hold.
pub(crate) fn profgen_text(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.into_os_string().into_string().expect("text")
    };
    let input = file("input", data);
    let script = format!("--perfscript={input}");
    let profile = run(folder.path(), &[&script, "--format=text"]);
    let counts = run(folder.path(), &[&script, "--skip-symbolization"]);
    assert_eq!(profile.is_some(), counts.is_some());
    // Without a count there is nothing to read again: LLVM's tool crashes, ours reports it.
    if let Some(counts) = counts.filter(|counts| !counts.is_empty()) {
        let counts = format!("--unsymbolized-profile={}", file("counts", &counts));
        let again = run(folder.path(), &[&counts, "--format=text"]);
        assert_eq!(again, profile);
    }
    run(
        folder.path(),
        &[&format!("--unsymbolized-profile={input}"), "--format=text"],
    );
}

/// The ranges between all pairs of addresses of a small window in a binary of any bytes are used, or left out for one
/// reason.
///
/// # Panics
/// If that does not hold.
pub(crate) fn profgen_binary(data: &[u8]) {
    /// The addresses of the window.
    const WINDOW: u64 = 64;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    std::fs::write(&path, data).expect("written");
    let Ok(files) = ProgramFiles::open(&path, &DebugFolders::default()) else {
        return;
    };
    let Ok(program) = Program::load(&files, ProgramOptions::default()) else {
        return;
    };
    let first = program
        .text_segments()
        .next()
        .map_or(0, |segment| segment.1);
    let mut sums = Sums::default();
    // The code of the fixtures begins there.
    let window = |place: u64| first.wrapping_add(0x280).wrapping_add(place);
    for start in 0..WINDOW {
        for end in 0..WINDOW {
            let (start, end) = (window(start), window(end));
            sums.ranges.push(RangeCount {
                start,
                end,
                count: 1,
            });
            sums.branches.push(BranchCount {
                from: Place::at(end),
                to: Place::at(start),
                count: 1,
            });
        }
    }
    let Ok(made) = make_profile(
        &program,
        &[(&sums, Numbering::Address)],
        &LineOptions::default(),
    ) else {
        // The pseudo probes are damaged.
        return;
    };
    let figures = &made.figures;
    assert_eq!(figures.ranges + figures.outside_code, WINDOW * WINDOW);
    assert_eq!(
        figures.off_boundary + figures.used + figures.impossible,
        figures.ranges
    );
    assert!(figures.impossible_in_function <= figures.impossible);
    assert!(figures.calls <= figures.branches && figures.branches <= WINDOW * WINDOW);
}
