use super::*;

fn line(line: u32, samples: u64) -> Samples {
    let mut made = Samples::default();
    let location = Location::new(line, 0);
    let outcome = &mut AddOutcome::default();
    made.add_line(&mut Hints::default(), location, samples, 1, outcome);
    made.total = samples;
    made
}

#[test]
fn merging_keeps_vectors_sorted_and_saturates() {
    let mut sum = line(5, 3);
    let mut outcome = AddOutcome::default();
    let same = |name| name;
    sum.merge(&line(2, 7), true, same, 2, &mut outcome);
    sum.merge(&line(9, 1), false, same, 1, &mut outcome);
    sum.merge(&line(5, 1), false, same, 1, &mut outcome);
    assert_eq!(outcome, AddOutcome::default());
    let lines: Vec<_> = sum
        .body
        .iter()
        .map(|line| (line.location.line, line.samples))
        .collect();
    assert_eq!(lines, [(2, 14), (5, 4), (9, 1)]);
    assert_eq!(sum.total, 19);
    sum.merge(&line(2, u64::MAX / 2), false, same, 3, &mut outcome);
    assert_eq!(outcome.overflows, 2);
    assert_eq!((sum.total, sum.body[0].samples), (u64::MAX, u64::MAX));
}

#[test]
fn functions_of_another_checksum_are_left_out() {
    let (mut sum, mut other) = (line(1, 1), line(1, 1));
    let mut outcome = AddOutcome::default();
    other.checksum = 7;
    sum.merge(&other, false, |name| name, 1, &mut outcome);
    assert_eq!((sum.checksum, sum.total), (7, 2));
    assert_eq!((outcome.adopted, outcome.mismatches), (1, 0));
    other.checksum = 8;
    sum.merge(&other, false, |name| name, 1, &mut outcome);
    assert_eq!((sum.total, outcome.mismatches), (2, 1));
}

#[test]
fn functions_are_found_by_context() {
    let mut profile = SampleProfile::new();
    let [a, b] = [b"a", b"b"].map(|name| profile.intern(SampleName::Text(name)).unwrap());
    let callers = [Frame {
        name: a,
        location: Location::new(3, 1),
    }];
    let base = profile.find_or_add(&[], b);
    let nested = profile.find_or_add(&callers, b);
    assert_ne!(base, nested);
    assert_eq!(profile.find_or_add(&callers, b), nested);
    assert_eq!(profile.find(&[], b), Some(base));
    assert_eq!(profile.find(&[], a), None);
    assert_eq!(profile.llvm_order(&profile.names.ranks()), [1, 0]);
    profile.samples_mut(base).unwrap().total = 1;
    assert_eq!(profile.llvm_order(&profile.names.ranks()), [0, 1]);
    profile.retain(|function| !function.callers.is_empty());
    assert_eq!(profile.find(&callers, b), Some(0));
    assert_eq!(profile.find(&[], b), None);
}
