//! Counters that are in the file while the program runs (`%c`).
use super::replace::contents;
use super::{State, MAPPED_BITMAP, MAPPED_COUNTERS};
use crate::image;
use crate::memory::read;
use crate::memory::Area;
use crate::message::Message;
use crate::profile::{counters_padding, ids_size, Parts, Sections};
use crate::system::{self, error};
use crate::values;
use core::sync::atomic::{AtomicI64, Ordering};

impl State {
    /// Maps the file, and lets the program count in it. Returns false after a message, if that is not possible.
    pub(super) fn map(&mut self) -> bool {
        let sections = image::sections();
        let (bias, bitmap_bias) = (image::counter_bias(), image::bitmap_bias());
        if bias == 0 {
            Message::Error.say(&mut self.line, &[
                    b"Neither __llvm_profile_counter_bias nor __llvm_profile_bitmap_bias is defined: the program was not compiled for %c. ",
                    b"The profile is written at exit. Compile it with -fprofile-continuous (clang 21), -mllvm -runtime-counter-relocation, or rustc's -Cllvm-args=-runtime-counter-relocation",
                ],
                0,
            );
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
            // Another image of this process, or a process that has started this one, counts in the file.
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
                let counters = start + sections.counters_offset(ids_size(image::build_id()));
                let bitmap = counters
                    + sections.counters.length
                    + counters_padding(sections.counters.length);
                // SAFETY: the compiler has defined these variables as words; both places are in the mapped file.
                unsafe {
                    let distance = counters.wrapping_sub(sections.counters.start) as i64;
                    (*(bias as *const AtomicI64)).store(distance, Ordering::Release);
                    if bitmap_bias != 0 {
                        let distance = bitmap.wrapping_sub(sections.bitmap.start) as i64;
                        (*(bitmap_bias as *const AtomicI64)).store(distance, Ordering::Release);
                    }
                }
                MAPPED_COUNTERS.store(counters, Ordering::Relaxed);
                MAPPED_BITMAP.store(bitmap, Ordering::Relaxed);
                true
            }
            Err(number) => {
                self.failed(number);
                false
            }
        }
    }

    /// Writes the file, or adds the counts to those in it, and maps it. Returns the address of the file.
    fn map_file(&mut self, sections: &Sections) -> system::Result<usize> {
        let build_id = image::build_id();
        let size = sections.size(ids_size(build_id));
        let mut file = self.open_locked()?;
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
                self.pool.copy(&self.name);
                self.name.own_of(&self.pool, system::process());
                Message::Warning.say(&mut self.line, &[b"Unable to merge profile data: the file is damaged or of another program. It is kept, and this process counts in a file of its own"],
                    0,
                );
                file = self.open_locked()?;
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
                let mut there = *sections;
                there.counters.start = start + sections.counters_offset(ids_size(build_id));
                there.bitmap.start = there.counters.start
                    + sections.counters.length
                    + counters_padding(sections.counters.length);
                let mine = crate::profile::Old {
                    data: sections.data.start,
                    counters: sections.counters.start,
                    bitmap: sections.bitmap.start,
                    values: values::OldValues::NONE,
                };
                // SAFETY: the mapped file was checked, and has the size of the sections.
                unsafe { there.add_counts(&mine) };
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

/// Copies the bitmaps to the mapped file, if the program does not write them there itself.
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
