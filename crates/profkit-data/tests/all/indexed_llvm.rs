//! Compares the indexed writer with llvm-profdata of every installed release: the bytes must be equal.
use profkit_data::ErrorKind;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::indexed::{IndexedProfile, IndexedWriteOptions, write};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{FunctionTable, InstrKind, InstrProfile, InstrSource, NewRecord, Record};
use profkit_data::releases::Release;
use profkit_testkit::matrix::{self, Compiler, RawSet, Unavailable};
use profkit_testkit::{
    Llvm, RELEASES, fixture, fixtures, require_or_skip, short_or_whole, skip, some_or_all, succeed,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One profile in two forms: as text for LLVM, and as a model for our writer. Each record is added to both forms, so
/// the records have the same order in both.
#[derive(Default)]
struct Both {
    text: String,
    table: FunctionTable,
    functions: HashMap<Vec<u8>, profkit_data::instr::FunctionId>,
    order: u64,
}

impl Both {
    fn add(&mut self, name: &str, hash: u64, counts: &[u64]) {
        writeln!(self.text, "{name}\n{hash}\n{}", counts.len()).unwrap();
        for count in counts {
            writeln!(self.text, "{count}").unwrap();
        }
        self.text.push('\n');
        let function = *self.functions.entry(name.into()).or_insert_with(|| {
            let bytes = name.as_bytes();
            self.table
                .push_function(bytes, NameRef::of(bytes), self.order)
                .unwrap()
        });
        let record = NewRecord {
            func_hash: FuncHash(hash),
            counts,
            order: self.order,
            ..NewRecord::default()
        };
        self.table.push_record(function, record).unwrap();
        self.order += 1;
    }

    fn profile(self, kind: InstrKind) -> (String, InstrProfile) {
        let profile = InstrProfile {
            kind,
            tables: vec![self.table],
            ..InstrProfile::default()
        };
        (self.text, profile)
    }
}

fn merge(llvm: &Llvm, input: &Path, output: &Path, more: &[&str]) -> Vec<u8> {
    succeed(
        Command::new(llvm.profdata())
            .arg("merge")
            .args(more)
            .arg(input)
            .arg("-o")
            .arg(output),
    );
    std::fs::read(output).unwrap()
}

fn ours(profile: &InstrProfile, options: &IndexedWriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let losses = write(profile, options, &mut bytes).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    bytes
}

fn check_equal(what: &str, ours: &[u8], llvm: &[u8]) {
    let first = ours.iter().zip(llvm).position(|(one, two)| one != two);
    assert_eq!(
        (first, ours.len()),
        (None, llvm.len()),
        "{what}: first difference, length"
    );
}

fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 31)
    }
}

fn generated(names: usize, seed: u64) -> Both {
    let mut next = numbers(seed);
    let mut both = Both::default();
    let mut second = Vec::new();
    for index in 0..names {
        let name = match next() % 3 {
            0 => format!("f{}", next() % 100_000),
            1 => format!("_ZN4llvm12some_namespaceL{index}Ev"),
            _ => format!("dir/file.c:static_{}", next() % 1_000_000_007),
        };
        // Bit 60 would make the record context-sensitive.
        let mut hash = next() & !(1 << 60);
        // With more than two, LLVM's map of them has 64 buckets, and with many, several share a bucket.
        let hashes = match next() % 50 {
            0 => 1 + next() % 60,
            1..5 => 1 + next() % 6,
            _ => 1,
        };
        for _ in 0..hashes {
            let has_run = !next().is_multiple_of(3);
            let counts: Vec<u64> = (0..1 + next() % 8)
                .map(|_| {
                    if has_run {
                        next() >> (8 + next() % 56)
                    } else {
                        0
                    }
                })
                .collect();
            second.push((name.clone(), hash, counts));
            hash = next() & !(1 << 60);
        }
    }
    // Rotate the list by half its length. If the middle of the list is between two records of one name, this separates
    // them.
    let late = second.len() / 2;
    second.rotate_left(late);
    let mut seen = std::collections::HashSet::new();
    for (name, hash, counts) in second {
        if seen.insert((name.clone(), hash)) {
            both.add(&name, hash, &counts);
        }
    }
    both
}

