//! Profiles as JSON: one object, written piece by piece while the profile is read. [docs/formats/show-json.md] describes
//! its members.
//!
//! [docs/formats/show-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/show-json.md
use super::text::{bits, endian_name};
use super::{Context, Details, Layout, Printer, RecordView};
use crate::Grouping;
use crate::rows::{group_json, group_word, number};
use profkit_abi::value_kind;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::ContextSum;
use profkit_analysis::instr::InstrFacts;
use profkit_analysis::instr::{Totals, ValueTotals, counter_sum};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionOrder, Group, RankedFunction};
use profkit_data::Error;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::{KindValues, TemporalTraces};
use profkit_data::releases::Release;
use profkit_data::share;
use profkit_data::summary::Summary;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::RangeInclusive;

/// The version of the JSON. It is raised when a member is renamed or removed, or changes its meaning; new members do
/// not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Prints JSON.
#[derive(Debug)]
pub struct JsonPrinter<W> {
    out: W,
    names: JsonNames,
    /// The array that is being written: its name, and whether it already has an element. `None` if no array is open.
    open: Option<(&'static str, bool)>,
}

impl<W: Write> JsonPrinter<W> {
    /// Makes a printer that writes to `out`.
    pub fn new(out: W, spelling: Spelling) -> Self {
        JsonPrinter {
            out,
            names: JsonNames(spelling),
            open: None,
        }
    }

    fn member(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.close()?;
        write!(self.out, ",\n\"{name}\":")?;
        serde_json::to_writer(&mut self.out, value)?;
        Ok(())
    }

    /// Writes an element of the array `name` on a line of its own.
    fn element(&mut self, name: &'static str, value: &impl Serialize) -> io::Result<()> {
        match self.open {
            Some((open, more)) if open == name => {
                self.out.write_all(if more { b",\n" } else { b"\n" })?;
            }
            _ => {
                self.close()?;
                write!(self.out, ",\n\"{name}\":[\n")?;
            }
        }
        self.open = Some((name, true));
        serde_json::to_writer(&mut self.out, value)?;
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(_) => self.out.write_all(b"\n]"),
            None => Ok(()),
        }
    }
}

/// Writes names of functions as JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonNames(pub(crate) Spelling);

impl JsonNames {
    pub(crate) fn named(&self, name: &[u8]) -> Value {
        let mut value = json!({ "name": names::printable(name) });
        let demangled = match self.0 {
            Spelling::Demangled => names::demangle(name),
            Spelling::WithHashes => names::demangle_with_hashes(name),
            Spelling::Mangled => None,
        };
        if let (Some(demangled), Some(members)) = (demangled, value.as_object_mut()) {
            members.insert("demangled".to_owned(), demangled.into());
        }
        value
    }

    /// Returns a function as JSON. If only the hash of the function is known, the object holds only the hash. A
    /// function outside the program becomes null.
    fn function(&self, value: u64, context: &Context<'_>) -> Value {
        let name_ref = NameRef(value);
        let mut function = match context.source.name_of(name_ref) {
            Some(name) => self.named(name),
            None if value == 0 => return Value::Null,
            None => json!({}),
        };
        if let Some(members) = function.as_object_mut() {
            members.insert("guid".to_owned(), name_ref.to_string().into());
        }
        function
    }

    fn sites(&self, kind: u32, values: &KindValues, context: &Context<'_>) -> Value {
        let key = match kind {
            value_kind::MEM_OP_SIZE => "size",
            value_kind::INDIRECT_CALL_TARGET => "target",
            _ => "vtable",
        };
        let sites = values.sites().map(|site| {
            let site = site.iter().map(|one| {
                let value = match kind {
                    value_kind::MEM_OP_SIZE => one.value.into(),
                    _ => self.function(one.value, context),
                };
                json!({ key: value, "count": one.count })
            });
            Value::Array(site.collect())
        });
        Value::Array(sites.collect())
    }

