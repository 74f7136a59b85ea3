//! Writes the raw file of an image. The bytes go to a temporary file, which is then renamed. If the file is a merge
//! pool, the counts of earlier runs are added.
use crate::header::{build_id_padding, Header};
use crate::image::{self, Range};
use crate::name::{Facts, Name, NAME_MAX};
use crate::records::{add_byte, add_count, add_ordinal, adding, Adding};
use crate::stream::{Sink, Stream};
use crate::sys::{self, error, Open};
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use profkit_abi::mip::{raw_header, record, DEFAULT_FILE_NAME};

/// Whether a dump is running. Only one dump at a time may use the work area.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The id of the process whose calls the records count.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether this process is a forked child of a process that already contained this runtime.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Whether the missing build id was reported already.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// The number of names for temporary files that were made so far. Each name contains the next number.
static TEMPORARIES: AtomicU32 = AtomicU32::new(0);
/// The length of the file name pattern; 0 means the default pattern. It is stored with Release after the pattern's
/// bytes were stored, and loaded with Acquire before they are loaded.
static PATTERN_LENGTH: AtomicUsize = AtomicUsize::new(0);
/// A copy of the file name pattern, made at start because programs may overwrite their environment.
static mut PATTERN: [u8; NAME_MAX] = [0; NAME_MAX];
static mut WORK: Work = Work {
    name: Name::EMPTY,
    other: Name::EMPTY,
    line: Name::EMPTY,
    source: Source {
        file: 0,
        buffer: [0; 512],
        at: 0,
        end: 0,
    },
};

/// The buffers of a dump. They are static, because the stack of a signal handler may be small.
struct Work {
    name: Name,
    /// First the name of the folder that contains the raw file, later the name of the temporary file.
    other: Name,
    line: Name,
    source: Source,
}

/// The descriptor of a file that is being written. If it is [`NO_FILE`], nothing is written, and the bytes are only
/// hashed.
struct File(i32);

const NO_FILE: i32 = -1;

impl Sink for File {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), i32> {
        while !bytes.is_empty() && self.0 != NO_FILE {
            match sys::write(self.0, bytes) {
                Ok(0) => return Err(error::NO_SPACE),
                Ok(written) => {
                    bytes = match bytes.get(written..) {
                        Some(rest) => rest,
                        None => &[],
                    }
                }
                Err(error::INTERRUPTED) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }
}

/// A file that is being read.
struct Source {
    file: i32,
    buffer: [u8; 512],
    at: usize,
    end: usize,
}

impl Source {
    fn next(&mut self) -> Option<u8> {
        if self.at >= self.end {
            self.at = 0;
            self.end = loop {
                match sys::read(self.file, &mut self.buffer) {
                    Err(error::INTERRUPTED) => {}
                    Ok(length) => break length,
                    Err(_) => break 0,
                }
            };
            if self.end == 0 {
                return None;
            }
        }
        let byte = self.buffer.get(self.at);
        self.at += 1;
        match byte {
            Some(&byte) => Some(byte),
            None => None,
        }
    }

    /// Returns the next byte of a file that an earlier pass has read to its end. If the file has become shorter since
    /// then, returns the initial value of a record in place of each missing byte.
    fn again(&mut self) -> u8 {
        match self.next() {
            Some(byte) => byte,
            None => record::INITIAL_BYTE,
        }
    }

