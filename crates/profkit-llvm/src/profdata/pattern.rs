//! The regular expressions of `--function` and `--no-function`. They are POSIX extended expressions, as LLVM's `Regex`
//! compiles them (`llvm/lib/Support/regcomp.c`). This module translates them for the `regex` crate.
use profkit_data::ids::NameRef;
use regex::bytes::{Regex, RegexBuilder};

/// The largest number that braces may contain (`RE_DUP_MAX`).
const MOST_REPEATS: u32 = 255;

/// A compiled pattern, which may match anywhere in a name.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// The MD5 hash of the pattern, in the form in which LLVM would compile it.
    hash: NameRef,
}

impl Pattern {
    /// Compiles a pattern. A pattern that begins with `?` is taken literally, because it is a name that MSVC mangled.
    ///
    /// # Errors
    /// LLVM's text for what is wrong with the pattern.
    pub fn new(pattern: &[u8]) -> Result<Self, &'static str> {
        let mut translated = String::from("(?s-u)");
        let mut compiled = pattern.to_vec();
        if pattern.first() == Some(&b'?') {
            pattern
                .iter()
                .for_each(|&byte| literal(&mut translated, byte));
            compiled = escaped(pattern);
        } else {
            let mut translator = Translator {
                rest: pattern,
                out: translated,
            };
            translator.alternatives(false)?;
            translated = translator.out;
        }
        RegexBuilder::new(&translated)
            .unicode(false)
            .build()
            .map(|regex| Pattern {
                regex,
                hash: NameRef::of(&compiled),
            })
            .map_err(|_| "out of memory")
    }

    /// Returns the MD5 hash of the pattern, computed as if the pattern were a function's name.
    pub fn hash(&self) -> NameRef {
        self.hash
    }

    /// Whether the pattern matches anywhere in a name.
    pub fn matches(&self, name: &[u8]) -> bool {
        self.regex.is_match(name)
    }
}

/// Escapes the characters of a name that have a meaning in a regular expression, as LLVM does before it compiles a name
/// (`Regex::escape`).
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    for &byte in name {
        if b"()^$|*+?.[]\\{}".contains(&byte) {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    escaped
}

const PARENTHESES: &str = "parentheses not balanced";
const BRACKETS: &str = "brackets ([ ]) not balanced";
const REPETITION: &str = "repetition-operator operand invalid";
const COUNT: &str = "invalid repetition count(s)";
const BRACES: &str = "braces not balanced";
const EMPTY: &str = "empty (sub)expression";
const RANGE: &str = "invalid character range";
const CLASS: &str = "invalid character class";
const COLLATING: &str = "invalid collating element";

struct Translator<'p> {
    rest: &'p [u8],
    out: String,
}

