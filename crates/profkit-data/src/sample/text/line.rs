//! Parses one line of a text profile. Errors state their column.
use super::super::model::Location;
use crate::decimal::{leading, whole as decimal};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'data> {
    /// A line with samples, such as ` 1.2: 30 callee:10`. Its call targets are not parsed yet.
    Body {
        location: Location,
        samples: u64,
        targets: Targets<'data>,
    },
    /// The head of an inlined function, such as ` 1.2: callee:30`.
    Inlined {
        location: Location,
        name: &'data [u8],
        total: u64,
    },
    /// A line with vtables, such as ` 1.2: vtables type:10 `.
    Vtables {
        location: Location,
        types: Targets<'data>,
    },
    /// A line with a checksum, such as ` !CFGChecksum: 1`.
    Checksum(u64),
    /// A line with attributes, such as ` !Attributes: 1`.
    Attributes(u32),
    /// The line ` !Flat`, with which LLVM 22 marks a function without inlined functions.
    Flat,
}

/// An error in a line: its message, its column (counted from 0), and what was expected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) column: usize,
    pub(super) message: &'static str,
    pub(super) expected: &'static str,
    /// LLVM's message for this error up to the line, which follows it. It is `None` if LLVM prints its usual message for this sort of line.
    pub(super) llvm: Option<&'static str>,
}

fn fault(column: usize, message: &'static str, expected: &'static str) -> Fault {
    Fault {
        column,
        message,
        expected,
        llvm: None,
    }
}

impl Fault {
    fn for_llvm(self, words: &'static str) -> Fault {
        Fault {
            llvm: Some(words),
            ..self
        }
    }
}

pub(super) fn head(line: &[u8]) -> Result<(&[u8], u64, u64), Fault> {
    const EXPECTED: &str = "NAME:TOTAL:HEAD";
    let no_fields = || fault(0, "the line does not have two counts", EXPECTED);
    let last = memchr::memrchr(b':', line).ok_or_else(no_fields)?;
    let (rest, head) = split(line, last);
    let first = memchr::memrchr(b':', rest).ok_or_else(no_fields)?;
    let (name, total) = split(rest, first);
    if name.is_empty() {
        return Err(fault(0, "a function has no name", EXPECTED));
    }
    let total = decimal(total).ok_or_else(|| not_a_count(first + 1))?;
    let head = decimal(head).ok_or_else(|| not_a_count(last + 1))?;
    Ok((name, total, head))
}

#[cold]
fn not_a_count(column: usize) -> Fault {
    not_a_number(column, "a count is not a decimal number below 2^64")
}

#[cold]
fn not_a_number(column: usize, what: &'static str) -> Fault {
    fault(column, what, "a number from 0 to 18446744073709551615")
}

/// Parses the head line of a function as LLVM does. The name may be empty. In a line with only one colon, both parts
/// must be numbers, and the whole line is the name. A line without a colon must be a number, which is then the name and
/// both counts.
pub(super) fn llvm_head(line: &[u8]) -> Result<(&[u8], u64, u64), Fault> {
    let last = memchr::memrchr(b':', line);
    // LLVM searches for the last colon, and then for the colon before it. The second search leaves out the character
    // directly before the last colon. So in `A::1` it finds only one colon.
    let before = last.map_or(line.len(), |last| last.saturating_sub(1));
    let first = match last {
        Some(0) => Some(0),
        _ => memchr::memrchr(b':', line.get(..before).unwrap_or_default()),
    };
    let (name, total) = match (first, last) {
        (Some(0), Some(0)) => (&[][..], line.get(1..)),
        (Some(first), Some(last)) => (
            line.get(..first).unwrap_or_default(),
            line.get(first + 1..last),
        ),
        (_, Some(last)) => (line, line.get(..last)),
        (_, None) => (line, Some(line)),
    };
    let head = line.get(last.map_or(0, |last| last + 1)..);
    let count = |text: Option<&[u8]>| text.and_then(decimal).ok_or_else(|| not_a_count(0));
    Ok((name, count(total)?, count(head)?))
}

/// Parses a line after the head line. The line is indented by `depth` blanks.
pub(super) fn parse(line: &[u8], depth: usize) -> Result<Line<'_>, Fault> {
    let text = line.get(depth..).unwrap_or_default();
    if text.first() == Some(&b'!') {
        return metadata(text, depth);
    }
    let Some((location, used)) = location(text) else {
        return Err(location_fault(text, depth));
    };
    let Some([b':', b' ', rest @ ..]) = text.get(used..) else {
        let message = match text.get(used) {
            Some(b':') => "the colon after a line number has no blank after it",
            _ => "a line number has no colon after it",
        };
        return Err(fault(depth + used, message, "': '"));
    };
    let column = depth + used + 2;
    if rest.first() == Some(&b' ') {
        return Err(fault(
            column,
            "there is more than one blank after the colon",
            "one blank, then a count or a name",
        ));
    }
    after_location(location, rest, column)
}

