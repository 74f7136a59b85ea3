//! Reads a Mach-O image in memory. The linker's `section$start$` and `section$end$` symbols are the bounds of sections;
//! the load commands contain everything else.
use super::Range;

extern "C" {
    #[link_name = "\x01section$start$__DATA$__llvm_mipraw"]
    static mut RECORDS_START: u8;
    #[link_name = "\x01section$end$__DATA$__llvm_mipraw"]
    static mut RECORDS_END: u8;
    #[link_name = "\x01section$start$__DATA$__llvm_mipmode"]
    static mut MODES_START: u8;
    #[link_name = "\x01section$end$__DATA$__llvm_mipmode"]
    static mut MODES_END: u8;
    #[link_name = "\x01section$start$__DATA$__llvm_mipring"]
    static mut RING_START: u8;
    #[link_name = "\x01section$end$__DATA$__llvm_mipring"]
    static mut RING_END: u8;
    /// The Mach-O header of the image.
    #[link_name = "__dso_handle"]
    static mut HEADER: u8;
}

const FILE_TYPE_EXECUTE: u32 = 2;
const LC_UUID: u32 = 0x1b;

/// Returns the section with the records of all functions of this image. The linker has joined them.
pub fn records() -> Range {
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe {
        Range::between(
            core::ptr::addr_of_mut!(RECORDS_START),
            core::ptr::addr_of_mut!(RECORDS_END),
        )
    }
}

/// Returns the ring buffer of sampled return addresses.
pub fn ring() -> Range {
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe {
        Range::between(
            core::ptr::addr_of_mut!(RING_START),
            core::ptr::addr_of_mut!(RING_END),
        )
    }
}

/// Returns the distinct sets of mode flags that the functions of this image have.
pub fn modes() -> &'static [u32] {
    // SAFETY: these are the linker's bounds of a section of aligned words that nobody writes.
    unsafe {
        let start = core::ptr::addr_of!(MODES_START);
        let end = core::ptr::addr_of!(MODES_END);
        core::slice::from_raw_parts(
            start.cast(),
            end.cast::<u32>().offset_from(start.cast()) as usize,
        )
    }
}

/// The address by which libc identifies this image.
pub fn runtime_handle() -> *mut u8 {
    // SAFETY: only the address is used; nothing is read.
    unsafe { core::ptr::addr_of_mut!(HEADER) }
}

/// Returns the build id of the image: the bytes of its UUID, which lie in the image. Empty if it has no UUID.
pub fn build_id() -> &'static [u8] {
    // SAFETY: the header of this image has 32 bytes, as in all 64-bit images. The load commands follow it, and dyld has
    // checked them.
    unsafe {
        let header: *const u8 = core::ptr::addr_of!(HEADER);
        let mut command = header.add(32);
        for _ in 0..word(header.add(16)) {
            if word(command) == LC_UUID {
                return core::slice::from_raw_parts(command.add(8), 16);
            }
            command = command.add(word(command.add(4)) as usize);
        }
    }
    &[]
}

/// Whether the image is the program itself and not a shared library.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub fn is_program() -> bool {
    // SAFETY: the header of this image is readable.
    unsafe { word(core::ptr::addr_of!(HEADER).add(12)) == FILE_TYPE_EXECUTE }
}

/// # Safety
/// The caller must ensure that four bytes at `at` are readable.
unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: the caller promises that the bytes are readable.
    unsafe { at.cast::<u32>().read_unaligned() }
}
