//! Runs `merge` for instrumentation profiles, as `mergeInstrProfile` in `llvm-profdata.cpp` does.
use super::inputs::InputList;
use super::options::{FORMAT, KIND};
use super::pattern::Pattern;
use super::{correlate, memprof};
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session, fault_text};
use crate::output;
use profkit_abi::value_kind;
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::text::{self, TextOptions};
use profkit_data::instr::{InstrKind, InstrProfile, RecordRef};
use profkit_data::releases::Release;
use profkit_data::remap::Remapping;
use profkit_merge::files::{Content, IndexedFile, JoinedText};
use profkit_merge::{
    Event, IndexedMerge, Inputs, Joined, LlvmCode, MergeError, MergeOptions, MergeOutcome, Policy,
    RecordVisitor, RunOptions, Threads, TraceOptions, merge_indexed, merge_instr,
};
use std::num::NonZeroUsize;

/// The version of the indexed format that `--write-prev-version` selects.
const PREVIOUS_VERSION: u32 = 11;
const HINT: &str =
    "Make sure that all profile data to be merged is generated from the same binary.";

/// Runs `merge`.
pub fn run(program: &str, parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    let mut inputs = InputList::new(parsed, session)?;
    if inputs.is_empty() {
        return Err(Fault::new(format!(
            "no input files specified. See {program} merge -help"
        )));
    }
    if parsed.flag("dump-input-file-list") {
        return list(&inputs, session);
    }
    inputs.read_stdin(session);
    let remapping = remapping(parsed, session)?;
    let sample = parsed.word(KIND) == Some("sample");
    if !parsed.text("supplement-instr-with-sample").is_empty() {
        return Err(if sample {
            Fault::new("-supplement-instr-with-sample can only work with -instr. ")
        } else {
            return super::sample::supplement(parsed, &inputs, session);
        });
    }
    if sample {
        return super::sample::merge(parsed, &inputs, remapping, session);
    }
    let text = match parsed.word(FORMAT) {
        Some("gcc") => return Err(Fault::new("unknown format is specified")),
        format => format == Some("text"),
    };
    let (heap_inputs, rest) = inputs.split_heap_profiles();
    if !heap_inputs.is_empty() && parsed.flag("memprof-random-hotness") {
        return Err(Fault::later("--memprof-random-hotness"));
    }
    let threads = threads(parsed);
    let heap = memprof::load(parsed, &inputs, &heap_inputs, &threads, session)?;
    inputs.remove(&heap_inputs);
    let correlation = correlate::source(parsed, &inputs, session)?;

    let keep = filter(parsed.text("function"));
    let drop = filter(parsed.text("no-function"));
    let mut options = merge_options(parsed, session.release(), &threads, remapping, &keep, &drop);
    options.correlation = correlation;
    let merged = if rest.is_empty() && heap.is_some() {
        Ok(IndexedMerge::from(MergeOutcome {
            profiles: vec![profkit_merge::MergedProfile::default()],
            ..MergeOutcome::default()
        }))
    } else if text && parsed.flag("sparse") {
        merge_instr(&inputs, &options).map(IndexedMerge::from)
    } else {
        let write = write_options(parsed, session.release());
        merge_indexed(&inputs, &options, &|_| write.clone())
    };
    let IndexedMerge {
        mut outcome,
        joined,
    } = match merged {
        Ok(merged) => merged,
        Err(error) => return Err(merge_fault(&error)),
    };
    let mut bad = report(&outcome, &inputs, session);
    let mut conflict = false;
    if let Some(heap) = &heap {
        bad += heap.bad;
        if merged_kind(&outcome).contains(InstrKind::FRONT_END) {
            let text = "Cannot merge MemProf profile with Clang generated profile.";
            session.warning(&heap.first, text);
            bad += heap_inputs.len() - heap.bad;
            conflict = true;
        }
    }
    let fails = match parsed.word("failure-mode") {
        Some("warn") => false,
        Some("all") => bad == inputs.len() + heap_inputs.len(),
        _ => bad > 0,
    };
    if fails {
        return Err(Fault::new("no profile can be merged"));
    }
    let is_filtered = keep.is_some() || drop.is_some();
    for pattern in [keep, drop].into_iter().flatten() {
        pattern.map_err(Fault::new)?;
    }
    if is_filtered {
        // LLVM counts a name once, also if it has several records.
        let filtered = outcome.report.totals.names_filtered;
        let merged = outcome.profiles.iter();
        let tables = merged.flat_map(|merged| &merged.profile.tables);
        let kept: u64 = match &joined {
            Some((joined, _)) => joined.function_count(),
            None => tables.map(|table| table.function_count() as u64).sum(),
        };
        session.put(
            format!(
                "{filtered} of {} functions in the original profile are filtered.\n",
                kept + filtered
            )
            .as_bytes(),
        );
    }
    let mut profile = match outcome.profiles.pop() {
        Some(merged) => merged.profile,
        None => InstrProfile::default(),
    };
    if let Some(heap) = heap.filter(|_| !conflict) {
        // LLVM writes the MemProf section even if it is empty.
        profile.memprof = Some(memprof::section(
            parsed,
            heap.profile,
            profile.memprof.take(),
        )?);
    }
    let (joined, sizes) = match joined {
        Some((joined, sizes)) => (Some(joined), sizes),
        None => (None, Sizes::of(&profile)),
    };
    let result = (&profile, joined.as_ref());
    write(parsed, result, text, &options.run.threads, session)?;
    if sizes.repeat {
        let text = "invalid profile created. Please file a bug at: \
            https://github.com/llvm/llvm-project/issues/ and include the profraw files that caused this error.";
        session.warning(b"", text);
    }
    Ok(())
}

