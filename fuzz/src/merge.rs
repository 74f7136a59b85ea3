//! Merging.
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_merge::{InputData, Inputs, MergeError, MergeOptions, Policy, merge_instr};
use std::num::NonZeroUsize;

use crate::source::located;

/// The largest count of a raw profile that is not taken for damage. Indexed and text profiles hold sums.
const LARGEST_PLAUSIBLE: u64 = 1 << 56;
/// Counts that mark a function as hot or warm.
const PSEUDO_COUNTS: [u64; 2] = [u64::MAX, u64::MAX - 1];

/// Merges the bytes with damaged copies of themselves. The result is the same with any number of threads and without
/// the same-binary fast path, and no count of a raw profile that is beyond all reason reaches it. Merging as LLVM does
/// ends too.
///
/// # Panics
/// If that does not hold.
pub(crate) fn merge(data: &[u8]) {
    let inputs = Memory(variations(data));
    let reference = merged(&inputs, &MergeOptions::new().threads(NonZeroUsize::new(1)));
    for options in [
        MergeOptions::new().threads(NonZeroUsize::new(3)),
        MergeOptions::new()
            .threads(NonZeroUsize::new(1))
            .no_fast_path(true),
    ] {
        let other = merged(&inputs, &options);
        match (&reference, &other) {
            (Ok(one), Ok(other)) => assert!(one == other, "another result with {options:?}"),
            (Err(_), Err(_)) => {}
            (one, other) => panic!(
                "{:?} and, with {options:?}, {:?}",
                one.as_ref().map(Vec::len),
                other.as_ref().map(Vec::len)
            ),
        }
    }
    // Its result depends on the order of inputs and the number of writers.
    let _ = merge_instr(&inputs, &MergeOptions::new().policy(Policy::Llvm));
}

fn merged(inputs: &Memory, options: &MergeOptions) -> Result<Vec<u8>, MergeError> {
    let outcome = merge_instr(inputs, options)?;
    let is_raw = |data: &Vec<u8>| detect(data) == FileKind::InstrRaw;
    let all_raw = inputs.0.iter().all(is_raw);
    let mut bytes = Vec::new();
    for merged in &outcome.profiles {
        for table in &merged.profile.tables {
            for record in table.functions().flat_map(|function| function.records()) {
                let largest = record
                    .counts
                    .iter()
                    .filter(|count| !PSEUDO_COUNTS.contains(count));
                let largest = largest.max().copied().unwrap_or(0);
                let allowed = LARGEST_PLAUSIBLE * inputs.0.len() as u64;
                assert!(!all_raw || largest <= allowed, "a count of {largest:#x}");
            }
        }
        let options = IndexedWriteOptions::for_version(13);
        match write(&merged.profile, &options, &mut bytes) {
            Ok(_) => {}
            // It is carried through unread, so its damage is found only now.
            Err(error) if error.structure() == Some("MemProf section") => located(&error),
            Err(error) => panic!("the result of a merge cannot be written: {error}"),
        }
    }
    Ok(bytes)
}

/// The bytes as they are; cut; with one bit changed; and as they are again.
fn variations(data: &[u8]) -> Vec<Vec<u8>> {
    // Any function of the bytes will do, as long as it is always the same.
    let mixed = data.iter().fold(data.len(), |mixed, &byte| {
        mixed.wrapping_mul(31).wrapping_add(usize::from(byte))
    });
    let cut = data.len() - mixed % 257 % (data.len() + 1);
    let mut flipped = data.to_vec();
    if let Some(byte) = flipped.get_mut(mixed % data.len().max(1)) {
        *byte ^= 1 << (mixed % 8);
    }
    vec![data.to_vec(), data[..cut].to_vec(), flipped, data.to_vec()]
}

struct Memory(Vec<Vec<u8>>);

impl Inputs for Memory {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn name(&self, _: usize) -> &str {
        "input"
    }

    fn load<'s>(&'s self, index: usize, _: &'s mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        match self.0.get(index) {
            Some(bytes) => Ok(InputData::Borrowed(bytes)),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}
