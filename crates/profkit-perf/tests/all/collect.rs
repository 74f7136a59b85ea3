//! Tests of the counts of recordings. Some recordings were written for the tests, others were made on real hardware.
//! The expected counts of recordings from real hardware are computed by a plain loop.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
use profkit_data::ids::BuildId;
use profkit_perf::collect::{CollectOptions, Counts, Place, Sums, collect, same_build_id};
use profkit_perf::{Mode, Recording};
use profkit_testkit::{Endian, PerfSample, PerfWriter};
use std::collections::BTreeMap;

/// Returns the counts as text. Each line begins with the path of the binary and has a range, a branch or an address.
fn text(counts: &Counts) -> Vec<String> {
    let mut lines = Vec::new();
    for binary in &counts.binaries {
        let path = String::from_utf8_lossy(&binary.key.path);
        let sums = &binary.sums;
        for range in &sums.ranges {
            let (start, end, count) = (range.start, range.end, range.count);
            lines.push(format!("{path} {start:#x}-{end:#x}: {count}"));
        }
        for branch in &sums.branches {
            let (from, to, count) = (branch.from, branch.to, branch.count);
            lines.push(format!("{path} {from:?}->{to:?}: {count}"));
        }
        for address in &sums.addresses {
            lines.push(format!("{path} {:#x}: {}", address.place, address.count));
        }
    }
    lines
}

/// A recording of two processes: one with a program and a library, and one with another program at the same addresses.
fn story() -> PerfWriter {
    let mut writer = PerfWriter::new(Endian::Little, &["cycles:u", "branches"], false, true);
    let sample = |event, pid, time, branches: &[(u64, u64, u64)]| PerfSample {
        event,
        pid,
        time,
        address: 0x40_0100,
        branches: branches.to_vec(),
        ..PerfSample::default()
    };
    let wrong_path = 1 << 24;
    let not_taken = 1 << 33;
    writer
        .comm(10, 1, "one", true)
        .mmap2(10, 2, 0x40_0000, 0x1000, "/bin/one", &[1; 20])
        .mmap2(10, 2, 0x7f00_0000, 0x1000, "/lib/two.so", &[2; 8])
        .comm(11, 1, "other", true)
        .mmap(11, 2, 0x40_0000, 0x1000, 0x3000, "/bin/other")
        // The branch stack, newest branch first: a loop, a return from the library, the call into the library, a loop.
        .sample(&sample(
            0,
            10,
            10,
            &[
                (0x40_0020, 0x40_0010, 0),
                (0x7f00_0050, 0x40_0018, 0),
                (0x40_0016, 0x7f00_0040, 0),
                (0x40_0020, 0x40_0010, 0),
            ],
        ))
        .sample(&sample(
            0,
            10,
            11,
            &[
                (0x40_0020, 0x40_0010, 0),
                (0x40_0012, 0x40_0050, wrong_path),
                (0x40_0014, 0x40_0060, not_taken),
                (0x40_0020, 0x40_0010, 0),
            ],
        ))
        // This branch stack has a gap: a branch arrives in the library, but the next branch leaves from the program.
        .sample(&sample(
            1,
            10,
            12,
            &[
                (0x40_0020, 0x666, 0),
                (0x40_0016, 0x7f00_0040, 0),
                (1, 2, 0),
            ],
        ))
        .sample(&sample(
            0,
            11,
            13,
            &[(0x40_0020, 0x40_0010, 0), (0x40_0020, 0x40_0010, 0)],
        ))
        .sample(&sample(0, 12, 14, &[]));
    writer
}

#[test]
fn samples_become_counts_of_each_binary() {
    let bytes = story().file();
    let recording = Recording::open(&bytes).expect("a recording");
    let counts = collect(&recording, &CollectOptions::default());
    assert_eq!(
        text(&counts),
        [
            "/bin/one 0x10-0x16: 1",
            "/bin/one 0x10-0x20: 1",
            "/bin/one 0x18-0x20: 1",
            "/bin/one 0x16->elsewhere: 2",
            "/bin/one 0x20->0x10: 4",
            "/bin/one 0x20->elsewhere: 1",
            "/bin/one elsewhere->0x18: 1",
            "/bin/one 0x100: 3",
            "/bin/other 0x3010-0x3020: 1",
            "/bin/other 0x3020->0x3010: 2",
            "/bin/other 0x3100: 1",
            "/lib/two.so 0x40-0x50: 1",
            "/lib/two.so 0x50->elsewhere: 1",
            "/lib/two.so elsewhere->0x40: 2",
        ]
    );
    let losses = &counts.losses;
    assert_eq!((losses.samples, losses.with_branches), (5, 4));
    assert_eq!((losses.branches, losses.unmapped_branches), (11, 1));
    assert_eq!((losses.wrong_path, losses.not_taken), (1, 1));
    assert_eq!((losses.gaps, losses.unmapped_samples), (1, 1));
}

