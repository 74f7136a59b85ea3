//! The one error type of the readers and writers.
use crate::Structure;
use std::borrow::Cow;
use std::fmt;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller may decide on. Kinds follow LLVM's `instrprof_error` (`InstrProf.h`) where LLVM has one, so that the
/// llvm-profdata personality can print LLVM's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No known profile kind starts like this (`unrecognized_format`).
    UnrecognizedFormat,
    /// A magic number is not the expected one (`bad_magic`).
    BadMagic,
    /// A header contradicts itself or the file (`bad_header`).
    BadHeader,
    /// A version that is not supported (`unsupported_version`).
    UnsupportedVersion,
    /// A hash type that is not supported (`unsupported_hash_type`).
    UnsupportedHashType,
    /// A size that the data cannot have (`too_large`).
    TooLarge,
    /// The text ends within what its header announces (`eof`).
    EndOfFile,
    /// The data end too early (`truncated`).
    Truncated,
    /// The data contradict themselves (`malformed`).
    Malformed,
    /// The file holds counters only and needs its binary (`missing_correlation_info`).
    MissingCorrelation,
    /// The file has all it needs, but a binary was given to correlate it with (`unexpected_correlation_info`).
    UnexpectedCorrelation,
    /// The binary or debug info cannot be correlated with (`unable_to_correlate_profile`).
    CannotCorrelate,
    /// Compressed data do not inflate (`uncompress_failed`).
    UncompressFailed,
    /// The file is empty (`empty_raw_profile`).
    Empty,
    /// A counter above 2^56 (`counter_value_too_large`).
    CounterTooLarge,
    /// A checksum is not that of the bytes.
    ChecksumMismatch,
    /// A number points past the end of the table that it belongs to.
    OutOfTable,
    /// An archive of object files, where one object file is wanted.
    Archive,
    /// A limit of `limits.rs` was reached.
    LimitExceeded,
    /// Something legal that profkit does not do (yet).
    Unsupported,
    /// The output cannot hold what was asked for.
    CannotRepresent,
    /// The sink could not take bytes.
    WriteFailed,
}

/// An error with its place: what went wrong, while reading which structure, at which offset, what was found and what
/// was expected, and what to do.
///
/// `Display` is one line: `MESSAGE in STRUCTURE at offset 0xN: found F, expected E`. The hint is separate
/// ([`Error::hint`]); the command prints it on a line of its own.
///
/// ```
/// # #[cfg(feature = "instr")] {
/// use profkit_data::instr::raw::RawReader;
/// use profkit_data::{ErrorKind, Structure};
///
/// let error = RawReader::parse(b"\x81rforpl\xff").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::BadHeader);
/// assert_eq!(error.structures(), [Structure::Header, Structure::RawProfile]);
/// assert_eq!(error.offset(), Some(0));
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    /// Innermost first.
    structures: Vec<Structure>,
    place: Option<Place>,
    found: Option<Cow<'static, str>>,
    expected: Option<Cow<'static, str>>,
    hint: Option<Cow<'static, str>>,
    llvm_detail: Option<Cow<'static, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Offset(u64),
    Line { line: u64, column: u64 },
}

impl Error {
    /// An error that knows nothing but its kind and message yet.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            structures: Vec::new(),
            place: None,
            found: None,
            expected: None,
            hint: None,
            llvm_detail: None,
        }))
    }

    /// Replaces the kind, where a structure makes every fault inside it one of its own.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Replaces the message, where what is around the fault makes another of it.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the absolute offset in the file, unless one is known.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.place.get_or_insert(Place::Offset(offset));
        self
    }

    /// Sets line and column (both from 1) of a text file, unless a place is known.
    #[must_use]
    pub fn at_line(mut self, line: u64, column: u64) -> Self {
        self.0.place.get_or_insert(Place::Line { line, column });
        self
    }

    /// Names the structure that was being read. Called again from further out, it appends: "A of B".
    #[must_use]
    pub fn within(mut self, structure: impl Into<Structure>) -> Self {
        self.0.structures.push(structure.into());
        self
    }

    /// Says what was found.
    #[must_use]
    pub fn found(mut self, found: impl fmt::Display) -> Self {
        self.0.found = Some(found.to_string().into());
        self
    }

    /// Says what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string().into());
        self
    }

    /// Says what the user can do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The detail that LLVM's tool prints after the kind's text for the same fault, where it prints one.
    #[must_use]
    pub fn llvm_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.llvm_detail = Some(detail.into());
        self
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The absolute offset in the file, for binary formats.
    pub fn offset(&self) -> Option<u64> {
        match self.0.place {
            Some(Place::Offset(offset)) => Some(offset),
            _ => None,
        }
    }

    /// Line and column from 1, for text formats.
    pub fn line_column(&self) -> Option<(u64, u64)> {
        match self.0.place {
            Some(Place::Line { line, column }) => Some((line, column)),
            _ => None,
        }
    }

    /// The structures that were being read, innermost first.
    pub fn structures(&self) -> &[Structure] {
        &self.0.structures
    }

    /// Whether the error is within this structure, directly or further out.
    pub fn is_within(&self, structure: &Structure) -> bool {
        self.0.structures.contains(structure)
    }

    /// The words for [`structures`](Self::structures), as in [`Display`](fmt::Display): "A of B".
    pub fn structure_text(&self) -> Option<String> {
        let mut structures = self.0.structures.iter();
        let mut text = structures.next()?.to_string();
        for outer in structures {
            text.push_str(" of ");
            text.push_str(&outer.to_string());
        }
        Some(text)
    }

    /// What was found, as text.
    pub fn found_text(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// What was expected, as text.
    pub fn expected_text(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// LLVM's detail text for this fault, see the setter of the same name.
    pub fn detail_for_llvm(&self) -> Option<&str> {
        self.0.llvm_detail.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.write_str(&inner.message)?;
        if let Some(structure) = self.structure_text() {
            write!(f, " in {structure}")?;
        }
        match inner.place {
            Some(Place::Offset(offset)) => write!(f, " at offset {offset:#x}")?,
            Some(Place::Line { line, column }) => write!(f, " at line {line}, column {column}")?,
            None => {}
        }
        match (&inner.found, &inner.expected) {
            (Some(found), Some(expected)) => write!(f, ": found {found}, expected {expected}"),
            (Some(found), None) => write!(f, ": found {found}"),
            (None, Some(expected)) => write!(f, ": expected {expected}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_message_structure_place_found_expected() {
        let error = Error::new(ErrorKind::Truncated, "the data end too early")
            .at(0x40)
            .within(Structure::DataRecord((3, None)))
            .within(Structure::RawProfile)
            .found("12 bytes")
            .expected("64 bytes");
        assert_eq!(
            error.to_string(),
            "the data end too early in data record 3 of raw profile at offset 0x40: found 12 bytes, expected 64 bytes"
        );
    }
}
