//! Raw profiles without metadata joined to their binaries.
pub mod args;
pub mod debuginfod;
pub mod joined;
pub mod plan;
pub mod report;
