//! Where functions are declared according to debug info, and their source code with counts beside the lines.
mod folder;

pub use folder::{SourceFile, SourceFolder};

use super::encode::{index, number};
use super::functions::{FunctionList, PageFunction};
use super::{Page, list_of};
use profkit_analysis::any::AnyProfile;
use profkit_analysis::mip_lines::LineCoverage;
use profkit_analysis::names::{Spelling, printable};
use profkit_analysis::samples::{SampleView, numbers};
use profkit_data::ids::NameRef;
use profkit_data::path_text;
use profkit_data::sample::{Location, NameId, ProfileKind, SampleName, Samples};
use profkit_object::symbolize::{DebugInfo, Declaration, Declarations};
use profkit_report::{grouped, percent, plural};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The most lines between the head of an inlined function and its first line with samples, with which the head is shown.
const NEAR_HEAD: u32 = 6;
/// The largest number of functions whose source is on the page.
const MOST_FUNCTIONS: usize = 500;

/// The largest size of the source on a page, in bytes before compression.
const MOST_TEXT: usize = 2_000_000;

/// The largest number of inlined functions that are shown with a function. The hottest ones are shown.
const MOST_INLINED: usize = 39;

/// The largest number of inlined functions of one function that are examined to find the hottest.
const MOST_SEEN: usize = 100_000;

/// The largest number of lines that are shown of one function.
const MOST_LINES: u32 = 2000;

/// The number of lines that are shown after the last one with a count.
const AFTER: u32 = 3;

/// The largest number of lines that are shown of a function whose lines have no counts.
const UNCOUNTED: u32 = 60;

#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// The title of the numbers beside the lines.
    pub title: &'static str,
    /// A note that explains the numbers beside the lines.
    pub note: &'static str,
    /// Lines of source files. A [`Part`] refers to some of them.
    pub lines: Vec<String>,
}

/// The numbers of functions and lines whose source or samples could not be put on the page: a number for each reason.
#[derive(Debug, Default)]
struct Missing {
    undeclared: usize,
    files: Vec<String>,
    without_file: usize,
    too_many: usize,
    outside: u64,
    cut_short: u64,
}

impl Page {
    /// Adds the source files that debug info gives for functions. The source files in the profile itself take
    /// precedence.
    pub fn add_source_files(&mut self, declarations: &Declarations) {
        let found = self.declared(declarations);
        let FunctionList {
            functions, files, ..
        } = &mut self.functions;
        let mut known = 0;
        for (function, declaration) in functions.iter_mut().zip(found) {
            if let Some(declaration) = declaration.filter(|_| function.file == 0) {
                function.file = files.number(&printable(declaration.file));
            }
            known += u64::from(function.file > 0);
        }
        let all = functions.len();
        let has_files = |info| matches!(info, DebugInfo::Binary | DebugInfo::DebugFile);
        if declarations
            .binaries
            .iter()
            .any(|binary| has_files(binary.debug_info))
            || known > 0
        {
            self.fact(
                "Source files",
                format_args!(
                    "known of {} of {}",
                    grouped(known),
                    plural(all as u64, "function")
                ),
            );
        } else {
            self.fact(
                "Source files",
                "not known: the binaries have no debug info (compile with -g)",
            );
        }
        for binary in &declarations.binaries {
            let path = path_text(&binary.path);
            if binary.missing_split > 0 {
                self.left_out.push(format!(
                    "source files of {} of {path} whose .dwo files were not found",
                    plural(binary.missing_split as u64, "compile unit")
                ));
            }
            if let Some(first) = binary.warnings.first() {
                self.left_out.push(format!(
                    "source files of {path} in {} of its debug info, the first: {first}",
                    plural(binary.warnings.len() as u64, "damaged part")
                ));
            }
        }
        if let Some((path, error)) = declarations.unreadable.first() {
            self.left_out.push(format!(
                "source files of {}, the first: {}: {error}",
                plural(declarations.unreadable.len() as u64, "unreadable program"),
                path_text(path)
            ));
        }
    }

    /// Adds the source lines that ran. If the page shows source, each line has the number of runs in which it ran.
    pub fn add_mip_lines(&mut self, lines: LineCoverage) {
        let (all, ran) = lines.totals();
        let share = percent(ran.into(), all.into());
        self.fact(
            "Lines",
            format_args!("{}; {} ran ({share})", grouped(all), grouped(ran)),
        );
        self.mip_lines = Some(lines);
    }

