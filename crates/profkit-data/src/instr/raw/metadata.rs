//! Data records and names that do not stand in the raw file: those of a program built with `-profile-correlate`, whose
//! raw profiles hold counters only. docs/formats/correlation.md says where they are found.
use super::header::{PointerWidth, RawDialect};
use super::layout::RecordLayout;
use super::profile::RawProfile;
use crate::bytes::Endian;
use crate::ids::{FuncHash, NameRef};
use crate::{Error, ErrorKind, Result, Structure};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// One function of a program, as its binary or debug info knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataRecord {
    /// Hash of the PGO name.
    pub name_ref: NameRef,
    /// Control-flow hash.
    pub func_hash: FuncHash,
    /// Byte offset of its counters in the counter section.
    pub counter_offset: u64,
    /// Address of the function in the binary; 0 if it is not known.
    pub function_pointer: u64,
    /// How many counters it has.
    pub num_counters: u32,
}

/// The functions of a program, as its binary or debug info knows them, apart from any raw version.
///
/// MC/DC bitmaps and value sites are not among them: LLVM 22 correlates counters only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramMetadata {
    /// Byte order of the program; `None` fits both.
    pub endian: Option<Endian>,
    /// Pointer width of the program; `None` fits both.
    pub width: Option<PointerWidth>,
    /// The functions, in the order in which they were found.
    pub records: Vec<MetadataRecord>,
    /// Their names, as a names blob.
    pub names: Vec<u8>,
}

/// [`ProgramMetadata`] in the form that the raw profiles of one dialect would have held, to be joined to them with
/// [`RawProfile::with_metadata`]. Its counter pointers are offsets in the counter section.
#[derive(Clone, Debug)]
pub struct RawMetadata {
    dialect: RawDialect,
    layout: RecordLayout,
    pub(super) data: Vec<u8>,
    pub(super) names: Vec<u8>,
    id: u64,
}

impl RawMetadata {
    /// Encodes a program's functions as the data records that raw profiles of a dialect lack.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] for raw versions before 5, which no compiler that correlates wrote;
    /// [`ErrorKind::Malformed`] if the program is for a machine of another byte order or pointer width.
    pub fn new(
        program: &ProgramMetadata,
        dialect: RawDialect,
        layout: RecordLayout,
    ) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        if dialect.version < OLDEST {
            return Err(Error::new(
                ErrorKind::UnsupportedVersion,
                "raw profiles of this version always have their records",
            )
            .within(Structure::Header)
            .within(Structure::RawProfile)
            .found(format_args!("version {}", dialect.version))
            .expected(format_args!("version {OLDEST} or later")));
        }
        let fits = program.endian.is_none_or(|endian| endian == dialect.endian)
            && program.width.is_none_or(|width| width == dialect.width);
        if !fits {
            return Err(Error::new(
                ErrorKind::CannotCorrelate,
                "the binary is for another kind of machine than the profile",
            )
            .found(Machine(program.width, program.endian))
            .expected(Machine(Some(dialect.width), Some(dialect.endian)))
            .with_hint("give the binary that wrote this profile"));
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

    /// A number that no other metadata of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many functions there are.
    pub fn record_count(&self) -> usize {
        self.data.len() / self.layout.stride
    }

    /// Whether records of a profile would have this form.
    pub fn fits(&self, profile: &RawProfile<'_>) -> bool {
        let (mine, theirs) = (self.dialect, profile.dialect());
        (mine.endian, mine.width, mine.version) == (theirs.endian, theirs.width, theirs.version)
            && self.layout == *profile.layout()
    }
}

/// Writes what a program's metadata say of a function into the bytes of a record, which are zero before.
fn encode_metadata(
    layout: &RecordLayout,
    bytes: &mut [u8],
    dialect: RawDialect,
    record: &MetadataRecord,
) {
    let little = dialect.endian == Endian::Little;
    // The low `len` bytes of a number.
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
}

/// The raw version of LLVM 9: correlation came with 8 (LLVM 14).
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

/// Where the metadata of raw profiles come from that have none of their own. The command implements it: it knows which
/// binaries there are.
pub trait RawMetadataSource: fmt::Debug + Sync {
    /// The metadata to read a profile with; `None` to read it as it is. Asked for every raw profile, also for those that
    /// have records of their own.
    ///
    /// # Errors
    /// Why the profile cannot be read: its binary is missing, is another one, or has no metadata.
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
            function_pointer: 0,
            num_counters,
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
            @"raw profiles of this version always have their records in header of raw profile: found version 4, expected version 5 or later"
        );
        let mut far = program(little);
        far.records[1].counter_offset = 24;
        let metadata = RawMetadata::new(&far, little, *profile.layout()).unwrap();
        let joined = profile.clone().with_metadata(&metadata).unwrap();
        let error = joined
            .counter_bytes(&joined.record(1).unwrap())
            .unwrap_err();
        insta::assert_snapshot!(error, @"counters lie outside their section in data record 1 (function 0xd54fb6db15f7a9b8) at offset 0x80: found offset 24, expected 0 to 23");
        assert_eq!(
            error.detail_for_llvm(),
            Some("counter offset 24 is greater than the maximum counter offset 23")
        );
        assert!(error.hint().is_some());
        let other = image(dialect(8, Endian::Little, PointerWidth::Bits64))
            .to_bytes()
            .unwrap();
        let other = RawProfile::parse(&other).unwrap();
        insta::assert_snapshot!(other.with_metadata(&metadata).unwrap_err(), @"the metadata are for raw profiles of another dialect in header of raw profile at offset 0x0");
    }
}