#[test]
fn samples_are_weighed_by_their_period() {
    let mut writer = PerfWriter::new(Endian::Little, &["cycles:u", "branches"], true, true);
    writer
        .comm(10, 1, "one", true)
        .mmap2(10, 2, 0x40_0000, 0x1000, "/bin/one", &[1; 20]);
    let wrong_path = 1 << 24;
    for (event, address, period) in [
        (0, 0x40_0001, 400),
        (0, 0x40_0002, 599),
        // This period is 1.5 times the smallest one (400). 1.5 is rounded up, so the sample counts 2 times.
        (0, 0x40_0003, 600),
        (0, 0x66_0000, 1200),
        // Each event has its own smallest period.
        (1, 0x40_0004, 7),
        (1, 0x40_0005, 70),
    ] {
        writer.sample(&PerfSample {
            event,
            pid: 10,
            time: 10,
            address,
            period,
            chain: vec![address],
            branches: vec![
                (0x40_0020, 0x40_0010, 0),
                (0x40_0014, 0x40_0060, wrong_path),
                (0x40_0020, 0x40_0010, 0),
            ],
            ..PerfSample::default()
        });
    }
    let bytes = writer.file();
    let recording = Recording::open(&bytes).expect("a recording");
    let mut options = CollectOptions::default();
    options.by_period = true;
    options.stacks = true;
    let counts = collect(&recording, &options);
    assert_eq!(
        text(&counts),
        [
            "/bin/one 0x10-0x20: 18",
            "/bin/one 0x20->0x10: 36",
            "/bin/one 0x1: 1",
            "/bin/one 0x2: 1",
            "/bin/one 0x3: 2",
            "/bin/one 0x4: 1",
            "/bin/one 0x5: 10",
        ]
    );
    let losses = &counts.losses;
    assert_eq!((losses.samples, losses.unmapped_samples), (18, 3));
    assert_eq!((losses.with_branches, losses.with_chain), (18, 18));
    assert_eq!((losses.branches, losses.wrong_path), (36, 18));
    assert_eq!(losses.imprecise, 18);
    let whole = counts.stacks.samples.iter().map(|sample| sample.count);
    assert_eq!(whole.sum::<u64>(), 18);
    // Only selected samples decide which period is the smallest.
    options.selection.from = Some(11);
    assert_eq!(collect(&recording, &options).losses.samples, 0);
    options.selection.from = None;
    options.selection.events = vec!["branches".to_owned()];
    assert_eq!(collect(&recording, &options).losses.samples, 11);
    // The sum for the largest possible period does not overflow, and a sample with the smallest period does not count 0
    // times.
    for period in [1, u64::MAX] {
        let mut sample = PerfSample::default();
        (sample.pid, sample.time, sample.period) = (10, 10, period);
        writer.sample(&sample).sample(&sample);
    }
    let bytes = writer.precise().file();
    let recording = Recording::open(&bytes).expect("a recording");
    options.selection.events.clear();
    let losses = collect(&recording, &options).losses;
    assert_eq!((losses.samples, losses.imprecise), (u64::MAX, 0));
}

#[test]
fn selected_samples_are_counted() {
    let bytes = story().file();
    let recording = Recording::open(&bytes).expect("a recording");
    type Select = fn(&mut CollectOptions);
    let cases: [(Select, u64, u64); 6] = [
        (|o| o.selection.pids = vec![10, 12], 4, 1),
        (|o| o.selection.names = vec![b"other".to_vec()], 1, 4),
        (|o| o.selection.events = vec!["branches".to_owned()], 1, 4),
        (|o| o.selection.events = vec!["cycles".to_owned()], 0, 5),
        (|o| o.selection.from = Some(12), 3, 2),
        (
            |o| (o.selection.from, o.selection.until) = (Some(11), Some(13)),
            2,
            3,
        ),
    ];
    for (index, (select, samples, not_selected)) in cases.into_iter().enumerate() {
        let mut options = CollectOptions::default();
        select(&mut options);
        let losses = collect(&recording, &options).losses;
        let found = (losses.samples, losses.not_selected);
        assert_eq!(found, (samples, not_selected), "case {index}");
    }
}

#[test]
fn marked_branches_count_if_asked_for() {
    let bytes = story().file();
    let recording = Recording::open(&bytes).expect("a recording");
    let mut options = CollectOptions::default();
    options.count_marked = true;
    let lines = text(&collect(&recording, &options));
    for line in ["/bin/one 0x12->0x50: 1", "/bin/one 0x60-0x12: 1"] {
        assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
    }
}

