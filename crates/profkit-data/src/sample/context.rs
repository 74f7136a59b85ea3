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
                    "the last frame of a calling context has a call site",
                    "NAME]",
                );
            }
            return Some(Ok((name, None, column)));
        };
        let Some(location) = frame.get(colon + 1..).and_then(call_site) else {
            return fault(
                column + colon,
                "a caller in a calling context has no call site",
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
