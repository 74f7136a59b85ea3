//! A heap profile of any form, with the names and places of its frames.
use super::load::LoadedHeap;
use super::symbolize::SourceLocation;
use crate::faults::Faults;
use profkit_data::index_vec::IndexVec;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::indexed::IndexedMemProf;
use profkit_data::memprof::{Frame, FrameId, MemProfile, StackId};
use profkit_data::{Error, ErrorKind, Result};
use std::fmt;

/// The form of a heap profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapForm {
    /// Written by the program that ran.
    Raw,
    /// A section of an indexed profile.
    Indexed,
    /// YAML.
    Yaml,
}

impl fmt::Display for HeapForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HeapForm::Raw => "raw",
            HeapForm::Indexed => "indexed",
            HeapForm::Yaml => "YAML",
        })
    }
}

/// A heap profile, and what is known of its file.
#[derive(Debug)]
pub struct HeapProfile {
    /// The profile.
    pub profile: MemProfile,
    /// Where its frames are, in their order; empty if the file does not say.
    pub locations: IndexVec<FrameId, SourceLocation>,
    /// The form of the file.
    pub form: HeapForm,
    /// The version of a raw or indexed profile.
    pub version: Option<u32>,
    /// What was wrong with the file.
    pub damage: Faults,
}

/// A frame with what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct HeapFrame<'p> {
    /// The frame.
    pub frame: &'p Frame,
    /// The name of its function, as it is mangled; `None` if only the hash is known.
    pub name: Option<&'p [u8]>,
    /// Where it is, if the file says so.
    pub location: Option<&'p SourceLocation>,
}

impl HeapProfile {
    /// The heap profile of an indexed profile, as far as it can be read.
    ///
    /// # Errors
    /// If the file is no indexed profile, has no MemProf section ([`ErrorKind::Unsupported`]), or one with a broken
    /// header.
    pub fn from_indexed(data: &[u8]) -> Result<Self> {
        let profile = IndexedProfile::parse(data)?;
        let Some(section) = profile.memprof() else {
            let text = "the profile has no MemProf section";
            return Err(Error::new(ErrorKind::Unsupported, text));
        };
        let end = usize::try_from(section.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(section.bytes.len());
        let section = IndexedMemProf::parse(data.get(..end).unwrap_or(data), section.offset)?;
        let mut damage = Faults::default();
        let profile = section.to_profile_salvaging(|error| damage.push(error));
        Ok(HeapProfile {
            profile,
            locations: IndexVec::new(),
            form: HeapForm::Indexed,
            version: Some(section.version()),
            damage,
        })
    }

    /// The sum of raw dumps, or of YAML.
    pub fn from_loaded(loaded: LoadedHeap) -> Self {
        let mut damage = Faults::default();
        for error in loaded.errors() {
            damage.push(error.clone());
        }
        let raw = loaded.dumps() > 0;
        HeapProfile {
            form: if raw { HeapForm::Raw } else { HeapForm::Yaml },
            version: raw.then_some(loaded.details().newest_raw_version),
            profile: loaded.profile,
            locations: loaded.locations,
            damage,
        }
    }

    /// The name of a function. An empty one is as good as none.
    pub fn name(&self, function: u64) -> Option<&[u8]> {
        let name = self.profile.names.get(&function)?;
        (!name.is_empty()).then_some(name)
    }

    /// The frames of a call stack, the allocation first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = HeapFrame<'_>> {
        self.profile.frame_ids(stack).iter().map(|&id| {
            let frame = &self.profile.frames()[id];
            let location = self.locations.get(id);
            HeapFrame {
                frame,
                name: self.name(frame.function),
                location: location.filter(|place| !place.file.is_empty()),
            }
        })
    }
}
