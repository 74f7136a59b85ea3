//! Finds the binaries of raw profiles that have no metadata of their own.
pub mod args;
pub mod debuginfod;
