//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Reads what profiles need from binaries and debug info: build ids; source locations of addresses (symbolising); and
//! the sections and DWARF that belong to raw profiles with only counters (correlation).
//!
//! This crate opens files itself, because the contents of a program show which other files contain its debug info.
#![deny(missing_docs)]

pub mod bb_addr_map;
pub mod binaries;
pub mod binary;
pub mod bounds;
pub mod build_id;
pub mod code_symbols;
pub mod correlate;
pub mod debug_files;
#[cfg(feature = "debuginfod")]
pub mod debuginfod;
pub mod demangle;
pub mod functions;
pub mod index;
pub mod kernel_module;
pub mod library;
pub mod memprof;
pub mod mip_sections;
pub mod names;
mod packed_symbols;
pub mod producers;
pub mod readable;
pub mod servers;
pub mod symbolize;