    fn again_word(&mut self) -> u32 {
        u32::from_le_bytes([self.again(), self.again(), self.again(), self.again()])
    }
}

/// Stores the id of this process and the file name pattern; a null pointer means the default pattern. If another thread
/// dumps at the same time, that dump uses the default pattern.
///
/// # Safety
/// The caller must pass a `pattern` that is null or zero-terminated, and must ensure that nobody changes it during the
/// call. The caller must call this at most once per image.
pub unsafe fn start(pattern: *const u8) {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    if pattern.is_null() {
        return;
    }
    let mut length = 0;
    // SAFETY: the caller promises that nobody else writes PATTERN, and nobody reads it while its length is 0. For a
    // pattern that is too long, the stored length is longer than any valid name.
    unsafe {
        while length < NAME_MAX && *pattern.add(length) != 0 {
            *addr_of_mut!(PATTERN).cast::<u8>().add(length) = *pattern.add(length);
            length += 1;
        }
    }
    PATTERN_LENGTH.store(length, Ordering::Release);
}

/// Prepares a forked child for its own dump: stores the id of the child, and lets its raw file have a different name
/// from its parent's.
///
/// # Safety
/// The caller must ensure that this process was forked, and that it has not started a dump since the fork. If BUSY is
/// then set, it was set by a thread of the parent, which does not exist in the child.
pub unsafe fn forked() {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
    // If a dump was running during the fork, it ran in a thread of the parent, which does not exist in the child.
    BUSY.store(false, Ordering::Release);
}

/// Writes the raw file. Returns 0, or −1 after printing an error to stderr. If another dump is running, writes nothing
/// and returns `None` without waiting.
pub fn dump_if_idle() -> Option<i32> {
    if BUSY.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: BUSY is set, so no other call uses the work area.
    let result = unsafe { dump_with(&mut *addr_of_mut!(WORK)) };
    BUSY.store(false, Ordering::Release);
    Some(result)
}

/// Waits until no other dump is running, then writes the raw file. Returns 0, or −1 after printing an error to stderr.
pub fn dump() -> i32 {
    loop {
        if let Some(result) = dump_if_idle() {
            return result;
        }
        if PROCESS.load(Ordering::Relaxed) != sys::process() {
            // SAFETY: the process was forked without calling the fork handler, while another thread of the parent was
            // dumping; that thread does not exist in the child. `forked` stores the process id, so the child does not
            // call it a second time.
            unsafe { forked() };
        }
        sys::pause();
    }
}

fn dump_with(work: &mut Work) -> i32 {
    let records = image::records();
    if records.length() == 0 {
        return 0;
    }
    let image = image::facts();
    let process = sys::process();
    let length = PATTERN_LENGTH.load(Ordering::Acquire);
    let pattern = if length == 0 {
        DEFAULT_FILE_NAME.as_bytes()
    } else {
        // SAFETY: `start` has written `length` bytes before it stored the length, and never writes them again.
        unsafe { core::slice::from_raw_parts(addr_of_mut!(PATTERN).cast::<u8>(), length) }
    };
    let mut facts = Facts {
        process,
        build_id: image.build_id,
        program: image.program,
        address: records.address(),
        forked: FORKED.load(Ordering::Relaxed) || process != PROCESS.load(Ordering::Relaxed),
        // If the fork handler was not called after a fork, the records still contain the parent's counts. They must not
        // be added to a pool.
        no_pool: process != PROCESS.load(Ordering::Relaxed),
    };
    let mut part = Part {
        records,
        samples: image::ring(),
        build_id: image.build_id,
        modes: image::modes(),
    };
    loop {
        work.name.clear();
        work.name.expand(pattern, &facts);
        if work.name.too_long {
            return work.complain(b"its name is too long", 0);
        }
        if image.build_id.is_empty() && !REPORTED.swap(true, Ordering::Relaxed) {
            work.complain(b"this image has no build id (link with -Wl,--build-id): its builds cannot be distinguished", 0);
        }
        let result = if work.name.pool {
            match work.add_to_pool(&mut part, process) {
                Some(result) => result,
                // These records cannot be added to a pool, so this process writes a file of its own.
                None => {
                    facts.no_pool = true;
                    continue;
                }
            }
        } else {
            work.write(&part, process, None)
        };
        return match result {
            Ok(()) => 0,
            Err(number) => work.complain(b"cannot write it", number),
        };
    }
}

/// The data of one image, which become one part of a raw file.
struct Part {
    records: Range,
    samples: Range,
    build_id: &'static [u8],
    modes: &'static [u32],
}

impl Part {
    fn header(&self, runs: u32) -> [u8; raw_header::SIZE] {
        let mut modes = 0;
        for set in self.modes {
            modes |= set;
        }
        Header {
            modes,
            build_id_length: self.build_id.len() as u32,
            samples_size: self.samples.length() as u32,
            runs,
            records_size: self.records.length() as u64,
        }
        .encode()
    }

