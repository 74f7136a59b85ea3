//! The output of `profkit mip show`: MIP profiles function by function, or summed up in groups.
use super::{MipForm, add_image, image};
use crate::document::write_json;
use crate::rows::{GROUP_COLUMNS, group_json, group_word};
use crate::show::text::add_groups;
use crate::{Answer, Cell, Document, Grouping, RowForm, Rows, Style, grouped, percent};
use profkit_analysis::names::{self, printable, spelled};
use profkit_analysis::ranking::{FunctionOrder, Group, GroupBy, Groups};
use profkit_data::ids::FuncHash;
use profkit_data::mip::{
    CallEdge, EntryKind, Function, FunctionId, MipProfile, Modes, ProfileVersion,
};
use profkit_data::tables::Frame;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Write};

const BLOCKS_PER_LINE: usize = 8;

/// A MIP profile, and the options for showing it function by function.
pub struct MipFunctions<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The profile.
    pub profile: &'a MipProfile,
    /// What the file is.
    pub form: MipForm,
    /// The filter that selects the functions to show.
    pub wanted: &'a dyn Fn(&Function) -> bool,
    /// Whether names are printed mangled.
    pub mangled: bool,
    /// What the functions are grouped by; `None` if each function is shown by itself.
    pub by: Option<Grouping<'a>>,
    /// The largest number of groups in rows.
    pub most: usize,
}

impl fmt::Debug for MipFunctions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MipFunctions").field(&self.path).finish()
    }
}

impl MipFunctions<'_> {
    /// Returns the source location where a function begins, as frames. The innermost frame comes first.
    fn frames(&self, id: FunctionId) -> Vec<Frame<'_>> {
        let stack = self.profile.functions[id].location;
        self.profile.tables.frames(stack).collect()
    }

    fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        let functions = self.profile.functions.entries();
        functions.filter(|(_, function)| (self.wanted)(function))
    }

    /// The groups, the sum of all groups, and its unit: calls, or runs if calls are not counted.
    fn groups(&self, by: Grouping<'_>) -> (Vec<Group>, u128, &'static str) {
        let whole = || self.functions().filter(|(_, function)| !function.is_part());
        let has_calls = whole().any(|(_, function)| function.calls > 0);
        let mut groups = Groups::default();
        let mut total = 0;
        for (id, function) in whole() {
            let sum = if has_calls {
                function.calls
            } else {
                function.called_runs
            };
            let place = self.frames(id);
            let path = place.first().and_then(|frame| frame.path.as_deref());
            let name = match (by.by, path) {
                (GroupBy::File, Some(path)) => Some(names::printable(path).into_owned()),
                _ => by.of(&function.name),
            };
            groups.add(name, 1, u64::from(function.is_covered()), sum.into());
            total += u128::from(sum);
        }
        let unit = if has_calls { "calls" } else { "runs" };
        (groups.into_sorted(FunctionOrder::Sum), total, unit)
    }

    fn add_function(&self, document: &mut Document, id: FunctionId, function: &Function) {
        document.section(spelled(&function.name, self.mangled.into()));
        if let Some(frame) = self.frames(id).first() {
            document.fact("source", place(frame));
        }
        if function.is_part() {
            document.fact("part", "of another function, and never called itself");
            return add_blocks(document, function);
        }
        let (called, raw) = (grouped(function.called_runs), grouped(function.raw_runs));
        document.fact("called", format_args!("in {called} of {raw} runs"));
        let calls = grouped(function.calls);
        match function.modes.entry() {
            // A unary counter stops at eight calls per run, so the true number may be larger.
            Some(EntryKind::Unary) if function.calls >= 8 => {
                document.fact("calls", format_args!("at least {calls}"));
            }
            Some(EntryKind::Calls | EntryKind::SampledCalls) if function.calls_at_least => {
                document.fact("calls", format_args!("at least {calls}"));
            }
            Some(EntryKind::Calls | EntryKind::SampledCalls | EntryKind::Unary) => {
                document.fact("calls", calls);
            }
            _ => {}
        }
        if function.order_sum > 0 {
            let first = function.order_min;
            let first = first.map_or(String::new(), |first| format!(", {first} at the earliest"));
            let mean = mean(function);
            document.fact("first call", format_args!("at {mean} on average{first}"));
        }
        if !function.blocks.is_empty() && function.modes.contains(Modes::BLOCK_COVERAGE) {
            add_blocks(document, function);
        }
    }

    fn caller(&self, edge: &CallEdge) -> String {
        match edge.caller {
            Some(caller) => {
                let name = spelled(&self.profile.functions[caller].name, self.mangled.into());
                format!("{name}+{:#x}: {}", edge.call_site, edge.weight)
            }
            None => format!("elsewhere: {}", edge.weight),
        }
    }

    fn json_function(&self, id: FunctionId, function: &Function, edges: &[CallEdge]) -> Value {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let blocks = function.blocks.iter();
        let blocks = blocks.map(|block| json!({ "offset": block.offset, "runs": block.runs }));
        let callers = edges.iter().map(|edge| {
            json!({
                "caller": edge.caller.map(|id| text(&self.profile.functions[id].name)),
                "call_site": edge.call_site,
                "weight": edge.weight,
            })
        });
        let frames = self.frames(id);
        let source = frames.iter().map(|frame| {
            json!({
                "function": text(frame.function),
                "file": frame.path.as_deref().map(text),
                "line": frame.line,
                "column": frame.column,
            })
        });
        let has_calls = function.modes.entry() != Some(EntryKind::Coverage);
        json!({
            "function": text(&function.name),
            "demangled": names::demangle(&function.name),
            "address": function.address,
            "address_is_relative": self.profile.section_address.is_none(),
            "size": function.size,
            "hash": FuncHash(function.signature.into()).to_string(),
            "modes": function.modes.names().collect::<Vec<_>>(),
            "raw_runs": function.raw_runs,
            "called_runs": function.called_runs,
            "calls": has_calls.then_some(function.calls),
            "calls_at_least": has_calls.then(|| function.has_more_calls()),
            "order_sum": function.order_sum,
            "order_runs": function.order_runs,
            "order_min": function.order_min,
            "blocks": blocks.collect::<Vec<_>>(),
            "callers": callers.collect::<Vec<_>>(),
            "source": source.collect::<Vec<_>>(),
        })
    }
}

