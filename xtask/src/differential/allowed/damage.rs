//! Reasons for differences that come from a single input: damage that the two tools judge differently, and texts that
//! LLVM's tool misreads.
use std::collections::HashSet;

use anyhow::Result;
use profkit_abi::sample::section;
use profkit_data::detect::{FileKind, detect, is_text};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_data::instr::raw::{PointerWidth, RawReader};
use profkit_data::instr::{InstrSource, Record};
use profkit_data::sample::SampleProfile;
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::{ErrorKind, Structure};

use super::{agree, contains, names, without_output, without_stderr};
use crate::differential::cases::{Case, Input};
use crate::differential::run::{Ran, Tools};

/// Whether wrong stored hashes in indexed files explain the difference. With the right hashes, the tools must agree,
/// and LLVM's tool must give the same result as before.
pub(super) fn stored_hashes(tools: &Tools, case: &Case, theirs: &Ran, _: &Ran) -> Result<bool> {
    let mut right = case.clone();
    let mut is_changed = false;
    for input in &mut right.inputs {
        for (at, hash) in wrong_hashes(&input.bytes) {
            if let Some(stored) = input.bytes.get_mut(at..at + 8) {
                stored.copy_from_slice(&hash.to_le_bytes());
                is_changed = true;
            }
        }
    }
    Ok(is_changed && agree(tools, &right)?.is_some_and(|(same, _)| same == *theirs))
}

/// Returns the stored hashes of an indexed file that do not match their names: the offset of each, and the right hash.
fn wrong_hashes(bytes: &[u8]) -> Vec<(usize, u64)> {
    let options = IndexedReadOptions::new().llvm_checks(true);
    let Ok(profile) = IndexedProfile::parse_with(bytes, &options) else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    let mut records = profile.records();
    while let Ok(Some(name)) = records.next_name() {
        let right = NameRef::of(name.name());
        if name.name_ref() != right
            && let Ok(at) = usize::try_from(name.offset())
        {
            wrong.push((at, right.0));
        }
    }
    wrong
}

/// Whether profkit refuses a sample file because its metadata are damaged, and names the file in the message.
pub(super) fn makes_up_functions(_: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let metadata = Structure::SampleSection(section::METADATA);
    let is_damaged = |input: &Input| {
        let Ok(file) = ExtBinaryProfile::parse(&input.bytes) else {
            return false;
        };
        let report = file.read(&mut SampleProfile::new(), 1);
        let mut faults = report.faults.iter();
        input.origin.ends_with(", damaged") && faults.any(|fault| fault.is_within(&metadata))
    };
    let refused = |input: &Input| is_damaged(input) && names(&ours.stderr, input);
    let refuses = ours.code == Some(1) && !contains(&theirs.stderr, b"Malformed sample");
    Ok(case.has("sample") && refuses && case.inputs.iter().any(refused))
}

/// Whether the heap profile flag in indexed files before version 8 explains the difference. Without the flag, the tools
/// must agree, and profkit must give the same result as with the flag.
pub(super) fn flag_of_no_heap(tools: &Tools, case: &Case, _: &Ran, ours: &Ran) -> Result<bool> {
    const HEAP: u8 = 0x40;
    let mut plain = case.clone();
    for input in &mut plain.inputs {
        let is_old = detect(&input.bytes) == FileKind::InstrIndexed
            && input.bytes.get(8).is_some_and(|&version| version < 8);
        if is_old && let Some(flags) = input.bytes.get_mut(15) {
            *flags &= !HEAP;
        }
    }
    let is_changed = plain
        .inputs
        .iter()
        .zip(&case.inputs)
        .any(|(one, two)| one.bytes != two.bytes);
    Ok(is_changed && agree(tools, &plain)?.is_some_and(|(_, same)| same == *ours))
}

/// Whether a sample text has a function both as `NAME` and as `[NAME]`, and the tools differ only in their output.
pub(super) fn with_and_without_contexts(
    _: &Tools,
    case: &Case,
    theirs: &Ran,
    ours: &Ran,
) -> Result<bool> {
    let is_such = |input: &Input| {
        let heads = input.bytes.split(|&byte| byte == b'\n').filter_map(|line| {
            let mut fields = line.rsplitn(3, |&byte| byte == b':');
            fields.nth(2)
        });
        let heads: HashSet<&[u8]> = heads.collect();
        is_text(&input.bytes)
            && heads
                .iter()
                .any(|head| heads.contains(&[b"[", *head, b"]"].concat()[..]))
    };
    Ok(case.has("sample")
        && without_output(theirs) == without_output(ours)
        && case.inputs.iter().any(is_such))
}

