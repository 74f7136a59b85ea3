//! Tests of the algebraic laws of the accumulator: order and grouping of inputs must not matter.
use super::*;
use crate::Event;
use profkit_abi::indexed::{MAX_COUNT, PSEUDO_HOT, PSEUDO_WARM};
use profkit_data::instr::ValueEntry;
use proptest::prelude::*;

/// Few names, hashes and numbers of counters, so that many records are merged with each other.
fn record() -> impl Strategy<Value = (Record, u64)> {
    let count = prop_oneof![
        8 => 0u64..100,
        1 => Just(MAX_COUNT),
        1 => Just(MAX_COUNT - 50),
        1 => Just(1 << 63),
    ];
    let counts = prop_oneof![
        6 => proptest::collection::vec(count, 2),
        1 => proptest::collection::vec(0u64..9, 3),
        1 => prop_oneof![Just(PSEUDO_HOT), Just(PSEUDO_WARM)].prop_map(|mark| vec![mark; 2]),
    ];
    let bitmap = prop_oneof![4 => Just(1usize), 1 => Just(2)];
    let bitmap = bitmap.prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len));
    let entry = (0u64..4, 1u64..20).prop_map(|(value, count)| ValueEntry { value, count });
    let site = proptest::collection::vec(entry, 0..5);
    let sites = prop_oneof![
        4 => proptest::collection::vec(site.clone(), 2),
        1 => proptest::collection::vec(site, 0..2),
    ];
    let uniformity = proptest::collection::vec(0u8..4, 0..2);
    (0u8..4, 0u64..2, counts, bitmap, uniformity, sites, 0u64..50).prop_map(
        |(name, hash, counts, bitmap, uniformity, sites, order)| {
            let mut record = Record {
                name: vec![b'a' + name],
                name_ref: NameRef(u64::from(name)),
                func_hash: FuncHash(hash),
                counts,
                bitmap,
                uniformity,
                values: ValueData::default(),
            };
            for site in sites {
                record.values.kind_mut(0).unwrap().push_site(site);
            }
            (record, order)
        },
    )
}

fn records() -> impl Strategy<Value = Vec<(Record, u64)>> {
    // Gives every record a different order number, because in a real merge no two records have the same position.
    proptest::collection::vec(record(), 0..12).prop_map(|mut records| {
        for (index, (_, order)) in (0u64..).zip(records.iter_mut()) {
            *order = *order * 64 + index;
        }
        records
    })
}

fn accumulate(records: &[(Record, u64)], place: u64) -> Accumulator {
    let mut acc = Accumulator::new(Rules::TOLERANT);
    for (record, order) in records {
        let order = order * 4 + place;
        let mut incoming = Incoming::of_record(record, order, Weight::ONE, SiteRule::Canonical);
        incoming.stats = RecordStats::once(u32::try_from(place).unwrap());
        // Records of other sizes stay separate until the end; only a sum that is too large is reported at once.
        assert!(matches!(acc.add(incoming), None | Some(Fault::Overflow)));
    }
    acc
}

fn merged(mut a: Accumulator, b: Accumulator) -> Accumulator {
    a.merge(b, |fault, _| {
        assert_eq!(fault, Fault::Overflow, "other faults are found at the end");
    });
    a
}

type View = (Vec<String>, Vec<Event>, Vec<u64>);

/// Returns the whole content of an accumulator in sorted order, so that two accumulators can be compared.
fn view(acc: Accumulator) -> View {
    let mut log = EventLog::default();
    let finished = acc.finish(None, &mut log);
    let mut lines = Vec::new();
    for function in finished.table.functions() {
        for record in function.records() {
            lines.push(format!(
                "{:?} {:?} {} {:?}",
                function.name(),
                function.name_ref(),
                function.order(),
                record
            ));
        }
    }
    lines.sort();
    let (mut events, _) = log.finish();
    events.sort_by_key(|event| format!("{event:?}"));
    let sums = vec![
        finished.records_merged,
        finished.records_dropped,
        finished.overflowed,
        finished.collisions,
    ];
    (lines, events, sums)
}

