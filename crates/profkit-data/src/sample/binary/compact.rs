//! The compact binary encoding (LLVM 7 to 16). Names are stored as MD5 hashes, and a table at the end of the file has
//! the offset of each function.
use super::super::flat::{FlatFunction, Repeated};
use super::super::losses::Losses;
use super::super::model::{ProfileKind, SampleProfile};
use super::super::names::SampleName;
use super::super::options::SampleReadOptions;
use super::super::report::ReadReport;
use super::super::summary::summarize;
use super::body::{self, Decoder, Encoder};
use super::names::{Mapping, NamePlan, NameTable};
use super::plain::{function_by_table, refuse_contexts_and_probes};
use super::{header, numbers};
use crate::bytes::{Cursor, Endian, Sink};
use crate::{ErrorKind, Result, Structure};
use profkit_abi::sample::{COMPACT_BINARY, VERSION};

/// Adds a compact binary profile to `profile`, each count times `weight`. After a damaged function, reading continues
/// at the next function in the table of offsets.
///
/// # Errors
/// [`ErrorKind::BadMagic`] or [`ErrorKind::UnsupportedVersion`] if the header is wrong. Errors after the header are
/// listed in the report.
pub fn read(data: &[u8], profile: &mut SampleProfile, weight: u64) -> Result<ReadReport> {
    read_with(data, profile, weight, SampleReadOptions::default())
}

/// Adds a compact binary profile to `profile`, as [`read`] does, with the given options.
pub fn read_with(
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    options: SampleReadOptions,
) -> Result<ReadReport> {
    let cursor = &mut Cursor::new(data, 0, Endian::Little);
    header::expect(cursor, COMPACT_BINARY, &[VERSION])?;
    let mut report = ReadReport {
        kind: ProfileKind::MD5_NAMES | options.assumed_kind(),
        ..ReadReport::default()
    };
    let mask = options.mask(report.kind);
    if let Err(error) = read_rest(cursor, data, profile, weight, mask, &mut report) {
        report.fault(error);
    }
    profile.kind |= report.kind;
    Ok(report)
}

fn read_rest(
    cursor: &mut Cursor<'_>,
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    mask: Option<u32>,
    report: &mut ReadReport,
) -> Result<()> {
    report.summary = Some(numbers::summary(cursor)?);
    let mut table = NameTable::default();
    table
        .read_md5(cursor, false)
        .map_err(|error| error.within(Structure::NameTable))?;
    let at = cursor.offset();
    let offsets_start = cursor
        .u64()
        .map_err(|error| error.within(Structure::FunctionTableOffset))?;
    let functions_start = cursor.offset();
    let (functions, offsets) = match usize::try_from(offsets_start) {
        Ok(start) if offsets_start >= functions_start && start <= data.len() => {
            let functions = cursor.window(offsets_start - functions_start)?;
            (
                functions,
                read_offsets(cursor, functions_start..offsets_start),
            )
        }
        _ => {
            report.fault(
                ErrorKind::Malformed
                    .error("the function table is outside the file")
                    .at(at)
                    .within(Structure::Header)
                    .found(format_args!("{offsets_start:#x}"))
                    .expected(format_args!("{functions_start:#x} to {:#x}", data.len())),
            );
            (*cursor, Ok(Vec::new()))
        }
    };
    let mut offsets = offsets.unwrap_or_else(|error| {
        report.fault(error);
        Vec::new()
    });
    offsets.sort_unstable();
    let mut mapping = Mapping::new(&table, data);
    let mut function = FlatFunction::default();
    let mut additions = profile.additions();
    let mut at = functions;
    while !at.is_empty() {
        let start = at.offset();
        function.clear();
        let mut decoder = Decoder {
            mapping: &mut mapping,
            names: additions.names(),
            vtables: false,
        };
        match function_by_table(&mut at, &mut function, &mut decoder) {
            Ok(()) => {
                if let Some(mask) = mask {
                    function.cut_discriminators(mask, Repeated::First);
                }
                additions.add(&function, weight, &mut report.outcome);
                report.functions += 1;
            }
            Err(error) => {
                report.fault(error.within(Structure::FunctionAt(start)));
                let next = offsets.partition_point(|&offset| offset <= start);
                let Some(&next) = offsets.get(next) else {
                    break;
                };
                at = functions;
                at.window(next - functions_start)?;
            }
        }
    }
    Ok(())
}

/// Reads the table of offsets. Returns the offset of each function in the file, in the order of the table. Each offset
/// must be in the range `functions`.
fn read_offsets(cursor: &mut Cursor<'_>, functions: std::ops::Range<u64>) -> Result<Vec<u64>> {
    let mut read = || -> Result<Vec<u64>> {
        let count = numbers::count(
            cursor,
            2,
            "the function table claims more functions than its bytes can hold",
        )?;
        let mut offsets = Vec::with_capacity(count);
        for _ in 0..count {
            cursor.uleb128()?;
            let at = cursor.offset();
            let offset = cursor.uleb128()?;
            if !functions.contains(&offset) {
                return Err(ErrorKind::Malformed
                    .error("a function's offset is outside the functions")
                    .at(at)
                    .found(format_args!("{offset:#x}"))
                    .expected(format_args!(
                        "{:#x} to {:#x}",
                        functions.start, functions.end
                    )));
            }
            offsets.push(offset);
        }
        Ok(offsets)
    };
    read().map_err(|error| error.within(Structure::FunctionTable))
}

/// Writes a profile in the compact binary encoding, for LLVM 7 to 16.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the profile has calling contexts or pseudo probes (LLVM does not write these in
/// this encoding either), and the errors of the sink.
pub fn write(profile: &SampleProfile, sink: &mut dyn Sink) -> Result<Losses> {
    refuse_contexts_and_probes(profile, "compact binary")?;
    let ranks = profile.names.ranks();
    let plan = NamePlan::new(profile, &ranks, false);
    let mut losses = Losses {
        symbols: profile.symbol_count() as u64,
        ..Losses::default()
    };
    let mut out = Vec::new();
    header::put(&mut out, COMPACT_BINARY);
    numbers::put_summary(&mut out, &summarize(profile));
    numbers::put(&mut out, plan.order.len() as u64);
    for &id in &plan.order {
        let name = profile.names.get(id);
        losses.names += u64::from(matches!(name, SampleName::Text(_)));
        numbers::put(&mut out, name.guid().0);
    }
    let mut encoder = Encoder {
        plan: &plan,
        ranks: &ranks,
        vtables: false,
        losses,
    };
    let place = out.len();
    out.extend_from_slice(&[0; 8]);
    let mut offsets = Vec::new();
    for index in profile.llvm_order(&ranks) {
        let Some(function) = profile.functions().get(index as usize) else {
            continue;
        };
        let samples = &function.samples;
        let number = u64::from(plan.number(samples.name));
        offsets.push((number, out.len() as u64));
        numbers::put(&mut out, samples.head);
        numbers::put(&mut out, number);
        encoder.body(&mut out, samples);
        body::count_facts(samples, &mut encoder.losses);
    }
    let table = (out.len() as u64).to_le_bytes();
    if let Some(slot) = out.get_mut(place..place + 8) {
        slot.copy_from_slice(&table);
    }
    numbers::put(&mut out, offsets.len() as u64);
    for (number, offset) in offsets {
        numbers::put(&mut out, number);
        numbers::put(&mut out, offset);
    }
    sink.put(&out)?;
    Ok(encoder.losses)
}
