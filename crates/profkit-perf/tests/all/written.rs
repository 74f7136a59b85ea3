//! Tests with recordings that the tests write themselves: both byte orders, all forms, and damage of every kind.
use profkit_perf::{Branch, Form, Mode, Recording, Sample};
use profkit_testkit::{Endian, PerfSample, PerfWriter, Rng, mutate};

const ORDERS: [Endian; 2] = [Endian::Little, Endian::Big];

/// A recording of the kernel and of a process that forks a child. The child then starts another program.
fn story(endian: Endian) -> PerfWriter {
    let mut writer = PerfWriter::new(endian, &["cycles:u", "branches"], true, true);
    let mispredicted = writer.bit(0);
    // 77 cycles. The field for the cycles has 16 bits and begins at bit 4.
    let cycles = match endian {
        Endian::Little => 77 << 4,
        Endian::Big => 77 << (64 - 4 - 16),
    };
    let sample = |event, pid, time, address| PerfSample {
        event,
        pid,
        time,
        address,
        chain: vec![0u64.wrapping_sub(512), address, 0x40_1234],
        branches: vec![
            (address + 8, address, mispredicted | cycles),
            (0x40_2000, 0x40_2004, 0),
            (0, 0, 0),
        ],
        in_kernel: false,
        period: 0,
    };
    writer
        .mmap(
            u32::MAX,
            0,
            1 << 63,
            1 << 32,
            1 << 63,
            "[kernel.kallsyms]_text",
        )
        .comm(10, 5, "shell", true)
        .mmap2(10, 6, 0x40_0000, 0x1_0000, "/bin/shell", &[7; 20])
        .fork(11, 10, 10)
        .sample(&sample(0, 10, 12, 0x40_0100))
        .sample(&sample(1, 11, 13, 0x40_0200))
        .comm(11, 20, "program", true)
        .mmap(11, 21, 0x40_0000, 0x1_0000, 0x3000, "/opt/program")
        .sample(&sample(0, 11, 22, 0x40_0300))
        // This sample is later in the file, but its time is before the start of the new program.
        .sample(&sample(0, 11, 15, 0x40_0400))
        .sample(&PerfSample {
            in_kernel: true,
            ..sample(1, 10, 30, (1 << 63) + 0x55)
        })
        .sample(&sample(1, 12, 31, 0x40_0500));
    writer
}

/// Returns the samples of a recording in the order of time, as one line of text each.
fn lines(bytes: &[u8]) -> Vec<String> {
    let recording = Recording::open(bytes).expect("a recording");
    let (mut list, _) = recording.samples(
        Vec::new,
        |list, sample| list.push((sample.when(), line(&recording, sample))),
        |list, mut other| list.append(&mut other),
    );
    list.sort();
    list.into_iter().map(|(_, line)| line).collect()
}

fn line(recording: &Recording<'_>, sample: &Sample<'_>) -> String {
    let event = &recording.events()[sample.event].name;
    let place = recording
        .locate(sample)
        .map_or("nowhere".to_owned(), |place| {
            let binary = recording
                .processes()
                .binary(place.binary)
                .expect("a binary");
            let path = String::from_utf8_lossy(&binary.path);
            let id = binary.build_id.as_ref().map_or(0, |id| id.0.len());
            format!("{path}+{:#x} (build id of {id})", place.offset)
        });
    let name = recording.processes().name(sample.pid, sample.time);
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    let chain: Vec<(Mode, u64)> = sample.chain.addresses().collect();
    let branch: Vec<Branch> = sample.branches.iter().collect();
    assert_eq!(chain[1], (Mode::User, 0x40_1234));
    assert_eq!(branch.len(), 2);
    assert!(branch[0].is_mispredicted() && !branch[1].is_mispredicted());
    assert_eq!((branch[0].cycles(), branch[0].is_predicted()), (77, false));
    format!("{} {event} {} {name}: {place}", sample.when(), sample.pid)
}

const STORY: [&str; 6] = [
    "12 cycles:u 10 shell: /bin/shell+0x100 (build id of 20)",
    "13 branches 11 shell: /bin/shell+0x200 (build id of 20)",
    "15 cycles:u 11 shell: /bin/shell+0x400 (build id of 20)",
    "22 cycles:u 11 program: /opt/program+0x3300 (build id of 0)",
    "30 branches 10 shell: [kernel.kallsyms]_text+0x55 (build id of 0)",
    "31 branches 12 : nowhere",
];

#[test]
fn samples_belong_to_what_their_process_had_mapped() {
    for endian in ORDERS {
        let writer = story(endian);
        assert_eq!(lines(&writer.file()), STORY, "{endian:?} file");
        assert_eq!(lines(&writer.pipe()), STORY, "{endian:?} pipe");
    }
}

