//! The laws of parts of MIP files, on encoded bytes.
use crate::parts::{part_error, shard, tree_of};
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{FunctionId, MipProfile, MipWriteOptions, write};
use profkit_merge::mip::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
use profkit_merge::part::Merger;
use profkit_merge::{MergeError, Shard};
use profkit_testkit::{change_part, fixture};
use proptest::prelude::*;

fn target() -> MipProfile {
    MipProfile::parse(&fixture("mip/mixed-empty.mip")).unwrap()
}

fn targets() -> Vec<MipTarget> {
    let name = "mixed.mip".to_owned();
    vec![MipTarget {
        name,
        profile: target(),
    }]
}

fn options() -> MipMergeOptions {
    MipMergeOptions::new().take_profiles(true)
}

fn bytes(profile: &MipProfile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(profile, &MipWriteOptions::new(), &mut bytes).unwrap();
    bytes
}

/// Raw files of one build and of another, profiles of both, one of them with some functions only, cut and other files.
fn pool() -> Vec<Shard<Vec<u8>>> {
    let raw = |name: &str| fixture(format!("mip/{name}.mipraw"));
    let whole = merge_mip(targets(), &[shard("1", raw("mixed-1"))], &options()).unwrap();
    let whole = &whole.targets[0].profile;
    let mut some = whole.clone();
    let functions: Vec<_> = some.functions.iter().rev().step_by(2).cloned().collect();
    some.functions = functions.into_iter().collect::<IndexVec<FunctionId, _>>();
    some.edges.clear();
    let mut other = target();
    other.identity = profkit_data::mip::Identity::ModuleHash(7);
    let cut = raw("mixed-1");
    vec![
        shard("1", raw("mixed-1")),
        shard("1-again", raw("mixed-1")),
        shard("2", raw("mixed-2")),
        shard("pool", raw("mixed-pool")),
        shard("other", raw("other")),
        shard("cut", &cut[..70]),
        shard("junk", *b"\x7fELF junk"),
        shard("empty", *b""),
        shard("whole", bytes(whole)),
        shard("some", bytes(&some)),
        shard("module", bytes(&other)),
    ]
}

fn merger(shards: &[Shard<Vec<u8>>]) -> Merger {
    let mut merger = Merger::of_mip(targets(), options());
    merger.add(shards).unwrap();
    merger
}

fn added(parts: &[&[u8]]) -> Merger {
    let mut merger = Merger::of_mip(targets(), options());
    for part in parts {
        merger.add_part("part", part).unwrap();
    }
    merger
}

fn whole(outcome: Result<MipOutcome, MergeError>) -> (Vec<Vec<u8>>, String) {
    let mut outcome = outcome.unwrap();
    outcome.report.repeated.clear();
    let profiles = outcome.targets.iter().map(|target| bytes(&target.profile));
    let report = serde_json::to_string_pretty(&outcome.report).unwrap();
    (profiles.collect(), report)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(24, 400) as u32))]

    #[test]
    fn every_partition_and_tree_gives_the_same_bytes(
        leaves in proptest::collection::vec(0usize..4, 11),
        picks in proptest::collection::vec(0usize..97, 12),
        order in Just((0..11).collect::<Vec<usize>>()).prop_shuffle(),
        taken in proptest::collection::vec(proptest::bool::weighted(0.6), 11),
    ) {
        let pool = pool();
        let chosen: Vec<usize> = order.into_iter().filter(|&at| taken[at]).collect();
        prop_assume!(!chosen.is_empty());
        let inputs: Vec<_> = chosen.iter().map(|&at| pool[at].clone()).collect();
        let mut parts = Vec::new();
        for leaf in 0..4 {
            let own: Vec<_> = chosen.iter().filter(|&&at| leaves[at] == leaf).map(|&at| pool[at].clone()).collect();
            if !own.is_empty() {
                parts.push(merger(&own).encode().unwrap());
            }
        }
        let once = merger(&inputs).encode().unwrap();
        let by_tree = tree_of(parts.clone(), &picks, &|parts| added(parts).encode().unwrap());
        prop_assert!(once == by_tree, "the part");
        prop_assert!(added(&[&once]).encode().unwrap() == once);
        prop_assert!(added(&[&parts[0], &once]).encode().unwrap() == once);
        let expected = whole(merger(&inputs).finish_mip());
        prop_assert_eq!(&whole(added(&[&once]).finish_mip()), &expected);
        let parts: Vec<_> = parts.into_iter().map(|part| ("part", part)).collect();
        prop_assert_eq!(&whole(merge_mip(targets(), &parts, &options())), &expected);
        // The counts are those of an ordinary merge of the inputs.
        let plain = merge_mip(targets(), &inputs, &options()).unwrap();
        let counts = |profile: &MipProfile| (profile.runs, profile.function_counts(), profile.block_counts());
        let through = merge_mip(targets(), &parts, &options()).unwrap();
        prop_assert_eq!(counts(&plain.targets[0].profile), counts(&through.targets[0].profile));
    }
}

#[test]
fn profiles_that_contradict_each_other_are_an_error_and_counts_of_targets_stay_theirs() {
    let pool = pool();
    let mut changed = target();
    changed
        .functions
        .iter_mut()
        .for_each(|function| function.signature ^= 1);
    changed.runs = 1;
    let changed = merger(&[shard("changed", bytes(&changed))])
        .encode()
        .unwrap();
    let sound = merger(&pool[..1]).encode().unwrap();
    let mut sum = added(&[&sound]);
    let error = part_error(sum.add_part("changed.pkpart", &changed));
    insta::assert_snapshot!(error, @"build id abababababababababababababababababababab: two profiles of this build have functions with one name and different code");
    // Nothing was added.
    assert!(sum.encode().unwrap() == sound);
    let mut unknown = targets();
    unknown[0].profile.identity = profkit_data::mip::Identity::UNKNOWN;
    let added = Merger::of_mip(unknown, options()).add(&pool[..1]);
    insta::assert_snapshot!(part_error(added), @"mixed.mip: a profile without a build id cannot be in a part");
    // A target that has counts keeps them, and they are in no part.
    let before = merge_mip(targets(), &pool[..1], &options())
        .unwrap()
        .targets;
    let mut again = Merger::of_mip(before.clone(), options());
    again.add(&pool[2..3]).unwrap();
    let part = again.encode().unwrap();
    assert!(part == merger(&pool[2..3]).encode().unwrap());
    let runs = before[0].profile.runs;
    let after = merge_mip(before, &[("part", part)], &options()).unwrap();
    assert_eq!(after.targets[0].profile.runs, runs + 1);
    let damaged = change_part(&sound, |tag, bytes| {
        if tag == 10 {
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
        }
    });
    let mut none = Merger::of_mip(targets(), options());
    let error = part_error(none.add_part("x.pkpart", &damaged.unwrap()));
    assert!(
        error.to_string().contains("section MIP of part of a merge"),
        "{error}"
    );
}
