//! The output of `profkit overlap`. [docs/formats/overlap-json.md] describes the JSON.
//!
//! [docs/formats/overlap-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/overlap-json.md
use crate::document::write_json;
use crate::{Answer, Document, grouped, percent_beside, plural, share_percent};
use profkit_analysis::names;
use profkit_analysis::overlap::{
    CannotCompare, ComparedProfile, FunctionDifference, PairOverlap, ProfileSize,
};
use profkit_data::detect::Family;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

const SCHEMA_VERSION: u32 = 2;

/// The comparison of several profiles, in the form in which it is printed. Each pair of profiles is compared.
///
/// ```
/// use profkit_analysis::overlap::ComparedProfile;
/// use profkit_report::overlap::OverlapReport;
///
/// let profiles = ComparedProfile::open_all(&[b"main\n1234\n1\n90\n", b"main\n1234\n1\n10\n"]);
/// let [one, two] = profiles.try_into().unwrap();
/// let (one, two) = (one?, two?);
/// let report = OverlapReport::new(&[("one", &one), ("two", &two)], 10).unwrap();
/// assert_eq!(report.gate(100.0), None);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct OverlapReport {
    schema: &'static str,
    schema_version: u32,
    /// The kind of the profiles: `instrumentation`, `sample`, `heap` or `mip`.
    kind: &'static str,
    /// The name of what the profiles count: `counts`, `samples`, `bytes` or `functions covered`.
    unit: &'static str,
    profiles: Vec<ProfileRow>,
    pairs: Vec<PairRow>,
    /// Whether the text has names as they are in the profiles, without demangling them.
    #[serde(skip)]
    pub mangled: bool,
}

#[derive(Clone, Debug, Serialize)]
struct ProfileRow {
    path: String,
    functions: u64,
    total: u128,
    /// The number of errors in the file. The sound parts of a damaged file are still compared.
    errors: u64,
}

#[derive(Clone, Debug, Serialize)]
struct PairRow {
    base: usize,
    test: usize,
    /// The overlap of the two profiles; `None` if one of them counted nothing.
    overlap_share: Option<f64>,
    common: u64,
    mismatched: u64,
    mismatched_share: f64,
    base_only: u64,
    base_only_share: f64,
    test_only: u64,
    test_only_share: f64,
    details: Vec<Detail>,
    functions: Vec<FunctionRow>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Detail {
    what: &'static str,
    overlap_share: f64,
}

#[derive(Clone, Debug, Serialize)]
struct FunctionRow {
    function: String,
    demangled: String,
    base_share: Option<f64>,
    test_share: Option<f64>,
    /// How alike the counts inside the function are, whatever its share of each profile.
    inner_share: Option<f64>,
    /// By which share the function lowers the overlap of the profiles.
    lost_share: f64,
}

impl FunctionRow {
    fn new(function: &FunctionDifference) -> Self {
        FunctionRow {
            function: String::from_utf8_lossy(&function.name).into_owned(),
            demangled: names::display(&function.name).into_owned(),
            base_share: function.base_share,
            test_share: function.test_share,
            inner_share: function.inner,
            lost_share: function.loss,
        }
    }
}

/// The largest error of an overlap in percent: it is a sum of many shares, each of which is rounded. A profile overlaps
/// with itself by 100 % only within this error.
const ROUNDING: f64 = 1e-6;

/// A profile with the name of its file.
pub type Named<'p> = (&'p str, &'p ComparedProfile<'p>);

