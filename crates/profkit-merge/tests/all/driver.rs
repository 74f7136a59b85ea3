//! What the driver guarantees for every kind of merge: progress is reported, a merge can be cancelled, and each input
//! is opened once.
use profkit_data::instr::raw::RawProfile;
use profkit_data::mip::MipProfile;
use profkit_merge::memprof::merge_heap;
use profkit_merge::mip::{MipMergeOptions, MipTarget, merge_mip};
use profkit_merge::sample::{SampleMergeOptions, merge_sample};
use profkit_merge::{
    InputData, Inputs, MergeError, MergeOptions, Policy, Progress, RunOptions, Threads, merge_instr,
};
use profkit_testkit::fixture;
use std::borrow::Cow;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The content that marks an input that cannot be opened.
const UNREADABLE: &[u8] = b"unreadable";

struct Counted {
    /// The end of each name.
    extension: &'static str,
    inputs: Vec<Vec<u8>>,
    opened: Vec<AtomicUsize>,
    can_reopen: bool,
}

impl Counted {
    fn new(inputs: Vec<Vec<u8>>, can_reopen: bool) -> Self {
        Counted {
            opened: inputs.iter().map(|_| AtomicUsize::new(0)).collect(),
            extension: "",
            inputs,
            can_reopen,
        }
    }

    fn opened(&self) -> Vec<usize> {
        let counts = self.opened.iter();
        counts.map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

impl Inputs for Counted {
    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        format!("input {index}{}", self.extension).into()
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.opened[index].fetch_add(1, Ordering::SeqCst);
        if self.inputs[index] == UNREADABLE {
            return Err(io::Error::other("no luck"));
        }
        let mut bytes = std::mem::take(buffer);
        bytes.clear();
        bytes.extend_from_slice(&self.inputs[index]);
        Ok(InputData::Buffer(bytes))
    }

    fn can_reopen(&self, _: usize) -> bool {
        self.can_reopen
    }
}

/// Collects the inputs in the order in which they are done. After a number of them, sets the flag that cancels.
struct Watch {
    done: Mutex<Vec<usize>>,
    cancel_after: usize,
    cancel: Arc<AtomicBool>,
}

impl Watch {
    fn new(cancel_after: usize) -> Arc<Self> {
        Arc::new(Watch {
            done: Mutex::default(),
            cancel_after,
            cancel: Arc::default(),
        })
    }

