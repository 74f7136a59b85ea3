//! The image that the runtime is linked into: the bounds of its sections, what the compiler has defined in it, its build
//! id. All symbols are weak: a section or variable that the image does not have is absent here.
use crate::layout::RAW;
use crate::memory::{read, Area};
use crate::profile::Sections;

#[cfg(not(target_family = "wasm"))]
mod symbols {
    use core::arch::global_asm;

    macro_rules! weak {
        ($($name:literal),*) => {
            global_asm!($(concat!(".weak ", $name, "\n.hidden ", $name)),*);
        };
    }
    weak!(
        "__start___llvm_prf_data",
        "__stop___llvm_prf_data",
        "__start___llvm_prf_cnts",
        "__stop___llvm_prf_cnts",
        "__start___llvm_prf_bits",
        "__stop___llvm_prf_bits",
        "__start___llvm_prf_names",
        "__stop___llvm_prf_names",
        "__start___llvm_prf_vnds",
        "__stop___llvm_prf_vnds",
        "__start___llvm_prf_vtab",
        "__stop___llvm_prf_vtab",
        "__start___llvm_prf_vns",
        "__stop___llvm_prf_vns",
        "__llvm_profile_raw_version",
        "__llvm_profile_filename",
        "__llvm_profile_counter_bias",
        "__llvm_profile_bitmap_bias",
        "__ehdr_start",
        "__dso_handle"
    );

    macro_rules! address_of {
        ($name:literal) => {
            weak_address!($name)
        };
    }
    pub(super) use address_of;
}

#[cfg(target_family = "wasm")]
mod symbols {
    // Whoever writes the object file makes these symbols weak, because stable Rust cannot (see `wasm.rs`).
    extern "C" {
        pub static __start___llvm_prf_data: u8;
        pub static __stop___llvm_prf_data: u8;
        pub static __start___llvm_prf_cnts: u8;
        pub static __stop___llvm_prf_cnts: u8;
        pub static __start___llvm_prf_bits: u8;
        pub static __stop___llvm_prf_bits: u8;
        pub static __start___llvm_prf_names: u8;
        pub static __stop___llvm_prf_names: u8;
        pub static __start___llvm_prf_vnds: u8;
        pub static __stop___llvm_prf_vnds: u8;
        pub static __start___llvm_prf_vtab: u8;
        pub static __stop___llvm_prf_vtab: u8;
        pub static __start___llvm_prf_vns: u8;
        pub static __stop___llvm_prf_vns: u8;
        pub static __llvm_profile_raw_version: u8;
    }

    // An address needs no unsafe code: nothing is read.
    macro_rules! address_of {
        ("__start___llvm_prf_data") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_data) as usize
        };
        ("__stop___llvm_prf_data") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_data) as usize
        };
        ("__start___llvm_prf_cnts") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_cnts) as usize
        };
        ("__stop___llvm_prf_cnts") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_cnts) as usize
        };
        ("__start___llvm_prf_bits") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_bits) as usize
        };
        ("__stop___llvm_prf_bits") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_bits) as usize
        };
        ("__start___llvm_prf_names") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_names) as usize
        };
        ("__stop___llvm_prf_names") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_names) as usize
        };
        ("__start___llvm_prf_vnds") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_vnds) as usize
        };
        ("__stop___llvm_prf_vnds") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_vnds) as usize
        };
        ("__start___llvm_prf_vtab") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_vtab) as usize
        };
        ("__stop___llvm_prf_vtab") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_vtab) as usize
        };
        ("__start___llvm_prf_vns") => {
            core::ptr::addr_of!(symbols::__start___llvm_prf_vns) as usize
        };
        ("__stop___llvm_prf_vns") => {
            core::ptr::addr_of!(symbols::__stop___llvm_prf_vns) as usize
        };
        ("__llvm_profile_raw_version") => {
            core::ptr::addr_of!(symbols::__llvm_profile_raw_version) as usize
        };
    }
    pub(super) use address_of;
}

use symbols::address_of;

