//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Answers questions about profiles. Each module takes profiles or binaries and returns values; front ends turn the
//! values into text.
//!
//! | module | question |
//! |---|---|
//! | [`any`] | what is in a profile whose kind is not known? |
//! | [`combine`] | what do several profiles hold together? |
//! | [`correlate`] | which raw profile belongs to which binary, and what are the names of its functions? |
//! | [`diff`] | what changed between two profiles? |
//! | [`doctor`] | what is a file, who can use it, what is wrong with it? |
//! | [`heap`] | which functions contain the addresses of a raw heap profile? |
//! | [`filter`] | what is left of a profile that is cut down? |
//! | [`heat`] | which functions are hot, warm or cold? |
//! | [`instr`] | what is in an instrumentation profile of any form? |
//! | [`manifest`] | what was a profile made of? |
//! | [`matching`] | how much of a profile can the functions of a binary use? |
//! | [`mip_lines`] | which source lines ran, by the blocks of a MIP profile? |
//! | [`mip_numbers`] | how often was a function of a MIP profile called? |
//! | [`names`] | what is the name of a function in its own language? |
//! | [`order`] | in which order should a linker lay out functions? |
//! | [`overlap`] | how alike are two profiles? |
//! | [`ranking`] | which functions have the largest numbers, and which files, crates or namespaces? |
//! | [`samples`] | what is in a sample profile of any encoding? |
//! | [`selection`] | which functions are meant by a name or a part of one? |
//! | [`stable`] | what is left of a profile without the noise of its runs? |
#![forbid(unsafe_code)]

pub mod any;
pub mod combine;
pub mod correlate;
pub mod diff;
pub mod doctor;
pub mod faults;
pub mod filter;
pub mod heap;
pub mod heat;
pub mod instr;
pub mod manifest;
pub mod matching;
pub mod mip_lines;
pub mod mip_numbers;
pub mod order;
pub mod overlap;
pub mod ranking;
pub mod samples;
pub mod selection;
pub mod stable;

pub use profkit_object::readable as names;
