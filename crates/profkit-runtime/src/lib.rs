//! The runtime of programs that clang or rustc instrument for profiles. It writes raw profiles (`.profraw`) as LLVM's
//! runtime does, for every raw version from 7 (LLVM 13) to 11 (LLVM 23). It is written in Rust. docs/formats/runtime.md
//! lists the differences to LLVM's runtime. docs/guide/runtime.md describes how a program is linked with this runtime.
//!
//! The crate is compiled in two ways. As a library it has the interface for programs without files:
//! [`capture_coverage`], [`merge_coverage`] and [`reset_coverage`]. With the feature `link`, the library also has the
//! functions for build scripts. With `--cfg profkit_runtime_object` it is the runtime: object files with hidden C
//! names, without panics and Rust libraries. The first object records values (`profkit_part = "values"`), the second
//! writes files (`"file"`), the third has the interface for profiles in memory (`"buffer"`), and the fourth contains
//! the constructor (`init.rs`). There are no files in WebAssembly, and none on machines without an operating system.
//! For such targets the first three are one object.
//!
//! A program without files needs one line in its build script. It captures its profile when it wants to, and may first
//! add the counts of an earlier run (with the feature `alloc`, for the vector):
//!
#![cfg_attr(feature = "alloc", doc = "```no_run")]
#![cfg_attr(not(feature = "alloc"), doc = "```ignore")]
//! // build.rs: profkit_runtime::link::link_to_this_crate()?;
//! use profkit_runtime::{capture_coverage, merge_coverage, reset_coverage};
//! # extern crate std;
//! # use std::vec::Vec;
//!
//! fn save(earlier: Option<&[u8]>) -> Vec<u8> {
//!     let mut profile = Vec::new();
//!     // SAFETY: only one thread captures, merges or resets.
//!     unsafe {
//!         if let Some(earlier) = earlier {
//!             // A profile of another build is left out.
//!             let _ = merge_coverage(earlier);
//!         }
//!         capture_coverage(&mut profile).expect("the runtime is that of this compiler");
//!         // The program goes on: what is in the profile is not counted again.
//!         reset_coverage();
//!     }
//!     profile
//! }
//! # save(None);
//! ```
#![no_std]
#![cfg_attr(profkit_runtime_object, no_builtins)]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![cfg_attr(
    profkit_runtime_object,
    allow(missing_docs, dead_code, unused_imports, unused_unsafe)
)]

macro_rules! parts {
    ($($name:ident),*) => {
        $(
            #[cfg(not(profkit_runtime_object))]
            #[doc(hidden)]
            pub mod $name;
            #[cfg(profkit_runtime_object)]
            mod $name;
        )*
    };
}
parts!(layout, memory, name, output);

#[cfg(all(feature = "alloc", not(profkit_runtime_object)))]
extern crate alloc;
#[cfg(all(feature = "link", not(profkit_runtime_object)))]
extern crate std;

#[cfg(not(profkit_runtime_object))]
mod api;
#[cfg(all(feature = "link", not(profkit_runtime_object)))]
pub mod link;
#[cfg(all(feature = "link", not(profkit_runtime_object)))]
mod source;

#[cfg(not(profkit_runtime_object))]
pub use api::{
    capture_coverage, get_coverage_data_size, merge_coverage, reset_coverage, CaptureError,
    CoverageWriter, IncompatibleProfile, NoRoom,
};

#[cfg(all(profkit_runtime_object, not(target_family = "wasm")))]
#[macro_use]
#[path = "../../profkit-rt/src/weak.rs"]
mod weak;
#[cfg(profkit_runtime_object)]
#[macro_use]
#[path = "hidden.rs"]
mod hidden_macro;

#[cfg(all(profkit_runtime_object, not(target_os = "linux")))]
mod copy;
#[cfg(all(
    profkit_runtime_object,
    not(any(profkit_part = "file", profkit_part = "buffer"))
))]
mod exports;
#[cfg(all(
    profkit_runtime_object,
    not(any(profkit_part = "file", profkit_part = "values"))
))]
mod exports_buffer;
#[cfg(all(profkit_runtime_object, profkit_part = "file"))]
mod exports_file;
#[cfg(all(profkit_runtime_object, profkit_part = "file"))]
mod file;
#[cfg(profkit_runtime_object)]
mod image;
#[cfg(all(profkit_runtime_object, profkit_part = "file"))]
mod libc;
#[cfg(all(profkit_runtime_object, profkit_part = "file"))]
mod message;
#[cfg(all(profkit_runtime_object, target_os = "linux"))]
#[path = "../../profkit-rt/src/notes.rs"]
mod notes;
#[cfg(all(profkit_runtime_object, profkit_part = "file"))]
mod process;
#[cfg(profkit_runtime_object)]
mod profile;
#[cfg(all(profkit_runtime_object, target_os = "linux"))]
#[path = "../../profkit-rt/src/sys/mod.rs"]
mod sys;
#[cfg(all(profkit_runtime_object, target_os = "linux"))]
mod system;
#[cfg(profkit_runtime_object)]
mod values;
