//! Messages about data that a format cannot represent.
use crate::{grouped, numbered, percent, plural};
use profkit_analysis::instr::Fitted;
use profkit_analysis::stable::Stabilised;
use profkit_data::instr::text::TextOptions;
use profkit_data::instr::{HeapSection, InstrKind, InstrProfile, Losses};
use profkit_data::memprof::MemProfile;
use profkit_data::printable;
use profkit_data::releases::Release;
use profkit_data::releases::{display_range, indexed_writers};
use profkit_data::sample::{
    FormLosses, Losses as SampleLosses, ProfileKind, SampleForm, SampleProfile,
};

/// Returns messages about data that a version of the indexed format cannot represent.
pub fn indexed_losses(losses: &Losses, version: u32) -> Vec<String> {
    let releases = match indexed_writers(version) {
        Some(range) => format!(" ({})", display_range(&range)),
        None => String::new(),
    };
    let reader = format!("indexed version {version}{releases} cannot represent");
    parts_left_out(losses, &reader)
}

fn parts_left_out(losses: &Losses, why: &str) -> Vec<String> {
    let flags = Some(losses.flags).filter(|flags| !flags.is_unknown());
    let flags = flags.map(|flags| format!("the kind of the profile ({flags})"));
    // The flags already have a message, which names them. So they must not be counted among the other parts.
    let mut others = losses.clone();
    others.flags = InstrKind::UNKNOWN;
    let counts = others.counts().map(|(count, what)| match count {
        1 => format!("1 {}", what.trim_end_matches('s')),
        _ => format!("{} {what}", grouped(count)),
    });
    let lost = flags.into_iter().chain(counts);
    lost.map(|what| format!("left out {what}, which {why}"))
        .collect()
}

/// Says what text cannot represent of a profile and of `heap`, a heap profile outside its MemProf section; but not of
/// build ids, which no text has. `losses` are those of [`losses`](profkit_data::instr::text::losses), with those of functions that are
/// not in the tables of the profile.
pub fn text_losses(
    profile: &InstrProfile,
    heap: Option<&MemProfile>,
    options: &TextOptions,
    mut losses: Losses,
) -> Vec<String> {
    let heap = heap.map(|heap| {
        let functions = plural(heap.records().len() as u64, "function");
        format!("left out the heap profile of {functions}, which text cannot represent")
    });
    let sections = profile.memprof.iter().flat_map(HeapSection::encoded);
    let memprof = sections.map(|section| {
        let bytes = plural(section.bytes.len() as u64, "byte");
        format!("left out the MemProf section ({bytes}), which text cannot represent")
    });
    let entries = InstrKind::FUNCTION_ENTRY_ONLY;
    let flags = losses.flags.contains(entries).then(|| {
        "left out the function-entry flag of the profile, which text cannot represent".to_owned()
    });
    losses.flags = losses.flags.without(entries);
    (losses.binary_ids, losses.memprof) = (0, false);
    let of = options
        .release
        .map(|release| format!(" for LLVM {release}"));
    let why = format!("text{} cannot represent", of.unwrap_or_default());
    memprof
        .chain(heap)
        .chain(flags)
        .chain(parts_left_out(&losses, &why))
        .collect()
}

/// Says that `count` parts were left out. The first word of `what` is a plural that loses its `s` for 1.
pub fn left_out(count: u64, what: &str) -> String {
    let end = what
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(what.len());
    match (count, what.split_at(end)) {
        (1, (noun, rest)) => format!("left out 1 {}{rest}", noun.trim_end_matches('s')),
        _ => format!("left out {} {what}", grouped(count)),
    }
}

/// Says what an encoding of sample profiles, written for an LLVM release, cannot represent.
pub fn sample_losses(
    losses: &FormLosses,
    form: SampleForm,
    release: Option<Release>,
) -> Vec<String> {
    match losses {
        FormLosses::Llvm(losses) => llvm_sample_losses(losses, release.filter(|_| form.is_text())),
        FormLosses::Gcov(losses) => {
            let why = "GCC's encoding cannot hold such data";
            let counts = losses.counts();
            counts
                .map(|(count, what)| left_out(count, &format!("{what}: {why}")))
                .collect()
        }
    }
}