    /// Adds the source of the hottest functions. `profile` is the profile that the page was made from. The page lists
    /// the source that is missing among the things that it leaves out.
    pub fn add_source(
        &mut self,
        profile: &AnyProfile<'_>,
        declarations: &Declarations,
        folder: &mut SourceFolder,
    ) {
        let declared = self.declared(declarations);
        let view = match profile {
            AnyProfile::Sample(view) if !view.profile.kind.contains(ProfileKind::PROBE_BASED) => {
                Some(&**view)
            }
            _ => None,
        };
        let [entry, sum, _] = self.titles;
        let (title, note) = match (view, profile) {
            (Some(_), _) => (
                sum,
                "A line without a number has no samples. Inlined functions stand apart, the hottest first, at most 39.",
            ),
            (None, AnyProfile::Sample(_)) => (
                entry,
                "The profile has samples of probes, and does not say which lines these are on. The number is that of the entry.",
            ),
            (None, AnyProfile::Instr(table)) => (
                if table.facts.instrumentation.counts_calls() {
                    entry
                } else {
                    sum
                },
                "Counters belong to branches. Only the compiler's coverage mapping says on which lines these are, and profkit does not read it.",
            ),
            (None, AnyProfile::Mip(..)) if self.mip_lines.is_some() => (
                "Runs",
                "In how many runs the line ran, by the blocks of the machine code; 0 did not run. A line without a number has no code of its own.",
            ),
            (None, AnyProfile::Mip(..)) => (
                entry,
                "The profile has blocks, and does not say which lines these are on.",
            ),
        };
        let title = if title.is_empty() { sum } else { title };
        let mut hottest: Vec<usize> = (0..declared.len())
            .filter(|&at| {
                self.functions
                    .functions
                    .get(at)
                    .is_some_and(|one| one.numbers.sum > 0 || self.mip_lines.is_some())
            })
            .collect();
        hottest.sort_by_key(|&at| {
            Reverse(self.functions.functions.get(at).map(|one| one.numbers.sum))
        });
        let mut writer = Writer::new(declarations, folder, &declared);
        writer.missing.too_many = hottest.len().saturating_sub(MOST_FUNCTIONS);
        let mut shown = 0u64;
        for at in hottest.into_iter().take(MOST_FUNCTIONS) {
            let Some(declaration) = declared.get(at).copied().flatten() else {
                writer.missing.undeclared += 1;
                continue;
            };
            if writer.left == 0 {
                writer.missing.too_many += 1;
                continue;
            }
            let parts = match view.and_then(|view| Some((view, view.profile.functions().get(at)?)))
            {
                Some((view, function)) => writer.sampled(view, &function.samples, declaration),
                None if self.mip_lines.is_some() => {
                    let lines = self.mip_lines.as_ref();
                    let file = lines.and_then(|lines| lines.files.get(declaration.file));
                    writer.covered(declaration, file.map(|file| &file.lines))
                }
                None => {
                    let of = |one: &PageFunction| match title == sum {
                        true => u64::try_from(one.numbers.sum).unwrap_or(u64::MAX),
                        false => one.numbers.entry,
                    };
                    let count = self.functions.functions.get(at).map_or(0, of);
                    writer.entered(declaration, count)
                }
            };
            if parts.is_empty() {
                continue;
            }
            shown += 1;
            let bytes = encoded(&parts, view, &mut self.functions);
            let start = self.functions.sources.len();
            self.functions.sources.extend_from_slice(&bytes);
            if let Some(function) = self.functions.functions.get_mut(at) {
                function.source = start..self.functions.sources.len();
            }
        }
        let (lines, missing) = (writer.lines, writer.missing);
        self.fact("Source", plural(shown, "function"));
        self.left_out.extend(missing.sentences());
        if let [first, rest @ ..] = folder.problems() {
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(" ({} more such files)", grouped(rest.len()))
            };
            self.left_out.push(format!("the source file {first}{more}"));
        }
        self.source = Some(Source { title, note, lines });
    }

    /// Returns the declaration of each function; `None` if debug info has none.
    fn declared<'d>(&self, declarations: &'d Declarations) -> Vec<Option<Declaration<'d>>> {
        let functions = self.functions.functions.par_iter();
        functions
            .map(|function| match function.name.as_slice() {
                [] => declarations.find_hash(NameRef(function.guid)),
                name => declarations.find(name),
            })
            .collect()
    }
}

