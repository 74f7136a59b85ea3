//! The tree of calling contexts from which a profile is made.
use profkit_data::sample::{
    AddOutcome, Function, Location, NameId, SampleName, SampleNames, SampleProfile, Samples,
    call_site_hash,
};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// The root of the tree. Functions without callers are its children.
pub const ROOT: NodeId = NodeId(0);

#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The context of the caller; `None` only for the root.
    pub parent: Option<NodeId>,
    pub name: NameId,
    pub site: Location,
    /// The samples; `None` if there are none.
    pub samples: Option<Samples>,
    pub inlined: bool,
    pub merged: bool,
    /// The contexts of the called functions. The keys are hashes of name and call site, so the order is that of LLVM.
    pub children: BTreeMap<u64, NodeId>,
}

/// The tree of contexts. Nodes whose samples were moved away stay in the list, but are children of none.
#[derive(Clone, Debug)]
pub struct Trie {
    nodes: Vec<Node>,
    pub names: SampleNames,
    hashes: Vec<u64>,
}

impl Default for Trie {
    fn default() -> Self {
        Trie {
            nodes: vec![Node::default()],
            names: SampleNames::new(),
            hashes: Vec::new(),
        }
    }
}

impl Trie {
    pub fn of(profile: &mut SampleProfile) -> Self {
        let functions = profile.take_functions();
        let mut trie = Trie {
            names: std::mem::take(&mut profile.names),
            ..Trie::default()
        };
        for Function { callers, samples } in functions {
            let mut node = ROOT;
            let mut site = Location::default();
            for caller in &callers {
                node = trie.child(node, site, caller.name);
                site = caller.location;
            }
            let node = trie.child(node, site, samples.name);
            match &mut trie.node_mut(node).samples {
                None => trie.node_mut(node).samples = Some(samples),
                Some(known) => {
                    let mut outcome = AddOutcome::default();
                    let mut adding = known.adding();
                    adding.merge(&samples, false, |name| name, 1, &mut outcome);
                }
            }
        }
        trie
    }

    pub fn guids(&mut self) -> FxHashSet<u64> {
        let nodes = self.breadth_first();
        nodes
            .into_iter()
            .map(|id| self.hash(self.node(id).name))
            .collect()
    }

    pub fn with_samples(&self) -> u64 {
        self.nodes
            .iter()
            .filter(|node| node.samples.is_some())
            .count() as u64
    }
}

impl NodeId {
    pub fn index(self) -> usize {
        self.0
    }
}

impl Trie {
    /// Returns the id of a name, which is added if it is new. `None` if the tree cannot hold another name.
    pub fn intern(&mut self, name: &[u8]) -> Option<NameId> {
        self.names.insert(SampleName::Text(name))
    }

    pub fn hash(&mut self, name: NameId) -> u64 {
        let names = &self.names;
        let known = self.hashes.len();
        let new = names.iter().skip(known).map(|(_, name)| name.guid().0);
        if known < names.len() {
            self.hashes.extend(new);
        }
        self.hashes.get(name.index()).copied().unwrap_or(0)
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "ids are made by this tree, which never removes nodes"
    )]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "ids are made by this tree, which never removes nodes"
    )]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0]
    }

    pub fn key(&mut self, name: NameId, site: Location) -> u64 {
        call_site_hash(self.hash(name), site)
    }

    /// Returns the context of a function that is called at a call site; `None` if there is no such context.
    pub fn find(&mut self, parent: NodeId, site: Location, name: NameId) -> Option<NodeId> {
        let key = self.key(name, site);
        self.node(parent).children.get(&key).copied()
    }

    pub fn child(&mut self, parent: NodeId, site: Location, name: NameId) -> NodeId {
        let key = self.key(name, site);
        if let Some(&known) = self.node(parent).children.get(&key) {
            return known;
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node {
            parent: Some(parent),
            name,
            site,
            ..Node::default()
        });
        self.node_mut(parent).children.insert(key, id);
        id
    }

    pub fn samples(&mut self, id: NodeId) -> &mut Samples {
        let node = self.node_mut(id);
        let name = node.name;
        node.samples.get_or_insert_with(|| Samples {
            name,
            ..Samples::default()
        })
    }

    /// The children of a context, in LLVM's order.
    pub fn children(&self, id: NodeId) -> Vec<NodeId> {
        self.node(id).children.values().copied().collect()
    }

    pub fn breadth_first(&self) -> Vec<NodeId> {
        let mut list = vec![ROOT];
        let mut next = 0;
        while let Some(&id) = list.get(next) {
            list.extend(self.node(id).children.values());
            next += 1;
        }
        list.remove(0);
        list
    }
}

pub fn add_line(samples: &mut Samples, location: Location, count: u64) {
    let line = crate::lines::line_at(samples, location);
    *line = line.saturating_add(count);
}

pub fn add_target(samples: &mut Samples, location: Location, callee: NameId, count: u64) {
    crate::lines::line_at(samples, location);
    let mut outcome = AddOutcome::default();
    samples
        .adding()
        .add_target(location, callee, count, 1, &mut outcome);
}

pub fn target_count(samples: &Samples, location: Location, callee: NameId) -> u64 {
    let mut targets = samples.targets_at(location).iter();
    targets
        .find(|target| target.name == callee)
        .map_or(0, |target| target.count)
}

pub fn raise_line(samples: &mut Samples, location: Location, count: u64) {
    let line = crate::lines::line_at(samples, location);
    *line = (*line).max(count);
}
