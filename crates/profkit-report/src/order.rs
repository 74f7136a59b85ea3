//! The report of `profkit order`. docs/formats/order-json.md describes the JSON.
use crate::{grouped, plural};
use profkit_analysis::names;
use profkit_analysis::order::{OrderFile, Startup, StartupOrder, StartupText};
use profkit_object::code_symbols::CodeSymbol;
use serde::Serialize;
use std::fmt;

/// Version of the JSON.
const SCHEMA: u32 = 1;
/// The largest number of missing functions and of traces that the text lists.
const MOST: usize = 10;

/// An order, in the form in which it is reported.
#[derive(Clone, Debug, Serialize)]
pub struct OrderReport {
    schema: u32,
    linker: String,
    traces: usize,
    /// The functions in the order file.
    functions: usize,
    /// Functions of traces whose names are not known.
    nameless: usize,
    /// Functions that have the symbol of an earlier one.
    repeated: usize,
    /// The functions that the binary lacks; absent without `--binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<String>>,
    /// The text that the start of the program touches; absent without `--binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    /// The symbols, in order.
    order: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Text {
    page_size: u64,
    all: TextRow,
    traces: Vec<TextRow>,
}

#[derive(Clone, Debug, Serialize)]
struct TextRow {
    functions: usize,
    bytes: u64,
    pages_before: usize,
    pages_after: usize,
}

impl From<StartupText> for TextRow {
    fn from(text: StartupText) -> Self {
        TextRow {
            functions: text.functions,
            bytes: text.bytes,
            pages_before: text.pages_before,
            pages_after: text.pages_after,
        }
    }
}

impl OrderReport {
    /// Makes the report. `binary` has the functions of the program, and the size of a page.
    pub fn new(
        startup: &Startup,
        order: &StartupOrder,
        file: OrderFile,
        binary: Option<(&[CodeSymbol], u64)>,
    ) -> Self {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        OrderReport {
            schema: SCHEMA,
            linker: file.to_string(),
            traces: startup.traces().len(),
            functions: order.names().len(),
            nameless: order.nameless,
            repeated: order.repeated,
            missing: binary.map(|_| order.missing.iter().map(|name| text(name)).collect()),
            text: binary.map(|(symbols, page_size)| {
                let (all, traces) = order.footprints(startup, symbols, page_size);
                Text {
                    page_size,
                    all: all.into(),
                    traces: traces.into_iter().map(TextRow::from).collect(),
                }
            }),
            order: order.names().into_iter().map(text).collect(),
        }
    }
}

impl fmt::Display for OrderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = plural(self.functions as u64, "function");
        let traces = plural(self.traces as u64, "trace");
        writeln!(f, "{functions} of {traces} ordered for {}", self.linker)?;
        if let Some(text) = &self.text {
            let mut row = |what: &str, row: &TextRow| {
                let functions = plural(row.functions as u64, "function");
                let bytes = plural(row.bytes, "byte");
                let [before, after] =
                    [row.pages_before, row.pages_after].map(|pages| plural(pages as u64, "page"));
                writeln!(
                    f,
                    "{what}: {functions}, {bytes} of code, on {before} before and {after} after"
                )
            };
            row("all traces", &text.all)?;
            for (number, trace) in (1..).zip(text.traces.iter().take(MOST)) {
                row(&format!("trace {number}"), trace)?;
            }
            if text.traces.len() > MOST {
                writeln!(f, "and {} more traces", grouped(text.traces.len() - MOST))?;
            }
        }
        if self.nameless > 0 {
            let functions = plural(self.nameless as u64, "function");
            writeln!(
                f,
                "left out: {functions} of the traces, because no file has the name"
            )?;
        }
        if self.repeated > 0 {
            let functions = plural(self.repeated as u64, "function");
            writeln!(
                f,
                "left out: {functions} with the symbol of an earlier function, because a linker cannot tell them apart"
            )?;
        }
        if let Some(missing) = self.missing.as_ref().filter(|missing| !missing.is_empty()) {
            let functions = plural(missing.len() as u64, "function");
            writeln!(f, "left out: {functions} that the binary does not have:")?;
            for name in missing.iter().take(MOST) {
                writeln!(f, "  {}", names::printable(name.as_bytes()))?;
            }
            if missing.len() > MOST {
                writeln!(f, "  and {} more", grouped(missing.len() - MOST))?;
            }
        }
        Ok(())
    }
}
