//! Adds heap profiles to the MemProf section of an indexed profile.
use super::{ContextRule, MemProfSum};
use profkit_data::Error;
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::{HeapSection, InstrProfile};
use profkit_data::memprof::indexed::IndexedMemProfOptions;
use profkit_data::memprof::{Allocations, Field, IdScheme, MemProfile};
use profkit_data::releases::Release;
use std::fmt;

/// The last LLVM release that computes the id of a frame by the older scheme, [`IdScheme::Combined`].
const LAST_COMBINED_IDS: u8 = 19;

/// Options for writing a MemProf section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionChoice {
    /// The version of the section. `None` chooses a version that all readers of the indexed version can read.
    pub version: Option<u32>,
    /// Whether memory statistics have all fields (LLVM's full schema), or those that LLVM writes by default.
    pub full_schema: bool,
    /// The LLVM release that must be able to read the section. `None` takes that of [`IndexedWriteOptions::for_llvm`].
    pub release: Option<Release>,
    /// Whether to write a portable section: names, source locations and histograms, which LLVM's section does not have. It
    /// is written also if the existing section has one.
    pub portable: bool,
    /// Whether access densities that are not known ([`SectionError::UnknownDensities`]) are no error. They are written as
    /// 0, by which compilers take contexts for cold.
    pub unknown_densities: bool,
}

impl SectionChoice {
    /// Makes options that choose a suitable version of the section, and the fields that LLVM writes by default.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        version: Option<u32>,
        full_schema: bool,
        release: Option<Release>,
        portable: bool,
        unknown_densities: bool,
    }

    /// `None` if an indexed file of this version cannot contain heap profiles.
    fn options(
        self,
        indexed: &IndexedWriteOptions,
    ) -> Result<Option<IndexedMemProfOptions>, SectionError> {
        let known = |version: u32| indexed.known_memprof.contains(&u64::from(version));
        let full = self.full_schema || self.portable;
        let release = self.release.or(indexed.release);
        let Some(asked) = self.version else {
            let Some(release) = release else {
                let fitting = [3, 4, 2, 0].into_iter().find(|&version| known(version));
                return Ok(fitting.map(|version| IndexedMemProfOptions::for_version(version, full)));
            };
            let own = IndexedMemProfOptions::for_llvm(release);
            return Ok(own.map(|own| {
                // Versions 0 and 1 have all fields that the release knows; it refuses others.
                if full && own.version >= 2 {
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
        let combined = release.is_some_and(|release| release.major <= LAST_COMBINED_IDS);
        Ok(Some(if combined {
            options.ids(IdScheme::Combined)
        } else {
            options
        }))
    }
}

/// The reason why a heap profile cannot be added to an indexed profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SectionError {
    /// No LLVM release can read both this indexed version and this version of the MemProf section.
    UnknownVersion {
        /// The version of the MemProf section that was asked for.
        asked: u32,
        /// The version of the indexed profile.
        indexed: u32,
    },
    /// An indexed file of this version cannot contain heap profiles.
    NoPlace {
        /// The version of the indexed file.
        indexed: u32,
    },
    /// The heap profile has allocations, but no access to them was counted ([`MemProfile::lacks_accesses`]).
    NoAccesses,
    /// Some contexts have no access density, by which compilers decide what is cold. LLVM 14 and 15 do not record it, and
    /// it can be computed only if all allocations of a context are alike.
    UnknownDensities {
        /// The number of contexts without an access density.
        contexts: u64,
        /// The number of all contexts.
        total: u64,
    },
    /// The existing MemProf section cannot be read.
    Section(Error),
}

impl SectionError {
    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SectionError::UnknownVersion { .. } => None,
            SectionError::NoPlace { .. } => {
                Some("LLVM 15 is the oldest release whose indexed profiles can hold heap profiles")
            }
            SectionError::NoAccesses => Some(
                "profile the program with -fmemory-profile of clang, which counts accesses; `profkit show` shows this profile as it is",
            ),
            SectionError::UnknownDensities { .. } => Some(
                "profile the program with clang 16 or later; `--llvm 15` writes a profile without densities for LLVM 15, `--to memprof-yaml` all that is known, and `profkit show` shows it",
            ),
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
            SectionError::NoPlace { indexed } => {
                write!(f, "indexed version {indexed} cannot hold heap profiles")
            }
            SectionError::NoAccesses => f.write_str(
                "the heap profile has no access counts: compilers would treat all long-lived memory as cold",
            ),
            SectionError::UnknownDensities { contexts, total } => write!(
                f,
                "{contexts} of {total} contexts have no access density, which LLVM 14 and 15 do not record: compilers would take long-lived ones for cold"
            ),
            SectionError::Section(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SectionError {}

/// Adds a heap profile to that of an instrumentation profile, and chooses a version of the MemProf section that readers of
/// the indexed version can read. The writer of the indexed format encodes the section.
///
/// If no heap profile is given, an existing section is changed only if readers of the indexed version cannot read the
/// section's version, or if `choice` sets a version. Without a heap profile, a damaged section is left unchanged
/// and is no error.
///
/// # Errors
/// If no version of the section is suitable, if a heap profile is given and the existing section cannot be read, if
/// the given heap profile has no access counts, or if contexts have no access density and the section is to have them.
pub fn place_section(
    profile: &mut InstrProfile,
    heap: Option<&MemProfile>,
    indexed: &IndexedWriteOptions,
    choice: SectionChoice,
) -> Result<(), SectionError> {
    let known = |version: u64| indexed.known_memprof.contains(&version);
    let fits = |section: &HeapSection| section.version().is_some_and(known);
    let has_portable = |section: &HeapSection| section.has_portable();
    let stays = |section: &HeapSection| {
        let same = choice.version.is_none() && (!choice.portable || has_portable(section));
        same && fits(section)
    };
    if heap.is_none() && profile.memprof.as_ref().is_none_or(stays) {
        return Ok(());
    }
    let portable = choice.portable || profile.memprof.as_ref().is_some_and(has_portable);
    let choice = choice.portable(portable);
    let for_release = choice.release.or(indexed.release).is_some();
    let mut sum = MemProfSum::new(match for_release {
        true => ContextRule::AddCopies,
        false => ContextRule::Add,
    });
    match profile.memprof.as_ref().map(HeapSection::profile) {
        Some(Ok(profile)) => sum.add(&profile),
        Some(Err(_)) if heap.is_none() => return Ok(()),
        Some(Err(error)) => return Err(SectionError::Section(error)),
        None => {}
    }
    if let Some(heap) = heap {
        if heap.lacks_accesses() {
            return Err(SectionError::NoAccesses);
        }
        sum.add(heap);
    }
    let Some(section) = choice.options(indexed)? else {
        return Err(SectionError::NoPlace {
            indexed: indexed.version,
        });
    };
    let mut whole = sum.finish();
    let density = Field::TotalLifetimeAccessDensity;
    if !choice.unknown_densities && section.schema.fields().contains(&density) {
        let contexts = whole.contexts();
        let unknown = |context: &&Allocations| !context.block.has(density);
        let count = contexts.iter().filter(unknown).count() as u64;
        if count > 0 {
            return Err(SectionError::UnknownDensities {
                contexts: count,
                total: contexts.len() as u64,
            });
        }
    }
    if section.ids == IdScheme::Combined {
        whole = whole.in_order_of_llvm_19();
    }
    let section = section.portable(portable);
    profile.memprof = Some(HeapSection::Profile(Box::new(whole), section));
    Ok(())
}
