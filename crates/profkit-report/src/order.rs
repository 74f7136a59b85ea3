//! The reports of `profkit order` and `profkit mip order`. [docs/formats/order-json.md] describes the JSON of `profkit
//! order`.
//!
//! [docs/formats/order-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/order-json.md
use crate::{grouped, plural};
use profkit_analysis::names;
use profkit_analysis::order::{
    Footprint, Names, OrderFile, Startup, StartupInput, StartupOrder, StartupText, footprint,
    names as symbols_of,
};
use profkit_data::mip::{FunctionId, MipProfile, Modes};
use profkit_object::code_symbols::CodeSymbol;
use serde::Serialize;
use std::fmt;

/// An order of functions that can be written as an order file and reported. [`Display`](fmt::Display) writes the report
/// for people.
pub trait Order: fmt::Display {
    /// The order file.
    fn file(&self) -> Vec<u8>;

    /// The report as JSON. `alone` is true if no order file is written; then the JSON has to contain the order.
    fn json(&self, alone: bool) -> String;
}

/// Returns what is wrong with a file of traces, as messages for people.
pub fn warnings(added: &StartupInput) -> Vec<String> {
    let mut warnings: Vec<String> = added.damage.iter().map(ToString::to_string).collect();
    for (line, text) in &added.foreign {
        let text: String = String::from_utf8_lossy(text).chars().take(60).collect();
        warnings.push(format!(
            "line {line} left out: found {text:?}, expected a symbol name"
        ));
    }
    if let more @ 1.. = (added.foreign_lines - added.foreign.len()) as u64 {
        warnings.push(format!("{} left out", plural(more, "more line")));
    }
    warnings
}

/// Version of the JSON.
const SCHEMA_VERSION: u32 = 1;
/// The largest number of missing functions, and of traces, that the text lists.
const MOST: usize = 10;

/// An order, in the form in which it is reported.
#[derive(Clone, Debug, Serialize)]
pub struct OrderReport {
    schema: &'static str,
    schema_version: u32,
    linker: String,
    traces: usize,
    /// The number of functions in the order file.
    functions: usize,
    /// The number of functions in traces whose names are not known.
    nameless: usize,
    /// The number of functions that were left out because an earlier function has the same symbol.
    repeated: usize,
    /// The functions of the order that the binary does not have. `None` without `--binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<String>>,
    /// How much machine code the start of the program touches. `None` without `--binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    /// The symbols, in order.
    order: Vec<String>,
    #[serde(skip)]
    contents: Vec<u8>,
}

impl Order for OrderReport {
    fn file(&self) -> Vec<u8> {
        self.contents.clone()
    }

    fn json(&self, _: bool) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
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
    /// Makes the report. `binary` has the functions of the program, and the size of a memory page.
    pub fn new(
        startup: &Startup,
        order: &StartupOrder,
        file: OrderFile,
        binary: Option<(&[CodeSymbol], u64)>,
    ) -> Self {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        OrderReport {
            schema: "profkit-order",
            schema_version: SCHEMA_VERSION,
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
            contents: file.write(&order.names()),
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

/// The order of the functions of a MIP profile, in the form in which it is reported.
#[derive(Clone, Debug)]
pub struct MipOrderReport<'p> {
    profile: &'p MipProfile,
    file: OrderFile,
    names: Names<'p>,
    touched: Footprint,
    page_size: u64,
}

impl<'p> MipOrderReport<'p> {
    /// Makes the report.
    pub fn new(
        profile: &'p MipProfile,
        order: &[FunctionId],
        file: OrderFile,
        page_size: u64,
    ) -> Self {
        MipOrderReport {
            profile,
            file,
            names: symbols_of(profile, order),
            touched: footprint(profile, order, page_size),
            page_size,
        }
    }
}

impl Order for MipOrderReport<'_> {
    fn file(&self) -> Vec<u8> {
        self.file.write(&self.names.names)
    }

    fn json(&self, alone: bool) -> String {
        let mut report = serde_json::json!({
            "schema": "profkit-mip-order",
            "schema_version": 1,
            "functions": self.profile.function_counts().0,
            "ordered": self.touched.functions,
            "names": self.names.names.len(),
            "repeated_names": self.names.repeated,
            "bytes": self.touched.bytes,
            "page_size": self.page_size,
            "pages_before": self.touched.pages_before,
            "pages_after": self.touched.pages_after,
        });
        if alone && let Some(keys) = report.as_object_mut() {
            let names = self.names.names.iter();
            let names: Vec<_> = names.map(|name| String::from_utf8_lossy(name)).collect();
            keys.insert("order".to_owned(), serde_json::json!(names));
        }
        format!("{report:#}")
    }
}

impl fmt::Display for MipOrderReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Footprint {
            functions,
            bytes,
            pages_before,
            pages_after,
        } = self.touched;
        writeln!(
            f,
            "{} of {} ordered for {}: {} of code, on {} before and {} after",
            grouped(functions),
            plural(self.profile.function_counts().0, "function"),
            self.file,
            plural(bytes, "byte"),
            plural(pages_before, "page"),
            plural(pages_after, "page"),
        )?;
        if self.names.repeated > 0 {
            writeln!(
                f,
                "{} functions have the same name as an earlier function, and a linker cannot tell functions of one name apart",
                self.names.repeated
            )?;
        }
        if functions > 0 && !self.profile.modes().contains(Modes::FIRST_CALL) {
            writeln!(
                f,
                "the profile does not record the order of calls (mode calls does): the functions are in link order"
            )?;
        }
        Ok(())
    }
}