impl Missing {
    /// Returns sentences about the source that is not on the page.
    fn sentences(mut self) -> Vec<String> {
        let functions = |count: usize| plural(count as u64, "function");
        let mut list = Vec::new();
        if self.undeclared > 0 {
            list.push(format!(
                "the source of {}, because the debug info of the binaries names no file for it",
                functions(self.undeclared)
            ));
        }
        if self.without_file > 0 {
            self.files.sort();
            self.files.dedup();
            list.push(format!(
                "the source of {}, because the source folder does not have the files, or has other versions of them ({})",
                functions(self.without_file),
                list_of(&self.files)
            ));
        }
        if self.too_many > 0 {
            list.push(format!(
                "the source of {} (it is there for the {MOST_FUNCTIONS} hottest, up to {} bytes)",
                functions(self.too_many),
                grouped(MOST_TEXT)
            ));
        }
        if self.outside > 0 {
            list.push(format!(
                "samples of {} that are not in the source file of their function: the code comes from another file, by #include or a macro, or the files are of another version",
                plural(self.outside, "line")
            ));
        }
        if self.cut_short > 0 {
            list.push(format!(
                "lines after the first {} of {}",
                grouped(MOST_LINES),
                plural(self.cut_short, "long function")
            ));
        }
        list
    }
}

/// Consecutive lines of one source file, with the counts of one function or of one inlined function.
#[derive(Debug)]
struct Part<'d> {
    file: &'d [u8],
    first: u32,
    size: u32,
    /// The index of the first line in [`Source::lines`].
    text: usize,
    counts: BTreeMap<u32, u64>,
    /// The inlined function; `None` if the counts are those of the function itself.
    inlined: Option<Inlined>,
}

#[derive(Clone, Copy, Debug)]
struct Inlined {
    name: NameId,
    /// The inlined function that contains this one; `None` if this one is inlined directly into the function that is
    /// shown.
    caller: Option<NameId>,
    /// The line of the call in the caller's source file; 0 if it is not known.
    line: u32,
    samples: u64,
}

/// Makes the parts of the source that the page shows for each function.
struct Writer<'d, 'f> {
    declarations: &'d Declarations,
    folder: &'f mut SourceFolder,
    /// For each file, the lines of its declarations, sorted.
    starts: FxHashMap<&'d [u8], Vec<u32>>,
    lines: Vec<String>,
    /// For each file, the ranges of lines that are on the page. A range has its first line, the number of its lines,
    /// and the index of its first line in `lines`.
    placed: FxHashMap<usize, Vec<(u32, u32, usize)>>,
    /// The number of bytes that can still be added.
    left: usize,
    missing: Missing,
}

