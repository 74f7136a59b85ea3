//! How many of the hottest functions have most of the counts.

/// For each of which [`Share`] is computed, in millionths: 90, 99 and 99.9 percent of all counts.
pub const SHARES: [u32; 3] = [900_000, 990_000, 999_000];

/// A share of all counts, and how many of the hottest functions together reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The share in millionths.
    pub millionths: u64,
    /// The number of functions.
    pub functions: u64,
}

/// The sums of functions, of which the largest are looked at: 8 bytes for each function that ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums(Vec<u64>);

/// Values are sorted by their leading bits first: where the first one bit is, and the ten bits after it.
const KEYS: usize = 64 << KEY_BITS;
const KEY_BITS: u32 = 10;

fn key(value: u64) -> usize {
    let zeros = value.leading_zeros();
    let fraction = (value << zeros << 1) >> (u64::BITS - KEY_BITS);
    // The key is less than `KEYS`, as `value` is not 0.
    usize::try_from(u64::from(63 - zeros) << KEY_BITS | fraction).unwrap_or(0)
}

impl Sums {
    pub fn add(&mut self, sum: u64) {
        if sum > 0 {
            self.0.push(sum);
        }
    }

    /// Computes, for each of [`SHARES`], how many of the hottest functions together reach this share of `total`, the sum
    /// of all counts. Among functions with equal counts, either all are included or none. The result is empty if `total`
    /// is 0 or needs more than 64 bits.
    pub fn shares(&self, total: u128) -> Vec<Share> {
        if total == 0 || u64::try_from(total).is_err() {
            return Vec::new();
        }
        let mut groups = vec![(0u64, 0u128); KEYS];
        for &sum in &self.0 {
            if let Some((functions, all)) = groups.get_mut(key(sum)) {
                *functions += 1;
                *all += u128::from(sum);
            }
        }
        let mut shares = SHARES.iter().map(|&share| {
            let share = u64::from(share);
            (share, total * u128::from(share) / 1_000_000)
        });
        let (mut found, mut next) = (Vec::new(), shares.next());
        let (mut reached, mut functions) = (0u128, 0u64);
        for (group, &(more, all)) in groups.iter().enumerate().rev() {
            if next.is_none_or(|(_, wanted)| reached + all < wanted) {
                (reached, functions) = (reached + all, functions + more);
                continue;
            }
            let members = self.0.iter().copied();
            let mut members: Vec<u64> = members.filter(|&sum| key(sum) == group).collect();
            members.sort_unstable_by(|one, other| other.cmp(one));
            for equal in members.chunk_by(|one, other| one == other) {
                reached += equal.iter().copied().map(u128::from).sum::<u128>();
                functions += equal.len() as u64;
                while let Some((millionths, wanted)) = next
                    && reached >= wanted
                {
                    found.push(Share {
                        millionths,
                        functions,
                    });
                    next = shares.next();
                }
            }
        }
        // A sum is cut to 64 bits, so that all together may not reach the last shares.
        while let Some((millionths, _)) = next {
            found.push(Share {
                millionths,
                functions,
            });
            next = shares.next();
        }
        found
    }
}

impl FromIterator<u64> for Sums {
    fn from_iter<I: IntoIterator<Item = u64>>(sums: I) -> Self {
        Sums(sums.into_iter().filter(|&sum| sum > 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::summary::SummaryBuilder;

    #[test]
    fn shares_are_those_of_a_summary_of_the_sums() {
        let mut seed = 1u64;
        for round in 0..200u32 {
            let (mut sums, mut builder, mut total) =
                (Sums::default(), SummaryBuilder::new(), 0u128);
            for _ in 0..round * 3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = seed >> 20 >> (seed % 44);
                sums.add(value);
                builder.add_count(value);
                total += u128::from(value);
            }
            let summary = builder.finish_with(&SHARES);
            let expected: Vec<Share> = summary
                .cutoffs
                .iter()
                .filter(|_| total > 0)
                .map(|cutoff| Share {
                    millionths: cutoff.cutoff,
                    functions: cutoff.blocks,
                })
                .collect();
            assert_eq!(sums.shares(total), expected, "{round}");
        }
        assert!(Sums::default().shares(0).is_empty());
    }
}
