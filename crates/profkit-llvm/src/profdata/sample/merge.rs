//! Reproduces `merge --sample`.
use super::super::inputs::InputList;
use super::super::options::FORMAT;
use super::super::pattern::Pattern;
use super::super::thresholds::thresholds;
use super::checks::{self, Check, first_fault, soft};
use super::{code_text, fault, read_options};
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_abi::sample::{flag, section};
use profkit_data::ErrorKind;
use profkit_data::remap::Remapping;
use profkit_data::sample::ext_binary::{self, ExtBinaryOptions, ExtBinaryProfile, Section};
use profkit_data::sample::{
    ColdContexts, Function, ProfileKind, SampleEncoding, SampleLayout, SampleName, SampleProfile,
    add_symbols, binary, encode_within, llvm_encoding, read_with, text,
};
use profkit_merge::MergeError;
use profkit_merge::files::Content;
use profkit_merge::sample::{SampleConflict, SampleMergeOptions, merge_sample};
use profkit_merge::{Action, Event, Inputs, Policy, Reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
    ExtBinary,
    Gcc,
}

/// Runs `merge --sample`.
pub fn run(
    parsed: &Parsed,
    inputs: &InputList,
    remapping: Option<Remapping>,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let form = match parsed.word(FORMAT) {
        Some("text") => Form::Text,
        Some("binary") => Form::Binary,
        Some("gcc") => Form::Gcc,
        _ => Form::ExtBinary,
    };
    let stops = !matches!(parsed.word("failure-mode"), Some("all" | "warn"));
    let mut options = SampleMergeOptions::new();
    options.policy = Policy::Llvm;
    options.read = read_options(parsed);
    options.stop_at_fault = stops;
    options.remapping = remapping;
    options.drop_symbols = parsed.flag("drop-profile-symbol-list");
    options.keep_bases = parsed.flag("generate-merged-base-profiles");
    options.cold = Some(ColdContexts {
        trim: parsed.flag("sample-trim-cold-context"),
        merge: parsed.flag("sample-merge-cold-context"),
        depth: parsed
            .number("sample-frame-depth-for-cold-context")
            .map_or(1, |depth| usize::try_from(depth).unwrap_or(usize::MAX)),
        thresholds: thresholds(parsed),
    });
    options.layout = match parsed.word("convert-sample-profile-layout") {
        Some("nest") => Some(SampleLayout::Nest),
        Some("flat") => Some(SampleLayout::Flat),
        _ => None,
    };
    let outcome = match merge_sample(inputs, &options) {
        Ok(outcome) => outcome,
        Err(error) => {
            let earlier = match &error {
                MergeError::Damaged(index, _) | MergeError::Unreadable(index, _) => {
                    // Before the error, LLVM prints its messages about the earlier inputs.
                    let merged = merge_sample(&inputs.first(*index), &options);
                    merged.map_or_else(|_| Vec::new(), |outcome| outcome.report.events)
                }
                MergeError::Kinds { report, .. } => report.events.clone(),
                _ => Vec::new(),
            };
            for event in &earlier {
                report(inputs, event, session)?;
            }
            return Err(merge_fault(inputs, &error));
        }
    };
    for event in &outcome.report.events {
        report(inputs, event, session)?;
    }
    let mut profile = outcome.profile;
    let events = outcome.report.events.iter();
    let damaged = events.filter(|event| event.action == Action::Dropped && event.error.is_some());
    let damaged: Vec<usize> = damaged.map(|event| event.input).collect();
    if !damaged.is_empty() {
        apply_damaged_kinds(inputs, &options, &damaged, &mut profile);
    }
    let has_hashes = last_has_hashes(inputs, &damaged);
    filter(parsed, &mut profile, has_hashes, session)?;
    write(parsed, form, &mut profile, session)?;
    if session.process_ends() {
        // The profile is not freed, because the system takes all memory back in one step. Freeing each function would
        // take a tenth of the time of the merge.
        std::mem::forget(profile);
    }
    Ok(())
}