/// Whether the tools differ only in one message: LLVM's tool complains about an empty name, and profkit reports damage
/// in the table of functions before the names. LLVM's tool reads the names only with `--keep-vtable-symbols`.
pub(super) fn empty_name_beyond_the_end(
    _: &Tools,
    case: &Case,
    theirs: &Ran,
    ours: &Ran,
) -> Result<bool> {
    let is_damaged = |input: &Input| {
        let past_table = b"malformed instrumentation profile data: profile data is empty";
        let line = [b"warning: ", input.name.as_bytes(), b": ", past_table].concat();
        lies_in_its_table(input) && contains(&ours.stderr, &line)
    };
    let empty = String::from_utf8_lossy(&theirs.stderr)
        .replace("symbol name is empty", "profile data is empty");
    Ok(case.has("keep-vtable-symbols")
        && empty.as_bytes() == ours.stderr
        && without_stderr(theirs) == without_stderr(ours)
        && case.inputs.iter().any(is_damaged))
}

/// Whether an error occurs while the names of an indexed file are read.
fn lies_in_its_table(input: &Input) -> bool {
    let options = IndexedReadOptions::new().llvm_checks(true);
    IndexedProfile::parse_with(&input.bytes, &options).is_ok_and(|profile| {
        let mut records = profile.records();
        loop {
            match records.next_name() {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    })
}

/// Whether a name that begins with `$` explains a complaint of LLVM's tool about the bitmap of a text. After such names
/// are changed, the tools must agree.
pub(super) fn begins_with_dollar(
    tools: &Tools,
    case: &Case,
    theirs: &Ran,
    _: &Ran,
) -> Result<bool> {
    if !contains(&theirs.stderr, b"itmap byte") {
        return Ok(false);
    }
    let mut renamed = case.clone();
    for input in &mut renamed.inputs {
        let mut at_start = true;
        let is_text = is_text(&input.bytes);
        for at in 0..input.bytes.len() {
            let next_is_digit = input.bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            if is_text && at_start && input.bytes[at] == b'$' && !next_is_digit {
                input.bytes[at] = b'_';
            }
            at_start = input.bytes[at] == b'\n';
        }
    }
    let (theirs, ours) = tools.both(&renamed)?;
    Ok(theirs == ours)
}

/// Whether an indexed or raw file states impossible offsets or sizes, or an extensible binary sample file has a section
/// beyond its end.
pub(super) fn lies_about_places(input: &Input) -> bool {
    match detect(&input.bytes) {
        FileKind::InstrIndexed => match IndexedProfile::parse(&input.bytes) {
            Err(error) => error.kind() != ErrorKind::UnsupportedVersion,
            Ok(profile) => profile.binary_ids().is_err(),
        },
        FileKind::InstrRaw => RawReader::parse(&input.bytes).map_or(true, |mut reader| {
            let mut record = Record::default();
            loop {
                match reader.read_record(&mut record) {
                    Ok(true) => {}
                    Ok(false) => break false,
                    Err(_) => break true,
                }
            }
        }),
        FileKind::SampleExtBinary => ExtBinaryProfile::parse(&input.bytes).is_ok_and(|file| {
            let length = input.bytes.len() as u64;
            let mut sections = file.sections().iter();
            sections.any(|section| section.offset.saturating_add(section.size) > length)
        }),
        _ => false,
    }
}

/// Whether a text has a calling context with a call site in its last frame.
pub(super) fn ends_in_call_site(input: &Input) -> bool {
    let is_such = |line: &[u8]| {
        let context = line.strip_prefix(b"[").unwrap_or_default();
        let mut fields = context.rsplitn(3, |&byte| byte == b':');
        let context = fields.nth(2).unwrap_or_default();
        let at = context.windows(3).rposition(|window| window == b" @ ");
        let leaf = at.map_or(context, |at| &context[at..]);
        leaf.contains(&b':')
    };
    is_text(&input.bytes) && input.bytes.split(|&byte| byte == b'\n').any(is_such)
}

/// Whether a raw file of a 32-bit program states a counter distance of more than 32 bits.
pub(super) fn has_wide_delta(input: &Input) -> bool {
    detect(&input.bytes) == FileKind::InstrRaw
        && RawReader::parse(&input.bytes).is_ok_and(|reader| {
            reader.profile().is_some_and(|profile| {
                let is_wide = profile.header().counters_delta > u64::from(u32::MAX);
                profile.dialect().width == PointerWidth::Bits32 && is_wide
            })
        })
}
