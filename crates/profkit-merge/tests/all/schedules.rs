//! Threads distribute inputs to workers by chance. These tests try every distribution of a few inputs: each must give
//! the same result.
use crate::common::{Files, threads, whole};
use profkit_data::bytes::Cursor;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::raw::RawProfile;
use profkit_data::instr::{ValueData, value_data};
use profkit_merge::{Reason, merge_scheduled};
use profkit_testkit::fixture;

fn schedules(inputs: usize) -> Vec<Vec<(usize, usize)>> {
    fn extend(
        inputs: usize,
        schedule: &mut Vec<(usize, usize)>,
        all: &mut Vec<Vec<(usize, usize)>>,
    ) {
        if schedule.len() == inputs {
            all.push(schedule.clone());
            return;
        }
        for input in 0..inputs {
            if schedule.iter().any(|&(there, _)| there == input) {
                continue;
            }
            for lane in 0..inputs {
                schedule.push((input, lane));
                extend(inputs, schedule, all);
                schedule.pop();
            }
        }
    }
    let mut all = Vec::new();
    extend(inputs, &mut Vec::new(), &mut all);
    all
}

fn same_by_every_schedule(files: &Files) {
    let count = files.0.len();
    let names = || files.0.iter().map(|(name, ..)| name);
    let ordinary = threads(1).no_fast_path(true);
    let expected = whole(&files.merge(&ordinary).unwrap());
    for number in 1..=count {
        let merged = whole(&files.merge(&threads(number)).unwrap());
        assert!(
            merged == expected,
            "{:?}, {number} threads",
            names().collect::<Vec<_>>()
        );
    }
    for schedule in schedules(count) {
        let merged = merge_scheduled(files, &threads(1), &schedule).unwrap();
        assert!(
            whole(&merged) == expected,
            "{:?}, {schedule:?}",
            names().collect::<Vec<_>>()
        );
    }
}

fn orders<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    match things {
        [] => vec![Vec::new()],
        _ => (0..things.len())
            .flat_map(|first| {
                let mut rest = things.to_vec();
                let first = rest.remove(first);
                orders(&rest).into_iter().map(move |mut order| {
                    order.insert(0, first.clone());
                    order
                })
            })
            .collect(),
    }
}

/// Adds an empty value site to the first record whose number of sites is not a multiple of 8. The data records do not
/// change, so the fast path takes the profile as one of the same program.
fn with_another_site(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let profile = RawProfile::parse(&bytes).unwrap();
    let section = &profile.sections().value_data;
    let mut cursor = Cursor::new(section.bytes, section.offset, profile.dialect().endian);
    let mut values = ValueData::default();
    let (at, sites) = loop {
        let start = usize::try_from(cursor.offset()).unwrap();
        value_data::decode(&mut cursor, &mut values).unwrap();
        let sites = values.kind(0).unwrap().site_count();
        // One byte for each site, padded to a multiple of 8: there is room unless their number is one.
        if sites % 8 != 0 {
            // The number of sites follows TotalSize, NumValueKinds and Kind.
            break (start + 12, u32::try_from(sites).unwrap());
        }
    };
    assert_eq!(bytes[at..at + 4], sites.to_le_bytes());
    bytes[at..at + 4].copy_from_slice(&(sites + 1).to_le_bytes());
    bytes
}

#[test]
fn value_data_with_another_number_of_sites_under_one_layout() {
    let plain = fixture("raw/clang-22-ir-shapes.profraw");
    let odd = with_another_site(&plain);
    let files = [("plain", plain), ("odd", odd)];
    for order in orders(&files) {
        let files = Files::new(order);
        same_by_every_schedule(&files);
        // Records and names are equal, so that the fast path rejects the second file only for its value sites.
        let outcome = files.merge(&threads(1)).unwrap();
        let totals = outcome.report.totals;
        assert_eq!((totals.layouts, totals.fast_profiles), (1, 1));
        let reasons: Vec<_> = outcome
            .report
            .events
            .iter()
            .map(|event| event.reason)
            .collect();
        assert_eq!(reasons, [Reason::ValueSiteMismatch]);
    }
    let [plain, odd] = files;
    for order in orders(&[plain.clone(), odd.clone(), plain, odd]) {
        let files = Files::new(order);
        let expected = whole(&files.merge(&threads(1).no_fast_path(true)).unwrap());
        for schedule in schedules(4).iter().step_by(97) {
            let merged = merge_scheduled(&files, &threads(1), schedule).unwrap();
            assert!(whole(&merged) == expected, "{schedule:?}");
        }
    }
}

#[test]
fn memprof_sections_that_differ() {
    let plain = fixture("indexed/clang-22-memprof-heap.profdata");
    let section = IndexedProfile::parse(&plain).unwrap().memprof().unwrap();
    let start = usize::try_from(section.offset).unwrap();
    // Flips a bit that no check of the section notices.
    let odd = (start..start + section.bytes.len()).rev().map(|at| {
        let mut odd = plain.clone();
        odd[at] ^= 1;
        odd
    });
    let is_sound = |file: &Vec<u8>| {
        let outcome = Files::new([("alone", file.clone())]).merge(&threads(1));
        matches!(outcome, Ok(outcome) if outcome.report.events.is_empty())
    };
    let mut odd = odd.filter(is_sound);
    let odd = odd.next().unwrap();
    for order in orders(&[("one", plain.clone()), ("odd", odd), ("two", plain)]) {
        let files = Files::new(order);
        same_by_every_schedule(&files);
        let totals = files.merge(&threads(1)).unwrap().report.totals;
        assert_eq!(totals.files_kept + totals.files_repaired, 3);
        assert!(totals.files_repaired > 0);
    }
}
