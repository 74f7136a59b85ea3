//! Lists of inputs: text with `PATH` or `WEIGHT,PATH` in each line.
use crate::{Weight, path_from_bytes};
use std::ffi::OsStr;
use std::path::PathBuf;

/// A line of a list file. Empty lines and comments are not entries.
#[derive(Debug)]
pub struct ListEntry {
    /// The number of the line in the list file, from 1.
    pub line: usize,
    /// The path that the line names and its weight, or the reason why the line is not valid.
    pub input: Result<(PathBuf, Weight), String>,
}

/// Reads a list file. Each line is `PATH` or `WEIGHT,PATH`; white space at both ends of the line is removed. Empty
/// lines and lines that begin with `#` are skipped. Relative paths begin at the working folder, not at the folder of
/// the list, as in LLVM.
///
/// `exists` returns whether there is a file with the given name. If the whole line is the name of a file, the line is
/// not split at a comma.
pub fn parse_list(
    bytes: &[u8],
    exists: impl Fn(&OsStr) -> bool,
) -> impl Iterator<Item = ListEntry> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    lines.filter_map(move |(index, line)| {
        let line = trim(line);
        if line.is_empty() || line.starts_with(b"#") {
            return None;
        }
        Some(ListEntry {
            line: index + 1,
            input: split_weight(path_from_bytes(line).as_os_str(), &exists),
        })
    })
}

fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r');
    let start = line.iter().position(|byte| !blank(byte));
    let end = line.iter().rposition(|byte| !blank(byte));
    match (start, end) {
        (Some(start), Some(end)) => &line[start..=end],
        _ => &[],
    }
}

/// Splits `WEIGHT,PATH`. The text before the comma is a weight only if it looks like a number, and only if there is no
/// file with the whole text as its name. `exists` returns whether there is a file with the given name.
///
/// # Errors
/// If the text before the comma looks like a number but is not a valid weight.
pub fn split_weight(
    text: &OsStr,
    exists: impl Fn(&OsStr) -> bool,
) -> Result<(PathBuf, Weight), String> {
    let whole = || Ok((PathBuf::from(text), Weight::ONE));
    let bytes = text.as_encoded_bytes();
    let Some(comma) = bytes.iter().position(|&byte| byte == b',') else {
        return whole();
    };
    let Some(weight) = bytes.get(..comma).and_then(number) else {
        return whole();
    };
    if exists(text) {
        return whole();
    }
    let path = path_from_bytes(&bytes[comma + 1..]);
    match weight.parse() {
        Ok(weight) => Ok((path, weight)),
        Err(error) => Err(format!("{}: {error}", crate::path_text(&path))),
    }
}

/// Returns the text before a comma if it looks like a number; `None` if not, because the comma is then part of a path.
fn number(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let rest = text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte));
    let letter = text.starts_with(['e', 'E']);
    (digits && rest && !letter).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> String {
        match split_weight(OsStr::new(text), |path| path == "7,there") {
            Ok((path, weight)) => format!("{weight} x {}", path.display()),
            Err(error) => error,
        }
    }

    #[test]
    fn weights_are_split_off_only_where_there_is_one() {
        assert_eq!(split("a.profraw"), "1 x a.profraw");
        assert_eq!(split("3,a.profraw"), "3 x a.profraw");
        assert_eq!(split("0.25,a,b.profraw"), "1/4 x a,b.profraw");
        assert_eq!(split("run 3,a.profraw"), "1 x run 3,a.profraw");
        assert_eq!(split("inf,a"), "1 x inf,a");
        assert_eq!(split("e0,a"), "1 x e0,a");
        assert_eq!(split("7,there"), "1 x 7,there");
        let zero = "a: the weight `0` is not valid: expected a number above 0 such as 3 or 0.25";
        assert_eq!(split("0,a"), zero);
        assert_eq!(split("-2,a"), zero.replace("`0`", "`-2`"));
        assert_eq!(split("1e9,a"), zero.replace("`0`", "`1e9`"));
    }

    #[test]
    fn lists_skip_comments_and_blanks_and_count_lines() {
        let text = b"# runs of Monday\n\n  a.profraw \r\n2,b.profraw\n0,c\n\t# no\nd";
        let seen: Vec<_> = parse_list(text, |_| false)
            .map(|entry| match entry.input {
                Ok((path, weight)) => format!("{} {weight} {}", entry.line, path.display()),
                Err(error) => format!("{} {error}", entry.line),
            })
            .collect();
        assert_eq!(
            seen,
            [
                "3 1 a.profraw",
                "4 2 b.profraw",
                "5 c: the weight `0` is not valid: expected a number above 0 such as 3 or 0.25",
                "7 1 d"
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_list_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let lines = bytes.split(|&byte| byte == b'\n').count();
            let mut last = 0;
            for entry in parse_list(&bytes, |_| false) {
                prop_assert!(entry.line > last && entry.line <= lines);
                last = entry.line;
            }
        }

        #[test]
        fn what_is_listed_is_read_back(weight in 1u64..1000, name in "[a-z][a-z, .0-9]{0,20}[a-z]") {
            let list = format!("\n{weight},{name}\n# {name}\n{name}");
            let read: Vec<_> = parse_list(list.as_bytes(), |_| false).collect();
            prop_assert_eq!(read.len(), 2);
            prop_assert_eq!(&read[0].input, &Ok((name.clone().into(), Weight::integer(weight))));
            prop_assert_eq!(&read[1].input, &Ok((name.into(), Weight::ONE)));
        }
    }
}
