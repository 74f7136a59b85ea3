//! Loads the debug sections of an object file and decompresses them.
use super::Slice;
use gimli::{
    Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, RunTimeEndian, Section, SectionId,
};
use object::{CompressionFormat, Object, ObjectSection, ReadRef};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;

/// The largest possible ratio of decompressed to compressed size with zlib. In RFC 1951, two bits can encode 258 bytes.
const MAX_ZLIB_RATIO: u64 = 1032;
/// The largest possible ratio of decompressed to compressed size with Zstandard. In RFC 8878, four bytes can encode a
/// block of 128 KiB.
const MAX_ZSTD_RATIO: u64 = 1 << 15;

pub(crate) struct Sections<'data> {
    sections: DwarfSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

impl<'data> Sections<'data> {
    /// Loads the debug sections of a linked file or of its debug file.
    pub(crate) fn load<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<Self> {
        let sections = DwarfSections::load(|id| load_section(file, needed(id).then(|| id.name())))?;
        Ok(Sections {
            sections,
            endian: endian(file),
        })
    }

    /// Loads the debug sections of a `.dwo` file.
    pub(crate) fn load_split<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<Self> {
        let sections = DwarfSections::load(|id| {
            load_section(file, needed(id).then(|| id.dwo_name()).flatten())
        })?;
        Ok(Sections {
            sections,
            endian: endian(file),
        })
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        !self.dwarf().debug_info.reader().is_empty()
    }

    pub(crate) fn dwarf(&self) -> Dwarf<Slice<'_>> {
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
        let sections =
            DwarfPackageSections::load(|id| load_section(file, id.dwo_name()).map_err(LoadError));
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
) -> Result<Cow<'data, [u8]>> {
    let Some((name, section)) = name.and_then(|name| Some((name, file.section_by_name(name)?)))
    else {
        return Ok(Cow::Borrowed(&[]));
    };
    let bad = |error: object::Error| {
        Error::new(
            ErrorKind::Malformed,
            format!("a debug section cannot be read: {error}"),
        )
        .within(Structure::NamedSection(name.into()))
    };
    let data = section.compressed_data().map_err(bad)?;
    let ratio = match data.format {
        CompressionFormat::None => return data.decompress().map_err(bad),
        CompressionFormat::Zlib => MAX_ZLIB_RATIO,
        _ => MAX_ZSTD_RATIO,
    };
    let most = (data.data.len() as u64).saturating_mul(ratio);
    if data.uncompressed_size > most {
        return Err(Error::new(
            ErrorKind::Malformed,
            "a compressed debug section claims an impossible size",
        )
        .within(Structure::NamedSection(name.into()))
        .found(format!("{} bytes", data.uncompressed_size))
        .expected(format!(
            "at most {most} bytes from {} compressed bytes",
            data.data.len()
        )));
    }
    data.decompress().map_err(bad)
}
