//! The report of `profkit fold`. docs/guide/fold.md describes the JSON.
use crate::document::write_json;
use crate::merge::{MergeReport, add_target_names};
use crate::{Answer, Cell, Document, Table, grouped, plural, size};
use profkit_data::instr::Target;
use profkit_merge::Report;
use profkit_merge::fold::{
    Compacted, FoldOutcome, LedgerRow, LeftOut, PartName, Stray, StrayKind, Why,
};
use serde::Serialize;
use std::io::{self, Write};

const SCHEMA_VERSION: u32 = 1;
/// The number of lines of each kind that people see. The JSON has all of them.
const MOST: usize = 10;

/// What a fold and a compaction have done, in the form in which it is reported.
#[derive(Clone, Debug, Default)]
pub struct FoldReport<'a> {
    /// The name of the store.
    pub store: &'a str,
    /// What the fold has done; `None` if only the parts were joined.
    pub fold: Option<&'a FoldOutcome>,
    /// What the compaction has done, if it was asked for.
    pub compacted: Option<&'a Compacted>,
    /// Notes about the inputs that were named, one line each.
    pub notes: &'a [String],
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Whether people see warnings only.
    pub quiet: bool,
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    schema_version: u32,
    store: &'a str,
    dry_run: bool,
    /// The parts of the store, and the inputs in them.
    parts: u64,
    inputs: u64,
    known: u64,
    folded: Vec<JsonPart<'a>>,
    adopted: Vec<JsonPart<'a>>,
    left_out: Vec<JsonFile<'a>>,
    rewritten: &'a [String],
    strays: Vec<JsonFile<'a>>,
    repaired: Vec<&'a str>,
    retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<Vec<JsonPart<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonPart<'a> {
    /// Without the digest if the part was not made.
    part: String,
    kind: &'static str,
    key: &'a str,
    time: String,
    inputs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Report>,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    file: &'a str,
    reason: &'static str,
    message: String,
}

impl<'a> JsonPart<'a> {
    fn new(name: &'a PartName, row: LedgerRow) -> Self {
        JsonPart {
            part: text_of(name),
            kind: name.kind.name(),
            key: &name.key,
            time: name.bucket.to_string(),
            inputs: row.inputs,
            bytes: (row.bytes > 0).then_some(row.bytes),
            files: &[],
            replaces: None,
            report: None,
        }
    }
}

/// The name of a part. That of one that was not made ends with its day.
fn text_of(name: &PartName) -> String {
    let text = name.to_string();
    match name.digest {
        0 => text.trim_end_matches("-0000000000000000").to_owned(),
        _ => text,
    }
}

fn left_out(why: &Why) -> (&'static str, String) {
    match why {
        Why::Unreadable(error) => (
            "unreadable",
            format!("cannot be read: {error}; the next fold tries it again"),
        ),
        Why::NoProfile(error) => ("no_profile", error.clone()),
        Why::NoId => (
            "no_id",
            "it has no id by which it would be recognised: name a file".to_owned(),
        ),
        Why::Overlap(shared) => (
            "overlap",
            format!(
                "a part of which {} in the store and others are not, so that its counts cannot be added",
                match shared {
                    1 => "1 input is".to_owned(),
                    _ => format!("{} inputs are", grouped(*shared)),
                }
            ),
        ),
        Why::TwoContents => (
            "two_contents",
            "an input with this id is in the store with another content".to_owned(),
        ),
        Why::OtherOptions => (
            "other_options",
            "the part was made with options: make it with profkit merge --part alone".to_owned(),
        ),
        Why::Refused(error) => ("refused", error.clone()),
        _ => ("other", "it cannot be folded".to_owned()),
    }
}

fn stray(what: &StrayKind) -> (&'static str, String) {
    match what {
        StrayKind::Leftover => (
            "leftover",
            "its inputs are in other parts; --compact removes it when it is a day old".to_owned(),
        ),
        StrayKind::Overlap => (
            "overlap",
            "some of its inputs are in other parts, so that it cannot count".to_owned(),
        ),
        StrayKind::Other(what) => ("other", format!("it is no part of the store: {what}")),
        _ => ("other", "it is no part of the store".to_owned()),
    }
}

impl FoldReport<'_> {
    fn ledger(&self) -> (u64, u64) {
        let ledger = match (self.compacted, self.fold) {
            (Some(compacted), _) => &compacted.ledger,
            (None, Some(fold)) => &fold.ledger,
            (None, None) => return (0, 0),
        };
        (ledger.parts.len() as u64, ledger.inputs())
    }

    fn repaired(&self) -> Vec<&str> {
        let of_fold = self.fold.iter().flat_map(|fold| &fold.repaired);
        let of_compaction = self
            .compacted
            .iter()
            .flat_map(|compacted| &compacted.repaired);
        of_fold.chain(of_compaction).map(String::as_str).collect()
    }

    fn new_parts(&self, document: &mut Document, fold: &FoldOutcome) {
        if fold.folded.is_empty() {
            return;
        }
        let mut table = Table::new(["<new part", ">inputs", ">size"]);
        for part in &fold.folded {
            table.row([
                Cell::from(text_of(&part.name)),
                grouped(part.row.inputs).into(),
                match part.row.bytes {
                    0 => String::new().into(),
                    bytes => size(bytes).into(),
                },
            ]);
        }
        document.line("");
        document.table(table);
    }
}

