//! Diagnoses as text for people.
use super::words;
use crate::{Console, Style, grouped, plural, quoted, size};
use profkit_analysis::doctor::{Counts, Diagnosis, Group, Support, Verdict, What};
use profkit_analysis::names::printable;
use std::fmt::Display;
use std::io::{self, Write};

/// The largest number of files that a suggested command for a group of files names one by one.
const MOST_IN_COMMAND: u64 = 3;
/// The largest number of damaged files of a group that are listed one by one.
const MOST_LISTED: usize = 5;
/// The largest number of faults that are listed for one file if several files are examined.
const MOST_FAULTS: usize = 3;
/// The smallest number of columns to which text is wrapped, even if the terminal is narrower.
const LEAST_ROOM: usize = 24;
/// The largest number of build ids that are listed for a group.
const MOST_IDS: usize = 3;

/// Prints the diagnosis of one file.
///
/// # Errors
/// If the writer fails.
pub fn file(out: &mut Console<impl Write>, name: &str, diagnosis: &Diagnosis) -> io::Result<()> {
    block(out, name, diagnosis, None, usize::MAX)
}

fn block(
    out: &mut Console<impl Write>,
    name: &str,
    diagnosis: &Diagnosis,
    complete: Option<&str>,
    most_faults: usize,
) -> io::Result<()> {
    title(out, &printable(name.as_bytes()), diagnosis)?;
    let size = diagnosis
        .size
        .map(|size| format!("{} bytes", grouped(size)));
    facts(
        out,
        diagnosis,
        size.as_deref(),
        &functions(diagnosis),
        usize::MAX,
    )?;
    if !diagnosis.support.is_empty() {
        table(out, diagnosis)?;
    }
    if diagnosis.damage.count > 0 {
        writeln!(out, "  {}", heading(diagnosis))?;
        for error in diagnosis.damage.first.iter().take(most_faults) {
            wrapped(out, "    ", error)?;
        }
        let shown = diagnosis.damage.first.len().min(most_faults) as u64;
        match diagnosis.damage.count.saturating_sub(shown) {
            0 => {}
            more if most_faults == usize::MAX => {
                writeln!(out, "    and {} more", grouped(more))?;
            }
            more => writeln!(out, "    and {} more: --each shows more", grouped(more))?,
        }
        let hints = diagnosis.damage.first.iter();
        let mut hints: Vec<_> = hints.filter_map(|one| one.hint()).collect();
        hints.dedup();
        for hint in hints {
            wrapped(out, "    ", format_args!("hint: {hint}"))?;
        }
    }
    next(out, diagnosis, (name, &quoted(name), ""), complete)
}

/// Prints a group of like files. A group of one file is printed like a single file. If `counts` says that doctor has
/// examined other files too, only the first few faults of that file are listed. `paths` are the arguments that named
/// the files, quoted for a shell.
///
/// # Errors
/// If the writer fails.
pub fn group(
    out: &mut Console<impl Write>,
    group: &Group,
    counts: Counts,
    paths: &str,
) -> io::Result<()> {
    let diagnosis = &group.first;
    let complete = group.complete.as_deref();
    if let ([only], 1) = (group.members.as_slice(), group.files) {
        let most_faults = if counts.files() == 1 {
            usize::MAX
        } else {
            MOST_FAULTS
        };
        return block(out, &only.name, diagnosis, complete, most_faults);
    }
    let what = words::short(diagnosis);
    title(
        out,
        &format!("{} × {what}", grouped(group.files)),
        diagnosis,
    )?;
    let functions = match group.functions {
        (least, most) if least == most => grouped(least),
        (least, most) => format!("{} to {}", grouped(least), grouped(most)),
    };
    let bytes = format!("{} in all", size(group.bytes));
    facts(out, diagnosis, Some(&bytes), &functions, MOST_IDS)?;
    if group.first.verdict == Verdict::Sound && !diagnosis.support.is_empty() {
        table(out, diagnosis)?;
    }
    if let Some(fault) = diagnosis.damage.first.first() {
        writeln!(out, "  {}, here of the first file", heading(diagnosis))?;
        wrapped(out, "    ", fault)?;
        if let Some(hint) = fault.hint() {
            wrapped(out, "    ", format_args!("hint: {hint}"))?;
        }
    }
    names(out, group)?;
    let first = group.members.first().map_or("", |member| &member.name);
    if let Some(pattern) = &group.pattern {
        return next(out, diagnosis, (first, &quoted(pattern), ""), complete);
    }
    if group.files <= MOST_IN_COMMAND {
        let all = words::joined(&group.members);
        return next(out, diagnosis, (first, &all, ""), complete);
    }
    // The length of a command line is limited. So the command reads the names of many files from the output of doctor.
    let list = format!("profkit doctor {paths} --group {} | ", group.number);
    next(out, diagnosis, (first, "-f -", &list), complete)
}

