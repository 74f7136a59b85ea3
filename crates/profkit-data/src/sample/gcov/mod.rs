//! GCC's sample profile (`.afdo`, `fbdata.afdo`), which `create_gcov` writes and `gcc -fauto-profile` reads.
//!
//! A word has 32 bits, in the byte order of the machine that wrote the file; the magic number shows which order it is.
//! A count has two words, the lower one first. In the layout below, a number without a type is a word. The notation
//! `names of (…)` stands for as many items as the number `names` states.
//!
//! ```text
//! magic "gcda" as a word | version | 0
//! (version 3) 0xa8000000 | total, max, max head, counts, functions: u64 each | entries: u64
//!             | entries of (cutoff: u32, least count: u64, counts: u64)
//! 0xaa000000 | length | (version 3) files | strings | names | names of (string, (version 3) file: u32)
//! 0xac000000 | length | functions | functions of (head: u64, instance)
//! 0xae000000 | length | modules | modules
//! 0xaf000000 | length | 128 of (counts: u32, least count: u64)
//!
//! instance: name: u32 | lines | call sites
//!           | lines of (place: u32, targets, count: u64, targets of (7, name: u64, count: u64))
//!           | call sites of (place: u32, instance)
//! place: line << 16 | discriminator
//! ```
//!
//! | version | used by | a string | other parts |
//! |---|---|---|---|
//! | `407*` (0x3430372a), `406p` | Google's GCC 4.6 and 4.7, LLVM's reader | its length in words, its bytes, one to four zero bytes up to a whole word | modules |
//! | 1 | GCC 5 to 11 | as in `407*` | |
//! | 2 | GCC 12 to 15 | its length in bytes, its bytes, one zero byte | |
//! | 3 | GCC 16 | as in version 2 | file names, the summary, discriminators with multiplicity |
//!
//! Total samples are not stored, because they are the sum of the stored samples. [docs/formats/gcov.md] has the source of
//! each fact.
//!
//! [docs/formats/gcov.md]: https://github.com/profkit/profkit/blob/main/docs/formats/gcov.md
mod header;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use header::{GcovDiscriminator, GcovVersion, has_magic};
pub use reader::GcovProfile;
pub use writer::{GcovLosses, GcovOptions, write};
