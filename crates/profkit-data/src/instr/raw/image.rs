//! A raw profile in memory, as input of the writer. This form of the profile has the data that a program and its
//! run-time library have when they write the profile.
use super::header::RawDialect;
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::ValueData;

/// The contents of a raw profile to write. All fields can be set freely. The writer rejects contents that the version
/// cannot hold.
///
/// ```
/// use profkit_data::bytes::Endian;
/// use profkit_data::instr::raw::{
///     PointerWidth, RawDialect, RawImage, RawImageRecord, RawReader, write,
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
/// write(&image, &mut file)?;
/// let mut record = Record::default();
/// assert!(RawReader::parse(&file)?.read_record(&mut record)?);
/// assert_eq!(record.counts, [3, 1]);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawImage {
    /// The byte order, pointer width, version and flags of the file. The flags decide how counters are stored: with
    /// `BYTE_COVERAGE` a counter is one byte, with `TEMPORAL` a time stamp precedes the counters of each function.
    pub dialect: RawDialect,
    /// The functions, in the order of their data records.
    pub records: Vec<RawImageRecord>,
    /// The vtables of the program (from version 10).
    pub vtables: Vec<RawImageVTable>,
    /// The build ids of the program (from version 6).
    pub binary_ids: Vec<BuildId>,
    /// How the names are stored, and other choices that the format leaves to the writer.
    pub form: RawForm,
}

/// One function of a raw profile in memory ([`RawImage`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageRecord {
    /// The function's PGO name. From version 3, names must not contain the byte 0x01.
    pub name: Vec<u8>,
    /// The function hash: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// The counters, without the time stamp. With single-byte coverage, 0 means that the code did not run and any other
    /// number that it ran.
    pub counts: Vec<u64>,
    /// The time stamp of the function's first call, or 0 if it was never called. Only temporal profiles store time
    /// stamps.
    pub time_stamp: u64,
    /// The bytes of the function's MC/DC bitmap (from version 9).
    pub bitmap: Vec<u8>,
    /// The address of the function in the program as it was linked, before the system moves the program in memory (from
    /// version 2). It is 0 if the program never takes the function's address.
    pub address: u64,
    /// The function's value profile (from version 2). The values of call targets and vtables are addresses in the
    /// program as it was linked.
    pub values: ValueData,
    /// The uniform counters (version 11). The list is empty or has one number for each counter.
    pub uniform_counts: Vec<u64>,
    /// `OffloadDeviceWaveSize`: the number of threads in a wave of the GPU (version 11).
    pub wave_size: u16,
}

/// One vtable of a raw profile in memory ([`RawImage`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawImageVTable {
    /// The vtable's PGO name.
    pub name: Vec<u8>,
    /// The address of the vtable in the program as it was linked, before the system moves the program in memory.
    pub address: u64,
    /// The length of the vtable in bytes.
    pub size: u32,
}

impl RawImageVTable {
    /// The hash of the vtable's name.
    pub fn name_hash(&self) -> NameRef {
        NameRef::of(&self.name)
    }
}

/// Choices that change the bytes of a raw file but not the profile that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawForm {
    /// Whether to compress the names with zlib (from version 3).
    pub compress_names: bool,
    /// The number of names in one chunk of the names section (from version 3). With 0, all names are in one chunk. Real
    /// files have one chunk per translation unit.
    pub names_per_chunk: usize,
    /// The slide, which is added to every address: the distance by which the system moved the program in memory for
    /// this run.
    pub slide: u64,
    /// The page size in bytes. If it is set, the counters begin and end at page boundaries, as in Darwin's continuous
    /// mode (version 5 since LLVM 10). With `None`, the counters have no such alignment.
    pub page_size: Option<u64>,
    /// Whether to leave out data records, names and value data, as programs built with `-profile-correlate` do.
    pub correlate: bool,
    /// Whether to write the shorter header of LLVM 9 in a file of version 5.
    pub short_v5_header: bool,
    /// Whether, in versions 6 and 7, counter pointers are written relative to their data record, as snapshots of LLVM
    /// 13 from mid-2021 do.
    pub relative_snapshot: bool,
}

impl RawImage {
    /// Makes a raw profile without functions.
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
