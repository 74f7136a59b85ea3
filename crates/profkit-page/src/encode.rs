//! The data blocks of a page: numbers and names as bytes, compressed and written as base64. [docs/formats/page.md]
//! describes them.
//!
//! [docs/formats/page.md]: https://github.com/profkit/profkit/blob/main/docs/formats/page.md
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::cmp::Ordering;
use std::io::Write as _;

/// Appends a number in LEB128 form: seven bits per byte, the lowest bits first. The top bit of a byte says that another
/// byte follows.
pub fn number(mut value: u128, out: &mut Vec<u8>) {
    loop {
        let low = value.to_le_bytes()[0];
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a length or an index.
pub fn index(value: usize, out: &mut Vec<u8>) {
    number(value as u128, out);
}

/// Encodes numbers, one after the other.
pub fn column(values: impl IntoIterator<Item = u128>) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        number(value, &mut out);
    }
    out
}

/// Encodes strings without line breaks. The block begins with the number of strings and their total size, in which each
/// string counts with one additional byte. Each string is then written as three things: the number of bytes at its
/// beginning that are equal to those of the previous string, the number of its other bytes, and these other bytes. If
/// there are no strings, the block is empty.
pub fn strings<'s>(list: impl IntoIterator<Item = &'s str> + Clone) -> Vec<u8> {
    let mut out = Vec::new();
    let size = |all: (usize, usize), one: &str| (all.0 + 1, all.1 + one.len() + 1);
    let (count, size) = list.clone().into_iter().fold((0, 0), size);
    if count == 0 {
        return out;
    }
    index(count, &mut out);
    index(size, &mut out);
    let mut before: &[u8] = b"";
    for one in list {
        let one = one.as_bytes();
        let shared = shared(one, before);
        let own = one.get(shared..).unwrap_or_default();
        index(shared, &mut out);
        index(own.len(), &mut out);
        out.extend_from_slice(own);
        before = one;
    }
    out
}

/// The number of equal bytes at the beginning of two texts. Names often have long equal beginnings, so eight bytes are
/// compared at a time.
fn shared(one: &[u8], other: &[u8]) -> usize {
    let (words, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    let words = words.iter().zip(others).take_while(|(a, b)| a == b).count();
    let from = words * 8;
    from + one
        .iter()
        .skip(from)
        .zip(other.iter().skip(from))
        .take_while(|(a, b)| a == b)
        .count()
}

/// Compares strings as JavaScript does: by their UTF-16 units.
pub fn as_script(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same = shared(one, other);
    match (one.get(same), other.get(same)) {
        // Usually the order of UTF-8 bytes is that of UTF-16 units. Exception: in UTF-16, a character above U+FFFF
        // consists of two units, which are smaller than those of the characters from U+E000 to U+FFFF.
        (Some(0xf0..), Some(0xee | 0xef)) => Ordering::Less,
        (Some(0xee | 0xef), Some(0xf0..)) => Ordering::Greater,
        (one, other) => one.cmp(&other),
    }
}

/// Compresses bytes (deflate without a header) and returns them as base64.
pub fn packed(bytes: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    // Writing to memory does not fail.
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    STANDARD.encode(compressed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_per_byte() {
        assert_eq!(column([0, 127, 128, 300]), [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(column([u128::MAX]).len(), 19);
    }

    #[test]
    fn strings_share_their_beginnings() {
        let list = ["ns::parse", "ns::print", "x"];
        assert_eq!(
            strings(list),
            b"\x03\x16\x00\x09ns::parse\x05\x04rint\x00\x01x"
        );
        assert!(strings([]).is_empty());
    }

    #[test]
    fn equal_beginnings_have_any_length() {
        let text = "namespace::function(int, int)";
        for end in 0..=text.len() {
            let other = format!("{}#", &text[..end]);
            assert_eq!(shared(text.as_bytes(), other.as_bytes()), end);
            assert_eq!(shared(other.as_bytes(), text.as_bytes()), end);
            assert_eq!(shared(text.as_bytes(), &text.as_bytes()[..end]), end);
        }
    }

    #[test]
    fn the_order_of_names_is_that_of_the_script() {
        let mut names = ["\u{1f600}", "\u{e000}", "\u{ffff}", "z", "zz", "é"];
        names.sort_by(|one, other| as_script(one, other));
        let mut expected = names;
        expected.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
        assert_eq!(names, expected);
    }

    #[test]
    fn equal_data_have_equal_blocks() {
        assert_eq!(packed(b"abcabcabcabc"), packed(b"abcabcabcabc"));
        assert_eq!(packed(b""), "AwA=");
    }
}