/// Prints the names of the first and the last file of a group. For damaged files, prints instead a line for each of the
/// first files, with the number of functions that can be kept.
fn names(out: &mut Console<impl Write>, group: &Group) -> io::Result<()> {
    let first = group.members.first().map_or("", |member| &member.name);
    if group.first.verdict != Verdict::Damaged || group.functions == (0, 0) {
        let to = if group.files == 2 { "and" } else { "to" };
        let (first, last) = (
            printable(first.as_bytes()),
            printable(group.last.as_bytes()),
        );
        return writeln!(out, "  {:16} {first} {to} {last}", "files");
    }
    writeln!(out, "  files")?;
    let most = group.members.iter().take(MOST_LISTED);
    for member in most.clone() {
        let name = printable(member.name.as_bytes());
        let kept = match member.functions_stated {
            Some(stated) if stated != member.functions => {
                let kept = grouped(member.functions);
                format!("{kept} of {}", plural(stated, "function"))
            }
            _ => plural(member.functions, "function"),
        };
        writeln!(out, "    {name}: {kept} can be kept")?;
    }
    match group.files.saturating_sub(most.count() as u64) {
        0 => Ok(()),
        more => writeln!(out, "    and {} more: --each lists all", grouped(more)),
    }
}

/// Prints the first line of a block: the name of the file or the description of the group, and the verdict.
fn title(out: &mut Console<impl Write>, what: &str, diagnosis: &Diagnosis) -> io::Result<()> {
    out.styled(Style::Heading, what)?;
    write!(out, ": ")?;
    let verdict = words::verdict(diagnosis);
    match diagnosis.verdict {
        Verdict::Sound => out.styled(Style::Hint, verdict)?,
        Verdict::Unsupported => out.styled(Style::Warning, verdict)?,
        Verdict::Damaged | Verdict::Foreign | Verdict::Unreadable => {
            out.styled(Style::Error, verdict)?;
        }
    }
    writeln!(out)
}

/// Prints text after a margin. On a terminal, the text is broken at blanks so that it fits. The further lines are
/// indented by the width of the margin.
pub(crate) fn wrapped(
    out: &mut Console<impl Write>,
    margin: &str,
    text: impl Display,
) -> io::Result<()> {
    let text = text.to_string();
    let indent = margin.chars().count();
    let room = out
        .look()
        .width
        .map(|width| width.saturating_sub(indent).max(LEAST_ROOM));
    let Some(room) = room else {
        return writeln!(out, "{margin}{text}");
    };
    write!(out, "{margin}")?;
    let mut column = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > room {
            let comment = if margin.ends_with("# ") { "# " } else { "" };
            let blank = indent - comment.len();
            write!(out, "\n{:blank$}{comment}", "")?;
            column = 0;
        } else if column > 0 {
            write!(out, " ")?;
            column += 1;
        }
        write!(out, "{word}")?;
        column += len;
    }
    writeln!(out)
}

/// Prints the facts that are the same for all files of a group.
fn facts(
    out: &mut Console<impl Write>,
    diagnosis: &Diagnosis,
    size: Option<&str>,
    functions: &str,
    most_ids: usize,
) -> io::Result<()> {
    let mut line = |name: &str, value: &str| wrapped(out, &format!("  {name:16} "), value);
    if diagnosis.verdict != Verdict::Unreadable {
        line("kind", &words::what(&diagnosis.what))?;
    }
    if let Some(size) = size {
        line("size", size)?;
    }
    if let Some(facts) = diagnosis.facts() {
        let kind = facts.instrumentation;
        let stated = if kind.is_unknown() {
            "not stated (assumed to be front-end)".to_owned()
        } else {
            kind.to_string()
        };
        line("instrumentation", &stated)?;
        if diagnosis.profiles > 1 {
            line("profiles", &grouped(diagnosis.profiles))?;
        }
        if diagnosis.functions > 0 || diagnosis.verdict != Verdict::Unsupported {
            line("functions", functions)?;
        }
    }
    if let Some(contexts) = diagnosis.contexts {
        line("contexts", &grouped(contexts))?;
    }
    let ids = &diagnosis.binary_ids;
    for (index, id) in ids.iter().take(most_ids).enumerate() {
        line(if index == 0 { "build id" } else { "" }, &id.to_string())?;
    }
    match ids.len().saturating_sub(most_ids) {
        0 => Ok(()),
        more => line("", &format!("and {more} more")),
    }
}

