//! The laws of parts for heap profiles: raw dumps, texts and sections of indexed profiles, beside counters in one part.
use crate::common::threads;
use crate::laws::{cases, parts_of_every_version};
use crate::parts::{added, merger, options, part_error, shard, whole};
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::{IndexedWriteOptions, write as write_indexed};
use profkit_data::instr::{HeapSection, InstrProfile};
use profkit_data::memprof::indexed::IndexedMemProfOptions;
use profkit_data::memprof::raw::{
    DumpToWrite, RawBlock, RawMemProfOptions, Segment, Version, write,
};
use profkit_data::memprof::{
    AllocSite, CallSite, DataAccess, DataRecord, Datum, Field, Frame, FrameId, MemInfoBlock,
    MemProfile, SourceLocation, portable, yaml,
};
use profkit_merge::memprof::HeapParts;
use profkit_merge::part::examine;
use profkit_merge::{MergeError, MergeOptions, MergeOutcome, Shard, merge_instr};
use profkit_testkit::{change_part, fixture};
use proptest::prelude::*;

/// Numbers that look random, the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Some fields may be missing, and each has few values, so that ties are frequent.
    fn block(&mut self, densities: bool) -> MemInfoBlock {
        let mut block = MemInfoBlock::default();
        for field in Field::ALL.into_iter().take(25) {
            let of_density = field.is_density();
            let known = if of_density {
                densities
            } else {
                self.below(8) > 0
            };
            let most = field.max();
            if known {
                block.set(
                    field,
                    match self.below(12) {
                        0 => most,
                        1 => most - 2,
                        number => number % 5,
                    },
                );
            }
        }
        block
    }

    fn small(&mut self, end: u64) -> u32 {
        u32::try_from(self.below(end)).unwrap()
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }

    fn histogram(&mut self) -> Vec<u64> {
        (0..self.below(4)).map(|_| self.below(3)).collect()
    }
}

fn dump(seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let version = Version::new(3 + seed % 2).unwrap();
    let base = (1 + seed) << 32;
    let segments = [(7, 0), (9, 0x10_0000)].map(|(id, at)| Segment {
        start: base + at,
        end: base + at + 0x1000,
        offset: 0,
        build_id: BuildId(vec![id; 20]),
    });
    // The last address is in no module.
    let places = [
        0x10,
        0x20,
        0x30,
        0x10_0010,
        0x10_0020,
        0x900_0000u64.wrapping_sub(base),
    ];
    let stacks: Vec<(u64, Vec<u64>)> = (0..6)
        .map(|id| {
            let depth = 1 + numbers.below(4);
            let stack = (0..depth).map(|_| base.wrapping_add(numbers.pick(&places)));
            (id, stack.collect())
        })
        .collect();
    // One call stack has no allocations.
    let blocks = (0..5).map(|stack_id| RawBlock {
        stack_id,
        block: {
            let mut block = numbers.block(true);
            for field in version.schema().fields() {
                if !block.has(*field) {
                    block.set(*field, 1);
                }
            }
            block
        },
        histogram: match version.number() {
            4.. => numbers.histogram(),
            _ => Vec::new(),
        },
    });
    let dump = DumpToWrite {
        segments: segments.to_vec(),
        blocks: blocks.collect(),
        stacks,
    };
    let mut out = Vec::new();
    write(&dump, &RawMemProfOptions::for_version(version), &mut out).unwrap();
    out
}

