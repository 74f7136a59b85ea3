//! MIP profiles. This file makes the first screen, which says what the file is, how much of the program ran, and which
//! functions ran most. The modules `functions` and `covered` print a profile function by function, `lines` by source
//! line, `info` its figures.
mod covered;
mod functions;
mod info;
mod lines;
pub mod proposal;

pub use covered::{CoveredCounts, CoveredForm, MipCovered};
pub use functions::{MipFunctions, place};
pub use info::MipInfo;
pub use lines::{lcov, lines_summary, lines_text};
pub use profkit_data::mip::MipForm;

use crate::document::write_json;
use crate::show::json::{JsonNames, SCHEMA_VERSION, heat_json, with, without_nulls};
use crate::show::text::{hot_and_cold, ranking_table, top_title};
use crate::{Answer, Document, RowForm, Rows, grouped, percent, plural};
use profkit_analysis::mip_numbers::MipNumbers;
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder};
use profkit_data::mip::{EntryKind, Function, Identity, MipProfile, Modes, ProfileVersion};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};

/// The build id and the module hash; each is `None` if there is none.
fn image(identity: &Identity) -> (Option<String>, Option<u32>) {
    match identity {
        Identity::BuildId(id) if !id.0.is_empty() => (Some(id.to_string()), None),
        Identity::BuildId(_) => (None, None),
        Identity::ModuleHash(hash) => (None, Some(*hash)),
    }
}

