//! Horizontal bars made of characters.

/// The characters of a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarStyle {
    /// Bars of `#`, for files and for terminals without Unicode.
    #[default]
    Ascii,
    /// Bars of block characters, which show eighths of a column.
    Blocks,
}

/// Draws `part` of `whole`, which is `width` columns wide. Above 0, a bar has at least one character.
pub(crate) fn bar_of(width: u128, part: u128, whole: u128, style: BarStyle) -> String {
    const EIGHTHS: [char; 8] = ['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if part == 0 || whole == 0 {
        return String::new();
    }
    let part = part.min(whole);
    // `part * of / whole` is the length of the bar. If the product would need more than 128 bits, `part` is divided by
    // `whole / of` instead.
    let columns = |parts: u128| {
        let of = width * parts;
        part.checked_mul(of)
            .map_or_else(|| part / (whole / of).max(1), |product| product / whole)
            .max(1)
    };
    let text = |count: u128, sign: &str| sign.repeat(usize::try_from(count).unwrap_or(0));
    match style {
        BarStyle::Ascii => text(columns(1), "#"),
        BarStyle::Blocks => {
            let eighths = columns(8);
            let mut text = text(eighths / 8, "█");
            let rest = usize::try_from(eighths % 8).unwrap_or(0);
            if rest > 0
                && let Some(&last) = EIGHTHS.get(rest)
            {
                text.push(last);
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_eighths_and_at_least_one_character() {
        let bar = |part, whole, style| bar_of(20, part, whole, style);
        assert_eq!(bar(1, 4, BarStyle::Ascii), "#####");
        assert_eq!(bar(1, 10_000, BarStyle::Ascii), "#");
        assert_eq!(bar(1, 32, BarStyle::Blocks), "▋");
        assert_eq!(bar(0, 4, BarStyle::Blocks), "");
    }
}
