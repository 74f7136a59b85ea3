//! Reads and writes the header of a raw profile of any version.
use crate::bytes::{Bytes, Cursor, Endian};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::{raw, variant};

/// The pointer width of the program that wrote a raw profile. The magic number of the file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointerWidth {
    /// Pointers of the program have 4 bytes.
    Bits32,
    /// Pointers of the program have 8 bytes.
    Bits64,
}

impl PointerWidth {
    /// The number of bytes that a pointer has: 4 or 8.
    #[inline]
    pub fn bytes(self) -> usize {
        match self {
            PointerWidth::Bits32 => 4,
            PointerWidth::Bits64 => 8,
        }
    }

    /// The magic number of raw profiles with this pointer width.
    pub fn magic(self) -> u64 {
        match self {
            PointerWidth::Bits32 => raw::MAGIC_32,
            PointerWidth::Bits64 => raw::MAGIC_64,
        }
    }

    /// Returns `pointer` minus `base` as a signed number. The subtraction wraps around at the pointer width.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Dropping the high half is the point.
    pub fn difference(self, pointer: u64, base: u64) -> i64 {
        let difference = pointer.wrapping_sub(base);
        match self {
            PointerWidth::Bits32 => i64::from((difference as u32).cast_signed()),
            PointerWidth::Bits64 => difference.cast_signed(),
        }
    }
}

/// The properties of a raw profile on which the layout of its numbers depends. The first 16 bytes of the file state all
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawDialect {
    /// The byte order of all numbers in the file.
    pub endian: Endian,
    /// The pointer width of the program that wrote the file.
    pub width: PointerWidth,
    /// The version number, 1 to 11: the low 32 bits of the version word.
    pub version: u32,
    /// The variant flags ([`profkit_abi::variant`]): the upper bits of the version word.
    pub flags: u64,
}

impl RawDialect {
    /// Returns the version word of the header: the version number and the variant flags.
    pub fn version_word(self) -> u64 {
        self.flags | u64::from(self.version)
    }

