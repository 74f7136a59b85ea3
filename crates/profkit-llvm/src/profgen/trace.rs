//! Reads recordings and the output of `perf script` by LLVM's rules.
//!
//! For the output of `perf script`, the base address of the binary is not kept per process. For each sample, it comes from
//! the most recent mapping of the binary's first segment with code, whichever process made this mapping. An address at
//! which the binary has no instruction becomes [`EXTERNAL`].
use super::binary::{Binary, share};
use super::contexts;
use super::counts::{Counts, EXTERNAL, Stacks};
use super::lines::{Lines, hex, number, without_blanks};
use super::unsymbolized;
use crate::LLVM_23;
use crate::command_line::{Parsed, file_name};
use crate::messages::{Fault, Session};
use profkit_data::detect::{FileKind, detect};
use profkit_data::path_from_bytes;
use profkit_perf::{Recording, sample_type};
use profkit_profgen::contexts::{Samples, is_complete};

use regex::bytes::Regex;

/// The names that mappings of the kernel may have.
const KERNELS: [&[u8]; 3] = [
    b"[kernel.kallsyms]",
    b"[kernel.kallsyms]_stext",
    b"[kernel.kallsyms]_text",
];

/// The regular expression of a mapping in the output of `perf script`.
const MAPPING: &str = r"(?-u)PERF_RECORD_MMAP(?:2 (?P<pid2>-?[0-9]+)/[0-9]+: \[(?P<at2>0x[a-f0-9]+)\(0x[a-f0-9]+\) @ (?P<offset2>0x[a-f0-9]+|0) .*\]: [-a-z]+ (?P<path2>.*)| (?P<pid>-?[0-9]+)/[0-9]+: \[(?P<at>0x[a-f0-9]+)\(0x[a-f0-9]+\) @ (?P<offset>0x[a-f0-9]+|0)\]: [-a-z]+ (?P<path>.*))";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each sample has a branch stack.
    Branches,
    /// Each sample has a call chain and a branch stack.
    Both,
}

/// Reads samples, and prints warnings about samples that do not fit the binary. Writes the unsymbolized profile if the
/// user asked for one.
///
/// # Errors
/// LLVM's text for an input that cannot be used.
pub fn read(
    parsed: &Parsed,
    binary: &Binary<'_>,
    path: &[u8],
    is_recording: bool,
    session: &Session<'_>,
) -> Result<Counts, Fault> {
    let mut state = State {
        binary,
        session,
        base: binary.program.base(),
        is_loaded: false,
        warned: false,
        kernel: parsed.flag("kernel"),
        pid: parsed.number("pid"),
        show_mappings: parsed.flag("show-mmap-events"),
        samples: 0,
        stacks: Stacks::new(session.release() >= LLVM_23),
        ignore_chains: parsed.flag("ignore-stack-samples"),
        chains: None,
        leaf_elsewhere: 0,
    };
    if is_recording {
        state.recording(path, session)?;
    } else {
        // LLVM's tool treats a folder as an empty text.
        let bytes = match path_from_bytes(path).is_dir() {
            true => None,
            false => Some(session.read(path)?),
        };
        state.script(bytes.as_ref().map(AsRef::as_ref).unwrap_or_default())?;
    }
    if state.kernel && !state.is_loaded {
        return Err(Fault::new(
            "Kernel is requested, but no kernel is found in mmap events.",
        ));
    }
    share(
        session,
        state.leaf_elsewhere,
        state.samples,
        "of samples have leaf external frame in call stack.",
    );
    if let Some(samples) = state.chains {
        return contexts::unwind(parsed, binary, samples, session).map(Counts::Contexts);
    }
    let checked = state.stacks.check(parsed, binary, session);
    if parsed.flag("skip-symbolization") {
        unsymbolized::write(parsed, binary, &checked, session)?;
    }
    Ok(Counts::Samples(checked))
}

struct State<'s, 'files, 'io> {
    binary: &'s Binary<'files>,
    session: &'s Session<'io>,
    /// The address at which the binary is mapped.
    base: u64,
    is_loaded: bool,
    warned: bool,
    kernel: bool,
    pid: Option<u64>,
    show_mappings: bool,
    samples: u64,
    stacks: Stacks,
    /// Whether call chains are ignored. Exception: a sample whose call chain is incomplete is left out even then.
    ignore_chains: bool,
    /// The samples with call chains; `None` if the input has no chains or they are ignored.
    chains: Option<Samples>,
    /// The number of samples whose call chain begins outside of the binary.
    leaf_elsewhere: u64,
}

/// Returns the line about a mapping that `--show-mmap-events` prints.
fn line_of(path: &[u8], address: u64) -> Vec<u8> {
    let end = format!(" loaded at 0x{address:x}: \n");
    [b"Mmap: Binary ", path, end.as_bytes()].concat()
}