impl<'d, 'f> Writer<'d, 'f> {
    fn new(
        declarations: &'d Declarations,
        folder: &'f mut SourceFolder,
        declared: &[Option<Declaration<'d>>],
    ) -> Self {
        let mut starts: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for one in declared.iter().flatten() {
            starts.entry(one.file).or_default().push(one.line);
        }
        starts.values_mut().for_each(|lines| lines.sort_unstable());
        Writer {
            declarations,
            folder,
            starts,
            lines: Vec::new(),
            placed: FxHashMap::default(),
            left: MOST_TEXT,
            missing: Missing::default(),
        }
    }

    /// Returns the lines of a function of which only the entry count is known. The page shows this count beside the
    /// function's declaration.
    fn entered(&mut self, declaration: Declaration<'d>, count: u64) -> Vec<Part<'d>> {
        let counts = BTreeMap::from([(declaration.line, count)]);
        let last = self
            .end(declaration)
            .min(declaration.line.saturating_add(UNCOUNTED - 1));
        self.part(declaration, counts, last, None)
            .into_iter()
            .collect()
    }

    /// Returns the lines of a function, of which `runs` says in how many runs they ran.
    fn covered(
        &mut self,
        declaration: Declaration<'d>,
        runs: Option<&BTreeMap<u32, u64>>,
    ) -> Vec<Part<'d>> {
        let end = self.end(declaration);
        let counts: BTreeMap<u32, u64> = runs
            .into_iter()
            .flat_map(|runs| runs.range(declaration.line..=end))
            .map(|(&line, &runs)| (line, runs))
            .collect();
        let last = counts.keys().next_back().copied();
        let last = last.unwrap_or(declaration.line).saturating_add(AFTER);
        self.part(declaration, counts, last.min(end), None)
            .into_iter()
            .collect()
    }

    /// Returns the parts of the source for a function with samples: the function's own lines first, then the lines of
    /// the hottest functions that are inlined into it.
    fn sampled(
        &mut self,
        view: &SampleView<'_>,
        samples: &Samples,
        declaration: Declaration<'d>,
    ) -> Vec<Part<'d>> {
        let mut parts = Vec::new();
        let own = self.lines_of(samples, declaration);
        let last = own.keys().next_back().copied().unwrap_or(declaration.line);
        let last = last.max(self.end(declaration).min(last.saturating_add(AFTER)));
        let Some(part) = self.part(declaration, own, last, None) else {
            return parts;
        };
        parts.push(part);
        let mut inlined = Vec::new();
        let mut pending = vec![(samples, Some(declaration), None)];
        while let Some((caller, declaration, name)) = pending.pop() {
            for one in &caller.inlined {
                if inlined.len() >= MOST_SEEN {
                    break;
                }
                let found = self.declaration(view, one.samples.name);
                let line = declaration.and_then(|at| line_at(at.line, one.location, u32::MAX));
                inlined.push((
                    &one.samples,
                    found,
                    Inlined {
                        name: one.samples.name,
                        caller: name,
                        line: line.unwrap_or(0),
                        samples: u64::try_from(numbers(&one.samples).sum).unwrap_or(u64::MAX),
                    },
                ));
                pending.push((&one.samples, found, Some(one.samples.name)));
            }
        }
        inlined.sort_by_key(|(_, _, one)| Reverse(one.samples));
        for (samples, declaration, one) in inlined.into_iter().take(MOST_INLINED) {
            let Some(declaration) = declaration else {
                continue;
            };
            let counts = self.lines_of(samples, declaration);
            let Some(&last) = counts.keys().next_back() else {
                continue;
            };
            parts.extend(self.part(declaration, counts, last, Some(one)));
        }
        parts
    }

