use super::*;
use crate::Weight;
use profkit_files::{InputData, ObjectVersion, Shard, StoredObject};
use profkit_testkit::short_or_whole;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// By name: the bytes, the version, and the time.
type Objects = BTreeMap<String, (Vec<u8>, usize, Option<SystemTime>)>;

/// A store in memory.
#[derive(Default)]
struct Memory {
    objects: Mutex<Objects>,
    writes: AtomicUsize,
}

impl Memory {
    fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let objects = self.objects.lock().unwrap();
        let bytes =
            |(name, (bytes, ..)): (&String, &(Vec<u8>, usize, _))| (name.clone(), bytes.clone());
        objects.iter().map(bytes).collect()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut objects = self.objects.lock().unwrap();
        change(&mut objects.get_mut(name).unwrap().0);
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let version = self.writes.fetch_add(1, Ordering::Relaxed);
        let object = (bytes.to_vec(), version, Some(time(1)));
        self.objects.lock().unwrap().insert(name.to_owned(), object);
    }

    fn version(&self, name: &str) -> Option<ObjectVersion> {
        let objects = self.objects.lock().unwrap();
        let (_, version, _) = objects.get(name)?;
        Some(ObjectVersion(version.to_le_bytes().to_vec()))
    }
}

impl Store for Memory {
    fn name_of(&self, object: &str) -> String {
        format!("memory:{object}")
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let objects = self.objects.lock().unwrap();
        let inside = objects
            .iter()
            .filter(|(name, _)| name.starts_with(&format!("{folder}/")));
        let listed = inside.map(|(name, (bytes, _, modified))| StoredObject {
            name: name.clone(),
            size: bytes.len() as u64,
            modified: *modified,
        });
        Ok(listed.collect())
    }

    fn read(&self, object: &str) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
        let version = self.version(object);
        Ok(version.map(|version| (self.objects()[object].clone(), version)))
    }

    fn read_range(&self, object: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let objects = self.objects.lock().unwrap();
        let (bytes, ..) = objects.get(object).ok_or(io::ErrorKind::NotFound)?;
        let [start, end] =
            [range.start, range.end].map(|at| usize::try_from(at).unwrap().min(bytes.len()));
        Ok(bytes[start..end].to_vec())
    }

    fn create(&self, object: &str, bytes: &[u8]) -> io::Result<bool> {
        if self.version(object).is_some() {
            return Ok(false);
        }
        self.write(object, bytes);
        Ok(true)
    }

    fn swap(&self, object: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool> {
        if self.version(object).as_ref() != old {
            return Ok(false);
        }
        self.write(object, bytes);
        Ok(true)
    }

    fn remove(&self, object: &str) -> io::Result<()> {
        self.objects.lock().unwrap().remove(object);
        Ok(())
    }
}

enum At<'a> {
    /// The process ends before the call is done.
    Before,
    /// The process ends after the call was done, and gets no answer.
    After,
    /// Another process works before the call is done.
    Other(&'a (dyn Fn() + Sync)),
}

/// A process that works with a store, and to which something happens at a call.
struct Process<'a> {
    store: &'a Memory,
    call: usize,
    at: At<'a>,
    calls: AtomicUsize,
}

impl<'a> Process<'a> {
    fn new(store: &'a Memory, call: usize, at: At<'a>) -> Self {
        Process {
            store,
            call,
            at,
            calls: AtomicUsize::new(0),
        }
    }

    fn call<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let ended = || Err(io::Error::other("the process has ended"));
        match &self.at {
            At::Other(other) => {
                if number == self.call {
                    other();
                }
                call()
            }
            _ if number > self.call => ended(),
            At::Before if number == self.call => ended(),
            At::After if number == self.call => {
                call()?;
                ended()
            }
            _ => call(),
        }
    }

    /// Whether the call was made.
    fn happened(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.call
    }
}

impl Store for Process<'_> {
    fn name_of(&self, object: &str) -> String {
        self.store.name_of(object)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        self.call(|| self.store.list(folder))
    }

    fn read(&self, object: &str) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
        self.call(|| self.store.read(object))
    }

    fn read_range(&self, object: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.call(|| self.store.read_range(object, range))
    }

    fn create(&self, object: &str, bytes: &[u8]) -> io::Result<bool> {
        self.call(|| self.store.create(object, bytes))
    }

    fn swap(&self, object: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool> {
        self.call(|| self.store.swap(object, bytes, old))
    }

    fn remove(&self, object: &str) -> io::Result<()> {
        self.call(|| self.store.remove(object))
    }
}