fn no_mapping() -> Fault {
    Fault::new("No relevant mmap event is found in perf data.")
}

fn is_mapping(line: &[u8]) -> bool {
    line.len() >= 50
        && !line.first().is_some_and(u8::is_ascii_digit)
        && memchr::memmem::find(line, b"PERF_RECORD_MMAP").is_some()
}

/// Recognises the form of the samples from the first sample with branches.
fn form(text: &[u8]) -> Result<Form, Fault> {
    let mut lines = Lines::new(text);
    while let Some(line) = lines.line() {
        if number(line, 10).is_some() {
            lines.advance();
        }
        let mut frames = 0;
        while lines
            .line()
            .and_then(|line| number(without_blanks(line), 16))
            .is_some()
        {
            frames += 1;
            lines.advance();
        }
        if let Some(line) = lines.line() {
            if has_branches(line) {
                return Ok(if frames > 0 {
                    Form::Both
                } else {
                    Form::Branches
                });
            }
            lines.advance();
        }
    }
    Err(Fault::new("Invalid perf script input!"))
}

/// Whether a line contains a branch stack. As LLVM's tool does, checks the text after the first word.
fn has_branches(line: &[u8]) -> bool {
    let mut words = line.trim_ascii().splitn(2, |&byte| byte == b' ');
    let second = words.nth(1).map(without_blanks).unwrap_or_default();
    second.starts_with(b"0x") && second.contains(&b'/')
}

/// What one thread has found in its share of the samples.
#[derive(Default)]
struct Part {
    samples: u64,
    stacks: Stacks,
    stack: Vec<(u64, u64)>,
    chains: Samples,
    leaf_elsewhere: u64,
}

