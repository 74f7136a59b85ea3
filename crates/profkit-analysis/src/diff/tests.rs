//! Tests rules that every comparison must keep: a profile does not differ from itself or from a longer run of the same
//! work, and a comparison in the other direction gives the mirror image.
use super::*;
use crate::faults::Faults;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{Block, Function, MipProfile};
use proptest::prelude::*;
use std::fmt::Write as _;

/// The largest accepted error of a share, because sums of many shares are not exact.
const NEARLY: f64 = 1e-9;

/// A generated function: the index of its name, the index of its hash, and its counts.
type Drawn = (u8, u8, Vec<u64>);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let counts = prop::collection::vec(
        prop_oneof![0..50u64, any::<u32>().prop_map(u64::from)],
        2..5,
    );
    prop::collection::vec((0..6u8, 1..3u8, counts), 0..8)
}

/// Makes an instrumentation profile of the functions. The first two counts of a function are also the counts of two
/// call targets.
fn instr(functions: &[Drawn], factor: u64) -> ComparedProfile<'static> {
    let mut text = ":ir\n".to_owned();
    for (name, hash, counts) in functions {
        let counts: Vec<u64> = counts.iter().map(|count| count * factor).collect();
        writeln!(text, "f{name}\n{hash}\n{}", counts.len()).unwrap();
        counts
            .iter()
            .for_each(|count| writeln!(text, "{count}").unwrap());
        writeln!(text, "1\n0\n1\n2\nf0:{}\nf1:{}\n", counts[0], counts[1]).unwrap();
    }
    ComparedProfile::open(text.as_bytes()).unwrap()
}

/// Makes a sample profile of the functions. Every second function is inlined into the function before it.
fn samples(functions: &[Drawn], factor: u64) -> ComparedProfile<'static> {
    let mut text = "start:1:0\n 1: 1\n".replace('1', &factor.to_string());
    text = text.replacen(&format!(" {factor}:"), " 1:", 1);
    for (index, (name, place, counts)) in functions.iter().enumerate() {
        let pad = if index % 2 == 1 {
            writeln!(text, " {}: g{name}:1", 10 + place).unwrap();
            "  "
        } else {
            writeln!(text, "f{name}:1:1").unwrap();
            " "
        };
        for (line, count) in counts.iter().enumerate() {
            writeln!(
                text,
                "{pad}{}: {} f0:{}",
                line + 1,
                count * factor,
                count * factor
            )
            .unwrap();
        }
    }
    ComparedProfile::open(text.as_bytes()).unwrap()
}

/// Makes a MIP profile of the functions. The first count of a function is its ordinal; the function was called if this
/// count is odd.
fn mip(functions: &[Drawn]) -> ComparedProfile<'static> {
    let function = |(name, signature, counts): &Drawn| Function {
        name: format!("f{name}").into(),
        signature: u32::from(*signature),
        called_runs: counts[0] % 2,
        order_sum: counts[0],
        order_runs: counts[0] % 2,
        blocks: (0..)
            .zip(counts)
            .map(|(offset, count)| Block {
                offset,
                runs: count % 3,
            })
            .collect(),
        ..Function::default()
    };
    let functions: IndexVec<_, _> = functions.iter().map(function).collect();
    ComparedProfile {
        content: Content::Mip(MipProfile {
            functions,
            ..MipProfile::default()
        }),
        damage: Faults::default(),
    }
}

fn of(old: &ComparedProfile<'_>, new: &ComparedProfile<'_>) -> ProfileDiff {
    ProfileDiff::of(old, new, &DiffOptions::default()).unwrap()
}

fn mirrored(change: Change) -> Change {
    match change {
        Change::New => Change::Gone,
        Change::Gone => Change::New,
        Change::Called => Change::NotCalled,
        Change::NotCalled => Change::Called,
        Change::Earlier => Change::Later,
        Change::Later => Change::Earlier,
        Change::HashChanged | Change::Moved => change,
    }
}

fn turned(mut function: FunctionChange) -> FunctionChange {
    function.change = mirrored(function.change);
    function.hashes.reverse();
    function.counts.reverse();
    function.shares.reverse();
    function.ranks.reverse();
    for block in &mut function.blocks {
        block.counts.reverse();
        block.shares.reverse();
    }
    for target in &mut function.targets {
        target.counts.reverse();
        target.shares.reverse();
    }
    function
}