fn add_image(document: &mut Document, identity: &Identity) {
    let (build_id, module_hash) = image(identity);
    build_id
        .into_iter()
        .for_each(|id| document.fact("build id", id));
    if let Some(hash) = module_hash {
        document.fact("module hash", format_args!("{hash:#010x}"));
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

const COLUMNS: [&str; 9] = [
    "function",
    "demangled",
    "called_runs",
    "raw_runs",
    "calls",
    "calls_at_least",
    "order_min",
    "blocks",
    "covered_blocks",
];

const MOST_FUNCTIONS: usize = 10;

impl MipShow<'_> {
    fn whole(&self) -> impl Iterator<Item = &Function> {
        let functions = self.profile.functions.iter();
        functions.filter(|function| !function.is_part())
    }

    /// The functions that ran, sorted by `order`.
    fn sorted(&self, all: &MipNumbers) -> Vec<(FunctionNumbers, &Function)> {
        let with_numbers = |function| (all.numbers(function), function);
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

    fn add_list(&self, document: &mut Document, all: &MipNumbers) {
        let mut functions = self.sorted(all);
        functions.retain(|(numbers, _)| numbers.entry > 0);
        functions.truncate(self.top.unwrap_or(MOST_FUNCTIONS));
        if functions.is_empty() {
            return;
        }
        let (unit, by_sum) = if all.has_calls {
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
        document.section(top_title(functions.len(), "function", by));
        let rows = functions.into_iter().map(|(numbers, function)| {
            let name = names::spelled(&function.name, self.spelling);
            (numbers, name.into_owned())
        });
        let titles = [unit, "block runs", "runs"];
        let rows = rows.collect();
        document.table(ranking_table(&titles, self.order, rows, all.total, None));
    }

    /// A function in the list of those that were called most.
    fn hot(&self, function: &Function, all: &MipNumbers) -> Value {
        let more = json!({
            "share": profkit_data::share(all.count(function), all.total),
            "heat": all.heat(function).map(|heat| heat.to_string()),
        });
        with(self.row(function, all), more)
    }

    fn row(&self, function: &Function, all: &MipNumbers) -> Value {
        let covered = function.blocks.iter().filter(|block| block.runs > 0);
        let (calls, at_least) = all.calls(function).unzip();
        let spelling = match self.spelling {
            Spelling::Mangled => Spelling::Mangled,
            _ => Spelling::Demangled,
        };
        with(
            JsonNames(spelling).named(&function.name),
            json!({
                "called_runs": function.called_runs,
                "raw_runs": function.raw_runs,
                "blocks": function.blocks.len(),
                "covered_blocks": covered.count(),
                "calls": calls,
                "calls_at_least": at_least,
                "order_min": function.order_min,
            }),
        )
    }
}

impl Answer for MipShow<'_> {
    fn document(&self) -> Document {
        let profile = self.profile;
        let mut document = Document::default();
        document.title(self.path, MipForm::Profile(self.version));
        // The names of modes are written as titles in YAML, for example "Function Call Count". Here they are
        // lower-case.
        let modes: Vec<_> = profile.modes().names().collect();
        document.fact("records", modes.join(", ").to_lowercase());
        document.fact("size", format_args!("{} bytes", grouped(self.size)));
        add_image(&mut document, &profile.identity);
        document.section("Summary");
        let (functions, covered) = profile.function_counts();
        let share = |part: u64, whole: u64, what: &str| {
            let share = percent(part.into(), whole.into());
            format!("{} {what} ({share})", grouped(part))
        };
        let called = share(covered, functions, "called");
        let mut rows = vec![
            ("runs", u128::from(profile.runs), String::new()),
            ("functions", functions.into(), called),
        ];
        if profile.modes().contains(Modes::BLOCK_COVERAGE) {
            let (all, ran) = self.profile.block_counts();
            rows.push(("blocks", all.into(), share(ran, all, "run")));
        }
        let all = MipNumbers::of(profile);
        if all.has_calls {
            let unary = |function: &Function| function.modes.entry() == Some(EntryKind::Unary);
            let bounds = self.whole().filter(|function| function.calls_at_least);
            let note = match bounds.count() {
                _ if self.whole().any(unary) => {
                    "at least: a counter of this kind ends at 8 per run".to_owned()
                }
                0 => String::new(),
                count => format!(
                    "at least: the counters of {} were too small",
                    plural(count as u64, "function")
                ),
            };
            rows.push(("calls", all.total, note));
        }
        if !profile.edges.is_empty() {
            let edges = profile.edges.len() as u128;
            rows.push(("call edges", edges, "from sampled calls".to_owned()));
        }
        document.facts(rows);
        if profile.runs == 0 {
            document.line("No run was merged: `profkit mip merge -p PROFILE RAW` adds runs.");
            return document;
        }
        let [always, sometimes, never] = self.by_runs();
        document.section("Functions by runs");
        document.facts([
            ("called in all runs", always, ""),
            ("called in some runs", sometimes, ""),
            ("never called", never, ""),
        ]);
        if let Some(heat) = all.heat {
            let words = ["functions", "calls", "number of calls"];
            hot_and_cold(&mut document, words, &all.shares, heat);
        }
        self.add_list(&mut document, &all);
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (functions, covered) = self.profile.function_counts();
        let (blocks, covered_blocks) = self.profile.block_counts();
        let [always, sometimes, never] = self.by_runs();
        let (build_id, module_hash) = image(&self.profile.identity);
        let file = without_nulls(json!({
            "path": self.path,
            "size": self.size,
            "kind": "mip",
            "version": self.version.number(),
            "modes": self.profile.modes().names().collect::<Vec<_>>(),
            "build_id": build_id,
            "module_hash": module_hash,
        }));
        let all = MipNumbers::of(self.profile);
        let top = self
            .sorted(&all)
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
            "heat": all.heat.map(heat_json),
            "hot": top.map(|(_, function)| self.hot(function, &all)).collect::<Vec<_>>(),
            "errors": [],
            "error_count": 0,
        });
        write_json(out, &report)
    }

    fn rows(&self, _: RowForm) -> Rows<'_> {
        let all = MipNumbers::of(self.profile);
        let functions = self.sorted(&all).into_iter().map(|(_, function)| function);
        let functions = functions.take(self.top.unwrap_or(usize::MAX));
        Rows::new(
            &COLUMNS,
            functions.map(move |function| self.row(function, &all)),
        )
    }
}