    /// Whether all of the given variant flags are set.
    #[inline]
    pub fn has(self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    /// The size in bytes of one counter in the counter section: 1 with single-byte coverage, otherwise 8.
    #[inline]
    pub fn counter_len(self) -> usize {
        if self.has(variant::BYTE_COVERAGE) {
            1
        } else {
            8
        }
    }

    /// Reads the magic number and the version word.
    ///
    /// # Errors
    /// [`ErrorKind::BadMagic`] if the first 8 bytes are not the magic number of a raw profile; [`ErrorKind::BadHeader`]
    /// for less than 16 bytes; [`ErrorKind::UnsupportedVersion`] for versions other than 1 to 11.
    pub fn read(data: &[u8], offset: u64) -> Result<Self> {
        let dialect = RawDialect::of_any_version(data, offset)?;
        let version = dialect.version;
        if !(raw::VERSION_FIRST..=raw::VERSION_LAST).contains(&version) {
            return Err(Error::new(ErrorKind::UnsupportedVersion, "the version of the raw profile is not supported")
                .at(offset + 8)
                .within(Structure::Header).within(Structure::RawProfile)
                .found(version)
                .expected(format_args!("{} to {}", raw::VERSION_FIRST, raw::VERSION_LAST))
                .with_hint("the file is damaged, or LLVM 24 or later wrote it: a newer version of profkit may support it")
                .llvm_detail(version_mismatch(version, raw::VERSION_LLVM_22)));
        }
        Ok(dialect)
    }

    /// As [`read`](Self::read), but does not check the version: the tool of each LLVM release has its own answer to
    /// versions that it does not read.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for the version.
    pub fn of_any_version(data: &[u8], offset: u64) -> Result<Self> {
        let magic = data.first_chunk::<8>().copied();
        let known = magic.and_then(|bytes| {
            [Endian::Little, Endian::Big]
                .into_iter()
                .flat_map(|endian| {
                    [PointerWidth::Bits64, PointerWidth::Bits32].map(|width| (endian, width))
                })
                .find(|(endian, width)| endian.u64(bytes) == width.magic())
        });
        let Some((endian, width)) = known else {
            let found = data.get(..data.len().min(8)).unwrap_or_default();
            return Err(ErrorKind::BadMagic
                .error("the magic number is not that of a raw profile")
                .at(offset)
                .within(Structure::Header)
                .within(Structure::RawProfile)
                .found(format_args!("bytes {found:02x?}"))
                .expected("\"lprofr\" or \"lprofR\" between 0xff and 0x81, in either byte order"));
        };
        let mut cursor = Cursor::new(data, offset, endian);
        cursor.u64()?;
        let word = cursor
            .u64()
            .map_err(|_| too_short(offset, data.len(), 16))?;
        Ok(RawDialect {
            endian,
            width,
            version: u32::try_from(word & variant::VERSION_MASK).unwrap_or(u32::MAX),
            flags: word & variant::FLAGS_MASK,
        })
    }
}

/// Returns LLVM's detail text (two lines) for a raw profile of version `found`, as printed by a tool that reads only
/// version `expected`.
pub fn version_mismatch(found: u32, expected: u32) -> String {
    format!(
        "Profile uses raw profile format version = {found}; expected version = {expected}\n\
         PLEASE update this tool to version in the raw profile, or regenerate raw profile with expected version."
    )
}

/// The header of a raw profile. If the version does not have a field, the field is 0. The field names are LLVM's
/// (`INSTR_PROF_RAW_HEADER` in `InstrProfData.inc`). Fields that begin with `num` count elements in every version;
/// sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawHeader {
    /// The byte order, pointer width, version and flags of the file.
    pub dialect: RawDialect,
    /// The length of the header in bytes, 56 to 152. It includes the magic number and the version word.
    pub len: usize,
    /// `BinaryIdsSize`: the length of the build ids in bytes (from version 6).
    pub binary_ids_size: u64,
    /// `NumData`: the number of data records. Each function has one data record.
    pub num_data: u64,
    /// `PaddingBytesBeforeCounters`: the number of padding bytes before the counters (from LLVM 10, which wrote version
    /// 5).
    pub padding_before_counters: u64,
    /// `NumCounters`: the number of counters. Each has 8 bytes; with single-byte coverage each has 1 byte.
    pub num_counters: u64,
    /// `PaddingBytesAfterCounters`: the number of padding bytes after the counters (from LLVM 10, which wrote version
    /// 5).
    pub padding_after_counters: u64,
    /// `NumBitmapBytes`: the length of the MC/DC bitmaps in bytes (from version 9).
    pub num_bitmap_bytes: u64,
    /// `PaddingBytesAfterBitmapBytes`: the number of padding bytes after the MC/DC bitmaps (from version 9).
    pub padding_after_bitmap: u64,
    /// `NumUniformCounters`: the number of uniform counters, which always have 8 bytes each (version 11).
    pub num_uniform_counters: u64,
    /// `PaddingBytesAfterUniformCounters`: the number of padding bytes after the uniform counters (version 11).
    pub padding_after_uniform_counters: u64,
    /// `UniformCountersDelta`: the address of the uniform counters minus the address of the data records (version 11).
    /// It is 0 if the file has no uniform counters.
    pub uniform_counters_delta: u64,
    /// `NamesSize`: the length of the function names in bytes.
    pub names_size: u64,
    /// `CountersDelta`. Up to version 7 it is the address of the counters. From version 8 it is the address of the
    /// counters minus the address of the data records.
    pub counters_delta: u64,
    /// `BitmapDelta`: the address of the bitmaps minus the address of the data records (from version 9). If the file
    /// has no bitmaps, the number has no meaning.
    pub bitmap_delta: u64,
    /// `NamesDelta`: the address of the function names. Only versions 1 and 2 need it.
    pub names_delta: u64,
    /// `NumVTables`: the number of vtable records (from version 10).
    pub num_vtables: u64,
    /// `VNamesSize`: the length of the vtable names in bytes (from version 10).
    pub vnames_size: u64,
    /// `ValueDataSize`: the length of the value data in bytes (versions 2 and 3).
    pub value_data_size: u64,
    /// `ValueDataDelta`: the address of the value data (versions 2 and 3).
    pub value_data_delta: u64,
    /// `ValueKindLast`: the greatest value kind for which data records have value sites (from version 2).
    pub value_kind_last: u64,
}

