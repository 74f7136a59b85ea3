//! Walks over the debug info of a program: its compile units, and the split units to which they refer.
use super::names::{Names, Own};
use super::sections::{Package, Sections};
use super::units::UnitIndex;
use super::work::Work;
use super::{Slice, SplitFiles, malformed, unreadable};
use gimli::{Abbreviation, Dwarf, DwarfPackage, Unit, UnitOffset, constants as dw};
use profkit_data::{Error, ErrorKind, Structure};
use rayon::prelude::*;

/// The debug info of a program. It may be in several files.
pub(crate) struct DebugData<'data> {
    pub(crate) sections: Sections<'data>,
    pub(crate) package: Option<Package<'data>>,
    /// `None` if no `.dwo` files are searched.
    pub(crate) split_files: Option<&'data dyn SplitFiles>,
}

/// A compile unit whose entries can be read.
pub(crate) struct UnitView<'v, 'i, 'b> {
    pub(crate) dwarf: &'v Dwarf<Slice<'b>>,
    pub(crate) unit: &'v Unit<Slice<'b>>,
    pub(crate) names: Names<'v, 'i, 'b>,
    /// The unit whose line table contains the files. For split debug info, this is the skeleton unit.
    pub(crate) files: (&'v Dwarf<Slice<'b>>, &'v Unit<Slice<'b>>),
    /// What may still be read.
    pub(crate) work: &'v Work,
}

/// A collector of data from one compile unit.
pub(crate) trait UnitVisitor: Send {
    /// Reads a unit. If an entry is damaged, the data collected before it are kept.
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()>;
}

/// The data collected from all compile units.
pub(crate) struct Visited<V> {
    /// The collectors of the units: first those in the order of the debug info, then those of split debug info.
    pub(crate) units: Vec<V>,
    /// The names of the `.dwo` files of compile units whose split debug info was not found; empty if the unit has none.
    pub(crate) missing_split: Vec<String>,
    /// The errors of debug info that could not be read.
    pub(crate) warnings: Vec<Error>,
}

struct Parts<V> {
    own: V,
    split: Option<V>,
    missing_split: Option<String>,
    warnings: Vec<Error>,
}

impl DebugData<'_> {
    /// Visits all units, each with a collector that `new` makes. All processor cores are used.
    pub(crate) fn visit_units<V: UnitVisitor>(&self, new: impl Fn() -> V + Sync) -> Visited<V> {
        let mut warnings = Vec::new();
        let dwarf = self.sections.dwarf();
        let package = self.package.as_ref().and_then(|package| {
            let package = package.dwarf();
            let warn = |error| malformed(&dwarf, error, Structure::PackageIndex);
            package.map_err(|error| warnings.push(warn(error))).ok()
        });
        let index = UnitIndex::without_ranges(&dwarf, &mut |warning| warnings.push(warning));
        let parts: Vec<Parts<V>> = (0..index.len())
            .into_par_iter()
            .map(|number| {
                let mut parts = Parts {
                    own: new(),
                    split: None,
                    missing_split: None,
                    warnings: Vec::new(),
                };
                let unit = match index.unit(number) {
                    Ok(unit) => unit,
                    Err(error) => {
                        let warning = malformed(&dwarf, error, index.name(number));
                        parts.warnings.push(warning);
                        return parts;
                    }
                };
                let files = (&dwarf, unit);
                let name = || index.name(number);
                let damage = visit(&mut parts.own, UnitView::whole(&dwarf, unit, &index));
                parts.warnings.extend(damage.map(|it| it.within(name())));
                let mut split = new();
                let found = with_split(
                    files,
                    package.as_ref(),
                    self.split_files,
                    &index.work,
                    |view| visit(&mut split, view),
                );
                match found {
                    Ok(damage) => {
                        let within = |it: Error| it.within(Structure::SplitPart).within(name());
                        parts.warnings.extend(damage.map(within));
                        parts.split = Some(split);
                    }
                    Err(NoSplit::Whole) => {}
                    Err(NoSplit::Missing(name)) => parts.missing_split = Some(name),
                    Err(NoSplit::Damaged(error)) => {
                        parts.missing_split = Some(String::new());
                        parts.warnings.push(error.within(name()));
                    }
                }
                parts
            })
            .collect();
        let mut visited = Visited {
            units: Vec::new(),
            missing_split: Vec::new(),
            warnings,
        };
        let mut split = Vec::new();
        for part in parts {
            visited.units.push(part.own);
            split.extend(part.split);
            visited.missing_split.extend(part.missing_split);
            visited.warnings.extend(part.warnings);
        }
        visited.units.extend(split);
        if let Some(problem) = index.work.problem() {
            visited.units.clear();
            visited.warnings = vec![problem];
        }
        visited
    }
}

