//! Reads the program headers of an ELF image in memory. The runtime of raw profiles (crate profkit-runtime) uses this
//! file too.
use super::Facts;
use crate::notes;
use core::mem::size_of;

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

/// The program headers of an image, and the address at which the image was loaded.
#[derive(Clone, Copy)]
struct Segments {
    /// The address of the first program header.
    first: *const u8,
    /// The number of bytes from one program header to the next.
    stride: usize,
    count: usize,
    /// The difference between an address in memory and the same address in the headers.
    base: usize,
}

impl Segments {
    /// Returns the contents of a segment in memory. Returns None if no loaded segment contains the segment. The reason
    /// may be that the segment exists only in the file, or that a tool has changed the file after linking.
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
                // If the address is before this loaded segment, the subtraction wraps around, and the offset is larger
                // than the segment.
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

/// Reads the headers of the image whose ELF header is at this address. If the ELF header is not in memory (because of an
/// unusual linker script), the image has no build id and is treated as the program.
///
/// # Safety
/// The caller must pass the address of the linker's symbol `__ehdr_start`, or null if there is no such symbol.
pub unsafe fn facts_at(header: *const u8) -> Facts {
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
        if header.is_null() || get::<u32>(header, 0) != u32::from_ne_bytes(*b"\x7fELF") {
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
