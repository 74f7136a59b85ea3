//! MIP profiles. This file makes the first screen, which says what the file is, how much of the program ran, and which
//! functions ran most. The modules `functions` and `covered` print a profile function by function, `info` its figures.
mod covered;
mod functions;
mod info;

pub use covered::{CoveredCounts, CoveredForm, MipCovered};
pub use functions::{MipFunctions, place};
pub use info::MipInfo;
pub use profkit_data::mip::MipForm;

use crate::rows::{RowForm, RowWriter};
use crate::show::json::SCHEMA_VERSION;
use crate::show::text::{facts, ranking_table, top_title};
use crate::{Cell, Console, Style, Table, grouped, percent};
use profkit_analysis::names;
use profkit_analysis::names::Spelling;
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder};
use profkit_data::mip::{EntryKind, Function, Identity, MipProfile, Modes, ProfileVersion};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};

/// Prints the build id or the module hash, if there is one.
fn identity_fact<W: Write>(identity: &Identity, out: &mut Console<W>) -> io::Result<()> {
    match identity {
        Identity::BuildId(id) if !id.0.is_empty() => out.fact("build id", id),
        Identity::ModuleHash(hash) => out.fact("module hash", format_args!("{hash:#010x}")),
        Identity::BuildId(_) => Ok(()),
    }
}

/// A MIP profile, and the options for showing it.
#[derive(Clone, Copy, Debug)]
pub struct MipShow<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// The profile.
    pub profile: &'a MipProfile,
    /// The version of the file.
    pub version: ProfileVersion,
    /// How names are printed.
    pub spelling: Spelling,
    /// The order of the functions.
    pub order: FunctionOrder,
    /// The largest number of functions in the list; `None` for all functions.
    pub top: Option<usize>,
}

/// The columns of functions.
const COLUMNS: [&str; 8] = [
    "name",
    "demangled",
    "called_runs",
    "raw_runs",
    "calls",
    "order_min",
    "blocks",
    "covered_blocks",
];

/// The largest number of functions in the list on the first screen.
const MOST_FUNCTIONS: usize = 10;

