//! Figures of contexts.
use profkit_data::memprof::{Allocations, Field, MemInfoBlock};

/// The average of a field over the allocations of a context.
pub fn average(block: &MemInfoBlock, field: Field) -> f64 {
    to_f64(block.get(field)) / to_f64(block.get(Field::AllocCount).max(1))
}

/// Accesses per byte and second lived, on average. Profiles hold it times 100.
pub fn access_density(block: &MemInfoBlock) -> f64 {
    average(block, Field::TotalLifetimeAccessDensity) / 100.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn to_f64(number: u64) -> f64 {
    number as f64
}

/// How many contexts there are, and what they allocate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSum {
    /// Contexts.
    pub contexts: u64,
    /// Allocations, saturating.
    pub allocations: u64,
    /// Bytes allocated, saturating.
    pub bytes: u64,
}

impl ContextSum {
    /// The sum of some contexts.
    pub fn of<'a>(contexts: impl IntoIterator<Item = &'a Allocations>) -> Self {
        let mut sum = ContextSum::default();
        for context in contexts {
            let field = |field| context.block.get(field);
            sum.contexts += 1;
            sum.allocations = sum.allocations.saturating_add(field(Field::AllocCount));
            sum.bytes = sum.bytes.saturating_add(field(Field::TotalSize));
        }
        sum
    }
}

/// An order of contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextOrder {
    /// Most bytes first.
    #[default]
    Bytes,
    /// Shortest average life first.
    ShortLife,
    /// Fewest accesses per byte and second lived first, of those that lived longest.
    Cold,
}

/// The first `most` contexts in an order; equals stay in the order in which they are given.
pub fn top_contexts(
    contexts: &[Allocations],
    order: ContextOrder,
    most: usize,
) -> Vec<&Allocations> {
    let mut all: Vec<&Allocations> = contexts.iter().collect();
    let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
    let life = |context: &Allocations| average(&context.block, Field::TotalLifetime);
    let density = |context: &Allocations| access_density(&context.block);
    match order {
        ContextOrder::Bytes => all.sort_by_key(|context| std::cmp::Reverse(bytes(context))),
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
