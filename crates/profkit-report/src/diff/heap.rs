//! The comparison of two heap profiles.
use super::DIFF_SCHEMA_VERSION;
use crate::document::write_json;
use crate::heap::{HeapView, JsonFrame, hotness_name};
use crate::show::json::error as json_error;
use crate::{Answer, Document, RowForm, Rows, grouped, percent, plural, share_percent};
use profkit_analysis::diff::{ContextChange, HeapChanges, Measure, Moved};
use profkit_analysis::heap::{ContextSum, access_density, average};
use profkit_data::memprof::{Allocations, Field, StackId, Thresholds};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};

/// A comparison of two heap profiles, in the form in which it is printed.
#[derive(Clone, Copy, Debug)]
pub struct HeapDiff<'a> {
    /// The old and the new profile.
    pub sides: [HeapView<'a>; 2],
    /// What changed.
    pub changes: &'a HeapChanges,
    /// The quantity that was compared.
    pub by: Measure,
    /// The limits that decide which contexts are cold or hot.
    pub thresholds: Thresholds,
    /// The largest number of contexts in each list.
    pub top: usize,
}

const COLUMNS: [&str; 8] = [
    "change",
    "old_bytes",
    "new_bytes",
    "old_allocations",
    "new_allocations",
    "moved",
    "function",
    "stack",
];

fn measure_name(by: Measure) -> &'static str {
    match by {
        Measure::Bytes => "bytes",
        Measure::Allocations => "allocations",
        Measure::Lifetime => "lifetime",
    }
}

/// The lists of contexts that changed in the same way, largest change first, with their titles and names.
fn sections(changes: &HeapChanges, by: Measure) -> [(String, &'static str, &[ContextChange]); 5] {
    let by = measure_name(by);
    [
        (format!("Grew in {by}"), "grew", &changes.grew),
        (format!("Shrank in {by}"), "shrank", &changes.shrank),
        ("Appeared".to_owned(), "appeared", &changes.appeared),
        ("Gone".to_owned(), "gone", &changes.gone),
        (
            "Changed between cold, warm and hot".to_owned(),
            "hotness_changed",
            &changes.hotness_changed,
        ),
    ]
}

impl HeapDiff<'_> {
    /// The unit of the compared quantity, in the plural: `bytes`.
    pub fn unit(&self) -> &'static str {
        match self.by {
            Measure::Bytes => "bytes",
            Measure::Allocations => "allocations",
            Measure::Lifetime => "lifetimes",
        }
    }

    fn hotness(&self, context: &Allocations) -> &'static str {
        hotness_name(self.thresholds.hotness(&context.block, true))
    }

    fn add_change(&self, document: &mut Document, change: &ContextChange) {
        let mark = match change.moved {
            Moved::No => "",
            Moved::Yes => ", lines moved",
            Moved::Perhaps => ", perhaps moved",
        };
        let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
        let count = |context: &Allocations| context.block.get(Field::AllocCount);
        let life = |context: &Allocations| average(&context.block, Field::TotalLifetime);
        match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                let kinds = match (self.hotness(old), self.hotness(new)) {
                    (old, new) if old == new => old.to_owned(),
                    (old, new) => format!("{old} -> {new}"),
                };
                document.line(format_args!(
                    "  {} -> {}, allocations {} -> {}, life {:.0} -> {:.0} ms, {kinds}{mark}",
                    grouped(bytes(old)),
                    plural(bytes(new), "byte"),
                    grouped(count(old)),
                    grouped(count(new)),
                    life(old),
                    life(new),
                ));
            }
            (Some(one), None) | (None, Some(one)) => document.line(format_args!(
                "  {} in {}, life {:.0} ms, {}{mark}",
                plural(bytes(one), "byte"),
                plural(count(one), "allocation"),
                life(one),
                self.hotness(one)
            )),
            (None, None) => {}
        }
        if let Some((view, stack)) = self.place(change) {
            view.add_stack(stack, document);
        }
    }

    /// The call stack of a context: that of the new profile if it has the context.
    fn place(&self, change: &ContextChange) -> Option<(&HeapView<'_>, StackId)> {
        let [old_side, new_side] = &self.sides;
        match (&change.new, &change.old) {
            (Some(new), _) => Some((new_side, new.stack)),
            (None, Some(old)) => Some((old_side, old.stack)),
            (None, None) => None,
        }
    }

    fn json_change(&self, change: &ContextChange) -> JsonChange {
        let figures = |context: &Allocations| JsonFigures {
            allocations: context.block.get(Field::AllocCount),
            bytes: context.block.get(Field::TotalSize),
            average_lifetime_ms: average(&context.block, Field::TotalLifetime),
            lifetime_access_density: access_density(&context.block),
            heat: self.hotness(context),
        };
        let stack = |(view, stack): (&HeapView<'_>, StackId)| view.json_stack(stack);
        let old_stack = change.old.as_ref().filter(|_| change.moved == Moved::Yes);
        JsonChange {
            old: change.old.as_ref().map(figures),
            new: change.new.as_ref().map(figures),
            moved: change.moved == Moved::Yes,
            ambiguous: change.moved == Moved::Perhaps,
            stack: self.place(change).map(stack).unwrap_or_default(),
            old_stack: old_stack.map(|context| self.sides[0].json_stack(context.stack)),
        }
    }
}

