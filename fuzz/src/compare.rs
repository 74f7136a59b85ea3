//! Fuzzes comparisons of profiles, and orders of functions.
use crate::source::located;
use profkit_analysis::diff::{DiffOptions, ProfileDiff};
use profkit_analysis::order::{OrderFile, Startup, page_fault_area};
use profkit_analysis::overlap::{ComparedProfile, PairOverlap};
use profkit_data::{Error, ErrorKind};
use std::collections::HashSet;

/// The largest number of functions that a comparison lists.
const LISTED: usize = 20;
/// The largest allowed error of a sum of many shares. Such a sum is not exact.
const NEARLY: f64 = 1e-6;

/// Checks an error. An error about damage must state its position. An error about a whole file must have a message.
fn says_why(error: &Error) {
    match error.kind() {
        ErrorKind::UnrecognizedFormat | ErrorKind::Unsupported | ErrorKind::Empty => {
            assert!(!error.to_string().is_empty());
        }
        _ => located(error),
    }
}

/// Compares a profile with itself, with its first half, and with a profile of another program. All shares must be
/// numbers, and a profile must not differ from itself.
///
/// # Panics
/// If one of these rules does not hold, or if a fault states no position.
pub(crate) fn overlap(data: &[u8]) {
    let profile = match ComparedProfile::open(data) {
        Ok(profile) => profile,
        Err(error) => return says_why(&error),
    };
    let same = PairOverlap::of(&profile, &profile, LISTED).expect("one family");
    assert_eq!((same.base_only, same.test_only), (0, 0), "{same:?}");
    assert!(
        same.functions
            .iter()
            .all(|row| row.base_share.is_some() == row.test_share.is_some())
    );
    check(&same);
    let other = b":ir\nmain\n1\n2\n3\n4\n\nwork\n7\n1\n18446744073709551615\n".as_slice();
    for other in [data.get(..data.len() / 2).unwrap_or_default(), other] {
        let Ok(other) = ComparedProfile::open(other) else {
            continue;
        };
        for (one, two) in [(&profile, &other), (&other, &profile)] {
            match PairOverlap::of(one, two, LISTED) {
                Ok(pair) => check(&pair),
                Err(why) => assert!(!why.to_string().is_empty()),
            }
        }
    }
}

/// Compares a profile with itself and with others. A profile must not differ from itself. The share that moved must be
/// the same in both directions.
///
/// # Panics
/// If one of these rules does not hold, or if a fault states no position.
pub(crate) fn diff(data: &[u8]) {
    let profile = match ComparedProfile::open(data) {
        Ok(profile) => profile,
        Err(error) => return says_why(&error),
    };
    let options = DiffOptions {
        most: LISTED,
        ..DiffOptions::default()
    };
    match ProfileDiff::of(&profile, &profile, &options) {
        Ok(same) => assert!(
            same.is_empty() && same.moved.is_none_or(|moved| moved == 0.0),
            "{same:?}"
        ),
        Err(why) => return assert!(!why.to_string().is_empty()),
    }
    let in_place = ComparedProfile::open_in_place(data, None);
    let others = [
        data.get(..data.len() / 2).unwrap_or_default(),
        b":ir\nmain\n1\n2\n3\n4\n\nwork\n7\n1\n18446744073709551615\n",
        b"main:184:1\n 1: 92 work:7\n 2: work:92\n  1: 92\n",
    ];
    for other in others {
        let Ok(other) = ComparedProfile::open(other) else {
            continue;
        };
        let both = [(&profile, &other), (&other, &profile)];
        let [there, back] = both.map(|(one, two)| ProfileDiff::of(one, two, &options));
        let (Ok(there), Ok(back)) = (there, back) else {
            continue;
        };
        if let Ok(in_place) = &in_place {
            let read = [(in_place, &other), (&other, in_place)];
            let read = read.map(|(one, two)| ProfileDiff::of(one, two, &options));
            assert_eq!(read, [Ok(there.clone()), Ok(back.clone())]);
        }
        let moved = [&there, &back].map(|diff| diff.moved.unwrap_or(0.0));
        assert!((moved[0] - moved[1]).abs() < NEARLY, "{moved:?}");
        assert!((0.0..=1.0).contains(&moved[0]), "{moved:?}");
        for function in &there.functions {
            let shares = function.shares.into_iter().flatten();
            assert!(
                shares
                    .chain([function.moved])
                    .all(|share| (0.0..=1.0).contains(&share)),
                "{function:?}"
            );
        }
    }
}

fn check(pair: &PairOverlap) {
    let is_share = |share: f64| share.is_finite() && share >= -NEARLY;
    let shares = [
        pair.mismatched_share,
        pair.base_only_share,
        pair.test_only_share,
    ];
    let details = pair.details.iter().map(|(_, share)| *share);
    let all = shares.into_iter().chain(details).chain(pair.overlap);
    for share in all {
        assert!(share.is_finite(), "{pair:?}");
    }
    assert!(pair.functions.len() <= LISTED);
    for row in &pair.functions {
        assert!(is_share(row.loss), "{row:?}");
        let losses = [row.base_share, row.test_share];
        assert!(losses.into_iter().flatten().all(is_share), "{row:?}");
    }
}

/// Orders functions. The order must contain each symbol once, and the file for each linker must contain every symbol.
///
/// # Panics
/// If one of these rules does not hold, or if a fault states no position.
pub(crate) fn order(data: &[u8]) {
    let mut startup = Startup::default();
    match startup.add(data) {
        Ok(added) => assert!(added.traces > 0),
        Err(error) => return says_why(&error),
    }
    for file in [
        OrderFile::Lld,
        OrderFile::Gold,
        OrderFile::GnuLd,
        OrderFile::MachO,
        OrderFile::Coff,
    ] {
        let order = startup.order(file);
        let names = order.names();
        let distinct: HashSet<&[u8]> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(file.write(&names).len() >= names.iter().map(|name| name.len()).sum());
    }
    let functions: Vec<_> = startup
        .traces()
        .iter()
        .flat_map(|trace| trace.functions.clone())
        .collect();
    let calls = functions.len() as u64;
    let area = page_fault_area(&functions, startup.traces(), 32);
    assert!(area >= calls && area <= calls.saturating_mul(calls));
}
