//! Recordings of Linux perf.
use crate::source::located;
use profkit_data::ErrorKind;
use profkit_perf::Recording;

/// A recording is read to an error with a place, or to samples that all are in the figures: none is counted twice and none
/// is lost without a number that says so.
///
/// # Panics
/// If that does not hold.
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
}