/// The number of words in the version 5 header of LLVM 9. LLVM 10 added two words without a new version number.
const WORDS_V5_SHORT: usize = 8;
const WORDS_V5_LONG: usize = 10;

#[derive(Clone, Copy, Debug)]
enum Field {
    BinaryIdsSize,
    NumData,
    PaddingBeforeCounters,
    NumCounters,
    PaddingAfterCounters,
    NumBitmapBytes,
    PaddingAfterBitmap,
    NumUniformCounters,
    PaddingAfterUniformCounters,
    UniformCountersDelta,
    NamesSize,
    CountersDelta,
    BitmapDelta,
    NamesDelta,
    NumVTables,
    VNamesSize,
    ValueDataSize,
    ValueDataDelta,
    ValueKindLast,
}

use Field as F;

impl Field {
    fn name(self) -> &'static str {
        match self {
            F::BinaryIdsSize => "BinaryIdsSize",
            F::NumData => "NumData",
            F::PaddingBeforeCounters => "PaddingBytesBeforeCounters",
            F::NumCounters => "NumCounters",
            F::PaddingAfterCounters => "PaddingBytesAfterCounters",
            F::NumBitmapBytes => "NumBitmapBytes",
            F::PaddingAfterBitmap => "PaddingBytesAfterBitmapBytes",
            F::NumUniformCounters => "NumUniformCounters",
            F::PaddingAfterUniformCounters => "PaddingBytesAfterUniformCounters",
            F::UniformCountersDelta => "UniformCountersDelta",
            F::NamesSize => "NamesSize",
            F::CountersDelta => "CountersDelta",
            F::BitmapDelta => "BitmapDelta",
            F::NamesDelta => "NamesDelta",
            F::NumVTables => "NumVTables",
            F::VNamesSize => "VNamesSize",
            F::ValueDataSize => "ValueDataSize",
            F::ValueDataDelta => "ValueDataDelta",
            F::ValueKindLast => "ValueKindLast",
        }
    }
}

const V1: &[Field] = &[
    F::NumData,
    F::NumCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
];
const V2: &[Field] = &[
    F::NumData,
    F::NumCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
    F::ValueKindLast,
    F::ValueDataSize,
    F::ValueDataDelta,
];
const V4: &[Field] = &[
    F::NumData,
    F::NumCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
    F::ValueKindLast,
];
const V5_LONG: &[Field] = &[
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
    F::ValueKindLast,
];
const V6: &[Field] = &[
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
    F::ValueKindLast,
    F::BinaryIdsSize,
];
const V7: &[Field] = &[
    F::BinaryIdsSize,
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NamesSize,
    F::CountersDelta,
    F::NamesDelta,
    F::ValueKindLast,
];
const V9: &[Field] = &[
    F::BinaryIdsSize,
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NumBitmapBytes,
    F::PaddingAfterBitmap,
    F::NamesSize,
    F::CountersDelta,
    F::BitmapDelta,
    F::NamesDelta,
    F::ValueKindLast,
];
const V10: &[Field] = &[
    F::BinaryIdsSize,
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NumBitmapBytes,
    F::PaddingAfterBitmap,
    F::NamesSize,
    F::CountersDelta,
    F::BitmapDelta,
    F::NamesDelta,
    F::NumVTables,
    F::VNamesSize,
    F::ValueKindLast,
];
const V11: &[Field] = &[
    F::BinaryIdsSize,
    F::NumData,
    F::PaddingBeforeCounters,
    F::NumCounters,
    F::PaddingAfterCounters,
    F::NumBitmapBytes,
    F::PaddingAfterBitmap,
    F::NumUniformCounters,
    F::PaddingAfterUniformCounters,
    F::UniformCountersDelta,
    F::NamesSize,
    F::CountersDelta,
    F::BitmapDelta,
    F::NamesDelta,
    F::NumVTables,
    F::VNamesSize,
    F::ValueKindLast,
];

