//! Which pages of a file are in memory. After a cold start these are the pages that it had to read.
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Size of a page, on every machine that runs these tests.
pub const PAGE: u64 = 4096;

/// Writes a file's changes to the disk and asks the kernel to drop its pages, so that the next reader has to read them
/// again.
///
/// # Errors
/// If the file cannot be opened or the kernel refuses.
#[allow(unsafe_code)]
pub fn evict(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    // SAFETY: the descriptor is open for the whole call, which reads no memory of ours.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(failed))
    }
}

/// Whether each page of a file is in memory.
///
/// # Errors
/// If the file is empty, cannot be mapped, or the kernel does not report it.
#[allow(unsafe_code)]
pub fn resident(path: &Path) -> io::Result<Vec<bool>> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(usize::try_from(PAGE).map_err(io::Error::other)?)];
    // SAFETY: a new shared, read-only mapping of an open file; nothing of ours is replaced.
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
    // SAFETY: the range is the mapping made above, and `pages` has a byte for each of its pages.
    let asked = unsafe { libc::mincore(start, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping made above, which nothing refers to.
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
        std::fs::write(&path, vec![7u8; 3 * 4096 + 1]).expect("it is written");
        // The file system decides whether eviction has an effect; the test only shows that the call is accepted.
        evict(&path).expect("it is evicted");
        std::fs::read(&path).expect("it is read");
        assert_eq!(resident(&path).expect("it is mapped"), [true; 4]);
        assert!(resident(&folder.path().join("none")).is_err());
    }
}