/// Lines of a kind, of which people see the first ones.
fn first<T>(document: &mut Document, what: &str, list: &[T], line: impl Fn(&T) -> String) {
    for one in list.iter().take(MOST) {
        document.line(format_args!("{what}: {}", line(one)));
    }
    if let more @ 1.. = list.len().saturating_sub(MOST) as u64 {
        document.line(format_args!(
            "{what}: {} more of this kind; --report has all",
            grouped(more)
        ));
    }
}

impl Answer for FoldReport<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for note in self.notes.iter().filter(|_| !self.quiet) {
            document.line(format_args!("note: {note}"));
        }
        first(
            &mut document,
            "warning: repaired",
            &self.repaired(),
            |text| (*text).to_owned(),
        );
        if let Some(fold) = self.fold {
            for part in &fold.folded {
                document.append(
                    MergeReport {
                        quiet: true,
                        ..MergeReport::new(&part.report)
                    }
                    .document(),
                );
            }
            let inputs = fold.folded.iter().flat_map(|part| &part.inputs);
            let targets = Target::count(inputs.map(String::as_str));
            if targets.len() > 1 {
                add_target_names(&mut document, &targets);
                document.line("hint: a compiler needs a profile for each target: give each a store of its own");
            }
            first(&mut document, "warning", &fold.left_out, |one| {
                let LeftOut { input, why } = one;
                format!("{input}: not folded: {}", left_out(why).1)
            });
            first(&mut document, "warning", &fold.rewritten, |input| {
                format!(
                    "{input}: written again since it was folded: its new content does not count; give what is new a new name"
                )
            });
            if !self.quiet {
                first(&mut document, "note", &fold.strays, |one| {
                    format!("{}: left alone: {}", one.name, stray(&one.what).1)
                });
            }
        }
        if self.quiet {
            return document;
        }
        let (parts, inputs) = self.ledger();
        if let Some(fold) = self.fold {
            let new: u64 = fold.folded.iter().map(|part| part.row.inputs).sum();
            if !document.is_empty() {
                document.line("");
            }
            document.title(
                self.store,
                match (new, self.dry_run) {
                    (0, _) => "nothing new".to_owned(),
                    (_, true) => format!("{} would be folded", plural(new, "input")),
                    (_, false) => format!("folded {}", plural(new, "input")),
                },
            );
            document.fact("there before", plural(fold.known, "input"));
            if !fold.left_out.is_empty() {
                document.fact("not folded", plural(fold.left_out.len() as u64, "input"));
            }
            for (name, row) in &fold.adopted {
                let inputs = plural(row.inputs, "input");
                document.fact(
                    "completed",
                    format_args!("{name}: {inputs}, written by a fold that was ended"),
                );
            }
            if fold.retries > 0 {
                let times = plural(u64::from(fold.retries), "time");
                document.fact(
                    "begun again",
                    format_args!("{times}, after other processes"),
                );
            }
        } else {
            document.title(self.store, "a store of parts");
        }
        if let Some(compacted) = self.compacted {
            for (name, row, count) in &compacted.joined {
                let inputs = plural(row.inputs, "input");
                let text = format_args!("{}: {inputs} of {count} parts", text_of(name)).to_string();
                document.fact(
                    if self.dry_run {
                        "to be joined"
                    } else {
                        "joined"
                    },
                    text,
                );
            }
            if compacted.joined.is_empty() {
                document.fact("joined", "nothing: no day that is over has several parts");
            }
            if compacted.removed > 0 {
                document.fact("removed", plural(compacted.removed, "part"));
            }
        }
        let inputs = plural(inputs, "input");
        document.fact(
            "the store",
            format_args!("{inputs} in {}", plural(parts, "part")),
        );
        if let Some(fold) = self.fold {
            self.new_parts(&mut document, fold);
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let none = FoldOutcome::default();
        let fold = self.fold.unwrap_or(&none);
        let (parts, inputs) = self.ledger();
        let folded = fold.folded.iter().map(|part| JsonPart {
            files: &part.inputs,
            report: (!self.dry_run).then_some(&part.report),
            ..JsonPart::new(&part.name, part.row)
        });
        let adopted = fold
            .adopted
            .iter()
            .map(|(name, row)| JsonPart::new(name, *row));
        let files = fold.left_out.iter().map(|LeftOut { input, why }| {
            let (reason, message) = left_out(why);
            JsonFile {
                file: input,
                reason,
                message,
            }
        });
        let strays = fold.strays.iter().map(|Stray { name, what }| {
            let (reason, message) = stray(what);
            JsonFile {
                file: name,
                reason,
                message,
            }
        });
        let joined = self.compacted.map(|compacted| {
            let joined = compacted.joined.iter();
            let part = joined.map(|(name, row, count)| JsonPart {
                replaces: Some(*count),
                ..JsonPart::new(name, *row)
            });
            part.collect()
        });
        write_json(
            out,
            &Json {
                schema: "profkit-fold",
                schema_version: SCHEMA_VERSION,
                store: self.store,
                dry_run: self.dry_run,
                parts,
                inputs,
                known: fold.known,
                folded: folded.collect(),
                adopted: adopted.collect(),
                left_out: files.collect(),
                rewritten: &fold.rewritten,
                strays: strays.collect(),
                repaired: self.repaired(),
                retries: fold.retries,
                joined,
                removed: self.compacted.map(|compacted| compacted.removed),
                notes: self.notes,
            },
        )
    }
}
