//! `overlap --sample` (`SampleOverlapAggregator` in `llvm-profdata.cpp`): how alike two profiles are.
use super::super::command_line::Parsed;
use super::super::lines::Lines;
use super::super::messages::Fault;
use super::super::{input, output};
use super::show::{context, sound};
use super::{fault, read_options};
use profkit_data::sample::{
    BodyLine, Frame, Function, Inlined, ProfileKind, ReadOptions, SampleEncoding, SampleName,
    SampleProfile, Samples, encoding, ext_binary, read_with, summarize,
};
use profkit_data::summary::Summary;
use profkit_data::{Error, ErrorKind};
use profkit_merge::files::Content;
use std::cmp::Ordering;

/// Runs `overlap --sample`.
pub fn run(parsed: &Parsed) -> Result<(), Fault> {
    let name = parsed.output();
    let output = output::create(name, Content::Text)?;
    let [base, test] = [0, 1].map(|index| {
        let file = parsed.positionals.get(index);
        file.map_or(b"".as_slice(), Vec::as_slice)
    });
    let cutoff = parsed.number("profile-summary-cutoff-hot");
    let options = read_options(parsed);
    let [base, test] = load(base, test, options, cutoff.unwrap_or(HOT_CUTOFF))?;
    let family = |side: &Side<'_>, kind| side.profile.kind.contains(kind);
    if family(&base, ProfileKind::PROBE_BASED) != family(&test, ProfileKind::PROBE_BASED) {
        return Err(Fault::new(
            "cannot compare probe-based profile with non-probe-based profile",
        ));
    }
    if family(&base, ProfileKind::CONTEXT_SENSITIVE)
        != family(&test, ProfileKind::CONTEXT_SENSITIVE)
    {
        return Err(Fault::new("cannot compare CS profile with non-CS profile"));
    }
    output::write(output, name, |lines| {
        let mut has_samples = true;
        for side in [&base, &test] {
            if side.samples == 0 {
                has_samples = false;
                lines.text(b"Sum of sample counts for profile ");
                lines.text(side.file).text(b" is 0.").end();
            }
        }
        if has_samples {
            let overlap = Overlap::of(&base, &test, &Filter::new(parsed));
            overlap.program(lines, &base, &test);
            overlap.functions(lines, &base, &test);
        }
        Ok(())
    })
}

/// One of the two profiles.
struct Side<'n> {
    file: &'n [u8],
    profile: SampleProfile,
    /// Lines with at least so many samples are hot.
    threshold: u64,
    /// Of each function.
    sums: Vec<Sums>,
    /// All samples of lines.
    samples: u64,
}

/// Both headers are looked at before either profile is read.
fn load<'n>(
    base: &'n [u8],
    test: &'n [u8],
    options: ReadOptions,
    cutoff: u64,
) -> Result<[Side<'n>; 2], Fault> {
    let open = |file: &'n [u8]| {
        let bytes = input::read(file)?;
        let data = bytes.as_ref();
        let header = match encoding(data) {
            None => Err(Error::new(
                ErrorKind::UnrecognizedFormat,
                "no sample profile",
            )),
            Some(SampleEncoding::ExtBinary) => {
                ext_binary::ExtBinaryProfile::parse(data).map(|_| ())
            }
            Some(_) => Ok(()),
        };
        header.map_err(|error| fault(file, data, &error))?;
        Ok(bytes)
    };
    let opened = [(base, open(base)?), (test, open(test)?)];
    let [base, test] = opened.map(|(file, bytes)| {
        let data = bytes.as_ref();
        let mut profile = SampleProfile::new();
        let report = read_with(data, &mut profile, 1, options);
        sound(file, data, &report)?;
        let summary = report.summary.unwrap_or_else(|| summarize(&profile));
        let Some(threshold) = hot_threshold(&summary, cutoff) else {
            return Err(Fault::bare(
                "LLVM ERROR",
                "Desired percentile exceeds the maximum cutoff",
            ));
        };
        let sums: Vec<Sums> = profile
            .functions()
            .iter()
            .map(|function| Sums::of(&function.samples, threshold))
            .collect();
        let samples = sums
            .iter()
            .fold(0u64, |sum, sums| sum.wrapping_add(sums.samples));
        Ok(Side {
            file,
            profile,
            threshold,
            sums,
            samples,
        })
    });
    Ok([base?, test?])
}

