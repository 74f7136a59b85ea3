//! Diagnoses as text for people.
use super::Counts;
use super::words;
use crate::print::{grouped, plural};
use profkit_analysis::doctor::{Diagnosis, Support, Verdict, What};
use profkit_analysis::names::printable;
use std::io::{self, Write};

pub fn file(out: &mut dyn Write, name: &str, diagnosis: &Diagnosis, first: bool) -> io::Result<()> {
    if !first {
        writeln!(out)?;
    }
    let verdict = match diagnosis.verdict {
        Verdict::Sound => "sound",
        Verdict::Damaged => "DAMAGED",
        Verdict::Unsupported => "not supported so far",
        Verdict::Unreadable if diagnosis.what == What::Missing => "does not exist",
        Verdict::Unreadable => "cannot be read",
    };
    writeln!(out, "{}: {verdict}", printable(name.as_bytes()))?;
    let mut line = |name: &str, value: &str| writeln!(out, "  {name:16} {value}");
    if diagnosis.verdict != Verdict::Unreadable {
        line("kind", &words::what(&diagnosis.what))?;
    }
    if let Some(size) = diagnosis.size {
        line("size", &format!("{} bytes", grouped(size)))?;
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
            line("functions", &functions(diagnosis))?;
        }
    }
    for (index, id) in diagnosis.binary_ids.iter().enumerate() {
        line(if index == 0 { "build id" } else { "" }, &id.to_string())?;
    }
    if !diagnosis.support.is_empty() {
        table(out, diagnosis)?;
    }
    if diagnosis.damage.count > 0 {
        let heading = match diagnosis.verdict {
            Verdict::Unsupported | Verdict::Unreadable => "reason",
            _ => "damage",
        };
        writeln!(out, "  {heading}")?;
        for error in &diagnosis.damage.first {
            writeln!(out, "    {error}")?;
        }
        let more = diagnosis.damage.more();
        if more > 0 {
            writeln!(out, "    and {} more", grouped(more))?;
        }
        let mut hints: Vec<_> = diagnosis
            .damage
            .first
            .iter()
            .filter_map(|one| one.hint())
            .collect();
        hints.dedup();
        for hint in hints {
            writeln!(out, "    hint: {hint}")?;
        }
    }
    for (index, &advice) in diagnosis.next.iter().enumerate() {
        let (command, purpose) = words::command(advice, name);
        let label = if index == 0 { "next" } else { "" };
        writeln!(out, "  {label:16} {command}")?;
        writeln!(out, "  {:16} # {purpose}", "")?;
    }
    Ok(())
}

/// Returns the number of functions as text. In a damaged file, this is the number of functions that can be kept. The
/// numbers of functions without names and without value data follow, if there are any.
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

fn table(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
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
    let note = if diagnosis.verdict == Verdict::Damaged {
        "this table considers only the version of the file; LLVM rejects the damaged parts"
    } else if !diagnosis.support.iter().any(|support| support.compiles) {
        "clang reads merged profiles only"
    } else {
        return Ok(());
    };
    writeln!(out, "  {:16} ({note})", "")
}

pub fn end(out: &mut dyn Write, counts: Counts) -> io::Result<()> {
    let files = counts.sound + counts.damaged + counts.unsupported + counts.unreadable;
    let mut parts = Vec::new();
    for (count, what) in [
        (counts.sound, "sound"),
        (counts.damaged, "damaged"),
        (counts.unsupported, "not supported so far"),
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
    let blank = if files > 0 { "\n" } else { "" };
    writeln!(out, "{blank}{} files: {}", grouped(files), parts.join(", "))
}