fn same_bytes_as(release: u32) {
    let llvm = require_or_skip!(release);
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    for (names, seed) in [
        (1, 1),
        (2, 2),
        (3, 3),
        (5, 4),
        (11, 5),
        (12, 6),
        (13, 7),
        (24, 8),
        (47, 9),
        (48, 10),
        (49, 11),
        (95, 12),
        (96, 13),
        (97, 14),
        (200, 15),
        (500, 16),
        (3000, 17),
        (20_000, 18),
    ] {
        let (text, profile) = generated(names, seed).profile(InstrKind::FRONT_END);
        std::fs::write(&input, text).unwrap();
        for (sparse, more) in [(false, &[][..]), (true, &["-sparse"])] {
            let llvms = merge(&llvm, &input, &output, more);
            let release = Release::new(u8::try_from(release).unwrap());
            let options = IndexedWriteOptions::for_llvm(release).sparse(sparse);
            let what = format!("{names} names, LLVM {release}, sparse {sparse}");
            check_equal(&what, &ours(&profile, &options), &llvms);
        }
    }
}

#[test]
fn same_bytes_as_each_llvm() {
    for release in RELEASES {
        same_bytes_as(release);
    }
}

fn from_text(text: &[u8]) -> InstrProfile {
    InstrProfile::read(&mut TextReader::parse(text).unwrap()).unwrap()
}

/// Builds each program of the test matrix for which this machine has a clang and the LLVM tools of the same release.
/// Returns its raw profiles, the release and the tools.
fn built_sets() -> Vec<(RawSet, u8, Llvm)> {
    let mut sets = Vec::new();
    for set in matrix::sets() {
        let Compiler::Clang(release) = set.compiler else {
            continue;
        };
        match (set.build(), Llvm::find(release)) {
            (Ok(built), Some(llvm)) => sets.push((built, u8::try_from(release).unwrap(), llvm)),
            (Err(Unavailable::Lacks(_)), _) => {}
            (Err(why), _) => skip(&why.to_string()),
            (_, None) => skip(&format!("LLVM {release} is not installed")),
        }
    }
    sets
}

/// Uses real counters, value profiles, bitmaps and traces of every mode. The tool of each release first writes them as
/// text. From this text, the tool and our writer then make an indexed profile.
#[test]
fn real_profiles_of_every_mode_and_release_have_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut compared = 0;
    for (built, release, llvm) in built_sets() {
        let mut all = Command::new(llvm.profdata());
        all.args(["merge", "-text", "-o"]).arg(path("text"));
        succeed(all.args(&built.raws));
        let text = std::fs::read(path("text")).unwrap();
        for sparse in [false, true] {
            let more: &[&str] = if sparse { &["-sparse"] } else { &[] };
            let expected = merge(&llvm, &path("text"), &path("out"), more);
            let options = IndexedWriteOptions::for_llvm(Release::new(release)).sparse(sparse);
            let found = ours(&from_text(&text), &options);
            check_equal(
                &format!("{}, sparse {sparse}", built.set),
                &found,
                &expected,
            );
            compared += 1;
        }
    }
    eprintln!("{compared} profiles compared");
}

/// Tests what a profile has only if raw profiles were merged into it: build ids, and counts that were multiplied by a
/// weight.
#[test]
fn merged_raw_profiles_are_written_as_they_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut compared = 0;
    for (built, release, llvm) in built_sets() {
        let mut all = Command::new(llvm.profdata());
        all.args(["merge", "-o"]).arg(path("out"));
        all.arg(format!("-weighted-input=7,{}", built.raws[0].display()));
        succeed(all.args(&built.raws[1..]));
        let file = std::fs::read(path("out")).unwrap();
        let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
        let options = IndexedWriteOptions::for_llvm(Release::new(release));
        let found = ours(&profile, &options);
        if options.version >= 10 {
            check_equal(&built.set.to_string(), &found, &file);
            compared += 1;
        }
        assert_eq!(found.len(), file.len(), "{}", built.set);
    }
    eprintln!("{compared} profiles compared");
}