/// Returns the fields after the magic number and the version word. Returns `None` if the version does not exist or, for
/// version 5, the number of words is wrong.
fn fields(version: u32, v5_words: usize) -> Option<&'static [Field]> {
    Some(match version {
        1 => V1,
        2 | 3 => V2,
        4 => V4,
        5 if v5_words == WORDS_V5_SHORT => V4,
        5 => V5_LONG,
        6 => V6,
        7 | 8 => V7,
        9 => V9,
        10 => V10,
        11 => V11,
        _ => return None,
    })
}

impl RawHeader {
    /// Returns a header whose fields are all 0. Its length is that of the given version; for version 5 it is the length
    /// since LLVM 10. Returns `None` if the version does not exist.
    pub fn empty(dialect: RawDialect) -> Option<Self> {
        let fields = fields(dialect.version, WORDS_V5_LONG)?;
        Some(Self::zero(dialect, 8 * (2 + fields.len())))
    }

    fn zero(dialect: RawDialect, len: usize) -> Self {
        RawHeader {
            dialect,
            len,
            binary_ids_size: 0,
            num_data: 0,
            padding_before_counters: 0,
            num_counters: 0,
            padding_after_counters: 0,
            num_bitmap_bytes: 0,
            padding_after_bitmap: 0,
            num_uniform_counters: 0,
            padding_after_uniform_counters: 0,
            uniform_counters_delta: 0,
            names_size: 0,
            counters_delta: 0,
            bitmap_delta: 0,
            names_delta: 0,
            num_vtables: 0,
            vnames_size: 0,
            value_data_size: 0,
            value_data_delta: 0,
            value_kind_last: 0,
        }
    }

    /// Changes a version 5 header to the shorter form of LLVM 9, which has no fields for padding.
    #[must_use]
    pub fn as_short_v5(mut self) -> Self {
        if self.dialect.version == 5 {
            self.len = 8 * WORDS_V5_SHORT;
        }
        self
    }

    /// Checks that a file has room for the header of raw version `version`. LLVM's reader first makes this check for
    /// the one version that it supports, and only then looks at the version of the file.
    ///
    /// # Errors
    /// [`ErrorKind::BadHeader`] if `data` is shorter than that header.
    pub fn check_room(data: &[u8], version: u32) -> Result<()> {
        let words = fields(version, WORDS_V5_LONG).map_or(2, |fields| 2 + fields.len());
        if data.len() < 8 * words {
            return Err(too_short(0, data.len(), 8 * words));
        }
        Ok(())
    }

    /// Reads the raw header at the start of `data`. `offset` is the offset of `data` in the file.
    ///
    /// # Errors
    /// The errors of [`RawDialect::read`]. Also [`ErrorKind::BadHeader`] if the data are shorter than the header, or if
    /// a header of version 5 has neither of the two forms of that version.
    pub fn read(data: &[u8], offset: u64) -> Result<Self> {
        let dialect = RawDialect::read(data, offset)?;
        let v5_words = if dialect.version == 5 {
            v5_words(data, offset, dialect.endian)?
        } else {
            0
        };
        let fields = fields(dialect.version, v5_words).unwrap_or_default();
        let mut header = Self::zero(dialect, 8 * (2 + fields.len()));
        if data.len() < header.len {
            return Err(too_short(offset, data.len(), header.len));
        }
        let mut cursor = Cursor::new(data, offset, dialect.endian);
        cursor.take(16)?;
        for &field in fields {
            *header.field_mut(field) = cursor.u64()?;
        }
        Ok(header)
    }

