//! Counters that are in the file while the program runs. The directive `%c` in the file's name asks for them.
use super::replace::contents;
use super::{State, INVALID_OPEN_FILE, MAPPED_BITMAP, MAPPED_COUNTERS};
use crate::image;
use crate::memory::read;
use crate::memory::Area;
use crate::message::Message;
use crate::profile::{counters_padding, ids_size, Parts, Sections};
use crate::system::{self, error};
use core::sync::atomic::{AtomicI64, Ordering};

impl State {
    pub(super) fn map(&mut self) -> bool {
        let sections = image::sections();
        if image::counter_bias() == 0 {
            Message::Error.tell(&mut self.line, b"Neither __llvm_profile_counter_bias nor __llvm_profile_bitmap_bias is defined: the program was not compiled for %c. \
                      The profile is written at exit. Compile it with -fprofile-continuous (clang 21), -mllvm -runtime-counter-relocation, or rustc's -Cllvm-args=-runtime-counter-relocation", 0);
            return false;
        }
        if !self.check(&sections) {
            return false;
        }
        if self.name.too_long {
            self.failed(error::NAME_TOO_LONG);
            return false;
        }
        if !self.asked.pool && !self.first_use() {
            // Another image of this process, or a process that has started this one, already has its counters in the
            // file. So this image uses a separate file.
            // SAFETY: the sections are readable.
            let signature = unsafe { sections.signature(image::build_id()) };
            self.pool.copy(&self.name);
            self.name.own_of(
                &self.pool,
                (signature as u32).wrapping_add(system::process()),
            );
        }
        match self.map_file(&sections) {
            Ok(start) => {
                // SAFETY: the file that is mapped at `start` has the sections of this image.
                unsafe { count_in(&in_file(&sections, start), &sections) };
                true
            }
            Err(number) => {
                self.failed(number);
                false
            }
        }
    }

    /// Moves the counters from a mapped file to an open file, which is empty or has an earlier profile. Earlier counts
    /// stay in the old file. Returns false after a message.
    pub(super) fn map_open(&mut self, file: i32) -> bool {
        let sections = image::sections();
        if let Err(number) = system::lock(file) {
            self.failed(number);
            return false;
        }
        let mapped = self.map_open_locked(file, &sections);
        system::unlock(file);
        match mapped {
            Ok(start) => {
                // SAFETY: the file that is mapped at `start` has the sections of this image.
                unsafe { count_in(&in_file(&sections, start), &sections) };
                true
            }
            Err(error::INVALID) => {
                Message::Error.tell(&mut self.line, INVALID_OPEN_FILE, 0);
                false
            }
            Err(number) => {
                self.failed(number);
                false
            }
        }
    }

    /// Maps a locked file, with a profile without counts if it is empty. Returns the address.
    fn map_open_locked(&mut self, file: i32, sections: &Sections) -> system::Result<usize> {
        let build_id = image::build_id();
        let size = sections.size(ids_size(build_id));
        let before = contents(file)?;
        if before.length == 0 {
            let parts = Parts {
                build_id,
                values: false,
                no_sites: true,
                old: None,
                counts: None,
            };
            let result = self.overwrite(file, sections, &parts, Area::EMPTY);
            if result != 0 {
                return Err(result);
            }
        } else {
            // SAFETY: the bytes are readable.
            let usable =
                before.length == size && unsafe { sections.old(before, true, false) }.is_some();
            system::unmap(before.start, before.length);
            if !usable {
                return Err(error::INVALID);
            }
        }
        let start = system::map_file(file, size)?;
        if before.length == 0 {
            // The profile that was just written to the open file contains the counts up to now. The image's first file
            // keeps these counts, so they are set to 0 in the open file.
            // SAFETY: the mapped file has the sections of this image, and nobody else uses it while it is locked.
            unsafe { in_file(sections, start).reset_counters() };
        }
        Ok(start)
    }

    /// Maps the file: a profile to which the counts up to this point are added, or else a new one.
    fn map_file(&mut self, sections: &Sections) -> system::Result<usize> {
        let build_id = image::build_id();
        let size = sections.size(ids_size(build_id));
        let target = self.follow_links()?;
        let mut file = self.open_locked(target)?;
        let before = match contents(file.descriptor) {
            Ok(before) => before,
            Err(number) => {
                file.close();
                return Err(number);
            }
        };
        let mut used = false;
        if self.asked.pool && before.length == size {
            // SAFETY: the bytes are readable.
            used = unsafe { sections.old(before, true, false) }.is_some();
        }
        let mut start = 0;
        let mut descriptor = file.descriptor;
        if !used {
            let parts = Parts {
                build_id,
                values: false,
                no_sites: true,
                old: None,
                counts: None,
            };
            if self.asked.pool && before.length != 0 {
                file.close();
                self.choose_own();
                let target = self.follow_links()?;
                file = self.open_locked(target)?;
            }
            let result = self.replace_file(&file, sections, &parts, Area::EMPTY);
            file.close();
            if result != 0 {
                return Err(result);
            }
            descriptor = self.open(system::open_pool)?;
        }
        let mapped = system::map_file(descriptor, size);
        if let Ok(address) = mapped {
            start = address;
            if used {
                let there = in_file(sections, start).counts();
                // SAFETY: the mapped file was checked, and has the size of the sections.
                unsafe { sections.add(there, sections.counts(), there) };
            }
        }
        system::unlock(descriptor);
        let _ = system::close(descriptor);
        if before.length != 0 {
            system::unmap(before.start, before.length);
        }
        mapped.map(|_| start)
    }
}

/// The sections of this image with the counters and bitmaps of a file at `start`.
fn in_file(sections: &Sections, start: usize) -> Sections {
    let mut there = *sections;
    there.counters.start = start + sections.counters_offset(ids_size(image::build_id()));
    there.bitmap.start = there.counters.start
        + sections.counters.length
        + counters_padding(sections.counters.length);
    there
}

/// Makes the program count in a mapped file. `there` are the sections in the file, `sections` those of this image.
///
/// # Safety
/// The caller must pass the sections of this image, and those in a file that stays mapped.
unsafe fn count_in(there: &Sections, sections: &Sections) {
    let distance = |there: usize, here: usize| there.wrapping_sub(here) as i64;
    let (bias, bitmap_bias) = (image::counter_bias(), image::bitmap_bias());
    // SAFETY: the compiler has defined these variables as words; both places are in the mapped file.
    unsafe {
        (*(bias as *const AtomicI64)).store(
            distance(there.counters.start, sections.counters.start),
            Ordering::Release,
        );
        if bitmap_bias != 0 {
            (*(bitmap_bias as *const AtomicI64)).store(
                distance(there.bitmap.start, sections.bitmap.start),
                Ordering::Release,
            );
        }
    }
    MAPPED_COUNTERS.store(there.counters.start, Ordering::Relaxed);
    MAPPED_BITMAP.store(there.bitmap.start, Ordering::Relaxed);
}

/// Copies the bitmaps to the mapped file. Does nothing if the program itself writes them there.
pub(super) fn copy_bitmap(sections: &Sections) {
    if image::bitmap_bias() == 0 {
        let place = MAPPED_BITMAP.load(Ordering::Relaxed);
        for at in 0..sections.bitmap.length {
            // SAFETY: the mapped file has as many bytes of bitmaps as the image.
            unsafe {
                let byte: u8 = read(sections.bitmap.start + at);
                crate::memory::write(place + at, byte | read::<u8>(place + at));
            }
        }
    }
}
