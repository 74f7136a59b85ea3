//! How functions with C names are defined. Every one is hidden: each image of a process has its own runtime, its own
//! counters and its own file.

/// Defines functions that are hidden, on systems where an assembler can say so.
macro_rules! hidden {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {
        $(
            #[cfg(not(target_family = "wasm"))]
            core::arch::global_asm!(concat!(".hidden ", stringify!($name)));
            $(#[$attribute])*
            #[no_mangle]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
        )*
    };
}
