//! Replaces files completely. If a process is killed at any instant, either the old file or the new file exists, and at
//! most one temporary file per profile is left.
use super::{first_error, make_folders, to_file, State};
use crate::memory::{starts_with, Area};
use crate::message::Message;
use crate::output::{Output, Segment};
use crate::profile::{ids_size, Parts, Sections};
use crate::system::{self, error, Facts, Links, Open};

/// The largest number of symbolic links that are followed. It is the same as in Linux.
const LINKS_MAX: usize = 40;

pub(super) struct Opened {
    pub(super) descriptor: i32,
    /// Whether the file is locked, so that no other process writes it until it is closed.
    locked: bool,
    replaceable: bool,
    facts: Facts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Special,
    Named,
    /// A link in /proc to an open file, as `/dev/stdout`: the process goes on to use it, so no new file may replace it.
    Open,
}

impl Opened {
    /// Unlocks too: a process that was made without fork handlers may have the same descriptor.
    pub(super) fn close(self) {
        system::unlock(self.descriptor);
        let _ = system::close(self.descriptor);
    }
}

impl State {
    pub(super) fn follow_links(&mut self) -> system::Result<Target> {
        self.target.copy(&self.name);
        // SAFETY: a `Name` is always zero-terminated.
        match unsafe { system::facts_at(self.target.as_ptr(), Links::Stay) } {
            Err(_) => return Ok(Target::Named),
            Ok(facts) if !facts.is_link() => {
                return Ok(if facts.is_special() {
                    Target::Special
                } else {
                    Target::Named
                });
            }
            Ok(_) => {}
        }
        // SAFETY: a `Name` is always zero-terminated.
        if let Ok(facts) = unsafe { system::facts_at(self.target.as_ptr(), Links::Follow) } {
            if facts.is_special() {
                return Ok(Target::Special);
            }
        }
        for _ in 0..LINKS_MAX {
            let path = self.target.as_bytes();
            if starts_with(path, b"/proc/") || starts_with(path, b"/dev/fd/") {
                return Ok(Target::Open);
            }
            // SAFETY: a `Name` is always zero-terminated.
            let read = unsafe { system::read_link(self.target.as_ptr(), &mut self.buffer) };
            // Usually the path is no link. After any other error, opening the file fails too.
            let link = match read.map(|length| self.buffer.get(..length)) {
                Ok(Some(link)) => link,
                _ => return Ok(Target::Named),
            };
            self.target.cut(if starts_with(link, b"/") {
                0
            } else {
                self.target.folder_length()
            });
            self.target.extend(link);
            if self.target.too_long {
                return Err(error::NAME_TOO_LONG);
            }
        }
        Err(error::TOO_MANY_LINKS)
    }

    pub(super) fn open(
        &mut self,
        open: unsafe fn(*const u8) -> system::Result<i32>,
    ) -> system::Result<i32> {
        // SAFETY: a `Name` is always zero-terminated.
        match unsafe { open(self.target.as_ptr()) } {
            Err(error::NO_ENTRY) => {}
            other => return other,
        }
        self.other.copy(&self.target);
        make_folders(&mut self.other);
        // SAFETY: a `Name` is always zero-terminated.
        unsafe { open(self.target.as_ptr()) }
    }

    pub(super) fn open_locked(&mut self, mut target: Target) -> system::Result<Opened> {
        loop {
            let descriptor = self.open(system::open_pool)?;
            let locked = system::lock(descriptor);
            let file = Opened {
                descriptor,
                locked: locked.is_ok(),
                replaceable: target == Target::Named,
                facts: system::facts_of(descriptor),
            };
            if let Err(number) = locked {
                // Some network file systems have no locks.
                Message::Warning.tell(
                    &mut self.line,
                    b"cannot lock the file of the profile: other processes may replace it",
                    number,
                );
                return Ok(file);
            }
            // Another process may have replaced the file while this process waited.
            // SAFETY: a `Name` is always zero-terminated.
            if let Ok(facts) = unsafe { system::facts_at(self.target.as_ptr(), Links::Follow) } {
                let ([a, b], [c, d]) = (facts.identity, file.facts.identity);
                if a == c && b == d {
                    return Ok(file);
                }
            }
            file.close();
            target = self.follow_links()?;
        }
    }

    /// Writes all bytes by one system call or none: Linux copies one page without a check for a kill. `before` are the
    /// bytes in the file. Returns 0 or an error number; `None` if that is not possible.
    pub(super) fn write_short(
        &mut self,
        file: &Opened,
        sections: &Sections,
        parts: &Parts<'_>,
        before: Area,
    ) -> Option<i32> {
        if !file.locked
            || !file.replaceable
            || sections.size(ids_size(parts.build_id)) > self.buffer.len()
        {
            return None;
        }
        // SAFETY: `refuse` may be called with anything; the sections were checked; only one thread is here at a time.
        let length = unsafe {
            let mut output = Output::new(refuse, core::ptr::null_mut(), &mut self.buffer);
            sections.write(&mut output, parts);
            output.held()?
        };
        if before.length != 0 && before.length != length {
            return None;
        }
        let file = file.descriptor;
        let mut result = first_error(0, system::rewind(file));
        if result == 0 {
            result = put(file, self.buffer.as_ptr() as usize, length);
            // Network file systems report some errors only when a descriptor is closed.
            result = first_error(result, system::close_copy(file));
        }
        if result != 0 && system::rewind(file).is_ok() {
            // The disk may be full, or the file too large: the old bytes are restored.
            put(file, before.start, before.length);
            let _ = system::set_size(file, before.length);
        }
        Some(result)
    }