/// Corrects the profile kind of the result if inputs were dropped as damaged. In LLVM's tool, each reader sets global
/// variables, and the writer uses them. So even a damaged input, of which nothing is merged, changes the kind of the
/// result.
fn apply_damaged_kinds(
    inputs: &InputList,
    options: &SampleMergeOptions,
    damaged: &[usize],
    profile: &mut SampleProfile,
) {
    let has_functions = !profile.functions().is_empty();
    let merged = &mut profile.kind;
    let mut scratch = Vec::new();
    let (mut all, mut sound) = (ProfileKind::NONE, ProfileKind::NONE);
    for index in 0..inputs.files.len() {
        let Ok(data) = inputs.open(index, &mut scratch) else {
            continue;
        };
        let data = data.as_ref();
        let after: &dyn Fn(ProfileKind) -> ProfileKind = match llvm_encoding(data) {
            Some(SampleEncoding::ExtBinary) => &|before| checks::kind_after(data, before),
            Some(SampleEncoding::Text) => {
                &|_| read_with(data, &mut SampleProfile::new(), 1, &options.read).kind
            }
            Some(SampleEncoding::Gcov) | None => continue,
            // When LLVM's readers of the binary and the compact binary encoding start, they reset only the variable for
            // FS-AFDO. The other variables keep the values from earlier inputs.
            Some(_) => &|before| before.without(ProfileKind::FS_DISCRIMINATORS),
        };
        all = after(all);
        if !damaged.contains(&index) {
            sound = after(sound);
        }
    }
    for flag in [
        ProfileKind::PROBE_BASED,
        ProfileKind::CONTEXT_SENSITIVE,
        ProfileKind::FS_DISCRIMINATORS,
        ProfileKind::PRE_INLINED,
    ] {
        // The option `--convert-sample-profile-layout` decides whether the result has contexts. Without this option,
        // the functions of intact inputs decide it, if there are any. A damaged input must not change this decision:
        // LLVM's tool could not read its own output if functions without contexts were marked as having contexts.
        let is_decided =
            flag == ProfileKind::CONTEXT_SENSITIVE && (options.layout.is_some() || has_functions);
        match (all.contains(flag), sound.contains(flag)) {
            _ if is_decided => {}
            (true, false) => *merged |= flag,
            (false, true) => *merged = merged.without(flag),
            _ => {}
        }
    }
}

/// Prints a problem of an input or a function that the merge has found.
///
/// # Errors
/// If LLVM's tool ends because of this problem in every failure mode.
fn report(inputs: &InputList, event: &Event, session: &Session<'_>) -> Result<(), Fault> {
    let file = inputs.files.get(event.input);
    let name = file.map_or(b"".as_slice(), |file| &file.name);
    match event.reason {
        Reason::ChecksumMismatch | Reason::CounterOverflow => {
            let what: &[u8] = match event.reason {
                Reason::ChecksumMismatch => b"Function hash mismatch",
                _ => b"Counter overflow",
            };
            let function = event.function.as_deref().unwrap_or_default();
            session.put(&[name, b": ", function, b": ", what, b"\n"].concat());
        }
        _ => match event_check(inputs, event) {
            Check { text, stops: true } => return Err(Fault::of(name, text)),
            Check { text, .. } => session.warning(name, text),
        },
    }
    Ok(())
}

/// Returns LLVM's text for the problem of an input.
fn event_check(inputs: &InputList, event: &Event) -> Check {
    let Some(error) = &event.error else {
        return soft(code(match event.reason {
            Reason::TooLarge => ErrorKind::TooLarge,
            _ => ErrorKind::UnrecognizedFormat,
        }));
    };
    let found = match inputs.open(event.input, &mut Vec::new()) {
        Ok(data) => first_fault(data.as_ref()),
        Err(_) => None,
    };
    found.unwrap_or(soft(code_text(error)))
}

fn code(kind: ErrorKind) -> &'static str {
    code_text(&profkit_data::Error::new(kind, ""))
}

fn merge_fault(inputs: &InputList, error: &MergeError) -> Fault {
    let name = |index: usize| {
        let file = inputs.files.get(index);
        file.map_or(b"".as_slice(), |file| &file.name)
    };
    match error {
        MergeError::Kinds {
            what: SampleConflict::Probes,
            ..
        } => Fault::new("cannot merge probe-based profile with non-probe-based profile"),
        MergeError::Kinds {
            what: SampleConflict::Contexts,
            ..
        } => Fault::new("cannot merge CS profile with non-CS profile"),
        MergeError::Damaged(index, error) => {
            let mut scratch = Vec::new();
            match inputs.open(*index, &mut scratch) {
                Ok(data) => fault(name(*index), data.as_ref(), error),
                Err(_) => Fault::of(name(*index), code_text(error)),
            }
        }
        MergeError::Unreadable(index, error) => Fault::io(name(*index), error),
        other => Fault::new(other.to_string()),
    }
}

/// Whether the last readable input contains hashes instead of names. In LLVM's tool, each reader sets a global variable
/// for this, and the filters use the variable.
fn last_has_hashes(inputs: &InputList, damaged: &[usize]) -> bool {
    let mut scratch = Vec::new();
    for index in (0..inputs.files.len()).rev() {
        if damaged.contains(&index) {
            continue;
        }
        let Ok(data) = inputs.open(index, &mut scratch) else {
            continue;
        };
        let data = data.as_ref();
        match llvm_encoding(data) {
            Some(SampleEncoding::ExtBinary) => {
                let has_hashes =
                    |it: &Section| it.kind == section::NAMES && it.has(flag::MD5_NAMES);
                return ExtBinaryProfile::parse(data)
                    .is_ok_and(|file| file.sections().iter().any(has_hashes));
            }
            Some(_) => return false,
            None => {}
        }
    }
    false
}

