//! What changed since an older profile, on the page of the newer one.
use super::Page;
use super::encode::{as_script, column, strings};
use profkit_analysis::diff::FunctionChange;
use profkit_analysis::heap::HeapFrame;
use profkit_analysis::names::{self, printable};
use profkit_data::memprof::Field;
use profkit_report::diff::{DiffReport, HeapDiff};
use profkit_report::plural;
use serde_json::{Value, json};

/// The factor that converts a share (a fraction from 0 to 1) to billionths. The data blocks of a page have shares as
/// billionths.
const BILLION: f64 = 1e9;

/// The functions that changed.
#[derive(Clone, Debug)]
pub struct DiffTable {
    rows: Vec<(String, [u128; 4])>,
    facts: Value,
}

impl Page {
    /// Adds what changed. `diff` compares an older profile with the profile of the page.
    pub fn compare(&mut self, diff: &DiffReport<'_>) {
        let mut kinds: Vec<&'static str> = Vec::new();
        let rows: Vec<_> = diff
            .diff
            .functions
            .iter()
            .map(|function| {
                let word = diff.word(function.change);
                let kind = kinds
                    .iter()
                    .position(|kind| *kind == word)
                    .unwrap_or_else(|| {
                        kinds.push(word);
                        kinds.len() - 1
                    });
                let [old, new] = numbers(function);
                (
                    diff.name(function),
                    [kind as u128 + 1, old, new, billionths(function.moved)],
                )
            })
            .collect();
        if let Some(moved) = diff.diff.moved {
            self.fact(
                "Moved since the old profile",
                format_args!(
                    "{} of all {}",
                    profkit_report::share_percent(moved),
                    diff.unit()
                ),
            );
        }
        for (kind, sum) in &diff.diff.changes {
            self.fact(
                "",
                format_args!(
                    "{} {}",
                    profkit_report::grouped(sum.functions),
                    diff.word(*kind)
                ),
            );
        }
        self.notes.extend(diff.notes());
        self.diff = Some(DiffTable::new(
            rows,
            diff.paths,
            diff.diff.moved,
            &kinds,
            diff.has_shares(),
        ));
    }
}

impl Page {
    /// Adds what changed between two heap profiles. The newer one is the profile of the page.
    pub fn compare_heaps(&mut self, diff: &HeapDiff<'_>) {
        let changes = diff.changes;
        let lists = [
            ("grew", &changes.grew),
            ("shrank", &changes.shrank),
            ("new", &changes.appeared),
            ("gone", &changes.gone),
        ];
        let totals = [changes.old.bytes, changes.new.bytes];
        let mut rows = Vec::new();
        for (kind, (_, list)) in (1u128..).zip(&lists) {
            for change in *list {
                let sides = diff.sides.iter().zip([&change.old, &change.new]);
                let stack = sides.rev().find_map(|(side, context)| {
                    let context = context.as_ref()?;
                    let frames = side.heap.frames(context.stack);
                    let names: Vec<_> = frames.map(|frame| function(&frame)).collect();
                    Some(names.join(" < "))
                });
                let bytes = [&change.old, &change.new].map(|context| {
                    let context = context.as_ref();
                    context.map_or(0, |context| context.block.get(Field::TotalSize))
                });
                let [old, new] = [0, 1].map(|at| share_of(bytes, totals, at));
                let moved = old.abs_diff(new) / 2;
                rows.push((stack.unwrap_or_default(), [kind, old, new, moved]));
            }
        }
        let moved = changes.moved_share;
        if let Some(moved) = moved {
            let text = profkit_report::share_percent(moved);
            self.fact(
                "Moved since the old profile",
                format_args!("{text} of all bytes"),
            );
        }
        for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            self.fact(
                "",
                format_args!("{} {name}", plural(list.len() as u64, "context")),
            );
        }
        let words: Vec<_> = lists.iter().map(|(name, _)| *name).collect();
        let paths = diff.sides.each_ref().map(|side| side.path);
        self.diff = Some(DiffTable::new(rows, paths, moved, &words, true));
    }
}

fn function(frame: &HeapFrame<'_>) -> String {
    match frame.name {
        Some(name) => names::display(name).into_owned(),
        None => format!("{:#018x}", frame.frame.function),
    }
}

/// The share of `numbers[at]` in `totals[at]`, in billionths; 0 if the total is 0.
fn share_of(numbers: [u64; 2], totals: [u64; 2], at: usize) -> u128 {
    let pick = |list: [u64; 2]| u128::from(list.get(at).copied().unwrap_or(0));
    (pick(numbers) * 1_000_000_000)
        .checked_div(pick(totals))
        .unwrap_or(0)
}

impl DiffTable {
    fn new(
        mut rows: Vec<(String, [u128; 4])>,
        [old, new]: [&str; 2],
        moved: Option<f64>,
        kinds: &[&str],
        shares: bool,
    ) -> Self {
        rows.sort_by(|one, other| as_script(&one.0, &other.0).then_with(|| one.1.cmp(&other.1)));
        let facts = json!({
            "old": printable(old.as_bytes()),
            "new": printable(new.as_bytes()),
            "moved": moved.map(profkit_report::share_percent),
            "count": rows.len(),
            "columns": kinds,
            "shares": shares,
        });
        DiffTable { rows, facts }
    }

    pub(super) fn facts(&self) -> &Value {
        &self.facts
    }

    pub(super) fn blocks(&self) -> [(&'static str, Vec<u8>); 5] {
        let numbers = |at: usize| {
            column(
                self.rows
                    .iter()
                    .map(move |(_, row)| row.get(at).copied().unwrap_or(0)),
            )
        };
        [
            (
                "diff-names",
                strings(self.rows.iter().map(|(name, _)| name.as_str())),
            ),
            ("diff-change", numbers(0)),
            ("diff-old", numbers(1)),
            ("diff-new", numbers(2)),
            ("diff-moved", numbers(3)),
        ]
    }
}

/// The shares of the function in the old and the new profile, in billionths. A function of a MIP profile has no shares,
/// so its positions in the order of the first calls are returned instead.
fn numbers(function: &FunctionChange) -> [u128; 2] {
    match function.shares {
        [None, None] => function.ranks.map(|rank| rank.unwrap_or(0).into()),
        shares => shares.map(|share| billionths(share.unwrap_or(0.0))),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a share is from 0 to 1")]
fn billionths(share: f64) -> u128 {
    (share.clamp(0.0, 1.0) * BILLION).round() as u128
}