/// Parses a line after the head line as LLVM does. The character after the first colon is skipped without a check. If
/// there is no colon, the part after the location begins with the second character of the line.
pub(super) fn llvm_parse(line: &[u8], depth: usize) -> Result<Line<'_>, Fault> {
    let text = line.get(depth..).unwrap_or_default();
    if text.first() == Some(&b'!') {
        return match (text, depth) {
            (b"!Flat", 2..) => metadata(b"!", depth),
            _ => metadata(text, depth),
        };
    }
    let colon = memchr::memchr(b':', line);
    let until = line
        .get(depth..colon.unwrap_or(line.len()))
        .unwrap_or_default();
    let location = match location(until) {
        Some((location, used)) if used == until.len() => location,
        _ => return Err(location_fault(text, depth)),
    };
    let column = colon.map_or(1, |colon| colon + 2);
    let rest = line.get(column..).unwrap_or_default();
    let parsed = after_location(location, rest, column)?;
    if let Line::Vtables { types, .. } = &parsed {
        types.check_as_llvm()?;
    }
    Ok(parsed)
}

/// Parses `rest`, the part of a line after the location: samples and call targets, vtables, or the head of an inlined
/// function. `rest` begins at the column `column`.
fn after_location(location: Location, rest: &[u8], column: usize) -> Result<Line<'_>, Fault> {
    match rest.first() {
        Some(b'0'..=b'9') => {
            let (samples, digits) = leading(rest);
            let samples = samples.ok_or_else(|| not_a_count(column))?;
            let targets = match rest.get(digits..) {
                None | Some([]) => &[],
                Some([b' ', ..]) => rest.get(digits..).unwrap_or_default(),
                Some(_) => {
                    return Err(fault(
                        column + digits,
                        "text follows a count without a blank",
                        "a blank or the end of the line",
                    ));
                }
            };
            Ok(Line::Body {
                location,
                samples,
                targets: Targets {
                    text: targets,
                    column: column + digits,
                    last: 0,
                },
            })
        }
        _ if rest.starts_with(b"vtables ") => Ok(Line::Vtables {
            location,
            types: Targets {
                text: rest.get(8..).unwrap_or_default(),
                column: column + 8,
                last: 0,
            },
        }),
        _ => {
            let Some(colon) = memchr::memrchr(b':', rest) else {
                return Err(fault(
                    column,
                    "an inlined function has no count",
                    "a count or NAME:TOTAL",
                ));
            };
            let (name, total) = split(rest, colon);
            let total = decimal(total).ok_or_else(|| not_a_count(column + colon + 1))?;
            Ok(Line::Inlined {
                location,
                name,
                total,
            })
        }
    }
}

/// Parses a metadata line, without its `depth` blanks of indentation. LLVM has a single message for all errors in such
/// a line.
fn metadata(text: &[u8], depth: usize) -> Result<Line<'_>, Fault> {
    metadata_fields(text, depth).map_err(|fault| Fault {
        llvm: Some("Cannot parse metadata: "),
        ..fault
    })
}

fn metadata_fields(text: &[u8], depth: usize) -> Result<Line<'_>, Fault> {
    let value = |name: &str| text.strip_prefix(name.as_bytes()).map(trimmed);
    if let Some(value) = value("!CFGChecksum:") {
        return decimal(value).map(Line::Checksum).ok_or_else(|| {
            not_a_number(depth + 13, "a checksum is not a decimal number below 2^64")
        });
    }
    if let Some(value) = value("!Attributes:") {
        return decimal(value)
            .and_then(|value| u32::try_from(value).ok())
            .map(Line::Attributes)
            .ok_or_else(|| {
                fault(
                    depth + 12,
                    "attributes are not a decimal number below 2^32",
                    "a number from 0 to 4294967295",
                )
            });
    }
    if text == b"!Flat" {
        return Ok(Line::Flat);
    }
    Err(fault(
        depth,
        "unknown metadata",
        "!CFGChecksum: N or !Attributes: N",
    ))
}

