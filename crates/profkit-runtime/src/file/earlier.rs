//! The earlier profile in a pool (a file to which several processes add their counts): its counts and values are added
//! to those of this process.
use super::replace::{contents, read_whole};
use super::State;
use crate::layout::{LAYOUT, RAW};
use crate::memory::{starts_with, Area};
use crate::profile::{ids_size, Old, Parts, Sections};
use crate::system::{self, error};

/// An id of at least so many bytes belongs to one build. Some linkers also write ids of 8 bytes.
const UNIQUE_ID: usize = 16;

impl State {
    /// Adds the counts and values of a file. Returns its bytes that are in memory, if any: without other memory, the
    /// sums overwrite their counts. `None` if it is no profile of this image.
    pub(super) fn add_old(
        &mut self,
        file: i32,
        sections: &Sections,
        parts: &mut Parts<'static>,
    ) -> system::Result<Option<Area>> {
        let size = system::end(file)?;
        let mut before = Area::EMPTY;
        let old = if size > self.buffer.len() {
            self.read_old(file, size, sections, parts.build_id, &mut before)
        } else {
            before = contents(file)?;
            if before.length == 0 {
                return Ok(Some(before));
            }
            // SAFETY: the bytes are readable.
            Ok(unsafe { sections.old(before, true, true) })
        };
        let old = match old {
            Ok(Some(old)) => old,
            other => {
                system::unmap(before.start, before.length);
                return match other {
                    Err(number) => Err(number),
                    Ok(_) => Ok(None),
                };
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

    /// Reads a profile of `size` bytes. New memory is expensive: `before` gets as much as the part from the counters
    /// on. The records are read there piece by piece and compared, usually only the first piece if the build id is the
    /// same, and then that part. `None` if it is no profile of this image.
    fn read_old(
        &mut self,
        file: i32,
        size: usize,
        sections: &Sections,
        build_id: &[u8],
        before: &mut Area,
    ) -> system::Result<Option<Old>> {
        let ids_size = ids_size(build_id);
        let head = LAYOUT.header_words * 8 + ids_size;
        system::rewind(file)?;
        // SAFETY: the buffer has room for what is read into it, and so has the new memory. What is read is checked piece
        // by piece.
        unsafe {
            // A file that is too large might not fit into memory.
            let (smallest, largest) = (sections.size(ids_size), sections.largest(ids_size));
            if size < smallest
                || size > largest
                || head > self.buffer.len()
                || !read_whole(file, self.buffer.as_ptr() as usize, head)?
            {
                return Ok(None);
            }
            let mut old = match sections.old_header(self.buffer.as_ptr() as usize, true) {
                Some(old) if old.ids_size == ids_size => old,
                _ => return Ok(None),
            };
            let same_build = RAW > 7
                && build_id.len() >= UNIQUE_ID
                && starts_with(
                    self.buffer.get(head - ids_size + 8..).unwrap_or_default(),
                    build_id,
                );
            let length = size - sections.counters_offset(ids_size);
            // The memory must also have room for at least some of the records.
            before.length = if length < self.buffer.len() {
                self.buffer.len()
            } else {
                length
            };
            before.start = system::map_all(before.length);
            if before.start == 0 {
                before.length = 0;
                return Err(error::NO_MEMORY);
            }
            let room = if same_build {
                self.buffer.len()
            } else {
                before.length
            } / LAYOUT.stride;
            let mut first = 0;
            while first < sections.records() {
                let left = sections.records() - first;
                let count = if left < room { left } else { room };
                if !read_whole(file, before.start, count * LAYOUT.stride)?
                    || !sections.same_records(first, count, before.start, &mut old)
                {
                    return Ok(None);
                }
                first += count;
                if same_build && (smallest == largest || sections.finish_shift(first, &mut old)) {
                    break;
                }
            }
            system::seek(file, sections.counters_offset(ids_size))?;
            if !read_whole(file, before.start, length)? {
                return Ok(None);
            }
            let start = before.start;
            Ok(sections.old_counts(Area { start, length }, true, &old))
        }
    }
}