impl Answer for HeapDiff<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let sums = [self.changes.old, self.changes.new];
        for (view, sum) in self.sides.iter().zip(sums) {
            document.title(
                view.path,
                format_args!(
                    "{}: {}, {}, {}",
                    view.describe(),
                    plural(sum.contexts, "context"),
                    plural(sum.allocations, "allocation"),
                    plural(sum.bytes, "byte"),
                ),
            );
            for note in view.notes {
                document.line(format_args!("note: {note}"));
            }
        }
        let (old, new) = (self.changes.old.bytes, self.changes.new.bytes);
        let sign = if new < old { '-' } else { '+' };
        let change = plural(new.abs_diff(old), "byte");
        let share = percent(new.abs_diff(old).into(), old.into());
        document.line(match old {
            0 => format!("Change: {sign}{change}"),
            _ => format!("Change: {sign}{change} ({sign}{share})"),
        });
        if let Some(moved) = self.changes.moved_share {
            let (moved, unit) = (share_percent(moved), self.unit());
            document.line(format_args!(
                "Moved to other contexts: {moved} of the {unit}"
            ));
        }
        let sections = sections(self.changes, self.by);
        for (title, _, changes) in &sections {
            let count = changes.len();
            document.title(title, grouped(count as u64));
            for change in changes.iter().take(self.top) {
                self.add_change(&mut document, change);
            }
            if let more @ 1.. = count.saturating_sub(self.top) {
                document.line(format_args!("  … and {} more", grouped(more as u64)));
            }
        }
        let unchanged = grouped(self.changes.unchanged as u64);
        document.line(format_args!("Unchanged: {unchanged}"));
        if self.changes.moved > 0 {
            document.line(format_args!(
                "Contexts paired by their functions alone, because their line numbers changed: {}",
                grouped(self.changes.moved as u64)
            ));
        }
        let ambiguous = sections.iter().flat_map(|(_, _, changes)| *changes);
        let ambiguous = ambiguous.filter(|change| change.moved == Moved::Perhaps);
        let ambiguous = ambiguous.count() as u64;
        if ambiguous > 0 {
            document.line(format_args!(
                "Contexts listed as gone or appeared that may only have other line numbers (several contexts of the other profile have the same functions): {}",
                grouped(ambiguous)
            ));
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let side = |view: &HeapView<'_>, share| {
            serde_json::to_value(JsonSide {
                path: view.path,
                size: view.size,
                form: view.heap.form.to_string(),
                version: view.heap.version,
                indexed_version: view.heap.indexed_version,
                notes: view.notes,
                share,
                errors: view.heap.damage.first.iter().map(json_error).collect(),
                error_count: view.heap.damage.count,
            })
        };
        let [old, new] = &self.sides;
        let mut report = json!({
            "schema": "profkit-diff",
            "schema_version": DIFF_SCHEMA_VERSION,
            "kind": "heap",
            "by": measure_name(self.by),
            "old": side(old, self.changes.old)?,
            "new": side(new, self.changes.new)?,
            "unchanged": self.changes.unchanged,
            "moved_share": self.changes.moved_share,
            "moved": self.changes.moved,
        });
        for (_, name, changes) in sections(self.changes, self.by) {
            let contexts = changes.iter().take(self.top);
            let contexts: Vec<_> = contexts.map(|change| self.json_change(change)).collect();
            report[name] = json!({ "count": changes.len(), "contexts": contexts });
        }
        write_json(out, &report)
    }

    fn rows(&self, form: RowForm) -> Rows<'_> {
        let sections = sections(self.changes, self.by).into_iter();
        let changes = sections.flat_map(|(_, name, changes)| {
            let changes = changes.iter().take(self.top);
            changes.map(move |change| (name, change))
        });
        let rows = changes.map(move |(name, change)| {
            let mut row = json!(self.json_change(change));
            row["change"] = name.into();
            if form == RowForm::Csv {
                for (side, context) in [("old", &change.old), ("new", &change.new)] {
                    let Some(context) = context else { continue };
                    let field = |field| context.block.get(field);
                    row[format!("{side}_bytes")] = field(Field::TotalSize).into();
                    row[format!("{side}_allocations")] = field(Field::AllocCount).into();
                }
                let frames = self.place(change).map(|(view, stack)| view.names(stack));
                let frames = frames.unwrap_or_default();
                row["function"] = frames.first().map(String::as_str).into();
                row["stack"] = frames.join(" < ").into();
            }
            row
        });
        Rows::new(&COLUMNS, rows)
    }
}

#[derive(Serialize)]
struct JsonSide<'a> {
    path: &'a str,
    size: u64,
    form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_version: Option<u32>,
    notes: &'a [String],
    #[serde(flatten)]
    share: ContextSum,
    errors: Vec<serde_json::Value>,
    error_count: u64,
}

#[derive(Serialize)]
struct JsonChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<JsonFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<JsonFigures>,
    moved: bool,
    ambiguous: bool,
    stack: Vec<JsonFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_stack: Option<Vec<JsonFrame>>,
}

#[derive(Serialize)]
struct JsonFigures {
    allocations: u64,
    bytes: u64,
    average_lifetime_ms: f64,
    /// `None` if it is not known.
    lifetime_access_density: Option<f64>,
    heat: &'static str,
}
