//! The image (program or shared library) into which the runtime is linked: the bounds of its sections, the variables
//! that the compiler has defined, its build id. All symbols are weak, so the image need not have each section and
//! variable.
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
        "__dso_handle",
        // Nothing defines this symbol.
        "__profkit_profile_absent"
    );

    macro_rules! address_of {
        ($name:literal) => {
            crate::image::present(weak_address!($name))
        };
    }
    pub(super) use address_of;
}

#[cfg(target_family = "wasm")]
mod symbols {
    /// The address of a symbol, read from memory: compilers assume that addresses differ and are not 0, as those of
    /// absent symbols are. `link/wasm.rs` makes the symbols weak, because stable Rust cannot.
    pub struct Place(pub *const u8);

    // SAFETY: an address may be read by every thread.
    unsafe impl Sync for Place {}

    macro_rules! place {
        ($name:ident) => {{
            extern "C" {
                static $name: u8;
            }
            // SAFETY: only the address of the symbol is used.
            static PLACE: symbols::Place = symbols::Place(unsafe { core::ptr::addr_of!($name) });
            // SAFETY: this static is readable.
            unsafe { core::ptr::addr_of!(PLACE.0).read_volatile() as usize }
        }};
    }
    macro_rules! address_of {
        ("__start___llvm_prf_data") => {
            symbols::place!(__start___llvm_prf_data)
        };
        ("__stop___llvm_prf_data") => {
            symbols::place!(__stop___llvm_prf_data)
        };
        ("__start___llvm_prf_cnts") => {
            symbols::place!(__start___llvm_prf_cnts)
        };
        ("__stop___llvm_prf_cnts") => {
            symbols::place!(__stop___llvm_prf_cnts)
        };
        ("__start___llvm_prf_bits") => {
            symbols::place!(__start___llvm_prf_bits)
        };
        ("__stop___llvm_prf_bits") => {
            symbols::place!(__stop___llvm_prf_bits)
        };
        ("__start___llvm_prf_names") => {
            symbols::place!(__start___llvm_prf_names)
        };
        ("__stop___llvm_prf_names") => {
            symbols::place!(__stop___llvm_prf_names)
        };
        ("__start___llvm_prf_vnds") => {
            symbols::place!(__start___llvm_prf_vnds)
        };
        ("__stop___llvm_prf_vnds") => {
            symbols::place!(__stop___llvm_prf_vnds)
        };
        ("__start___llvm_prf_vtab") => {
            symbols::place!(__start___llvm_prf_vtab)
        };
        ("__stop___llvm_prf_vtab") => {
            symbols::place!(__stop___llvm_prf_vtab)
        };
        ("__start___llvm_prf_vns") => {
            symbols::place!(__start___llvm_prf_vns)
        };
        ("__stop___llvm_prf_vns") => {
            symbols::place!(__stop___llvm_prf_vns)
        };
        ("__llvm_profile_raw_version") => {
            symbols::place!(__llvm_profile_raw_version)
        };
    }
    pub(super) use {address_of, place};
}

use symbols::address_of;

/// The address of a weak symbol, or 0. gold gives all hidden symbols without a definition one address, which is that of
/// a symbol that is never defined.
#[cfg(not(target_family = "wasm"))]
#[inline(never)]
pub fn present(address: usize) -> usize {
    if address == weak_address!("__profkit_profile_absent") {
        0
    } else {
        address
    }
}

/// Makes the area between two symbols, which the linker defines at the start and the end of a section.
macro_rules! section {
    ($start:tt, $stop:tt) => {
        Area::between(address_of!($start), address_of!($stop))
    };
}

pub fn data() -> Area {
    section!("__start___llvm_prf_data", "__stop___llvm_prf_data")
}

pub fn counters() -> Area {
    section!("__start___llvm_prf_cnts", "__stop___llvm_prf_cnts")
}

pub fn bitmap() -> Area {
    section!("__start___llvm_prf_bits", "__stop___llvm_prf_bits")
}

pub fn names() -> Area {
    section!("__start___llvm_prf_names", "__stop___llvm_prf_names")
}

/// The compiler's pool of nodes for the values of value sites.
pub fn nodes() -> Area {
    section!("__start___llvm_prf_vnds", "__stop___llvm_prf_vnds")
}

pub fn vtables() -> Area {
    section!("__start___llvm_prf_vtab", "__stop___llvm_prf_vtab")
}

pub fn vtable_names() -> Area {
    section!("__start___llvm_prf_vns", "__stop___llvm_prf_vns")
}

/// The version word, which objects with counters of the front end do not define; then that of this runtime.
pub fn version() -> u64 {
    let word = address_of!("__llvm_profile_raw_version");
    if word == 0 {
        u64::from(RAW)
    } else {
        // SAFETY: the compiler defines this variable as a word.
        unsafe { read(word) }
    }
}

pub fn sections() -> Sections {
    let data = data();
    Sections {
        data,
        with_sites: data,
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

#[cfg(target_os = "linux")]
#[path = "../../profkit-rt/src/image/segments.rs"]
mod segments;

/// The build id of the image; empty if it has none.
#[cfg(target_os = "linux")]
pub fn build_id() -> &'static [u8] {
    // SAFETY: this is the address of the linker's symbol, or null.
    unsafe { segments::build_id_at(address_of!("__ehdr_start") as *const u8) }
}

/// Whether the image is the program itself, which is never unloaded.
#[cfg(target_os = "linux")]
pub fn is_program() -> bool {
    // SAFETY: this is the address of the linker's symbol, or null.
    unsafe { segments::is_program(address_of!("__ehdr_start") as *const u8) }
}

/// Without an operating system, the headers of the image need not be in memory.
#[cfg(not(target_os = "linux"))]
pub fn build_id() -> &'static [u8] {
    &[]
}

#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::symbols::address_of;

    /// The address of the text with the file name that the compiler was given; 0 if it was given none.
    pub fn file_name() -> usize {
        address_of!("__llvm_profile_filename")
    }

    /// The variable that is added to addresses of counters; 0 if there is none.
    pub fn counter_bias() -> usize {
        address_of!("__llvm_profile_counter_bias")
    }

    /// The variable that is added to addresses of bitmaps; 0 if there is none.
    pub fn bitmap_bias() -> usize {
        address_of!("__llvm_profile_bitmap_bias")
    }

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

pub fn give_back(start: usize, size: usize) {
    #[cfg(target_os = "linux")]
    crate::system::unmap(start, size);
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}
