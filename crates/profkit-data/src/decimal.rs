//! Reads decimal numbers of text formats.

/// The number of digits that are read at once.
const WORD: usize = 8;
/// Every number of so many digits fits 64 bits.
const SAFE_DIGITS: usize = 19;
/// The powers of ten by which a number grows when up to eight digits follow it.
const POWERS: [u64; WORD + 1] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Reads the decimal digits at the start of a text. Returns their value and the number of digits. The value is `None`
/// if there are no digits or the number does not fit 64 bits.
#[inline]
pub(crate) fn leading(text: &[u8]) -> (Option<u64>, usize) {
    let (mut value, mut digits, mut rest) = (0, 0, text);
    while let Some((bytes, after)) = rest.split_first_chunk() {
        let (part, more) = digits_of_word(*bytes);
        digits += more;
        if digits > SAFE_DIGITS {
            break;
        }
        value = value * POWERS[more] + part;
        if more < WORD {
            return ((digits > 0).then_some(value), digits);
        }
        rest = after;
    }
    one_by_one(text)
}

/// Reads the digits at the start of eight bytes: their value and their number. All are looked at in one word, because a
/// loop over the digits ends at a place that a processor cannot foresee.
#[inline]
fn digits_of_word(bytes: [u8; WORD]) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let word = u64::from_le_bytes(bytes) ^ (0x30 * EACH);
    // The high bit of each byte that is no digit. No sum leaves its byte, because the byte's own high bit is left out.
    let others = (((word & !HIGH) + 0x76 * EACH) | word) & HIGH;
    // 64 if all bytes are digits.
    let bits = others.trailing_zeros() & !7;
    // The last digit becomes the highest byte, and zeros come before the first.
    let padded = word.checked_shl(64 - bits).unwrap_or(0);
    // Each step joins neighbours: two digits, then four, then eight.
    let twos = padded.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = twos.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    (eight, bits as usize / 8)
}

/// Reads digits at the end of a text, and numbers that may not fit.
#[inline(never)]
fn one_by_one(text: &[u8]) -> (Option<u64>, usize) {
    let mut value = Some(0u64);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    for &byte in text.get(..digits).unwrap_or_default() {
        value = value
            .and_then(|value| value.checked_mul(10))
            .and_then(|value| value.checked_add(u64::from(byte - b'0')));
    }
    (value.filter(|_| digits > 0), digits)
}

/// Returns the value of a text of decimal digits; `None` if the text has other characters, is empty or does not fit 64
/// bits.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    match leading(text) {
        (value, digits) if digits == text.len() => value,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_64_bits_and_any_number_of_zeros() {
        for (text, expected) in [
            ("18446744073709551615x", (Some(u64::MAX), 20)),
            ("000000000000000000000012", (Some(12), 24)),
            ("18446744073709551616", (None, 20)),
            ("99999999999999999999999", (None, 23)),
            ("", (None, 0)),
            ("-1", (None, 0)),
        ] {
            assert_eq!(leading(text.as_bytes()), expected, "{text}");
        }
        // What is read in words is what a loop reads.
        for digits in 0..=30 {
            for after in [
                b"\n1234567890".as_slice(),
                b"",
                b":",
                b"/9999999",
                b"\xb0\xb1999999",
            ] {
                for first in *b"019" {
                    let mut text: Vec<u8> =
                        b"9876543210".iter().copied().cycle().take(digits).collect();
                    if let Some(digit) = text.first_mut() {
                        *digit = first;
                    }
                    text.extend_from_slice(after);
                    assert_eq!(leading(&text), one_by_one(&text), "{text:?}");
                }
            }
        }
        assert_eq!(whole(b"12"), Some(12));
        assert_eq!(whole(b"12 "), None);
        assert_eq!(whole(b""), None);
    }
}