/// The share of all samples that hot lines have, in millionths.
const HOT_CUTOFF: u64 = 990_000;

/// The least count of the lines that this share of all samples is in.
fn hot_threshold(summary: &Summary, cutoff: u64) -> Option<u64> {
    let mut entries = summary.cutoffs.iter();
    let entry = entries.find(|entry| entry.cutoff >= cutoff);
    entry.map(|entry| entry.min_count)
}

/// The lines of a function, inlined ones included.
#[derive(Clone, Copy, Default)]
struct Sums {
    samples: u64,
    largest: u64,
    hot_lines: u64,
}

impl Sums {
    fn of(samples: &Samples, threshold: u64) -> Self {
        let mut sums = Sums::default();
        sums.add(samples, threshold);
        sums
    }

    fn add(&mut self, samples: &Samples, threshold: u64) {
        for line in &samples.body {
            self.samples = self.samples.wrapping_add(line.samples);
            self.largest = self.largest.max(line.samples);
            self.hot_lines += u64::from(line.samples >= threshold);
        }
        for inlined in &samples.inlined {
            self.add(&inlined.samples, threshold);
        }
    }
}

/// Which functions get a line of their own.
struct Filter<'p> {
    largest: u64,
    similarity: f64,
    name: &'p [u8],
}

impl<'p> Filter<'p> {
    fn new(parsed: &'p Parsed) -> Self {
        Filter {
            largest: parsed.number("value-cutoff").unwrap_or(u64::MAX),
            similarity: float(parsed.number("similarity-cutoff").unwrap_or(0)) / 1_000_000.0,
            name: parsed.text("function"),
        }
    }

    fn shows(&self, row: &Row, largest: u64, base_name: Option<&[u8]>) -> bool {
        largest >= self.largest
            || base_name.is_some_and(|name| {
                row.similarity < self.similarity
                    || !self.name.is_empty() && memchr::memmem::find(name, self.name).is_some()
            })
    }
}

/// A function of the second profile.
#[derive(Clone, Copy, Default)]
struct Row {
    /// By its place among the functions of the second profile.
    function: usize,
    base_samples: u64,
    test_samples: u64,
    base_unique: u64,
    test_unique: u64,
    common: u64,
    union: u64,
    similarity: f64,
}

/// How many functions or lines are hot in each profile.
#[derive(Default)]
struct Hot {
    base: u64,
    test: u64,
    both: u64,
    either: u64,
}

/// What the two have in common.
#[derive(Default)]
struct Overlap {
    similarity: f64,
    common_samples: u64,
    union_samples: u64,
    base_unique_samples: u64,
    test_unique_samples: u64,
    common_functions: u64,
    union_functions: u64,
    base_unique_functions: u64,
    test_unique_functions: u64,
    hot_functions: Hot,
    hot_lines: Hot,
    rows: Vec<Row>,
}

/// What is smaller is taken for an error of rounding, as in LLVM.
const EPSILON: f64 = 0.000_005;

#[expect(
    clippy::cast_precision_loss,
    reason = "LLVM calculates shares in floating point"
)]
fn float(count: u64) -> f64 {
    count as f64
}

/// A part of a whole; 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => float(part) / float(whole),
    }
}

