//! Writes MemProf profiles as YAML.
use crate::Result;
use crate::bytes::Sink;
use crate::memprof::data_access::{DataAccess, Datum};
use crate::memprof::losses::Losses;
use crate::memprof::profile::{MemProfile, Record, StackId};
use std::fmt::Write as _;

const BATCH: usize = 1 << 16;
/// The largest column at which an item inside `{ … }` or `[ … ]` can begin. LLVM begins a new line before an item that
/// would begin after this column.
const WRAP_COLUMN: usize = 80;
/// The column at which the value of a key begins. The column is counted from the start of the key.
const VALUE_COLUMN: usize = 16;

/// Writes a profile as one YAML document, with the same bytes as LLVM. Accessed data are in descending order of access
/// counts; cold data are sorted. Access histograms and names of functions are left out, because LLVM's YAML cannot hold
/// them.
pub fn write(profile: &MemProfile, sink: &mut dyn Sink) -> Result<Losses> {
    let mut writer = Writer {
        profile,
        out: String::from("---\n"),
    };
    let data = profile
        .data_access
        .as_ref()
        .filter(|data| !DataAccess::is_empty(data));
    if profile.records().is_empty() && data.is_none() {
        writer.out.push_str("{}\n");
    }
    if !profile.records().is_empty() {
        writer.out.push_str("HeapProfileRecords:\n");
    }
    for record in profile.records() {
        writer.record(record);
        if writer.out.len() >= BATCH {
            sink.put(writer.out.as_bytes())?;
            writer.out.clear();
        }
    }
    if let Some(data) = data {
        writer.data(data);
    }
    writer.out.push_str("...\n");
    sink.put(writer.out.as_bytes())?;
    Ok(Losses::without_histograms_and_names(profile))
}

struct Writer<'a> {
    profile: &'a MemProfile,
    out: String,
}

