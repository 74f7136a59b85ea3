//! Data records and names that come from the program and not from the raw profile. A program built with
//! `-profile-correlate` writes only counters into its raw profile. [docs/formats/correlation.md] describes where the
//! program holds the data records and names.
//!
//! [docs/formats/correlation.md]: https://github.com/profkit/profkit/blob/main/docs/formats/correlation.md
use super::header::{PointerWidth, RawDialect};
use super::layout::RecordLayout;
use super::profile::RawProfile;
use crate::bytes::Endian;
use crate::ids::{FuncHash, NameRef};
use crate::{Error, ErrorKind, Result, Structure};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// One function of a program, as described by the program's binary or its debug info.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataRecord {
    /// The hash of the function's PGO name.
    pub name_ref: NameRef,
    /// The function hash: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// The offset of the function's counters in the counter section, in bytes.
    pub counter_offset: u64,
    /// The address of the function in the binary, or 0 if it is not known.
    pub function_pointer: u64,
    /// The number of the function's counters.
    pub num_counters: u32,
    /// The offset of the function's MC/DC bitmap in the bitmap section, in bytes. It has no meaning if there is no
    /// bitmap.
    pub bitmap_offset: u64,
    /// The length of the function's MC/DC bitmap in bytes; 0 if there is none, or if it is not known.
    pub num_bitmap_bytes: u32,
}

/// The functions of a program, as described by its binary or debug info. They can be used for raw profiles of version 5
/// and later.
///
/// Value sites are not included: programs built with `-profile-correlate` do not record values. LLVM 22 correlates only
/// counters. MC/DC bitmaps are described only by the binary, and not by the debug info.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramMetadata {
    /// The byte order of the program. `None` fits profiles of both byte orders.
    pub endian: Option<Endian>,
    /// The pointer width of the program. `None` fits profiles of both widths.
    pub width: Option<PointerWidth>,
    /// The functions, in the order in which they were found in the binary or debug info.
    pub records: Vec<MetadataRecord>,
    /// The names of the functions, in the format of the names section of a raw profile.
    pub names: Vec<u8>,
}

/// [`ProgramMetadata`] in the form of data records for raw profiles of one version, byte order and pointer width.
/// [`RawProfile::with_metadata`] joins these data records to a profile. In these data records, counter pointers are
/// offsets in the counter section, and bitmap pointers are offsets in the bitmap section.
#[derive(Clone, Debug)]
pub struct RawMetadata {
    dialect: RawDialect,
    layout: RecordLayout,
    pub(super) data: Vec<u8>,
    pub(super) names: Vec<u8>,
    id: u64,
}

