//! Compares two heap profiles.
use super::{Totals, missing};
use crate::heap::{ContextSum, HeapProfile};
use crate::selection::Selection;
use profkit_data::memprof::diff::{Difference, Pair, Single, diff};
use profkit_data::memprof::{Allocations, Field, MemInfoBlock, Thresholds};
use std::cmp::Ordering;

/// The quantity by which the contexts of two profiles are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// The number of bytes allocated.
    #[default]
    Bytes,
    /// The number of allocations.
    Allocations,
    /// The average lifetime.
    Lifetime,
}

impl Measure {
    /// The compared quantity of a context as a fraction (numerator, denominator), so that averages can be compared
    /// exactly.
    fn fraction(self, block: &MemInfoBlock) -> (i128, i128) {
        let whole = |field| (i128::from(block.get(field)), 1);
        match self {
            Measure::Bytes => whole(Field::TotalSize),
            Measure::Allocations => whole(Field::AllocCount),
            Measure::Lifetime => (
                i128::from(block.get(Field::TotalLifetime)),
                i128::from(block.get(Field::AllocCount).max(1)),
            ),
        }
    }

    /// The number that a context adds to the total of all contexts: its bytes, its allocations, or the sum of the
    /// lifetimes of its allocations.
    fn amount(self, block: &MemInfoBlock) -> u128 {
        let field = match self {
            Measure::Bytes => Field::TotalSize,
            Measure::Allocations => Field::AllocCount,
            Measure::Lifetime => Field::TotalLifetime,
        };
        block.get(field).into()
    }

    fn compare(self, one: &MemInfoBlock, two: &MemInfoBlock) -> Ordering {
        let ((one, one_of), (two, two_of)) = (self.fraction(one), self.fraction(two));
        // The fractions are compared by cross-multiplication. Each product fits 128 bits, because one factor has 64
        // bits and the other has 32 bits.
        (one * two_of).cmp(&(two * one_of))
    }

    /// The amount by which the quantity of a context changed, without its sign.
    fn change(self, pair: &Pair) -> f64 {
        let value = |(number, of): (i128, i128)| number as f64 / of as f64;
        match self {
            Measure::Lifetime => {
                let (old, new) = (&pair.old.block, &pair.new.block);
                (value(self.fraction(new)) - value(self.fraction(old))).abs()
            }
            Measure::Bytes | Measure::Allocations => {
                let (old, _) = self.fraction(&pair.old.block);
                let (new, _) = self.fraction(&pair.new.block);
                value(((new - old).abs(), 1))
            }
        }
    }
}

/// Whether the line numbers of a context changed between the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The line numbers did not change. This is also the value if only one profile has this context, and the other
    /// profile has no context with the same functions that could be its counterpart.
    No,
    /// The line numbers changed, but the functions of the call stack are the same.
    Yes,
    /// It is not known whether the line numbers changed. Only one profile has this context. The other profile has
    /// contexts with the same functions and other line numbers, but they can be paired in more than one way.
    Perhaps,
}

/// A context that one or both profiles have, with its memory statistics in each profile.
#[derive(Clone, Debug)]
pub struct ContextChange {
    /// The context with its statistics in the old profile; `None` if the old profile lacks it.
    pub old: Option<Allocations>,
    /// The context with its statistics in the new profile; `None` if the new profile lacks it.
    pub new: Option<Allocations>,
    /// Whether the line numbers of the context changed.
    pub moved: Moved,
}

impl ContextChange {
    fn of_pair(pair: &Pair) -> Self {
        ContextChange {
            old: Some(pair.old),
            new: Some(pair.new),
            moved: if pair.moved { Moved::Yes } else { Moved::No },
        }
    }

    fn of_single(single: &Single, is_new: bool) -> Self {
        let context = Some(single.context);
        let (old, new) = if is_new {
            (None, context)
        } else {
            (context, None)
        };
        ContextChange {
            old,
            new,
            moved: if single.ambiguous {
                Moved::Perhaps
            } else {
                Moved::No
            },
        }
    }
}

/// The differences between two heap profiles. Each list begins with the largest change.
#[derive(Clone, Debug, Default)]
pub struct HeapChanges {
    /// Contexts that grew.
    pub grew: Vec<ContextChange>,
    /// Contexts that shrank.
    pub shrank: Vec<ContextChange>,
    /// Contexts that only the new profile has.
    pub appeared: Vec<ContextChange>,
    /// Contexts that only the old profile has.
    pub gone: Vec<ContextChange>,
    /// Contexts whose kind (cold, warm or hot) changed. If the compared quantity of such a context changed too, the
    /// context is also in `grew` or `shrank`.
    pub hotness_changed: Vec<ContextChange>,
    /// The number of contexts that did not change.
    pub unchanged: usize,
    /// The number of contexts that were paired by their functions, although their line numbers differ.
    pub moved: usize,
    /// The share of the total that moved to other contexts, from 0 to 1. The total is the sum of bytes, of allocations
    /// or of lifetimes. `None` if this sum is 0 in one of the profiles.
    pub moved_share: Option<f64>,
    /// The names, parts of names and regular expressions of the selection that fit no function of either profile.
    pub missing: Vec<String>,
    /// The sum of all contexts of the old profile, selected or not.
    pub old: ContextSum,
    /// The sum of all contexts of the new profile, selected or not.
    pub new: ContextSum,
}

