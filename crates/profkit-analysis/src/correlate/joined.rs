//! Metadata of programs, found before a merge begins, and given to the profiles that lack their own.
use profkit_data::bytes::Endian;
use profkit_data::ids::BuildId;
use profkit_data::instr::raw::{PointerWidth, RawMetadata, RawMetadataSource, RawProfile};
use profkit_data::{Error, Result};
use rustc_hash::FxHashMap;

/// What decides which metadata a profile needs: the build ids that it states, and its dialect.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Build ids, sorted.
    pub ids: Vec<BuildId>,
    /// Raw version.
    pub version: u32,
    is_big: bool,
    is_narrow: bool,
    /// Whether the program says that its debug info has the metadata.
    pub debug_info: bool,
    /// Bytes of counters that the profile states.
    pub counter_bytes: u64,
}

impl Key {
    /// The key of a profile. Ids that cannot be read count as none: reading the profile reports them.
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

/// Metadata by key.
#[derive(Debug, Default)]
pub struct Joined {
    /// What was found, or why nothing was.
    pub found: FxHashMap<Key, Result<RawMetadata>>,
    /// Whether profiles that have metadata of their own are read with those of the binary all the same, as LLVM does
    /// with `--correlate`.
    pub replace: bool,
}

impl RawMetadataSource for Joined {
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

/// The profiles of a raw file, found by their magic: whether records follow does not matter here. Empty for any other
/// file.
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

/// The most profiles of one file that are looked at. `%m` names and continuous mode give one; a file that many programs
/// append to has some dozens.
const MOST_PROFILES: usize = 1 << 16;
