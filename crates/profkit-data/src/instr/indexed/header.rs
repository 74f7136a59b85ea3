//! The header of an indexed profile, with the header words and flags of each version.
use crate::bytes::{Bytes, Cursor, Endian};
use crate::instr::InstrKind;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::{indexed, variant};

/// The header of an indexed profile. Offsets count from the start of the file. If the version of the file does not have
/// a header word, the field for this word is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexedHeader {
    /// The version word: the version number and the variant flags.
    pub version_word: u64,
    /// `MaxFunctionCount`. Files up to version 3 state it; from version 4 the word is unused and 0.
    pub max_function_count: u64,
    /// The offset of the function table's table of buckets. A reader needs the table of buckets to find a function by
    /// its name.
    pub hash_offset: u64,
    /// The offset of the MemProf section (from version 8). It has a meaning only if bit 62 of the version word is set.
    pub memprof_offset: u64,
    /// The offset of the build ids (from version 9).
    pub binary_ids_offset: u64,
    /// The offset of the temporal traces (from version 10). It has a meaning only if bit 63 of the version word is set.
    pub traces_offset: u64,
    /// The offset of the vtable names (from version 12).
    pub vtable_names_offset: u64,
}

/// The minimum length of an indexed profile in bytes. LLVM checks the length before it checks the version.
const MINIMUM_LEN: usize = 24;
/// The offset of the header word `HashOffset`, which holds the offset of the function table's table of buckets. The
/// word has the same offset in all versions.
pub(super) const HASH_OFFSET_AT: u64 = 32;

impl IndexedHeader {
    /// Reads the header at the start of a file. The function supports versions 1 to 14.
    ///
    /// # Errors
    /// The checks come in LLVM's order: [`ErrorKind::Truncated`] for less than 24 bytes; [`ErrorKind::BadMagic`];
    /// [`ErrorKind::UnsupportedVersion`] for version 0 or above 14; [`ErrorKind::BadHeader`] if the file ends before
    /// the last word of the version's header; [`ErrorKind::UnsupportedHashType`].
    pub fn parse(data: &[u8]) -> Result<Self> {
        Self::read(data).map_err(|error| {
            error
                .within(Structure::Header)
                .within(Structure::IndexedProfile)
        })
    }

    fn read(data: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        if data.len() < MINIMUM_LEN {
            return Err(ErrorKind::Truncated
                .error("the data are too short here")
                .at(0)
                .found(Bytes(data.len()))
                .expected(format_args!("at least {MINIMUM_LEN} bytes")));
        }
        let magic = cursor.u64()?;
        if magic != indexed::MAGIC {
            return Err(ErrorKind::BadMagic
                .error("the magic number is wrong")
                .at(0)
                .found(format_args!("{magic:#018x}"))
                .expected(format_args!("{:#018x}", indexed::MAGIC)));
        }
        let version_word = cursor.u64()?;
        let version = version_of(version_word);
        if !(indexed::VERSION_FIRST..=indexed::VERSION_LAST).contains(&version) {
            return Err(unsupported(version, indexed::VERSION_LAST));
        }
        let len = header_len(version);
        if (data.len() as u64) < len {
            return Err(ErrorKind::BadHeader
                .error("the header runs past the end of the file")
                .because_data_end()
                .at(0)
                .found(Bytes(data.len()))
                .expected(format_args!("{len} bytes for version {version}")));
        }
        let mut word = |since: u32| {
            if version >= since {
                cursor.u64()
            } else {
                Ok(0)
            }
        };
        let max_function_count = word(1)?;
        let hash_type = word(1)?;
        // LLVM checks only the low 32 bits of the hash type.
        if hash_type & u64::from(u32::MAX) != indexed::HASH_TYPE_MD5 {
            return Err(ErrorKind::UnsupportedHashType
                .error("the hash type is not supported")
                .at(24)
                .found(hash_type)
                .expected("0 (MD5)"));
        }
        Ok(IndexedHeader {
            version_word,
            max_function_count,
            hash_offset: word(1)?,
            memprof_offset: word(MEMPROF.since)?,
            binary_ids_offset: word(BINARY_IDS.since)?,
            traces_offset: word(TRACES.since)?,
            vtable_names_offset: word(VTABLE_NAMES.since)?,
        })
    }

    /// The version number of the file.
    pub fn version(&self) -> u32 {
        version_of(self.version_word)
    }

    /// The kind of the profile: whether the front end or an IR pass placed the counters, what they count, and which
    /// optional data the file has.
    pub fn kind(&self) -> InstrKind {
        InstrKind::from_version_word(self.version_word)
    }

    /// The length of the header in bytes, which depends on the version.
    pub fn encoded_len(&self) -> u64 {
        header_len(self.version())
    }

