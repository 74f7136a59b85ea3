//! The laws of parts of sample profiles, on encoded bytes.
use crate::laws::{cases, parts_of_every_version};
use crate::parts::{part_error, shard};
use profkit_data::sample::ext_binary::{self, ExtBinaryOptions};
use profkit_data::sample::gcov::{self, GcovOptions, GcovVersion};
use profkit_data::sample::{
    FormOptions, ProfileKind, SampleForm, SampleLayout, SampleProfile, read,
};
use profkit_merge::part::Merger;
use profkit_merge::sample::{SampleMergeOptions, SampleOutcome, merge_sample};
use profkit_merge::{MergeError, RunOptions, Shard, Threads, Weight};
use profkit_testkit::sample::{SampleOptions, SampleShape, sample_text};
use profkit_testkit::{change_part, fixture};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn generated(shape: SampleShape, seed: u64) -> String {
    let options = SampleOptions {
        functions: 12,
        pool: 16,
        lines: 4,
        shape,
        one_program: seed.is_multiple_of(2),
    };
    sample_text(&options, seed)
}

fn hashed(text: &str) -> Vec<u8> {
    let mut profile = SampleProfile::new();
    read(text.as_bytes(), &mut profile, 1);
    profile.kind |= ProfileKind::PRE_INLINED;
    profile
        .symbols
        .insert(b"symbol of a hashed one".as_slice().into());
    let options = ExtBinaryOptions::default().md5_names(true).vtables(true);
    let mut bytes = Vec::new();
    ext_binary::write(&profile, &options, &mut bytes).unwrap();
    bytes
}

/// Inputs of one shape: equal and different runs, other checksums and attributes, hashes for names, lists of symbols,
/// weights, counts that are too large, cut files, other files.
fn pool(shape: SampleShape) -> Vec<Shard<Vec<u8>>> {
    let runs = [1, 2, 3, 4].map(|seed| generated(shape, seed));
    let other_build: Vec<String> = runs[0]
        .lines()
        .map(|line| match line.split_once("!CFGChecksum: ") {
            Some((before, _)) => format!("{before}!CFGChecksum: 7"),
            None => line.replace("!Attributes: 1", "!Attributes: 2"),
        })
        .collect();
    let mut pool = vec![
        shard("run-1", runs[0].as_str()),
        shard("run-1-again", runs[0].as_str()),
        shard("run-2", runs[1].as_str()),
        shard("run-3", runs[2].as_str()),
        shard("other-build", other_build.join("\n") + "\n"),
        shard("hashed-1", hashed(&runs[0])),
        shard("hashed-4", hashed(&runs[3])),
        shard("hashed-other", hashed(&(other_build.join("\n") + "\n"))),
        Shard {
            weight: Weight::ratio(7, 3).unwrap(),
            ..shard("weighted", runs[1].as_str())
        },
        Shard {
            weight: Weight::integer(u64::MAX / 2),
            ..shard("huge", runs[2].as_str())
        },
        shard("junk", *b"\x7fELF junk that is no profile"),
        shard("empty", *b""),
    ];
    let mut cut = hashed(&runs[3]);
    cut.truncate(cut.len() / 2);
    pool.push(shard("cut", cut));
    if shape == SampleShape::Nested {
        let mut profile = SampleProfile::new();
        read(runs[3].as_bytes(), &mut profile, 1);
        let mut bytes = Vec::new();
        gcov::write(&profile, &GcovOptions::new(GcovVersion::V2), &mut bytes).unwrap();
        pool.push(shard("gcov", bytes));
        pool.push(shard("lines", "f:70000:1\n 65536.1: 3 g:1 h:2\n 2: 1\n"));
        pool.push(shard(
            "llvm",
            fixture("sample/llvm-19-nested-ext.sampleprof"),
        ));
    }
    pool
}

fn options() -> SampleMergeOptions {
    let one = Threads::new(NonZeroUsize::new(1));
    SampleMergeOptions::new()
        .run(RunOptions::new().threads(one))
        .order_free(true)
}

