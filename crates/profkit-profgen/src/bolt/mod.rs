//! Counts by address in the forms that LLVM's BOLT reads (docs/formats/samples-text.md): the text that `perf2bolt -pa` turns
//! into a profile, without perf and the recording, and the profile itself.
mod fdata;
mod functions;

use crate::places::BinaryPlaces;
use crate::sampling::find;
use functions::Functions;
use profkit_data::{ErrorKind, Result};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{Counts, Place, Sums};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

/// The place of perf2bolt that is in no known binary. Its address does not count.
const ELSEWHERE: &str = "X:0";

/// A form of counts for BOLT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoltForm {
    /// The text that perf2bolt of LLVM 21 and later reads: branches together with the ranges after them.
    #[default]
    Traces,
    /// The text that perf2bolt of every release reads: branches and ranges. BOLT cannot see from it how often the block
    /// after a call ran because the call returned.
    Branches,
    /// The profile that llvm-bolt and merge-fdata read, of programs for x86-64.
    Fdata,
}

impl BoltForm {
    /// The form for a file: [`Fdata`](Self::Fdata) if its name ends in `.fdata`.
    pub fn for_file(path: &Path) -> Self {
        match path.extension() {
            Some(ending) if ending == "fdata" => BoltForm::Fdata,
            _ => BoltForm::default(),
        }
    }
}

impl FromStr for BoltForm {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "traces" => Ok(BoltForm::Traces),
            "branches" => Ok(BoltForm::Branches),
            "fdata" => Ok(BoltForm::Fdata),
            _ => Err("expected traces, branches or fdata".to_owned()),
        }
    }
}

/// The counts of a program for BOLT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoltProfile {
    /// The form of the text.
    pub form: BoltForm,
    /// The lines, in an order that depends on the counts alone.
    pub text: String,
    /// The sum of the counts of branches.
    pub branches: u64,
    /// The sum of the counts of samples without branches.
    pub samples: u64,
    /// The sum of the counts that are at no code of the program, or in [`BoltForm::Fdata`] in no function, and so are left
    /// out.
    pub outside: u64,
    /// The sum of the counts of ranges that do not fit the code. Only [`BoltForm::Fdata`] needs to leave them out: of the other
    /// forms perf2bolt does it.
    pub impossible: u64,
    /// The sum of the counts that [`BoltForm::Fdata`] leaves out because the name of a function cannot be read: it has more
    /// than [`LONGEST_NAME`](Self::LONGEST_NAME) bytes, or is damaged.
    pub nameless: u64,
    /// The number of these functions.
    pub nameless_functions: u64,
}

impl BoltProfile {
    /// The largest length in bytes of the name of a function that [`BoltForm::Fdata`] has.
    pub const LONGEST_NAME: usize = functions::LONGEST_NAME;

    /// The counts of the program at a path. They need traces (`Sums::traces`) to be complete.
    ///
    /// # Errors
    /// If the program cannot be read; [`ErrorKind::Unsupported`] if the counts have none of it, and for
    /// [`BoltForm::Fdata`] if the program is not for x86-64 or has no symbols.
    pub fn of(counts: &Counts, path: &Path, form: BoltForm) -> Result<Self> {
        let files = ProgramFiles::open(path, &DebugFolders::default())?;
        let image = files.program()?;
        let found = find(counts, path, build_id(&image)?.as_ref(), true);
        if found.counts.is_empty() {
            return Err(ErrorKind::Unsupported
                .error("the samples are not of this program: none has its build id or its name")
                .with_hint("give the program that was recorded; `profkit show` lists the binaries of a recording"));
        }
        let at = BinaryPlaces::of(&image);
        let mut sums = Lines::default();
        for counted in found.counts {
            // No code is at the address 0, which stands for an unknown place in these texts.
            let address = |place| {
                let address = at.address(counted.key.numbering, place);
                address.filter(|&address| address != 0)
            };
            if form == BoltForm::Branches {
                let mut plain = counted.sums.clone();
                plain.traces.clear();
                sums.add_all(&plain, address);
            } else {
                sums.add_all(&counted.sums, address);
            }
        }
        let mut profile = sums.finish(form);
        if form == BoltForm::Fdata {
            let made = fdata::fdata(&Functions::of(&image)?, &sums.lines, profile.branches > 0);
            profile.text = made.text;
            profile.outside = profile.outside.saturating_add(made.outside);
            profile.impossible = made.impossible;
            profile.nameless = made.nameless;
            profile.nameless_functions = made.nameless_functions;
        }
        Ok(profile)
    }
}