#[test]
fn a_folder_has_records_in_several_files() {
    let writer = story(Endian::Little);
    let mut head = writer.clone();
    head.set_records(Vec::new());
    // The size of the records in the header is 0, as in an unfinished file, because the records are in other files.
    let head = head.file();
    let half = writer.records().len();
    let recording =
        Recording::open_folder(&head, &[&writer.records()[..half], &[]]).expect("a recording");
    assert_eq!(recording.form(), Form::Folder);
    let samples: u64 = recording
        .figures()
        .events
        .iter()
        .map(|event| event.samples)
        .sum();
    assert_eq!(samples, 6);
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(bytes, level)
}

#[test]
fn compressed_records_straddle_their_pieces() {
    for (kind, endian) in [
        (81, Endian::Little),
        (83, Endian::Little),
        (81, Endian::Big),
        (83, Endian::Big),
    ] {
        let mut writer = story(endian);
        // The records are many times larger than the part of the stream that is decompressed at a time.
        let story = writer.records().to_vec();
        let filler = PerfSample {
            pid: 12,
            time: 40,
            address: 1,
            chain: vec![1, 0x40_1234],
            branches: vec![(1, 1, 0); 100],
            ..PerfSample::default()
        };
        for _ in 0..5000 {
            writer.sample(&filler);
        }
        let packed = zstd(writer.records());
        writer.set_records(Vec::new());
        for piece in packed.chunks(1001) {
            let mut body = Vec::new();
            if kind == 83 {
                let len = piece.len() as u64;
                body.extend(match endian {
                    Endian::Little => len.to_le_bytes(),
                    Endian::Big => len.to_be_bytes(),
                });
            }
            body.extend(piece);
            if kind == 83 {
                body.resize(body.len().next_multiple_of(8), 0);
            }
            writer.record(kind, 0, &body);
        }
        let file = writer.file();
        let recording = Recording::open(&file).expect("a recording");
        assert!(recording.is_compressed());
        assert_eq!(recording.losses(), &profkit_perf::Losses::default());
        let figures = recording.figures();
        let samples: u64 = figures.events.iter().map(|event| event.samples).sum();
        assert_eq!(samples, 5006, "{kind}");
        // If the compressed stream is cut, the records before the cut are read.
        let mut cut = writer.clone();
        cut.set_records(writer.records()[..writer.records().len() / 2 / 1016 * 1016].to_vec());
        let file = cut.file();
        let recording = Recording::open(&file).expect("a recording");
        assert!(recording.losses().compression.is_some() || recording.losses().cut_at.is_some());
        assert!(recording.figures().events[0].samples > 0 && !story.is_empty());
    }
}

/// Returns the number of samples and the losses of a recording as text, or the error.
fn losses(bytes: &[u8]) -> String {
    match Recording::open(bytes) {
        Err(error) => format!("error: {error}"),
        Ok(recording) => {
            let figures = recording.figures();
            let samples: u64 = figures.events.iter().map(|event| event.samples).sum();
            let losses = format!("{:?}", figures.losses);
            let found: Vec<&str> = losses
                .trim_start_matches("Losses { ")
                .trim_end_matches(" }")
                .split(", ")
                .filter(|field| {
                    !field.ends_with(": 0") && !field.ends_with("None") && !field.ends_with("false")
                })
                .collect();
            format!("{samples} samples; {}", found.join(", "))
        }
    }
}