impl Overlap {
    fn of(base: &Side<'_>, test: &Side<'_>, filter: &Filter<'_>) -> Self {
        let mut overlap = Overlap::default();
        let mut compared = Compared {
            base,
            test,
            hot: Hot::default(),
        };
        let mut matched = vec![false; base.profile.functions().len()];
        overlap.union_functions = matched.len() as u64;
        for (index, function) in test.profile.functions().iter().enumerate() {
            let sums = sums(test, index);
            let mut row = Row {
                function: index,
                test_samples: sums.samples,
                ..Row::default()
            };
            let found = same_function(&base.profile, &test.profile, function);
            let twin = found.and_then(|at| Some((at, base.profile.functions().get(at)?)));
            let base_name = match twin {
                None => {
                    overlap.test_unique_functions += 1;
                    overlap.union_functions += 1;
                    row.test_unique = sums.samples;
                    overlap.union_samples = overlap.union_samples.wrapping_add(sums.samples);
                    compared.hot_lines(0, sums.samples, sums.hot_lines);
                    None
                }
                Some((at, twin)) => {
                    if let Some(seen) = matched.get_mut(at) {
                        *seen = true;
                    }
                    overlap.common_functions += 1;
                    row.base_samples = self::sums(base, at).samples;
                    let inner = compared.function(&twin.samples, &function.samples, &mut row);
                    let inner = if inner.abs() < EPSILON { 0.0 } else { inner };
                    let base_share = share(row.base_samples, base.samples);
                    let test_share = share(row.test_samples, test.samples);
                    row.similarity = inner * (1.0 - (base_share - test_share).abs());
                    overlap.similarity += row.similarity * (base_share / 2.0 + test_share / 2.0);
                    overlap.common_samples = overlap.common_samples.wrapping_add(row.common);
                    overlap.union_samples = overlap.union_samples.wrapping_add(row.union);
                    let unique = &mut overlap.base_unique_samples;
                    *unique = unique.wrapping_add(row.base_unique);
                    let contexts = base.profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
                    Some(context(&base.profile.names, twin, contexts))
                }
            };
            let unique = &mut overlap.test_unique_samples;
            *unique = unique.wrapping_add(row.test_unique);
            if filter.shows(&row, sums.largest, base_name.as_deref()) {
                overlap.rows.push(row);
            }
        }
        for (index, _) in matched.iter().enumerate().filter(|(_, seen)| !**seen) {
            let sums = sums(base, index);
            overlap.base_unique_functions += 1;
            let unique = &mut overlap.base_unique_samples;
            *unique = unique.wrapping_add(sums.samples);
            overlap.union_samples = overlap.union_samples.wrapping_add(sums.samples);
            compared.hot_lines(sums.samples, 0, sums.hot_lines);
        }
        if (overlap.similarity - 1.0).abs() < EPSILON {
            overlap.similarity = 1.0;
        }
        overlap.hot_lines = compared.hot;
        overlap.hot_functions(base, test);
        overlap
    }

