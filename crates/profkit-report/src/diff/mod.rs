//! The output of `profkit diff`. [docs/formats/diff-json.md] describes the JSON.
//!
//! [docs/formats/diff-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/diff-json.md
mod heap;

pub use heap::HeapDiff;

use crate::document::write_json;
use crate::rows::number;
use crate::show::json::{JsonNames, error as json_error, with, without_nulls};
use crate::show::sample::place;
use crate::{
    Answer, Cell, Document, RowForm, Rows, Style, Table, grouped, percent_beside, plural,
    share_percent as percent,
};
use profkit_analysis::diff::{
    BlockChange, Change, FunctionChange, Place, ProfileDiff, Target, TargetChange,
};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::overlap::ComparedProfile;
use profkit_data::detect::Family;
use profkit_data::ids::{FuncHash, NameRef};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The version of the JSON, which new members do not raise.
pub const DIFF_SCHEMA_VERSION: u32 = 2;

const COLUMNS: [&str; 13] = [
    "change",
    "moved",
    "old_count",
    "new_count",
    "old_share",
    "new_share",
    "old_rank",
    "new_rank",
    "old_hash",
    "new_hash",
    "context",
    "function",
    "demangled",
];

const COLUMNS_OF_MIP: [&str; 10] = [
    "change",
    "moved",
    "old_blocks",
    "new_blocks",
    "old_position",
    "new_position",
    "old_hash",
    "new_hash",
    "function",
    "demangled",
];

/// The comparison of two profiles, in the form in which it is printed.
#[derive(Clone, Copy, Debug)]
pub struct DiffReport<'a> {
    /// The names of the old and of the new file.
    pub paths: [&'a str; 2],
    /// The old and the new profile.
    pub profiles: [&'a ComparedProfile<'a>; 2],
    /// What changed.
    pub diff: &'a ProfileDiff,
    /// How names are printed.
    pub spelling: Spelling,
}

/// Returns `OLD -> NEW`, with a dash for `None`, or one text if both are equal; empty if both are `None`.
fn from_to<T: PartialEq>(values: [Option<T>; 2], text: impl Fn(&T) -> String) -> String {
    let cell = |value: &Option<T>| value.as_ref().map_or_else(|| "-".to_owned(), &text);
    match &values {
        [None, None] => String::new(),
        [old, new] if old == new => cell(old),
        [old, new] => format!("{} -> {}", cell(old), cell(new)),
    }
}

/// Says why `--fail-over` is not met. `moved` is a share from 0 to 1, `most` is in percent.
pub fn gate(moved: Option<f64>, most: f64, unit: &str) -> Option<String> {
    match moved {
        Some(moved) if moved * 100.0 <= most => None,
        Some(moved) => Some(format!(
            "{} of the {unit} moved, but --fail-over allows {most}%",
            percent_beside(moved * 100.0, most)
        )),
        None => Some(format!(
            "it is not known which share of the {unit} moved, but --fail-over allows {most}%"
        )),
    }
}

