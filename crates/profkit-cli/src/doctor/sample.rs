//! Sample profiles under examination.
use super::compatibility;
use super::examine::{Diagnosis, quoted};
use profkit_data::detect::FileKind;
use profkit_data::sample::binary::parse_header;
use profkit_data::sample::gcov::{GcovProfile, GcovVersion};
use profkit_data::sample::{ProfileKind, SampleEncoding, SampleProfile, encoding, read};
use profkit_data::{Error, ErrorKind};

/// Looks at every byte of a sample profile that means something.
pub fn examine(name: &str, data: &[u8], kind: FileKind) -> Diagnosis {
    let found = encoding(data);
    let version = parse_header(data).map_or(0, |header| header.version);
    let gcov = (kind == FileKind::SampleGcov)
        .then(|| GcovProfile::parse(data).ok())
        .flatten();
    let what = match (found, &gcov) {
        (Some(SampleEncoding::Text), _) => "sample profile, text".to_owned(),
        (Some(SampleEncoding::Binary), _) => format!("sample profile, binary version {version}"),
        (Some(SampleEncoding::CompactBinary), _) => {
            format!("sample profile, compact binary version {version} (LLVM 7 to 16)")
        }
        (Some(SampleEncoding::ExtBinary), _) => {
            format!("sample profile, extensible binary version {version}")
        }
        (_, Some(gcov)) => {
            let gcc = match gcov.version {
                GcovVersion::V1 => " (GCC 5 to 11)",
                GcovVersion::V2 => " (GCC 12 to 15)",
                GcovVersion::V3 => " (GCC 16)",
                _ => "",
            };
            format!("GCC's sample profile version {}{gcc}", gcov.version)
        }
        _ => "sample profile".to_owned(),
    };
    let mut diagnosis = Diagnosis::new(name, Some(data.len() as u64), what);
    let mut profile = SampleProfile::new();
    let report = read(data, &mut profile, 1);
    diagnosis.functions = report.functions;
    for error in &report.faults {
        diagnosis.add(error.clone());
    }
    diagnosis.damage_count = report.fault_count;
    if report.outcome.overflows > 0 {
        diagnosis.add(Error::new(
            ErrorKind::CounterTooLarge,
            "counts of one place exceed 64 bits",
        ));
    }
    if report.outcome.mismatches > 0 {
        diagnosis.add(
            Error::new(
                ErrorKind::Malformed,
                "functions stand there twice with other checksums, or inline too deeply",
            )
            .found(report.outcome.mismatches),
        );
    }
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    // Contexts came with LLVM 14's section for them; compact binary went with LLVM 17.
    diagnosis.support = match found {
        Some(SampleEncoding::ExtBinary) if version > 103 => Vec::new(),
        Some(SampleEncoding::ExtBinary) if contexts => compatibility::of_samples(14..=u8::MAX),
        Some(SampleEncoding::CompactBinary) => compatibility::of_samples(7..=16),
        Some(SampleEncoding::Binary) if version != 103 => Vec::new(),
        Some(SampleEncoding::Gcov) if gcov.is_some_and(|it| it.version != GcovVersion::Gcc47) => {
            Vec::new()
        }
        _ => compatibility::of_samples(4..=u8::MAX),
    };
    if diagnosis.functions > 0 {
        diagnosis.advise(
            format!("profkit show --hot 20 {}", quoted(name)),
            "where the time goes",
        );
        let to = match found {
            Some(SampleEncoding::Text) => "samples.profdata",
            _ => "samples.proftext",
        };
        diagnosis.advise(
            format!("profkit convert {} -o {to}", quoted(name)),
            "in another encoding",
        );
    }
    diagnosis
}
