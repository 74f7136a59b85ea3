//! Files of addresses. Such a file contains counts for any number of binaries. The files are small, and the files of
//! many machines can be added up.
//!
//! The first line consists of [`MAGIC`] and the version. Then follows a line `losses NAME NUMBER` for each number that
//! is not 0. Then follow a line `binary NUMBERING BUILD-ID PATH` and sections for each binary. A section consists of a
//! line with its kind and the number of its entries, and a line for each entry.
use super::sections::{build_id, check_depth};
use super::words::{Lines, decimal, hex, malformed};
use crate::collect::{BinaryCounts, BinaryKey, CountTable, Counts, Numbering, Place, Sums};
use profkit_data::{Error, ErrorKind, Result};
use std::io::{self, Write};

/// The text with which the first line of a file of addresses begins. The version follows it.
pub const MAGIC: &[u8] = b"# profkit addresses ";
/// The version of the format that this crate reads and writes.
const VERSION: u64 = 1;

const NUMBERINGS: [(&str, Numbering); 6] = [
    ("file-offsets", Numbering::FileOffset),
    ("addresses", Numbering::Address),
    ("from-base", Numbering::FromBase),
    ("from-text", Numbering::FromText),
    ("from-stext", Numbering::FromStext),
    ("from-module", Numbering::FromModule),
];

impl Numbering {
    /// The name of the numbering in files of addresses.
    pub fn name(self) -> &'static str {
        let mut known = NUMBERINGS.into_iter();
        let found = known.find(|&(_, numbering)| numbering == self);
        found.map_or("file-offsets", |(name, _)| name)
    }

    /// The numbering with this [name](Self::name); `None` if there is no such numbering.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let mut known = NUMBERINGS.into_iter();
        known.find_map(|(one, numbering)| (one.as_bytes() == name).then_some(numbering))
    }
}

/// Writes counts as a file of addresses. Equal counts always give equal bytes.
///
/// # Errors
/// If the sink has an error.
pub fn write_addresses(counts: &Counts, sink: &mut dyn Write) -> io::Result<()> {
    sink.write_all(MAGIC)?;
    writeln!(sink, "{VERSION}")?;
    for (name, number) in counts.losses.numbers() {
        if number > 0 {
            writeln!(sink, "losses {name} {number}")?;
        }
    }
    for binary in &counts.binaries {
        write_binary(binary, sink)?;
    }
    Ok(())
}

fn write_binary(binary: &BinaryCounts, sink: &mut dyn Write) -> io::Result<()> {
    let key = &binary.key;
    let numbering = key.numbering.name();
    let kind = if key.kernel { "kernel" } else { "binary" };
    write!(sink, "{kind} {numbering} ")?;
    match &key.build_id {
        Some(id) => write!(sink, "{id} ")?,
        None => write!(sink, "- ")?,
    }
    sink.write_all(&escaped(&key.path))?;
    writeln!(sink)?;
    write_sums(&binary.sums, sink)?;
    for (context, sums) in &binary.contexts {
        sink.write_all(b"context ")?;
        sink.write_all(&escaped(context))?;
        writeln!(sink)?;
        write_sums(sums, sink)?;
    }
    Ok(())
}

fn write_sums(sums: &Sums, sink: &mut dyn Write) -> io::Result<()> {
    if !sums.ranges.is_empty() {
        writeln!(sink, "ranges {}", sums.ranges.len())?;
    }
    for range in &sums.ranges {
        writeln!(sink, "{:x}-{:x}:{}", range.start, range.end, range.count)?;
    }
    if !sums.branches.is_empty() {
        writeln!(sink, "branches {}", sums.branches.len())?;
    }
    for branch in &sums.branches {
        for (place, after) in [(branch.from, "->"), (branch.to, ":")] {
            match place.get() {
                Some(place) => write!(sink, "{place:x}{after}")?,
                None => write!(sink, "*{after}")?,
            }
        }
        writeln!(sink, "{}", branch.count)?;
    }
    if !sums.addresses.is_empty() {
        writeln!(sink, "samples {}", sums.addresses.len())?;
    }
    for address in &sums.addresses {
        writeln!(sink, "{:x}:{}", address.place, address.count)?;
    }
    Ok(())
}

/// Returns the text with each control character and each `%` replaced by `%` and two hexadecimal digits.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if byte < 0x20 || byte == 0x7f || byte == b'%' {
            out.extend(format!("%{byte:02x}").into_bytes());
        } else {
            out.push(byte);
        }
    }
    out
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            let (value, left) = hex(digits)?;
            out.push(u8::try_from(value).ok().filter(|_| left.is_empty())?);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// Parses the line about a binary after its first word.
