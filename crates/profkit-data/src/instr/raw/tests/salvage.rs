//! Tests of reading the intact parts of damaged raw files.
use super::*;
use crate::{ErrorKind, Structure};

fn salvage(file: &[u8]) -> (Vec<Record>, Vec<Error>) {
    read_on(file, RawReadOptions::default().salvage(true))
}

fn kinds(errors: &[Error]) -> Vec<ErrorKind> {
    errors.iter().map(Error::kind).collect()
}

fn section_start(file: &[u8], section: Structure) -> usize {
    let profile = RawProfile::parse(file).unwrap();
    let sections = profile.sections().named();
    let (_, section) = sections
        .iter()
        .find(|(known, _)| *known == section)
        .unwrap();
    usize::try_from(section.offset).unwrap()
}

#[test]
fn a_file_cut_in_its_names_keeps_counters_and_hashes() {
    let file = bytes(10);
    let whole = read(&file).unwrap();
    let cut = &file[..section_start(&file, Structure::Names) + 10];
    let (records, errors) = salvage(cut);
    insta::assert_snapshot!(texts(&errors[0]), @"
    names, at offset 0x198: the file ends within a section: found 10 bytes left, expected 27 bytes
    BadHeader: -
    ");
    assert_eq!(
        names(&records),
        ["main", "0x11589a086a2abf99", "0xa41c63e27961742b"]
    );
    for (record, whole) in records.iter().zip(&whole) {
        assert_eq!(
            (record.name_ref, record.func_hash),
            (whole.name_ref, whole.func_hash)
        );
        assert_eq!(record.counts, whole.counts);
    }
    // The value data are lost. The record has as many value sites as its data record states, but they are empty.
    assert_eq!(records[1].values, values(0, &[&[], &[]]));
}

#[test]
fn a_file_cut_in_its_counters_keeps_the_functions_before_the_cut() {
    let file = bytes(10);
    let cut = &file[..section_start(&file, Structure::Counters) + 24];
    let (profile, fault) = RawProfile::parse_salvage_at(cut, 0).unwrap();
    assert_eq!(fault.unwrap().kind(), ErrorKind::BadHeader);
    assert_eq!(
        (
            profile.sections().counters.bytes.len(),
            profile.sections().counters.size
        ),
        (24, 48)
    );
    let (records, errors) = salvage(cut);
    assert_eq!(
        records
            .iter()
            .map(|record| record.counts.clone())
            .collect::<Vec<_>>(),
        [vec![1, 20], vec![3]]
    );
    insta::assert_snapshot!(texts(&errors[1]), @r"
    data record 2 (function 0xa41c63e27961742b), at offset 0x120: the file is cut before the counters of this record, which begin at byte 24 of their section: found 24 bytes of that section, expected 48 bytes
    Truncated: -
    ");
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_file_cut_in_its_records_has_the_whole_ones() {
    let file = bytes(10);
    let (profile, _) = RawProfile::parse_salvage_at(
        &file[..section_start(&file, Structure::DataRecords) + 100],
        0,
    )
    .unwrap();
    assert_eq!(profile.record_count(), 1);
}

#[test]
fn damaged_value_data_cost_only_values() {
    let mut file = bytes(10);
    let at = section_start(&file, Structure::ValueData);
    file[at + 8] = 9;
    let (records, errors) = salvage(&file);
    assert_eq!(kinds(&errors), [ErrorKind::Malformed]);
    assert_eq!(names(&records), ["main", "file.c;helper", "callee"]);
    assert_eq!(records[1].values, values(0, &[&[], &[]]));
    // The damaged value data still state their length, so the value data of the next record were found.
    assert_eq!(records[2], read(&bytes(10)).unwrap()[2]);
}

#[test]
fn cut_value_data_cost_only_values() {
    let mut file = bytes(10);
    file.truncate(section_start(&file, Structure::ValueData) + 20);
    let mut reader =
        RawReader::parse_with(&file, &RawReadOptions::default().salvage(true)).unwrap();
    let mut record = Record::default();
    let mut counts = 0;
    let mut errors = Vec::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => counts += record.counts.len(),
            Ok(false) => break,
            Err(error) => errors.push(error),
        }
    }
    assert_eq!((counts, reader.records_without_values()), (6, 2));
    assert_eq!(kinds(&errors), [ErrorKind::TooLarge]);
}

#[test]
fn damaged_names_keep_the_records() {
    let mut image = image(dialect(10));
    image.form.names_per_chunk = 1;
    let mut file = image.to_bytes().unwrap();
    let second_chunk = section_start(&file, Structure::Names) + 2 + "main".len();
    file[second_chunk] = 200;
    file[second_chunk + 1] = 200;
    let (records, errors) = salvage(&file);
    assert_eq!(
        names(&records),
        ["main", "0x11589a086a2abf99", "0xa41c63e27961742b"]
    );
    assert_eq!(records.len(), 3);
    assert_eq!(errors.len(), 1);
}

#[test]
fn damaged_build_ids_keep_the_records() {
    let mut file = bytes(10);
    file[128] = 0;
    let (records, errors) = salvage(&file);
    assert_eq!(records.len(), 3);
    assert_eq!(kinds(&errors), [ErrorKind::Malformed]);
}

#[test]
fn a_good_profile_after_a_damaged_one_is_found() {
    let mut file = bytes(10);
    let at = section_start(&file, Structure::ValueData);
    file[at] = 0;
    file.extend(bytes(10));
    let (records, errors) = salvage(&file);
    assert_eq!(records.len(), 6);
    assert_eq!(errors.len(), 1);
    assert_eq!(records[5], read(&bytes(10)).unwrap()[2]);
}

#[test]
fn without_a_header_nothing_can_be_salvaged() {
    let (records, errors) = salvage(&bytes(10)[..100]);
    assert_eq!(
        (records.len(), kinds(&errors)),
        (0, vec![ErrorKind::BadHeader])
    );
}
