//! Reads texts that consist of sections: llvm-profgen's unsymbolized profiles, and the texts of google/autofdo.
//!
//! A section consists of a line with the number of its entries, and a line for each entry. An entry has the form
//! `START-END:COUNT` for a range, `PLACE:COUNT` for an address, and `FROM->TO:COUNT` for a branch. START, END, PLACE,
//! FROM and TO are addresses or offsets in the binary, in hexadecimal digits. llvm-profgen writes a section of ranges
//! and a section of branches, either once or indented below each `[context]`. autofdo writes sections of ranges,
//! addresses and branches, and then comments.
use super::words::{Lines, decimal, hex_0x, malformed};
use super::{TextKind, TextOptions};
use crate::collect::{BinaryKey, CountTable, Counts, Numbering, Place, SumTable};
use profkit_data::ids::BuildId;
use profkit_data::limits::SAMPLE_CONTEXT_DEPTH;
use profkit_data::{Error, ErrorKind, Result};

/// An entry of a section.
enum Entry {
    Range(u64, u64, u64),
    Address(u64, u64),
    Branch(u64, u64, u64),
}

fn entry(line: &[u8]) -> Option<Entry> {
    let (first, rest) = hex_0x(line)?;
    if let Some(rest) = rest.strip_prefix(b"->") {
        let (to, rest) = hex_0x(rest)?;
        let count = decimal(rest.strip_prefix(b":")?)?;
        return Some(Entry::Branch(first, to, count));
    }
    if let Some(rest) = rest.strip_prefix(b"-") {
        let (end, rest) = hex_0x(rest)?;
        let count = decimal(rest.strip_prefix(b":")?)?;
        return Some(Entry::Range(first, end, count));
    }
    let count = decimal(rest.strip_prefix(b":")?)?;
    Some(Entry::Address(first, count))
}

/// Returns the lines that are neither empty nor comments, without the blanks around them. Each comes with its offset.
fn content(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    Lines::new(text)
        .map(|(offset, line)| (offset, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(b"//"))
}

/// Recognises a text that consists of sections, and its kind. `None` for other texts.
pub fn detect(text: &[u8]) -> Option<TextKind> {
    let mut lines = content(text).map(|(_, line)| line);
    let first = lines.next()?;
    if first.starts_with(b"[") {
        // A context must be followed by the number of entries in its first section.
        return decimal(lines.next()?).map(|_| TextKind::Unsymbolized);
    }
    let ranges = decimal(first)?;
    // The first section contains ranges, or is empty. After an empty section comes a number: that of the entries in the
    // second section.
    let mut next = lines.next();
    if ranges > 0 {
        let is_range = |line| matches!(entry(line), Some(Entry::Range(..)));
        next.filter(|line| is_range(line))?;
    } else {
        decimal(next?)?;
    }
    // The second section of a text of llvm-profgen has branches, that of autofdo has addresses. If the second section
    // is empty, the text is autofdo's if it has a third section.
    let mut numbers = 1;
    loop {
        match next {
            None => break,
            Some(line) => match entry(line) {
                Some(Entry::Range(..)) => {}
                Some(Entry::Address(..)) => return Some(TextKind::Autofdo),
                Some(Entry::Branch(..)) => break,
                None => {
                    // The line may be damaged. The kind of the text is still known, and the reader reports the line.
                    if decimal(line).is_none() {
                        break;
                    }
                    numbers += 1;
                }
            },
        }
        next = lines.next();
    }
    Some(if numbers > 2 {
        TextKind::Autofdo
    } else {
        TextKind::Unsymbolized
    })
}

/// Reads the comments at the end of autofdo's texts. Returns the build id and the path.
fn comments(text: &[u8]) -> (Option<BuildId>, Vec<u8>) {
    let (mut id, mut path) = (None, Vec::new());
    for (_, line) in Lines::new(text) {
        let Some(comment) = line.trim_ascii().strip_prefix(b"//") else {
            continue;
        };
        let comment = comment.trim_ascii();
        match comment.strip_prefix(b"build_id:") {
            Some(value) => id = build_id(value.trim_ascii()).or(id),
            None if comment.contains(&b'/') || path.is_empty() => path = comment.to_vec(),
            None => {}
        }
    }
    (id, path)
}

/// Parses a build id in hexadecimal digits. `None` if the text is no build id.
pub fn build_id(text: &[u8]) -> Option<BuildId> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let bytes = pairs.iter().map(|pair| {
        let (value, rest) = super::words::hex(pair)?;
        u8::try_from(value).ok().filter(|_| rest.is_empty())
    });
    bytes.collect::<Option<Vec<u8>>>().map(BuildId)
}

