//! Correlation with damaged and inconsistent binaries: fixtures are changed, and the errors and warnings are compared.
use object::{Object, ObjectSection};
use profkit_data::bytes::Endian;
use profkit_data::instr::raw::{PointerWidth, RawDialect, RecordLayout};
use profkit_object::correlate::binary::{self, Outside, SectionSet};
use profkit_object::correlate::dwarf::{self, DwarfOptions};
use profkit_object::correlate::{Correlated, CorrelationWarnings, CounterSection, machine};
use profkit_testkit::fixture_path;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;

const DIALECT: RawDialect = RawDialect {
    endian: Endian::Little,
    width: PointerWidth::Bits64,
    version: 10,
    flags: 0,
};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(fixture_path(format!("correlation/{name}.image"))).unwrap()
}

/// The range of a section's bytes in the file.
fn section(data: &[u8], name: &str) -> Range<usize> {
    let image = object::File::parse(data).unwrap();
    let (start, len) = image.section_by_name(name).unwrap().file_range().unwrap();
    usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap()
}

fn sections(
    data: &[u8],
    dialect: RawDialect,
    outside: Outside,
) -> profkit_data::Result<Correlated> {
    let image = object::File::parse(data).unwrap();
    let layout = RecordLayout::for_dialect(dialect);
    let (set, warnings) = (SectionSet::Correlation, CorrelationWarnings::default());
    binary::correlate(&image, set, dialect, &layout, outside, warnings)
}

fn debug_info(data: &[u8]) -> profkit_data::Result<Correlated> {
    let image = object::File::parse(data).unwrap();
    let counters = CounterSection::of(&image)?;
    let warnings = CorrelationWarnings::default();
    dwarf::correlate(&image, counters, DwarfOptions::default(), warnings)
}

/// The functions, warnings and error of a correlation, as text.
fn outcome(result: profkit_data::Result<Correlated>) -> String {
    let mut text = match &result {
        Ok(found) => format!("{} functions", found.program.records.len()),
        Err(error) => format!("error: {error}"),
    };
    if let Ok(found) = &result {
        for warning in &found.warnings.list {
            write!(text, "; warning: {warning}").unwrap();
        }
    }
    text
}

#[test]
fn fixtures_are_whole() {
    for name in ["elf-binary", "s390x-binary", "pe", "macho"] {
        let data = fixture(name);
        let (endian, width) = machine(&object::File::parse(&*data).unwrap());
        let dialect = RawDialect {
            endian,
            width,
            ..DIALECT
        };
        let found = sections(&data, dialect, Outside::Keep).unwrap();
        assert_eq!(
            (found.program.records.len(), found.warnings.count()),
            (2, 0),
            "{name}"
        );
    }
    for name in ["elf-debug-info", "powerpc-debug-info"] {
        let found = debug_info(&fixture(name)).unwrap();
        assert_eq!(
            (found.program.records.len(), found.warnings.count()),
            (2, 0),
            "{name}"
        );
    }
}

