//! The curve of a profile: which share of all counts the hottest functions have together.
use super::functions::PageFunction;
use super::html::escaped;
use profkit_report::grouped;
use rayon::prelude::*;
use std::fmt::Write as _;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 10.0;
/// The width of the area at the right end of the axis. Only the number of all functions is written there.
const LAST: f64 = 90.0;

/// Draws the curve as SVG. The horizontal axis, which is logarithmic, shows the number of functions; the vertical axis
/// shows their share of all counts.
pub fn draw(functions: &[&PageFunction], total: u128, unit: &str, out: &mut String) {
    let mut sums: Vec<u128> = functions
        .iter()
        .map(|one| one.numbers.sum)
        .filter(|&sum| sum > 0)
        .collect();
    if sums.len() < 2 || total == 0 {
        return;
    }
    sums.par_sort_unstable_by(|one, other| other.cmp(one));
    let most = real(sums.len() as u128).ln();
    let x = |count: usize| LEFT + (WIDTH - LEFT - 8.0) * (real(count as u128).ln() / most);
    let y = |share: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share);
    let mut points = String::new();
    let (mut sum, mut last) = (0u128, -10.0);
    for (count, one) in (1..).zip(&sums) {
        sum += one;
        let at = x(count);
        if at - last >= 1.5 || count == sums.len() {
            let _ = write!(
                points,
                "{at:.1},{:.1} ",
                y((real(sum) / real(total)).min(1.0))
            );
            last = at;
        }
    }
    let points = points.trim_end();
    let label = format!("Share of all {unit} by number of functions, hottest first");
    let _ = write!(
        out,
        "<h3>{0}</h3>\n<svg class=\"curve\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">",
        escaped(&label)
    );
    for share in [0.0, 0.5, 0.9, 1.0] {
        let (at, right) = (y(share), WIDTH - 8.0);
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0}%</text>",
            LEFT - 6.0,
            at + 4.0,
            share * 100.0
        );
    }
    let mut number = |count: usize, anchor: &str| {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            x(count),
            HEIGHT - 8.0,
            grouped(count as u64)
        );
    };
    number(1, "start");
    let mut count = 10;
    while x(count) < WIDTH - LAST {
        number(count, "middle");
        count = count.saturating_mul(10);
    }
    number(sums.len(), "end");
    let _ = writeln!(
        out,
        "<polygon class=\"below\" points=\"{LEFT},{0:.1} {points} {1:.1},{0:.1}\"/><polyline class=\"line\" points=\"{points}\"/></svg>",
        y(0.0),
        WIDTH - 8.0
    );
}

fn real(number: u128) -> f64 {
    number as f64
}
