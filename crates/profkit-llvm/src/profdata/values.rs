//! Prints value profiles and the detailed summary for `show`.
use super::input::Profile;
use crate::lines::Lines;
use profkit_data::ids::NameRef;
use profkit_data::instr::KindValues;
use profkit_data::summary::Summary;

/// The totals for the value sites of all shown functions.
#[derive(Clone, Debug, Default)]
pub struct ValueStatistics {
    sites: u64,
    sites_with_values: u64,
    values: u64,
    /// The number of sites with one value, the number of sites with two values, and so on.
    histogram: Vec<u64>,
}

impl ValueStatistics {
    /// Prints the values of a function's value sites. If `names` is given, the values are name hashes: the names with
    /// these hashes are looked up in `names` and printed. If not, the values are printed as numbers.
    pub fn show(
        &mut self,
        lines: &mut Lines<'_>,
        values: Option<&KindValues>,
        names: Option<&Profile<'_>>,
    ) {
        let Some(values) = values else { return };
        self.sites += values.site_count() as u64;
        for (index, site) in values.sites().enumerate() {
            let Some(last) = site.len().checked_sub(1) else {
                continue;
            };
            self.values += site.len() as u64;
            self.sites_with_values += 1;
            if site.len() > self.histogram.len() {
                self.histogram.resize(site.len(), 0);
            }
            if let Some(sites) = self.histogram.get_mut(last) {
                *sites += 1;
            }
            let sum = site
                .iter()
                .fold(0, |sum: u64, entry| sum.wrapping_add(entry.count))
                .max(1);
            for entry in site {
                lines.text(b"\t[ ").padded(index, 2).text(b", ");
                match names {
                    Some(profile) => {
                        lines.text(profile.name(NameRef(entry.value)).unwrap_or_default())
                    }
                    None => lines.padded(entry.value, 4),
                };
                // LLVM prints the counts as signed numbers.
                lines.text(b", ").padded(entry.count.cast_signed(), 10);
                let share = entry.count as f64 * 100.0 / sum as f64;
                lines.text(format!(" ] ({share:.2}%)")).end();
            }
        }
    }

    /// Prints the totals.
    pub fn totals(&self, lines: &mut Lines<'_>) {
        lines
            .text(b"  Total number of sites: ")
            .number(self.sites)
            .end();
        lines.text(b"  Total number of sites with values: ");
        lines.number(self.sites_with_values).end();
        lines
            .text(b"  Total number of profiled values: ")
            .number(self.values)
            .end();
        lines.text(b"  Value sites histogram:\n\tNumTargets, SiteCount\n");
        for (values, &sites) in (1u64..)
            .zip(&self.histogram)
            .filter(|&(_, &sites)| sites > 0)
        {
            lines
                .text(b"\t")
                .number(values)
                .text(b", ")
                .number(sites)
                .end();
        }
    }
}

/// Prints the detailed summary. For each cutoff (a percentage of the total counts), it states how many of the hottest
/// blocks together have this percentage. LLVM computes the percentages in single precision.
pub fn detailed_summary(lines: &mut Lines<'_>, summary: &Summary) {
    lines.text(b"Detailed summary:\n");
    for entry in &summary.cutoffs {
        let share = match summary.blocks {
            0 => 0.0,
            blocks => 100.0_f32 * entry.blocks as f32 / blocks as f32,
        };
        let cutoff = entry.cutoff as f32 / 1_000_000.0 * 100.0;
        lines
            .number(entry.blocks)
            .text(format!(" blocks ({share:.2}%) with count >= "));
        lines.number(entry.min_count).text(b" account for ");
        lines
            .text(six_digits(f64::from(cutoff)))
            .text(b"% of the total counts.")
            .end();
    }
}

/// Formats a number as C's `%.6g` does: with six significant digits and without trailing zeros.
fn six_digits(number: f64) -> String {
    const DIGITS: i32 = 6;
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{number:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_significant_digits_as_c_prints_them() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (99.9999, "99.9999"),
            (0.0001, "0.0001"),
            (0.00012345678, "0.000123457"),
            (0.00001, "1e-05"),
            (123456.0, "123456"),
            (1234567.0, "1.23457e+06"),
            (90.00001, "90"),
            (100.0, "100"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }
}
