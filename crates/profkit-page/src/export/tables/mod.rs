//! Profiles as tables, for databases and data frames: one row per function, counter, line, value, place in a trace, or
//! context. [docs/formats/tables.md] lists the columns.
//!
//! ```
//! use profkit_analysis::any::AnyProfile;
//! use profkit_page::export::tables::{Table, TableKind};
//!
//! let profile = AnyProfile::open(b":ir\nmain\n1\n2\n90\n10\n", None)?;
//! let (table, _faults) = Table::of("app.proftext", TableKind::Counters, &profile).expect("it has counters");
//! let mut csv = Vec::new();
//! table.csv(&mut csv)?;
//! let first = "main,0x0000000000000001,0,90";
//! assert_eq!(String::from_utf8(csv)?.lines().nth(1), Some(first));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [docs/formats/tables.md]: https://github.com/profkit/profkit/blob/main/docs/formats/tables.md
pub(crate) mod addresses;
#[cfg(feature = "arrow")]
pub mod arrow;
pub(crate) mod heap;
mod instr;
mod mip;
mod rows;
mod sample;
#[cfg(test)]
mod tests;
mod texts;

pub use texts::Texts;

use super::StackFrame;
use crate::functions::Interner;
use profkit_analysis::any::AnyProfile;
use profkit_analysis::faults::Faults;
use profkit_analysis::names::printable;
use std::fmt;

/// The version of the columns. It is raised when a column is renamed or removed, or changes its meaning.
pub const TABLES_VERSION: u32 = 4;

/// The kind of a table: what each row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// One row per function of an instrumentation, sample or MIP profile.
    Functions,
    /// One row per counter of an instrumentation profile, or per block of a MIP profile.
    Counters,
    /// One row per line of a function of a sample profile.
    Lines,
    /// One row per value of a value site, or per call target of a line.
    Values,
    /// One row per run and called function, in the order of the first calls.
    Traces,
    /// One row per function that was inlined into a function of a sample profile.
    Inlined,
    /// One row per name in the symbol list of a sample profile.
    Symbols,
    /// One row per allocation context of a heap profile.
    Contexts,
    /// One row per frame of a call stack of a heap profile.
    Frames,
    /// One row per allocation and per call in the record of a function of a heap profile.
    Records,
    /// One row per branch, range of code or address of a recording, with its count.
    Branches,
    /// One row per fact about a profile as a whole, which engines drop from the metadata of files.
    Profile,
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TableKind::Functions => "functions",
            TableKind::Counters => "counters",
            TableKind::Lines => "lines",
            TableKind::Values => "values",
            TableKind::Traces => "traces",
            TableKind::Inlined => "inlined",
            TableKind::Symbols => "symbols",
            TableKind::Contexts => "contexts",
            TableKind::Frames => "frames",
            TableKind::Records => "records",
            TableKind::Branches => "branches",
            TableKind::Profile => "profile",
        })
    }
}

/// The error for a table that profiles of this kind do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTable {
    /// The table that was asked for.
    pub table: TableKind,
    /// The kind of the profile in words.
    pub profile: &'static str,
    /// The tables that profiles of this kind have.
    pub has: &'static [TableKind],
}

impl fmt::Display for NoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoTable {
            table,
            profile,
            has,
        } = self;
        let has: Vec<String> = has.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{profile} has no table named `{table}`; its tables are {}",
            has.join(", ")
        )
    }
}

impl std::error::Error for NoTable {}

/// A table with the data of a profile. All columns have the same number of rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// What each row describes.
    pub kind: TableKind,
    /// Facts about the whole profile: the file, the kind of the profile, build ids.
    pub properties: Vec<(&'static str, Property)>,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A fact about a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// A single text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::Text(text) => f.write_str(text),
            Property::List(texts) => f.write_str(&texts.join(", ")),
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name of the column.
    pub name: &'static str,
    /// The data of the rows.
    pub data: ColumnData,
}

/// The data of a column.
#[derive(Clone, Debug)]
pub enum ColumnData {
    /// Texts that differ in most rows. An empty text means that the text is not known.
    Texts(Texts),
    /// Texts that occur in many rows.
    Shared(SharedTexts),
    /// Numbers.
    Numbers(Vec<u64>),
    /// Hashes; `None` in rows without one. CSV and JSON have them as texts, `0x` and 16 digits; Arrow as numbers.
    Hashes(Vec<Option<u64>>),
    /// Numbers; `None` in rows without a number.
    SomeNumbers(Vec<Option<u64>>),
    /// Fractions; `None` in rows without a fraction.
    Fractions(Vec<Option<f64>>),
    /// Call stacks, innermost frame first.
    Stacks(StackColumn),
}

