//! Indexed profiles that are joined bucket by bucket: the file and the report are those of the accumulators.
use crate::common::{Files, indexed, threads};
use profkit_data::Weight;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::indexed::{self, IndexedProfile, IndexedWriteOptions};
use profkit_data::instr::text::{self, TextOptions};
use profkit_data::instr::{
    FunctionTable, HeapSection, InstrKind, InstrProfile, NewRecord, TemporalTrace, TemporalTraces,
    ValueData, ValueEntry,
};
use profkit_data::memprof::indexed::IndexedMemProfOptions;
use profkit_data::memprof::{
    AllocSite, CallSite, DataAccess, DataRecord, Datum, Field, Frame, MemInfoBlock, MemProfile,
    Schema, SourceLocation,
};
use profkit_data::releases::Release;
use profkit_merge::files::{IndexedFile, JoinedText};
use profkit_merge::{MergeOptions, Policy, ValueWeights, merge_indexed, merge_instr};
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// A function of a random profile, made of a few numbers.
#[derive(Clone, Debug)]
struct Sketch {
    name: u16,
    hash: u8,
    counters: u8,
    seed: u64,
    /// Less than 8: 0 has value sites, 1 a bitmap, 2 vtable sites, 3 a marker, 4 a large count, 5 a second record.
    extra: u8,
}

fn sketch(names: u16) -> impl Strategy<Value = Sketch> {
    (0..names, any::<u64>(), 0u8..40).prop_map(|(name, seed, extra)| Sketch {
        name,
        hash: u8::try_from(name % 251).unwrap(),
        counters: u8::try_from(name % 7).unwrap() + 1,
        seed,
        extra,
    })
}

fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *seed >> 40
}

fn vtable_name(number: u64) -> Vec<u8> {
    format!("_ZTV{number}").into_bytes()
}

const VTABLES: u32 = 2;

/// The values of virtual tables that are less than `named` are the hashes of names.
fn sites(kind: u32, named: u64, seed: &mut u64) -> ValueData {
    let mut values = ValueData::default();
    for _ in 0..2 {
        let count = next(seed) % 4;
        let site = (0..count).map(|_| {
            let value = next(seed) % 5;
            ValueEntry {
                value: match kind {
                    VTABLES if value < named => NameRef::of(&vtable_name(value)).0,
                    _ => value,
                },
                count: next(seed) % 100,
            }
        });
        let site: Vec<_> = site.collect();
        values.kind_mut(kind).unwrap().push_site(site);
    }
    values
}

fn name_of(number: u16) -> Vec<u8> {
    // Long common prefixes, as in C++, and some short names.
    match number % 3 {
        0 => format!("f{number}").into_bytes(),
        1 => format!("_ZN4llvm12SelectionDAG{number}Ev").into_bytes(),
        _ => format!("_ZN4llvm12SelectionDAG7getNode{number}").into_bytes(),
    }
}

