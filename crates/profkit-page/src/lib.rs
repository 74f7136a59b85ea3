//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Profiles for viewers. [`Page`] is a profile as one HTML file with its data, style and script, which needs no
//! network; [`export`] makes the files of other tools' viewers.
//!
//! ```
//! use profkit_analysis::instr::{InstrReader, InstrTable};
//! use profkit_page::{DEFAULT_SIZE_LIMIT, Page};
//!
//! let table = InstrTable::read(InstrReader::open(b":ir\nmain\n1\n1\n90\n\n<img>\n2\n1\n10\n")?);
//! let (mut page, faults) = Page::of_instr("app.proftext", 40, &table);
//! let html = page.html(DEFAULT_SIZE_LIMIT);
//! assert!(faults.count == 0 && html.text.contains("90.0%") && html.text.contains("&lt;img&gt;"));
//! # Ok::<(), profkit_data::Error>(())
//! ```
mod context;
mod curve;
mod diff;
mod encode;
pub mod export;
mod functions;
mod heap;
mod html;
pub mod import;
mod instr;
mod mip;
mod recording;
mod sample;
pub mod source;
#[cfg(test)]
mod tests;

pub use html::Html;

use context::Proposal;
use diff::DiffTable;
use functions::FunctionList;
use profkit_analysis::any::AnyProfile;
use profkit_analysis::doctor::examine;
use profkit_analysis::faults::Faults;
use profkit_analysis::mip_lines::LineCoverage;
use profkit_analysis::names::printable;
use profkit_data::ids::NameRef;
use profkit_report::flame_graph::FlameGraph;
use profkit_report::grouped;
use rustc_hash::FxHashMap;
use source::Source;
use std::fmt;

/// The largest size of a page if no other is asked for: 12 million bytes.
pub const DEFAULT_SIZE_LIMIT: usize = 12_000_000;

/// The version of the data blocks. [docs/formats/page.md] describes them.
///
/// [docs/formats/page.md]: https://github.com/profkit/profkit/blob/main/docs/formats/page.md
pub const PAGE_VERSION: u32 = 1;

/// The largest number of errors on a page.
const MOST_ERRORS: usize = 5;

/// The page of a profile.
#[derive(Clone, Debug, Default)]
pub struct Page {
    file: String,
    /// What the file is, in words: the kind and the form of the profile.
    what: String,
    /// The kind of the profile, as the page's data spell it.
    kind: &'static str,
    /// The name of what the profile counts, in the plural.
    unit: &'static str,
    /// The titles of three columns with the numbers of each function: the count of its first counter, the sum of its
    /// counters, and its largest count. A column with an empty title is not shown.
    titles: [&'static str; 3],
    detail: Detail,
    facts: Vec<(&'static str, String)>,
    /// Notes that a reader has to know first: damage, contradictions.
    notes: Vec<String>,
    left_out: Vec<String>,
    /// The rows of the profile summary. A row has a share of all counts in millionths, the number of counters or lines
    /// that make this share, and the smallest of their counts.
    cutoffs: Vec<(u64, u64, u64)>,
    /// Whether functions are hot, warm or cold. Otherwise the profile only says which functions ran.
    has_heat: bool,
    /// The sum of all counts. Every share is a part of this sum.
    total: u128,
    functions: FunctionList,
    flame: Option<Flame>,
    contexts: Option<Contexts>,
    /// The functions that allocate in a heap profile, those with the most bytes first.
    allocating: Vec<Allocating>,
    traces: Vec<Trace>,
    /// For each function in traces, the index of its name in [`FunctionList::targets`], counted from 1.
    first_calls: FxHashMap<NameRef, usize>,
    proposal: Option<Proposal>,
    /// For each source file: the numbers of functions, called functions, blocks, and blocks that ran.
    coverage: Vec<(String, [u64; 4])>,
    diff: Option<DiffTable>,
    source: Option<Source>,
    /// The source lines that ran; `None` if they are not known.
    mip_lines: Option<LineCoverage>,
}

fn list_of(things: &[String]) -> String {
    let (first, rest) = things.split_at(things.len().min(MOST_ERRORS));
    match rest.len() {
        0 => first.join(", "),
        more => format!("{}, and {} more", first.join(", "), grouped(more)),
    }
}

/// The kind of data that the page shows inside a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Detail {
    #[default]
    Nothing,
    /// A list of counts. The text is the title of the list.
    Counts(&'static str),
    /// The lines of a sample profile.
    Lines,
}

#[derive(Clone, Debug)]
struct Flame {
    graph: FlameGraph,
    title: &'static str,
    unit: &'static str,
    by_temperature: bool,
    note: &'static str,
}

#[derive(Clone, Debug, Default)]
struct Allocating {
    function: String,
    bytes: u64,
    allocations: u64,
}

#[derive(Clone, Debug)]
struct Contexts {
    count: usize,
    bytes: Vec<u8>,
    names: Vec<u8>,
}

/// The order of the first calls in a run. A function is given by the index of its name, counted from 1.
#[derive(Clone, Debug)]
struct Trace {
    weight: u64,
    functions: Vec<usize>,
}

impl Page {
    /// Makes the page of any profile with functions. Its errors are returned, and the first of them are notes on the
    /// page.
    pub fn of(file: &str, size: u64, profile: &AnyProfile<'_>) -> (Self, Faults) {
        match profile {
            AnyProfile::Instr(table) => Page::of_instr(file, size, table),
            AnyProfile::Sample(view) => (Page::of_samples(file, size, view), view.faults()),
            AnyProfile::Mip(profile, version) => {
                let page = Page::of_mip(file, size, *version, profile);
                (page, Faults::default())
            }
        }
    }

    /// Makes the page of a file that is a profile with functions. The page also has the problems that `doctor` finds
    /// although the file can be read. `doctor` runs while the page is made, because each of the two reads the whole
    /// file.
    pub fn of_file(file: &str, data: &[u8], profile: &AnyProfile<'_>) -> (Self, Faults) {
        let mut diagnosis = None;
        let (mut page, faults) = rayon::in_place_scope(|scope| {
            scope.spawn(|_| diagnosis = Some(examine(data)));
            Page::of(file, data.len() as u64, profile)
        });
        if let Some(diagnosis) = &diagnosis {
            page.add_diagnosis(diagnosis);
        }
        (page, faults)
    }

    fn new(file: &str, what: String) -> Self {
        Page {
            file: printable(file.as_bytes()).into_owned(),
            what,
            ..Page::default()
        }
    }

    fn damage(&mut self, faults: &Faults) {
        let first = faults.first.iter().take(MOST_ERRORS);
        let more = faults.count.saturating_sub(first.len() as u64);
        let first = first.map(|error| format!("The file is damaged: {error}"));
        self.notes.extend(first);
        if more > 0 {
            self.notes
                .push(format!("The file has {} more errors.", grouped(more)));
        }
    }

    /// Adds a name and a value to the facts in the summary of the page.
    pub fn fact(&mut self, name: &'static str, value: impl fmt::Display) {
        self.facts.push((name, value.to_string()));
    }

    /// Adds a sentence that a reader has to know first, such as a warning.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}