fn merged_kind(outcome: &MergeOutcome) -> InstrKind {
    let profile = outcome.profiles.first().map(|merged| &merged.profile);
    let used = profile.filter(|_| outcome.report.totals.functions > 0);
    used.map_or(InstrKind::default(), |profile| profile.kind)
}

fn list(inputs: &InputList, session: &Session<'_>) -> Result<(), Fault> {
    let output = output::create(session, b"-", Content::Text)?;
    output::write(session, output, b"-", |lines: &mut Lines<'_>| {
        for file in &inputs.files {
            lines.number(file.weight).text(b",").text(&file.name).end();
        }
        Ok(())
    })
}

fn remapping(parsed: &Parsed, session: &Session<'_>) -> Result<Option<Remapping>, Fault> {
    let name = parsed.text("remapping-file");
    if name.is_empty() {
        return Ok(None);
    }
    let bytes = session.read(name)?;
    let remapping = Remapping::parse(bytes.as_ref()).map_err(|error| {
        let place = [name, format!(":{}", error.line).as_bytes()].concat();
        Fault::of(&place, "unexpected line in remapping file")
            .with_note("expected 'old_symbol new_symbol'")
    })?;
    Ok(Some(remapping))
}

/// Compiles the pattern `text`; `None` if it is empty. The error is LLVM's message.
fn filter(text: &[u8]) -> Option<Result<Pattern, &'static str>> {
    (!text.is_empty()).then(|| Pattern::new(text))
}

/// The threads that the option `-num-threads` asks for.
fn threads(parsed: &Parsed) -> Threads {
    Threads::new(
        parsed
            .number("num-threads")
            .and_then(|threads| NonZeroUsize::new(usize::try_from(threads).unwrap_or(usize::MAX))),
    )
}

fn merge_options(
    parsed: &Parsed,
    release: Release,
    threads: &Threads,
    remapping: Option<Remapping>,
    keep: &Option<Result<Pattern, &'static str>>,
    drop: &Option<Result<Pattern, &'static str>>,
) -> MergeOptions {
    let mut traces = TraceOptions::default();
    if let Some(size) = parsed.number("temporal-profile-trace-reservoir-size") {
        traces.reservoir_size = size;
    }
    if let Some(length) = parsed.number("temporal-profile-max-trace-length") {
        traces.max_length = length;
    }
    let mut options = MergeOptions::new()
        .policy(Policy::Llvm)
        .read_as(Some(release))
        .run(RunOptions::new().threads(threads.clone()))
        .traces(traces)
        .keep_vtable_names(parsed.flag("keep-vtable-symbols"));
    if let Some(remapping) = remapping {
        options = options.remapping(remapping);
    }
    let pattern = |filter: &Option<Result<Pattern, _>>| filter.clone().and_then(Result::ok);
    let (keep, drop) = (pattern(keep), pattern(drop));
    if keep.is_some() || drop.is_some() {
        options = options.filter(move |name| {
            !drop.as_ref().is_some_and(|drop| drop.matches(name))
                && keep.as_ref().is_none_or(|keep| keep.matches(name))
        });
    }
    options
}

#[cold]
pub(super) fn merge_fault(error: &MergeError) -> Fault {
    match error {
        MergeError::Llvm(fault) => Fault::new(fault_text(fault)),
        other => Fault::new(other.to_string()),
    }
}

/// Prints the problems of functions and files. Returns the number of files that could not be used.
fn report(outcome: &MergeOutcome, inputs: &InputList, session: &Session<'_>) -> usize {
    let mut hinted: Vec<LlvmCode> = Vec::new();
    let mut bad = 0;
    for event in &outcome.report.events {
        let name = inputs
            .files
            .get(event.input)
            .map(|file| file.name.as_slice());
        let Some(name) = name else {
            // The merge reports a problem without a file if it finds the problem while it joins the results of two
            // threads. LLVM reports such a problem without a file name, once per error code.
            if let Some(fault) = &event.llvm
                && !hinted.contains(&fault.code)
            {
                hinted.push(fault.code);
                session.warning(b"", &fault_text(fault));
            }
            continue;
        };
        match &event.function {
            Some(function) => function_line(event, name, function, &mut hinted, session),
            None if event.reason.is_note() => {}
            None => {
                bad += 1;
                match &event.llvm {
                    Some(fault) => session.warning(name, &fault_text(fault)),
                    None => session.warning(name, &event.message),
                }
            }
        }
    }
    bad
}

