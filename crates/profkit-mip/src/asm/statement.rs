//! One statement: a label, a directive, an instruction, an assignment, or text that only the assembler understands.
use super::{ArmState, SectionId};

/// One statement of the file.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Line of the file, from 1.
    pub line: u32,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte; trailing space is not part of it.
    pub end: usize,
    /// The section that it stands in. For a directive that changes the section, this is the section before the change.
    pub section: SectionId,
    /// Its surroundings.
    pub context: Context,
    /// What it is.
    pub kind: Kind<'a>,
}

/// Facts about the surroundings of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Inline assembly, between the compiler's marks.
    pub inline: bool,
    /// Inside `.if`: the assembler may leave the statement out.
    pub conditional: bool,
    /// Intel syntax is on.
    pub intel: bool,
    /// What directives of 32-bit Arm have set before it.
    pub arm: ArmState,
}

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// `name:`. A quoted name is without its quotes; numbers are labels too.
    Label(&'a [u8]),
    /// `.name arguments`.
    Directive(Directive<'a>),
    /// A machine instruction, or a macro that looks like one.
    Instruction(Instruction<'a>),
    /// `symbol = value` (also `==`).
    Assignment(&'a [u8], &'a [u8]),
    /// In the body of a `.macro`, `.rept` or the like: text that is assembled later, or several times.
    Template,
}

/// A directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// With its dot, as written.
    pub name: &'a [u8],
    /// Everything after it.
    pub arguments: &'a [u8],
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The first word, prefixes such as `lock` not taken off.
    pub mnemonic: &'a [u8],
    /// Everything after it.
    pub operands: &'a [u8],
}

/// Whether a byte can be part of a name.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'$' | b'@' | b'\\')
        || byte >= 0x80
}

/// The names in an expression or operand: every longest run of name bytes, quoted names without their quotes.
/// `foo@PLT` is `foo`.
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

/// Splits a quoted string off the front. Escapes stay as they are.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
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

/// Splits a label off the front: the label's name, and the text after it.
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

/// Tells what a statement without labels is.
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
