//! `profkit diff`: which contexts of a heap profile grew, shrank, appeared and went, and which became hot or cold.
use super::heap::{
    Heap, JsonFrame, Share, ThresholdArgs, average, density, hotness_name, may_be_heap, percent,
};
use super::is_memprof_input;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::print::{Format, stdout_for};
use crate::print::{grouped, plural};
use crate::show::json::error as json_error;
use clap::{Args, ValueEnum};
use profkit_data::detect::{FileKind, detect, is_sample_text};
use profkit_data::memprof::diff::{Difference, Pair, Single, diff};
use profkit_data::memprof::{Allocations, Field, MemInfoBlock, StackId, Thresholds};
use profkit_merge::files::{Input, is_stdio};
use serde::Serialize;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Contexts are compared by call stack. Those whose lines moved, as in a new build, are paired by their functions where
that leaves no choice, and marked; the others count as gone and appeared.

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

    /// The new heap profile; of the same build or another one, and of any of these forms
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Where the binaries of raw heap profiles are.
    #[command(flatten)]
    binaries: BinaryArgs,

    /// How many contexts of a kind are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// By what contexts grow and shrink, and are sorted
    #[arg(long, value_enum, default_value_t, value_name = "MEASURE")]
    by: Measure,

    /// Where cold ends and hot begins.
    #[command(flatten)]
    thresholds: ThresholdArgs,

    /// Print names as the profiles have them
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/diff-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// What contexts are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Allocations
    Allocations,
    /// Average life
    Lifetime,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Measure::Bytes => "bytes",
            Measure::Allocations => "allocations",
            Measure::Lifetime => "lifetime",
        }
    }

    /// The measure of a context as a fraction, so that averages are compared exactly.
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

    fn compare(self, one: &MemInfoBlock, two: &MemInfoBlock) -> Ordering {
        let ((one, one_of), (two, two_of)) = (self.fraction(one), self.fraction(two));
        // A product of 64 and 32 bits.
        (one * two_of).cmp(&(two * one_of))
    }

    /// How much a context changed, without its sign.
    fn change(self, pair: &Pair) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an order of changes")]
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

/// Compares two heap profiles.
///
/// # Errors
/// If one of them cannot be read or is none, or the answer cannot be printed.
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
    // A raw profile knows names that an indexed one does not.
    for (&function, name) in &old.profile.names {
        new.profile
            .names
            .entry(function)
            .or_insert_with(|| name.clone());
    }
    old.profile.names.clone_from(&new.profile.names);
    let found = diff(&old.profile, &new.profile);
    let report = Report::new(args, &old, &new, &found);
    let mut out = stdout_for(args.format);
    let printed = match args.format {
        Format::Text => report.text([old_input, new_input], &mut out),
        Format::Json => report.json([old_input, new_input], &mut out),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    let damaged = [&old, &new].iter().any(|heap| heap.damage().count > 0);
    match args.format {
        // Errors are in the JSON.
        Format::Json if damaged => Ok(Status::InputBad),
        _ => Heap::finish(&[(old_input, &old), (new_input, &new)]),
    }
}

/// Says which of two files cannot be compared, and why, before one is read.
fn check_kinds(inputs: &[Input; 2]) -> Result<(), Failure> {
    let Some(odd) = inputs.iter().find(|input| !may_be_heap(input)) else {
        return Ok(());
    };
    let kind = detect(odd);
    let what = match kind {
        FileKind::Empty => "empty",
        FileKind::InstrRaw => "a raw instrumentation profile",
        FileKind::Text if is_sample_text(odd) => "a sample profile",
        FileKind::Text => "text, but no heap profile in YAML",
        FileKind::SampleBinary | FileKind::SampleGcov => "a sample profile",
        FileKind::Mip | FileKind::MipMap => "a MIP file",
        FileKind::ObjectFile => "a program or library",
        _ => "no profile that is known",
    };
    let failure = Failure::input(format_args!(
        "{}: this is {what}, and heap profiles are compared",
        odd.name()
    ));
    let other = inputs.iter().find(|input| is_memprof_input(input));
    Err(match (kind, other) {
        (FileKind::Mip, None) => failure.with_hint("`profkit mip diff` compares MIP profiles"),
        (FileKind::ObjectFile, _) => failure
            .with_hint("programs and libraries of raw heap profiles are given with --binaries"),
        (_, Some(other)) => failure.with_hint(format_args!(
            "{} is a heap profile: compare it with another one",
            other.name()
        )),
        _ => failure.with_hint("`profkit doctor` says what a file is"),
    })
}

