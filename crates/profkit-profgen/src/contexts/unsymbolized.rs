//! Reads and writes llvm-profgen's unsymbolized profiles with contexts.
use super::{Context, ContextCounts, Contexts, LineFrame};
use crate::program::Program;
use profkit_data::limits::SAMPLE_CONTEXT_DEPTH;
use profkit_data::sample::Location;
use profkit_perf::collect::BinaryCounts;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The number that llvm-profgen writes for an address outside of the binary.
const ELSEWHERE: u64 = 1;

/// Reads the contexts of unsymbolized profiles. A context is a list of call addresses if the binary has pseudo probes,
/// otherwise a list of functions and source lines. Ranges and branches are not checked against the code.
///
/// # Errors
/// The text of the first context that cannot be read.
pub fn read_contexts<'c>(
    program: &Program<'_>,
    counts: &[&'c BinaryCounts],
) -> Result<Contexts, &'c [u8]> {
    let mut contexts = Contexts {
        by_probes: program.has_probes(),
        ..Contexts::default()
    };
    for counts in counts {
        let address = |place| program.address(counts.key.numbering, place);
        for (text, sums) in &counts.contexts {
            let context = Context::parse(text, contexts.by_probes, address);
            let context = context.ok_or(text.as_slice())?;
            let into = contexts.counts.entry(context).or_default();
            for range in &sums.ranges {
                if let (Some(start), Some(end)) = (address(range.start), address(range.end))
                    && start <= end
                {
                    let sum = into.ranges.entry((start, end)).or_default();
                    *sum = sum.saturating_add(range.count);
                }
            }
            for branch in &sums.branches {
                let end = |place: profkit_perf::collect::Place| place.get().and_then(address);
                if let Some(to) = end(branch.to) {
                    let sum = into.branches.entry((end(branch.from), to)).or_default();
                    *sum = sum.saturating_add(branch.count);
                }
            }
        }
    }
    Ok(contexts)
}

impl Context {
    /// Reads a context without its brackets: calls, as in `0x10 @ 0x20`, whose numbers `address` turns into addresses,
    /// or source lines, as in `main:1 @ foo:3.2 @ bar`. `None` for other text, and for more than
    /// [`SAMPLE_CONTEXT_DEPTH`] frames, which take some hundreds of bytes each.
    pub fn parse(
        text: &[u8],
        by_probes: bool,
        address: impl Fn(u64) -> Option<u64>,
    ) -> Option<Context> {
        if memchr::memmem::find_iter(text, b" @ ").count() >= SAMPLE_CONTEXT_DEPTH {
            return None;
        }
        Some(if by_probes {
            Context::Calls(calls(text, address)?.into())
        } else {
            Context::Lines(frames(text)?.into())
        })
    }
}

fn calls(text: &[u8], address: impl Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(" @ ")
        .map(|call| address(u64::from_str_radix(call.strip_prefix("0x")?, 16).ok()?))
        .collect()
}

fn frames(text: &[u8]) -> Option<Vec<LineFrame>> {
    let mut frames = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.windows(3).position(|part| part == b" @ ");
        let frame = rest.get(..end.unwrap_or(rest.len()))?;
        rest = end.and_then(|end| rest.get(end + 3..)).unwrap_or_default();
        let colon = frame.iter().rposition(|&byte| byte == b':');
        let (name, location) = match colon {
            Some(colon) if end.is_some() => {
                let place = std::str::from_utf8(frame.get(colon + 1..)?).ok()?;
                let (line, discriminator) = place.split_once('.').unwrap_or((place, "0"));
                let location = Location::new(line.parse().ok()?, discriminator.parse().ok()?);
                (frame.get(..colon)?, location)
            }
            _ => (frame, Location::default()),
        };
        frames.push(LineFrame {
            name: name.into(),
            location,
        });
    }
    Some(frames)
}

/// Writes contexts as `llvm-profgen --skip-symbolization` does. `base` is subtracted from all addresses.
///
/// # Errors
/// If the sink has an error.
pub fn write_contexts(contexts: &Contexts, base: u64, sink: &mut dyn Write) -> io::Result<()> {
    let texts = contexts
        .counts
        .iter()
        .map(|(context, counts)| (text_of(context, base), counts));
    // The order is that of LLVM, which sorts by text.
    let sorted: BTreeMap<Vec<u8>, &ContextCounts> = texts.collect();
    let place = |address: u64| address.wrapping_sub(base);
    for (text, counts) in sorted {
        sink.write_all(b"[")?;
        sink.write_all(&text)?;
        sink.write_all(b"]\n")?;
        writeln!(sink, "  {}", counts.ranges.len())?;
        for ((start, end), count) in &counts.ranges {
            writeln!(sink, "  {:x}-{:x}:{count}", place(*start), place(*end))?;
        }
        writeln!(sink, "  {}", counts.branches.len())?;
        for ((from, to), count) in &counts.branches {
            let from = from.unwrap_or(ELSEWHERE);
            writeln!(sink, "  {:x}->{:x}:{count}", place(from), place(*to))?;
        }
    }
    Ok(())
}

fn text_of(context: &Context, base: u64) -> Vec<u8> {
    let mut text = Vec::new();
    match context {
        Context::Calls(calls) => {
            let mut line = String::new();
            for call in calls {
                if !line.is_empty() {
                    line.push_str(" @ ");
                }
                let _ = write!(line, "{:#x}", call.wrapping_sub(base));
            }
            text.extend(line.into_bytes());
        }
        Context::Lines(frames) => {
            let count = frames.len();
            for (index, frame) in frames.iter().enumerate() {
                text.extend_from_slice(&frame.name);
                if index + 1 == count {
                    break;
                }
                let mut place = String::new();
                let _ = write!(place, ":{}", frame.location.line);
                if frame.location.discriminator > 0 {
                    let _ = write!(place, ".{}", frame.location.discriminator);
                }
                text.extend(place.into_bytes());
                text.extend_from_slice(b" @ ");
            }
        }
    }
    text
}
