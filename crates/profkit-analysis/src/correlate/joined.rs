//! Holds the function records (metadata) of programs. The records are found before a merge begins, and are supplied to
//! raw profiles that hold only counters.
use profkit_data::bytes::Endian;
use profkit_data::ids::BuildId;
use profkit_data::instr::raw::{PointerWidth, RawMetadata, RawMetadataSource, RawProfile};
use profkit_data::{Error, Result};
use rustc_hash::FxHashMap;

/// The key by which the function records (metadata) for a raw profile are found: the build ids in the profile, and the
/// properties of the profile (such as its version and byte order) that the records must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The build ids, sorted.
    pub ids: Vec<BuildId>,
    /// The raw version.
    pub version: u32,
    is_big: bool,
    is_narrow: bool,
    /// Whether the program holds its function records in debug info and not in sections of their own. The raw profile
    /// states this.
    pub debug_info: bool,
    /// The total size of the profile's counters in bytes. The profile states this size.
    pub counter_bytes: u64,
}

impl Key {
    /// Returns the key of a raw profile. Build ids that cannot be read are left out here; the error is reported when
    /// the profile is read.
    pub fn of(profile: &RawProfile<'_>) -> Self {
        let mut ids = profile.binary_ids().unwrap_or_default();
        ids.sort_unstable();
        ids.dedup();
        let dialect = profile.dialect();
        Key {
            ids,
            version: dialect.version,
            is_big: dialect.endian == Endian::Big,
            is_narrow: dialect.width == PointerWidth::Bits32,
            debug_info: dialect.has(profkit_abi::variant::DBG_CORRELATE),
            counter_bytes: profile.sections().counters.size,
        }
    }
}

/// The function records (metadata) of programs, by the keys of the raw profiles that need them.
#[derive(Debug, Default)]
pub struct JoinedMetadata {
    /// For each key: the function records (metadata) that were found, or the reason why none were found.
    pub found: FxHashMap<Key, Result<RawMetadata>>,
    /// Whether a profile that has function records of its own gets the function records of the binary in their place.
    /// LLVM's `--correlate` does this.
    pub replace: bool,
}

impl RawMetadataSource for JoinedMetadata {
    fn metadata(&self, profile: &RawProfile<'_>) -> Result<Option<&RawMetadata>> {
        if !self.replace && !profile.needs_correlation() {
            return Ok(None);
        }
        match self.found.get(&Key::of(profile)) {
            Some(Ok(metadata)) => Ok(Some(metadata)),
            Some(Err(error)) => Err(Error::clone(error)),
            None => Ok(None),
        }
    }
}

/// Returns the profiles that a raw file contains; an empty list for any other file. Profiles are found by their magic,
/// without reading their records.
pub fn profiles_in(file: &[u8]) -> Vec<RawProfile<'_>> {
    let mut profiles = Vec::new();
    let mut offset = 0;
    while let Ok((profile, _)) = RawProfile::parse_salvage_at(file, offset) {
        let after = offset + profile.header().len;
        let magic = file.get(offset..offset + 8).unwrap_or_default();
        let next = file
            .get(after..)
            .and_then(|rest| memchr::memmem::find(rest, magic));
        profiles.push(profile);
        match next {
            Some(next) if profiles.len() < MOST_PROFILES => offset = after + next,
            _ => break,
        }
    }
    profiles
}

/// The largest number of profiles in one file that are examined. A file that was written in continuous mode, or with
/// `%m` in its name, has one profile. A file that many programs append to has some dozens of profiles. If more profiles
/// were examined, a malicious file could take a long time.
const MOST_PROFILES: usize = 1 << 16;
