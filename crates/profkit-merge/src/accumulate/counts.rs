//! Adds counters to sums. Each input has a weight, and no sum exceeds the largest count.
use crate::Weight;
use profkit_abi::indexed::{MAX_COUNT, PSEUDO_HOT, PSEUDO_WARM};

#[inline]
pub(crate) fn add(sums: &mut [u64], input: &[u64], weight: Weight) -> bool {
    let mut overflowed = false;
    if weight.is_one() {
        for (sum, &count) in sums.iter_mut().zip(input) {
            let (value, carried) = sum.overflowing_add(count);
            let over = carried | (value > MAX_COUNT);
            *sum = if over { MAX_COUNT } else { value };
            overflowed |= over;
        }
    } else {
        for (sum, &count) in sums.iter_mut().zip(input) {
            let (scaled, over) = weight.apply(count);
            let (value, carried) = sum.overflowing_add(scaled);
            let over = over | carried | (value > MAX_COUNT);
            *sum = if over { MAX_COUNT } else { value };
            overflowed |= over;
        }
    }
    overflowed
}

pub(crate) fn scale(counts: &mut [u64], weight: Weight) -> bool {
    let mut overflowed = false;
    for count in counts {
        let (value, over) = weight.apply(*count);
        let over = over | (value > MAX_COUNT);
        *count = if over { MAX_COUNT } else { value };
        overflowed |= over;
    }
    overflowed
}

/// Merges two pseudo records, whose first counter only says hot or warm; hot wins (`InstrProfRecord::merge`). LLVM
/// leaves the other counters of the earlier record. Without `first_only` all are changed, so that the order does not
/// matter.
pub(crate) fn merge_pseudo(this: &mut [u64], input: &[u64], first_only: bool) {
    let hot = this.first() == Some(&PSEUDO_HOT) || input.first() == Some(&PSEUDO_HOT);
    let marker = if hot { PSEUDO_HOT } else { PSEUDO_WARM };
    let changed = if first_only {
        1.min(this.len())
    } else {
        this.len()
    };
    this.iter_mut()
        .take(changed)
        .for_each(|count| *count = marker);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_largest_count() {
        let mut sums = [1, MAX_COUNT - 1, MAX_COUNT];
        assert!(!add(&mut sums, &[2, 1, 0], Weight::ONE));
        assert_eq!(sums, [3, MAX_COUNT, MAX_COUNT]);
        assert!(add(&mut sums, &[0, 1, u64::MAX], Weight::ONE));
        assert_eq!(sums, [3, MAX_COUNT, MAX_COUNT]);
        assert!(add(&mut sums, &[1 << 62, 0, 0], Weight::integer(4)));
        assert_eq!(sums[0], MAX_COUNT);
        let mut counts = [10, u64::MAX];
        assert!(!scale(&mut counts, Weight::ratio(1, 2).unwrap()));
        assert_eq!(counts, [5, 1 << 63]);
    }
}