/// The area between the linker's two symbols of a section.
macro_rules! section {
    ($start:literal, $stop:literal) => {
        Area::between(address_of!($start), address_of!($stop))
    };
}

/// The function records.
pub fn data() -> Area {
    section!("__start___llvm_prf_data", "__stop___llvm_prf_data")
}

/// The counters.
pub fn counters() -> Area {
    section!("__start___llvm_prf_cnts", "__stop___llvm_prf_cnts")
}

/// The bitmaps of MC/DC.
pub fn bitmap() -> Area {
    section!("__start___llvm_prf_bits", "__stop___llvm_prf_bits")
}

/// The names of functions.
pub fn names() -> Area {
    section!("__start___llvm_prf_names", "__stop___llvm_prf_names")
}

/// The pool of nodes for values.
pub fn nodes() -> Area {
    section!("__start___llvm_prf_vnds", "__stop___llvm_prf_vnds")
}

/// The entries of virtual tables.
pub fn vtables() -> Area {
    section!("__start___llvm_prf_vtab", "__stop___llvm_prf_vtab")
}

/// The names of virtual tables.
pub fn vtable_names() -> Area {
    section!("__start___llvm_prf_vns", "__stop___llvm_prf_vns")
}

/// The version word. Objects whose counters the front end has placed do not say it.
pub fn version() -> u64 {
    let word = address_of!("__llvm_profile_raw_version");
    if word == 0 {
        u64::from(RAW)
    } else {
        // SAFETY: the compiler defines this variable as a word.
        unsafe { read(word) }
    }
}

/// The sections that a raw file contains.
pub fn sections() -> Sections {
    Sections {
        data: data(),
        counters: counters(),
        bitmap: if RAW >= 9 { bitmap() } else { Area::EMPTY },
        names: names(),
        vtables: if RAW >= 10 { vtables() } else { Area::EMPTY },
        vtable_names: if RAW >= 10 {
            vtable_names()
        } else {
            Area::EMPTY
        },
        version: version(),
    }
}

/// Facts from the headers of the image.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Copy)]
pub struct Facts {
    /// The build id, in the memory of the image; empty if there is none.
    pub build_id: &'static [u8],
    /// Whether the image is the program itself and not a shared library.
    pub program: bool,
}

#[cfg(not(target_family = "wasm"))]
#[path = "../../profkit-rt/src/image/segments.rs"]
mod segments;

/// The build id of the image; empty if it has none.
#[cfg(not(target_family = "wasm"))]
pub fn build_id() -> &'static [u8] {
    // SAFETY: this is the address of the linker's symbol, or null.
    unsafe { segments::facts_at(address_of!("__ehdr_start") as *const u8) }.build_id
}

/// Whether the image is the program itself, which is never unloaded.
#[cfg(target_os = "linux")]
pub fn is_program() -> bool {
    // SAFETY: this is the address of the linker's symbol, or null.
    unsafe { segments::facts_at(address_of!("__ehdr_start") as *const u8) }.program
}

#[cfg(target_family = "wasm")]
pub fn build_id() -> &'static [u8] {
    &[]
}

#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::symbols::address_of;

    /// The name that the compiler was given for the file; 0 if none.
    pub fn file_name() -> usize {
        address_of!("__llvm_profile_filename")
    }

    /// The variable that instrumented code adds to the addresses of its counters; 0 if the code does not do that.
    pub fn counter_bias() -> usize {
        address_of!("__llvm_profile_counter_bias")
    }

    /// The same variable for bitmaps.
    pub fn bitmap_bias() -> usize {
        address_of!("__llvm_profile_bitmap_bias")
    }

    /// The address by which libc identifies this image.
    pub fn handle() -> usize {
        address_of!("__dso_handle")
    }
}

/// Returns the address of new memory, whose bytes are zero; 0 if there is none.
pub fn more_memory(size: usize) -> usize {
    #[cfg(target_os = "linux")]
    return crate::system::map(size);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = size;
        0
    }
}

/// Frees memory of [`more_memory`].
pub fn give_back(start: usize, size: usize) {
    #[cfg(target_os = "linux")]
    crate::system::unmap(start, size);
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}
