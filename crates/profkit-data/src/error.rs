//! The error type of all readers and writers in this crate.
use crate::Structure;
use std::borrow::Cow;
use std::fmt;

/// The result type of this crate: a standard `Result` whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error, for programs that react to certain errors. If LLVM's `instrprof_error` (`InstrProf.h`) has the
/// same kind, its LLVM name is in parentheses after the description of the kind. For an error of such a kind, profkit's
/// `llvm-profdata` prints LLVM's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The beginning of the file matches no known kind of profile (`unrecognized_format`).
    UnrecognizedFormat,
    /// The file does not begin with the expected magic number (`bad_magic`).
    BadMagic,
    /// A header is inconsistent or does not fit the file (`bad_header`).
    BadHeader,
    /// The version of the file is not supported (`unsupported_version`).
    UnsupportedVersion,
    /// The hash type of the file is not supported (`unsupported_hash_type`).
    UnsupportedHashType,
    /// A size that the file states is larger than the data (`too_large`).
    TooLarge,
    /// A text profile ends before its record is complete (`eof`).
    EndOfFile,
    /// The data end before a structure is complete (`truncated`).
    Truncated,
    /// The data are damaged: they contradict each other or the format (`malformed`).
    Malformed,
    /// The file has only counters. Its function records are in the program's binary, which was not given
    /// (`missing_correlation_info`).
    MissingCorrelation,
    /// A binary was given to supply function records, but the file has its own function records
    /// (`unexpected_correlation_info`).
    UnexpectedCorrelation,
    /// The given binary or debug info cannot supply the function records of the file (`unable_to_correlate_profile`).
    CannotCorrelate,
    /// Compressed data cannot be decompressed (`uncompress_failed`).
    UncompressFailed,
    /// The file has no bytes (`empty_raw_profile`).
    Empty,
    /// A counter is greater than 2^56, which no program can reach (`counter_value_too_large`).
    CounterTooLarge,
    /// The checksum in the file is not the checksum of the file's bytes.
    ChecksumMismatch,
    /// An index in the file is beyond the end of the table to which it refers.
    OutOfTable,
    /// An archive of object files was given, but a single object file is needed.
    Archive,
    /// A limit on time or memory was exceeded. The module `limits` defines the limits.
    LimitExceeded,
    /// The input is valid, but profkit does not support it.
    Unsupported,
    /// The output format cannot hold the requested content.
    CannotRepresent,
    /// The sink did not accept the bytes that were written.
    WriteFailed,
}

/// An error: what went wrong, in which structure, at which offset, what was found, what was expected, and what the user
/// can do.
///
/// `Display` writes one line: `STRUCTURE, at offset 0xN: MESSAGE: found F, expected E`. The line does not include the
/// hint ([`Error::hint`]). The profkit command prints the hint on a separate line.
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

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    structures: Vec<Structure>,
    place: Option<Place>,
    found: Option<Cow<'static, str>>,
    expected: Option<Cow<'static, str>>,
    hint: Option<Cow<'static, str>>,
    llvm_detail: Option<Cow<'static, str>>,
    ends_early: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Offset(u64),
    Line { line: u64, column: u64 },
}

impl ErrorKind {
    /// Makes an error of this kind with a message, and no other facts yet.
    #[cold]
    pub fn error(self, message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(self, message)
    }
}