fn profile(sketches: &[Sketch], odd: bool, vtables: u64) -> InstrProfile {
    let mut table = FunctionTable::new();
    let mut seen = std::collections::BTreeSet::new();
    for (order, sketch) in (0u64..).zip(sketches) {
        if !seen.insert(sketch.name) {
            continue;
        }
        let name = name_of(sketch.name);
        let function = table
            .push_function(&name, NameRef::of(&name), order)
            .unwrap();
        let mut seed = sketch.seed;
        let mut counts: Vec<u64> = (0..sketch.counters)
            .map(|_| next(&mut seed) % 300)
            .collect();
        let mut values = None;
        let mut bitmap: &[u8] = &[];
        // What a function has depends on its name, so that most records fit each other.
        match sketch.name % 11 {
            0 => values = Some(sites(0, vtables, &mut seed)),
            1 => bitmap = &[3, 128],
            2 => values = Some(sites(VTABLES, vtables, &mut seed)),
            3 => values = Some(sites(1, vtables, &mut seed)),
            4 if seed % 3 == 0 => counts.fill(0),
            _ => {}
        }
        match sketch.extra {
            0 if odd => counts[0] = u64::MAX,
            1 if odd => counts.push(7),
            2 if odd => counts[0] = u64::MAX - 3,
            3 if odd => bitmap = &[1],
            _ => {}
        }
        let mut record = NewRecord {
            func_hash: FuncHash(u64::from(sketch.hash)),
            counts: &counts,
            bitmap,
            values: values.as_ref(),
            order: 2 * order,
            ..NewRecord::default()
        };
        table.push_record(function, record).unwrap();
        if sketch.extra % 8 == 5 {
            record.func_hash = FuncHash(u64::from(sketch.extra) << 57 | 9);
            record.order += 1;
            table.push_record(function, record).unwrap();
        }
    }
    let traces = sketches.chunks(3).take(1 + sketches.len() % 4);
    let traces: Vec<_> = traces
        .map(|some| TemporalTrace {
            weight: some[0].seed % 3 + 1,
            functions: some
                .iter()
                .map(|one| NameRef::of(&name_of(one.name)))
                .collect(),
        })
        .collect();
    InstrProfile {
        kind: InstrKind::IR | InstrKind::CONTEXT_SENSITIVE,
        tables: vec![table],
        binary_ids: vec![BuildId(vec![1, 2, 3])],
        traces: TemporalTraces {
            stream_size: traces.len() as u64,
            traces,
        },
        vtable_names: (0..vtables.max(1)).map(vtable_name).collect(),
        ..InstrProfile::default()
    }
}

/// What an indexed profile has beside functions.
#[derive(Clone, Debug)]
struct Heap {
    version: u32,
    schema: u8,
    portable: bool,
    /// For each allocation, its call stack and a number from which the rest is made.
    contexts: Vec<(u8, u64)>,
    /// Where a bit of the section is wrong, if it has so many bytes.
    damage: Option<usize>,
}

fn heap() -> impl Strategy<Value = Option<Heap>> {
    let contexts = proptest::collection::vec((0u8..20, any::<u64>()), 0..30);
    // Most sections are sound.
    let damage = prop_oneof![3 => Just(None), 1 => (0usize..2000).prop_map(Some)];
    let some = (0u32..5, 0u8..5, any::<bool>(), contexts, damage).prop_map(
        |(version, schema, portable, contexts, damage)| Heap {
            version,
            schema,
            portable,
            contexts,
            damage,
        },
    );
    prop_oneof![1 => Just(None), 2 => some.prop_map(Some)]
}

impl Heap {
    fn section(&self) -> HeapSection {
        let schema = match self.schema {
            0 => Schema::hot_cold(),
            1 => Schema::full(),
            2 => Schema::first(19),
            3 => Schema::first(25),
            _ => Schema::of([Field::MaxSize, Field::AllocCount, Field::TotalSize]),
        };
        let mut profile = MemProfile::default();
        for &(stack, seed) in &self.contexts {
            let mut seed = seed;
            // The first frame allocates. Its function and callers occur in several stacks.
            let frames = (0..=u64::from(stack % 3)).map(|depth| Frame {
                function: (u64::from(stack) + depth) % 7,
                line_offset: u32::from(stack) + 2,
                column: 1,
                is_inline: depth < u64::from(stack % 2),
            });
            let frames: Vec<_> = frames.collect();
            if self.portable {
                for frame in &frames {
                    let name = format!("f{}", frame.function).into_bytes();
                    profile.names.insert(frame.function, name);
                    let location = SourceLocation {
                        file: b"a.cc".to_vec(),
                        line: 7 + (seed & 1) as u32,
                        ..SourceLocation::default()
                    };
                    profile.locations.insert(*frame, location);
                }
            }
            let mut block = MemInfoBlock::default();
            for &field in schema.fields() {
                block.set(field, next(&mut seed) % 1000);
            }
            let histogram = match block.has(Field::AccessHistogramSize) {
                true => vec![seed % 9; usize::from(stack % 4)],
                false => Vec::new(),
            };
            if block.has(Field::AccessHistogramSize) {
                block.set(Field::AccessHistogramSize, histogram.len() as u64);
            }
            let ids: Vec<_> = frames.iter().map(|one| profile.add_frame(*one)).collect();
            let stack = profile.add_stack(&ids);
            let site = AllocSite {
                stack,
                block,
                histogram,
            };
            let record = profile.record_mut(frames[0].function);
            record.alloc_sites.push(site);
            if let Some(caller) = frames.last().filter(|_| ids.len() > 1) {
                let callees = vec![frames[0].function];
                let stack = profile.add_stack(&ids[1..]);
                let record = profile.record_mut(caller.function);
                record.call_sites.push(CallSite { stack, callees });
            }
        }
        if self.version == 4 {
            let record = |&(stack, seed): &(u8, u64)| DataRecord {
                datum: match stack % 2 {
                    0 => Datum::Symbol(vtable_name(stack.into())),
                    _ => Datum::Literal(stack.into()),
                },
                access_count: seed % 100,
                locations: vec![(b"a.cc".to_vec(), stack.into())],
            };
            let mut access = DataAccess::default();
            for context in self.contexts.iter().take(5) {
                access.add(&DataAccess {
                    records: vec![record(context)],
                    ..DataAccess::default()
                });
            }
            profile.data_access = Some(access);
        }
        let options = IndexedMemProfOptions::for_version(self.version, false)
            .schema(schema)
            .portable(self.portable);
        HeapSection::Profile(Box::new(profile), options)
    }

