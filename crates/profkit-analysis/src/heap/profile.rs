//! A heap profile of any form, with the function names and source locations of its frames.
use super::load::LoadedHeap;
use crate::doctor::Readers;
use crate::faults::Faults;
use crate::matching::BinaryFunctions;
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::indexed::IndexedMemProf;
use profkit_data::memprof::{
    Frame, FrameId, MemProfile, SourceLocation, StackId, canonical_name, guid,
};
use profkit_data::releases::{RELEASES, Release, indexed_writers};
use profkit_data::{ErrorKind, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::ops::RangeInclusive;

/// Whether an indexed profile holds a heap profile and no counters.
pub fn is_heap_alone(data: &[u8]) -> bool {
    IndexedProfile::parse(data).is_ok_and(|profile| {
        let summaries = [profile.summary(), profile.cs_summary()];
        let functions = summaries.iter().flatten().map(|summary| summary.functions);
        profile.memprof().is_some() && functions.fold(0, u64::saturating_add) == 0
    })
}

/// The form of a heap profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapForm {
    /// A raw dump, written by the program that ran.
    Raw,
    /// The MemProf section of an indexed profile.
    Indexed,
    /// A YAML file.
    Yaml,
}

impl HeapForm {
    /// The LLVM releases that write this version of a profile of this form; `None` if none is known.
    pub fn writers(self, version: u32) -> Option<RangeInclusive<Release>> {
        let (first, last) = match (self, version) {
            (HeapForm::Raw, 1) => (14, 15),
            (HeapForm::Raw, 2) => (16, 17),
            (HeapForm::Raw, 3) => (18, 18),
            (HeapForm::Raw, 4) => (19, 21),
            (HeapForm::Raw, 5) => (22, 22),
            (HeapForm::Indexed, 0) => (15, 19),
            (HeapForm::Indexed, 1) => (19, 19),
            (HeapForm::Indexed, 2 | 3) => (19, 22),
            (HeapForm::Indexed, 4) => (21, 22),
            _ => return None,
        };
        Some(Release::new(first)..=Release::new(last))
    }
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

/// A heap profile, with facts about its file.
///
/// ```no_run
/// use profkit_analysis::heap::HeapProfile;
///
/// let heap = HeapProfile::from_indexed(&std::fs::read("heap.profdata")?)?;
/// println!("{} contexts", heap.profile.contexts().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapProfile {
    /// The profile, with the names and source locations of its frames, as far as they are known.
    pub profile: MemProfile,
    /// The form of the file.
    pub form: HeapForm,
    /// The version of a raw profile, or of the MemProf section of an indexed one; `None` for YAML.
    pub version: Option<u32>,
    /// The version of an indexed profile; `None` for other forms.
    pub indexed_version: Option<u32>,
    /// Whether the file has a portable section, with names, source lines and histograms.
    pub portable: bool,
    /// For each frame of a raw dump that no debug info covers: the binary that contains it.
    pub binaries: FxHashMap<Frame, String>,
    /// The faults of the file.
    pub damage: Faults,
}

/// A frame with its function name and source location.
#[derive(Clone, Copy, Debug)]
pub struct HeapFrame<'p> {
    /// The frame.
    pub frame: &'p Frame,
    /// The mangled name of the frame's function; `None` if only the hash is known.
    pub name: Option<&'p [u8]>,
    /// The source location of the frame, if the file has it.
    pub location: Option<&'p SourceLocation>,
    /// The binary that contains the frame, if no debug info covers it. The name is then a symbol, or the binary and an
    /// address in it.
    pub binary: Option<&'p str>,
}

