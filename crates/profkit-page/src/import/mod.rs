//! Tables made profiles again: what a database or a data frame filtered or summed. [docs/formats/tables.md] has the
//! tables, and what must be in them.
//!
//! ```
//! use profkit_page::import::{TableFile, profile_of};
//!
//! let counters = TableFile::open("counters.csv", b"function,hash,index,count\nmain,7,0,90\n")?;
//! let facts = TableFile::open("profile.csv", b"property,value\ninstrumentation,IR\n")?;
//! let imported = profile_of(&[counters, facts])?;
//! assert_eq!(imported.instr().map(|profile| profile.record_count()), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [docs/formats/tables.md]: https://github.com/profkit/profkit/blob/main/docs/formats/tables.md
#[cfg(feature = "arrow")]
mod arrow;
mod branches;
mod cells;
mod csv;
mod found;
mod heap;
mod instr;
mod json;
mod rows;
mod sample;
#[cfg(test)]
mod tests;

pub use branches::{addresses_of, is_branches};
pub use cells::Cells;

use std::collections::BTreeMap;
use std::fmt;

use found::{Family, Found};
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_data::instr::{HeapSection, InstrProfile};
use profkit_data::memprof::indexed::IndexedMemProfOptions;
use profkit_data::memprof::{MemProfile, yaml};
use profkit_data::sample::{FormOptions, SampleForm, SampleProfile};
use profkit_report::merge::{indexed_losses, sample_losses};

/// A profile that was made of tables.
#[derive(Debug)]
pub struct Imported {
    /// The profile.
    pub profile: ImportedProfile,
    /// What was left out, because the table of functions does not have the function, and what was cut: a message each.
    pub notes: Vec<String>,
}

/// A profile that was made of tables, by its kind.
#[derive(Debug)]
pub enum ImportedProfile {
    /// An instrumentation profile, with the heap profile of the tables beside it, and the indexed version that fits its function hashes.
    Instr(InstrProfile, u32),
    /// A sample profile.
    Sample(SampleProfile),
    /// A heap profile, the version of its indexed profile, and how the MemProf section is written; `None` if it was no
    /// indexed profile.
    Heap(MemProfile, Option<(u32, IndexedMemProfOptions)>),
}

impl Imported {
    /// The instrumentation profile; `None` if it is another profile.
    pub fn instr(&self) -> Option<&InstrProfile> {
        match &self.profile {
            ImportedProfile::Instr(profile, _) => Some(profile),
            _ => None,
        }
    }

    /// Encodes an instrumentation profile in the indexed version that fits its function hashes, a sample profile in LLVM's
    /// extensible binary encoding, and a heap profile as YAML or in an indexed profile. Also returns what the encoding cannot hold, a message each.
    ///
    /// # Errors
    /// The errors of the writers.
    pub fn encode(&self) -> profkit_data::Result<(Vec<u8>, Vec<String>)> {
        let mut bytes = Vec::new();
        let losses = match &self.profile {
            ImportedProfile::Instr(profile, version) => {
                let options = IndexedWriteOptions::for_version(*version);
                indexed_losses(&write(profile, &options, &mut bytes)?, *version)
            }
            ImportedProfile::Sample(profile) => {
                let (form, options) = (SampleForm::ExtBinary, FormOptions::for_profile(profile));
                sample_losses(&form.write(profile, &options, &mut bytes)?, form, None)
            }
            ImportedProfile::Heap(heap, Some((version, options))) => {
                let section = HeapSection::Profile(Box::new(heap.clone()), options.clone());
                let profile = InstrProfile {
                    memprof: Some(section),
                    ..InstrProfile::default()
                };
                let indexed = IndexedWriteOptions::for_version(*version);
                indexed_losses(&write(&profile, &indexed, &mut bytes)?, *version)
            }
            ImportedProfile::Heap(heap, None) => {
                let losses = yaml::write(heap, &mut bytes)?;
                let counts = losses.counts();
                let text =
                    |(count, what)| format!("left out {count} {what}, which YAML cannot hold");
                counts.map(text).collect()
            }
        };
        Ok((bytes, losses))
    }
}