#[test]
fn counts_of_several_inputs_are_added() {
    let bytes = story().file();
    let recording = Recording::open(&bytes).expect("a recording");
    let once = collect(&recording, &CollectOptions::default());
    // The library gets another path, and the zeros that perf appends to short build ids. It is still the same library.
    let mut renamed = once.clone();
    let library = renamed.binaries.last_mut().expect("the library");
    library.key.path = b"/a/copy.so".to_vec();
    let mut id = vec![2; 8];
    id.resize(20, 0);
    library.key.build_id = Some(BuildId(id));
    let sum = Counts::sum([&renamed, &once]);
    assert_eq!(sum, Counts::sum([&once, &renamed]));
    assert_eq!(sum.binaries.len(), once.binaries.len());
    assert_eq!(sum.binaries[0].key.path, b"/a/copy.so");
    for binary in &once.binaries {
        let taken = 2 * binary.sums.taken();
        let ranges = binary.sums.ranges.len();
        let doubled = |sum: &Sums| (sum.taken(), sum.ranges.len()) == (taken, ranges);
        assert!(sum.binaries.iter().any(|binary| doubled(&binary.sums)));
    }
    assert_eq!(sum.losses.samples, 2 * once.losses.samples);
}

#[test]
fn build_ids_are_compared_without_what_perf_adds() {
    let id = |bytes: &[u8]| BuildId(bytes.to_vec());
    assert!(same_build_id(
        &id(&[1; 8]),
        &id(&[1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    ));
    assert!(!same_build_id(&id(&[1; 8]), &id(&[1; 9])));
    assert!(!same_build_id(&id(&[1]), &id(&[1, 0])));
}

/// Returns the counts of a recording, computed by a plain loop over its samples.
fn plain(recording: &Recording<'_>) -> Vec<String> {
    let processes = recording.processes();
    let add_all = |sums: &mut BTreeMap<(usize, u8, Place, Place), u64>,
                   sample: &profkit_perf::Sample<'_>| {
        let mut add = |key| *sums.entry(key).or_insert(0) += 1;
        let time = Some(sample.when());
        let in_kernel = sample.mode == Mode::Kernel;
        if let Some(at) = processes.locate_in_mode(in_kernel, sample.pid, time, sample.address) {
            add((at.binary.index(), 2, Place::at(at.offset), Place::at(0)));
        }
        let locate = |address| processes.locate_in_mode(false, sample.pid, time, address);
        let mut newer = None;
        for branch in sample.branches.iter() {
            let (from, to) = (locate(branch.from), locate(branch.to));
            let end = |at: Option<profkit_perf::Located>, binary| match at {
                Some(at) if at.binary == binary => Place::at(at.offset),
                _ => Place::ELSEWHERE,
            };
            let binaries = [from, to].map(|at| at.map(|at| at.binary));
            for (index, binary) in binaries.into_iter().enumerate() {
                if let Some(binary) = binary
                    && (index == 0 || binaries[0] != binaries[1])
                {
                    add((binary.index(), 1, end(from, binary), end(to, binary)));
                }
            }
            if let (Some(start), Some(stop)) = (to, newer) {
                let stop: profkit_perf::Located = stop;
                if start.binary == stop.binary {
                    let places = (Place::at(start.offset), Place::at(stop.offset));
                    add((start.binary.index(), 0, places.0, places.1));
                }
            }
            newer = from;
        }
    };
    let (sums, _) = recording.samples(BTreeMap::new, add_all, |sums, other| {
        for (key, count) in other {
            *sums.entry(key).or_insert(0) += count;
        }
    });
    let mut lines = Vec::new();
    for ((binary, kind, from, to), count) in sums {
        let binary = &processes.binaries()[binary];
        let key = format!("{}", String::from_utf8_lossy(&binary.path));
        lines.push(match kind {
            0 => format!("{key} {from:?}-{to:?}: {count}"),
            1 => format!("{key} {from:?}->{to:?}: {count}"),
            _ => format!("{key} {from:?}: {count}"),
        });
    }
    lines.sort();
    lines
}

#[test]
fn recordings_of_real_hardware_are_counted_as_by_a_plain_loop() {
    for path in profkit_testkit::perf_recordings() {
        let bytes = std::fs::read(&path).expect("the recording");
        let Ok(recording) = Recording::open(&bytes) else {
            continue;
        };
        let every = recording.events().iter().all(|event| {
            let attr = &event.attr;
            !attr.has_branches() || attr.has_every_branch()
        });
        assert!(every, "{}: all stacks have all branches", path.display());
        let counts = collect(&recording, &CollectOptions::default());
        let mut lines = text(&counts);
        lines.sort();
        assert_eq!(lines, plain(&recording), "{}", path.display());
        if path.ends_with("test.lbr") {
            let program = counts
                .binaries
                .iter()
                .find(|binary| !binary.key.kernel && !binary.sums.ranges.is_empty())
                .expect("a program");
            let ranges = &program.sums.ranges;
            assert_eq!(ranges.len(), 357);
            let forward = ranges.iter().filter(|range| range.start <= range.end);
            let sum: u64 = forward.map(|range| range.count).sum();
            assert_eq!(sum, 134_677);
        }
    }
}
