//! ELF: section bounds from the linker's `__start_` and `__stop_` symbols, the rest from the program headers.
//!
//! The symbols are hidden and taken relative to the program counter, so that no GOT slot and no dynamic relocation is
//! needed. GNU ld refuses that for a symbol that may be missing in a position-independent image, so the runtime itself
//! has an empty piece of each section.
use super::{Facts, Range};
use core::arch::{asm, global_asm};
use profkit_abi::mip::raw_header;

macro_rules! weak_hidden {
    ($($name:literal),*) => {
        global_asm!($(concat!(".weak ", $name, "\n.hidden ", $name)),*);
    };
}
weak_hidden!(
    "__start___llvm_mipraw",
    "__stop___llvm_mipraw",
    "__start___llvm_mipmode",
    "__stop___llvm_mipmode",
    "__start___llvm_mipring",
    "__stop___llvm_mipring",
    "__ehdr_start",
    "__dso_handle"
);

// Nothing, but it makes the linker define the bounds of each section.
global_asm!(
    ".pushsection __llvm_mipraw, \"awR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipmode, \"aR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipring, \"awR\", %nobits",
    ".popsection",
);

/// Address of a symbol of this image.
macro_rules! address {
    ($name:literal) => {{
        let address: *mut u8;
        // SAFETY: computes an address; memory and flags stay as they are.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(
                concat!("lea {}, [rip + ", $name, "]"),
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(
                concat!("adrp {0}, ", $name),
                concat!("add {0}, {0}, :lo12:", $name),
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        // SAFETY: as above. The word stands behind the code that jumps over it.
        #[cfg(target_arch = "arm")]
        unsafe {
            asm!(
                "ldr {0}, 2f",
                "1: add {0}, pc, {0}",
                "b 3f",
                ".p2align 2",
                concat!("2: .long ", $name, " - (1b + 8)"),
                "3:",
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        address
    }};
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm")))]
compile_error!("profkit's runtime knows x86-64, AArch64 and 32-bit Arm");

/// The records.
pub fn records() -> Range {
    Range::between(
        address!("__start___llvm_mipraw"),
        address!("__stop___llvm_mipraw"),
    )
}

/// The ring of return addresses.
pub fn ring() -> Range {
    Range::between(
        address!("__start___llvm_mipring"),
        address!("__stop___llvm_mipring"),
    )
}

/// The sets of mode flags.
pub fn modes() -> &'static [u32] {
    let range = Range::between(
        address!("__start___llvm_mipmode"),
        address!("__stop___llvm_mipmode"),
    );
    // SAFETY: the linker's section of aligned words that nobody writes.
    unsafe { core::slice::from_raw_parts(range.start.cast(), range.length / 4) }
}

/// What libc knows this image by.
pub fn runtime_handle() -> *mut u8 {
    address!("__dso_handle")
}

#[cfg(target_pointer_width = "64")]
mod at {
    pub const HEADERS: usize = 0x20;
    pub const HEADER_SIZE: usize = 0x36;
    pub const HEADER_COUNT: usize = 0x38;
    pub const OFFSET: usize = 8;
    pub const ADDRESS: usize = 16;
    pub const FILE_SIZE: usize = 32;
    pub const ALIGN: usize = 48;
}

#[cfg(target_pointer_width = "32")]
mod at {
    pub const HEADERS: usize = 0x1c;
    pub const HEADER_SIZE: usize = 0x2a;
    pub const HEADER_COUNT: usize = 0x2c;
    pub const OFFSET: usize = 4;
    pub const ADDRESS: usize = 8;
    pub const FILE_SIZE: usize = 16;
    pub const ALIGN: usize = 28;
}

const TYPE: usize = 0x10;
const TYPE_EXECUTABLE: u16 = 2;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const DT_FLAGS_1: usize = 0x6fff_fffb;
const DF_1_PIE: usize = 0x0800_0000;
const NT_GNU_BUILD_ID: u32 = 3;

/// Reads a value of the image's headers.
///
/// # Safety
/// `base + offset` is such a value's place.
unsafe fn get<T: Copy>(base: *const u8, offset: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { base.add(offset).cast::<T>().read_unaligned() }
}

/// Reads the image's headers. An image without an ELF header in memory (a linker script of its own) has no build id, and
/// passes for the program.
pub fn facts() -> Facts {
    let header: *const u8 = address!("__ehdr_start");
    let mut facts = Facts {
        build_id: &[],
        program: true,
    };
    // SAFETY: the linker's symbol marks the ELF header where there is one, and otherwise is null in a program at a fixed
    // address and the image's first byte in others; the program loader has checked what the header says.
    unsafe {
        if header.is_null() || get::<[u8; 4]>(header, 0) != *b"\x7fELF" {
            return facts;
        }
        facts.program = get::<u16>(header, TYPE) == TYPE_EXECUTABLE;
        let size = usize::from(get::<u16>(header, at::HEADER_SIZE));
        let count = usize::from(get::<u16>(header, at::HEADER_COUNT));
        let first = header.add(get::<usize>(header, at::HEADERS));
        // Where address 0 of the image is: the first loaded segment starts with the header.
        let mut base = header as usize;
        for index in 0..count {
            let segment = first.add(index * size);
            if get::<u32>(segment, 0) == PT_LOAD && get::<usize>(segment, at::OFFSET) == 0 {
                base = (header as usize).wrapping_sub(get::<usize>(segment, at::ADDRESS));
                break;
            }
        }
        for index in 0..count {
            let segment = first.add(index * size);
            let start = base.wrapping_add(get::<usize>(segment, at::ADDRESS)) as *const u8;
            match get::<u32>(segment, 0) {
                PT_INTERP => facts.program = true,
                PT_DYNAMIC => {
                    let mut entry = start.cast::<[usize; 2]>();
                    loop {
                        let [tag, value] = entry.read();
                        if tag == 0 {
                            break;
                        }
                        if tag == DT_FLAGS_1 && value & DF_1_PIE != 0 {
                            facts.program = true;
                        }
                        entry = entry.add(1);
                    }
                }
                PT_NOTE => {
                    let align = if get::<usize>(segment, at::ALIGN) == 8 {
                        7
                    } else {
                        3
                    };
                    let found = build_id(start, get::<usize>(segment, at::FILE_SIZE), align);
                    if !found.is_empty() {
                        facts.build_id = found;
                    }
                }
                _ => {}
            }
        }
    }
    facts
}

/// The build id among notes, or nothing.
///
/// # Safety
/// `size` bytes at `start` are notes of the image.
unsafe fn build_id(start: *const u8, size: usize, align: usize) -> &'static [u8] {
    let mut offset = 0;
    // SAFETY: each read is below `size`.
    unsafe {
        while offset + 16 <= size {
            let name = get::<u32>(start, offset) as usize;
            let description = get::<u32>(start, offset + 4) as usize;
            let kind = get::<u32>(start, offset + 8);
            let text = offset + 12 + ((name + align) & !align);
            let next = text + ((description + align) & !align);
            if text + description > size {
                break;
            }
            if kind == NT_GNU_BUILD_ID
                && name == 4
                && get::<[u8; 4]>(start, offset + 12) == *b"GNU\0"
            {
                // `Ord::min` would bring a landing pad, and with it an unwind table.
                let length = if description < raw_header::BUILD_ID_MAX {
                    description
                } else {
                    raw_header::BUILD_ID_MAX
                };
                return core::slice::from_raw_parts(start.add(text), length);
            }
            offset = next;
        }
    }
    &[]
}
