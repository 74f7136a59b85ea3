//! Reads the function records and names of a program from the sections of its binary.
use super::chained::Pointers;
use super::{
    Correlated, CorrelationWarning, CorrelationWarnings, CounterSection, machine, section,
    section_data,
};
use object::{ObjectSection, ReadRef};
use profkit_abi::sections::{self, SectionName};
use profkit_data::instr::raw::{
    MetadataRecord, ProgramMetadata, RawDialect, RawName, RawRecord, RecordLayout,
};
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::FxHashSet;

/// What to do with function records whose counters lie outside the counter section. There are such records if the
/// profile was not written by this binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// Records whose counters lie outside the counter section are left out.
    #[default]
    Drop,
    /// Records whose counters lie outside the counter section are kept, as LLVM keeps them. Reading a profile then
    /// fails at the first of these records.
    Keep,
}

/// The sections from which function records and names are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionSet {
    /// The sections `__llvm_covdata` and `__llvm_covnames`. They exist only for correlation and are not loaded when the
    /// program runs. Counter pointers in them are addresses.
    Correlation,
    /// The sections `__llvm_prf_data` and `__llvm_prf_names`, which the program itself uses. Counter pointers in them
    /// have the same form as in raw files of the same version.
    Runtime,
}

impl SectionSet {
    pub(crate) fn names(self) -> (SectionName, SectionName) {
        match self {
            SectionSet::Correlation => (sections::COV_DATA, sections::COV_NAMES),
            SectionSet::Runtime => (sections::DATA, sections::NAMES),
        }
    }
}

/// Whether an object file has all sections of this set.
pub fn has_sections<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    set: SectionSet,
) -> bool {
    let (data, names) = set.names();
    section(image, data).is_ok_and(|section| section.size() > 0) && section(image, names).is_ok()
}

/// Reads the function records and names of a binary, as LLVM's `BinaryInstrProfCorrelator` does. `dialect` and `layout`
/// are the byte layout and the record layout of the raw profiles that the binary writes.
///
/// If several records have the same counters, the first is kept. The memory used is a small multiple of the size of the
/// sections.
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if a section is missing or empty. [`ErrorKind::Unsupported`] for a Mach-O file whose
/// chained pointers have a format that x86-64 and arm64 do not use.
pub fn correlate<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
    set: SectionSet,
    dialect: RawDialect,
    layout: &RecordLayout,
    outside: Outside,
    mut warnings: CorrelationWarnings,
) -> Result<Correlated> {
    let counters = CounterSection::of(image)?;
    let (data_name, names_name) = set.names();
    let data_section = section(image, data_name)?;
    let data = section_data(&data_section)?;
    let names = section_data(&section(image, names_name)?)?;
    let (endian, width) = machine(image);
    let mask = match width.bytes() {
        4 => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    let pointers = Pointers::of(image, data_section.address())?;
    // Programs without MC/DC have no bitmap section. If the section is missing although a record has a bitmap, the
    // offset of the bitmap is not in the profile's bitmaps either, and reading the profile reports it.
    let bitmaps = section(image, sections::BITMAP).map_or(0, |section| section.address());
    let mut seen = FxHashSet::default();
    let mut records = Vec::with_capacity(data.len() / layout.stride);
    let dialect = RawDialect {
        endian,
        width,
        ..dialect
    };
    for (index, record) in records_of(data, dialect, layout).enumerate() {
        let RawName::Ref(name_ref) = record.name else {
            break;
        };
        let at = index as u64 * layout.stride as u64;
        let target = |pointer: u64| match set {
            SectionSet::Correlation => pointers.address(pointer) & mask,
            // Since version 8, a pointer is the distance of its target from the record.
            SectionSet::Runtime if dialect.version >= 8 => {
                let record = data_section.address().wrapping_add(at);
                record.wrapping_add(pointer) & mask
            }
            SectionSet::Runtime => pointer & mask,
        };
        let address = target(record.counter_ptr);
        if counters.offset(address).is_none() {
            warnings.push(CorrelationWarning::OutOfRange {
                function: None,
                counters: address,
                section: (counters.start, counters.end),
                record: at,
            });
            if outside == Outside::Drop {
                continue;
            }
        }
        let counter_offset = address.wrapping_sub(counters.start) & mask;
        if seen.insert(counter_offset) {
            records.push(MetadataRecord {
                name_ref,
                func_hash: record.func_hash,
                counter_offset,
                function_pointer: pointers.address(record.function_pointer),
                num_counters: record.num_counters,
                bitmap_offset: target(record.bitmap_ptr).wrapping_sub(bitmaps) & mask,
                num_bitmap_bytes: record.num_bitmap_bytes,
            });
        }
    }
    if records.is_empty() || names.is_empty() {
        return Err(nothing_found(
            &warnings,
            names.is_empty() && !records.is_empty(),
        ));
    }
    Ok(Correlated {
        program: ProgramMetadata {
            endian: Some(endian),
            width: Some(width),
            records,
            names: names.to_vec(),
        },
        warnings,
    })
}

/// Decodes the function records of a section. In all raw versions with the same record size, the name and the hash are
/// at the same place in a record. Only the meaning of the counter pointer depends on the version.
pub(crate) fn records_of<'data>(
    data: &'data [u8],
    dialect: RawDialect,
    layout: &'data RecordLayout,
) -> impl Iterator<Item = RawRecord> + 'data {
    // The section may end without the padding of the last record. `RawRecord::decode` reads missing bytes as 0.
    let whole = move |bytes: &&[u8]| bytes.len() + RECORD_PADDING >= layout.stride;
    data.chunks(layout.stride)
        .take_while(whole)
        .enumerate()
        .map(move |(index, bytes)| RawRecord::decode(bytes, index, dialect, layout))
}

/// Whether a section can consist of records of this layout: no bytes are left over after the last record, which may
/// lack its padding.
pub(crate) fn is_whole_records(data: &[u8], layout: &RecordLayout) -> bool {
    let left = data.len() % layout.stride;
    left == 0 || left + RECORD_PADDING >= layout.stride
}

/// The largest padding at the end of a record, in bytes. Records are aligned to 8 bytes.
const RECORD_PADDING: usize = 7;

#[cold]
fn nothing_found(warnings: &CorrelationWarnings, no_names: bool) -> Error {
    let error = match warnings.count() {
        0 => Error::new(
            ErrorKind::CannotCorrelate,
            "the binary has no profile metadata",
        ),
        count => Error::new(
            ErrorKind::CannotCorrelate,
            "all records of the binary have their counters outside the counter section",
        )
        .found(format_args!("{count} records")),
    };
    error
        .llvm_detail(if no_names { "could not find any profile data metadata in object file" } else { "could not find any profile data metadata in correlated file" })
        .with_hint("the binary was stripped, or linked from objects without instrumentation: give the file that the linker wrote")
}