/// A line of the text. An end that is `None` is outside of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Trace(Option<u64>, u64, u64),
    Range(u64, u64),
    Branch(Option<u64>, Option<u64>),
    Sample(u64),
}

#[derive(Clone, Copy, Default)]
struct Number {
    count: u64,
    mispredicted: u64,
}

#[derive(Default)]
struct Lines {
    lines: BTreeMap<Line, Number>,
    outside: u64,
}

impl Lines {
    fn add(&mut self, line: Option<Line>, count: u64) {
        let sum = match line {
            Some(line) => &mut self.lines.entry(line).or_default().count,
            None => &mut self.outside,
        };
        *sum = sum.saturating_add(count);
    }

    /// Adds the counts of a binary. `address` is the address of a place, if there is code.
    fn add_all(&mut self, sums: &Sums, address: impl Fn(u64) -> Option<u64>) {
        let end = |place: Place| match place.get() {
            Some(place) => address(place).map(Some),
            None => Some(None),
        };
        // What is in a trace is in the ranges and branches too.
        let mut ranges: FxHashMap<(u64, u64), u64> = FxHashMap::default();
        let mut branches: FxHashMap<(Place, Place), u64> = FxHashMap::default();
        for trace in &sums.traces {
            let places = trace.to.get().zip(trace.end.get());
            let Some((to, last)) = places else {
                continue;
            };
            let line = end(trace.from).zip(address(to)).zip(address(last));
            let line = line.map(|((from, to), last)| Line::Trace(from, to, last));
            self.add(line, trace.count);
            let add = |sum: &mut u64| *sum = sum.saturating_add(trace.count);
            add(ranges.entry((to, last)).or_default());
            add(branches.entry((trace.from, trace.to)).or_default());
        }
        for range in &sums.ranges {
            let traced = ranges.get(&(range.start, range.end)).copied();
            let rest = range.count.saturating_sub(traced.unwrap_or_default());
            if rest > 0 {
                let ends = address(range.start).zip(address(range.end));
                self.add(ends.map(|(start, end)| Line::Range(start, end)), rest);
            }
        }
        for branch in &sums.branches {
            let traced = branches.get(&(branch.from, branch.to)).copied();
            let rest = branch.count.saturating_sub(traced.unwrap_or_default());
            if rest > 0 {
                let ends = end(branch.from).zip(end(branch.to));
                self.add(ends.map(|(from, to)| Line::Branch(from, to)), rest);
            }
        }
        for branch in &sums.mispredicted {
            if let Some((from, to)) = end(branch.from).zip(end(branch.to)) {
                let number = self.lines.entry(Line::Branch(from, to)).or_default();
                number.mispredicted = number.mispredicted.saturating_add(branch.count);
            }
        }
        for one in &sums.addresses {
            self.add(address(one.place).map(Line::Sample), one.count);
        }
    }

    fn finish(&self, form: BoltForm) -> BoltProfile {
        let mut all = BoltProfile {
            form,
            outside: self.outside,
            ..BoltProfile::default()
        };
        let is_branch = |line: &Line| matches!(line, Line::Branch(..) | Line::Trace(..));
        let has_branches = self.lines.keys().any(is_branch);
        for (line, number) in &self.lines {
            let count = number.count;
            if is_branch(line) {
                all.branches = all.branches.saturating_add(count);
            }
            let text = &mut all.text;
            let _ = match *line {
                Line::Trace(from, to, last) => {
                    writeln!(text, "T {} {to:x} {last:x} {count}", end(from))
                }
                Line::Range(start, end) => writeln!(text, "F {start:x} {end:x} {count}"),
                Line::Branch(from, to) => {
                    let mispredicted = number.mispredicted;
                    writeln!(text, "B {} {} {count} {mispredicted}", end(from), end(to))
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
