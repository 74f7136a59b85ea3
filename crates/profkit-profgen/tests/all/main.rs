//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod autofdo;
mod contexts;
mod kernel;
mod layout;
mod llvm_profgen;
mod module;
mod probes;
mod support;
