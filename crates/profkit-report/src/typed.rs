//! Reads numbers that people type. The errors are messages for people.
use std::fmt::Display;
use std::str::FromStr;

/// Returns a parser for whole numbers from `low` to `high`. If the parser rejects a text, its message names the range.
pub fn between<T>(low: T, high: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| match text.parse() {
        Ok(number) if low <= number && number <= high => Ok(number),
        _ => Err(format!(
            "found `{text}`, expected a whole number from {low} to {high}"
        )),
    }
}

/// Parses a share from 0 to 1.
pub fn share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("found `{text}`, expected a share from 0 to 1")),
    }
}

/// Parses a share from 0 to 100 percent. A percent sign may follow.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "found `{text}`, expected a percentage from 0 to 100"
        )),
    }
}

/// Parses a size in bytes. `K`, `M` and `G` stand for a thousand, a million and a billion bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 1_000),
        Some(b'M') => (text.get(..text.len() - 1), 1_000_000),
        Some(b'G') => (text.get(..text.len() - 1), 1_000_000_000),
        _ => (Some(text), 1),
    };
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| {
            format!("found `{text}`, expected a number of bytes such as 200000, 200K or 25M")
        })
}
