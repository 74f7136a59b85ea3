//! Prints diagnoses as JSON. [docs/formats/doctor-json.md] describes the format.
//!
//! [docs/formats/doctor-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/doctor-json.md
use super::words;
use crate::quoted;
use crate::show::json;
use profkit_analysis::doctor::{Counts, Diagnosis, Verdict};
use profkit_data::ids::BuildId;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The version of the JSON. It is raised when a member is renamed or removed, or changes its meaning; new members do
/// not raise it.
pub const SCHEMA_VERSION: u32 = 4;

/// Writes the beginning of the document.
///
/// # Errors
/// If the writer fails.
pub fn begin(out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "{{\"schema\":\"profkit-doctor\",\"schema_version\":{SCHEMA_VERSION},\n\"files\":["
    )
}

/// Writes the diagnosis of one file. `first` says that no file was written before.
///
/// # Errors
/// If the writer fails.
pub fn file(out: &mut dyn Write, name: &str, diagnosis: &Diagnosis, first: bool) -> io::Result<()> {
    out.write_all(if first { b"\n" } else { b",\n" })?;
    let mut value = match (diagnosis.facts(), diagnosis.size) {
        (Some(facts), Some(size)) => json::file(name, size, facts),
        (_, Some(size)) => json!({ "path": name, "size": size }),
        (_, None) => json!({ "path": name }),
    };
    if let Some(members) = value.as_object_mut() {
        let mut put = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        put(
            "verdict",
            match diagnosis.verdict {
                Verdict::Sound => "sound",
                Verdict::Damaged => "damaged",
                Verdict::Unsupported => "unsupported",
                Verdict::Foreign => "foreign",
                Verdict::Unreadable => "unreadable",
            }
            .into(),
        );
        put("description", words::what(&diagnosis.what).into());
        if diagnosis.facts().is_some() {
            put("functions", diagnosis.functions.into());
            if let Some(stated) = diagnosis.functions_stated {
                put("functions_stated", stated.into());
            }
            put("functions_without_names", diagnosis.nameless.into());
            put("functions_without_values", diagnosis.without_values.into());
        }
        if diagnosis.facts().is_some() || !diagnosis.binary_ids.is_empty() {
            let ids = diagnosis.binary_ids.iter().map(BuildId::to_string);
            put("binary_ids", ids.collect::<Vec<_>>().into());
        }
        if let Some(contexts) = diagnosis.contexts {
            put("contexts", contexts.into());
        }
        if diagnosis.profiles > 0 {
            put("profiles", diagnosis.profiles.into());
        }
        let support = diagnosis.support.iter().map(|support| {
            json!({
                "release": support.release.to_string(),
                "llvm_profdata": support.reads,
                "clang": support.compiles,
            })
        });
        put("llvm", support.collect::<Vec<_>>().into());
        let damage = diagnosis.damage.first.iter().map(json::error);
        put("damage", damage.collect::<Vec<_>>().into());
        put("damage_count", diagnosis.damage.count.into());
        let next = diagnosis.next.iter().map(|&advice| {
            let (command, purpose) = words::command(advice, name, &quoted(name), None);
            json!({ "command": command, "purpose": purpose })
        });
        put("next", next.collect::<Vec<_>>().into());
    }
    serde_json::to_writer(out, &value)?;
    Ok(())
}

/// Writes the totals and the end of the document.
///
/// # Errors
/// If the writer fails.
pub fn end(out: &mut dyn Write, counts: Counts) -> io::Result<()> {
    let counts = json!({
        "sound": counts.sound,
        "damaged": counts.damaged,
        "unsupported": counts.unsupported,
        "foreign": counts.foreign,
        "unreadable": counts.unreadable,
        "passed_over": counts.passed_over,
    });
    writeln!(out, "\n],\n\"totals\":{counts}}}")
}