fn key(kernel: bool, line: &[u8]) -> Option<BinaryKey> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let numbering = Numbering::from_name(parts.next()?)?;
    let id = match parts.next()? {
        b"-" => None,
        text => Some(build_id(text)?),
    };
    Some(BinaryKey {
        path: unescaped(parts.next()?)?,
        build_id: id,
        kernel,
        numbering,
    })
}

fn end_of_branch(text: &[u8]) -> Option<(Place, &[u8])> {
    match text.strip_prefix(b"*") {
        Some(rest) => Some((Place::ELSEWHERE, rest)),
        None => hex(text).map(|(place, rest)| (Place::at(place), rest)),
    }
}

/// The first word of each kind of section, and the form of the section's entries.
const SECTIONS: [(&[u8], &str); 3] = [
    (b"ranges ", "`START-END:COUNT`"),
    (b"branches ", "`FROM->TO:COUNT`"),
    (b"samples ", "`PLACE:COUNT`"),
];

pub fn read(text: &[u8]) -> Result<Counts> {
    let mut lines = Lines::new(text);
    let version = lines.next().and_then(|(_, line)| line.strip_prefix(MAGIC));
    let version = version.unwrap_or_default();
    if decimal(version) != Some(VERSION) {
        return Err(Error::new(
            ErrorKind::UnsupportedVersion,
            "the version of these counts by address is not known",
        )
        .at(MAGIC.len() as u64)
        .found(String::from_utf8_lossy(version))
        .expected(VERSION)
        .with_hint("use a newer profkit"));
    }
    let mut table = CountTable::default();
    // The binary and the context to which the following sections belong.
    let mut current: Option<(BinaryKey, Option<Vec<u8>>)> = None;
    while let Some((offset, line)) = lines.next() {
        let bad = |expected| malformed(offset, line, expected);
        if let Some(rest) = line.strip_prefix(b"losses ") {
            const SHAPE: &str = "`losses NAME NUMBER`";
            let space = memchr::memchr(b' ', rest).ok_or_else(|| bad(SHAPE))?;
            let (name, number) = rest.split_at_checked(space).ok_or_else(|| bad(SHAPE))?;
            let number = decimal(number.trim_ascii()).ok_or_else(|| bad(SHAPE))?;
            let numbers = table.losses.numbers_mut();
            let ours = numbers
                .into_iter()
                .find(|(ours, _)| ours.as_bytes() == name);
            let (_, ours) = ours.ok_or_else(|| bad("a name that this version writes"))?;
            *ours = ours.saturating_add(number);
            continue;
        }
        let binary = [(&b"binary "[..], false), (b"kernel ", true)]
            .into_iter()
            .find_map(|(word, kernel)| Some((kernel, line.strip_prefix(word)?)));
        if let Some((kernel, rest)) = binary {
            const SHAPE: &str = "`binary NUMBERING BUILD-ID PATH`";
            let key = key(kernel, rest).ok_or_else(|| bad(SHAPE))?;
            current = Some((key, None));
            continue;
        }
        let (key, context) = current.as_mut().ok_or_else(|| bad("a binary"))?;
        if let Some(name) = line.strip_prefix(b"context ") {
            let name = unescaped(name).ok_or_else(|| bad("`context NAME`"))?;
            check_depth(offset, &name)?;
            *context = Some(name);
            continue;
        }
        let section = SECTIONS
            .iter()
            .enumerate()
            .find_map(|(kind, (word, shape))| Some((kind, line.strip_prefix(*word)?, *shape)));
        let (kind, number, shape) = section.ok_or_else(|| bad("a section or a binary"))?;
        let number = decimal(number).ok_or_else(|| bad("the number of entries of a section"))?;
        let binary = table.binary(key);
        let sums = match context {
            None => &mut binary.sums,
            Some(name) => binary.contexts.entry(name.clone()).or_default(),
        };
        for _ in 0..number {
            let (offset, line) = lines.next().ok_or_else(|| {
                Error::new(ErrorKind::Truncated, "the file ends within a section")
                    .at(text.len() as u64)
            })?;
            let read = || {
                let (from, rest) = end_of_branch(line)?;
                if kind == 2 {
                    let count = decimal(rest.strip_prefix(b":")?)?;
                    return Some((from, Place::ELSEWHERE, count));
                }
                let arrow: &[u8] = if kind == 0 { b"-" } else { b"->" };
                let (to, rest) = end_of_branch(rest.strip_prefix(arrow)?)?;
                Some((from, to, decimal(rest.strip_prefix(b":")?)?))
            };
            let (from, to, count) = read().ok_or_else(|| malformed(offset, line, shape))?;
            match (kind, from.get(), to.get()) {
                (0, Some(start), Some(end)) => sums.range(start, end, count),
                (1, ..) => sums.branch(from, to, count),
                (2, Some(place), _) => sums.address(place, count),
                _ => return Err(malformed(offset, line, shape)),
            }
        }
    }
    Ok(table.finish())
}
