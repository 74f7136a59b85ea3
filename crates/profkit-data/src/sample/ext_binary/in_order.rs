//! Adds the functions of a section in the order in which the profile has them. The functions of a file are sorted by their
//! samples, which differ between two runs of a program, so that each function that is added in the order of the file is a
//! walk to a far place of the profile. The file is small beside the profile: it is better to jump there.
use super::tables::Tables;
use crate::bytes::Cursor;
use crate::limits::SAMPLE_INLINE_DEPTH;
use crate::sample::binary::names::Mapping;
use crate::sample::flat::{Additions, FlatFunction};
use crate::sample::report::ReadReport;
use crate::{Error, Result, Structure};

/// Adds all functions of a section whose table of offsets is `offsets`. Returns whether that was possible: the table must
/// say where each function begins. If it was not, nothing was added. `structure` is the section.
#[expect(
    clippy::too_many_arguments,
    reason = "the arguments are the state of one loop"
)]
pub(super) fn add(
    section: Cursor<'_>,
    structure: Structure,
    mut offsets: Vec<(u64, u64)>,
    tables: &Tables<'_>,
    mapping: &mut Mapping<'_>,
    additions: &mut Additions<'_>,
    weight: u64,
    report: &mut ReadReport,
) -> bool {
    offsets.sort_unstable_by_key(|&(_, start)| start);
    if !are_all(section, &offsets, tables.vtables) {
        return false;
    }
    let mut order = Vec::with_capacity(offsets.len());
    for (number, start) in offsets {
        let (Ok(number), Ok(start)) = (u32::try_from(number), u32::try_from(start)) else {
            return false;
        };
        // The name of a function that cannot be read is an error of the function, which is reported below.
        let name = mapping.id(number, additions.names()).ok();
        let place = name.and_then(|name| additions.place(name));
        order.push((place.unwrap_or(u32::MAX), start));
    }
    // Functions that the profile does not have yet come last, in the order of the file.
    order.sort_unstable();
    let mut function = FlatFunction::default();
    let mut faults: Vec<(u32, Error)> = Vec::new();
    for (_, start) in order {
        let mut cursor = section;
        let mut own = ReadReport::default();
        let names = additions.names();
        let read = cursor.window(start.into()).and_then(|_| {
            tables.function(false, &mut cursor, &mut function, mapping, names, &mut own)
        });
        faults.extend(own.faults.into_iter().map(|error| (start, error)));
        match read {
            Ok(()) => {
                additions.add(&function, weight, &mut report.outcome);
                report.functions += 1;
            }
            Err(error) => {
                let error = error.within(Structure::FunctionAt(start.into()));
                faults.push((start, error.within(structure.clone())));
            }
        }
    }
    faults.sort_by_key(|&(start, _)| start);
    for (_, error) in faults {
        report.fault(error);
    }
    true
}

/// Whether the table has the start of each function, and of nothing else.
fn are_all(section: Cursor<'_>, offsets: &[(u64, u64)], vtables: bool) -> bool {
    let mut cursor = section;
    let base = cursor.offset();
    offsets.iter().all(|&(number, start)| {
        cursor.offset() == base + start && pass(&mut cursor, number, vtables).is_ok_and(|is| is)
    }) && cursor.is_empty()
}

/// Moves to the end of a function without looking at its samples. Returns whether it is the one with this number.
fn pass(cursor: &mut Cursor<'_>, number: u64, vtables: bool) -> Result<bool> {
    cursor.uleb128()?;
    let is_it = cursor.uleb128()? == number;
    Ok(is_it && pass_body(cursor, vtables, 0)?)
}

fn pass_body(cursor: &mut Cursor<'_>, vtables: bool, depth: usize) -> Result<bool> {
    cursor.uleb128()?;
    for _ in 0..cursor.uleb128()? {
        pass_numbers(cursor, 3)?;
        let calls = cursor.uleb128()?;
        pass_numbers(cursor, calls.saturating_mul(2))?;
    }
    let inlined = cursor.uleb128()?;
    if inlined > 0 && depth == SAMPLE_INLINE_DEPTH {
        return Ok(false);
    }
    for _ in 0..inlined {
        pass_numbers(cursor, 3)?;
        if !pass_body(cursor, vtables, depth + 1)? {
            return Ok(false);
        }
    }
    if vtables {
        for _ in 0..cursor.uleb128()? {
            pass_numbers(cursor, 2)?;
            let types = cursor.uleb128()?;
            pass_numbers(cursor, types.saturating_mul(2))?;
        }
    }
    Ok(true)
}

fn pass_numbers(cursor: &mut Cursor<'_>, count: u64) -> Result<()> {
    for _ in 0..count {
        cursor.uleb128()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::sample::ext_binary::{self, ExtBinaryOptions, ExtBinaryProfile};
    use crate::sample::{ReadReport, SampleProfile, absorb, text};
    use profkit_abi::sample::section;
    use profkit_testkit::sample::{SampleOptions, SampleShape, sample_text};

    fn file(shape: SampleShape, functions: usize, seed: u64) -> Vec<u8> {
        let options = SampleOptions {
            functions,
            pool: functions * 3 / 2,
            lines: 3,
            shape,
            one_program: true,
        };
        let mut profile = SampleProfile::new();
        text::read(sample_text(&options, seed).as_bytes(), &mut profile, 1);
        let mut file = Vec::new();
        ext_binary::write(&profile, &ExtBinaryOptions::new(), &mut file).unwrap();
        file
    }

    fn read(file: &[u8], profile: &mut SampleProfile, weight: u64) -> ReadReport {
        match ExtBinaryProfile::parse(file) {
            Ok(opened) => opened.read(profile, weight),
            Err(_) => ReadReport::default(),
        }
    }

    fn shown(profile: &SampleProfile) -> String {
        let mut out = Vec::new();
        text::write(profile, &Default::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// A profile without functions takes those of a file in the order of the file.
    fn compare(one: &[u8], two: &[u8], weight: u64) {
        let (mut at_once, mut in_steps) = (SampleProfile::new(), SampleProfile::new());
        read(one, &mut at_once, 1);
        read(one, &mut in_steps, 1);
        let report = read(two, &mut at_once, weight);
        let mut second = SampleProfile::new();
        let expected = read(two, &mut second, 1);
        let mut outcome = expected.outcome;
        absorb(&mut in_steps, second, weight, |_, _, more| {
            outcome.absorb(more)
        });
        assert_eq!(shown(&at_once), shown(&in_steps));
        assert_eq!(report.faults, expected.faults);
        assert_eq!(report.fault_count, expected.fault_count);
        assert_eq!(report.functions, expected.functions);
        assert_eq!(report.outcome.mismatches, outcome.mismatches);
    }

    #[test]
    fn functions_are_added_as_in_the_order_of_the_file_whatever_is_damaged() {
        for shape in SampleShape::ALL {
            let (one, two) = (file(shape, 60, 1), file(shape, 60, 2));
            compare(&one, &two, 3);
            let (one, two) = (file(shape, 6, 1), file(shape, 6, 2));
            let opened = ExtBinaryProfile::parse(&two).unwrap();
            for part in opened.sections() {
                let parts = [
                    section::SAMPLES,
                    section::FUNCTION_OFFSETS,
                    section::METADATA,
                ];
                if !parts.contains(&part.kind) {
                    continue;
                }
                for at in (part.offset..part.offset + part.size).step_by(3) {
                    for byte in [0, 1, 0x7f, 0xff] {
                        let mut damaged = two.clone();
                        damaged[usize::try_from(at).unwrap()] = byte;
                        compare(&one, &damaged, 1);
                    }
                }
            }
        }
    }
}
