//! The object file of the runtime that contains the constructor and the destructor of the image. The linker takes it if
//! something refers to `__llvm_profile_runtime`; compilers emit this reference. A program that defines this variable
//! itself decides when it writes its profile, and needs no libc. Without an operating system, every program decides
//! this itself, and this object file contains only the variable.
#![no_std]
#![no_builtins]
#![allow(non_upper_case_globals)]

#[cfg(not(target_family = "wasm"))]
core::arch::global_asm!(".hidden __llvm_profile_runtime");
#[cfg(target_os = "linux")]
core::arch::global_asm!(".hidden __profkit_profile_hook");

/// The variable by which compilers ask for the runtime.
#[no_mangle]
pub static __llvm_profile_runtime: i32 = 0;

#[cfg(target_os = "linux")]
extern "C" {
    fn __llvm_profile_initialize();
    fn __profkit_profile_finish();
    fn getenv(name: *const u8) -> *const u8;
    fn setenv(name: *const u8, value: *const u8, replace: i32) -> i32;
    fn signal(number: i32, handler: usize) -> usize;
}

/// The constructor runs before all others, so that nothing is counted before.
#[cfg(target_os = "linux")]
#[link_section = ".init_array.00000"]
#[no_mangle]
pub static __profkit_profile_hook: unsafe extern "C" fn() = __llvm_profile_initialize;

#[cfg(target_os = "linux")]
#[link_section = ".fini_array.00000"]
#[used]
static FINISH: unsafe extern "C" fn() = __profkit_profile_finish;

/// Puts these functions into static programs, because the runtime imports them weakly.
#[cfg(target_os = "linux")]
#[used]
static NEEDED: (
    unsafe extern "C" fn(*const u8) -> *const u8,
    unsafe extern "C" fn(*const u8, *const u8, i32) -> i32,
    unsafe extern "C" fn(i32, usize) -> usize,
) = (getenv, setenv, signal);
