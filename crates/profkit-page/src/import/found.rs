//! Which tables the files are, and what they state about their profile.
use super::rows::{required_text, text};
use super::{ImportError, TableFile};
use crate::export::tables::{TABLES_VERSION, TableKind};
use std::collections::BTreeMap;
use std::fmt;

/// The kind of profile that a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Instr,
    Sample,
    Heap,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Instr => "an instrumentation profile",
            Family::Sample => "a sample profile",
            Family::Heap => "a heap profile",
        })
    }
}

/// The columns by which a table is recognised. The first that fits counts: later ones may have fewer columns.
const TABLES: [(Option<Family>, TableKind, &[&str]); 13] = {
    use Family::{Heap, Instr, Sample};
    use TableKind as T;
    [
        (None, T::Profile, &["property", "value"]),
        (Some(Instr), T::Counters, &["function", "index", "count"]),
        (Some(Instr), T::Values, &["function", "site", "value"]),
        (Some(Instr), T::Traces, &["function", "trace", "position"]),
        (Some(Instr), T::Functions, &["function", "hash", "counters"]),
        (Some(Sample), T::Lines, &["function", "line", "samples"]),
        (
            Some(Sample),
            T::Values,
            &["function", "line", "target", "count"],
        ),
        (Some(Sample), T::Inlined, &["inlined", "header_total"]),
        (Some(Sample), T::Functions, &["header_total"]),
        (Some(Sample), T::Symbols, &["symbol"]),
        (Some(Heap), T::Records, &["stack_id", "guid", "kind"]),
        (Some(Heap), T::Frames, &["stack_id", "position", "guid"]),
        (
            Some(Heap),
            T::Contexts,
            &["stack_id", "bytes", "allocations"],
        ),
    ]
};

/// The tables of one profile.
pub(super) struct Found<'t> {
    pub(super) family: Family,
    /// Whether tables of a heap profile are beside those of an instrumentation profile: an indexed profile holds both.
    pub(super) has_heap: bool,
    pub(super) facts: Facts<'t>,
    tables: Vec<(TableKind, &'t TableFile)>,
    first: &'t str,
}

impl<'t> Found<'t> {
    pub(super) fn of(tables: &'t [TableFile]) -> Result<Self, ImportError> {
        let mut list: Vec<(TableKind, &TableFile)> = Vec::new();
        let mut family: Option<(Family, &TableFile)> = None;
        let mut has_heap = false;
        for table in tables {
            if let Some(version) = table.facts.get("schema_version") {
                check_version(table, version)?;
            }
            let (own, kind) = kind_of(table)?;
            let mut same = list.iter().filter(|(one, _)| *one == kind);
            if let Some((_, first)) = same.find(|(_, first)| !are_facts_of_both(first, table)) {
                let message = format!("this is a second table of {kind}, after {}", first.name);
                return Err(ImportError {
                    hint: Some(
                        "add rows of one kind up in the engine, and write them into one file",
                    ),
                    ..table.error(None, "", message)
                });
            }
            match (own, family) {
                (Some(Family::Heap), Some((Family::Instr, _))) => has_heap = true,
                (Some(Family::Instr), Some((Family::Heap, _))) => {
                    has_heap = true;
                    family = Some((Family::Instr, table));
                }
                (Some(own), Some((family, first))) if own != family => {
                    let message = format!(
                        "this is a table of {own}, but {} is one of {family}",
                        first.name
                    );
                    return Err(ImportError {
                        hint: Some("make a profile of each, and add them up with `profkit merge`"),
                        ..table.error(None, "", message)
                    });
                }
                (Some(own), None) => family = Some((own, table)),
                _ => {}
            }
            list.push((kind, table));
        }
        let facts = list.iter().filter(|(kind, _)| *kind == TableKind::Profile);
        let mut facts: Vec<&TableFile> = facts.map(|&(_, table)| table).collect();
        facts.sort_by_key(|table| property(table, "kind") == Some("heap"));
        let facts = Facts::of(tables, &facts, has_heap)?;
        let first = tables.first().map_or("", |table| &table.name);
        // Facts alone are no profile; the message is that of the most frequent kind.
        let family = match (family, facts.get("kind")) {
            (Some((family, _)), _) => family,
            (None, Some("sample")) => Family::Sample,
            (None, Some("heap")) => Family::Heap,
            _ => Family::Instr,
        };
        Ok(Found {
            family,
            has_heap,
            facts,
            tables: list,
            first,
        })
    }

    pub(super) fn get(&self, kind: TableKind) -> Option<&'t TableFile> {
        let mut tables = self.tables.iter();
        tables.find_map(|&(one, table)| (one == kind).then_some(table))
    }

    /// The error of a heap profile that no indexed profile can hold.
    pub(super) fn cannot_be_a_section(&self) -> ImportError {
        let message = "a heap profile that was YAML, or has contexts without `total_lifetime_access_density`, does not fit into a file with counters: compilers would take long-lived contexts for cold";
        let contexts = self.get(TableKind::Contexts);
        ImportError {
            file: contexts.map_or(self.first, |table| &table.name).to_owned(),
            row: None,
            column: String::new(),
            message: message.to_owned(),
            hint: Some(
                "make a profile of each: `profkit convert --to memprof-yaml` writes the heap profile",
            ),
        }
    }

    /// A table without which there is no profile.
    pub(super) fn required(
        &self,
        kind: TableKind,
        columns: &str,
    ) -> Result<&'t TableFile, ImportError> {
        let hint = match kind {
            TableKind::Counters => "`profkit export --table counters` writes one",
            TableKind::Lines => "`profkit export --table lines` writes one",
            TableKind::Frames => "`profkit export --table frames` writes one",
            _ => "`profkit export --table contexts` writes one",
        };
        self.get(kind).ok_or_else(|| ImportError {
            file: self.first.to_owned(),
            row: None,
            column: String::new(),
            message: format!(
                "there is no table of {kind} among the tables, with the columns {columns}"
            ),
            hint: Some(hint),
        })
    }
}