fn time(day: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(20_000 * 86_400 + day * 86_400 + 7200)
}

type Run = Shard<Vec<u8>>;

fn run(number: usize) -> Run {
    // Records that contradict each other, so that a sum of finished profiles would not do.
    let shape = if number.is_multiple_of(3) {
        "2\n5\n6"
    } else {
        "1\n7"
    };
    Shard {
        id: format!("run {number}"),
        name: format!("{number}.proftext"),
        weight: Weight::ONE,
        bytes: format!(":ir\nmain\n1234\n{shape}\n\nf{number}\n1\n1\n{number}\n").into_bytes(),
    }
}

fn runs(numbers: Range<usize>) -> Vec<Run> {
    numbers.map(run).collect()
}

/// Folds runs; those with an odd number are of the next day.
fn fold_runs(store: &dyn Store, numbers: Range<usize>) -> Result<FoldOutcome, FoldError> {
    let times: Vec<_> = numbers
        .clone()
        .map(|number| Some(time(number as u64 % 2)))
        .collect();
    fold(store, &runs(numbers), &times, &options())
}

fn options() -> FoldOptions {
    FoldOptions::new().now(time(5))
}

/// The store has these runs, each once, and nothing else.
#[track_caller]
fn assert_has(store: &Memory, numbers: Range<usize>) {
    let mut all = Merger::new(MergeOptions::new()).unwrap();
    all.add(&runs(numbers.clone())).unwrap();
    let sum = sum(store, &MergeOptions::new()).unwrap();
    assert_eq!(sum.inputs(), numbers.len());
    assert!(sum.repeated().is_empty(), "{:?}", sum.repeated());
    assert!(sum.encode().unwrap() == all.encode().unwrap());
}

#[test]
fn each_input_counts_once_wherever_a_fold_is_killed() {
    let mut calls = 0;
    for at in [|| At::Before, || At::After] {
        for call in 0.. {
            let store = Memory::default();
            fold_runs(&store, 0..3).unwrap();
            let process = Process::new(&store, call, at());
            let ended = fold_runs(&process, 0..8);
            if !process.happened() {
                assert!(ended.is_ok());
                break;
            }
            calls += 1;
            assert!(ended.is_err(), "{call}");
            // What is there before the next one is whole, too.
            let between = sum(&store, &MergeOptions::new()).unwrap().inputs();
            assert!(between == 3 || between == 8, "{between}");
            let outcome = fold_runs(&store, 0..10).unwrap();
            assert_eq!(outcome.ledger.inputs(), 10);
            assert_has(&store, 0..10);
            assert!(outcome.strays.is_empty() && outcome.left_out.is_empty());
            // The next one has nothing to do.
            let before = store.objects();
            assert_eq!(fold_runs(&store, 0..10).unwrap().known, 10);
            assert!(store.objects() == before);
        }
    }
    assert!(calls > 12, "{calls}");
}

#[test]
fn each_input_counts_once_wherever_a_compaction_is_killed() {
    let stored = || {
        let store = Memory::default();
        for part in 0..4 {
            fold_runs(&store, part * 2..part * 2 + 2).unwrap();
        }
        store
    };
    for at in [|| At::Before, || At::After] {
        for call in 0.. {
            let store = stored();
            let process = Process::new(&store, call, at());
            let ended = compact(&process, &options());
            assert_has(&store, 0..8);
            if !process.happened() {
                assert_eq!(ended.unwrap().joined.len(), 2);
                break;
            }
            assert!(ended.is_err(), "{call}");
            fold_runs(&store, 0..9).unwrap();
            assert_has(&store, 0..9);
            let compacted = compact(&store, &options().now(time(9))).unwrap();
            assert_has(&store, 0..9);
            // Two parts, one for each day, and the ledger: nothing is left over.
            assert_eq!(compacted.ledger.parts.len(), 2);
            assert_eq!(store.objects().len(), 3, "{call}");
        }
    }
}

