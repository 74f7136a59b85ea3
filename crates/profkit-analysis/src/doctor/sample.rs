//! Examines sample profiles.
use super::compatibility;
use super::examine::Diagnosis;
use super::what::{Advice, What};
use profkit_data::detect::FileKind;
use profkit_data::sample::binary::parse_header;
use profkit_data::sample::ext_binary::{ExtBinaryProfile, Section};
use profkit_data::sample::gcov::{GcovProfile, GcovVersion};
use profkit_data::sample::{ProfileKind, SampleEncoding, SampleProfile, encoding, read};
use profkit_data::{Error, ErrorKind};

/// Examines a sample profile, including every byte that has a meaning.
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
        diagnosis.add(Error::new(
            ErrorKind::CounterTooLarge,
            "the sum of the counts of one line or probe exceeds 64 bits",
        ));
    }
    if report.outcome.mismatches > 0 {
        diagnosis.add(
            Error::new(
                ErrorKind::Malformed,
                "some functions occur twice with different checksums, or their inlined functions nest too deeply",
            )
            .found(report.outcome.mismatches),
        );
    }
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    // LLVM 14 added the section for contexts. LLVM 17 removed the compact binary encoding.
    diagnosis.support = match found {
        // Versions 104 and 105 come from LLVM's development branch after release 23.
        Some(SampleEncoding::ExtBinary) if version > 103 => compatibility::of_samples(99..=99),
        Some(SampleEncoding::ExtBinary) if needs_llvm_23(data) => {
            compatibility::of_samples(23..=99)
        }
        Some(SampleEncoding::ExtBinary) if contexts => compatibility::of_samples(14..=u8::MAX),
        Some(SampleEncoding::CompactBinary) => compatibility::of_samples(7..=16),
        Some(SampleEncoding::Binary) if version != 103 => Vec::new(),
        Some(SampleEncoding::Gcov) if gcov.is_some_and(|it| it.version != GcovVersion::Gcc47) => {
            Vec::new()
        }
        _ => compatibility::of_samples(4..=u8::MAX),
    };
    if diagnosis.functions > 0 && diagnosis.damage.count > 0 {
        diagnosis.next = vec![Advice::KeepSound];
    } else if diagnosis.functions > 0 {
        let from_text = found == Some(SampleEncoding::Text);
        diagnosis.next = vec![Advice::ShowHot, Advice::ConvertSamples { from_text }];
    }
    diagnosis
}

fn needs_llvm_23(data: &[u8]) -> bool {
    ExtBinaryProfile::parse(data)
        .is_ok_and(|file| file.sections().iter().any(Section::needs_llvm_23))
}