/// Prints a line about a problem of a function. If its error code occurs for the first time, a hint follows.
pub(super) fn function_line(
    event: &Event,
    file: &[u8],
    function: &[u8],
    hinted: &mut Vec<LlvmCode>,
    session: &Session<'_>,
) {
    let Some(fault) = &event.llvm else { return };
    let mut lines = Vec::new();
    for part in [file, function] {
        if !part.is_empty() {
            lines.extend_from_slice(part);
            lines.extend_from_slice(b": ");
        }
    }
    lines.extend_from_slice(fault_text(fault).as_bytes());
    lines.push(b'\n');
    if !hinted.contains(&fault.code) {
        hinted.push(fault.code);
        if matches!(
            fault.code,
            LlvmCode::HashMismatch | LlvmCode::CountMismatch | LlvmCode::ValueSiteCountMismatch
        ) {
            lines.extend_from_slice(HINT.as_bytes());
            lines.push(b'\n');
        }
    }
    session.put(&lines);
}

/// Whether any function that will be written has no name. Such functions come from inputs in which the hash of a name
/// is damaged.
fn has_unnamed(profile: &InstrProfile, sparse: bool) -> bool {
    let functions = profile.tables.iter().flat_map(|table| table.functions());
    functions
        .filter(|function| function.name().is_empty())
        .flat_map(|function| function.records())
        .any(|record| {
            let is_set = record.counts.iter().any(|&count| count != 0)
                || record.bitmap.iter().any(|&byte| byte != 0);
            !sparse || is_set
        })
}

pub(super) fn write(
    parsed: &Parsed,
    (profile, joined): (&InstrProfile, Option<&Joined<'_>>),
    text: bool,
    threads: &Threads,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let name = parsed.output();
    if text {
        let sparse = parsed.flag("sparse");
        let output = output::create(session, name, Content::Text)?;
        let options = TextOptions::default().sparse(sparse);
        // If any function has no name, LLVM writes only the directives for the whole profile (such as `:ir`), and
        // prints a warning.
        let unnamed = has_unnamed(profile, sparse);
        let directives = InstrProfile {
            kind: profile.kind.without(InstrKind::TEMPORAL),
            ..InstrProfile::default()
        };
        let profile = if unnamed { &directives } else { profile };
        let joined = joined.map(|joined| JoinedText::new(joined, profile, &options, threads));
        let joined = joined
            .transpose()
            .map_err(|error| Fault::profile(name, &error))?;
        output::write_bytes(session, output, name, |sink| match joined {
            Some(text) => text.write(sink).map(Ok),
            None => text::write(profile, &options, sink).map(|_| Ok(())),
        })?;
        if unnamed {
            let text = "malformed instrumentation profile data: symbol name is empty";
            session.warning(b"", text);
        }
        return Ok(());
    }
    let output = output::create(session, name, Content::Binary)?;
    let plan = IndexedFile::new(profile, joined, &write_options(parsed, session.release()))
        .map_err(|error| Fault::profile(name, &error))?;
    output::write_bytes(session, output, name, |sink| {
        plan.write(threads, sink).map(Ok)
    })
}

fn write_options(parsed: &Parsed, release: Release) -> IndexedWriteOptions {
    let mut options = IndexedWriteOptions::for_llvm(release);
    if parsed.flag("write-prev-version") {
        // With `--write-prev-version`, LLVM writes the previous version number into the header, and nothing else
        // changes: flags and heap profiles are written as in the newest version.
        options.version = PREVIOUS_VERSION;
        options = options.unknown_vtable_sites(true);
    }
    options.sparse(parsed.flag("sparse"))
}

/// Looks for value sites for sizes of memory operations that contain the same size twice. A single damaged input can
/// cause this. LLVM writes such a profile and then prints a warning (`InstrProfWriter::validateRecord`).
#[derive(Default)]
struct Sizes {
    repeat: bool,
    seen: Vec<u64>,
}

impl Sizes {
    fn of(profile: &InstrProfile) -> Self {
        let mut sizes = Sizes::default();
        let functions = profile.tables.iter().flat_map(|table| table.functions());
        for record in functions.flat_map(|function| function.records()) {
            sizes.record(&record);
        }
        sizes
    }
}

impl RecordVisitor for Sizes {
    fn record(&mut self, record: &RecordRef<'_>) {
        let sizes = record
            .values
            .and_then(|values| values.kind(value_kind::MEM_OP_SIZE));
        for site in sizes.into_iter().flat_map(|sizes| sizes.sites()) {
            self.seen.clear();
            self.seen.extend(site.iter().map(|entry| entry.value));
            self.seen.sort_unstable();
            let mut pairs = self.seen.windows(2);
            self.repeat |= pairs.any(|pair| pair.first() == pair.last());
        }
    }

    fn absorb(&mut self, other: Self) {
        self.repeat |= other.repeat;
    }
}
