//! Reads calling contexts in text form: `[outermost:LINE @ next:LINE.DISCRIMINATOR @ leaf]`.
use super::model::Location;

/// An error in the text of a calling context, with its column counted from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContextFault {
    pub(super) column: usize,
    pub(super) message: &'static str,
    pub(super) expected: &'static str,
}

/// Iterates over the frames of a calling context, outermost first. Each frame comes with its column in the text. Every
/// frame except the last has a call site.
pub(super) struct Frames<'data> {
    rest: Option<&'data [u8]>,
    column: usize,
    /// The number of callers that have no call site. As in LLVM, they count as called at line 0.
    pub(super) without_site: u64,
}

/// Removes the brackets around a calling context and returns its frames.
pub(super) fn frames(text: &[u8]) -> Result<Frames<'_>, ContextFault> {
    let inner = text
        .strip_prefix(b"[")
        .and_then(|text| text.strip_suffix(b"]"));
    match inner {
        Some(inner) => Ok(Frames {
            rest: Some(inner),
            column: 1,
            without_site: 0,
        }),
        None => Err(ContextFault {
            column: text.len(),
            message: "a calling context has no closing bracket",
            expected: "]:TOTAL:HEAD",
        }),
    }
}

impl<'data> Iterator for Frames<'data> {
    type Item = Result<(&'data [u8], Option<Location>, usize), ContextFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let column = self.column;
        let at = memchr::memmem::find(rest, b" @ ");
        let frame = rest.get(..at.unwrap_or(rest.len())).unwrap_or_default();
        // The name ends at the first colon, as in LLVM.
        let colon = memchr::memchr(b':', frame).unwrap_or(frame.len());
        let name = frame.get(..colon).unwrap_or_default();
        let fault = |column, message, expected| {
            Some(Err(ContextFault {
                column,
                message,
                expected,
            }))
        };
        if name.is_empty() {
            return fault(
                column,
                "a frame of a calling context has no name",
                "NAME:LINE or NAME",
            );
        }
        let Some(at) = at else {
            if colon != frame.len() {
                return fault(
                    column + colon,
                    "only callers have a call site in a calling context, but the last frame has one too",
                    "NAME]",
                );
            }
            return Some(Ok((name, None, column)));
        };
        let location = if colon == frame.len() {
            self.without_site += 1;
            Some(Location::default())
        } else {
            frame.get(colon + 1..).and_then(call_site)
        };
        let Some(location) = location else {
            return fault(
                column + colon,
                "the call site of a caller in a calling context is no line",
                "NAME:LINE or NAME:LINE.DISCRIMINATOR",
            );
        };
        self.rest = rest.get(at + 3..);
        self.column += at + 3;
        Some(Ok((name, Some(location), column)))
    }
}

fn call_site(text: &[u8]) -> Option<Location> {
    let number = |text: &[u8]| u32::try_from(crate::decimal::whole(text)?).ok();
    match memchr::memchr(b'.', text) {
        None => Some(Location::new(number(text)?, 0)),
        Some(dot) => Some(Location::new(
            number(text.get(..dot)?)?,
            number(text.get(dot + 1..)?)?,
        )),
    }
}

/// Iterates over the frames of a calling context without its brackets, outermost first, by LLVM's rules
/// (`SampleContext::createCtxVectorFromStr`): a part of a call site that is not a number counts as 0. There is at least
/// one frame.
pub(super) fn llvm_frames(inner: &[u8]) -> impl Iterator<Item = (&[u8], Location)> {
    let mut rest = Some(inner);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let at = memchr::memmem::find(text, b" @ ");
        let frame = text.get(..at.unwrap_or(text.len())).unwrap_or_default();
        // If the text ends with a separator, no further frame follows.
        rest = at
            .and_then(|at| text.get(at + 3..))
            .filter(|rest| !rest.is_empty());
        let colon = memchr::memchr(b':', frame).unwrap_or(frame.len());
        let place = frame.get(colon + 1..).unwrap_or_default();
        let dot = memchr::memchr(b'.', place).unwrap_or(place.len());
        let line = llvm_line(place.get(..dot).unwrap_or_default());
        let discriminator = place.get(dot + 1..).and_then(crate::decimal::whole);
        let discriminator = discriminator.and_then(|number| u32::try_from(number).ok());
        let location = Location::new(line, discriminator.unwrap_or(0));
        Some((frame.get(..colon).unwrap_or_default(), location))
    })
}

/// Parses the line of a call site as LLVM does: as a signed number of 32 bits. A text that is no such number gives 0.
fn llvm_line(text: &[u8]) -> u32 {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    let number = crate::decimal::whole(digits).and_then(|number| i64::try_from(number).ok());
    let number = number.map(|number| if is_negative { -number } else { number });
    let line = number.and_then(|number| i32::try_from(number).ok());
    line.unwrap_or(0).cast_unsigned()
}
