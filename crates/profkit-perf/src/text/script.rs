//! Reads the output of `perf script --show-mmap-events -F ip,brstack`.
//!
//! Lines with `PERF_RECORD_MMAP` describe mappings of processes. If no call chains were recorded, a sample is one line
//! with its address and its branch stack. With call chains, a sample is one line for each address and then a line with
//! the branch stack. A line that contains only a decimal number and is not indented is the number of times that the
//! next sample occurred.
//!
//! The text does not show the process of a sample, so the mappings of all processes are put into one address space. A
//! later mapping of the same addresses applies to the samples after it.
use super::TextOptions;
use super::sections::build_id;
use super::words::{Lines, decimal, hex, hex_0x};
use crate::collect::{Counts, PlacedBranch, SharedStacks, ThreadSums, increase};
use crate::limits;
use crate::process::{Binary, BinaryId, KERNEL, Processes, offset_of_mapping};
use memchr::memmem;
use rayon::prelude::*;

const MAPPING: &[u8] = b"PERF_RECORD_MMAP";
/// The process number under which the mappings of all processes are stored.
const ALL: u32 = 0;

/// A mapping of code.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'text> {
    kernel: bool,
    start: u64,
    len: u64,
    page_offset: u64,
    path: &'text [u8],
    build_id: &'text [u8],
    executable: bool,
}

/// Parses a line such as `PERF_RECORD_MMAP2 10/10: [0x400000(0x1000) @ 0 08:01 7 0]: r-xp /bin/program`. Text before
/// the name of the record is ignored. `None` if the line has a different form.
fn mapping(line: &[u8]) -> Option<Mapping<'_>> {
    let start = memmem::find(line, MAPPING)?;
    let line = line.get(start + MAPPING.len()..)?;
    let line = line.strip_prefix(b"2").unwrap_or(line);
    let colon = memmem::find(line, b": [")?;
    let (who, line) = line.split_at_checked(colon)?;
    let kernel = who.trim_ascii_start().starts_with(b"-1/");
    let (start, line) = hex_0x(line.get(3..)?)?;
    let (len, line) = hex_0x(line.strip_prefix(b"(")?)?;
    let (page_offset, line) = hex_0x(line.strip_prefix(b") @ ")?)?;
    let end = memmem::find(line, b"]: ")?;
    let (identity, line) = line.split_at_checked(end)?;
    let line = line.get(3..)?;
    let space = memchr::memchr(b' ', line)?;
    let (protection, path) = line.split_at_checked(space)?;
    let id = identity
        .trim_ascii()
        .strip_prefix(b"<")
        .and_then(|id| id.strip_suffix(b">"));
    Some(Mapping {
        kernel,
        start,
        len,
        page_offset,
        path: path.trim_ascii(),
        build_id: id.unwrap_or_default(),
        executable: protection.contains(&b'x'),
    })
}

/// Whether a line contains a branch stack. Its entries have the form `0xFROM/0xTO/…`.
fn has_stack(line: &[u8]) -> bool {
    memmem::find(line, b"/0x").is_some() && memmem::find(line, MAPPING).is_none()
}

/// Whether a line contains one address and nothing else.
fn is_address(line: &[u8]) -> bool {
    hex_0x(line.trim_ascii()).is_some_and(|(_, rest)| rest.is_empty())
}

fn is_indented(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace)
}

/// Whether a text is the output of `perf script`: the first lines contain a mapping or a branch stack, or nothing but
/// addresses.
pub fn detect(text: &[u8]) -> bool {
    /// The number of lines that are examined. Other lines, such as comments, may come first.
    const LINES: usize = 100;
    /// At most `LINES * WIDTH` bytes are examined. This bounds the time for a large file without line ends.
    const WIDTH: usize = 4096;
    let head = text.get(..LINES * WIDTH).unwrap_or(text);
    let (mut addresses, mut is_text) = (0, false);
    for (_, line) in Lines::new(head).take(LINES) {
        if mapping(line).is_some() {
            return true;
        }
        let is_sample =
            !is_text && stack_of(line).is_some_and(|(_, stack)| branches(stack).next().is_some());
        if is_sample {
            return true;
        }
        let blank = line.trim_ascii().is_empty();
        // A program that starts perf may print its own lines before the first mapping.
        is_text |= !is_address(line) && !blank && !line.starts_with(b"#");
        addresses += usize::from(!blank);
    }
    addresses > 0 && !is_text
}