impl Translator<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.next();
        }
        found
    }

    /// Parses alternatives, up to the end or to the closing parenthesis of a group.
    fn alternatives(&mut self, in_group: bool) -> Result<(), &'static str> {
        loop {
            let mut empty = true;
            while let Some(byte) = self.peek() {
                if byte == b'|' || in_group && byte == b')' {
                    break;
                }
                self.piece()?;
                empty = false;
            }
            if empty {
                return Err(EMPTY);
            }
            if !self.eat(b'|') {
                return Ok(());
            }
            self.out.push('|');
        }
    }

    fn piece(&mut self) -> Result<(), &'static str> {
        let Some(byte) = self.next() else {
            return Ok(());
        };
        match byte {
            b'(' => {
                if self.rest.is_empty() {
                    return Err(PARENTHESES);
                }
                self.out.push_str("(?:");
                if self.peek() != Some(b')') {
                    self.alternatives(true)?;
                }
                if !self.eat(b')') {
                    return Err(PARENTHESES);
                }
                self.out.push(')');
            }
            b')' => return Err(PARENTHESES),
            b'|' => return Err(EMPTY),
            b'*' | b'+' | b'?' => return Err(REPETITION),
            b'^' => self.out.push_str("(?:^)"),
            b'$' => self.out.push_str("(?:$)"),
            b'.' => self.out.push('.'),
            b'[' => self.bracket()?,
            b'\\' => match self.next() {
                None => return Err("trailing backslash (\\)"),
                Some(b'1'..=b'9') => return Err("invalid backreference number"),
                Some(escaped) => literal(&mut self.out, escaped),
            },
            b'{' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                return Err(REPETITION);
            }
            _ => literal(&mut self.out, byte),
        }
        self.repetition(byte == b'^')
    }

    fn at_repetition(&self) -> bool {
        match self.rest {
            [b'*' | b'+' | b'?', ..] => true,
            [b'{', next, ..] => next.is_ascii_digit(),
            _ => false,
        }
    }

    fn repetition(&mut self, after_caret: bool) -> Result<(), &'static str> {
        if !self.at_repetition() {
            return Ok(());
        }
        if after_caret {
            return Err(REPETITION);
        }
        match self.next() {
            Some(b'{') => {
                let least = self.count()?;
                let most = if !self.eat(b',') {
                    Some(least)
                } else if self.peek().is_some_and(|next| next.is_ascii_digit()) {
                    let most = self.count()?;
                    if most < least {
                        return Err(COUNT);
                    }
                    Some(most)
                } else {
                    None
                };
                if !self.eat(b'}') {
                    let closed = self.rest.contains(&b'}');
                    return Err(if closed { COUNT } else { BRACES });
                }
                let most = most.map_or_else(String::new, |most| most.to_string());
                self.out.push_str(&format!("{{{least},{most}}}"));
            }
            Some(operator) => self.out.push(char::from(operator)),
            None => {}
        }
        if self.at_repetition() {
            return Err(REPETITION);
        }
        Ok(())
    }

    fn count(&mut self) -> Result<u32, &'static str> {
        let mut count = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            count = count * 10 + u32::from(digit - b'0');
            if count > MOST_REPEATS {
                return Err(COUNT);
            }
            self.next();
        }
        Ok(count)
    }

    fn bracket(&mut self) -> Result<(), &'static str> {
        for (word, boundary) in [(&b"[:<:]]"[..], "\\b{start}"), (b"[:>:]]", "\\b{end}")] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                self.out.push_str(boundary);
                return Ok(());
            }
        }
        let negated = self.eat(b'^');
        let mut set = [false; 256];
        let mut add = |range: std::ops::RangeInclusive<u8>| {
            for byte in range {
                if let Some(member) = set.get_mut(usize::from(byte)) {
                    *member = true;
                }
            }
        };
        if self.eat(b']') {
            add(b']'..=b']');
        } else if self.eat(b'-') {
            add(b'-'..=b'-');
        }
        loop {
            match self.rest {
                [] => return Err(BRACKETS),
                [b']', ..] | [b'-', b']', ..] => break,
                [b'[', b':', ..] => {
                    let class = self.until(b":]", CLASS)?;
                    for byte in 0..=u8::MAX {
                        if in_class(class, byte).ok_or(CLASS)? {
                            add(byte..=byte);
                        }
                    }
                }
                [b'[', b'=', ..] => {
                    let element = self.until(b"=]", COLLATING)?;
                    let &[byte] = element else {
                        return Err(COLLATING);
                    };
                    add(byte..=byte);
                }
                [b'-', ..] => return Err(RANGE),
                _ => {
                    let first = self.symbol()?;
                    let mut last = first;
                    if let [b'-', next, ..] = self.rest
                        && *next != b']'
                    {
                        self.next();
                        last = if self.eat(b'-') { b'-' } else { self.symbol()? };
                    }
                    if first > last {
                        return Err(RANGE);
                    }
                    add(first..=last);
                }
            }
        }
        if self.eat(b'-') {
            add(b'-'..=b'-');
        }
        if !self.eat(b']') {
            return Err(BRACKETS);
        }
        // A negated expression becomes `[^…]` with the listed bytes. It does not become a class of all other bytes: if
        // the expression lists every byte, that class would be empty, and the `regex` crate cannot parse an empty
        // class.
        self.out.push_str(if negated { "[^" } else { "[" });
        for (byte, _) in (0..=u8::MAX).zip(set).filter(|&(_, member)| member) {
            literal(&mut self.out, byte);
        }
        self.out.push(']');
        Ok(())
    }

    fn symbol(&mut self) -> Result<u8, &'static str> {
        if self.rest.starts_with(b"[.") {
            let element = self.until(b".]", COLLATING)?;
            return match element {
                &[byte] => Ok(byte),
                _ => Err(COLLATING),
            };
        }
        self.next().ok_or(BRACKETS)
    }

    /// Returns the text of a class, a collating element or an equivalence class: the text up to `end`, which is `:]`,
    /// `.]` or `=]`. `missing` is the error if `end` is not found.
    fn until(&mut self, end: &[u8], missing: &'static str) -> Result<&[u8], &'static str> {
        let inner = self.rest.get(2..).unwrap_or_default();
        let Some(length) = inner.windows(2).position(|window| window == end) else {
            return Err(if inner.is_empty() { BRACKETS } else { missing });
        };
        self.rest = inner.get(length + 2..).unwrap_or_default();
        Ok(inner.get(..length).unwrap_or_default())
    }
}

fn in_class(class: &[u8], byte: u8) -> Option<bool> {
    Some(match class {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

/// Appends a byte in a form that matches exactly this byte.
fn literal(out: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() || byte == b'_' {
        out.push(char::from(byte));
    } else {
        out.push_str(&format!("\\x{byte:02x}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern.as_bytes())
            .unwrap()
            .matches(name.as_bytes())
    }

    #[test]
    fn posix_syntax() {
        assert!(matches("^f.o$", "foo") && !matches("^f.o$", "xfoo"));
        assert!(matches("(f|b)o{2}", "boo") && !matches("(f|b)o{2}", "bo"));
        assert!(matches("a{", "a{") && matches("a{x", "a{x"));
        assert!(matches("[]a]", "]") && matches("[^]a]", "b") && !matches("[^]a]", "]"));
        assert!(matches("[[:alpha:]_-]+$", "a_-") && !matches("^[a-c]$", "d"));
        assert!(
            matches("\\d", "d") && !matches("\\d", "1"),
            "no Perl classes"
        );
        assert!(matches("_ZN.*E\\(", "_ZN1aE("));
        assert!(matches("?f@@YAXXZ", "?f@@YAXXZ") && !matches("?f@@YAXXZ", "f@@YAXXZ"));
        assert!(Pattern::new(b"\xff.").unwrap().matches(b"a\xff\n"));
    }
}
