//! Reads an ELF image in memory. The linker's `__start_` and `__stop_` symbols are the bounds of sections; the program
//! headers contain everything else.
//!
//! The symbols are hidden and addressed relative to the program counter, so that they need no GOT slot and no dynamic
//! relocation. In a position-independent image, GNU ld rejects such an address if the symbol may be undefined. The
//! linker defines the symbols only for sections that exist, so the runtime contains an empty piece of each section.
use super::{segments, Range};
use core::arch::{asm, global_asm};

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

// An empty piece of each section makes the linker define the bounds of the section.
global_asm!(
    ".pushsection __llvm_mipraw, \"awR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipmode, \"aR\", %progbits",
    ".popsection",
    ".pushsection __llvm_mipring, \"awR\", %nobits",
    ".popsection",
);

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

/// Returns the section with the records of all functions of this image. The linker has joined them.
pub fn records() -> Range {
    let (start, end) = (
        address!("__start___llvm_mipraw"),
        address!("__stop___llvm_mipraw"),
    );
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe { Range::between(start, end) }
}

pub fn ring() -> Range {
    let (start, end) = (
        address!("__start___llvm_mipring"),
        address!("__stop___llvm_mipring"),
    );
    // SAFETY: these are the linker's bounds of a writable section that only instrumented code and `Range` access.
    unsafe { Range::between(start, end) }
}

pub fn modes() -> &'static [u32] {
    let start: *mut u8 = address!("__start___llvm_mipmode");
    let end: *mut u8 = address!("__stop___llvm_mipmode");
    // SAFETY: these are the linker's bounds of a section of aligned words that nobody writes.
    unsafe {
        core::slice::from_raw_parts(
            start.cast(),
            end.cast::<u32>().offset_from(start.cast()) as usize,
        )
    }
}

pub fn runtime_handle() -> *mut u8 {
    address!("__dso_handle")
}

/// Returns the build id, in the memory of the image; empty if there is none.
pub fn build_id() -> &'static [u8] {
    // SAFETY: this is the address of the linker's symbol.
    unsafe { segments::build_id_at(address!("__ehdr_start")) }
}

/// Whether the image is the program itself and not a shared library.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub fn is_program() -> bool {
    // SAFETY: this is the address of the linker's symbol.
    unsafe { segments::is_program(address!("__ehdr_start")) }
}
