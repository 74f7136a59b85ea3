//! The table of stack entries. Each entry is a frame and refers to the entry of its outer frame.
use super::paths::PathId;
use super::strings::StringId;
use super::{Depths, next_index, optional, out_of_range, put_words, stored};
use crate::bytes::{Cursor, Sink};
use crate::{ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;

const TABLE: Structure = Structure::StackTable;
const ENTRY: u64 = 24;

/// The index of the innermost frame of a call stack. The index identifies the whole call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// Flags of a frame, for example that it is inlined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFlags(pub u32);

impl StackFlags {
    /// The function of this frame is inlined into the function of the outer frame, so both frames have the same
    /// address.
    pub const INLINED: StackFlags = StackFlags(1);
    /// The line is counted from the first line of the function, as in MemProf profiles, and not from the first line of
    /// the file.
    pub const LINE_OF_FUNCTION: StackFlags = StackFlags(2);

    const KNOWN: u32 = 3;

    /// Whether these flags include all flags of `other`.
    pub fn contains(self, other: StackFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One frame of a call stack. The frame refers to strings, a path and another frame by their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackEntry {
    /// The linkage name of the frame's function.
    pub function: StringId,
    /// The path of the source file that contains the frame's line; `None` if it is not known.
    pub path: Option<PathId>,
    /// The line of the frame; 0 if it is not known.
    pub line: u32,
    /// The column of the frame; 0 if it is not known.
    pub column: u32,
    /// Flags of the frame, for example that it is inlined.
    pub flags: StackFlags,
    /// The outer frame: the caller of this frame's function, or the function into which this function is inlined;
    /// `None` for the outermost frame.
    pub parent: Option<StackId>,
}

impl StackEntry {
    fn from_words(words: [u32; 6]) -> Self {
        let [function, path, line, column, flags, parent] = words;
        StackEntry {
            function: StringId(function),
            path: optional(path).map(PathId),
            line,
            column,
            flags: StackFlags(flags),
            parent: optional(parent).map(StackId),
        }
    }

    fn words(self) -> [u32; 6] {
        [
            self.function.0,
            stored(self.path.map(|path| path.0)),
            self.line,
            self.column,
            self.flags.0,
            stored(self.parent.map(|parent| parent.0)),
        ]
    }

    fn check(self, index: u32, strings: usize, paths: usize) -> Result<()> {
        if let Some(StackId(parent)) = self.parent
            && parent >= index
        {
            return Err(ErrorKind::Malformed
                .error("a frame does not come after its outer frame")
                .found(parent)
                .expected(format_args!("an index below {index}")));
        }
        if self.function.0 as usize >= strings {
            return Err(out_of_range(
                "a string",
                Structure::Frame,
                self.function.0,
                strings,
            ));
        }
        if let Some(PathId(path)) = self.path
            && path as usize >= paths
        {
            return Err(out_of_range("a path", Structure::Frame, path, paths));
        }
        if self.flags.0 & !StackFlags::KNOWN != 0 {
            return Err(ErrorKind::Malformed
                .error("there are unknown flags")
                .within(Structure::Frame)
                .found(format_args!("{:#x}", self.flags.0))
                .expected(format_args!("only bits of {:#x}", StackFlags::KNOWN)));
        }
        Ok(())
    }
}

/// A table of stack entries that is read from a file's bytes.
#[derive(Clone, Copy, Debug)]
pub struct StackTable<'data> {
    entries: &'data [[u8; 24]],
}

impl<'data> StackTable<'data> {
    /// Reads a table of stack entries at the cursor. Checks that each frame comes after its outer frame, that the index
    /// of each name is below `strings`, and that the index of each path is below `paths`.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the table is longer than the data, [`ErrorKind::Malformed`] if a reference is out of
    /// range.
    pub fn read(cursor: &mut Cursor<'data>, strings: usize, paths: usize) -> Result<Self> {
        Self::read_inner(cursor, strings, paths).map_err(|error| error.within(TABLE))
    }

    fn read_inner(cursor: &mut Cursor<'data>, strings: usize, paths: usize) -> Result<Self> {
        let count = cursor.u32()?;
        let at = cursor.offset();
        let (entries, _) = cursor.take_u64(u64::from(count) * ENTRY)?.as_chunks::<24>();
        let table = StackTable { entries };
        let mut depths = Depths::new(entries.len());
        for (index, place) in (0..count).zip((at..).step_by(24)) {
            if let Some(entry) = table.get(StackId(index)) {
                entry
                    .check(index, strings, paths)
                    .and_then(|()| depths.add(entry.parent.map(|parent| parent.0)))
                    .map_err(|error| error.at(place))?;
            }
        }
        Ok(table)
    }

    /// Returns the stack entry with this id; `None` if there is none.
    pub fn get(&self, id: StackId) -> Option<StackEntry> {
        let (words, _) = self.entries.get(id.0 as usize)?.as_chunks::<4>();
        let mut numbers = [0; 6];
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = u32::from_le_bytes(*word);
        }
        Some(StackEntry::from_words(numbers))
    }

    /// The number of stack entries in the table.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table has no stack entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes a copy of the table, to which stack entries can be added.
    pub fn to_owned(&self) -> Stacks {
        let entries = (0..).map_while(|index| self.get(StackId(index)));
        Stacks {
            entries: entries.collect(),
            ..Stacks::default()
        }
    }
}

/// A table of stack entries to which entries can be added.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    entries: Vec<StackEntry>,
    index: FxHashMap<StackEntry, u32>,
    indexed: usize,
}

impl Stacks {
    /// Returns the id of a frame. If the table does not have the frame, the frame is added. The outer frame must
    /// already be in the table.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if the table is full, [`ErrorKind::Malformed`] if the outer frame is not in the
    /// table.
    pub fn intern(&mut self, entry: StackEntry) -> Result<StackId> {
        while let Some(&entry) = self.entries.get(self.indexed) {
            let id = next_index(self.indexed, TABLE)?;
            self.index.entry(entry).or_insert(id);
            self.indexed += 1;
        }
        if let Some(&id) = self.index.get(&entry) {
            return Ok(StackId(id));
        }
        let id = next_index(self.entries.len(), TABLE)?;
        if let Some(StackId(parent)) = entry.parent
            && parent >= id
        {
            return Err(out_of_range("a frame", TABLE, parent, self.entries.len()));
        }
        self.entries.push(entry);
        self.index.insert(entry, id);
        self.indexed += 1;
        Ok(StackId(id))
    }

    /// Returns the stack entry with this id; `None` if there is none.
    pub fn get(&self, id: StackId) -> Option<StackEntry> {
        self.entries.get(id.0 as usize).copied()
    }

    /// The number of stack entries in the table.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table has no stack entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn check(&self, strings: usize, paths: usize) -> Result<()> {
        (0..).zip(&self.entries).try_for_each(|(index, entry)| {
            entry
                .check(index, strings, paths)
                .map_err(|error| error.within(TABLE))
        })
    }

    /// The number of bytes that the table takes in a file.
    pub fn encoded_len(&self) -> usize {
        4 + 24 * self.entries.len()
    }

    /// Writes the table of stack entries.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<()> {
        put_words(sink, &[next_index(self.entries.len(), TABLE)?])?;
        self.entries
            .iter()
            .try_for_each(|entry| put_words(sink, &entry.words()))
    }
}

/// Two tables are equal if they have the same entries in the same order.
impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for Stacks {}
