//! Writes heap profiles to the MemProf section of an indexed profile.
use super::{ContextRule, MemProfSum};
use profkit_data::Error;
use profkit_data::instr::InstrProfile;
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::releases::Release;
use profkit_data::memprof::indexed::{IndexedMemProfOptions, encode, read_section};
use profkit_data::memprof::{IdScheme, MemProfile};
use std::fmt;

/// The last LLVM release that uses the older ids of frames.
const LAST_COMBINED_IDS: u8 = 19;

/// How to write a MemProf section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionChoice {
    /// The version of the section. `None` chooses a version that the readers of the indexed version know.
    pub version: Option<u32>,
    /// Whether all fields are written.
    pub full_schema: bool,
    /// The LLVM release that must be able to read the section.
    pub release: Option<Release>,
}

impl SectionChoice {
    /// Chooses the newest version that fits, with the usual fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version of the section.
    #[must_use]
    pub fn version(mut self, version: Option<u32>) -> Self {
        self.version = version;
        self
    }

    /// Sets whether all fields are written.
    #[must_use]
    pub fn full_schema(mut self, full: bool) -> Self {
        self.full_schema = full;
        self
    }

    /// Sets the LLVM release that must be able to read the section.
    #[must_use]
    pub fn release(mut self, release: Option<Release>) -> Self {
        self.release = release;
        self
    }

    /// Returns the form of the section in an indexed file; `None` if the indexed version has no place for heap
    /// profiles.
    fn options(
        self,
        indexed: &IndexedWriteOptions,
    ) -> Result<Option<IndexedMemProfOptions>, SectionError> {
        let known = |version: u32| indexed.known_memprof.contains(&u64::from(version));
        let full = self.full_schema;
        let Some(asked) = self.version else {
            let Some(release) = self.release else {
                let fitting = [3, 4, 2, 0].into_iter().find(|&version| known(version));
                return Ok(fitting.map(|version| IndexedMemProfOptions::for_version(version, full)));
            };
            let own = IndexedMemProfOptions::for_llvm(release);
            return Ok(own.map(|own| {
                if full {
                    IndexedMemProfOptions::for_version(own.version, true).ids(own.ids)
                } else {
                    own
                }
            }));
        };
        if !known(asked) {
            return Err(SectionError::UnknownVersion {
                asked,
                indexed: indexed.version,
            });
        }
        let options = IndexedMemProfOptions::for_version(asked, full);
        let combined = self
            .release
            .is_some_and(|release| release.major <= LAST_COMBINED_IDS);
        Ok(Some(if combined {
            options.ids(IdScheme::Combined)
        } else {
            options
        }))
    }
}

/// Why a heap profile cannot be written to an indexed profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SectionError {
    /// No LLVM release reads both the indexed version and the version of the section that was asked for.
    UnknownVersion {
        /// The version that was asked for.
        asked: u32,
        /// The version of the indexed file.
        indexed: u32,
    },
    /// The indexed version has no place for heap profiles.
    NoPlace {
        /// The version of the indexed file.
        indexed: u32,
    },
    /// The present section cannot be read, or the new one cannot be written.
    Section(Error),
}

impl SectionError {
    /// What the user can do, if there is a step that helps.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SectionError::UnknownVersion { .. } => None,
            SectionError::NoPlace { .. } => {
                Some("LLVM 15 is the oldest release whose indexed profiles can hold heap profiles")
            }
            SectionError::Section(error) => error.hint(),
        }
    }
}

impl fmt::Display for SectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionError::UnknownVersion { asked, indexed } => write!(
                f,
                "no LLVM release reads both indexed version {indexed} and MemProf version {asked}"
            ),
            SectionError::NoPlace { indexed } => write!(
                f,
                "indexed version {indexed} has no place for heap profiles"
            ),
            SectionError::Section(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SectionError {}

/// Adds a heap profile to the MemProf section of an instrumentation profile. The section is written in a form that the
/// readers of the indexed version know.
///
/// Without a heap profile, the present section is rewritten only if its readers do not know its version, or if another
/// version is asked for.
///
/// # Errors
/// If no form fits, or if the present section cannot be read.
pub fn place_section(
    profile: &mut InstrProfile,
    heap: Option<&MemProfile>,
    indexed: &IndexedWriteOptions,
    choice: SectionChoice,
) -> Result<(), SectionError> {
    let read = profile.memprof.as_ref().map(read_section);
    let known = |version: u32| indexed.known_memprof.contains(&u64::from(version));
    let fits = matches!(&read, Some(Ok((_, version))) if known(*version));
    if heap.is_none() && (read.is_none() || (fits && choice.version.is_none())) {
        return Ok(());
    }
    let mut sum = MemProfSum::new(ContextRule::Add);
    match read {
        Some(Ok((profile, _))) => sum.add(&profile),
        // A single MemProf section is copied to the output. If it cannot be copied, it is dropped and reported.
        Some(Err(_)) if heap.is_none() => return Ok(()),
        Some(Err(error)) => return Err(SectionError::Section(error)),
        None => {}
    }
    if let Some(heap) = heap {
        sum.add(heap);
    }
    let Some(section) = choice.options(indexed)? else {
        return Err(SectionError::NoPlace {
            indexed: indexed.version,
        });
    };
    let whole = sum.finish();
    let whole = match section.ids {
        IdScheme::Combined => whole.in_order_of_llvm_19(),
        IdScheme::Blake3 => whole,
    };
    profile.memprof = Some(encode(&whole, &section).map_err(SectionError::Section)?);
    Ok(())
}
