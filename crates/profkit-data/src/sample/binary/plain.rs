//! The binary encoding without sections (LLVM's `SampleProfileReaderRawBinary`, `SampleProfileWriterRawBinary`).
use super::super::flat::{FlatFunction, Repeated, Step};
use super::super::losses::Losses;
use super::super::model::{ProfileKind, SampleProfile};
use super::super::names::{NameId, SampleName, SampleNames};
use super::super::options::SampleReadOptions;
use super::super::report::ReadReport;
use super::super::summary::summarize;
use super::body::{self, Decoder, Encoder};
use super::names::{Mapping, NamePlan, NameTable};
use super::{header, numbers};
use crate::bytes::{Bytes, Cursor, Endian, Sink};
use crate::{ErrorKind, Result, Structure};
use profkit_abi::sample::{BINARY, VERSION, VERSION_NAMES_IN_PLACE, VERSION_WITHOUT_SUMMARY};

/// Adds a binary profile to `profile`, each count times `weight`.
///
/// Reading stops at a damaged function, because this encoding has no table with the offsets of the functions.
///
/// # Errors
/// [`ErrorKind::BadMagic`] or [`ErrorKind::UnsupportedVersion`] if the header is wrong. Errors after the header are
/// listed in the report.
pub fn read(data: &[u8], profile: &mut SampleProfile, weight: u64) -> Result<ReadReport> {
    read_with(data, profile, weight, SampleReadOptions::default())
}

/// Adds a binary profile to `profile`, as [`read`] does, with the given options.
pub fn read_with(
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    options: SampleReadOptions,
) -> Result<ReadReport> {
    let cursor = &mut Cursor::new(data, 0, Endian::Little);
    let versions = [VERSION_NAMES_IN_PLACE, VERSION_WITHOUT_SUMMARY, VERSION];
    let version = header::expect(cursor, BINARY, &versions)?;
    let mut report = ReadReport {
        kind: options.assumed_kind(),
        ..ReadReport::default()
    };
    let mask = options.mask(report.kind);
    if let Err(error) = read_rest(cursor, data, version, profile, weight, mask, &mut report) {
        report.fault(error);
    }
    profile.kind |= report.kind;
    Ok(report)
}

fn read_rest(
    cursor: &mut Cursor<'_>,
    data: &[u8],
    version: u64,
    profile: &mut SampleProfile,
    weight: u64,
    mask: Option<u32>,
    report: &mut ReadReport,
) -> Result<()> {
    if version == VERSION {
        report.summary = Some(numbers::summary(cursor)?);
    }
    let mut table = NameTable::default();
    if version != VERSION_NAMES_IN_PLACE {
        table
            .read_plain(cursor, 0)
            .map_err(|error| error.within(Structure::NameTable))?;
    }
    let mut mapping = Mapping::new(&table, data);
    let mut function = FlatFunction::default();
    let mut additions = profile.additions();
    while !cursor.is_empty() {
        let start = cursor.offset();
        function.clear();
        let decoded = if version == VERSION_NAMES_IN_PLACE {
            function_in_place(cursor, &mut function, additions.names())
        } else {
            let mut decoder = Decoder {
                mapping: &mut mapping,
                names: additions.names(),
                vtables: false,
            };
            function_by_table(cursor, &mut function, &mut decoder)
        };
        decoded.map_err(|error| {
            error
                .within(format!(
                    "function {} (from offset {start:#x} on)",
                    report.functions + 1
                ))
                .with_hint("the functions after the damaged one are lost: this encoding has no table of their offsets")
        })?;
        if let Some(mask) = mask {
            function.cut_discriminators(mask, Repeated::First);
        }
        additions.add(&function, weight, &mut report.outcome);
        report.functions += 1;
    }
    Ok(())
}

/// Reads a function of version 102 or 103: its entry count, the index of its name in the name table, and its body.
pub(super) fn function_by_table(
    cursor: &mut Cursor<'_>,
    function: &mut FlatFunction,
    decoder: &mut Decoder<'_, '_>,
) -> Result<()> {
    function.head = cursor.uleb128()?;
    function.name = decoder.name(cursor)?;
    decoder.body(cursor, function)
}