impl OverlapReport {
    /// Compares each pair and lists `top` functions of each; fails with the first pair that cannot be compared.
    pub fn new<'p>(
        profiles: &[Named<'p>],
        top: usize,
    ) -> Result<Self, (&'p str, &'p str, CannotCompare)> {
        let (kind, unit) = match profiles.first().map(|(_, profile)| profile.family()) {
            Some(Family::Sample) => ("sample", "samples"),
            Some(Family::MemProf) => ("heap", "bytes"),
            Some(Family::Mip) => ("mip", "functions covered"),
            _ => ("instrumentation", "counts"),
        };
        let mut report = OverlapReport {
            schema: "profkit-overlap",
            schema_version: SCHEMA_VERSION,
            kind,
            unit,
            profiles: Vec::new(),
            pairs: Vec::new(),
            mangled: false,
        };
        for &(name, profile) in profiles {
            let ProfileSize { functions, total } = profile.size();
            report.profiles.push(ProfileRow {
                path: name.to_owned(),
                functions,
                total,
                errors: profile.damage.count,
            });
        }
        for (base, &one) in profiles.iter().enumerate() {
            for (test, &two) in profiles.iter().enumerate().skip(base + 1) {
                let pair = PairOverlap::of(one.1, two.1, top);
                let pair = pair.map_err(|why| (one.0, two.0, why))?;
                let notes = notes(&pair, one, two);
                report.pairs.push(PairRow::new(base, test, &pair, notes));
            }
        }
        Ok(report)
    }

    /// Returns a message if two profiles overlap by less than `least` percent; otherwise `None`.
    pub fn gate(&self, least: f64) -> Option<String> {
        let pairs = self.pairs.iter().map(|pair| pair.overlap_share);
        let found = pairs.min_by(|one, two| one.unwrap_or(-1.0).total_cmp(&two.unwrap_or(-1.0)))?;
        if found.is_some_and(|found| found * 100.0 >= least - ROUNDING) {
            return None;
        }
        let found = found.map_or_else(
            || "not known".to_owned(),
            |found| percent_beside(found * 100.0, least),
        );
        Some(format!(
            "the smallest overlap of two profiles is {found}, but --fail-under requires {least}%"
        ))
    }

    /// Whether at least one of the files is damaged.
    pub fn is_damaged(&self) -> bool {
        self.profiles.iter().any(|profile| profile.errors > 0)
    }

    fn functions(&self) -> &'static str {
        if self.kind == "heap" {
            "context"
        } else {
            "function"
        }
    }

    fn path(&self, index: usize) -> &str {
        self.profiles.get(index).map_or("", |profile| &profile.path)
    }
}

impl PairRow {
    fn new(base: usize, test: usize, pair: &PairOverlap, notes: Vec<String>) -> Self {
        let details = pair.details.iter().map(|&(what, share)| Detail {
            what,
            overlap_share: share,
        });
        PairRow {
            base,
            test,
            overlap_share: pair.overlap,
            common: pair.common,
            mismatched: pair.mismatched,
            mismatched_share: pair.mismatched_share,
            base_only: pair.base_only,
            base_only_share: pair.base_only_share,
            test_only: pair.test_only,
            test_only_share: pair.test_only_share,
            details: details.collect(),
            functions: pair.functions.iter().map(FunctionRow::new).collect(),
            notes,
        }
    }
}

/// Returns notes that a reader needs to understand the numbers of a pair.
fn notes(pair: &PairOverlap, one: Named<'_>, two: Named<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, profile) in [one, two] {
        if profile.size().total == 0 {
            notes.push(format!(
                "{}: nothing was counted, so there are no shares to compare",
                name
            ));
        }
    }
    let hashes = [one.1.has_only_hashes(), two.1.has_only_hashes()];
    let [hashed, named] = if hashes[0] {
        [one.0, two.0]
    } else {
        [two.0, one.0]
    };
    if hashes[0] != hashes[1] {
        notes.push(format!(
            "{} has only hashes of names, but {} has the names themselves, so that the two cannot be matched: `profkit merge --md5-names FILE -o OUT` hashes the names of a profile",
            hashed,
            named
        ));
    } else if pair.common == 0 && pair.mismatched == 0 {
        notes.push("no function is in both profiles: are they of the same program?".to_owned());
    }
    notes
}

/// Returns a percentage with one decimal; a dash for `None`.
fn cell(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), share_percent)
}

