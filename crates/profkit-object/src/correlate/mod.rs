//! Correlation: finds the function records and names for raw profiles that contain only counters. They are read from
//! the program's binary (`-profile-correlate=binary`) or from its debug info (`-profile-correlate=debug-info`).
//! [docs/formats/correlation.md] describes the formats.
//!
//! [docs/formats/correlation.md]: https://github.com/profkit/profkit/blob/main/docs/formats/correlation.md
pub mod binary;
mod chained;
pub mod dwarf;
mod warnings;

pub use warnings::{CorrelationWarning, CorrelationWarnings};

use crate::binary::damaged;
use object::{BinaryFormat, Object, ObjectSection, ReadRef};
use profkit_abi::sections::{self, SectionName};
use profkit_data::bytes::Endian;
use profkit_data::instr::raw::{PointerWidth, ProgramMetadata};
use profkit_data::{Error, ErrorKind, Result};

/// The address range of a program's counters. Counter pointers are converted to offsets in it.
///
/// ```
/// use profkit_object::binary::BinaryFile;
/// use profkit_object::correlate::CounterSection;
///
/// let file = BinaryFile::open(&std::env::current_exe()?)?;
/// // This program is not instrumented.
/// let error = CounterSection::of(&file.image(|_| true)?).unwrap_err();
/// assert_eq!(error.kind(), profkit_data::ErrorKind::CannotCorrelate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSection {
    /// The address of the first counter that the run-time library writes to raw profiles.
    pub start: u64,
    /// The address after the last byte of the counters.
    pub end: u64,
}

impl CounterSection {
    /// Finds the counter section of an object file.
    ///
    /// # Errors
    /// [`ErrorKind::CannotCorrelate`] if there is none.
    pub fn of<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> Result<Self> {
        let section = section(image, sections::COUNTERS)?;
        let start = section.address();
        // In COFF, the counter section begins with one byte that belongs to the run-time library.
        let own = u64::from(is_coff(image));
        Ok(CounterSection {
            start: start.wrapping_add(own),
            end: start.wrapping_add(section.size()),
        })
    }

    /// Returns the offset of an address in the counter section; `None` if the address is outside the section.
    pub fn offset(&self, address: u64) -> Option<u64> {
        (self.start..self.end)
            .contains(&address)
            .then(|| address - self.start)
    }
}

/// The function records and names of a program, and the warnings of reading them.
#[derive(Clone, Debug, Default)]
pub struct Correlated {
    /// The function records and names of the program.
    pub program: ProgramMetadata,
    /// The warnings, which LLVM's tool gives too.
    pub warnings: CorrelationWarnings,
}

pub(crate) fn is_coff<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> bool {
    matches!(image.format(), BinaryFormat::Coff | BinaryFormat::Pe)
}

/// Returns the name that a section has in a linked file of this format. In COFF, the linker removes `$` and what
/// follows it.
fn linked_name<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    name: SectionName,
) -> &'static str {
    if is_coff(image) {
        name.coff.split('$').next().unwrap_or(name.coff)
    } else {
        name.elf
    }
}

/// Finds a section that correlation needs.
pub(crate) fn section<'data, 'file, R: ReadRef<'data>>(
    image: &'file object::File<'data, R>,
    name: SectionName,
) -> Result<object::Section<'data, 'file, R>> {
    let linked = linked_name(image, name);
    // The function `section_by_name` is not used, because for Mach-O it also finds sections whose name has another
    // spelling.
    let mut sections = image.sections();
    let found = sections.find(|section| section.name_bytes() == Ok(linked.as_bytes()));
    found.ok_or_else(|| missing_section(linked))
}

#[cold]
fn missing_section(name: &'static str) -> Error {
    Error::new(
        ErrorKind::CannotCorrelate,
        format!("the binary has no section {name}"),
    )
    .llvm_detail(format!("could not find section ({name})"))
    .with_hint(match name {
        "__llvm_prf_cnts" | ".lprfc" => {
            "the binary was not built with -fprofile-generate or -fprofile-instr-generate, or the file holds debug info without the program's headers"
        }
        _ => {
            "the binary was stripped, or built without -mllvm -profile-correlate=…: give the file that the linker wrote, before strip, or its debug file"
        }
    })
}

/// Returns the bytes of a section in an object file.
pub(crate) fn section_data<'data, R: ReadRef<'data>>(
    section: &object::Section<'data, '_, R>,
) -> Result<&'data [u8]> {
    section.data().map_err(|error| damaged(&error))
}

/// Returns the byte order and the pointer width of an object file.
pub fn machine<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> (Endian, PointerWidth) {
    let endian = if image.is_little_endian() {
        Endian::Little
    } else {
        Endian::Big
    };
    let width = if image.is_64() {
        PointerWidth::Bits64
    } else {
        PointerWidth::Bits32
    };
    (endian, width)
}
