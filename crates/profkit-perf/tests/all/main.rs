//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod collect;
mod perf_tool;
mod simulated;
mod text;
mod written;
