//! Fuzzes counts for LLVM's BOLT: the text that `perf2bolt -pa` reads, which `profkit sample` reads too, and the profile
//! that llvm-bolt reads.
use crate::source::located;
use profkit_data::ErrorKind;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{
    BinaryCounts, BinaryKey, BranchCount, Counts, Numbering, Place, RangeCount, Sums, TraceCount,
};
use profkit_perf::text::{TextOptions, read_text};
use profkit_profgen::{BoltForm, BoltProfile, Program, ProgramOptions};
use profkit_testkit::fixture_path;
use std::collections::BTreeMap;

/// Reads any bytes as a text with counts, and writes those of a known program in each form for BOLT. What is written must
/// be the same after it is read again.
///
/// # Panics
/// If it is not the same, or if a line is not in the grammar of its form.
pub(crate) fn bolt_text(data: &[u8]) {
    let program = fixture_path("perf/walked");
    let mut options = TextOptions::default();
    options.traces = true;
    let counts = match read_text(data, options) {
        Ok(counts) => counts,
        Err(error) => {
            located(&error);
            return;
        }
    };
    let written = |counts: &Counts, form| match BoltProfile::of(counts, &program, form) {
        Ok(profile) => Some(profile),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            None
        }
    };
    for form in [BoltForm::Traces, BoltForm::Branches] {
        let Some(profile) = written(&counts, form) else {
            return;
        };
        in_grammar(&profile);
        // Sums that do not fit stay at the largest number, so their parts cannot be told apart again.
        if profile.text.is_empty() || sum(&counts) > u128::from(u64::MAX) {
            continue;
        }
        let again = read_text(profile.text.as_bytes(), options).expect("our own text");
        let same = written(&again, form).expect("places of the program");
        assert_eq!(same.text, profile.text);
        assert_eq!(same.branches, profile.branches);
        assert_eq!((same.samples, same.outside), (profile.samples, 0));
        if form == BoltForm::Traces {
            let [first, second] = [&counts, &again].map(|counts| {
                let profile = written(counts, BoltForm::Fdata).expect("it was written before");
                in_grammar(&profile);
                profile.text
            });
            assert_eq!(first, second);
        }
    }
}

/// The sum of everything that is counted.
fn sum(counts: &Counts) -> u128 {
    let of_sums = |sums: &Sums| -> u128 {
        let pairs = [&sums.branches, &sums.mispredicted];
        let pairs = pairs.into_iter().flatten().map(|it| it.count);
        let ranges = sums.ranges.iter().map(|it| it.count);
        let traces = sums.traces.iter().map(|it| it.count);
        let places = sums.addresses.iter().map(|it| it.count);
        pairs
            .chain(ranges)
            .chain(traces)
            .chain(places)
            .map(u128::from)
            .sum()
    };
    let binaries = counts.binaries.iter();
    binaries.map(|binary| of_sums(&binary.sums)).sum()
}

/// Checks that each line has the fields of its form.
fn in_grammar(profile: &BoltProfile) {
    let text = &profile.text;
    assert!(text.is_empty() || text.ends_with('\n'));
    let mut without_branches = false;
    for line in text.lines() {
        let fields = fields(line);
        let is_place = |field: &&str| *field == "X:0" || u64::from_str_radix(field, 16).is_ok();
        let is_number = |field: &&str| field.parse::<u64>().is_ok();
        let is_spot = |spot: &[&str]| {
            let known = spot.first() == Some(&"1") && spot.get(1).is_some_and(|it| !it.is_empty());
            (known || spot.starts_with(&["0", "[unknown]"]))
                && spot
                    .get(2)
                    .is_some_and(|it| u64::from_str_radix(it, 16).is_ok())
        };
        let is_good = match (profile.form, &*fields) {
            (BoltForm::Fdata, ["no_lbr"]) => {
                without_branches = true;
                true
            }
            (BoltForm::Fdata, [spot @ .., count]) if without_branches => {
                spot.len() == 3 && is_spot(spot) && is_number(count)
            }
            (BoltForm::Fdata, [spots @ .., mispredicted, count]) => {
                let (from, to) = spots.split_at(3.min(spots.len()));
                to.len() == 3
                    && is_spot(from)
                    && is_spot(to)
                    && is_number(mispredicted)
                    && is_number(count)
            }
            (BoltForm::Traces, ["T", places @ .., count]) => {
                places.len() == 3 && places.iter().all(is_place) && is_number(count)
            }
            (_, ["B", places @ .., count, mispredicted]) => {
                places.len() == 2
                    && places.iter().all(is_place)
                    && is_number(count)
                    && is_number(mispredicted)
            }
            (_, ["F", start, end, count]) => is_place(start) && is_place(end) && is_number(count),
            (_, ["S", place, count]) => is_place(place) && is_number(count),
            _ => false,
        };
        assert!(is_good, "not a line of {:?}: {line}", profile.form);
    }
}

/// The fields of a line. A blank that belongs to a name has a backslash before it.
fn fields(line: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        if byte == b' ' && !is_escaped {
            fields.push(line.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    fields.push(line.get(start..).unwrap_or_default());
    fields
}

/// Takes any bytes as a program, and writes BOLT's profile of branches, ranges and traces between the places of a small
/// window in its code.
///
/// # Panics
/// If a line is not in the grammar of the form, or if a count gets lost.
pub(crate) fn bolt_binary(data: &[u8]) {
    /// The number of places in the window.
    const WINDOW: u64 = 24;
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
    // In the fixtures, the code begins at these places.
    let place =
        |number: u64| first.wrapping_add([0x280, 0x8e0][usize::from(number % 2 == 1)] + number);
    let mut sums = Sums::default();
    for (from, to) in (0..WINDOW).flat_map(|from| (0..WINDOW).map(move |to| (from, to))) {
        let (start, end) = (place(to), place(from));
        let branch = BranchCount {
            from: Place::at(end),
            to: Place::at(start),
            count: 2,
        };
        sums.branches.push(branch);
        sums.mispredicted.push(BranchCount { count: 1, ..branch });
        sums.ranges.push(RangeCount {
            start,
            end,
            count: 1,
        });
        sums.traces.push(TraceCount {
            from: if from == to {
                Place::ELSEWHERE
            } else {
                Place::at(end)
            },
            to: Place::at(start),
            end: Place::at(end),
            count: 1,
        });
    }
    let key = BinaryKey {
        path: Vec::new(),
        build_id: None,
        kernel: false,
        numbering: Numbering::Address,
    };
    let counts = Counts {
        binaries: vec![BinaryCounts {
            key,
            sums,
            contexts: BTreeMap::new(),
        }],
        ..Counts::default()
    };
    for form in [BoltForm::Traces, BoltForm::Branches, BoltForm::Fdata] {
        if let Ok(profile) = BoltProfile::of(&counts, &path, form) {
            in_grammar(&profile);
        }
    }
}