    fn hot_functions(&mut self, base: &Side<'_>, test: &Side<'_>) {
        let is_hot = |side: &Side<'_>, index| sums(side, index).largest >= side.threshold;
        let count = |side: &Side<'_>| {
            let all = 0..side.sums.len();
            all.filter(|&index| is_hot(side, index)).count() as u64
        };
        let functions = test.profile.functions().iter().enumerate();
        let both = functions.filter(|&(index, function)| {
            is_hot(test, index)
                && same_function(&base.profile, &test.profile, function)
                    .is_some_and(|twin| is_hot(base, twin))
        });
        let both = both.count() as u64;
        let (base, test) = (count(base), count(test));
        self.hot_functions = Hot {
            base,
            test,
            both,
            either: base + test - both,
        };
    }

    /// `dumpProgramSummary`, `dumpHotFuncAndBlockOverlap`.
    fn program(&self, lines: &mut Lines<'_>, base: &Side<'_>, test: &Side<'_>) {
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
        percent("  Whole program profile similarity", self.similarity);
        percent(
            "  Whole program sample overlap",
            share(self.common_samples, self.union_samples),
        );
        percent(
            "    percentage of samples unique in base profile",
            share(self.base_unique_samples, base.samples),
        );
        percent(
            "    percentage of samples unique in test profile",
            share(self.test_unique_samples, test.samples),
        );
        let mut count = |what: &str, count: u64| {
            lines.text(what).text(b": ").number(count).end();
        };
        count("    total samples in base profile", base.samples);
        count("    total samples in test profile", test.samples);
        let overlap = share(self.common_functions, self.union_functions);
        lines.text(format!("  Function overlap: {}", percentage(overlap, 3)));
        lines.end();
        let mut count = |what: &str, count: u64| {
            lines.text(what).text(b": ").number(count).end();
        };
        count("    overlap functions", self.common_functions);
        count(
            "    functions unique in base profile",
            self.base_unique_functions,
        );
        count(
            "    functions unique in test profile",
            self.test_unique_functions,
        );
        self.hot_functions.print(lines, "function");
        self.hot_lines.print(lines, "block");
    }

    /// `dumpFuncSimilarity`: by weight in the first profile, descending.
    fn functions(&self, lines: &mut Lines<'_>, base: &Side<'_>, test: &Side<'_>) {
        if self.rows.is_empty() {
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
        let mut rows = self.rows.clone();
        rows.sort_by(|one, two| {
            let weight = |row: &Row| share(row.base_samples, base.samples);
            weight(two).total_cmp(&weight(one))
        });
        let contexts = test.profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
        for row in &rows {
            let Some(function) = test.profile.functions().get(row.function) else {
                continue;
            };
            let cells = [
                percentage(share(row.base_samples, base.samples), 2),
                percentage(share(row.test_samples, test.samples), 2),
                percentage(row.similarity, 2),
                percentage(share(row.common, row.union), 2),
                percentage(share(row.base_unique, row.base_samples), 2),
                percentage(share(row.test_unique, row.test_samples), 2),
                row.base_samples.to_string(),
                row.test_samples.to_string(),
            ];
            let name = context(&test.profile.names, function, contexts);
            columns(lines, cells, &name);
        }
    }
}

impl Hot {
    fn print(&self, lines: &mut Lines<'_>, what: &str) {
        // LLVM divides by zero where nothing is hot.
        let overlap = float(self.both) / float(self.either);
        let overlap = percentage(overlap, 3);
        lines.text(format!("  Hot-{what} overlap: {overlap}")).end();
        for (unit, count) in [
            (format!("overlap hot {what}s"), self.both),
            (
                format!("hot {what}s unique in base profile"),
                self.base - self.both,
            ),
            (
                format!("hot {what}s unique in test profile"),
                self.test - self.both,
            ),
        ] {
            lines.text(format!("    {unit}: {count}")).end();
        }
    }
}

fn sums(side: &Side<'_>, index: usize) -> Sums {
    side.sums.get(index).copied().unwrap_or_default()
}

/// Where the other profile has the function of the same name and callers. Hashes are not the names they are of.
fn same_function(
    other: &SampleProfile,
    profile: &SampleProfile,
    function: &Function,
) -> Option<usize> {
    let there = |name| other.names.find(profile.names.get(name));
    let callers: Option<Vec<Frame>> = function
        .callers
        .iter()
        .map(|frame| {
            Some(Frame {
                name: there(frame.name)?,
                ..*frame
            })
        })
        .collect();
    other.find(&callers?, there(function.samples.name)?)
}

/// Two profiles while their functions are compared.
struct Compared<'s, 'n> {
    base: &'s Side<'n>,
    test: &'s Side<'n>,
    hot: Hot,
}

impl Compared<'_, '_> {
    /// Counts hot lines, by the samples of the unit that they are in.
    fn hot_lines(&mut self, base: u64, test: u64, lines: u64) {
        let base = base >= self.base.threshold;
        let test = test >= self.test.threshold;
        let count = |is_hot: bool| if is_hot { lines } else { 0 };
        self.hot.base += count(base);
        self.hot.test += count(test);
        self.hot.both += count(base && test);
        self.hot.either += count(base || test);
    }