/// Makes a profile of its tables. The columns of a table tell which one it is. Tables of counters and of a heap profile
/// become one profile. The order of the rows does not matter, but
/// functions have the order of their first rows. [docs/formats/tables.md] has the tables that each kind of profile needs.
///
/// # Errors
/// If a column is missing or holds something else than its values, if the tables are of different kinds of profiles, if a
/// table is there twice or missing, or if nothing states what is counted.
///
/// [docs/formats/tables.md]: https://github.com/profkit/profkit/blob/main/docs/formats/tables.md
pub fn profile_of(tables: &[TableFile]) -> Result<Imported, ImportError> {
    let found = Found::of(tables)?;
    let mut notes = Vec::new();
    let profile = match found.family {
        Family::Instr => {
            let (mut profile, version) = instr::profile_of(&found, &mut notes)?;
            if found.has_heap {
                let (heap, options) = heap::profile_of(&found, &mut notes)?;
                let Some((_, options)) = options else {
                    return Err(found.cannot_be_a_section());
                };
                profile.memprof = Some(HeapSection::Profile(Box::new(heap), options));
            }
            ImportedProfile::Instr(profile, version)
        }
        Family::Sample => ImportedProfile::Sample(sample::profile_of(&found, &mut notes)?),
        Family::Heap => {
            let (profile, options) = heap::profile_of(&found, &mut notes)?;
            ImportedProfile::Heap(profile, options)
        }
    };
    Ok(Imported { profile, notes })
}

/// Why a table cannot be read, or is not one of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// The number of the row, from 1, without the line of names; `None` if it is not one row that is wrong.
    pub row: Option<u64>,
    /// The column; empty if it is not one column that is wrong.
    pub column: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<&'static str>,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match (self.row, self.column.as_str()) {
            (Some(row), "") => write!(f, "row {row}: ")?,
            (Some(row), column) => write!(f, "row {row}, column `{column}`: ")?,
            (None, "") => {}
            (None, column) => write!(f, "column `{column}`: ")?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ImportError {}

/// A table that was read from a file.
#[derive(Debug)]
pub struct TableFile {
    /// The name of the file in messages.
    pub name: String,
    /// The facts about the whole profile that the file states, by their names in [docs/formats/tables.md].
    ///
    /// [docs/formats/tables.md]: https://github.com/profkit/profkit/blob/main/docs/formats/tables.md
    pub facts: BTreeMap<String, String>,
    columns: Vec<(String, Cells)>,
    rows: usize,
}

/// Whether these bytes are a table: Parquet, an Arrow file, JSON, or CSV whose first line names columns of a profile's
/// tables.
pub fn is_table(data: &[u8]) -> bool {
    data.starts_with(PARQUET)
        || data.starts_with(ARROW)
        || json::is_table(data)
        || csv::is_table(data)
}

const PARQUET: &[u8] = b"PAR1";
const ARROW: &[u8] = b"ARROW1\0\0";

impl TableFile {
    /// Reads a table of any form. `name` is its name in messages.
    ///
    /// # Errors
    /// If the file is damaged, is no table, or is Parquet or Arrow and this build has not the feature `arrow`.
    pub fn open(name: &str, data: &[u8]) -> Result<Self, ImportError> {
        let read = if data.starts_with(PARQUET) || data.starts_with(ARROW) {
            Self::open_arrow(data)
        } else if json::is_table(data) {
            json::read(data)
        } else {
            csv::read(data)
        };
        let (columns, facts) = read.map_err(|fault| ImportError {
            file: name.to_owned(),
            row: fault.row,
            column: String::new(),
            message: fault.message,
            hint: fault.hint,
        })?;
        Ok(TableFile {
            name: name.to_owned(),
            facts,
            rows: columns.first().map_or(0, |(_, cells)| cells.len()),
            columns,
        })
    }

    #[cfg(feature = "arrow")]
    fn open_arrow(data: &[u8]) -> Result<Parts, Fault> {
        arrow::read(data, data.starts_with(PARQUET))
    }

    #[cfg(not(feature = "arrow"))]
    fn open_arrow(_: &[u8]) -> Result<Parts, Fault> {
        Err(Fault {
            hint: Some(
                "use a profkit that was built with the feature `arrow`, or write CSV or JSON",
            ),
            ..Fault::new("this profkit reads no Parquet and no Arrow files")
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn column(&self, name: &str) -> Option<&Cells> {
        let found = self.columns.iter().find(|(column, _)| column == name);
        found.map(|(_, cells)| cells)
    }

    fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.column(name).is_some())
    }

    fn error(&self, row: Option<usize>, column: &str, message: impl Into<String>) -> ImportError {
        ImportError {
            file: self.name.clone(),
            row: row.map(|row| row as u64 + 1),
            column: column.to_owned(),
            message: message.into(),
            hint: None,
        }
    }
}

/// Columns with their names, and facts.
type Parts = (Vec<(String, Cells)>, BTreeMap<String, String>);

/// What is wrong with the bytes of a table.
#[derive(Debug)]
struct Fault {
    row: Option<u64>,
    message: String,
    hint: Option<&'static str>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Fault {
            row: None,
            message: message.into(),
            hint: None,
        }
    }
}
