//! Reads sample profiles of any encoding.
use super::ext_binary::ExtBinaryProfile;
use super::gcov::GcovProfile;
use super::model::SampleProfile;
use super::options::SampleReadOptions;
use super::report::ReadReport;
use super::{binary, text};
use crate::detect::{FileKind, detect};
use crate::{Error, ErrorKind, Result, Structure};

/// An encoding of sample profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleEncoding {
    /// The text encoding, for people and tests.
    Text,
    /// LLVM's binary encoding without sections.
    Binary,
    /// The compact binary encoding, which LLVM 7 to 16 support.
    CompactBinary,
    /// LLVM's extensible binary encoding, which consists of sections.
    ExtBinary,
    /// The encoding of GCC's sample profiles (`.afdo`).
    Gcov,
}

impl SampleEncoding {
    /// The name of the encoding in messages.
    pub fn name(self) -> &'static str {
        match self {
            SampleEncoding::Text => "text",
            SampleEncoding::Binary => "binary",
            SampleEncoding::CompactBinary => "compact binary",
            SampleEncoding::ExtBinary => "extensible binary",
            SampleEncoding::Gcov => "gcov",
        }
    }
}

/// Returns the encoding of a file that should be a sample profile; `None` if it is not a sample profile. As in LLVM, a
/// text is a sample profile if its first line has the form of a function's head line. [`detect`] also checks the next
/// line, so that it does not mistake an instrumentation profile for a sample profile.
pub fn encoding(data: &[u8]) -> Option<SampleEncoding> {
    match detect(data) {
        FileKind::SampleGcov => Some(SampleEncoding::Gcov),
        FileKind::SampleBinary => Some(SampleEncoding::Binary),
        FileKind::SampleCompactBinary => Some(SampleEncoding::CompactBinary),
        FileKind::SampleExtBinary => Some(SampleEncoding::ExtBinary),
        FileKind::SampleUnknown => None,
        _ => begins_with_head(data).then_some(SampleEncoding::Text),
    }
}

/// Returns the encoding of a file by the rules of LLVM 22; `None` if the file is not a sample profile by these rules.
/// Texts end at their first zero byte, and the first line may have other forms (see
/// [`SampleReadOptions::llvm_checks`]). In GCC's encoding, only version `407*` is recognised.
pub fn llvm_encoding(data: &[u8]) -> Option<SampleEncoding> {
    match encoding(data) {
        Some(SampleEncoding::Gcov) if data.starts_with(b"adcg*704\0") => Some(SampleEncoding::Gcov),
        None | Some(SampleEncoding::Text | SampleEncoding::Gcov)
            if detect(data) != FileKind::SampleUnknown =>
        {
            let end = memchr::memchr(0, data).unwrap_or(data.len());
            let data = data.get(..end).unwrap_or_default();
            let is_text = text::begins_as_llvm_reads(data);
            is_text.then_some(SampleEncoding::Text)
        }
        other => other,
    }
}

/// Whether the first line that is not a comment has the form `NAME:TOTAL:HEAD` and no blank at either end.
fn begins_with_head(data: &[u8]) -> bool {
    let mut lines = data
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let Some(line) = lines.next() else {
        return false;
    };
    let is_count = |field: &[u8]| {
        let text = std::str::from_utf8(field);
        let digits = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        digits && text.is_ok_and(|text| text.parse::<u64>().is_ok())
    };
    let mut fields = line.rsplitn(3, |&byte| byte == b':');
    fields.next().is_some_and(is_count)
        && fields.next().is_some_and(is_count)
        && fields
            .next()
            .is_some_and(|name| !name.is_empty() && !name.starts_with(b" "))
}

/// An opened sample profile of any encoding. Opening it reads only its header.
///
/// ```
/// use profkit_data::sample::{SampleFile, SampleProfile, SampleReadOptions};
///
/// let file = SampleFile::parse(b"main:100:5\n 1: 3\n", &SampleReadOptions::new())?;
/// let mut profile = SampleProfile::new();
/// file.read_into(&mut profile, 1).strict()?;
/// assert_eq!(profile.functions().len(), 1);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SampleFile<'data> {
    data: &'data [u8],
    options: SampleReadOptions,
    body: Body<'data>,
}

