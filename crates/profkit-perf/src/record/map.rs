//! Reads records about processes: their mappings, names and forks.
use crate::file::until_zero as path;
use profkit_data::Result;
use profkit_data::bytes::{Cursor, Endian};

/// Bit 14 of `misc` in the record `MMAP2`. If it is set, the record has a build id in place of the device and the
/// inode.
const HAS_BUILD_ID: u16 = 1 << 14;
/// Bit 13 of `misc` in the record `MMAP`. If it is set, the mapping is data and not code.
const IS_DATA: u16 = 1 << 13;
/// The bit for executable memory in the protection field of `MMAP2`.
const EXECUTABLE: u32 = 4;

/// A mapping of a file into a process, as `MMAP` and `MMAP2` describe it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mapping<'data> {
    /// The process. It is -1 for the kernel.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// The number of bytes.
    pub len: u64,
    /// The offset in the file at which the mapping begins.
    pub page_offset: u64,
    /// The path of the file, or a name such as `[vdso]`.
    pub path: &'data [u8],
    /// The build id; empty if the record has none.
    pub build_id: Vec<u8>,
    /// Whether the mapped memory is executable.
    pub executable: bool,
}

impl<'data> Mapping<'data> {
    /// Reads the body of a record `MMAP`, or of a record `MMAP2` if `second` is true.
    pub(crate) fn parse(
        body: &'data [u8],
        misc: u16,
        second: bool,
        endian: Endian,
    ) -> Result<Self> {
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

    /// Whether the mapped memory comes from no file. The path is then a name that the kernel or the program has chosen.
    pub fn is_anonymous(&self) -> bool {
        is_anonymous(self.path)
    }
}

/// Whether the path of a mapping shows that the mapped memory comes from no file.
pub fn is_anonymous(path: &[u8]) -> bool {
    path.is_empty()
        || path.starts_with(b"//anon")
        || path.starts_with(b"/anon_hugepage")
        || path.starts_with(b"[anon")
        || path.starts_with(b"/memfd:")
        || path == b"[heap]"
        || path.starts_with(b"[stack")
}

/// Reads a `COMM` record. Returns the process, the thread, and the new name.
pub fn comm(body: &[u8], endian: Endian) -> Result<(u32, u32, &[u8])> {
    let mut cursor = Cursor::new(body, 0, endian);
    Ok((cursor.u32()?, cursor.u32()?, path(cursor.rest())))
}

/// The content of a `FORK` record: the new process and its parent.
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
