//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! The MIP runtime, which is linked into every instrumented image (program or shared library). At exit it writes the
//! records of the image to a raw file. docs/formats/mip.md describes the file, and docs/guide/mip-runtime.md the behaviour of
//! the runtime.
//!
//! The crate is compiled in two ways. As a library it contains the modules that do not depend on the platform, so that
//! they can be tested. With `--cfg profkit_rt_object` it is the runtime: one object file with hidden C names, without
//! panics, allocations or Rust libraries (only functions of `core` that are inlined). With `profkit_rt_libc` it calls
//! libc instead of making system calls itself. [`COMPILE_FLAGS`] are the options for compiling it.
//!
//! The size of the object file is important, because every shipped instrumented program contains it.
#![no_std]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

/// Declares the modules. They are public in the library and private in the object file. In the object file only the C
/// names may be global symbols. If Rust names were global too, the images of one process would share functions.
macro_rules! parts {
    ($($name:ident),*) => {
        $(
            #[cfg(not(profkit_rt_object))]
            pub mod $name;
            #[cfg(profkit_rt_object)]
            mod $name;
        )*
    };
}
parts!(header, name, notes, records, stream, xxh3);

#[cfg(feature = "source")]
pub mod archive;
#[cfg(feature = "source")]
pub mod compiler;

/// The runtime itself. It has three sizes. With `--cfg profkit_rt_small` it writes a file, but has no patterns, pools
/// and signals. With `--cfg profkit_rt_api` it writes no file at all. Without either option it has all of these.
macro_rules! private {
    ($($(#[$condition:meta])* $name:ident),*) => { $($(#[$condition])* #[cfg(profkit_rt_object)] mod $name;)* };
}
#[cfg(all(profkit_rt_object, not(any(target_os = "macos", target_os = "ios"))))]
#[macro_use]
mod weak;
private!(
    #[cfg(profkit_rt_api)]
    api,
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    dump,
    entry,
    #[cfg(not(profkit_rt_api))]
    file,
    image,
    part,
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pool,
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    signal,
    #[cfg(profkit_rt_small)]
    small,
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    start,
    #[cfg(not(profkit_rt_api))]
    sys
);

/// A variant of the runtime. All variants are compiled from the same source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The full runtime: names of files by patterns, merge pools, dumps at a signal, a fork handler.
    #[default]
    Full,
    /// The runtime writes one file in place, and its name is no pattern. Only for programs, not for shared libraries.
    Small,
    /// The runtime writes no files: the program asks for the bytes.
    Api,
}

impl Variant {
    /// The options of rustc for this variant, in addition to `COMPILE_FLAGS`.
    #[must_use]
    pub const fn compile_flags(self) -> &'static [&'static str] {
        match self {
            Variant::Full => &[],
            Variant::Small => &["--cfg=profkit_rt_small"],
            // A kernel must not use the red zone: interrupts write below the stack pointer.
            Variant::Api => &["--cfg=profkit_rt_api", "-Cno-redzone=yes"],
        }
    }
}

/// The options of rustc for the MIP runtime, in addition to those of `compiler::Compiler`.
pub const COMPILE_FLAGS: &[&str] = &[
    "--crate-name=profkit_rt",
    "--cfg=profkit_rt_object",
    "-Copt-level=z",
    // If Rust names were global too, the images of one process would share functions.
    "-Cpasses=internalize,globaldce,default<Oz>",
    "-Cllvm-args=-internalize-public-api-list=__profkit_mip_hook,__profkit_mip_fini,__profkit_mip_dump,__profkit_mip_reset,__profkit_mip_ordinal,__profkit_mip_ring_next,__profkit_mip_size,__profkit_mip_write,__profkit_mip_copy",
];

/// The source text of this crate, with which the profkit command can compile the runtime for another target.
#[cfg(feature = "source")]
pub mod source {
    /// The source files of this crate: the path of each below `src`, and its text.
    pub const FILES: &[(&str, &str)] = &[
        ("lib.rs", include_str!("lib.rs")),
        ("api.rs", include_str!("api.rs")),
        ("dump.rs", include_str!("dump.rs")),
        ("entry.rs", include_str!("entry.rs")),
        ("file.rs", include_str!("file.rs")),
        ("header.rs", include_str!("header.rs")),
        ("image/mod.rs", include_str!("image/mod.rs")),
        ("image/elf.rs", include_str!("image/elf.rs")),
        ("image/macho.rs", include_str!("image/macho.rs")),
        ("image/segments.rs", include_str!("image/segments.rs")),
        ("name.rs", include_str!("name.rs")),
        ("notes.rs", include_str!("notes.rs")),
        ("part.rs", include_str!("part.rs")),
        ("pool.rs", include_str!("pool.rs")),
        ("records.rs", include_str!("records.rs")),
        ("signal.rs", include_str!("signal.rs")),
        ("small.rs", include_str!("small.rs")),
        ("start.rs", include_str!("start.rs")),
        ("stream.rs", include_str!("stream.rs")),
        ("sys/mod.rs", include_str!("sys/mod.rs")),
        ("sys/libc.rs", include_str!("sys/libc.rs")),
        ("sys/linux.rs", include_str!("sys/linux.rs")),
        ("weak.rs", include_str!("weak.rs")),
        ("xxh3.rs", include_str!("xxh3.rs")),
    ];
}
