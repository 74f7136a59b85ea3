//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod action;
mod call;
mod cancel;
mod cli;
mod cloud;
mod correlation;
mod correlation_formats;
mod debuginfod;
mod doctor_next;
mod filter;
mod flamegraph;
mod fold;
mod help;
mod many_records;
mod match_builds;
mod matrix;
mod memprof;
mod mip_arm;
mod mip_cargo;
mod mip_cc;
mod mip_edges;
mod mip_faults;
mod mip_lto;
mod mip_macho;
mod mip_pipelines;
mod mip_programs;
mod mip_runtime;
mod mip_use;
mod mip_variants;
mod one_meaning;
mod personality;
mod pgo;
mod pgo_builds;
mod pprof_reader;
mod readme;
mod recording_messages;
mod sample_compile;
mod sample_perf;
mod sampling;
mod tables;
mod terminal;
mod unreadable;