/// A profile with copies of contexts, a function that is inlined into itself, calls with callees, names that share a hash,
/// locations, and accesses to data.
fn profile(seed: u64) -> MemProfile {
    let mut numbers = Numbers(seed);
    let mut profile = MemProfile::default();
    let frames: Vec<FrameId> = (0..8u32)
        .map(|number| {
            profile.add_frame(Frame {
                function: u64::from(number % 4),
                line_offset: number * 3,
                column: numbers.small(2),
                is_inline: number.is_multiple_of(2),
            })
        })
        .collect();
    for _ in 0..6 {
        let depth = 1 + numbers.below(3);
        let stack: Vec<FrameId> = (0..depth).map(|_| numbers.pick(&frames)).collect();
        let stack = profile.add_stack(&stack);
        let function = profile.stack(stack).next().unwrap().function;
        for _ in 0..1 + numbers.below(3) {
            let site = AllocSite {
                stack,
                block: numbers.block(seed.is_multiple_of(3)),
                histogram: numbers.histogram(),
            };
            profile.record_mut(function).alloc_sites.push(site);
        }
        let callees = (0..numbers.below(3))
            .map(|_| 100 + numbers.below(4))
            .collect();
        profile
            .record_mut(numbers.below(4))
            .call_sites
            .push(CallSite { stack, callees });
    }
    for function in 0..4 {
        profile.names.insert(
            function,
            format!("f{function}.{}", numbers.below(2)).into_bytes(),
        );
    }
    for &frame in &frames {
        let location = SourceLocation {
            file: format!("{}.c", numbers.below(2)).into_bytes(),
            line: numbers.small(9),
            ..SourceLocation::default()
        };
        profile.locations.insert(profile.frames()[frame], location);
    }
    if seed % 2 == 1 {
        let symbol = |number: u64| format!("symbol{number}").into_bytes();
        let records = (0..3).map(|number| DataRecord {
            datum: match number {
                0 => Datum::Literal(numbers.below(3)),
                _ => Datum::Symbol(symbol(number + numbers.below(2) * 2)),
            },
            access_count: numbers.below(9),
            locations: vec![(b"b.c".to_vec(), numbers.small(3)), (b"a.c".to_vec(), 1)],
        });
        profile.data_access = Some(DataAccess {
            records: records.collect(),
            cold_symbols: vec![symbol(3), symbol(1), symbol(8 + numbers.below(3))],
            cold_hashes: vec![2, 1, 50 + numbers.below(3)],
        });
    }
    profile
}

fn yaml_of(profile: &MemProfile) -> Vec<u8> {
    let mut out = Vec::new();
    yaml::write(profile, &mut out).unwrap();
    out
}

fn indexed(heap: MemProfile, counters: &[u8], version: u32, portable: bool) -> Vec<u8> {
    let mut profile = match counters {
        [] => InstrProfile::default(),
        _ => {
            let merged = merge_instr(&[counters], &threads(1)).unwrap();
            merged.profiles[0].profile.clone()
        }
    };
    let options =
        IndexedMemProfOptions::for_version(version, version.is_multiple_of(2)).portable(portable);
    profile.memprof = Some(HeapSection::Profile(Box::new(heap), options));
    let mut out = Vec::new();
    write_indexed(&profile, &IndexedWriteOptions::for_version(13), &mut out).unwrap();
    out
}

fn pool() -> Vec<Shard<Vec<u8>>> {
    let counters = b":ir\nmain\n1\n1\n5\n";
    let mut pool: Vec<_> = (0..4)
        .map(|seed| shard(&format!("dump-{seed}"), dump(seed)))
        .collect();
    pool.extend((0..4).map(|seed| shard(&format!("text-{seed}"), yaml_of(&profile(seed)))));
    for (seed, version) in (10..).zip([0, 2, 3, 4, 4]) {
        let counters: &[u8] = if seed % 2 == 0 { counters } else { b"" };
        let name = format!("indexed-{seed}");
        pool.push(shard(
            &name,
            indexed(profile(seed), counters, version, seed % 3 == 0),
        ));
    }
    let both = [dump(20), dump(21)].concat();
    let real = fixture("heap/heap.memprofraw");
    let section = fixture("indexed/clang-22-memprof-heap.profdata");
    let mut damaged = section.clone();
    let end = damaged.len() - 60;
    damaged[end..].fill(0xff);
    pool.extend([
        shard("two-dumps", both),
        shard("real", real.clone()),
        shard("real-again", real.clone()),
        shard("cut", &real[..real.len() * 2 / 3]),
        shard("section", section),
        shard("damaged", damaged),
        shard(
            "with-counters",
            fixture("indexed/clang-22-memprof-ir-plain.profdata"),
        ),
        shard("counters", *counters),
        shard("raw", fixture("raw/clang-22-ir-plain.profraw")),
        shard("wrong.yaml", *b"---\nHeapProfileRecords:\n- nothing\n"),
        shard("junk", *b"\x7fELF junk that is no profile"),
    ]);
    pool
}