    /// The bytes of an indexed profile with this heap profile.
    fn indexed(&self, profile: &InstrProfile, version: u32) -> Vec<u8> {
        let mut profile = profile.clone();
        profile.memprof = Some(self.section());
        let mut write = IndexedWriteOptions::for_version(version);
        write.known_memprof = 0..=4;
        let mut bytes = Vec::new();
        indexed::write(&profile, &write, &mut bytes).unwrap();
        let section = IndexedProfile::parse(&bytes).unwrap().memprof().unwrap();
        if let Some(at) = self.damage.filter(|&at| at < section.bytes.len()) {
            bytes[usize::try_from(section.offset).unwrap() + at] ^= 1;
        }
        bytes
    }
}

/// In a list of indexed versions: a text.
const TEXT: u32 = 0;

fn as_text(profile: &InstrProfile) -> Vec<u8> {
    let mut text = Vec::new();
    text::write(profile, &TextOptions::new(), &mut text).unwrap();
    text
}

/// Merges both ways, and compares files and reports. Returns whether the inputs were joined.
fn same(files: &Files, options: &MergeOptions, write: &IndexedWriteOptions) -> bool {
    let whole = merge_instr(files, options);
    let merged = merge_indexed::<()>(files, options, &|_| write.clone());
    let (whole, merged) = match (whole, merged) {
        (Ok(whole), Ok(merged)) => (whole, merged),
        (whole, merged) => {
            assert_eq!(
                format!("{:?}", whole.err()),
                format!("{:?}", merged.err()),
                "one way fails"
            );
            return false;
        }
    };
    let is_joined = merged.joined.is_some();
    assert_eq!(
        format!("{:?}", whole.report),
        format!("{:?}", merged.outcome.report)
    );
    let threads = &options.run.threads;
    let written = |file: IndexedFile<'_>| {
        let mut bytes = Vec::new();
        file.write(threads, &mut bytes).unwrap();
        (bytes, file.record_count(), file.losses().clone())
    };
    let joined = merged.joined.as_ref().map(|(joined, ())| joined);
    let one = IndexedFile::new(&whole.profiles[0].profile, None, write).unwrap();
    let other = IndexedFile::new(&merged.outcome.profiles[0].profile, joined, write).unwrap();
    let (one, other) = (written(one), written(other));
    assert!(one.0 == other.0, "the files differ");
    let one_count = one.1;
    assert_eq!((one.1, one.2), (other.1, other.2));
    if let Some(joined) = joined
        && !write.sparse
    {
        let (whole, rest) = (
            &whole.profiles[0].profile,
            &merged.outcome.profiles[0].profile,
        );
        let plain = TextOptions::new();
        for options in [plain.readable(true), plain.for_llvm(Release::new(15))] {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            let losses = text::write(whole, &options, &mut one).unwrap();
            let text = JoinedText::new(joined, rest, &options, threads).unwrap();
            text.write(&mut other).unwrap();
            assert_eq!(
                String::from_utf8_lossy(&one),
                String::from_utf8_lossy(&other)
            );
            assert_eq!(losses.unreadable_names, text.unreadable_names());
            assert_eq!(text.record_count(), one_count);
        }
    }
    is_joined
}

