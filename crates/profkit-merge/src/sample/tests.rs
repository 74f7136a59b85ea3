use super::worker::Piece;
use super::*;
use crate::MergeError;
use crate::driver::{Driver, ReportPart};
use crate::{InputData, Inputs, Policy, Reason, Weight};
use profkit_data::remap::Remapping;
use profkit_data::sample::ext_binary::{self, ExtBinaryOptions};
use profkit_data::sample::text::{self, TextOptions};
use profkit_data::sample::{ProfileKind, SampleLayout, SampleProfile};
use profkit_testkit::sample::{SampleOptions, SampleShape, sample_text};
use proptest::prelude::*;
use std::num::NonZeroUsize;

type Input = (String, Weight, Vec<u8>);

fn input(name: &str, weight: u64, text: &str) -> Input {
    let bytes = text.as_bytes().to_vec();
    (name.to_owned(), Weight::integer(weight), bytes)
}

/// [`Inputs`] is implemented for slices too, but a slice has no size that is known at compile time.
struct List<'a>(&'a [Input]);

impl Inputs for List<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        Inputs::name(self.0, index)
    }

    fn weight(&self, index: usize) -> Weight {
        Inputs::weight(self.0, index)
    }

    fn open<'s>(&'s self, index: usize, scratch: &mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        Inputs::open(self.0, index, scratch)
    }
}

