//! The source lines that ran and those that did not, as text and as an lcov tracefile.
use crate::{grouped, percent};
use profkit_analysis::mip_lines::{FileLines, LineCoverage};
use profkit_analysis::names::printable;
use std::borrow::Cow;
use std::io::{self, Write};

/// Prints a line of text for each source line with code: its file, its number, and whether it ran.
pub fn lines_text(coverage: &LineCoverage, runs: u64, out: &mut impl Write) -> io::Result<()> {
    for (path, file) in &coverage.files {
        let path = printable(path);
        for (line, ran) in &file.lines {
            match ran {
                0 => writeln!(out, "{path}:{line} not")?,
                _ if runs <= 1 => writeln!(out, "{path}:{line} ran")?,
                ran => writeln!(out, "{path}:{line} ran in {ran} of {runs} runs")?,
            }
        }
    }
    Ok(())
}

/// Writes an lcov tracefile, as `geninfo` of LCOV 1 and 2 describes it. The count of a line or function is the number
/// of runs in which it ran.
pub fn lcov(coverage: &LineCoverage, out: &mut impl Write) -> io::Result<()> {
    for (path, file) in &coverage.files {
        if file.lines.is_empty() {
            continue;
        }
        out.write_all(b"TN:\nSF:")?;
        out.write_all(&one_line(path))?;
        out.write_all(b"\n")?;
        lcov_functions(file, out)?;
        for (line, runs) in &file.lines {
            writeln!(out, "DA:{line},{runs}")?;
        }
        let ran = file.lines.values().filter(|&&runs| runs > 0).count();
        writeln!(out, "LF:{}\nLH:{ran}\nend_of_record", file.lines.len())?;
    }
    Ok(())
}

fn lcov_functions(file: &FileLines, out: &mut impl Write) -> io::Result<()> {
    for (line, name) in file.functions.keys() {
        write!(out, "FN:{line},")?;
        out.write_all(&one_line(name))?;
        out.write_all(b"\n")?;
    }
    for ((_, name), runs) in &file.functions {
        write!(out, "FNDA:{runs},")?;
        out.write_all(&one_line(name))?;
        out.write_all(b"\n")?;
    }
    let ran = file.functions.values().filter(|&&runs| runs > 0).count();
    writeln!(out, "FNF:{}\nFNH:{ran}", file.functions.len())
}

/// A tracefile has no way to write a line break in a name.
fn one_line(name: &[u8]) -> Cow<'_, [u8]> {
    if name.iter().any(|&byte| byte == b'\n' || byte == b'\r') {
        Cow::Owned(printable(name).into_owned().into_bytes())
    } else {
        Cow::Borrowed(name)
    }
}

/// How many lines ran, as a sentence.
pub fn lines_summary(coverage: &LineCoverage) -> String {
    let (lines, ran) = coverage.totals();
    format!(
        "{} of {} lines ran ({})",
        grouped(ran),
        grouped(lines),
        percent(ran.into(), lines.into())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_stay_on_their_line() {
        let mut coverage = LineCoverage::default();
        let file = coverage
            .files
            .entry(b"/src/a\nSF:b.c".to_vec())
            .or_default();
        file.lines.insert(3, 2);
        file.lines.insert(4, 0);
        file.functions.insert((3, b"f".to_vec()), 2);
        let mut text = Vec::new();
        lcov(&coverage, &mut text).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&text),
            "TN:\nSF:/src/a\\nSF:b.c\nFN:3,f\nFNDA:2,f\nFNF:1\nFNH:1\nDA:3,2\nDA:4,0\nLF:2\nLH:1\nend_of_record\n"
        );
        let mut text = Vec::new();
        lines_text(&coverage, 2, &mut text).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&text),
            "/src/a\\nSF:b.c:3 ran in 2 of 2 runs\n/src/a\\nSF:b.c:4 not\n"
        );
        assert_eq!(lines_summary(&coverage), "1 of 2 lines ran (50.0%)");
    }
}