impl DiffReport<'_> {
    fn family(&self) -> Family {
        self.profiles[1].family()
    }

    /// The name of what the profiles count, in the plural: `samples`.
    pub fn unit(&self) -> &'static str {
        match self.family() {
            Family::Sample => "samples",
            Family::Mip => "functions called",
            _ => "counts",
        }
    }

    /// Whether one of the two files is damaged.
    pub fn is_damaged(&self) -> bool {
        self.profiles.iter().any(|profile| profile.damage.count > 0)
    }

    /// The word for a change.
    pub fn word(&self, change: Change) -> &'static str {
        match change {
            Change::New => "new",
            Change::Gone => "gone",
            Change::HashChanged => "hash changed",
            Change::Moved if self.family() == Family::Mip => "blocks",
            Change::Moved => "moved",
            Change::Called => "newly called",
            Change::NotCalled => "no longer called",
            Change::Earlier => "earlier",
            Change::Later => "later",
        }
    }

    /// Whether the profiles are of a kind in which each function has a share of all counts.
    pub fn has_shares(&self) -> bool {
        ProfileDiff::has_shares(self.family())
    }

    /// Returns notes that a reader needs to understand the numbers.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut functions = true;
        for (path, profile) in self.paths.iter().zip(self.profiles) {
            let size = profile.size();
            functions &= size.functions > 0;
            if size.functions == 0 {
                notes.push(format!("{path}: the profile has no functions"));
            } else if size.total == 0 {
                notes.push(format!(
                    "{path}: nothing was counted, so there are no shares to compare"
                ));
            }
        }
        if self.profiles.iter().all(|profile| profile.has_heap()) {
            notes.push("both files have heap profiles too: --memory compares them".to_owned());
        }
        let changed = |change| self.diff.changes.contains_key(&change);
        if functions
            && self.diff.common == 0
            && !changed(Change::HashChanged)
            && changed(Change::New)
            && changed(Change::Gone)
        {
            notes.push("no function is in both profiles: are they of the same program?".to_owned());
        }
        notes
    }

    fn target(&self, target: &Target) -> String {
        match target {
            Target::Name(name) => names::spelled(name, self.spelling).into_owned(),
            Target::Hash(0) => "(outside the profiled program)".to_owned(),
            Target::UnknownVTable => "(no known vtable)".to_owned(),
            Target::Hash(hash) => format!("(unknown name {})", NameRef(*hash)),
            Target::Size(1) => "1 byte".to_owned(),
            Target::Size(size) => format!("{} bytes", grouped(size)),
        }
    }

    fn place(&self, index: &str, at: Place) -> String {
        match at {
            Place::Index(at) => format!("{index} {at}"),
            Place::Line(line) if self.profiles[1].counts_probes() => {
                format!("probe {}", place(line, true))
            }
            Place::Line(line) => format!("line {}", place(line, false)),
        }
    }

    /// The name of a function with its callers: `main:3 @ parse`.
    pub fn name(&self, function: &FunctionChange) -> String {
        let callers = function.callers.iter().map(|(name, line)| {
            format!(
                "{}:{} @ ",
                names::spelled(name, self.spelling),
                place(*line, self.profiles[1].counts_probes())
            )
        });
        let stage = if function.context_sensitive {
            " (context-sensitive)"
        } else {
            ""
        };
        let name = names::spelled(&function.name, self.spelling);
        format!("{}{name}{stage}", callers.collect::<String>())
    }

    /// Describes the blocks, call targets and sizes in a function whose shares changed. Each of them has one line.
    fn details(&self, function: &FunctionChange) -> Vec<String> {
        let shares = |[old, new]: [f64; 2]| format!("{} -> {}", percent(old), percent(new));
        let block = |block: &BlockChange| {
            let what = self.place("counter", block.place);
            format!("{what}: {} of its {}", shares(block.shares), self.unit())
        };
        let target = |target: &TargetChange| {
            let verb = match target.target {
                Target::Size(_) => "size at",
                _ => "call at",
            };
            let (site, name) = (self.place("site", target.site), self.target(&target.target));
            format!("{verb} {site}: {name} {}", shares(target.shares))
        };
        let blocks = function.blocks.iter().map(block);
        blocks.chain(function.targets.iter().map(target)).collect()
    }

    fn changes(&self) -> Table {
        let with_shares = self.has_shares();
        let mut columns = vec!["<", ">functions", ">moved"];
        if with_shares {
            columns.extend([">of old", ">of new"]);
        }
        let mut table = Table::new(columns);
        for (&change, sum) in &self.diff.changes {
            let mut row: Vec<Cell> = vec![
                self.word(change).into(),
                sum.functions.into(),
                percent(sum.moved).into(),
            ];
            if with_shares {
                row.extend(sum.shares.map(|share| percent(share).into()));
            }
            table.row(row);
        }
        table.row(["unchanged".into(), self.diff.unchanged.into()]);
        table
    }

    fn add_functions(&self, document: &mut Document) {
        const PARTS: u32 = 1_000_000;
        let (shown, all) = (self.diff.functions.len() as u64, self.changed());
        if shown == 0 {
            return;
        }
        document.section(match all {
            all if all == shown => format!("Functions that changed: {}", grouped(all)),
            all => format!(
                "Functions that changed most: {} of {}",
                grouped(shown),
                grouped(all)
            ),
        });
        let mip = !self.has_shares();
        let [first, second] = match mip {
            true => ["<blocks?", "<position"],
            false => ["<share", "<rank?"],
        };
        let mut table = Table::new([">moved", "<?", first, second, "<change", "<function"]);
        for function in &self.diff.functions {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a bar needs no more digits, and a share is from 0 to 1"
            )]
            let length = (function.moved * f64::from(PARTS)) as u128;
            let first = if mip {
                from_to(function.counts, |count| grouped(count))
            } else {
                from_to(function.shares, |share| percent(*share))
            };
            table.row([
                percent(function.moved).into(),
                Cell::bar(Style::Bar, length, PARTS),
                first.into(),
                from_to(function.ranks, |rank| grouped(rank)).into(),
                self.word(function.change).into(),
                self.name(function).into(),
            ]);
            for detail in self.details(function) {
                table.remark(Cell::styled(Style::Dim, detail));
            }
        }
        document.table(table);
    }

    /// The number of functions that changed, including those that are not listed.
    fn changed(&self) -> u64 {
        self.diff.changes.values().map(|sum| sum.functions).sum()
    }

    /// Returns a function as JSON. Members without a value are left out.
    fn row(&self, function: &FunctionChange) -> Value {
        let names = JsonNames(self.spelling);
        let callers = function
            .callers
            .iter()
            .map(|(name, line)| with(names.named(name), json!({ "place": place(*line, true) })));
        let part = |counts: [u64; 2], shares: [f64; 2], at: Place| {
            let (index, place) = match at {
                Place::Index(index) => (Some(index), None),
                Place::Line(line) => (None, Some(place(line, true))),
            };
            without_nulls(json!({
                "old_count": counts[0],
                "new_count": counts[1],
                "old_share": shares[0],
                "new_share": shares[1],
                "index": index,
                "place": place,
            }))
        };
        let blocks = function.blocks.iter();
        let blocks = blocks.map(|block| part(block.counts, block.shares, block.place));
        let targets = function.targets.iter().map(|target| {
            let what = match &target.target {
                Target::Name(name) => json!({ "target": names.named(name) }),
                Target::Hash(hash) => {
                    json!({ "target": { "guid": NameRef(*hash).to_string() } })
                }
                Target::UnknownVTable => json!({ "target": { "guid": NameRef(0).to_string() } }),
                Target::Size(size) => json!({ "size": size }),
            };
            with(part(target.counts, target.shares, target.site), what)
        });
        let some = |list: Vec<Value>| Some(list).filter(|list| !list.is_empty());
        let mut row = with(
            names.named(&function.name),
            json!({
                "change": self.word(function.change).replace(' ', "_"),
                "moved": function.moved,
                "context_sensitive": function.context_sensitive.then_some(true),
                "callers": some(callers.collect()),
                "blocks": some(blocks.collect()),
                "targets": some(targets.collect()),
            }),
        );
        let (count, rank) = match self.family() {
            Family::Mip => ("blocks", "position"),
            _ => ("count", "rank"),
        };
        let sides = ["old", "new"].into_iter().zip(function.hashes);
        let numbers = function
            .counts
            .into_iter()
            .zip(function.shares)
            .zip(function.ranks);
        for ((side, hash), ((sum, share), ranked)) in sides.zip(numbers) {
            for (name, value) in [
                ("hash", hash.map(|hash| FuncHash(hash).to_string()).into()),
                (count, sum.map_or(Value::Null, number)),
                ("share", share.into()),
                (rank, ranked.into()),
            ] {
                if !value.is_null() {
                    row[format!("{side}_{name}")] = value;
                }
            }
        }
        row
    }
}

