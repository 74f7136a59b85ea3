//! Records about processes: what they had mapped, what they are called, who forked whom.
use crate::file::until_zero as path;
use profkit_data::Result;
use profkit_data::bytes::{Cursor, Endian};

/// Bit 14 of `misc` in `MMAP2`: the record has a build id instead of the device and the inode.
const HAS_BUILD_ID: u16 = 1 << 14;
/// Bit 13 of `misc` in `MMAP`: the mapping is data.
const IS_DATA: u16 = 1 << 13;
/// In `MMAP2`, the protection of memory from which code can run.
const EXECUTABLE: u32 = 4;

/// A mapping of a file into a process, as `MMAP` and `MMAP2` describe it.
#[derive(Clone, Debug)]
pub struct Mapping<'data> {
    pub pid: u32,
    pub start: u64,
    pub len: u64,
    pub page_offset: u64,
    pub path: &'data [u8],
    pub build_id: Vec<u8>,
    /// Whether code can run from the mapping.
    pub executable: bool,
}

impl<'data> Mapping<'data> {
    /// Reads the body of `MMAP`, or of `MMAP2` if `second`.
    pub fn parse(body: &'data [u8], misc: u16, second: bool, endian: Endian) -> Result<Self> {
        let mut cursor = Cursor::new(body, 0, endian);
        let pid = cursor.u32()?;
        cursor.u32()?;
        let start = cursor.u64()?;
        let len = cursor.u64()?;
        let page_offset = cursor.u64()?;
        let mut build_id = Vec::new();
        let mut executable = misc & IS_DATA == 0;
        if second {
            let identity: [u8; 24] = cursor.array()?;
            if misc & HAS_BUILD_ID != 0 {
                let len = usize::from(identity[0]).min(20);
                build_id = identity[4..4 + len].to_vec();
            }
            executable = cursor.u32()? & EXECUTABLE != 0;
            cursor.u32()?;
        }
        Ok(Mapping {
            pid,
            start,
            len,
            page_offset,
            path: path(cursor.rest()),
            build_id,
            executable,
        })
    }

    /// Whether the path names no file: memory that a program asked for, or whose file is only a name.
    pub fn is_anonymous(&self) -> bool {
        let path = self.path;
        path.is_empty()
            || path.starts_with(b"//anon")
            || path.starts_with(b"/anon_hugepage")
            || path.starts_with(b"[anon")
            || path.starts_with(b"/memfd:")
            || path == b"[heap]"
            || path.starts_with(b"[stack")
    }
}

/// What a `COMM` record says: the process, the thread, and the new name.
pub fn comm(body: &[u8], endian: Endian) -> Result<(u32, u32, &[u8])> {
    let mut cursor = Cursor::new(body, 0, endian);
    Ok((cursor.u32()?, cursor.u32()?, path(cursor.rest())))
}

/// What a `FORK` record says.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub pid: u32,
    pub parent: u32,
    pub time: u64,
}

/// Reads the body of `FORK`.
pub fn task(body: &[u8], endian: Endian) -> Result<Task> {
    let mut cursor = Cursor::new(body, 0, endian);
    let pid = cursor.u32()?;
    let parent = cursor.u32()?;
    cursor.u64()?;
    Ok(Task {
        pid,
        parent,
        time: cursor.u64()?,
    })
}
