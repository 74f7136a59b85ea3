//! The comparison of two heap profiles.
use super::{DIFF_SCHEMA_VERSION, percent as share_text};
use crate::heap::{HeapView, JsonFrame, JsonSum, hotness_name};
use crate::show::json::error as json_error;
use crate::{Console, RowForm, RowWriter, Style, grouped, percent, plural};
use profkit_analysis::diff::{ContextChange, HeapChanges, Measure, Moved};
use profkit_analysis::heap::{access_density, average};
use profkit_data::memprof::{Allocations, Field, StackId, Thresholds};
use serde::Serialize;
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

/// The columns of rows.
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

/// The name of a quantity.
fn measure_name(by: Measure) -> &'static str {
    match by {
        Measure::Bytes => "bytes",
        Measure::Allocations => "allocations",
        Measure::Lifetime => "lifetime",
    }
}

/// A list of contexts that changed in the same way. The context that changed most comes first.
struct Section<'a> {
    title: String,
    name: &'static str,
    changes: &'a [ContextChange],
}

/// Returns the lists of changed contexts, with their titles.
fn sections(changes: &HeapChanges, by: Measure) -> Vec<Section<'_>> {
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
    .map(|(title, name, changes)| Section {
        title,
        name,
        changes,
    })
    .into()
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

    /// Prints text for people.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let sums = [self.changes.old, self.changes.new];
        for (view, sum) in self.sides.iter().zip(sums) {
            out.styled(Style::Heading, view.path)?;
            writeln!(
                out,
                ": {}: {}, {}, {}",
                view.describe(),
                plural(sum.contexts, "context"),
                plural(sum.allocations, "allocation"),
                plural(sum.bytes, "byte"),
            )?;
            for note in view.notes {
                writeln!(out, "note: {note}")?;
            }
        }
        let (old, new) = (self.changes.old.bytes, self.changes.new.bytes);
        let sign = if new < old { '-' } else { '+' };
        let change = plural(new.abs_diff(old), "byte");
        write!(out, "Change: {sign}{change}")?;
        if old > 0 {
            let share = percent(new.abs_diff(old).into(), old.into());
            write!(out, " ({sign}{share})")?;
        }
        writeln!(out)?;
        if let Some(moved) = self.changes.moved_share {
            let (moved, unit) = (share_text(moved), self.unit());
            writeln!(out, "Moved to other contexts: {moved} of the {unit}")?;
        }
        let sections = sections(self.changes, self.by);
        for section in &sections {
            self.section(section, out)?;
        }
        writeln!(out, "Unchanged: {}", grouped(self.changes.unchanged as u64))?;
        if self.changes.moved > 0 {
            writeln!(
                out,
                "Contexts paired by their functions alone, because their line numbers changed: {}",
                grouped(self.changes.moved as u64)
            )?;
        }
        let ambiguous = sections.iter().flat_map(|section| section.changes);
        let ambiguous = ambiguous.filter(|change| change.moved == Moved::Perhaps);
        let ambiguous = ambiguous.count() as u64;
        if ambiguous > 0 {
            writeln!(
                out,
                "Contexts listed as gone or appeared that may only have other line numbers (several contexts of the other profile have the same functions): {}",
                grouped(ambiguous)
            )?;
        }
        out.flush()
    }

    fn section(&self, section: &Section<'_>, out: &mut Console<impl Write>) -> io::Result<()> {
        let count = section.changes.len();
        out.styled(Style::Heading, &section.title)?;
        writeln!(out, ": {}", grouped(count as u64))?;
        for change in section.changes.iter().take(self.top) {
            self.change(change, out)?;
        }
        match count.saturating_sub(self.top) {
            0 => Ok(()),
            more => writeln!(out, "  … and {} more", grouped(more as u64)),
        }
    }

    fn change(&self, change: &ContextChange, out: &mut Console<impl Write>) -> io::Result<()> {
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
                writeln!(
                    out,
                    "  {} -> {}, allocations {} -> {}, life {:.0} -> {:.0} ms, {kinds}{mark}",
                    grouped(bytes(old)),
                    plural(bytes(new), "byte"),
                    grouped(count(old)),
                    grouped(count(new)),
                    life(old),
                    life(new),
                )?;
            }
            (Some(one), None) | (None, Some(one)) => writeln!(
                out,
                "  {} in {}, life {:.0} ms, {}{mark}",
                plural(bytes(one), "byte"),
                plural(count(one), "allocation"),
                life(one),
                self.hotness(one)
            )?,
            (None, None) => {}
        }
        match self.place(change) {
            Some((view, stack)) => view.print_stack(stack, out),
            None => Ok(()),
        }
    }

    /// Returns the call stack of a context. It comes from the new profile if that has the context, otherwise from the
    /// old one.
    fn place(&self, change: &ContextChange) -> Option<(&HeapView<'_>, StackId)> {
        let [old_side, new_side] = &self.sides;
        match (&change.new, &change.old) {
            (Some(new), _) => Some((new_side, new.stack)),
            (None, Some(old)) => Some((old_side, old.stack)),
            (None, None) => None,
        }
    }

    /// Prints one JSON object.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let side = |view: &HeapView<'_>, share| {
            serde_json::to_value(JsonSide {
                path: view.path,
                size: view.size,
                form: view.heap.form.to_string(),
                version: view.heap.version,
                notes: view.notes,
                share: JsonSum::from(share),
                errors: view.heap.damage.first.iter().map(json_error).collect(),
                error_count: view.heap.damage.count,
            })
        };
        let [old, new] = &self.sides;
        let mut report = serde_json::json!({
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
        for section in &sections(self.changes, self.by) {
            let changes = section.changes.iter().take(self.top);
            let changes = JsonSection {
                count: section.changes.len(),
                contexts: changes.map(|change| self.json_change(change)).collect(),
            };
            if let Some(members) = report.as_object_mut() {
                members.insert(section.name.to_owned(), serde_json::to_value(changes)?);
            }
        }
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        out.flush()
    }

    /// Prints one row for each context that changed.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn rows<W: Write>(&self, form: RowForm, out: W) -> io::Result<()> {
        let mut rows = RowWriter::new(out, form, &COLUMNS);
        for section in sections(self.changes, self.by) {
            for change in section.changes.iter().take(self.top) {
                let mut row = serde_json::to_value(self.json_change(change))?;
                row["change"] = section.name.into();
                if form == RowForm::Csv {
                    for (side, context) in [("old", &change.old), ("new", &change.new)] {
                        let Some(context) = context else { continue };
                        let field = |field| context.block.get(field);
                        row[format!("{side}_bytes")] = field(Field::TotalSize).into();
                        row[format!("{side}_allocations")] = field(Field::AllocCount).into();
                    }
                    let frames = |(view, stack): (&HeapView<'_>, StackId)| {
                        let frames = view.heap.frames(stack);
                        let names =
                            frames.map(|known| view.name(known.frame.function).into_owned());
                        names.collect::<Vec<_>>()
                    };
                    let frames = self.place(change).map(frames).unwrap_or_default();
                    row["function"] = frames.first().map(String::as_str).into();
                    row["stack"] = frames.join(" < ").into();
                }
                rows.row(&row)?;
            }
        }
        rows.end()
    }

    fn json_change(&self, change: &ContextChange) -> JsonChange {
        let figures = |context: &Allocations| JsonFigures {
            allocations: context.block.get(Field::AllocCount),
            bytes: context.block.get(Field::TotalSize),
            average_lifetime_ms: average(&context.block, Field::TotalLifetime),
            lifetime_access_density: access_density(&context.block),
            kind: self.hotness(context),
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

#[derive(Serialize)]
struct JsonSide<'a> {
    path: &'a str,
    size: u64,
    form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    notes: &'a [String],
    #[serde(flatten)]
    share: JsonSum,
    errors: Vec<serde_json::Value>,
    error_count: u64,
}

#[derive(Serialize)]
struct JsonSection {
    count: usize,
    contexts: Vec<JsonChange>,
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
    lifetime_access_density: f64,
    kind: &'static str,
}