impl<'v, 'i, 'b> UnitView<'v, 'i, 'b> {
    /// Views a unit that has its line table itself.
    pub(super) fn whole(
        dwarf: &'v Dwarf<Slice<'b>>,
        unit: &'v Unit<Slice<'b>>,
        index: &'v UnitIndex<'i, 'b>,
    ) -> Self {
        UnitView {
            dwarf,
            unit,
            names: Names::new(dwarf, unit, Some(index)),
            files: (dwarf, unit),
            work: &index.work,
        }
    }
}

fn visit<V: UnitVisitor>(visitor: &mut V, view: UnitView<'_, '_, '_>) -> Option<Error> {
    let dwarf = view.dwarf;
    visitor
        .visit(view)
        .err()
        .map(|error| unreadable(dwarf, error))
}

/// Why no split unit is read for a unit.
pub(super) enum NoSplit {
    /// The unit is not a skeleton unit: it has all its entries itself.
    Whole,
    /// The `.dwo` file with this name was not found, nor was the unit found in a package.
    Missing(String),
    Damaged(Error),
}

/// Calls `read` with the split unit to which the skeleton unit in `files` refers.
pub(super) fn with_split<'a, T>(
    files: (&Dwarf<Slice<'a>>, &Unit<Slice<'a>>),
    package: Option<&DwarfPackage<Slice<'a>>>,
    split_files: Option<&dyn SplitFiles>,
    work: &Work,
    read: impl FnOnce(UnitView<'_, '_, '_>) -> T,
) -> Result<T, NoSplit> {
    let (dwarf, skeleton) = files;
    let id = skeleton.dwo_id.ok_or(NoSplit::Whole)?;
    let mut damage = None;
    match package.map(|package| package.find_cu(id, dwarf)) {
        Some(Ok(Some(split))) => return with_unit_of_skeleton(&split, files, work, read),
        Some(Err(error)) => damage = Some(malformed(dwarf, error, Structure::PackageIndex)),
        Some(Ok(None)) | None => {}
    }
    let string = |value| dwarf.attr_string(skeleton, value).ok();
    let name = skeleton.dwo_name().ok().flatten().and_then(string);
    let name = name.as_ref().map_or(&[][..], |name| name.slice());
    let directory = skeleton.comp_dir.map_or(&[][..], |path| path.slice());
    let Some(bytes) = split_files.and_then(|files| files.split_file(directory, name)) else {
        let text = String::from_utf8_lossy(name).into_owned();
        return Err(damage.map_or(NoSplit::Missing(text), NoSplit::Damaged));
    };
    let bytes: &[u8] = (*bytes).as_ref();
    let sections = object::File::parse(bytes)
        .map_err(|error| {
            Error::new(
                ErrorKind::UnrecognizedFormat,
                format!("this is not an object file: {error}"),
            )
        })
        .and_then(|file| Sections::load_split(&file))
        .map_err(|error| {
            NoSplit::Damaged(error.within(String::from_utf8_lossy(name).into_owned()))
        })?;
    let mut split = sections.dwarf();
    split.make_dwo(dwarf);
    with_unit_of_skeleton(&split, files, work, read)
}

/// Calls `read` with the unit in `split` that has the same id (`dwo_id`) as the skeleton unit. A file with the right
/// name may belong to another build.
fn with_unit_of_skeleton<'b, T>(
    split: &Dwarf<Slice<'b>>,
    files: (&Dwarf<Slice<'b>>, &Unit<Slice<'b>>),
    work: &Work,
    read: impl FnOnce(UnitView<'_, '_, '_>) -> T,
) -> Result<T, NoSplit> {
    let (_, skeleton) = files;
    work.allow(split);
    let damaged = |error: Error| NoSplit::Damaged(error.within(Structure::SplitPart));
    let mut headers = split.units();
    loop {
        let unit = headers
            .next()
            .and_then(|header| header.map(|header| split.unit(header)).transpose())
            .map_err(|error| damaged(unreadable(split, error)))?;
        let Some(mut unit) = unit else {
            return Err(damaged(Error::new(
                ErrorKind::Malformed,
                "the file has no compile unit with the id of the skeleton unit",
            )));
        };
        if unit.dwo_id != skeleton.dwo_id {
            continue;
        }
        unit.copy_relocated_attributes(skeleton);
        return Ok(read(UnitView {
            dwarf: split,
            unit: &unit,
            names: Names::new(split, &unit, None),
            files,
            work,
        }));
    }
}

/// Calls `each` with every entry of a function whose abbreviation is `wanted`: its offset, and its attributes.
pub(super) fn for_each_function<'b>(
    unit: &Unit<Slice<'b>>,
    wanted: impl Fn(&Abbreviation) -> bool,
    mut each: impl FnMut(UnitOffset, Own<'b>) -> gimli::Result<()>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        if abbreviation.tag() != dw::DW_TAG_subprogram || !wanted(abbreviation) {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        each(offset, Own::read(&mut entries, abbreviation)?)?;
    }
    Ok(())
}
