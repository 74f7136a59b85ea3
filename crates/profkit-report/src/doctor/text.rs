//! Diagnoses as text for people.
use super::remarks;
use super::words;
use crate::show::text::stated;
use crate::{Cell, Document, Style, grouped, plural, quoted, size};
use profkit_analysis::doctor::{Counts, Diagnosis, Group, Support, Verdict, What};
use profkit_analysis::names::printable;
use profkit_data::instr::Target;

const MOST_IN_COMMAND: u64 = 3;
const MOST_LISTED: usize = 5;
const MOST_FAULTS: usize = 3;
const MOST_IDS: usize = 3;

/// The diagnosis of one file.
pub fn file(name: &str, diagnosis: &Diagnosis) -> Document {
    block(name, diagnosis, None, usize::MAX)
}

fn block(
    name: &str,
    diagnosis: &Diagnosis,
    complete: Option<&str>,
    most_faults: usize,
) -> Document {
    let mut document = Document::default();
    add_title(&mut document, &printable(name.as_bytes()), diagnosis);
    let size = diagnosis
        .size
        .map(|size| format!("{} bytes", grouped(size)));
    let functions = functions(diagnosis);
    add_facts(&mut document, diagnosis, size, &functions, usize::MAX);
    if !diagnosis.support.is_empty() {
        add_support(&mut document, diagnosis);
    }
    let damage = &diagnosis.damage;
    if damage.count > 0 {
        document.line(format_args!("  {}", heading(diagnosis)));
        for error in damage.first.iter().take(most_faults) {
            document.wrapped("    ", error);
        }
        let shown = damage.first.len().min(most_faults) as u64;
        if let more @ 1.. = damage.count.saturating_sub(shown) {
            let each = match most_faults {
                usize::MAX => "",
                _ => ": --each shows more",
            };
            document.line(format_args!("    and {} more{each}", grouped(more)));
        }
        let mut hints: Vec<_> = damage.first.iter().filter_map(|one| one.hint()).collect();
        hints.dedup();
        for hint in hints {
            document.wrapped("    ", format_args!("hint: {hint}"));
        }
    }
    add_next(
        &mut document,
        diagnosis,
        (name, &quoted(name), ""),
        complete,
    );
    document
}

/// A group of like files. With other files beside it, a single one has its first faults only. `paths` are quoted
/// arguments.
pub fn group(group: &Group, counts: Counts, paths: &str) -> Document {
    let diagnosis = &group.first;
    let complete = group.complete.as_deref();
    if let ([only], 1) = (group.members.as_slice(), group.files) {
        let most_faults = if counts.files() == 1 {
            usize::MAX
        } else {
            MOST_FAULTS
        };
        return block(&only.name, diagnosis, complete, most_faults);
    }
    let mut document = Document::default();
    let what = words::short(diagnosis);
    let title = format!("{} × {what}", grouped(group.files));
    add_title(&mut document, &title, diagnosis);
    let functions = match group.functions {
        (least, most) if least == most => grouped(least),
        (least, most) => format!("{} to {}", grouped(least), grouped(most)),
    };
    let bytes = format!("{} in all", size(group.bytes));
    add_facts(&mut document, diagnosis, Some(bytes), &functions, MOST_IDS);
    if group.first.verdict == Verdict::Sound && !diagnosis.support.is_empty() {
        add_support(&mut document, diagnosis);
    }
    if let Some(fault) = diagnosis.damage.first.first() {
        let heading = heading(diagnosis);
        document.line(format_args!("  {heading}, here of the first file"));
        document.wrapped("    ", fault);
        if let Some(hint) = fault.hint() {
            document.wrapped("    ", format_args!("hint: {hint}"));
        }
    }
    add_names(&mut document, group);
    let first = group.members.first().map_or("", |member| &member.name);
    let (all, list) = match &group.pattern {
        Some(pattern) => (quoted(pattern), String::new()),
        None if group.files <= MOST_IN_COMMAND => (words::joined(&group.members), String::new()),
        // The length of a command line is limited. So the command reads the names of many files from the output of
        // doctor.
        None => {
            let list = format!("profkit doctor {paths} --group {} | ", group.number);
            ("-f -".to_owned(), list)
        }
    };
    add_next(&mut document, diagnosis, (first, &all, &list), complete);
    document
}

/// Adds the first and the last file, or of damaged files the first ones with what can be kept of each.
fn add_names(document: &mut Document, group: &Group) {
    let first = group.members.first().map_or("", |member| &member.name);
    if group.first.verdict != Verdict::Damaged || group.functions == (0, 0) {
        let to = if group.files == 2 { "and" } else { "to" };
        let [first, last] = [first, &group.last].map(|name| printable(name.as_bytes()));
        return document.line(format_args!("  {:16} {first} {to} {last}", "files"));
    }
    document.line("  files");
    for member in group.members.iter().take(MOST_LISTED) {
        let name = printable(member.name.as_bytes());
        let kept = match member.functions_stated {
            Some(stated) if stated != member.functions => {
                let kept = grouped(member.functions);
                format!("{kept} of {}", plural(stated, "function"))
            }
            _ => plural(member.functions, "function"),
        };
        document.line(format_args!("    {name}: {kept} can be kept"));
    }
    let listed = group.members.len().min(MOST_LISTED) as u64;
    if let more @ 1.. = group.files.saturating_sub(listed) {
        document.line(format_args!(
            "    and {} more: --each lists all",
            grouped(more)
        ));
    }
}

