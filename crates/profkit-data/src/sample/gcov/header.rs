use crate::bytes::{Cursor, Endian};
use crate::{ErrorKind, Result, Structure};
use std::fmt;

/// The magic number of GCC's profile files, "gcda" (`GCOV_DATA_MAGIC`).
pub(super) const MAGIC: u32 = 0x6763_6461;
/// The tag of the summary section, which only version 3 has (`GCOV_TAG_AFDO_SUMMARY`).
pub(super) const TAG_SUMMARY: u32 = 0xa800_0000;
/// The tag of the section of names (`GCOV_TAG_AFDO_FILE_NAMES`).
pub(super) const TAG_NAMES: u32 = 0xaa00_0000;
/// The tag of the section of functions (`GCOV_TAG_AFDO_FUNCTION`).
pub(super) const TAG_FUNCTIONS: u32 = 0xac00_0000;
/// The tag of the section of modules (`GCOV_TAG_MODULE_GROUPING`).
pub(super) const TAG_MODULES: u32 = 0xae00_0000;
/// The tag of the section of working sets (`GCOV_TAG_AFDO_WORKING_SET`).
pub(super) const TAG_WORKING_SETS: u32 = 0xaf00_0000;
/// GCC's number for the value kind "target of an indirect call" (`HIST_TYPE_INDIR_CALL_TOPN`). All call targets in a
/// file have this kind.
pub(super) const INDIRECT_CALLS: u32 = 7;
/// The number of working sets in a file (`NUM_GCOV_WORKING_SETS`).
pub(super) const WORKING_SETS: usize = 128;
/// The index that a file states in place of the index of a source file if a name has no source file.
pub(super) const NO_FILE: u32 = u32::MAX;

/// The version of the format of GCC's sample profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GcovVersion {
    /// Version `406p`, which Google's GCC 4.6 used.
    Gcc46,
    /// Version `407*`, which Google's GCC 4.7 used. LLVM reads only this version.
    Gcc47,
    /// Version 1, which GCC 5 to 11 read.
    V1,
    /// Version 2, which GCC 12 to 15 read.
    V2,
    /// Version 3, which GCC 16 reads.
    V3,
}

impl GcovVersion {
    /// Each version, and the number that represents this version in the header of a file.
    const WORDS: [(Self, u32); 5] = [
        (Self::Gcc46, 0x3430_3670),
        (Self::Gcc47, 0x3430_372a),
        (Self::V1, 1),
        (Self::V2, 2),
        (Self::V3, 3),
    ];

    /// The number that represents this version in the header of a file.
    pub fn word(self) -> u32 {
        let found = Self::WORDS.iter().find(|(version, _)| *version == self);
        found.map_or(0, |(_, word)| *word)
    }

    /// Returns the version that this number represents in the header of a file; `None` if there is none.
    pub fn of_word(word: u32) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(version, _)| *version)
    }

    /// The only version that LLVM's tools read.
    pub const OF_LLVM: Self = Self::Gcc47;

    /// Returns the version that a release of GCC reads; `None` before GCC 5, which is the first release that reads
    /// sample profiles.
    pub fn of_gcc(release: u32) -> Option<Self> {
        match release {
            0..=4 => None,
            5..=11 => Some(Self::V1),
            12..=15 => Some(Self::V2),
            _ => Some(Self::V3),
        }
    }

    /// Whether this version states the length of a string in words. Zero bytes then fill the last word of the string.
    pub(super) fn pads_strings(self) -> bool {
        self < Self::V2
    }
}

impl fmt::Display for GcovVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gcc46 => "406p",
            Self::Gcc47 => "407*",
            Self::V1 => "1",
            Self::V2 => "2",
            Self::V3 => "3",
        })
    }
}

/// A discriminator with the fields of GCC 16: of a line table, or of a file of version 3, which has its lower 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GcovDiscriminator(pub u32);

impl GcovDiscriminator {
    /// The discriminator of the statement in the source code: bits 0 to 7.
    pub fn base(self) -> u32 {
        self.0 & 0xff
    }

    /// The multiplicity: the number of copies of the statement that one sample represents. It is in bits 8 to 14, and
    /// is 0 if the statement was not duplicated.
    pub fn multiplicity(self) -> u32 {
        self.0 >> 8 & 0x7f
    }

    /// The number of the copy of the statement, from bit 15 on. A line table has 11 bits of it, a file only the lowest.
    pub fn copy(self) -> u32 {
        self.0 >> 15
    }

    /// The discriminator with the base and the number of the copy.
    pub fn without_multiplicity(self) -> u32 {
        self.0 & !(0x7f << 8)
    }
}

/// Whether a file begins like a sample profile of GCC in a known version. The version must be checked too, because
/// coverage files (`.gcda`) have the same magic number.
pub fn has_magic(data: &[u8]) -> bool {
    read_header(data).is_ok()
}

/// Reads the magic number and the version. The byte order is known from the magic number.
pub(super) fn read_header(data: &[u8]) -> Result<(Cursor<'_>, GcovVersion)> {
    let endian = match data.first_chunk::<4>() {
        Some(b"gcda") => Endian::Big,
        _ => Endian::Little,
    };
    let mut cursor = Cursor::new(data, 0, endian);
    let read = |cursor: &mut Cursor<'_>| -> Result<GcovVersion> {
        let magic = cursor.u32()?;
        if magic != MAGIC {
            return Err(ErrorKind::UnrecognizedFormat
                .error("this is not a sample profile of GCC")
                .at(0)
                .found(format_args!("{magic:#010x}"))
                .expected("the magic \"adcg\" or \"gcda\""));
        }
        let at = cursor.offset();
        let word = cursor.u32()?;
        let version = GcovVersion::of_word(word).ok_or_else(|| {
            ErrorKind::UnsupportedVersion.error("the version of GCC's sample profile is unknown")
            .at(at)
            .found(format_args!("{word:#x}"))
            .expected("1, 2, 3, 407* or 406p")
            .with_hint("a file that gcc -fprofile-generate wrote (.gcda) is not a sample profile; gcov reads it")
        })?;
        cursor.u32()?;
        Ok(version)
    };
    let version = read(&mut cursor).map_err(|error| error.within(Structure::Header))?;
    Ok((cursor, version))
}