impl Answer for DiffReport<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for (path, profile) in self.paths.iter().zip(self.profiles) {
            let size = profile.size();
            let functions = plural(size.functions, "function");
            let damage = match profile.damage.count {
                0 => String::new(),
                errors => format!("; damaged ({})", plural(errors, "error")),
            };
            let kind = profile.describe();
            let total = format!("{} {}", grouped(size.total), self.unit());
            document.title(*path, format_args!("{kind}, {functions}, {total}{damage}"));
        }
        for note in self.notes() {
            document.line(format_args!("note: {note}"));
        }
        document.line("");
        let moved = self.diff.moved.map_or_else(|| "-".to_owned(), percent);
        document.title("Moved", format_args!("{moved} of the {}", self.unit()));
        document.table(self.changes());
        self.add_functions(&mut document);
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut sides = self.paths.iter().zip(self.profiles).map(|(path, profile)| {
            let (size, damage) = (profile.size(), &profile.damage);
            json!({
                "path": path,
                "description": profile.describe(),
                "functions": size.functions,
                "total": number(size.total),
                "errors": damage.first.iter().map(json_error).collect::<Vec<_>>(),
                "error_count": damage.count,
            })
        });
        let changes = self.diff.changes.iter().map(|(&change, sum)| {
            let [old, new] = sum.shares;
            let share = |share: f64| self.has_shares().then_some(share);
            let value = without_nulls(json!({
                "functions": sum.functions,
                "moved": sum.moved,
                "old_share": share(old),
                "new_share": share(new),
            }));
            (self.word(change).replace(' ', "_"), value)
        });
        let report = json!({
            "schema": "profkit-diff",
            "schema_version": DIFF_SCHEMA_VERSION,
            "kind": match self.family() {
                Family::Sample => "sample",
                Family::Mip => "mip",
                _ => "instrumentation",
            },
            "unit": self.unit(),
            "old": sides.next(),
            "new": sides.next(),
            "moved": self.diff.moved,
            "changes": changes.collect::<serde_json::Map<_, _>>(),
            "changed": self.changed(),
            "unchanged": self.diff.unchanged,
            "functions": self.diff.functions.iter().map(|it| self.row(it)).collect::<Vec<_>>(),
            "notes": self.notes(),
        });
        write_json(out, &report)
    }

    fn rows(&self, form: RowForm) -> Rows<'_> {
        let columns: &[&str] = match self.family() {
            Family::Mip => &COLUMNS_OF_MIP,
            _ => &COLUMNS,
        };
        let rows = self.diff.functions.iter().map(move |function| {
            let mut row = self.row(function);
            if form == RowForm::Csv && !function.callers.is_empty() {
                row["context"] = self.name(function).into();
            }
            row
        });
        Rows::new(columns, rows)
    }
}
