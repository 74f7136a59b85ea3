//! Reads an ELF image in memory. The linker's `__start_` and `__stop_` symbols are the bounds of sections; the program
//! headers contain everything else.
//!
//! The symbols are hidden and addressed relative to the program counter, so that they need no GOT slot and no dynamic
//! relocation. In a position-independent image, GNU ld rejects such an address if the symbol may be undefined. So the
//! runtime contains an empty piece of each section.
use super::{Facts, Range};
use crate::notes;
use core::arch::{asm, global_asm};
use core::mem::size_of;

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

// The runtime contains an empty piece of each section, so that the linker defines the bounds of the section.
global_asm!(
    ".pushsection __llvm_mipraw, \"awR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipmode, \"aR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipring, \"awR\", %nobits",
    ".popsection",
);

/// Returns the address of a symbol of this image.
macro_rules! address {
    ($name:literal) => {{
        let address: *mut u8;
        // SAFETY: the instructions only compute an address; they do not change memory or flags.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(
                concat!("lea {}, [rip + ", $name, "]"),
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        // SAFETY: the instructions only compute an address; they do not change memory or flags.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(
                concat!("adrp {0}, ", $name),
                concat!("add {0}, {0}, :lo12:", $name),
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        // SAFETY: the instructions only compute an address; they do not change memory or flags. A word among the
        // instructions has the distance to the symbol, and a branch skips this word.
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
compile_error!("profkit's runtime supports x86-64, AArch64 and 32-bit Arm");

/// Returns the records of all functions of this image. The linker has joined them to one section.
pub fn records() -> Range {
    let (start, end) = (
        address!("__start___llvm_mipraw"),
        address!("__stop___llvm_mipraw"),
    );
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe { Range::between(start, end) }
}

/// Returns the ring buffer of sampled return addresses.
pub fn ring() -> Range {
    let (start, end) = (
        address!("__start___llvm_mipring"),
        address!("__stop___llvm_mipring"),
    );
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe { Range::between(start, end) }
}

/// Returns each set of mode flags that a function of this image has.
pub fn modes() -> &'static [u32] {
    let start: *mut u8 = address!("__start___llvm_mipmode");
    let end: *mut u8 = address!("__stop___llvm_mipmode");
    // SAFETY: these are the linker's bounds of a section of aligned words that nobody writes.
    unsafe {
        core::slice::from_raw_parts(
            start.cast(),
            (end as usize).wrapping_sub(start as usize) / 4,
        )
    }
}

/// The address by which libc identifies this image.
pub fn runtime_handle() -> *mut u8 {
    address!("__dso_handle")
}

#[cfg(target_pointer_width = "64")]
mod at {
    pub const HEADERS: usize = 0x20;
    pub const HEADER_SIZE: usize = 0x36;
    pub const HEADER_COUNT: usize = 0x38;
    pub const FLAGS: usize = 4;
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
    pub const FLAGS: usize = 24;
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
const PF_R: u32 = 4;

/// Reads a value from the headers of the image.
///
/// # Safety
/// The caller must ensure that there is a value of this type at `base + offset`.
unsafe fn get<T: Copy>(base: *const u8, offset: usize) -> T {
    // SAFETY: the caller promises that there is a value of this type.
    unsafe { base.add(offset).cast::<T>().read_unaligned() }
}

/// The program headers of the image, and the address at which it was loaded.
#[derive(Clone, Copy)]
struct Segments {
    /// The address of the first program header.
    first: *const u8,
    /// The number of bytes from one program header to the next.
    stride: usize,
    count: usize,
    /// The address in memory that corresponds to address 0 in the headers.
    base: usize,
}

impl Segments {
    /// Returns the contents of a segment in memory. Returns None if the segment is not inside a loaded segment. This
    /// happens because linkers also write headers for parts that exist only in the file, and tools change files after
    /// linking.
    ///
    /// # Safety
    /// The caller must ensure that the program headers are those of an image in memory.
    unsafe fn loaded(self, segment: *const u8) -> Option<&'static [u8]> {
        // SAFETY: the caller promises that the headers are valid; everything inside a loaded segment is readable.
        unsafe {
            let address = get::<usize>(segment, at::ADDRESS);
            let size = get::<usize>(segment, at::FILE_SIZE);
            for index in 0..self.count {
                let other = self.first.add(index * self.stride);
                // If the address is before this loaded segment, the offset wraps around and is larger than the segment.
                let offset = address.wrapping_sub(get::<usize>(other, at::ADDRESS));
                let room = get::<usize>(other, at::FILE_SIZE);
                if get::<u32>(other, 0) == PT_LOAD
                    && get::<u32>(other, at::FLAGS) & PF_R != 0
                    && offset <= room
                    && size <= room - offset
                {
                    let start = self.base.wrapping_add(address) as *const u8;
                    return Some(core::slice::from_raw_parts(start, size));
                }
            }
        }
        None
    }
}

/// Reads the headers of the image. If the ELF header is not in memory (because of an unusual linker script), the image
/// has no build id and is treated as the program.
pub fn facts() -> Facts {
    let header: *const u8 = address!("__ehdr_start");
    let mut facts = Facts {
        build_id: &[],
        program: true,
    };
    // The ELF header may be missing in memory. In a program at a fixed address, the linker's symbol is then null. In
    // other images the symbol is then the address of the first byte of the image.
    // SAFETY: if the ELF header is in memory, the linker's symbol is its address, and the program headers are in the
    // same segment. The program loader has used the headers of the loaded segments, so these headers are right; the
    // other headers are checked against them.
    unsafe {
        if header.is_null() || get::<[u8; 4]>(header, 0) != *b"\x7fELF" {
            return facts;
        }
        facts.program = get::<u16>(header, TYPE) == TYPE_EXECUTABLE;
        let mut segments = Segments {
            first: header.add(get::<usize>(header, at::HEADERS)),
            stride: usize::from(get::<u16>(header, at::HEADER_SIZE)),
            count: usize::from(get::<u16>(header, at::HEADER_COUNT)),
            base: header as usize,
        };
        for index in 0..segments.count {
            let segment = segments.first.add(index * segments.stride);
            // The first loaded segment begins with the ELF header.
            if get::<u32>(segment, 0) == PT_LOAD && get::<usize>(segment, at::OFFSET) == 0 {
                segments.base = (header as usize).wrapping_sub(get::<usize>(segment, at::ADDRESS));
                break;
            }
        }
        for index in 0..segments.count {
            let segment = segments.first.add(index * segments.stride);
            let kind = get::<u32>(segment, 0);
            if kind == PT_INTERP {
                facts.program = true;
            }
            if kind != PT_DYNAMIC && kind != PT_NOTE {
                continue;
            }
            let bytes = match segments.loaded(segment) {
                Some(bytes) => bytes,
                None => continue,
            };
            if kind == PT_NOTE {
                let found = notes::build_id(bytes, get::<usize>(segment, at::ALIGN) == 8);
                if !found.is_empty() {
                    facts.build_id = found;
                }
                continue;
            }
            let mut offset = 0;
            while offset + size_of::<[usize; 2]>() <= bytes.len() {
                let [tag, value] = get::<[usize; 2]>(bytes.as_ptr(), offset);
                if tag == 0 {
                    break;
                }
                if tag == DT_FLAGS_1 && value & DF_1_PIE != 0 {
                    facts.program = true;
                }
                offset += size_of::<[usize; 2]>();
            }
        }
    }
    facts
}