    /// Adds a unit of a function: samples in either profile, `None` where it has no such unit. Returns the difference.
    fn unit(&mut self, base: Option<u64>, test: Option<u64>, lines: u64, row: &mut Row) -> f64 {
        match (base, test) {
            (Some(base), None) => row.base_unique = row.base_unique.wrapping_add(base),
            (None, Some(test)) => row.test_unique = row.test_unique.wrapping_add(test),
            _ => {}
        }
        let (base, test) = (base.unwrap_or(0), test.unwrap_or(0));
        row.union = row.union.wrapping_add(base.max(test));
        row.common = row.common.wrapping_add(base.min(test));
        self.hot_lines(base, test, lines);
        let similarity =
            1.0 - (share(base, row.base_samples) - share(test, row.test_samples)).abs();
        1.0 - similarity
    }

    /// How alike two functions, or two instances of an inlined one, are inside: 1 for the same.
    fn function(&mut self, base: &Samples, test: &Samples, row: &mut Row) -> f64 {
        let mut difference = 0.0;
        let line = |line: &BodyLine| line.samples;
        join(
            &base.body,
            &test.body,
            |one, two| one.location.cmp(&two.location),
            |one, two| difference += self.unit(one.map(line), two.map(line), 1, row),
        );
        let base_order = self.base.by_name(&base.inlined);
        let test_order = self.test.by_name(&test.inlined);
        join(
            &base_order,
            &test_order,
            |one, two| {
                let names = (self.base.name(one), self.test.name(two));
                (one.location.cmp(&two.location)).then_with(|| names.0.cmp(&names.1))
            },
            |one, two| {
                difference += match (one, two) {
                    (Some(one), Some(two)) => {
                        2.0 - 2.0 * self.function(&one.samples, &two.samples, row)
                    }
                    (one, two) => {
                        let of = |it: Option<&&Inlined>, side: &Side<'_>| {
                            it.map(|it| Sums::of(&it.samples, side.threshold))
                        };
                        let (one, two) = (of(one, self.base), of(two, self.test));
                        let lines = one.or(two).map_or(0, |sums| sums.hot_lines);
                        let (one, two) = (one.map(|it| it.samples), two.map(|it| it.samples));
                        self.unit(one, two, lines, row)
                    }
                };
            },
        );
        (2.0 - difference) / 2.0
    }
}

impl Side<'_> {
    fn name(&self, inlined: &Inlined) -> SampleName<'_> {
        self.profile.names.get(inlined.samples.name)
    }

    /// By place, then by name.
    fn by_name<'s>(&self, inlined: &'s [Inlined]) -> Vec<&'s Inlined> {
        let mut order: Vec<&Inlined> = inlined.iter().collect();
        order.sort_by(|one, two| {
            (one.location.cmp(&two.location)).then_with(|| self.name(one).cmp(&self.name(two)))
        });
        order
    }
}

/// Goes through two sorted lists at once: what both have together, the rest alone.
fn join<T>(
    one: &[T],
    two: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    mut pair: impl FnMut(Option<&T>, Option<&T>),
) {
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    loop {
        match (one.peek(), two.peek()) {
            (None, None) => return,
            (Some(_), None) => pair(one.next(), None),
            (None, Some(_)) => pair(None, two.next()),
            (Some(left), Some(right)) => match compare(left, right) {
                Ordering::Less => pair(one.next(), None),
                Ordering::Greater => pair(None, two.next()),
                Ordering::Equal => pair(one.next(), two.next()),
            },
        }
    }
}

/// A share as C's `printf` writes it, which has a sign for what is no number.
fn percentage(share: f64, digits: usize) -> String {
    match share.is_nan() {
        true => "-nan%".to_owned(),
        false => format!("{:.digits$}%", share * 100.0),
    }
}

/// A row of a table, each cell at its column or behind what is longer.
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