fn inputs() -> impl Strategy<Value = Vec<Vec<Sketch>>> {
    let sizes = prop_oneof![Just(60usize), Just(200), Just(700)];
    let one = sizes.prop_flat_map(|size| proptest::collection::vec(sketch(900), size));
    proptest::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(8, 200)))]

    #[test]
    fn a_join_is_the_sum_of_the_accumulators(
        inputs in inputs(),
        versions in proptest::collection::vec(prop_oneof![Just(TEXT), Just(10u32), Just(12), Just(13), Just(14)], 5),
        odd in any::<bool>(),
        weights in proptest::collection::vec(1u64..4, 5),
        weighted in any::<bool>(),
        heaps in proptest::collection::vec(heap(), 5),
        vtables in 0u64..4,
        choice in 0u8..32,
        threads in 1usize..4,
    ) {
        let all = inputs.iter().zip(&versions).zip(&heaps).enumerate();
        let files = all.map(|(number, ((sketches, &version), heap))| {
            let profile = profile(sketches, odd, vtables);
            let bytes = match (version, heap) {
                (TEXT, _) => as_text(&profile),
                (_, Some(heap)) => heap.indexed(&profile, version),
                (_, None) => indexed(&profile, version),
            };
            (format!("{number}"), bytes)
        });
        let mut files = Files::new(files);
        if weighted {
            files = files.weighted(&weights);
        }
        let mut options = MergeOptions::new().threads(NonZeroUsize::new(threads));
        options.policy = if choice & 1 == 0 { Policy::Tolerant } else { Policy::Llvm };
        if choice & 2 != 0 {
            options = options.value_weights(ValueWeights::AsLlvm);
        }
        if choice & 4 != 0 {
            options = options.filter(|name| name.len() % 4 != 0);
        }
        options = options.heap_copies(choice & 8 != 0).keep_vtable_names(choice & 16 != 0);
        for release in [17, 18, 22, 23] {
            let write = IndexedWriteOptions::for_llvm(Release::new(release));
            same(&files, &options, &write.clone());
            same(&files, &options, &write.sparse(true));
        }
    }
}

fn plain(names: std::ops::Range<u16>) -> InstrProfile {
    let sketches: Vec<_> = names
        .map(|name| Sketch {
            name,
            hash: 3,
            counters: 4,
            seed: u64::from(name),
            extra: 40,
        })
        .collect();
    profile(&sketches, false, 0)
}

#[test]
fn sound_inputs_of_any_sizes_are_joined() {
    let write = IndexedWriteOptions::for_version(13);
    let small = indexed(&plain(0..60), 13);
    let large = indexed(&plain(20..900), 13);
    let other = indexed(&plain(900..1500), 12);
    for order in [[&small, &large, &other], [&other, &small, &large]] {
        let files = Files::new(order.map(|bytes| ("x", bytes.clone())));
        for policy in [Policy::Tolerant, Policy::Llvm] {
            for count in [1, 2, 3] {
                let options = threads(count).policy(policy);
                assert!(same(&files, &options, &write), "{policy:?} {count}");
                assert!(same(&files, &options, &write.clone().sparse(true)));
            }
        }
    }
}

#[test]
fn one_input_alone_is_joined_with_itself() {
    let write = IndexedWriteOptions::for_version(13);
    let files = Files::new([("x", indexed(&plain(0..500), 13))]);
    assert!(same(&files, &threads(2), &write));
}

