//! Reproduces `overlap --sample` (`SampleOverlapAggregator` in `llvm-profdata.cpp`), which measures how similar two
//! profiles are.
use super::super::thresholds::{no_cutoff, thresholds};
use super::checks::header_fault;
use super::read_options;
use super::show::{context, sound};
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_data::sample::overlap::{
    FunctionOverlap, HotOverlap, Incomparable, OverlapSide, SampleOverlap,
};
use profkit_data::sample::{ProfileKind, SampleProfile, SampleReadOptions, read_with, summarize};
use profkit_data::share;
use profkit_data::summary::Thresholds;
use profkit_merge::InputData;
use profkit_merge::files::Content;

/// Runs `overlap --sample`.
pub fn run(parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    let name = parsed.output();
    let output = output::create(session, name, Content::Text)?;
    let [base, test] = [0, 1].map(|index| {
        let file = parsed.positionals.get(index);
        file.map_or(b"".as_slice(), Vec::as_slice)
    });
    let options = read_options(parsed);
    let loaded = load(session, base, test, options, thresholds(parsed))?;
    let [base, test] = loaded.each_ref().map(|loaded| Side {
        file: loaded.file,
        profile: &loaded.profile,
        sums: OverlapSide::new(&loaded.profile, loaded.threshold),
    });
    let overlap = SampleOverlap::of(&base.sums, &test.sums).map_err(incomparable)?;
    output::write(session, output, name, |lines| {
        let mut has_samples = true;
        for side in [&base, &test] {
            if side.sums.samples() == 0 {
                has_samples = false;
                lines.text(b"Sum of sample counts for profile ");
                lines.text(side.file).text(b" is 0.").end();
            }
        }
        if has_samples {
            program(&overlap, lines, &base, &test);
            functions(&overlap, lines, &base, &test, &Filter::new(parsed));
        }
        Ok(())
    })
}

fn incomparable(differ: Incomparable) -> Fault {
    Fault::new(match differ {
        Incomparable::Probes => "cannot compare probe-based profile with non-probe-based profile",
        Incomparable::Contexts => "cannot compare CS profile with non-CS profile",
    })
}

struct Loaded<'n> {
    file: &'n [u8],
    profile: SampleProfile,
    /// The smallest number of samples with which a line is hot.
    threshold: u64,
}

struct Side<'l> {
    file: &'l [u8],
    profile: &'l SampleProfile,
    sums: OverlapSide<'l>,
}

impl Side<'_> {
    /// Returns the name of a function, with its callers if the profile has contexts. `function` is the index of the
    /// function in the profile.
    fn name(&self, function: usize) -> Option<Vec<u8>> {
        let contexts = self.profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
        let function = self.profile.functions().get(function)?;
        Some(context(&self.profile.names, function, contexts))
    }
}

/// Loads both profiles. The headers of both are checked before the rest of either profile is read.
fn load<'n>(
    session: &Session<'_>,
    base: &'n [u8],
    test: &'n [u8],
    options: SampleReadOptions,
    thresholds: Thresholds,
) -> Result<[Loaded<'n>; 2], Fault> {
    let open = |file: &'n [u8]| {
        let bytes = session.read(file)?;
        let data = bytes.as_ref();
        match header_fault(data) {
            Some(check) => Err(Fault::of(file, check.text)),
            None => Ok(bytes),
        }
    };
    let opened = [(base, open(base)?), (test, open(test)?)];
    let read = |(file, bytes): (&'n [u8], InputData<'static>)| {
        let data = bytes.as_ref();
        let mut profile = SampleProfile::new();
        let report = read_with(data, &mut profile, 1, &options);
        sound(file, data, &report)?;
        Ok((file, profile, report.summary))
    };
    // LLVM reads both profiles first, then compares their kinds, and then determines the thresholds.
    let [base, test] = opened.map(read);
    let (base, test) = (base?, test?);
    if let Some(differ) = Incomparable::between(base.1.kind, test.1.kind) {
        return Err(incomparable(differ));
    }
    let [base, test] = [base, test].map(|(file, profile, summary)| {
        let summary = summary.unwrap_or_else(|| summarize(&profile));
        let threshold = thresholds.hot(&summary).ok_or_else(no_cutoff)?;
        Ok(Loaded {
            file,
            profile,
            threshold,
        })
    });
    Ok([base?, test?])
}

/// The conditions under which a function gets a line of its own in the output.
struct Filter<'p> {
    largest: u64,
    similarity: f64,
    name: &'p [u8],
}

impl<'p> Filter<'p> {
    fn new(parsed: &'p Parsed) -> Self {
        Filter {
            largest: parsed.number("value-cutoff").unwrap_or(u64::MAX),
            similarity: share(
                parsed.number("similarity-cutoff").unwrap_or(0),
                1_000_000u64,
            ),
            name: parsed.text("function"),
        }
    }

    fn shows(&self, row: &FunctionOverlap, base_name: Option<&[u8]>) -> bool {
        row.largest >= self.largest
            || base_name.is_some_and(|name| {
                row.similarity < self.similarity
                    || !self.name.is_empty() && memchr::memmem::find(name, self.name).is_some()
            })
    }
}

