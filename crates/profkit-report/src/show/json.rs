//! Profiles as JSON: one object, written piece by piece while the profile is read. [docs/formats/show-json.md] describes
//! its members.
//!
//! [docs/formats/show-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/show-json.md
use super::text::{bits, endian_name};
use super::{Details, Head, Layout, Printer, Rest, pseudo};
use crate::rows::{group_json, group_word, number};
use profkit_abi::value_kind;
use profkit_analysis::heat::HeatCounts;
use profkit_analysis::instr::{InstrFacts, InstrReader, Totals, ValueTotals, counter_sum};
use profkit_analysis::names::{self, Spelling};
use profkit_data::Error;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::{KindValues, Record};
use profkit_data::releases::Release;
use profkit_data::share;
use profkit_data::summary::Summary;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::RangeInclusive;

/// The version of the JSON, which new members do not raise.
pub const SCHEMA_VERSION: u32 = 2;

/// A JSON object that is written member by member, with line breaks as all documents of profkit.
#[derive(Debug)]
pub(crate) struct Members<W> {
    out: W,
    /// The array that is being written: its name, and whether it already has an element. `None` if no array is open.
    open: Option<(&'static str, bool)>,
}

impl<W: Write> Members<W> {
    pub(crate) fn new(out: W) -> Self {
        Members { out, open: None }
    }

    pub(crate) fn begin(&mut self, head: &Value) -> io::Result<()> {
        let head = indented(head, 0)?;
        write!(self.out, "{}", head.strip_suffix("\n}").unwrap_or(&head))
    }

    pub(crate) fn member(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.close()?;
        write!(self.out, ",\n  \"{name}\": {}", indented(value, 1)?)
    }

    /// Begins an array, which may stay empty.
    pub(crate) fn array(&mut self, name: &'static str) -> io::Result<()> {
        self.close()?;
        self.open = Some((name, false));
        write!(self.out, ",\n  \"{name}\": [")
    }

    /// Writes an element of the array `name` on a line of its own.
    pub(crate) fn element(&mut self, name: &'static str, value: &impl Serialize) -> io::Result<()> {
        if self.open.is_none_or(|(open, _)| open != name) {
            self.array(name)?;
        }
        let more = self.open.is_some_and(|(_, more)| more);
        self.open = Some((name, true));
        let comma = if more { "," } else { "" };
        write!(self.out, "{comma}\n    {}", indented(value, 2)?)
    }

    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, true)) => self.out.write_all(b"\n  ]"),
            Some((_, false)) => self.out.write_all(b"]"),
            None => Ok(()),
        }
    }

    /// Writes the errors of the file, and the end of the object.
    pub(crate) fn end(&mut self, errors: &[Value], count: u64) -> io::Result<()> {
        self.member("errors", &errors)?;
        self.member("error_count", &count)?;
        self.out.write_all(b"\n}\n")?;
        self.out.flush()
    }
}

/// A value as text with line breaks, for a place that is `depth` levels deep in a document.
pub fn indented(value: &impl Serialize, depth: usize) -> io::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(text.replace('\n', &format!("\n{}", "  ".repeat(depth))))
}

/// Prints JSON.
#[derive(Debug)]
pub struct JsonPrinter<W> {
    out: Members<W>,
    names: JsonNames,
}

