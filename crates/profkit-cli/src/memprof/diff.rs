//! `profkit diff`: which contexts of a heap profile grew, shrank, appeared or disappeared, and which became hot or
//! cold.
use super::heap::{Heap, JsonFrame, JsonSum, ThresholdArgs, hotness_name, may_be_heap, percent};
use super::is_memprof_input;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::print::{Format, stdout_for};
use crate::print::{grouped, plural};
use clap::{Args, ValueEnum};
use profkit_analysis::heap::{ContextChange, HeapChanges, Measure, Moved, access_density, average};
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::{Allocations, Field, StackId, Thresholds};
use profkit_merge::files::{Input, is_stdio};
use profkit_report::show::json::error as json_error;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Contexts are compared by call stack. In a new build the line numbers of a stack may have moved:
such contexts are paired by their functions alone if only one pair is possible, and marked.
Other contexts count as gone and appeared.

Examples:
  profkit diff yesterday.profdata today.profdata
  profkit diff --by lifetime --top 30 old.yaml new.yaml
  profkit diff old.memprofraw new.memprofraw --binaries builds/
  profkit diff --format json old.profdata new.profdata | jq '.appeared.contexts[0]'";

/// Arguments of `profkit diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The old heap profile: raw (.memprofraw), indexed (.profdata) or YAML; - is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new heap profile: raw, indexed or YAML; it may come from another build than the old one
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Show at most this many contexts in each list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// The quantity that is compared, and that the lists are sorted by
    #[arg(long, value_enum, default_value_t, value_name = "MEASURE")]
    by: By,

    /// Print mangled names, as they are in the profiles
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/diff-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    /// The limits that decide which contexts are cold or hot.
    #[command(flatten)]
    thresholds: ThresholdArgs,

    /// The options that name the binaries of raw heap profiles.
    #[command(flatten)]
    binaries: BinaryArgs,
}

/// The quantity by which contexts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Number of allocations
    Allocations,
    /// Average lifetime
    Lifetime,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Bytes => "bytes",
            By::Allocations => "allocations",
            By::Lifetime => "lifetime",
        }
    }
}

impl From<By> for Measure {
    fn from(by: By) -> Self {
        match by {
            By::Bytes => Measure::Bytes,
            By::Allocations => Measure::Allocations,
            By::Lifetime => Measure::Lifetime,
        }
    }
}

/// Compares two heap profiles.
///
/// # Errors
/// If a file cannot be read or is not a heap profile, or if the result cannot be printed.
pub fn run(args: &DiffArgs) -> exit::Result {
    if is_stdio(&args.old) && is_stdio(&args.new) {
        return Err(Failure::usage(
            "only one of the profiles can come from standard input",
        ));
    }
    let inputs = [Input::open(&args.old)?, Input::open(&args.new)?];
    check_kinds(&inputs)?;
    let [old_input, new_input] = &inputs;
    let mut old = Heap::open(&args.binaries, old_input)?;
    let mut new = Heap::open(&args.binaries, new_input)?;
    let (by, thresholds) = (args.by.into(), args.thresholds.thresholds());
    let changes = HeapChanges::new(&mut old.heap, &mut new.heap, by, &thresholds);
    let report = Report {
        args,
        old: &old,
        new: &new,
        thresholds,
        sections: sections(&changes, args.by),
        changes: &changes,
    };
    let mut out = stdout_for(args.format);
    let printed = match args.format {
        Format::Text => report.text([old_input, new_input], &mut out),
        Format::Json => report.json([old_input, new_input], &mut out),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    let damaged = [&old, &new].iter().any(|shown| shown.heap.damage.count > 0);
    match args.format {
        // The errors are part of the JSON, so they are not printed as text.
        Format::Json if damaged => Ok(Status::InputBad),
        _ => Heap::finish(&[(old_input, &old), (new_input, &new)]),
    }
}

/// Fails if one of the two files cannot be compared. This is checked before either file is read.
fn check_kinds(inputs: &[Input; 2]) -> Result<(), Failure> {
    let Some(odd) = inputs.iter().find(|input| !may_be_heap(input)) else {
        return Ok(());
    };
    let kind = detect(odd);
    let what = match kind {
        FileKind::Empty => "empty",
        FileKind::InstrRaw => "a raw instrumentation profile",
        FileKind::InstrText => "text, but no heap profile in YAML",
        kind if kind.is_sample() => "a sample profile",
        kind if kind.is_mip() => "a MIP file",
        FileKind::ObjectFile => "a program or library",
        FileKind::Archive | FileKind::PerfData | FileKind::GccCoverage => kind.description(),
        _ => "not a known kind of profile",
    };
    let failure = Failure::input(format_args!(
        "{}: this is {what}, but profkit diff compares heap profiles",
        odd.name()
    ));
    let other = inputs.iter().find(|input| is_memprof_input(input));
    Err(match (kind, other) {
        (kind, None) if kind.is_mip() && kind != FileKind::MipMap => {
            failure.with_hint("`profkit mip diff` compares MIP profiles")
        }
        (FileKind::ObjectFile, _) => failure
            .with_hint("programs and libraries of raw heap profiles are given with --binaries"),
        (_, Some(other)) => failure.with_hint(format_args!(
            "{} is a heap profile: compare it with another one",
            other.name()
        )),
        _ => failure.with_hint("`profkit doctor` says what a file is"),
    })
}

/// A list of contexts that changed in the same way. The context that changed most comes first.
struct Section<'a> {
    title: String,
    name: &'static str,
    changes: &'a [ContextChange],
}

