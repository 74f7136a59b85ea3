//! Reads pre-aggregated samples: the counts that `perf2bolt -pa` of LLVM reads, which programs without perf write (for
//! example from eBPF).
//!
//! A line has a letter and fields between blanks:
//!
//! | line | means |
//! |---|---|
//! | `B FROM TO COUNT MISPREDICTED` | a branch |
//! | `F START END COUNT` | a range: code that ran from START to the taken branch at END; also `f` and `r`, whose first branch was in code that is not known |
//! | `T FROM TO END COUNT` | a branch, and the range after it; also `R`, if the branch is a return. FROM and END can be numbers that stand for none |
//! | `S PLACE COUNT` | a sample without branches |
//! | `E NAME` | the event of the following lines |
//!
//! A place is `ID:ADDRESS` with the build id of its binary, or `ADDRESS` in the main program. ADDRESS is a hexadecimal
//! number: the address that the linker assigned. `X:ADDRESS` and `0` are in a binary that is not known.
use super::TextOptions;
use super::sections::build_id;
use super::words::{Lines, decimal, hex_0x, malformed};
use crate::collect::{BinaryKey, CountTable, Counts, Numbering, Place, SumTable};
use profkit_data::Result;
use profkit_data::ids::BuildId;

/// The smallest of the numbers that stand for no place: the largest is a trace without a range after its branch, or
/// without a branch; the others are a trace whose branch was in code that is not known.
const NONE: u64 = u64::MAX - 2;

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
    Branch {
        from: Spot,
        to: Spot,
        count: u64,
        mispredicted: u64,
    },
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
            Line::Branch {
                from,
                to,
                count,
                mispredicted: decimal(fields.next()?)?,
            }
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
    // No code is at the address 0: it stands for code that is not known.
    let binary = match (binary, address) {
        (Binary::Main, 0) => Binary::Unknown,
        (binary, _) => binary,
    };
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

/// The sums of each binary in which a branch has an end, with its places there.
fn ends(
    table: &mut CountTable,
    from: &Spot,
    to: &Spot,
    mut each: impl FnMut(&mut SumTable, Place, Place),
) {
    let same = from.binary == to.binary;
    if let Some(sums) = sums(table, from) {
        let to = if same {
            Place::at(to.address)
        } else {
            Place::ELSEWHERE
        };
        each(sums, Place::at(from.address), to);
    }
    if !same && let Some(sums) = sums(table, to) {
        each(sums, Place::ELSEWHERE, Place::at(to.address));
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

pub fn read(text: &[u8], options: TextOptions) -> Result<Counts> {
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
            Line::Branch {
                from,
                to,
                count,
                mispredicted,
            } => ends(&mut table, &from, &to, |sums, from, to| {
                sums.branch(from, to, count);
                if options.traces {
                    sums.mispredicted(from, to, mispredicted);
                }
            }),
            Line::Range(start, end, count) => add_range(&mut table, &start, &end, count),
            Line::Trace(from, to, end, count) => {
                let ran = end.address < NONE && end.binary == to.binary;
                if from.address < NONE {
                    ends(&mut table, &from, &to, |sums, from, at| {
                        sums.branch(from, at, count);
                        if options.traces && ran && at.get() == Some(to.address) {
                            sums.trace(from, at, Place::at(end.address), count);
                        }
                    });
                }
                if ran {
                    add_range(&mut table, &to, &end, count);
                }
            }
        }
    }
    Ok(table.finish())
}
