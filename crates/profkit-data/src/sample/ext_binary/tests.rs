use super::*;
use crate::ErrorKind;
use crate::sample::{FsPass, ProfileKind, ReadReport, SampleProfile, SampleReadOptions, text};
use profkit_abi::sample::{flag, section};
use std::fmt::Write as _;

const NESTED: &str = "\
main:184019:0
 4: 534
 9: 2064 _Z3bari:1471 _Z3fooi:631
 10: inline1:1000
  1: 1000
  3: inline2:4
   1: 4
  3: vtables _ZTVa:5 
_Z3bari:20301:1437
 1: 1437
_Z3bazi:301:14
 1: 137
";
const CONTEXTS: &str = "\
[main:3.1 @ _Z5funcAi:1 @ leaf]:20:11
 0: 6
 !CFGChecksum: 138950591924
 !Attributes: 3
[main:3.1 @ leaf]:9:4
 1: 9
 !CFGChecksum: 138950591924
[main]:7:1
 1: 7 leaf:7
 !CFGChecksum: 844635331715433
";
const PROBES: &str = "\
main:30:1
 1: 7
 2: leaf:20
  1: 3
  4: inner:17
   1: 17
   !CFGChecksum: 3
   !Attributes: 1
  !CFGChecksum: 2
  !Attributes: 3
 !CFGChecksum: 1
";

fn profile(source: &str) -> SampleProfile {
    let mut profile = SampleProfile::new();
    assert_eq!(text::read(source.as_bytes(), &mut profile, 1).faults, []);
    for symbol in [b"main", b"zero"] {
        profile.symbols.insert(symbol.as_slice().into());
    }
    profile
}

fn encoded(source: &str, options: ExtBinaryOptions) -> Vec<u8> {
    let mut file = Vec::new();
    write(&profile(source), &options, &mut file).unwrap();
    file
}

fn decoded(file: &[u8]) -> (SampleProfile, ReadReport) {
    let mut profile = SampleProfile::new();
    let report = ExtBinaryProfile::parse(file).unwrap().read(&mut profile, 1);
    (profile, report)
}