/// Removes blanks at both ends: the same characters that LLVM removes.
fn trimmed(mut text: &[u8]) -> &[u8] {
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == b'\x0b';
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

/// Parses `LINE` or `LINE.DISCRIMINATOR` at the start of a text. Also returns the length of the parsed text. Returns
/// `None` if the text does not begin with a valid location. As in LLVM, a line number without a discriminator must fit
/// 16 bits.
#[inline]
fn location(text: &[u8]) -> Option<(Location, usize)> {
    let (line, digits) = leading(text);
    let line = u32::try_from(line?).ok()?;
    if text.get(digits) != Some(&b'.') {
        return (line <= 0xffff).then_some((Location::new(line, 0), digits));
    }
    let rest = text.get(digits + 1..)?;
    let (discriminator, more) = leading(rest);
    let discriminator = u32::try_from(discriminator?).ok()?;
    Some((Location::new(line, discriminator), digits + 1 + more))
}

#[cold]
fn location_fault(text: &[u8], depth: usize) -> Fault {
    let (line, digits) = leading(text);
    match line {
        None => fault(
            depth,
            "a line does not begin with a line number",
            "LINE or LINE.DISCRIMINATOR",
        ),
        Some(line) if text.get(digits) == Some(&b'.') && u32::try_from(line).is_ok() => fault(
            depth + digits + 1,
            "a discriminator is not a decimal number below 2^32",
            "LINE.DISCRIMINATOR with a discriminator from 0 to 4294967295",
        ),
        Some(_) => fault(
            depth,
            "a line number is too large",
            "at most 65535, or at most 4294967295 if a discriminator follows",
        ),
    }
}

/// A list of pairs `NAME:COUNT`, separated by blanks. A name may contain colons and blanks: it ends at the first colon
/// that is followed by a number and then by a blank or the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Targets<'data> {
    text: &'data [u8],
    column: usize,
    /// The column of the pair that was read last.
    last: usize,
}

impl<'data> Iterator for Targets<'data> {
    type Item = Result<(&'data [u8], u64), Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let blanks = self.text.iter().take_while(|&&byte| byte == b' ').count();
        let text = self.text.get(blanks..)?;
        let column = self.column + blanks;
        self.last = column;
        if text.is_empty() {
            self.text = &[];
            return None;
        }
        for colon in memchr::memchr_iter(b':', text) {
            let rest = text.get(colon + 1..).unwrap_or_default();
            // Parse the digits after a colon first, and only then look for the blank after the digits. In the opposite
            // order, the time would be quadratic in the number of colons.
            let (Some(count), end) = leading(rest) else {
                continue;
            };
            if !matches!(rest.get(end), None | Some(b' ')) {
                continue;
            }
            let name = text.get(..colon).unwrap_or_default();
            self.text = rest.get(end..).unwrap_or_default();
            self.column = column + colon + 1 + end;
            if name.is_empty() {
                self.text = &[];
                return Some(Err(fault(
                    column,
                    "a call target has no name",
                    "NAME:COUNT",
                )));
            }
            return Some(Ok((name, count)));
        }
        self.text = &[];
        Some(Err(fault(
            column,
            "a call target has no count",
            "NAME:COUNT",
        )))
    }
}

/// What LLVM says of every fault in a list of vtables.
const LLVM_VTABLES: &str = "Expected 'vtables [mangled_vtable:NUM]+', found ";

impl Targets<'_> {
    /// Fails if the list is not a valid list of vtables by LLVM's rules, in which a name ends at its first colon.
    fn check_as_llvm(&self) -> Result<(), Fault> {
        let mut text = self.text;
        while let Some(start) = text.iter().position(|&byte| byte != b' ') {
            let rest = text.get(start..).unwrap_or_default();
            let colon = memchr::memchr(b':', rest).unwrap_or(rest.len());
            let count = rest.get(colon + 1..).unwrap_or_default();
            let end = memchr::memchr(b' ', count).unwrap_or(count.len());
            if decimal(count.get(..end).unwrap_or_default()).is_none() {
                return Err(not_a_count(self.column).for_llvm(LLVM_VTABLES));
            }
            text = count.get(end..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the error for a vtable that occurs twice in a line. The error is located at the pair that was read last.
    #[cold]
    pub(super) fn repeated(&self) -> Fault {
        fault(
            self.last,
            "a vtable occurs twice in a line",
            "each vtable once",
        )
        .for_llvm(LLVM_VTABLES)
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        let mut pairs = *self;
        pairs.try_for_each(|pair| pair.map(drop))?;
        self.trailing_blank().map_or(Ok(()), Err)
    }

    /// Returns an error if blanks follow the last pair, otherwise `None`. LLVM rejects such blanks after call targets,
    /// but writes one after vtables.
    pub(super) fn trailing_blank(&self) -> Option<Fault> {
        let text = self.text;
        (text.last() == Some(&b' ')).then(|| {
            fault(
                self.column + text.len() - 1,
                "the line ends with a blank",
                "NAME:COUNT or the end of the line",
            )
        })
    }
}

fn split(text: &[u8], at: usize) -> (&[u8], &[u8]) {
    (
        text.get(..at).unwrap_or_default(),
        text.get(at + 1..).unwrap_or_default(),
    )
}