/// Says that the release that was asked for reads calling contexts in no such file.
pub fn unread_contexts(
    profile: &SampleProfile,
    form: SampleForm,
    release: Option<Release>,
) -> Option<String> {
    // LLVM 13 has another form of contexts in this encoding, and calls ours malformed.
    let is_unread = form == SampleForm::ExtBinary
        && profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE)
        && release.is_some_and(|release| release < Release::new(14));
    is_unread.then(|| {
        let release = release.map_or_else(String::new, |release| release.to_string());
        format!(
            "LLVM {release} does not read calling contexts in this encoding, but in text (--to text); `profkit convert --layout nest` turns them into nested functions"
        )
    })
}

fn llvm_sample_losses(losses: &SampleLosses, text_for: Option<Release>) -> Vec<String> {
    let unspeakable = losses.unspeakable_names;
    let unspeakable = (unspeakable > 0).then(|| {
        format!(
            "{} with which the text cannot be read back: hashes of inlined functions, or names with line breaks or the like",
            plural(unspeakable, "name")
        )
    });
    let symbols = (losses.symbols > 0).then(|| {
        format!(
            "left out the symbol list ({}): the output cannot hold such a list",
            plural(losses.symbols, "name")
        )
    });
    let of_release = text_for.map_or(": the output cannot hold such data".to_owned(), |release| {
        format!(": text for LLVM {release} cannot hold such data")
    });
    let of_release = of_release.as_str();
    let others = [
        (losses.vtables, "vtables", of_release),
        (losses.checksums, "checksums", of_release),
        (losses.attributes, "attributes", of_release),
        (
            losses.names,
            "names: the output holds only their hashes",
            "",
        ),
        (
            losses.large_lines,
            "samples of line numbers above 65535",
            "",
        ),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, what, why)| left_out(count, &format!("{what}{why}")));
    symbols
        .into_iter()
        .chain(others)
        .chain(unspeakable)
        .collect()
}

/// What `--stable` did, and which names have paths of the machine that compiled the functions.
pub fn stable_notes(done: &Stabilised) -> (Vec<String>, Option<String>) {
    let mut notes = Vec::new();
    if done.changed > 0 {
        let kept = match done.kept {
            0 => String::new(),
            kept => format!(", {} of them to those of the older profile", grouped(kept)),
        };
        notes.push(format!(
            "--stable: rounded {}{kept}",
            plural(done.changed, "count")
        ));
    }
    if done.traces > 0 {
        notes.push(format!(
            "--stable: left out {}, whose order is that of one run: --order-free keeps traces",
            plural(done.traces, "temporal trace")
        ));
    }
    let paths = done.first_with_path.as_ref().map(|first| {
        format!(
            "{}, such as `{}`: call the compiler with a path relative to the folder of the build",
            numbered(
                done.with_paths,
                "{name|names} of local functions {begins|begin} with an absolute path"
            ),
            printable(first)
        )
    });
    (notes, paths)
}

/// What was changed in a profile for an older release, and what that release cannot use.
pub fn fitted_notes(fitted: &Fitted, release: Release) -> Vec<String> {
    let mut notes = Vec::new();
    let renamed = &fitted.renamed;
    if renamed.records > 0 {
        notes.push(format!(
            "{} got the names that LLVM {release} looks up (`file:function`): {} of all counts",
            numbered(renamed.records, "local {function|functions}"),
            percent(renamed.counts, renamed.all_counts),
        ));
    }
    if fitted.has_other_hashes {
        notes.push(format!(
            "LLVM {release} hashes functions differently than LLVM 12 and later, which made this profile: its compiler will find none of the functions. Build the instrumented program with LLVM {release} and profile that"
        ));
    }
    notes
}