fn as_text(profile: &SampleProfile) -> String {
    let mut out = Vec::new();
    text::write(profile, &text::TextOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn options() -> ExtBinaryOptions {
    ExtBinaryOptions::default().vtables(true)
}

#[test]
fn every_layout_comes_back() {
    for source in [NESTED, CONTEXTS, PROBES] {
        for compress in [false, true] {
            for split in [false, true] {
                if split && source == CONTEXTS {
                    continue;
                }
                let options = options().compress(compress).split_layout(split);
                let (found, report) = decoded(&encoded(source, options));
                assert_eq!(report.faults, []);
                assert_eq!(as_text(&found), source);
                assert_eq!(found.symbols, profile(source).symbols);
                assert_eq!(report.summary, Some(crate::sample::summarize(&found)));
                let mut again = Vec::new();
                write(&found, &options, &mut again).unwrap();
                assert_eq!(again, encoded(source, options));
            }
        }
    }
}

#[test]
fn of_repeated_vtables_the_first_counts() {
    let source = "f:9:1\n 1: 9\n 2.3: vtables v:5 \n 2.4: vtables v:9 w:1 \n";
    let mut file = encoded(source, options());
    // The second location with vtables has line 2, discriminator 4 and two vtables.
    let at = file.windows(3).position(|bytes| bytes == [2, 4, 2]);
    file[at.unwrap() + 1] = 3;
    let (found, report) = decoded(&file);
    assert_eq!(report.faults, []);
    assert_eq!(as_text(&found), "f:9:1\n 1: 9\n 2.3: vtables v:5 w:1 \n");
}

#[test]
fn discriminators_are_cut_in_profiles_of_fs_afdo() {
    let source =
        "f:9:1\n 2.3: 9 g:1\n 2.259: 9 g:2\n 2.40000: i:5\n  1.511: 5\n 2.64: i:1\n  1.255: 1\n";
    let read = |kind, pass| {
        let mut profile = profile(source);
        profile.kind |= kind;
        let mut file = Vec::new();
        write(&profile, &options(), &mut file).unwrap();
        let options = SampleReadOptions::new().fs_pass(pass);
        let opened = ExtBinaryProfile::parse_with(&file, &options).unwrap();
        let (mut all, mut some) = (SampleProfile::new(), SampleProfile::new());
        assert_eq!(opened.read(&mut all, 1).faults, []);
        assert_eq!(opened.read_functions(&[b"f"], &mut some).faults, []);
        assert_eq!(as_text(&all), as_text(&some));
        as_text(&all)
    };
    let fs = ProfileKind::FS_DISCRIMINATORS;
    assert_eq!(
        FsPass::ALL.map(FsPass::mask),
        [0xff, 0x3fff, 0xf_ffff, 0x3ff_ffff, u32::MAX]
    );
    assert_eq!(
        read(fs, FsPass::Base),
        "f:9:1\n 2.3: 18 g:3\n 2.64: i:6\n  1.255: 6\n"
    );
    assert_eq!(
        read(fs, FsPass::Pass1),
        "f:9:1\n 2.3: 9 g:1\n 2.259: 9 g:2\n 2.64: i:1\n  1.255: 1\n 2.7232: i:5\n  1.511: 5\n"
    );
    let whole = read(fs, FsPass::Last);
    for (kind, pass) in [
        (fs, FsPass::Pass2),
        (fs, FsPass::Pass3),
        (ProfileKind::NONE, FsPass::Base),
    ] {
        assert_eq!(read(kind, pass), whole);
    }
}

#[test]
fn hashes_come_back_and_spelled_they_are_digits() {
    let file = encoded(NESTED, options().md5_names(true));
    let (found, report) = decoded(&file);
    assert_eq!(report.faults, []);
    let hashed = as_text(&found);
    assert!(
        hashed.starts_with("15822663052811949562:184019:0\n 4: 534\n"),
        "{hashed}"
    );
    let mut again = Vec::new();
    write(&found, &options(), &mut again).unwrap();
    assert_eq!(as_text(&decoded(&again).0), hashed);
    let mut one = SampleProfile::new();
    let report = ExtBinaryProfile::parse(&file)
        .unwrap()
        .read_functions(&[b"main"], &mut one);
    assert_eq!(
        (report.functions, one.functions()[0].samples.total),
        (1, 184_019)
    );
}

#[test]
fn what_is_left_out_is_counted() {
    let losses = write(
        &profile(NESTED),
        &ExtBinaryOptions::default(),
        &mut Vec::new(),
    )
    .unwrap();
    assert_eq!(losses.vtables, 1);
    let hashed = ExtBinaryOptions::default().md5_names(true);
    let losses = write(&profile(NESTED), &hashed, &mut Vec::new()).unwrap();
    assert_eq!(losses.names, 6);
    let error = write(
        &profile(CONTEXTS),
        &ExtBinaryOptions::default().split_layout(true),
        &mut Vec::new(),
    )
    .unwrap_err();
    insta::assert_snapshot!(error, @"the split layout has no section for calling contexts");
}

#[test]
fn single_functions_are_found_by_name() {
    for split in [false, true] {
        let file = encoded(NESTED, options().split_layout(split));
        let opened = ExtBinaryProfile::parse(&file).unwrap();
        let mut found = SampleProfile::new();
        let report = opened.read_functions(&[b"_Z3bari", b"inline1", b"none"], &mut found);
        assert_eq!(report.faults, []);
        assert_eq!(as_text(&found), "_Z3bari:20301:1437\n 1: 1437\n");
        assert_eq!(found.names.len(), 1);
    }
    let file = encoded(CONTEXTS, options());
    let mut found = SampleProfile::new();
    let report = ExtBinaryProfile::parse(&file)
        .unwrap()
        .read_functions(&[b"leaf"], &mut found);
    assert_eq!(report.functions, 2);
    assert_eq!(as_text(&found), CONTEXTS.split("[main]").next().unwrap());
}

fn with_section(file: &[u8], kind: u64, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let opened = ExtBinaryProfile::parse(file).unwrap();
    let index = opened
        .sections()
        .iter()
        .position(|section| section.kind == kind)
        .unwrap();
    let section = opened.sections()[index];
    let start = usize::try_from(section.offset).unwrap();
    let size = usize::try_from(section.size).unwrap();
    let mut bytes = file[start..start + size].to_vec();
    change(&mut bytes);
    // The changed section is appended at the end of the file, so the offsets of the other sections stay valid.
    let mut changed = file.to_vec();
    let entry = 18 + 32 * index;
    changed[entry + 16..entry + 24].copy_from_slice(&(file.len() as u64).to_le_bytes());
    changed[entry + 24..entry + 32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    changed.extend_from_slice(&bytes);
    changed
}

#[test]
fn single_functions_are_found_without_a_sound_table_and_counted_once() {
    let file = encoded(NESTED, options());
    let find = |file: &[u8]| {
        let mut found = SampleProfile::new();
        let opened = ExtBinaryProfile::parse(file).unwrap();
        let report = opened.read_functions(&[b"_Z3bari"], &mut found);
        let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        (as_text(&found), faults.join("\n"))
    };
    let alone = "_Z3bari:20301:1437\n 1: 1437\n";
    let emptied = with_section(&file, section::FUNCTION_OFFSETS, Vec::clear);
    let (text, faults) = find(&emptied);
    assert_eq!(text, alone);
    insta::assert_snapshot!(faults, @"FuncOffsetTableSection, at offset 0x1ec: the data are too short here: found 0 bytes left, expected 1 byte");
    let twice = with_section(&file, section::FUNCTION_OFFSETS, |bytes| {
        let pairs = bytes[1..].to_vec();
        bytes[0] *= 2;
        bytes.extend(pairs);
    });
    let (text, faults) = find(&twice);
    assert_eq!(text, alone);
    insta::assert_snapshot!(faults, @"LBRProfileSection, at offset 0x1c1: a function's offset lies within the function before it");
}

#[test]
fn damaged_functions_that_overlap_end_the_section() {
    // At whatever offset reading starts, these bytes are read as inlined functions that nest without end.
    let samples = with_section(&encoded(NESTED, options()), section::SAMPLES, |bytes| {
        *bytes = vec![2; 4000];
    });
    let file = with_section(&samples, section::FUNCTION_OFFSETS, |bytes| {
        *bytes = vec![50];
        bytes.extend((0..50).flat_map(|start| [2, start]));
    });
    let (_, report) = decoded(&file);
    insta::assert_snapshot!(report.faults.last().unwrap(), @"LBRProfileSection, at offset 0x1f4: damaged functions overlap");
    assert!(report.fault_count < 12, "{}", report.fault_count);
}

fn with_flags(file: &[u8], kind: u64, flags: u64) -> Vec<u8> {
    let opened = ExtBinaryProfile::parse(file).unwrap();
    let index = opened
        .sections()
        .iter()
        .position(|section| section.kind == kind)
        .unwrap();
    let mut changed = file.to_vec();
    changed[18 + 32 * index + 8..][..8].copy_from_slice(&flags.to_le_bytes());
    changed
}

#[test]
fn each_damage_is_said_and_the_other_sections_are_read() {
    let mut messages = String::new();
    let mut say = |what: &str, file: &[u8], functions: u64, symbols: usize| {
        let mut profile = SampleProfile::new();
        match ExtBinaryProfile::parse(file) {
            Err(error) => {
                let _ = writeln!(messages, "{what}: {error}");
            }
            Ok(opened) => {
                let report = opened.read(&mut profile, 1);
                assert!(!report.faults.is_empty(), "{what}");
                for fault in &report.faults {
                    let _ = writeln!(messages, "{what}: {fault}");
                }
                let kept = (report.functions, profile.symbols.len());
                assert_eq!(kept, (functions, symbols), "{what}");
            }
        }
    };
    let good = encoded(NESTED, options());
    say("empty", b"", 0, 0);
    let mut version = good.clone();
    version[9] = 106;
    say("version 106", &version, 0, 0);
    say("cut section table", &good[..100], 0, 0);
    let mut sections = good.clone();
    sections[10..18].copy_from_slice(&u64::MAX.to_le_bytes());
    say("too many sections", &sections, 0, 0);

    let change = |kind, change: fn(&mut Vec<u8>)| with_section(&good, kind, change);
    say(
        "cut summary",
        &change(section::SUMMARY, |bytes| bytes.truncate(6)),
        3,
        2,
    );
    say(
        "summary of too many cutoffs",
        &change(section::SUMMARY, |bytes| bytes.truncate(10)),
        3,
        2,
    );
    say(
        "cut names",
        &change(section::NAMES, |bytes| bytes.truncate(12)),
        1,
        2,
    );
    say(
        "names without end",
        &change(section::NAMES, |bytes| bytes[0] = 20),
        3,
        2,
    );
    say(
        "no names",
        &change(section::NAMES, |bytes| bytes.clear()),
        0,
        2,
    );
    say(
        "cut symbols",
        &change(section::SYMBOLS, |bytes| bytes.truncate(7)),
        3,
        1,
    );
    say(
        "cut samples",
        &change(section::SAMPLES, |bytes| bytes.truncate(30)),
        0,
        2,
    );
    // Reading continues at the next function, which the table of offsets locates.
    let damaged = change(section::SAMPLES, |bytes| bytes[1] = 0x63);
    say("damaged first function", &damaged, 2, 2);
    let twice = with_section(&damaged, section::FUNCTION_OFFSETS, |bytes| bytes[0] = 0x7f);
    say("damaged first function and offsets", &twice, 0, 2);
    let beyond = with_section(&damaged, section::FUNCTION_OFFSETS, |bytes| bytes[4] = 0x7f);
    say("offset beyond the samples", &beyond, 0, 2);
    let mut outside = good.clone();
    let entry = 18 + 32 * 4 + 16;
    outside[entry..entry + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    say("samples beyond the file", &outside, 0, 2);
    say(
        "invalid vtables",
        &with_flags(
            &encoded(NESTED, ExtBinaryOptions::default()),
            section::SUMMARY,
            flag::VTABLES,
        ),
        0,
        2,
    );
    say(
        "eytzinger names",
        &with_flags(&good, section::NAMES, flag::EYTZINGER_NAMES),
        0,
        2,
    );
    say(
        "md5 symbols",
        &with_flags(&good, section::SYMBOLS, flag::MD5_SYMBOLS),
        3,
        0,
    );

    let hashed = encoded(NESTED, options().md5_names(true));
    say(
        "cut hashes",
        &with_section(&hashed, section::NAMES, |bytes| bytes.truncate(30)),
        0,
        2,
    );

    let contexts = encoded(CONTEXTS, options());
    let change = |kind, change: fn(&mut Vec<u8>)| with_section(&contexts, kind, change);
    say(
        "cut contexts",
        &change(section::CONTEXTS, |bytes| bytes.truncate(8)),
        1,
        2,
    );
    say(
        "context without frames",
        &change(section::CONTEXTS, |bytes| bytes[1] = 0),
        0,
        2,
    );
    say(
        "context of unknown name",
        &change(section::CONTEXTS, |bytes| bytes[2] = 9),
        0,
        2,
    );
    say(
        "too many contexts",
        &change(section::CONTEXTS, |bytes| bytes[0] = 99),
        0,
        2,
    );
    say(
        "unknown context",
        &change(section::SAMPLES, |bytes| bytes[1] = 9),
        2,
        2,
    );

    let probes = encoded(PROBES, options());
    let change = |change: fn(&mut Vec<u8>)| with_section(&probes, section::METADATA, change);
    say("cut metadata", &change(|bytes| bytes.truncate(5)), 1, 2);
    // The bytes of the metadata entry: name, checksum, attributes, the count of inlined functions (1), then line,
    // discriminator and name of the inlined function.
    say(
        "metadata nest otherwise",
        &change(|bytes| bytes[4] = 9),
        1,
        2,
    );
    say(
        "metadata claim too much",
        &change(|bytes| bytes[3] = 99),
        1,
        2,
    );

    say(
        "metadata nest too deep",
        &change(|bytes| {
            let inner = b"\x01\x02\x00\x00\x07\x00".repeat(600);
            *bytes = [b"\x00\x07\x00".as_slice(), &inner, b"\x00"].concat();
        }),
        1,
        2,
    );

    let alone = with_section(&good, section::FUNCTION_OFFSETS, |bytes| *bytes = vec![0]);
    let change = |change: fn(&mut Vec<u8>)| with_section(&alone, section::SAMPLES, change);
    say(
        "inlined too deep",
        &change(|bytes| {
            let inner = b"\x01\x01\x00\x01\x05\x00".repeat(600);
            *bytes = [b"\x00\x01\x05\x00".as_slice(), &inner, b"\x00\x00"].concat();
        }),
        0,
        2,
    );
    say(
        "lines beyond the section",
        &change(|bytes| bytes[5] = 0x7f),
        0,
        2,
    );
    say(
        "number of 65 bits",
        &change(|bytes| {
            bytes.splice(2..5, *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
        }),
        0,
        2,
    );

    let compressed = encoded(NESTED, options().compress(true));
    let change = |change: fn(&mut Vec<u8>)| with_section(&compressed, section::SAMPLES, change);
    say(
        "damaged zlib stream",
        &change(|bytes| bytes[10] ^= 0xff),
        0,
        2,
    );
    say(
        "wrong compressed size",
        &change(|bytes| bytes[1] += 1),
        0,
        2,
    );
    say(
        "wrong uncompressed size",
        &change(|bytes| bytes[0] += 1),
        0,
        2,
    );
    say(
        "zlib bomb",
        &change(|bytes| {
            bytes.splice(0..1, [0xff, 0xff, 0xff, 0xff, 0x7f]);
        }),
        0,
        2,
    );
    insta::assert_snapshot!(messages);
}

#[test]
fn versions_after_103_are_read_as_far_as_they_are_known() {
    let mut file = encoded(NESTED, options());
    file[9] = 105;
    let (found, report) = decoded(&file);
    assert_eq!(report.faults, []);
    assert_eq!(as_text(&found), NESTED);
    // The reader skips sections of an unknown kind. If such a section may contain samples, the reader also reports it.
    // The list of sections still contains all of them.
    let unknown = 18 + 32 * 4;
    file[unknown] = 40;
    file[18 + 32] = 9;
    let opened = ExtBinaryProfile::parse(&file).unwrap();
    assert_eq!(
        opened
            .sections()
            .iter()
            .filter(|section| !section.is_known())
            .count(),
        2
    );
    let report = opened.read(&mut SampleProfile::new(), 1);
    assert_eq!(report.faults[0].kind(), ErrorKind::Unsupported);
    insta::assert_snapshot!(report.faults[1], @"section table, at offset 0xa: the file has no name table, but has sections of an unknown kind: found version 105");
}

/// If the metadata section ends after the name of a function, LLVM's reader stops without an error and does not change
/// that function.
#[test]
fn with_llvms_checks_metadata_may_end_after_a_name() {
    let probes = encoded(PROBES, options());
    let read = |file: &[u8], llvm| {
        let options = SampleReadOptions::default().llvm_checks(llvm);
        let mut profile = SampleProfile::new();
        let opened = ExtBinaryProfile::parse_with(file, &options).unwrap();
        let report = opened.read(&mut profile, 1);
        (as_text(&profile), report.faults.len())
    };
    let (whole, faults) = read(&probes, true);
    assert_eq!(faults, 0);
    // The section has the whole entry of `main`, and then only the name of `main` once more.
    let again = with_section(&probes, section::METADATA, |bytes| bytes.push(bytes[0]));
    assert_eq!(read(&again, true), (whole.clone(), 0));
    assert_eq!(read(&again, false).1, 1);
    // The entry of `main` up to the name of the function inlined into it: name, checksum, attributes, number of inlined
    // functions, line, discriminator, name.
    let cut = with_section(&probes, section::METADATA, |bytes| bytes.truncate(7));
    let main_only = whole
        .replace(
            "   !CFGChecksum: 3\n   !Attributes: 1\n",
            "   !CFGChecksum: 0\n",
        )
        .replace(
            "  !CFGChecksum: 2\n  !Attributes: 3\n",
            "  !CFGChecksum: 0\n",
        );
    assert_eq!(read(&cut, true), (main_only, 0));
    assert_eq!(read(&cut, false).1, 1);
}
