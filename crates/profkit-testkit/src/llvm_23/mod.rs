//! Writes profiles as LLVM 23 does, for tests. No tools of LLVM 23 are available for these tests, so the files follow
//! the descriptions of the formats (docs/formats: indexed.md, raw.md, sample.md). This module shares no code with the
//! readers and writers under test.
mod indexed;
mod raw;
mod sample;

pub use indexed::{Bytes23, IndexedFunction, IndexedRecord, indexed_profile};
pub use raw::{RawFunction, raw_profile};
pub use sample::{Composite, SampleForm, Sampled, sample_forms, sample_profile, sampled_functions};

use md5::{Digest, Md5};

/// Returns the low 64 bits of the MD5 of a name.
fn hash_of(name: &str) -> u64 {
    let digest: [u8; 16] = Md5::digest(name).into();
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// Returns the fixtures in `tests/fixtures/llvm-23`: the file name and the bytes of each.
pub fn llvm_23_fixtures() -> Vec<(&'static str, Vec<u8>)> {
    let mut fixtures = indexed::fixtures();
    fixtures.extend(raw::fixtures());
    fixtures.extend(sample::fixtures());
    fixtures
}
