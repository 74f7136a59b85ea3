//! Binaries and debug info, as far as profiles need them: build ids, the sections and DWARF that raw profiles without
//! metadata are joined to (correlation), and source locations of addresses (symbolising).
//!
//! This crate opens files: which ones a program's debug info is in is found out by reading the program.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod binary;
pub mod build_id;
pub mod correlate;
pub mod debug_files;
#[cfg(feature = "debuginfod")]
pub mod debuginfod;
pub mod functions;
pub mod index;
pub mod memprof;
pub mod mip_sections;
pub mod symbolize;
