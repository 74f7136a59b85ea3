//! Fuzzes sample profiles in LLVM's encodings.
use crate::merge::{Memory, mixed, variations};
use crate::source::located;
use profkit_data::remap::Remapping;
use profkit_data::sample::SampleLayout;
use profkit_data::sample::ext_binary::{ExtBinaryOptions, ExtBinaryProfile};
use profkit_data::sample::text::TextOptions;
use profkit_data::sample::{
    Losses, ProfileKind, ReadReport, SampleName, SampleProfile, SampleReadOptions, binary,
    ext_binary, read_with, text,
};
use profkit_merge::MergeError;
use profkit_merge::sample::{SampleMergeOptions, merge_sample};
use profkit_merge::{Event, Policy, Threads, Totals};
use std::num::NonZeroUsize;

/// Reads any bytes in the encoding that they seem to have. The result must be the same after it is written in the
/// extensible binary encoding and read again. The same must hold for text, if text can represent all names.
///
/// # Panics
/// If the result is not the same, or if a fault states no position.
pub(crate) fn sample(data: &[u8]) {
    let as_llvm = SampleReadOptions::new().llvm_checks(true);
    let report = read_with(data, &mut SampleProfile::new(), 1, &as_llvm);
    report.faults.iter().for_each(located);
    let mut profile = SampleProfile::new();
    let report = match read(data, &mut profile) {
        Ok(report) => report,
        Err(error) => return located(&error),
    };
    report.faults.iter().for_each(located);
    assert_eq!(report.faults.is_empty(), report.fault_count == 0);
    let (wanted, text_losses) = as_text(&profile);
    // Names that are hashes become digits in text, and a zero byte ends a name. Such names do not come back the same.
    let is_spelled = profile.names.iter().all(|(_, name)| match name {
        SampleName::Guid(_) => false,
        SampleName::Text(text) => !text.contains(&0),
    });
    let mut file = Vec::new();
    let options = ExtBinaryOptions::default().vtables(true);
    let losses = ext_binary::write(&profile, &options, &mut file).expect("a Vec takes all bytes");
    if is_spelled && losses.is_empty() {
        let mut again = SampleProfile::new();
        let report = read(&file, &mut again).expect("our own header");
        assert_eq!(report.faults, []);
        assert_eq!(as_text(&again).0, wanted);
    }
    let is_plain = |name: &[u8]| {
        !name.is_empty()
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(byte))
            && !name.iter().all(u8::is_ascii_digit)
            && name != b"vtables"
    };
    let is_plain = is_spelled
        && profile.names.iter().all(|(_, name)| match name {
            SampleName::Guid(_) => false,
            SampleName::Text(text) => {
                is_plain(text) && !text.first().is_some_and(u8::is_ascii_digit)
            }
        });
    let has_inlined = profile
        .functions()
        .iter()
        .any(|function| !function.samples.inlined.is_empty());
    // If there are contexts, LLVM's text puts the names of inlined functions in brackets, so the text does not come
    // back the same.
    let is_odd = has_inlined && profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    if is_plain && !is_odd && text_losses.large_lines == 0 {
        let mut again = SampleProfile::new();
        let report = text::read(&wanted, &mut again, 1);
        assert_eq!(report.faults, []);
        let wanted_kind = profile.kind.contains(ProfileKind::PROBE_BASED);
        if again.kind.contains(ProfileKind::PROBE_BASED) == wanted_kind {
            assert_eq!(as_text(&again).0, wanted);
        }
    }
}

fn read(data: &[u8], profile: &mut SampleProfile) -> profkit_data::Result<ReadReport> {
    match binary::parse_header(data).map(|header| header.encoding) {
        Ok(0xff) => binary::read(data, profile, 1),
        Ok(2) => binary::read_compact(data, profile, 1),
        Ok(_) => ExtBinaryProfile::parse(data).map(|opened| {
            let mut one = SampleProfile::new();
            opened.read_functions(&[b"main"], &mut one);
            opened.read(profile, 1)
        }),
        Err(_) => Ok(text::read(data, profile, 1)),
    }
}

fn as_text(profile: &SampleProfile) -> (Vec<u8>, Losses) {
    let mut out = Vec::new();
    let options = TextOptions::default();
    let losses = text::write(profile, &options, &mut out).expect("a Vec takes all bytes");
    (out, losses)
}

/// Merges the bytes with damaged copies of themselves. The result must not depend on the number of threads, must be the
/// same if the inputs are merged one by one, and must be writable. A merge with LLVM's rules must end too.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn merge(data: &[u8]) {
    let inputs = |weighted| Memory {
        files: variations(data, mixed(data)),
        weighted,
    };
    let with = |change: &dyn Fn(&mut SampleMergeOptions), weighted| {
        let mut options = SampleMergeOptions::new();
        change(&mut options);
        merged(&inputs(weighted), &options)
    };
    for weighted in [false, true] {
        let one = with(
            &|options| options.run.threads = Threads::new(NonZeroUsize::new(1)),
            weighted,
        );
        let three = with(
            &|options| options.run.threads = Threads::new(NonZeroUsize::new(3)),
            weighted,
        );
        // With a remapping, the merge reads the inputs one by one.
        let names = |options: &mut SampleMergeOptions| {
            options.remapping = Some(Remapping::parse(b"").expect("no names"));
        };
        assert!(one == three, "another result with three threads");
        assert!(
            one == with(&names, weighted),
            "another result input by input"
        );
    }
    for layout in [SampleLayout::Flat, SampleLayout::Nest] {
        with(&|options| options.layout = Some(layout), false);
    }
    with(&|options| options.policy = Policy::Llvm, true);
}

/// Returns the merged profile as text, with the events and totals of the report. `None` if the merge failed.
fn merged(inputs: &Memory, options: &SampleMergeOptions) -> Option<(Vec<u8>, Vec<Event>, Totals)> {
    let outcome = match merge_sample(inputs, options) {
        Ok(outcome) => outcome,
        Err(MergeError::Damaged(_, error)) => {
            located(&error);
            return None;
        }
        Err(_) => return None,
    };
    let (text, _) = as_text(&outcome.profile);
    Some((text, outcome.report.events, outcome.report.totals))
}
