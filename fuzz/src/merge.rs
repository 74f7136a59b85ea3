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
    // Threads go as the scheduler likes: what they rarely do is done on purpose.
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
    // Its result depends on the order of inputs and the number of writers.
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

/// How many schedules of workers are tried on one input.
const SCHEDULES: usize = 2;

/// What a merge makes and says.
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
    // A damaged file may name one function in several records.
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
            // It is carried through unread, so its damage is found only now.
            Err(error) if error.structures() == [Structure::MemProfSection] => located(&error),
            Err(error) => panic!("the result of a merge cannot be written: {error}"),
        }
    }
    let mut totals = outcome.report.totals;
    // How it was done, which is another matter.
    (totals.fast_profiles, totals.layouts) = (0, 0);
    Ok(Merged {
        bytes,
        events: outcome.report.events,
        totals,
    })
}

/// A number of the bytes. Any function of them will do, as long as it is always the same.
pub(crate) fn mixed(data: &[u8]) -> usize {
    data.iter().fold(data.len(), |mixed, &byte| {
        mixed.wrapping_mul(31).wrapping_add(usize::from(byte))
    })
}

/// Inputs in some order, each with one of as many workers.
fn schedule(seed: usize, inputs: usize) -> Vec<(usize, usize)> {
    let mut state = seed as u64;
    let mut below = |limit: usize| {
        // Steps of a multiplicative generator; the high bits are the good ones.
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

/// The bytes as they are; cut; with one bit changed; and as they are again.
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
