//! The earlier profile in a pool: its counts and values are added to those of this process.
use super::replace::{contents, read_whole};
use super::State;
use crate::memory::Area;
use crate::profile::{ids_size, Old, OldHeader, Parts, Sections};
use crate::system::{self, error};
use crate::layout::LAYOUT;

impl State {
    /// Adds the counts and values of the profile in a file to the profile in `parts`. Returns the bytes of the file that
    /// are now in memory, if there are any. If there is no other memory for the sums, they overwrite the counts in
    /// these bytes. Returns `None` if the file is no profile of this image.
    pub(super) fn add_old(
        &mut self,
        file: i32,
        sections: &Sections,
        parts: &mut Parts<'static>,
    ) -> system::Result<Option<Area>> {
        let size = system::end(file)?;
        let (before, old) = if size > self.buffer.len() {
            self.read_old(file, size, sections, ids_size(parts.build_id))?
        } else {
            let before = contents(file)?;
            if before.length == 0 {
                return Ok(Some(before));
            }
            // SAFETY: the bytes are readable.
            (before, unsafe { sections.old(before, true, true) })
        };
        let old = match old {
            Some(old) => old,
            None => {
                system::unmap(before.start, before.length);
                return Ok(None);
            }
        };
        // SAFETY: the bytes are readable and writable. All places have as many counts as the sections.
        unsafe {
            let new = match parts.counts {
                Some(taken) => taken,
                None => sections.counts(),
            };
            let sums = if self.room == 0 {
                old.counts
            } else {
                sections.counts_at(self.room)
            };
            sections.add(new, old.counts, sums);
            parts.counts = Some(sums);
            parts.old = Some(old.values);
        }
        Ok(Some(before))
    }

    /// Reads the profile in a file of `size` bytes. Only the part from its counters on stays in memory, because new
    /// memory is expensive: the records before it are compared piece by piece. Returns the part in memory, and what
    /// is in it, or `None` if the file is no profile of this image.
    fn read_old(
        &mut self,
        file: i32,
        size: usize,
        sections: &Sections,
        ids_size: usize,
    ) -> system::Result<(Area, Option<Old>)> {
        let data = LAYOUT.header_words * 8 + ids_size;
        if size < sections.size(ids_size) || data > self.buffer.len() {
            return Ok((Area::EMPTY, None));
        }
        system::rewind(file)?;
        let header = self.buffer.as_ptr() as usize;
        // SAFETY: the buffer has room for this, and the header is read after that.
        let found = unsafe {
            if read_whole(file, header, data)? {
                sections.old_header(header, true)
            } else {
                None
            }
        };
        let mut old = match found {
            Some(old) if old.ids_size == ids_size => old,
            _ => return Ok((Area::EMPTY, None)),
        };
        let length = size - sections.counters_offset(ids_size);
        // The memory has room for some records at least.
        let rest = Area {
            start: system::map_all(if length < self.buffer.len() {
                self.buffer.len()
            } else {
                length
            }),
            length,
        };
        if rest.start == 0 {
            return Err(error::NO_MEMORY);
        }
        // SAFETY: the memory is new and has room for what is read. The records and the counts are read from it after
        // that.
        let read = unsafe { read_rest(file, sections, rest, &mut old) };
        if read.is_err() {
            system::unmap(rest.start, rest.length);
        }
        read.map(|found| (rest, found))
    }
}

/// Reads the records of the earlier profile in a file piece by piece, and then the counts and everything that follows,
/// to the memory `rest`. Returns `None` if they are not those of this image.
///
/// # Safety
/// The caller must pass writable memory of at least one page, a file whose position is at the records, and the header of
/// the profile in it.
unsafe fn read_rest(
    file: i32,
    sections: &Sections,
    rest: Area,
    old: &mut OldHeader,
) -> system::Result<Option<Old>> {
    let stride = LAYOUT.stride;
    let room = if rest.length < 4096 {
        4096
    } else {
        rest.length
    } / stride;
    let mut first = 0;
    while first < sections.records() {
        let left = sections.records() - first;
        let count = if left < room { left } else { room };
        // SAFETY: the memory has room for so many records, which are read after that.
        unsafe {
            if !read_whole(file, rest.start, count * stride)?
                || !sections.same_records(first, count, rest.start, old)
            {
                return Ok(None);
            }
        }
        first += count;
    }
    // SAFETY: the memory has room for the rest of the file, and the records were checked.
    unsafe {
        Ok(if read_whole(file, rest.start, rest.length)? {
            sections.old_counts(rest, true, old)
        } else {
            None
        })
    }
}
