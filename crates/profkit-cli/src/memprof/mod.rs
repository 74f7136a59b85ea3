//! Heap profiles: which inputs are some, raw dumps symbolised against their binaries, and the sum of all.
pub mod diff;
mod flame;
mod heap;
mod inputs;
pub mod show;

pub use inputs::{Loaded, is_memprof_input, load, module_name};
