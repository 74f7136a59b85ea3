//! Merge pools: files to which the counts of each run are added.
use crate::dump::{File, Work, NO_FILE};
use crate::header::build_id_padding;
use crate::part::Part;
use crate::records::{add_byte, add_count, add_ordinal, adding, Adding};
use crate::stream::Stream;
use crate::sys::{self, error, Open};
use profkit_abi::mip::{raw_header, record};

/// A file that is being read.
pub struct Source {
    file: i32,
    at: usize,
    end: usize,
    buffer: [u8; 512],
}

impl Source {
    pub const NONE: Self = Self {
        file: 0,
        at: 0,
        end: 0,
        buffer: [0; 512],
    };

    /// Returns the next byte of the file; −1 at its end, or if it cannot be read.
    #[inline(never)]
    fn next(&mut self) -> i32 {
        if self.at == self.end {
            self.at = 0;
            self.end = loop {
                match sys::read(self.file, &mut self.buffer) {
                    Err(error::INTERRUPTED) => {}
                    Ok(length) => break length,
                    Err(_) => break 0,
                }
            };
        }
        match self.buffer.get(..self.end) {
            Some(filled) => match filled.get(self.at) {
                Some(&byte) => {
                    self.at += 1;
                    i32::from(byte)
                }
                None => -1,
            },
            None => -1,
        }
    }

    /// Returns the next byte of a file. There is always a next byte, because an earlier pass has read the file to its
    /// end. Otherwise the byte is that of a function that was not called.
    fn again(&mut self) -> u8 {
        self.next() as u8
    }

    #[inline(never)]
    fn again_word(&mut self) -> u32 {
        let mut word = 0;
        for _ in 0..4 {
            // The lowest byte comes first; each moves down to its place.
            word = word >> 8 | u32::from(self.again()) << 24;
        }
        word
    }
}

/// A pool file with counts of earlier runs, which are added to those of this run.
#[derive(Clone, Copy)]
pub struct Pool {
    runs: u32,
    adding: Adding,
}

impl Part {
    /// Writes the sum of a pool and the counts of the image. Returns the first error of the file, or 0.
    #[inline(never)]
    pub fn emit_sum(&self, stream: &mut Stream<File>, pool: Pool, source: &mut Source) -> i32 {
        let records = self.records;
        self.head(stream, pool.runs.saturating_add(1));
        for _ in 0..stream.block().len() {
            source.again();
        }
        let mut at = 0;
        while at < records.length() {
            if pool.adding == Adding::Bytes {
                // SAFETY: the index is below the length of the records.
                stream.push(add_byte(source.again(), unsafe { records.byte(at) }));
                at += 1;
            } else {
                // SAFETY: `add_to_pool` has checked that the records consist of complete units of eight bytes.
                let (count, ordinal) =
                    unsafe { (records.word(at), records.word(at + record::ORDINAL_OFFSET)) };
                stream.word(add_count(source.again_word(), count));
                stream.word(add_ordinal(source.again_word(), ordinal));
                at += record::CALLS_SIZE;
            }
        }
        stream.finish_with_checksum()
    }

    /// Reads a pool file to its end. Returns the number of runs in it if the file is complete and belongs to this
    /// image.
    #[inline(never)]
    fn runs_of(&self, stream: &mut Stream<File>, source: &mut Source) -> Option<u32> {
        stream.start();
        stream.sink = File(NO_FILE);
        // The block of the stream has the expected bytes. The number of runs is taken from the file.
        self.head(stream, 0);
        let mut runs = 0;
        let mut at = 0;
        for expected in stream.block() {
            let byte = source.next();
            if at & !3 == raw_header::RUNS {
                *expected = byte as u8;
                // The lowest byte comes first; each moves down to its place.
                runs = runs >> 8 | u32::from(*expected) << 24;
            } else if byte != i32::from(*expected) {
                return None;
            }
            at += 1;
        }
        for _ in 0..self.records.length() {
            stream.push(source.again());
        }
        for expected in &stream.finish().to_le_bytes() {
            if source.next() != i32::from(*expected) {
                return None;
            }
        }
        // Nothing follows the checksum.
        if source.next() < 0 {
            Some(runs)
        } else {
            None
        }
    }
}

impl Work {
    /// Adds the records to the pool file, and resets the counts. Returns None if the records must go into a file of
    /// their own.
    #[inline(never)]
    pub fn add_to_pool(&mut self, part: &Part) -> Option<Result<(), i32>> {
        let adding = adding(part.modes);
        let whole = adding == Adding::Bytes || part.records.length() % record::CALLS_SIZE == 0;
        if adding == Adding::Impossible
            || !whole
            || part.samples.length() != 0
            || part.build_id.is_empty()
        {
            return None;
        }
        self.other.folder_of(self.name);
        // SAFETY: a `Name` is always zero-terminated.
        let folder = match unsafe { sys::open(self.other.as_ptr(), Open::Folder) } {
            Ok(folder) => folder,
            Err(number) => return Some(Err(number)),
        };
        let result = match sys::lock(folder) {
            Err(number) => {
                self.complain(b"cannot lock its folder, so this process writes a file of its own", number);
                None
            }
            Ok(()) => self.add_locked(part, adding),
        };
        let _ = sys::close(folder);
        if let Some(Ok(())) = result {
            // The counts are reset so that they are not added twice. The next ordinal is not reset: a function whose
            // first call comes later gets a larger ordinal than all functions that were already written.
            part.records.fill(record::INITIAL_BYTE);
        }
        result
    }

    #[inline(never)]
    fn add_locked(&mut self, part: &Part, adding: Adding) -> Option<Result<(), i32>> {
        // SAFETY: a `Name` is always zero-terminated.
        let file = match unsafe { sys::open(self.name.as_ptr(), Open::Read) } {
            Ok(file) => file,
            Err(error::NO_ENTRY) => return Some(self.write(part, None)),
            Err(number) => return Some(Err(number)),
        };
        self.source.file = file;
        self.source.at = 0;
        self.source.end = 0;
        let result = match part.runs_of(self.stream, self.source) {
            Some(runs) => Some(match sys::rewind(file) {
                Ok(()) => self.write(part, Some(Pool { runs, adding })),
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
}
