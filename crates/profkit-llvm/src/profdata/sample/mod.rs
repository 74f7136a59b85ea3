//! Sample profiles in llvm-profdata: `mergeSampleProfile`, `showSampleProfile` and `overlapSampleProfile` in
//! `llvm-profdata.cpp`.
mod checks;
mod json;
mod merge;
mod overlap;
mod show;
mod supplement;

pub use merge::run as merge;
pub use overlap::run as overlap;
pub use show::run as show;
pub use supplement::run as supplement;

use crate::command_line::Parsed;
use crate::messages::Fault;
use profkit_data::sample::{FsPass, SampleEncoding, SampleReadOptions, llvm_encoding};
use profkit_data::{Error, ErrorKind, Structure};

fn read_options(parsed: &Parsed) -> SampleReadOptions {
    let pass = match parsed.word("fs-discriminator-pass") {
        Some("Base") => FsPass::Base,
        Some("Pass1") => FsPass::Pass1,
        Some("Pass2") => FsPass::Pass2,
        Some("Pass3") => FsPass::Pass3,
        _ => FsPass::Last,
    };
    SampleReadOptions::new()
        .fs_pass(pass)
        .assume_fs(parsed.flag("profile-isfs"))
        .llvm_checks(true)
        .symbols(parsed.number("profile-symbol-list-cutoff"))
        .summary_by_context(parsed.given_flag("profile-summary-contextless") == Some(false))
}

/// Makes the fault for an error in a sample profile. Its text is LLVM's (`SampleProfErrorCategoryType`). For an error
/// in a line of a text profile, the fault also names the line.
pub fn fault(name: &[u8], data: &[u8], error: &Error) -> Fault {
    if llvm_encoding(data) == Some(SampleEncoding::Text)
        && error.kind() == ErrorKind::Malformed
        && let Some((number, _)) = error.line_column()
    {
        let whence = [name, format!(":{number}").as_bytes()].concat();
        return Fault::of(&whence, line_fault(data, number, error));
    }
    Fault::of(name, data_text(data, error))
}

/// Returns LLVM's text for the first problem in a binary profile. If LLVM's reader finds none, returns LLVM's text for
/// `error`.
fn data_text(data: &[u8], error: &Error) -> &'static str {
    checks::first_fault(data).map_or(code_text(error), |check| check.text)
}

fn line_fault(data: &[u8], number: u64, error: &Error) -> Vec<u8> {
    let index = usize::try_from(number)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    // LLVM assumes that a text ends at its first zero byte.
    let end = memchr::memchr(0, data).unwrap_or(data.len());
    let line = data
        .get(..end)
        .unwrap_or_default()
        .split(|&byte| byte == b'\n')
        .nth(index)
        .unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let what = match (error.detail_for_llvm(), line.first()) {
        (Some(words), _) => words,
        (None, Some(b' ')) => "Expected 'NUM[.NUM]: NUM[ mangled_name:NUM]*', found ",
        (None, _) => "Expected 'mangled_name:NUM:NUM', found ",
    };
    [what.as_bytes(), line].concat()
}

/// Returns LLVM's text for the code of an error, without details.
pub fn code_text(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::UnrecognizedFormat | ErrorKind::BadMagic | ErrorKind::Empty => {
            "Unrecognized sample profile encoding format"
        }
        ErrorKind::UnsupportedVersion => "Unsupported sample profile format version",
        ErrorKind::OutOfTable => "Truncated function name table",
        ErrorKind::TooLarge => "Too much profile data",
        ErrorKind::Truncated if error.is_within(&Structure::NameTable) => {
            "Truncated function name table"
        }
        ErrorKind::Truncated => "Truncated profile data",
        ErrorKind::CounterTooLarge => "Counter overflow",
        ErrorKind::UncompressFailed => "Uncompress failure",
        ErrorKind::CannotRepresent => "Profile encoding format unsupported for writing operations",
        _ => "Malformed sample profile data",
    }
}