#[test]
fn heap_profiles_of_all_versions_and_fields_are_joined() {
    let write = IndexedWriteOptions::for_version(13);
    let heap = |version, schema, portable, first: u8| Heap {
        version,
        schema,
        portable,
        contexts: (first..first + 8)
            .map(|stack| (stack, u64::from(stack) << 40))
            .collect(),
        damage: None,
    };
    let one = plain(0..200);
    let two = indexed(&plain(100..300), 13);
    for version in 0..5 {
        for schema in 0..5 {
            let portable = (version + u32::from(schema)) % 2 == 0;
            let first = heap(version, schema, portable, 0).indexed(&one, 13);
            let second = heap((version + 2) % 5, schema / 2, true, 4).indexed(&one, 13);
            for files in [
                vec![first.clone(), two.clone()],
                vec![two.clone(), first, second],
            ] {
                let files = Files::new(files.into_iter().map(|bytes| ("x", bytes)));
                for policy in [Policy::Tolerant, Policy::Llvm] {
                    let options = threads(2).policy(policy);
                    let joined = same(&files, &options, &write);
                    assert!(joined, "{policy:?}, {version}, {schema}");
                }
            }
        }
    }
}

#[test]
fn texts_are_joined_with_each_other_and_with_indexed_profiles() {
    let write = IndexedWriteOptions::for_version(13);
    let (one, two) = (as_text(&plain(0..500)), as_text(&plain(300..900)));
    let spelled = String::from_utf8(two.clone()).unwrap();
    let spelled = spelled
        .replace("\n", "\r\n")
        .replace("# Func Hash:\r\n", "# c\r\n\r\n");
    let twice = [as_text(&plain(0..200)), as_text(&plain(100..300))].concat();
    let third = indexed(&plain(600..1000), 13);
    for texts in [
        vec![one.clone()],
        vec![one.clone(), two.clone()],
        vec![one.clone(), third],
        vec![spelled.into_bytes(), two.clone()],
    ] {
        let files = Files::new(texts.into_iter().map(|bytes| ("x", bytes)));
        for policy in [Policy::Tolerant, Policy::Llvm] {
            let options = threads(2).policy(policy);
            assert!(same(&files, &options, &write), "{policy:?}");
            let weighted = Files(files.0.clone()).weighted(&[5, 3]);
            assert!(same(&weighted, &options, &write), "{policy:?}");
        }
    }
    // The header of the second text is read as the name of a function.
    let files = Files::new([("twice", twice), ("x", two)]);
    assert!(!same(&files, &threads(1), &write));
}

#[test]
fn damaged_texts_are_merged_by_the_accumulators() {
    let write = IndexedWriteOptions::for_version(13);
    let sound = as_text(&plain(0..120));
    let step = if cfg!(debug_assertions) { 97 } else { 7 };
    let mut joined = 0;
    let mut count = 0;
    for at in (0..sound.len()).step_by(step) {
        for byte in *b"7\nx#:$\0" {
            let mut bytes = sound.clone();
            bytes[at] = byte;
            let files = Files::new([("sound", sound.clone()), ("damaged", bytes)]);
            for policy in [Policy::Tolerant, Policy::Llvm] {
                joined += u32::from(same(&files, &threads(1).policy(policy), &write));
                count += 1;
            }
        }
    }
    assert!(
        joined > count / 10 && joined < count * 9 / 10,
        "{joined} of {count}"
    );
}

/// Whatever stands in the file, both ways give the same.
#[test]
fn damaged_inputs_are_merged_by_the_accumulators() {
    let write = IndexedWriteOptions::for_version(13);
    let sound = indexed(&plain(0..200), 13);
    let step = if cfg!(debug_assertions) { 211 } else { 13 };
    let mut joined = 0;
    let mut damaged = 0;
    for at in (0..sound.len()).step_by(step) {
        for change in [1u8, 0x80] {
            let mut bytes = sound.clone();
            bytes[at] ^= change;
            let files = Files::new([("sound", sound.clone()), ("damaged", bytes)]);
            for policy in [Policy::Tolerant, Policy::Llvm] {
                match same(&files, &threads(1).policy(policy), &write) {
                    true => joined += 1,
                    false => damaged += 1,
                }
            }
        }
    }
    assert!(joined > 0 && damaged > 0, "{joined} {damaged}");
}

