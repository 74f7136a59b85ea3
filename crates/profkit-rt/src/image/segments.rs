//! Reads the program headers of an ELF image in memory. The runtime of raw profiles (crate profkit-runtime) uses this
//! file too.
use crate::notes;
use core::mem::size_of;

#[cfg(target_pointer_width = "64")]
mod at {
    pub const HEADERS: usize = 0x20;
    pub const HEADER_COUNT: usize = 0x38;
    pub const FLAGS: usize = 4;
    pub const OFFSET: usize = 8;
    pub const ADDRESS: usize = 16;
    pub const FILE_SIZE: usize = 32;
    pub const ALIGN: usize = 48;
    pub const SIZE: usize = 56;
}

#[cfg(target_pointer_width = "32")]
mod at {
    pub const HEADERS: usize = 0x1c;
    pub const HEADER_COUNT: usize = 0x2c;
    pub const OFFSET: usize = 4;
    pub const ADDRESS: usize = 8;
    pub const FILE_SIZE: usize = 16;
    pub const FLAGS: usize = 24;
    pub const ALIGN: usize = 28;
    pub const SIZE: usize = 32;
}

#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const TYPE: usize = 0x10;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const TYPE_EXECUTABLE: u16 = 2;
const PT_LOAD: u32 = 1;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const PT_DYNAMIC: u32 = 2;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const DT_FLAGS_1: usize = 0x6fff_fffb;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const DF_1_PIE: usize = 0x0800_0000;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
const PF_R: u32 = 4;

/// # Safety
/// The caller must ensure that there is a value of this type at `base + offset`.
unsafe fn get<T: Copy>(base: *const u8, offset: usize) -> T {
    // SAFETY: the caller promises that there is a value of this type.
    unsafe { base.add(offset).cast::<T>().read_unaligned() }
}

/// Returns the first program header of a kind that comes after the header `after`, or the first one of all if `after`
/// is null. Returns null if there is none.
///
/// # Safety
/// The caller must pass the address of the ELF header of an image in memory, and null or one of its program headers.
#[inline(never)]
unsafe fn next(header: *const u8, kind: u32, after: *const u8) -> *const u8 {
    // SAFETY: the caller promises that there is an ELF header. This code assumes the size of a program header that the
    // program loader demands.
    unsafe {
        let first = header.add(get::<usize>(header, at::HEADERS));
        let end = first.add(usize::from(get::<u16>(header, at::HEADER_COUNT)) * at::SIZE);
        let mut segment = first;
        if !after.is_null() {
            segment = after.add(at::SIZE);
        }
        while segment != end {
            if get::<u32>(segment, 0) == kind {
                return segment;
            }
            segment = segment.add(at::SIZE);
        }
    }
    core::ptr::null()
}

/// Returns the contents of a segment in memory, or an empty slice if the segment is not inside the loaded segment that
/// begins with the ELF header. All linkers put the build id there.
///
/// # Safety
/// The caller must pass the address of the ELF header of an image in memory, and one of its program headers.
#[cfg(any(profkit_rt_small, profkit_rt_api))]
#[inline(always)]
unsafe fn loaded(header: *const u8, segment: *const u8) -> &'static [u8] {
    // SAFETY: the caller promises that the headers are valid, so that there is a loaded segment. If the first loaded
    // segment begins at the start of the file, it begins with the ELF header, and the bytes of the file up to the end
    // of this segment are in memory.
    unsafe {
        let load = next(header, PT_LOAD, core::ptr::null());
        let offset = get::<usize>(segment, at::OFFSET);
        let mut size = get::<usize>(segment, at::FILE_SIZE);
        if get::<usize>(load, at::OFFSET) != 0
            || offset.wrapping_add(size) > get::<usize>(load, at::FILE_SIZE)
            || offset.wrapping_add(size) < size
        {
            size = 0;
        }
        core::slice::from_raw_parts(header.wrapping_add(offset), size)
    }
}

