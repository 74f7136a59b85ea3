//! The weight of an input: the factor that multiplies its counts.
use std::fmt;
use std::str::FromStr;

/// An exact ratio of two numbers, such as 3 or 1/4, that multiplies every count of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weight {
    numerator: u64,
    denominator: u64,
}

/// The maximum number of digits after the decimal point of a weight. With more digits, the denominator would not fit 64
/// bits.
const MAX_FRACTION_DIGITS: usize = 18;

impl Weight {
    /// The weight 1, which leaves counts unchanged.
    pub const ONE: Self = Weight {
        numerator: 1,
        denominator: 1,
    };

    /// Makes a weight from a whole number.
    pub const fn integer(value: u64) -> Self {
        Weight {
            numerator: value,
            denominator: 1,
        }
    }

    /// Returns the weight `numerator / denominator`; `None` if the denominator is 0.
    pub fn ratio(numerator: u64, denominator: u64) -> Option<Self> {
        Self::reduced(u128::from(numerator), u128::from(denominator))
    }

    /// Returns the weight `numerator / denominator` in lowest terms; `None` if the denominator is 0. If the numerator
    /// or the denominator still does not fit 64 bits, the same number of low bits is removed from both.
    fn reduced(numerator: u128, denominator: u128) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator, denominator);
        let (mut numerator, mut denominator) = (numerator / divisor, denominator / divisor);
        while numerator > u128::from(u64::MAX) || denominator > u128::from(u64::MAX) {
            numerator >>= 1;
            denominator >>= 1;
        }
        Some(Weight {
            numerator: u64::try_from(numerator).ok()?,
            denominator: u64::try_from(denominator.max(1)).ok()?,
        })
    }

    /// Multiplies two weights.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let numerator = u128::from(self.numerator) * u128::from(other.numerator);
        let denominator = u128::from(self.denominator) * u128::from(other.denominator);
        Self::reduced(numerator, denominator).unwrap_or(Self::ONE)
    }

    /// Returns the weight as an integer; `None` if the weight is not a whole number.
    pub fn as_integer(self) -> Option<u64> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Whether this is the weight 1, which leaves counts unchanged.
    #[inline]
    pub fn is_one(self) -> bool {
        self == Self::ONE
    }

    /// Multiplies a count by this weight and rounds to the nearest number (half up). Also returns whether the product
    /// was too large for 64 bits. If so, the returned number is 2^64 − 1.
    #[inline]
    pub fn apply(self, count: u64) -> (u64, bool) {
        if self.denominator == 1 {
            let (product, over) = count.overflowing_mul(self.numerator);
            return if over {
                (u64::MAX, true)
            } else {
                (product, false)
            };
        }
        let product = u128::from(count) * u128::from(self.numerator);
        let denominator = u128::from(self.denominator);
        let (whole, rest) = (product / denominator, product % denominator);
        let rounded = whole + u128::from(rest >= denominator - rest);
        match u64::try_from(rounded) {
            Ok(value) => (value, false),
            Err(_) => (u64::MAX, true),
        }
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == 1 {
            write!(f, "{}", self.numerator)
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

/// The reason why a text is not a valid weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightError(String);

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the weight `{}` is not valid: expected a number above 0 such as 3 or 0.25",
            self.0
        )
    }
}

impl std::error::Error for WeightError {}

impl FromStr for Weight {
    type Err = WeightError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || WeightError(text.to_owned());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole)
            || !digits(fraction)
            || (whole.is_empty() && fraction.is_empty())
            || fraction.len() > MAX_FRACTION_DIGITS
        {
            return Err(error());
        }
        let parse = |part: &str| match part {
            "" => Ok(0u64),
            part => part.parse::<u64>().map_err(|_| error()),
        };
        let scale = fraction.chars().fold(1u128, |scale, _| scale * 10);
        let numerator = u128::from(parse(whole)?) * scale + u128::from(parse(fraction)?);
        if numerator == 0 {
            return Err(error());
        }
        Self::reduced(numerator, scale).ok_or_else(error)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_round_half_up() {
        let quarter: Weight = "0.25".parse().unwrap();
        assert_eq!(quarter, Weight::ratio(1, 4).unwrap());
        assert_eq!(quarter.apply(1), (0, false));
        assert_eq!(quarter.apply(2), (1, false));
        assert_eq!(quarter.apply(10), (3, false));
        assert_eq!(quarter.times(Weight::integer(4)), Weight::ONE);
        assert_eq!("3".parse::<Weight>().unwrap().apply(5), (15, false));
        assert_eq!("1.5".parse::<Weight>().unwrap().to_string(), "3/2");
        assert_eq!(Weight::integer(2).apply(1 << 63), (u64::MAX, true));
        assert_eq!(
            "1.5".parse::<Weight>().unwrap().apply(u64::MAX),
            (u64::MAX, true)
        );
    }

    #[test]
    fn what_is_not_a_weight_is_refused_with_what_was_found() {
        for text in [
            "",
            ".",
            "0",
            "0.0",
            "-1",
            "1e3",
            "1,5",
            "99999999999999999999",
            "0.1234567890123456789",
        ] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
        insta::assert_snapshot!("two".parse::<Weight>().unwrap_err(), @"the weight `two` is not valid: expected a number above 0 such as 3 or 0.25");
    }
}
