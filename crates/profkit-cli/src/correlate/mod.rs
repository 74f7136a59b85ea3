//! Raw profiles without metadata joined to their binaries.
pub mod args;
pub mod debuginfod;
pub mod report;
