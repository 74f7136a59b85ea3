//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod correlate_bad;
mod debug_files;
mod declarations;
mod index;
mod symbolize;
