//! Reads decimal numbers of text formats.

/// Reads the decimal digits at the start of a text. Returns their value and the number of digits. The value is `None`
/// if there are no digits or the number does not fit 64 bits.
#[inline]
pub(crate) fn leading(text: &[u8]) -> (Option<u64>, usize) {
    let mut value = 0u64;
    let mut fits = true;
    let mut digits = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        digits += 1;
        if digits < 20 {
            value = value * 10 + u64::from(digit);
        } else {
            match value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit)))
            {
                Some(sum) => value = sum,
                None => fits = false,
            }
        }
    }
    ((digits > 0 && fits).then_some(value), digits)
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
        assert_eq!(whole(b"12"), Some(12));
        assert_eq!(whole(b"12 "), None);
        assert_eq!(whole(b""), None);
    }
}
