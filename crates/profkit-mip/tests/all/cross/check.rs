//! Checks one program in one mode: compares the records of a run with the instructions that qemu logged.
use super::super::inferred::Lists;
use super::machine::{Build, Machine, Tools, source};
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::{edge_table, map_entry, mode, record, section};
use profkit_data::mip::sampled_calls_record;
use profkit_mip::instrument::{Counter, Mode, Options, instrument};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

#[derive(Debug)]
struct Entry {
    name: String,
    flags: u16,
    record: u64,
    function: u64,
    size: u64,
    blocks: Vec<u64>,
    lists: Lists,
}

fn map(program: &object::File<'_>) -> (Vec<Entry>, u64) {
    let data = program
        .section_by_name(section::MAP)
        .unwrap()
        .data()
        .unwrap();
    let word = |at: usize| u64::from(u32::from_le_bytes(data[at..at + 4].try_into().unwrap()));
    let long = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let (mut entries, mut start, mut at) = (Vec::new(), None, 0);
    while at < data.len() {
        let flags = word(at + map_entry::MODE) as u16;
        let blocks = word(at + map_entry::BLOCK_COUNT) as usize;
        let name_length = word(at + map_entry::NAME_LENGTH) as usize;
        let blocks_at = at + map_entry::FIXED_SIZE;
        let lists_at = blocks_at + blocks * map_entry::BLOCK_OFFSET_SIZE;
        let (lists, lists_size) = Lists::read(&data[lists_at..], blocks, flags);
        let name_at = lists_at + lists_size;
        let entry = Entry {
            name: String::from_utf8_lossy(&data[name_at..name_at + name_length]).into_owned(),
            flags,
            record: long(at + map_entry::RECORD_ADDRESS),
            function: long(at + map_entry::FUNCTION_ADDRESS),
            size: word(at + map_entry::FUNCTION_SIZE),
            blocks: (0..blocks)
                .map(|block| word(blocks_at + block * map_entry::BLOCK_OFFSET_SIZE))
                .collect(),
            lists,
        };
        if flags == mode::ANCHOR {
            assert_eq!(start.replace(entry.record), None);
        } else {
            entries.push(entry);
        }
        let size = word(at + map_entry::ENTRY_SIZE) as usize;
        assert!(size > 0 && size.is_multiple_of(map_entry::ALIGN));
        at += size;
    }
    (entries, start.unwrap())
}

fn executed(log: &Path) -> HashMap<u64, (u32, usize)> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut executed: HashMap<u64, (u32, usize)> = HashMap::new();
    for (time, line) in text.lines().enumerate() {
        // A line of the log has the form `Trace 0: HOST [FLAGS/ADDRESS/…] symbol`.
        let Some(address) = line.split('/').nth(1) else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        executed.entry(address).or_insert((0, time)).0 += 1;
    }
    executed
}

/// The accepted reasons why a function got no probe, or no block probes.
const EXPECTED_SKIPS: &[&str] = &[];