/// The JSON is described by [docs/formats/mip-json.md]. Without `by` there are no rows.
///
/// [docs/formats/mip-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-json.md
impl Answer for MipFunctions<'_> {
    fn document(&self) -> Document {
        let profile = self.profile;
        let mut document = Document::default();
        document.title(self.path, self.form);
        add_image(&mut document, &profile.identity);
        document.fact("runs", grouped(profile.runs));
        let (functions, covered) = profile.function_counts();
        let share = percent(covered.into(), functions.into());
        let (functions, called) = (grouped(functions), grouped(covered));
        document.fact(
            "functions",
            match profile.runs {
                0 => functions,
                _ => format!("{functions}, {called} called ({share})"),
            },
        );
        if let Some(by) = self.by {
            let (groups, total, unit) = self.groups(by);
            let titles = ["Functions", "functions", "called", unit];
            add_groups(&mut document, &titles, &groups, by, total);
            return document;
        }
        let mut edges = profile.edges_by_callee();
        for (id, function) in self.functions() {
            self.add_function(&mut document, id, function);
            let mut label = "callers";
            for edge in edges.of(id) {
                document.fact(label, self.caller(edge));
                label = "";
            }
        }
        document
    }

    fn rows(&self, _: RowForm) -> Rows<'_> {
        let groups = self.by.map(|by| self.groups(by));
        let rows = groups.into_iter().flat_map(|(groups, total, _)| {
            let groups = groups.into_iter().take(self.most);
            groups.map(move |group| group_json(&group, total))
        });
        Rows::new(&GROUP_COLUMNS, rows)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let profile = self.profile;
        let (build_id, module_hash) = image(&profile.identity);
        let mut json = json!({
            "schema": "profkit-mip-show",
            "schema_version": 3,
            "file": self.path,
            "form": self.form.word(),
            "format_version": self.form.version().map(ProfileVersion::number),
            "build_id": build_id,
            "module_hash": module_hash,
            "runs": profile.runs,
        });
        let (name, list) = match self.by {
            Some(by) => {
                let (groups, total, _) = self.groups(by);
                json["by"] = group_word(by.by).into();
                let groups = groups.iter().map(|group| group_json(group, total));
                ("groups", groups.collect())
            }
            None => {
                let mut edges = profile.edges_by_callee();
                let functions = self.functions();
                let functions =
                    functions.map(|(id, function)| self.json_function(id, function, edges.of(id)));
                ("functions", functions.collect::<Vec<_>>())
            }
        };
        json[name] = list.into();
        write_json(out, &json)
    }
}

fn add_blocks(document: &mut Document, function: &Function) {
    let blocks = function.blocks.iter().map(|block| block.runs > 0);
    let entry = (!function.is_part()).then(|| function.is_covered());
    let blocks: Vec<bool> = entry.into_iter().chain(blocks).collect();
    if blocks.is_empty() {
        document.line("");
    }
    for (row, blocks) in blocks.chunks(BLOCKS_PER_LINE).enumerate() {
        let label = if row == 0 { "blocks" } else { "" };
        let cells = blocks.iter().map(|hot| match hot {
            true => Cell::styled(Style::Hot, " HOT "),
            false => Cell::styled(Style::Cold, " COLD"),
        });
        let label = Cell::from(format!("  {label:15} "));
        document.pieces([label].into_iter().chain(cells).collect::<Vec<_>>());
    }
}

/// The text `file:line` for a frame.
pub fn place(frame: &Frame<'_>) -> String {
    let path = frame.path.as_deref().unwrap_or(b"??");
    format!("{}:{}", printable(path), frame.line)
}

/// The mean ordinal of a function's first call in a run, with one decimal, rounded down.
fn mean(function: &Function) -> String {
    let tenths = u128::from(function.order_sum) * 10 / u128::from(function.order_runs.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}
