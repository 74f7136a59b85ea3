//! Reads the addresses of weak symbols of ELF, which stable Rust cannot import otherwise. The runtime of raw profiles
//! (crate profkit-runtime) uses this file too.

/// The address of a weak symbol, or 0. The caller must declare it by `.weak`.
macro_rules! weak_address {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: the instructions only read a GOT slot, which does not change.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            core::arch::asm!(
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        // SAFETY: the instructions only read a GOT slot, which does not change.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            core::arch::asm!(
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        // SAFETY: the instructions only read a GOT slot, which does not change. A word among the instructions has the
        // offset of the slot, and a branch skips this word.
        #[cfg(target_arch = "arm")]
        unsafe {
            core::arch::asm!(
                "ldr {0}, 2f",
                "1: add {0}, pc, {0}",
                "ldr {0}, [{0}]",
                "b 3f",
                ".p2align 2",
                concat!("2: .long ", $name, "(GOT_PREL) - ((1b + 8) - 2b)"),
                "3:",
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        address
    }};
}
