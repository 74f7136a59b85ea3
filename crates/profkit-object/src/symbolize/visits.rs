//! Visits all compile units of a program, including those in split debug info.
use super::names::Names;
use super::sections::Sections;
use super::units::UnitIndex;
use super::{Slice, Symbolizer, malformed, unreadable};
use gimli::{Dwarf, Unit};
use profkit_data::{Error, Structure};
use rayon::prelude::*;

/// A compile unit whose entries can be read.
pub(super) struct UnitView<'v, 'i, 'b> {
    pub(super) dwarf: &'v Dwarf<Slice<'b>>,
    pub(super) unit: &'v Unit<Slice<'b>>,
    pub(super) names: Names<'v, 'i, 'b>,
    /// The unit whose line table contains the files. For split debug info, this is the skeleton unit.
    pub(super) files: (&'v Dwarf<Slice<'b>>, &'v Unit<Slice<'b>>),
}

/// A collector of data from one compile unit.
pub(super) trait UnitVisitor: Default + Send {
    /// Reads a unit. If an entry is damaged, the data collected before it are kept.
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()>;
}

/// The data collected from all compile units.
pub(super) struct Visited<V> {
    /// The collectors of the units: first those in the order of the debug info, then those of split debug info.
    pub(super) units: Vec<V>,
    /// The number of compile units whose split debug info was not found.
    pub(super) missing_split: usize,
    /// The errors of debug info that could not be read.
    pub(super) warnings: Vec<Error>,
}

/// The data collected from one unit, and from the split unit to which it refers, with the errors of both.
#[derive(Default)]
struct Parts<V> {
    own: V,
    split: Option<V>,
    missing_split: bool,
    warnings: Vec<Error>,
}

impl Symbolizer<'_> {
    /// Visits all units. All processor cores are used.
    pub(super) fn visit_units<V: UnitVisitor>(&self) -> Visited<V> {
        let mut warnings = Vec::new();
        let dwarf = self.sections.dwarf();
        let package = self.package.as_ref().and_then(|package| {
            let package = package.dwarf();
            let warn = |error| malformed(&dwarf, error, Structure::PackageIndex);
            package.map_err(|error| warnings.push(warn(error))).ok()
        });
        let index = UnitIndex::build(&dwarf, &mut |warning| warnings.push(warning));
        let parts: Vec<Parts<V>> = (0..index.len())
            .into_par_iter()
            .map(|number| {
                let mut parts = Parts::default();
                let unit = match index.unit(number) {
                    Ok(unit) => unit,
                    Err(error) => {
                        let warning = malformed(&dwarf, error, index.name(number));
                        parts.warnings.push(warning);
                        return parts;
                    }
                };
                let view = UnitView {
                    dwarf: &dwarf,
                    unit,
                    names: Names::new(&dwarf, unit, Some(&index)),
                    files: (&dwarf, unit),
                };
                parts.own = visit(view, &mut parts.warnings);
                if let Some(id) = unit.dwo_id {
                    let from_package = package
                        .as_ref()
                        .and_then(|package| package.find_cu(id, &dwarf).ok().flatten());
                    let files = (&dwarf, unit);
                    parts.split = match from_package {
                        Some(package) => visit_split(&package, files, &mut parts.warnings),
                        None => self.visit_split_file(files, &mut parts.warnings),
                    };
                    parts.missing_split = parts.split.is_none();
                }
                parts
            })
            .collect();
        let missing_split = parts.iter().filter(|part| part.missing_split).count();
        let (mut units, mut split) = (Vec::new(), Vec::new());
        for part in parts {
            units.push(part.own);
            split.extend(part.split);
            warnings.extend(part.warnings);
        }
        units.extend(split);
        Visited {
            units,
            missing_split,
            warnings,
        }
    }

    /// Visits the `.dwo` file of a skeleton unit. `None` if the file or the unit in it is missing.
    fn visit_split_file<V: UnitVisitor>(
        &self,
        (dwarf, unit): (&Dwarf<Slice<'_>>, &Unit<Slice<'_>>),
        warnings: &mut Vec<Error>,
    ) -> Option<V> {
        let name = unit.dwo_name().ok().flatten()?;
        let name = dwarf.attr_string(unit, name).ok()?;
        let directory = unit.comp_dir.map_or(&[][..], |directory| directory.slice());
        let bytes = self.split_files?.split_file(directory, &name)?;
        let bytes: &[u8] = (*bytes).as_ref();
        let file = object::File::parse(bytes).ok()?;
        let sections = Sections::load_split(&file).ok()?;
        let mut split = sections.dwarf();
        split.make_dwo(dwarf);
        visit_split(&split, (dwarf, unit), warnings)
    }
}

/// Visits the unit in a split file that has the same id (`dwo_id`) as a skeleton unit. `None` if there is no such unit.
fn visit_split<'b, V: UnitVisitor>(
    dwarf: &Dwarf<Slice<'b>>,
    files: (&Dwarf<Slice<'b>>, &Unit<Slice<'b>>),
    warnings: &mut Vec<Error>,
) -> Option<V> {
    let (_, skeleton) = files;
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let mut unit = dwarf.unit(header).ok()?;
        if unit.dwo_id != skeleton.dwo_id {
            continue;
        }
        unit.copy_relocated_attributes(skeleton);
        let view = UnitView {
            dwarf,
            unit: &unit,
            names: Names::new(dwarf, &unit, None),
            files,
        };
        return Some(visit(view, warnings));
    }
    None
}

fn visit<V: UnitVisitor>(view: UnitView<'_, '_, '_>, warnings: &mut Vec<Error>) -> V {
    let mut visitor = V::default();
    let dwarf = view.dwarf;
    if let Err(error) = visitor.visit(view) {
        warnings.push(unreadable(dwarf, error).within(Structure::UnitHeaders));
    }
    visitor
}
