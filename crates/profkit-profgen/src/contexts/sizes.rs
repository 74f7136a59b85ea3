//! The code sizes of functions, by the context into which the functions were inlined.
use super::ContextOptions;
use super::lines::LineStacks;
use super::trie::{NodeId, ROOT, Trie};
use crate::probes::{CopyId, ProbeMap};
use crate::program::{FunctionId, Program};
use profkit_data::sample::Location;
use rustc_hash::FxHashSet;

/// Set in a discriminator that has a probe and a DWARF discriminator too.
const HAS_OWN: u32 = 1 << 28;

#[derive(Debug, Default)]
pub struct Sizes {
    tree: Trie,
    /// The size in bytes of each node; `None` if it is not known.
    sizes: Vec<Option<u64>>,
}

impl Sizes {
    fn add(&mut self, node: NodeId, size: u64) {
        let index = node.index();
        if self.sizes.len() <= index {
            self.sizes.resize(index + 1, None);
        }
        if let Some(known) = self.sizes.get_mut(index) {
            *known = Some(known.unwrap_or(0).saturating_add(size));
        }
    }

    fn get(&self, node: NodeId) -> Option<u64> {
        self.sizes.get(node.index()).copied().flatten()
    }

    pub fn is_wanted(options: &ContextOptions) -> bool {
        options.preinline.is_some_and(|options| options.code_sizes)
    }

    pub fn of_lines(
        program: &Program<'_>,
        functions: &FxHashSet<FunctionId>,
        options: &ContextOptions,
    ) -> Self {
        let mut sizes = Sizes::default();
        if Self::is_wanted(options) {
            sizes.add_code(program, functions, false);
        }
        sizes
    }

    pub fn of_probes(
        program: &Program<'_>,
        functions: &FxHashSet<FunctionId>,
        map: &ProbeMap,
        options: &ContextOptions,
    ) -> Self {
        let mut sizes = Sizes::default();
        if !Self::is_wanted(options) {
            return sizes;
        }
        sizes.add_code(program, functions, true);
        for copy in &map.copies {
            if copy.probes.is_empty() {
                continue;
            }
            sizes.add_empty(map, copy.guid, copy.caller);
        }
        sizes
    }

    fn add_empty(&mut self, map: &ProbeMap, guid: u64, caller: Option<(CopyId, u32)>) {
        let Some(description) = map.descriptions.get(&guid) else {
            return;
        };
        let Some(name) = self.tree.intern(&description.name) else {
            return;
        };
        let mut node = self.tree.child(ROOT, Location::default(), name);
        let mut caller = caller;
        while let Some((id, site)) = caller {
            let Some(copy) = map.copy(id) else {
                return;
            };
            let Some(description) = map.descriptions.get(&copy.guid) else {
                return;
            };
            let Some(name) = self.tree.intern(&description.name) else {
                return;
            };
            node = self.tree.child(node, Location::new(site, 0), name);
            caller = copy.caller;
        }
        self.add(node, 0);
    }

    /// With `by_probes`, the probe index in the discriminator is the call site, otherwise the line.
    fn add_code(
        &mut self,
        program: &Program<'_>,
        functions: &FxHashSet<FunctionId>,
        by_probes: bool,
    ) {
        let mut code = Vec::new();
        let mut order: Vec<FunctionId> = functions.iter().copied().collect();
        order.sort_unstable();
        for function in order.into_iter().filter_map(|id| program.function(id)) {
            for &(start, end) in &function.ranges {
                if let Some(last) = end.checked_sub(1) {
                    let inside = program.code.between(start, last);
                    code.extend(inside.map(|one| (one.address, u64::from(one.size))));
                }
            }
        }
        let stacks = LineStacks::of(program, code.iter().map(|(address, _)| *address).collect());
        for (address, size) in code {
            let mut frames = stacks.at(address).iter().rev();
            let Some((leaf, _)) = frames.next() else {
                continue;
            };
            let Some(leaf) = self.tree.intern(stacks.name(*leaf)) else {
                return;
            };
            let mut node = self.tree.child(ROOT, Location::default(), leaf);
            for (name, location) in frames {
                let site = if by_probes {
                    Location::new(probe_index(location.discriminator), 0)
                } else {
                    *location
                };
                let Some(name) = self.tree.intern(stacks.name(*name)) else {
                    return;
                };
                node = self.tree.child(node, site, name);
            }
            self.add(node, size);
        }
    }

    /// The code size in a context, or in the longest part of it that the program has, or with other callers; otherwise
    /// 0.
    pub fn of(&self, trie: &mut Trie, node: NodeId) -> u64 {
        let mut at = Some(ROOT);
        let mut last = ROOT;
        let mut size = None;
        let mut site = Location::default();
        let mut frame = node;
        while let Some(here) = at
            && let Some(parent) = trie.node(frame).parent
        {
            last = here;
            let key = trie.key(trie.node(frame).name, site);
            at = self.tree.node(here).children.get(&key).copied();
            if let Some(found) = at.and_then(|node| self.get(node)) {
                size = Some(found);
            }
            site = trie.node(frame).site;
            frame = parent;
        }
        let mut other = at.unwrap_or(last);
        while size.is_none() {
            let Some(&first) = self.tree.node(other).children.values().next() else {
                break;
            };
            other = first;
            size = self.get(first);
        }
        size.unwrap_or(0)
    }
}

fn probe_index(discriminator: u32) -> u32 {
    if discriminator & HAS_OWN == 0 {
        discriminator >> 3 & 0xffff
    } else {
        discriminator >> 3 & 0x1fff
    }
}