#[test]
fn two_at_a_time_do_not_hurt_each_other() {
    type Work<'a> = &'a (dyn Fn(&dyn Store) + Sync);
    let folds: Work<'_> = &|store| drop(fold_runs(store, 2..9).unwrap());
    let folds_same: Work<'_> = &|store| drop(fold_runs(store, 0..6).unwrap());
    let folds_others: Work<'_> = &|store| drop(fold_runs(store, 6..9).unwrap());
    let compacts: Work<'_> = &|store| drop(compact(store, &options()).unwrap());
    let sums: Work<'_> = &|store| drop(sum(store, &MergeOptions::new()).unwrap());
    let works = [folds, folds_same, folds_others, compacts, sums];
    let mut calls = 0;
    for (one, first) in works.iter().enumerate() {
        for (two, second) in works.iter().enumerate() {
            for call in (one + two..).step_by(short_or_whole(5, 1)) {
                let store = Memory::default();
                fold_runs(&store, 0..2).unwrap();
                fold_runs(&store, 2..4).unwrap();
                let other = || second(&store);
                let process = Process::new(&store, call, At::Other(&other));
                first(&process);
                if !process.happened() {
                    calls += process.calls.load(Ordering::Relaxed);
                    break;
                }
                let outcome = fold_runs(&store, 0..9).unwrap();
                assert_has(&store, 0..9);
                assert!(outcome.left_out.is_empty(), "{one} {two} {call}");
                let overlaps = |stray: &Stray| stray.what == StrayKind::Overlap;
                assert!(!outcome.strays.iter().any(overlaps), "{one} {two} {call}");
            }
        }
    }
    assert!(calls > 200, "{calls}");
}

#[test]
fn programs_kinds_and_days_have_their_parts() {
    let store = Memory::default();
    let front_end = Shard {
        id: "front end".to_owned(),
        name: "f.proftext".to_owned(),
        weight: Weight::integer(2),
        bytes: b"# CSIR\n:fe\nmain\n1\n1\n5\n".to_vec(),
    };
    let all = [run(1), run(2), front_end, run(3)];
    let times = [Some(time(0)), Some(time(0)), Some(time(0)), None];
    let options = options().by_build_id(true).every(Every::Hour);
    let outcome = fold(&store, &all, &times, &options).unwrap();
    let names: Vec<String> = outcome
        .ledger
        .parts
        .keys()
        .map(ToString::to_string)
        .collect();
    let places: Vec<&str> = names
        .iter()
        .map(|name| name.rsplit_once('-').unwrap().0)
        .collect();
    assert_eq!(
        places,
        [
            "ir/no-build-id/2024-10-04T02",
            "ir/no-build-id/2024-10-09T02",
            "front-end/no-build-id/2024-10-04T02",
        ]
    );
    assert_eq!(outcome.folded.len(), 3);
    let error = sum(&store, &MergeOptions::new()).unwrap_err();
    assert_eq!(
        (error.to_string(), error.hint().unwrap()),
        (
            "memory:: the store has profiles of several kinds, of which there is no common profile: ir, front-end".to_owned(),
            "merge the parts of one kind: profkit merge memory:/parts/ir -o FILE".to_owned()
        )
    );
}