fn merger(shards: &[Shard<Vec<u8>>]) -> Result<Merger, MergeError> {
    let mut merger = Merger::of_samples(options())?;
    merger.add(shards)?;
    Ok(merger)
}

fn added(parts: &[&[u8]]) -> Merger {
    let mut merger = Merger::of_samples(options()).unwrap();
    for part in parts {
        merger.add_part("part", part).unwrap();
    }
    merger
}

/// The profile in every encoding, and the report without the names of what was delivered twice.
fn whole(outcome: Result<SampleOutcome, MergeError>) -> (Vec<String>, String) {
    let mut report = match &outcome {
        Ok(outcome) => outcome.report.clone(),
        Err(error) => error.report().unwrap_or_else(|| panic!("{error}")).clone(),
    };
    report.repeated.clear();
    let mut files = Vec::new();
    if let Ok(mut outcome) = outcome {
        for form in [
            SampleForm::Text,
            SampleForm::ExtBinary,
            SampleForm::Gcov(GcovVersion::V2),
        ] {
            let mut bytes = Vec::new();
            form.nest_contexts(&mut outcome.profile);
            let options = FormOptions::for_profile(&outcome.profile);
            form.write(&outcome.profile, &options, &mut bytes).unwrap();
            files.push(bytes.escape_ascii().to_string().replace("\\n", "\n"));
        }
    }
    (files, serde_json::to_string_pretty(&report).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(24, 400) as u32))]

    #[test]
    fn every_partition_and_tree_gives_the_same_bytes(
        shape in 0usize..4,
        case in cases(20, 5, 0.6),
        more_threads in 1usize..4,
        flat in any::<bool>(),
    ) {
        let pool = pool(SampleShape::ALL[shape]);
        let inputs = case.inputs(&pool);
        prop_assume!(!inputs.is_empty());
        let parts = case.parts(&pool, |own| merger(own).unwrap().encode().unwrap());
        let once = merger(&inputs).unwrap().encode().unwrap();
        let by_tree = case.added_up(parts.clone(), |parts| added(parts).encode().unwrap());
        prop_assert!(once == by_tree, "the part");
        prop_assert!(added(&[&once]).encode().unwrap() == once);
        prop_assert!(added(&[&once, &once]).encode().unwrap() == once);
        prop_assert!(added(&[&parts[0], &once]).encode().unwrap() == once);
        prop_assert!(added(&[&once, &parts[0]]).encode().unwrap() == once);
        let mut options = options();
        options.run.threads = Threads::new(NonZeroUsize::new(more_threads));
        options.layout = flat.then_some(SampleLayout::Flat);
        let expected = whole(merge_sample(&inputs, &options));
        let mut finish = Merger::of_samples(options.clone()).unwrap();
        finish.add_part("once", &once).unwrap();
        prop_assert_eq!(&whole(finish.finish_samples()), &expected);
        let parts: Vec<_> = parts.into_iter().map(|part| ("part", part)).collect();
        options.order_free = false;
        prop_assert_eq!(&whole(merge_sample(&parts, &options)), &expected);
    }
}