    /// Whether the version word has the given variant flag (one of `profkit_abi::variant`).
    pub fn has_flag(&self, flag: u64) -> bool {
        self.version_word & flag != 0
    }

    /// Returns all words of the header in order. Each has LLVM's name, its offset and its value.
    pub fn named_fields(&self) -> Vec<(&'static str, u64, u64)> {
        let unused = match self.version() {
            0..SUMMARY_SINCE => "MaxFunctionCount",
            _ => "Unused",
        };
        let words = [
            (1, "Magic", indexed::MAGIC),
            (1, "Version", self.version_word),
            (1, unused, self.max_function_count),
            (1, "HashType", indexed::HASH_TYPE_MD5),
            (1, "HashOffset", self.hash_offset),
            (MEMPROF.since, "MemProfOffset", self.memprof_offset),
            (BINARY_IDS.since, "BinaryIdOffset", self.binary_ids_offset),
            (TRACES.since, "TemporalProfTracesOffset", self.traces_offset),
            (VTABLES_SINCE, "VTableNamesOffset", self.vtable_names_offset),
        ];
        let version = self.version();
        let of_version = words.into_iter().filter(|&(since, ..)| version >= since);
        (0u64..)
            .zip(of_version)
            .map(|(index, (_, name, value))| (name, 8 * index, value))
            .collect()
    }

    /// Appends the bytes of the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for (_, _, word) in self.named_fields() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// The first indexed version in which a record states its number of counters and a function can have several function
/// hashes (LLVM 3.6).
pub(super) const COUNT_LENGTHS_SINCE: u32 = 2;
/// The first indexed version with value data (LLVM 3.8).
pub(super) const VALUES_SINCE: u32 = 3;
/// The first indexed version with a summary (LLVM 3.9).
pub(super) const SUMMARY_SINCE: u32 = 4;
/// The first indexed version with MC/DC bitmaps in the function records (LLVM 18).
pub(super) const BITMAPS_SINCE: u32 = 11;
/// The first indexed version with vtable value sites (LLVM 19).
pub(super) const VTABLES_SINCE: u32 = 12;
/// The first indexed version with uniformity bits in the function records (LLVM 23). From this version on, a bitmap
/// byte takes one byte of the file and not a word of 8 bytes.
pub(super) const UNIFORMITY_SINCE: u32 = 14;

#[derive(Debug)]
pub(super) struct Section {
    /// The first version of the format that has this section.
    pub(super) since: u32,
    at: u64,
    name: &'static str,
}

/// The MemProf section, which LLVM 15 introduced.
pub(super) const MEMPROF: Section = Section {
    since: 8,
    at: 40,
    name: "MemProf section",
};
/// The section of build ids, which LLVM 16 introduced.
pub(super) const BINARY_IDS: Section = Section {
    since: 9,
    at: 48,
    name: "build ids",
};
/// The section of temporal traces, which LLVM 17 introduced.
pub(super) const TRACES: Section = Section {
    since: 10,
    at: 56,
    name: "temporal traces",
};
/// The section of vtable names, which LLVM 19 introduced.
pub(super) const VTABLE_NAMES: Section = Section {
    since: VTABLES_SINCE,
    at: 64,
    name: "vtable names",
};

impl Section {
    pub(super) fn open<'data>(
        &self,
        data: &'data [u8],
        version: u32,
        offset: u64,
    ) -> Result<Option<Cursor<'data>>> {
        if version < self.since {
            return Ok(None);
        }
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        cursor.take_u64(offset).map_err(|_| {
            ErrorKind::Truncated
                .error(format!(
                    "the offset of the {} lies beyond the file",
                    self.name
                ))
                .at(self.at)
                .within(Structure::Header)
                .within(Structure::IndexedProfile)
                .found(format_args!("{offset:#x}"))
                .expected(format_args!("at most {:#x}", data.len()))
                .with_hint("the file is cut off: copy it again, or merge its inputs again")
        })?;
        Ok(Some(cursor))
    }
}

pub(super) fn version_of(version_word: u64) -> u32 {
    u32::try_from(version_word & variant::VERSION_MASK).unwrap_or(u32::MAX)
}

fn header_len(version: u32) -> u64 {
    let added = [MEMPROF, BINARY_IDS, TRACES, VTABLE_NAMES];
    40 + 8 * added
        .iter()
        .filter(|section| version >= section.since)
        .count() as u64
}

#[cold]
pub(super) fn unsupported(version: u32, newest: u32) -> Error {
    let error = ErrorKind::UnsupportedVersion
        .error("the version of the indexed profile is not supported")
        .at(8)
        .found(version)
        .expected(format_args!("{} to {newest}", indexed::VERSION_FIRST));
    match version {
        0..=indexed::VERSION_LAST => error,
        _ => error.with_hint("an LLVM newer than 23 wrote this file: use the llvm-profdata of that LLVM to turn the file into text"),
    }
}
