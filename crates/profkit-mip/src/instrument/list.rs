//! Reads ignore lists. They have the form of the sanitizers' special-case lists (clang's documentation, "Sanitizer
//! special case list"). A list has a section `[mip]` with entries `fun:GLOB` and `src:GLOB`, each with an optional
//! `=CATEGORY`.
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Function,
    Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    subject: Subject,
    glob: Vec<Piece>,
    category: String,
}

/// A list of functions and source files that are not instrumented.
///
/// | entry | meaning |
/// |---|---|
/// | `fun:GLOB` | functions whose symbol matches get no probe |
/// | `src:GLOB` | functions get no probe if the path of their source file matches; this is the path that the compiler was given |
/// | `…=block` | the functions get no block probes, but an entry probe |
/// | `…=calls`, `…=function` | the functions get no probe in the mode `calls` or `function` |
///
/// In a glob, `*`, `?`, `[a-z]`, `[^a]` and `{one,two}` have their usual meaning. A character after a backslash stands
/// for itself. The list uses the entries before the first section, and those in sections whose name, read as a glob,
/// matches `mip`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreList {
    entries: Vec<Entry>,
}

/// Why an ignore list cannot be read: its name, the number and text of the line, the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    file: String,
    line: usize,
    text: String,
    problem: &'static str,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}, at `{}`",
            self.file, self.line, self.problem, self.text
        )
    }
}

impl std::error::Error for ListError {}

const SECTION: &[u8] = b"mip";

impl IgnoreList {
    /// Reads an ignore list and adds its entries. `file` is the name of the list in messages.
    ///
    /// # Errors
    /// If a line is not valid: the error names the first such line.
    pub fn add(&mut self, text: &[u8], file: &str) -> Result<(), ListError> {
        let mut ours = true;
        let mut named = false;
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            let wrong = |problem| ListError {
                file: file.to_owned(),
                line: index + 1,
                text: crate::asm::excerpt(line).into_owned(),
                problem,
            };
            if line == b"#!special-case-list-v1" {
                return Err(wrong(
                    "version 1 of the format has regular expressions, which are not read: write globs",
                ));
            }
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if let Some(section) = line.strip_prefix(b"[") {
                let name = section
                    .strip_suffix(b"]")
                    .filter(|name| !name.is_empty())
                    .ok_or_else(|| wrong("a section must be written [NAME]"))?;
                ours = matches(&glob(name).map_err(wrong)?, SECTION);
                named = name == SECTION;
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':').ok_or_else(|| {
                wrong("an entry must be written PREFIX:GLOB or PREFIX:GLOB=CATEGORY")
            })?;
            let (prefix, rest) = line.split_at(colon);
            let rest = rest.get(1..).unwrap_or_default();
            let (pattern, category) = match rest.iter().rposition(|&byte| byte == b'=') {
                Some(at) => (
                    rest.get(..at).unwrap_or_default(),
                    rest.get(at + 1..).unwrap_or_default(),
                ),
                None => (rest, &b""[..]),
            };
            if !ours {
                continue;
            }
            let subject = match prefix {
                b"fun" => Subject::Function,
                b"src" | b"mainfile" => Subject::Source,
                // A section for all tools may have entries of other tools; in `[mip]` they are errors.
                _ if !named => continue,
                _ => {
                    return Err(wrong(
                        "an entry of section [mip] is neither fun:GLOB nor src:GLOB",
                    ));
                }
            };
            if pattern.is_empty() {
                return Err(wrong("the glob is empty"));
            }
            let category = match category {
                b"" | b"block" | b"calls" | b"function" => String::from_utf8_lossy(category),
                _ if !named => continue,
                _ => {
                    return Err(wrong(
                        "unknown category: the categories are block, calls and function",
                    ));
                }
            };
            self.entries.push(Entry {
                subject,
                glob: glob(pattern).map_err(wrong)?,
                category: category.into_owned(),
            });
        }
        Ok(())
    }

    /// Whether an entry with exactly this category excludes the function or its file; `""` without `=CATEGORY`.
    pub fn has(&self, source: &[u8], function: &[u8], category: &str) -> bool {
        self.entries.iter().any(|entry| {
            entry.category == category
                && matches(
                    &entry.glob,
                    match entry.subject {
                        Subject::Function => function,
                        Subject::Source => source,
                    },
                )
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    Any,
    AnyRun,
    Class {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
    OneOf(Vec<Vec<Piece>>),
}

fn glob(text: &[u8]) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'*' => {
                if pieces.last() != Some(&Piece::AnyRun) {
                    pieces.push(Piece::AnyRun);
                }
            }
            b'?' => pieces.push(Piece::Any),
            b'\\' => {
                let escaped = text.get(at).ok_or("the glob ends with a backslash")?;
                pieces.push(Piece::Byte(*escaped));
                at += 1;
            }
            b'[' => {
                // A `]` directly after the opening bracket is an ordinary character of the class.
                let negated = matches!(text.get(at), Some(b'^' | b'!'));
                let first = at + usize::from(negated);
                let length = text
                    .iter()
                    .skip(first + 1)
                    .position(|&byte| byte == b']')
                    .ok_or("the glob has [ without ]")?;
                let class = text.get(first..first + 1 + length).unwrap_or_default();
                pieces.push(Piece::Class {
                    negated,
                    ranges: ranges(class)?,
                });
                at = first + length + 2;
            }
            b'{' => {
                let length = text
                    .iter()
                    .skip(at)
                    .position(|&byte| byte == b'}')
                    .ok_or("the glob has { without }")?;
                let inner = text.get(at..at + length).unwrap_or_default();
                if inner.contains(&b'{') {
                    return Err("the glob has { within {");
                }
                let choices: Result<Vec<_>, _> =
                    inner.split(|&byte| byte == b',').map(glob).collect();
                pieces.push(Piece::OneOf(choices?));
                at += length + 1;
            }
            _ => pieces.push(Piece::Byte(byte)),
        }
    }
    Ok(pieces)
}