/// Returns the numbers of functions and of blocks with a probe.
pub fn check(build: &Build<'_>, options: &Options) -> (usize, usize) {
    let assembly = build.assembly();
    let texts: Vec<&[u8]> = assembly.iter().map(Vec::as_slice).collect();
    let plain = build.link(&texts, "plain");
    let records_file = build.folder.join("records");
    let expected = build.machine.run(&plain, &records_file, None);
    let mut functions = 0;
    let mut texts = Vec::new();
    for (assembly, source) in assembly.iter().zip(build.sources) {
        let name = source.display().to_string();
        let made = instrument(assembly, &name, Some(build.machine.target), options).unwrap();
        for skipped in &made.skipped {
            let reason = skipped.reason.to_string();
            assert!(
                EXPECTED_SKIPS.iter().any(|known| reason.contains(known)),
                "{}: {reason}",
                skipped.name
            );
        }
        let detected = instrument(assembly, &name, None, options).unwrap();
        assert_eq!(made.text, detected.text, "the target was not detected");
        functions += made.functions;
        texts.push(made.text);
    }
    let texts: Vec<&[u8]> = texts.iter().map(|text| &**text).collect();
    let program = build.link(&texts, "instrumented");

    let bytes = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let text_range = text.address()..text.address() + text.size();
    let is_fixed = file.kind() == object::ObjectKind::Executable;
    let log = build.folder.join("log");
    let logged = is_fixed.then_some((&*log, text_range.clone()));
    let output = build.machine.run(&program, &records_file, logged);
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(&expected)
    );
    let (entries, start) = map(&file);
    // Parts have entries too. There are fewer than functions only if the linker drops some.
    let drops = build.link.contains(&"-Wl,--gc-sections");
    assert!(!entries.is_empty() && (drops || entries.len() >= functions));
    let records = std::fs::read(&records_file).unwrap();
    if !is_fixed {
        assert!(records.contains(&0));
        return (entries.len(), 0);
    }

    let executed = executed(&log);
    let mut failures = String::new();
    let mut first_calls = Vec::new();
    let mut used = 0;
    for entry in &entries {
        assert!(
            entry.size > 0 && text_range.contains(&(entry.function + entry.size - 1)),
            "{entry:?}"
        );
        assert_eq!(entry.flags & !mode::INFERRED, options.flags());
        assert!(!options.all_blocks || entry.flags & mode::INFERRED == 0);
        let at = (entry.record - start) as usize;
        let covered = entry.lists.ran(&records[at..], options.entry_size());
        let ran = executed.get(&entry.function);
        let calls = ran.map_or(0, |(count, _)| *count);
        let word = |at: usize| u32::from_le_bytes(records[at..at + 4].try_into().unwrap());
        let recorded = match options.mode {
            Mode::Function(Counter::Store) => {
                assert!(
                    [record::COVERED_BYTE, record::INITIAL_BYTE].contains(&records[at]),
                    "{entry:?}"
                );
                assert!(entry.lists.has_entry() || records[at] == record::INITIAL_BYTE);
                u32::from(covered[0]) * calls.max(1)
            }
            Mode::Function(Counter::Unary) => {
                let told = record::UNARY_MAX - records[at].count_ones();
                if told == record::UNARY_MAX {
                    calls.max(told)
                } else {
                    told
                }
            }
            Mode::Calls { .. } => {
                if let Some((_, time)) = ran {
                    first_calls.push((*time, word(at + record::ORDINAL_OFFSET), &entry.name));
                } else {
                    assert_eq!(word(at + record::ORDINAL_OFFSET), record::INITIAL_WORD);
                }
                if let Mode::Calls {
                    return_addresses: Some(_),
                } = options.mode
                {
                    calls_of_sampled(&records[at..])
                } else {
                    word(at + record::COUNT_OFFSET).wrapping_add(1)
                }
            }
        };
        if recorded != calls {
            let _ = writeln!(
                failures,
                "{}: {calls} calls, recorded {recorded}",
                entry.name
            );
        }
        for (number, block) in entry.blocks.iter().enumerate() {
            let ran = executed.contains_key(&(entry.function + block));
            if ran != covered[number + 1] {
                let _ = writeln!(
                    failures,
                    "{}: block {number} at {block:#x}: ran {ran}, {:?}",
                    entry.name, entry.lists
                );
            }
        }
        used = used.max(at + options.entry_size() + entry.lists.recorded() * record::BLOCK_SIZE);
    }
    first_calls.sort_unstable();
    for (ordinal, (_, recorded, name)) in (record::FIRST_ORDINAL..).zip(&first_calls) {
        if ordinal != *recorded {
            let _ = writeln!(
                failures,
                "{name}: first call has ordinal {recorded}, not {ordinal}"
            );
        }
    }
    assert_eq!(failures, "");
    if let Mode::Calls {
        return_addresses: Some(slots),
    } = options.mode
    {
        let table = &records[used.next_multiple_of(record::SAMPLED_CALLS_ALIGN)..];
        let calls = |record: u64| calls_of_sampled(&records[(record - start) as usize..]);
        check_table(table, slots, start, &entries, &bytes, &text, &calls);
    }
    (
        entries.len(),
        entries.iter().map(|entry| entry.blocks.len()).sum(),
    )
}

fn calls_of_sampled(record: &[u8]) -> u32 {
    let calls = sampled_calls_record(record.first_chunk().unwrap()).calls;
    u32::try_from(calls).unwrap()
}