#[test]
fn parts_that_were_made_elsewhere_keep_their_ids() {
    let part = |name: &str, numbers: Range<usize>, options: MergeOptions| {
        let mut merger = Merger::new(options).unwrap();
        merger.add(&runs(numbers)).unwrap();
        Shard {
            id: name.to_owned(),
            name: format!("{name}.pkpart"),
            weight: Weight::ONE,
            bytes: merger.encode().unwrap(),
        }
    };
    let plain = MergeOptions::new;
    let store = Memory::default();
    // A part by another name is recognised by its content.
    let odd = Shard {
        name: "odd".to_owned(),
        ..part("odd", 6..8, plain())
    };
    let all = [
        part("a", 0..3, plain()),
        part("again", 0..3, plain()),
        part("b", 3..6, plain()),
        odd,
    ];
    let outcome = fold(&store, &all, &[], &options()).unwrap();
    assert_eq!((outcome.known, outcome.left_out.len()), (1, 0));
    assert_has(&store, 0..8);
    let others = [
        part("overlap", 7..9, plain()),
        part("options", 20..22, plain().separate_by_build_id(true)),
        Shard {
            id: "cut".to_owned(),
            bytes: part("x", 30..32, plain()).bytes[..200].to_vec(),
            ..part("cut", 0..1, plain())
        },
        run(8),
        Shard {
            bytes: b"int main() {}".to_vec(),
            ..run(40)
        },
        Shard {
            bytes: Vec::new(),
            ..run(41)
        },
        Shard {
            bytes: part("other", 0..1, plain()).bytes,
            ..run(42)
        },
    ];
    let outcome = fold(&store, &others, &[], &options()).unwrap();
    let whys: Vec<String> = outcome
        .left_out
        .iter()
        .map(|one| format!("{}: {:?}", one.input, one.why))
        .collect();
    assert_eq!(outcome.known, 1);
    assert_eq!(
        whys,
        [
            "40.proftext: NoProfile(\"it is no profile, or nothing of it can be read\")",
            "41.proftext: NoProfile(\"it is no profile, or nothing of it can be read\")",
            "cut.pkpart: NoProfile(\"section table of part of a merge, at offset 0xc8: the data are too short here: found 0 bytes left, expected 8 bytes\")",
            "options.pkpart: OtherOptions",
            "overlap.pkpart: Overlap(1)",
        ]
    );
    assert_has(&store, 0..9);
    // One id with two contents.
    let mut merger = Merger::new(plain()).unwrap();
    merger
        .add(&[Shard {
            bytes: run(7).bytes,
            ..run(3)
        }])
        .unwrap();
    let wrong = Shard {
        id: "w".to_owned(),
        name: "w.pkpart".to_owned(),
        weight: Weight::ONE,
        bytes: merger.encode().unwrap(),
    };
    let outcome = fold(&store, &[wrong], &[], &options()).unwrap();
    assert_eq!(outcome.left_out[0].why, Why::TwoContents);
}

/// Runs of which one cannot be read yet.
struct Locked(Vec<Run>, usize);

impl Inputs for Locked {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.0.name(index)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.0.id(index)
    }

    fn first_bytes(&self, index: usize, most: usize) -> io::Result<Vec<u8>> {
        self.0.first_bytes(index, most)
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        if index == self.1 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.0.open(index, buffer)
    }
}

#[test]
fn what_cannot_be_read_is_tried_again() {
    let store = Memory::default();
    let outcome = fold(&store, &Locked(runs(0..3), 1), &[], &options()).unwrap();
    let [
        LeftOut {
            input,
            why: Why::Unreadable(_),
        },
    ] = &outcome.left_out[..]
    else {
        panic!("{:?}", outcome.left_out);
    };
    assert_eq!((input.as_str(), outcome.ledger.inputs()), ("1.proftext", 2));
    assert_eq!(outcome.folded[0].inputs, ["0.proftext", "2.proftext"]);
    fold(&store, &runs(0..3), &[], &options()).unwrap();
    assert_has(&store, 0..3);
    // Alone it makes no part.
    let store = Memory::default();
    let outcome = fold(&store, &Locked(runs(0..1), 0), &[], &options()).unwrap();
    assert_eq!((outcome.left_out.len(), store.objects().len()), (1, 0));
    let error = sum(&store, &MergeOptions::new()).unwrap_err();
    assert!(matches!(error, FoldError::Empty { .. }), "{error}");
}

#[test]
fn a_damaged_input_counts_as_far_as_it_is_sound() {
    let store = Memory::default();
    let cut = Shard {
        bytes: b":ir\nmain\n1234\n1\n7\n\ncut\n1\n".to_vec(),
        ..run(1)
    };
    let outcome = fold(&store, &[run(0), cut.clone()], &[], &options()).unwrap();
    assert_eq!(outcome.folded[0].report.totals.files_repaired, 1);
    assert_eq!(
        fold(&store, &[run(0), cut], &[], &options()).unwrap().known,
        2
    );
}

#[test]
fn an_input_that_was_written_again_is_said() {
    let store = Memory::default();
    fold(
        &store,
        &runs(0..2),
        &[Some(time(0)), Some(time(0))],
        &options(),
    )
    .unwrap();
    let outcome = fold(
        &store,
        &runs(0..2),
        &[Some(time(0)), Some(time(1))],
        &options(),
    )
    .unwrap();
    assert_eq!(
        (outcome.known, outcome.rewritten),
        (2, vec!["1.proftext".to_owned()])
    );
}

