//! The owned model of one raw profile: what a program and its run-time library hold when they dump it.
use super::header::RawDialect;
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::ValueData;

/// One raw profile to be written. All fields are free to set; what a version cannot hold is refused when writing.
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
    /// Byte order, pointer width, version and flags. The flags decide how counters are laid out:
    /// `BYTE_COVERAGE` makes them bytes, `TEMPORAL` puts a time stamp before them.
    pub dialect: RawDialect,
    /// The functions, in the order of their data records.
    pub records: Vec<RawImageRecord>,
    /// The vtables (from version 10).
    pub vtables: Vec<RawImageVTable>,
    /// Build ids (from version 6).
    pub binary_ids: Vec<BuildId>,
    /// How names are stored, and how the file is laid out where a version leaves a choice.
    pub form: RawForm,
}

/// One function of a [`RawImage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageRecord {
    /// PGO name. Names must not hold byte 0x01 (from version 3).
    pub name: Vec<u8>,
    /// Control-flow hash.
    pub func_hash: FuncHash,
    /// Counters without the time stamp. For single-byte coverage: 0 not covered, anything else covered.
    pub counts: Vec<u64>,
    /// When the function was first called; 0 never. Used in temporal profiles.
    pub time_stamp: u64,
    /// MC/DC bitmap (from version 9).
    pub bitmap: Vec<u8>,
    /// The function's address before sliding (from version 2); 0 if its address is never taken.
    pub address: u64,
    /// Value profile (from version 2). Call targets and vtables are addresses before sliding.
    pub values: ValueData,
    /// Uniform counters, none or as many as `counts` (version 11).
    pub uniform_counts: Vec<u64>,
    /// `OffloadDeviceWaveSize` (version 11).
    pub wave_size: u16,
}

/// One vtable of a [`RawImage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageVTable {
    /// PGO name.
    pub name: Vec<u8>,
    /// Address before sliding.
    pub address: u64,
    /// Length in bytes.
    pub size: u32,
}

impl RawImageVTable {
    /// Hash of the name.
    pub fn name_hash(&self) -> NameRef {
        NameRef::of(&self.name)
    }
}

/// Choices that do not change what a profile says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawForm {
    /// Whether names are zlib streams (from version 3).
    pub compress_names: bool,
    /// How many names make a chunk, as a translation unit does; 0: all in one (from version 3).
    pub names_per_chunk: usize,
    /// Added to every address: where the address space of the run began.
    pub slide: u64,
    /// Puts the counters on pages of this size, as Darwin's continuous mode does (from version 5 of LLVM 10).
    pub page_size: Option<u64>,
    /// Leaves out records, names and value data, as a build with `-profile-correlate` does.
    pub correlate: bool,
    /// Version 5: the shorter header of LLVM 9.
    pub short_v5_header: bool,
    /// Versions 6 and 7: relative counter pointers, as in mid-2021 snapshots of LLVM 13.
    pub relative_snapshot: bool,
}

impl RawImage {
    /// A profile without functions.
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
