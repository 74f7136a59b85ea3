//! Reads text profiles (LLVM's `SampleProfileReaderText` in `SampleProfReader.cpp`).
use super::super::context::{ContextFault, frames, llvm_frames};
use super::super::flat::{Additions, Facts, FlatFunction, Repeated, Step};
use super::super::model::{Frame, ProfileKind, SampleProfile};
use super::super::names::{NameId, SampleName};
use super::super::options::SampleReadOptions;
use super::super::report::ReadReport;
use super::line::{self, Fault, Line};
use crate::limits::{SAMPLE_CONTEXT_DEPTH, SAMPLE_INLINE_DEPTH};
use crate::quote::quote;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::sample::attribute;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Adds a text profile to `profile`, each count times `weight`.
///
/// If a function has an error, the whole function is left out, and reading continues at the next head line. The reader
/// needs memory for one function ([`FlatFunction`]) in addition to the profile.
pub fn read(data: &[u8], profile: &mut SampleProfile, weight: u64) -> ReadReport {
    read_with(data, profile, weight, SampleReadOptions::default())
}

/// Adds a text profile to `profile`, as [`read`] does, with the given options.
pub fn read_with(
    data: &[u8],
    profile: &mut SampleProfile,
    weight: u64,
    options: SampleReadOptions,
) -> ReadReport {
    let end = if options.llvm_checks {
        // LLVM reads a text up to its first zero byte.
        memchr::memchr(0, data).unwrap_or(data.len())
    } else {
        data.len() - data.iter().rev().take_while(|&&byte| byte == 0).count()
    };
    let data = data.get(..end).unwrap_or_default();
    let is_first = profile.functions().is_empty();
    let mut additions = profile.additions();
    if options.llvm_checks && is_first {
        additions.replace_facts();
    }
    let mut reader = Reader {
        additions,
        weight,
        mask: options.mask(options.assumed_kind()),
        as_llvm: options.llvm_checks,
        function: FlatFunction::default(),
        open: false,
        depth: 0,
        metadata_depth: 0,
        stack: Vec::new(),
        entered: 0,
        targets: Vec::new(),
        target_places: FxHashMap::default(),
        kind: ProfileKind::NONE,
        report: ReadReport {
            kind: options.assumed_kind(),
            ..ReadReport::default()
        },
    };
    let mut number = 0;
    let mut position = 0;
    while position < data.len() {
        let rest = data.get(position..).unwrap_or_default();
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = rest.get(..len).unwrap_or_default();
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        position += len + 1;
        number += 1;
        let depth = text.iter().take_while(|&&byte| byte == b' ').count();
        if matches!(text.get(depth), None | Some(b'#')) {
            continue;
        }
        if let Err(error) = reader.line(text, depth, number) {
            let structure = if depth > 0 && reader.open {
                let name = reader.additions.names().get(reader.function.name);
                Structure::Function(name.to_string())
            } else {
                Structure::FirstLine
            };
            reader.open = false;
            reader.report.fault(error.within(structure));
        }
    }
    reader.finish();
    let report = std::mem::take(&mut reader.report);
    drop(reader);
    profile.kind |= report.kind;
    report
}

/// Whether LLVM takes a text for a sample profile. It does so if the first line that is neither empty nor a comment is
/// a head line.
pub(in crate::sample) fn begins_as_llvm_reads(text: &[u8]) -> bool {
    let mut lines = text
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let is_head = |line: &[u8]| !line.starts_with(b" ") && line::llvm_head(line).is_ok();
    lines.next().is_some_and(is_head)
}

