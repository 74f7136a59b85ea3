//! Writes the YAML that the tool needs, in the form of LLVM's `yaml::Output`.
use crate::lines::Lines;
use profkit_object::correlate::dwarf::Probe;

/// The number of columns from the start of a key to the start of its value.
const COLUMN: usize = 17;

/// Writes the output of `show --debug-info --show-format=yaml`.
pub fn probes(probes: &[Probe], lines: &mut Lines<'_>) {
    lines.text("---\nProbes:\n");
    for probe in probes {
        let mut first = true;
        let mut field = |key: &str, value: &[u8]| {
            lines.text(if first { "  - " } else { "    " });
            first = false;
            let spaces = COLUMN.saturating_sub(key.len() + 1).max(1);
            lines.text(key).text(":").text(" ".repeat(spaces));
            lines.text(value).end();
        };
        field("Function Name", &scalar(&probe.function_name));
        if let Some(name) = &probe.linkage_name {
            field("Linkage Name", &scalar(name));
        }
        field("CFG Hash", format!("0x{:X}", probe.cfg_hash).as_bytes());
        let offset = format!("0x{:X}", probe.counter_offset);
        field("Counter Offset", offset.as_bytes());
        field("Num Counters", probe.num_counters.to_string().as_bytes());
        if let Some(file) = &probe.file {
            field("File", &scalar(file));
        }
        if let Some(line) = probe.line.filter(|&line| line != 0) {
            field("Line", line.to_string().as_bytes());
        }
    }
    lines.text("...\n");
}

/// Formats a string. Quotes are added if LLVM would add them (`yaml::needsQuotes`).
fn scalar(text: &[u8]) -> Vec<u8> {
    match quoting(text) {
        Quotes::None => text.to_vec(),
        Quotes::Single => {
            let mut quoted = vec![b'\''];
            for &byte in text {
                quoted.push(byte);
                if byte == b'\'' {
                    quoted.push(byte);
                }
            }
            quoted.push(b'\'');
            quoted
        }
        Quotes::Double => {
            let mut quoted = vec![b'"'];
            for &byte in text {
                match byte {
                    b'\\' | b'"' => quoted.extend([b'\\', byte]),
                    b'\t' => quoted.extend(b"\\t"),
                    b'\n' => quoted.extend(b"\\n"),
                    b'\r' => quoted.extend(b"\\r"),
                    0..=0x1f | 0x7f => quoted.extend(format!("\\x{byte:02X}").bytes()),
                    _ => quoted.push(byte),
                }
            }
            quoted.push(b'"');
            quoted
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quotes {
    None,
    Single,
    Double,
}

fn quoting(text: &[u8]) -> Quotes {
    let Some((&first, &last)) = text.first().zip(text.last()) else {
        return Quotes::Single;
    };
    let blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    let words: [&[u8]; 11] = [
        b"null", b"Null", b"NULL", b"~", b"true", b"True", b"TRUE", b"false", b"False", b"FALSE",
        b".nan",
    ];
    let mut quotes = Quotes::None;
    if blank(first)
        || blank(last)
        || words.contains(&text)
        || is_number(text)
        || b"-?:\\,[]{}#&*!|>'\"%@`".contains(&first)
    {
        quotes = Quotes::Single;
    }
    for &byte in text {
        quotes = quotes.max(match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Quotes::None,
            b'_' | b'-' | b'^' | b'.' | b',' | b' ' | b'\t' => Quotes::None,
            0..=0x1f | 0x7f.. => Quotes::Double,
            _ => Quotes::Single,
        });
    }
    quotes
}

fn is_number(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let tail = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits =
        |digits: &str, allowed: fn(char) -> bool| !digits.is_empty() && digits.chars().all(allowed);
    if let Some(octal) = text.strip_prefix("0o") {
        return digits(octal, |c| matches!(c, '0'..='7'));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return digits(hex, |c| c.is_ascii_hexdigit());
    }
    let starts = tail.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts && tail.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_where_llvm_quotes_them() {
        let quoted = |text: &str| String::from_utf8(scalar(text.as_bytes())).unwrap();
        assert_eq!(quoted("_ZN1a1bEv"), "_ZN1a1bEv");
        assert_eq!(quoted("a.c;helper"), "'a.c;helper'");
        assert_eq!(quoted("src/a.c"), "'src/a.c'");
        assert_eq!(quoted("don't"), "'don''t'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("12"), "'12'");
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
    }
}
