//! Names of virtual tables, which LLVM's writer keeps in a set of strings.
use profkit_data::llvm_order::string_set_order;
use rustc_hash::FxHashSet;

/// Names without repetitions, in the order in which they came.
#[derive(Default)]
pub(crate) struct VtableNames {
    names: Vec<Vec<u8>>,
    known: FxHashSet<Vec<u8>>,
}

impl VtableNames {
    /// Adds the names of an input, in the order of its file: LLVM's reader has them in a set too.
    pub(crate) fn extend(&mut self, names: &[Vec<u8>]) {
        let mut input = VtableNames::default();
        names.iter().for_each(|name| input.insert(name));
        for at in input.order() {
            if let Some(name) = input.names.get(at as usize) {
                self.insert(name);
            }
        }
    }

    /// Adds the names of another worker.
    pub(crate) fn absorb(&mut self, other: VtableNames) {
        other.names.iter().for_each(|name| self.insert(name));
    }

    /// The names: as LLVM's set yields them if they came `in_order`, else sorted, as threads may have mixed them.
    pub(crate) fn finish(mut self, in_order: bool) -> Vec<Vec<u8>> {
        if !in_order {
            self.names.sort_unstable();
            return self.names;
        }
        let order = self.order();
        let take = |at: u32| self.names.get_mut(at as usize).map(std::mem::take);
        order.into_iter().filter_map(take).collect()
    }

    fn order(&self) -> Vec<u32> {
        string_set_order(self.names.iter().map(Vec::as_slice))
    }

    fn insert(&mut self, name: &[u8]) {
        if self.known.insert(name.to_vec()) {
            self.names.push(name.to_vec());
        }
    }
}