impl<W: Write> JsonPrinter<W> {
    /// Makes a printer that writes to `out`.
    pub fn new(out: W, spelling: Spelling) -> Self {
        JsonPrinter {
            out: Members::new(out),
            names: JsonNames(spelling),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonNames(pub(crate) Spelling);

impl JsonNames {
    pub(crate) fn named(&self, name: &[u8]) -> Value {
        let demangled = match self.0 {
            Spelling::Demangled => names::demangle(name),
            Spelling::WithHashes => names::demangle_with_hashes(name),
            Spelling::Mangled => None,
        };
        without_nulls(json!({ "function": names::printable(name), "demangled": demangled }))
    }

    /// A function as JSON: only its hash if its name is not known, null outside the program.
    fn function(&self, value: u64, source: &InstrReader<'_>) -> Value {
        let name_ref = NameRef(value);
        let function = match source.name_of(name_ref) {
            Some(name) => self.named(name),
            None if value == 0 => return Value::Null,
            None => json!({}),
        };
        with(function, json!({ "guid": name_ref.to_string() }))
    }

    fn sites(&self, kind: u32, values: &KindValues, source: &InstrReader<'_>) -> Value {
        let key = match kind {
            value_kind::MEM_OP_SIZE => "size",
            value_kind::INDIRECT_CALL_TARGET => "target",
            _ => "vtable",
        };
        let sites = values.sites().map(|site| {
            let site = site.iter().map(|one| {
                let value = match kind {
                    value_kind::MEM_OP_SIZE => one.value.into(),
                    _ => self.function(one.value, source),
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
        record: &Record,
        details: Details,
        source: &InstrReader<'_>,
    ) -> Value {
        let function = match record.name.as_slice() {
            [] => json!({}),
            name => self.named(name),
        };
        let hex = |bytes: &[u8]| {
            let shown = details.bitmaps && !bytes.is_empty();
            shown.then(|| BuildId(bytes.to_vec()).to_string())
        };
        let pseudo = pseudo(record);
        let counts = record.counts.as_slice();
        let counted = pseudo.is_none().then_some(counts);
        let mut function = with(
            function,
            json!({
                "guid": record.name_ref.to_string(),
                "hash": record.func_hash.to_string(),
                "counters": counts.len(),
                "pseudo": pseudo,
                "sum": counted.map(|_| number(counter_sum(record))),
                "counts": counted.filter(|_| details.counts),
                "bitmap": hex(&record.bitmap),
                "uniformity": hex(&record.uniformity),
            }),
        );
        if pseudo.is_none() {
            function["max"] = counts.iter().max().copied().into();
            function["entry"] = counts.first().copied().into();
        }
        let keys = ["indirect_calls", "memop_sizes", "vtables"];
        for (((kind, values), wanted), key) in record.values.kinds().zip(details.values).zip(keys) {
            if wanted && values.site_count() > 0 {
                function[key] = self.sites(kind, values, source);
            }
        }
        function
    }
}

impl<W: Write> Printer for JsonPrinter<W> {
    fn head(&mut self, head: &Head<'_>) -> io::Result<()> {
        let out = &mut self.out;
        out.begin(&json!({ "schema": "profkit-show", "schema_version": SCHEMA_VERSION }))?;
        out.member("file", &file(head.name, head.size, head.facts))?;
        let mut layouts = head.layouts.iter();
        layouts.try_for_each(|layout| out.element("profiles", &layout_json(layout)))
    }

    fn record(
        &mut self,
        record: &Record,
        details: Details,
        source: &InstrReader<'_>,
    ) -> io::Result<()> {
        let function = self.names.record(record, details, source);
        self.out.element("functions", &function)
    }

    fn rest(&mut self, rest: &Rest<'_>, source: &InstrReader<'_>) -> io::Result<()> {
        let (out, names) = (&mut self.out, self.names);
        if rest.functions && out.open.is_none_or(|(name, _)| name != "functions") {
            out.member("functions", &json!([]))?;
        }
        if let Some((groups, by, total)) = rest.groups {
            out.member("by", &group_word(by.by))?;
            let groups = groups.iter().map(|group| group_json(group, total));
            out.member("groups", &groups.collect::<Vec<_>>())?;
        }
        if let Some((ids, readers)) = &rest.origin {
            if !ids.is_empty() {
                out.member("binary_ids", &texts(ids))?;
            }
            let readers = json!({ "llvm_profdata": range(readers.tool.as_ref()), "clang": range(readers.compilers.as_ref()) });
            out.member("readers", &without_nulls(readers))?;
        }
        if let Some((kept, seen)) = rest.trace_counts {
            out.member("traces_kept", &kept)?;
            out.member("traces_seen", &seen)?;
        }
        if let Some(traces) = &rest.traces {
            out.member("traces_seen", &traces.stream_size)?;
            for trace in &traces.traces {
                let functions = trace.functions.iter();
                let functions = functions.map(|function| names.function(function.0, source));
                let functions: Vec<_> = functions.collect();
                let trace = json!({ "weight": trace.weight, "functions": functions });
                out.element("traces", &trace)?;
            }
            if traces.traces.is_empty() {
                out.member("traces", &json!([]))?;
            }
        }
        if let Some(ids) = &rest.binary_ids {
            out.member("binary_ids", &texts(ids))?;
        }
        if let Some((first, second)) = &rest.summaries {
            out.member("summary", &summary(first, rest.detailed))?;
            if let Some(second) = second {
                out.member("context_sensitive_summary", &summary(second, rest.detailed))?;
            }
            out.member("totals", &totals_json(&rest.totals))?;
        }
        if rest.shares {
            let shares = rest.totals.shares();
            let shares = shares.iter().map(
                |one| json!({ "share": of_millionths(one.millionths), "functions": one.functions }),
            );
            out.member("shares", &shares.collect::<Vec<_>>())?;
            out.member("heat", &heat_json(rest.totals.heat))?;
        }
        if let Some((hot, _)) = &rest.hot {
            let hot = hot.iter().map(|function| {
                let numbers = function.numbers;
                let more = json!({
                    "sum": number(numbers.sum),
                    "max": numbers.max,
                    "entry": numbers.entry,
                    "share": share(numbers.sum, rest.totals.sum),
                });
                with(names.named(&function.name), more)
            });
            out.member("hot", &hot.collect::<Vec<_>>())?;
        }
        if let Some(sum) = rest.heap {
            let sum = json!({ "contexts": sum.contexts, "allocations": sum.allocations, "bytes": sum.bytes });
            out.member("heap", &sum)?;
        }
        let errors: Vec<_> = rest.faults.first.iter().map(error).collect();
        out.end(&errors, rest.faults.count)
    }
}

/// The numbers of hot, warm and cold functions as JSON.
pub(crate) fn heat_json(heat: HeatCounts) -> Value {
    json!({ "hot": heat.hot, "warm": heat.warm, "cold": heat.cold, "never_ran": heat.never_ran })
}

fn texts(ids: &[BuildId]) -> Vec<String> {
    ids.iter().map(BuildId::to_string).collect()
}

fn range(range: Option<&RangeInclusive<Release>>) -> Option<Value> {
    let range = range?;
    Some(json!({ "first": range.start().to_string(), "last": range.end().to_string() }))
}

pub(crate) fn layout_json(layout: &Layout) -> Value {
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
    without_nulls(value)
}

fn totals_json(totals: &Totals) -> Value {
    let [calls, sizes, vtables] = totals.values.map(value_totals);
    json!({
        "records": totals.records,
        "sum": number(totals.sum),
        "pseudo_records": totals.pseudo_records,
        "functions_entered": totals.functions_entered,
        "counters_above_zero": totals.counters_above_zero,
        "indirect_calls": calls,
        "memop_sizes": sizes,
        "vtables": vtables,
        "bitmap_records": totals.bitmap_records,
        "bitmap_bytes": totals.bitmap_bytes,
        "uniformity_records": totals.uniformity_records,
    })
}

/// Returns the JSON object that describes the file.
pub fn file(name: &str, size: u64, facts: &InstrFacts) -> Value {
    let value = json!({
        "path": name,
        "size": size,
        "kind": "instrumentation",
        "form": facts.form.to_string(),
        "version": facts.version,
        "version_word": facts.version.map(|_| format!("{:#018x}", facts.version_word)),
        "written_by_llvm": range(facts.writers.as_ref()),
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
            let share = of_millionths(one.cutoff);
            json!({ "share": share, "min_count": one.min_count, "counters": one.blocks })
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

/// A share from 0 to 1 that the profile has in millionths.
pub(crate) fn of_millionths(share: u64) -> f64 {
    share as f64 / 1e6
}

fn value_totals(values: ValueTotals) -> Value {
    json!({
        "sites": values.sites,
        "sites_with_values": values.sites_with_values,
        "full_sites": values.full_sites,
        "values": values.values,
    })
}

/// Removes each member whose value is null from an object.
pub(crate) fn without_nulls(value: Value) -> Value {
    with(json!({}), value)
}

/// Adds members to an object, except for those whose value is null.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    object
}