pub fn read(text: &[u8], kind: TextKind, options: TextOptions) -> Result<Counts> {
    let mut table = CountTable::default();
    let autofdo = kind == TextKind::Autofdo;
    let (build_id, path) = if autofdo {
        comments(text)
    } else {
        Default::default()
    };
    let numbering = match (autofdo, options.absolute) {
        (true, _) => Numbering::FileOffset,
        (false, true) => Numbering::Address,
        (false, false) => Numbering::FromBase,
    };
    let binary = table.binary(&BinaryKey {
        path,
        build_id,
        kernel: false,
        numbering,
    });
    let mut context: Option<Vec<u8>> = None;
    let mut lines = content(text);
    // The number of sections that were read so far: in the whole text, or since the last `[context]` line.
    let mut sections = 0;
    let sections_of_all = if autofdo { 3 } else { 2 };
    while let Some((offset, line)) = lines.next() {
        if line.starts_with(b"[") && !autofdo {
            if (sections != 0 || context.is_some()) && sections != 2 {
                return Err(too_few(offset));
            }
            let inner = line.strip_prefix(b"[").and_then(|l| l.strip_suffix(b"]"));
            let inner = inner.ok_or_else(|| malformed(offset, line, "a context in brackets"))?;
            check_depth(offset, inner)?;
            context = Some(inner.to_vec());
            sections = 0;
            continue;
        }
        let number = decimal(line)
            .filter(|_| sections < sections_of_all)
            .ok_or_else(|| malformed(offset, line, "the number of entries of a section"))?;
        let sums = match &context {
            None => &mut binary.sums,
            Some(context) => match binary.contexts.get_mut(context) {
                Some(sums) => sums,
                None => binary.contexts.entry(context.clone()).or_default(),
            },
        };
        let kind = if autofdo { sections } else { 2 * sections };
        for _ in 0..number {
            let (offset, line) = lines.next().ok_or_else(|| ends(text.len()))?;
            let shape = SHAPES.get(kind).copied().unwrap_or_default();
            take(sums, kind, numbering, line).ok_or_else(|| malformed(offset, line, shape))?;
        }
        sections += 1;
    }
    if sections != sections_of_all {
        return Err(ends(text.len()));
    }
    Ok(table.finish())
}

/// Checks the number of frames in a context. The number is limited, because each frame needs some hundreds of bytes of
/// memory.
///
/// # Errors
/// If there are more than [`SAMPLE_CONTEXT_DEPTH`].
pub fn check_depth(offset: usize, context: &[u8]) -> Result<()> {
    let frames = memchr::memmem::find_iter(context, b" @ ").count() + 1;
    if frames <= SAMPLE_CONTEXT_DEPTH {
        return Ok(());
    }
    Err(
        Error::new(ErrorKind::LimitExceeded, "a context has too many frames")
            .at(offset as u64)
            .found(frames)
            .expected(format_args!("at most {SAMPLE_CONTEXT_DEPTH}"))
            .with_hint("the text is damaged, or the recursion is very deep: run llvm-profgen again with --csprof-max-context-depth=N"),
    )
}

/// The form of an entry in each kind of section: ranges, addresses and branches.
const SHAPES: [&str; 3] = ["`START-END:COUNT`", "`PLACE:COUNT`", "`FROM->TO:COUNT`"];

/// Adds an entry of a section to the sums. `kind` is an index in [`SHAPES`]. `None` if the line has a different form.
fn take(sums: &mut SumTable, kind: usize, numbering: Numbering, line: &[u8]) -> Option<()> {
    let end = |place| end_of_branch(place, numbering);
    match (kind, entry(line)?) {
        (0, Entry::Range(start, end, count)) => sums.range(start, end, count),
        (1, Entry::Address(place, count)) => sums.address(place, count),
        (2, Entry::Branch(from, to, count)) => sums.branch(end(from), end(to), count),
        _ => return None,
    }
    Some(())
}

/// Returns the place of one end of a branch (its address or its target). If this end is not in the binary, llvm-profgen
/// writes the address 1, and simpleperf writes 0. If the text has distances from the first segment with code,
/// llvm-profgen writes 1 or a negative distance (1 minus the address of that segment).
fn end_of_branch(place: u64, numbering: Numbering) -> Place {
    let elsewhere = match numbering {
        Numbering::FileOffset
        | Numbering::FromText
        | Numbering::FromStext
        | Numbering::FromModule => place == 0,
        Numbering::Address => place == 1,
        Numbering::FromBase => place == 1 || place >> 63 == 1,
    };
    if elsewhere {
        Place::ELSEWHERE
    } else {
        Place::at(place)
    }
}

#[cold]
fn ends(offset: usize) -> Error {
    Error::new(ErrorKind::Truncated, "the text ends within a section").at(offset as u64)
}

#[cold]
fn too_few(offset: usize) -> Error {
    Error::new(ErrorKind::Malformed, "a context does not have two sections")
        .at(offset as u64)
        .expected("a section of ranges and a section of branches")
}
