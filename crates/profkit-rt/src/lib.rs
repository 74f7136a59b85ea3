//! The runtime that is linked into every image (program or shared library) with MIP instrumentation. At exit it writes
//! the image's records as a raw file; docs/formats/mip.md says what the file holds and docs/mip-runtime.md how the
//! runtime behaves.
//!
//! The crate is compiled in two ways. As a library it has the parts that need no platform, so that they can be tested.
//! With `--cfg profkit_rt_object` it is the runtime: one object file, hidden C names, no panic, no allocation, no
//! Rust library but `core`'s inlined functions. `profkit_rt_libc` makes it use libc where it would make system calls
//! itself. [`COMPILE_FLAGS`] is how to compile it.
//!
//! Size is what counts here: the object is part of every shipped instrumented program.
#![no_std]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

/// Modules that are public in the library, and private in the object file: there nothing may be global but the C names,
/// or images of one process would share functions.
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

#[cfg(profkit_rt_object)]
mod dump;
#[cfg(profkit_rt_object)]
mod entry;
#[cfg(profkit_rt_object)]
mod image;
#[cfg(profkit_rt_object)]
mod sys;

/// The options for rustc that make the runtime's object file from [`source::FILES`]. Input, output, target and
/// `--extern profkit_abi=…` must be added.
pub const COMPILE_FLAGS: &[&str] = &[
    "--crate-name=profkit_rt",
    "--crate-type=lib",
    "--edition=2021",
    "--cfg=profkit_rt_object",
    "--emit=obj",
    "-Copt-level=z",
    "-Cpanic=abort",
    "-Ccodegen-units=1",
    "-Crelocation-model=pic",
    "-Cforce-unwind-tables=no",
    "-Cdebuginfo=0",
    // Nothing is global but the C names, or images of one process would share functions.
    "-Cpasses=internalize,globaldce,default<Oz>",
    "-Cllvm-args=-internalize-public-api-list=__profkit_mip_hook,__profkit_mip_fini,__profkit_mip_dump,__profkit_mip_reset,__profkit_mip_ordinal,__profkit_mip_ring_next",
];

/// The source text of this crate. With it, the command alone can compile the runtime for another target.
#[cfg(feature = "source")]
pub mod source {
    /// Each file's path below the crate's `src`, and its text.
    pub const FILES: &[(&str, &str)] = &[
        ("lib.rs", include_str!("lib.rs")),
        ("dump.rs", include_str!("dump.rs")),
        ("entry.rs", include_str!("entry.rs")),
        ("header.rs", include_str!("header.rs")),
        ("image/mod.rs", include_str!("image/mod.rs")),
        ("image/elf.rs", include_str!("image/elf.rs")),
        ("image/macho.rs", include_str!("image/macho.rs")),
        ("name.rs", include_str!("name.rs")),
        ("notes.rs", include_str!("notes.rs")),
        ("records.rs", include_str!("records.rs")),
        ("stream.rs", include_str!("stream.rs")),
        ("sys/mod.rs", include_str!("sys/mod.rs")),
        ("sys/libc.rs", include_str!("sys/libc.rs")),
        ("sys/linux.rs", include_str!("sys/linux.rs")),
        ("xxh3.rs", include_str!("xxh3.rs")),
    ];
}
