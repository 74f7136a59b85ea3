//! Standard output and standard error. Both escape control characters, so that control characters from a file never
//! reach a terminal.
use super::pager::Pager;
use super::{Console, Format, stderr_look, stdout_look};
use crate::call::Stream;
use crate::exit::{Failure, Result};
use profkit_merge::files::is_stdio;
use profkit_report::{Answer, Document, Look, RowForm};
use std::fmt::Display;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The size of the output buffer. A larger buffer would need more memory and save no measurable time.
const BUFFER: usize = 256 << 10;

/// Standard output. The text goes through a pager if standard output is a terminal and the text is long.
pub type StandardOutput = Console<BufWriter<Stream<Pager>>>;

type StandardError = Console<Stream<io::StderrLock<'static>>>;

pub fn stdout() -> StandardOutput {
    Console::text(paged_stdout(), stdout_look())
}

pub fn json_stdout() -> StandardOutput {
    Console::json(paged_stdout())
}

pub fn stdout_for(format: Format) -> StandardOutput {
    match format {
        Format::Text | Format::Rows(RowForm::Csv) => stdout(),
        Format::Markdown => {
            let look = Look {
                markdown: true,
                ..Look::default()
            };
            Console::text(paged_stdout(), look)
        }
        Format::Json | Format::Rows(RowForm::JsonLines) => json_stdout(),
    }
}

fn paged_stdout() -> BufWriter<Stream<Pager>> {
    BufWriter::with_capacity(BUFFER, Stream::stdout(Pager::new))
}

pub fn stderr() -> StandardError {
    Console::text(stderr_stream(), stderr_look())
}

fn stderr_stream() -> Stream<io::StderrLock<'static>> {
    Stream::stderr(|| io::stderr().lock())
}

pub fn json_stderr() -> StandardError {
    Console::json(stderr_stream())
}

/// Prints a document on standard error. If standard error is closed, nothing is printed: the exit code still says how
/// the command ended.
pub fn tell(document: Document) {
    let _ = document.print(&mut stderr());
}

/// Prints a document on standard error in the form that was asked for, like [`tell`].
pub fn tell_as(format: Format, document: Document) {
    let look = Look {
        markdown: format == Format::Markdown,
        ..stderr_look()
    };
    let _ = document.print(&mut Console::text(stderr_stream(), look));
}

/// Prints a line on standard error, like [`tell`].
pub fn say(line: impl Display) {
    let mut document = Document::default();
    document.line(line);
    tell(document);
}
/// Says that a file was written, unless it is standard output.
pub fn wrote(path: &Path) {
    if !is_stdio(path) {
        say(format_args!("wrote {}", profkit_data::path_text(path)));
    }
}

pub fn notes(notes: impl IntoIterator<Item = impl Display>) {
    for note in notes {
        say(format_args!("note: {note}"));
    }
}

pub fn answer(answer: &impl Answer, format: Format) -> Result<()> {
    let mut out = stdout_for(format);
    let printed = match format {
        Format::Text | Format::Markdown => answer.text(&mut out),
        Format::Json => answer.json(&mut out),
        Format::Rows(form) => answer.rows(form).write(form, &mut out),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let name = "a\u{1b}\u{7f}\u{9b}\n→";
        let mut bytes = Vec::new();
        write!(
            Console::json(&mut bytes),
            "{}",
            serde_json::to_string(name).unwrap()
        )
        .unwrap();
        assert!(bytes.iter().all(|&byte| byte != 0x7f && byte != 0x9b));
        let back: String = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back, name);
    }
}
