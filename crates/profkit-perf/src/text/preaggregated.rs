//! Reads pre-aggregated samples: the counts that `perf2bolt -pa` of LLVM reads, which programs without perf write (for
//! example from eBPF).
//!
//! A line has a letter and fields between blanks:
//!
//! | line | means |
//! |---|---|
//! | `B FROM TO COUNT MISPREDICTED` | a branch |
//! | `F START END COUNT` | a range: code that ran from START to the taken branch at END; also `f` and `r`, whose first branch was in code that is not known |
//! | `T FROM TO END COUNT` | a branch, and the range after it; also `R`, if the branch is a return |
//! | `S PLACE COUNT` | a sample without branches |
//! | `E NAME` | the event of the following lines |
//!
//! A place is `ID:ADDRESS` with the build id of its binary, or `ADDRESS` in the main program. ADDRESS is a hexadecimal
//! number: the address that the linker assigned. `X:ADDRESS` is in a binary that is not known.
use super::sections::build_id;
use super::words::{Lines, decimal, hex_0x, malformed};
use crate::collect::{BinaryKey, CountTable, Counts, Numbering, Place, SumTable};
use profkit_data::Result;
use profkit_data::ids::BuildId;

/// A place that stands for none: a trace without a branch, or without a range after it.
const NONE: u64 = u64::MAX;

/// An end of a branch or range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spot {
    binary: Binary,
    address: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Binary {
    /// The program whose places have no build id.
    Main,
    Id(BuildId),
    Unknown,
}

enum Line {
    Branch(Spot, Spot, u64),
    Range(Spot, Spot, u64),
    Trace(Spot, Spot, Spot, u64),
    Sample(Spot, u64),
    Event,
}

/// Recognises the text by its first lines: an event is followed by a line with counts.
pub fn detect(text: &[u8]) -> bool {
    let mut lines = content(text).map(|(_, line)| parse(line));
    let first = lines.find(|line| !matches!(line, Some(Line::Event)));
    matches!(first, Some(Some(_)))
}

fn content(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    Lines::new(text)
        .map(|(offset, line)| (offset, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
}

fn parse(line: &[u8]) -> Option<Line> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    let kind = fields.next()?;
    let parsed = match kind {
        b"E" => {
            fields.next()?;
            Line::Event
        }
        b"S" => Line::Sample(spot(fields.next()?)?, decimal(fields.next()?)?),
        b"B" => {
            let (from, to) = (spot(fields.next()?)?, spot(fields.next()?)?);
            let count = decimal(fields.next()?)?;
            decimal(fields.next()?)?;
            Line::Branch(from, to, count)
        }
        b"F" | b"f" | b"r" => {
            let (start, end) = (spot(fields.next()?)?, spot(fields.next()?)?);
            Line::Range(start, end, decimal(fields.next()?)?)
        }
        b"T" | b"R" => {
            let (from, to) = (spot(fields.next()?)?, spot(fields.next()?)?);
            let end = spot(fields.next()?)?;
            Line::Trace(from, to, end, decimal(fields.next()?)?)
        }
        _ => return None,
    };
    fields.next().is_none().then_some(parsed)
}

fn spot(field: &[u8]) -> Option<Spot> {
    let (binary, digits) = match field.iter().position(|&byte| byte == b':') {
        None => (Binary::Main, field),
        Some(at) => {
            let binary = match field.get(..at)? {
                b"X" => Binary::Unknown,
                id => Binary::Id(build_id(id)?),
            };
            (binary, field.get(at + 1..)?)
        }
    };
    let (address, rest) = hex_0x(digits)?;
    rest.is_empty().then_some(Spot { binary, address })
}

/// The sums of the binary of a place; `None` if it is in none.
fn sums<'t>(table: &'t mut CountTable, spot: &Spot) -> Option<&'t mut SumTable> {
    let build_id = match &spot.binary {
        Binary::Unknown => return None,
        Binary::Main => None,
        Binary::Id(id) => Some(id.clone()),
    };
    let binary = table.binary(&BinaryKey {
        path: Vec::new(),
        build_id,
        kernel: false,
        numbering: Numbering::Address,
    });
    Some(&mut binary.sums)
}

fn add_branch(table: &mut CountTable, from: &Spot, to: &Spot, count: u64) {
    let same = from.binary == to.binary;
    if let Some(sums) = sums(table, from) {
        let to = if same {
            Place::at(to.address)
        } else {
            Place::ELSEWHERE
        };
        sums.branch(Place::at(from.address), to, count);
    }
    if !same && let Some(sums) = sums(table, to) {
        sums.branch(Place::ELSEWHERE, Place::at(to.address), count);
    }
}

fn add_range(table: &mut CountTable, start: &Spot, end: &Spot, count: u64) {
    // Code does not run from one binary into another without a branch.
    if start.binary == end.binary
        && let Some(sums) = sums(table, start)
    {
        sums.range(start.address, end.address, count);
    }
}

pub fn read(text: &[u8]) -> Result<Counts> {
    let mut table = CountTable::default();
    for (offset, line) in content(text) {
        let parsed = parse(line).ok_or_else(|| {
            malformed(
                offset,
                line,
                "`B FROM TO COUNT MISPREDICTED`, `F START END COUNT`, `T FROM TO END COUNT`, `S PLACE COUNT` or `E EVENT`",
            )
        })?;
        match parsed {
            Line::Event => {}
            Line::Sample(place, count) => {
                if let Some(sums) = sums(&mut table, &place) {
                    sums.address(place.address, count);
                }
            }
            Line::Branch(from, to, count) => add_branch(&mut table, &from, &to, count),
            Line::Range(start, end, count) => add_range(&mut table, &start, &end, count),
            Line::Trace(from, to, end, count) => {
                if from.address != NONE {
                    add_branch(&mut table, &from, &to, count);
                }
                if end.address != NONE {
                    add_range(&mut table, &to, &end, count);
                }
            }
        }
    }
    Ok(table.finish())
}
