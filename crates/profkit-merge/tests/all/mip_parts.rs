//! The laws of parts of MIP files, on encoded bytes.
use crate::laws::{cases, parts_of_every_version};
use crate::parts::{part_error, shard};
use profkit_data::ids::BuildId;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{
    FunctionId, Identity, ImageFacts, MipMap, MipProfile, MipWriteOptions, write,
};
use profkit_merge::mip::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
use profkit_merge::part::Merger;
use profkit_merge::{MergeError, MergeOptions, Shard};
use profkit_testkit::mip::{BLOCKS, CALLS, MipFunction, MipImage};
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
    other.identity = Identity::ModuleHash(7);
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
        case in cases(11, 4, 0.6),
    ) {
        let pool = pool();
        let inputs = case.inputs(&pool);
        prop_assume!(!inputs.is_empty());
        let parts = case.parts(&pool, |own| merger(own).encode().unwrap());
        let once = merger(&inputs).encode().unwrap();
        let by_tree = case.added_up(parts.clone(), |parts| added(parts).encode().unwrap());
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

/// An invented program with so many functions, and raw files of some runs of it.
fn program(functions: usize, runs: u32) -> (MipTarget, Vec<Shard<Vec<u8>>>) {
    let functions = (0..functions).map(|number| {
        let name = format!(
            "_ZN{}5parse{number}E",
            ["3app", "4core7string_", "3std2io"][number % 3]
        );
        MipFunction::new(name, CALLS | BLOCKS, (number % 9).try_into().unwrap())
    });
    let image = MipImage::new(&[0xcd; 20], functions.collect());
    let map = image.map().finish();
    let facts = ImageFacts::new()
        .build_id(Some(BuildId(image.build_id.clone())))
        .section_size(Some(image.layout().1 as u64));
    let created = MipProfile::create(&MipMap::parse(&map).unwrap(), &facts).unwrap();
    let target = MipTarget {
        name: "program.mip".to_owned(),
        profile: created.profile,
    };
    let run = |number: u32| {
        let called = (0..image.functions.len()).filter(|at| at % (number as usize + 2) == 0);
        let called: Vec<_> = called
            .zip(1..)
            .map(|(at, order)| (at, number * 1000 + order, order))
            .collect();
        shard(&format!("{number}"), image.raw(&image.run(&called)))
    };
    (target, (0..runs).map(run).collect())
}

#[test]
fn a_part_is_not_much_larger_than_the_profile() {
    let version_8 = MipTarget {
        name: "v8-b.mip".to_owned(),
        profile: MipProfile::parse(&fixture("mip/v8-b.mip")).unwrap(),
    };
    let [mixed] = <[_; 1]>::try_from(targets()).unwrap();
    let raw = |name: &str| shard(name, fixture(format!("mip/{name}.mipraw")));
    let mut builds = vec![
        (
            mixed,
            ["mixed-1", "mixed-2", "mixed-pool"].map(raw).to_vec(),
        ),
        (version_8, vec![raw("v8-b")]),
    ];
    builds.extend(
        [(1, 1), (10, 3), (300, 1), (300, 9), (5000, 4)]
            .map(|(functions, runs)| program(functions, runs)),
    );
    for (target, inputs) in builds {
        let mut merger = Merger::of_mip(vec![target.clone()], options());
        merger.add(&inputs).unwrap();
        let part = merger.encode().unwrap();
        let merged = merge_mip(vec![target], &inputs, &options()).unwrap();
        let profile = bytes(&merged.targets[0].profile);
        assert!(merged.targets[0].profile.runs > 0);
        assert!(
            part.len() * 10 <= profile.len() * 13,
            "{}: {} {}",
            merged.targets[0].name,
            part.len(),
            profile.len()
        );
    }
}

#[test]
fn parts_of_every_version_are_read() {
    let expected = whole(merger(&pool()).finish_mip());
    for part in parts_of_every_version("-mip", || merger(&pool()).encode().unwrap()) {
        assert_eq!(whole(added(&[&part]).finish_mip()), expected);
    }
}

/// No option changes what a part of MIP files holds, so only parts of other families refuse it.
#[test]
fn parts_of_other_families_refuse_each_other() {
    let mip = merger(&pool()[..1]).encode().unwrap();
    let mut counters = Merger::new(MergeOptions::new()).unwrap();
    counters
        .add(&[shard("counters", *b":ir\nf\n1\n1\n7\n")])
        .unwrap();
    let before = counters.encode().unwrap();
    let error = part_error(counters.add_part("mip.pkpart", &mip));
    insta::assert_snapshot!(error, @"mip.pkpart: the part is one of MIP profiles, and the other inputs are instrumentation profiles");
    assert!(counters.encode().unwrap() == before);
    let mut sum = added(&[&mip]);
    let error = part_error(sum.add_part("counters.pkpart", &before));
    insta::assert_snapshot!(error, @"counters.pkpart: the part is one of instrumentation profiles, and the other inputs are MIP profiles");
    assert!(sum.encode().unwrap() == mip);
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
    unknown[0].profile.identity = Identity::UNKNOWN;
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
