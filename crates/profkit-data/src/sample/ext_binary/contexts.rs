//! The context table: the calling contexts of a file. The functions of the file refer to a calling context by its index
//! in this table.
use crate::bytes::Cursor;
use crate::limits::SAMPLE_CONTEXT_DEPTH;
use crate::sample::binary::body::location;
use crate::sample::binary::numbers;
use crate::sample::model::Location;
use crate::{ErrorKind, Result};

/// The calling contexts of a file. Each frame has the index of its name in the name table.
#[derive(Debug, Default)]
pub struct Contexts {
    frames: Vec<(u32, Location)>,
    ends: Vec<usize>,
}

impl Contexts {
    /// Adds the contexts of a section. `names` is the size of the name table.
    ///
    /// # Errors
    /// If the section is damaged. The contexts before the damage are kept.
    pub fn read(&mut self, cursor: &mut Cursor<'_>, names: usize) -> Result<()> {
        let count = numbers::count(
            cursor,
            1,
            "the context table claims more contexts than the bytes left can hold",
        )?;
        for _ in 0..count {
            let start = cursor.offset();
            let frames = numbers::count(
                cursor,
                3,
                "a context claims more frames than the bytes left can hold",
            )?;
            // The last frame is the function itself; the others are its callers.
            if frames == 0 || frames > SAMPLE_CONTEXT_DEPTH + 1 {
                return Err(ErrorKind::LimitExceeded
                    .error("a context has too few or too many frames")
                    .at(start)
                    .found(frames)
                    .expected(format_args!("1 to {}", SAMPLE_CONTEXT_DEPTH + 1)));
            }
            for _ in 0..frames {
                let start = cursor.offset();
                let name = cursor.uleb128()?;
                let name = u32::try_from(name)
                    .ok()
                    .filter(|&name| (name as usize) < names)
                    .ok_or_else(|| {
                        ErrorKind::OutOfTable
                            .error("the index of a name is beyond the name table")
                            .at(start)
                            .found(name)
                            .expected(format_args!("below {names}"))
                    })?;
                self.frames.push((name, location(cursor, true)?));
            }
            self.ends.push(self.frames.len());
        }
        Ok(())
    }

    /// Returns the number of calling contexts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the frames of the calling context with this index; `None` if there is no such context. A context has at
    /// least one frame.
    pub fn get(&self, number: u64) -> Option<&[(u32, Location)]> {
        let number = usize::try_from(number).ok()?;
        let &end = self.ends.get(number)?;
        let start = match number {
            0 => 0,
            _ => *self.ends.get(number - 1)?,
        };
        self.frames.get(start..end)
    }

    /// Returns the indexes of the calling contexts whose last frame has one of these names. `names` has the indexes of
    /// these names in the name table.
    pub fn of_leaves(&self, names: &[u64]) -> Vec<u64> {
        let leaf = |&end: &usize| self.frames.get(end.checked_sub(1)?).map(|frame| frame.0);
        (0u64..)
            .zip(&self.ends)
            .filter(|(_, end)| leaf(end).is_some_and(|name| names.contains(&u64::from(name))))
            .map(|(number, _)| number)
            .collect()
    }
}
