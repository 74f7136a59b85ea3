//! Flame graphs: merges weighted call stacks into a tree, and computes the position of each frame.
//!
//! Positions and widths are in units of weight: a frame is as wide as its weight. Code that draws the picture chooses
//! the scale.
use rustc_hash::FxHashMap;

/// Collects weighted call stacks, and makes a [`FlameGraph`] of them.
///
/// ```
/// use profkit_report::flame_graph::{FlameBuilder, Temperature};
///
/// let mut builder = FlameBuilder::new();
/// builder.add(["main", "parse"], 30, Temperature::Warm);
/// builder.add(["main", "write"], 10, Temperature::Cold);
/// let graph = builder.layout();
/// let frames: Vec<_> = graph.frames().map(|frame| (frame.name, frame.depth, frame.start, frame.weight)).collect();
/// assert_eq!(frames, [("all", 0, 0, 40), ("main", 1, 0, 40), ("parse", 2, 0, 30), ("write", 2, 30, 10)]);
/// ```
#[derive(Clone, Debug)]
pub struct FlameBuilder {
    names: Vec<String>,
    by_name: FxHashMap<String, usize>,
    nodes: Vec<Node>,
}

/// How often the memory of an allocation is accessed. Stacks of profiles that are not heap profiles count as warm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Temperature {
    /// The memory is rarely accessed.
    Cold,
    /// The memory is accessed neither rarely nor often.
    #[default]
    Warm,
    /// The memory is often accessed.
    Hot,
}

/// A frame of the tree. The frame with index 0 is the root.
#[derive(Clone, Debug, Default)]
struct Node {
    name: usize,
    weight: u128,
    cold: u128,
    hot: u128,
    /// The functions that this frame called: maps the index of a function name to the index of a node.
    children: FxHashMap<usize, usize>,
}

impl Default for FlameBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl FlameBuilder {
    /// Makes a builder without stacks. The root frame is named `all`.
    pub fn new() -> Self {
        FlameBuilder {
            names: vec!["all".to_owned()],
            by_name: FxHashMap::default(),
            nodes: vec![Node::default()],
        }
    }

