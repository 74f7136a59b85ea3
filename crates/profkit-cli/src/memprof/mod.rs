//! Heap profiles: detects them among inputs, shows them, opens them for `diff`, and draws flame graphs.
pub mod flame;
pub(crate) mod heap;
mod inputs;
pub mod show;

pub use inputs::{is_memprof_input, module_name, modules, notes};