#[test]
fn records_that_lie_are_told() {
    let good = fixture("elf-binary");
    let records = section(&good, "__llvm_covdata");
    // The field `CounterPtr` comes after `NameRef` and `FuncHash`.
    let counter_ptr = records.start + 16;
    let mut all = String::new();
    let mut told = |what: &str, change: &dyn Fn(&mut Vec<u8>), outside: Outside| {
        let mut data = good.clone();
        change(&mut data);
        writeln!(
            all,
            "-- {what}\n{}",
            outcome(sections(&data, DIALECT, outside))
        )
        .unwrap();
    };
    let outside = |data: &mut Vec<u8>| data[counter_ptr + 1] ^= 0x40;
    told("one record's counters lie outside", &outside, Outside::Drop);
    told("the same, kept as LLVM does", &outside, Outside::Keep);
    let stride = RecordLayout::for_dialect(DIALECT).stride;
    let all_outside = |data: &mut Vec<u8>| {
        outside(data);
        data[counter_ptr + stride + 1] ^= 0x40;
    };
    told(
        "all records' counters lie outside",
        &all_outside,
        Outside::Drop,
    );
    let twice = |data: &mut Vec<u8>| {
        let first: Vec<u8> = data[counter_ptr..counter_ptr + 8].to_vec();
        data[counter_ptr + stride..counter_ptr + stride + 8].copy_from_slice(&first);
    };
    told("two records for the same counters", &twice, Outside::Drop);
    let renamed = |name: &'static [u8]| {
        move |data: &mut Vec<u8>| {
            let place = data
                .windows(name.len())
                .rposition(|bytes| bytes == name)
                .unwrap();
            data[place] = b'x';
        }
    };
    told("no records", &renamed(b"__llvm_covdata\0"), Outside::Drop);
    told("no names", &renamed(b"__llvm_covnames\0"), Outside::Drop);
    told("no counters", &renamed(b"__llvm_prf_cnts\0"), Outside::Drop);
    insta::assert_snapshot!(all);

    // Replace the pointer format by one that x86-64 and arm64 do not use.
    let mut data = fixture("macho");
    let command = [0x34, 0, 0, 0x80, 16, 0, 0, 0];
    let place = data.windows(8).position(|bytes| bytes == command).unwrap();
    let start = usize::try_from(u32::from_le_bytes(
        data[place + 8..place + 12].try_into().unwrap(),
    ))
    .unwrap();
    let word = |data: &[u8], at: usize| {
        usize::try_from(u32::from_le_bytes(data[at..at + 4].try_into().unwrap())).unwrap()
    };
    let starts = start + word(&data, start + 4);
    for segment in 0..word(&data, starts) {
        let entry = word(&data, starts + 4 + segment * 4);
        if entry > 0 {
            data[starts + entry + 6] = 12;
        }
    }
    insta::assert_snapshot!(
        outcome(sections(&data, DIALECT, Outside::Drop)),
        @"error: LC_DYLD_CHAINED_FIXUPS: the pointer format of the chained fixups is not supported: found 12, expected 2 or 6"
    );
}

/// Changes every byte of the debug sections, one at a time. The snapshot has all messages that this causes.
#[test]
fn debug_info_that_lies_is_told() {
    let good = fixture("elf-debug-info");
    let mut said = BTreeSet::new();
    for name in [
        ".debug_info",
        ".debug_abbrev",
        ".debug_str_offsets",
        ".debug_addr",
        ".debug_str",
    ] {
        for place in section(&good, name) {
            for mask in [0xff, 0x01, 0x40] {
                let mut data = good.clone();
                data[place] ^= mask;
                // Function names and numbers in the messages are replaced. Many messages are then equal, and the
                // snapshot has each only once.
                let text = blank(&outcome(debug_info(&data)));
                said.insert(text);
            }
        }
    }
    let lines: Vec<_> = said.iter().map(String::as_str).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Replaces the function name in a message by `NAME`, and all numbers by `#`.
fn blank(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some((before, after)) = text.split_once("for function ") {
        let (_, rest) = after.split_once(": ").unwrap();
        text = format!("{before}for function NAME: {rest}");
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        out.push_str(before);
        out.push('#');
        rest = number.trim_start_matches(|c: char| c == 'x' || c.is_ascii_hexdigit());
    }
    out.push_str(rest);
    out
}

/// Truncates the section at every length. Does this twice: with the unit length as it is, and with a unit length that
/// matches the truncated section.
#[test]
fn debug_info_that_is_cut_is_told() {
    let good = fixture("elf-debug-info");
    let range = section(&good, ".debug_info");
    let len = u64::try_from(range.len()).unwrap();
    let size_field = good
        .windows(16)
        .rposition(|bytes| {
            bytes[..8] == (range.start as u64).to_le_bytes() && bytes[8..] == len.to_le_bytes()
        })
        .unwrap()
        + 8;
    let mut said: Vec<String> = Vec::new();
    for fixed_length in [false, true] {
        for cut in 4..range.len() {
            let mut data = good.clone();
            data[size_field..size_field + 8].copy_from_slice(&(cut as u64).to_le_bytes());
            if fixed_length {
                let length = u32::try_from(cut - 4).unwrap();
                data[range.start..range.start + 4].copy_from_slice(&length.to_le_bytes());
            }
            let mut text = outcome(debug_info(&data));
            // Without the offset of the error, which is another one for most lengths.
            text.truncate(text.find(" at .debug_info+").unwrap_or(text.len()));
            if said.last() != Some(&text) {
                said.push(text);
            }
        }
    }
    insta::assert_snapshot!(said.join("\n"));
}