fn ranges(class: &[u8]) -> Result<Vec<(u8, u8)>, &'static str> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&low) = class.get(at) {
        match (class.get(at + 1), class.get(at + 2)) {
            (Some(b'-'), Some(&high)) => {
                if high < low {
                    return Err("the glob has a range that ends before it begins");
                }
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
    Ok(ranges)
}

/// Takes at most the product of both lengths, because all positions are followed at the same time.
fn matches(glob: &[Piece], text: &[u8]) -> bool {
    let mut positions = vec![false; text.len() + 1];
    if let Some(first) = positions.first_mut() {
        *first = true;
    }
    advance(glob, text, positions).last() == Some(&true)
}

/// The positions that are reached by matching all pieces: element N is true if N can be.
fn advance(glob: &[Piece], text: &[u8], mut positions: Vec<bool>) -> Vec<bool> {
    for piece in glob {
        let mut next = vec![false; text.len() + 1];
        match piece {
            Piece::AnyRun => {
                let mut reached = false;
                for (slot, &from) in next.iter_mut().zip(&positions) {
                    reached |= from;
                    *slot = reached;
                }
            }
            Piece::OneOf(choices) => {
                for choice in choices {
                    let reached = advance(choice, text, positions.clone());
                    for (slot, from) in next.iter_mut().zip(reached) {
                        *slot |= from;
                    }
                }
            }
            Piece::Byte(_) | Piece::Any | Piece::Class { .. } => {
                let takes = |byte: u8| match piece {
                    Piece::Byte(wanted) => byte == *wanted,
                    Piece::Class { negated, ranges } => {
                        ranges
                            .iter()
                            .any(|&(low, high)| (low..=high).contains(&byte))
                            != *negated
                    }
                    Piece::Any | Piece::AnyRun | Piece::OneOf(_) => true,
                };
                for ((slot, &from), &byte) in next.iter_mut().skip(1).zip(&positions).zip(text) {
                    *slot = from && takes(byte);
                }
            }
        }
        positions = next;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let check = |pattern: &str, text: &str| {
            matches(&glob(pattern.as_bytes()).unwrap(), text.as_bytes())
        };
        for (pattern, yes, no) in [
            ("foo", "foo", "fooo"),
            ("f*o", "fxxo", "fox"),
            ("*", "", "\0none"),
            ("a?c", "abc", "ac"),
            ("[a-c]x[^0-9]", "bxz", "bx1"),
            ("[]x]", "]", "["),
            ("_Z{3foo,4barr}*", "_Z4barri", "_Z3bari"),
            (r"a\*b", "a*b", "axb"),
            ("*a*a*a*b", "aaaaaaaaaaaaab", "aaaaaaaaaaaaaa"),
        ] {
            assert!(check(pattern, yes), "{pattern} {yes}");
            assert!(!check(pattern, no) || no == "\0none", "{pattern} {no}");
        }
    }

    #[test]
    fn entries_by_section_and_category() {
        let mut list = IgnoreList::default();
        list.add(
            b"# all tools\nsrc:*/vendor/*\n[cfi-*]\nfun:never\n[mip]\nfun:hot_*=block\nfun:gone\nfun:x=calls\n[{mip,other}]\nfun:both\ntype:ignored\n",
            "list.txt",
        )
        .unwrap();
        assert!(list.has(b"a/vendor/b.c", b"f", ""));
        assert!(list.has(b"a.c", b"gone", ""));
        assert!(list.has(b"a.c", b"both", ""));
        assert!(list.has(b"a.c", b"hot_loop", "block"));
        assert!(!list.has(b"a.c", b"hot_loop", ""));
        assert!(list.has(b"a.c", b"x", "calls"));
        assert!(!list.has(b"a.c", b"never", ""));
    }

    #[test]
    fn each_wrong_line_is_located() {
        let message = |text: &str| {
            IgnoreList::default()
                .add(text.as_bytes(), "list.txt")
                .unwrap_err()
                .to_string()
        };
        let all: Vec<String> = [
            "\n[mip\n",
            "[]",
            "fun",
            "[mip]\nfunc:x",
            "[mip]\nfun:",
            "[mip]\nfun:x=blocks",
            "fun:[a",
            "fun:{a",
            "fun:{a,{b}}",
            "fun:a\\",
            "fun:[b-a]",
            "#!special-case-list-v1\n",
        ]
        .into_iter()
        .map(message)
        .collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        list.txt:2: a section must be written [NAME], at `[mip`
        list.txt:1: a section must be written [NAME], at `[]`
        list.txt:1: an entry must be written PREFIX:GLOB or PREFIX:GLOB=CATEGORY, at `fun`
        list.txt:2: an entry of section [mip] is neither fun:GLOB nor src:GLOB, at `func:x`
        list.txt:2: the glob is empty, at `fun:`
        list.txt:2: unknown category: the categories are block, calls and function, at `fun:x=blocks`
        list.txt:1: the glob has [ without ], at `fun:[a`
        list.txt:1: the glob has { without }, at `fun:{a`
        list.txt:1: the glob has { within {, at `fun:{a,{b}}`
        list.txt:1: the glob ends with a backslash, at `fun:a\`
        list.txt:1: the glob has a range that ends before it begins, at `fun:[b-a]`
        list.txt:1: version 1 of the format has regular expressions, which are not read: write globs, at `#!special-case-list-v1`
        ");
    }
}