impl MipShow<'_> {
    fn whole(&self) -> impl Iterator<Item = &Function> {
        let functions = self.profile.functions.iter();
        functions.filter(|function| !function.is_part())
    }

    /// Whether calls are counted. Otherwise the profile says only in which runs a function was called.
    fn has_calls(&self) -> bool {
        self.whole().any(|function| function.calls > 0)
    }

    /// The numbers by which functions are sorted: calls, or runs if calls are not counted.
    fn numbers(&self, function: &Function) -> FunctionNumbers {
        let calls = if self.has_calls() {
            function.calls
        } else {
            function.called_runs
        };
        let blocks = function.blocks.iter().map(|block| block.runs);
        FunctionNumbers {
            sum: calls.into(),
            max: blocks.max().unwrap_or(0).max(function.called_runs),
            entry: function.called_runs,
        }
    }

    /// The functions that ran, sorted by `order`.
    fn sorted(&self) -> Vec<(FunctionNumbers, &Function)> {
        let with_numbers = |function| (self.numbers(function), function);
        let mut functions: Vec<_> = self.whole().map(with_numbers).collect();
        match self.order {
            FunctionOrder::Sum => functions.sort_by_key(|(numbers, _)| Reverse(numbers.sum)),
            FunctionOrder::Max => functions.sort_by_key(|(numbers, _)| Reverse(numbers.max)),
            FunctionOrder::Entry => functions.sort_by_key(|(numbers, _)| Reverse(numbers.entry)),
            FunctionOrder::Name => functions.sort_by_cached_key(|(_, function)| {
                names::spelled(&function.name, Spelling::Demangled).into_owned()
            }),
        }
        functions
    }

    /// Returns three numbers of functions: those called in all runs, in some runs, and in no run.
    fn by_runs(&self) -> [u64; 3] {
        let mut groups = [0; 3];
        for function in self.whole() {
            let [always, sometimes, never] = &mut groups;
            *match function.called_runs {
                0 => never,
                runs if runs >= self.profile.runs => always,
                _ => sometimes,
            } += 1;
        }
        groups
    }

    /// Prints text for people.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let profile = self.profile;
        out.title(self.path, MipForm::Profile(self.version))?;
        // The names of modes are written as titles in YAML, for example "Function Call Count". Here they are
        // lower-case.
        let modes: Vec<_> = profile.modes().names().collect();
        out.fact("records", modes.join(", ").to_lowercase())?;
        out.fact("size", format_args!("{} bytes", grouped(self.size)))?;
        identity_fact(&profile.identity, out)?;
        writeln!(out)?;
        out.heading("Summary")?;
        let (functions, covered) = profile.function_counts();
        let share = |part: u64, whole: u64, what: &str| {
            let share = percent(part.into(), whole.into());
            format!("{} {what} ({share})", grouped(part))
        };
        let mut rows = vec![
            ("runs", grouped(profile.runs), String::new()),
            (
                "functions",
                grouped(functions),
                share(covered, functions, "called"),
            ),
        ];
        if profile.modes().contains(Modes::BLOCK_COVERAGE) {
            let (all, ran) = self.profile.block_counts();
            rows.push(("blocks", grouped(all), share(ran, all, "run")));
        }
        if self.has_calls() {
            let calls: u128 = self
                .whole()
                .map(|function| u128::from(function.calls))
                .sum();
            let unary = |function: &Function| function.modes.entry() == Some(EntryKind::Unary);
            let note = if self.whole().any(unary) {
                "at least: a counter of this kind ends at 8 per run"
            } else {
                ""
            };
            rows.push(("calls", grouped(calls), note.to_owned()));
        }
        if !profile.edges.is_empty() {
            let edges = grouped(profile.edges.len());
            rows.push(("call edges", edges, "from sampled calls".to_owned()));
        }
        facts(out, rows)?;
        if profile.runs == 0 {
            writeln!(
                out,
                "No run was merged: `profkit mip merge -p PROFILE RAW` adds runs."
            )?;
            return out.flush();
        }
        let [always, sometimes, never] = self.by_runs();
        writeln!(out)?;
        out.heading("Hot and cold functions")?;
        let rows = [
            (Style::Hot, "hot", always, "called in all runs"),
            (Style::Warm, "warm", sometimes, "called in some runs"),
            (Style::Cold, "cold", never, "never called"),
        ];
        let rows = rows.map(|(style, name, count, remark)| {
            (Cell::styled(style, name), grouped(count), remark.to_owned())
        });
        Table::of_facts(rows).print(out)?;
        self.list(out)?;
        out.flush()
    }

    fn list<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let mut functions = self.sorted();
        functions.retain(|(numbers, _)| numbers.entry > 0);
        functions.truncate(self.top.unwrap_or(MOST_FUNCTIONS));
        if functions.is_empty() {
            return Ok(());
        }
        let (unit, by_sum) = if self.has_calls() {
            ("calls", "by calls")
        } else {
            ("runs", "by the runs that called them")
        };
        let by = match self.order {
            FunctionOrder::Sum => by_sum,
            FunctionOrder::Max => "by the runs of their most frequent block",
            FunctionOrder::Entry => "by the runs that called them",
            FunctionOrder::Name => "by name",
        };
        writeln!(out)?;
        out.heading(top_title(functions.len(), "function", by))?;
        let total = self
            .whole()
            .map(|function| self.numbers(function).sum)
            .sum();
        let rows = functions.into_iter().map(|(numbers, function)| {
            let name = names::spelled(&function.name, self.spelling);
            (numbers, name.into_owned())
        });
        let titles = [unit, "block runs", "runs"];
        ranking_table(&titles, self.order, rows.collect(), total, out)
    }

    /// Prints one JSON object.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let (functions, covered) = self.profile.function_counts();
        let (blocks, covered_blocks) = self.profile.block_counts();
        let [always, sometimes, never] = self.by_runs();
        let (build_id, module_hash) = match &self.profile.identity {
            Identity::BuildId(id) if !id.0.is_empty() => (Some(id.to_string()), None),
            Identity::BuildId(_) => (None, None),
            Identity::ModuleHash(hash) => (None, Some(*hash)),
        };
        let mut file = json!({
            "path": self.path,
            "size": self.size,
            "kind": "mip",
            "version": self.version.number(),
            "modes": self.profile.modes().names().collect::<Vec<_>>(),
        });
        if let Some(members) = file.as_object_mut() {
            members.extend(build_id.map(|id| ("build_id".to_owned(), id.into())));
            members.extend(module_hash.map(|hash| ("module_hash".to_owned(), hash.into())));
        }
        let top = self
            .sorted()
            .into_iter()
            .filter(|(numbers, _)| numbers.entry > 0);
        let top = top.take(self.top.unwrap_or(MOST_FUNCTIONS));
        let report = json!({
            "schema": "profkit-show",
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "summary": {
                "runs": self.profile.runs,
                "functions": functions,
                "covered_functions": covered,
                "blocks": blocks,
                "covered_blocks": covered_blocks,
                "call_edges": self.profile.edges.len(),
            },
            "called": { "in_all_runs": always, "in_some_runs": sometimes, "never": never },
            "hot": top.map(|(_, function)| self.row(function)).collect::<Vec<_>>(),
            "errors": [],
            "error_count": 0,
        });
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        out.flush()
    }

    /// Prints the functions as rows.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn rows(&self, form: RowForm, out: impl Write) -> io::Result<()> {
        let mut rows = RowWriter::new(out, form, &COLUMNS);
        let functions = self.sorted().into_iter().map(|(_, function)| function);
        for function in functions.take(self.top.unwrap_or(usize::MAX)) {
            rows.row(&self.row(function))?;
        }
        rows.end()
    }

    fn row(&self, function: &Function) -> Value {
        let covered = function.blocks.iter().filter(|block| block.runs > 0);
        let mut row = json!({
            "name": names::printable(&function.name),
            "called_runs": function.called_runs,
            "raw_runs": function.raw_runs,
            "blocks": function.blocks.len(),
            "covered_blocks": covered.count(),
        });
        if let Some(members) = row.as_object_mut() {
            let demangled = match self.spelling {
                Spelling::Mangled => None,
                _ => names::demangle(&function.name),
            };
            members.extend(demangled.map(|name| ("demangled".to_owned(), name.into())));
            if function.modes.entry() != Some(EntryKind::Coverage) {
                members.insert("calls".to_owned(), function.calls.into());
            }
            let first = function.order_min;
            members.extend(first.map(|first| ("order_min".to_owned(), first.into())));
        }
        row
    }
}