impl State<'_, '_, '_> {
    /// Reads a recording. Unlike LLVM's tool, this function knows at which address each process had mapped the binary
    /// at each time.
    fn recording(&mut self, path: &[u8], session: &Session<'_>) -> Result<(), Fault> {
        let file = path_from_bytes(path);
        let is_folder = file.is_dir();
        let head = if is_folder {
            [path, b"/data"].concat()
        } else {
            path.to_vec()
        };
        let head = session.read(&head)?;
        // For a file that is not a recording, LLVM's tool runs perf as usual. perf reports what is wrong with the file,
        // and the tool itself only reports that it found no mapping.
        if detect(head.as_ref()) != FileKind::PerfData {
            return Err(no_mapping());
        }
        let parts = (0..).map(|number| [path, format!("/data.{number}").as_bytes()].concat());
        let parts = parts.take_while(|part| is_folder && path_from_bytes(part).is_file());
        let parts = parts.map(|part| session.read(&part));
        let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        let recording = Recording::open_folder(head.as_ref(), &parts)
            .map_err(|error| Fault::of(path, error.to_string()))?;
        let mut lines = Vec::new();
        let mut is_found = false;
        recording.mappings(|mapping| {
            if !mapping.executable {
                return;
            }
            is_found |= self.is_binary(mapping.path);
            if self.show_mappings {
                lines.extend_from_slice(&line_of(mapping.path, mapping.start));
            }
        });
        if !is_found && !self.kernel {
            return Err(no_mapping());
        }
        // If the write fails, the error is ignored, as in LLVM's tool.
        let _ = session.stdout().write_all(&lines);
        self.is_loaded |= is_found;
        let processes = recording.processes();
        let ours: Vec<bool> = processes
            .binaries()
            .iter()
            .map(|binary| self.is_binary(&binary.path))
            .collect();
        let program = &self.binary.program;
        let mut events = recording.events().iter();
        let has_chains = events.any(|event| event.attr.has(sample_type::CALLCHAIN));
        let ignore_chains = self.ignore_chains;
        let (wanted, kernel) = (self.pid, self.kernel);
        let places = program.places();
        let code = program.code();
        let keeps = session.release() >= LLVM_23;
        let (sum, _) = recording.samples(
            || Part {
                stacks: Stacks::new(keeps),
                ..Part::default()
            },
            |part, sample| {
                let pid = u64::from(sample.pid);
                if wanted.is_some_and(|wanted| wanted != pid) {
                    return;
                }
                let inside = |address| {
                    let found = processes.locate_in_mode(
                        false,
                        sample.pid,
                        Some(sample.when()),
                        address,
                    )?;
                    let is_ours = ours.get(found.binary.index()).copied().unwrap_or(false);
                    let address = if kernel {
                        program.base().wrapping_add(found.offset)
                    } else {
                        places.address(found.offset)?
                    };
                    if !is_ours {
                        return None;
                    }
                    code.is_code(address).then_some(address)
                };
                let branches = sample.branches.iter().filter_map(|branch| {
                    let (from, to) = (inside(branch.from), inside(branch.to));
                    let ends = (from.unwrap_or(EXTERNAL), to.unwrap_or(EXTERNAL));
                    (from.is_some() || to.is_some()).then_some(ends)
                });
                part.stack.clear();
                part.stack.extend(branches);
                part.samples += 1;
                if !has_chains {
                    part.stacks.add(&part.stack, 1);
                    return;
                }
                let mut chain = sample
                    .chain
                    .addresses()
                    .map(|(_, at)| inside(at))
                    .peekable();
                let Some(&leaf) = chain.peek() else {
                    return;
                };
                part.leaf_elsewhere += u64::from(leaf.is_none());
                if part.stack.is_empty() {
                    return;
                }
                if !ignore_chains {
                    let end = |at: u64| Some(at).filter(|&at| at != EXTERNAL);
                    let branches = part.stack.iter().map(|&(from, to)| (end(from), end(to)));
                    part.chains.add(program, chain, branches, 1);
                } else if is_complete(program, leaf) {
                    part.stacks.add(&part.stack, 1);
                }
            },
            |part, other| {
                part.samples += other.samples;
                part.stacks.join(other.stacks);
                part.chains.join(other.chains);
                part.leaf_elsewhere += other.leaf_elsewhere;
            },
        );
        self.samples = sum.samples;
        self.stacks = sum.stacks;
        self.leaf_elsewhere = sum.leaf_elsewhere;
        self.chains = (has_chains && !ignore_chains).then_some(sum.chains);
        Ok(())
    }

    /// Whether this path is that of the binary, or that of the kernel if the user asked for the kernel.
    fn is_binary(&self, path: &[u8]) -> bool {
        if self.kernel {
            KERNELS.contains(&path)
        } else {
            let backslash = |&byte: &u8| byte == b'\\' && self.binary.program.is_pe();
            let name = path.rsplit(backslash).next().unwrap_or(path);
            file_name(name) == self.binary.name
        }
    }

    fn script(&mut self, text: &[u8]) -> Result<(), Fault> {
        let has_chains = form(text)? == Form::Both;
        if has_chains && !self.ignore_chains {
            self.chains = Some(Samples::default());
        }
        let pattern = Regex::new(MAPPING).map_err(|error| Fault::new(error.to_string()))?;
        let mut lines = Lines::new(text);
        let mut stack = Vec::new();
        while let Some(line) = lines.line() {
            if is_mapping(line) {
                self.mapping_line(&pattern, line)?;
                lines.advance();
                continue;
            }
            self.samples += 1;
            let mut count = 1;
            if let Some(number) = number(line, 10) {
                count = number;
                lines.advance();
            }
            if has_chains {
                self.sample_with_chain(&mut lines, &mut stack, count)?;
                continue;
            }
            self.stack_of(&lines, &mut stack);
            lines.advance();
            if !stack.is_empty() {
                self.warn_if_not_mapped();
                self.stacks.add(&stack, count);
            }
        }
        Ok(())
    }

    /// Reads a sample. It consists of one line for each address of its call chain, and one line with the branch stack.
    fn sample_with_chain(
        &mut self,
        lines: &mut Lines<'_>,
        stack: &mut Vec<(u64, u64)>,
        count: u64,
    ) -> Result<(), Fault> {
        let is_stack = |lines: &Lines<'_>| lines.line().is_some_and(|it| it.starts_with(b" 0x"));
        let mut chain = Vec::new();
        while let Some(line) = lines.line().filter(|line| !line.starts_with(b" 0x")) {
            let address = number(without_blanks(line), 16);
            lines.advance();
            let Some(address) = address else {
                // This line is not an address (it may be empty), so there is no sample here. A branch stack that
                // follows it is skipped.
                if is_stack(lines) {
                    lines.advance();
                }
                return Ok(());
            };
            chain.push(Some(self.inside(address)).filter(|&at| at != EXTERNAL));
        }
        let leaf = chain.first().copied();
        self.leaf_elsewhere += u64::from(leaf == Some(None));
        let is_used = leaf.is_some_and(|leaf| is_complete(&self.binary.program, leaf));
        if is_used {
            self.warn_if_not_mapped();
        }
        if !is_stack(lines) {
            return if is_used {
                Err(Fault::new(
                    "'Hybrid perf sample is corrupted, No LBR sample line",
                ))
            } else {
                Ok(())
            };
        }
        self.stack_of(lines, stack);
        lines.advance();
        if stack.is_empty() {
            return Ok(());
        }
        match &mut self.chains {
            Some(samples) => {
                let end = |at: u64| Some(at).filter(|&at| at != EXTERNAL);
                let branches = stack.iter().map(|&(from, to)| (end(from), end(to)));
                samples.add(&self.binary.program, chain.into_iter(), branches, count);
            }
            None if is_used => self.stacks.add(stack, count),
            None => {}
        }
        Ok(())
    }

    fn stack_of(&self, lines: &Lines<'_>, stack: &mut Vec<(u64, u64)>) {
        stack.clear();
        let Some(line) = lines.line() else {
            return;
        };
        let invalid = || {
            let text = format!("Invalid address in LBR record at line {}: ", lines.number());
            self.session
                .warning_bytes(&[text.as_bytes(), line].concat());
        };
        let words = line.trim_ascii_end().split(|&byte| byte == b' ');
        let mut words = words.filter(|word| !word.is_empty()).peekable();
        if let Some(first) = words.next_if(|word| !word.contains(&b'/'))
            && number(first, 16).is_none()
        {
            invalid();
            return;
        }
        for word in words {
            let mut ends = word.split(|&byte| byte == b'/');
            let mut end = || number(ends.next()?.get(2..)?, 16);
            let (Some(from), Some(to)) = (end(), end()) else {
                invalid();
                break;
            };
            stack.extend(self.branch(from, to));
        }
    }

    /// Returns the branch with its ends as addresses of the binary. `None` if neither end is an instruction.
    fn branch(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (from, to) = (self.inside(from), self.inside(to));
        (from != EXTERNAL || to != EXTERNAL).then_some((from, to))
    }

    /// Converts an address in the process to the address in the binary. Returns [`EXTERNAL`] if no instruction is
    /// there.
    fn inside(&self, address: u64) -> u64 {
        let program = &self.binary.program;
        let move_by = program.base().wrapping_sub(self.base);
        let address = address.wrapping_add(move_by);
        if program.code().is_code(address) {
            address
        } else {
            EXTERNAL
        }
    }

    fn warn_if_not_mapped(&mut self) {
        if self.is_loaded || self.warned {
            return;
        }
        self.warned = true;
        let name = String::from_utf8_lossy(&self.binary.name);
        let text = format!(
            "No relevant mmap event is matched for {name}, will use preferred address (0x{:x}) as the base loading address!",
            self.binary.program.base()
        );
        self.session.warning(b"", &text);
    }

    fn mapping_line(&mut self, pattern: &Regex, line: &[u8]) -> Result<(), Fault> {
        // LLVM 23 looks at no mapping of another file, unless all are printed.
        if self.session.release() >= LLVM_23
            && !self.show_mappings
            && !self.kernel
            && memchr::memmem::find(line, &self.binary.name).is_none()
        {
            return Ok(());
        }
        let Some(fields) = pattern.captures(line) else {
            let text = [b"Cannot parse mmap event: ", line, b" "].concat();
            self.session.warning_bytes(&text);
            return Ok(());
        };
        let field = |one, other| {
            let found = fields.name(one).or_else(|| fields.name(other));
            found.map_or(&[][..], |found| found.as_bytes())
        };
        let pid = field("pid2", "pid");
        let address = hex(field("at2", "at")).unwrap_or(0);
        let offset = hex(field("offset2", "offset")).unwrap_or(0);
        let path = field("path2", "path");
        if self.show_mappings {
            // If the write fails, the error is ignored, as in LLVM's tool.
            let _ = self.session.stdout().write_all(&line_of(path, address));
        }
        let pid: Option<i64> = std::str::from_utf8(pid)
            .ok()
            .and_then(|pid| pid.parse().ok());
        self.mapping(pid, address, offset, path)
    }

    /// Handles a mapping. `address` is its start, `offset` the offset in the file, and `path` the path of the file.
    fn mapping(
        &mut self,
        pid: Option<i64>,
        address: u64,
        offset: u64,
        path: &[u8],
    ) -> Result<(), Fault> {
        let is_binary = self.is_binary(path);
        let wanted = self.pid.is_none() || self.pid == pid.and_then(|pid| u64::try_from(pid).ok());
        if !is_binary || !wanted {
            return Ok(());
        }
        if address == self.base {
            self.is_loaded = true;
            return Ok(());
        }
        let segments = &self.binary.segments;
        let first = segments.first().map_or(0, |(offset, _)| *offset);
        if self.kernel || offset == first {
            self.base = address;
            self.is_loaded = true;
            return Ok(());
        }
        let from_base = address.wrapping_sub(self.base);
        let at = segments.partition_point(|(start, _)| *start < offset);
        match segments.get(at) {
            Some(&(start, preferred)) if start == offset => {
                if preferred.wrapping_sub(self.binary.program.base()) != from_base {
                    return Err(Fault::new("Executable segments not loaded consecutively"));
                }
            }
            _ => {
                let before = at.checked_sub(1).and_then(|before| segments.get(before));
                let Some((start, _)) = before else {
                    return Err(Fault::new("File offset not found"));
                };
                if offset - start != from_base {
                    return Err(Fault::new("Segment not loaded by consecutive mmaps"));
                }
            }
        }
        Ok(())
    }
}
