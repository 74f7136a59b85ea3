//! Damages every fixture in small ways: truncates it at many places, flips every bit of the header and random bits
//! after it. Readers must not panic, use more memory than they promise, or loop forever. Every error must state its
//! place and the structure.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use profkit_abi::sample::{BINARY, COMPACT_BINARY};
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_data::instr::raw::{RawReadOptions, RawReader};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrSource, Record};
use profkit_data::mip::{ImageFacts, MipMap, MipProfile, RawParts, yaml};
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::sample::{SampleProfile, binary, text};
use profkit_data::{Error, ErrorKind, Result};
use profkit_testkit::{
    CountingAllocator, Rng, distinct_fixtures_with, fixture, peak_allocation, short_or_whole,
    some_or_all,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Readers promise to use at most this many times the size of the file, plus [`FLOOR`] bytes.
const RATIO: usize = 4;
const FLOOR: usize = 64 << 20;

/// The number of bytes at the start of a file in which every bit is flipped. The longest header has 19 words.
const HEADER: usize = 19 * 8;
/// The number of random bits that are flipped, one at a time, in the bytes after the first [`HEADER`] bytes.
const RANDOM_BITS: usize = 400;
/// The largest size in bytes of a file that is truncated at every byte. A larger file is truncated at about as many
/// places as this number. The first number is for short runs, the second for runs of all tests.
const EVERY_LENGTH: [usize; 2] = [256, 1024];

#[test]
fn no_damage_to_a_fixture_breaks_a_reader() {
    let fixtures = some_or_all(
        distinct_fixtures_with(&[
            "profraw",
            "profdata",
            "proftext",
            "mipraw",
            "mipmap",
            "mip",
            "yaml",
            "sampleprof",
        ]),
        8,
    );
    assert!(fixtures.len() > 40, "only {} fixtures", fixtures.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = fixtures.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = sweep(path) {
                        let failure = format!("{}: {why}", path.display());
                        failures.lock().expect("no panic holds it").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic held it");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn sweep(path: &Path) -> std::result::Result<(), String> {
    let whole = fixture(path);
    let [short, all] = EVERY_LENGTH;
    let step = whole.len().div_ceil(short_or_whole(short, all)).max(1);
    for kept in (0..=whole.len()).step_by(step) {
        attempt(path, &whole[..kept]).map_err(|why| format!("cut to {kept} bytes: {why}"))?;
    }
    let header = HEADER.min(whole.len());
    let mut rng = Rng::new(whole.len() as u64);
    let beyond: Vec<usize> = (0..RANDOM_BITS)
        .map(|_| 8 * header + rng.below(8 * (whole.len() - header)))
        .collect();
    let mut damaged = whole.clone();
    for bit in (0..8 * header).chain(beyond) {
        let Some(byte) = damaged.get_mut(bit / 8) else {
            continue;
        };
        *byte ^= 1 << (bit % 8);
        let outcome = attempt(path, &damaged);
        damaged[bit / 8] ^= 1 << (bit % 8);
        outcome.map_err(|why| format!("bit {} of byte {:#x}: {why}", bit % 8, bit / 8))?;
    }
    Ok(())
}

fn attempt(path: &Path, data: &[u8]) -> std::result::Result<(), String> {
    let (outcome, peak) = peak_allocation(|| catch_unwind(AssertUnwindSafe(|| read(path, data))));
    match outcome {
        Err(_) => return Err("a panic".to_owned()),
        Ok(Err(law)) => return Err(law),
        Ok(Ok(())) => {}
    }
    if peak > RATIO * data.len() + FLOOR {
        return Err(format!("{peak} bytes held for {} of input", data.len()));
    }
    Ok(())
}

/// Reads the bytes in every format that fits the extension of the file, and in the format that their content suggests.
fn read(path: &Path, data: &[u8]) -> std::result::Result<(), String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("profraw") => {
            drain(RawReader::parse(data), data.len())?;
            let salvage = RawReadOptions::default().salvage(true);
            drain(RawReader::parse_with(data, &salvage), data.len())
        }
        Some("proftext") => drain(TextReader::parse(data), data.len()),
        Some("profdata") => {
            drain(
                IndexedProfile::parse(data).map(|profile| profile.records()),
                data.len(),
            )?;
            drain(
                IndexedProfile::parse_with(data, &IndexedReadOptions::new().salvage(true))
                    .map(|profile| profile.records()),
                data.len(),
            )?;
            let Ok(profile) = IndexedProfile::parse(data) else {
                return Ok(());
            };
            check(profile.vtable_names())?;
            check(profile.lookup(b"main"))?;
            check(profile.to_profile())
        }
        Some("mipraw") => RawParts::new(data).try_for_each(check),
        Some("mipmap") => {
            check(MipMap::parse(data).and_then(|map| MipProfile::create(&map, &ImageFacts::new())))
        }
        Some("mip") => check(MipProfile::parse(data)),
        Some("yaml") => check(yaml::parse(data)),
        Some("sampleprof") => sample(data),
        extension => Err(format!("no reader for {extension:?}")),
    }
}

fn sample(data: &[u8]) -> std::result::Result<(), String> {
    let mut profile = SampleProfile::new();
    let report = match binary::parse_header(data).map(|header| header.encoding) {
        Ok(BINARY) => binary::read(data, &mut profile, 1),
        Ok(COMPACT_BINARY) => binary::read_compact(data, &mut profile, 1),
        Ok(_) => ExtBinaryProfile::parse(data).map(|opened| {
            let found = opened.read_functions(&[b"main", b"_Z8funcLeafi"], &mut profile);
            let mut report = opened.read(&mut profile, 1);
            report.faults.extend(found.faults);
            report
        }),
        Err(_) => Ok(text::read(data, &mut profile, 1)),
    };
    match report {
        Ok(report) => report.faults.iter().try_for_each(located),
        Err(error) => located(&error),
    }
}

fn drain(source: Result<impl InstrSource>, len: usize) -> std::result::Result<(), String> {
    let mut source = match source {
        Ok(source) => source,
        Err(error) => return located(&error),
    };
    let mut record = Record::default();
    // Every record and every error takes at least one byte of the file, so a correct reader ends before this loop does.
    for _ in 0..2 * len + 64 {
        match source.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => {
                check(source.binary_ids())?;
                return check(source.temporal_traces());
            }
            Err(error) => {
                located(&error)?;
            }
        }
    }
    Err("reading does not come to an end".to_owned())
}

fn check<T>(result: Result<T>) -> std::result::Result<(), String> {
    result.map_or_else(|error| located(&error), |_| Ok(()))
}

fn located(error: &Error) -> std::result::Result<(), String> {
    let placed = error.offset().is_some() || error.line_column().is_some();
    if error.kind() == ErrorKind::Empty || (placed && !error.structures().is_empty()) {
        Ok(())
    } else {
        Err(format!(
            "an error without a place or a structure: {error:?}"
        ))
    }
}
