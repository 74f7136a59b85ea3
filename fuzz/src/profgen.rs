//! Fuzzes sample profiles made from recordings, and llvm-profgen.
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::sample::{FormOptions, SampleForm, SampleProfile};
use profkit_llvm::{Io, profgen};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{
    BranchCount, CollectOptions, Numbering, Place, RangeCount, Sums, collect,
};
use profkit_profgen::{
    CountingTool, LineOptions, MakeOptions, NamedProfile, Program, ProgramOptions, Sampling,
    make_profile,
};
use profkit_testkit::fixture_path;
use profkit_testkit::simulate::{self, Simulation, Step};
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// Runs llvm-profgen. Returns what it wrote; `None` if it failed.
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

/// Runs llvm-profgen on any text. The profile must be the same whether it is made directly or from counts by address
/// that were written first; if one way fails, the other must fail too. The text is also read as counts by address,
/// which must give an error or a profile.
///
/// # Panics
/// If one of these rules does not hold.
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
    // If there are no counts, there is nothing to read again: LLVM's tool crashes, and profkit reports an error.
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

/// Takes any bytes as a binary, and counts the ranges between all pairs of addresses in a small window. Each range must
/// be used, or left out for exactly one reason.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn profgen_binary(data: &[u8]) {
    count_window(data, "program", |program| {
        let first = program
            .text_segments()
            .next()
            .map_or(0, |segment| segment.1);
        // In the fixtures, the code begins at this offset.
        (first.wrapping_add(0x280), Numbering::Address)
    });
}

/// Takes any bytes as a kernel module, which is linked in memory. The rules are those of [`profgen_binary`]. The module
/// is also read from its compressed form, which must give the same functions.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn profgen_module(data: &[u8]) {
    let plain = count_window(data, "module.ko", |_| (0, Numbering::FromModule));
    // The module is stored in a gzip block that is not compressed. Larger modules do not fit into one such block, and
    // are not tried in this form.
    let Ok(len) = u16::try_from(data.len()) else {
        return;
    };
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    packed.extend(len.to_le_bytes());
    packed.extend((!len).to_le_bytes());
    packed.extend(data);
    packed.extend(crc32(data).to_le_bytes());
    packed.extend(u32::from(len).to_le_bytes());
    let packed = count_window(&packed, "module.ko.gz", |_| (0, Numbering::FromModule));
    assert_eq!(packed, plain);
}

/// The checksum of gzip.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            sum >> 1 ^ (sum & 1).wrapping_neg() & 0xedb8_8320
        })
    })
}

/// Counts the ranges between all pairs of places in a small window of a binary. `start` returns the place at which the
/// window begins. Returns the number of functions in the profile; `None` if the binary cannot be read.
fn count_window(
    data: &[u8],
    name: &str,
    start: impl Fn(&Program<'_>) -> (u64, Numbering),
) -> Option<usize> {
    /// The number of addresses in the window.
    const WINDOW: u64 = 64;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, data).expect("written");
    let files = ProgramFiles::open(&path, &DebugFolders::default()).ok()?;
    let program = Program::load(&files, ProgramOptions::default()).ok()?;
    let (first, numbering) = start(&program);
    let mut sums = Sums::default();
    let window = |place: u64| first.wrapping_add(place);
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
    // Making the profile fails only if the pseudo probes are damaged.
    let made = make_profile(&program, &[(&sums, numbering)], &LineOptions::default()).ok()?;
    let figures = &made.figures;
    assert_eq!(figures.ranges + figures.outside_code, WINDOW * WINDOW);
    assert_eq!(
        figures.off_boundary + figures.used + figures.impossible,
        figures.ranges
    );
    assert!(figures.impossible_in_function <= figures.impossible);
    assert!(figures.calls <= figures.branches && figures.branches <= WINDOW * WINDOW);
    Some(made.profile.functions().len())
}

fn recorded(program: &Path) -> &'static [u8] {
    static RECORDING: OnceLock<Vec<u8>> = OnceLock::new();
    RECORDING.get_or_init(|| {
        let simulation = Simulation::new(1).depth(8).every(10).chains(true);
        let mut writer = simulation.writer();
        let start = Step::Start {
            pid: 10,
            program: 0,
        };
        let programs = [simulate::Program::open(program)];
        simulation
            .run(&programs, &[start, Step::Samples(30)], &mut writer)
            .expect("a recording");
        writer.file()
    })
}

/// Changes bytes of a recording of a known program, and makes profiles in all ways of counting. Each way must give a
/// profile or an error, and must not count a sample more than once. Every three bytes of `data` are the position of a
/// byte in the recording and its new value. If `data` is empty, the recording is unchanged, and each way must give a
/// profile with functions.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn profgen_recording(data: &[u8]) {
    let path = fixture_path("debug_info/clang-22-dwarf-5.elf");
    let files = ProgramFiles::open(&path, &DebugFolders::default()).expect("the program");
    let mut bytes = recorded(&path).to_vec();
    let len = bytes.len();
    for change in data.as_chunks::<3>().0 {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % len;
        bytes[place] = change[2];
    }
    let Ok(recording) = Recording::open(&bytes) else {
        return;
    };
    let mut autofdo = MakeOptions::default();
    autofdo.tool = CountingTool::Autofdo;
    let ways = [
        MakeOptions::new(false, true, false),
        MakeOptions::new(true, true, false),
        MakeOptions::new(false, true, true),
        autofdo,
    ];
    for mut options in ways {
        options.separate = true;
        let mut collecting = CollectOptions::default();
        collecting.stacks = options.contexts.is_some();
        let counts = collect(&recording, &collecting);
        let mut sampling = Sampling::new(&counts, &options);
        let id = counts
            .binaries
            .first()
            .and_then(|it| it.key.build_id.clone());
        let program = (path.as_path(), id);
        let added = sampling.add(&files, program, true);
        let (outcome, named) = sampling.finish();
        if data.is_empty() {
            assert!(added.is_ok() && named.len() == 1, "{options:?} {added:?}");
        }
        if added.is_err() {
            continue;
        }
        for binary in &outcome.binaries {
            let figures = &binary.figures;
            assert!(figures.used <= figures.ranges);
            if let Some(contexts) = &binary.contexts {
                assert!(contexts.samples <= counts.losses.samples);
            }
        }
        let Some(NamedProfile { profile, .. }) = named.into_iter().next() else {
            continue;
        };
        // It must be possible to write the profile and read it again.
        let mut written = Vec::new();
        SampleForm::ExtBinary
            .write(&profile, &FormOptions::new(), &mut written)
            .expect("written to memory");
        let mut again = SampleProfile::default();
        let written = ExtBinaryProfile::parse(&written).expect("a profile");
        assert_eq!(written.read(&mut again, 1).faults, []);
        assert_eq!(again.functions().len(), profile.functions().len());
    }
}
