//! Copies a MemProf section from one file to another without decoding it. The offsets inside the section count from the
//! start of the file, so they are adjusted to the section's position in the new file.
//!
//! | version | words of the header that are offsets | tables |
//! |---|---|---|
//! | 0 | 0 to 2: record table, frame payload, frame table | records, frames |
//! | 1 | 1 to 3: as in version 0 | records, frames |
//! | 2 | 1 to 5: as in version 0, then call stack payload, call stack table | records, frames, call stacks |
//! | 3 | 1 to 3: call stacks, record payload, record table | records |
//! | 4 | 1 to 4: as in version 3, then data access profiles | records |
//!
//! From version 1, the first word of the section is the version. In version 0 the first word is an offset, which is at
//! least 24 (`IndexedMemProfReader::deserialize` in `InstrProfReader.cpp`).
use crate::bytes::{Cursor, Endian};
#[cfg(feature = "memprof")]
use crate::memprof::{
    MemProfile,
    indexed::{IndexedMemProfOptions, encode, read_section},
    portable,
};
use crate::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;

/// The MemProf section of an indexed profile as undecoded bytes. The offsets in these bytes count from the start of the
/// file from which the section was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemProfSection {
    /// The bytes of the MemProf section, which are not decoded.
    pub bytes: Vec<u8>,
    /// The offset of the section in the file that it was read from.
    pub offset: u64,
}

impl MemProfSection {
    /// Whether a portable section (`memprof::portable`) follows LLVM's tables, be it sound or
    /// damaged.
    #[cfg(feature = "memprof")]
    pub fn has_portable(&self) -> bool {
        !matches!(portable::find(&self.bytes, self.offset), Ok(None))
    }

    /// Returns the section without a portable section, as LLVM has it.
    #[cfg(feature = "memprof")]
    #[must_use]
    pub fn without_portable(mut self) -> Self {
        let start = match portable::find(&self.bytes, self.offset) {
            Ok(None) => return self,
            Ok(Some((_, start))) => usize::try_from(start - self.offset).ok(),
            // Only one end of the portable section is there.
            Err(_) => memchr::memmem::find(&self.bytes, &portable::MAGIC),
        };
        self.bytes.truncate(start.unwrap_or(self.bytes.len()));
        self
    }

    /// Checks the portable section, if there is one.
    ///
    /// # Errors
    /// If the portable section is damaged or of an unknown version.
    #[cfg(feature = "memprof")]
    pub fn check_portable(&self) -> Result<()> {
        let found = portable::find(&self.bytes, self.offset);
        let parse = |(bytes, at)| portable::PortableSection::parse(bytes, at);
        let parsed = found.and_then(|found| found.map(parse).transpose());
        parsed
            .map(drop)
            .map_err(|error| error.within(Structure::MemProfSection))
    }

    /// Checks that LLVM 22 reads the version of the section: 2, 3 or 4.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`], with the text that LLVM prints, if LLVM 22 does not read the version.
    pub fn check_version_as_llvm(&self) -> Result<()> {
        let version = word(&self.bytes, 0).unwrap_or(0);
        if (2..=4).contains(&version) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::UnsupportedVersion,
            "LLVM 22 does not read this version of the MemProf section",
        )
        .at(self.offset)
        .within(Structure::MemProfSection)
        .found(version)
        .expected("2 to 4")
        .llvm_detail(format!(
            "MemProf version {version} not supported; requires version between 2 and 4, inclusive"
        )))
    }
}

/// The heap profile in an instrumentation profile.
#[derive(Clone, Debug)]
pub enum HeapSection {
    /// A section that was read from a file. The writer of the indexed format copies it.
    Stored(MemProfSection),
    /// A heap profile, and the options with which the writer of the indexed format encodes it.
    #[cfg(feature = "memprof")]
    Profile(Box<MemProfile>, IndexedMemProfOptions),
}

impl HeapSection {
    /// The version of the section in the indexed format; `None` if the version of a stored section is not known.
    pub fn version(&self) -> Option<u64> {
        match self {
            HeapSection::Stored(section) => version(section),
            #[cfg(feature = "memprof")]
            HeapSection::Profile(_, options) => Some(u64::from(options.version)),
        }
    }

    /// Whether the section is written with a portable section after LLVM's tables.
    #[cfg(feature = "memprof")]
    pub fn has_portable(&self) -> bool {
        match self {
            HeapSection::Stored(section) => section.has_portable(),
            HeapSection::Profile(_, options) => options.portable,
        }
    }

    /// Returns the section as the writer of the indexed format writes it.
    ///
    /// # Errors
    /// If the profile is too large for the section's tables.
    pub fn encoded(&self) -> Result<Cow<'_, MemProfSection>> {
        Ok(match self {
            HeapSection::Stored(section) => Cow::Borrowed(section),
            #[cfg(feature = "memprof")]
            HeapSection::Profile(profile, options) => Cow::Owned(encode(profile, options)?),
        })
    }

    /// Returns the heap profile as it is read from the written section: with the fields of its schema, and with records in
    /// the order of the section's hash table. Fields that are not known stay unknown, which a section cannot express.
    ///
    /// # Errors
    /// If the profile is too large for the section's tables, or a stored section is damaged.
    #[cfg(feature = "memprof")]
    pub fn reread(&self) -> Result<MemProfile> {
        let (mut read, _) = read_section(&*self.encoded()?)?;
        if let HeapSection::Profile(profile, _) = self {
            read.forget_unknown_fields(profile);
        }
        Ok(read)
    }

    /// Returns the heap profile.
    ///
    /// # Errors
    /// If a stored section is damaged.
    #[cfg(feature = "memprof")]
    pub fn profile(&self) -> Result<Cow<'_, MemProfile>> {
        Ok(match self {
            HeapSection::Stored(section) => Cow::Owned(read_section(section)?.0),
            HeapSection::Profile(profile, _) => Cow::Borrowed(profile),
        })
    }
}