impl Answer for OverlapReport {
    fn document(&self) -> Document {
        let noun = self.functions();
        let mut document = Document::default();
        for (number, profile) in (1..).zip(&self.profiles) {
            let (path, total) = (&profile.path, grouped(profile.total));
            let functions = plural(profile.functions, noun);
            let damaged = match profile.errors {
                0 => String::new(),
                errors => format!("; damaged ({})", plural(errors, "error")),
            };
            let unit = self.unit;
            document.line(format_args!(
                "{number} {path}: {functions}, {total} {unit}{damaged}"
            ));
        }
        match self.pairs.as_slice() {
            [pair] => self.add_pair(&mut document, pair),
            pairs => {
                self.add_matrix(&mut document);
                for pair in pairs.iter().filter(|pair| !pair.functions.is_empty()) {
                    let (base, test) = (self.path(pair.base), self.path(pair.test));
                    document.line(format_args!("\n{base} and {test}"));
                    self.add_differences(&mut document, pair);
                }
            }
        }
        let mut said: Vec<&str> = Vec::new();
        for note in self.pairs.iter().flat_map(|pair| &pair.notes) {
            if !said.contains(&note.as_str()) {
                said.push(note);
                document.line(format_args!("note: {note}"));
            }
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, self)
    }
}

impl OverlapReport {
    fn add_matrix(&self, document: &mut Document) {
        let numbers = (1..=self.profiles.len()).map(|number| format!(" {number:>7}"));
        document.line(format_args!("\nOverlap{}", numbers.collect::<String>()));
        for (row, profile) in self.profiles.iter().enumerate() {
            let cells = (0..self.profiles.len()).map(|column| {
                let pair = (row.min(column), row.max(column));
                let found = self.pairs.iter().find(|it| (it.base, it.test) == pair);
                let whole = (profile.total > 0).then_some(1.0);
                let text = cell(found.map_or(whole, |pair| pair.overlap_share));
                format!(" {text:>7}")
            });
            document.line(format_args!("{:>7}{}", row + 1, cells.collect::<String>()));
        }
    }

    fn add_pair(&self, document: &mut Document, pair: &PairRow) {
        document.line(format_args!("\nOverlap{:>37}", cell(pair.overlap_share)));
        for detail in &pair.details {
            let share = cell(Some(detail.overlap_share));
            document.line(format_args!("  of {:<30} {share:>8}", detail.what));
        }
        let noun = self.functions();
        let mut row = |what: &str, count: u64, share: Option<(f64, &str)>| {
            let share = share.filter(|_| count > 0);
            let share = share.map(|(share, of)| format!(" ({} of {of})", cell(Some(share))));
            let (count, share) = (grouped(count), share.unwrap_or_default());
            document.line(format_args!("  {what:<25} {count:>16}{share}"));
        };
        row(&format!("{noun}s in both"), pair.common, None);
        if pair.mismatched > 0 {
            let share = Some((pair.mismatched_share, "the second"));
            row("with other code", pair.mismatched, share);
        }
        let [first, second] = [pair.base_only_share, pair.test_only_share];
        row("only in the first", pair.base_only, Some((first, "it")));
        row("only in the second", pair.test_only, Some((second, "it")));
        self.add_differences(document, pair);
    }

    fn add_differences(&self, document: &mut Document, pair: &PairRow) {
        if pair.functions.is_empty() {
            return;
        }
        let function = match self.functions() {
            "context" => "allocated in",
            _ => "function",
        };
        document.line(format_args!(
            "\n    lost   first  second  inside  {function}"
        ));
        for row in &pair.functions {
            let name = match self.mangled {
                true => names::printable(row.function.as_bytes()),
                false => Cow::Borrowed(row.demangled.as_str()),
            };
            let [lost, first, second, inner] = [
                Some(row.lost_share),
                row.base_share,
                row.test_share,
                row.inner_share,
            ]
            .map(cell);
            document.line(format_args!(
                "  {lost:>6} {first:>7} {second:>7} {inner:>7}  {name}"
            ));
        }
    }
}
