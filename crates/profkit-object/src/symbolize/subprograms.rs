//! Lists the functions of a program that have code of their own, with their address ranges.
use super::Symbolizer;
use super::functions::{has_code, most_ranges};
use super::table::Strings;
use super::units::ranges_of;
use super::visits::{UnitView, UnitVisitor, for_each_function};
use super::work::RANGE;
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
        let visited = self.debug.visit_units(OfUnit::default);
        Subprograms {
            list: visited.units.into_iter().flat_map(|unit| unit.0).collect(),
            missing_split: visited.missing_split.len(),
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
            work,
            ..
        } = view;
        let mut strings = Strings::default();
        let mut budget = most_ranges(dwarf, unit);
        for_each_function(unit, has_code, |offset, own| {
            let mut ranges = Vec::new();
            let entry = unit.entry(offset)?;
            let mut found = ranges_of(dwarf, unit, &entry)?;
            while let Some(range) = found.next()? {
                if budget == 0 {
                    return Ok(());
                }
                budget -= 1;
                work.take(RANGE)?;
                if range.begin < range.end {
                    ranges.push((range.begin, range.end));
                }
            }
            let named = names.resolve(&own, |name| strings.intern(name));
            let name = named.function.and_then(|name| strings.get(name));
            work.take(name.map_or(0, |name| 2 * name.len()))?;
            if let Some(name) = name
                && !ranges.is_empty()
            {
                self.0.push(Subprogram {
                    name: name.to_vec(),
                    ranges,
                });
            }
            Ok(())
        })
    }
}