/// LLVM 22 reads all versions, so it must print the same for every version that we write.
#[test]
fn llvm_22_reads_the_same_from_every_version() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut compared = 0;
    for fixture_path in fixtures() {
        let name = fixture_path.display().to_string();
        let newer = name.contains("clang-23");
        if !name.contains("shapes.profdata") || name.contains("32") || newer {
            continue;
        }
        std::fs::write(path("in"), fixture(&fixture_path)).unwrap();
        let expected = merge(&llvm, &path("in"), &path("text"), &["--text"]);
        let bytes = fixture(&fixture_path);
        let profile = IndexedProfile::parse(&bytes).unwrap().to_profile().unwrap();
        for version in some_or_all(3..=13, 5) {
            let mut out = Vec::new();
            let options = IndexedWriteOptions::for_version(version);
            if !write(&profile, &options, &mut out).unwrap().is_empty() {
                continue;
            }
            std::fs::write(path("in"), out).unwrap();
            let text = merge(&llvm, &path("in"), &path("text"), &["--text"]);
            assert!(text == expected, "{name} as version {version}");
            compared += 1;
        }
    }
    assert!(compared > short_or_whole(30, 150), "{compared}");
}

/// Special cases of the summary: no function, bit 60 in the function hash of a front-end profile, a total that wraps
/// around, counts that mark a record as pseudo-hot or pseudo-warm.
#[test]
fn corners_have_the_same_bytes_in_every_release() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let texts = [
        ":fe\n",
        ":ir\n",
        ":csir\n",
        ":fe\na\n1152921504606846977\n2\n5\n7\n\nb\n3\n1\n2\n",
        ":csir\na\n1152921504606846977\n2\n5\n7\n\nb\n3\n1\n2\n",
        ":fe\na\n1\n2\n18446744073709551613\n18446744073709551612\n\nb\n3\n3\n9223372036854775808\n1\n1\n",
        ":ir\na\n1\n2\n18446744073709551615\n4\n\nb\n3\n3\n18446744073709551614\n1\n1\n\nc\n1\n1\n9\n",
        ":ir\na\n1\n2\n0\n18446744073709551615\n\nb\n3\n3\n4\n1\n18446744073709551614\n\nc\n1\n1\n9\n",
        ":fe\na\n1\n1\n0\n\nb\n1\n1\n0\n\nb\n2\n1\n1\n",
    ];
    for release in RELEASES {
        let llvm = require_or_skip!(release);
        for text in texts {
            std::fs::write(path("in"), text).unwrap();
            for sparse in [false, true] {
                let more: &[&str] = if sparse { &["-sparse"] } else { &[] };
                let expected = merge(&llvm, &path("in"), &path("out"), more);
                let options =
                    IndexedWriteOptions::for_llvm(Release::new(u8::try_from(release).unwrap()))
                        .sparse(sparse);
                let found = ours(&from_text(text.as_bytes()), &options);
                check_equal(&format!("LLVM {release}, {text:?}"), &found, &expected);
            }
        }
    }
}

fn memprof_yaml(functions: u32) -> String {
    let mut yaml = "---\nHeapProfileRecords:\n".to_owned();
    for index in 1..=functions {
        let guid = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let frame = |line: u32| {
            format!(
                "{{ Function: {guid:#x}, LineOffset: {line}, Column: 3, IsInlineFrame: false }}"
            )
        };
        write!(
            yaml,
            "  - GUID:            {guid:#x}\n    AllocSites:\n      - Callstack:\n          - {}\n          - {}\n        \
             MemInfoBlock:\n          AllocCount:      {index}\n          TotalSize:       222\n          \
             TotalLifetime:   333\n          TotalLifetimeAccessDensity: 444\n    CallSites:\n      - Frames:\n          \
             - {}\n",
            frame(index),
            frame(7),
            frame(9)
        )
        .unwrap();
    }
    yaml + "...\n"
}