/// Applies `--function` and `--no-function` to the merged profile. If `has_hashes` is true, the profile contains hashes
/// instead of names, and a pattern also matches the hash of its own text.
fn filter(
    parsed: &Parsed,
    profile: &mut SampleProfile,
    has_hashes: bool,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let names = profile.names.clone();
    let pattern = |name| {
        let text = parsed.text(name);
        (!text.is_empty()).then(|| Pattern::new(text).map_err(Fault::new))
    };
    // If the profile contains hashes instead of names, LLVM also hashes the pattern as if it were a name, and compares
    // this hash with the hash of the whole context. So the hash of a pattern never matches a function with callers.
    let matches = |pattern: &Pattern, function: &Function, name: &[u8]| {
        pattern.matches(name)
            || has_hashes
                && function.callers.is_empty()
                && names.get(function.samples.name) == SampleName::Guid(pattern.hash())
    };
    let keep = pattern("function").transpose()?;
    let drop = pattern("no-function").transpose()?;
    if keep.is_none() && drop.is_none() {
        return Ok(());
    }
    let before = profile.functions().len();
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    profile.retain(|function| {
        let name = super::show::context(&names, function, contexts);
        !drop
            .as_ref()
            .is_some_and(|drop| matches(drop, function, &name))
            && keep
                .as_ref()
                .is_none_or(|keep| matches(keep, function, &name))
    });
    let filtered = before - profile.functions().len();
    session.put(
        format!("{filtered} of {before} functions in the original profile are filtered.\n")
            .as_bytes(),
    );
    Ok(())
}

fn write(
    parsed: &Parsed,
    form: Form,
    profile: &mut SampleProfile,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let name = parsed.output();
    let content = match form {
        Form::Text => Content::Text,
        _ => Content::Binary,
    };
    let output = output::create(session, name, content)?;
    let needs_sections = [ProfileKind::CONTEXT_SENSITIVE, ProfileKind::PROBE_BASED];
    let is_lost = |kind: &ProfileKind| profile.kind.contains(*kind);
    if form == Form::Gcc || form == Form::Binary && needs_sections.iter().any(is_lost) {
        let text = "Profile encoding format unsupported for writing operations";
        return Err(Fault::of(name, text));
    }
    let split = parsed.flag("split-layout");
    if split && form == Form::Binary {
        session.warning(
            b"",
            "-split-layout is ignored. Specify -extbinary to enable it",
        );
    }
    if split
        && form == Form::ExtBinary
        && profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE)
        && !profile.functions().is_empty()
    {
        session.warning(
            name,
            "-split-layout leaves out the table of the calling contexts: no tool can read the written file",
        );
    }
    let list = parsed.text("prof-sym-list");
    if !list.is_empty() {
        let bytes = session.read(list)?;
        add_symbols(profile, bytes.as_ref());
        // LLVM reads a line that contains only blanks as a symbol without a name.
        let mut lines = bytes.as_ref().split(|&byte| byte == b'\n');
        if lines.any(|line| !line.is_empty() && line.iter().all(is_blank)) {
            profile.symbols.insert([].into());
        }
    }
    if !profile.symbols.is_empty() && form != Form::ExtBinary {
        let text = "Profile Symbol list is not empty but the output format is not ExtBinary \
                    format. The list will be lost in the output. ";
        session.warning(b"", text);
    }
    let mut options = ExtBinaryOptions::default()
        .split_layout(split)
        .split_contexts_as_llvm(true)
        .vtables(parsed.flag("extbinary-write-vtable-type-prof"));
    let option = |flag: &str, shown: &str| {
        let given = parsed.flag(flag);
        if given && form != Form::ExtBinary {
            let text = format!("-{shown} is ignored. Specify -extbinary to enable it");
            session.warning(b"", &text);
        }
        given
    };
    options = options
        .compress(option("compress-all-sections", "compress-all-section"))
        .md5_names(option("use-md5", "use-md5"))
        .partial(option("gen-partial-profile", "gen-partial-profile"));
    // LLVM sets the flag for partial profiles only if an option asks for it, and ignores the flags of the inputs.
    profile.kind = profile.kind.without(ProfileKind::PARTIAL);
    let limit = parsed
        .number("output-size-limit")
        .filter(|&limit| limit > 0);
    if limit.is_some() && profile.functions().is_empty() {
        return Err(Fault::new("Too much profile data"));
    }
    let encoded = encode_within(profile, limit, |profile, bytes| match form {
        Form::Text => {
            let options = text::TextOptions::default()
                .llvm_vtables(true)
                .mark_flat(split);
            text::write(profile, &options, bytes)
        }
        Form::Binary => binary::write(profile, bytes),
        _ => ext_binary::write(profile, &options, bytes),
    });
    let encoded = encoded.map_err(|error| match error.kind() {
        ErrorKind::CannotRepresent => Fault::of(name, code_text(&error)),
        _ => Fault::profile(name, &error),
    })?;
    let Some(bytes) = encoded.bytes else {
        return Err(Fault::new("Too much profile data"));
    };
    output::write_bytes(session, output, name, |sink| sink.put(&bytes).map(Ok))
}

/// Whether LLVM removes this byte from both ends of a symbol.
fn is_blank(byte: &u8) -> bool {
    b" \t\n\x0b\x0c\r".contains(byte)
}