fn check(old: &ComparedProfile<'_>, new: &ComparedProfile<'_>) {
    let (there, back) = (of(old, new), of(new, old));
    assert_eq!(there.moved.is_some(), back.moved.is_some());
    let moved = [&there, &back].map(|diff| diff.moved.unwrap_or(0.0));
    assert!((moved[0] - moved[1]).abs() < NEARLY, "{moved:?}");
    assert!((0.0..=1.0).contains(&moved[0]), "{moved:?}");
    let rows = there.functions.iter().map(|function| function.moved);
    assert!(rows.is_sorted_by(|one, two| one >= two));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_differs_from_itself_or_a_longer_run(functions in drawn(), factor in 1..9u64) {
        for (one, many) in [
            (instr(&functions, 1), instr(&functions, factor)),
            (samples(&functions, 1), samples(&functions, factor)),
            (mip(&functions), mip(&functions)),
        ] {
            for diff in [of(&one, &one), of(&one, &many)] {
                prop_assert!(diff.is_empty(), "{diff:?}");
                prop_assert!(diff.moved.is_none_or(|moved| moved == 0.0));
            }
        }
    }

    #[test]
    fn the_other_direction_is_the_mirror_image(old in drawn(), new in drawn()) {
        for (old, new) in [
            (instr(&old, 1), instr(&new, 1)),
            (samples(&old, 1), samples(&new, 1)),
        ] {
            check(&old, &new);
            let back = of(&new, &old).functions.into_iter().map(turned);
            // MIP profiles are left out of this test. If functions changed places, the comparisons in the two
            // directions may choose different functions as those that moved.
            prop_assert_eq!(of(&old, &new).functions, back.collect::<Vec<_>>());
        }
        check(&mip(&old), &mip(&new));
    }
}

fn compare(old: &str, new: &str) -> ProfileDiff {
    let [old, new] = [old, new].map(|text| ComparedProfile::open(text.as_bytes()).unwrap());
    of(&old, &new)
}

#[test]
fn a_call_target_that_moved_is_a_change_of_its_share() {
    let profile = |one, two| {
        format!(
            ":ir\nmain\n1\n1\n50\n1\n0\n1\n2\na:{one}\nb:{two}\n\nwork\n1\n1\n50\n\na\n1\n1\n0\n\n"
        )
    };
    let diff = compare(&profile(9, 1), &profile(1, 9));
    // The function has half of all counts, and 80% of its calls moved to the other target.
    assert!((diff.moved.unwrap() - 0.4).abs() < NEARLY, "{diff:?}");
    let targets = &diff.functions[0].targets;
    let names: Vec<_> = targets.iter().map(|target| target.target.clone()).collect();
    let unknown = Target::Hash(profkit_data::ids::NameRef::of(b"b").0);
    assert!(
        names.contains(&Target::Name(b"a".to_vec())) && names.contains(&unknown),
        "{names:?}"
    );
    assert_eq!(
        targets[0].shares.map(|share| (share * 10.0).round()),
        [9.0, 1.0]
    );
}

#[test]
fn each_stage_of_a_context_sensitive_profile_has_its_own_total() {
    // In the new profile, the count of the context-sensitive stage is ten times as large.
    let profile =
        |second| format!(":csir\nmain\n1\n1\n10\n\nmain\n1152921504606846977\n1\n{second}\n\n");
    assert!(compare(&profile(4), &profile(40)).is_empty());
}

#[test]
fn contexts_are_compared_by_all_their_callers() {
    let profile = |caller| format!("[{caller}:3 @ work]:10:1\n 1: 10\n[main]:10:1\n 1: 10\n");
    let diff = compare(&profile("main"), &profile("other"));
    assert!((diff.moved.unwrap() - 0.5).abs() < NEARLY, "{diff:?}");
    let callers = |function: &FunctionChange| function.callers.clone();
    assert_eq!(
        callers(&diff.functions[0]),
        [(b"main".to_vec(), Location::new(3, 0))]
    );
}