    /// Adds a stack, outermost frame first.
    pub fn add<'n>(
        &mut self,
        stack: impl IntoIterator<Item = &'n str>,
        weight: u64,
        temperature: Temperature,
    ) {
        let mut at = 0;
        self.weigh(at, weight, temperature);
        for name in stack {
            let name = self.name(name);
            let next = self.nodes.len();
            at = match self.nodes.get_mut(at) {
                Some(node) => *node.children.entry(name).or_insert(next),
                None => next,
            };
            if at == next {
                self.nodes.push(Node {
                    name,
                    ..Node::default()
                });
            }
            self.weigh(at, weight, temperature);
        }
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn weigh(&mut self, at: usize, weight: u64, temperature: Temperature) {
        if let Some(node) = self.nodes.get_mut(at) {
            let weight = u128::from(weight);
            node.weight += weight;
            match temperature {
                Temperature::Cold => node.cold += weight,
                Temperature::Hot => node.hot += weight,
                Temperature::Warm => {}
            }
        }
    }

    /// Computes the place of each frame: a level above its caller, beside its siblings in the order of names.
    pub fn layout(self) -> FlameGraph {
        let mut places = Vec::with_capacity(self.nodes.len());
        let mut depth = 0;
        // The frames that have no position yet: for each, its index, depth and start. The last frame of the list is
        // positioned next.
        let mut pending = vec![(0, 0, 0u128)];
        while let Some((at, level, start)) = pending.pop() {
            let Some(node) = self.nodes.get(at) else {
                continue;
            };
            if node.weight == 0 && at != 0 {
                continue;
            }
            depth = depth.max(level);
            places.push(Place {
                node: at,
                depth: level,
                start,
            });
            let name = |child: &usize| {
                let node = self.nodes.get(*child);
                node.and_then(|node| self.names.get(node.name))
            };
            let mut children: Vec<usize> = node.children.values().copied().collect();
            children.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
            let first = pending.len();
            let mut next = start;
            for child in children {
                pending.push((child, level + 1, next));
                next += self.nodes.get(child).map_or(0, |node| node.weight);
            }
            if let Some(added) = pending.get_mut(first..) {
                added.reverse();
            }
        }
        FlameGraph {
            names: self.names,
            nodes: self.nodes,
            places,
            depth,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    node: usize,
    depth: usize,
    start: u128,
}

/// The frames of a flame graph with their positions.
#[derive(Clone, Debug)]
pub struct FlameGraph {
    names: Vec<String>,
    nodes: Vec<Node>,
    places: Vec<Place>,
    depth: usize,
}

/// A frame of a [`FlameGraph`]: one function in one chain of callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlameFrame<'g> {
    /// The function's name.
    pub name: &'g str,
    /// The depth of the frame in the tree. The root has depth 0.
    pub depth: usize,
    /// The distance of the frame from the left edge of the graph, in units of weight.
    pub start: u128,
    /// The weight of the frame, including all frames that it called.
    pub weight: u128,
    /// The cold share of the frame's weight, from 0 to 1.
    pub cold: f64,
    /// The hot share of the frame's weight, from 0 to 1.
    pub hot: f64,
}

impl FlameGraph {
    /// The sum of the weights of all stacks.
    pub fn total(&self) -> u128 {
        self.nodes.first().map_or(0, |root| root.weight)
    }

    /// The depth of the deepest frame.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// All frames with a weight above 0: callers first, siblings in the order of names.
    pub fn frames(&self) -> impl Iterator<Item = FlameFrame<'_>> {
        self.places.iter().filter_map(|place| {
            let node = self.nodes.get(place.node)?;
            Some(FlameFrame {
                name: self.names.get(node.name)?,
                depth: place.depth,
                start: place.start,
                weight: node.weight,
                cold: profkit_data::share(node.cold, node.weight),
                hot: profkit_data::share(node.hot, node.weight),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_one_frame_and_the_order_of_stacks_does_not_matter() {
        let stacks: [(&[&str], u64); 4] = [
            (&["b", "x"], 2),
            (&["a"], 1),
            (&["b", "x"], 3),
            (&["b"], u64::MAX),
        ];
        let graph = |order: &[usize]| {
            let mut builder = FlameBuilder::new();
            for &at in order {
                builder.add(
                    stacks[at].0.iter().copied(),
                    stacks[at].1,
                    Temperature::Warm,
                );
            }
            let graph = builder.layout();
            let frames: Vec<_> = graph.frames().map(|frame| format!("{frame:?}")).collect();
            (frames, graph.total(), graph.depth())
        };
        let first = graph(&[0, 1, 2, 3]);
        assert_eq!(first, graph(&[3, 2, 1, 0]));
        assert_eq!(first.0.len(), 4);
        assert_eq!((first.1, first.2), (u128::from(u64::MAX) + 6, 2));
    }

    #[test]
    fn frames_without_weight_have_no_place() {
        let mut builder = FlameBuilder::new();
        builder.add(["a", "b"], 0, Temperature::Hot);
        let graph = builder.layout();
        assert_eq!(graph.frames().count(), 1);
        assert_eq!(graph.total(), 0);
    }

    #[test]
    fn a_frame_is_as_hot_as_what_it_called() {
        let mut builder = FlameBuilder::new();
        builder.add(["a", "b"], 1, Temperature::Hot);
        builder.add(["a", "c"], 3, Temperature::Cold);
        let graph = builder.layout();
        let shares: Vec<_> = graph
            .frames()
            .map(|frame| (frame.name, frame.cold, frame.hot))
            .collect();
        assert_eq!(
            shares,
            [
                ("all", 0.75, 0.25),
                ("a", 0.75, 0.25),
                ("b", 0.0, 1.0),
                ("c", 1.0, 0.0)
            ]
        );
    }

    #[test]
    fn stacks_of_any_depth_are_placed() {
        let deep: Vec<String> = (0..100_000).map(|depth| format!("f{depth}")).collect();
        let mut builder = FlameBuilder::new();
        builder.add(deep.iter().map(String::as_str), 1, Temperature::Warm);
        assert_eq!(builder.layout().depth(), 100_000);
    }
}
