//! Numbers for people.
use std::fmt::Display;

/// Writes a number with commas between groups of three digits.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a count with its noun: "1 function", "2 functions".
pub fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(count))
}

/// Writes a share as a percentage with one decimal. The number is rounded down, so that only a complete share is 100%.
pub fn percent(part: u128, whole: u128) -> String {
    let tenths = match whole {
        0 => 0,
        whole => part.saturating_mul(1000) / whole,
    };
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(plural(1, "function"), "1 function");
        assert_eq!(plural(1234, "function"), "1,234 functions");
        assert_eq!(percent(999_999, 1_000_000), "99.9%");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "0.0%");
    }
}
