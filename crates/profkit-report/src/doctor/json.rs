//! Prints diagnoses as JSON. [docs/formats/doctor-json.md] describes the format.
//!
//! [docs/formats/doctor-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/doctor-json.md
use super::words;
use crate::quoted;
use crate::show::json;
use profkit_analysis::doctor::{Counts, Diagnosis, Verdict, What};
use profkit_data::detect::FileKind;
use profkit_data::ids::BuildId;
use profkit_data::instr::Target;
use serde_json::json;
use std::io::{self, Write};

/// The version of the JSON, which new members do not raise.
pub const SCHEMA_VERSION: u32 = 5;

/// Writes the beginning of the document.
pub fn begin(out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "{{\n  \"schema\": \"profkit-doctor\",\n  \"schema_version\": {SCHEMA_VERSION},\n  \"files\": ["
    )
}

/// Writes the diagnosis of one file. `first` says that no file was written before.
pub fn file(out: &mut dyn Write, name: &str, diagnosis: &Diagnosis, first: bool) -> io::Result<()> {
    out.write_all(if first { b"\n    " } else { b",\n    " })?;
    let head = match (diagnosis.facts(), diagnosis.size) {
        (Some(facts), Some(size)) => json::file(name, size, facts),
        (_, Some(size)) => json!({ "path": name, "size": size }),
        (_, None) => json!({ "path": name }),
    };
    let of_functions = diagnosis.facts().map(|_| diagnosis);
    let ids = diagnosis.binary_ids.iter().map(BuildId::to_string);
    let ids: Vec<_> = ids.collect();
    let support = diagnosis.support.iter().map(|support| {
        json!({
            "release": support.release.to_string(),
            "llvm_profdata": support.reads,
            "clang": support.compiles,
        })
    });
    let next = diagnosis.next.iter().map(|&advice| {
        let (command, purpose) = words::command(advice, name, (&quoted(name), ""), None);
        json!({ "command": command, "purpose": purpose })
    });
    let damage = diagnosis.damage.first.iter().map(json::error);
    let more = json!({
        "verdict": match diagnosis.verdict {
            Verdict::Sound => "sound",
            Verdict::Damaged => "damaged",
            Verdict::Unsupported => "unsupported",
            Verdict::NeedsProgram => "needs_program",
            Verdict::Foreign => "foreign",
            Verdict::Unreadable => "unreadable",
        },
        "kind": kind(&diagnosis.what),
        "description": words::what(&diagnosis.what),
        "target": (diagnosis.target != Target::Host).then(|| diagnosis.target.to_string()),
        "functions": of_functions.map(|it| it.functions),
        "functions_stated": of_functions.and_then(|it| it.functions_stated),
        "functions_without_names": of_functions.map(|it| it.remarks.nameless),
        "functions_without_values": of_functions.map(|it| it.without_values),
        "functions_never_called": of_functions.map(|it| it.remarks.never_called),
        "functions_with_hash_0": of_functions.map(|it| it.remarks.zero_hash),
        "full_value_sites": of_functions.map(|it| it.remarks.full_sites),
        "binary_ids": (of_functions.is_some() || !ids.is_empty()).then_some(ids),
        "contexts": diagnosis.contexts,
        "manifest_inputs": diagnosis.manifest,
        "profiles": (diagnosis.profiles > 0).then_some(diagnosis.profiles),
        "llvm": support.collect::<Vec<_>>(),
        "damage": damage.collect::<Vec<_>>(),
        "damage_count": diagnosis.damage.count,
        "next": next.collect::<Vec<_>>(),
    });
    write!(out, "{}", json::indented(&json::with(head, more), 2)?)
}

/// The word for what a file is; `None` if it is no profile, or if [`json::file`] has the word.
fn kind(what: &What) -> Option<&'static str> {
    match what {
        What::Sample { .. } => Some("sample"),
        What::HeapRaw(_) | What::HeapYaml => Some("heap"),
        What::Mip { .. } | What::MipYaml => Some("mip"),
        What::Part(_) => Some("part"),
        What::Other(FileKind::PerfData) => Some("perf"),
        _ => None,
    }
}

/// Writes the totals and the end of the document.
pub fn end(out: &mut dyn Write, counts: Counts) -> io::Result<()> {
    let counts = json!({
        "sound": counts.sound,
        "damaged": counts.damaged,
        "unsupported": counts.unsupported,
        "needs_program": counts.needs_program,
        "foreign": counts.foreign,
        "unreadable": counts.unreadable,
        "passed_over": counts.passed_over,
    });
    let counts = json::indented(&counts, 1)?;
    writeln!(out, "\n  ],\n  \"totals\": {counts}\n}}")
}
