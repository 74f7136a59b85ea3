//! Counts by address in the form that `perf2bolt -pa` of LLVM reads (docs/formats/samples-text.md). perf2bolt turns them
//! into a profile for llvm-bolt; it needs neither perf nor the recording for that.
use crate::places::BinaryPlaces;
use crate::sampling::find;
use profkit_data::{ErrorKind, Result};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{Counts, Place};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The place of perf2bolt that is in no known binary. Its address does not count.
const ELSEWHERE: &str = "X:0";

/// The counts of a program for perf2bolt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreAggregated {
    /// A line for each range, each branch and each place of a sample, sorted by kind and address.
    pub text: String,
    /// The sum of the counts of branches.
    pub branches: u64,
    /// The sum of the counts of samples without branches.
    pub samples: u64,
    /// The sum of the counts that are at no code of the program, and so are left out.
    pub outside: u64,
}

impl PreAggregated {
    /// The counts of the program at a path.
    ///
    /// # Errors
    /// If the program cannot be read, and [`ErrorKind::Unsupported`] if the counts have none of it.
    pub fn of(counts: &Counts, path: &Path) -> Result<Self> {
        let files = ProgramFiles::open(path, &DebugFolders::default())?;
        let image = files.program()?;
        let found = find(counts, path, build_id(&image)?.as_ref(), true);
        if found.counts.is_empty() {
            return Err(ErrorKind::Unsupported
                .error("the samples are not of this program: none has its build id or its name")
                .with_hint("give the program that was recorded; `profkit show` lists the binaries of a recording"));
        }
        let at = BinaryPlaces::of(&image);
        let mut sums = Sums::default();
        for counted in found.counts {
            let address = |place| at.address(counted.key.numbering, place);
            let end = |place: Place| match place.get() {
                Some(place) => address(place).map(Some),
                None => Some(None),
            };
            for range in &counted.sums.ranges {
                let ends = address(range.start).zip(address(range.end));
                sums.add(
                    ends.map(|(start, end)| Line::Range(start, end)),
                    range.count,
                );
            }
            for branch in &counted.sums.branches {
                let ends = end(branch.from).zip(end(branch.to));
                sums.add(ends.map(|(from, to)| Line::Branch(from, to)), branch.count);
            }
            for one in &counted.sums.addresses {
                sums.add(address(one.place).map(Line::Sample), one.count);
            }
        }
        Ok(sums.finish())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Range(u64, u64),
    Branch(Option<u64>, Option<u64>),
    Sample(u64),
}

#[derive(Default)]
struct Sums {
    lines: BTreeMap<Line, u64>,
    outside: u64,
}

impl Sums {
    fn add(&mut self, line: Option<Line>, count: u64) {
        let sum = match line {
            Some(line) => self.lines.entry(line).or_default(),
            None => &mut self.outside,
        };
        *sum = sum.saturating_add(count);
    }

    fn finish(self) -> PreAggregated {
        let mut all = PreAggregated {
            outside: self.outside,
            ..PreAggregated::default()
        };
        let has_branches = self
            .lines
            .keys()
            .any(|line| matches!(line, Line::Branch(..)));
        for (line, count) in self.lines {
            let text = &mut all.text;
            let _ = match line {
                Line::Range(start, end) => writeln!(text, "F {start:x} {end:x} {count}"),
                Line::Branch(from, to) => {
                    all.branches = all.branches.saturating_add(count);
                    writeln!(text, "B {} {} {count} 0", end(from), end(to))
                }
                // The addresses of samples with branch stacks are not counted by perf2bolt either.
                Line::Sample(_) if has_branches => continue,
                Line::Sample(place) => {
                    all.samples = all.samples.saturating_add(count);
                    writeln!(text, "S {place:x} {count}")
                }
            };
        }
        all
    }
}

fn end(place: Option<u64>) -> String {
    place.map_or_else(|| ELSEWHERE.to_owned(), |place| format!("{place:x}"))
}