    /// Returns a function as JSON, with its numbers and the details that are asked for.
    pub(super) fn record(
        &self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> Value {
        let record = view.record;
        let mut function = self.named(&record.name);
        let Some(members) = function.as_object_mut() else {
            return function;
        };
        if record.name.is_empty() {
            members.remove("name");
        }
        let mut put = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        put("guid", record.name_ref.to_string().into());
        put("hash", record.func_hash.to_string().into());
        put("counters", record.counts.len().into());
        match view.pseudo() {
            Some(pseudo) => put("pseudo", pseudo.into()),
            None => {
                put("sum", number(counter_sum(record)));
                put("max", record.counts.iter().max().copied().into());
                put("entry", record.counts.first().copied().into());
                if details.counts {
                    put("counts", record.counts.clone().into());
                }
            }
        }
        if details.bitmaps && !record.bitmap.is_empty() {
            put("bitmap", BuildId(record.bitmap.clone()).to_string().into());
        }
        if details.bitmaps && !record.uniformity.is_empty() {
            put(
                "uniformity",
                BuildId(record.uniformity.clone()).to_string().into(),
            );
        }
        let keys = ["indirect_calls", "memop_sizes", "vtables"];
        for (((kind, values), wanted), key) in record.values.kinds().zip(details.values).zip(keys) {
            if wanted && values.site_count() > 0 {
                put(key, self.sites(kind, values, context));
            }
        }
        function
    }
}

impl<W: Write> Printer for JsonPrinter<W> {
    fn file(&mut self, name: &str, size: u64, facts: &InstrFacts) -> io::Result<()> {
        write!(
            self.out,
            "{{\"schema\":\"profkit-show\",\"schema_version\":{SCHEMA_VERSION}"
        )?;
        self.member("file", &file(name, size, facts))
    }

    fn origin(&mut self, ids: &[BuildId], readers: &Readers) -> io::Result<()> {
        if !ids.is_empty() {
            self.binary_ids(ids)?;
        }
        let range = |range: &Option<RangeInclusive<Release>>| {
            let ends = |range: &RangeInclusive<Release>| json!({ "first": range.start().to_string(), "last": range.end().to_string() });
            range.as_ref().map(ends)
        };
        let readers =
            json!({ "llvm_profdata": range(&readers.tool), "clang": range(&readers.compilers) });
        self.member("readers", &without_nulls(readers))
    }

    fn layout(&mut self, layout: &Layout) -> io::Result<()> {
        let header = layout.header.as_ref().map(|fields| {
            let fields = fields.iter().map(
                |&(name, offset, value)| json!({ "field": name, "offset": offset, "value": value }),
            );
            fields.collect::<Vec<_>>()
        });
        let sections = layout.sections.as_ref().map(|sections| {
            let sections = sections.iter().map(|section| {
                json!({
                    "section": section.structure.to_string(),
                    "offset": section.offset,
                    "size": section.size,
                    "missing": section.missing,
                })
            });
            sections.collect::<Vec<_>>()
        });
        let value = json!({ "offset": layout.offset, "header": header, "sections": sections });
        self.element("profiles", &without_nulls(value))
    }

    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()> {
        let function = self.names.record(view, details, context);
        self.element("functions", &function)
    }

    fn records_end(&mut self) -> io::Result<()> {
        if self.open.is_none_or(|(name, _)| name != "functions") {
            return self.member("functions", &json!([]));
        }
        self.close()
    }

    fn traces(&mut self, traces: &TemporalTraces, context: &Context<'_>) -> io::Result<()> {
        self.close()?;
        write!(self.out, ",\n\"traces_seen\":{}", traces.stream_size)?;
        for trace in &traces.traces {
            let functions = trace.functions.iter();
            let functions = functions.map(|function| self.names.function(function.0, context));
            let functions: Vec<_> = functions.collect();
            let value = json!({ "weight": trace.weight, "functions": functions });
            self.element("traces", &value)?;
        }
        if traces.traces.is_empty() {
            self.member("traces", &json!([]))
        } else {
            self.close()
        }
    }

    fn binary_ids(&mut self, ids: &[BuildId]) -> io::Result<()> {
        let ids: Vec<_> = ids.iter().map(BuildId::to_string).collect();
        self.member("binary_ids", &ids)
    }

    fn shares(&mut self, totals: &Totals) -> io::Result<()> {
        let shares = totals.shares();
        let shares: Vec<_> = shares
            .iter()
            .map(|one| json!({ "millionths": one.millionths, "functions": one.functions }))
            .collect();
        self.member("shares", &shares)
    }

