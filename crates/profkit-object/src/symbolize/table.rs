//! The compact table that symbolising returns.
use super::MAX_WARNINGS;
use profkit_data::Error;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// "None" of the indexes in this table.
pub(super) const NONE: u32 = u32::MAX;

/// Byte strings, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// End of each string in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
    /// Hash of the bytes to the strings that have it.
    lookup: FxHashMap<u64, Vec<u32>>,
}

impl Strings {
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)?;
        let start = id
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        self.bytes.get(start..end)
    }

    pub(super) fn intern(&mut self, string: &[u8]) -> u32 {
        let hash = FxBuildHasher.hash_one(string);
        let same = self.lookup.get(&hash).into_iter().flatten().copied();
        if let Some(id) = same.into_iter().find(|&id| self.get(id) == Some(string)) {
            return id;
        }
        let Some(id) = u32::try_from(self.ends.len()).ok().filter(|&id| id != NONE) else {
            return NONE;
        };
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        self.lookup.entry(hash).or_default().push(id);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// A frame as it is stored: strings by index, and the frame that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    pub(super) function: u32,
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) discriminator: u32,
    pub(super) function_line: u32,
    pub(super) caller: u32,
}

/// What one unit gave: frames with indexes of its own.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) strings: Strings,
    pub(super) frames: Vec<Stored>,
    /// The innermost frame of each address of the job.
    pub(super) leaves: Vec<u32>,
    pub(super) warnings: Vec<Error>,
}

impl Part {
    pub(super) fn push(&mut self, frame: Stored) -> u32 {
        let Some(id) = u32::try_from(self.frames.len())
            .ok()
            .filter(|&id| id != NONE)
        else {
            return NONE;
        };
        self.frames.push(frame);
        id
    }

    pub(super) fn warn(&mut self, warning: Error) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }
}

/// The locations of many addresses. Equal frames of a compile unit are stored once, so are equal strings.
#[derive(Clone, Debug)]
pub struct Locations {
    strings: Strings,
    frames: Vec<Stored>,
    leaves: Vec<u32>,
    warnings: Vec<Error>,
    more_warnings: usize,
}

/// A frame of a [`Locations`] table, by number. Two addresses with the same number have the same stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u32);

impl FrameId {
    /// The index of the frame among all of its table, which has [`Locations::frame_count`] of them.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One frame of an inline stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'table> {
    /// The function's linkage name as debug info or symbol table have it (mangled), or its plain name where there is no
    /// linkage name.
    pub function: Option<&'table [u8]>,
    /// The source file: the path as compiled, made absolute with the unit's directory, not normalised.
    pub file: Option<&'table [u8]>,
    /// Line from 1; 0 if the compiler gave none. In all frames but the innermost: of the call.
    pub line: u32,
    /// Column from 1; 0 if unknown.
    pub column: u32,
    /// The discriminator, which distinguishes the blocks of one line; 0 is the first.
    pub discriminator: u32,
    /// The line that the function is declared at; 0 if unknown.
    pub function_line: u32,
}

impl<'table> Frame<'table> {
    /// The function's name as text, or `?`.
    pub fn function_text(&self) -> Cow<'table, str> {
        self.function
            .map_or(Cow::Borrowed("?"), String::from_utf8_lossy)
    }

    /// The file's path as text, or `?`.
    pub fn file_text(&self) -> Cow<'table, str> {
        self.file
            .map_or(Cow::Borrowed("?"), String::from_utf8_lossy)
    }
}

impl Locations {
    pub(super) fn new(addresses: usize) -> Self {
        Locations {
            strings: Strings::default(),
            frames: Vec::new(),
            leaves: vec![NONE; addresses],
            warnings: Vec::new(),
            more_warnings: 0,
        }
    }

    pub(super) fn warn(&mut self, warning: Error) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    /// Takes over what a unit gave for the addresses with these indexes.
    pub(super) fn append(&mut self, addresses: &[u32], part: Part) {
        let strings: Vec<u32> = (0..part.strings.len())
            .map(|id| u32::try_from(id).ok().and_then(|id| part.strings.get(id)))
            .map(|string| string.map_or(NONE, |string| self.strings.intern(string)))
            .collect();
        let string = |id: u32| strings.get(id as usize).copied().unwrap_or(NONE);
        let base = u32::try_from(self.frames.len()).unwrap_or(NONE);
        let moved = |id: u32| {
            if id == NONE {
                NONE
            } else {
                base.checked_add(id).unwrap_or(NONE)
            }
        };
        self.frames.extend(part.frames.iter().map(|frame| Stored {
            function: string(frame.function),
            file: string(frame.file),
            caller: moved(frame.caller),
            ..*frame
        }));
        for (&address, &leaf) in addresses.iter().zip(&part.leaves) {
            if let Some(place) = self.leaves.get_mut(address as usize) {
                *place = moved(leaf);
            }
        }
        for warning in part.warnings {
            self.warn(warning);
        }
    }

    /// How many addresses were asked for.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether no address was asked for.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// How many frames are stored.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The innermost frame of the address with this index; `None` if nothing is known of it.
    pub fn leaf(&self, address: usize) -> Option<FrameId> {
        self.leaves
            .get(address)
            .copied()
            .filter(|&id| (id as usize) < self.frames.len())
            .map(FrameId)
    }

    /// The frame that called (that is, inlined) this one.
    pub fn caller(&self, frame: FrameId) -> Option<FrameId> {
        // Callers are stored before their callees, so that a walk ends.
        self.frames
            .get(frame.index())
            .map(|stored| stored.caller)
            .filter(|&caller| caller < frame.0)
            .map(FrameId)
    }

    /// The frame with this number; `None` for a number of another table.
    pub fn frame(&self, frame: FrameId) -> Option<Frame<'_>> {
        let stored = self.frames.get(frame.index())?;
        Some(Frame {
            function: self.strings.get(stored.function),
            file: self.strings.get(stored.file),
            line: stored.line,
            column: stored.column,
            discriminator: stored.discriminator,
            function_line: stored.function_line,
        })
    }

    /// The inline stack of the address with this index, innermost first. Empty if nothing is known.
    pub fn stack(&self, address: usize) -> impl Iterator<Item = Frame<'_>> {
        std::iter::successors(self.leaf(address), |&frame| self.caller(frame))
            .filter_map(|frame| self.frame(frame))
    }

    /// What of the debug info could not be read, in the order of units; the first ones word for word.
    pub fn warnings(&self) -> &[Error] {
        &self.warnings
    }

    /// How many warnings there were beyond those of [`Locations::warnings`].
    pub fn more_warnings(&self) -> usize {
        self.more_warnings
    }
}