impl HeapProfile {
    /// Reads the heap profile of an indexed profile as far as it is sound.
    ///
    /// # Errors
    /// If the file is not an indexed profile, has no MemProf section ([`ErrorKind::Unsupported`]), or has a section
    /// with a broken header.
    pub fn from_indexed(data: &[u8]) -> Result<Self> {
        let profile = IndexedProfile::parse(data)?;
        let Some(section) = profile.memprof() else {
            let text = "the profile has no MemProf section";
            return Err(ErrorKind::Unsupported.error(text));
        };
        let end = usize::try_from(section.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(section.bytes.len());
        let section = IndexedMemProf::parse(data.get(..end).unwrap_or(data), section.offset)?;
        let mut damage = Faults::default();
        let mut heap = section.to_profile_salvaging(|error| damage.push(error));
        // The section holds only hashes. Names are known only for functions that have counters in the same file.
        let unknown: Vec<u64> = heap.frames().iter().map(|frame| frame.function).collect();
        for function in unknown {
            if let Some(name) = profile.name_of(NameRef(function)) {
                heap.names.entry(function).or_insert_with(|| name.to_vec());
            }
        }
        Ok(HeapProfile {
            profile: heap,
            form: HeapForm::Indexed,
            version: Some(section.version()),
            indexed_version: Some(profile.header().version()),
            binaries: FxHashMap::default(),
            portable: section.portable().is_ok_and(|found| found.is_some()),
            damage,
        })
    }

    /// Makes a heap profile from the sum of raw dumps or of YAML profiles.
    pub fn from_loaded(loaded: LoadedHeap) -> Self {
        let mut damage = Faults::default();
        for error in loaded.errors() {
            damage.push(error.clone());
        }
        let raw = loaded.dumps() > 0;
        HeapProfile {
            form: if raw { HeapForm::Raw } else { HeapForm::Yaml },
            version: raw.then_some(loaded.details().newest_raw_version),
            indexed_version: None,
            portable: false,
            binaries: loaded.binaries,
            profile: loaded.profile,
            damage,
        }
    }

    /// The LLVM releases that write this version of the file; `None` for YAML, which has no version.
    pub fn writers(&self) -> Option<RangeInclusive<Release>> {
        match self.indexed_version {
            Some(version) => indexed_writers(version),
            None => self.form.writers(self.version?),
        }
    }

    /// The LLVM releases that read the profile; `None` if no release is known that writes its version. Compilers read only
    /// indexed profiles, of which they must know both the version of the file and that of the MemProf section. The
    /// versions are those of [docs/formats/memprof.md].
    ///
    /// [docs/formats/memprof.md]: https://github.com/profkit/profkit/blob/main/docs/formats/memprof.md
    pub fn readers(&self) -> Option<Readers> {
        let known = self.form.writers(self.version?)?;
        let Some(indexed) = self.indexed_version else {
            return Some(Readers {
                compilers: None,
                tool: Some(known),
            });
        };
        // What the newest release writes, later ones read.
        let newest = HeapForm::Indexed
            .writers(4)
            .is_some_and(|newest| known.end() == newest.end());
        let mut readers = RELEASES.iter().filter(|facts| {
            facts.reads_indexed(indexed)
                && facts.release >= *known.start()
                && (newest || facts.release <= *known.end())
        });
        let first = readers.next().map(|facts| facts.release);
        let range = first.map(|first| {
            let last = readers.next_back().map_or(first, |facts| facts.release);
            first..=last
        });
        Some(Readers {
            compilers: range.clone(),
            tool: range,
        })
    }

    /// The hashes of the functions that occur in the frames and whose names are not known.
    fn unnamed(&self) -> FxHashSet<u64> {
        let functions = self.profile.frames().iter().map(|frame| frame.function);
        functions.filter(|&one| self.name(one).is_none()).collect()
    }

    /// Gives names to functions for which the profile has only a hash. The names come from the functions
    /// of binaries. Returns how many functions got a name, and how many are still without one.
    pub fn add_names(&mut self, binaries: &BinaryFunctions) -> (usize, usize) {
        let mut unnamed = self.unnamed();
        let before = unnamed.len();
        for (name, _) in binaries.functions() {
            let function = guid(name);
            if unnamed.remove(&function) {
                let name = canonical_name(name).to_vec();
                self.profile.names.insert(function, name);
            }
        }
        (before - unnamed.len(), unnamed.len())
    }

    /// Returns the name of a function; `None` if the name is not known. An empty name counts as not known.
    pub fn name(&self, function: u64) -> Option<&[u8]> {
        let name = self.profile.names.get(&function)?;
        (!name.is_empty()).then_some(name)
    }

    /// The frames of a call stack. The frame that allocated comes first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = HeapFrame<'_>> {
        let ids = self.profile.frame_ids(stack).iter();
        ids.map(|&id| self.frame(id))
    }

    /// A frame with its function name and source location.
    ///
    /// # Panics
    /// If `id` is not a frame of this profile.
    pub fn frame(&self, id: FrameId) -> HeapFrame<'_> {
        let frame = &self.profile.frames()[id];
        let location = self.profile.locations.get(frame);
        HeapFrame {
            frame,
            name: self.name(frame.function),
            location: location.filter(|place| !place.file.is_empty()),
            binary: self.binaries.get(frame).map(String::as_str),
        }
    }
}