impl Writer<'_> {
    /// Writes `indent` spaces, a key with its colon, and spaces up to the column of the key's value.
    fn key(&mut self, indent: usize, key: &str) {
        let width = VALUE_COLUMN.saturating_sub(key.len()).max(1);
        // Writing to a `String` never fails.
        let _ = write!(self.out, "{:indent$}{key}:{:width$}", "", "");
    }

    fn field(&mut self, indent: usize, key: &str, value: impl std::fmt::Display) {
        self.key(indent, key);
        let _ = writeln!(self.out, "{value}");
    }

    fn record(&mut self, record: &Record) {
        self.out.push_str("  - ");
        self.field(0, "GUID", format_args!("{:#x}", record.function));
        if !record.alloc_sites.is_empty() {
            self.out.push_str("    AllocSites:\n");
        }
        for site in &record.alloc_sites {
            self.out.push_str("      - ");
            self.frames("Callstack", site.stack);
            let mut fields = site.block.fields().peekable();
            if fields.peek().is_none() {
                self.field(8, "MemInfoBlock", "{}");
                continue;
            }
            self.out.push_str("        MemInfoBlock:\n");
            for field in fields {
                self.field(10, field.name(), site.block.get(field));
            }
        }
        if !record.call_sites.is_empty() {
            self.out.push_str("    CallSites:\n");
        }
        for site in &record.call_sites {
            self.out.push_str("      - ");
            self.frames("Frames", site.stack);
            if !site.callees.is_empty() {
                self.key(8, "CalleeGuids");
                let callees = site.callees.iter().map(|callee| format!("{callee:#x}"));
                self.flow('[', ']', 8 + VALUE_COLUMN + 1, callees);
            }
        }
    }

    fn frames(&mut self, key: &str, stack: StackId) {
        if self.profile.frame_ids(stack).is_empty() {
            self.field(0, key, "[]");
            return;
        }
        let _ = writeln!(self.out, "{key}:");
        for frame in self.profile.stack(stack) {
            self.out.push_str("          - ");
            let items = [
                format!("Function: {:#x}", frame.function),
                format!("LineOffset: {}", frame.line_offset),
                format!("Column: {}", frame.column),
                format!("IsInlineFrame: {}", frame.is_inline),
            ];
            self.flow('{', '}', 12, items.into_iter());
        }
    }

    /// Writes items between the brackets `open` and `close`, then a line break. The bracket `open` is at the column
    /// `start`.
    fn flow(&mut self, open: char, close: char, start: usize, items: impl Iterator<Item = String>) {
        self.out.push(open);
        self.out.push(' ');
        let indent = start + 2;
        let mut column = indent;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push_str(", ");
                column += 2;
            }
            if column > WRAP_COLUMN {
                let _ = write!(self.out, "\n{:indent$}", "");
                column = indent;
            }
            column += item.len();
            self.out.push_str(&item);
        }
        let _ = writeln!(self.out, " {close}");
    }

    fn data(&mut self, data: &DataAccess) {
        self.out.push_str("DataAccessProfiles:\n");
        let mut records: Vec<_> = data.records.iter().collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.access_count));
        if !records.is_empty() {
            self.out.push_str("  SampledRecords:\n");
        }
        for record in records {
            self.out.push_str("    - ");
            match &record.datum {
                Datum::Symbol(symbol) => self.field(0, "Symbol", text(symbol)),
                Datum::Literal(hash) => self.field(0, "Hash", hash),
            }
            self.field(6, "AccessCount", record.access_count);
            if !record.locations.is_empty() {
                self.out.push_str("      Locations:\n");
            }
            for (file, line) in &record.locations {
                self.out.push_str("        - ");
                self.field(0, "FileName", text(file));
                self.field(10, "Line", line);
            }
        }
        let mut symbols: Vec<_> = data.cold_symbols.iter().collect();
        symbols.sort();
        if !symbols.is_empty() {
            self.out.push_str("  KnownColdSymbols:\n");
        }
        for symbol in symbols {
            let _ = writeln!(self.out, "    - {}", text(symbol));
        }
        let mut hashes = data.cold_hashes.clone();
        hashes.sort_unstable();
        if !hashes.is_empty() {
            self.key(2, "KnownColdStrHashes");
            let start = 2 + "KnownColdStrHashes: ".len();
            self.flow('[', ']', start, hashes.iter().map(u64::to_string));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let scalar = scalar(String::from_utf8_lossy(bytes).as_bytes());
    String::from_utf8(scalar).unwrap_or_default()
}

/// Formats a text as LLVM's `yaml::Output` does. Quotes are added if LLVM adds them (`yaml::needsQuotes`).
pub fn scalar(text: &[u8]) -> Vec<u8> {
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
    let words: [&[u8]; 10] = [
        b"null", b"Null", b"NULL", b"~", b"true", b"True", b"TRUE", b"false", b"False", b"FALSE",
    ];
    let mut quotes = Quotes::None;
    if blank(first)
        || blank(last)
        || words.contains(&text)
        || std::str::from_utf8(text).is_ok_and(is_numeric)
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

fn is_numeric(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let digits = unsigned.bytes().any(|byte| byte.is_ascii_digit());
    let looks = unsigned
        .bytes()
        .all(|byte| b"0123456789.eE+-".contains(&byte));
    digits && looks && unsigned.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn texts_are_quoted_where_yaml_would_take_them_for_something_else() {
        let cases = [
            ("_ZL3abc", "_ZL3abc"),
            ("a.h", "a.h"),
            ("dir/a.h", "'dir/a.h'"),
            ("12", "'12'"),
            ("-1e3", "'-1e3'"),
            ("true", "'true'"),
            ("", "''"),
            ("it's", "'it''s'"),
            ("with space: #x", "'with space: #x'"),
            ("new\nline", "\"new\\nline\""),
            ("_ZN1a1bEv", "_ZN1a1bEv"),
            ("a.c;helper", "'a.c;helper'"),
            (".nan", "'.nan'"),
        ];
        for (text, expected) in cases {
            assert_eq!(scalar(text.as_bytes()), expected.as_bytes());
        }
    }
}
