//! Finds out which pages of a file are in memory. If no page was in memory before a program started, these are the
//! pages that the program had to read.
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The page size in bytes on all machines that run these tests.
pub const PAGE: u64 = 4096;

/// Writes changes of a file to the disk and asks the kernel to remove its pages from memory, so that the next reader
/// must read them from the disk.
///
/// # Errors
/// If the file cannot be opened, or the kernel reports an error.
#[allow(unsafe_code)]
pub fn evict(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    // SAFETY: the descriptor is open during the whole call, and the call accesses no memory of this process.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(failed))
    }
}

/// Returns for each page of a file whether it is in memory.
///
/// # Errors
/// If the file is empty, cannot be mapped, or the kernel does not report its pages.
#[allow(unsafe_code)]
pub fn resident(path: &Path) -> io::Result<Vec<bool>> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(usize::try_from(PAGE).map_err(io::Error::other)?)];
    // SAFETY: this is a new shared, read-only mapping of an open file; it replaces no memory of this process.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is the mapping made above, and `pages` has one byte for each page of it.
    let asked = unsafe { libc::mincore(start, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: this is the mapping made above, and no reference to it exists.
    unsafe { libc::munmap(start, length) };
    if asked != 0 {
        return Err(error);
    }
    Ok(pages.iter().map(|page| page & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_read_is_resident() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pages");
        std::fs::write(&path, vec![7u8; 3 * 4096 + 1]).expect("the file is written");
        // Whether the kernel really removes the pages depends on the file system. So the test only checks that the
        // calls succeed.
        evict(&path).expect("the pages of the file are evicted");
        std::fs::read(&path).expect("the file is read");
        assert_eq!(resident(&path).expect("the file can be mapped"), [true; 4]);
        assert!(resident(&folder.path().join("none")).is_err());
    }
}
