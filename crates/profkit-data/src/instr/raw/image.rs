//! The owned model of one raw profile: the data that a program and its run-time library hold when they dump the
//! profile.
use super::header::RawDialect;
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::ValueData;

/// The contents of one raw profile to be written. All fields can be set freely; the writer rejects contents that the
/// version cannot hold.
///
/// ```
/// use profkit_data::bytes::Endian;
/// use profkit_data::instr::raw::{
///     PointerWidth, RawDialect, RawImage, RawImageRecord, RawReader, RawWriteOptions, write,
/// };
/// use profkit_data::instr::{InstrSource, Record};
///
/// let dialect = RawDialect { endian: Endian::Little, width: PointerWidth::Bits64, version: 10, flags: 0 };
/// let mut image = RawImage::new(dialect);
/// image.records.push(RawImageRecord {
///     name: b"main".to_vec(),
///     counts: vec![3, 1],
///     ..RawImageRecord::default()
/// });
/// let mut file = Vec::new();
/// write(&image, &RawWriteOptions::new(), &mut file)?;
/// let mut record = Record::default();
/// assert!(RawReader::parse(&file)?.read_record(&mut record)?);
/// assert_eq!(record.counts, [3, 1]);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawImage {
    /// Byte order, pointer width, version and flags. The flags decide how counters are stored: with `BYTE_COVERAGE` a
    /// counter is a byte, with `TEMPORAL` a time stamp stands before the counters.
    pub dialect: RawDialect,
    /// The functions, in the order of their data records.
    pub records: Vec<RawImageRecord>,
    /// The vtables (from version 10).
    pub vtables: Vec<RawImageVTable>,
    /// Build ids (from version 6).
    pub binary_ids: Vec<BuildId>,
    /// How the names are stored, and the choices that a version leaves for the layout of the file.
    pub form: RawForm,
}

/// One function of a [`RawImage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageRecord {
    /// The PGO name. From version 3, names must not contain the byte 0x01.
    pub name: Vec<u8>,
    /// The hash of the control flow.
    pub func_hash: FuncHash,
    /// The counters, without the time stamp. For single-byte coverage, 0 means not covered and any other number
    /// covered.
    pub counts: Vec<u64>,
    /// The time stamp of the function's first call; 0 if it was never called. Only temporal profiles have it.
    pub time_stamp: u64,
    /// The MC/DC bitmap (from version 9).
    pub bitmap: Vec<u8>,
    /// The address of the function before the slide is added (from version 2); 0 if the program never takes its
    /// address.
    pub address: u64,
    /// The value profile (from version 2). Call targets and vtables are addresses before the slide is added.
    pub values: ValueData,
    /// The uniform counters: none, or one for each counter (version 11).
    pub uniform_counts: Vec<u64>,
    /// `OffloadDeviceWaveSize` (version 11).
    pub wave_size: u16,
}

/// One vtable of a [`RawImage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageVTable {
    /// The PGO name.
    pub name: Vec<u8>,
    /// The address before the slide is added.
    pub address: u64,
    /// The length in bytes.
    pub size: u32,
}

impl RawImageVTable {
    /// The hash of the name.
    pub fn name_hash(&self) -> NameRef {
        NameRef::of(&self.name)
    }
}

/// Choices that change the bytes of a file but not what the profile says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawForm {
    /// Whether to compress names with zlib (from version 3).
    pub compress_names: bool,
    /// The number of names in one chunk (from version 3); 0 puts all names into one chunk. Real files have one chunk
    /// per translation unit.
    pub names_per_chunk: usize,
    /// A number that is added to every address: the address to which the system moved the program in this run.
    pub slide: u64,
    /// Places the counters on pages of this size, as Darwin's continuous mode does (version 5 since LLVM 10).
    pub page_size: Option<u64>,
    /// Whether to leave out records, names and value data, as in programs built with `-profile-correlate`.
    pub correlate: bool,
    /// Whether to write the shorter version 5 header of LLVM 9.
    pub short_v5_header: bool,
    /// Whether counter pointers are relative in versions 6 and 7, as in snapshots of LLVM 13 from mid-2021.
    pub relative_snapshot: bool,
}

impl RawImage {
    /// Makes a profile without functions.
    pub fn new(dialect: RawDialect) -> Self {
        RawImage {
            dialect,
            records: Vec::new(),
            vtables: Vec::new(),
            binary_ids: Vec::new(),
            form: RawForm::default(),
        }
    }
}
