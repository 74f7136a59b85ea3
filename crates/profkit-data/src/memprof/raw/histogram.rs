//! The 16-bit floating-point numbers in the access histograms of raw version 5. The value is the mantissa (low 12 bits)
//! × 2^exponent (high 4 bits).

const MANTISSA_BITS: u32 = 12;
const MAX_MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
const MAX_EXPONENT: u32 = 15;

/// Decodes an element of an access histogram of raw version 5.
pub fn decode_element(element: u16) -> u64 {
    let mantissa = u64::from(element) & MAX_MANTISSA;
    mantissa << (element >> MANTISSA_BITS)
}

/// Encodes a value as LLVM 22's run-time library does. While the mantissa is too large, it is halved and rounded up.
/// The largest result is 4095 × 2^15.
pub fn encode_element(value: u64) -> u16 {
    let (mut mantissa, mut exponent) = (value, 0u32);
    while mantissa > MAX_MANTISSA && exponent < MAX_EXPONENT {
        mantissa = mantissa / 2 + (mantissa & 1);
        exponent += 1;
    }
    let mantissa = mantissa.min(MAX_MANTISSA);
    u16::try_from(mantissa | u64::from(exponent) << MANTISSA_BITS).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_round_half_up_and_saturate() {
        assert_eq!(decode_element(encode_element(4095)), 4095);
        assert_eq!(decode_element(encode_element(4096)), 4096);
        assert_eq!(decode_element(encode_element(4097)), 4098);
        assert_eq!(decode_element(encode_element(u64::MAX)), 4095 << 15);
        assert_eq!(decode_element(0xffff), 4095 << 15);
        for element in 0..=u16::MAX {
            let value = decode_element(element);
            assert_eq!(decode_element(encode_element(value)), value);
        }
    }
}
