//! The functions of a recording: the hottest ones, their callers, and flame graphs.
use crate::flame::print_folded_graph;
use crate::flame_graph::{FlameBuilder, FlameGraph, Temperature};
use crate::flame_svg::{self, Labels};
use crate::{Cell, Document, Style, Table, grouped, numbered, percent, plural};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::selection::Selection;
use profkit_data::{path_text, printable};
use profkit_profgen::stacks::{EventStacks, FunctionStacks, NamesFrom, StackBinary};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// The largest number of binaries in the notes about missing names.
const MOST_NOTES: usize = 5;

/// Which functions of a recording are shown, and how.
#[derive(Clone, Debug)]
pub struct FunctionChoice {
    /// The functions whose callers and callees are shown; `None` for the hottest functions.
    pub selection: Option<Selection>,
    /// How names are spelled.
    pub spelling: Spelling,
    /// The largest number of functions.
    pub top: usize,
}

/// The name of a binary without its folder.
pub(super) fn short_name(binary: &StackBinary) -> String {
    // The name of the kernel is followed by the symbol from which its places count.
    let kernel = binary.path.split_inclusive(|&byte| byte == b']').next();
    let kernel = kernel.filter(|name| name.starts_with(b"[kernel"));
    let name = binary.path.rsplit(|&byte| byte == b'/').next();
    printable(kernel.or(name).unwrap_or(&binary.path)).into_owned()
}

/// Returns the name of a function as people read it. Places without a symbol are named after their binary, in brackets.
pub fn recorded_name(stacks: &FunctionStacks, function: usize, spelling: Spelling) -> String {
    let Some(function) = stacks.functions.get(function) else {
        return String::new();
    };
    let binary = function.binary.and_then(|index| stacks.binaries.get(index));
    match (&function.symbol, binary) {
        (Some(symbol), _) => names::spelled(symbol, spelling).into_owned(),
        (None, Some(binary)) => format!("[{}]", short_name(binary).trim_matches(['[', ']'])),
        (None, None) => "[no file]".to_owned(),
    }
}

/// Makes the flame graph of an event: callers below callees, as wide as their samples.
pub fn graph_of_recording(
    stacks: &FunctionStacks,
    event: &EventStacks,
    spelling: Spelling,
) -> FlameGraph {
    let names: Vec<String> = (0..stacks.functions.len())
        .map(|function| recorded_name(stacks, function, spelling))
        .collect();
    let mut builder = FlameBuilder::new();
    for (stack, count) in &event.stacks {
        let functions = stack.iter().rev().filter_map(|&id| stacks.function_of(id));
        let stack = functions.filter_map(|function| names.get(function));
        builder.add(stack.map(String::as_str), *count, Temperature::Warm);
    }
    builder.layout()
}

/// Draws the flame graph of the event with the most samples as SVG; `None` without samples.
pub fn flame_graph_of_recording(
    stacks: &FunctionStacks,
    file: &str,
    spelling: Spelling,
) -> Option<String> {
    let event = stacks.main_event()?;
    let graph = graph_of_recording(stacks, event, spelling);
    let labels = Labels {
        title: &format!(
            "Samples of {file} (event {})",
            printable(event.event.as_bytes())
        ),
        subtitle: if event.with_chain > 0 {
            "A function stands on its callers. Hover over a function for its numbers."
        } else {
            "The recording has no call chains: each function stands alone. Hover over a function for its numbers."
        },
        unit: "samples",
        by_temperature: false,
    };
    (graph.total() > 0).then(|| flame_svg::draw(&graph, &labels))
}

/// Prints one line per call stack of the event with the most samples: the functions, outermost first, and the number of
/// samples.
pub fn print_folded_recording(
    stacks: &FunctionStacks,
    spelling: Spelling,
    out: &mut impl Write,
) -> io::Result<()> {
    match stacks.main_event() {
        Some(event) => print_folded_graph(&graph_of_recording(stacks, event, spelling), out),
        None => Ok(()),
    }
}

/// Returns a line for each binary whose functions have no names although samples are in it, with what to do.
pub fn unnamed_notes(stacks: &FunctionStacks) -> Vec<String> {
    let all: u64 = stacks.events.iter().map(|event| event.samples).sum();
    let mut list = Vec::new();
    let unnamed = stacks.binaries.iter().filter(|binary| binary.unnamed > 0);
    let mut rest = (0u64, 0u64);
    for (index, binary) in unnamed.enumerate() {
        if index >= MOST_NOTES {
            rest = (rest.0 + 1, rest.1 + binary.unnamed);
            continue;
        }
        let id = binary.build_id.as_ref();
        let id = id.map_or_else(String::new, |id| format!(" (build id {id})"));
        let path = |path: &Path| path_text(path);
        let why = match &binary.names {
            NamesFrom::File(_) | NamesFrom::RunningKernel => {
                "no symbol covers these addresses".to_owned()
            }
            NamesFrom::NoSymbols(file) => format!(
                "{} has no symbols of functions: give the program as it was before strip, or its debug file",
                path(file)
            ),
            NamesFrom::OtherBuild(file) => format!(
                "{} has this name but another build id{id}: give the binary that ran",
                path(file)
            ),
            NamesFrom::Unreadable(file, reason) => format!("{}: {reason}", path(file)),
            _ if binary.path.starts_with(b"[vdso]") => {
                "the kernel's code in each process has no file".to_owned()
            }
            _ => format!("give the binary{id} with --binaries FILE or FOLDER"),
        };
        list.push(format!(
            "{} ({}) in {} without a name: {why}",
            plural(binary.unnamed, "sample"),
            percent(binary.unnamed.into(), all.into()),
            printable(&binary.path),
        ));
    }
    if rest.0 > 0 {
        list.push(format!(
            "{} ({}) in {} without a name",
            plural(rest.1, "sample"),
            percent(rest.1.into(), all.into()),
            numbered(rest.0, "more {binary|binaries}"),
        ));
    }
    let shortened: u64 = stacks.events.iter().map(|event| event.shortened).sum();
    if shortened > 0 {
        list.push(format!(
            "the stacks of {} ({}) were cut at their outer end, because all different stacks did not fit into the memory",
            plural(shortened, "sample"),
            percent(shortened.into(), all.into()),
        ));
    }
    list
}