/// Returns the contents of a segment in memory, or an empty slice if the segment is not inside a loaded segment. This
/// happens because linkers also write headers for parts that exist only in the file, and tools change files after
/// linking.
///
/// # Safety
/// The caller must pass the address of the ELF header of an image in memory, and one of its program headers.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
#[inline(never)]
unsafe fn loaded(header: *const u8, segment: *const u8) -> &'static [u8] {
    // SAFETY: the caller promises that the headers are valid; everything inside a loaded segment is readable.
    unsafe {
        let address = get::<usize>(segment, at::ADDRESS);
        let wanted = get::<usize>(segment, at::FILE_SIZE);
        let mut size = 0;
        // The address that the program headers give for the ELF header. It is 0 unless the image has a fixed address.
        let mut start = 0;
        let mut other = core::ptr::null();
        loop {
            other = next(header, PT_LOAD, other);
            if other.is_null() {
                let place = header.wrapping_add(address.wrapping_sub(start));
                return core::slice::from_raw_parts(place, size);
            }
            // If the address is before this segment, the offset wraps around and is larger than the segment.
            let offset = address.wrapping_sub(get::<usize>(other, at::ADDRESS));
            let room = get::<usize>(other, at::FILE_SIZE);
            if get::<u32>(other, at::FLAGS) & PF_R != 0 && offset <= room && wanted <= room - offset
            {
                size = wanted;
            }
            // The first loaded segment begins with the ELF header.
            if get::<usize>(other, at::OFFSET) == 0 {
                start = get::<usize>(other, at::ADDRESS);
            }
        }
    }
}

/// Whether the ELF header of an image is in memory. An unusual linker script may leave it out. In a program at a fixed
/// address, the linker's symbol is then null. In other images the symbol is then the address of the first byte of the
/// image.
///
/// # Safety
/// The caller must pass the address of the linker's symbol `__ehdr_start`, or null if there is no such symbol.
unsafe fn is_header(header: *const u8) -> bool {
    // SAFETY: the caller promises that this is the address of the ELF header or of other bytes of the image.
    !header.is_null() && unsafe { get::<u32>(header, 0) } == u32::from_ne_bytes(*b"\x7fELF")
}

/// Returns the build id of the image whose ELF header is at this address; empty if there is none, or if the ELF header
/// is not in memory.
///
/// # Safety
/// The caller must pass the address of the linker's symbol `__ehdr_start`, or null if there is no such symbol.
pub unsafe fn build_id_at(header: *const u8) -> &'static [u8] {
    // SAFETY: if the ELF header is in memory, the linker's symbol is its address, and the program headers are in the
    // same segment. The program loader has used the headers of the loaded segments, so these headers are right; the
    // other headers are checked against them.
    unsafe {
        let mut segment = core::ptr::null();
        while is_header(header) {
            segment = next(header, PT_NOTE, segment);
            if segment.is_null() {
                break;
            }
            let aligned_to_eight = get::<usize>(segment, at::ALIGN) == 8;
            let found = notes::build_id(loaded(header, segment), aligned_to_eight);
            if !found.is_empty() {
                return found;
            }
        }
    }
    &[]
}

/// Whether the image whose ELF header is at this address is a program and not a shared library. An image whose ELF
/// header is not in memory is taken for a program.
///
/// # Safety
/// The caller must pass the address of the linker's symbol `__ehdr_start`, or null if there is no such symbol.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub unsafe fn is_program(header: *const u8) -> bool {
    // SAFETY: as in `build_id_at`.
    unsafe {
        if !is_header(header)
            || get::<u16>(header, TYPE) == TYPE_EXECUTABLE
            || !next(header, PT_INTERP, core::ptr::null()).is_null()
        {
            return true;
        }
        // A position-independent program that is linked statically has no interpreter.
        let dynamic = next(header, PT_DYNAMIC, core::ptr::null());
        if !dynamic.is_null() {
            let entries = loaded(header, dynamic);
            let mut entry = entries.as_ptr();
            for _ in 0..entries.len() / size_of::<[usize; 2]>() {
                let tag = get::<usize>(entry, 0);
                if tag == 0 {
                    break;
                }
                if tag == DT_FLAGS_1 {
                    return get::<usize>(entry, size_of::<usize>()) & DF_1_PIE != 0;
                }
                entry = entry.add(size_of::<[usize; 2]>());
            }
        }
    }
    false
}