/// Tables whose items are sound one by one, but which no writer makes. Each is left to the accumulators.
#[test]
fn tables_that_contradict_themselves_are_not_joined() {
    let write = IndexedWriteOptions::for_version(13);
    let sound = indexed(&plain(0..200), 13);
    let profile = profkit_data::instr::indexed::IndexedProfile::parse(&sound).unwrap();
    let table = *profile.table();
    let index = usize::try_from(table.index_offset()).unwrap();
    let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().unwrap());
    let entries: Vec<_> = table.entries().map(Result::unwrap).collect();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sound.clone();
        change(&mut bytes);
        bytes
    };
    let first = usize::try_from(entries[0].offset).unwrap();
    let full = (0..)
        .map(|bucket| index + 16 + 8 * bucket)
        .find(|&at| word(at) != 0)
        .unwrap();
    let cases = [
        (
            "another number of items",
            with(&|bytes| bytes[index + 8] ^= 1),
        ),
        ("a hash of another bucket", with(&|bytes| bytes[first] ^= 1)),
        (
            "a bucket that is left out",
            with(&|bytes| bytes[full..full + 8].fill(0)),
        ),
        (
            "a bucket in the middle of another",
            with(&|bytes| bytes[full] += 8),
        ),
        (
            "a bucket without items",
            with(&|bytes| bytes[first - 2..first].fill(0)),
        ),
        (
            "a bucket with a further item",
            with(&|bytes| bytes[first - 2] += 1),
        ),
        ("the length of a name", with(&|bytes| bytes[first + 8] += 1)),
        (
            "the length of the data",
            with(&|bytes| bytes[first + 16] += 8),
        ),
    ];
    for (what, bytes) in cases {
        let files = Files::new([("sound", sound.clone()), ("odd", bytes)]);
        for policy in [Policy::Tolerant, Policy::Llvm] {
            assert!(!same(&files, &threads(2).policy(policy), &write), "{what}");
        }
    }
}

#[test]
fn a_name_that_an_input_has_twice_is_not_joined() {
    let mut one = plain(0..200);
    let table = &mut one.tables[0];
    let name = name_of(7);
    // The table of functions does not look for names that it has already.
    let function = table
        .push_function(&name, NameRef::of(&name), 1000)
        .unwrap();
    let counts = [1, 2, 3, 4];
    let record = NewRecord {
        func_hash: FuncHash(3),
        counts: &counts,
        order: 1000,
        ..NewRecord::default()
    };
    table.push_record(function, record).unwrap();
    let files = Files::new([
        ("twice", indexed(&one, 13)),
        ("once", indexed(&plain(0..200), 13)),
    ]);
    let write = IndexedWriteOptions::for_version(13);
    for policy in [Policy::Tolerant, Policy::Llvm] {
        assert!(!same(&files, &threads(2).policy(policy), &write));
    }
}

/// Functions that programs of different build ids have in common are reported.
#[test]
fn inputs_of_different_programs_are_joined() {
    let write = IndexedWriteOptions::for_version(13);
    let program = |names: std::ops::Range<u16>, id: u8| {
        let mut profile = plain(names);
        profile.binary_ids = vec![BuildId(vec![id; 4])];
        indexed(&profile, 13)
    };
    let files = [
        program(0..300, 1),
        program(200..500, 2),
        program(100..400, 2),
    ];
    for files in [&files[..2], &files[..]] {
        let files = Files::new(files.iter().map(|bytes| ("x", bytes.clone())));
        for policy in [Policy::Tolerant, Policy::Llvm] {
            for count in [1, 2] {
                let options = threads(count).policy(policy);
                assert!(same(&files, &options, &write), "{policy:?}");
                let shared = merge_instr(&files, &options)
                    .unwrap()
                    .report
                    .shared
                    .unwrap();
                assert_eq!(shared.first.len(), 5);
            }
        }
    }
}

#[test]
fn weights_and_filters_are_joined() {
    let write = IndexedWriteOptions::for_version(13);
    let files = Files::new([
        ("a", indexed(&plain(0..300), 13)),
        ("b", indexed(&plain(100..400), 13)),
    ]);
    let mut files = files.weighted(&[3, 7]);
    for policy in [Policy::Tolerant, Policy::Llvm] {
        let options = threads(2).policy(policy).filter(|name| name[0] == b'f');
        assert!(same(&files, &options, &write), "{policy:?}");
    }
    files.0[0].1 = Weight::ratio(1, 3).unwrap();
    assert!(same(&files, &threads(1), &write));
}