#[test]
fn nothing_is_changed_by_a_dry_run() {
    let store = Memory::default();
    let outcome = fold(&store, &runs(0..3), &[], &options().dry_run(true)).unwrap();
    assert_eq!(
        (outcome.folded[0].row.inputs, store.objects().len()),
        (3, 0)
    );
    for part in 0..2 {
        fold_runs(&store, part * 2..part * 2 + 2).unwrap();
    }
    let before = store.objects();
    let compacted = compact(&store, &options().dry_run(true)).unwrap();
    assert_eq!((compacted.joined.len(), compacted.joined[0].2), (2, 2));
    assert!(store.objects() == before);
    // Days that are not over stay as they are.
    assert!(
        compact(&store, &options().now(time(0)))
            .unwrap()
            .joined
            .is_empty()
    );
    let compacted = compact(&store, &options().now(time(1))).unwrap();
    assert_eq!(compacted.joined.len(), 1);
    assert_has(&store, 0..4);
}

#[test]
fn every_damage_of_a_store_is_said_and_repaired() {
    let stored = || {
        let store = Memory::default();
        fold_runs(&store, 0..3).unwrap();
        let part = store
            .objects()
            .into_keys()
            .find(|name| name.starts_with("parts/"))
            .unwrap();
        (store, part)
    };
    let in_inputs = |bytes: &mut Vec<u8>| {
        let inputs = crate::part::find_inputs(bytes).unwrap().range();
        bytes[usize::try_from(inputs.start).unwrap()] ^= 1;
    };
    // What is done, what a fold says, and how many inputs a repair finds.
    type Damage<'a> = (&'a dyn Fn(&Memory, &str), &'a str, u64);
    let damages: [Damage<'_>; 6] = [
        (
            &|store, _| store.change(LEDGER_NAME, |bytes| bytes.truncate(150)),
            "the ledger is damaged: line 3: the line is cut off",
            5,
        ),
        (
            &|store, _| store.change(LEDGER_NAME, Vec::clear),
            "the ledger is damaged: line 1: the first line is not that of a ledger",
            5,
        ),
        (
            &|store, part| store.remove(part).unwrap(),
            "the part is missing; it has the counts of 2 inputs",
            3,
        ),
        (
            &|store, part| store.change(part, |bytes| bytes.truncate(300)),
            "the part is damaged: it has 300 bytes, and the ledger says ",
            3,
        ),
        (
            &|store, part| store.change(part, in_inputs),
            "the checksum of the section is not that of its bytes",
            3,
        ),
        // Only who adds a part up reads its counts.
        (
            &|store, part| store.change(part, |bytes| *bytes.last_mut().unwrap() ^= 1),
            "",
            4,
        ),
    ];
    for (damage, message, left) in damages {
        let (store, part) = stored();
        fold_runs(&store, 3..5).unwrap();
        damage(&store, &part);
        match (fold_runs(&store, 0..6), message) {
            (Ok(_), "") => {
                let error = sum(&store, &MergeOptions::new()).unwrap_err();
                assert!(
                    error
                        .to_string()
                        .contains("the part is damaged: the digest of its bytes is "),
                    "{error}"
                );
            }
            (result, message) => {
                let error = result.unwrap_err();
                assert!(error.to_string().contains(message), "{error} {message}");
                assert!(error.hint().unwrap().contains("--repair"));
            }
        }
        let repaired = fold(&store, &runs(0..0), &[], &options().repair(true)).unwrap();
        assert_eq!(
            (repaired.ledger.inputs(), repaired.repaired.len()),
            (left, 1),
            "{message}"
        );
        // What is lost is folded again, as far as it is named.
        fold_runs(&store, 0..6).unwrap();
        assert_has(&store, 0..6);
    }
    let (store, _) = stored();
    store.change(LEDGER_NAME, |bytes| bytes[15] = b'9');
    let error = fold(&store, &runs(0..1), &[], &options().repair(true)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory:ledger.txt: the ledger has version 9, and this profkit knows versions up to 1"
    );
}