/// A context in one or both profiles.
#[derive(Clone, Copy)]
struct Change<'a> {
    old: Option<&'a Allocations>,
    new: Option<&'a Allocations>,
    mark: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Moved,
    Ambiguous,
}

impl<'a> Change<'a> {
    fn of_pair(pair: &'a Pair) -> Self {
        Change {
            old: Some(&pair.old),
            new: Some(&pair.new),
            mark: if pair.moved { Mark::Moved } else { Mark::None },
        }
    }

    fn mark_of(single: &Single) -> Mark {
        match single.ambiguous {
            true => Mark::Ambiguous,
            false => Mark::None,
        }
    }

    fn appeared(single: &'a Single) -> Self {
        Change {
            old: None,
            new: Some(&single.context),
            mark: Self::mark_of(single),
        }
    }

    fn gone(single: &'a Single) -> Self {
        Change {
            old: Some(&single.context),
            new: None,
            mark: Self::mark_of(single),
        }
    }
}

/// Contexts of one kind, most changed first.
struct Section<'a> {
    title: &'static str,
    name: &'static str,
    changes: Vec<Change<'a>>,
}

struct Report<'a> {
    args: &'a DiffArgs,
    old: &'a Heap,
    new: &'a Heap,
    thresholds: Thresholds,
    sections: Vec<Section<'a>>,
    unchanged: usize,
    moved: usize,
    old_share: Share,
    new_share: Share,
}

