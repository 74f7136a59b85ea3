//! Compiles, links and runs programs with clang's heap profiling. Parses what tools print about the heap dumps.
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The options of clang and clang++ for compiling with heap profiling. They keep frame pointers and debug info, so that
/// the call stack of an allocation can be walked and symbolised.
pub const HEAP_FLAGS: [&str; 7] = [
    "-fmemory-profile",
    "-gmlt",
    "-fdebug-info-for-profiling",
    "-mno-omit-leaf-frame-pointer",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-O2",
];

/// The options for linking with heap profiling. Since LLVM 19, dumps identify the binaries by their build ids.
pub const HEAP_LINK_FLAGS: [&str; 2] = ["-fmemory-profile", "-Wl,--build-id"];

/// Runs a program in the given folder. The program writes its heap dump to `NAME.memprofraw` in that folder.
///
/// # Errors
/// If the program cannot be started, does not exit with 0, or writes no dump.
pub fn heap_dump(program: &mut Command, folder: &Path, name: &str) -> io::Result<Output> {
    let child = program
        .current_dir(folder)
        // The run-time library appends the process id to the name of the dump.
        .env("MEMPROF_OPTIONS", format!("log_path={name}.memprofraw"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let dump = folder.join(format!("{name}.memprofraw"));
    let written = folder.join(format!("{name}.memprofraw.{}", child.id()));
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{program:?}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    std::fs::rename(&written, &dump)
        .map_err(|error| io::Error::new(error.kind(), format!("no dump {}", written.display())))?;
    Ok(output)
}

/// A frame: the hash of the function, the line offset, the column, and whether the frame is inlined.
type Frame = (u64, u32, u32, bool);

/// An allocation context. It consists of its call stack and the fields of its memory statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeapContext {
    stack: Vec<Frame>,
    fields: BTreeMap<String, u64>,
}

/// Parses the allocation contexts that `llvm-profdata-N show --memory RAW` prints. LLVM prints a context several times,
/// once for each function of its innermost inlined frames; the result contains it once.
///
/// # Errors
/// If the text does not have the expected form.
pub fn contexts_of_llvm(text: &str) -> Result<BTreeSet<HeapContext>> {
    let mut found = BTreeSet::new();
    let mut context = HeapContext::default();
    // Whether the current frames belong to an allocation site. If false, they belong to a call site.
    let mut allocation = false;
    let mut block = false;
    for line in text.lines() {
        let line = line.trim();
        // The memory statistics end where another list item or section begins.
        if block && (line == "-" || line.ends_with(':')) {
            found.insert(std::mem::take(&mut context));
            block = false;
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let number = || {
            let number: u64 = value.trim().parse().with_context(|| line.to_owned())?;
            Ok::<_, anyhow::Error>(number)
        };
        match key {
            "Callstack" => {
                allocation = true;
                context = HeapContext::default();
            }
            "CallSites" => allocation = false,
            "MemInfoBlock" => block = true,
            "Function" if allocation => context.stack.push((number()?, 0, 0, false)),
            "LineOffset" | "Column" | "Inline" if allocation => {
                let number = u32::try_from(number()?)?;
                let frame = context.stack.last_mut().context("a frame's function")?;
                match key {
                    "LineOffset" => frame.1 = number,
                    "Column" => frame.2 = number,
                    _ => frame.3 = number != 0,
                }
            }
            _ if block => {
                context.fields.insert(key.to_owned(), number()?);
            }
            _ => {}
        }
    }
    if block {
        found.insert(context);
    }
    ensure!(!found.is_empty(), "LLVM shows no context");
    Ok(found)
}

/// Parses the allocation contexts in the JSON output of `profkit show`.
///
/// # Errors
/// If the text does not have the expected form.
pub fn contexts_of_profkit(text: &str) -> Result<BTreeSet<HeapContext>> {
    let json: serde_json::Value = serde_json::from_str(text).context("show's JSON")?;
    let small = |value: &serde_json::Value| {
        let number = value.as_u64().context("a number of a frame")?;
        Ok::<_, anyhow::Error>(u32::try_from(number)?)
    };
    let contexts = json["contexts"].as_array().context("contexts")?;
    let mut found = BTreeSet::new();
    for context in contexts {
        let mut one = HeapContext::default();
        for frame in context["stack"].as_array().context("a stack")? {
            // Debug info does not cover these frames, and LLVM leaves them out.
            if !frame["binary"].is_null() {
                continue;
            }
            let guid = frame["guid"].as_str().context("a function")?;
            one.stack.push((
                u64::from_str_radix(guid.trim_start_matches("0x"), 16)?,
                small(&frame["line_offset"])?,
                small(&frame["column"])?,
                frame["inlined"].as_bool().context("inlined")?,
            ));
        }
        if one.stack.is_empty() {
            continue;
        }
        for (field, value) in context["fields"].as_object().context("fields")? {
            one.fields
                .insert(field.clone(), value.as_u64().context("a field")?);
        }
        found.insert(one);
    }
    Ok(found)
}

/// The contexts without their access densities, which LLVM 14 and 15 do not record.
#[must_use]
pub fn without_densities(contexts: BTreeSet<HeapContext>) -> BTreeSet<HeapContext> {
    let without = |mut context: HeapContext| {
        context
            .fields
            .retain(|field, _| !field.ends_with("AccessDensity"));
        context
    };
    contexts.into_iter().map(without).collect()
}

/// Checks that two sets contain the same allocation contexts.
///
/// # Errors
/// The first context that is only in one of the sets.
pub fn same_contexts(theirs: &BTreeSet<HeapContext>, ours: &BTreeSet<HeapContext>) -> Result<()> {
    if let Some(only) = theirs.difference(ours).next() {
        bail!(
            "{} and {} contexts; only LLVM shows {only:?}",
            theirs.len(),
            ours.len()
        );
    }
    if let Some(only) = ours.difference(theirs).next() {
        bail!(
            "{} and {} contexts; only profkit shows {only:?}",
            theirs.len(),
            ours.len()
        );
    }
    Ok(())
}