#[test]
fn damage_costs_the_damaged_records_only() {
    let writer = story(Endian::Little);
    let sound = writer.file();
    assert_eq!(losses(&sound), "6 samples; ");
    let data = usize::try_from(u64::from_le_bytes(
        *sound[40..].first_chunk().expect("a header"),
    ))
    .expect("small");

    // The file ends within the last record. The table of feature sections, which comes after the records, is missing
    // too.
    let end = data + writer.records().len();
    assert_eq!(
        losses(&sound[..end - 4]),
        format!("5 samples; cut_at: Some({})", end - 160)
    );
    // perf was killed: the header does not state the size of the records, and there are no feature sections. The
    // records go on to the end of the file.
    let mut unfinished = sound[..end].to_vec();
    unfinished[48..56].fill(0);
    assert_eq!(losses(&unfinished), "6 samples; unfinished: true");
    // Garbage between two records.
    let mut garbage = story(Endian::Little);
    let before = garbage.records().len();
    let more = garbage.records().to_vec();
    garbage.bytes(&[0; 24]).bytes(&more);
    assert_eq!(
        losses(&garbage.file()),
        format!(
            "12 samples; skipped_bytes: 24, first_skipped: Some({})",
            data + before
        )
    );
    // A branch stack that is larger than its record.
    let mut lying = sound.clone();
    let count = end - 80;
    lying[count..count + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(losses(&lying), "5 samples; damaged_samples: 1");
    // A sample with the id of an event that the recording does not have.
    let mut foreign = sound.clone();
    foreign[end - 152..end - 144].copy_from_slice(&99u64.to_le_bytes());
    assert_eq!(losses(&foreign), "5 samples; unknown_event: 1");
}

#[test]
fn errors_say_what_is_wrong_with_the_header() {
    let sound = story(Endian::Little).file();
    let mut old = sound.clone();
    old[..8].copy_from_slice(b"PERFFILE");
    let mut header = sound.clone();
    header[8] = 20;
    let mut entry = sound.clone();
    entry[16] = 30;
    let mut attr = sound.clone();
    let first = usize::try_from(u64::from_le_bytes(
        *sound[24..].first_chunk().expect("a header"),
    ))
    .expect("small");
    attr[first + 4] = 8;
    let none = PerfWriter::new(Endian::Little, &[], false, false).pipe();
    let list = [
        &old[..],
        &header,
        &entry,
        &attr,
        &none,
        b"PERFILE2",
        b"perf",
        b"",
    ];
    let texts: Vec<String> = list.iter().map(|bytes| losses(bytes)).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    error: header of recording of perf, at offset 0x0: this is a recording of perf's first format, from before Linux 2.6.32
    error: header of recording of perf, at offset 0x8: the size of the header is wrong: found 20, expected 104 for a file, 16 for a pipe
    error: table of events of recording of perf, at offset 0x10: the size of the entries in the table of events is wrong: found 30, expected 80 bytes or more
    error: table of events of recording of perf, at offset 0x7c: an event is too small: found 8, expected 64 bytes or more
    error: table of events of recording of perf: the recording has no event
    error: header of recording of perf, at offset 0x8: the data are too short here: found 0 bytes left, expected 8 bytes
    error: header of recording of perf, at offset 0x0: this is no recording of perf: expected PERFILE2 or 2ELIFREP
    error: the file is empty
    ");
}

#[test]
fn no_damage_panics_or_makes_samples() {
    let sound = story(Endian::Big).file();
    let mut random = Rng::new(5);
    for _ in 0..2000 {
        let mut bytes = sound.clone();
        mutate(&mut bytes, &sound, &mut random);
        if let Ok(recording) = Recording::open(&bytes) {
            let figures = recording.figures();
            let samples: u64 = figures.events.iter().map(|event| event.samples).sum();
            assert!(samples <= 12, "{samples}");
        }
    }
}

/// Small files that would cost much memory or time without limits.
#[test]
fn hostile_processes_cost_little() {
    // Many mappings, each of which covers the whole range of many earlier mappings.
    let mut covers = PerfWriter::new(Endian::Little, &["cycles"], false, false);
    for page in 0..10_000 {
        covers.mmap(
            1,
            1,
            page << 12,
            4096,
            0,
            if page % 2 == 0 { "/a" } else { "/b" },
        );
    }
    for _ in 0..7_000 {
        covers.mmap(1, 2, 0, 10_000 << 12, 0, "//anon");
    }
    let bytes = covers.file();
    let recording = Recording::open(&bytes).expect("a recording");
    assert!(recording.losses().mappings_over_limit > 0);

    // A process with a long name, which each of its many children inherits, and which starts very many programs one
    // after the other.
    let mut names = PerfWriter::new(Endian::Little, &["cycles"], false, false);
    names.comm(1, 1, &"x".repeat(60_000), true);
    for child in 2..100_000 {
        names.fork(child, 1, 2).comm(1, 3, "y", true);
        names.sample(&PerfSample {
            pid: 1,
            time: 1,
            ..PerfSample::default()
        });
    }
    let bytes = names.file();
    let recording = Recording::open(&bytes).expect("a recording");
    assert_eq!(recording.figures().processes[0].name.len(), 64);
    let name = recording.processes().name(77, Some(9)).map(<[u8]>::len);
    assert_eq!(name, Some(64));
}

#[test]
fn pieces_of_hardware_traces_are_counted_and_passed_over() {
    for endian in ORDERS {
        let mut writer = story(endian);
        let number = |value: u64| match endian {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
        // The first three fields of the body are the size of the data that follow the record, an offset and a
        // reference. The reader does not use the last two fields (processor and thread).
        let body = [number(24), number(0), number(0), [0; 8], [0; 8]].concat();
        for _ in 0..2 {
            writer.record(71, 0, &body).bytes(&[0xff; 24]);
        }
        let samples = lines(&story(endian).file());
        assert_eq!(lines(&writer.file()), samples);
        for bytes in [writer.file(), writer.pipe()] {
            let recording = Recording::open(&bytes).expect("a recording");
            assert_eq!(recording.losses().traces, 2);
            assert_eq!(recording.losses().skipped_bytes, 0);
        }
    }
}
