//! A recording of a terminal: a [picture](super) whose rows appear at the times when they appeared in a real run.
//!
//! CSS alone animates it, so that it plays where scripts are not allowed, as in pages of GitHub. The times of output
//! lines are those of the run, counted from the start of the command. The times for typing and reading are added.
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{CHARACTER, COLUMNS, MARGIN, ROW, Row, shell, svg_start, text_of};

/// The time in which one character is typed.
const KEY: Duration = Duration::from_millis(45);
/// The length of two pauses: before a command is typed, and between its last character and its start.
const BREATH: Duration = Duration::from_millis(400);
/// The time to read a line.
const READ: Duration = Duration::from_millis(700);
/// The time for which the last state is shown before the recording starts again.
const END: Duration = Duration::from_secs(6);

/// When a viewer opens the recording, it starts this long before its end, so that the last state is seen before the
/// first command. This time is a part of [`END`].
const FIRST: Duration = Duration::from_secs(2);

pub fn record(commands: &[&str], folder: &Path) -> Result<String> {
    let mut now = BREATH;
    // The rows, each with the time when it appears. A prompt also has the number of characters that are typed.
    let mut rows: Vec<(Duration, Row, Option<usize>)> = Vec::new();
    for command in commands {
        let keys = command.chars().count();
        rows.push((now, Row::prompt(command), Some(keys)));
        now += BREATH + KEY * u32::try_from(keys)? + BREATH;
        let lines = run(command, folder)?;
        let last = lines.last().map_or(Duration::ZERO, |(after, _)| *after);
        let count = u32::try_from(lines.len())?;
        for (after, line) in lines {
            for row in Row::cut(&line) {
                rows.push((now + after, row, None));
            }
        }
        now += last + READ * count;
    }
    Ok(drawn(commands, &rows, now + END))
}

/// Runs a command. Returns the lines of its standard output and standard error, each with the time since the start.
fn run(command: &str, folder: &Path) -> Result<Vec<(Duration, String)>> {
    let (reader, writer) = std::io::pipe()?;
    let mut shell = shell(command, folder);
    shell.stdout(writer.try_clone()?).stderr(writer);
    let start = Instant::now();
    let mut child = shell.spawn().context("bash")?;
    // `shell` still has a copy of the writing end of the pipe. Reading ends only after this copy and the one of the
    // process are closed.
    drop(shell);
    let mut lines = Vec::new();
    for line in BufReader::new(reader).lines() {
        lines.push((start.elapsed(), line?));
    }
    child.wait()?;
    Ok(lines)
}

/// Returns a recording without its times, so that two recordings of the same commands can be compared.
pub fn without_times(recording: &str) -> String {
    let is_time = |line: &&str| !line.starts_with("@keyframes") && !line.starts_with(".r ");
    recording
        .lines()
        .filter(is_time)
        .collect::<Vec<_>>()
        .join("\n")
}

fn drawn(commands: &[&str], rows: &[(Duration, Row, Option<usize>)], end: Duration) -> String {
    let share = |time: Duration| 100.0 * time.as_secs_f64() / end.as_secs_f64();
    // The end comes first, so that whoever sees only the first frame sees all that was printed.
    let seconds = end.as_secs_f64();
    let mut style = format!(
        ".r {{ animation: {seconds:.1}s linear -{:.1}s infinite; }}\n\
         @media (prefers-reduced-motion: reduce) {{ .r {{ animation: none; }} }}\n",
        (seconds - FIRST.as_secs_f64()).max(0.0)
    );
    let mut body = String::new();
    for (number, (time, row, keys)) in rows.iter().enumerate() {
        let at = share(*time);
        let _ = writeln!(
            style,
            "@keyframes r{number} {{ 0%, {at:.3}% {{ opacity: 0; }} {:.3}%, 100% {{ opacity: 1; }} }}",
            at + 0.001
        );
        let _ = write!(body, r#"<g class="r" style="animation-name:r{number}">"#);
        text_of(&mut body, row, number + 1);
        if let Some(keys) = keys {
            // A rectangle covers the command, and moves away by one character at a time.
            let typing = *time + BREATH;
            let typed = typing + KEY * u32::try_from(*keys).unwrap_or(u32::MAX);
            let (x, width) = (MARGIN + 2 * CHARACTER / 100, keys * CHARACTER / 100 + 4);
            let _ = writeln!(
                style,
                "@keyframes k{number} {{ 0%, {:.3}% {{ transform: translateX(0); animation-timing-function: steps({keys}); }} \
                 {:.3}%, 100% {{ transform: translateX({width}px); }} }}",
                share(typing),
                share(typed)
            );
            let _ = write!(
                body,
                r#"<rect class="r" x="{x}" y="{}" width="{width}" height="{}" style="animation-name:k{number};transform:translateX({width}px)"/>"#,
                MARGIN + number * ROW,
                ROW - 1
            );
        }
        body.push_str("</g>\n");
    }
    let width = COLUMNS * CHARACTER / 100 + 2 * MARGIN;
    let clip = format!(
        "<clipPath id=\"c\"><rect width=\"{width}\" height=\"{}\"/></clipPath>\n",
        rows.len() * ROW + 2 * MARGIN
    );
    let start = svg_start(commands, rows.len(), &style);
    format!("{start}{clip}<g clip-path=\"url(#c)\">\n{body}</g>\n</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_appear_when_they_were_printed() {
        let folder = tempfile::tempdir().unwrap();
        let lines = run("echo one; sleep 0.3; echo two >&2", folder.path()).unwrap();
        let texts: Vec<_> = lines.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["one", "two"]);
        assert!(lines[1].0 - lines[0].0 >= Duration::from_millis(250));
        let one = record(&["echo one"], folder.path()).unwrap();
        assert!(one.contains("@keyframes k0") && one.contains(">one</text>"));
        assert!(!without_times(&one).contains("@keyframes"));
        let slow = record(&["echo one"], folder.path()).unwrap();
        assert_eq!(without_times(&one), without_times(&slow));
    }
}
