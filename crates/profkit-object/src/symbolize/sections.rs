//! Loads the debug sections of an object file and decompresses them.
use super::Slice;
use super::work::abbreviations_overlap;
use crate::bounds::SectionBytes;
use gimli::{
    AbbreviationsCacheStrategy, Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections,
    RunTimeEndian, Section, SectionId,
};
use object::{Object, ReadRef};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;

pub(crate) struct Sections<'data> {
    sections: DwarfSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

impl<'data> Sections<'data> {
    /// Loads the debug sections of a linked file or of its debug file.
    pub(crate) fn load<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<Self> {
        let mut bytes = SectionBytes::of(file);
        let sections = DwarfSections::load(|id| {
            load_section(file, needed(id).then(|| id.name()), &mut bytes)
        })?;
        Ok(Sections {
            sections,
            endian: endian(file),
        })
    }

    /// Loads the debug sections of a `.dwo` file.
    pub(crate) fn load_split<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<Self> {
        let mut bytes = SectionBytes::of(file);
        let sections = DwarfSections::load(|id| {
            let name = needed(id).then(|| id.dwo_name()).flatten();
            load_section(file, name, &mut bytes)
        })?;
        Ok(Sections {
            sections,
            endian: endian(file),
        })
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        !self.borrowed().debug_info.reader().is_empty()
    }

    pub(crate) fn dwarf(&self) -> Dwarf<Slice<'_>> {
        let mut dwarf = self.borrowed();
        if !abbreviations_overlap(&dwarf) {
            // A table that several units share is read once.
            dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        }
        dwarf
    }

    fn borrowed(&self) -> Dwarf<Slice<'_>> {
        self.sections
            .borrow(|section| Slice::new(section, self.endian))
    }
}

/// Loads the debug sections of a `.dwp` file.
pub(crate) struct Package<'data> {
    sections: DwarfPackageSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

impl<'data> Package<'data> {
    pub(crate) fn load<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<Self> {
        let mut bytes = SectionBytes::of(file);
        let sections = DwarfPackageSections::load(|id| {
            load_section(file, id.dwo_name(), &mut bytes).map_err(LoadError)
        });
        let sections = sections.map_err(|LoadError(error)| error)?;
        Ok(Package {
            sections,
            endian: endian(file),
        })
    }

    pub(crate) fn dwarf(&self) -> gimli::Result<DwarfPackage<Slice<'_>>> {
        self.sections.borrow(
            |section| Slice::new(section, self.endian),
            Slice::new(&[], self.endian),
        )
    }
}

/// Converts an error of this crate to one that gimli accepts: gimli needs an error type into which its own errors can
/// be converted.
struct LoadError(Error);

impl From<gimli::Error> for LoadError {
    fn from(error: gimli::Error) -> Self {
        LoadError(
            Error::new(
                ErrorKind::Malformed,
                format!("debug info cannot be read: {error}"),
            )
            .within(Structure::DebugPackage),
        )
    }
}

fn endian<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> RunTimeEndian {
    if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    }
}

/// Whether a debug section is needed. Sections for macros, variables and types are not needed; leaving them out saves
/// the time to decompress them.
fn needed(id: SectionId) -> bool {
    matches!(
        id,
        SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugAranges
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
    )
}

fn load_section<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    name: Option<&'static str>,
    bytes: &mut SectionBytes,
) -> Result<Cow<'data, [u8]>> {
    let Some((name, section)) = name.and_then(|name| Some((name, file.section_by_name(name)?)))
    else {
        return Ok(Cow::Borrowed(&[]));
    };
    let within = |error: Error| error.within(Structure::NamedSection(name.into()));
    bytes.read(&section).map_err(within)
}
