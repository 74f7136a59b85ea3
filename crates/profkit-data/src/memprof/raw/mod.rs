//! Raw MemProf profiles (`.memprofraw`), which the run-time library of clang's `-fmemory-profile` writes.
//!
//! A file has one or more dumps, one after the other. All numbers are little-endian and 64 bits wide. A dump:
//!
//! | bytes | |
//! |---|---|
//! | 8 | magic 0xff6d70726f667281 |
//! | 8 | version |
//! | 8 | size of the dump |
//! | 8, 8, 8 | offsets of segments, blocks and stacks, each from the start of the dump |
//!
//! Each of these three parts begins with the number of its items, and is padded to a multiple of 8:
//!
//! | | an item |
//! |---|---|
//! | segment | start, end, offset; from version 3 on the build id's size; build id (32 bytes) |
//! | block | stack id, then the fields of a [`MemInfoBlock`](super::MemInfoBlock), packed; from version 4 on followed by its histogram |
//! | stack | stack id, number of addresses, addresses from the allocation outwards |
//!
//! | version | LLVM | what changed |
//! |---|---|---|
//! | 1 | 14, 15 | 19 fields |
//! | 2 | 16, 17 | access densities: 25 fields |
//! | 3 | 18 | segments state the build id's size |
//! | 4 | 19 to 21 | histograms, 64-bit elements: 27 fields |
//! | 5 | 22 | histogram elements are 16-bit floats |
//!
//! A segment is a mapping of code. Up to version 2, its offset is the offset of the mapping in its file. From version 3
//! on, it is the load address of the module. The source of this fact is `memprof_rawprofile.cpp`; real files confirm
//! it.
//!
//! Sources of these facts: `MemProfData.inc` of LLVM 14, 15, 16, 19 and 22, `memprof_rawprofile.cpp`,
//! `MemProfReader.cpp`, and files that these releases write.
mod contexts;
mod header;
mod histogram;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use contexts::{Addresses, ContextRef, Module, ModuleId, Modules, RawContexts, Skipped};
pub use header::{HEADER_LEN, MAGIC, Version};
pub use histogram::{decode_element, encode_element};
pub use reader::{Blocks, Pcs, RawBlock, RawDump, RawMemProf, Segment, Stacks};
pub use writer::{DumpToWrite, RawMemProfOptions, SegmentToWrite, write};