/// Returns the lists of changed contexts, with their titles.
fn sections(changes: &HeapChanges, by: By) -> Vec<Section<'_>> {
    let by = by.name();
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

struct Report<'a> {
    args: &'a DiffArgs,
    old: &'a Heap,
    new: &'a Heap,
    thresholds: Thresholds,
    sections: Vec<Section<'a>>,
    changes: &'a HeapChanges,
}

impl<'a> Report<'a> {
    fn hotness(&self, context: &Allocations) -> &'static str {
        hotness_name(self.thresholds.hotness(&context.block, true))
    }

    fn text(&self, inputs: [&Input; 2], out: &mut impl Write) -> io::Result<()> {
        let sides = [
            (inputs[0], self.old, self.changes.old),
            (inputs[1], self.new, self.changes.new),
        ];
        for (input, heap, share) in sides {
            writeln!(
                out,
                "{}: {}: {}, {}, {}",
                input.name(),
                heap.describe(),
                plural(share.contexts, "context"),
                plural(share.allocations, "allocation"),
                plural(share.bytes, "byte"),
            )?;
            for note in &heap.notes {
                writeln!(out, "note: {note}")?;
            }
        }
        let (old, new) = (self.changes.old.bytes, self.changes.new.bytes);
        let sign = if new < old { '-' } else { '+' };
        let change = plural(new.abs_diff(old), "byte");
        match old {
            0 => writeln!(out, "Change: {sign}{change}")?,
            _ => writeln!(
                out,
                "Change: {sign}{change} ({sign}{:.1}%)",
                percent(new.abs_diff(old), old)
            )?,
        }
        for section in &self.sections {
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
        let ambiguous = self.sections.iter().flat_map(|section| section.changes);
        let ambiguous = ambiguous.filter(|change| change.moved == Moved::Perhaps);
        let ambiguous = ambiguous.count() as u64;
        if ambiguous > 0 {
            writeln!(
                out,
                "Contexts listed as gone or appeared that may only have other line numbers (several contexts of the other profile have the same functions): {}",
                grouped(ambiguous)
            )?;
        }
        Ok(())
    }

    fn section(&self, section: &Section<'_>, out: &mut impl Write) -> io::Result<()> {
        let count = section.changes.len();
        writeln!(out, "{}: {}", section.title, grouped(count as u64))?;
        for change in section.changes.iter().take(self.args.top) {
            self.change(change, out)?;
        }
        match count.saturating_sub(self.args.top) {
            0 => Ok(()),
            more => writeln!(out, "  … and {} more", grouped(more as u64)),
        }
    }

    fn change(&self, change: &ContextChange, out: &mut impl Write) -> io::Result<()> {
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
            Some((heap, stack)) => heap.print_stack(stack, self.args.mangled, out),
            None => Ok(()),
        }
    }

    /// The call stack of a context: from the new profile if it has the context, otherwise from the old one.
    fn place(&self, change: &ContextChange) -> Option<(&Heap, StackId)> {
        match (&change.new, &change.old) {
            (Some(new), _) => Some((self.new, new.stack)),
            (None, Some(old)) => Some((self.old, old.stack)),
            (None, None) => None,
        }
    }

    fn json(&self, inputs: [&'a Input; 2], out: &mut impl Write) -> io::Result<()> {
        let side = |input: &'a Input, heap: &'a Heap, share| JsonSide {
            path: input.name(),
            size: input.len(),
            form: heap.heap.form.to_string(),
            version: heap.heap.version,
            notes: &heap.notes,
            share: JsonSum::from(share),
            errors: heap.heap.damage.first.iter().map(json_error).collect(),
            error_count: heap.heap.damage.count,
        };
        let [old, new] = inputs;
        let mut report = serde_json::json!({
            "schema": "profkit-diff",
            "schema_version": SCHEMA_VERSION,
            "kind": "heap",
            "by": self.args.by.name(),
            "old": serde_json::to_value(side(old, self.old, self.changes.old))?,
            "new": serde_json::to_value(side(new, self.new, self.changes.new))?,
            "unchanged": self.changes.unchanged,
            "moved": self.changes.moved,
        });
        for section in &self.sections {
            let changes = section.changes.iter().take(self.args.top);
            let changes = JsonSection {
                count: section.changes.len(),
                contexts: changes.map(|change| self.json_change(change)).collect(),
            };
            if let Some(members) = report.as_object_mut() {
                members.insert(section.name.to_owned(), serde_json::to_value(changes)?);
            }
        }
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)
    }

    fn json_change(&self, change: &ContextChange) -> JsonChange {
        let figures = |context: &Allocations| JsonFigures {
            allocations: context.block.get(Field::AllocCount),
            bytes: context.block.get(Field::TotalSize),
            average_lifetime_ms: average(&context.block, Field::TotalLifetime),
            lifetime_access_density: access_density(&context.block),
            kind: self.hotness(context),
        };
        let stack = |(heap, stack): (&Heap, StackId)| heap.json_stack(stack);
        let old_stack = change.old.as_ref().filter(|_| change.moved == Moved::Yes);
        JsonChange {
            old: change.old.as_ref().map(figures),
            new: change.new.as_ref().map(figures),
            moved: change.moved == Moved::Yes,
            ambiguous: change.moved == Moved::Perhaps,
            stack: self.place(change).map(stack).unwrap_or_default(),
            old_stack: old_stack.map(|context| self.old.json_stack(context.stack)),
        }
    }
}

/// The version of the JSON. It is raised when a member is renamed or removed, or changes its meaning; new members do
/// not raise it.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct JsonSide<'a> {
    path: &'a str,
    size: usize,
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
