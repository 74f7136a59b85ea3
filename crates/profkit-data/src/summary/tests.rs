use super::*;
use std::collections::BTreeMap;

/// Computes a summary as LLVM does: it keeps a map from each count to how often the count occurs.
fn slow(records: &[Vec<u64>]) -> Summary {
    let mut seen = BTreeMap::<u64, u64>::new();
    let mut summary = Summary::default();
    for record in records {
        summary.functions += 1;
        for (index, &count) in record.iter().enumerate() {
            *seen.entry(count).or_default() += 1;
            summary.blocks += 1;
            summary.total_count = summary.total_count.wrapping_add(count);
            summary.max_count = summary.max_count.max(count);
            let max = match index {
                0 => &mut summary.max_function_count,
                _ => &mut summary.max_internal_count,
            };
            *max = count.max(*max);
        }
    }
    let mut descending = seen.iter().rev();
    let (mut sum, mut blocks, mut last) = (0u64, 0, 0);
    for cutoff in SUMMARY_CUTOFFS {
        let wanted = u128::from(summary.total_count) * u128::from(cutoff) / 1_000_000;
        while u128::from(sum) < wanted {
            let (&count, &times) = descending.next().unwrap();
            sum = sum.wrapping_add(count.wrapping_mul(times));
            blocks += times;
            last = count;
        }
        summary.cutoffs.push(SummaryCutoff {
            cutoff: u64::from(cutoff),
            min_count: last,
            blocks,
        });
    }
    summary
}

fn records(count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..count)
        .map(|_| {
            (0..next() % 9 + 1)
                .map(|_| next() >> (next() % 32))
                .collect()
        })
        .collect()
}

fn build(records: &[Vec<u64>]) -> SummaryBuilder {
    let mut builder = SummaryBuilder::new();
    records.iter().for_each(|counts| builder.add_counts(counts));
    builder
}

#[test]
fn fast_and_slow_agree_whole_or_in_parts() {
    for (count, seed) in [(0, 1), (1, 2), (10, 3), (1000, 4), (50_000, 5)] {
        let records = records(count, seed);
        let expected = slow(&records);
        assert_eq!(build(&records).finish(), expected);
        // A builder with few counts keeps them in a list, and a builder with many counts in an array. The records are
        // split at places where a builder of one form is merged with a builder of the other form.
        for at in [count / 3, count.min(10), count - count.min(10)] {
            let (one, two) = records.split_at(at);
            let mut merged = build(two);
            merged.merge(build(one));
            assert_eq!(merged.finish(), expected);
        }
    }
}

#[test]
fn no_counts_give_zero_cutoffs() {
    let summary = SummaryBuilder::new().finish();
    assert_eq!(summary.cutoffs.len(), 16);
    assert!(
        summary
            .cutoffs
            .iter()
            .all(|cutoff| (cutoff.min_count, cutoff.blocks) == (0, 0))
    );
}

#[test]
fn totals_beyond_64_bits_wrap_as_llvms_do() {
    let records = [vec![u64::MAX - 2, 5], vec![7, 1 << 63]];
    let expected = slow(&records);
    assert_eq!(build(&records).finish(), expected);
}
