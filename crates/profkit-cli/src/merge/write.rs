//! Encodes a merged profile and writes it.
use super::run::{StagedProfile, refuse_losses};
use crate::exit::{Failure, Result};
use crate::print::plural;
use profkit_data::HeapSection;
use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit_data::instr::text::{self, TextOptions};
use profkit_data::instr::{FunctionRef, InstrProfile};
use profkit_data::memprof::MemProfile;
use profkit_data::memprof::yaml::{self};
use profkit_merge::files::{IndexedFile, JoinedText, Output};
use profkit_merge::{Joined, Threads};
use profkit_report::merge::{Written, indexed_losses, text_losses};

#[derive(Clone, Debug)]
pub enum Encoding {
    Text(TextOptions),
    Indexed(IndexedWriteOptions),
    MemProfYaml(IndexedWriteOptions),
}

/// The size of the file that [`write_profile`] writes of a profile whose functions are in tables.
pub fn size_of(profile: &InstrProfile, encoding: &Encoding) -> profkit_data::Result<u64> {
    let mut bytes = Vec::new();
    match encoding {
        Encoding::Indexed(options) => {
            return Ok(IndexedPlan::new(profile, options)?.total_len());
        }
        Encoding::Text(options) => {
            text::write(profile, options, &mut bytes)?;
        }
        Encoding::MemProfYaml(_) => {
            if let Some(section) = &profile.memprof {
                yaml::write(&section.reread()?, &mut bytes)?;
            }
        }
    }
    Ok(bytes.len() as u64)
}

/// Writes a part of a merge that gives a profile with so many functions.
pub fn write_part(
    output: Output,
    part: &[u8],
    functions: u64,
    build_ids: Vec<String>,
) -> Result<StagedProfile> {
    let written = Written {
        path: output.name().to_owned(),
        format: "part",
        functions,
        build_ids,
        ..Written::default()
    };
    let file = output.stage(|sink| sink.put(part))?;
    Ok(StagedProfile { file, written })
}

/// The number of allocation contexts in a section; `None` if it is damaged.
pub fn heap_contexts(section: &HeapSection) -> Option<u64> {
    let heap = section.profile().ok()?;
    Some(heap.contexts().len() as u64)
}

/// Encodes a profile, and writes it to a temporary file that replaces the output when it is finished. With `strict`,
/// losses are errors. `joined` has its functions, if they are joined while it is written. `heap` is the heap profile that was merged with the profile; the indexed format and YAML have it in
/// the MemProf section of `profile`.
pub fn write_profile(
    output: Output,
    (profile, joined): (&InstrProfile, Option<&Joined<'_>>),
    heap: Option<&MemProfile>,
    encoding: &Encoding,
    threads: &Threads,
    strict: bool,
) -> Result<StagedProfile> {
    let name = output.name().to_owned();
    let mut written = Written {
        path: name.clone(),
        format: "text",
        build_ids: profile.binary_ids.iter().map(ToString::to_string).collect(),
        ..Written::default()
    };
    let file = match encoding {
        Encoding::Text(options) => {
            let mut tables = profile.tables.iter();
            let only_heap = tables.all(|table| table.function_count() == 0)
                && joined.is_none_or(|joined| joined.function_count() == 0);
            if only_heap && (heap.is_some() || profile.memprof.is_some()) {
                return Err(Failure::input(format_args!(
                    "{name}: not written: there is only a heap profile, which text cannot represent"
                ))
                .with_hint("write it as YAML: `profkit merge --to memprof-yaml`, or `profkit convert --to memprof-yaml`"));
            }
            let mut losses = text::losses(profile, options);
            let text = match joined {
                Some(joined) => {
                    let text = JoinedText::new(joined, profile, options, threads)
                        .map_err(|error| Failure::file(&name, &error))?;
                    losses.unreadable_names = text.unreadable_names();
                    written.functions = text.record_count();
                    Some(text)
                }
                None => {
                    let kept = |function: &FunctionRef<'_>| !options.sparse || function.has_run();
                    let functions = profile.tables.iter().flat_map(|table| table.functions());
                    let records = functions.filter(kept).flat_map(|one| one.records());
                    written.functions = records.count() as u64;
                    None
                }
            };
            written.losses = text_losses(profile, heap, options, losses);
            refuse_losses(&name, &written.losses, strict)?;
            output.stage(|sink| match text {
                Some(text) => text.write(sink),
                None => text::write(profile, options, sink).map(|_| ()),
            })?
        }
        Encoding::MemProfYaml(_) => {
            let Some(section) = &profile.memprof else {
                return Err(Failure::input("the inputs hold no heap profile")
                    .with_hint("--to text writes the counters"));
            };
            // The records have the order of a section's hash table, as in LLVM's YAML of an indexed profile.
            let heap = section
                .reread()
                .map_err(|error| Failure::file(&name, &error))?;
            written.format = "memprof-yaml";
            written.functions = heap.records().len() as u64;
            written.contexts = Some(heap.contexts().len() as u64);
            let functions = profile
                .tables
                .iter()
                .map(|table| table.record_count() as u64);
            let functions: u64 = functions.sum();
            if functions > 0 {
                let what = plural(functions, "function");
                written.losses.push(format!(
                    "left out the counters of {what}, which MemProf YAML cannot represent"
                ));
            }
            refuse_losses(&name, &written.losses, strict)?;
            output.stage(|sink| yaml::write(&heap, sink).map(|_| ()))?
        }
        Encoding::Indexed(options) => {
            let plan = IndexedFile::new(profile, joined, options)
                .map_err(|error| Failure::file(&name, &error))?;
            written.format = "indexed";
            written.functions = plan.record_count();
            written.contexts = profile.memprof.as_ref().and_then(heap_contexts);
            written.indexed_version = Some(options.version);
            written.losses = indexed_losses(plan.losses(), options.version);
            refuse_losses(&name, &written.losses, strict)?;
            output.stage(|sink| plan.write(threads, sink))?
        }
    };
    Ok(StagedProfile { file, written })
}
