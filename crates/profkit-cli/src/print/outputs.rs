//! Standard output and standard error. Both escape control characters, so that control characters from a file never
//! reach a terminal.
use super::{Format, Screen};
use std::io::{self, BufWriter};

/// The size of the output buffer. A larger buffer would need more memory and save no measurable time.
const BUFFER: usize = 256 << 10;

/// Standard output for text. [`Failure::print`](crate::exit::Failure::print) turns its errors into failures.
pub fn stdout() -> Screen<BufWriter<io::StdoutLock<'static>>> {
    Screen::text(raw_stdout())
}

/// Standard output for JSON.
pub fn json_stdout() -> Screen<BufWriter<io::StdoutLock<'static>>> {
    Screen::json(raw_stdout())
}

/// Standard output for this format.
pub fn stdout_for(format: Format) -> Screen<BufWriter<io::StdoutLock<'static>>> {
    match format {
        Format::Text => stdout(),
        Format::Json => json_stdout(),
    }
}

fn raw_stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

/// Standard error for messages.
pub fn stderr() -> Screen<io::StderrLock<'static>> {
    Screen::text(io::stderr().lock())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let name = "a\u{1b}\u{7f}\u{9b}\n→";
        let mut bytes = Vec::new();
        write!(
            Screen::json(&mut bytes),
            "{}",
            serde_json::to_string(name).unwrap()
        )
        .unwrap();
        assert!(bytes.iter().all(|&byte| byte != 0x7f && byte != 0x9b));
        let back: String = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back, name);
    }
}
