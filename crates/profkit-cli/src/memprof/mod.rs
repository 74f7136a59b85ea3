//! Heap profiles: shows them, opens them for `diff`, and draws flame graphs.
pub mod flame;
pub(crate) mod heap;
pub mod show;
