//! The bytes of the members of compressed archives: in memory while they are few, else in a temporary file that has no
//! name, so that no process can leave it behind.
use super::Bytes;
use crate::InputData;
use crate::input::MappedFile;
use profkit_data::stored::StoredError;
use std::env;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// How many more bytes the archives of one file may take. The archives within it share the allowance.
pub(super) struct Allowance {
    /// The bytes that may be kept in memory.
    pub(super) memory: usize,
    /// The bytes that may be unpacked, in memory and in temporary files.
    pub(super) unpacked: u64,
    pub(super) members: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            memory: 64 << 20,
            unpacked: MOST_UNPACKED,
            members: MOST_MEMBERS,
        }
    }
}

/// The maximum number of bytes of all members of an archive file. A few compressed bytes can unpack to very many, and
/// would fill the disk.
const MOST_UNPACKED: u64 = 64 << 30;
/// The maximum number of members of an archive file, with those of archives in it. Each takes the memory of its name.
const MOST_MEMBERS: usize = 1 << 20;

impl Allowance {
    pub(super) fn take_unpacked(&mut self, bytes: u64) -> Result<(), StoredError> {
        self.unpacked = self.unpacked.checked_sub(bytes).ok_or({
            StoredError::TooLarge {
                limit: MOST_UNPACKED,
            }
        })?;
        Ok(())
    }

    pub(super) fn take_members(&mut self, members: usize) -> Result<(), StoredError> {
        self.members = self.members.checked_sub(members).ok_or({
            StoredError::TooManyMembers {
                limit: MOST_MEMBERS,
            }
        })?;
        Ok(())
    }
}

pub(super) enum Spool {
    Memory(Vec<u8>),
    File(BufWriter<File>),
}

impl Spool {
    pub(super) fn new() -> Self {
        Spool::Memory(Vec::new())
    }

    /// Returns a writer that uses a temporary file as soon as the memory of the allowance is used up.
    pub(super) fn writer<'a>(&'a mut self, allowance: &'a mut Allowance) -> SpoolWriter<'a> {
        SpoolWriter {
            spool: self,
            allowance,
        }
    }

    pub(super) fn finish(self) -> io::Result<Bytes> {
        let data = match self {
            Spool::Memory(bytes) => InputData::Buffer(bytes),
            Spool::File(file) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let map = crate::input::map(&file)?;
                InputData::Mapped(MappedFile::new(map))
            }
        };
        Ok(Bytes::whole(data))
    }
}

pub(super) struct SpoolWriter<'a> {
    spool: &'a mut Spool,
    allowance: &'a mut Allowance,
}

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Spool::Memory(memory) = self.spool {
            if let Some(left) = self.allowance.memory.checked_sub(bytes.len()) {
                self.allowance.memory = left;
                memory.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            let mut file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder())?);
            file.write_all(memory)?;
            self.allowance.memory += memory.len();
            *self.spool = Spool::File(file);
        }
        match self.spool {
            Spool::File(file) => file.write(bytes),
            Spool::Memory(_) => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.spool {
            Spool::File(file) => file.flush(),
            Spool::Memory(_) => Ok(()),
        }
    }
}

/// `/tmp` is often in memory, so large temporary files go to `/var/tmp`, unless the user chose a folder.
fn folder() -> PathBuf {
    let large = PathBuf::from("/var/tmp");
    if cfg!(unix) && env::var_os("TMPDIR").is_none() && large.is_dir() {
        large
    } else {
        env::temp_dir()
    }
}
