//! The names of virtual tables in the merged profile. LLVM's writer keeps them in a set of strings.
use profkit_data::llvm_order::string_set_order;
use rustc_hash::FxHashSet;

/// Names of virtual tables without repetitions, in the order in which they were added.
#[derive(Default)]
pub(crate) struct VtableNames {
    names: Vec<Vec<u8>>,
    known: FxHashSet<Vec<u8>>,
}

impl VtableNames {
    /// Adds the names of an input, in the order in which LLVM's reader returns them: the reader keeps them in a set of
    /// strings too.
    pub(crate) fn extend(&mut self, names: &[Vec<u8>]) {
        let mut input = VtableNames::default();
        names.iter().for_each(|name| input.insert(name));
        for at in input.order() {
            if let Some(name) = input.names.get(at as usize) {
                self.insert(name);
            }
        }
    }

    /// Adds the names of virtual tables that another worker has read.
    pub(crate) fn absorb(&mut self, other: VtableNames) {
        other.names.iter().for_each(|name| self.insert(name));
    }

    /// Returns the names of virtual tables. If they were added in input order (`in_order`), they get the order of
    /// LLVM's set. If not, they are sorted, because several threads may have added them in any order.
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