/// Prints the same text as `dumpProgramSummary` and `dumpHotFuncAndBlockOverlap`.
fn program(overlap: &SampleOverlap, lines: &mut Lines<'_>, base: &Side<'_>, test: &Side<'_>) {
    let title = [
        b"Profile overlap information for base_profile: ".as_slice(),
        base.file,
        b" and test_profile: ",
        test.file,
        b"\nProgram level:\n",
    ];
    lines.text(title.concat());
    let mut percent = |what: &str, share: f64| {
        let text = format!("{what}: {}", percentage(share, 3));
        lines.text(text).end();
    };
    percent("  Whole program profile similarity", overlap.similarity);
    percent(
        "  Whole program sample overlap",
        share(overlap.common_samples, overlap.union_samples),
    );
    percent(
        "    percentage of samples unique in base profile",
        share(overlap.base_unique_samples, base.sums.samples()),
    );
    percent(
        "    percentage of samples unique in test profile",
        share(overlap.test_unique_samples, test.sums.samples()),
    );
    let mut count = |what: &str, count: u64| {
        lines.text(what).text(b": ").number(count).end();
    };
    count("    total samples in base profile", base.sums.samples());
    count("    total samples in test profile", test.sums.samples());
    let shared = share(overlap.common_functions, overlap.union_functions);
    lines.text(format!("  Function overlap: {}", percentage(shared, 3)));
    lines.end();
    let mut count = |what: &str, count: u64| {
        lines.text(what).text(b": ").number(count).end();
    };
    count("    overlap functions", overlap.common_functions);
    count(
        "    functions unique in base profile",
        overlap.base_unique_functions,
    );
    count(
        "    functions unique in test profile",
        overlap.test_unique_functions,
    );
    hot(overlap.hot_functions, lines, "function");
    hot(overlap.hot_lines, lines, "block");
}

/// Prints the same text as `dumpFuncSimilarity`: the functions in descending order of their weight in the first
/// profile.
fn functions(
    overlap: &SampleOverlap,
    lines: &mut Lines<'_>,
    base: &Side<'_>,
    test: &Side<'_>,
    filter: &Filter<'_>,
) {
    let rows = overlap.functions.iter().filter(|row| {
        let base_name = row.base_function.and_then(|at| base.name(at));
        filter.shows(row, base_name.as_deref())
    });
    let mut rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    lines.text(b"Function-level details:").end();
    let titles = [
        "Base weight",
        "Test weight",
        "Similarity",
        "Overlap",
        "Base unique",
        "Test unique",
        "Base samples",
        "Test samples",
    ];
    columns(lines, titles.map(str::to_owned), b"Function name");
    rows.sort_by(|one, two| {
        let weight = |row: &FunctionOverlap| share(row.base_samples, base.sums.samples());
        weight(two).total_cmp(&weight(one))
    });
    for row in rows {
        let Some(name) = test.name(row.function) else {
            continue;
        };
        let cells = [
            percentage(share(row.base_samples, base.sums.samples()), 2),
            percentage(share(row.test_samples, test.sums.samples()), 2),
            percentage(row.similarity, 2),
            percentage(share(row.common, row.union), 2),
            percentage(share(row.base_unique, row.base_samples), 2),
            percentage(share(row.test_unique, row.test_samples), 2),
            row.base_samples.to_string(),
            row.test_samples.to_string(),
        ];
        columns(lines, cells, &name);
    }
}

fn hot(hot: HotOverlap, lines: &mut Lines<'_>, what: &str) {
    // If nothing is hot, LLVM divides zero by zero and prints the result.
    let overlap = if hot.either == 0 {
        f64::NAN
    } else {
        share(hot.both, hot.either)
    };
    let overlap = percentage(overlap, 3);
    lines.text(format!("  Hot-{what} overlap: {overlap}")).end();
    for (unit, count) in [
        (format!("overlap hot {what}s"), hot.both),
        (
            format!("hot {what}s unique in base profile"),
            hot.base - hot.both,
        ),
        (
            format!("hot {what}s unique in test profile"),
            hot.test - hot.both,
        ),
    ] {
        lines.text(format!("    {unit}: {count}")).end();
    }
}

/// Formats a share as C's `printf` does. A NaN is printed with a minus sign.
fn percentage(share: f64, digits: usize) -> String {
    if share.is_nan() {
        "-nan%".to_owned()
    } else {
        format!("{:.digits$}%", share * 100.0)
    }
}

/// Prints a row of a table. Each cell begins at a fixed column, or after one blank if the previous cell is too long.
fn columns(lines: &mut Lines<'_>, cells: [String; 8], last: &[u8]) {
    const STARTS: [usize; 9] = [0, 15, 30, 43, 53, 67, 81, 96, 111];
    let mut row: Vec<u8> = Vec::new();
    let cells = cells.iter().map(|cell| cell.as_bytes()).chain([last]);
    for (cell, start) in cells.zip(STARTS) {
        if start > 0 {
            row.resize(start.max(row.len() + 1), b' ');
        }
        row.extend_from_slice(cell);
    }
    lines.text(&row).end();
}