/// Returns the heading of the list of faults.
fn heading(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.verdict {
        Verdict::Unsupported | Verdict::Unreadable | Verdict::Foreign => "reason",
        Verdict::Sound | Verdict::Damaged => "damage",
    }
}

/// Prints the commands to run next. `first` is the name of the first file. `all` is the text that names all files in a
/// command. `list` stands before a command that names all files. It is empty, or it is a command that writes the names
/// of the files to a pipe.
fn next(
    out: &mut Console<impl Write>,
    diagnosis: &Diagnosis,
    (first, all, list): (&str, &str, &str),
    complete: Option<&str>,
) -> io::Result<()> {
    for (index, &advice) in diagnosis.next.iter().enumerate() {
        let (command, purpose) = words::command(advice, first, all, complete);
        let label = if index == 0 { "next" } else { "" };
        let list = if words::names_all(advice) { list } else { "" };
        writeln!(out, "  {label:16} {list}{command}")?;
        let margin = format!("  {:16} # ", "");
        wrapped(out, &margin, purpose)?;
    }
    Ok(())
}

/// Returns the number of functions as text. In a damaged file, this is the number of functions that can be kept. If
/// there are functions without names or without value data, their numbers follow.
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
    if diagnosis.nameless > 0 {
        text += &format!(
            "; {} without names, which a merge with a complete profile of the same program restores",
            grouped(diagnosis.nameless)
        );
    }
    if diagnosis.without_values > 0 {
        text += &format!("; {} without value data", grouped(diagnosis.without_values));
    }
    text
}

fn table(out: &mut Console<impl Write>, diagnosis: &Diagnosis) -> io::Result<()> {
    write!(out, "  {:16}", "LLVM")?;
    for support in &diagnosis.support {
        write!(out, " {:>3}", support.release)?;
    }
    writeln!(out)?;
    let mut row = |name: &str, yes: &dyn Fn(&Support) -> bool| {
        write!(out, "  {name:16}")?;
        for support in &diagnosis.support {
            write!(out, " {:>3}", if yes(support) { "yes" } else { "-" })?;
        }
        writeln!(out)
    };
    row("llvm-profdata", &|support| support.reads)?;
    row("clang", &|support| support.compiles)?;
    let is_read = diagnosis.support.iter().any(|support| support.reads);
    let note = if matches!(diagnosis.what, What::Sample { .. }) && !is_read {
        "only LLVM after release 23 reads this version; profkit convert writes one that all releases read"
    } else if diagnosis.verdict == Verdict::Damaged {
        "by the version alone: LLVM rejects the damaged parts"
    } else if !diagnosis.support.iter().any(|support| support.compiles) {
        "clang reads merged profiles only"
    } else {
        return Ok(());
    };
    writeln!(out, "  {:16} ({note})", "")
}

/// Prints the number of files with each verdict. If `blank` is true, a blank line precedes it.
///
/// # Errors
/// If the writer fails.
pub fn end(out: &mut Console<impl Write>, counts: Counts, blank: bool) -> io::Result<()> {
    let files = counts.files();
    let mut parts = Vec::new();
    let foreign = match counts.foreign {
        1 => "not a profile",
        _ => "not profiles",
    };
    for (count, what) in [
        (counts.sound, "sound"),
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
    if files == 1 && counts.passed_over == 0 {
        return Ok(());
    }
    if blank {
        writeln!(out)?;
    }
    writeln!(out, "{}: {}", plural(files, "file"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Look;

    #[test]
    fn text_is_broken_on_a_terminal_only() {
        let print = |width, margin: &str| {
            let look = Look {
                width,
                ..Look::default()
            };
            let mut out = Console::text(Vec::new(), look);
            wrapped(
                &mut out,
                margin,
                "the file ends within a section in counters",
            )
            .unwrap();
            String::from_utf8(std::mem::take(out.get_mut())).unwrap()
        };
        assert_eq!(
            print(None, "    "),
            "    the file ends within a section in counters\n"
        );
        assert_eq!(
            print(Some(32), "    "),
            "    the file ends within a\n    section in counters\n"
        );
        assert_eq!(
            print(Some(10), "  # "),
            "  # the file ends within a\n  # section in counters\n"
        );
    }
}
