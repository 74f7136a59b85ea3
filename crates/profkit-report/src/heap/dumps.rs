//! Raw heap dumps without the programs that ran: totals, what the programs are, headers and sections.
use crate::document::write_json;
use crate::show::Layout;
use crate::show::json::{SCHEMA_VERSION, error as json_error, layout_json};
use crate::show::text::{add_layout, temperatures};
use crate::{Answer, Document, grouped, percent, plural, size};
use profkit_analysis::heap::{ContextSum, HeapDumps, HeapForm};
use profkit_data::releases::display_range;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// Raw heap dumps, and which of their parts are shown.
#[derive(Clone, Copy, Debug)]
pub struct DumpsShow<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// The dumps.
    pub dumps: &'a HeapDumps,
    /// Whether the words of headers are shown.
    pub header: bool,
    /// Whether the places of sections are shown.
    pub sections: bool,
    /// Whether the build ids of all mapped modules are shown.
    pub build_ids: bool,
}

impl DumpsShow<'_> {
    /// Whether no single part is asked for.
    fn is_overview(&self) -> bool {
        !self.header && !self.sections && !self.build_ids
    }

    fn layouts(&self) -> Vec<Layout> {
        if !self.header && !self.sections {
            return Vec::new();
        }
        let several = self.dumps.dumps.len() > 1;
        let numbered = (1..).zip(&self.dumps.dumps);
        let layouts = numbered.map(|(index, dump)| Layout {
            index: several.then_some(index),
            offset: dump.offset,
            header: self.header.then(|| dump.header.clone()),
            sections: self.sections.then(|| dump.sections.clone()),
        });
        layouts.collect()
    }

    fn add_overview(&self, document: &mut Document) {
        let dumps = self.dumps;
        document.line("note: raw heap profiles hold addresses only: --binaries names the programs and libraries that ran, and shows functions");
        document.section("Summary");
        let total = dumps.total;
        let per_allocation = total.bytes.checked_div(total.allocations);
        let per_allocation = per_allocation.map(|bytes| format!("{} per allocation", size(bytes)));
        let mut rows = vec![
            (
                "contexts",
                total.contexts,
                "those of the run-time library included".to_owned(),
            ),
            ("allocations", total.allocations, String::new()),
            ("bytes", total.bytes, per_allocation.unwrap_or_default()),
        ];
        if dumps.histograms > 0 {
            rows.push(("histograms", dumps.histograms, String::new()));
        }
        document.facts(rows);
        document.section("Hot and cold memory");
        let sums = [dumps.hot, dumps.warm, dumps.cold];
        let contexts = sums.map(|sum| plural(sum.contexts, "context"));
        let bytes = sums.map(|sum| {
            let share = percent(sum.bytes.into(), total.bytes.into());
            format!("{} ({share})", plural(sum.bytes, "byte"))
        });
        document.facts(temperatures(contexts, bytes));
        document.section("Programs and libraries to give with --binaries");
        for module in &dumps.modules {
            let addresses = match module.addresses {
                1 => "1 address".to_owned(),
                count => format!("{} addresses", grouped(count)),
            };
            document.line(format_args!("  {}: {addresses}", module.module));
        }
    }
}

impl Answer for DumpsShow<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let version = self.dumps.version();
        let mut text = format!("heap profile, {} version {version}", HeapForm::Raw);
        if let Some(writers) = HeapForm::Raw.writers(version) {
            text += &format!(" ({})", display_range(&writers));
        }
        document.title(self.path, text);
        document.fact("size", format_args!("{} bytes", grouped(self.size)));
        if self.dumps.dumps.len() > 1 {
            document.fact("dumps", grouped(self.dumps.dumps.len()));
        }
        if self.is_overview() {
            self.add_overview(&mut document);
        }
        for layout in self.layouts() {
            add_layout(&mut document, &layout);
        }
        if self.build_ids {
            document.section("Build ids");
            if self.dumps.build_ids.is_empty() {
                document.line("  none");
            }
            for id in &self.dumps.build_ids {
                document.line(format_args!("  {id}"));
            }
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let dumps = self.dumps;
        let modules = dumps.modules.iter().map(|module| JsonModule {
            module: module.module.to_string(),
            addresses: module.addresses,
        });
        let report = JsonDumps {
            schema: "profkit-show",
            schema_version: SCHEMA_VERSION,
            file: JsonFile {
                path: self.path,
                size: self.size,
                kind: "heap",
                form: HeapForm::Raw.to_string(),
                version: dumps.version(),
                dumps: dumps.dumps.len(),
            },
            total: dumps.total,
            cold: dumps.cold,
            warm: dumps.warm,
            hot: dumps.hot,
            histograms: dumps.histograms,
            modules: modules.collect(),
            profiles: self.layouts().iter().map(layout_json).collect(),
            binary_ids: dumps.build_ids.iter().map(ToString::to_string).collect(),
            errors: dumps.damage.first.iter().map(json_error).collect(),
            error_count: dumps.damage.count,
        };
        write_json(out, &report)
    }
}

#[derive(Serialize)]
struct JsonDumps<'a> {
    schema: &'static str,
    schema_version: u32,
    file: JsonFile<'a>,
    total: ContextSum,
    cold: ContextSum,
    warm: ContextSum,
    hot: ContextSum,
    histograms: u64,
    modules: Vec<JsonModule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<Value>,
    binary_ids: Vec<String>,
    errors: Vec<Value>,
    error_count: u64,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    path: &'a str,
    size: u64,
    kind: &'static str,
    form: String,
    version: u32,
    dumps: usize,
}

#[derive(Serialize)]
struct JsonModule {
    module: String,
    addresses: u64,
}
