//! Lists the functions of a program that have code of their own, with their address ranges.
use super::functions::has_code;
use super::names::{Names, Own};
use super::sections::Sections;
use super::table::Strings;
use super::units::UnitIndex;
use super::{Slice, Symbolizer, malformed, unreadable};
use gimli::{Dwarf, Unit, constants as dw};
use profkit_data::{Error, Structure};
use rayon::prelude::*;

/// A function with code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subprogram {
    /// The linkage name, or the plain name if there is none.
    pub name: Vec<u8>,
    /// The first address of each range, and the address after it. The entry of the function is in the first range if the
    /// compiler did not move it.
    pub ranges: Vec<(u64, u64)>,
}

/// The functions of a program in the order of its debug info.
#[derive(Clone, Debug, Default)]
pub struct Subprograms {
    /// The functions.
    pub list: Vec<Subprogram>,
    /// The number of compile units whose split debug info was not found.
    pub missing_split: usize,
    /// Debug info that could not be read.
    pub warnings: Vec<Error>,
}

impl Symbolizer<'_> {
    /// Lists the functions that have code of their own, with all processor cores. Functions in split debug info come
    /// after all others.
    pub fn subprograms(&self) -> Subprograms {
        let mut found = Subprograms::default();
        let dwarf = self.sections.dwarf();
        let package = self.package.as_ref().and_then(|package| {
            let package = package.dwarf();
            let warn = |error| malformed(&dwarf, error, Structure::PackageIndex);
            package
                .map_err(|error| found.warnings.push(warn(error)))
                .ok()
        });
        let index = UnitIndex::build(&dwarf, &mut |warning| found.warnings.push(warning));
        let of_units: Vec<(Subprograms, Subprograms)> = (0..index.len())
            .into_par_iter()
            .map(|number| {
                let (mut own, mut split) = (Subprograms::default(), Subprograms::default());
                let unit = match index.unit(number) {
                    Ok(unit) => unit,
                    Err(error) => {
                        own.warnings
                            .push(malformed(&dwarf, error, index.name(number)));
                        return (own, split);
                    }
                };
                let names = Names::new(&dwarf, unit, Some(&index));
                own.read(&dwarf, unit, names);
                if let Some(id) = unit.dwo_id {
                    let from_package = package
                        .as_ref()
                        .and_then(|package| package.find_cu(id, &dwarf).ok().flatten());
                    let read = match from_package {
                        Some(package) => split.read_split(&package, unit),
                        None => self.read_split_file(&dwarf, unit, &mut split).is_some(),
                    };
                    split.missing_split += usize::from(!read);
                }
                (own, split)
            })
            .collect();
        let (own, split): (Vec<_>, Vec<_>) = of_units.into_iter().unzip();
        for part in own.into_iter().chain(split) {
            found.list.extend(part.list);
            found.missing_split += part.missing_split;
            found.warnings.extend(part.warnings);
        }
        found
    }

    /// Reads the `.dwo` file of a skeleton unit. `None` if the file or the unit in it is missing.
    fn read_split_file(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        found: &mut Subprograms,
    ) -> Option<()> {
        let name = unit.dwo_name().ok().flatten()?;
        let name = dwarf.attr_string(unit, name).ok()?;
        let directory = unit.comp_dir.map_or(&[][..], |directory| directory.slice());
        let bytes = self.split_files?.split_file(directory, &name)?;
        let bytes: &[u8] = (*bytes).as_ref();
        let file = object::File::parse(bytes).ok()?;
        let sections = Sections::load_split(&file).ok()?;
        let mut split = sections.dwarf();
        split.make_dwo(dwarf);
        found.read_split(&split, unit).then_some(())
    }
}

impl Subprograms {
    /// Reads the unit of a split file that belongs to a skeleton unit. Returns whether there is one.
    fn read_split<'b>(&mut self, dwarf: &Dwarf<Slice<'b>>, skeleton: &Unit<Slice<'b>>) -> bool {
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(mut unit) = dwarf.unit(header) else {
                return false;
            };
            if unit.dwo_id != skeleton.dwo_id {
                continue;
            }
            unit.copy_relocated_attributes(skeleton);
            let names = Names::new(dwarf, &unit, None);
            self.read(dwarf, &unit, names);
            return true;
        }
        false
    }

    /// Reads all functions of a unit. If an entry is damaged, the functions before it are kept.
    fn read<'b>(
        &mut self,
        dwarf: &Dwarf<Slice<'b>>,
        unit: &Unit<Slice<'b>>,
        names: Names<'_, '_, 'b>,
    ) {
        if let Err(error) = self.walk(dwarf, unit, names) {
            self.warnings
                .push(unreadable(dwarf, error).within(Structure::UnitHeaders));
        }
    }

    fn walk<'b>(
        &mut self,
        dwarf: &Dwarf<Slice<'b>>,
        unit: &Unit<Slice<'b>>,
        mut names: Names<'_, '_, 'b>,
    ) -> gimli::Result<()> {
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
            let mut found = dwarf.die_ranges(unit, &entry)?;
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
                self.list.push(Subprogram {
                    name: name.to_vec(),
                    ranges,
                });
            }
        }
        Ok(())
    }
}