/// All that the heap profiles among the inputs became.
fn heap(outcome: &MergeOutcome) -> String {
    let none = HeapParts::default();
    let parts = outcome.heap.as_ref().unwrap_or(&none);
    let contexts = &parts.contexts;
    let mut text = format!(
        "{} dumps, newest {}\n",
        contexts.dumps(),
        contexts.newest_version()
    );
    for (stack, allocated) in contexts.all() {
        let places = stack.iter().map(|&id| {
            let (module, address) = contexts.addresses()[id];
            format!("{} {address:x}", contexts.modules()[module])
        });
        text += &format!("{:?} {allocated:?}\n", places.collect::<Vec<_>>());
    }
    let sections = outcome
        .profiles
        .iter()
        .filter_map(|one| one.profile.memprof.as_ref());
    let sections = sections.map(|section| section.profile().unwrap().into_owned());
    for profile in parts.profiles.iter().cloned().chain(sections) {
        text += &String::from_utf8(yaml_of(&profile)).unwrap();
        text += &format!("{:?}\n", portable::encode(&profile).unwrap());
    }
    text
}

fn all(outcome: Result<MergeOutcome, MergeError>) -> (Vec<Vec<u8>>, String, String) {
    let text = outcome.as_ref().map(heap).unwrap_or_default();
    let (profiles, report) = whole(outcome);
    (profiles, report, text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(24, 400) as u32))]

    #[test]
    fn every_partition_and_tree_gives_the_same_bytes(
        case in cases(24, 4, 0.5),
        more_threads in 1usize..4,
        copies in any::<bool>(),
    ) {
        let pool = pool();
        assert_eq!(pool.len(), 24);
        let inputs = case.inputs(&pool);
        prop_assume!(!inputs.is_empty());
        let parts = case.parts(&pool, |own| merger(own).encode().unwrap());
        let once = merger(&inputs).encode().unwrap();
        let by_tree = case.added_up(parts.clone(), |parts| added(parts).encode().unwrap());
        prop_assert!(once == by_tree, "the part");
        let empty = merger(&[]).encode().unwrap();
        prop_assert!(added(&[&once]).encode().unwrap() == once);
        prop_assert!(added(&[&empty, &once, &once, &parts[0]]).encode().unwrap() == once);
        prop_assert!(examine(&once).is_ok());
        let options = options().heap_copies(copies);
        let whole_options = options.clone().order_free(true).threads(std::num::NonZeroUsize::new(more_threads));
        let expected = all(merge_instr(&inputs, &whole_options));
        let mut sum = profkit_merge::part::Merger::new(options.clone()).unwrap();
        sum.add_part("part", &once).unwrap();
        prop_assert_eq!(&all(sum.finish_instr()), &expected);
        let parts: Vec<_> = parts.into_iter().map(|part| ("part", part)).collect();
        prop_assert_eq!(&all(merge_instr(&parts, &options)), &expected);
    }
}

/// What does not depend on the order is what an ordinary merge counts.
#[test]
fn the_counts_are_those_of_a_merge_in_order() {
    let inputs = pool();
    let sums = |options: &MergeOptions| {
        let outcome = merge_instr(&inputs, options).unwrap();
        let parts = outcome.heap.clone().unwrap();
        let contexts = parts.contexts.contexts().map(|one| *one.block);
        let heap = parts.sum(MemProfile::default());
        let section = outcome.profiles[0].profile.memprof.as_ref().unwrap();
        let section = section.profile().unwrap().into_owned();
        let blocks = contexts
            .chain(heap.contexts().into_iter().map(|one| one.block))
            .chain(section.contexts().into_iter().map(|one| one.block));
        let blocks: Vec<MemInfoBlock> = blocks.collect();
        let total = |field| {
            blocks
                .iter()
                .map(|block| u128::from(block.get(field)))
                .sum::<u128>()
        };
        let fields = [
            Field::AllocCount,
            Field::TotalSize,
            Field::MinSize,
            Field::MaxLifetime,
        ];
        (
            blocks.len(),
            fields.map(total),
            outcome.report.heap,
            outcome.report.totals.files_kept,
        )
    };
    assert_eq!(sums(&threads(1)), sums(&threads(1).order_free(true)));
}

