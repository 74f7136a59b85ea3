//! Lists the functions that a compiler inlined. Debug info has an entry for such a function even if no code of its own
//! is left.
use super::sections::Sections;
use super::{MAX_REFERENCES, Slice};
use gimli::{AttributeValue, UnitOffset, UnitRef, constants as dw};
use object::ReadRef;
use profkit_data::Result;

/// The functions that debug info describes as inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlinedFunctions {
    /// The linkage names of the functions, or their plain names if they have no linkage name. Names can be repeated.
    pub names: Vec<Vec<u8>>,
    /// The number of damaged compile units. Only their functions before the damage are listed.
    pub damaged_units: usize,
}

/// Returns the functions that were inlined at least once.
///
/// # Errors
/// If the debug sections cannot be read or decompressed.
pub fn inlined_functions<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
) -> Result<InlinedFunctions> {
    let sections = Sections::load(image)?;
    let dwarf = sections.dwarf();
    let mut found = InlinedFunctions::default();
    let mut headers = dwarf.units();
    loop {
        let header = match headers.next() {
            Ok(None) => return Ok(found),
            Ok(Some(header)) => header,
            Err(_) => {
                // Without a readable header, the start of the next unit is not known.
                found.damaged_units += 1;
                return Ok(found);
            }
        };
        let unit = dwarf.unit(header);
        let read = unit.and_then(|unit| of_unit(&unit.unit_ref(&dwarf), &mut found.names));
        found.damaged_units += usize::from(read.is_err());
    }
}

fn of_unit(unit: &UnitRef<'_, Slice<'_>>, names: &mut Vec<Vec<u8>>) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let attributes = abbreviation.attributes();
        let is_candidate = abbreviation.tag() == dw::DW_TAG_subprogram
            && attributes
                .iter()
                .any(|spec| spec.name() == dw::DW_AT_inline);
        if !is_candidate {
            entries.skip_attributes(attributes)?;
            continue;
        }
        let mut inlined = false;
        for &spec in attributes {
            let attribute = entries.read_attribute(spec)?;
            inlined |= matches!(
                attribute.value(),
                AttributeValue::Inline(dw::DW_INL_inlined | dw::DW_INL_declared_inlined)
            );
        }
        names.extend(inlined.then(|| name_of(unit, offset)).flatten());
    }
    Ok(())
}

/// Returns the name of a function: the linkage name of its entry or of the entries that its entry refers to, otherwise
/// the first plain name. `None` if no entry has a name.
fn name_of(unit: &UnitRef<'_, Slice<'_>>, offset: UnitOffset) -> Option<Vec<u8>> {
    let mut plain = None;
    let mut next = Some(offset);
    for _ in 0..MAX_REFERENCES {
        let Some(entry) = next.take().and_then(|offset| unit.entry(offset).ok()) else {
            break;
        };
        for attribute in entry.attrs() {
            let text = || {
                unit.attr_string(attribute.value())
                    .ok()
                    .map(|text| text.to_vec())
            };
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name, _) => return text(),
                (dw::DW_AT_name, _) if plain.is_none() => plain = text(),
                (
                    dw::DW_AT_abstract_origin | dw::DW_AT_specification,
                    AttributeValue::UnitRef(origin),
                ) => next = Some(origin),
                _ => {}
            }
        }
    }
    plain
}