    /// Writes a new file in place of the locked one, or to it if the folder does not allow that.
    pub(super) fn replace_file(
        &mut self,
        file: &Opened,
        sections: &Sections,
        parts: &Parts<'_>,
        kept: Area,
    ) -> i32 {
        if !file.replaceable {
            return self.overwrite(file.descriptor, sections, parts, kept);
        }
        // The lock protects the temporary name, at which a killed process may have left a file.
        let process = if file.locked { 0 } else { system::process() };
        self.other.temporary_of(&self.target, process);
        // SAFETY: a `Name` is always zero-terminated.
        let mut opened = unsafe { system::open(self.other.as_ptr(), Open::Create) };
        if let Err(error::EXISTS) = opened {
            // SAFETY: a `Name` is always zero-terminated.
            opened = unsafe {
                system::unlink(self.other.as_ptr());
                system::open(self.other.as_ptr(), Open::Create)
            };
        }
        let new = match opened {
            Ok(new) => new,
            Err(error::ACCESS | error::NOT_PERMITTED | error::EXISTS | error::READ_ONLY) => {
                return self.overwrite(file.descriptor, sections, parts, kept);
            }
            Err(number) => return number,
        };
        // The new file is locked too: no other process may use the temporary name until the old one is removed.
        let mut result = if file.locked {
            first_error(0, system::lock(new))
        } else {
            0
        };
        system::keep_owner(&file.facts, new);
        if result == 0 {
            result = self.emit(new, sections, parts, kept);
        }
        // Network file systems report some errors at closing, so a copy of the descriptor is closed.
        result = first_error(result, system::close_copy(new));
        if result == 0 {
            // The two files exchange their names. If a rename replaced the old file, ext4 would write the new file to
            // the disk immediately, which takes five times as long as the exchange. The rename is used only on old
            // kernels and file systems that cannot exchange names.
            // SAFETY: a `Name` is always zero-terminated.
            result = unsafe {
                match system::exchange(self.other.as_ptr(), self.target.as_ptr()) {
                    Ok(()) => {
                        system::unlink(self.other.as_ptr());
                        0
                    }
                    Err(_) => {
                        first_error(0, system::rename(self.other.as_ptr(), self.target.as_ptr()))
                    }
                }
            };
        }
        if result != 0 {
            // SAFETY: a `Name` is always zero-terminated.
            unsafe { system::unlink(self.other.as_ptr()) };
        }
        system::unlock(new);
        let _ = system::close(new);
        if result == error::NOT_PERMITTED || result == error::ACCESS || result == error::BUSY {
            // Only the owner may replace files in this folder, or something is mounted at the name: the old file is
            // written.
            result = self.overwrite(file.descriptor, sections, parts, kept);
        }
        result
    }

    pub(super) fn overwrite(
        &mut self,
        file: i32,
        sections: &Sections,
        parts: &Parts<'_>,
        kept: Area,
    ) -> i32 {
        let start = if kept.length == 0 {
            system::rewind(file)
        } else {
            system::end(file).map(|_| ())
        };
        let mut result = first_error(0, start);
        if result == 0 {
            result = self.emit(file, sections, parts, Area::EMPTY);
        }
        if result == 0 {
            result = match system::position(file) {
                Ok(size) => first_error(0, system::set_size(file, size).map(|_| ())),
                Err(number) => number,
            };
        }
        if result != 0 && kept.length != 0 {
            // A part of the new profile would make the whole file unreadable.
            let _ = system::set_size(file, kept.length);
        }
        result
    }
}

fn put(file: i32, start: usize, length: usize) -> i32 {
    let mut segment = [start, length];
    // SAFETY: the callers pass the bytes of the buffer or those that were read from the file.
    unsafe { to_file(file as usize as *mut u8, &mut segment, 1) }
}

/// The write function of an output that must fit into its buffer. It accepts no bytes and returns an error.
unsafe extern "C" fn refuse(_context: *mut u8, _segments: *mut Segment, _count: usize) -> i32 {
    error::FILE_TOO_LARGE
}

pub(super) fn contents(file: i32) -> system::Result<Area> {
    let size = system::end(file)?;
    if size == 0 {
        return Ok(Area::EMPTY);
    }
    system::rewind(file)?;
    let start = system::map_all(size);
    if start == 0 {
        return Err(error::NO_MEMORY);
    }
    // If the file has become shorter meanwhile, the rest of the memory is zero. The bytes are then no valid profile.
    // SAFETY: the new memory has this size.
    match unsafe { read_whole(file, start, size) } {
        Ok(_) => Ok(Area {
            start,
            length: size,
        }),
        Err(number) => {
            system::unmap(start, size);
            Err(number)
        }
    }
}

/// Reads `size` bytes from the file's position on to the address `start`. Returns false if the file has fewer bytes.
///
/// # Safety
/// The caller must ensure that `size` bytes are writable at `start`.
pub(super) unsafe fn read_whole(file: i32, start: usize, size: usize) -> system::Result<bool> {
    let mut at = 0;
    while at < size {
        // SAFETY: the caller promises that the place is writable.
        let room = unsafe { core::slice::from_raw_parts_mut((start + at) as *mut u8, size - at) };
        match system::read(file, room) {
            Ok(0) => return Ok(false),
            Ok(read) => at += read,
            Err(error::INTERRUPTED) => {}
            Err(number) => return Err(number),
        }
    }
    Ok(true)
}