/// Splits a line into the address of the sample and the branch stack. The address may be missing.
fn stack_of(line: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let line = line.trim_ascii();
    if line.starts_with(b"0x") && has_stack(line) {
        return Some((None, line));
    }
    let (address, rest) = hex(line)?;
    let blank = rest.first().is_none_or(u8::is_ascii_whitespace);
    blank.then_some((Some(address), rest.trim_ascii_start()))
}

/// Returns the branches of a stack, the newest first. Each is the address of the branch, its target, and whether it was
/// mispredicted (`0xFROM/0xTO/M/…`). A damaged entry ends the stack.
fn branches(stack: &[u8]) -> impl Iterator<Item = (u64, u64, bool)> {
    let entries = stack.split(u8::is_ascii_whitespace);
    entries
        .filter(|entry| !entry.is_empty())
        .map_while(|entry| {
            let (from, rest) = hex(entry.strip_prefix(b"0x")?)?;
            let (to, rest) = hex(rest.strip_prefix(b"/0x")?)?;
            Some((from, to, rest.starts_with(b"/M")))
        })
}

/// The mappings in the text, and the form of its samples.
struct Survey {
    processes: Processes,
    /// Whether samples have call chains, so that the branch stack comes after the lines of the chain.
    chains: bool,
    /// The number of mappings that could not be read or that exceed the limits.
    damaged: u64,
}

impl Survey {
    fn of(text: &[u8]) -> Survey {
        let mut processes = Processes::default();
        let (mut damaged, mut bytes) = (0, 0);
        for at in memmem::find_iter(text, MAPPING) {
            let rest = text.get(at..).unwrap_or_default();
            let line = Lines::new(rest).next().map_or(rest, |(_, line)| line);
            let Some(mapping) = mapping(line).filter(|_| bytes < limits::CHANGE_BYTES) else {
                damaged += 1;
                continue;
            };
            if !mapping.executable {
                continue;
            }
            bytes += line.len();
            let binary = (!crate::record::is_anonymous(mapping.path)).then(|| {
                processes.number(Binary {
                    path: mapping.path.to_vec(),
                    build_id: build_id(mapping.build_id),
                    kernel: mapping.kernel,
                })
            });
            let range = (mapping.start, mapping.start.saturating_add(mapping.len));
            let pid = if mapping.kernel { KERNEL } else { ALL };
            let offset = offset_of_mapping(mapping.path, mapping.start, mapping.page_offset);
            let kept = processes.map(pid, at as u64, range, offset, binary);
            damaged += u64::from(!kept);
        }
        let mut before_is_address = false;
        let mut chains = false;
        for (_, line) in Lines::new(text) {
            if has_stack(line) {
                chains = before_is_address && line.trim_ascii_start().starts_with(b"0x");
                break;
            }
            // A line with only a number can be an address of a call chain, or the count of an aggregated sample. Only
            // the address is indented.
            before_is_address = is_address(line) && is_indented(line)
                || before_is_address && line.trim_ascii().is_empty();
        }
        Survey {
            processes,
            chains,
            damaged,
        }
    }
}

/// Splits the text into parts of about `size` bytes. A part ends after the first line with a branch stack that follows,
/// because a sample ends there. If there is none within `SEARCH` bytes, the part ends after any line. Each part is
/// returned with its offset.
fn parts(text: &[u8], size: usize) -> Vec<(usize, &[u8])> {
    /// How far, in bytes, the end of a sample is searched for.
    const SEARCH: usize = 1 << 20;
    let mut list = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let rest = text.get(start..).unwrap_or_default();
        let mut end = rest.len();
        if end > size {
            let tail = rest.get(size..).unwrap_or_default();
            let lines = Lines::new(tail).take_while(|(offset, _)| *offset < SEARCH);
            // The first line is skipped, because its start is before `tail`.
            let mut ends = lines.skip(1).filter(|(_, line)| has_stack(line));
            end = match ends.next() {
                Some((offset, line)) => (size + offset + line.len() + 1).min(rest.len()),
                None => memchr::memchr(b'\n', tail).map_or(rest.len(), |at| size + at + 1),
            };
        }
        list.push((start, rest.get(..end).unwrap_or_default()));
        start += end;
    }
    list
}

/// Returns the place of an address: the binary and the offset in its file. `at` is the offset in the text, which serves
/// as the time.
fn place(survey: &Survey, at: u64, address: u64) -> Option<(BinaryId, u64)> {
    let found = survey
        .processes
        .locate_in_mode(false, ALL, Some(at), address)?;
    Some((found.binary, found.offset))
}

