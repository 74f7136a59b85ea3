//! The compact table of source locations that symbolising returns.
use super::MAX_WARNINGS;
use profkit_data::Error;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// The value that means "no entry" where this table stores an index.
pub(super) const NONE: u32 = u32::MAX;

/// A set of byte strings. Each string is stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// For each string, the offset of its end in `bytes`. A string begins at the end of the string before it.
    ends: Vec<usize>,
    /// For each hash, the indices of the strings with that hash.
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

    /// Returns the index of a string, if it is in the set.
    pub(super) fn find(&self, string: &[u8]) -> Option<u32> {
        self.with_hash(FxBuildHasher.hash_one(string), string)
    }

    fn with_hash(&self, hash: u64, string: &[u8]) -> Option<u32> {
        let mut same = self.lookup.get(&hash).into_iter().flatten().copied();
        same.find(|&id| self.get(id) == Some(string))
    }

    pub(super) fn intern(&mut self, string: &[u8]) -> u32 {
        let hash = FxBuildHasher.hash_one(string);
        if let Some(id) = self.with_hash(hash, string) {
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

/// A frame as it is stored in the table. Strings and the calling frame are stored as indices.
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

/// The result of symbolising one compile unit. Its indices refer to its own tables, not to those of the whole result.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) strings: Strings,
    pub(super) frames: Vec<Stored>,
    /// The innermost frame of each requested address in the unit.
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

/// The source locations of many addresses. Equal frames of a compile unit are stored once, and so are equal strings.
#[derive(Clone, Debug)]
pub struct Locations {
    strings: Strings,
    frames: Vec<Stored>,
    leaves: Vec<u32>,
    warnings: Vec<Error>,
    more_warnings: usize,
}

/// The index of a frame in a [`Locations`] table. If two addresses have the same innermost frame, they have the same
/// stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u32);

impl FrameId {
    /// The index of the frame in its table. It is less than [`Locations::frame_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A frame of an inline stack: a function with its source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'table> {
    /// The function's linkage name (mangled) in the debug info or symbol table, or its plain name if it has no linkage
    /// name. `None` if the function is not known.
    pub function: Option<&'table [u8]>,
    /// The path of the source file, as it was given to the compiler. A relative path was joined to the unit's
    /// directory. The path is not normalised. `None` if the file is not known.
    pub file: Option<&'table [u8]>,
    /// The line, from 1; 0 if the compiler recorded none. Except in the innermost frame, it is the line of the inlined
    /// call.
    pub line: u32,
    /// The column, from 1; 0 if it is unknown.
    pub column: u32,
    /// The discriminator, which distinguishes the blocks of one line. The first block has 0.
    pub discriminator: u32,
    /// The line at which the function is declared; 0 if it is unknown.
    pub function_line: u32,
}

impl<'table> Frame<'table> {
    /// The name of the function as text; `?` if it is not known. The text is not demangled: use
    /// [`readable::display`](crate::readable::display) with [`function`](Self::function) for the demangled name.
    pub fn function_text(&self) -> Cow<'table, str> {
        self.function
            .map_or(Cow::Borrowed("?"), String::from_utf8_lossy)
    }

    /// The path of the file as text, or `?`.
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

    /// Adds the result of a compile unit. `addresses` are the indices of the unit's addresses in the list of all
    /// requested addresses.
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

    /// The number of requested addresses.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether no address was requested.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The number of frames in the table.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the innermost frame of the address with this index; `None` if nothing is known about the address.
    pub fn leaf(&self, address: usize) -> Option<FrameId> {
        self.leaves
            .get(address)
            .copied()
            .filter(|&id| (id as usize) < self.frames.len())
            .map(FrameId)
    }

    /// Returns the frame into which the given frame is inlined; `None` if the frame is not inlined.
    pub fn caller(&self, frame: FrameId) -> Option<FrameId> {
        // A calling frame is always stored before the frames inlined into it, so following the callers always ends.
        self.frames
            .get(frame.index())
            .map(|stored| stored.caller)
            .filter(|&caller| caller < frame.0)
            .map(FrameId)
    }

    /// Returns the frame with this id; `None` if this table has no such frame.
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

    /// Returns the ids of all frames. A frame comes after the frame into which it is inlined.
    pub fn ids(&self) -> impl Iterator<Item = FrameId> + use<> {
        let count = u32::try_from(self.frames.len()).unwrap_or(NONE);
        (0..count).map(FrameId)
    }

    /// Returns a number that stands for the name of a frame's function; `None` if the function has no name. Equal names
    /// have equal numbers. All numbers are less than [`Locations::name_count`].
    pub fn name_number(&self, frame: FrameId) -> Option<usize> {
        let stored = self.frames.get(frame.index())?;
        let number = stored.function as usize;
        (number < self.strings.len()).then_some(number)
    }

    /// The number of different strings in the table: function names and file paths. Every [`Locations::name_number`] is
    /// less than this.
    pub fn name_count(&self) -> usize {
        self.strings.len()
    }

    /// Returns the inline stack of the address with this index, innermost frame first. Empty if nothing is known about
    /// the address.
    pub fn stack(&self, address: usize) -> impl Iterator<Item = Frame<'_>> {
        std::iter::successors(self.leaf(address), |&frame| self.caller(frame))
            .filter_map(|frame| self.frame(frame))
    }

    /// The first warnings about debug info that could not be read, in the order of units.
    pub fn warnings(&self) -> &[Error] {
        &self.warnings
    }

    /// The number of warnings that are not in [`Locations::warnings`].
    pub fn more_warnings(&self) -> usize {
        self.more_warnings
    }
}
