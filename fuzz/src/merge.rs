//! Merging.
use profkit_data::Structure;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_merge::{
    Event, InputData, Inputs, MergeError, MergeOptions, MergeOutcome, Policy, Totals, ValueWeights,
    Weight, merge_instr, merge_scheduled,
};
use std::fmt::Debug;
use std::num::NonZeroUsize;

use crate::source::located;

/// The largest count in a raw profile that is not regarded as damage. Indexed and text profiles may have larger counts,
/// because they hold sums.
const LARGEST_PLAUSIBLE: u64 = 1 << 56;
/// The count values that mark a function as hot or warm.
const PSEUDO_COUNTS: [u64; 2] = [u64::MAX, u64::MAX - 1];

/// Merges the bytes with damaged copies of themselves. The result must not depend on the number of threads, nor on the
/// fast path for profiles of the same binary. It must not contain an impossible count from a raw profile. A merge with
/// LLVM's rules must end too.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn merge(data: &[u8]) {
    let mixed = mixed(data);
    let inputs = Memory {
        files: variations(data, mixed),
        weighted: false,
    };
    let one = MergeOptions::new().threads(NonZeroUsize::new(1));
    let three = MergeOptions::new().threads(NonZeroUsize::new(3));
    let ordinary = one.clone().no_fast_path(true);
    let reference = result(&inputs, merge_instr(&inputs, &one));
    let compare = |other, how: &dyn Debug| same(&reference, other, how);
    compare(result(&inputs, merge_instr(&inputs, &three)), &three);
    compare(result(&inputs, merge_instr(&inputs, &ordinary)), &ordinary);
    // The scheduler decides what threads do. Rare orders of their steps are therefore tried explicitly.
    for round in 0..SCHEDULES {
        let schedule = schedule(mixed.wrapping_add(round), inputs.files.len());
        let merged = merge_scheduled(&inputs, &one, &schedule);
        compare(result(&inputs, merged), &schedule);
    }
    let weighted = Memory {
        weighted: true,
        ..inputs
    };
    let fast = one.value_weights(ValueWeights::AsLlvm);
    let slow = fast.clone().no_fast_path(true);
    let reference = result(&weighted, merge_instr(&weighted, &fast));
    same(
        &reference,
        result(&weighted, merge_instr(&weighted, &slow)),
        &slow,
    );
    // This result depends on the order of the inputs and the number of writers, so it is not compared.
    let _ = merge_instr(&weighted, &MergeOptions::new().policy(Policy::Llvm));
}

fn same(
    reference: &Result<Merged, MergeError>,
    other: Result<Merged, MergeError>,
    how: &dyn Debug,
) {
    match (reference, &other) {
        (Ok(one), Ok(other)) => assert!(one == other, "another result with {how:?}"),
        (Err(_), Err(_)) => {}
        (one, other) => panic!(
            "{:?} and, with {how:?}, {:?}",
            one.as_ref().map(|merged| merged.bytes.len()),
            other.as_ref().map(|merged| merged.bytes.len())
        ),
    }
}

/// The number of schedules of workers that are tried for one input.
const SCHEDULES: usize = 2;

/// The result of a merge: the written profile and the report.
#[derive(PartialEq)]
struct Merged {
    bytes: Vec<u8>,
    events: Vec<Event>,
    totals: Totals,
}

fn result(
    inputs: &Memory,
    outcome: Result<MergeOutcome, MergeError>,
) -> Result<Merged, MergeError> {
    let outcome = outcome?;
    let is_raw = |data: &Vec<u8>| detect(data) == FileKind::InstrRaw;
    let all_raw = inputs.files.iter().all(is_raw);
    let mut bytes = Vec::new();
    // The counts of one function can come from several records of a damaged file.
    let records = outcome.report.totals.records_merged;
    let weights = (0..inputs.len()).filter_map(|input| inputs.weight(input).as_integer());
    let heaviest = weights.max().unwrap_or(1);
    let allowed = LARGEST_PLAUSIBLE
        .saturating_mul(records)
        .saturating_mul(heaviest);
    for merged in &outcome.profiles {
        for table in &merged.profile.tables {
            for record in table.functions().flat_map(|function| function.records()) {
                let largest = record
                    .counts
                    .iter()
                    .filter(|count| !PSEUDO_COUNTS.contains(count));
                let largest = largest.max().copied().unwrap_or(0);
                assert!(!all_raw || largest <= allowed, "a count of {largest:#x}");
            }
        }
        let options = IndexedWriteOptions::for_version(13);
        match write(&merged.profile, &options, &mut bytes) {
            Ok(_) => {}
            // The MemProf section is copied without being read, so its damage is found only when it is written.
            Err(error) if error.structures() == [Structure::MemProfSection] => located(&error),
            Err(error) => panic!("the result of a merge cannot be written: {error}"),
        }
    }
    let mut totals = outcome.report.totals;
    // These two totals depend on the path that the merge took, so two correct merges may differ in them.
    (totals.fast_profiles, totals.layouts) = (0, 0);
    Ok(Merged {
        bytes,
        events: outcome.report.events,
        totals,
    })
}

/// Computes a number from the bytes. Any function is suitable that always gives the same number for the same bytes.
pub(crate) fn mixed(data: &[u8]) -> usize {
    data.iter().fold(data.len(), |mixed, &byte| {
        mixed.wrapping_mul(31).wrapping_add(usize::from(byte))
    })
}

/// Returns the inputs in a random order, each with a random worker. There are as many workers as inputs.
fn schedule(seed: usize, inputs: usize) -> Vec<(usize, usize)> {
    let mut state = seed as u64;
    let mut below = |limit: usize| {
        // This is a step of a linear congruential generator. Only the high bits of its numbers are random enough.
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % limit
    };
    let mut schedule: Vec<_> = (0..inputs).map(|input| (input, below(inputs))).collect();
    for end in (1..inputs).rev() {
        schedule.swap(end, below(end + 1));
    }
    schedule
}

/// Returns four variations of the bytes: unchanged, cut, with one bit changed, and unchanged again.
pub(crate) fn variations(data: &[u8], mixed: usize) -> Vec<Vec<u8>> {
    let cut = data.len() - mixed % 257 % (data.len() + 1);
    let mut flipped = data.to_vec();
    if let Some(byte) = flipped.get_mut(mixed % data.len().max(1)) {
        *byte ^= 1 << (mixed % 8);
    }
    vec![data.to_vec(), data[..cut].to_vec(), flipped, data.to_vec()]
}

pub(crate) struct Memory {
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) weighted: bool,
}

impl Inputs for Memory {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, _: usize) -> std::borrow::Cow<'_, str> {
        "input".into()
    }

    fn weight(&self, index: usize) -> Weight {
        match self.weighted {
            true => Weight::integer(index as u64 % 3 + 1),
            false => Weight::ONE,
        }
    }

    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        match self.files.get(index) {
            Some(bytes) => Ok(InputData::Borrowed(bytes)),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}