/// What a table of facts states.
fn property<'t>(table: &'t TableFile, name: &str) -> Option<&'t str> {
    let is_it =
        |row: &usize| matches!(text(table, "property", *row), Ok(Some(found)) if found == name);
    let row = (0..table.len()).find(is_it)?;
    text(table, "value", row).ok().flatten()
}

/// Whether these are the facts of an instrumentation profile and those of a heap profile.
fn are_facts_of_both(one: &TableFile, other: &TableFile) -> bool {
    let kinds = [one, other].map(|table| property(table, "kind"));
    matches!(
        kinds,
        [Some("instrumentation"), Some("heap")] | [Some("heap"), Some("instrumentation")]
    )
}

fn check_version(table: &TableFile, version: &str) -> Result<(), ImportError> {
    if version
        .parse()
        .is_ok_and(|version: u32| version <= TABLES_VERSION)
    {
        return Ok(());
    }
    let version = profkit_data::printable(version.as_bytes());
    let message = format!(
        "the table has the schema version {version}, and this profkit reads versions up to {TABLES_VERSION}"
    );
    Err(ImportError {
        hint: Some("use a newer profkit"),
        ..table.error(None, "", message)
    })
}

fn kind_of(table: &TableFile) -> Result<(Option<Family>, TableKind), ImportError> {
    if let Some("mip") = table.facts.get("kind").map(String::as_str) {
        return Err(table.error(
            None,
            "",
            "tables of MIP profiles do not become profiles again: they lack the control flow of functions",
        ));
    }
    // A JSON document without rows has no columns.
    let stated = |name: &str| table.facts.get(name).filter(|_| table.columns.is_empty());
    let is_stated = |family: Option<Family>, kind: TableKind| {
        let of = match family {
            Some(Family::Instr) => "instrumentation",
            Some(Family::Sample) => "sample",
            Some(Family::Heap) => "heap",
            None => return false,
        };
        stated("kind").is_some_and(|it| it == of)
            && stated("table").is_some_and(|it| *it == kind.to_string())
    };
    let mut known = TABLES.into_iter();
    let found = known.find(|&(family, kind, columns)| {
        is_stated(family, kind) || !columns.is_empty() && table.has(columns)
    });
    found.map(|(family, kind, _)| (family, kind)).ok_or_else(|| {
        let names = table.columns.iter().map(|(name, _)| name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let message = format!("the columns {names} are not those of a table of a profile");
        ImportError {
            hint: Some(
                "counters have `function`, `hash`, `index`, `count`; lines of samples `function`, `line`, `samples`; contexts of heap profiles `stack_id`, `bytes`, `allocations`; docs/formats/tables.md lists all",
            ),
            ..table.error(None, "", message)
        }
    })
}

/// The facts of a table of facts, or of the files of other tables.
pub(super) struct Facts<'t> {
    stated: BTreeMap<String, String>,
    source: Option<&'t TableFile>,
    first: &'t str,
}

impl<'t> Facts<'t> {
    /// Of several tables of facts the first counts. What a table of facts of a profile with counters does not state about
    /// the heap profile beside them, other files may.
    fn of(
        tables: &'t [TableFile],
        facts: &[&'t TableFile],
        has_heap: bool,
    ) -> Result<Self, ImportError> {
        let mut stated: BTreeMap<String, String> = BTreeMap::new();
        for table in facts {
            let mut own: BTreeMap<String, String> = BTreeMap::new();
            for row in 0..table.len() {
                let property = required_text(table, "property", row)?.to_owned();
                let value = text(table, "value", row)?.unwrap_or_default().to_owned();
                own.insert(property, value);
            }
            for (name, value) in own {
                stated.entry(name).or_insert(value);
            }
        }
        if facts.is_empty() || has_heap {
            for (name, value) in tables.iter().flat_map(|table| &table.facts) {
                stated.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let source = facts.first().copied();
        let source = source.or_else(|| tables.iter().find(|table| !table.facts.is_empty()));
        Ok(Facts {
            stated,
            source,
            first: tables.first().map_or("", |table| &table.name),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.stated.get(name).map(String::as_str)
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ImportError> {
        self.get(name).ok_or_else(|| ImportError {
            file: self.first.to_owned(),
            row: None,
            column: String::new(),
            message: format!(
                "nothing says what is counted (`{name}`): engines drop the facts that a file states about its profile"
            ),
            hint: Some("add the table that `profkit export --table profile` writes"),
        })
    }

    pub(super) fn wrong(&self, name: &str, value: &str) -> ImportError {
        let value = profkit_data::printable(value.as_bytes());
        ImportError {
            file: self
                .source
                .map_or(self.first, |table| &table.name)
                .to_owned(),
            row: None,
            column: String::new(),
            message: format!("the fact `{name}` is `{value}`, which no profile has"),
            hint: None,
        }
    }
}
