//! Source locations, stored in three tables: strings, file paths, stack entries.
//!
//! The tables are those of the MemProf RFC. In these tables, a single number identifies a call stack, a file path or a
//! text:
//!
//! - A call stack is identified by the index of its innermost frame in a table of [`StackEntry`]s. Each entry refers to
//!   the entry of its outer frame.
//! - A file path is identified by the index of its last component in a table of nodes. Each node refers to the node of
//!   its folder.
//! - A text is identified by its index in a table of strings.
//!
//! Call stacks with the same outer frames share the entries of these frames. Paths in the same folder share the nodes
//! of that folder.
//!
//! ```
//! use profkit_data::tables::{StackEntry, Tables};
//! let mut tables = Tables::default();
//! let function = tables.strings.intern(b"main")?;
//! let path = tables.intern_path(b"src/main.c")?;
//! let main = tables.stacks.intern(StackEntry { function, path: Some(path), line: 3, ..StackEntry::default() })?;
//! let frames: Vec<_> = tables.frames(Some(main)).collect();
//! assert_eq!(frames[0].path.as_deref(), Some(&b"src/main.c"[..]));
//! # Ok::<(), profkit_data::Error>(())
//! ```
//!
//! Bytes, all numbers little-endian:
//!
//! | table | layout |
//! |---|---|
//! | strings | u32 count N, u32 size B, N × u32 end of the string in the bytes, B bytes |
//! | file paths | u32 count N, N × { u32 folder + 1 (0 if there is none), u32 string of the component } |
//! | stack entries | u32 count N, N × { u32 function string, u32 path + 1 (0 if there is none), u32 line, u32 column, u32 flags, u32 entry of the outer frame + 1 (0 if there is none) } |
//!
//! In the tables, a folder comes before its contents, and an outer frame before the frames inside it. Therefore a chain
//! of references always ends.
mod paths;
mod stacks;
mod strings;
#[cfg(test)]
mod tests;

pub use paths::{PathId, PathTable, Paths};
pub use stacks::{StackEntry, StackFlags, StackId, StackTable, Stacks};
pub use strings::{StringId, StringTable, Strings};

use crate::bytes::Sink;
use crate::limits::TABLE_DEPTH;
use crate::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;

/// The tables of strings, file paths and stack entries in memory. Entries can be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The strings: names of functions and components of paths.
    pub strings: Strings,
    /// The file paths of the stack entries.
    pub paths: Paths,
    /// The stack entries, which are the frames of call stacks.
    pub stacks: Stacks,
}

/// One frame with its names as text, as [`Tables::frames`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The linkage name of the function; empty if it is not known.
    pub function: &'a [u8],
    /// The path of the source file; `None` if it is not known.
    pub path: Option<Cow<'a, [u8]>>,
    /// The line of the frame, from 1; 0 if it is not known.
    pub line: u32,
    /// The column of the frame, from 1; 0 if it is not known.
    pub column: u32,
    /// Flags of the frame, for example that it is inlined.
    pub flags: StackFlags,
}

impl Tables {
    /// Adds a path to the tables, component by component. Returns the id of the path. If the tables already have the
    /// path, nothing is added.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if a table is full.
    pub fn intern_path(&mut self, path: &[u8]) -> Result<PathId> {
        self.paths.intern(path, &mut self.strings)
    }

    /// Returns the frames of a call stack, innermost first.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = Frame<'_>> {
        let mut next = stack;
        std::iter::from_fn(move || {
            let entry = self.stacks.get(next?)?;
            next = entry.parent;
            Some(Frame {
                function: self.strings.get(entry.function).unwrap_or_default(),
                path: entry
                    .path
                    .and_then(|path| self.paths.get(path, &self.strings)),
                line: entry.line,
                column: entry.column,
                flags: entry.flags,
            })
        })
    }

    /// Adds a call stack to the tables, frame by frame. Returns `None` if there are no frames.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if a table is full.
    pub fn intern_stack(&mut self, innermost_first: &[Frame<'_>]) -> Result<Option<StackId>> {
        let mut parent = None;
        for frame in innermost_first.iter().rev() {
            let function = self.strings.intern(frame.function)?;
            let path = match &frame.path {
                Some(path) => Some(self.intern_path(path)?),
                None => None,
            };
            parent = Some(self.stacks.intern(StackEntry {
                function,
                path,
                line: frame.line,
                column: frame.column,
                flags: frame.flags,
                parent,
            })?);
        }
        Ok(parent)
    }

    /// Whether the tables have no strings, no paths and no stack entries.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty() && self.paths.is_empty() && self.stacks.is_empty()
    }

    /// Checks that each reference from one table to another refers to an existing entry.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for the first reference to a missing entry.
    pub fn check(&self) -> Result<()> {
        let strings = self.strings.len();
        self.paths.check(strings)?;
        self.stacks.check(strings, self.paths.len())
    }
}

/// Returns the index of the next entry of a table. A table is full at 2^32 − 2 entries, because references are stored
/// as the index plus one and must fit 32 bits.
fn next_index(len: usize, table: Structure) -> Result<u32> {
    match u32::try_from(len) {
        Ok(index) if index < u32::MAX - 1 => Ok(index),
        _ => Err(ErrorKind::LimitExceeded
            .error("a table is full")
            .within(table)
            .found(format_args!("{len} entries"))
            .expected("fewer than 2^32 - 2")),
    }
}

/// Decodes an optional reference: files store the index plus one, or 0 for no reference (`None`).
fn optional(stored: u32) -> Option<u32> {
    stored.checked_sub(1)
}

fn stored(reference: Option<u32>) -> u32 {
    reference.map_or(0, |index| index.saturating_add(1))
}

fn put_words(sink: &mut dyn Sink, words: &[u32]) -> Result<()> {
    words
        .iter()
        .try_for_each(|word| sink.put(&word.to_le_bytes()))
}

/// For each entry of a table, its depth: the number of entries from this entry to the outermost folder or frame.
/// Readers use the depth to enforce the limit on the length of paths and call stacks.
struct Depths(Vec<u16>);

impl Depths {
    fn new(count: usize) -> Self {
        Depths(Vec::with_capacity(count))
    }

    fn add(&mut self, parent: Option<u32>) -> Result<()> {
        let above = parent.and_then(|parent| self.0.get(parent as usize));
        let depth = above.map_or(1, |above| above.saturating_add(1));
        if depth > TABLE_DEPTH {
            return Err(ErrorKind::LimitExceeded
                .error("a path or a call stack is too long")
                .found(format_args!("{depth} entries"))
                .expected(format_args!("at most {TABLE_DEPTH}")));
        }
        self.0.push(depth);
        Ok(())
    }
}

#[cold]
fn out_of_range(what: &'static str, table: Structure, index: u32, len: usize) -> Error {
    ErrorKind::Malformed
        .error(format!("the index of {what} is out of bounds"))
        .within(table)
        .found(index)
        .expected(format_args!("an index below {len}"))
}
