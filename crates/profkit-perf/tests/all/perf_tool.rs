//! Every recording of `shared/data/perf` gives the same records, events, samples, call chains and branch stacks as perf
//! itself prints with `perf report -D`.
use profkit_perf::{Recording, Sample};
use profkit_testkit::{on_path, perf_recordings, skip};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Recordings that perf 6.1 does not read, each with the reason and the number of samples that profkit finds.
const BEYOND_PERF: [(&str, &str, u64); 3] = [
    (
        "perf.data.piped.corrupted.zero_size_sample-3.2",
        "perf stops at a record of size 0",
        227,
    ),
    (
        "sleep.compressed.data",
        "perf 6.1 refuses the events of a newer perf in files",
        8,
    ),
    (
        "sleep.data",
        "perf 6.1 refuses the events of a newer perf in files",
        7,
    ),
];

/// Returns a sample as text. [`of_perf`] makes the same text from the output of perf, so that the two can be compared.
fn line(sample: &Sample<'_>) -> String {
    let mut line = format!(
        "{} {}/{} {:#x} period {}",
        sample.time.unwrap_or_default(),
        sample.pid.cast_signed(),
        sample.tid.cast_signed(),
        sample.address,
        sample.period
    );
    for address in sample.chain.raw() {
        let _ = write!(line, "\n  {address:x}");
    }
    for branch in sample.branches.raw() {
        let predicted = if branch.is_mispredicted() { "M" } else { "" };
        let _ = write!(
            line,
            "\n  {:x} -> {:x} {} {predicted}",
            branch.from,
            branch.to,
            branch.cycles()
        );
    }
    line
}

/// Returns the samples in the output of `perf report -D` as the text that [`line`] makes of a sample.
fn of_perf(text: &str) -> Vec<String> {
    let mut samples = Vec::new();
    let mut current: Option<String> = None;
    for text in text.lines() {
        if let Some((before, after)) = text.split_once(": PERF_RECORD_SAMPLE(") {
            samples.extend(current.take());
            // `before` has the form "[CPU ]TIME 0xOFFSET [0xSIZE]", and `after` has the form "IP, 0x1): PID/TID:
            // 0xADDRESS period: N addr: 0".
            let time = before.split(' ').rev().nth(2).expect("a time");
            // Without times, perf prints -1.
            let time = if time == u64::MAX.to_string() {
                "0"
            } else {
                time
            };
            let fields: Vec<&str> = after.split(' ').collect();
            let thread = fields[2].trim_end_matches(':');
            current = Some(format!(
                "{time} {thread} {} period {}",
                fields[3], fields[5]
            ));
        } else if text.is_empty() || text.starts_with(" ...") {
            samples.extend(current.take());
        } else if let Some(sample) = &mut current
            && let Some(entry) = text.strip_prefix("..... ")
            && let Some((_, entry)) = entry.split_once(": ")
        {
            let bare = |text: &str| {
                let number = u64::from_str_radix(text, 16).expect("an address");
                format!("{number:x}")
            };
            if let Some((from, rest)) = entry.split_once(" -> ") {
                let mut words = rest.split(' ');
                let to = words.next().expect("a target");
                let cycles = words.next().expect("cycles");
                let predicted = if words.any(|word| word == "M") {
                    "M"
                } else {
                    ""
                };
                let _ = write!(
                    sample,
                    "\n  {} -> {} {cycles} {predicted}",
                    bare(from),
                    bare(to)
                );
            } else {
                let _ = write!(sample, "\n  {}", bare(entry));
            }
        }
    }
    samples.extend(current);
    samples.sort();
    samples
}

fn ours(recording: &Recording<'_>) -> Vec<String> {
    let (mut samples, _) = recording.samples(
        Vec::new,
        |list, sample| list.push(line(sample)),
        |list, mut other| list.append(&mut other),
    );
    samples.sort();
    samples
}

/// Returns the number of records of each kind, from lines such as "SAMPLE events: 9232". perf prints these totals
/// before the numbers of each event.
fn counts_of_perf(text: &str) -> Vec<(String, u64)> {
    let stats = text.split_once("Aggregated stats:").expect("stats").1;
    let all = stats
        .lines()
        .skip(1)
        .take_while(|line| !line.ends_with("stats:"));
    all.filter_map(|line| {
        let (name, number) = line.trim().split_once(" events:")?;
        let number = number.split_whitespace().next()?.parse().ok()?;
        (name != "TOTAL").then(|| (name.to_owned(), number))
    })
    .collect()
}

fn compare(path: &Path) {
    let name = path
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let bytes = std::fs::read(path).expect("the recording is read");
    let recording = Recording::open(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let ours = ours(&recording);
    if let Some((_, _, samples)) = BEYOND_PERF.iter().find(|(beyond, ..)| *beyond == name) {
        assert_eq!(ours.len() as u64, *samples, "{name}");
        return;
    }
    let output = Command::new("perf")
        .args(["report", "-D", "-i"])
        .arg(path)
        .output()
        .expect("perf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs = of_perf(&text);
    assert_eq!(ours.len(), theirs.len(), "{name}: number of samples");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{name}");
    }
    for (kind, number) in counts_of_perf(&text) {
        let counts = recording.record_counts();
        let found = counts.iter().find(|(found, _)| {
            let name = found.name().unwrap_or_default();
            name == kind || name.replace('_', " ") == kind
        });
        assert_eq!(
            found.map(|(_, count)| *count),
            Some(number),
            "{name}: {kind}"
        );
    }
    let names = Command::new("perf")
        .args(["evlist", "-i"])
        .arg(path)
        .output()
        .expect("perf runs");
    let names = String::from_utf8_lossy(&names.stdout);
    // The modifiers after the colon are not compared, because perf does not take them from the recording if it is a
    // pipe.
    let bare = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let found: Vec<String> = recording
        .events()
        .iter()
        .map(|event| bare(&event.name))
        .collect();
    // If a pipe has no feature section with the names of its events, `perf evlist` prints no names.
    let theirs = names.lines().filter(|line| !line.starts_with('#'));
    let theirs: Vec<String> = theirs.map(bare).collect();
    if !theirs.is_empty() {
        assert_eq!(found, theirs, "{name}: events");
    }
}

#[test]
fn recordings_are_read_as_perf_reads_them() {
    let recordings = perf_recordings();
    if recordings.is_empty() {
        return;
    }
    if on_path("perf").is_none() {
        skip("perf (Debian: linux-perf) is not installed");
        return;
    }
    for path in recordings {
        compare(&path);
    }
}
