use super::*;

fn line(line: u32, samples: u64) -> Samples {
    let mut made = Samples::default();
    let location = Location::new(line, 0);
    let outcome = &mut AddOutcome::default();
    made.adding().add_line(location, samples, 1, outcome);
    made.total = samples;
    made
}

#[test]
fn merging_keeps_vectors_sorted_and_saturates() {
    let mut sum = line(5, 3);
    let mut outcome = AddOutcome::default();
    let same = |name| name;
    sum.adding().merge(&line(2, 7), true, same, 2, &mut outcome);
    sum.adding()
        .merge(&line(9, 1), false, same, 1, &mut outcome);
    sum.adding()
        .merge(&line(5, 1), false, same, 1, &mut outcome);
    assert_eq!(outcome, AddOutcome::default());
    let lines: Vec<_> = sum
        .body
        .iter()
        .map(|line| (line.location.line, line.samples))
        .collect();
    assert_eq!(lines, [(2, 14), (5, 4), (9, 1)]);
    assert_eq!(sum.total, 19);
    sum.adding()
        .merge(&line(2, u64::MAX / 2), false, same, 3, &mut outcome);
    assert_eq!(outcome.overflows, 2);
    assert_eq!((sum.total, sum.body[0].samples), (u64::MAX, u64::MAX));
}

#[test]
fn functions_of_another_checksum_are_left_out() {
    let (mut sum, mut other) = (line(1, 1), line(1, 1));
    let mut outcome = AddOutcome::default();
    other.checksum = 7;
    sum.adding()
        .merge(&other, false, |name| name, 1, &mut outcome);
    assert_eq!((sum.checksum, sum.total), (7, 2));
    assert_eq!((outcome.adopted, outcome.mismatches), (1, 0));
    other.checksum = 8;
    sum.adding()
        .merge(&other, false, |name| name, 1, &mut outcome);
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

/// Adds lines, call targets, vtables and inlined functions in descending order, which is the worst order for sorted
/// vectors. There are so many entries that not all of them are inserted into the vectors immediately. With `repeated`,
/// each entry is added as a separate function with the same name.
fn descending(repeated: bool) -> SampleProfile {
    let mut profile = SampleProfile::new();
    let [f, g] = [b"f", b"g"].map(|name| profile.intern(SampleName::Text(name)).unwrap());
    let outcome = &mut AddOutcome::default();
    let mut additions = profile.additions();
    let mut function = FlatFunction {
        name: f,
        ..FlatFunction::default()
    };
    let mut add = |function: &mut FlatFunction| {
        additions.add(function, 1, outcome);
        function.clear();
    };
    for round in 1..=2 {
        for line in (0..3000).rev() {
            let location = Location::new(line, 0);
            let samples = u64::from(line) * round;
            let (name, count) = (g, samples + 1);
            function.steps.extend([
                Step::Line { location, samples },
                Step::Target { name, count },
                Step::Vtable {
                    location,
                    name,
                    count,
                },
                Step::Enter {
                    location: Location::new(line / 1000, 0),
                    name,
                    total: 1,
                },
                Step::Line { location, samples },
                Step::Leave,
            ]);
            if repeated {
                add(&mut function);
            }
        }
    }
    add(&mut function);
    drop(additions);
    assert_eq!(*outcome, AddOutcome::default());
    profile
}

#[test]
fn additions_in_the_worst_order_give_sorted_vectors() {
    for repeated in [false, true] {
        let profile = descending(repeated);
        let [function] = profile.functions() else {
            panic!("one function: {:?}", profile.functions().len());
        };
        let samples = &function.samples;
        let lines: Vec<_> = (0..3000).map(|line| (line, u64::from(line) * 3)).collect();
        let body = |samples: &Samples| -> Vec<_> {
            let lines = samples.body.iter();
            lines
                .map(|line| (line.location.line, line.samples))
                .collect()
        };
        assert_eq!(body(samples), lines);
        for list in [&samples.targets, &samples.vtables] {
            let list = list.iter();
            let found: Vec<_> = list.map(|one| (one.location.line, one.count - 2)).collect();
            assert_eq!(found, lines);
        }
        let inlined: Vec<_> = samples.inlined.iter().collect();
        for (site, inlined) in inlined.iter().enumerate() {
            assert_eq!(inlined.location.line as usize, site);
            assert_eq!(inlined.samples.total, 2000);
            assert_eq!(body(&inlined.samples), lines[site * 1000..][..1000]);
        }
        assert_eq!(inlined.len(), 3);
    }
}

#[test]
fn functions_inlined_in_the_worst_order_are_found_again() {
    let mut samples = Samples::default();
    let mut adding = samples.adding();
    let outcome = &mut AddOutcome::default();
    for round in 0..2 {
        for line in (0..500).rev() {
            let location = Location::new(line, 0);
            adding.enter(location, NameId::default(), |inner, is_new| {
                assert_eq!(is_new, round == 0);
                for line in (0..500).rev() {
                    inner.add_line(Location::new(line, 0), 1, 1, outcome);
                }
            });
        }
    }
    drop(adding);
    let lines = samples.inlined.iter().map(|one| one.location.line);
    assert!(lines.eq(0..500));
    for inlined in &samples.inlined {
        let lines = inlined.samples.body.iter();
        assert!(
            lines
                .map(|line| (line.location.line, line.samples))
                .eq((0..500).map(|line| (line, 2)))
        );
    }
}

#[test]
fn merged_cold_contexts_have_no_attributes() {
    let mut profile = SampleProfile::new();
    let [main, hot, cold] = ["main", "hot", "cold"].map(|name| {
        let name = SampleName::Text(name.as_bytes());
        profile.intern(name).unwrap()
    });
    for (name, count) in [(hot, 100), (cold, 1)] {
        let caller = Frame {
            name: main,
            location: Location::new(1, 0),
        };
        let samples = Samples {
            name,
            attributes: 1,
            ..line(1, count)
        };
        profile.push(Function {
            callers: [caller].into(),
            samples,
        });
    }
    let cold_contexts = ColdContexts {
        trim: false,
        merge: true,
        depth: 1,
        thresholds: crate::summary::Thresholds::default(),
    };
    trim_cold(&mut profile, cold_contexts, 10);
    let functions = profile.functions().iter();
    let found: Vec<_> = functions
        .map(|it| (it.samples.name, it.callers.len(), it.samples.attributes))
        .collect();
    assert_eq!(found, [(hot, 1, 1), (cold, 0, 0)]);
}

#[test]
fn the_kind_prints_its_flags() {
    let kind = ProfileKind::PROBE_BASED | ProfileKind::MD5_NAMES;
    assert_eq!(format!("{kind:?}"), "ProfileKind(probe, md5)");
    assert_eq!(format!("{:?}", ProfileKind::NONE), "ProfileKind()");
}
