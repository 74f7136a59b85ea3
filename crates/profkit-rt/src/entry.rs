//! The functions and variables of the runtime that have C names. `profkit_abi::mip::symbol` lists and documents them.
use crate::image;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};
use profkit_abi::mip::record;

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
global_asm!(
    ".hidden __profkit_mip_hook",
    ".hidden __profkit_mip_reset",
    ".hidden __profkit_mip_ordinal",
    ".hidden __profkit_mip_ring_next",
);
#[cfg(any(target_os = "macos", target_os = "ios"))]
global_asm!(
    ".private_extern ___profkit_mip_hook",
    ".private_extern ___profkit_mip_reset",
    ".private_extern ___profkit_mip_ordinal",
    ".private_extern ___profkit_mip_ring_next",
);

#[no_mangle]
pub static __profkit_mip_ordinal: AtomicU32 = AtomicU32::new(record::FIRST_ORDINAL);

#[no_mangle]
pub static __profkit_mip_ring_next: AtomicU32 = AtomicU32::new(0);

/// Resets all records, samples and the next ordinal to their initial values.
///
/// Any thread may call this function at any time. If other threads run instrumented code during the reset, their counts
/// may be lost or kept.
#[no_mangle]
pub extern "C" fn __profkit_mip_reset() {
    __profkit_mip_ordinal.store(record::FIRST_ORDINAL, Ordering::Relaxed);
    image::records().fill(record::INITIAL_BYTE);
    __profkit_mip_ring_next.store(0, Ordering::Relaxed);
    image::ring().fill(0);
}

#[cfg(not(profkit_rt_api))]
mod hosted {
    #[cfg(not(profkit_rt_small))]
    use crate::dump::dump;
    #[cfg(profkit_rt_small)]
    use crate::small::{dump, initialize};
    #[cfg(not(profkit_rt_small))]
    use crate::start::initialize;

    #[cfg(not(any(target_os = "macos", target_os = "ios")))]
    core::arch::global_asm!(".hidden __profkit_mip_fini", ".hidden __profkit_mip_dump");
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    core::arch::global_asm!(".private_extern ___profkit_mip_dump");

    /// The constructor, which is executed first. Instrumented objects refer to it, so that the runtime is linked.
    #[cfg_attr(
        not(any(target_os = "macos", target_os = "ios")),
        link_section = ".init_array.00000"
    )]
    #[cfg_attr(
        any(target_os = "macos", target_os = "ios"),
        link_section = "__DATA,__mod_init_func,mod_init_funcs"
    )]
    #[no_mangle]
    pub static __profkit_mip_hook: extern "C" fn() = initialize;

    /// The destructor, which is executed last, after atexit handlers and all others of the image.
    #[cfg(not(any(target_os = "macos", target_os = "ios")))]
    #[link_section = ".fini_array.00000"]
    #[no_mangle]
    pub static __profkit_mip_fini: extern "C" fn() -> i32 = __profkit_mip_dump;

    /// Writes the raw file of the calling image now.
    ///
    /// Any thread may call this function at any time. If another call is running, it waits for that call. Signal
    /// handlers must not call it.
    #[no_mangle]
    pub extern "C" fn __profkit_mip_dump() -> i32 {
        initialize();
        dump()
    }
}
