//! Merge pools: files to which the counts of each run are added.
use crate::dump::{complain, signed_open, State, OWN_FILE};
use crate::file::{number_of, signed};
use crate::part::write_head;
use crate::records::{add_byte, add_count, add_ordinal, adding, Adding};
use crate::sys::{self, error, Open};
use profkit_abi::mip::{raw_header, record};

#[repr(C)]
pub struct Source {
    pub file: i32,
    at: u32,
    end: u32,
}

/// No file is read.
pub const NO_FILE: i32 = -1;

/// The number of bytes that one read asks for.
const BUFFER: usize = 512;
pub type Buffer = [u8; BUFFER];

impl Source {
    /// A source that was not used yet.
    pub const UNUSED: Self = Self {
        file: 0,
        at: 0,
        end: 0,
    };
}

impl State {
    #[inline(never)]
    fn next(&mut self) -> i32 {
        let source = &mut self.source;
        if source.at == source.end {
            source.at = 0;
            source.end = loop {
                let length = signed(sys::read(source.file, &mut self.buffer).map(|length| length as i32));
                if length >= 0 {
                    break length as u32;
                }
                if length != -error::INTERRUPTED {
                    break 0;
                }
            };
            if source.end == 0 {
                return -1;
            }
        }
        // SAFETY: `at` is less than `end`, which is at most the size of the buffer.
        let byte = unsafe { *self.buffer.as_ptr().add(source.at as usize) };
        source.at += 1;
        i32::from(byte)
    }

    #[inline(never)]
    fn next_word(&mut self) -> u32 {
        let mut word = 0;
        for _ in 0..4 {
            // The lowest byte comes first: each enters at the top and moves down.
            word = word >> 8 | (self.next() as u32) << 24;
        }
        word
    }

    /// Writes the data of the image, with the counts of the pool. Returns the first error, or 0. With `check`, only
    /// reads the pool: 0 says that it is complete and of this image, and its runs are in the header.
    #[inline(never)]
    pub fn emit(&mut self, adding: Adding, check: bool) -> i32 {
        self.stream.start();
        write_head(&self.part.header, self.names.build_id, &mut self.stream);
        if self.source.file == NO_FILE {
            self.part.records.emit(&mut self.stream);
        } else {
            // For the check, records count as without any call (all bits set), so that sums and their hash are those of
            // the pool.
            let mut mask = 0;
            if check {
                self.stream.only_hash();
                mask = u32::MAX;
            }
            // The pool must begin with the same header and build id; only the number of runs may differ.
            for at in 0..self.stream.block().len() {
                let byte = self.next();
                // SAFETY: `at` is below the length of the block, because nothing is added to the block in this loop.
                let expected = unsafe { self.stream.block().get_unchecked_mut(at) };
                if at & !3 == raw_header::RUNS {
                    if check {
                        *expected = byte as u8;
                        self.part.header.runs = self.part.header.runs >> 8 | (byte as u32) << 24;
                    }
                } else if byte != i32::from(*expected) {
                    return -1;
                }
            }
            let records = self.part.records;
            // If the pool is too short, the check finds that the checksum is missing, and no sums are written.
            let mut at = 0;
            while at < records.length() {
                if adding == Adding::Bytes {
                    // SAFETY: the index is below the length of the records.
                    let own = unsafe { records.byte(at) } | mask as u8;
                    let sum = add_byte(self.next() as u8, own);
                    self.stream.push(sum);
                    at += 1;
                } else {
                    // SAFETY: `add_to_pool` has checked that the records consist of complete units of eight bytes. The
                    // section with the records is aligned to four bytes.
                    let own = unsafe { records.word(at) } | mask;
                    let old = self.next_word();
                    let sum = if at & record::ORDINAL_OFFSET == 0 {
                        add_count(old, own)
                    } else {
                        add_ordinal(old, own)
                    };
                    self.stream.word(sum);
                    at += record::ORDINAL_OFFSET;
                }
            }
            if check {
                let mut hash = self.stream.finish();
                for _ in 0..raw_header::CHECKSUM_SIZE {
                    let [expected, ..] = hash.to_le_bytes();
                    if self.next() != i32::from(expected) {
                        return -1;
                    }
                    hash >>= 8;
                }
                // If nothing follows the checksum, `next` returns −1, so the result is 0.
                return self.next() + 1;
            }
        }
        self.part.samples.emit(&mut self.stream);
        self.stream.finish_with_checksum()
    }

    /// Adds the records to the pool file, and resets them. Returns an error number, 0, or [`OWN_FILE`].
    pub fn add_to_pool(&mut self) -> i32 {
        let adding = adding(self.part.header.modes, self.part.common_modes);
        if adding == Adding::Impossible
            || (adding == Adding::Calls && self.part.records.length() % record::CALLS_SIZE != 0)
            || self.part.samples.length() != 0
            || self.part.header.build_id_length == 0
        {
            return OWN_FILE;
        }
        self.names.set_folder();
        // SAFETY: a `Text` is always zero-terminated.
        let folder = unsafe { signed_open(self.names.other.as_ptr(), Open::Folder) };
        if folder < 0 {
            return -folder;
        }
        let mut number = number_of(sys::lock(folder));
        if number != 0 {
            complain(&mut self.names, b": cannot lock its folder, so this process writes a file of its own\0", number);
            number = OWN_FILE;
        } else {
            number = self.add_locked(adding);
            if number == 0 {
                // The next ordinal is not reset: functions that are called later get larger ones.
                self.part.records.fill(record::INITIAL_BYTE);
            }
        }
        let _ = sys::close(folder);
        number
    }

    fn add_locked(&mut self, adding: Adding) -> i32 {
        // SAFETY: a `Text` is always zero-terminated.
        let file = unsafe { signed_open(self.names.name.as_ptr(), Open::Read) };
        if file == -error::NO_ENTRY {
            return self.write(adding);
        }
        if file < 0 {
            return -file;
        }
        self.source = Source { file, ..Source::UNUSED };
        let mut number = self.emit(adding, true);
        if number != 0 {
            complain(&mut self.names, b": is damaged or of another build; it is kept, and this process writes a file of its own\0", 0);
            number = OWN_FILE;
        } else {
            self.part.header.runs = self.part.header.runs.saturating_add(1);
            number = number_of(sys::rewind(file));
            // The end of the file was read, so nothing is left in the buffer.
            if number == 0 {
                number = self.write(adding);
            }
        }
        self.source.file = NO_FILE;
        let _ = sys::close(file);
        number
    }
}
