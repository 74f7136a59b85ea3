//! Heap profiles: which inputs are some, raw dumps symbolised against their binaries, and the sum of all.
pub mod diff;
mod flame;
mod heap;
mod inputs;
pub mod show;

pub use inputs::{is_memprof_input, module_name, modules, notes};