    /// Appends the header to `out`. The header takes [`len`](Self::len) bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let endian = self.dialect.endian;
        let mut put = |value: u64| out.extend_from_slice(&endian.u64_bytes(value));
        put(self.dialect.width.magic());
        put(self.dialect.version_word());
        let mut header = *self;
        for &field in fields(self.dialect.version, self.len / 8).unwrap_or_default() {
            put(*header.field_mut(field));
        }
    }

    /// Returns all words of the header in order. Each has LLVM's name, its offset in the file and its value. `offset`
    /// is the offset of the header in the file.
    pub fn named_fields(&self, offset: u64) -> Vec<(&'static str, u64, u64)> {
        let mut header = *self;
        let words = [
            ("Magic", self.dialect.width.magic()),
            ("Version", self.dialect.version_word()),
        ];
        let fields = fields(self.dialect.version, self.len / 8).unwrap_or_default();
        let fields = fields
            .iter()
            .map(|&field| (field.name(), *header.field_mut(field)));
        (0u64..)
            .zip(words.into_iter().chain(fields))
            .map(|(index, (name, value))| (name, offset + 8 * index, value))
            .collect()
    }

    /// Whether this header has fields for the padding around the counters.
    pub fn has_counter_padding(&self) -> bool {
        match self.dialect.version {
            5 => self.len == 8 * WORDS_V5_LONG,
            version => version > 5,
        }
    }

    /// Whether each build id is padded to a multiple of 8 bytes, as it is from version 8 on. In versions 6 and 7 a
    /// build id has no padding. Files of LLVM 13 show this: after a build id of 20 bytes, the next data begin at an odd
    /// multiple of 4.
    pub fn pads_binary_ids(&self) -> bool {
        self.dialect.version >= 8
    }

    fn field_mut(&mut self, field: Field) -> &mut u64 {
        match field {
            F::BinaryIdsSize => &mut self.binary_ids_size,
            F::NumData => &mut self.num_data,
            F::PaddingBeforeCounters => &mut self.padding_before_counters,
            F::NumCounters => &mut self.num_counters,
            F::PaddingAfterCounters => &mut self.padding_after_counters,
            F::NumBitmapBytes => &mut self.num_bitmap_bytes,
            F::PaddingAfterBitmap => &mut self.padding_after_bitmap,
            F::NumUniformCounters => &mut self.num_uniform_counters,
            F::PaddingAfterUniformCounters => &mut self.padding_after_uniform_counters,
            F::UniformCountersDelta => &mut self.uniform_counters_delta,
            F::NamesSize => &mut self.names_size,
            F::CountersDelta => &mut self.counters_delta,
            F::BitmapDelta => &mut self.bitmap_delta,
            F::NamesDelta => &mut self.names_delta,
            F::NumVTables => &mut self.num_vtables,
            F::VNamesSize => &mut self.vnames_size,
            F::ValueDataSize => &mut self.value_data_size,
            F::ValueDataDelta => &mut self.value_data_delta,
            F::ValueKindLast => &mut self.value_kind_last,
        }
    }
}

/// Finds out which of the two forms a version 5 header has, and returns its number of words. In the form of LLVM 9, the
/// word at index 7 is ValueKindLast, which is 1. In the form of LLVM 10 to 12, ValueKindLast is at index 9, and the
/// word at index 7 is the address of the counters. This address is 0 only if there are no counters, so a small number
/// at index 7 means the form of LLVM 9.
fn v5_words(data: &[u8], offset: u64, endian: Endian) -> Result<usize> {
    let word = |index: usize| {
        let bytes = data.get(8 * index..)?.first_chunk::<8>()?;
        Some(endian.u64(*bytes))
    };
    let is_kind = |value: Option<u64>| value.is_some_and(|value| value <= 2);
    let empty_long = word(2) == Some(0) && word(7) == Some(0) && word(9) == Some(1);
    if is_kind(word(7)) && !empty_long {
        return Ok(WORDS_V5_SHORT);
    }
    if is_kind(word(9)) {
        return Ok(WORDS_V5_LONG);
    }
    if data.len() < 8 * WORDS_V5_LONG {
        return Err(too_short(offset, data.len(), 8 * WORDS_V5_LONG));
    }
    Err(ErrorKind::BadHeader
        .error("the header has neither of the two forms of version 5")
        .at(offset + 8 * 7)
        .within(Structure::Header)
        .within(Structure::RawProfile)
        .found(format_args!(
            "word 7 {:#x} and word 9 {:#x}",
            word(7).unwrap_or(0),
            word(9).unwrap_or(0)
        ))
        .expected("a value kind (0 to 2) in word 7 or word 9"))
}

#[cold]
fn too_short(offset: u64, found: usize, expected: usize) -> Error {
    ErrorKind::BadHeader
        .error("the file ends within the header")
        .because_data_end()
        .at(offset)
        .within(Structure::Header)
        .within(Structure::RawProfile)
        .found(Bytes(found))
        .expected(Bytes(expected))
}
