//! Lists the functions of a program that have code of their own, with their address ranges.
use super::Symbolizer;
use super::functions::has_code;
use super::names::Own;
use super::table::Strings;
use super::units::ranges_of;
use super::visits::{UnitView, UnitVisitor};
use gimli::constants as dw;
use profkit_data::Error;

/// A function with code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subprogram {
    /// The linkage name, or the plain name if there is none.
    pub name: Vec<u8>,
    /// The address ranges of the function's code: the first address, and the address after the range. Normally the
    /// first range begins with the entry point of the function.
    pub ranges: Vec<(u64, u64)>,
}

/// The functions of a program. Their order is that of the debug info.
#[derive(Clone, Debug, Default)]
pub struct Subprograms {
    /// The functions.
    pub list: Vec<Subprogram>,
    /// The number of compile units whose split debug info was not found.
    pub missing_split: usize,
    /// The errors of debug info that could not be read.
    pub warnings: Vec<Error>,
}

impl Symbolizer<'_> {
    /// Lists the functions that have code of their own. All processor cores are used. Functions in split debug info
    /// come after all others.
    pub fn subprograms(&self) -> Subprograms {
        let visited = self.visit_units::<OfUnit>();
        Subprograms {
            list: visited.units.into_iter().flat_map(|unit| unit.0).collect(),
            missing_split: visited.missing_split,
            warnings: visited.warnings,
        }
    }
}

/// The functions in one compile unit.
#[derive(Default)]
struct OfUnit(Vec<Subprogram>);

impl UnitVisitor for OfUnit {
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()> {
        let UnitView {
            dwarf,
            unit,
            mut names,
            ..
        } = view;
        let mut strings = Strings::default();
        let mut budget = super::functions::most_ranges(dwarf, unit);
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            if abbreviation.tag() != dw::DW_TAG_subprogram || !has_code(abbreviation) {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut own = Own::default();
            for &spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(spec)?;
                own.take(attribute.name(), attribute.value());
            }
            let mut ranges = Vec::new();
            let entry = unit.entry(offset)?;
            let mut found = ranges_of(dwarf, unit, &entry)?;
            while let Some(range) = found.next()? {
                if budget == 0 {
                    return Ok(());
                }
                budget -= 1;
                if range.begin < range.end {
                    ranges.push((range.begin, range.end));
                }
            }
            let named = names.resolve(&own, |name| strings.intern(name));
            let name = named.function.and_then(|name| strings.get(name));
            if let Some(name) = name
                && !ranges.is_empty()
            {
                self.0.push(Subprogram {
                    name: name.to_vec(),
                    ranges,
                });
            }
        }
        Ok(())
    }
}
