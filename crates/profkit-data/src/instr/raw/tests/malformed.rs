//! Damages one field of a good file for each check of the reader, and compares the error message.
use super::*;

fn put_u64(file: &mut [u8], at: usize, value: u64) {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn put_u32(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn message(mutate: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut file = bytes(10);
    mutate(&mut file);
    texts(&read(&file).unwrap_err())
}

// Byte offsets in the test file of version 10.
const BINARY_IDS_SIZE: usize = 16;
const NUM_DATA: usize = 24;
const NAMES_SIZE: usize = 9 * 8;
const BINARY_IDS: usize = 128;
const RECORD_1: usize = BINARY_IDS + 32 + 64;
const RECORD_2: usize = RECORD_1 + 64;

fn names_at(file: &[u8]) -> usize {
    usize::try_from(RawProfile::parse(file).unwrap().sections().names.offset).unwrap()
}

fn values_at(file: &[u8]) -> usize {
    usize::try_from(
        RawProfile::parse(file)
            .unwrap()
            .sections()
            .value_data
            .offset,
    )
    .unwrap()
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(message(Vec::clear), @r"
    the file is empty
    Empty: -
    ");
}

#[test]
fn another_magic() {
    insta::assert_snapshot!(message(|file| file[1] = b'x'), @r#"
    header of raw profile, at offset 0x0: the magic number is not that of a raw profile: found bytes [81, 78, 66, 6f, 72, 70, 6c, ff], expected "lprofr" or "lprofR" between 0xff and 0x81, in either byte order
    BadMagic: -
    "#);
}

#[test]
fn a_version_of_the_future() {
    insta::assert_snapshot!(message(|file| file[8] = 12), @"
    header of raw profile, at offset 0x8: the version of the raw profile is not supported: found 12, expected 1 to 11
    UnsupportedVersion: Profile uses raw profile format version = 12; expected version = 10
    PLEASE update this tool to version in the raw profile, or regenerate raw profile with expected version.
    ");
}

#[test]
fn a_cut_version_word() {
    insta::assert_snapshot!(message(|file| file.truncate(12)), @"
    header of raw profile, at offset 0x0: the file ends within the header: found 12 bytes, expected 16 bytes
    BadHeader: -
    ");
}

#[test]
fn a_cut_header() {
    insta::assert_snapshot!(message(|file| file.truncate(127)), @"
    header of raw profile, at offset 0x0: the file ends within the header: found 127 bytes, expected 128 bytes
    BadHeader: -
    ");
}

#[test]
fn a_version_5_header_of_neither_form() {
    let mut file = bytes(5);
    put_u64(&mut file, 9 * 8, 77);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    header of raw profile, at offset 0x38: the header has neither of the two forms of version 5: found word 7 0x10090 and word 9 0x4d, expected a value kind (0 to 2) in word 7 or word 9
    BadHeader: -
    ");
    file.truncate(70);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    header of raw profile, at offset 0x0: the file ends within the header: found 70 bytes, expected 80 bytes
    BadHeader: -
    ");
}

#[test]
fn build_ids_of_an_odd_size() {
    insta::assert_snapshot!(message(|file| put_u64(file, BINARY_IDS_SIZE, 28)), @"
    header of raw profile, at offset 0x10: BinaryIdsSize is not a multiple of 8: found 28
    BadHeader: -
    ");
}

#[test]
fn build_ids_beyond_the_file() {
    insta::assert_snapshot!(message(|file| put_u64(file, BINARY_IDS_SIZE, 1 << 40)), @"
    build ids, at offset 0x80: the file ends within a section: found 480 bytes left, expected 1099511627776 bytes
    BadHeader: -
    ");
}

#[test]
fn a_build_id_without_length() {
    insta::assert_snapshot!(message(|file| put_u64(file, BINARY_IDS, 0)), @"
    build ids, at offset 0x80: a build id is empty
    Malformed: binary id length is 0
    ");
}

#[test]
fn a_build_id_beyond_its_section() {
    insta::assert_snapshot!(message(|file| put_u64(file, BINARY_IDS, 25)), @"
    build ids, at offset 0x80: a build id is cut off: found 24 bytes left, expected 25 bytes
    Malformed: not enough data to read binary id data
    ");
}

#[test]
fn a_cut_length_of_a_build_id() {
    let mut image = image(dialect(7));
    image.binary_ids = vec![BuildId(vec![1; 12])];
    let mut file = image.to_bytes().unwrap();
    put_u64(&mut file, 88, 8);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    build ids, at offset 0x68: the length of a build id is cut off
    Malformed: not enough data to read binary id length
    ");
}

#[test]
fn more_records_than_bytes() {
    insta::assert_snapshot!(message(|file| put_u64(file, NUM_DATA, 4000)), @"
    data records, at offset 0xa0: the file ends within a section: found 448 bytes left, expected 256000 bytes
    BadHeader: -
    ");
}

#[test]
fn more_records_than_numbers() {
    insta::assert_snapshot!(message(|file| put_u64(file, NUM_DATA, u64::MAX)), @"
    data records, at offset 0xa0: the file ends within a section: found 448 bytes left, expected more bytes than 64 bits can count
    BadHeader: -
    ");
}

#[test]
fn value_data_that_begin_beyond_the_file() {
    let cut = |file: &mut Vec<u8>| file.truncate(values_at(file) - 1);
    insta::assert_snapshot!(message(cut), @"
    padding, at offset 0x1db: the file ends within a section: found 4 bytes left, expected 5 bytes
    BadHeader: -
    ");
}

#[test]
fn names_that_do_not_fit_their_section() {
    let spoil = |file: &mut Vec<u8>| {
        let at = names_at(file);
        file[at] = 120;
    };
    insta::assert_snapshot!(message(spoil), @"
    names, at offset 0x198: a chunk of names runs past the end of its section: found 25 bytes left, expected 120 bytes
    Malformed: -
    ");
    insta::assert_snapshot!(message(|file| put_u64(file, NAMES_SIZE, 24)), @"
    names, at offset 0x198: a chunk of names runs past the end of its section: found 22 bytes left, expected 25 bytes
    Malformed: -
    ");
}

#[test]
fn a_record_without_counters() {
    insta::assert_snapshot!(message(|file| put_u32(file, RECORD_1 + 48, 0)), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xe0: the record has no counters
    Malformed: number of counters is zero
    ");
}

#[test]
fn counters_before_their_section() {
    insta::assert_snapshot!(message(|file| put_u64(file, RECORD_1 + 16, 0)), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xe0: counters lie outside their section: found offset -128, expected 0 to 47
    Malformed: counter offset -128 is negative
    ");
}

#[test]
fn counters_after_their_section() {
    insta::assert_snapshot!(message(|file| put_u64(file, RECORD_1 + 16, 176)), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xe0: counters lie outside their section: found offset 48, expected 0 to 47
    Malformed: counter offset 48 is greater than the maximum counter offset 47
    ");
}

#[test]
fn more_counters_than_their_section_has() {
    insta::assert_snapshot!(message(|file| put_u32(file, RECORD_1 + 48, 5)), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xe0: a record has too many counters: found 5, expected at most 4
    Malformed: number of counters 5 is greater than the maximum number of counters 4
    ");
}

#[test]
fn a_bitmap_outside_its_section() {
    insta::assert_snapshot!(message(|file| put_u64(file, RECORD_2 + 24, 0)), @"
    data record 2 (function 0xa41c63e27961742b), at offset 0x120: the bitmap lies outside its section: found offset -112, expected 0 to 2
    Malformed: bitmap offset -112 is negative
    ");
    insta::assert_snapshot!(message(|file| put_u64(file, RECORD_2 + 24, 200)), @"
    data record 2 (function 0xa41c63e27961742b), at offset 0x120: the bitmap lies outside its section: found offset 88, expected 0 to 2
    Malformed: bitmap offset 88 is greater than the maximum bitmap offset 2
    ");
}

#[test]
fn more_bitmap_than_its_section_has() {
    insta::assert_snapshot!(message(|file| put_u32(file, RECORD_2 + 60, 4)), @"
    data record 2 (function 0xa41c63e27961742b), at offset 0x120: a record has too many bitmap bytes: found 4, expected at most 3
    Malformed: number of bitmap bytes 4 is greater than the maximum number of bitmap bytes 3
    ");
}

#[test]
fn uniform_counters_outside_their_section() {
    let mut image = image(dialect(11));
    image
        .records
        .iter_mut()
        .for_each(|record| record.uniform_counts.clone_from(&record.counts));
    let mut file = image.to_bytes().unwrap();
    put_u64(&mut file, 152 + 32 + 24, 1 << 20);
    let profile = RawProfile::parse(&file).unwrap();
    let error = profile
        .uniform_counter_bytes(&profile.record(0).unwrap())
        .unwrap_err();
    insta::assert_snapshot!(error, @"data record 0 (function 0xdb956436e78dd5fa), at offset 0xb8: uniform counters lie outside their section: found offset 1048304, expected 0 to 47");
}

#[test]
fn a_name_outside_the_names() {
    let mut file = bytes(2);
    put_u32(&mut file, 80, 99);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    data record 0, at offset 0x50: a name lies outside the names section: found 99 bytes at offset 0, expected a range within the 23 bytes of the section
    Malformed: -
    ");
}

#[test]
fn value_data_that_contradict_themselves() {
    let spoil = |file: &mut Vec<u8>| {
        let at = values_at(file);
        put_u32(file, at + 8, 9);
    };
    insta::assert_snapshot!(message(spoil), @"
    value data of function 0x11589a086a2abf99, at offset 0x1e8: there is no such value kind: found 9, expected less than 3
    Malformed: value kind is invalid
    ");
}

#[test]
fn cut_value_data() {
    insta::assert_snapshot!(message(|file| file.truncate(values_at(file) + 20)), @r"
    value data of function 0x11589a086a2abf99, at offset 0x1e0: TotalSize runs past the end of the data: found 72 bytes, expected at most 20 bytes
    TooLarge: -
    ");
}

#[test]
fn something_else_after_a_profile() {
    insta::assert_snapshot!(message(|file| file.extend([0, 0, 0, 0, 0, 0, 0, 0, 7])), @"
    bytes after the profile, at offset 0x268: there are too few bytes for another header: found 1 byte left, expected nothing or at least 128 bytes
    Malformed: not enough space for another header
    ");
    insta::assert_snapshot!(message(|file| file.extend([7; 128])), @"
    bytes after the profile, at offset 0x260: the bytes after a profile are not another profile: found bytes [07, 07, 07, 07, 07, 07, 07, 07], expected bytes [81, 72, 66, 6f, 72, 70, 6c, ff]
    BadMagic: -
    ");
    let unaligned = |file: &mut Vec<u8>| {
        file.extend([0; 4]);
        file.extend(bytes(10));
    };
    insta::assert_snapshot!(message(unaligned), @"
    bytes after the profile, at offset 0x264: the next profile does not begin at a multiple of 8
    Malformed: insufficient padding
    ");
}

#[test]
fn reading_goes_on_after_a_bad_record() {
    let mut file = bytes(10);
    put_u32(&mut file, RECORD_1 + 48, 0);
    let (records, errors) = read_on(&file, RawReadOptions::default());
    assert_eq!(names(&records), ["main", "callee"]);
    assert_eq!(errors.len(), 1);
    // The damaged value data were skipped, so the next record still got its own value data.
    assert_eq!(records[1].values.kind(2).unwrap().site_count(), 1);
}

#[test]
fn offsets_of_32_bit_files_are_worded_as_llvm_calculates_them() {
    let narrow = RawDialect {
        width: PointerWidth::Bits32,
        ..dialect(10)
    };
    let mut file = image(narrow).to_bytes().unwrap();
    put_u32(&mut file, 128 + 32 + 48 + 16, 0);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xd0: counters lie outside their section: found offset -96, expected 0 to 47
    Malformed: counter offset -96 is negative
    ");
    put_u32(&mut file, 128 + 32 + 48 + 16, 0x8000_0000);
    insta::assert_snapshot!(texts(&read(&file).unwrap_err()), @"
    data record 1 (function 0x11589a086a2abf99), at offset 0xd0: counters lie outside their section: found offset 2147483552, expected 0 to 47
    Malformed: counter offset 2147483552 is greater than the maximum counter offset 47
    ");
}