#[test]
fn stray_objects_are_said_and_left_alone() {
    let store = Memory::default();
    fold_runs(&store, 0..2).unwrap();
    let part = store
        .objects()
        .into_iter()
        .find(|(name, _)| name.starts_with("parts/"))
        .unwrap();
    store.write("parts/readme.txt", b"hello");
    store.write(
        "parts/ir/all/2024-10-04-0000000000000007.pkpart",
        b"no part",
    );
    let digest = format!("{:016x}", twox_hash::XxHash3_64::oneshot(b"no part"));
    store.write(
        &format!("parts/ir/all/2024-10-04-{digest}.pkpart"),
        b"no part",
    );
    store.write(&part.0.replace("/all/", "/other/"), &part.1);
    let outcome = fold_runs(&store, 0..4).unwrap();
    let mut said: Vec<String> = outcome
        .strays
        .iter()
        .map(|stray| format!("{:?}", stray.what))
        .collect();
    said.sort();
    assert_eq!(
        said,
        [
            "Leftover".to_owned(),
            "Other(\"header of part of a merge, at offset 0x0: the data are too short here: found 7 bytes left, expected 8 bytes\")".to_owned(),
            "Other(\"its name is not that of a part\")".to_owned(),
            "Other(\"the digest of its bytes is ".to_owned() + &digest + "\")",
        ]
    );
    assert_has(&store, 0..4);
    // A compaction removes the copy, and nothing else.
    assert_eq!(compact(&store, &options()).unwrap().removed, 1);
    assert!(store.objects().contains_key("parts/readme.txt"));
    assert_has(&store, 0..4);
}

#[test]
fn each_family_has_its_parts() {
    let of = |number: usize, bytes: &[u8]| Shard {
        bytes: bytes.to_vec(),
        ..run(number)
    };
    let store = Memory::default();
    let samples = |count| format!("main:{count}:5\n 1: {count}\n").into_bytes();
    let heap = |count| {
        let frame = "{ Function: main, LineOffset: 1, Column: 1, IsInlineFrame: false }";
        format!("---\nHeapProfileRecords:\n  - GUID: main\n    AllocSites:\n      - Callstack:\n          - {frame}\n        MemInfoBlock: {{ AllocCount: {count} }}\n    CallSites: []\n...\n").into_bytes()
    };
    let all = [
        of(0, &samples(100)),
        of(1, &samples(20)),
        of(2, &heap(5)),
        of(3, &heap(3)),
    ];
    let outcome = fold(&store, &all, &[], &options()).unwrap();
    assert!(outcome.left_out.is_empty(), "{:?}", outcome.left_out);
    let kinds = |ledger: &Ledger| -> Vec<_> {
        let parts = ledger.parts.iter();
        parts.map(|(name, row)| (name.kind, row.inputs)).collect()
    };
    let expected = [(PartKind::Sample, 2), (PartKind::Heap, 2)];
    assert_eq!(kinds(&outcome.ledger), expected);
    assert_eq!(fold(&store, &all, &[], &options()).unwrap().known, 4);
    let error = sum(&store, &MergeOptions::new()).unwrap_err();
    assert!(matches!(error, FoldError::Kinds { .. }), "{error}");
    // Parts keep their kind in another store, and a heap profile fits counters.
    let other = Memory::default();
    let parts = store.objects().into_iter();
    let parts = parts.filter(|(name, _)| name.contains("/heap/"));
    let parts: Vec<_> = parts.map(|(_, bytes)| of(9, &bytes)).collect();
    let all = [&parts[..], &[of(10, b":ir\nmain\n1234\n1\n90\n")]].concat();
    let outcome = fold(&other, &all, &[], &options()).unwrap();
    assert_eq!(
        kinds(&outcome.ledger),
        [(PartKind::Ir, 1), (PartKind::Heap, 2)]
    );
    let merged = sum(&other, &MergeOptions::new()).unwrap();
    let merged = merged.finish_instr().unwrap();
    let heap = merged.heap.unwrap().sum(Default::default());
    let field = profkit_data::memprof::Field::AllocCount;
    assert_eq!(heap.contexts()[0].block.get(field), 8);
    assert_eq!(merged.report.totals.functions, 1);
}