struct Reader<'p> {
    additions: Additions<'p>,
    weight: u64,
    /// A mask with the discriminator bits that are kept; `None` keeps all bits.
    mask: Option<u32>,
    /// Whether lines are read by LLVM's rules, which accept some lines that are otherwise errors.
    as_llvm: bool,
    function: FlatFunction,
    open: bool,
    /// The number of inlined functions that contain the current line.
    depth: usize,
    /// The indentation of the last metadata line; 0 if the head line of a function or of an inlined function was read
    /// after this metadata line.
    metadata_depth: usize,
    /// Indexes in the function's list of checksums and attributes: the index of the current function, then the indexes
    /// of the inlined functions that contain the current line, outermost first.
    stack: Vec<usize>,
    entered: usize,
    targets: Vec<(NameId, u64)>,
    /// The index of each name in `targets`. The map is used only if there are many call targets.
    target_places: FxHashMap<NameId, usize>,
    /// The flags of the profile's kind that the lines of the current function imply.
    kind: ProfileKind,
    report: ReadReport,
}

/// Returns the parts of a line that an error shows: the text from the faulty column to the end of the line, and the
/// whole line. `column` is a byte offset.
fn found_at(line: &[u8], column: usize) -> String {
    let (before, rest) = line.split_at_checked(column).unwrap_or((line, &[]));
    if before.trim_ascii().is_empty() {
        quote(rest)
    } else if rest.is_empty() {
        format!("the end of {}", quote(line))
    } else {
        format!("{} in {}", quote(rest), quote(line))
    }
}

