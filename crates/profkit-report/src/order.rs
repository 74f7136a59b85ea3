//! The reports of `profkit order` and `profkit mip order`. [docs/formats/order-json.md] describes the JSON of `profkit
//! order`.
//!
//! [docs/formats/order-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/order-json.md
use crate::document::write_json;
use crate::show::json::without_nulls;
use crate::{Document, grouped, plural};
use profkit_analysis::names;
use profkit_analysis::order::{
    Footprint, Names, OrderFile, Startup, StartupInput, StartupOrder, StartupText, footprint,
    names as symbols_of,
};
use profkit_data::mip::{FunctionId, MipProfile, Modes};
use profkit_object::code_symbols::CodeSymbol;
use serde::Serialize;
use std::io::{self, Write};

/// An order of functions that can be written as an order file and reported.
pub trait Order {
    /// The order file.
    fn file(&self) -> Vec<u8>;

    /// The report for people.
    fn document(&self) -> Document;

    /// Writes the report as JSON. `alone` is true if no order file is written; then the JSON has to contain the order.
    fn json(&self, alone: bool, out: &mut dyn Write) -> io::Result<()>;
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

const SCHEMA_VERSION: u32 = 1;
const MOST: usize = 10;

/// An order, in the form in which it is reported.
#[derive(Clone, Debug, Serialize)]
pub struct OrderReport {
    schema: &'static str,
    schema_version: u32,
    linker: String,
    traces: usize,
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
    order: Vec<String>,
    #[serde(skip)]
    contents: Vec<u8>,
}

#[derive(Clone, Debug, Serialize)]
struct Text {
    page_size: u64,
    all: StartupText,
    traces: Vec<StartupText>,
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
                    all,
                    traces,
                }
            }),
            order: order.names().into_iter().map(text).collect(),
            contents: file.write(&order.names()),
        }
    }
}

impl Order for OrderReport {
    fn file(&self) -> Vec<u8> {
        self.contents.clone()
    }

    fn document(&self) -> Document {
        let mut document = Document::default();
        let functions = |count: usize| plural(count as u64, "function");
        let traces = plural(self.traces as u64, "trace");
        let (ordered, linker) = (functions(self.functions), &self.linker);
        document.line(format_args!("{ordered} of {traces} ordered for {linker}"));
        if let Some(text) = &self.text {
            let mut row = |what: &str, row: &StartupText| {
                let bytes = plural(row.bytes, "byte");
                let [before, after] =
                    [row.pages_before, row.pages_after].map(|pages| plural(pages as u64, "page"));
                let functions = functions(row.functions);
                document.line(format_args!(
                    "{what}: {functions}, {bytes} of code, on {before} before and {after} after"
                ));
            };
            row("all traces", &text.all);
            for (number, trace) in (1..).zip(text.traces.iter().take(MOST)) {
                row(&format!("trace {number}"), trace);
            }
            if let more @ 1.. = text.traces.len().saturating_sub(MOST) {
                document.line(format_args!("and {} more traces", grouped(more)));
            }
        }
        let missing = self.missing.as_deref().unwrap_or_default();
        for (count, why) in [
            (
                self.nameless,
                " of the traces, because no file has the name",
            ),
            (
                self.repeated,
                " with the symbol of an earlier function, because a linker cannot tell them apart",
            ),
            (missing.len(), " that the binary does not have:"),
        ] {
            if count > 0 {
                document.line(format_args!("left out: {}{why}", functions(count)));
            }
        }
        for name in missing.iter().take(MOST) {
            document.line(format_args!("  {}", names::printable(name.as_bytes())));
        }
        if let more @ 1.. = missing.len().saturating_sub(MOST) {
            document.line(format_args!("  and {} more", grouped(more)));
        }
        document
    }

    fn json(&self, _: bool, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, self)
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

    fn document(&self) -> Document {
        let mut document = Document::default();
        let Footprint {
            functions,
            bytes,
            pages_before,
            pages_after,
            hot_pages_before,
            hot_pages_after,
        } = self.touched;
        document.line(format_args!(
            "{} of {} ordered for {}: {} of code, on {} before and {} after",
            grouped(functions),
            plural(self.profile.function_counts().0, "function"),
            self.file,
            plural(bytes, "byte"),
            plural(pages_before, "page"),
            plural(pages_after, "page"),
        ));
        if let (Some(before), Some(after)) = (hot_pages_before, hot_pages_after) {
            document.line(format_args!(
                "the functions with 99% of the calls are on {} before and {} after",
                plural(before, "page"),
                plural(after, "page"),
            ));
        }
        if let repeated @ 1.. = self.names.repeated {
            document.line(format_args!(
                "{repeated} functions have the same name as an earlier function, and a linker cannot tell functions of one name apart"
            ));
        }
        if functions > 0 && !self.profile.modes().contains(Modes::FIRST_CALL) {
            document.line(
                "the profile does not record the order of calls (mode calls does): the functions are in link order",
            );
        }
        document
    }

    fn json(&self, alone: bool, out: &mut dyn Write) -> io::Result<()> {
        let names = self.names.names.iter();
        let names = names.map(|name| String::from_utf8_lossy(name));
        let report = serde_json::json!({
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
            "hot_pages_before": self.touched.hot_pages_before,
            "hot_pages_after": self.touched.hot_pages_after,
            "order": alone.then(|| names.collect::<Vec<_>>()),
        });
        write_json(out, &without_nulls(report))
    }
}