impl RawMetadata {
    /// Encodes the functions of a program as data records of the given dialect. Raw profiles of programs built with
    /// `-profile-correlate` lack these data records.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] for raw versions before 5, because no compiler with `-profile-correlate` wrote
    /// them. [`ErrorKind::CannotCorrelate`] if the byte order or the pointer width of the program differs from that of
    /// the dialect.
    pub fn new(
        program: &ProgramMetadata,
        dialect: RawDialect,
        layout: RecordLayout,
    ) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        if dialect.version < OLDEST {
            return Err(Error::new(ErrorKind::UnsupportedVersion, "raw profiles of this version cannot be completed with function records from a binary")
            .within(Structure::Header)
            .within(Structure::RawProfile)
            .found(format_args!("version {}", dialect.version))
            .expected(format_args!("version {OLDEST} or later")));
        }
        let fits = program.endian.is_none_or(|endian| endian == dialect.endian)
            && program.width.is_none_or(|width| width == dialect.width);
        if !fits {
            return Err(ErrorKind::CannotCorrelate
                .error("the binary is for another kind of machine than the profile")
                .found(Machine(program.width, program.endian))
                .expected(Machine(Some(dialect.width), Some(dialect.endian)))
                .with_hint("give the binary of the program that wrote this profile"));
        }
        let mut data = vec![0; program.records.len() * layout.stride];
        for (bytes, record) in data.chunks_exact_mut(layout.stride).zip(&program.records) {
            encode_metadata(&layout, bytes, dialect, record);
        }
        Ok(RawMetadata {
            dialect,
            layout,
            data,
            names: program.names.clone(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// A number that identifies this set of metadata in the running process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of functions in the metadata.
    pub fn record_count(&self) -> usize {
        self.data.len() / self.layout.stride
    }

    /// Whether the metadata were encoded for raw profiles with this dialect and record layout.
    pub fn fits(&self, profile: &RawProfile<'_>) -> bool {
        let (mine, theirs) = (self.dialect, profile.dialect());
        (mine.endian, mine.width, mine.version) == (theirs.endian, theirs.width, theirs.version)
            && self.layout == *profile.layout()
    }
}

/// Writes the metadata of a function into the bytes of a data record. The caller must pass bytes that are all 0.
fn encode_metadata(
    layout: &RecordLayout,
    bytes: &mut [u8],
    dialect: RawDialect,
    record: &MetadataRecord,
) {
    let little = dialect.endian == Endian::Little;
    let mut put = |at: Option<usize>, len: usize, value: u64| {
        let value = if little {
            value.to_le_bytes()
        } else {
            (value << (64 - 8 * len)).to_be_bytes()
        };
        let field = at.and_then(|at| bytes.get_mut(at..at.checked_add(len)?));
        if let (Some(field), Some(value)) = (field, value.get(..len)) {
            field.copy_from_slice(value);
        }
    };
    let pointer = layout.width.bytes();
    put(layout.name_ref, 8, record.name_ref.0);
    put(Some(layout.func_hash), 8, record.func_hash.0);
    put(Some(layout.counter_ptr), pointer, record.counter_offset);
    put(layout.function_pointer, pointer, record.function_pointer);
    put(Some(layout.num_counters), 4, u64::from(record.num_counters));
    if record.num_bitmap_bytes > 0 {
        put(layout.bitmap_ptr, pointer, record.bitmap_offset);
        put(
            layout.num_bitmap_bytes,
            4,
            u64::from(record.num_bitmap_bytes),
        );
    }
}

/// The oldest raw version for which metadata are encoded (LLVM 9). The limit is lower than needed: `-profile-correlate`
/// came only with raw version 8 (LLVM 14).
const OLDEST: u32 = 5;

struct Machine(Option<PointerWidth>, Option<Endian>);

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = match self.0 {
            Some(PointerWidth::Bits64) => "64-bit",
            Some(PointerWidth::Bits32) => "32-bit",
            None => "any width",
        };
        let endian = match self.1 {
            Some(Endian::Little) => "little-endian",
            Some(Endian::Big) => "big-endian",
            None => "any byte order",
        };
        write!(f, "{width} {endian}")
    }
}

/// A source of data records and names for raw profiles that do not contain them. The user of this crate implements the
/// trait, because only the user knows where the binaries are.
pub trait RawMetadataSource: fmt::Debug + Sync {
    /// Returns the metadata of the program that wrote a profile, or `None` to read the profile without metadata. The
    /// reader calls this for every raw profile, also for those that have data records.
    ///
    /// # Errors
    /// An error that says why the profile cannot be read: the program's binary is missing, does not match the profile,
    /// or has no metadata.
    fn metadata(&self, profile: &RawProfile<'_>) -> Result<Option<&RawMetadata>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instr::raw::{RawForm, RawImage, RawImageRecord, RawReadOptions, RawReader};
    use crate::instr::{InstrSource, Record};

    #[derive(Debug)]
    struct One(RawMetadata);

    impl RawMetadataSource for One {
        fn metadata(&self, profile: &RawProfile<'_>) -> Result<Option<&RawMetadata>> {
            Ok(profile.needs_correlation().then_some(&self.0))
        }
    }

    fn image(dialect: RawDialect) -> RawImage {
        let record = |name: &str, counts: &[u64]| RawImageRecord {
            name: name.into(),
            func_hash: FuncHash(counts.len() as u64),
            counts: counts.to_vec(),
            ..RawImageRecord::default()
        };
        let mut image = RawImage::new(dialect);
        image.records = vec![record("one", &[1, 2]), record("two", &[3])];
        image.form = RawForm {
            correlate: true,
            ..RawForm::default()
        };
        image
    }

    fn program(dialect: RawDialect) -> ProgramMetadata {
        let record = |name: &str, counter_offset, num_counters: u32| MetadataRecord {
            name_ref: NameRef::of(name.as_bytes()),
            func_hash: FuncHash(u64::from(num_counters)),
            counter_offset,
            num_counters,
            ..MetadataRecord::default()
        };
        ProgramMetadata {
            endian: Some(dialect.endian),
            width: Some(dialect.width),
            records: vec![record("one", 0, 2), record("two", 16, 1)],
            names: b"\x07\x00one\x01two".to_vec(),
        }
    }

    fn dialect(version: u32, endian: Endian, width: PointerWidth) -> RawDialect {
        RawDialect {
            endian,
            width,
            version,
            flags: profkit_abi::variant::IR,
        }
    }

    #[test]
    fn counters_find_their_functions_in_all_dialects() {
        for version in [8, 9, 10] {
            for endian in [Endian::Little, Endian::Big] {
                for width in [PointerWidth::Bits32, PointerWidth::Bits64] {
                    let dialect = dialect(version, endian, width);
                    let file = image(dialect).to_bytes().unwrap();
                    let profile = RawProfile::parse(&file).unwrap();
                    assert!(profile.needs_correlation());
                    let source =
                        One(
                            RawMetadata::new(&program(dialect), dialect, *profile.layout())
                                .unwrap(),
                        );
                    let options = RawReadOptions::default();
                    let mut reader = RawReader::parse_correlated(&file, &options, &source).unwrap();
                    let mut record = Record::default();
                    let mut seen = Vec::new();
                    while reader.read_record(&mut record).unwrap() {
                        seen.push((record.name.clone(), record.func_hash, record.counts.clone()));
                    }
                    let expected = [
                        (b"one".to_vec(), FuncHash(2), vec![1, 2]),
                        (b"two".to_vec(), FuncHash(1), vec![3]),
                    ];
                    assert_eq!(seen, expected, "{dialect:?}");
                }
            }
        }
    }

    #[test]
    fn metadata_of_another_program_are_refused() {
        let little = dialect(10, Endian::Little, PointerWidth::Bits64);
        let file = image(little).to_bytes().unwrap();
        let profile = RawProfile::parse(&file).unwrap();
        let big = dialect(10, Endian::Big, PointerWidth::Bits32);
        insta::assert_snapshot!(
            RawMetadata::new(&program(big), little, *profile.layout()).unwrap_err(),
            @"the binary is for another kind of machine than the profile: found 32-bit big-endian, expected 64-bit little-endian"
        );
        let old = dialect(4, Endian::Little, PointerWidth::Bits64);
        insta::assert_snapshot!(
            RawMetadata::new(&program(little), old, RecordLayout::for_dialect(old)).unwrap_err(),
            @"header of raw profile: raw profiles of this version cannot be completed with function records from a binary: found version 4, expected version 5 or later"
        );
        let mut far = program(little);
        far.records[1].counter_offset = 24;
        let metadata = RawMetadata::new(&far, little, *profile.layout()).unwrap();
        let joined = profile.clone().with_metadata(&metadata).unwrap();
        let error = joined
            .counter_bytes(&joined.record(1).unwrap())
            .unwrap_err();
        insta::assert_snapshot!(error, @"data record 1 (function 0xd54fb6db15f7a9b8), at offset 0x80: counters lie outside their section: found offset 24, expected 0 to 23");
        assert_eq!(
            error.detail_for_llvm(),
            Some("counter offset 24 is greater than the maximum counter offset 23")
        );
        assert!(error.hint().is_some());
        let other = image(dialect(8, Endian::Little, PointerWidth::Bits64))
            .to_bytes()
            .unwrap();
        let other = RawProfile::parse(&other).unwrap();
        insta::assert_snapshot!(other.with_metadata(&metadata).unwrap_err(), @"header of raw profile, at offset 0x0: the function records were read from the binary for raw profiles of another version, byte order or pointer width");
    }
}