impl Error {
    /// Makes an error with a kind and a message. The error has no position, no structure, no hint and no other facts
    /// yet.
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
            ends_early: is_end(kind),
        }))
    }

    /// Replaces the kind of the error. The readers of some structures use this to report every error inside the
    /// structure as one kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self.0.ends_early = is_end(kind);
        self
    }

    /// Marks the error as one that arises because the data end too early ([`is_end_of_data`](Self::is_end_of_data)).
    /// Errors of the kind [`ErrorKind::Truncated`] have this mark already. Call this for an error that has a different
    /// kind only because LLVM reports that kind.
    #[must_use]
    pub fn because_data_end(mut self) -> Self {
        self.0.ends_early = true;
        self
    }

    /// Replaces the message, for callers that can describe the error better.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the offset in the file, unless the error already has a position.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.place.get_or_insert(Place::Offset(offset));
        self
    }

    /// Sets the position of an error in a text file: the line and the column, both counted from 1. Does nothing if the
    /// error already has a position.
    #[must_use]
    pub fn at_line(mut self, line: u64, column: u64) -> Self {
        self.0.place.get_or_insert(Place::Line { line, column });
        self
    }

    /// Adds the name of the structure that was being read. A reader calls this first for the innermost structure, then
    /// for the structure around it. The text of the error then has the structures in this order: "counter 3 of function
    /// main".
    #[must_use]
    pub fn within(mut self, structure: impl Into<Structure>) -> Self {
        self.0.structures.push(structure.into());
        self
    }

    /// If the outermost structure of the error is the file `name`, removes this structure. This is for callers that
    /// print the name of the file before the error.
    #[must_use]
    pub fn without_file_name(mut self, name: &str) -> Self {
        self.0
            .structures
            .pop_if(|structure| matches!(structure, Structure::Named(known) if known == name));
        self
    }

    /// Sets the value that was found.
    #[must_use]
    pub fn found(mut self, found: impl fmt::Display) -> Self {
        self.0.found = Some(found.to_string().into());
        self
    }

    /// Sets the value that was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string().into());
        self
    }

    /// Sets the hint: what the user can do about the error.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets the detail text. LLVM's tool prints this text for the same error, after the text of the error kind.
    #[must_use]
    pub fn llvm_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.llvm_detail = Some(detail.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the data end before a structure is complete, as in a file that is cut off. The kind of such an error is
    /// not always [`ErrorKind::Truncated`]: the error has the kind that LLVM reports, and LLVM reports some files that
    /// are cut off as damaged ([`ErrorKind::BadHeader`]).
    pub fn is_end_of_data(&self) -> bool {
        self.0.ends_early
    }

    /// Returns the message: what went wrong, without the position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the offset of the error in the file; `None` if the error has no offset. Only errors in binary formats
    /// have one.
    pub fn offset(&self) -> Option<u64> {
        match self.0.place {
            Some(Place::Offset(offset)) => Some(offset),
            _ => None,
        }
    }

    /// Returns the line and column of the error, both counted from 1; `None` if the error has none. Only errors in text
    /// formats have a line and a column.
    pub fn line_column(&self) -> Option<(u64, u64)> {
        match self.0.place {
            Some(Place::Line { line, column }) => Some((line, column)),
            _ => None,
        }
    }

    /// Returns the structures that were being read, innermost first.
    pub fn structures(&self) -> &[Structure] {
        &self.0.structures
    }

    /// Whether the error is in this structure, directly or in a part of the structure.
    pub fn is_within(&self, structure: &Structure) -> bool {
        self.0.structures.contains(structure)
    }

    /// Returns the [`structures`](Self::structures) as text, innermost first, for example "counter 3 of function main";
    /// `None` if there are none.
    pub fn structure_text(&self) -> Option<String> {
        let mut structures = self.0.structures.iter();
        let mut text = structures.next()?.to_string();
        for outer in structures {
            text.push_str(" of ");
            text.push_str(&outer.to_string());
        }
        Some(text)
    }

    /// Whether the first bytes of the file are not those of the expected kind of file ([`Structure::FirstBytes`]). Such
    /// an error is about the whole file and not about a part of it.
    pub fn is_about_file(&self) -> bool {
        self.0.structures.first() == Some(&Structure::FirstBytes)
    }

    /// Returns the place of the error as [`Display`](fmt::Display) prints it, but without the offset in the file. The
    /// place consists of the structures, and of the line and column of a text; `None` if the error has none of these.
    /// The first bytes of a file ([`Structure::FirstBytes`]) are not named as a structure.
    pub fn place_text(&self) -> Option<String> {
        let structures = self.0.structures.iter();
        let structures: Vec<String> = structures
            .filter(|structure| **structure != Structure::FirstBytes)
            .map(ToString::to_string)
            .collect();
        let text = structures.join(" of ");
        match self.line_column() {
            Some((line, column)) => {
                let space = if text.is_empty() { "" } else { " " };
                Some(format!("{text}{space}at line {line}, column {column}"))
            }
            None => (!text.is_empty()).then_some(text),
        }
    }

    /// Returns the value that was found, as text; `None` if it was not set.
    pub fn found_text(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// Returns the value that was expected, as text; `None` if it was not set.
    pub fn expected_text(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// Returns the hint: what the user can do about the error; `None` if there is no hint.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the detail text that LLVM's tool prints for this error; `None` if [`llvm_detail`](Self::llvm_detail) did
    /// not set one.
    pub fn detail_for_llvm(&self) -> Option<&str> {
        self.0.llvm_detail.as_deref()
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Truncated | ErrorKind::EndOfFile)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        // The place is written before the message, because after the message a reader would take the place for a part
        // of the message.
        let place = self.place_text();
        f.write_str(place.as_deref().unwrap_or_default())?;
        let offset = self.offset().filter(|_| !self.is_about_file());
        if let Some(offset) = offset {
            // Without the comma, a reader would take the offset for a part of the last structure's name.
            f.write_str(if place.is_some() { ", at " } else { "at " })?;
            write!(f, "offset {offset:#x}")?;
        }
        if place.is_some() || offset.is_some() {
            f.write_str(": ")?;
        }
        f.write_str(&inner.message)?;
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
        let error = &*self.0;
        f.debug_struct("Error")
            .field("kind", &error.kind)
            .field("message", &error.message)
            .field("structures", &error.structures)
            .field("place", &error.place)
            .field("found", &error.found)
            .field("expected", &error.expected)
            .field("hint", &error.hint)
            .finish_non_exhaustive()
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
        let error = Error::new(ErrorKind::Truncated, "the data are too short here")
            .at(0x40)
            .within(Structure::DataRecord((3, None)))
            .within(Structure::RawProfile)
            .found("12 bytes")
            .expected("64 bytes");
        assert_eq!(
            error.to_string(),
            "data record 3 of raw profile, at offset 0x40: the data are too short here: found 12 bytes, expected 64 bytes"
        );
    }

    #[test]
    fn a_file_is_not_named_twice() {
        let error = Error::new(ErrorKind::Malformed, "damaged").within(Structure::RawProfile);
        let named = error.clone().within("app".to_owned());
        assert_eq!(named.to_string(), "raw profile of app: damaged");
        assert_eq!(named.clone().without_file_name("app"), error);
        // The error names the file "app", so removing the name "other" changes nothing.
        assert_eq!(named.clone().without_file_name("other"), named);
        assert_eq!(error.clone().without_file_name("app"), error);
    }

    #[test]
    fn the_end_of_the_data_does_not_depend_on_llvms_kind() {
        let error = |kind| Error::new(kind, "x");
        assert!(error(ErrorKind::Truncated).is_end_of_data());
        assert!(error(ErrorKind::EndOfFile).is_end_of_data());
        assert!(!error(ErrorKind::BadHeader).is_end_of_data());
        let cut = error(ErrorKind::BadHeader).because_data_end();
        assert!(cut.is_end_of_data());
        assert_eq!(cut.kind(), ErrorKind::BadHeader);
        // A reader calls `with_kind` to report every error inside a structure as one kind. If this kind is `Malformed`,
        // the error is no longer one of data that end too early.
        let whole = error(ErrorKind::Truncated).with_kind(ErrorKind::Malformed);
        assert!(!whole.is_end_of_data());
    }
}