#[test]
fn the_last_of_two_allocations_is_that_with_the_later_time() {
    let block = |time, cpu, migrated| {
        let mut block = MemInfoBlock::default();
        block.set(Field::AllocTimestamp, time);
        block.set(Field::AllocCpuId, cpu);
        block.set(Field::NumMigratedCpu, migrated);
        block.set(Field::NumSameAllocCpu, 2);
        block
    };
    for (one, other, expected) in [
        (block(5, 1, 0), block(4, 9, 1), [5, 1, 1, 4]),
        (block(5, 1, 0), block(5, 3, 0), [5, 3, 0, 4]),
    ] {
        for (mut sum, other) in [(one, other), (other, one)] {
            sum.add_unordered(&other);
            let fields = [
                Field::AllocTimestamp,
                Field::AllocCpuId,
                Field::NumMigratedCpu,
                Field::NumSameAllocCpu,
            ];
            assert_eq!(fields.map(|field| sum.get(field)), expected);
        }
    }
    // A density that one of them lacks is not known of both.
    let (mut known, unknown) = (block(1, 1, 1), block(1, 1, 1));
    known.set(Field::TotalAccessDensity, 7);
    for (mut sum, other) in [(known, unknown), (unknown, known)] {
        sum.add_unordered(&other);
        assert!(!sum.has(Field::TotalAccessDensity) && sum.get(Field::NumSameAllocCpu) == 4);
    }
}

#[test]
fn a_part_of_heap_profiles_is_not_much_larger_than_the_profile() {
    let section = fixture("indexed/clang-22-memprof-heap.profdata");
    let part = merger(&[shard("1", section.clone())]).encode().unwrap();
    assert!(
        part.len() * 10 <= section.len() * 13,
        "{} {}",
        part.len(),
        section.len()
    );
    let many: Vec<_> = (0..40)
        .map(|seed| shard(&format!("{seed}"), indexed(profile(seed), b"", 3, false)))
        .collect();
    let outcome = merge_instr(&many, &threads(1)).unwrap();
    let mut whole = Vec::new();
    write_indexed(
        &outcome.profiles[0].profile,
        &IndexedWriteOptions::for_version(13),
        &mut whole,
    )
    .unwrap();
    let part = merger(&many).encode().unwrap();
    assert!(
        part.len() * 10 <= whole.len() * 13,
        "{} {}",
        part.len(),
        whole.len()
    );
}

#[test]
fn parts_of_every_version_are_read() {
    let expected = all(merger(&pool()).finish_instr());
    for part in parts_of_every_version("-heap", || merger(&pool()).encode().unwrap()) {
        assert_eq!(all(added(&[&part]).finish_instr()), expected);
    }
}

#[test]
fn a_section_of_heap_profiles_that_contradicts_itself_is_an_error() {
    let part = merger(&pool()).encode().unwrap();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let changed = change_part(&part, |tag, bytes| {
            if tag == 11 {
                change(bytes);
            }
        });
        added(&[])
            .add_part("x", &changed.unwrap())
            .err()
            .map(|error| part_error(Err(error)).to_string())
    };
    let name = "section HEAP of part of a merge, at offset";
    let longer = error(&|bytes| bytes.push(0)).unwrap();
    assert!(
        longer.contains(name) && longer.contains("more bytes than it needs"),
        "{longer}"
    );
    let mut length = 0;
    change_part(&part, |tag, bytes| {
        if tag == 11 {
            length = bytes.len();
        }
    })
    .unwrap();
    let step = profkit_testkit::short_or_whole(61, 7);
    let mut messages = std::collections::BTreeSet::new();
    for at in (0..length).step_by(step) {
        let cut = error(&|bytes| bytes.truncate(at)).unwrap();
        assert!(cut.contains(name), "{cut}");
        for value in [0xff, 0x7f, 0] {
            let found = error(&|bytes| bytes[at] = value);
            if let Some(found) = found {
                assert!(found.contains(name), "{found}");
                let message = found.split(": ").nth(2).unwrap_or_default().to_owned();
                messages.insert(message);
            }
        }
    }
    assert!(messages.len() > 5, "{messages:?}");
}
