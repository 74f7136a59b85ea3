use super::numbers::put;
use super::*;
use crate::sample::{ReadReport, SampleProfile, text};
use crate::{ErrorKind, Result};
use std::fmt::Write as _;

const TEXT: &str = "\
main:184019:0
 4: 534
 4.2: 534
 9: 2064 _Z3bari:1471 _Z3fooi:631
 10: inline1:1000
  1: 1000
 10: inline2:2000
  1: 2000
  3: inline3:4
_Z3bari:20301:1437
 1: 1437
";

fn profile(source: &str) -> SampleProfile {
    let mut profile = SampleProfile::new();
    assert_eq!(text::read(source.as_bytes(), &mut profile, 1).faults, []);
    profile
}

fn as_text(profile: &SampleProfile) -> String {
    let mut out = Vec::new();
    text::write(profile, &text::TextOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn binary() -> Vec<u8> {
    let mut file = Vec::new();
    assert!(write(&profile(TEXT), &mut file).unwrap().is_empty());
    file
}

fn compact() -> Vec<u8> {
    let mut file = Vec::new();
    let losses = write_compact(&profile(TEXT), &mut file).unwrap();
    assert_eq!(losses.names, 6);
    file
}

type Reader = fn(&[u8], &mut SampleProfile, u64) -> Result<ReadReport>;

fn attempt(reader: Reader, file: &[u8]) -> (SampleProfile, Result<ReadReport>) {
    let mut profile = SampleProfile::new();
    let report = reader(file, &mut profile, 1);
    (profile, report)
}

fn find(file: &[u8], bytes: &[u8]) -> usize {
    memchr::memmem::find(file, bytes).unwrap()
}

#[test]
fn binary_files_come_back() {
    let (found, report) = attempt(read, &binary());
    let report = report.unwrap();
    assert_eq!((report.functions, report.faults.len()), (2, 0));
    assert_eq!(report.summary, Some(crate::sample::summarize(&found)));
    assert_eq!(as_text(&found), TEXT);
}

#[test]
fn compact_files_come_back_with_hashes() {
    let (found, report) = attempt(read_compact, &compact());
    assert_eq!(report.unwrap().faults, []);
    let first = as_text(&found);
    assert!(
        first.starts_with("15822663052811949562:184019:0\n 4: 534\n"),
        "{first}"
    );
    let mut again = Vec::new();
    write_compact(&found, &mut again).unwrap();
    let (found, _) = attempt(read_compact, &again);
    assert_eq!(as_text(&found), first);
}

#[test]
fn files_of_llvm_3_6_and_3_8_are_read() {
    let mut file = Vec::new();
    put(&mut file, 0x5350_524f_4634_32ff);
    put(&mut file, 100);
    file.extend_from_slice(b"main\0\x0a\x02\x01\x03\x01\x07\x01callee\0\x05");
    let (found, report) = attempt(read, &file);
    assert_eq!(report.unwrap().faults, []);
    assert_eq!(as_text(&found), "main:10:2\n 3.1: 7 callee:5\n");

    // A file of version 102 is like one of version 103 without the summary.
    let new = binary();
    let names = find(&new, b"\x06_Z3bari\0");
    let mut old = new[..9].to_vec();
    old.push(102);
    old.extend_from_slice(&new[names..]);
    let (found, report) = attempt(read, &old);
    assert_eq!(report.unwrap().summary, None);
    assert_eq!(as_text(&found), as_text(&attempt(read, &new).0));
}

/// Makes a function whose inlined functions nest more deeply than allowed.
fn deep_function() -> Vec<u8> {
    let mut body = b"\x00\x01\x05\x00".to_vec();
    for _ in 0..600 {
        body.extend_from_slice(b"\x01\x01\x00\x01\x05\x00");
    }
    body.push(0);
    body
}

/// A ULEB128 number may have superfluous bytes at its end that do not change its value. Such bytes are no error, as in
/// LLVM.
#[test]
fn padded_numbers_are_read() {
    let good = binary();
    let names = find(&good, b"\x06_Z3bari\0");
    let mut file = good.clone();
    file.splice(
        names..=names,
        b"\x86\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"
            .iter()
            .copied(),
    );
    let (found, report) = attempt(read, &file);
    assert_eq!(report.unwrap().faults, []);
    assert_eq!(as_text(&found), TEXT);
}

#[test]
fn each_damage_has_its_message() {
    let mut messages = String::new();
    let mut say = |what: &str, reader: Reader, file: &[u8], kept: u64| {
        let (_, report) = attempt(reader, file);
        match report {
            Err(error) => {
                let _ = writeln!(messages, "{what}: {error}");
            }
            Ok(report) => {
                assert_eq!(report.functions, kept, "{what}");
                assert!(report.fault_count > 0, "{what}");
                let _ = writeln!(messages, "{what}: {}", report.faults[0]);
            }
        }
    };
    let good = binary();
    say("empty", read, b"", 0);
    say("text", read, TEXT.as_bytes(), 0);
    say("compact for binary", read, &compact(), 0);
    let mut version = good.clone();
    version[9] = 101;
    say("version 101", read, &version, 0);
    say("cut summary", read, &good[..20], 0);
    let names = find(&good, b"\x06_Z3bari\0");
    say("cut names", read, &good[..names + 4], 0);
    let mut more = good.clone();
    more[names] = 0x7f;
    say("too few names", read, &more[..names + 40], 0);
    more[names - 1 - 2] = 0xff;
    say("cut in a function", read, &good[..good.len() - 1], 1);
    let functions = find(&good, b"inline3\0") + 12;
    let functions = find(&good[functions - 12..], b"main\0") + functions - 12 + 5;
    let mut replaced = |what: &str, at: usize, len: usize, by: &[u8], kept| {
        let mut file = good.clone();
        file.splice(at..at + len, by.iter().copied());
        say(what, read, &file, kept);
    };
    // The bytes of the function: entry count, name, total (3 bytes), then lines. A line has its line number,
    // discriminator, samples (2 bytes) and calls.
    replaced("name beyond the table", functions + 1, 1, b"\x63", 0);
    replaced("lines beyond the file", functions + 5, 1, b"\xff\x7f", 0);
    replaced("line above 65535", functions + 6, 1, b"\x80\x80\x04", 0);
    replaced(
        "discriminator of 33 bits",
        functions + 7,
        1,
        b"\x80\x80\x80\x80\x10",
        0,
    );
    replaced("calls beyond the file", functions + 10, 1, b"\xff\x01", 0);
    replaced(
        "number of 65 bits",
        functions + 2,
        3,
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        0,
    );
    let mut in_place = Vec::new();
    put(&mut in_place, 0x5350_524f_4634_32ff);
    put(&mut in_place, 100);
    in_place.extend_from_slice(b"main");
    say("name without end, version 100", read, &in_place, 0);

    let mut deep = good[..functions].to_vec();
    deep.extend_from_slice(&deep_function());
    say("inlined too deep", read, &deep, 0);

    let good = compact();
    let field = good.len() - 1;
    let place = (0..good.len() - 8)
        .find(|&at| {
            let word = u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
            word > at as u64 && word < field as u64
        })
        .unwrap();
    let table = usize::from(good[place]) | usize::from(good[place + 1]) << 8;
    let mut file = good.clone();
    file[place + 2] = 1;
    say("function table beyond the file", read_compact, &file, 2);
    let mut file = good.clone();
    file[table] = 0x7f;
    say("table claims too many functions", read_compact, &file, 2);
    let mut file = good.clone();
    file[table + 2] = 1;
    file[table + 3] = 0;
    say(
        "function offset before the functions",
        read_compact,
        &file,
        2,
    );
    let mut file = good.clone();
    file[place + 8 + 1] = 0x63;
    say("damaged first function", read_compact, &file, 1);
    say("cut table of hashes", read_compact, &good[..place - 20], 0);
    let mut replaced = |what: &str, at: usize, len: usize, by: &[u8]| {
        let mut file = good.clone();
        // The length of the file does not change, so the table of offsets still refers to the next function.
        file[at..at + len].copy_from_slice(by);
        say(what, read_compact, &file, 1);
    };
    // The bytes of the function: entry count, name, total (3 bytes), then lines.
    let first = place + 8;
    replaced("lines beyond the file, compact", first + 5, 1, b"\x7f");
    let too_long = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    replaced("number of 65 bits, compact", first + 2, 10, too_long);
    let mut deep = good[..place].to_vec();
    let body = deep_function();
    deep.extend_from_slice(&((first + body.len()) as u64).to_le_bytes());
    deep.extend_from_slice(&body);
    deep.push(0);
    say("inlined too deep, compact", read_compact, &deep, 0);
    insta::assert_snapshot!(messages);
}

#[test]
fn contexts_and_probes_are_refused() {
    for source in ["[a:1 @ b]:1:1\n 1: 1\n", "b:1:1\n 1: 1\n !CFGChecksum: 7\n"] {
        let error = write(&profile(source), &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotRepresent);
        assert!(write_compact(&profile(source), &mut Vec::new()).is_err());
    }
}