/// Adds the first line of a block: the name of the file or the description of the group, and the verdict.
fn add_title(document: &mut Document, what: &str, diagnosis: &Diagnosis) {
    let style = match diagnosis.verdict {
        Verdict::Sound => Style::Hint,
        Verdict::Unsupported | Verdict::NeedsProgram => Style::Warning,
        Verdict::Damaged | Verdict::Foreign | Verdict::Unreadable => Style::Error,
    };
    let verdict = Cell::styled(style, words::verdict(diagnosis));
    document.pieces([Cell::styled(Style::Heading, what), ": ".into(), verdict]);
}

fn add_facts(
    document: &mut Document,
    diagnosis: &Diagnosis,
    size: Option<String>,
    functions: &str,
    most_ids: usize,
) {
    let mut line = |name: &str, value: &str| document.wrapped(format!("  {name:16} "), value);
    if diagnosis.verdict != Verdict::Unreadable {
        line("kind", &words::what(&diagnosis.what));
    }
    if let Some(size) = size {
        line("size", &size);
    }
    if diagnosis.target != Target::Host {
        let target = diagnosis.target.to_string();
        line("target", &printable(target.as_bytes()));
    }
    if let Some(facts) = diagnosis.facts() {
        line("instrumentation", &stated(facts.instrumentation));
        if diagnosis.profiles > 1 {
            line("profiles", &grouped(diagnosis.profiles));
        }
        let is_known = !matches!(
            diagnosis.verdict,
            Verdict::Unsupported | Verdict::NeedsProgram
        );
        if diagnosis.functions > 0 || is_known {
            line("functions", functions);
        }
    }
    for remark in remarks(&diagnosis.remarks) {
        line("remark", &remark);
    }
    if let Some(contexts) = diagnosis.contexts {
        line("contexts", &grouped(contexts));
    }
    if let Some(inputs) = diagnosis.manifest {
        let of = plural(inputs, "input");
        line(
            "manifest",
            &format!("is of this file, which was made of {of}"),
        );
    }
    let ids = &diagnosis.binary_ids;
    for (index, id) in ids.iter().take(most_ids).enumerate() {
        line(if index == 0 { "build id" } else { "" }, &id.to_string());
    }
    if let more @ 1.. = ids.len().saturating_sub(most_ids) {
        line("", &format!("and {more} more"));
    }
}

fn heading(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.verdict {
        Verdict::Unsupported | Verdict::NeedsProgram | Verdict::Unreadable | Verdict::Foreign => {
            "reason"
        }
        Verdict::Sound | Verdict::Damaged => "damage",
    }
}

/// Adds the commands to run next, for the first file, or for all with `list` before the command.
fn add_next(
    document: &mut Document,
    diagnosis: &Diagnosis,
    (first, all, list): (&str, &str, &str),
    complete: Option<&str>,
) {
    for (index, &advice) in diagnosis.next.iter().enumerate() {
        let (command, purpose) = words::command(advice, first, (all, list), complete);
        let label = if index == 0 { "next" } else { "" };
        document.line(format_args!("  {label:16} {command}"));
        document.wrapped(format!("  {:16} # ", ""), purpose);
    }
}

/// The number of functions, or of those that can be kept, and of those without names or value data.
fn functions(diagnosis: &Diagnosis) -> String {
    let count = grouped(diagnosis.functions);
    let mut text = match diagnosis.functions_stated {
        Some(stated) if stated != diagnosis.functions => {
            format!(
                "{count} can be kept, of {} that the header states",
                grouped(stated)
            )
        }
        _ if diagnosis.verdict == Verdict::Damaged => format!("{count} can be kept"),
        _ => count,
    };
    if diagnosis.without_values > 0 {
        text += &format!("; {} without value data", grouped(diagnosis.without_values));
    }
    text
}

fn add_support(document: &mut Document, diagnosis: &Diagnosis) {
    let mut row = |name: &str, cell: &dyn Fn(&Support) -> String| {
        let cells = diagnosis
            .support
            .iter()
            .map(|support| format!(" {}", cell(support)));
        document.line(format_args!("  {name:16}{}", cells.collect::<String>()));
    };
    let yes = |yes: bool| if yes { "yes" } else { "  -" }.to_owned();
    row("LLVM", &|support| support.release.to_string());
    row("llvm-profdata", &|support| yes(support.reads));
    row("clang", &|support| yes(support.compiles));
    let is_read = diagnosis.support.iter().any(|support| support.reads);
    let note = if matches!(diagnosis.what, What::Sample { .. }) && !is_read {
        "only LLVM after release 23 reads this version; profkit convert writes one that all releases read"
    } else if diagnosis.verdict == Verdict::Damaged {
        "by the version alone: LLVM rejects the damaged parts"
    } else if !diagnosis.support.iter().any(|support| support.compiles) {
        "clang reads merged profiles only"
    } else {
        return;
    };
    document.line(format_args!("  {:16} ({note})", ""));
}

/// The number of files with each verdict. If `blank` is true, a blank line precedes it.
pub fn end(counts: Counts, blank: bool) -> Document {
    let mut document = Document::default();
    let files = counts.files();
    let mut parts = Vec::new();
    let foreign = match counts.foreign {
        1 => "not a profile",
        _ => "not profiles",
    };
    let needs = match counts.needs_program {
        1 => "needs its program",
        _ => "need their programs",
    };
    for (count, what) in [
        (counts.sound, "sound"),
        (counts.needs_program, needs),
        (counts.damaged, "damaged"),
        (counts.unsupported, "not supported so far"),
        (counts.foreign, foreign),
        (counts.unreadable, "not readable"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    if files == 0 {
        parts.push("no profiles found".to_owned());
    }
    if counts.passed_over > 0 {
        let skipped = plural(counts.passed_over, "other file");
        parts.push(format!("{skipped} skipped"));
    }
    if files != 1 || counts.passed_over > 0 {
        if blank {
            document.line("");
        }
        let files = plural(files, "file");
        document.line(format_args!("{files}: {}", parts.join(", ")));
    }
    document
}