    fn hot(&mut self, hot: &[RankedFunction], _: FunctionOrder, total: u128) -> io::Result<()> {
        let hot: Vec<_> = hot
            .iter()
            .map(|function| {
                let mut value = self.names.named(&function.name);
                if let Some(members) = value.as_object_mut() {
                    let numbers = function.numbers;
                    let mut put = |name: &str, value: Value| {
                        members.insert(name.to_owned(), value);
                    };
                    put("sum", number(numbers.sum));
                    put("max", numbers.max.into());
                    put("entry", numbers.entry.into());
                    put("share", share(numbers.sum, total).into());
                }
                value
            })
            .collect();
        self.member("hot", &hot)
    }

    fn groups(&mut self, groups: &[Group], by: Grouping<'_>, total: u128) -> io::Result<()> {
        self.member("by", &group_word(by.by))?;
        let groups = groups.iter().map(|group| group_json(group, total));
        self.member("groups", &groups.collect::<Vec<_>>())
    }

    fn summaries(
        &mut self,
        first: &Summary,
        second: Option<&Summary>,
        totals: &Totals,
        detailed: bool,
    ) -> io::Result<()> {
        self.member("summary", &summary(first, detailed))?;
        if let Some(second) = second {
            self.member("context_sensitive_summary", &summary(second, detailed))?;
        }
        let [calls, sizes, vtables] = totals.values.map(value_totals);
        let totals = json!({
            "records": totals.records,
            "pseudo_records": totals.pseudo_records,
            "functions_entered": totals.functions_entered,
            "counters_above_zero": totals.counters_above_zero,
            "indirect_calls": calls,
            "memop_sizes": sizes,
            "vtables": vtables,
            "bitmap_records": totals.bitmap_records,
            "bitmap_bytes": totals.bitmap_bytes,
            "uniformity_records": totals.uniformity_records,
        });
        self.member("totals", &totals)
    }

    fn heap(&mut self, sum: ContextSum) -> io::Result<()> {
        let sum =
            json!({ "contexts": sum.contexts, "allocations": sum.allocations, "bytes": sum.bytes });
        self.member("heap", &sum)
    }

    fn end(&mut self, faults: &Faults) -> io::Result<()> {
        let first: Vec<_> = faults.first.iter().map(error).collect();
        self.member("errors", &first)?;
        write!(self.out, ",\n\"error_count\":{}}}\n", faults.count)?;
        self.out.flush()
    }
}

/// Returns the JSON object that describes the file.
pub fn file(name: &str, size: u64, facts: &InstrFacts) -> Value {
    let writers = facts.writers.as_ref().map(
        |range| json!({ "first": range.start().to_string(), "last": range.end().to_string() }),
    );
    let value = json!({
        "path": name,
        "size": size,
        "kind": facts.form.to_string(),
        "version": facts.version,
        "version_word": facts.version.map(|_| format!("{:#018x}", facts.version_word)),
        "written_by_llvm": writers,
        "pointer_bits": facts.machine.map(|(width, _)| bits(width)),
        "endian": facts.machine.map(|(_, endian)| endian_name(endian)),
        "instrumentation": facts.instrumentation.names().collect::<Vec<_>>(),
    });
    without_nulls(value)
}

/// Returns an error as JSON. Its message includes the position in the file.
pub fn error(error: &Error) -> Value {
    error_saying(error, &error.to_string())
}

/// Returns an error as JSON. Its message does not include the position in the file.
pub fn bare_error(error: &Error) -> Value {
    error_saying(error, error.message())
}

fn error_saying(error: &Error, message: &str) -> Value {
    let (line, column) = error.line_column().unzip();
    without_nulls(json!({
        "message": message,
        "structure": error.structure_text(),
        "offset": error.offset(),
        "line": line,
        "column": column,
        "hint": error.hint(),
    }))
}

fn summary(summary: &Summary, detailed: bool) -> Value {
    let cutoffs = detailed.then(|| {
        let cutoffs = summary.cutoffs.iter().map(|one| {
            json!({ "millionths": one.cutoff, "min_count": one.min_count, "counters": one.blocks })
        });
        cutoffs.collect::<Vec<_>>()
    });
    without_nulls(json!({
        "functions": summary.functions,
        "counters": summary.blocks,
        "total_count": summary.total_count,
        "max_function_count": summary.max_function_count,
        "max_count": summary.max_count,
        "max_internal_count": summary.max_internal_count,
        "cutoffs": cutoffs,
    }))
}

fn value_totals(values: ValueTotals) -> Value {
    json!({
        "sites": values.sites,
        "sites_with_values": values.sites_with_values,
        "values": values.values,
    })
}

/// Removes each member whose value is null from an object.
fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}
