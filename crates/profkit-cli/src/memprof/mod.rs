//! Heap profiles: detects them among inputs, shows them, compares them, and draws flame graphs.
pub mod diff;
pub mod flame;
mod heap;
mod inputs;
pub mod show;

pub use inputs::{is_memprof_input, module_name, modules, notes};
