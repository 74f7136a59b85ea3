//! Support for tests. It finds the installed LLVM releases and checks which tools work, builds real profiles of our own
//! programs ([`matrix`]), generates random C programs ([`program`]), simulates recordings of programs ([`simulate`]),
//! finds the fixtures, builds malformed binary files, and measures the time and memory of child processes. The crate is
//! not published. Only tests and `xtask` use it, so its functions panic instead of returning errors.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a panic is how a test fails"
)]

mod alloc;
mod bytes;
pub mod conformance;
pub mod corpus;
pub mod fault_proxy;
mod fixtures;
pub mod heap;
mod killer;
mod llvm;
pub mod llvm_24;
pub mod matrix;
pub mod mip;
mod mutate;
mod odd_samples;
mod pages;
mod part;
mod perf;
mod probe;
mod process;
pub mod program;
mod recordings;
pub mod sample;
pub mod simulate;
mod slow;

pub use alloc::{CountingAllocator, peak_allocation};
pub use bytes::{ByteBuilder, Endian};
pub use fixtures::{
    distinct_fixtures_with, fixture, fixture_path, fixtures, fixtures_with, repo_root,
    target_folder,
};
pub use heap::{HEAP_FLAGS, HEAP_LINK_FLAGS, heap_dump};
pub use killer::Killer;
pub use llvm::{Llvm, RELEASES, REQUIRE_VARIABLE, on_path, skip};
pub use mutate::{Rng, mutate};
pub use odd_samples::{OddSamples, odd_sample_text};
pub use pages::{PAGE, evict, resident};
pub use part::change_part;
pub use perf::{PerfSample, PerfWriter};
pub use probe::{has_heap_runtime, has_profile_runtime, links_c, links_cxx};
pub use process::{Measured, measure, succeed, with_memory_cap};
pub use recordings::{REQUIRE_DATA_VARIABLE, perf_recordings};
pub use slow::{SLOW_VARIABLE, is_slow, short_or_whole, some_or_all};
