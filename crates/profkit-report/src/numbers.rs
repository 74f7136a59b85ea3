//! Numbers and paths for people.
pub use profkit_data::numbers::{grouped, plural};

/// Writes the share of a part in a whole as a percentage with one decimal, rounded to the nearest. A part above 0 is
/// never written as 0.0%, and only a complete share is written as 100.0%. All texts and the HTML page use this rule.
pub fn percent(part: u128, whole: u128) -> String {
    // Shifted, so that the product fits; what is lost is far below a tenth of a percent.
    let shift = (u128::BITS - whole.max(part).leading_zeros()).saturating_sub(112);
    let (few, all) = (part >> shift, whole >> shift);
    let tenths = match all {
        0 => 0,
        all => (few * 1000 + all / 2) / all,
    };
    percent_text(tenths, part > 0 && whole > 0, part < whole)
}

/// Writes a share from 0 to 1 as a percentage, by the rule of [`percent`].
pub fn share_percent(share: f64) -> String {
    // The nearest share that the sum of many rounded ones can stand for.
    const ROUNDING: f64 = 1e-9;
    let some = share > 0.0;
    let incomplete = share < 1.0 - ROUNDING;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is from 0 to 1"
    )]
    let tenths = (share.max(0.0) * 1000.0 + ROUNDING).round() as u128;
    percent_text(tenths, some, incomplete)
}

fn percent_text(tenths: u128, some: bool, incomplete: bool) -> String {
    match tenths {
        0 if some => "<0.1%".to_owned(),
        1000 if incomplete => ">99.9%".to_owned(),
        tenths => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

/// Writes a percentage that misses a limit, with as many decimals as it takes to differ from the limit: 89.97 beside
/// the limit 90 is not written as 90.0%.
pub fn percent_beside(percent: f64, limit: f64) -> String {
    const MOST_DECIMALS: usize = 9;
    let texts = (1..=MOST_DECIMALS).map(|decimals| format!("{percent:.decimals$}"));
    let mut texts = texts.skip_while(|text| text.parse() == Ok(limit));
    format!("{}%", texts.next().unwrap_or_else(|| percent.to_string()))
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

/// A size for people, in powers of ten, rounded to the nearest tenth: "999 bytes", "1.0 kB", "403.2 MB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return plural(bytes, "byte");
    }
    // In tenths of the unit. Computed with integers, because floating-point numbers are not exact.
    let mut tenths = 0;
    let mut name = "";
    let mut divisor = 100u128;
    for unit in UNITS {
        (name, tenths) = (unit, (u128::from(bytes) + divisor / 2) / divisor);
        if tenths < 10_000 {
            break;
        }
        divisor *= 1000;
    }
    format!("{}.{} {name}", grouped(tenths / 10), tenths % 10)
}

/// Quotes a path for the shells of the system.
pub fn quoted(path: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"/._-+=:,@%".contains(&byte)
            || cfg!(windows) && byte == b'\\'
    };
    if !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain) {
        return path.to_owned();
    }
    let prefix = if path.starts_with('-') { "./" } else { "" };
    if cfg!(windows) {
        // No path has quotation marks there.
        return format!("\"{prefix}{path}\"");
    }
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
        assert_eq!(percent(999_999, 1_000_000), ">99.9%");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(2_409_260, 7_217_390), "33.4%");
        assert_eq!(percent(0, 0), "0.0%");
        assert_eq!(percent(0, 5), "0.0%");
        assert_eq!(percent(5, 5), "100.0%");
        assert_eq!(percent(1, 3000), "<0.1%");
        assert_eq!(percent(1, 2000), "0.1%");
        assert_eq!(percent(3, 2), "150.0%");
        assert_eq!(percent(u128::MAX / 3, u128::MAX), "33.3%");
        for (part, whole) in [(2_409_260, 7_217_390), (1, 3000), (1, 1), (0, 1), (2, 3)] {
            let share = profkit_data::share(part, whole);
            assert_eq!(share_percent(share), percent(part, whole));
        }
        assert_eq!(share_percent(0.1 + 0.2 + 0.7), "100.0%");
        assert_eq!(percent_beside(89.97, 90.0), "89.97%");
        assert_eq!(percent_beside(89.9, 90.0), "89.9%");
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
                "2.0 kB",
                "1.0 MB",
                "1.0 MB",
                "403.2 MB",
                "18,446,744.1 TB"
            ]
        );
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(16_531, "function"), "16,531 functions");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.profraw"), "a/b-1.profraw");
        if cfg!(windows) {
            assert_eq!(quoted("a\\b-1.profraw"), "a\\b-1.profraw");
            assert_eq!(quoted("it's here"), "\"it's here\"");
            return;
        }
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted("-rf"), "'./-rf'");
    }
}
