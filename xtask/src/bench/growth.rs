//! `cargo xtask bench --growth`: time and memory by the number of functions and of files, as a table and a picture in
//! docs/performance.md.
use super::inputs::scramble;
use super::{Arguments, Place, median, milliseconds, number, one_run, peak_mib, processor, tables};
use anyhow::{Context, Result};
use profkit_testkit::{Measured, repo_root};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};

/// Work of which the growth is measured. `$1` and `$2` are two profiles of as many functions, or `$FILES` a folder of as
/// many files.
struct Work {
    name: &'static str,
    line: &'static str,
}

const FUNCTIONS: &[Work] = &[
    Work {
        name: "text to indexed",
        line: "$PROFKIT merge -q $1.proftext -o $OUT",
    },
    Work {
        name: "merge of two",
        line: "$PROFKIT merge -q $1.profdata $2.profdata -o $OUT",
    },
    Work {
        name: "indexed to text",
        line: "$PROFKIT convert -q --to text $1.profdata -o $OUT",
    },
    Work {
        name: "overlap",
        line: "$PROFKIT overlap $1.profdata $2.profdata > $OUT",
    },
    Work {
        name: "show",
        line: "$PROFKIT show $1.profdata > $OUT",
    },
    Work {
        name: "show of one function",
        line: "$PROFKIT show --function f1 $1.profdata > $OUT",
    },
];

const FILES: &[Work] = &[
    Work {
        name: "merge of raw profiles",
        line: "$PROFKIT merge -q $FILES/raw -o $OUT",
    },
    Work {
        name: "merge of text profiles",
        line: "$PROFKIT merge -q $FILES/text -o $OUT",
    },
    Work {
        name: "doctor of raw profiles",
        line: "$PROFKIT doctor $FILES/raw > $OUT",
    },
];

/// What was measured by the number of functions or of files.
struct Panel {
    what: &'static str,
    works: &'static [Work],
    /// The points of each work.
    rows: Vec<Vec<Point>>,
}

/// Medians of one work at one size: seconds of wall time and of processor time, and MiB at the peak.
#[derive(Clone, Copy)]
struct Point {
    size: u64,
    wall: f64,
    cpu: f64,
    peak: f64,
}

/// Measures all works at all sizes, and writes the table and the picture.
pub fn run(arguments: &Arguments, place: &Place) -> Result<()> {
    fs::create_dir_all(&place.folder)?;
    let functions: Vec<u64> = (3..=place.size(7, 4))
        .map(|power| 10u64.pow(power))
        .collect();
    let files: Vec<u64> = (1..=place.size(5, 2))
        .map(|power| 10u64.pow(power))
        .collect();
    let mut text = String::new();
    let mut panels = Vec::new();
    for (what, works, sizes) in [("functions", FUNCTIONS, functions), ("files", FILES, files)] {
        let mut rows: Vec<Vec<Point>> = works.iter().map(|_| Vec::new()).collect();
        for &size in &sizes {
            match what {
                "functions" => make_functions(place, size)?,
                _ => make_files(place, size)?,
            }
            for (work, points) in works.iter().zip(&mut rows) {
                let point = point(arguments, place, work, size)?;
                println!(
                    "{:<24} {size:>9} {what:<9} {:>9.3} s, {:>9.3} s of cpu, {:>8.1} MiB",
                    work.name, point.wall, point.cpu, point.peak
                );
                points.push(point);
            }
            // The largest inputs have gigabytes.
            for name in [format!("f{size}-1"), format!("f{size}-2")] {
                place.run(&format!("rm -f {name}.proftext {name}.profdata"))?;
            }
        }
        table(&mut text, what, works, &rows);
        panels.push(Panel { what, works, rows });
    }
    if arguments.small {
        return Ok(());
    }
    let picture = "docs/pictures/growth.svg";
    fs::write(repo_root().join(picture), svg(&panels))?;
    let _ = writeln!(text, "{}", tables::machine(arguments.runs.min(3))?);
    text += "\n![time and memory by functions and files](pictures/growth.svg)\n";
    tables::replace("docs/performance.md", "growth", &text)
}

/// Two profiles of so many functions with four counters each, as text and indexed.
fn make_functions(place: &Place, size: u64) -> Result<()> {
    for run in 1..=2 {
        let name = format!("f{size}-{run}");
        let path = place.folder.join(format!("{name}.proftext"));
        let mut text = BufWriter::new(File::create(&path)?);
        text.write_all(b":ir\n")?;
        for function in 0..size {
            let random = scramble(function);
            let [a, b, c] =
                [random & 7, random >> 8 & 255, random >> 16 & 65_535].map(|count| count * run);
            write!(
                text,
                "f{function}\n{}\n4\n{a}\n{b}\n{c}\n0\n\n",
                random >> 4
            )?;
        }
        text.flush()?;
        place.run(&format!(
            "$PROFKIT convert -q {name}.proftext -o {name}.profdata"
        ))?;
    }
    Ok(())
}

/// So many raw profiles of one program, and as many text profiles.
fn make_files(place: &Place, size: u64) -> Result<()> {
    super::inputs::small_raw(place)?;
    let raw = fs::read(place.folder.join("small.profraw"))?;
    let folder = place.folder.join(format!("files-{size}"));
    for kind in ["raw", "text"] {
        fs::create_dir_all(folder.join(kind))?;
    }
    for file in 0..size {
        fs::write(folder.join(format!("raw/{file}.profraw")), &raw)?;
        let text = format!("main\n1\n1\n{file}\n\nf{}\n2\n1\n3\n", file % 1000);
        fs::write(folder.join(format!("text/{file}.proftext")), text)?;
    }
    Ok(())
}

