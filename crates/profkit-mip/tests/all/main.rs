//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod cross;
mod x86_64;
