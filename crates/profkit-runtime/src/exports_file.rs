//! The functions of LLVM's runtime for profiles in files.
use crate::{file, libc, process};
use core::sync::atomic::Ordering;

extern "C" {
    fn __profkit_profile_reset_time();
}

hidden! {
    fn __llvm_profile_initialize() { process::initialize() }
    fn __llvm_profile_initialize_file() { file::initialize() }
    fn __llvm_profile_register_write_file_atexit() -> i32 { process::register_at_exit() }
    fn __profkit_profile_finish() { process::at_exit() }
    fn __llvm_profile_write_file() -> i32 { file::write() }
    fn __llvm_profile_dump() -> i32 { file::dump() }
    fn __llvm_profile_set_dumped() { file::set_dumped(true) }
    fn __llvm_profile_set_filename(name: *const u8) {
        // SAFETY: the caller passes null or a zero-terminated text.
        unsafe { file::set_name(name) }
    }
    /// Writes to an open `FILE`, with `merge` adding to its counts. Returns 0, or 1 after a message.
    fn __llvm_profile_set_file_object(object: usize, merge: i32) -> i32 {
        // SAFETY: the caller passes an open file.
        i32::from(!unsafe { file::set_file(object, merge != 0) })
    }
    fn __llvm_profile_get_filename() -> *const u8 { file::name(false) }
    fn __llvm_profile_get_path_prefix() -> *const u8 { file::name(true) }
    fn __llvm_profile_get_dir_mode() -> u32 { file::FOLDER_MODE.load(Ordering::Relaxed) }
    fn __llvm_profile_set_dir_mode(mode: u32) { file::FOLDER_MODE.store(mode, Ordering::Relaxed) }
    fn __llvm_profile_recursive_mkdir(path: *mut u8) {
        // SAFETY: the caller passes a zero-terminated text.
        file::make_folders_of(unsafe { libc::text(path) })
    }
    fn __llvm_profile_is_continuous_mode_enabled() -> i32 { i32::from(file::is_continuous()) }
    fn __llvm_profile_enable_continuous_mode() { file::set_continuous(true) }
    fn __llvm_profile_disable_continuous_mode() { file::set_continuous(false) }
    fn __llvm_profile_set_page_size(_size: u32) {}
    fn __llvm_profile_reset_counters() {
        file::reset();
        // SAFETY: the function has no arguments.
        unsafe { __profkit_profile_reset_time() }
    }
}