/// Our writer copies a MemProf section to another place in the file. The bytes must be those that LLVM writes there.
#[test]
fn memprof_sections_of_every_version_move_as_llvm_writes_them() {
    let (newest, older) = (require_or_skip!(22), require_or_skip!(19));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let merge_all = |llvm: &Llvm, inputs: &[&str], output: &str, version: u32| {
        let mut merge = Command::new(llvm.profdata());
        merge
            .arg("merge")
            .args(inputs.iter().map(|name| path(name)));
        merge.arg(format!("--memprof-version={version}"));
        succeed(merge.arg("-o").arg(path(output)));
        std::fs::read(path(output)).unwrap()
    };
    let few = ":ir\nmain\n1\n2\n3\n4\n\n";
    let many: String = (0..50)
        .map(|index| format!("f{index}\n7\n1\n{index}\n\n"))
        .collect();
    std::fs::write(path("few.proftext"), few).unwrap();
    std::fs::write(path("many.proftext"), format!("{few}{many}")).unwrap();
    std::fs::write(path("memory.yaml"), memprof_yaml(20)).unwrap();
    let accesses = "DataAccessProfiles:\n  SampledRecords:\n    - Symbol:          abcde\n      AccessCount:     100\n      \
        Locations:\n        - FileName:        file2.h\n          Line:            123\n...\n";
    let with_accesses = memprof_yaml(20).replace("...\n", accesses);
    std::fs::write(path("accesses.yaml"), with_accesses).unwrap();
    // LLVM 19 cannot read YAML. Its input is written by LLVM 22 and converted by our writer to version 12.
    let bytes = merge_all(&newest, &["memory.yaml"], "memory.profdata", 2);
    let profile = IndexedProfile::parse(&bytes).unwrap().to_profile().unwrap();
    std::fs::write(
        path("memory.profdata"),
        ours(&profile, &IndexedWriteOptions::for_version(12)),
    )
    .unwrap();
    for (llvm, memory, versions) in [
        (&newest, "memory.yaml", 2..=4),
        (&newest, "accesses.yaml", 4..=4),
        (&older, "memory.profdata", 0..=3),
    ] {
        for version in versions {
            let start = merge_all(llvm, &["few.proftext", memory], "start.profdata", version);
            let mut profile = IndexedProfile::parse(&start).unwrap().to_profile().unwrap();
            let release = Release::new(u8::try_from(llvm.release()).unwrap());
            let options = IndexedWriteOptions::for_llvm(release);
            let what = format!("LLVM {}, MemProf version {version}", llvm.release());
            check_equal(&what, &ours(&profile, &options), &start);
            let moved = merge_all(llvm, &["many.proftext", memory], "moved.profdata", version);
            profile.tables = from_text(format!("{few}{many}").as_bytes()).tables;
            check_equal(&what, &ours(&profile, &options), &moved);
        }
    }
}

#[test]
fn vtable_names_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    for (built, release, llvm) in built_sets() {
        if built.set.mode != matrix::Mode::Vtables {
            continue;
        }
        let mut all = Command::new(llvm.profdata());
        all.args(["merge", "--keep-vtable-symbols", "-o"])
            .arg(&output);
        succeed(all.args(&built.raws));
        let file = std::fs::read(&output).unwrap();
        let profile = IndexedProfile::parse(&file).unwrap().to_profile().unwrap();
        assert!(
            profile.vtable_names.contains(&b"_ZTV6Square".to_vec()),
            "{:?}",
            profile.vtable_names
        );
        let options = IndexedWriteOptions::for_llvm(Release::new(release));
        check_equal("vtables", &ours(&profile, &options), &file);
    }
}