    fn run(self: &Arc<Self>, threads: usize) -> RunOptions {
        RunOptions::new()
            .threads(Threads::new(NonZeroUsize::new(threads)))
            .progress(Arc::clone(self) as _)
            .cancel(Arc::clone(&self.cancel))
    }
}

impl Progress for Watch {
    fn input_done(&self, index: usize) {
        let mut done = self.done.lock().unwrap();
        done.push(index);
        if done.len() == self.cancel_after {
            self.cancel.store(true, Ordering::SeqCst);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Cancelled,
}

struct Kind {
    name: &'static str,
    inputs: Vec<Vec<u8>>,
    merge: fn(&Counted, RunOptions) -> End,
}

fn instr(inputs: &Counted, options: MergeOptions) -> End {
    match merge_instr(inputs, &options) {
        Ok(_) => End::Done,
        Err(MergeError::Cancelled) => End::Cancelled,
        Err(error) => panic!("{error}"),
    }
}

fn sample(inputs: &Counted, run: RunOptions) -> End {
    match merge_sample(inputs, &SampleMergeOptions::new().run(run)) {
        Ok(_) => End::Done,
        Err(MergeError::Cancelled) => End::Cancelled,
        Err(error) => panic!("{error}"),
    }
}

fn mip(inputs: &Counted, run: RunOptions, targets: Vec<MipTarget>) -> End {
    let options = MipMergeOptions::new().run(run).take_profiles(true);
    merge_mip(targets, inputs, &options).map_or(End::Cancelled, |_| End::Done)
}

fn kinds() -> Vec<Kind> {
    let raw = fixture("raw/clang-22-ir-shapes.profraw");
    let names = RawProfile::parse(&raw).unwrap().sections().names;
    let without_names = raw[..usize::try_from(names.offset).unwrap() + 9].to_vec();
    let heap = b"---\nHeapProfileRecords:\n  - GUID:            0x7\n    AllocSites:\n      - Callstack:\n          - { Function: 0x7, LineOffset: 1, Column: 2, IsInlineFrame: false }\n        MemInfoBlock:\n          AllocCount:      3\n    CallSites:       []\n...\n".to_vec();
    let bad_heap = b"---\nHeapProfileRecords:\n  - no\n".to_vec();
    let text = fixture("text/clang-13-ir-plain.proftext");
    let unreadable = UNREADABLE.to_vec();
    let samples = |checksum: u32| format!("f:9:1\n 1: 9\n !CFGChecksum: {checksum}\n").into_bytes();
    let overflow = format!("f:{0}:1\n 1: {0}\n !CFGChecksum: 1\n", u64::MAX).into_bytes();
    let mipraw = fixture("mip/mixed-1.mipraw");
    let mip_inputs = vec![
        mipraw.clone(),
        fixture("mip/mixed-2.mipraw"),
        fixture("mip/mixed-empty.mip"),
        b"what is this".to_vec(),
        unreadable.clone(),
        fixture("mip/other.mipraw"),
        mipraw,
        Vec::new(),
    ];
    let instr_inputs = vec![
        without_names,
        raw.clone(),
        heap.clone(),
        b"what is this".to_vec(),
        unreadable.clone(),
        raw.clone(),
        bad_heap.clone(),
        text,
        Vec::new(),
        raw,
    ];
    vec![
        Kind {
            name: "instrumentation",
            inputs: instr_inputs.clone(),
            merge: |inputs, run| instr(inputs, MergeOptions::new().run(run)),
        },
        Kind {
            name: "instrumentation by LLVM's rules",
            inputs: instr_inputs.clone(),
            merge: |inputs, run| instr(inputs, MergeOptions::new().policy(Policy::Llvm).run(run)),
        },
        Kind {
            name: "instrumentation, normalised",
            inputs: instr_inputs,
            merge: |inputs, run| instr(inputs, MergeOptions::new().normalize(true).run(run)),
        },
        Kind {
            name: "samples",
            inputs: vec![
                samples(1),
                overflow,
                samples(2),
                unreadable.clone(),
                samples(1),
                b"what is this\n".to_vec(),
                Vec::new(),
                samples(2),
                samples(1),
                samples(2),
                samples(1),
                samples(2),
            ],
            merge: sample,
        },
        Kind {
            name: "MIP into a profile",
            inputs: mip_inputs.clone(),
            merge: |inputs, run| {
                let profile = MipProfile::parse(&fixture("mip/mixed-empty.mip")).unwrap();
                let name = "out.mip".to_owned();
                mip(inputs, run, vec![MipTarget { name, profile }])
            },
        },
        Kind {
            name: "MIP without a profile",
            inputs: mip_inputs,
            merge: |inputs, run| mip(inputs, run, Vec::new()),
        },
        Kind {
            name: "heap",
            inputs: vec![
                heap.clone(),
                bad_heap,
                unreadable,
                heap.clone(),
                b"what is this".to_vec(),
                heap.clone(),
                heap,
            ],
            merge: |inputs, run| match merge_heap(inputs, &run) {
                Ok(_) => End::Done,
                Err(_) => End::Cancelled,
            },
        },
    ]
}

#[test]
fn progress_ends_at_the_number_of_inputs() {
    for kind in kinds() {
        for threads in 1..=4 {
            let inputs = Counted::new(kind.inputs.clone(), true);
            let watch = Watch::new(usize::MAX);
            assert_eq!((kind.merge)(&inputs, watch.run(threads)), End::Done);
            let mut done = watch.done.lock().unwrap().clone();
            done.sort_unstable();
            let all: Vec<_> = (0..inputs.len()).collect();
            assert_eq!(done, all, "{}, {threads} threads", kind.name);
        }
    }
}

/// Only an input that cannot be opened at all may be tried again.
#[test]
fn a_pipe_is_opened_once() {
    for kind in kinds() {
        for threads in 1..=4 {
            let inputs = Counted::new(kind.inputs.clone(), false);
            let watch = Watch::new(usize::MAX);
            assert_eq!((kind.merge)(&inputs, watch.run(threads)), End::Done);
            let opened = inputs.inputs.iter().zip(inputs.opened());
            let again = opened.filter(|(input, count)| *count != 1 && *input != UNREADABLE);
            let again: Vec<_> = again.collect();
            assert!(again.is_empty(), "{}: {again:?}", kind.name);
        }
    }
}

#[test]
fn a_merge_that_was_cancelled_before_it_began_opens_nothing() {
    for kind in kinds() {
        let inputs = Counted::new(kind.inputs.clone(), true);
        let watch = Watch::new(usize::MAX);
        watch.cancel.store(true, Ordering::SeqCst);
        assert_eq!(
            (kind.merge)(&inputs, watch.run(2)),
            End::Cancelled,
            "{}",
            kind.name
        );
        assert!(watch.done.lock().unwrap().is_empty(), "{}", kind.name);
        assert!(
            inputs.opened().iter().all(|&count| count == 0),
            "{}",
            kind.name
        );
    }
}

#[test]
fn a_merge_that_is_cancelled_ends_before_the_next_input() {
    for kind in kinds() {
        for after in 1..kind.inputs.len() {
            let inputs = Counted::new(kind.inputs.clone(), true);
            let watch = Watch::new(after);
            assert_eq!(
                (kind.merge)(&inputs, watch.run(1)),
                End::Cancelled,
                "{} after {after}",
                kind.name
            );
            assert_eq!(watch.done.lock().unwrap().len(), after, "{}", kind.name);
        }
    }
}

#[test]
fn a_part_begins_the_merge_again_only_if_its_name_is_that_of_a_profile() {
    let text = b":ir\nmain\n1\n1\n5\n".to_vec();
    let mut sum = profkit_merge::part::Merger::new(MergeOptions::new()).unwrap();
    sum.add(&[crate::parts::shard("1", text.clone())]).unwrap();
    let part = sum.encode().unwrap();
    // How often each input was read.
    let read = |extension, inputs: [&Vec<u8>; 4]| {
        let inputs = Counted {
            extension,
            ..Counted::new(inputs.map(Clone::clone).to_vec(), true)
        };
        let watch = Watch::new(usize::MAX);
        let options = MergeOptions::new().run(watch.run(1));
        let merged = merge_instr(&inputs, &options).unwrap();
        assert_eq!(merged.report.totals.files, 4);
        let done = watch.done.lock().unwrap();
        let times = |input| done.iter().filter(|&&one| one == input).count();
        [0, 1, 2, 3].map(times)
    };
    // The merge knows the inputs of a part by other numbers, so that the numbers of the texts are the lower ones.
    for extension in ["", ".bin", ".pkpart", ".pkpart.gz"] {
        let times = read(extension, [&text, &text, &text, &part]);
        assert_eq!(times, [1, 1, 1, 0], "{extension}");
    }
    assert_eq!(read(".profraw", [&text, &text, &text, &part]), [2, 2, 2, 0]);
    // What comes after the part is not read before the merge begins again.
    assert_eq!(read(".profraw", [&text, &part, &text, &text]), [2, 1, 1, 0]);
}