fn point(arguments: &Arguments, place: &Place, work: &Work, size: u64) -> Result<Point> {
    let line = work.line.replace("$FILES", &format!("files-{size}"));
    let line = line
        .replace("$1", &format!("f{size}-1"))
        .replace("$2", &format!("f{size}-2"));
    let line = place.expand(&line, "growth.out", "");
    let runs: Result<Vec<Measured>> = (0..arguments.runs.min(3))
        .map(|_| one_run("", place, &line, "growth.out"))
        .collect();
    let runs = runs.with_context(|| work.name)?;
    Ok(Point {
        size,
        wall: median(runs.iter().map(milliseconds).collect()) / 1e3,
        cpu: median(runs.iter().map(processor).collect()) / 1e3,
        peak: peak_mib(&runs),
    })
}

/// A row for each work: at each size its wall time and its memory.
fn table(text: &mut String, what: &str, works: &[Work], rows: &[Vec<Point>]) {
    let sizes: Vec<String> = rows
        .iter()
        .take(1)
        .flatten()
        .map(|point| grouped(point.size))
        .collect();
    let _ = writeln!(text, "| {what} | {} |", sizes.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(sizes.len()));
    for (work, points) in works.iter().zip(rows) {
        let cells: Vec<String> = points
            .iter()
            .map(|point| format!("{} s, {:.0} MiB", seconds(point.wall), point.peak))
            .collect();
        let _ = writeln!(text, "| {} | {} |", work.name, cells.join(" | "));
    }
    text.push('\n');
}

fn seconds(value: f64) -> String {
    if value < 0.1 {
        format!("{value:.3}")
    } else {
        format!("{value:.2}")
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let (head, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
    let parts = rest.as_bytes().chunks(3).map(String::from_utf8_lossy);
    parts.fold(head.to_owned(), |text, part| text + "," + &part)
}

const COLORS: [&str; 6] = [
    "#2166ac", "#b2182b", "#1b7837", "#7b3294", "#b35806", "#4d4d4d",
];
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 300.0;

/// Time above and memory below, by functions on the left and by files on the right. Both axes are logarithmic, so
/// that growth in proportion is a line that rises as the grey ones do.
fn svg(panels: &[Panel]) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        60.0 + 2.0 * (WIDTH + 170.0),
        2.0 * (HEIGHT + 60.0)
    );
    for (column, panel) in panels.iter().enumerate() {
        for (row, (title, value)) in [
            (
                "seconds of wall time",
                (|point| point.wall) as fn(&Point) -> f64,
            ),
            ("MiB at the peak", |point| point.peak),
        ]
        .into_iter()
        .enumerate()
        {
            let (left, top) = (
                50.0 + number(column as u64) * (WIDTH + 170.0),
                30.0 + number(row as u64) * (HEIGHT + 60.0),
            );
            let _ = writeln!(text, "<g transform=\"translate({left} {top})\">");
            panel.draw(&mut text, title, value);
            text.push_str("</g>\n");
        }
    }
    text + "</svg>\n"
}

impl Panel {
    fn draw(&self, text: &mut String, title: &str, value: fn(&Point) -> f64) {
        let Panel { what, works, rows } = self;
        let all = || rows.iter().flatten();
        let bounds = |of: &dyn Fn(&Point) -> f64| {
            let logs = || all().map(|point| of(point).max(1e-4).log10());
            (
                logs().fold(f64::INFINITY, f64::min).floor(),
                logs().fold(f64::NEG_INFINITY, f64::max).ceil(),
            )
        };
        let (first_x, last_x) = bounds(&|point| number(point.size));
        let (first_y, last_y) = bounds(&|point| value(point));
        let x = |log: f64| (log - first_x) / (last_x - first_x) * WIDTH;
        let y = |log: f64| HEIGHT - (log - first_y) / (last_y - first_y) * HEIGHT;
        let _ = writeln!(
            text,
            "<text x=\"0\" y=\"-10\" font-weight=\"bold\">{title}, by {what}</text>"
        );
        let _ = writeln!(
            text,
            "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
        );
        let mut tick = first_y;
        while tick <= last_y {
            let at = y(tick);
            let _ = writeln!(
                text,
                "<path d=\"M0 {at:.1}H{WIDTH}\" stroke=\"#eee\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                at + 4.0,
                10f64.powf(tick)
            );
            // In proportion: ten times as much for ten times the size.
            let end = (last_x - first_x + tick).min(last_y);
            let _ = writeln!(
                text,
                "<path d=\"M0 {at:.1}L{:.1} {:.1}\" stroke=\"#ddd\" stroke-dasharray=\"3 3\"/>",
                x(first_x + end - tick),
                y(end)
            );
            tick += 1.0;
        }
        let mut tick = first_x;
        while tick <= last_x {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">10<tspan dy=\"-4\" font-size=\"8\">{tick}</tspan></text>",
                x(tick),
                HEIGHT + 16.0
            );
            tick += 1.0;
        }
        // Labels stand beside the ends of their lines, one below the other.
        let mut ends = Vec::new();
        for ((work, points), color) in works.iter().zip(rows).zip(COLORS) {
            let places = points.iter().map(|point| {
                let (x, y) = (
                    x(number(point.size).log10()),
                    y(value(point).max(1e-4).log10()),
                );
                format!("{x:.1},{y:.1}")
            });
            let places: Vec<String> = places.collect();
            let _ = writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
                places.join(" ")
            );
            if let Some(last) = points.last() {
                ends.push((y(value(last).max(1e-4).log10()), work.name, color));
            }
        }
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut next = f64::NEG_INFINITY;
        for (at, name, color) in ends {
            next = at.max(next + 13.0);
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{:.1}\" fill=\"{color}\">{name}</text>",
                WIDTH + 6.0,
                next + 4.0
            );
        }
    }
}