/// The calls from each place to each function are in the table. Their number is exact, unless a function was called so
/// often that not all of its calls are sampled.
fn check_table(
    table: &[u8],
    slots: u32,
    start: u64,
    entries: &[Entry],
    program: &[u8],
    text: &object::Section<'_, '_>,
    calls: &dyn Fn(u64) -> u32,
) {
    let (table, rest) = table.as_chunks::<{ edge_table::SLOT_SIZE }>();
    assert!(rest.is_empty());
    assert_eq!(table.len(), slots as usize + edge_table::HEAD_ENTRIES);
    let (file_at, _) = text.file_range().unwrap();
    let mut inside = 0;
    let mut sums: HashMap<u64, u64> = HashMap::new();
    let word = |slot: &[u8], at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().unwrap());
    let weight =
        |slot: &[u8]| u64::from_le_bytes(slot[edge_table::WEIGHT_OFFSET..].try_into().unwrap());
    assert_eq!(word(&table[0], edge_table::RETURN_OFFSET), 0);
    assert_eq!(
        word(&table[0], edge_table::LOCK_OFFSET),
        0,
        "the table is not locked"
    );
    let lost = weight(&table[1]);
    for slot in &table[edge_table::HEAD_ENTRIES..] {
        if word(slot, edge_table::RETURN_OFFSET) == 0 {
            continue;
        }
        let callee = start + u64::from(word(slot, edge_table::RECORD_OFFSET));
        assert!(entries.iter().any(|entry| entry.record == callee));
        *sums.entry(callee).or_default() += weight(slot);
        let back =
            start.wrapping_add_signed(i64::from(word(slot, edge_table::RETURN_OFFSET) as i32));
        // If the function is a callback, the return address may be in a library. It is not checked.
        if !(text.address()..text.address() + text.size()).contains(&back) {
            continue;
        }
        let at = (file_at + back - text.address() - 4) as usize;
        let instruction = u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
        let is_call = instruction >> 26 == 0b10_0101 || instruction & 0xffff_fc1f == 0xd63f_0000;
        assert!(is_call, "{back:#x}: {instruction:#x}");
        inside += 1;
    }
    assert!(inside > 8, "{inside}");
    let all: u64 = sums.values().sum::<u64>() + lost;
    let counted: u64 = entries
        .iter()
        .map(|entry| u64::from(calls(entry.record)))
        .sum();
    // The last sample of a function may stand for calls that were not made any more.
    assert!(
        (counted..=counted + counted / 500).contains(&all),
        "{all} of {counted} calls"
    );
    if lost == 0 {
        for entry in entries {
            let (sum, calls) = (
                sums.get(&entry.record).copied().unwrap_or(0),
                calls(entry.record),
            );
            let exact = u64::from(calls) < 1 << edge_table::PERIOD_SHIFT;
            assert!(
                sum == u64::from(calls) || !exact,
                "{entry:?}: {sum} of {calls}"
            );
        }
    }
}

pub fn options(mode: Mode, blocks: bool) -> Options {
    let mut options = Options::default();
    options.mode = mode;
    options.blocks = blocks;
    options
}

pub const STORE: Mode = Mode::Function(Counter::Store);
pub const UNARY: Mode = Mode::Function(Counter::Unary);
pub const CALLS: Mode = Mode::Calls {
    return_addresses: None,
};

/// Tools, source file, options of compiler and linker, mode, whether blocks are recorded.
type Case<'c> = (Tools, &'c str, &'c [&'c str], &'c [&'c str], Mode, bool);

/// Checks a list of builds, or a sample. Returns the functions and blocks with probes if all were checked.
pub fn check_all(machine: &Machine, builds: &[Case<'_>]) -> Option<(usize, usize)> {
    let mut sum = (0, 0);
    let mut all = profkit_testkit::is_slow();
    for (tools, source, compile, link, mode, blocks) in profkit_testkit::some_or_all(builds, 3) {
        let sources = [self::source(source)];
        if let Err(missing) = machine.works(*tools, &sources) {
            profkit_testkit::skip(&missing);
            all = false;
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let build = Build {
            machine,
            tools: *tools,
            options: compile,
            link,
            sources: &sources,
            folder: folder.path(),
        };
        let name = match tools {
            Tools::Clang(release) => format!("clang {release}"),
            Tools::Gcc => "gcc".to_owned(),
        };
        eprintln!("{source}: {name} {compile:?} {link:?} {mode:?} blocks: {blocks}");
        let (functions, blocks) = check(&build, &options(*mode, *blocks));
        sum = (sum.0 + functions, sum.1 + blocks);
    }
    all.then_some(sum)
}

/// Links the program at a fixed address, so that the addresses in qemu's log are those of the map.
pub const FIXED: &[&str] = &["-no-pie"];