fn shown(profile: &SampleProfile) -> String {
    let mut bytes = Vec::new();
    text::write(profile, &TextOptions::default(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn merged(inputs: &[Input], options: &SampleMergeOptions) -> String {
    let outcome = merge_sample(&List(inputs), options).unwrap();
    assert!(outcome.report.is_clean(), "{:?}", outcome.report.events);
    shown(&outcome.profile)
}

fn generated(shape: SampleShape, seed: u64) -> Vec<u8> {
    let options = SampleOptions {
        functions: 12,
        pool: 20,
        lines: 5,
        shape,
        one_program: false,
    };
    sample_text(&options, seed).into_bytes()
}

/// `kind` selects what makes the order of inputs matter: a checksum, counts near the largest, hashes instead of names,
/// damage, calling contexts. The lowest kinds have nothing of it.
fn odd_input(kind: u8, count: u64) -> Vec<u8> {
    let of = |checksum: u32| {
        let tail = match checksum {
            0 => String::new(),
            checksum => format!(" !CFGChecksum: {checksum}\n"),
        };
        format!(
            "f:{count}:1\n 1: {count} g:{count}\n 2: g:{count}\n  1: {count}\n{tail}g:1:1\n 1: 1\n{tail}"
        )
    };
    match kind {
        0..=3 => of(0).into_bytes(),
        4 | 5 => of(7).into_bytes(),
        6 => of(8).into_bytes(),
        7 => format!("f:{0}:1\n 1: {0}\n", u64::MAX - 5).into_bytes(),
        8 => format!("h:{count}:1\n 1: {count}\nf:1:1\n x\n").into_bytes(),
        9 => b"what is this\n".to_vec(),
        10 => Vec::new(),
        11 => b"[a:1 @ f]:3:1\n 1: 3\n".to_vec(),
        _ => {
            let mut profile = SampleProfile::new();
            text::read(of(0).as_bytes(), &mut profile, 1);
            let mut hashed = Vec::new();
            let options = ExtBinaryOptions::default().md5_names(true);
            ext_binary::write(&profile, &options, &mut hashed).unwrap();
            hashed
        }
    }
}

fn told(outcome: Result<SampleOutcome, MergeError>) -> String {
    match outcome {
        Ok(outcome) => format!("{}\n{:#?}", shown(&outcome.profile), outcome.report),
        Err(error) => format!("{error:#?}"),
    }
}

fn one_by_one(inputs: &[Input], options: &SampleMergeOptions) -> String {
    let list = List(inputs);
    let driver = Driver::new(&list, &options.run);
    let all = Piece::Later((0..inputs.len()).collect());
    let kind = worker::SampleKind {
        driver: &driver,
        options,
        strategy: strategy::Strategy::new(options),
        has_parts: false.into(),
    };
    let part = ReportPart::new(kind.strategy.log());
    told(engine::add_up(&kind, [all].into_iter(), part))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Some inputs are of a kind that must be added one by one, and the number of threads varies.
    #[test]
    fn sums_of_neighbours_are_sums_one_by_one(
        kinds in proptest::collection::vec((0u8..13, 1u64..5, 0u8..6), 1..14),
        few in 0u8..3, llvm in any::<bool>(), stop in any::<bool>(),
    ) {
        let inputs: Vec<Input> = kinds
            .iter()
            .enumerate()
            .map(|(index, &(kind, count, weight))| {
                let weight = match weight {
                    0 if !llvm => Weight::ratio(1, 2).unwrap(),
                    1 => Weight::integer(3),
                    _ => Weight::ONE,
                };
                // Each case uses only some of the kinds of inputs, so that most merges have a result.
                let kind = match few {
                    0 => kind,
                    1 => kind % 3,
                    _ => kind.min(10),
                };
                (index.to_string(), weight, odd_input(kind, count))
            })
            .collect();
        let mut options = SampleMergeOptions::new();
        options.policy = if llvm { Policy::Llvm } else { Policy::Tolerant };
        options.stop_at_fault = stop;
        let expected = one_by_one(&inputs, &options);
        for threads in 1..=4 {
            let options = options.clone().threads(NonZeroUsize::new(threads));
            let merged = told(merge_sample(&List(&inputs), &options));
            prop_assert_eq!(&merged, &expected, "{} threads", threads);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Neither order, threads nor grouping matter; one profile stays as it is; weight n is n copies.
    #[test]
    fn merging_is_a_commutative_monoid(seed in 0u64..1000, count in 1usize..6, weight in 1u64..4, shape in 0usize..4) {
        let shape = SampleShape::ALL[shape];
        let inputs: Vec<Input> = (0..count as u64)
            .map(|number| (number.to_string(), Weight::ONE, generated(shape, seed * 10 + number)))
            .collect();
        let mut options = SampleMergeOptions::new();
        options = options.threads(NonZeroUsize::new(1));
        let sum = merged(&inputs, &options);
        let mut backwards = inputs.clone();
        backwards.reverse();
        prop_assert_eq!(&merged(&backwards, &options), &sum);
        options = options.threads(NonZeroUsize::new(3));
        prop_assert_eq!(&merged(&inputs, &options), &sum);
        options.policy = Policy::Llvm;
        prop_assert_eq!(&merged(&inputs, &options), &sum);
        options.policy = Policy::Tolerant;
        let (first, rest) = inputs.split_at(count / 2);
        let mut parts = Vec::new();
        for part in [first, rest] {
            if !part.is_empty() {
                parts.push(input("part", 1, &merged(part, &options)));
            }
        }
        prop_assert_eq!(&merged(&parts, &options), &sum);
        let again = [input("sum", 1, &sum)];
        prop_assert_eq!(&merged(&again, &options), &sum);
        let weighted = [input("sum", weight, &sum)];
        let copies: Vec<Input> = (0..weight).map(|_| input("sum", 1, &sum)).collect();
        prop_assert_eq!(merged(&weighted, &options), merged(&copies, &options));
    }

    /// Flattening a profile that is flat already must change nothing.
    #[test]
    fn flattening_twice_is_flattening_once(seed in 0u64..1000) {
        let mut options = SampleMergeOptions::new();
        options.layout = Some(SampleLayout::Flat);
        let once = merged(&[("a".to_owned(), Weight::ONE, generated(SampleShape::Nested, seed))], &options);
        prop_assert_eq!(merged(&[input("b", 1, &once)], &options), once);
    }
}

#[test]
fn fractions_of_counts_are_rounded() {
    let half = Weight::ratio(1, 2).unwrap();
    let inputs = [("a".to_owned(), half, b"f:9:3\n 1: 9 g:4\n".to_vec())];
    assert_eq!(
        merged(&inputs, &SampleMergeOptions::new()),
        "f:5:2\n 1: 5 g:2\n"
    );
}

#[test]
fn a_hash_and_its_name_are_one_function() {
    let mut profile = SampleProfile::new();
    text::read(
        b"main:30:2\n 1: 10 puts:10\n 3: helper:20\n  1: 20\n",
        &mut profile,
        1,
    );
    let mut hashed = Vec::new();
    let options = ExtBinaryOptions::default().md5_names(true);
    ext_binary::write(&profile, &options, &mut hashed).unwrap();
    let inputs = [
        ("hashes".to_owned(), Weight::ONE, hashed),
        input(
            "names",
            1,
            "main:30:2\n 1: 10 puts:10\n 3: helper:20\n  1: 20\n",
        ),
    ];
    let mut options = SampleMergeOptions::new();
    let outcome = merge_sample(&List(&inputs), &options).unwrap();
    assert_eq!(
        shown(&outcome.profile),
        "main:60:4\n 1: 20 puts:20\n 3: helper:40\n  1: 40\n"
    );
    assert!(!outcome.profile.kind.contains(ProfileKind::MD5_NAMES));
    // LLVM merges a name and its hash, but not the functions that are inlined into them.
    options.policy = Policy::Llvm;
    let outcome = merge_sample(&List(&inputs), &options).unwrap();
    let [function] = outcome.profile.functions() else {
        panic!("one function")
    };
    assert_eq!(
        (function.samples.total, function.samples.inlined.len()),
        (60, 2)
    );
}

#[test]
fn of_a_damaged_input_the_sound_functions_are_kept() {
    let inputs = [
        input("good", 1, "f:2:1\n 1: 2\n"),
        input("bad", 1, "f:3:1\n 1: 3\ng:1:1\n x\n"),
        input("none", 1, "what is this\n"),
    ];
    let mut options = SampleMergeOptions::new();
    let outcome = merge_sample(&List(&inputs), &options).unwrap();
    assert_eq!(shown(&outcome.profile), "f:5:2\n 1: 5\n");
    let totals = outcome.report.totals;
    assert_eq!(
        (
            totals.files_kept,
            totals.files_repaired,
            totals.files_dropped
        ),
        (1, 1, 1)
    );
    let reasons: Vec<_> = outcome
        .report
        .events
        .iter()
        .map(|event| event.reason)
        .collect();
    assert_eq!(reasons, [Reason::Malformed, Reason::NotAProfile]);
    // LLVM leaves a damaged file out completely.
    options.policy = Policy::Llvm;
    let outcome = merge_sample(&List(&inputs[..1]), &options).unwrap();
    assert_eq!(shown(&outcome.profile), "f:2:1\n 1: 2\n");
    let none = [input("none", 1, "what is this\n")];
    options.policy = Policy::Tolerant;
    assert!(matches!(
        merge_sample(&List(&none), &options),
        Err(MergeError::NothingLeft(_))
    ));
}

#[test]
fn another_checksum_is_another_build_and_is_dropped() {
    let of = |checksum: u32, count: u32| {
        format!("f:{count}:1\n 1: {count}\n !CFGChecksum: {checksum}\n")
    };
    let inputs = [
        input("a", 1, &of(7, 1)),
        input("b", 1, &of(8, 2)),
        input("c", 1, &of(7, 4)),
    ];
    for threads in 1..4 {
        let options = SampleMergeOptions::new().threads(NonZeroUsize::new(threads));
        let outcome = merge_sample(&List(&inputs), &options).unwrap();
        assert_eq!(shown(&outcome.profile), "f:5:2\n 1: 5\n !CFGChecksum: 7\n");
        let [event] = outcome.report.events.as_slice() else {
            panic!("one event")
        };
        assert_eq!((event.input, event.reason), (1, Reason::ChecksumMismatch));
        assert_eq!(
            event.to_string(),
            "b: dropped function `f`: the checksum of the function differs from its checksum in an earlier input"
        );
    }
}

#[test]
fn kinds_are_not_mixed() {
    let inputs = [
        input("plain", 1, "f:1:1\n 1: 1\n"),
        input("contexts", 1, "[a:1 @ f]:1:1\n 1: 1\n"),
    ];
    let error = merge_sample(&List(&inputs), &SampleMergeOptions::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "sample profiles with and without calling contexts cannot be merged: contexts has them, plain has none"
    );
    assert!(error.hint().is_some());
}

#[test]
fn renaming_keeps_contexts_natively_and_loses_them_as_llvm() {
    let inputs = [input(
        "a",
        1,
        "[a:1 @ f]:3:1\n 1: 3 f:2\n !CFGChecksum: 9\n",
    )];
    let mut options = SampleMergeOptions::new();
    options.remapping = Remapping::parse(b"f g\na b\n").ok();
    assert_eq!(
        merged(&inputs, &options),
        "[b:1 @ g]:3:1\n 1: 3 g:2\n !CFGChecksum: 9\n"
    );
    options.policy = Policy::Llvm;
    assert_eq!(
        merged(&inputs, &options),
        "[g]:3:1\n 1: 3 g:2\n !CFGChecksum: 0\n"
    );
}

#[test]
fn a_count_that_is_too_large_stays_and_is_told() {
    let huge = format!("f:{0}:1\n 1: {0}\n", u64::MAX);
    let inputs = [input("a", 1, &huge), input("b", 1, &huge)];
    let outcome = merge_sample(&List(&inputs), &SampleMergeOptions::new()).unwrap();
    assert_eq!(outcome.profile.functions()[0].samples.total, u64::MAX);
    assert_eq!(outcome.report.events[0].reason, Reason::CounterOverflow);
    assert_eq!(outcome.report.events[0].input, 1);
}