/// A column of texts that occur in many rows. Each text is stored once.
#[derive(Clone, Debug, Default)]
pub struct SharedTexts {
    /// For each row, the index of its text, counted from 1; 0 if the row has no text.
    pub numbers: Vec<u32>,
    texts: Interner,
}

impl SharedTexts {
    fn push(&mut self, text: &str) {
        let number = if text.is_empty() {
            0
        } else {
            self.texts.number(text)
        };
        self.push_number(number);
    }

    /// Adds a row to this column of texts. The row has the text with the given number.
    fn push_number(&mut self, number: usize) {
        self.numbers.push(u32::try_from(number).unwrap_or(0));
    }

    /// The texts in the order of their numbers; the first has number 1.
    pub fn texts(&self) -> &[String] {
        self.texts.list()
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> Option<&str> {
        let number = *self.numbers.get(row)? as usize;
        self.texts().get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// A column of call stacks, innermost frame first.
#[derive(Clone, Debug, Default)]
pub struct StackColumn {
    /// All frames that occur in the stacks.
    pub frames: Vec<StackFrame>,
    /// The stack of each row, as indexes into `frames`.
    pub stacks: Vec<Vec<u32>>,
}

impl StackColumn {
    /// The frames of a row, innermost first.
    pub fn get(&self, row: usize) -> impl ExactSizeIterator<Item = &StackFrame> {
        let stack = self.stacks.get(row).map_or(&[][..], Vec::as_slice);
        stack.iter().map(|&frame| &self.frames[frame as usize])
    }
}

impl Table {
    /// Makes a table of a profile with functions. The errors of a damaged profile are returned.
    ///
    /// # Errors
    /// If profiles of this kind have no such table.
    pub fn of(
        file: &str,
        kind: TableKind,
        profile: &AnyProfile<'_>,
    ) -> Result<(Self, Faults), NoTable> {
        match profile {
            AnyProfile::Instr(table) => Table::of_instr(file, kind, table),
            AnyProfile::Sample(view) => {
                Table::of_samples(file, kind, view).map(|table| (table, view.faults()))
            }
            AnyProfile::Mip(profile, _) => {
                Table::of_mip(file, kind, profile).map(|table| (table, Faults::default()))
            }
        }
    }

    fn new(file: &str, kind: TableKind, profile: &str) -> Self {
        Table {
            kind,
            properties: vec![
                (
                    "file",
                    Property::Text(printable(file.as_bytes()).into_owned()),
                ),
                ("kind", Property::Text(profile.to_owned())),
            ],
            columns: Vec::new(),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| match &column.data {
            ColumnData::Texts(rows) => rows.len(),
            ColumnData::Shared(rows) => rows.numbers.len(),
            ColumnData::Numbers(rows) => rows.len(),
            ColumnData::SomeNumbers(rows) | ColumnData::Hashes(rows) => rows.len(),
            ColumnData::Fractions(rows) => rows.len(),
            ColumnData::Stacks(rows) => rows.stacks.len(),
        })
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push_hashes(&mut self, name: &'static str, hashes: impl IntoIterator<Item = u64>) {
        let hashes = hashes.into_iter().map(Some).collect();
        self.push(name, ColumnData::Hashes(hashes));
    }

    fn push(&mut self, name: &'static str, data: ColumnData) {
        self.columns.push(Column { name, data });
    }

    /// Adds the column with the build id of the program, if the profile is of one program.
    fn push_build_id(&mut self, id: &str) {
        let mut ids = SharedTexts::default();
        let number = ids.texts.number(id);
        (0..self.len()).for_each(|_| ids.push_number(number));
        self.push("build_id", ColumnData::Shared(ids));
    }

    /// Adds a column that few profiles have data for.
    fn push_known(&mut self, name: &'static str, numbers: Vec<Option<u64>>) {
        if numbers.iter().any(Option::is_some) {
            self.push(name, ColumnData::SomeNumbers(numbers));
        }
    }

    /// The facts as the rows of the table.
    fn facts(&mut self) {
        let (mut names, mut values) = (SharedTexts::default(), SharedTexts::default());
        for (name, value) in self.properties.iter().filter(|(name, _)| *name != "file") {
            names.push(name);
            values.push(&value.to_string());
        }
        self.push("property", ColumnData::Shared(names));
        self.push("value", ColumnData::Shared(values));
    }

    fn push_ids(&mut self, ids: &[impl fmt::Display]) {
        if !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            self.properties.push(("build_ids", Property::List(ids)));
        }
    }
}

/// A sum as a number of 64 bits. A sum that needs more bits becomes the largest such number.
fn clamped(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
