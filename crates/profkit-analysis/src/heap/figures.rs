//! Numbers that describe the contexts of heap profiles.
use profkit_data::memprof::{Allocations, Field, MemInfoBlock};

/// The average of a field over all allocations of a context.
pub fn average(block: &MemInfoBlock, field: Field) -> f64 {
    to_f64(block.get(field)) / to_f64(block.get(Field::AllocCount).max(1))
}

/// The average number of accesses per byte and per second of lifetime; `None` if the profile does not have it. Profiles
/// hold the sum of this number over all allocations, times 100.
pub fn access_density(block: &MemInfoBlock) -> Option<f64> {
    let field = Field::TotalLifetimeAccessDensity;
    block.has(field).then(|| average(block, field) / 100.0)
}

pub(super) fn to_f64(number: u64) -> f64 {
    number as f64
}

/// The number of contexts in a group, and the sums of their allocations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ContextSum {
    /// The number of contexts.
    pub contexts: u64,
    /// The number of allocations; a sum above 64 bits becomes the largest 64-bit number.
    pub allocations: u64,
    /// The number of bytes allocated; a sum above 64 bits becomes the largest 64-bit number.
    pub bytes: u64,
}

impl ContextSum {
    /// Sums up some contexts.
    pub fn of<'a>(contexts: impl IntoIterator<Item = &'a Allocations>) -> Self {
        let mut sum = ContextSum::default();
        for context in contexts {
            sum.add(ContextSum::of_block(&context.block));
        }
        sum
    }

    /// The sum of one context with these statistics.
    pub fn of_block(block: &MemInfoBlock) -> Self {
        ContextSum {
            contexts: 1,
            allocations: block.get(Field::AllocCount),
            bytes: block.get(Field::TotalSize),
        }
    }

    /// Adds the contexts of another group.
    pub fn add(&mut self, other: ContextSum) {
        self.contexts = self.contexts.saturating_add(other.contexts);
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// How contexts are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextOrder {
    /// Most bytes first.
    #[default]
    Bytes,
    /// Most allocations first.
    Allocations,
    /// The context with the shortest average lifetime comes first.
    ShortLife,
    /// The context with the fewest accesses per byte and second comes first. If several contexts have the same number,
    /// the one with the longest lifetime comes first. Contexts for which the number is not known come last.
    Cold,
}

/// Sorts the contexts by `order` and returns at most the first `most` of them. Equal contexts keep the order in which
/// they were given.
///
/// ```
/// use profkit_analysis::heap::{ContextOrder, top_contexts};
/// use profkit_data::memprof::{Field, yaml};
///
/// let profile = yaml::parse(b"---
/// HeapProfileRecords:
/// - GUID: main
///   AllocSites:
///   - Callstack: [{ Function: main, LineOffset: 1, Column: 2, IsInlineFrame: false }]
///     MemInfoBlock: { AllocCount: 3, TotalSize: 96 }
///   - Callstack: [{ Function: main, LineOffset: 5, Column: 2, IsInlineFrame: false }]
///     MemInfoBlock: { AllocCount: 1, TotalSize: 500 }
///   CallSites: []
/// ")?;
/// let contexts = profile.contexts();
/// let top = top_contexts(&contexts, ContextOrder::Bytes, 1);
/// assert_eq!((top.len(), top[0].block.get(Field::TotalSize)), (1, 500));
/// # Ok::<(), profkit_data::Error>(())
/// ```
pub fn top_contexts(
    contexts: &[Allocations],
    order: ContextOrder,
    most: usize,
) -> Vec<&Allocations> {
    let mut all: Vec<&Allocations> = contexts.iter().collect();
    let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
    let life = |context: &Allocations| average(&context.block, Field::TotalLifetime);
    let density = |context: &Allocations| access_density(&context.block).unwrap_or(f64::INFINITY);
    match order {
        ContextOrder::Bytes => all.sort_by_key(|context| std::cmp::Reverse(bytes(context))),
        ContextOrder::Allocations => all.sort_by_key(|context| {
            std::cmp::Reverse((context.block.get(Field::AllocCount), bytes(context)))
        }),
        ContextOrder::ShortLife => all.sort_by(|one, two| {
            let by_life = life(one).total_cmp(&life(two));
            by_life.then(bytes(two).cmp(&bytes(one)))
        }),
        ContextOrder::Cold => all.sort_by(|one, two| {
            let by_density = density(one).total_cmp(&density(two));
            by_density.then(life(two).total_cmp(&life(one)))
        }),
    }
    all.truncate(most);
    all
}
