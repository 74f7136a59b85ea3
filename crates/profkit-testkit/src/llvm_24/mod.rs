//! Writes sample profiles in the forms that LLVM's development branch has after release 23, for tests. No release writes
//! them, and no tool that does can be installed, so the files follow the description of the format
//! (docs/formats/sample.md). This module shares no code with the reader under test.
mod sample;

pub use sample::{Composite, SampleForm, Sampled, sample_forms, sample_profile, sampled_functions};

use md5::{Digest, Md5};

/// Returns the low 64 bits of the MD5 of a name.
fn hash_of(name: &str) -> u64 {
    let digest: [u8; 16] = Md5::digest(name).into();
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// Returns the fixtures in `tests/fixtures/llvm-24`: the file name and the bytes of each.
pub fn llvm_24_fixtures() -> Vec<(&'static str, Vec<u8>)> {
    sample::fixtures()
}
