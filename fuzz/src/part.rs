//! Parts of merges.
use crate::merge::{mixed, variations};
use profkit_data::detect::{FileKind, detect};
use profkit_merge::families::are_samples;
use profkit_merge::part::{Merger, PartError, examine};
use profkit_merge::sample::SampleMergeOptions;
use profkit_merge::{InputStore, MergeError, MergeOptions, Shard, Weight};
use profkit_testkit::{Rng, change_part, mutate};
use std::num::NonZeroUsize;

/// Makes a part of the bytes and of damaged copies of them (of instrumentation or sample profiles), in one step and in two, and reads it when the content of its
/// sections was changed. A part that can be read must come back from its encoding.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn part(data: &[u8]) {
    let _ = examine(data);
    let seed = mixed(data);
    let shards: Vec<_> = variations(data, seed)
        .into_iter()
        .enumerate()
        .map(shard)
        .collect();
    let samples = are_samples(&InputStore::new(&&shards[..]));
    let merger = || merger(samples);
    let made_of = |shards: &[_]| made_of(merger(), shards);
    let (first, rest) = shards.split_at(shards.len() / 2);
    let Some(whole) = made_of(&shards) else {
        return;
    };
    let parts = [first, rest].map(|shards| made_of(shards).expect("a part of some of the inputs"));
    let mut sum = merger();
    for part in parts.iter().rev() {
        match sum.add_part("part", part) {
            Ok(()) => {}
            // Copies of a part, of which some are in one half and some in the other.
            Err(MergeError::Part(error))
                if matches!(*error, PartError::Overlap { .. })
                    && shards.iter().any(|shard| may_be_part(&shard.bytes)) =>
            {
                return;
            }
            Err(error) => panic!("parts of different inputs: {error}"),
        }
    }
    assert!(
        sum.encode().expect("all have ids") == whole,
        "another sum of two parts"
    );
    assert!(examine(&whole).is_ok());
    let mut rng = Rng::new(seed as u64);
    let section = match samples {
        true => [1, 2, 3, 9, 9, 9][rng.below(6)],
        false => 1 + rng.below(8),
    };
    let changed = change_part(&whole, |tag, bytes| {
        if usize::from(tag) == section {
            mutate(bytes, &whole, &mut rng);
        }
    });
    let changed = changed.expect("the part has all its sections");
    let mut read = merger();
    if read.add_part("changed", &changed).is_err() {
        return;
    }
    let once = read.encode().expect("all have ids");
    let mut again = merger();
    let repeated = again.add_part("again", &once);
    repeated.expect("what was encoded can be decoded");
    assert!(
        again.encode().expect("all have ids") == once,
        "another part"
    );
    let _ = read.finish();
}

/// Compressed files too.
fn may_be_part(bytes: &[u8]) -> bool {
    matches!(detect(bytes), FileKind::Part(_) | FileKind::Foreign(_))
}

fn merger(samples: bool) -> Merger {
    let one = NonZeroUsize::new(1);
    let merger = match samples {
        true => Merger::of_samples(SampleMergeOptions::new().threads(one)),
        false => Merger::of_instr(MergeOptions::new().threads(one)),
    };
    merger.expect("nothing depends on the order of inputs")
}

fn shard((number, bytes): (usize, Vec<u8>)) -> Shard<Vec<u8>> {
    Shard {
        id: number.to_string(),
        name: format!("input {number}"),
        weight: Weight::ONE,
        bytes,
    }
}

/// `None` if an input has a heap profile, or is a part that cannot be added to the others.
fn made_of(mut merger: Merger, shards: &[Shard<Vec<u8>>]) -> Option<Vec<u8>> {
    match merger.add(shards) {
        Ok(()) => Some(merger.encode().expect("all have ids")),
        Err(MergeError::Part(error)) if !matches!(*error, PartError::NoId { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}