proptest! {
    #[test]
    fn no_function_has_two_records_of_one_hash_and_shape(a in records(), b in records()) {
        let acc = merged(accumulate(&a, 0), accumulate(&b, 1));
        for function in acc.table().functions() {
            let mut seen = std::collections::HashSet::new();
            for record in function.records() {
                prop_assert!(seen.insert((record.func_hash, Shape::of(&record.to_new()))));
            }
        }
    }

    #[test]
    fn the_empty_accumulator_is_an_identity(a in records()) {
        let plain = view(accumulate(&a, 0));
        let empty = || Accumulator::new(Rules::TOLERANT);
        prop_assert_eq!(&plain, &view(merged(accumulate(&a, 0), empty())));
        prop_assert_eq!(&plain, &view(merged(empty(), accumulate(&a, 0))));
    }

    #[test]
    fn merging_commutes(a in records(), b in records()) {
        let (x, y) = (|| accumulate(&a, 0), || accumulate(&b, 1));
        prop_assert_eq!(view(merged(x(), y())), view(merged(y(), x())));
    }

    #[test]
    fn merging_associates(a in records(), b in records(), c in records()) {
        let (x, y, z) = (|| accumulate(&a, 0), || accumulate(&b, 1), || accumulate(&c, 2));
        let left = merged(merged(x(), y()), z());
        let right = merged(x(), merged(y(), z()));
        prop_assert_eq!(view(left), view(right));
    }

    #[test]
    fn counts_never_pass_the_largest_and_pseudo_records_stay_apart(a in records()) {
        let finished = accumulate(&a, 0).finish(None, &mut EventLog::default());
        for function in finished.table.functions() {
            for record in function.records() {
                let pseudo = record.is_pseudo();
                prop_assert!(record.counts.iter().all(|&count| (count > MAX_COUNT) == pseudo));
            }
        }
    }
}

fn plain(name: &str, hash: u64, counts: &[u64]) -> Record {
    Record {
        name: name.into(),
        name_ref: NameRef::of(name.as_bytes()),
        func_hash: FuncHash(hash),
        counts: counts.to_vec(),
        ..Record::default()
    }
}

fn events_of(records: &[Record], rules: Rules) -> Vec<String> {
    let mut acc = Accumulator::new(rules);
    let mut log = EventLog::default();
    for (input, record) in records.iter().enumerate() {
        let incoming = Incoming::of_record(record, order_of(input, 0), Weight::ONE, rules.sites);
        // The tolerant rules report all faults at the end, so faults are recorded here only under LLVM's rules.
        if let Some(fault) = acc.add(incoming).filter(|_| rules.first_shape_wins) {
            log.push(fault.event(input, &record.name, Kept::First));
        }
    }
    acc.finish(None, &mut log);
    log.finish().0.iter().map(ToString::to_string).collect()
}

#[test]
fn what_does_not_fit_is_reported_with_both_sides() {
    let mut with_bitmap = plain("f", 1, &[5]);
    with_bitmap.bitmap = vec![1];
    let mut with_sites = plain("g", 1, &[5]);
    with_sites.values.kind_mut(0).unwrap().push_site([]);
    let records = [
        plain("f", 1, &[1]),
        plain("f", 1, &[1, 2]),
        with_bitmap,
        plain("g", 1, &[1]),
        with_sites,
        plain("h", 1, &[MAX_COUNT]),
        plain("h", 1, &[1]),
        plain("h", 1, &[PSEUDO_HOT]),
    ];
    for rules in [Rules::TOLERANT, Rules::LLVM] {
        let events = events_of(&records, rules);
        assert_eq!(events.len(), 5, "{events:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(events[0], @": dropped function `f`: the number of counters differs from that of the function's first record: found 2 counters, expected 1 counter");
            insta::assert_snapshot!(events[1], @": repaired function `f`: the record has a bitmap of another size than the first record of the function, so only its counters are merged: found 1 byte, expected 0 bytes");
            insta::assert_snapshot!(events[2], @": repaired function `g`: the number of sites of indirect calls differs from that of the function's first record, so the values are left out: found 1 site, expected 0 sites");
            insta::assert_snapshot!(events[3], @": repaired function `h`: a counter exceeded the largest possible value and was limited to it");
            insta::assert_snapshot!(events[4], @": dropped function `h`: one record has counts, the other record only a hot or warm marker");
        }
    }
}

#[test]
fn a_filter_takes_functions_out_of_the_result() {
    let mut acc = Accumulator::new(Rules::TOLERANT);
    for (input, record) in [plain("keep", 1, &[1]), plain("drop", 1, &[1])]
        .iter()
        .enumerate()
    {
        acc.add(Incoming::of_record(
            record,
            order_of(input, 0),
            Weight::ONE,
            SiteRule::Canonical,
        ));
    }
    let finished = acc.finish(Some(&|name| name == b"keep"), &mut EventLog::default());
    assert_eq!((finished.table.function_count(), finished.filtered), (1, 1));
}

#[test]
fn llvm_weighs_markers_like_counts() {
    // `llvm-profdata-22 merge --weighted-input=2,FILE` of a pseudo-hot record gives 18446744073709551613.
    let mut acc = Accumulator::new(Rules::LLVM);
    let record = plain("f", 1, &[PSEUDO_HOT]);
    acc.add(Incoming::of_record(
        &record,
        0,
        Weight::integer(2),
        SiteRule::Llvm,
    ));
    let finished = acc.finish(None, &mut EventLog::default());
    let counts: Vec<_> = finished
        .table
        .functions()
        .flat_map(|function| function.records().map(|record| record.counts[0]))
        .collect();
    assert_eq!(counts, [MAX_COUNT]);
}