    /// Writes the header and the build id to a stream.
    fn head(&self, stream: &mut Stream<File>, runs: u32) {
        stream.extend(&self.header(runs));
        stream.extend(self.build_id);
        for _ in 0..build_id_padding(self.build_id.len()) {
            stream.push(0);
        }
    }

    /// Writes the header, records, samples and checksum of the image to a file. The counts in `pool` are added if it is
    /// given.
    fn emit(&self, file: i32, pool: Option<Pool>, source: &mut Source) -> Result<(), i32> {
        let mut stream = Stream::new(File(file));
        let records = self.records;
        match pool {
            None => {
                self.head(&mut stream, 1);
                for range in [records, self.samples] {
                    for at in 0..range.length() {
                        // SAFETY: the index is below the length of the samples or records.
                        stream.push(unsafe { range.byte(at) });
                    }
                }
            }
            Some(Pool { runs, adding }) => {
                self.head(&mut stream, runs.saturating_add(1));
                let id = self.build_id.len();
                for _ in 0..raw_header::SIZE + id + build_id_padding(id) {
                    source.again();
                }
                if adding == Adding::Bytes {
                    for at in 0..records.length() {
                        // SAFETY: the index is below the length of the records.
                        stream.push(add_byte(source.again(), unsafe { records.byte(at) }));
                    }
                } else {
                    let mut at = 0;
                    // `add_to_pool` has checked that the records consist of complete units of eight bytes.
                    while at + record::CALLS_SIZE <= records.length() {
                        // SAFETY: a complete unit of eight bytes lies below the length of the records.
                        let (count, ordinal) = unsafe {
                            (records.word(at), records.word(at + record::ORDINAL_OFFSET))
                        };
                        let count = add_count(source.again_word(), count);
                        stream.extend(&count.to_le_bytes());
                        let ordinal = add_ordinal(source.again_word(), ordinal);
                        stream.extend(&ordinal.to_le_bytes());
                        at += record::CALLS_SIZE;
                    }
                }
            }
        }
        stream.finish_with_checksum()
    }

    /// Reads a pool file to its end. Returns the number of runs in it. Returns None if the file is incomplete, damaged
    /// or of another image.
    fn runs_of(&self, source: &mut Source) -> Option<u32> {
        let mut stream = Stream::new(File(NO_FILE));
        let mut runs = [0; 4];
        let mut at = 0_usize;
        for &expected in &self.header(0) {
            let byte = source.next()?;
            stream.push(byte);
            match runs.get_mut(at.wrapping_sub(raw_header::RUNS)) {
                Some(place) => *place = byte,
                None if byte != expected => return None,
                None => {}
            }
            at += 1;
        }
        for &expected in self.build_id {
            let byte = source.next()?;
            stream.push(byte);
            if byte != expected {
                return None;
            }
        }
        for _ in 0..build_id_padding(self.build_id.len()) + self.records.length() {
            stream.push(source.next()?);
        }
        for expected in &stream.finish().to_le_bytes() {
            if source.next()? != *expected {
                return None;
            }
        }
        match source.next() {
            Some(_) => None,
            None => Some(u32::from_le_bytes(runs)),
        }
    }
}

/// The content of a pool file. Its counts of earlier runs are added to those of this run.
#[derive(Clone, Copy)]
struct Pool {
    runs: u32,
    adding: Adding,
}

impl Work {
    /// Prints an error about the raw file to stderr. `number` is an error number of the system, or 0 for none. Returns
    /// −1.
    fn complain(&mut self, what: &[u8], number: i32) -> i32 {
        let line = &mut self.line;
        line.clear();
        line.extend(b"profkit: MIP profile ");
        // The file name is shortened so that the rest of the line fits.
        let mut room = 800;
        for &byte in self.name.as_bytes() {
            if room > 0 {
                line.push(byte);
                room -= 1;
            }
        }
        line.extend(b": ");
        line.extend(what);
        if number != 0 {
            line.extend(match number {
                error::NO_ENTRY => b": no such folder",
                error::ACCESS => b": permission denied",
                error::NOT_A_FOLDER => b": not a folder",
                error::NO_SPACE => b": no space left on device",
                error::READ_ONLY => b": read-only file system",
                _ => b"",
            });
            line.extend(b" (error ");
            line.decimal(number as u32);
            line.push(b')');
        }
        line.push(b'\n');
        // An error of this write is ignored, because there is no other place to report the error.
        let _ = sys::write(2, line.as_bytes());
        -1
    }