/// The state of one thread that reads samples, with its sums.
struct Reader<'s> {
    survey: &'s Survey,
    sums: ThreadSums,
    /// Whether the text contains no mapping. All places are then addresses in the only binary that the user names.
    absolute: bool,
    /// Whether samples are also kept whole.
    stacks: bool,
}

impl Reader<'_> {
    fn new<'s>(survey: &'s Survey, options: TextOptions, all: &SharedStacks) -> Reader<'s> {
        let binaries = survey.processes.binaries().len();
        Reader {
            survey,
            sums: ThreadSums::new(binaries.max(1), all, options.traces),
            absolute: binaries == 0,
            stacks: options.stacks,
        }
    }

    /// Adds a sample that occurred `count` times. `at` is its offset in the text.
    fn sample(&mut self, at: u64, address: Option<u64>, chain: &[u64], stack: &[u8], count: u64) {
        let survey = self.survey;
        increase(&mut self.sums.losses.samples, count);
        let place = |address| {
            if self.absolute {
                return Some((BinaryId(0), address));
            }
            place(survey, at, address)
        };
        if let Some(address) = address {
            self.sums.address(place(address), count);
        }
        // An entry in which both addresses are 0 is unused.
        let used = branches(stack).take_while(|&(from, to, _)| (from, to) != (0, 0));
        let placed = used.map(|(from, to, mispredicted)| PlacedBranch {
            from: place(from),
            to: place(to),
            mispredicted,
        });
        if self.stacks && !chain.is_empty() {
            let branches: Vec<_> = placed.collect();
            self.sums.stack(branches.iter().copied(), true, count);
            if !branches.is_empty() {
                let chain = chain.iter().map(|&address| place(address));
                self.sums.whole(chain, &branches, count);
            }
        } else {
            self.sums.stack(placed, true, count);
        }
    }

    fn part(&mut self, offset: usize, text: &[u8]) {
        let mut count = 1;
        // The addresses of the call chain that is being read; empty if none is.
        let mut chain: Vec<u64> = Vec::new();
        for (start, line) in Lines::new(text) {
            let at = (offset + start) as u64;
            let trimmed = line.trim_ascii();
            if memmem::find(line, MAPPING).is_some() || trimmed.starts_with(b"#") {
                continue;
            }
            if trimmed.is_empty() {
                // An empty line ends a sample that has a call chain but no branch stack.
                if let Some(&address) = chain.first() {
                    increase(&mut self.sums.losses.with_chain, count);
                    self.sample(at, Some(address), &chain, &[], count);
                    chain.clear();
                    count = 1;
                }
                continue;
            }
            if chain.is_empty()
                && !is_indented(line)
                && let Some(number) = decimal(line)
            {
                count = number;
                continue;
            }
            let Some((address, stack)) = stack_of(line) else {
                self.sums.losses.damaged_lines += 1;
                continue;
            };
            if self.survey.chains && stack.is_empty() {
                chain.extend(address);
                continue;
            }
            if !stack.is_empty() && !stack.starts_with(b"0x") {
                self.sums.losses.damaged_lines += 1;
                continue;
            }
            if !chain.is_empty() {
                increase(&mut self.sums.losses.with_chain, count);
            }
            let leaf = chain.first().copied().or(address);
            self.sample(at, leaf, &chain, stack, count);
            chain.clear();
            count = 1;
        }
        if let Some(&address) = chain.first() {
            increase(&mut self.sums.losses.with_chain, count);
            self.sample(
                (offset + text.len()) as u64,
                Some(address),
                &chain,
                &[],
                count,
            );
        }
    }
}

/// Reads the counts of a text. Uses the threads of rayon's current pool.
pub fn read(text: &[u8], options: TextOptions) -> Counts {
    let survey = Survey::of(text);
    let all_stacks = SharedStacks::new(options.context_memory);
    let new = || Reader::new(&survey, options, &all_stacks);
    let mut reader = parts(text, limits::CHUNK)
        .into_par_iter()
        .fold(new, |mut reader, (offset, part)| {
            reader.part(offset, part);
            reader
        })
        .reduce(new, |mut reader, other| {
            reader.sums.join(other.sums);
            reader
        });
    reader.sums.losses.damaged_lines += survey.damaged;
    let binaries = survey.processes.binaries();
    if !binaries.is_empty() {
        return reader.sums.into_table(binaries).finish();
    }
    reader.sums.into_addresses().finish()
}
