//! Reads what profiles need from binaries and debug info: build ids, source locations of addresses (symbolising), and
//! the sections and DWARF that belong to raw profiles without metadata (correlation).
//!
//! This crate opens files itself, because a program's contents tell in which files its debug info is.
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
