//! Examines sample profiles.
use super::compatibility::{self, Readers};
use super::examine::Diagnosis;
use super::what::{Advice, What};
use profkit_data::detect::FileKind;
use profkit_data::releases::{RELEASES, ReleaseFacts};
use profkit_data::sample::binary::parse_header;
use profkit_data::sample::ext_binary::{ExtBinaryProfile, Section};
use profkit_data::sample::gcov::{GcovProfile, GcovVersion};
use profkit_data::sample::{ProfileKind, SampleEncoding, SampleProfile, encoding, read};
use profkit_data::{Error, ErrorKind};
use std::ops::RangeInclusive;

/// Examines a whole sample profile. Every byte that has a meaning is read, so that damage anywhere is found.
pub fn examine(data: &[u8], kind: FileKind) -> Diagnosis {
    let found = encoding(data);
    let version = parse_header(data).map_or(0, |header| header.version);
    let gcov = (kind == FileKind::SampleGcov)
        .then(|| GcovProfile::parse(data).ok())
        .flatten();
    let what = What::Sample {
        encoding: found,
        version,
        gcov: gcov.as_ref().map(|gcov| gcov.version),
    };
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), what);
    let mut profile = SampleProfile::new();
    let report = read(data, &mut profile, 1);
    diagnosis.functions = report.functions;
    for error in &report.faults {
        diagnosis.add(error.clone());
    }
    diagnosis.damage.count = report.fault_count;
    if report.outcome.overflows > 0 {
        diagnosis.add(
            ErrorKind::CounterTooLarge
                .error("the sum of the counts of one line or probe exceeds 64 bits"),
        );
    }
    if report.outcome.mismatches > 0 {
        diagnosis.add(
            Error::new(ErrorKind::Malformed, "some functions occur twice with different checksums, or their inlined functions nest too deeply")
            .found(report.outcome.mismatches),
        );
    }
    let releases = releases(data, profile.kind);
    diagnosis.support = releases.map_or(Vec::new(), compatibility::of_samples);
    if diagnosis.functions > 0 && diagnosis.damage.count > 0 {
        diagnosis.next = vec![Advice::KeepSound];
    } else if diagnosis.functions > 0 {
        let from_text = found == Some(SampleEncoding::Text);
        diagnosis.next = vec![Advice::ShowHot, Advice::ConvertSamples { from_text }];
    }
    diagnosis
}

impl Readers {
    /// The releases that can use a sample profile with these properties (its encoding and its kind).
    pub fn of_samples(data: &[u8], kind: ProfileKind) -> Self {
        let range = releases(data, kind).and_then(|majors| {
            let is_in = |facts: &&ReleaseFacts| majors.contains(&facts.release.major);
            let mut known = RELEASES.iter().filter(is_in);
            let first = known.next()?.release;
            Some(first..=known.next_back().map_or(first, |facts| facts.release))
        });
        Readers {
            tool: range.clone(),
            compilers: range,
        }
    }
}

/// The releases whose llvm-profdata and clang read a sample profile of this kind and encoding. `None` if LLVM has no
/// reader of the encoding.
fn releases(data: &[u8], kind: ProfileKind) -> Option<RangeInclusive<u8>> {
    let found = encoding(data);
    let version = parse_header(data).map_or(0, |header| header.version);
    // A profile with vtables needs LLVM 22, because earlier readers misread vtables. The section for contexts (see
    // below) needs LLVM 14. For any other property that plain profiles lack, 13 is the oldest release reported: it is
    // not known which earlier releases read such a profile.
    let oldest = |plain| match kind {
        kind if kind.contains(ProfileKind::HAS_VTABLES) => 22,
        kind if kind == ProfileKind::default() => plain,
        _ => 13,
    };
    match found {
        // LLVM 23 reads version 104, which its writers do not write. Version 105 is of the development branch after it.
        Some(SampleEncoding::ExtBinary) if version > 104 || needs_llvm_24(data) => Some(24..=99),
        Some(SampleEncoding::ExtBinary) if version > 103 => Some(23..=99),
        Some(SampleEncoding::ExtBinary) if kind.contains(ProfileKind::CONTEXT_SENSITIVE) => {
            Some(oldest(10).max(14)..=99)
        }
        Some(SampleEncoding::ExtBinary) => Some(oldest(10)..=99),
        // LLVM 17 removed the compact binary encoding.
        Some(SampleEncoding::CompactBinary) => Some(7..=16),
        Some(SampleEncoding::Binary) if version != 103 => None,
        Some(SampleEncoding::Gcov)
            if GcovProfile::parse(data).is_ok_and(|it| it.version != GcovVersion::Gcc47) =>
        {
            None
        }
        _ => Some(oldest(4)..=99),
    }
}

fn needs_llvm_24(data: &[u8]) -> bool {
    ExtBinaryProfile::parse(data)
        .is_ok_and(|file| file.sections().iter().any(Section::needs_llvm_24))
}
