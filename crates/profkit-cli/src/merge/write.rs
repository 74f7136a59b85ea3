//! Encodes a merged profile and writes it.
use super::report::Written;
use super::run::refuse_losses;
use crate::exit::{Failure, Result};
use crate::print::{grouped, plural};
use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit_data::instr::releases::{display_range, indexed_writers};
use profkit_data::instr::text::{self, TextOptions};
use profkit_data::instr::{FunctionRef, InstrKind, InstrProfile, Losses};
use profkit_data::memprof::indexed::read_section;
use profkit_data::memprof::yaml::{self, YamlOptions};
use profkit_merge::Threads;
use profkit_merge::files::Output;
use profkit_merge::files::write_indexed;

/// An output format, with its version and options resolved.
#[derive(Clone, Debug)]
pub enum Encoding {
    /// The text format.
    Text(TextOptions),
    /// The indexed format.
    Indexed(IndexedWriteOptions),
    /// The heap profile as YAML. The heap profile is taken from a MemProf section; the options choose the version of
    /// that section.
    MemProfYaml(IndexedWriteOptions),
}

/// Writes a profile to an output. With `strict`, losses are errors.
///
/// # Errors
/// If `strict` forbids a loss, or if the output cannot be written.
pub fn write_profile(
    output: Output,
    profile: &InstrProfile,
    encoding: &Encoding,
    threads: &Threads,
    strict: bool,
) -> Result<Written> {
    let name = output.name().to_owned();
    let mut written = Written {
        path: name.clone(),
        format: "text",
        build_ids: profile.binary_ids.iter().map(ToString::to_string).collect(),
        ..Written::default()
    };
    match encoding {
        Encoding::Text(options) => {
            let kept = |function: &FunctionRef<'_>| !options.sparse || function.has_run();
            let functions = profile.tables.iter().flat_map(|table| table.functions());
            written.functions = functions.filter(kept).count() as u64;
            written.losses = text_losses(profile);
            refuse_losses(&name, &written.losses, strict)?;
            written.bytes = output.write(|sink| text::write(profile, options, sink).map(|_| ()))?;
        }
        Encoding::MemProfYaml(_) => {
            let Some(section) = &profile.memprof else {
                return Err(Failure::input("the inputs hold no heap profile")
                    .with_hint("--output-format text writes the counters"));
            };
            let (heap, _) = read_section(section).map_err(|error| Failure::file(&name, &error))?;
            written.format = "memprof-yaml";
            written.functions = heap.records().len() as u64;
            let functions = profile
                .tables
                .iter()
                .map(|table| table.function_count() as u64);
            let functions: u64 = functions.sum();
            if functions > 0 {
                let what = plural(functions, "function");
                written.losses.push(format!(
                    "left out the counters of {what}, which MemProf YAML cannot represent"
                ));
            }
            refuse_losses(&name, &written.losses, strict)?;
            written.bytes =
                output.write(|sink| yaml::write(&heap, &YamlOptions::new(), sink).map(|_| ()))?;
        }
        Encoding::Indexed(options) => {
            let plan =
                IndexedPlan::new(profile, options).map_err(|error| Failure::file(&name, &error))?;
            written.format = "indexed";
            written.functions = plan.function_count() as u64;
            written.indexed_version = Some(options.version);
            written.losses = indexed_losses(plan.losses(), options.version);
            refuse_losses(&name, &written.losses, strict)?;
            written.bytes = output.write(|sink| write_indexed(&plan, threads, sink))?;
        }
    }
    Ok(written)
}

/// Messages about data that an indexed version cannot represent.
fn indexed_losses(losses: &Losses, version: u32) -> Vec<String> {
    let releases = match indexed_writers(version) {
        Some(range) => format!(" ({})", display_range(&range)),
        None => String::new(),
    };
    let flags = Some(losses.flags).filter(|flags| !flags.is_unknown());
    let flags = flags.map(|flags| format!("the kind flags {flags}"));
    let counts = losses.counts().map(|(count, what)| match count {
        1 => format!("1 {}", what.trim_end_matches('s')),
        _ => format!("{} {what}", grouped(count)),
    });
    let lost = flags.into_iter().chain(counts);
    lost.map(|what| {
        format!("left out {what}, which indexed version {version}{releases} cannot represent")
    })
    .collect()
}

/// Messages about data that text cannot represent. Build ids are not mentioned: text never has them.
fn text_losses(profile: &InstrProfile) -> Vec<String> {
    let memprof = profile.memprof.iter().map(|section| {
        let bytes = plural(section.bytes.len() as u64, "byte");
        format!("left out the MemProf section ({bytes}), which text cannot represent")
    });
    let flags = text::losses(profile)
        .flags
        .contains(InstrKind::FUNCTION_ENTRY_ONLY)
        .then(|| {
            "left out the function-entry flag of the profile, which text cannot represent"
                .to_owned()
        });
    memprof.chain(flags).collect()
}