#[test]
fn what_cannot_be_added_is_an_error_that_names_it() {
    let probes = [shard("probes", "f:5:1\n 1: 5\n !CFGChecksum: 1\n")];
    let plain = [shard("plain", "f:5:1\n 1: 5\n")];
    let (one, two) = (merger(&probes).unwrap(), merger(&plain).unwrap());
    let parts = [one, two].map(|merger| merger.encode().unwrap());
    let mixed = added(&[&parts[1], &parts[0]]).finish_samples();
    insta::assert_snapshot!(mixed.unwrap_err(), @"sample profiles with and without pseudo probes cannot be merged: probes has them, plain has none");
    let mut without_symbols = options();
    without_symbols.drop_symbols = true;
    let mut others = Merger::of_samples(without_symbols).unwrap();
    others.add(&plain).unwrap();
    let other = part_error(others.add_part("x.pkpart", &parts[0]));
    insta::assert_snapshot!(other, @"x.pkpart: the part was made with other options than the other inputs: found samples with symbol lists, expected samples without symbol lists");
    let instr = [shard("instr", ":ir\nf\n1\n1\n5\n")];
    let mut sum = Merger::new(crate::common::threads(1)).unwrap();
    sum.add(&instr).unwrap();
    let family = part_error(sum.add_part("x.pkpart", &parts[0]));
    insta::assert_snapshot!(family, @"x.pkpart: the part is one of sample profiles, and the other inputs are instrumentation profiles");
    // A part without a sound input fits each family.
    let mut junk = Merger::new(crate::common::threads(1)).unwrap();
    junk.add(&[shard("junk", *b"\x7fELF junk")]).unwrap();
    let junk = junk.encode().unwrap();
    sum.add_part("junk", &junk).unwrap();
    let outcome = added(&[&junk, &parts[0]]).finish_samples().unwrap();
    assert_eq!(
        (
            outcome.report.totals.files_kept,
            outcome.report.totals.files_dropped
        ),
        (1, 1)
    );
}

#[test]
fn parts_of_every_version_are_read() {
    let sum = || merger(&pool(SampleShape::Nested)).unwrap();
    let expected = whole(sum().finish_samples());
    for part in parts_of_every_version("-samples", || sum().encode().unwrap()) {
        assert_eq!(whole(added(&[&part]).finish_samples()), expected);
    }
}

#[test]
fn sections_that_contradict_themselves_are_errors() {
    let inputs = pool(SampleShape::Probes);
    let part = merger(&inputs[..8]).unwrap().encode().unwrap();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let changed = change_part(&part, |tag, bytes| {
            if tag == 9 {
                change(bytes);
            }
        });
        let mut merger = Merger::of_samples(options()).unwrap();
        part_error(merger.add_part("x", &changed.unwrap())).to_string()
    };
    let at = "section SAMPLES of part of a merge, at offset";
    let more = error(&|bytes| bytes.push(0));
    assert!(
        more.contains(at) && more.contains("more bytes than it needs"),
        "{more}"
    );
    assert!(error(&|bytes| bytes.truncate(bytes.len() - 1)).contains(at));
    let kind = error(&|bytes| drop(bytes.splice(..1, [0xff, 0x7f])));
    assert!(kind.contains(at), "{kind}");
    // Every byte that is changed is an error, or gives a part that can be encoded and read.
    let mut len = 0;
    change_part(&part, |tag, bytes| {
        if tag == 9 {
            len = bytes.len();
        }
    });
    for place in (0..len).step_by(profkit_testkit::short_or_whole(17, 1)) {
        let changed = change_part(&part, |tag, bytes| {
            if tag == 9 {
                bytes[place] ^= 1 << (place % 8);
            }
        });
        let mut merger = Merger::of_samples(options()).unwrap();
        if merger.add_part("x", &changed.unwrap()).is_ok() {
            let again = merger.encode().unwrap();
            assert!(added(&[&again]).encode().unwrap() == again, "{place}");
            let _ = merger.finish_samples();
        }
    }
}

#[test]
fn a_part_is_no_larger_than_the_profile() {
    for (shape, form) in SampleShape::ALL.into_iter().zip([SampleForm::ExtBinary; 4]) {
        let inputs = [1, 2].map(|seed| {
            let options = SampleOptions {
                functions: 600,
                pool: 800,
                lines: 8,
                shape,
                one_program: true,
            };
            shard(&format!("{seed}"), sample_text(&options, seed))
        });
        let part = merger(&inputs).unwrap().encode().unwrap();
        let profile = merge_sample(&inputs, &SampleMergeOptions::new())
            .unwrap()
            .profile;
        let mut bytes = Vec::new();
        form.write(&profile, &FormOptions::for_profile(&profile), &mut bytes)
            .unwrap();
        assert!(
            part.len() * 10 <= bytes.len() * 13,
            "{shape:?}: {} {}",
            part.len(),
            bytes.len()
        );
    }
}
