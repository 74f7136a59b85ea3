use super::*;
use proptest::prelude::*;

type Sites<'a> = &'a [&'a [(u64, u64)]];

fn values(kinds: &[(u32, Sites<'_>)]) -> ValueData {
    let mut values = ValueData::default();
    for &(number, sites) in kinds {
        let kind = values.kind_mut(number).unwrap();
        for site in sites {
            kind.push_site(
                site.iter()
                    .map(|&(value, count)| ValueEntry { value, count }),
            );
        }
    }
    values
}

fn sample() -> ValueData {
    values(&[(0, &[&[(0x1000, 7), (0x2000, 5)], &[]]), (1, &[&[(8, 1)]])])
}

fn sample_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&sample(), Endian::Little, &mut bytes).unwrap();
    bytes
}

fn error_of(bytes: &[u8]) -> Error {
    let mut decoded = ValueData::default();
    decode(&mut Cursor::new(bytes, 0x100, Endian::Little), &mut decoded).unwrap_err()
}

fn with_u32(at: usize, value: u32) -> Vec<u8> {
    let mut bytes = sample_bytes();
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn texts(error: &Error) -> String {
    format!(
        "{error}\n{:?}: {}",
        error.kind(),
        error.detail_for_llvm().unwrap_or("-")
    )
}

#[test]
fn the_layout_is_llvms() {
    let bytes = sample_bytes();
    #[rustfmt::skip]
    assert_eq!(bytes, [
        88, 0, 0, 0, 2, 0, 0, 0,
        0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        0, 0x10, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
        0, 0x20, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
fn no_sites_are_a_bare_header() {
    let mut bytes = Vec::new();
    encode(&ValueData::default(), Endian::Little, &mut bytes).unwrap();
    assert_eq!(bytes, [8, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded_len(&ValueData::default()), 8);
}

#[test]
fn what_follows_the_blob_stays_on_the_cursor() {
    let mut bytes = sample_bytes();
    bytes.extend_from_slice(&[0xaa; 3]);
    let mut cursor = Cursor::new(&bytes, 0, Endian::Little);
    let mut decoded = ValueData::default();
    decode(&mut cursor, &mut decoded).unwrap();
    assert_eq!(decoded, sample());
    assert_eq!(cursor.rest(), [0xaa; 3]);
    let mut cursor = Cursor::new(&bytes, 0, Endian::Little);
    skip(&mut cursor).unwrap();
    assert_eq!(cursor.rest(), [0xaa; 3]);
}

#[test]
fn less_than_a_header_is_truncation() {
    insta::assert_snapshot!(texts(&error_of(&sample_bytes()[..7])), @"
    value data, at offset 0x100: the data are too short here: found 7 bytes left, expected 8 bytes
    Truncated: -
    ");
}

#[test]
fn total_size_beyond_the_data_is_too_large() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(0, 96))), @r"
    value data, at offset 0x100: TotalSize runs past the end of the data: found 96 bytes, expected at most 88 bytes
    TooLarge: -
    ");
}

#[test]
fn total_size_must_be_a_multiple_of_8() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(0, 81))), @"
    value data, at offset 0x100: TotalSize is not a multiple of 8: found 81
    Malformed: total size is not multiples of quardword
    ");
}

#[test]
fn total_size_must_hold_its_own_header() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(0, 0))), @"
    value data, at offset 0x100: TotalSize is too small: found 0, expected at least 8
    Malformed: -
    ");
}

#[test]
fn the_number_of_kinds_is_checked() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(4, 4))), @"
    value data, at offset 0x104: there are too many value kinds: found 4, expected at most 3
    Malformed: number of value profile kinds is invalid
    ");
}

#[test]
fn the_kind_is_checked() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(8, 3))), @"
    value data, at offset 0x108: there is no such value kind: found 3, expected less than 3
    Malformed: value kind is invalid
    ");
}

#[test]
fn sites_past_total_size_are_an_error_and_cost_nothing() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(12, u32::MAX))), @"
    value data, at offset 0x108: the data of a value kind run past TotalSize: found 80 bytes left, expected 4294967304 bytes
    Malformed: value profile address is greater than total size
    ");
}

#[test]
fn values_past_total_size_are_an_error() {
    let mut bytes = sample_bytes();
    bytes[16] = 200;
    insta::assert_snapshot!(texts(&error_of(&bytes)), @"
    value data, at offset 0x108: the data of a value kind run past TotalSize: found 80 bytes left, expected 3216 bytes
    Malformed: value profile address is greater than total size
    ");
}

#[test]
fn a_kind_too_many_is_an_error() {
    insta::assert_snapshot!(texts(&error_of(&with_u32(4, 3))), @"
    value data, at offset 0x158: the data of a value kind run past TotalSize: found 0 bytes left, expected 8 bytes
    Malformed: value profile address is greater than total size
    ");
}

#[test]
fn reading_goes_on_after_a_blob_that_contradicts_itself() {
    let mut bytes = with_u32(8, 3);
    bytes.extend(sample_bytes());
    let mut cursor = Cursor::new(&bytes, 0, Endian::Little);
    let mut decoded = ValueData::default();
    decode(&mut cursor, &mut decoded).unwrap_err();
    assert!(decoded.is_empty());
    decode(&mut cursor, &mut decoded).unwrap();
    assert_eq!(decoded, sample());
}

#[test]
fn a_site_of_256_values_cannot_be_written() {
    let many: Vec<_> = (0..256).map(|value| (value, 1)).collect();
    let mut bytes = Vec::new();
    let error = encode(&values(&[(0, &[&many])]), Endian::Little, &mut bytes).unwrap_err();
    insta::assert_snapshot!(error, @"value data: a value site has too many values: found 256, expected at most 255");
    assert!(bytes.is_empty());
}

fn any_values() -> impl Strategy<Value = ValueData> {
    let entry = (any::<u64>(), any::<u64>()).prop_map(|(value, count)| ValueEntry { value, count });
    let sites = prop::collection::vec(prop::collection::vec(entry, 0..5), 0..20);
    [sites.clone(), sites.clone(), sites].prop_map(|kinds| {
        let mut values = ValueData::default();
        for (number, sites) in (0..).zip(kinds) {
            let kind = values.kind_mut(number).unwrap();
            sites.into_iter().for_each(|site| kind.push_site(site));
        }
        values
    })
}

proptest! {
    #[test]
    fn written_values_read_back(values in any_values(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let mut bytes = Vec::new();
        encode(&values, endian, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), encoded_len(&values));
        let mut cursor = Cursor::new(&bytes, 0, endian);
        let mut decoded = ValueData::default();
        decode(&mut cursor, &mut decoded).unwrap();
        prop_assert_eq!(decoded, values);
        prop_assert!(cursor.is_empty());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), kinds in 0u8..4, len in 0u8..9) {
        let mut bytes = bytes;
        if let [total, _, _, _, count, ..] = bytes.as_mut_slice() {
            (*total, *count) = (len * 8, kinds);
            bytes[1..4].fill(0);
        }
        let mut decoded = ValueData::default();
        let _ = decode(&mut Cursor::new(&bytes, 0, Endian::Little), &mut decoded);
    }
}
