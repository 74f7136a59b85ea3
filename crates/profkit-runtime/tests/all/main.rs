//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod api;
mod faults;
mod hostile;
mod like_llvm;
mod programs;
mod servers;
mod shared;
mod support;
mod without_system;
