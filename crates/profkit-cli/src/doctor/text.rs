//! Diagnoses for people.
use super::Tally;
use super::examine::{Diagnosis, Verdict};
use crate::show::text::grouped;
use std::io::{self, Write};

pub fn file(out: &mut dyn Write, diagnosis: &Diagnosis, first: bool) -> io::Result<()> {
    if !first {
        writeln!(out)?;
    }
    let verdict = match diagnosis.verdict {
        Verdict::Sound => "sound",
        Verdict::Damaged => "DAMAGED",
        Verdict::Unsupported => "not supported so far",
    };
    writeln!(out, "{}: {verdict}", diagnosis.name)?;
    let mut line = |name: &str, value: &str| writeln!(out, "  {name:16} {value}");
    let what = diagnosis.what.strip_suffix(", not supported so far");
    line("kind", what.unwrap_or(&diagnosis.what))?;
    if let Some(size) = diagnosis.size {
        line("size", &format!("{} bytes", grouped(size)))?;
    }
    if let Some(facts) = &diagnosis.facts {
        let kind = facts.instrumentation;
        let stated = if kind.is_unknown() {
            "not stated (taken for front-end)".to_owned()
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
    if !diagnosis.damage.is_empty() {
        let heading = match diagnosis.verdict {
            Verdict::Unsupported => "reason",
            _ => "damage",
        };
        writeln!(out, "  {heading}")?;
        for error in &diagnosis.damage {
            writeln!(out, "    {error}")?;
        }
        let untold = diagnosis.damage_count - diagnosis.damage.len() as u64;
        if untold > 0 {
            writeln!(out, "    and {} more", grouped(untold))?;
        }
        let mut hints: Vec<_> = diagnosis
            .damage
            .iter()
            .filter_map(|one| one.hint())
            .collect();
        hints.dedup();
        for hint in hints {
            writeln!(out, "    hint: {hint}")?;
        }
    }
    for (index, (command, purpose)) in diagnosis.next.iter().enumerate() {
        let label = if index == 0 { "next" } else { "" };
        writeln!(out, "  {label:16} {command}")?;
        writeln!(out, "  {:16} # {purpose}", "")?;
    }
    Ok(())
}

/// How many functions there are, and what salvaging would leave behind.
fn functions(diagnosis: &Diagnosis) -> String {
    let count = grouped(diagnosis.functions);
    let mut text = match diagnosis.functions_stated {
        Some(stated) if stated != diagnosis.functions => {
            format!("{count} can be kept of {} stated", grouped(stated))
        }
        _ if diagnosis.verdict == Verdict::Damaged => format!("{count} can be kept"),
        _ => count,
    };
    if diagnosis.nameless > 0 {
        text += &format!(
            "; {} without names, which a whole profile of the same program restores",
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
    let mut row = |name: &str, yes: &dyn Fn(&super::compatibility::Support) -> bool| {
        write!(out, "  {name:16}")?;
        for support in &diagnosis.support {
            write!(out, " {:>3}", if yes(support) { "yes" } else { "-" })?;
        }
        writeln!(out)
    };
    row("llvm-profdata", &|support| support.reads)?;
    row("clang", &|support| support.compiles)?;
    let note = if diagnosis.verdict == Verdict::Damaged {
        "by its version; LLVM refuses it as far as it is damaged"
    } else if !diagnosis.support.iter().any(|support| support.compiles) {
        "clang takes merged profiles only"
    } else {
        return Ok(());
    };
    writeln!(out, "  {:16} ({note})", "")
}

pub fn end(out: &mut dyn Write, tally: Tally) -> io::Result<()> {
    let files = tally.sound + tally.damaged + tally.unsupported;
    let mut parts = Vec::new();
    for (count, what) in [
        (tally.sound, "sound"),
        (tally.damaged, "damaged"),
        (tally.unsupported, "not supported so far"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    if files == 0 {
        parts.push("no profiles found".to_owned());
    }
    if tally.passed_over > 0 {
        parts.push(format!(
            "{} other files passed over",
            grouped(tally.passed_over)
        ));
    }
    if files == 1 && tally.passed_over == 0 {
        return Ok(());
    }
    let blank = if files > 0 { "\n" } else { "" };
    writeln!(out, "{blank}{} files: {}", grouped(files), parts.join(", "))
}
