//! A statement of an assembly file: a label, a directive, an instruction, an assignment, or text that only the
//! assembler can interpret.
use super::{ArmState, SectionId};

/// A statement of an assembly file.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The line number of the statement's first byte in the file. The first line has the number 1.
    pub line: u32,
    /// The offset of the statement's first byte in the file.
    pub start: usize,
    /// The end of the statement: the offset in the file after the last byte that is not white space.
    pub end: usize,
    /// The section of the statement; of a directive that changes the section, the one before.
    pub section: SectionId,
    /// The context of the statement, such as the enabled syntax.
    pub context: Context,
    /// The kind of the statement.
    pub kind: Kind<'a>,
}

/// The settings that earlier statements have made, and the constructs that they have opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Whether the statement is inline assembly. Compilers mark the start and the end of inline assembly with comments.
    pub inline: bool,
    /// Whether the statement is inside `.if`, so that the assembler may skip it.
    pub conditional: bool,
    /// Whether Intel syntax is enabled.
    pub intel: bool,
    /// The settings for 32-bit Arm at the statement.
    pub arm: ArmState,
}

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A label `name:`. The variant holds the name without quotes. A number is a valid name.
    Label(&'a [u8]),
    /// A directive `.name arguments`.
    Directive(Directive<'a>),
    /// A machine instruction. A call of a macro looks the same, so it has this kind too.
    Instruction(Instruction<'a>),
    /// An assignment `symbol = value` or `symbol == value`. The variant holds the symbol and the value.
    Assignment(&'a [u8], &'a [u8]),
    /// In the body of a `.macro`, `.rept` or similar, which is assembled later, any number of times.
    Template,
}

/// An assembler directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// The name of the directive with its dot, spelled as in the file.
    pub name: &'a [u8],
    /// The text after the directive's name.
    pub arguments: &'a [u8],
}

/// A machine instruction, in text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The first word of the statement, which may be a prefix such as `lock`.
    pub mnemonic: &'a [u8],
    /// The operands: the text after the first word of the instruction.
    pub operands: &'a [u8],
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'$' | b'@' | b'\\')
        || byte >= 0x80
}

/// The names in an operand: the longest runs of name bytes, or quoted strings. The name in `foo@PLT` is `foo`.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = *rest.first()?;
            if first == b'"' {
                let (name, after) = quoted(rest)?;
                rest = after;
                return Some(name);
            }
            if is_name_byte(first) {
                let length = rest
                    .iter()
                    .position(|&byte| !is_name_byte(byte))
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at(length);
                rest = after;
                let name = word.split(|&byte| byte == b'@').next().unwrap_or_default();
                if !name.is_empty() {
                    return Some(name);
                }
            } else {
                rest = rest.get(1..)?;
            }
        }
    })
}

/// Splits off a quoted string, without its quotes and with its escapes. `None` if the text begins with none.
pub(crate) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        match inner.get(at)? {
            b'\\' => at += 2,
            b'"' => break,
            _ => at += 1,
        }
    }
    Some((inner.get(..at)?, inner.get(at + 1..)?))
}

/// Splits off the name of a label. `None` if the text does not begin with one.
pub(super) fn split_label(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = if text.first() == Some(&b'"') {
        quoted(text)?
    } else {
        let length = text.iter().position(|&byte| !is_name_byte(byte))?;
        text.split_at(length)
    };
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    (!name.is_empty()).then_some((name, rest))
}

pub(super) fn parse(text: &[u8]) -> Kind<'_> {
    let (first, rest) = if text.first() == Some(&b'"') {
        quoted(text).unwrap_or((text, b""))
    } else {
        let length = text
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'"'))
            .unwrap_or(text.len());
        text.split_at(length)
    };
    let rest = rest.trim_ascii();
    if let Some(value) = rest.strip_prefix(b"=") {
        let value = value.strip_prefix(b"=").unwrap_or(value);
        return Kind::Assignment(first, value.trim_ascii());
    }
    if first.first() == Some(&b'.') {
        Kind::Directive(Directive {
            name: first,
            arguments: rest,
        })
    } else {
        Kind::Instruction(Instruction {
            mnemonic: first,
            operands: rest,
        })
    }
}