/// Reads a function of version 100: its name, total, entry count, and lines with their call targets. This version has
/// no name table, so each name is written out.
fn function_in_place(
    cursor: &mut Cursor<'_>,
    function: &mut FlatFunction,
    names: &mut SampleNames,
) -> Result<()> {
    function.name = name_in_place(cursor, names)?;
    function.total = cursor.uleb128()?;
    function.head = cursor.uleb128()?;
    let lines = numbers::count(
        cursor,
        4,
        "a function claims more lines than the bytes left can hold",
    )?;
    for _ in 0..lines {
        let location = body::location(cursor, true)?;
        let samples = cursor.uleb128()?;
        function.steps.push(Step::Line { location, samples });
        let calls = numbers::count(
            cursor,
            2,
            "a line claims more call targets than the bytes left can hold",
        )?;
        for _ in 0..calls {
            let name = name_in_place(cursor, names)?;
            let count = cursor.uleb128()?;
            function.steps.push(Step::Target { name, count });
        }
    }
    Ok(())
}

fn name_in_place(cursor: &mut Cursor<'_>, names: &mut SampleNames) -> Result<NameId> {
    let start = cursor.offset();
    let Some(len) = memchr::memchr(0, cursor.rest()) else {
        return Err(ErrorKind::Truncated
            .error("a name is not terminated")
            .at(start)
            .found(format_args!("{} left", Bytes(cursor.remaining())))
            .expected("a zero byte"));
    };
    let name = cursor.take(len)?;
    cursor.u8()?;
    names.insert(SampleName::Text(name)).ok_or_else(|| {
        ErrorKind::LimitExceeded
            .error("there are too many names")
            .at(start)
    })
}

/// Writes a profile in the binary encoding, version 103, as LLVM 22 does. Functions are ordered by total samples,
/// descending, then by name.
///
/// Vtables, attributes and the symbol list are left out, because the encoding cannot hold them. If only the hash of a
/// name is known, the digits of the hash are written.
///
/// ```
/// use profkit_data::sample::binary::{self};
/// use profkit_data::sample::{SampleEncoding, SampleProfile, encoding, read};
///
/// let mut profile = SampleProfile::new();
/// read(b"main:100:5\n 1: 100\n", &mut profile, 1).strict()?;
/// let mut file = Vec::new();
/// let losses = binary::write(&profile, &mut file)?;
/// assert!(losses.is_empty());
/// assert_eq!(encoding(&file), Some(SampleEncoding::Binary));
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the profile has calling contexts or pseudo probes (LLVM does not write these in
/// this encoding either), and the errors of the sink.
pub fn write(profile: &SampleProfile, sink: &mut dyn Sink) -> Result<Losses> {
    refuse_contexts_and_probes(profile, "binary")?;
    let ranks = profile.names.ranks();
    let plan = NamePlan::new(profile, &ranks, false);
    let mut out = Vec::new();
    header::put(&mut out, BINARY);
    numbers::put_summary(&mut out, &summarize(profile));
    plan.put_plain(&mut out, &profile.names);
    let mut encoder = Encoder {
        plan: &plan,
        ranks: &ranks,
        vtables: false,
        losses: Losses {
            symbols: profile.symbol_count() as u64,
            ..Losses::default()
        },
    };
    for index in profile.llvm_order(&ranks) {
        let Some(function) = profile.functions().get(index as usize) else {
            continue;
        };
        let samples = &function.samples;
        numbers::put(&mut out, samples.head);
        numbers::put(&mut out, u64::from(plan.number(samples.name)));
        encoder.body(&mut out, samples);
        body::count_facts(samples, &mut encoder.losses);
        if out.len() > 1 << 16 {
            sink.put(&out)?;
            out.clear();
        }
    }
    sink.put(&out)?;
    Ok(encoder.losses)
}

pub(super) fn refuse_contexts_and_probes(profile: &SampleProfile, encoding: &str) -> Result<()> {
    let what = if profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
        "calling contexts"
    } else if profile.kind.contains(ProfileKind::PROBE_BASED) {
        "checksums of pseudo probes"
    } else {
        return Ok(());
    };
    Err(ErrorKind::CannotRepresent
        .error(format!("the {encoding} encoding cannot hold {what}"))
        .with_hint("write text or the extensible binary encoding"))
}
