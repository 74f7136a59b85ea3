//! Runs every fuzz target over its corpus, and over mutations of it. The corpus is `tests/fixtures`, inputs that once
//! failed, in `fuzz/regressions/TARGET`, and small inputs that together reach much code, in `fuzz/corpus/TARGET.pack`
//! (`cargo xtask fuzz` finds them).
//!
//! `FUZZ_MUTATIONS` is the number of mutations of each target, `FUZZ_SECONDS` the time after which no more of them are tried (there
//! is none unless it is set), `FUZZ_SEED` where they begin, `FUZZ_TARGET` the name of
//! the only target to run; with `FUZZ_PART=K/N` every N-th target runs, beginning with the one at index K. An input that
//! fails is written to `fuzz/artifacts`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use profkit_fuzz::{TARGETS, Target};
use profkit_testkit::{
    CountingAllocator, Rng, corpus, distinct_fixtures_with, fixture_path, mutate, peak_allocation,
    repo_root, short_or_whole,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What the readers promise: this many times the file's size, and [`FLOOR`] more. The target itself holds the
/// records of two readings.
const RATIO: usize = 4 + 2 * 64;
const FLOOR: usize = 64 << 20;

#[test]
fn targets_hold_for_the_corpus_and_its_mutations() {
    let number = |name, default| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let (mutations, seed) = (
        number("FUZZ_MUTATIONS", short_or_whole(500, 4_000)),
        number("FUZZ_SEED", 1),
    );
    let until = std::env::var("FUZZ_SECONDS").ok().map(|seconds| {
        let seconds = Duration::from_secs(seconds.parse().expect("a number"));
        Instant::now() + seconds
    });
    let only = std::env::var("FUZZ_TARGET").ok();
    let part = std::env::var("FUZZ_PART").ok();
    let (part, parts): (usize, usize) = part.as_deref().map_or((0, 1), |text| {
        let (part, parts) = text.split_once('/').expect("K/N");
        (part.parse().expect("K"), parts.parse().expect("N"))
    });
    let failures: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = TARGETS
            .iter()
            .skip(part)
            .step_by(parts)
            .filter(|target| only.as_ref().is_none_or(|only| only == target.name))
            .map(|target| scope.spawn(move || smoke(target, mutations, seed, until)))
            .collect();
        assert!(!threads.is_empty(), "no target {only:?}");
        let results = threads.into_iter().map(|thread| thread.join());
        results
            .filter_map(|result| result.expect("smoke catches panics").err())
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn smoke(target: &Target, mutations: u64, seed: u64, until: Option<Instant>) -> Result<(), String> {
    // A page is written for each input, which takes ten times as long as the other targets.
    let mutations = if target.name == "page" {
        mutations / 5
    } else {
        mutations
    };
    let (corpus, whole) = inputs_of(target);
    assert!(!corpus.is_empty(), "{}: no corpus", target.name);
    for (path, data) in &corpus {
        attempt(target, data)
            .map_err(|why| format!("{}: {}: {why}", target.name, path.display()))?;
    }
    for mutation in 0..mutations {
        if until.is_some_and(|until| Instant::now() > until) {
            println!("{}: {mutation} mutations", target.name);
            break;
        }
        let mut rng = Rng::new(
            seed.wrapping_add(mutation)
                .wrapping_mul(0xd134_2543_de82_ef95),
        );
        // Half of the mutations are of whole files: many of the small inputs are refused by their first bytes.
        let of_whole = whole > 0 && rng.below(2) == 0;
        let (path, original) = &corpus[rng.below(if of_whole { whole } else { corpus.len() })];
        let (_, other) = &corpus[rng.below(corpus.len())];
        let mut data = original.clone();
        mutate(&mut data, other, &mut rng);
        if let Err(why) = attempt(target, &data) {
            let folder = repo_root().join("fuzz/artifacts");
            let kept = folder.join(format!("{}-{}", target.name, seed + mutation));
            let written =
                std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&kept, data));
            let (name, path) = (target.name, path.display());
            return Err(format!(
                "{name}: mutation {mutation} (from seed {seed}) of {path}: {why}\nkept as {} ({written:?})",
                kept.display()
            ));
        }
    }
    Ok(())
}

fn attempt(target: &Target, data: &[u8]) -> Result<(), String> {
    let (outcome, peak) = peak_allocation(|| catch_unwind(AssertUnwindSafe(|| (target.run)(data))));
    outcome.map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&words| words.to_owned()));
        words.unwrap_or_else(|| "it panicked".to_owned())
    })?;
    let allowed = RATIO * data.len() + FLOOR;
    if peak > allowed {
        return Err(format!(
            "{peak} bytes held for {} bytes of input",
            data.len()
        ));
    }
    Ok(())
}

/// The inputs of a target, and how many of them, at the beginning, are whole files.
fn inputs_of(target: &Target) -> (Vec<(PathBuf, Vec<u8>)>, usize) {
    let regressions = repo_root().join("fuzz/regressions").join(target.name);
    let regressions = std::fs::read_dir(regressions).into_iter().flatten();
    let mut paths: Vec<PathBuf> = distinct_fixtures_with(target.seeds)
        .into_iter()
        .map(fixture_path)
        .chain(regressions.map(|entry| entry.expect("a readable folder").path()))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let data = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        (path, data)
    };
    let mut corpus: Vec<_> = paths.into_iter().map(read).collect();
    let whole = corpus.len();
    let pack = repo_root().join(format!("fuzz/corpus/{}.pack", target.name));
    if let Ok(bytes) = std::fs::read(&pack) {
        let inputs = corpus::unpack(&bytes).unwrap_or_else(|error| panic!("{pack:?}: {error}"));
        let name = |number: usize| pack.with_extension(format!("pack#{number}"));
        let inputs = inputs.into_iter().enumerate();
        corpus.extend(inputs.map(|(number, input)| (name(number), input)));
    }
    (corpus, whole)
}
