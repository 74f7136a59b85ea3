#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use super::*;
use profkit_data::ids::BuildId;
use profkit_data::index_vec::{Id, IndexVec};
use profkit_data::memprof::raw::{
    DumpToWrite, RawBlock, RawMemProf, RawMemProfOptions, Segment, Version, write,
};
use profkit_data::memprof::{
    AddressId, Context, Field, Frame, MemInfoBlock, MemProfile, SourceLocation, build, yaml,
};
use proptest::prelude::*;

fn block(values: &[u8]) -> MemInfoBlock {
    let mut block = MemInfoBlock::default();
    for (field, &value) in Field::ALL.into_iter().take(25).zip(values) {
        block.set(field, u64::from(value));
    }
    block
}

fn dump(contexts: &[(u8, Vec<u8>)], base: u64) -> Vec<u8> {
    let pcs = |stack: u8| {
        (0..=u64::from(stack % 3)).map(move |depth| base + 0x10 + u64::from(stack) * 8 + depth)
    };
    let mut stacks: Vec<u8> = contexts.iter().map(|(stack, _)| *stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let dump = DumpToWrite {
        segments: vec![Segment {
            start: base,
            end: base + 0x1000,
            offset: base,
            build_id: BuildId(vec![1, 2, 3]),
        }],
        blocks: contexts
            .iter()
            .map(|(stack, values)| RawBlock {
                stack_id: u64::from(*stack) * 77 + base,
                block: block(values),
                histogram: values
                    .iter()
                    .take(usize::from(stack % 4))
                    .map(|&v| u64::from(v))
                    .collect(),
            })
            .collect(),
        stacks: stacks
            .iter()
            .map(|&stack| (u64::from(stack) * 77 + base, pcs(stack).collect()))
            .collect(),
    };
    let mut out = Vec::new();
    let options = RawMemProfOptions::for_version(Version::new(4).unwrap());
    write(&dump, &options, &mut out).unwrap();
    out
}

fn contexts(files: &[Vec<u8>]) -> RawContexts {
    let mut contexts = RawContexts::default();
    for file in files {
        contexts.add(&RawMemProf::parse(file).unwrap(), |skipped| {
            panic!("{skipped:?}")
        });
    }
    contexts
}

fn shown(contexts: &RawContexts) -> Vec<(Vec<u64>, MemInfoBlock, Vec<u64>)> {
    let place = |&address: &AddressId| contexts.addresses()[address].1;
    contexts
        .contexts()
        .map(|context| {
            let addresses = context.addresses.iter().map(place).collect();
            (addresses, *context.block, context.histogram.to_vec())
        })
        .collect()
}

fn profile_of(contexts: &[(u8, Vec<u8>)]) -> MemProfile {
    let mut profile = MemProfile::default();
    let lists: IndexVec<AddressId, _> = (0..24)
        .map(|address: u32| {
            vec![profile.add_frame(Frame {
                function: u64::from(address % 5),
                line_offset: address,
                column: 1,
                is_inline: address.is_multiple_of(3),
            })]
        })
        .collect();
    let stacks: Vec<Vec<AddressId>> = contexts
        .iter()
        .map(|(stack, _)| {
            (0..=usize::from(stack % 3))
                .map(|depth| AddressId::from_index(usize::from(*stack) + depth))
                .collect()
        })
        .collect();
    let all: Vec<_> = contexts
        .iter()
        .zip(&stacks)
        .map(|((_, values), stack)| Context {
            addresses: stack,
            block: block(values),
            histogram: &[],
        })
        .collect();
    build(&mut profile, &lists, all);
    profile
}

fn sum_of(profiles: &[MemProfile]) -> MemProfile {
    let mut sum = MemProfSum::new(ContextRule::Add);
    for profile in profiles {
        sum.add(profile);
    }
    sum.finish()
}

fn text(profile: &MemProfile) -> String {
    let mut out = Vec::new();
    yaml::write(profile, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The statistics that do not depend on the order of inputs.
fn unordered(profile: &MemProfile) -> Vec<String> {
    let fields = [
        Field::AllocCount,
        Field::TotalSize,
        Field::MinSize,
        Field::MaxSize,
        Field::TotalLifetime,
        Field::MaxLifetimeAccessDensity,
    ];
    let mut lines = Vec::new();
    for record in profile.records() {
        for site in &record.alloc_sites {
            let stack: Vec<_> = profile.stack(site.stack).collect();
            let values = fields.map(|field| site.block.get(field));
            lines.push(format!("{} {stack:?} {values:?}", record.function));
        }
        for site in &record.call_sites {
            let stack: Vec<_> = profile.stack(site.stack).collect();
            lines.push(format!("{} calls {stack:?}", record.function));
        }
    }
    lines.sort();
    lines
}

fn runs() -> impl Strategy<Value = Vec<Vec<(u8, Vec<u8>)>>> {
    let context = (0u8..8, proptest::collection::vec(any::<u8>(), 25));
    // A dump has only one block for each call stack.
    let run = proptest::collection::vec(context, 1..8).prop_map(|mut run| {
        run.sort_by_key(|(stack, _)| *stack);
        run.dedup_by_key(|(stack, _)| *stack);
        run
    });
    proptest::collection::vec(run, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn runs_of_one_program_meet_wherever_it_was_loaded(runs in runs()) {
        let here: Vec<_> = runs.iter().map(|run| dump(run, 0x10000)).collect();
        let moved: Vec<_> = (1..).zip(&runs).map(|(at, run)| dump(run, at * 0x7f00_0000)).collect();
        prop_assert_eq!(shown(&contexts(&here)), shown(&contexts(&moved)));
        // Several dumps in one file must give the same result as several files.
        prop_assert_eq!(shown(&contexts(&here)), shown(&contexts(&[here.concat()])));
    }

    #[test]
    fn raw_sums_do_not_depend_on_the_grouping(runs in runs(), cut in 0usize..6) {
        let files: Vec<_> = runs.iter().map(|run| dump(run, 0x10000)).collect();
        let (front, back) = files.split_at(cut.min(files.len()));
        let mut grouped = contexts(front);
        grouped.absorb(contexts(back));
        prop_assert_eq!(shown(&grouped), shown(&contexts(&files)));
        // Adding contexts to an empty sum must change nothing.
        let mut nothing = RawContexts::default();
        nothing.absorb(contexts(&files));
        prop_assert_eq!(shown(&nothing), shown(&contexts(&files)));
    }

    #[test]
    fn profiles_add_up_in_any_order_and_one_stays_as_it_is(runs in runs()) {
        let profiles: Vec<_> = runs.iter().map(|run| profile_of(run)).collect();
        prop_assert_eq!(text(&sum_of(&profiles[..1])), text(&profiles[0]));
        let with_nothing = [MemProfile::default(), profiles[0].clone(), MemProfile::default()];
        prop_assert_eq!(text(&sum_of(&with_nothing)), text(&profiles[0]));
        let mut turned = profiles.clone();
        turned.reverse();
        prop_assert_eq!(unordered(&sum_of(&profiles)), unordered(&sum_of(&turned)));
        let sums = [sum_of(&profiles[..1]), sum_of(&profiles[1..])];
        prop_assert_eq!(unordered(&sum_of(&sums)), unordered(&sum_of(&profiles)));
    }
}

/// Gives names and source locations to a profile, as those of build number `build`.
fn located(mut profile: MemProfile, build: u32) -> MemProfile {
    let frames: Vec<Frame> = profile.frames().iter().copied().collect();
    for frame in frames {
        let place = SourceLocation {
            file: format!("{}.c", frame.function).into_bytes(),
            line: 100 * build + frame.line_offset,
            column: frame.column,
            discriminator: 0,
        };
        profile.locations.insert(frame, place);
        let name = format!("function_{}", frame.function);
        profile.names.insert(frame.function, name.into_bytes());
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn names_and_locations_add_up_in_any_order_and_grouping(runs in runs()) {
        let profiles: Vec<_> = (1..).zip(&runs).map(|(build, run)| located(profile_of(run), build)).collect();
        let all = sum_of(&profiles);
        let mut turned = profiles.clone();
        turned.reverse();
        let grouped = [sum_of(&profiles[..1]), sum_of(&profiles[1..])];
        let twice = sum_of(&[all.clone(), all.clone()]);
        for other in [sum_of(&turned), sum_of(&grouped), twice] {
            prop_assert_eq!(&other.names, &all.names);
            prop_assert_eq!(&other.locations, &all.locations);
        }
        prop_assert_eq!(all.locations.len(), all.frames().len());
    }
}

/// Two copies of a call, and a function that is inlined into itself at its allocation.
#[test]
fn equal_call_stacks_become_one_context_unless_copies_are_kept() {
    let mut profile = MemProfile::default();
    let frame = |is_inline| Frame {
        function: 1,
        line_offset: 3,
        column: 1,
        is_inline,
    };
    let frames = vec![
        profile.add_frame(frame(true)),
        profile.add_frame(frame(false)),
    ];
    let mut addresses = IndexVec::new();
    let copies = [addresses.push(frames.clone()), addresses.push(frames)];
    let stacks = copies.map(|address| [address]);
    let histograms = [vec![1, 2], vec![10, 20, 30]];
    let contexts = stacks
        .iter()
        .zip(&histograms)
        .map(|(stack, histogram)| Context {
            addresses: stack,
            block: block(&[1; 25]),
            histogram,
        });
    build(&mut profile, &addresses, contexts);
    let sum = |rule, times: usize| {
        let mut sum = MemProfSum::new(rule);
        for _ in 0..times {
            sum.add(&profile);
        }
        let combined = sum.has_combined();
        let sum = sum.finish();
        let counts: Vec<u64> = sum
            .contexts()
            .iter()
            .map(|context| context.block.get(Field::AllocCount))
            .collect();
        let sites = &sum.records()[0].alloc_sites;
        (counts, sites.len(), sites[0].histogram.clone(), combined)
    };
    assert_eq!(
        sum(ContextRule::Add, 1),
        (vec![2], 2, vec![11, 22, 30], true)
    );
    assert_eq!(
        sum(ContextRule::Add, 2),
        (vec![4], 2, vec![22, 44, 60], true)
    );
    assert_eq!(
        sum(ContextRule::AddCopies, 1),
        (vec![1, 1], 4, vec![1, 2], false)
    );
    assert_eq!(
        sum(ContextRule::AddCopies, 2),
        (vec![2, 2], 4, vec![2, 4], true)
    );
}

#[test]
fn appended_contexts_stand_there_twice() {
    let profile = profile_of(&[(1, vec![1; 25])]);
    let mut sum = MemProfSum::new(ContextRule::Append);
    sum.add(&profile);
    sum.add(&profile);
    let sum = sum.finish();
    let sites = |profile: &MemProfile| {
        profile
            .records()
            .iter()
            .map(|record| record.alloc_sites.len())
            .sum::<usize>()
    };
    assert_eq!(sites(&sum), 2 * sites(&profile));
}

#[test]
fn a_block_without_a_stack_is_told_and_the_others_are_kept() {
    let mut file = dump(&[(1, vec![1; 25]), (2, vec![2; 25])], 0x10000);
    let parsed = RawMemProf::parse(&file).unwrap();
    let first = parsed.dumps()[0]
        .blocks()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .stack_id;
    // The blocks begin after the header (48 bytes), the number of segments (8) and one segment (64). They begin with
    // the number of blocks (8 bytes); then comes the stack id of the first block.
    let at = 48 + 8 + 64 + 8;
    assert_eq!(file[at..at + 8], first.to_le_bytes());
    file[at..at + 8].copy_from_slice(&12345u64.to_le_bytes());
    let mut contexts = RawContexts::default();
    let mut told = Vec::new();
    contexts.add(&RawMemProf::parse(&file).unwrap(), |skipped| {
        told.push(format!("{} kept, {}", skipped.kept, skipped.error));
    });
    assert_eq!(contexts.contexts().len(), 1);
    assert_eq!(
        told,
        [
            "1 kept, the dump at 0x0 of raw MemProf profile: a block names a stack that is not in the dump: found stack id 12345"
        ]
    );
}

#[test]
fn a_stack_id_that_stands_for_two_stacks_is_told_and_both_are_kept() {
    let here = dump(&[(1, vec![1; 25]), (2, vec![2; 25])], 0x10000);
    let mut other = here.clone();
    let stacks = usize::try_from(u64::from_le_bytes(other[40..48].try_into().unwrap())).unwrap();
    // After the number of stacks, the stack id, and the number of addresses.
    other[stacks + 24] ^= 0x80;
    let mut added = RawContexts::default();
    let mut told = Vec::new();
    let file = [here, other].concat();
    added.add(&RawMemProf::parse(&file).unwrap(), |skipped| {
        told.push(format!("lost {}: {}", skipped.lost, skipped.error));
    });
    assert_eq!(added.contexts().len(), 3);
    assert_eq!(
        told,
        [
            "lost false: the dump at 0x218 of raw MemProf profile: the same stack id is used for two different stacks: found stack id 65613"
        ]
    );
}

#[test]
fn other_files_are_no_heap_profiles() {
    use crate::{Reason, RunOptions};
    let raw = b"\x81rforpl\xff\x0a\0\0\0\0\0\0\0\xc0".as_slice();
    let others = [
        raw,
        b"int main(void) { return 0; }\n",
        b"\x7fELF\x02\x01\x01",
        b"main:100:5\n 1: 3\n",
    ];
    let merged = merge_heap(&others, &RunOptions::new()).unwrap();
    assert_eq!(merged.report.totals.files_dropped, 4);
    for event in &merged.report.events {
        assert_eq!(event.reason, Reason::NotAProfile, "{event}");
        assert_eq!(event.message, "the file is not a heap profile");
    }
    assert_eq!(merged.report.events.len(), 4);
    // Damaged YAML is still a heap profile that is damaged.
    let damaged = b"---\nHeapProfileRecords: 7\n".as_slice();
    let report = merge_heap(&[damaged], &RunOptions::new()).unwrap().report;
    assert_eq!(report.events[0].reason, Reason::Malformed);
}
