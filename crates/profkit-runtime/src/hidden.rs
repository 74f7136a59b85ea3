//! Defines functions with C names. All of them are hidden symbols, because each image of a process has its own runtime,
//! its own counters and its own file.

/// Defines functions with C names, and makes them hidden. WebAssembly has no assembler directive for that.
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
