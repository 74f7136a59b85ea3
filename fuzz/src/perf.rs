//! Fuzzes recordings of Linux perf.
use crate::source::located;
use profkit_data::ErrorKind;
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, collect};
use profkit_perf::text::{TextOptions, read_text, write_addresses};

/// Reads any bytes as a recording. The result must be an error that states its position, or samples. The figures must
/// contain each sample exactly once: either as counted, or as lost.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn perf(data: &[u8]) {
    let recording = match Recording::open(data) {
        Ok(recording) => recording,
        Err(error) => {
            let whole = [
                ErrorKind::Empty,
                ErrorKind::Unsupported,
                ErrorKind::Malformed,
            ];
            if !whole.contains(&error.kind()) {
                located(&error);
            }
            return;
        }
    };
    let figures = recording.figures();
    let samples: u64 = figures.events.iter().map(|event| event.samples).sum();
    let left_out = figures.losses.damaged_samples + figures.losses.unknown_event;
    let counts = recording.record_counts();
    let records = counts.get(&profkit_perf::RecordKind::SAMPLE).copied();
    assert_eq!(samples + left_out, records.unwrap_or_default());
    let in_binaries: u64 = figures.binaries.iter().map(|binary| binary.samples).sum();
    assert_eq!(in_binaries + figures.unmapped, samples);
    let of_processes: u64 = figures
        .processes
        .iter()
        .map(|process| process.samples)
        .sum();
    assert_eq!(of_processes, samples);
    assert_eq!(figures.modes.values().sum::<u64>(), samples);
    counted(&recording, samples);
}

/// Collects the counts. Every sample must be counted, or be in one of the numbers of lost samples. Adding counts must
/// lose none.
fn counted(recording: &Recording<'_>, samples: u64) {
    let mut options = CollectOptions::default();
    options.count_marked = true;
    options.stacks = true;
    let counts = collect(recording, &options);
    let losses = &counts.losses;
    assert_eq!(losses.samples, samples);
    let sum = |of: fn(&profkit_perf::collect::BinaryCounts) -> u64| -> u64 {
        counts.binaries.iter().map(of).sum()
    };
    let placed = sum(|binary| binary.sums.samples());
    let addresses = recording
        .events()
        .iter()
        .all(|event| event.attr.has(profkit_perf::sample_type::IP));
    assert!(!addresses || placed + losses.unmapped_samples == samples);
    // A branch between two binaries counts in each of them.
    let taken = sum(|binary| binary.sums.taken()) + losses.unmapped_branches;
    assert!((losses.branches..=2 * losses.branches).contains(&taken));
    let whole = |counts: &Counts| -> u64 {
        let samples = counts.stacks.samples.iter();
        samples.map(|it| it.count).sum()
    };
    let stacks = whole(&counts);
    // Samples that are shortened are neither lost, nor counted elsewhere.
    options.context_memory = Some(1000);
    let short = collect(recording, &options);
    assert_eq!(whole(&short), stacks);
    assert!(short.stacks.shortened <= stacks);
    assert_eq!(short.binaries, counts.binaries);
    assert_eq!(&short.losses, losses);
    assert!(stacks <= losses.with_chain.min(losses.with_branches));
    let twice = Counts::sum([&counts, &counts]);
    assert_eq!(twice.stacks.places(), counts.stacks.places());
    assert_eq!(twice.stacks.samples.len(), counts.stacks.samples.len());
    for (twice, once) in twice.binaries.iter().zip(&counts.binaries) {
        assert_eq!(twice.key, once.key);
        assert_eq!(twice.sums.taken(), 2 * once.sums.taken());
        assert_eq!(twice.sums.ranges.len(), once.sums.ranges.len());
    }
}

/// Reads any bytes as a text with samples. The result must be an error that states its position, or counts. The counts
/// must be the same after they are written to a file of addresses and read again.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn perf_text(data: &[u8]) {
    let counts = match read_text(data, TextOptions::default()) {
        Ok(counts) => counts,
        Err(error) => {
            located(&error);
            return;
        }
    };
    let mut options = TextOptions::default();
    options.stacks = true;
    let with_stacks = read_text(data, options).expect("it was read before");
    assert_eq!(with_stacks.binaries, counts.binaries);
    assert_eq!(with_stacks.losses, counts.losses);
    let mut written = Vec::new();
    write_addresses(&counts, &mut written).expect("a vector takes all");
    let again = read_text(&written, TextOptions::default()).expect("our own file");
    assert_eq!(again, counts);
}