    fn declaration(&self, view: &SampleView<'_>, name: NameId) -> Option<Declaration<'d>> {
        match view.profile.names.get(name) {
            SampleName::Text(name) => self.declarations.find(name),
            SampleName::Guid(guid) => self.declarations.find_hash(guid),
        }
    }

    /// Returns the samples of a function by line of its source file. The samples of a line with several discriminators
    /// are added.
    fn lines_of(&mut self, samples: &Samples, declaration: Declaration<'d>) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        let Some(file) = self
            .folder
            .find(declaration.file)
            .and_then(|file| self.folder.file(file))
        else {
            return counts;
        };
        let most = u32::try_from(file.lines.len()).unwrap_or(u32::MAX);
        // If the declaration is after the end of the file, the file does not fit the function at all. Then its lines
        // are not counted as missing one by one.
        if declaration.line > most {
            return counts;
        }
        for one in &samples.body {
            match line_at(declaration.line, one.location, most) {
                Some(line) => {
                    let count: &mut u64 = counts.entry(line).or_default();
                    *count = count.saturating_add(one.samples);
                }
                None => self.missing.outside += 1,
            }
        }
        counts
    }

    /// Returns the line before the next declaration of a function in the same file. The function ends there at the
    /// latest.
    fn end(&self, declaration: Declaration<'_>) -> u32 {
        let lines = self
            .starts
            .get(declaration.file)
            .map_or(&[][..], |lines| lines);
        let next = lines.partition_point(|&line| line <= declaration.line);
        lines.get(next).map_or(u32::MAX, |next| next - 1)
    }

    /// Makes a [`Part`]: takes its lines from the file, up to the line `last`. The part begins at the function's
    /// declaration; that of an inlined function only if its first line with samples is near.
    fn part(
        &mut self,
        declaration: Declaration<'d>,
        mut counts: BTreeMap<u32, u64>,
        last: u32,
        inlined: Option<Inlined>,
    ) -> Option<Part<'d>> {
        let number = self.folder.find(declaration.file);
        let file = number.and_then(|number| Some((number, self.folder.file(number)?)));
        let (number, lines) = match file {
            Some((number, file))
                if (1..=file.lines.len()).contains(&(declaration.line as usize)) =>
            {
                (number, &file.lines)
            }
            _ => {
                if inlined.is_none() {
                    self.missing.without_file += 1;
                    self.missing
                        .files
                        .push(printable(declaration.file).into_owned());
                }
                return None;
            }
        };
        let of_counts = counts.keys().next().copied();
        let first = match inlined {
            Some(_) => {
                let counted = of_counts?;
                let is_near = counted.saturating_sub(declaration.line) <= NEAR_HEAD;
                let head = Some(declaration.line).filter(|line| *line < counted && is_near);
                head.unwrap_or(counted)
            }
            None => of_counts.map_or(declaration.line, |line| line.min(declaration.line)),
        };
        let most = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let last = last.min(most);
        let cut = last.min(first.saturating_add(MOST_LINES - 1));
        self.missing.cut_short += u64::from(cut < last);
        counts.retain(|&line, _| line <= cut);
        let counted = counts.keys().next_back().map_or(0, |line| line - first + 1) as usize;
        // A function ends at the first closing bracket with the indentation of its declaration. Blank lines at the end
        // are left out.
        let declared = lines
            .get(declaration.line as usize - 1)
            .map_or("", String::as_str);
        let indentation = declared.len() - declared.trim_start().len();
        let closes = |line: &String| {
            line.get(indentation..)
                .is_some_and(|rest| rest.starts_with('}'))
                && line.trim_start().starts_with('}')
        };
        let text = lines
            .get(first as usize - 1..cut as usize)
            .unwrap_or_default();
        let rest = text.get(counted..).unwrap_or_default();
        let end = rest
            .iter()
            .position(closes)
            .map_or(text.len(), |at| counted + at + 1);
        let text = text.get(..end).unwrap_or_default();
        let end = text.iter().rposition(|line| !line.trim().is_empty());
        let kept = end.map_or(0, |end| end + 1).max(counted);
        let text = text.get(..kept).unwrap_or_default();
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let placed = self.placed.entry(number).or_default();
        let covers =
            |&&(from, count, _): &&(u32, u32, usize)| from <= first && first + size <= from + count;
        let at = if let Some(&(from, _, at)) = placed.iter().find(covers) {
            at + (first - from) as usize
        } else {
            let bytes = text.iter().map(|line| line.len() + 1).sum::<usize>();
            let Some(left) = self.left.checked_sub(bytes) else {
                self.left = 0;
                self.missing.too_many += usize::from(inlined.is_none());
                return None;
            };
            self.left = left;
            let at = self.lines.len();
            self.lines.extend_from_slice(text);
            placed.push((first, size, at));
            at
        };
        Some(Part {
            file: declaration.file,
            first,
            size,
            text: at,
            counts,
            inlined,
        })
    }
}

/// Returns the source line of a location in a function that is declared at line `start`. `None` if the line would not
/// be from 1 to `most`. A location has only the lowest 16 bits of the distance from `start`. The distance can be
/// negative, because a macro can place code before the declaration.
fn line_at(start: u32, location: Location, most: u32) -> Option<u32> {
    let line = i64::from(start) + location.offset();
    let line = u32::try_from(line).ok().filter(|&line| line <= most);
    line.filter(|&line| line > 0)
}

/// Encodes the parts of a function as bytes. [docs/formats/page.md] describes them.
///
/// [docs/formats/page.md]: https://github.com/profkit/profkit/blob/main/docs/formats/page.md
fn encoded(parts: &[Part<'_>], view: Option<&SampleView<'_>>, list: &mut FunctionList) -> Vec<u8> {
    let mut out = Vec::new();
    index(parts.len(), &mut out);
    for part in parts {
        let mut name = |id: Option<NameId>| match (id, view) {
            (Some(id), Some(view)) => list.targets.number(&view.name(id, Spelling::Demangled)),
            _ => 0,
        };
        let inlined = part.inlined;
        index(name(inlined.map(|one| one.name)), &mut out);
        index(name(inlined.and_then(|one| one.caller)), &mut out);
        number(inlined.map_or(0, |one| one.line).into(), &mut out);
        number(inlined.map_or(0, |one| one.samples).into(), &mut out);
        index(list.files.number(&printable(part.file)), &mut out);
        number(part.first.into(), &mut out);
        number(part.size.into(), &mut out);
        index(part.text, &mut out);
        index(part.counts.len(), &mut out);
        for (&line, &count) in &part.counts {
            number((line - part.first).into(), &mut out);
            number(count.into(), &mut out);
        }
    }
    out
}
