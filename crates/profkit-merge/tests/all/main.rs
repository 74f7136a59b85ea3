//! The integration tests of this crate, linked as one program: a program for each file took most of the time of a build.
mod common;
mod driver;
mod fixtures;
mod oracle;
mod schedules;
mod traces;