/// The minimum value of the first word of a version 0 section.
const FIRST_OFFSET: u64 = 24;

pub(crate) fn version(section: &MemProfSection) -> Option<u64> {
    match word(&section.bytes, 0)? {
        version @ 1..=4 => Some(version),
        FIRST_OFFSET.. => Some(0),
        _ => None,
    }
}

/// Checks whether a section can be copied to another file.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if its version is not known, [`ErrorKind::Malformed`] if an offset in the section
/// points outside the section.
pub fn check_memprof(section: &MemProfSection) -> Result<()> {
    relocate(section, section.offset ^ 8).map(drop)
}

/// Returns the bytes of the section with all offsets adjusted to a file in which the section begins at `offset`.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if its version is not known, [`ErrorKind::Malformed`] if an offset in the section
/// points outside the section.
pub fn relocate(section: &MemProfSection, offset: u64) -> Result<Vec<u8>> {
    let first = word(&section.bytes, 0).unwrap_or(0);
    let Some(version) = version(section) else {
        return Err(Error::new(ErrorKind::UnsupportedVersion, "the first word of the MemProf section is neither a known version nor an offset")
        .at(section.offset)
        .within(Structure::MemProfSection)
        .found(first)
        .expected("a version from 1 to 4, or an offset of at least 24, because a section of version 0 begins with an offset instead of a version"));
    };
    let (offsets, tables): (_, &[usize]) = match version {
        0 => (0..3, &[0, 2]),
        1 => (1..4, &[1, 3]),
        2 => (1..6, &[1, 3, 5]),
        3 => (1..4, &[3]),
        _ => (1..5, &[3]),
    };
    let mut mover = Mover {
        bytes: section.bytes.clone(),
        from: section.offset,
        to: offset,
    };
    if section.offset == offset {
        return Ok(mover.bytes);
    }
    // Adjust the tables before the header words. A table is found through its header word, which must still have the
    // old offset.
    for &table in tables {
        mover
            .table(table)
            .map_err(|error| error.within(Structure::MemProfSection))?;
    }
    for index in offsets {
        mover
            .word(8 * index as u64)
            .map_err(|error| error.within(Structure::MemProfSection))?;
    }
    Ok(mover.bytes)
}

struct Mover {
    bytes: Vec<u8>,
    from: u64,
    to: u64,
}

impl Mover {
    /// Adjusts an offset that is stored at the given position of the section. The offset 0 is not changed, because it
    /// means that there is nothing to point to.
    fn word(&mut self, place: u64) -> Result<()> {
        let offset = self.read(place)?;
        if offset == 0 {
            return Ok(());
        }
        let inner = self.inner(offset, place)?;
        let moved = (self.to + inner).to_le_bytes();
        let slot = usize::try_from(place)
            .ok()
            .and_then(|place| self.bytes.get_mut(place..)?.first_chunk_mut());
        if let Some(slot) = slot {
            *slot = moved;
        }
        Ok(())
    }

    /// Adjusts the bucket offsets of a hash table. `header_word` is the index of the word in the section header that
    /// has the offset of the hash table's table of buckets.
    fn table(&mut self, header_word: usize) -> Result<()> {
        let place = 8 * header_word as u64;
        let index = self.inner(self.read(place)?, place)?;
        let buckets = self.read(index)?;
        let available = (self.bytes.len() as u64).saturating_sub(index + 16) / 8;
        if buckets > available {
            return Err(ErrorKind::Malformed
                .error("the table of buckets runs past the end of the section")
                .at(self.from + index)
                .found(format_args!("{buckets} buckets"))
                .expected(format_args!("at most {available}")));
        }
        (0..buckets).try_for_each(|bucket| self.word(index + 16 + 8 * bucket))
    }

    fn read(&self, place: u64) -> Result<u64> {
        let mut cursor = Cursor::new(&self.bytes, self.from, Endian::Little);
        cursor.take_u64(place)?;
        cursor.u64()
    }

    /// Converts an offset in the old file to an offset in the section. `place` is the position in the section at which
    /// the offset is stored. If the offset points outside the section, the error has the location of `place`.
    fn inner(&self, offset: u64, place: u64) -> Result<u64> {
        let end = self.from + self.bytes.len() as u64;
        if !(self.from..=end).contains(&offset) {
            return Err(ErrorKind::Malformed
                .error("an offset in the section points outside the section")
                .at(self.from + place)
                .found(format_args!("{offset:#x}"))
                .expected(format_args!("{:#x} to {end:#x}", self.from)));
        }
        Ok(offset - self.from)
    }
}

fn word(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(8 * index..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