#[derive(Clone, Debug)]
enum Body<'data> {
    Text,
    Binary,
    CompactBinary,
    ExtBinary(ExtBinaryProfile<'data>),
    Gcov(Box<GcovProfile>),
}

impl<'data> SampleFile<'data> {
    /// Reads the header of the file. A file in GCC's encoding is read completely.
    ///
    /// # Errors
    /// [`ErrorKind::UnrecognizedFormat`] if the data are not a sample profile, and the errors of the header.
    pub fn parse(data: &'data [u8], options: &SampleReadOptions) -> Result<Self> {
        let found = if options.llvm_checks {
            llvm_encoding(data)
        } else {
            encoding(data)
        };
        let body = match found {
            Some(SampleEncoding::Text) => Body::Text,
            Some(SampleEncoding::Binary) => Body::Binary,
            Some(SampleEncoding::CompactBinary) => Body::CompactBinary,
            Some(SampleEncoding::ExtBinary) => {
                Body::ExtBinary(ExtBinaryProfile::parse_with(data, options)?)
            }
            Some(SampleEncoding::Gcov) => {
                Body::Gcov(Box::new(GcovProfile::parse_with(data, options)?))
            }
            None => {
                return Err(ErrorKind::UnrecognizedFormat.error("this is not a sample profile")
                .at(0)
                .within(Structure::FirstBytes)
                .expected(
                    "NAME:TOTAL:HEAD in the first line, or a binary file that begins with SPROF42 (LLVM) or adcg (GCC)",
                ));
            }
        };
        Ok(SampleFile {
            data,
            options: *options,
            body,
        })
    }

    /// The encoding of the sample profile.
    pub fn encoding(&self) -> SampleEncoding {
        match &self.body {
            Body::Text => SampleEncoding::Text,
            Body::Binary => SampleEncoding::Binary,
            Body::CompactBinary => SampleEncoding::CompactBinary,
            Body::ExtBinary(_) => SampleEncoding::ExtBinary,
            Body::Gcov(_) => SampleEncoding::Gcov,
        }
    }

    /// Returns the file as an extensible binary profile, or `None` if it has a different encoding. Only in the
    /// extensible binary encoding can single functions be read.
    pub fn as_ext_binary(&self) -> Option<&ExtBinaryProfile<'data>> {
        match &self.body {
            Body::ExtBinary(file) => Some(file),
            _ => None,
        }
    }

    /// Adds all functions of the file to `profile`, each count times `weight`. The report lists the errors of the file.
    /// The options for FS-AFDO have no effect on GCC's encoding, whose discriminators have 16 bits.
    pub fn read_into(&self, profile: &mut SampleProfile, weight: u64) -> ReadReport {
        let (data, options) = (self.data, self.options);
        let read = match &self.body {
            Body::Text => Ok(text::read_with(data, profile, weight, options)),
            Body::Binary => binary::read_with(data, profile, weight, options),
            Body::CompactBinary => binary::read_compact_with(data, profile, weight, options),
            Body::ExtBinary(file) => Ok(file.read(profile, weight)),
            Body::Gcov(file) => Ok(file.add_to(profile, weight)),
        };
        read.unwrap_or_else(failed)
    }
}

fn failed(error: Error) -> ReadReport {
    let mut report = ReadReport::default();
    report.fault(error);
    report
}

/// Adds a file of any encoding to `profile`, each count times `weight`. The report lists the errors of the file.
pub fn read(data: &[u8], profile: &mut SampleProfile, weight: u64) -> ReadReport {
    read_with(data, profile, weight, &SampleReadOptions::default())
}

/// Adds a file of any encoding to `profile`, as [`read`] does, with the given options.
pub fn read_with(
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    options: &SampleReadOptions,
) -> ReadReport {
    profile.summary_by_context = options.summary_by_context;
    match SampleFile::parse(data, options) {
        Ok(file) => file.read_into(profile, weight),
        Err(error) => failed(error),
    }
}
