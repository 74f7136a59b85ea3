//! Reads a Mach-O image in memory. The linker's `section$start$` and `section$end$` symbols are the bounds of sections;
//! the load commands contain everything else.
use super::{Facts, Range};

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
            (end as usize).wrapping_sub(start as usize) / 4,
        )
    }
}

/// The address by which libc identifies this image.
pub fn runtime_handle() -> *mut u8 {
    // SAFETY: only the address is used; nothing is read.
    unsafe { core::ptr::addr_of_mut!(HEADER) }
}

/// Reads the load commands of the image. The build id is its UUID.
pub fn facts() -> Facts {
    let mut facts = Facts {
        build_id: &[],
        program: true,
    };
    // SAFETY: the header of this image has 32 bytes, as in all 64-bit images. The load commands follow it, and dyld has
    // checked them.
    unsafe {
        let header: *const u8 = core::ptr::addr_of!(HEADER);
        let word = |at: *const u8| at.cast::<u32>().read_unaligned();
        facts.program = word(header.add(12)) == FILE_TYPE_EXECUTE;
        let mut command = header.add(32);
        for _ in 0..word(header.add(16)) {
            if word(command) == LC_UUID {
                facts.build_id = core::slice::from_raw_parts(command.add(8), 16);
            }
            command = command.add(word(command.add(4)) as usize);
        }
    }
    facts
}
