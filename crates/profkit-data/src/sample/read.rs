//! Reading a sample profile of any encoding.
use super::gcov::GcovProfile;
use super::model::SampleProfile;
use super::options::ReadOptions;
use super::report::ReadReport;
use super::{binary, ext_binary, text};
use crate::detect::{FileKind, detect};
use crate::{Error, ErrorKind};
use profkit_abi::sample::{BINARY, COMPACT_BINARY, EXT_BINARY};

/// An encoding of sample profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleEncoding {
    /// Text.
    Text,
    /// Binary.
    Binary,
    /// Compact binary.
    CompactBinary,
    /// Extensible binary.
    ExtBinary,
    /// GCC's.
    Gcov,
}

/// The encoding of a file, by its first bytes. Text is what a head line stands in first, as in LLVM.
pub fn encoding(data: &[u8]) -> Option<SampleEncoding> {
    match detect(data) {
        FileKind::SampleGcov => Some(SampleEncoding::Gcov),
        FileKind::SampleBinary => match binary::parse_header(data).ok()?.encoding {
            BINARY => Some(SampleEncoding::Binary),
            COMPACT_BINARY => Some(SampleEncoding::CompactBinary),
            EXT_BINARY => Some(SampleEncoding::ExtBinary),
            _ => None,
        },
        _ => begins_with_head(data).then_some(SampleEncoding::Text),
    }
}

/// Whether the first line that is no comment is `NAME:TOTAL:HEAD`, without a blank at either end.
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

/// Adds a file of any encoding to `profile`, each count times `weight`. What is wrong with the file is in the report.
pub fn read(data: &[u8], profile: &mut SampleProfile, weight: u64) -> ReadReport {
    read_with(data, profile, weight, ReadOptions::default())
}

/// [`read`] with options. They do nothing for GCC's encoding, whose discriminators have 16 bits.
pub fn read_with(
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    options: ReadOptions,
) -> ReadReport {
    let read = match encoding(data) {
        Some(SampleEncoding::Text) => Ok(text::read_with(data, profile, weight, options)),
        Some(SampleEncoding::Binary) => binary::read_with(data, profile, weight, options),
        Some(SampleEncoding::CompactBinary) => {
            binary::read_compact_with(data, profile, weight, options)
        }
        Some(SampleEncoding::ExtBinary) => ext_binary::ExtBinaryProfile::parse(data)
            .map(|opened| opened.with_options(options).read(profile, weight)),
        Some(SampleEncoding::Gcov) => {
            GcovProfile::parse(data).map(|read| read.add_to(profile, weight))
        }
        None => Err(
            Error::new(ErrorKind::UnrecognizedFormat, "this is no sample profile")
                .at(0)
                .expected("text that begins with NAME:TOTAL:HEAD, SPROF42, or GCC's adcg"),
        ),
    };
    read.unwrap_or_else(|error| {
        let mut report = ReadReport::default();
        report.fault(error);
        report
    })
}
