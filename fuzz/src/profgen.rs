//! Sample profiles of recordings, and llvm-profgen.
use profkit_data::sample::{SampleProfile, text};
use profkit_llvm::{Io, profgen};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{
    BranchCount, CollectOptions, Numbering, Place, RangeCount, Sums, read,
};
use profkit_profgen::{
    Like, LineOptions, MakeOptions, Outcome, Program, ProgramOptions, make_profile, seen,
};
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

/// A recording gives a profile of a binary, with all ways of counting, or a reason why there is none. The same recording
/// always gives the same profile.
///
/// # Panics
/// If that does not hold.
pub(crate) fn profgen_recording(data: &[u8]) {
    let mut options = CollectOptions::default();
    options.stacks = true;
    let Ok(counts) = read(data, &[], &options) else {
        return;
    };
    let binary = fixture_path("debug_info/clang-22-dwarf-5.elf");
    let files = ProgramFiles::open(&binary, &DebugFolders::default()).expect("the fixture");
    let id = build_id(&files.program().expect("a program")).expect("sound notes");
    let ways = [
        MakeOptions::new(false, false, false),
        MakeOptions::new(true, false, false),
        MakeOptions::new(false, true, true),
        MakeOptions::new(false, false, true),
        {
            let mut options = MakeOptions::default();
            options.like = Like::Autofdo;
            options
        },
    ];
    for options in &ways {
        let make = || {
            let mut outcome = Outcome {
                seen: seen(&counts),
                losses: counts.losses.clone(),
                plain_addresses: options.lines.plain_addresses,
                with_contexts: options.contexts.is_some(),
                ..Outcome::default()
            };
            let mut profile = SampleProfile::new();
            let of = (binary.as_path(), id.clone());
            let made = outcome.add(&files, of, &counts, true, options, &mut profile);
            made.map(|()| (outcome, profile))
        };
        let Ok((outcome, profile)) = make() else {
            // A context of a text is of another form than this way wants.
            continue;
        };
        let figures = &outcome.binaries.first().expect("the binary").figures;
        let left_out = figures.off_boundary + figures.impossible + figures.no_function;
        assert!(figures.used <= figures.ranges && figures.ranges <= figures.used + left_out);
        let is_empty = profile.functions().is_empty();
        assert!(!is_empty || figures.calls == 0 || options.like == Like::Autofdo);
        let text = |profile: &SampleProfile| {
            let mut bytes = Vec::new();
            text::write(profile, &text::TextOptions::new(), &mut bytes).expect("written");
            bytes
        };
        let (_, again) = make().expect("it was made before");
        assert_eq!(text(&again), text(&profile));
    }
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
