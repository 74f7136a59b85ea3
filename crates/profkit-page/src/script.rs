//! The script as it is shipped: without comments, and without the spaces and line breaks that it does not need. Names
//! stay as they are, so that the errors of a browser can be read.

/// Removes from a script what it does not need to run: comments, spaces, line breaks, and each semicolon that is directly
/// before a `}`. Replaces `const` by `let`. Strings, templates and regular expressions are copied unchanged.
///
/// The script must have a semicolon at the end of each statement. It must have no empty statement, no regular expression
/// directly after a closing bracket, and no division directly after an operator.
pub fn lean(script: &str) -> String {
    let mut lean = Lean {
        out: String::with_capacity(script.len()),
        gap: Gap::None,
    };
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let (size, is_token) = lean.length(rest, first);
        // The part with this size (a token, a comment or a blank) always ends between two characters, and is never
        // empty. So `max` and `unwrap_or` change nothing.
        let (part, after) = rest.split_at_checked(size.max(1)).unwrap_or((rest, ""));
        if is_token {
            lean.token(part);
        } else if part == "\n" || part.starts_with("//") {
            lean.gap = Gap::Line;
        } else {
            lean.gap = lean.gap.max(Gap::Space);
        }
        rest = after;
    }
    lean.out
}

/// The white space between two tokens. `Line` means that it contains a line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

struct Lean {
    out: String,
    gap: Gap,
}

impl Lean {
    /// Finds the blank, the comment or the token at the beginning of `text`. `first` is the first character of `text`.
    /// Returns the length of what was found, in bytes, and whether it is a token.
    fn length(&self, text: &str, first: char) -> (usize, bool) {
        let until = |end: &str, from: usize| {
            let found = text.get(from..).and_then(|rest| rest.find(end));
            found.map_or(text.len(), |at| from + at)
        };
        match first {
            ' ' | '\n' => (1, false),
            '/' if text.starts_with("//") => (until("\n", 2), false),
            '/' if text.starts_with("/*") => ((until("*/", 2) + 2).min(text.len()), false),
            '/' if self.pattern_may_follow() => (quoted(text, '/'), true),
            '"' | '\'' => (quoted(text, first), true),
            '`' => (template(text), true),
            _ if is_word(first) => (text.find(|one| !is_word(one)).unwrap_or(text.len()), true),
            _ => (first.len_utf8(), true),
        }
    }

    /// Whether a slash at this place begins a regular expression. Otherwise the slash is a division.
    fn pattern_may_follow(&self) -> bool {
        let last = self.out.chars().next_back();
        last.is_none_or(|last| !is_word(last) && !matches!(last, ')' | ']'))
    }

    fn token(&mut self, token: &str) {
        if let (Some(last), Some(first)) = (self.out.chars().next_back(), token.chars().next()) {
            match self.gap {
                // The line break is kept, because a statement without a semicolon could end at this bracket.
                Gap::Line if matches!(last, '}' | ')' | ']') && is_word(first) => {
                    self.out.push('\n');
                }
                Gap::None => {}
                _ if is_word(last) && is_word(first) => self.out.push(' '),
                // `a + +b` is not `a ++b`.
                _ if last == first && matches!(first, '+' | '-' | '/') => self.out.push(' '),
                _ => {}
            }
        }
        self.gap = Gap::None;
        if token == "}" && self.out.ends_with(';') {
            self.out.pop();
        }
        // `let` is shorter than `const`. The check that constants do not change is made before the script is shipped.
        self.out
            .push_str(if token == "const" { "let" } else { token });
    }
}

/// Whether a character can be part of a word. Two such characters must not become neighbours.
fn is_word(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '$')
}

/// The size in bytes of a string with its quotes, or of a regular expression with its slashes but without its flags. A
/// slash between square brackets does not end a regular expression.
fn quoted(text: &str, quote: char) -> usize {
    let (mut escaped, mut in_brackets) = (false, false);
    for (at, one) in text.char_indices().skip(1) {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if quote == '/' => in_brackets = true,
            ']' => in_brackets = false,
            _ if one == quote && !in_brackets => return at + one.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The size of a template with its quotes. Expressions in it can have strings and other templates.
fn template(text: &str) -> usize {
    let mut depth = 0u32;
    let mut at = 1;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        at += match first {
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '$' if depth == 0 && rest.starts_with("${") => {
                depth = 1;
                2
            }
            '{' if depth > 0 => {
                depth += 1;
                1
            }
            '}' if depth > 0 => {
                depth -= 1;
                1
            }
            '"' | '\'' if depth > 0 => quoted(rest, first),
            '`' if depth > 0 => template(rest),
            '`' => return at + 1,
            other => other.len_utf8(),
        };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_spaces_and_line_breaks_go() {
        assert_eq!(
            lean("  // a\n/** b\n c */\nlet x = /** @type {T} */ (y); // z\n    f( 1, 2 );\n"),
            "let x=(y);f(1,2);"
        );
        assert_eq!(
            lean("function f() {\n  const a = { b: 1 };\n  for (;;) {}\n}\n"),
            "function f(){let a={b:1};for(;;){}}"
        );
    }

    #[test]
    fn what_separates_tokens_stays() {
        assert_eq!(lean("return x in y;"), "return x in y;");
        assert_eq!(lean("return -x + +y - -z;"), "return-x+ +y- -z;");
        assert_eq!(lean("a()\nb()"), "a()\nb()");
        assert_eq!(lean("x /* a */y"), "x y");
        assert_eq!(lean("reconst; constant"), "reconst;constant");
    }

    #[test]
    fn strings_templates_and_patterns_stay() {
        for text in [
            "\"a  // b\"",
            "'it\\'s  '",
            "`a  ${ f(\"}\", { x : 1 }, ` ${ y } `) }  // b`",
            "/[/ ]  \\/ x/",
            "/ as |>::/",
        ] {
            assert_eq!(
                lean(&format!("f( {text} ) / 2 / 1")),
                format!("f({text})/2/1")
            );
        }
    }

    #[test]
    fn a_script_that_ends_too_early_is_no_error() {
        for text in ["\"a", "`a ${ ", "/* a", "// a", "x = /a", "`\\"] {
            assert!(lean(text).len() <= text.len());
        }
    }
}
