//! Unsymbolized profiles: counts by address as text.
use super::binary::Binary;
use super::counts::{Counts, EXTERNAL, add};
use super::lines::{Lines, number, without_blanks};
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_data::path_from_bytes;
use profkit_merge::files::Content;
use profkit_profgen::CheckedCounts;
use profkit_profgen::contexts::{Context, Contexts};

/// Returns the address that is subtracted from all addresses in the text: the binary's first address, or 0.
pub fn origin(parsed: &Parsed, binary: &Binary<'_>) -> u64 {
    if parsed.given_flag("use-offset") == Some(false) {
        0
    } else {
        binary.first
    }
}

/// Writes the counts to the output.
pub fn write(
    parsed: &Parsed,
    binary: &Binary<'_>,
    counts: &CheckedCounts,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let origin = origin(parsed, binary);
    let name = parsed.output();
    let output = output::create(session, name, Content::Text)?;
    output::write(session, output, name, |lines| {
        lines.number(counts.ranges.len() as u64).end();
        for (&(start, end), &count) in &counts.ranges {
            let [start, end] = [start, end].map(|place| place.wrapping_sub(origin));
            lines.text(format!("{start:x}-{end:x}:{count}")).end();
        }
        // If a branch begins outside of the binary, LLVM uses [`EXTERNAL`] as the address at which it begins. This
        // address is the smallest one, so these branches come first.
        lines.number(counts.branches.len() as u64).end();
        for (&(from, to), &count) in &counts.branches {
            let from = from.unwrap_or(EXTERNAL).wrapping_sub(origin);
            let to = to.wrapping_sub(origin);
            lines.text(format!("{from:x}->{to:x}:{count}")).end();
        }
        Ok(())
    })
}

/// Reads the counts of a text.
///
/// # Errors
/// LLVM's text for a file that cannot be read, or for an invalid line.
pub fn read(parsed: &Parsed, binary: &Binary<'_>, path: &[u8]) -> Result<Counts, Fault> {
    let bytes = std::fs::read(path_from_bytes(path)).map_err(|error| Fault::io(path, &error))?;
    let mut reader = Reader {
        lines: Lines::new(&bytes),
        origin: origin(parsed, binary),
    };
    let mut counts = CheckedCounts::default();
    if reader.lines.line().is_none() {
        // For an empty file, LLVM's tool crashes.
        return Err(Fault::new("Invalid raw profile!"));
    }
    while let Some(line) = reader.lines.line() {
        if line.starts_with(b"[") {
            return reader.contexts(binary).map(Counts::Contexts);
        }
        reader.section(b"-", |start, end, count| {
            add(counts.ranges.entry((start, end)).or_default(), count);
        })?;
        reader.section(b"->", |from, to, count| {
            let from = Some(from).filter(|&from| from != EXTERNAL);
            add(counts.branches.entry((from, to)).or_default(), count);
        })?;
    }
    Ok(Counts::Unsymbolized(counts))
}

struct Reader<'text> {
    lines: Lines<'text>,
    origin: u64,
}

impl Reader<'_> {
    fn invalid(&self) -> Fault {
        let Some(line) = self.lines.line() else {
            return Fault::new("Invalid raw profile!");
        };
        let intro = format!("Invalid raw profile at line {}: ", self.lines.number());
        Fault::new([intro.as_bytes(), line].concat())
    }

    /// Reads counts by calling context. Before the counts of each context stands a line with the context.
    fn contexts(&mut self, binary: &Binary<'_>) -> Result<Contexts, Fault> {
        let mut contexts = Contexts {
            by_probes: binary.program.has_probes(),
            ..Contexts::default()
        };
        while let Some(line) = self.lines.line() {
            let inner = line.strip_prefix(b"[").and_then(|it| it.strip_suffix(b"]"));
            let origin = self.origin;
            let address = |place: u64| Some(place.wrapping_add(origin));
            let context = inner.and_then(|it| Context::parse(it, contexts.by_probes, address));
            let context = context.ok_or_else(|| self.invalid())?;
            self.lines.advance();
            let counts = contexts.counts.entry(context).or_default();
            self.section(b"-", |start, end, count| {
                add(counts.ranges.entry((start, end)).or_default(), count);
            })?;
            self.section(b"->", |from, to, count| {
                let from = Some(from).filter(|&from| from != EXTERNAL);
                add(counts.branches.entry((from, to)).or_default(), count);
            })?;
        }
        Ok(contexts)
    }

    /// Reads the number of entries, and then the entries. Each consists of two addresses and a count. Calls `take` for
    /// each.
    fn section(
        &mut self,
        separator: &[u8],
        mut take: impl FnMut(u64, u64, u64),
    ) -> Result<(), Fault> {
        let line = self.lines.line().map(without_blanks);
        let entries = line.and_then(|line| number(line, 10));
        let entries = entries.ok_or_else(|| self.invalid())?;
        self.lines.advance();
        for _ in 0..entries {
            let line = self.lines.line().map(without_blanks);
            let entry = line.and_then(|line| entry(line, separator));
            let (one, other, count) = entry.ok_or_else(|| self.invalid())?;
            let origin = self.origin;
            take(one.wrapping_add(origin), other.wrapping_add(origin), count);
            self.lines.advance();
        }
        Ok(())
    }
}

fn entry(line: &[u8], separator: &[u8]) -> Option<(u64, u64, u64)> {
    let colon = memchr::memchr(b':', line)?;
    let count = number(line.get(colon + 1..)?, 10)?;
    let places = line.get(..colon)?;
    let at = memchr::memmem::find(places, separator)?;
    let one = number(places.get(..at)?, 16)?;
    let other = number(places.get(at + separator.len()..)?, 16)?;
    Some((one, other, count))
}
