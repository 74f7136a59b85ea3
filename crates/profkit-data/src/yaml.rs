//! Reads YAML one node at a time. The reader of a format requests the nodes that the schema of the format requires.
use crate::{Error, ErrorKind, Result, Structure};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use std::borrow::Cow;

/// A position in the text: line and column, both counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64, u64);

impl Place {
    fn of(span: &Span) -> Self {
        Place(span.start.line() as u64, span.start.col() as u64 + 1)
    }
}

#[derive(Debug)]
pub(crate) struct Scalar<'a> {
    pub text: Cow<'a, str>,
    /// Whether the scalar value has the tag `!bytes`.
    bytes: bool,
    pub place: Place,
}

pub(crate) struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

/// Reads a text that consists of one YAML document. All errors name `what` as the structure that contains them.
pub(crate) fn parse<T>(
    data: &[u8],
    what: Structure,
    read: impl FnOnce(Events<'_>) -> Result<T>,
) -> Result<T> {
    let text = std::str::from_utf8(data).map_err(|error| {
        let valid = data.get(..error.valid_up_to()).unwrap_or_default();
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        let last = valid.iter().rev().take_while(|&&byte| byte != b'\n');
        ErrorKind::Malformed
            .error("the text is not UTF-8")
            .at_line(line, last.count() as u64 + 1)
    });
    text.and_then(|text| read(Events::new(text)?))
        .map_err(|error| error.within(what))
}

pub(crate) fn malformed(place: Place, message: impl Into<Cow<'static, str>>) -> Error {
    ErrorKind::Malformed
        .error(message)
        .at_line(place.0, place.1)
}

impl<'a> Events<'a> {
    /// Opens a YAML text and moves to the first node of its first document that is not empty. LLVM's reader skips empty
    /// documents too: `llvm-profdata show --memory` prints one, with a summary in comments, before the profile.
    pub fn new(text: &'a str) -> Result<Self> {
        let mut events = Events {
            parser: Parser::new_from_str(text),
        };
        loop {
            match events.next()? {
                (Event::StreamStart | Event::DocumentEnd, _) => {}
                (Event::DocumentStart(_), _) => {
                    let first = events.parser.peek();
                    let Some(Ok((Event::Scalar(value, ScalarStyle::Plain, 0, None), _))) = first
                    else {
                        return Ok(events);
                    };
                    if !value.is_empty() {
                        return Ok(events);
                    }
                    events.next()?;
                }
                (_, place) => {
                    return Err(ErrorKind::Empty
                        .error("the text has no document")
                        .at_line(place.0, place.1)
                        .expected("a document that is not empty"));
                }
            }
        }
    }

    /// Checks that the text has no further document.
    pub fn end(mut self) -> Result<()> {
        loop {
            match self.next()? {
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, place) => {
                    return Err(
                        malformed(place, "a second document begins").expected("one profile")
                    );
                }
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Place)> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, Place::of(&span))),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(ErrorKind::EndOfFile
                .error("the text ends too early")
                .at_line(1, 1)),
        }
    }

    /// Reads a mapping, and returns its position. For each key, the function `read` reads the value and returns whether
    /// the key is known. `what` names the mapping in errors.
    pub fn mapping(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self, &str, Place) -> Result<bool>,
    ) -> Result<Place> {
        let start = match self.next()? {
            (Event::MappingStart(_, None), place) => place,
            (event, place) => {
                return Err(malformed(place, format!("{what} is not a mapping"))
                    .found(kind(&event))
                    .expected("KEY: VALUE lines"));
            }
        };
        let mut seen: Vec<Cow<'a, str>> = Vec::new();
        loop {
            let (key, place) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(start),
                (Event::Scalar(key, _, _, None), place) => (key, place),
                (event, place) => {
                    return Err(malformed(place, "a key is not text").found(kind(&event)));
                }
            };
            if seen.contains(&key) {
                return Err(malformed(place, format!("a key of {what} occurs twice")).found(key));
            }
            if !read(self, &key, place)? {
                return Err(malformed(place, format!("{what} has an unknown key")).found(key));
            }
            seen.push(key);
        }
    }

    /// Reads a list. The function `read` reads each item. `what` names the list in errors.
    pub fn list(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match self.next()? {
            (Event::SequenceStart(_, None), _) => {}
            (event, place) => {
                return Err(malformed(place, format!("{what} is not a list"))
                    .found(kind(&event))
                    .expected("a list"));
            }
        }
        loop {
            match self.parser.peek() {
                Some(Ok((Event::SequenceEnd, _))) => {
                    self.next()?;
                    return Ok(());
                }
                Some(Ok(_)) => read(self)?,
                Some(Err(error)) => return Err(scan_error(&error)),
                None => {
                    self.next()?;
                }
            }
        }
    }

    /// Reads a scalar value. `what` names the value in errors.
    pub fn scalar(&mut self, what: &'static str) -> Result<Scalar<'a>> {
        match self.next()? {
            (Event::Scalar(text, _, _, tag), place) => {
                let bytes = match tag.as_deref() {
                    None => false,
                    Some(Tag { handle, suffix }) if handle == "!" && suffix == "bytes" => true,
                    Some(tag) => {
                        return Err(malformed(place, "a value has an unknown tag")
                            .found(format_args!("{}{}", tag.handle, tag.suffix))
                            .expected("no tag, or the tag !bytes"));
                    }
                };
                Ok(Scalar { text, bytes, place })
            }
            (event, place) => Err(malformed(place, format!("{what} is not a single value"))
                .found(kind(&event))
                .expected("a value")),
        }
    }

    /// Reads a number up to `most`. The number is decimal, or hexadecimal with the prefix 0x. `what` names the number
    /// in errors.
    pub fn number(&mut self, what: &'static str, most: u64) -> Result<u64> {
        let scalar = self.scalar(what)?;
        let text = &*scalar.text;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = match text.strip_prefix("0x") {
            Some(hex) if digits(hex) => u64::from_str_radix(hex, 16).ok(),
            None if digits(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|&number| number <= most).ok_or_else(|| {
            malformed(scalar.place, format!("{what} is not a valid number"))
                .found(shown(text))
                .expected(format_args!(
                    "0 to {most}, decimal or hexadecimal with the prefix 0x"
                ))
        })
    }

    /// Reads a scalar value as a 32-bit number. `what` names the number in errors.
    pub fn number32(&mut self, what: &'static str) -> Result<u32> {
        let number = self.number(what, u32::MAX.into())?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Reads bytes from a scalar. Without a tag, they are the bytes of the text. With the tag `!bytes`, each character
    /// of the text is one byte. `what` names the value in errors.
    pub fn bytes(&mut self, what: &'static str) -> Result<Vec<u8>> {
        let scalar = self.scalar(what)?;
        if !scalar.bytes {
            return Ok(scalar.text.into_owned().into_bytes());
        }
        let bytes = scalar.text.chars().map(u8::try_from);
        bytes.collect::<std::result::Result<_, _>>().map_err(|_| {
            malformed(scalar.place, "a character is too large for a byte")
                .within(Structure::BytesTag)
                .expected("characters up to \\xFF")
        })
    }
}

/// Returns the text in backquotes. A long text is cut.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}

fn kind(event: &Event<'_>) -> &'static str {
    match event {
        Event::Scalar(..) => "a single value",
        Event::SequenceStart(..) => "a list",
        Event::MappingStart(..) => "a mapping",
        Event::Alias(_) => "an alias, which profiles never have",
        _ => "the end of the surrounding list or mapping",
    }
}

fn scan_error(error: &ScanError) -> Error {
    let marker = error.marker();
    let message = format!("the text is not YAML: {}", error.info());
    ErrorKind::Malformed
        .error(message)
        .at_line(marker.line() as u64, marker.col() as u64 + 1)
}