impl HeapChanges {
    /// Compares two profiles. A context is paired with the context of the other profile that has the same call stack.
    /// If there is none, it is paired with a context that has the same functions but different line numbers, because a
    /// new build changes line numbers; this is done only if there is exactly one way to pair such contexts. A function
    /// name that one profile lacks is taken from the other profile. Only contexts with a selected function are listed.
    pub fn new(
        old: &mut HeapProfile,
        new: &mut HeapProfile,
        by: Measure,
        thresholds: &Thresholds,
        selection: &Selection,
    ) -> Self {
        // Each profile gets the names of both profiles, because a raw profile has names that an indexed profile lacks.
        for (&function, name) in &old.profile.names {
            let names = &mut new.profile.names;
            names.entry(function).or_insert_with(|| name.clone());
        }
        old.profile.names.clone_from(&new.profile.names);
        let mut found = diff(&old.profile, &new.profile);
        let both = found.both.iter();
        let singles = |singles: &[Single]| singles.iter().map(|single| single.context).collect();
        let [mut of_old, mut of_new]: [Vec<Allocations>; 2] =
            [singles(&found.gone), singles(&found.appeared)];
        of_old.extend(both.clone().map(|pair| pair.old));
        of_new.extend(both.map(|pair| pair.new));
        let contexts = [of_old, of_new];
        let total = |all: &Vec<Allocations>| all.iter().map(|it| by.amount(&it.block)).sum();
        let totals = Totals(contexts.each_ref().map(total));
        let selected = |heap: &HeapProfile, context: &Allocations| {
            let mut frames = heap.frames(context.stack);
            selection.all
                || frames.any(|known| match known.name {
                    Some(name) => selection.selects(name),
                    None => selection.selects(format!("{:#018x}", known.frame.function).as_bytes()),
                })
        };
        found
            .both
            .retain(|pair| selected(old, &pair.old) || selected(new, &pair.new));
        found.gone.retain(|single| selected(old, &single.context));
        found
            .appeared
            .retain(|single| selected(new, &single.context));
        let pairs = found
            .both
            .iter()
            .map(|pair| [&pair.old, &pair.new].map(|it| by.amount(&it.block)));
        let gone = found
            .gone
            .iter()
            .map(|one| [by.amount(&one.context.block), 0]);
        let appeared = found
            .appeared
            .iter()
            .map(|one| [0, by.amount(&one.context.block)]);
        let moved = pairs
            .chain(gone)
            .chain(appeared)
            .map(|amounts| totals.distance(amounts));
        // Contexts of one call stack are compared as one, but counted as everywhere else.
        let sum = |heap: &HeapProfile| ContextSum::of(&heap.profile.contexts());
        let (old_sum, new_sum) = (sum(old), sum(new));
        HeapChanges {
            moved_share: (!totals.is_any_zero()).then(|| (moved.sum::<f64>() / 2.0).min(1.0)),
            missing: missing(selection, |one| {
                let hash = |function: u64| {
                    let hash = format!("{function:#018x}");
                    one.names.contains(&hash) || one.selects(hash.as_bytes())
                };
                let sides = [&*old, &*new].into_iter().zip(&contexts);
                let stacks =
                    sides.flat_map(|(heap, all)| all.iter().map(move |it| (heap, it.stack)));
                let mut frames = stacks.flat_map(|(heap, stack)| heap.frames(stack));
                frames.any(|known| match known.name {
                    Some(name) => one.selects(name),
                    None => hash(known.frame.function),
                })
            }),
            old: old_sum,
            new: new_sum,
            ..Self::of(&found, by, thresholds)
        }
    }

    fn of(found: &Difference, by: Measure, thresholds: &Thresholds) -> Self {
        let mut pairs: Vec<&Pair> = found.both.iter().collect();
        pairs.sort_by(|one, two| by.change(two).total_cmp(&by.change(one)));
        let of_order = |order: Ordering| {
            let pairs = pairs
                .iter()
                .filter(move |pair| by.compare(&pair.new.block, &pair.old.block) == order);
            pairs.map(|pair| ContextChange::of_pair(pair))
        };
        let sorted = |singles: &[Single], is_new| {
            let mut singles: Vec<&Single> = singles.iter().collect();
            singles.sort_by(|one, two| by.compare(&two.context.block, &one.context.block));
            let singles = singles.into_iter();
            singles
                .map(|single| ContextChange::of_single(single, is_new))
                .collect()
        };
        let hotness = |context: &Allocations| thresholds.hotness(&context.block, true);
        let turned = pairs
            .iter()
            .filter(|pair| hotness(&pair.old) != hotness(&pair.new));
        HeapChanges {
            grew: of_order(Ordering::Greater).collect(),
            shrank: of_order(Ordering::Less).collect(),
            appeared: sorted(&found.appeared, true),
            gone: sorted(&found.gone, false),
            hotness_changed: turned.map(|pair| ContextChange::of_pair(pair)).collect(),
            unchanged: of_order(Ordering::Equal).count(),
            moved: found.both.iter().filter(|pair| pair.moved).count(),
            ..HeapChanges::default()
        }
    }
}
