//! Adds the records of two runs without knowledge of the map. This is possible if the image's mode flags alone
//! determine the layout of the records.
use profkit_abi::mip::mode;

/// The way in which the records of two runs of an image are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adding {
    /// Each byte is added by itself. The bytes are coverage of functions and blocks, or unary counters.
    Bytes,
    /// Each eight bytes are a count, which is added, and an ordinal, of which the earlier is kept.
    Calls,
    /// The records cannot be added, because only the map shows where each record begins.
    Impossible,
}

/// How the records can be added, by the bitwise OR and AND of all sets of mode flags (0 and all bits without any).
#[must_use]
pub fn adding(all: u32, common: u32) -> Adding {
    const COVERAGE: u32 = (mode::FUNCTION_COVERAGE | mode::BLOCK_COVERAGE | mode::UNARY_COUNTER) as u32;
    const CALLS: u32 = mode::CALLS as u32;
    if all & !COVERAGE == 0 && all & common & u32::from(mode::FUNCTION_COVERAGE) != 0 {
        Adding::Bytes
    } else if all == CALLS && common == CALLS {
        Adding::Calls
    } else {
        Adding::Impossible
    }
}

/// Adds two bytes of coverage, or of a unary counter: eight minus its set bits, which are the lowest, up to eight. 0x00
/// means covered, so the sum of coverage is "in either run", and 0xff changes nothing.
#[must_use]
pub fn add_byte(a: u8, b: u8) -> u8 {
    // A byte plus one is a power of two; the exponent is the number of set bits.
    let sum = ((u32::from(a) + 1) * (u32::from(b) + 1)) >> 8;
    let [byte, ..] = sum.saturating_sub(1).to_le_bytes();
    byte
}

/// Counts are stored minus one. A sum that is too large becomes the largest count.
#[must_use]
pub fn add_count(a: u32, b: u32) -> u32 {
    // If neither run has calls, the subtraction of one wraps around to the stored value for no calls.
    a.wrapping_add(1).saturating_add(b.wrapping_add(1)).wrapping_sub(1)
}

/// Returns the earlier of two first-call ordinals. The value for "never called" is later than every ordinal.
#[must_use]
pub fn add_ordinal(a: u32, b: u32) -> u32 {
    if a < b {
        a
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use super::{add_byte, add_count, add_ordinal, adding, Adding};

    #[test]
    fn bytes_add_calls_and_saturate() {
        let unary = |calls: u32| u8::try_from(0xff_u32 >> calls).expect("a byte");
        for a in 0..=8 {
            for b in 0..=8 {
                assert_eq!(add_byte(unary(a), unary(b)), unary((a + b).min(8)), "{a} + {b}");
            }
        }
        assert_eq!(add_byte(0xff, 0x00), 0x00);
        assert_eq!(add_byte(0xff, 0xff), 0xff);
    }

    #[test]
    fn counts_saturate_below_never() {
        const NEVER: u32 = u32::MAX;
        assert_eq!(add_count(NEVER, NEVER), NEVER);
        assert_eq!(add_count(NEVER, 0), 0);
        assert_eq!(add_count(0, 0), 1);
        assert_eq!(add_count(4, 5), 10);
        assert_eq!(add_count(NEVER - 1, NEVER - 1), NEVER - 1);
        assert_eq!(add_count(NEVER - 1, NEVER), NEVER - 1);
        assert_eq!(add_ordinal(NEVER, 7), 7);
        assert_eq!(add_ordinal(3, 7), 3);
        assert_eq!(add_ordinal(NEVER, NEVER), NEVER);
    }

    #[test]
    fn only_uniform_records_can_be_added() {
        let how = |sets: &[u32]| {
            adding(
                sets.iter().fold(0, |all, set| all | set),
                sets.iter().fold(u32::MAX, |common, set| common & set),
            )
        };
        assert_eq!(how(&[0x01]), Adding::Bytes);
        assert_eq!(how(&[0x01, 0x21, 0x03]), Adding::Bytes);
        assert_eq!(how(&[0x0c]), Adding::Calls);
        assert_eq!(how(&[0x0c, 0x0c]), Adding::Calls);
        assert_eq!(how(&[0x0c, 0x01]), Adding::Impossible);
        assert_eq!(how(&[0x0e]), Adding::Impossible);
        assert_eq!(how(&[0x1c]), Adding::Impossible);
        assert_eq!(how(&[0x02]), Adding::Impossible);
        assert_eq!(how(&[]), Adding::Impossible);
    }
}