    /// Adds the records to the pool file, and resets the counts. Returns None if the records must go into a file of
    /// their own.
    fn add_to_pool(&mut self, part: &mut Part, process: u32) -> Option<Result<(), i32>> {
        let adding = adding(part.modes);
        let whole = adding == Adding::Bytes || part.records.length() % record::CALLS_SIZE == 0;
        if adding == Adding::Impossible
            || !whole
            || part.samples.length() != 0
            || part.build_id.is_empty()
        {
            return None;
        }
        self.other.folder_of(&self.name);
        // SAFETY: a `Name` is always zero-terminated.
        let folder = match unsafe { sys::open(self.other.as_ptr(), Open::Folder) } {
            Ok(folder) => folder,
            Err(number) => return Some(Err(number)),
        };
        let result = match sys::lock(folder) {
            Err(number) => {
                self.complain(
                    b"cannot lock its folder, so this process writes a file of its own",
                    number,
                );
                None
            }
            Ok(()) => self.add_locked(part, process, adding),
        };
        let _ = sys::close(folder);
        if let Some(Ok(())) = result {
            // The counts are reset so that they are not added twice. The next ordinal is not reset: a function whose
            // first call comes later gets a larger ordinal than all functions that were already written.
            part.records.fill(record::INITIAL_BYTE);
        }
        result
    }

    fn add_locked(&mut self, part: &Part, process: u32, adding: Adding) -> Option<Result<(), i32>> {
        // SAFETY: a `Name` is always zero-terminated.
        let file = match unsafe { sys::open(self.name.as_ptr(), Open::Read) } {
            Ok(file) => file,
            Err(error::NO_ENTRY) => return Some(self.write(part, process, None)),
            Err(number) => return Some(Err(number)),
        };
        self.source.file = file;
        self.source.at = 0;
        self.source.end = 0;
        let result = match part.runs_of(&mut self.source) {
            Some(runs) => Some(match sys::rewind(file) {
                Ok(()) => self.write(part, process, Some(Pool { runs, adding })),
                Err(number) => Err(number),
            }),
            None => {
                self.complain(b"is damaged or of another build; it is kept, and this process writes a file of its own", 0);
                None
            }
        };
        let _ = sys::close(file);
        result
    }

    /// Writes the raw file. The result is either the complete file or no file.
    fn write(&mut self, part: &Part, process: u32, pool: Option<Pool>) -> Result<(), i32> {
        // SAFETY: a `Name` is always zero-terminated.
        if unsafe { sys::is_special(self.name.as_ptr()) } {
            // SAFETY: a `Name` is always zero-terminated.
            let file = unsafe { sys::open(self.name.as_ptr(), Open::Write) }?;
            let written = part.emit(file, pool, &mut self.source);
            let closed = sys::close(file);
            return if written.is_ok() { closed } else { written };
        }
        let mut tries = 0;
        let file = loop {
            let number = TEMPORARIES.fetch_add(1, Ordering::Relaxed);
            self.other.temporary_of(&self.name, process, number);
            if self.other.too_long {
                self.other.too_long = false;
                return Err(error::NAME_TOO_LONG);
            }
            // SAFETY: a `Name` is always zero-terminated.
            match unsafe { sys::open(self.other.as_ptr(), Open::Create) } {
                // A killed process with the same process id has left this file, so another name is tried.
                Err(error::EXISTS) if tries < 100 => tries += 1,
                other => break other?,
            }
        };
        let mut written = part.emit(file, pool, &mut self.source);
        let closed = sys::close(file);
        if written.is_ok() {
            written = closed;
        }
        if written.is_ok() {
            // SAFETY: a `Name` is always zero-terminated.
            written = unsafe { sys::rename(self.other.as_ptr(), self.name.as_ptr()) };
        }
        if written.is_err() {
            // SAFETY: a `Name` is always zero-terminated.
            unsafe { sys::unlink(self.other.as_ptr()) };
        }
        written
    }
}
