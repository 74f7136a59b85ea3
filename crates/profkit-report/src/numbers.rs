//! Numbers and paths for people.
pub use profkit_data::numbers::{grouped, plural};

/// Writes a share as a percentage with one decimal. The number is rounded down, so that only a complete share is 100%.
pub fn percent(part: u128, whole: u128) -> String {
    let tenths = match whole {
        0 => 0,
        whole => part.saturating_mul(1000) / whole,
    };
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// Writes a number with one decimal and with commas between groups of three digits.
///
/// ```
/// assert_eq!(profkit_report::tenths(1692.92), "1,692.9");
/// ```
pub fn tenths(number: f64) -> String {
    let text = format!("{number:.1}");
    match text.split_once('.') {
        Some((whole, tenth)) => match whole.strip_prefix('-') {
            Some(whole) => format!("-{}.{tenth}", grouped(whole)),
            None => format!("{}.{tenth}", grouped(whole)),
        },
        None => text,
    }
}

/// A size for people, in powers of ten: "999 bytes", "1.0 kB", "403.2 MB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return plural(bytes, "byte");
    }
    // The size in tenths of the unit, rounded down. It is computed with integers, because floating-point numbers are
    // not exact.
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    format!("{}.{} {name}", grouped(tenths / 10), tenths % 10)
}

/// Quotes a path for a shell.
pub fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    if !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain) {
        return path.to_owned();
    }
    let prefix = if path.starts_with('-') { "./" } else { "" };
    format!("'{prefix}{}'", path.replace('\'', "'\\''"))
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

    #[test]
    fn sizes_and_numbers_for_people() {
        let sizes = [
            0,
            1,
            999,
            1000,
            1999,
            999_999,
            1_000_000,
            403_180_800,
            u64::MAX,
        ]
        .map(size);
        assert_eq!(
            sizes,
            [
                "0 bytes",
                "1 byte",
                "999 bytes",
                "1.0 kB",
                "1.9 kB",
                "999.9 kB",
                "1.0 MB",
                "403.1 MB",
                "18,446,744.0 TB"
            ]
        );
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(16_531, "function"), "16,531 functions");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.profraw"), "a/b-1.profraw");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted("-rf"), "'./-rf'");
    }
}