impl<'a> Report<'a> {
    fn new(args: &'a DiffArgs, old: &'a Heap, new: &'a Heap, found: &'a Difference) -> Self {
        let by = args.by;
        let thresholds = args.thresholds.thresholds();
        let mut pairs: Vec<&Pair> = found.both.iter().collect();
        pairs.sort_by(|one, two| by.change(two).total_cmp(&by.change(one)));
        let of_order = |order: Ordering| {
            let pairs = pairs
                .iter()
                .filter(move |pair| by.compare(&pair.new.block, &pair.old.block) == order);
            pairs.map(|pair| Change::of_pair(pair)).collect::<Vec<_>>()
        };
        let sorted = |singles: &'a [Single]| {
            let mut singles: Vec<&Single> = singles.iter().collect();
            singles.sort_by(|one, two| by.compare(&two.context.block, &one.context.block));
            singles
        };
        let hotness = |context: &Allocations| thresholds.hotness(&context.block, true);
        let turned = pairs
            .iter()
            .filter(|pair| hotness(&pair.old) != hotness(&pair.new));
        let sections = vec![
            Section {
                title: "Grew",
                name: "grew",
                changes: of_order(Ordering::Greater),
            },
            Section {
                title: "Shrank",
                name: "shrank",
                changes: of_order(Ordering::Less),
            },
            Section {
                title: "Appeared",
                name: "appeared",
                changes: sorted(&found.appeared)
                    .into_iter()
                    .map(Change::appeared)
                    .collect(),
            },
            Section {
                title: "Gone",
                name: "gone",
                changes: sorted(&found.gone).into_iter().map(Change::gone).collect(),
            },
            Section {
                title: "Changed between cold, warm and hot",
                name: "hotness_changed",
                changes: turned.map(|pair| Change::of_pair(pair)).collect(),
            },
        ];
        let (both, gone) = (found.both.iter(), found.gone.iter());
        let appeared = found.appeared.iter().map(|single| &single.context);
        Report {
            args,
            old,
            new,
            thresholds,
            sections,
            unchanged: of_order(Ordering::Equal).len(),
            moved: found.both.iter().filter(|pair| pair.moved).count(),
            old_share: Share::of(
                both.clone()
                    .map(|pair| &pair.old)
                    .chain(gone.map(|single| &single.context)),
            ),
            new_share: Share::of(both.map(|pair| &pair.new).chain(appeared)),
        }
    }

    fn hotness(&self, context: &Allocations) -> &'static str {
        hotness_name(self.thresholds.hotness(&context.block, true))
    }

    fn text(&self, inputs: [&Input; 2], out: &mut impl Write) -> io::Result<()> {
        let sides = [
            (inputs[0], self.old, self.old_share),
            (inputs[1], self.new, self.new_share),
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
        let (old, new) = (self.old_share.bytes, self.new_share.bytes);
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
        writeln!(out, "Unchanged: {}", grouped(self.unchanged as u64))?;
        if self.moved > 0 {
            writeln!(
                out,
                "Paired by functions alone, for their lines moved: {}",
                grouped(self.moved as u64)
            )?;
        }
        let ambiguous = self.sections.iter().flat_map(|section| &section.changes);
        let ambiguous = ambiguous.filter(|change| change.mark == Mark::Ambiguous);
        let ambiguous = ambiguous.count() as u64;
        if ambiguous > 0 {
            writeln!(
                out,
                "Gone or appeared, though the other profile has their functions with other lines, more than once: {}",
                grouped(ambiguous)
            )?;
        }
        Ok(())
    }

    fn section(&self, section: &Section<'_>, out: &mut impl Write) -> io::Result<()> {
        let by = match section.name {
            "grew" | "shrank" => format!(" in {}", self.args.by.name()),
            _ => String::new(),
        };
        let count = section.changes.len();
        writeln!(out, "{}{by}: {}", section.title, grouped(count as u64))?;
        for change in section.changes.iter().take(self.args.top) {
            self.change(change, out)?;
        }
        match count.saturating_sub(self.args.top) {
            0 => Ok(()),
            more => writeln!(out, "  … and {} more", grouped(more as u64)),
        }
    }

    fn change(&self, change: &Change<'_>, out: &mut impl Write) -> io::Result<()> {
        let mark = match change.mark {
            Mark::None => "",
            Mark::Moved => ", lines moved",
            Mark::Ambiguous => ", perhaps moved",
        };
        let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
        let count = |context: &Allocations| context.block.get(Field::AllocCount);
        let life = |context: &Allocations| average(&context.block, Field::TotalLifetime);
        match (change.old, change.new) {
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

    /// The call stack of a context, of the new profile if that has it.
    fn place(&self, change: &Change<'_>) -> Option<(&Heap, StackId)> {
        match (change.new, change.old) {
            (Some(new), _) => Some((self.new, new.stack)),
            (None, Some(old)) => Some((self.old, old.stack)),
            (None, None) => None,
        }
    }

    fn json(&self, inputs: [&'a Input; 2], out: &mut impl Write) -> io::Result<()> {
        let side = |input: &'a Input, heap: &'a Heap, share| JsonSide {
            path: input.name(),
            size: input.len(),
            form: heap.form,
            version: heap.version,
            notes: &heap.notes,
            share,
            errors: heap.damage().first.iter().map(json_error).collect(),
            error_count: heap.damage().count,
        };
        let [old, new] = inputs;
        let mut report = serde_json::json!({
            "schema": "profkit-diff",
            "schema_version": SCHEMA_VERSION,
            "kind": "heap",
            "by": self.args.by.name(),
            "old": serde_json::to_value(side(old, self.old, self.old_share))?,
            "new": serde_json::to_value(side(new, self.new, self.new_share))?,
            "unchanged": self.unchanged,
            "moved": self.moved,
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

    fn json_change(&self, change: &Change<'_>) -> JsonChange {
        let figures = |context: &&Allocations| JsonFigures {
            allocations: context.block.get(Field::AllocCount),
            bytes: context.block.get(Field::TotalSize),
            average_lifetime_ms: average(&context.block, Field::TotalLifetime),
            lifetime_access_density: density(&context.block),
            kind: self.hotness(context),
        };
        let stack = |(heap, stack): (&Heap, StackId)| heap.json_stack(stack);
        let old_stack = change.old.filter(|_| change.mark == Mark::Moved);
        JsonChange {
            old: change.old.as_ref().map(figures),
            new: change.new.as_ref().map(figures),
            moved: change.mark == Mark::Moved,
            ambiguous: change.mark == Mark::Ambiguous,
            stack: self.place(change).map(stack).unwrap_or_default(),
            old_stack: old_stack.map(|context| self.old.json_stack(context.stack)),
        }
    }
}

/// Raised when readers of the JSON could notice.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct JsonSide<'a> {
    path: &'a str,
    size: usize,
    form: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    notes: &'a [String],
    #[serde(flatten)]
    share: Share,
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