impl FunctionChoice {
    fn selected(&self, stacks: &FunctionStacks, function: usize) -> bool {
        self.selection.as_ref().is_none_or(|selection| {
            let function = stacks.functions.get(function);
            let symbol = function.and_then(|function| function.symbol.as_deref());
            symbol.is_some_and(|symbol| selection.selects(symbol))
        })
    }

    /// Adds the functions of each event to a document.
    pub(super) fn add_to(&self, stacks: &FunctionStacks, document: &mut Document) {
        for event in &stacks.events {
            self.add_event(stacks, event, document);
        }
        if self.selection.is_none() {
            for note in unnamed_notes(stacks) {
                document.wrapped("", format_args!("{note}."));
            }
        }
    }

    fn add_event(&self, stacks: &FunctionStacks, event: &EventStacks, document: &mut Document) {
        let sums = stacks.by_samples(event);
        let shown = sums
            .iter()
            .filter(|sum| self.selected(stacks, sum.function));
        let shown: Vec<_> = shown.take(self.top).collect();
        if shown.is_empty() {
            return;
        }
        let has_callers = event.with_chain > 0;
        let mut table = Table::new([
            ">samples",
            ">share",
            "<?",
            if has_callers { ">with callees" } else { ">?" },
            if has_callers { ">share" } else { ">?" },
            "<function",
            "<binary?",
        ]);
        let share = |part: u64| percent(part.into(), event.samples.into());
        for sum in &shown {
            let function = stacks.functions.get(sum.function);
            let binary = function.and_then(|function| function.binary);
            let binary = binary.and_then(|index| stacks.binaries.get(index));
            let total = |text: String| if has_callers { text } else { String::new() };
            table.row([
                sum.own.into(),
                share(sum.own).into(),
                Cell::bar(Style::Bar, sum.own, event.samples),
                total(grouped(sum.total)).into(),
                total(share(sum.total)).into(),
                recorded_name(stacks, sum.function, self.spelling).into(),
                binary.map_or_else(String::new, short_name).into(),
            ]);
        }
        let name = printable(event.event.as_bytes());
        document.section(format_args!(
            "Hottest functions (event {name}, {})",
            plural(event.samples, "sample")
        ));
        document.table(table);
        if self.selection.is_some() {
            for sum in shown {
                self.add_neighbours(stacks, event, sum.function, document);
            }
        }
    }

    /// Adds who called a function, and what it called.
    fn add_neighbours(
        &self,
        stacks: &FunctionStacks,
        event: &EventStacks,
        function: usize,
        document: &mut Document,
    ) {
        let name = recorded_name(stacks, function, self.spelling);
        let [callers, callees] = stacks.neighbours(event, function);
        for (title, list) in [("Callers of", callers), ("Called by", callees)] {
            if list.is_empty() {
                continue;
            }
            let mut table = Table::new([">samples", ">share", "<?", "<function"]);
            for &(other, count) in list.iter().take(self.top) {
                table.row([
                    count.into(),
                    percent(count.into(), event.samples.into()).into(),
                    Cell::bar(Style::Bar, count, event.samples),
                    recorded_name(stacks, other, self.spelling).into(),
                ]);
            }
            document.section(format_args!("{title} {name}"));
            document.table(table);
        }
    }

    /// Returns a row for each function of each event.
    pub(super) fn rows(&self, stacks: &FunctionStacks) -> Vec<Value> {
        let mut rows = Vec::new();
        for event in &stacks.events {
            let sums = stacks.by_samples(event);
            let sums = sums
                .iter()
                .filter(|sum| self.selected(stacks, sum.function));
            for sum in sums.take(self.top) {
                let Some(function) = stacks.functions.get(sum.function) else {
                    continue;
                };
                let binary = function.binary.and_then(|index| stacks.binaries.get(index));
                let neighbours = self.selection.as_ref().map(|_| {
                    stacks.neighbours(event, sum.function).map(|list| {
                        let name = |other| recorded_name(stacks, other, Spelling::Demangled);
                        let list = list.into_iter();
                        list.map(|(other, samples)| {
                            json!({ "demangled": name(other), "samples": samples })
                        })
                        .collect::<Vec<_>>()
                    })
                });
                let mut row = json!({
                    "event": printable(event.event.as_bytes()),
                    "name": function.symbol.as_deref().map(printable),
                    "demangled": recorded_name(stacks, sum.function, Spelling::Demangled),
                    "binary": binary.map(|binary| printable(&binary.path).into_owned()),
                    "build_id": binary.and_then(|binary| binary.build_id.as_ref()).map(ToString::to_string),
                    "samples": sum.own,
                    "samples_with_callees": sum.total,
                });
                if let (Some([callers, callees]), Some(row)) = (neighbours, row.as_object_mut()) {
                    row.insert("callers".to_owned(), callers.into());
                    row.insert("callees".to_owned(), callees.into());
                }
                rows.push(row);
            }
        }
        rows
    }
}