fn our_complaint(bytes: &[u8]) -> String {
    let read = || {
        let profile = IndexedProfile::parse(bytes)?;
        profile.binary_ids()?;
        profile.temporal_traces()?;
        let (mut reader, mut record) = (profile.records(), Record::default());
        while reader.read_record(&mut record)? {}
        Ok(())
    };
    let error: profkit_data::Error = read().unwrap_err();
    let kind = match error.kind() {
        ErrorKind::BadHeader => "invalid instrumentation profile data (file header is corrupt)",
        ErrorKind::UnsupportedVersion => "unsupported instrumentation profile format version",
        ErrorKind::UnsupportedHashType => "unsupported instrumentation profile hash type",
        ErrorKind::Truncated => "truncated profile data",
        ErrorKind::Malformed => "malformed instrumentation profile data",
        kind => panic!("{kind:?}"),
    };
    match error.detail_for_llvm() {
        Some(detail) => format!("{kind}: {detail}"),
        None => kind.to_owned(),
    }
}

/// Damages a good file in many ways, so that each damaged file violates one check of LLVM 22's reader. Our error must
/// have the same text as LLVM's.
#[test]
fn damage_is_refused_as_llvm_22_refuses_it() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    let good = fixture("indexed/clang-22-temporal-shapes.profdata");
    let view = IndexedProfile::parse(&good).unwrap();
    let header = *view.header();
    let first = view.table().entries().next().unwrap().unwrap();
    let at = |offset: u64| usize::try_from(offset).unwrap();
    let (ids, traces) = (at(header.binary_ids_offset), at(header.traces_offset));
    let (item, data) = (at(first.offset), at(first.data_offset));
    let counters = usize::from(first.data[8]);
    let put = |offset: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let cut = |len: usize| good[..len].to_vec();
    let data_len = first.data.len() as u64;
    for (what, bytes) in [
        ("20 bytes", cut(20)),
        ("24 bytes", cut(24)),
        ("cut in the summary", cut(200)),
        ("cut in the index", cut(at(header.hash_offset) + 20)),
        ("cut in the build ids", cut(ids + 4)),
        (
            "cut in the vtable names",
            cut(at(header.vtable_names_offset) + 4),
        ),
        ("cut in the traces", cut(traces + 8)),
        ("version 99", put(8, 99)),
        ("hash type 1", put(24, 1)),
        ("build ids of 7 bytes", put(ids, 7)),
        ("build id of 0 bytes", {
            let mut bytes = put(ids, 8);
            bytes.splice(ids + 8..ids + 8, [0; 8]);
            for offset in [56, 64] {
                let moved = u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap()) + 8;
                bytes[offset..offset + 8].copy_from_slice(&moved.to_le_bytes());
            }
            bytes
        }),
        ("vtable names beyond the file", put(64, 1 << 40)),
        ("traces beyond the file", put(56, 1 << 40)),
        ("number of traces", put(traces, 1 << 40)),
        ("length of a trace", put(traces + 24, 1 << 40)),
        ("data length + 1", put(item + 16, data_len + 1)),
        ("data length 0", put(item + 16, 0)),
        ("data length 8", put(item + 16, 8)),
        ("number of counters", put(data + 8, 1 << 40)),
        ("number of counters + 1", put(data + 8, counters as u64 + 1)),
        ("length of a bitmap", put(data + 16 + 8 * counters, 1 << 40)),
        ("TotalSize", put(data + 24 + 8 * counters, 1 << 30)),
        ("TotalSize 15", put(data + 24 + 8 * counters, 15)),
        ("NumValueKinds", put(data + 24 + 8 * counters, 9 << 32 | 8)),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let mut show = Command::new(llvm.profdata());
        let run = show
            .args(["show", "--all-functions", "--binary-ids"])
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        let first = said.lines().next().unwrap_or_default();
        let expected = first.strip_prefix(&format!("error: {}: ", path.display()));
        assert_eq!(Some(&*our_complaint(&bytes)), expected, "{what}");
    }
}
