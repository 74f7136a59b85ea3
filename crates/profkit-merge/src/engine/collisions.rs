//! Functions that programs of different build ids have in common.
use crate::accumulate::Finished;
use crate::report::SharedFunctions;
use std::cmp::Reverse;

/// The functions that programs have in common, in parts of a result.
#[derive(Debug, Default)]
pub(crate) struct Collisions {
    /// The number of records.
    pub(crate) records: u64,
    functions: u64,
    counts: u128,
    /// Those with the largest sums: sum, position in the inputs, and name.
    largest: Vec<(Reverse<u128>, u64, Vec<u8>)>,
}

impl Collisions {
    pub(crate) fn note(&mut self, finished: &Finished) {
        self.records += finished.collisions;
        self.functions += finished.shared.len() as u64;
        for &(sum, id) in &finished.shared {
            self.counts += sum;
            let Some(function) = finished.table.function(id) else {
                continue;
            };
            let place = (Reverse(sum), function.order());
            let last = self.largest.last();
            let is_small = last.is_some_and(|&(sum, order, _)| (sum, order) < place);
            if is_small && self.largest.len() >= SharedFunctions::MOST_SHARED {
                continue;
            }
            self.largest
                .push((place.0, place.1, function.name().to_vec()));
            self.cut();
        }
    }

    pub(crate) fn absorb(&mut self, later: Collisions) {
        self.records += later.records;
        self.functions += later.functions;
        self.counts += later.counts;
        self.largest.extend(later.largest);
        self.cut();
    }

    fn cut(&mut self) {
        self.largest.sort();
        self.largest.truncate(SharedFunctions::MOST_SHARED);
    }

    /// `all_counts` is the sum of the counters of all functions of the result.
    pub(crate) fn report(&self, all_counts: u128, shared: &mut SharedFunctions) {
        shared.functions += self.functions;
        shared.counts += self.counts;
        shared.all_counts += all_counts;
        let left = SharedFunctions::MOST_SHARED.saturating_sub(shared.first.len());
        let names = self.largest.iter().take(left);
        shared.first.extend(names.map(|(_, _, name)| name.clone()));
    }
}