impl Reader<'_> {
    fn line(&mut self, text: &[u8], depth: usize, number: u64) -> Result<()> {
        let located = |fault: Fault| {
            let error = ErrorKind::Malformed
                .error(fault.message)
                .at_line(number, fault.column as u64 + 1)
                .found(found_at(text, fault.column))
                .expected(fault.expected);
            match fault.llvm {
                Some(words) => error.llvm_detail(words),
                None => error,
            }
        };
        if let Some(zero) = memchr::memchr(0, text) {
            if depth == 0 {
                self.finish();
            }
            return Err(located(Fault {
                column: zero,
                message: "the text contains a zero byte",
                expected: "text",
                llvm: None,
            }));
        }
        if depth == 0 {
            self.finish();
            let head = if self.as_llvm {
                line::llvm_head
            } else {
                line::head
            };
            let (name, total, head) = head(text).map_err(located)?;
            self.function.clear();
            self.kind = ProfileKind::NONE;
            self.function.name = match name {
                [b'[', ..] => self.context(name, number, text)?,
                _ => self.intern(name, number)?,
            };
            (self.function.total, self.function.head) = (total, head);
            self.stack.clear();
            self.stack.push(0);
            (self.open, self.depth, self.metadata_depth, self.entered) = (true, 0, 0, 0);
            return Ok(());
        }
        if !self.open {
            // The line belongs to a function whose error was already reported, or the file begins without a head line.
            if self.report.fault_count == 0 {
                return Err(located(Fault {
                    column: 0,
                    message: "the text does not begin with a function",
                    expected: "NAME:TOTAL:HEAD",
                    llvm: None,
                }));
            }
            return Ok(());
        }
        let parse = if self.as_llvm {
            line::llvm_parse
        } else {
            line::parse
        };
        let parsed = parse(text, depth).map_err(located)?;
        let as_llvm = self.as_llvm;
        let is_metadata = matches!(parsed, Line::Checksum(_) | Line::Attributes(_) | Line::Flat);
        if !is_metadata && depth == self.metadata_depth {
            // This line has a fault: it comes after metadata. If its call targets have a fault too, report only the
            // fault of the call targets, as LLVM does.
            if let Line::Body { targets, .. } = &parsed {
                targets.check().map_err(located)?;
            }
            return Err(located(Fault {
                column: depth,
                message: "a sample line comes after the function's metadata",
                expected: "metadata at the end of the function",
                llvm: Some("Found non-metadata after metadata: "),
            }));
        }
        while self.depth + 1 > depth {
            self.function.steps.push(Step::Leave);
            self.stack.pop();
            self.depth -= 1;
        }
        match parsed {
            Line::Body {
                location,
                samples,
                targets,
            } => {
                self.function.steps.push(Step::Line { location, samples });
                if let Some(fault) = targets.trailing_blank() {
                    return Err(located(fault));
                }
                self.pairs(targets, false, number)
                    .map_err(|fault| fault.unwrap_or_else(located))?;
                for &(name, count) in &self.targets {
                    self.function.steps.push(Step::Target { name, count });
                }
            }
            Line::Vtables { location, types } => {
                self.pairs(types, true, number)
                    .map_err(|fault| fault.unwrap_or_else(located))?;
                self.kind |= ProfileKind::HAS_VTABLES;
                for &(name, count) in &self.targets {
                    self.function.steps.push(Step::Vtable {
                        location,
                        name,
                        count,
                    });
                }
            }
            Line::Inlined {
                location,
                name,
                total,
            } => {
                if self.depth == SAMPLE_INLINE_DEPTH {
                    return Err(ErrorKind::LimitExceeded
                        .error("inlined functions nest too deeply")
                        .at_line(number, 1)
                        .expected(format_args!("at most {SAMPLE_INLINE_DEPTH} levels")));
                }
                let name = self.intern(name, number)?;
                self.function.steps.push(Step::Enter {
                    location,
                    name,
                    total,
                });
                self.entered += 1;
                self.stack.push(self.entered);
                self.depth += 1;
                self.metadata_depth = 0;
            }
            Line::Checksum(checksum) => {
                let facts = self.facts();
                // In LLVM, a metadata line without attributes resets the attributes, and a checksum of 0 is ignored.
                if !as_llvm || checksum != 0 {
                    facts.checksum = checksum;
                }
                if as_llvm {
                    facts.attributes = 0;
                }
                // As in LLVM, the checksum of a top-level function shows that the profile is a profile of pseudo
                // probes.
                if checksum != 0 && depth == 1 {
                    self.kind |= ProfileKind::PROBE_BASED;
                }
                self.metadata_depth = depth;
            }
            Line::Attributes(attributes) => {
                self.facts().attributes = attributes;
                self.kind |= ProfileKind::HAS_ATTRIBUTES;
                if attributes & attribute::SHOULD_BE_INLINED != 0 {
                    self.kind |= ProfileKind::PRE_INLINED;
                }
                self.metadata_depth = depth;
            }
            Line::Flat => {
                if as_llvm {
                    self.facts().attributes = 0;
                }
                self.metadata_depth = depth;
            }
        }
        Ok(())
    }

    fn facts(&mut self) -> &mut Facts {
        let ordinal = self.stack.last().copied().unwrap_or(0);
        self.function.facts_mut(ordinal)
    }

    /// Reads pairs `NAME:COUNT`. If a name occurs twice and `unique` is set, this is an error. If `unique` is not set,
    /// the later count is kept, as in LLVM. `number` is the number of the line.
    fn pairs(
        &mut self,
        mut pairs: line::Targets<'_>,
        unique: bool,
        number: u64,
    ) -> std::result::Result<(), PairFault> {
        self.targets.clear();
        while let Some(pair) = pairs.next() {
            let (name, count) = pair.map_err(PairFault::Line)?;
            let name = self.intern(name, number).map_err(PairFault::Other)?;
            let known = self.target_place(name);
            match known.and_then(|place| self.targets.get_mut(place)) {
                Some(_) if unique => return Err(PairFault::Line(pairs.repeated())),
                Some(known) => known.1 = count,
                None => self.targets.push((name, count)),
            }
        }
        Ok(())
    }

    /// Returns the index of a name among the call targets of the line; `None` if it is not among them. A short list is
    /// searched one by one. For a long list, which occurs only in malicious files, a map is used.
    fn target_place(&mut self, name: NameId) -> Option<usize> {
        const FEW: usize = 32;
        let len = self.targets.len();
        if len < FEW {
            return self.targets.iter().position(|(known, _)| *known == name);
        }
        if len == FEW {
            self.target_places.clear();
            let places = self.targets.iter().zip(0..);
            self.target_places
                .extend(places.map(|((name, _), place)| (*name, place)));
        }
        match self.target_places.entry(name) {
            Entry::Occupied(place) => Some(*place.get()),
            Entry::Vacant(place) => {
                place.insert(len);
                None
            }
        }
    }

    fn intern(&mut self, name: &[u8], number: u64) -> Result<NameId> {
        let id = self.additions.names().insert(SampleName::Text(name));
        id.ok_or_else(|| {
            ErrorKind::LimitExceeded
                .error("there are too many names")
                .at_line(number, 1)
        })
    }

    /// Parses a calling context, `[outermost:LINE @ next:LINE.DISCRIMINATOR @ leaf]`. Stores the callers, and returns
    /// the name of the last frame. `number` is the number of the line, and `line` its text.
    fn context(&mut self, text: &[u8], number: u64, line: &[u8]) -> Result<NameId> {
        let fault = |fault: ContextFault| {
            ErrorKind::Malformed
                .error(fault.message)
                .at_line(number, fault.column as u64 + 1)
                .found(found_at(line, fault.column))
                .expected(fault.expected)
        };
        self.kind |= ProfileKind::CONTEXT_SENSITIVE;
        if self.as_llvm {
            return self.llvm_context(text, number);
        }
        let mut frames = frames(text).map_err(fault)?;
        while let Some(frame) = frames.next() {
            let (name, location, column) = frame.map_err(fault)?;
            let name = self.intern(name, number)?;
            let Some(location) = location else {
                self.report.callers_without_site += frames.without_site;
                return Ok(name);
            };
            if self.function.callers.len() == SAMPLE_CONTEXT_DEPTH {
                return Err(ErrorKind::LimitExceeded
                    .error("a calling context has too many frames")
                    .at_line(number, column as u64 + 1)
                    .expected(format_args!("at most {SAMPLE_CONTEXT_DEPTH} callers")));
            }
            self.function.callers.push(Frame { name, location });
        }
        // This point is not reached, because the iteration over frames ends with the last frame or with an error.
        Ok(NameId::default())
    }

    /// Parses a calling context as LLVM does: a part of a call site that is not a number counts as 0, the last
    /// character is not checked, and the last frame may have a call site. `number` is the number of the line.
    fn llvm_context(&mut self, text: &[u8], number: u64) -> Result<NameId> {
        let inner = text.get(1..text.len() - 1).unwrap_or_default();
        let mut leaf = Frame::default();
        for (at, (name, location)) in llvm_frames(inner).enumerate() {
            if at > 0 {
                self.function.callers.push(leaf);
            }
            if at > SAMPLE_CONTEXT_DEPTH {
                return Err(ErrorKind::LimitExceeded
                    .error("a calling context has too many frames")
                    .at_line(number, 1)
                    .expected(format_args!("at most {SAMPLE_CONTEXT_DEPTH} callers")));
            }
            let name = self.intern(name, number)?;
            leaf = Frame { name, location };
        }
        Ok(leaf.name)
    }

    fn finish(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        self.function
            .steps
            .extend(std::iter::repeat_n(Step::Leave, self.depth));
        if let Some(mask) = self.mask {
            self.function.cut_discriminators(mask, Repeated::Sum);
        }
        self.additions
            .add(&self.function, self.weight, &mut self.report.outcome);
        self.report.functions += 1;
        self.report.kind |= self.kind;
    }
}

enum PairFault {
    Line(Fault),
    Other(Error),
}

impl PairFault {
    fn unwrap_or_else(self, located: impl FnOnce(Fault) -> Error) -> Error {
        match self {
            PairFault::Line(fault) => located(fault),
            PairFault::Other(error) => error,
        }
    }
}
